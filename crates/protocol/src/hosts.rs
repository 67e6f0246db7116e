//! Hosts of a network allow-list: the syntax of a rule, and matching of names. Pure; the crate
//! `web` judges addresses after it has resolved a name.

use crate::{Decode, Encode};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Why a place is refused that a rule denies.
pub const DENIED: &str = "a rule denies it";
/// Longest name of a host, by the rules of DNS.
const LONGEST_NAME: usize = 253;
/// Longest part between two dots.
const LONGEST_LABEL: usize = 63;
/// The reason for refusing a host that matches no rule.
pub const NOT_LISTED: &str = "it is not on the allow-list";
/// Most hosts that are reached without a proxy; each takes a socket for each port.
const MOST_REDIRECTS: u8 = 64;
/// The ports of a rule that names none: web servers with and without TLS.
const WEB_PORTS: [u16; 2] = [80, 443];

/// One line of an allow-list: `example.org`, `*.example.org`, `example.org:8443`, `example.org:*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Encode, Decode)]
pub struct HostRule {
    /// In lower case, without a dot at its end.
    name: String,
    names: HostNames,
    ports: HostPorts,
}

/// The names that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
enum HostNames {
    /// This one.
    Itself,
    /// All below it, and not itself.
    Below,
}

/// The ports that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
enum HostPorts {
    /// 80 and 443.
    Web,
    /// This one.
    One(u16),
    /// All.
    Any,
}

/// Why a text is no rule for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRuleError(String);

impl std::error::Error for HostRuleError {}

impl fmt::Display for HostRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HostRule {
    /// The syntax of a rule, for help and errors.
    pub const EXAMPLES: &'static str =
        "`crates.io`, `*.crates.io`, `example.org:8443` or `example.org:*`";

    /// True if the rule matches this name and port. The name must come from [`host_name`].
    #[must_use]
    pub fn admits(&self, name: &str, port: u16) -> bool {
        let named = match self.names {
            HostNames::Itself => name == self.name,
            HostNames::Below => {
                name.strip_suffix(&self.name).is_some_and(|below| below.ends_with('.'))
            }
        };
        named
            && match self.ports {
                HostPorts::Web => WEB_PORTS.contains(&port),
                HostPorts::One(only) => port == only,
                HostPorts::Any => true,
            }
    }
}

/// Rules for a server that a page names by its address.
impl HostRule {
    /// Reads a rule about pages and rights, which may also name an address in numbers: `10.0.0.7:8080`
    /// or `[::1]`. An allow-list has no such entries, since its proxy is asked for names.
    ///
    /// # Errors
    /// The text is neither a name nor an address.
    pub fn of_rule(text: &str) -> Result<Self, HostRuleError> {
        let (host, port) = match text.find(']') {
            Some(end) => (&text[..=end], &text[end + 1..]),
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let Some(address) = number(host) else { return text.parse() };
        let ports = match port {
            "" => Some(HostPorts::Web),
            ":*" => Some(HostPorts::Any),
            port => port
                .strip_prefix(':')
                .and_then(|port| port.parse().ok())
                .filter(|port| *port > 0)
                .map(HostPorts::One),
        };
        let name = number_as_host(address);
        ports.map(|ports| Self { name, names: HostNames::Itself, ports }).ok_or_else(|| {
            let shown: String = text.chars().take(80).collect();
            HostRuleError(format!("{shown:?} has no port from 1 to 65535 behind its colon"))
        })
    }

    /// The host and port that a call for this address requests.
    #[must_use]
    pub fn of_number(address: IpAddr, port: u16) -> Self {
        Self {
            name: number_as_host(address),
            names: HostNames::Itself,
            ports: HostPorts::One(port),
        }
    }
}

/// A host that programs reach without a proxy: in the command's network its name leads to an address of
/// loopback, at which the proxy of the allow-list listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopbackRedirect {
    /// The host.
    pub name: String,
    /// Of loopback, and of this name alone.
    pub address: Ipv4Addr,
    /// The ports that programs connect to.
    pub ports: Vec<u16>,
}

/// The redirects of an allow-list: a host each that it names whole, in its order, 64 at most. A rule for all
/// ports means those of web and SSH servers here. Commands in one network have a block of addresses each.
#[must_use]
pub fn redirects(rules: &[HostRule], block: u8) -> Vec<LoopbackRedirect> {
    let mut found: Vec<LoopbackRedirect> = Vec::new();
    let whole =
        rules.iter().filter(|rule| rule.names == HostNames::Itself && !is_local(&rule.name));
    for rule in whole {
        let ports: &[u16] = match &rule.ports {
            HostPorts::Web => &WEB_PORTS,
            HostPorts::One(port) => &[*port],
            HostPorts::Any => &[22, 80, 443],
        };
        let number = found.iter().position(|other| other.name == rule.name);
        let number = number.unwrap_or(found.len());
        if number == found.len() {
            let Some(last) = u8::try_from(number + 1).ok().filter(|last| *last <= MOST_REDIRECTS)
            else {
                continue;
            };
            let address = Ipv4Addr::new(127, 80, block, last);
            found.push(LoopbackRedirect { name: rule.name.clone(), address, ports: Vec::new() });
        }
        let known = &mut found[number].ports;
        known.extend(ports.iter().filter(|port| !known.contains(port)).collect::<Vec<_>>());
    }
    found
}

/// True if a name means this machine.
fn is_local(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Comparison of two rules, for judging a requested rule by existing ones.
impl HostRule {
    /// True if this rule matches everything that the other one matches.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let names = match (self.names, other.names) {
            (HostNames::Itself, HostNames::Itself) => self.name == other.name,
            (HostNames::Itself, HostNames::Below) => false,
            (HostNames::Below, HostNames::Itself) => other.is_below(&self.name),
            (HostNames::Below, HostNames::Below) => {
                self.name == other.name || other.is_below(&self.name)
            }
        };
        names
            && match (self.ports, other.ports) {
                (HostPorts::Any, _) | (HostPorts::Web, HostPorts::Web) => true,
                (HostPorts::Web, HostPorts::One(port)) => WEB_PORTS.contains(&port),
                (HostPorts::One(own), HostPorts::One(port)) => own == port,
                (HostPorts::Web, HostPorts::Any)
                | (HostPorts::One(_), HostPorts::Web | HostPorts::Any) => false,
            }
    }

    /// True if some host and port match both rules.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let names = match (self.names, other.names) {
            (HostNames::Itself, HostNames::Itself) => self.name == other.name,
            (HostNames::Itself, HostNames::Below) => self.is_below(&other.name),
            (HostNames::Below, HostNames::Itself) => other.is_below(&self.name),
            (HostNames::Below, HostNames::Below) => {
                self.name == other.name || self.is_below(&other.name) || other.is_below(&self.name)
            }
        };
        names
            && match (self.ports, other.ports) {
                (HostPorts::Any, _) | (_, HostPorts::Any) | (HostPorts::Web, HostPorts::Web) => {
                    true
                }
                (HostPorts::Web, HostPorts::One(port)) | (HostPorts::One(port), HostPorts::Web) => {
                    WEB_PORTS.contains(&port)
                }
                (HostPorts::One(own), HostPorts::One(port)) => own == port,
            }
    }

    /// True if it matches all hosts of a top-level domain: `*.com`.
    #[must_use]
    pub fn is_of_a_whole_top(&self) -> bool {
        match self.names {
            HostNames::Itself => false,
            HostNames::Below => !self.name.contains('.'),
        }
    }

    /// The same on every port, where it names none: as a denial means it.
    #[must_use]
    pub fn on_every_port(self) -> Self {
        let ports = match self.ports {
            HostPorts::Web => HostPorts::Any,
            named @ (HostPorts::One(_) | HostPorts::Any) => named,
        };
        Self { ports, ..self }
    }

    /// True if its name is below this one.
    fn is_below(&self, name: &str) -> bool {
        self.name.strip_suffix(name).is_some_and(|below| below.ends_with('.'))
    }
}

impl FromStr for HostRule {
    type Err = HostRuleError;

    fn from_str(text: &str) -> Result<Self, HostRuleError> {
        let no = |why: &str| {
            let shown: String = text.chars().take(80).collect();
            HostRuleError(format!("{shown:?} {why}; write {}", Self::EXAMPLES))
        };
        if text.contains("://") || text.contains('/') {
            return Err(no("is a URL, and a rule is a host alone"));
        }
        let (name, ports) = match text.rsplit_once(':') {
            None => (text, HostPorts::Web),
            Some((name, "*")) => (name, HostPorts::Any),
            Some((name, port)) => match port.parse() {
                Ok(port) if port > 0 => (name, HostPorts::One(port)),
                Ok(_) | Err(_) => return Err(no("has no port from 1 to 65535 behind its colon")),
            },
        };
        let (name, names) = match name.strip_prefix("*.") {
            Some(below) => (below, HostNames::Below),
            None => (name, HostNames::Itself),
        };
        let name = host_name(name)
            .ok_or_else(|| no("is no name of a host: addresses and other patterns are none"))?;
        Ok(Self { name, names, ports })
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = match self.names {
            HostNames::Itself => "",
            HostNames::Below => "*.",
        };
        write!(f, "{star}{}", self.name)?;
        match self.ports {
            HostPorts::Web => Ok(()),
            HostPorts::One(port) => write!(f, ":{port}"),
            HostPorts::Any => f.write_str(":*"),
        }
    }
}

/// A host at one port, for which the proxy of an allow-list may have a key: `npm.example.org`,
/// `npm.example.org:8443`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub struct HostPort {
    /// As [`host_name`] gives it.
    pub name: String,
    /// 443 where the text names none.
    pub port: u16,
}

impl HostPort {
    /// The port of a text that names none.
    const USUAL: u16 = 443;

    /// True if it is this host at this port.
    #[must_use]
    pub fn is(&self, name: &str, port: u16) -> bool {
        self.name == name && self.port == port
    }
}

impl FromStr for HostPort {
    type Err = HostRuleError;

    fn from_str(text: &str) -> Result<Self, HostRuleError> {
        let HostRule { name, names, ports } = text.parse()?;
        let port = match ports {
            HostPorts::Web => Some(Self::USUAL),
            HostPorts::One(port) => Some(port),
            HostPorts::Any => None,
        };
        match (names, port) {
            (HostNames::Itself, Some(port)) => Ok(Self { name, port }),
            (HostNames::Itself | HostNames::Below, _) => {
                let shown: String = text.chars().take(80).collect();
                Err(HostRuleError(format!("{shown:?} is more than one host at one port")))
            }
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Self::USUAL => f.write_str(&self.name),
            port => write!(f, "{}:{port}", self.name),
        }
    }
}

/// The address, if the text is a numeric address in place of a host name.
fn number(text: &str) -> Option<IpAddr> {
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(six) => six.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// A host as it is compared: its name, or an address in numbers.
#[must_use]
pub fn host(text: &str) -> Option<String> {
    number(text).map(number_as_host).or_else(|| host_name(text))
}

/// An address in the place of a host's name, as URLs write it. An IPv4 address inside an IPv6 address
/// is itself.
#[must_use]
pub fn number_as_host(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// The canonical form of a name: lower case, no trailing dot. `None` for text that is not a host
/// name: an address in any spelling, or characters outside DNS (write other scripts as `xn--…`).
#[must_use]
pub fn host_name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    // 127.1, 0x7f000001 and 2130706433 are addresses to a resolver: they all end in a number.
    let number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    (name.len() <= LONGEST_NAME && name.split('.').all(label) && !number).then_some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn who_is_admitted() {
        for (rule, name, port, expected) in [
            ("example.org", "example.org", 443, true),
            ("example.org", "example.org", 80, true),
            ("example.org", "example.org", 22, false),
            ("example.org", "www.example.org", 443, false),
            ("example.org", "badexample.org", 443, false),
            ("example.org", "example.org.evil.net", 443, false),
            ("Example.ORG.", "example.org", 443, true),
            ("*.example.org", "www.example.org", 443, true),
            ("*.example.org", "a.b.example.org", 443, true),
            ("*.example.org", "example.org", 443, false),
            ("*.example.org", "badexample.org", 443, false),
            ("*.example.org:22", "git.example.org", 22, true),
            ("*.example.org:22", "git.example.org", 443, false),
            ("example.org:8443", "example.org", 8443, true),
            ("example.org:8443", "example.org", 443, false),
            ("example.org:*", "example.org", 5432, true),
            ("localhost:*", "localhost", 5432, true),
        ] {
            let parsed: HostRule = rule.parse().unwrap();
            assert_eq!(parsed.admits(name, port), expected, "{rule} {name} {port}");
        }
    }

    #[test]
    fn hosts_that_are_named_whole_are_reached_without_a_proxy() {
        let of = |rules: &[&str]| {
            let rules: Vec<HostRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
            redirects(&rules, 0)
        };
        let found =
            of(&["a.org", "*.b.org", "localhost:80", "git.c.org:*", "a.org:8443", "a.org:443"]);
        let lines: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_str(), one.address.to_string(), one.ports.as_slice()))
            .collect();
        assert_eq!(
            lines,
            [
                ("a.org", "127.80.0.1".to_owned(), &[80, 443, 8443][..]),
                ("git.c.org", "127.80.0.2".to_owned(), &[22, 80, 443]),
            ]
        );
        let many: Vec<String> = (0..70).map(|number| format!("h{number}.org")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).chain(["h63.org:22"]).collect();
        let found = of(&many);
        assert_eq!(found.len(), 64);
        assert_eq!(found[63].ports, [80, 443, 22]);
    }

    #[test]
    fn what_a_rule_covers_and_what_it_meets() {
        for (rule, other, covers, meets) in [
            ("a.org", "a.org", true, true),
            ("a.org", "b.a.org", false, false),
            ("a.org", "*.a.org", false, false),
            ("a.org", "aa.org", false, false),
            ("*.a.org", "a.org", false, false),
            ("*.a.org", "b.a.org", true, true),
            ("*.a.org", "*.a.org", true, true),
            ("*.a.org", "*.b.a.org", true, true),
            ("*.a.org", "*.ba.org", false, false),
            ("*.b.a.org", "*.a.org", false, true),
            ("b.a.org", "*.a.org", false, true),
            ("a.org", "a.org:443", true, true),
            ("a.org", "a.org:22", false, false),
            ("a.org", "a.org:*", false, true),
            ("a.org:443", "a.org", false, true),
            ("a.org:443", "a.org:443", true, true),
            ("a.org:443", "a.org:80", false, false),
            ("a.org:443", "a.org:*", false, true),
            ("a.org:22", "a.org", false, false),
            ("a.org:*", "a.org", true, true),
            ("a.org:*", "a.org:22", true, true),
            ("a.org:*", "a.org:*", true, true),
        ] {
            let [left, right] = [rule, other].map(|text| text.parse::<HostRule>().unwrap());
            assert_eq!(left.covers(&right), covers, "{rule} covers {other}");
            assert_eq!(left.meets(&right), meets, "{rule} meets {other}");
            assert_eq!(right.meets(&left), meets, "{other} meets {rule}");
        }
    }

    #[test]
    fn a_denial_without_a_port_is_one_of_every_port() {
        for (text, wanted) in
            [("a.org", "a.org:*"), ("*.a.org", "*.a.org:*"), ("a.org:22", "a.org:22")]
        {
            assert_eq!(text.parse::<HostRule>().unwrap().on_every_port().to_string(), wanted);
        }
    }

    #[test]
    fn a_whole_top_level_domain_is_known_as_one() {
        for (text, whole) in [
            ("*.com", true),
            ("*.Com.:*", true),
            ("com", false),
            ("*.a.com", false),
            ("a.com", false),
        ] {
            assert_eq!(text.parse::<HostRule>().unwrap().is_of_a_whole_top(), whole, "{text}");
        }
    }

    #[test]
    fn a_rule_is_written_as_it_was_read() {
        for text in ["example.org", "*.example.org", "example.org:8443", "*.example.org:*"] {
            assert_eq!(text.parse::<HostRule>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_rule_is_an_error_with_a_way_on() {
        for text in [
            "",
            "*",
            "*.",
            ".",
            "a..b",
            "https://example.org",
            "example.org/path",
            "example.org:",
            "example.org:0",
            "example.org:65536",
            "example.org:http",
            "ex*mple.org",
            "*.*.org",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "[::1]",
            "::1",
            "user@example.org",
            "exa mple.org",
            "bücher.example",
            "-a.org",
        ] {
            let error = text.parse::<HostRule>().unwrap_err().to_string();
            assert!(error.contains("`*.crates.io`"), "{text}: {error}");
        }
        assert!("*.127.1".parse::<HostRule>().is_err());
    }

    #[test]
    fn a_rule_about_pages_may_name_an_address_in_numbers() {
        for (rule, address, port, expected) in [
            ("10.0.0.7", "10.0.0.7", 80, true),
            ("10.0.0.7", "10.0.0.7", 8080, false),
            ("10.0.0.7", "10.0.0.70", 80, false),
            ("10.0.0.7:8080", "10.0.0.7", 8080, true),
            ("10.0.0.7:*", "10.0.0.7", 1, true),
            ("10.0.0.7", "::ffff:10.0.0.7", 80, true),
            ("[::ffff:10.0.0.7]", "10.0.0.7", 80, true),
            ("[::1]", "::1", 443, true),
            ("[0:0::1]:8080", "::1", 8080, true),
            ("[::1]:8080", "::1", 80, false),
            ("a.org:*", "10.0.0.7", 80, false),
        ] {
            let parsed = HostRule::of_rule(rule).unwrap();
            let server = HostRule::of_number(address.parse().unwrap(), port);
            assert_eq!(parsed.covers(&server), expected, "{rule} {server}");
            assert_eq!(parsed.meets(&server), expected, "{rule} {server}");
            assert_eq!(HostRule::of_rule(&parsed.to_string()), Ok(parsed));
        }
        for text in
            ["10.0.0.7:0", "10.0.0.7:x", "[::1]8080", "127.1", "*.10.0.0.7", "10.0.0.*", "::1"]
        {
            assert!(HostRule::of_rule(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_server_by_its_address_is_spoken_of_by_no_entry_of_an_allow_list() {
        let server = HostRule::of_number("10.0.0.7".parse().unwrap(), 80);
        assert_eq!(server.to_string(), "10.0.0.7:80");
        let six = HostRule::of_number("::1".parse().unwrap(), 8080);
        assert_eq!(six.to_string(), "[::1]:8080");
        for server in [&server, &six] {
            assert!(server.to_string().parse::<HostRule>().is_err(), "{server}");
            for rule in ["*.com:*", "*.a7:*", "localhost:*"] {
                let rule: HostRule = rule.parse().unwrap();
                assert!(!rule.covers(server) && !rule.meets(server), "{rule} {server}");
            }
        }
    }

    #[test]
    fn numbers_inside_a_name_are_no_address() {
        assert_eq!(host_name("1.example.org").as_deref(), Some("1.example.org"));
        assert_eq!(host_name("0xfeed.org").as_deref(), Some("0xfeed.org"));
        assert_eq!(host_name("0x7f.0x1"), None);
    }
}
