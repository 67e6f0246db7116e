//! The HTTP proxy that a person's environment names, and the hosts that are reached without it. Pure:
//! others read the variables and connect.

use std::fmt;
use std::net::IpAddr;

/// The variables that name a proxy for a scheme, the first that is set counts, and the last two for
/// both.
const HTTPS: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const HTTP: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
/// The variables that list the hosts without a proxy.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// All of these variables.
pub const PROXY_VARIABLES: [&str; 8] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// How a server is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebScheme {
    /// By requests that a proxy can read and forward.
    Http,
    /// Through a tunnel: TLS, or any protocol that is not HTTP.
    Https,
}

impl WebScheme {
    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A proxy. Neither `Debug` nor `Display` shows its password.
#[derive(Clone, PartialEq, Eq)]
pub struct CompanyProxy {
    /// The variable that names it.
    pub variable: &'static str,
    /// How the proxy itself is spoken with.
    pub scheme: WebScheme,
    /// An address of IPv6 without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// User and password, percent-encoded.
    sign_in: Option<String>,
}

impl CompanyProxy {
    /// Reads the value of a variable: `http://user:password@host:port`; all but the host may be left out.
    ///
    /// # Errors
    /// It is no address of an HTTP proxy.
    pub fn parse(variable: &'static str, value: &str) -> Result<Self, ProxyAddressError> {
        let error = ProxyAddressError { variable };
        let (scheme, rest) = match value.trim().split_once("://") {
            None => (WebScheme::Http, value.trim()),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (WebScheme::Http, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => {
                (WebScheme::Https, rest)
            }
            Some(_) => return Err(error),
        };
        // A password may have a slash in it.
        let (sign_in, rest) = match rest.rsplit_once('@') {
            Some((sign_in, rest)) => (Some(sign_in.to_owned()), rest),
            None => (None, rest),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (host, port) = host_and_port(authority).ok_or(error)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(error);
        }
        let port = port.unwrap_or(scheme.port());
        Ok(Self { variable, scheme, host, port, sign_in })
    }

    /// The whole address, with the password: for a client that connects, and for nothing that is shown.
    #[must_use]
    pub fn url(&self) -> String {
        let sign_in = self.sign_in.iter().map(|it| it.replace('/', "%2F"));
        let sign_in = sign_in.map(|it| format!("{it}@")).collect::<String>();
        format!("{}://{sign_in}{}", self.scheme, self.authority())
    }

    /// User and password of `Basic`.
    #[must_use]
    pub fn sign_in(&self) -> Option<(String, String)> {
        let sign_in = self.sign_in.as_deref()?;
        let (user, password) = sign_in.split_once(':').unwrap_or((sign_in, ""));
        Some((decoded(user), decoded(password)))
    }

    fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for WebScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

impl fmt::Display for CompanyProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{} ({})", self.scheme, self.authority(), self.variable)
    }
}

impl fmt::Debug for CompanyProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A variable that names no proxy that agentd can use. The value may hold a password and is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyAddressError {
    variable: &'static str,
}

impl fmt::Display for ProxyAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} does not name an HTTP proxy: it must be http://HOST:PORT or https://HOST:PORT. Correct \
             it, or list hosts that are reached without a proxy in NO_PROXY",
            self.variable
        )
    }
}

impl std::error::Error for ProxyAddressError {}

/// The proxies of an environment.
#[derive(Debug, Clone, Default)]
pub struct ProxyEnvironment {
    http: Option<Result<CompanyProxy, ProxyAddressError>>,
    https: Option<Result<CompanyProxy, ProxyAddressError>>,
    exceptions: String,
}

impl ProxyEnvironment {
    /// Reads the variables; an empty one counts as unset.
    pub fn read(value: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| value(name).filter(|value| !value.trim().is_empty());
        let proxy = |names: [&'static str; 4]| {
            let found = names.into_iter().find_map(|name| Some((name, set(name)?)));
            found.map(|(name, value)| CompanyProxy::parse(name, &value))
        };
        let exceptions = EXCEPTIONS.into_iter().find_map(set).unwrap_or_default();
        Self { http: proxy(HTTP), https: proxy(HTTPS), exceptions }
    }

    /// The proxy for a host, a name or an address. This machine is reached without one.
    ///
    /// # Errors
    /// The variable that names it is unusable.
    pub fn proxy_for(
        &self,
        scheme: WebScheme,
        host: &str,
        port: u16,
    ) -> Result<Option<&CompanyProxy>, ProxyAddressError> {
        let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        let named = match scheme {
            WebScheme::Http => &self.http,
            WebScheme::Https => &self.https,
        };
        let mut exceptions = self.exceptions.split([',', ' ', '\t']).filter(|it| !it.is_empty());
        match named {
            None => Ok(None),
            Some(_) if is_loopback(&host) || exceptions.any(|it| excepts(it, &host, port)) => {
                Ok(None)
            }
            Some(named) => named.as_ref().map(Some).map_err(|error| *error),
        }
    }

    /// One line about each proxy, and about each variable that is unusable.
    pub fn lines(&self) -> Vec<Result<String, ProxyAddressError>> {
        let of = |scheme: WebScheme, named: &Option<Result<CompanyProxy, ProxyAddressError>>| {
            let named = named.clone()?;
            Some(named.map(|proxy| format!("{scheme} through {proxy}")))
        };
        let both = [(WebScheme::Https, &self.https), (WebScheme::Http, &self.http)];
        let mut lines: Vec<_> = both.into_iter().filter_map(|(s, named)| of(s, named)).collect();
        if !lines.is_empty() && !self.exceptions.is_empty() {
            lines.push(Ok(format!("not for {} (NO_PROXY)", self.exceptions)));
        }
        lines
    }
}

/// These variables as a command with the whole network gets them: without passwords.
#[must_use]
pub fn proxy_variables_for_commands(env: &[(String, String)]) -> Vec<(String, String)> {
    let named = env.iter().filter(|(name, _)| PROXY_VARIABLES.contains(&name.as_str()));
    let without = |(name, value): &(String, String)| {
        let clean = match (value.rsplit_once('@'), value.split_once("://")) {
            _ if EXCEPTIONS.contains(&name.as_str()) => value.clone(),
            (None, _) => value.clone(),
            (Some((_, rest)), Some((scheme, _))) => format!("{scheme}://{rest}"),
            (Some((_, rest)), None) => rest.to_owned(),
        };
        (name.clone(), clean)
    };
    named.map(without).collect()
}

/// True if this host is the machine itself.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// One entry of `NO_PROXY`: `*`, a host, a domain with all below it, an address or a range of addresses;
/// hosts and addresses also with a port.
fn excepts(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    let address = host.parse::<IpAddr>().ok();
    if let Some((network, length)) = entry.split_once('/') {
        let network = network.trim_matches(['[', ']']).parse().ok();
        let is_in = |network| Some(is_in_range(address?, network, length.parse().ok()?));
        return network.and_then(is_in).unwrap_or_default();
    }
    let Some((name, wanted)) = host_and_port(entry) else { return false };
    if wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    if let Ok(wanted) = name.parse::<IpAddr>() {
        return address.is_some_and(|it| it.to_canonical() == wanted.to_canonical());
    }
    let name = name.trim_start_matches("*.").trim_start_matches('.').trim_end_matches('.');
    !name.is_empty()
        && (host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.')))
}

fn is_in_range(address: IpAddr, network: IpAddr, length: u32) -> bool {
    match (address.to_canonical(), network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if length <= 32 => {
            let differs = address.to_bits() ^ network.to_bits();
            differs.checked_shr(32 - length).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if length <= 128 => {
            let differs = address.to_bits() ^ network.to_bits();
            differs.checked_shr(128 - length).unwrap_or(0) == 0
        }
        (IpAddr::V4(_) | IpAddr::V6(_), IpAddr::V4(_) | IpAddr::V6(_)) => false,
    }
}

/// Host in lower case, and port. None if the port is no number.
fn host_and_port(text: &str) -> Option<(String, Option<u16>)> {
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Some((text.to_ascii_lowercase(), None));
    }
    let (host, port) = match text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, tail)) => (host, tail.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.filter(|port| !port.is_empty()).map(str::parse).transpose().ok()?;
    Some((host.to_ascii_lowercase(), port))
}

/// Percent signs taken back.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, digits.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn with(variables: &[(&str, &str)]) -> ProxyEnvironment {
        let found = |name: &str| variables.iter().find(|(other, _)| *other == name);
        ProxyEnvironment::read(|name| found(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn exceptions_are_hosts_domains_addresses_and_ranges() {
        for (host, port, exceptions, through) in [
            ("api.example.org", 443, "", true),
            ("api.example.org", 443, "*", false),
            ("api.example.org", 443, "example.org", false),
            ("api.example.org", 443, ".example.org", false),
            ("api.example.org", 443, "a.test, *.example.org", false),
            ("api.example.org", 443, "a.test *.example.org", false),
            ("api.example.org", 443, "ample.org", true),
            ("API.example.org.", 443, "api.Example.org", false),
            ("api.example.org", 8443, "example.org:8443", false),
            ("api.example.org", 8443, "example.org:443", true),
            ("api.example.org", 443, "example.org:x", true),
            ("10.1.2.3", 443, "10.0.0.0/8", false),
            ("11.1.2.3", 443, "10.0.0.0/8", true),
            ("11.1.2.3", 443, "0.0.0.0/0", false),
            ("10.1.2.3", 443, "10.0.0.0/99,x/8", true),
            ("10.1.2.3", 443, "10.1.2.3", false),
            ("10.1.2.3", 443, "10.1.2.3:80", true),
            ("110.1.2.3", 443, "10.1.2.3", true),
            ("[2001:db8::1]", 443, "2001:DB8::1", false),
            ("2001:db8::1", 443, "[2001:db8::1]:443", false),
            ("2001:db8::1", 443, "2001:db8::/32", false),
            ("2001:db9::1", 443, "2001:db8::/32", true),
            ("ten.example.org", 443, "10.0.0.0/8", true),
            ("localhost", 443, "", false),
            ("a.localhost", 443, "", false),
            ("127.9.9.9", 443, "", false),
            ("[::1]", 443, "", false),
        ] {
            let found = with(&[("HTTPS_PROXY", "http://p:3128"), ("no_proxy", exceptions)]);
            let proxy = found.proxy_for(WebScheme::Https, host, port).unwrap();
            assert_eq!(proxy.is_some(), through, "{host}:{port} {exceptions:?}");
        }
    }

    #[test]
    fn each_scheme_has_its_variable() {
        let all = [
            ("HTTPS_PROXY", "http://s:1"),
            ("https_proxy", "http://never:1"),
            ("http_proxy", "http://h:1"),
            ("all_proxy", "http://a:1"),
        ];
        let said = |variables: &[(&str, &str)], scheme| {
            let found = with(variables);
            let proxy = found.proxy_for(scheme, "x.test", 80).unwrap();
            proxy.map(ToString::to_string)
        };
        let (http, https) = (WebScheme::Http, WebScheme::Https);
        assert_eq!(said(&all, https).unwrap(), "http://s:1 (HTTPS_PROXY)");
        assert_eq!(said(&all, http).unwrap(), "http://h:1 (http_proxy)");
        assert_eq!(said(&all[3..], http).unwrap(), "http://a:1 (all_proxy)");
        assert_eq!(said(&all[..1], http), None);
        assert_eq!(said(&[("HTTPS_PROXY", " "), all[1]], https).unwrap().len(), 28);
    }

    #[test]
    fn an_address_is_read_whole_and_shown_without_its_password() {
        for (value, shown, url, sign_in) in [
            ("p:3128", "http://p:3128", "http://p:3128", None),
            ("http://p", "http://p:80", "http://p:80", None),
            ("HTTPS://P.test/", "https://p.test:443", "https://p.test:443", None),
            ("http://[::1]:8080", "http://[::1]:8080", "http://[::1]:8080", None),
            ("http://ann:p%40w@p:1/", "http://p:1", "http://ann:p%40w@p:1", Some(("ann", "p@w"))),
            ("ann:p/w@p:1", "http://p:1", "http://ann:p%2Fw@p:1", Some(("ann", "p/w"))),
            ("http://ann@p:1", "http://p:1", "http://ann@p:1", Some(("ann", ""))),
        ] {
            let proxy = CompanyProxy::parse("HTTPS_PROXY", value).unwrap();
            for text in [proxy.to_string(), format!("{proxy:?}")] {
                assert_eq!(text, format!("{shown} (HTTPS_PROXY)"));
            }
            assert_eq!(proxy.url(), url);
            let sign_in = sign_in.map(|(user, password)| (user.to_owned(), password.to_owned()));
            assert_eq!(proxy.sign_in(), sign_in);
        }
        for value in ["socks5://ann:secret@p:1", "http://p:port", "http://", "http://a b@c d"] {
            let error = CompanyProxy::parse("ALL_PROXY", value).unwrap_err().to_string();
            assert!(error.starts_with("ALL_PROXY does not name an HTTP proxy"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn commands_get_no_password() {
        let env = [
            ("HTTPS_PROXY", "http://ann:p/w@p:1"),
            ("http_proxy", "ann:pw@p:1"),
            ("ALL_PROXY", "http://p:1"),
            ("NO_PROXY", "a.test"),
            ("PATH", "/bin"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let given = proxy_variables_for_commands(&env);
        let values: Vec<_> = given.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["http://p:1", "p:1", "http://p:1", "a.test"]);
    }
}
