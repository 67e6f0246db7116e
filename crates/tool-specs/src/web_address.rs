//! The address of a web page. It is parsed here alone, so that rules judge exactly the address that is
//! fetched.

use protocol::hosts::{HostRule, host_name, number_as_host};
use protocol::web::{PrivateNetworks, WebAddress};
use std::net::IpAddr;
use url::{Host, Url};

/// Longest address; servers and programs take no longer ones.
const LONGEST: usize = 8 * 1024;

/// Why a page by an address in numbers is not fetched.
pub const NUMERIC_ADDRESS_REFUSED: &str = "has a numeric address; only host names are fetched";

/// The address of a page that does not name its host.
#[must_use]
pub fn numeric_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// Parses the address of a web page. Numeric addresses are accepted only if private networks are
/// reachable. A redirect link of a search engine is replaced by its target.
///
/// # Errors
/// A message, if the address cannot be fetched.
pub fn web_url(text: &str, private: PrivateNetworks) -> Result<Url, String> {
    let text = text.trim();
    if text.len() > LONGEST {
        return Err(format!("the address is longer than {LONGEST} bytes"));
    }
    let shown: String = text.chars().take(200).collect();
    let read = |text: &str| {
        Url::parse(text).map_err(|error| format!("{shown:?} is not a web address: {error}"))
    };
    let url = read(text)?;
    let url = match led_to(&url) {
        Some(target) => read(&target)?,
        None => url,
    };
    match url.scheme() {
        "http" | "https" => {}
        other => return Err(format!("{other} is not fetched, only http and https")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("addresses that contain a user name or a password are not fetched".into());
    }
    let named = url.host_str().and_then(host_name).is_some();
    let number = match private {
        PrivateNetworks::Reached => numeric_address(&url),
        PrivateNetworks::Refused => None,
    };
    match named || number.is_some() {
        true => Ok(url),
        false => Err(format!("{shown:?} {NUMERIC_ADDRESS_REFUSED}")),
    }
}

/// The same as rules see it.
#[must_use]
pub fn web_address(url: &Url) -> Option<WebAddress> {
    let port = url.port_or_known_default()?;
    let (host, server) = match numeric_address(url) {
        Some(address) => (number_as_host(address), HostRule::of_number(address, port)),
        None => {
            let host = url.host_str().and_then(host_name)?;
            let server = format!("{host}:{port}").parse().ok()?;
            (host, server)
        }
    };
    Some(WebAddress { server, host, port, path: plain(url.path()) })
}

/// Where a link of DuckDuckGo's result page leads.
fn led_to(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    let theirs = host == "duckduckgo.com" || host.ends_with(".duckduckgo.com");
    if !theirs || !matches!(url.path(), "/l" | "/l/") {
        return None;
    }
    url.query_pairs().find(|(name, _)| name == "uddg").map(|(_, target)| target.into_owned())
}

/// A path with letters written out that need no percent sign: `/%70rivate` is `/private` to servers.
fn plain(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let sign = rest.get(at..at + 3);
        let byte = sign.and_then(|sign| u8::from_str_radix(&sign[1..], 16).ok()).map(char::from);
        match (byte, sign) {
            (Some(c), _) if c.is_ascii_alphanumeric() || "-._~".contains(c) => out.push(c),
            (_, Some(sign)) => out.push_str(&sign.to_ascii_uppercase()),
            (_, None) => {
                out.push_str(&rest[at..]);
                return out;
            }
        }
        rest = &rest[at + 3..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_is_read_as_rules_see_it() {
        for (text, server, port, path) in [
            ("https://Docs.RS/serde/latest?x=1#y", "docs.rs:443", 443, "/serde/latest"),
            ("http://docs.rs", "docs.rs:80", 80, "/"),
            ("https://docs.rs:8443/a/../b/./c", "docs.rs:8443", 8443, "/b/c"),
            ("https://docs.rs/%70rivate/%2e%2e/a%2fb", "docs.rs:443", 443, "/a%2Fb"),
            (" https://docs.rs./a b ", "docs.rs:443", 443, "/a%20b"),
            (
                "https://duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2Fa&rut=1",
                "example.org:443",
                443,
                "/a",
            ),
        ] {
            let address = web_address(&web_url(text, PrivateNetworks::Refused).unwrap()).unwrap();
            let found = (address.server.to_string(), address.port, address.path);
            assert_eq!(found, (server.to_owned(), port, path.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_of_the_web_is_told() {
        for (text, words) in [
            ("", "not a web address"),
            ("docs.rs/serde", "not a web address"),
            ("file:///etc/passwd", "only http and https"),
            ("ftp://example.org/x", "only http and https"),
            ("https://me:secret@example.org/", "a password"),
            ("https://me@example.org/", "a password"),
            ("http://127.0.0.1/", "numeric address"),
            ("http://2130706433/", "numeric address"),
            ("http://0x7f.1/", "numeric address"),
            ("http://[::1]/", "numeric address"),
            ("https://duckduckgo.com/l/?uddg=file%3A%2F%2F%2Fetc", "only http and https"),
            ("https://duckduckgo.com/l/?uddg=http%3A%2F%2F10.0.0.1", "numeric address"),
        ] {
            let why = web_url(text, PrivateNetworks::Refused).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
        let longest = format!("https://a.org/{}", "x".repeat(LONGEST));
        assert!(web_url(&longest, PrivateNetworks::Refused).is_err());
    }

    #[test]
    fn numbers_are_read_where_private_networks_are_reached() {
        for (text, server, host) in [
            ("http://10.0.0.7/a", "10.0.0.7:80", "10.0.0.7"),
            ("http://127.0.0.1:8080/a", "127.0.0.1:8080", "127.0.0.1"),
            ("http://2130706433/a", "127.0.0.1:80", "127.0.0.1"),
            ("https://[::1]:8443/a", "[::1]:8443", "[::1]"),
            ("http://localhost:8080/a", "localhost:8080", "localhost"),
        ] {
            let url = web_url(text, PrivateNetworks::Reached).unwrap();
            let address = web_address(&url).unwrap();
            let found = (address.server.to_string(), address.host.as_str(), address.is_named());
            assert_eq!(found, (server.to_owned(), host, host == "localhost"), "{text}");
        }
        assert!(web_url("http://me@10.0.0.7/", PrivateNetworks::Reached).is_err());
        assert!(web_url("file://10.0.0.7/x", PrivateNetworks::Reached).is_err());
    }
}
