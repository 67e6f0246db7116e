//! What a request to the proxy is for, by nothing but its target. Pure.

use hyper::http::uri::Scheme;
use hyper::{Method, Request};
use protocol::hosts::host_name;

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyTarget {
    /// The name with its port, in one spelling.
    pub(crate) place: String,
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// Why a request is for nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TargetError {
    Refused(String, String),
    /// Meant for a server: its target is a path.
    NotProxyRequest,
}

pub(super) const PLAIN_REQUEST: &str =
    "agentd: this is the proxy of an allow-list, not a server.\n";

pub(super) fn parse_target<B>(request: &Request<B>) -> Result<ProxyTarget, TargetError> {
    let uri = request.uri();
    let authority = uri.authority().ok_or(TargetError::NotProxyRequest)?;
    let usual = match (request.method() == Method::CONNECT, uri.scheme()) {
        (true, _) => None,
        (false, Some(scheme)) if *scheme == Scheme::HTTP => Some(80),
        (false, _) => {
            let why = "only http:// is asked for in words; TLS takes CONNECT".to_owned();
            return Err(TargetError::Refused(authority.to_string(), why));
        }
    };
    let refused = |why: &str| TargetError::Refused(authority.to_string(), why.to_owned());
    if authority.as_str().contains('@') {
        return Err(refused("a user's name does not belong in front of a host"));
    }
    // `port_u16` forgets what is no port.
    let port = match (authority.port(), authority.port_u16().or(usual)) {
        (Some(_), None) | (None, None) => return Err(refused("it names no port")),
        (_, Some(port)) => port,
    };
    let place = format!("{}:{port}", authority.host());
    let Some(name) = host_name(authority.host()) else {
        let why = "an address is on no allow-list; hosts are reached by their names".to_owned();
        return Err(TargetError::Refused(place, why));
    };
    // One spelling, so that a host is one line of the record however often it is respelled.
    let place = format!("{name}:{port}");
    Ok(ProxyTarget { place, name, port })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked(method: &str, uri: &str) -> Result<ProxyTarget, TargetError> {
        parse_target(&Request::builder().method(method).uri(uri).body(()).unwrap())
    }

    #[test]
    fn what_a_request_is_for() {
        for (method, uri, name, port) in [
            ("CONNECT", "example.org:443", "example.org", 443),
            ("CONNECT", "Example.ORG.:8443", "example.org", 8443),
            ("GET", "http://example.org/a?b", "example.org", 80),
            ("POST", "http://example.org:8080", "example.org", 8080),
        ] {
            let target = asked(method, uri).unwrap();
            assert_eq!((target.name.as_str(), target.port), (name, port), "{method} {uri}");
            assert_eq!(target.place, format!("{name}:{port}"), "one spelling");
        }
    }

    #[test]
    fn what_is_for_nothing() {
        for (method, uri, said) in [
            ("CONNECT", "127.0.0.1:443", "an address"),
            ("CONNECT", "[::1]:443", "an address"),
            ("CONNECT", "2130706433:80", "an address"),
            ("CONNECT", "example.org", "no port"),
            ("GET", "http://127.1/", "an address"),
            ("GET", "https://example.org/", "CONNECT"),
            ("GET", "ftp://example.org/", "CONNECT"),
            ("GET", "http://user:secret@example.org/", "user's name"),
        ] {
            match asked(method, uri) {
                Err(TargetError::Refused(_, why)) => assert!(why.contains(said), "{uri}: {why}"),
                other => panic!("{method} {uri}: {other:?}"),
            }
        }
        assert_eq!(asked("GET", "/etc/passwd"), Err(TargetError::NotProxyRequest));
    }
}
