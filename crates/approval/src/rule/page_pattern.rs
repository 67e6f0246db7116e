//! Patterns for pages of the web: a host, and a path on it where a rule names one. For `pattern`.

use protocol::hosts::{self, HostRule, HostRuleError};
use protocol::judgement::RuleEffect;
use protocol::web::WebAddress;

/// A pattern for pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PagePattern {
    /// Whose pages.
    pub host: HostRule,
    /// The literal pieces of the path between `*`, which match any letters including `/`; `None` if
    /// the rule is for the whole host.
    path: Option<Vec<String>>,
}

impl PagePattern {
    /// Reads `docs.rs`, `docs.rs/serde/*`, `*.example.org:8443/api/*`, `10.0.0.7:8080/*`, `[::1]`.
    pub(crate) fn parse(text: &str, effect: RuleEffect) -> Result<Self, HostRuleError> {
        let (host, path) = match text.split_once('/') {
            Some((host, path)) => (host, Some(format!("/{path}"))),
            None => (text, None),
        };
        let host = HostRule::of_rule(host)?;
        let host = match effect {
            RuleEffect::Allow => host,
            RuleEffect::Deny | RuleEffect::Ask => host.on_every_port(),
        };
        let path = path.filter(|path| path != "/*");
        Ok(Self { host, path: path.map(|path| path.split('*').map(str::to_owned).collect()) })
    }

    /// True if the pattern matches this page under every interpretation that a server could give
    /// its path.
    pub(crate) fn covers(&self, page: &WebAddress) -> bool {
        let all = |pieces: &Vec<String>| readings(&page.path).iter().all(|path| fits(pieces, path));
        self.host.admits(&page.host, page.port) && self.path.as_ref().is_none_or(all)
    }

    /// True if the pattern matches this page under any interpretation that a server could give its
    /// path.
    pub(crate) fn catches(&self, page: &WebAddress) -> bool {
        let any = |pieces: &Vec<String>| readings(&page.path).iter().any(|path| fits(pieces, path));
        self.host.admits(&page.host, page.port) && self.path.as_ref().is_none_or(any)
    }
}

/// A page as an example beside a rule names it: `docs.rs/serde`, with or without `https://`.
pub(crate) fn page(text: &str) -> Option<WebAddress> {
    let text = text.trim();
    let rest = text.strip_prefix("https://").unwrap_or(text);
    let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    let (name, port) = match server.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((name, port)) => (name, port.parse().ok()?),
        None => (server, 443),
    };
    let (host, path) = (hosts::host(name)?, path.to_owned());
    let server = HostRule::of_rule(&format!("{host}:{port}")).ok()?;
    Some(WebAddress { server, host, port, path })
}

/// The first and the last piece are tied to the ends; each between is taken as early as it is found.
/// True if the pieces stand in the text in their order, with any letters between them.
pub(super) fn fits(pieces: &[String], path: &str) -> bool {
    let [first, middle @ .., last] = pieces else {
        return pieces.first().is_some_and(|whole| whole == path);
    };
    let Some(mut rest) = path.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

/// The interpretations of a path: unchanged; percent-decoded; with `.` and `..` resolved too; and
/// without parameters after `;`.
fn readings(path: &str) -> Vec<String> {
    let plain = unescaped(path);
    let without = |part: &str| part.split(';').next().unwrap_or_default().to_owned();
    let bare: Vec<String> = plain.split('/').map(without).collect();
    let (walked, bare) = (walked(&plain), walked(&bare.join("/")));
    vec![path.to_owned(), plain, walked, bare]
}

/// The path with `.` and `..` taken, and nothing between two slashes left out.
fn walked(path: &str) -> String {
    let path = path.replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let end = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

/// Every percent sign undone.
fn unescaped(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(meant) => {
                bytes.push(meant);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn page(host: &str, port: u16, path: &str) -> WebAddress {
        let server = HostRule::of_rule(&format!("{host}:{port}")).unwrap();
        WebAddress { server, host: host.to_owned(), port, path: path.to_owned() }
    }

    #[test]
    fn which_pages_a_pattern_speaks_of() {
        for (pattern, host, port, path, expected) in [
            ("docs.rs", "docs.rs", 443, "/serde", true),
            ("docs.rs/*", "docs.rs", 443, "/", true),
            ("docs.rs/*", "docs.rs", 80, "/a/b", true),
            ("docs.rs/*", "docs.rs", 8443, "/", false),
            ("docs.rs/*", "evil.docs.rs", 443, "/", false),
            ("docs.rs/*", "docs.rs.evil.net", 443, "/", false),
            ("*.docs.rs/*", "a.docs.rs", 443, "/", true),
            ("docs.rs/serde/*", "docs.rs", 443, "/serde/latest/x", true),
            ("docs.rs/serde/*", "docs.rs", 443, "/serde", false),
            ("docs.rs/serde/*", "docs.rs", 443, "/serde-evil/x", false),
            ("docs.rs/*/api", "docs.rs", 443, "/a/b/api", true),
            ("docs.rs/*/api", "docs.rs", 443, "/a/b/api/x", false),
            ("docs.rs/", "docs.rs", 443, "/", true),
            ("docs.rs/", "docs.rs", 443, "/x", false),
            ("docs.rs:8443/x", "docs.rs", 8443, "/x", true),
            ("docs.rs:443/x", "docs.rs", 443, "/x", true),
            ("docs.rs/public/*", "docs.rs", 443, "/public/..%2Fsecret", false),
            ("docs.rs/public/*", "docs.rs", 443, "/public/..%5Csecret", false),
            ("docs.rs/public/*", "docs.rs", 443, "/public/a%2Fb", true),
            ("docs.rs/public/*", "docs.rs", 443, "/public//a/", true),
            ("127.0.0.1:8080/*", "127.0.0.1", 8080, "/a", true),
            ("127.0.0.1:8080/*", "127.0.0.1", 80, "/a", false),
            ("127.0.0.1/a/*", "127.0.0.1", 80, "/b", false),
            ("[::1]:8080/a/*", "[::1]", 8080, "/a/b", true),
            ("[::1]", "[::1]", 80, "/", true),
            ("[::1]", "127.0.0.1", 80, "/", false),
        ] {
            let read = PagePattern::parse(pattern, RuleEffect::Allow).unwrap();
            assert_eq!(read.covers(&page(host, port, path)), expected, "{pattern} {host}{path}");
        }
    }

    #[test]
    fn a_denial_sees_through_spellings_and_on_every_port() {
        let denial = PagePattern::parse("a.org/private/*", RuleEffect::Deny).unwrap();
        for path in [
            "/private/x",
            "//private/x",
            "/private%2Fx",
            "/private//x",
            "/%2Fprivate/x",
            "/.%2Fprivate/x",
            "/public/..%2Fprivate/x",
            "/public/..%5Cprivate/x",
            "/private;x=1/x",
        ] {
            assert!(denial.catches(&page("a.org", 443, path)), "{path}");
        }
        assert!(denial.catches(&page("a.org", 8443, "/private/x")));
        for path in ["/public/x", "/privateer/x", "/%"] {
            assert!(!denial.catches(&page("a.org", 443, path)), "{path}");
        }
        let number = PagePattern::parse("10.0.0.1/x", RuleEffect::Deny).unwrap();
        assert!(number.catches(&page("10.0.0.1", 8443, "/x")));
        assert!(!number.catches(&page("10.0.0.1", 443, "/y")));
        assert!(PagePattern::parse("10.0.1/x", RuleEffect::Deny).is_err());
        assert!(PagePattern::parse("https://a.org/x", RuleEffect::Deny).is_err());
    }
}
