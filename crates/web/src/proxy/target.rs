//! Parses the destination of a proxy request from its target. Pure.

use hyper::http::uri::Scheme;
use hyper::{Method, Request};
use protocol::hosts::{host, host_name};
use protocol::web::PrivateNetworks;

/// The destination of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyTarget {
    /// Host name and port in normalized spelling.
    pub(crate) place: String,
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// Why a request has no valid destination.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TargetError {
    Refused(String, String),
    /// A request for a server, not for a proxy: its target is a path.
    NotProxyRequest,
}

pub(super) const PLAIN_REQUEST: &str =
    "agentd: this is the proxy of an allow-list, not a server.\n";

pub(super) fn parse_target<B>(
    request: &Request<B>,
    private: PrivateNetworks,
) -> Result<ProxyTarget, TargetError> {
    let uri = request.uri();
    let authority = uri.authority().ok_or(TargetError::NotProxyRequest)?;
    let usual = match (request.method() == Method::CONNECT, uri.scheme()) {
        (true, _) => None,
        (false, Some(scheme)) if *scheme == Scheme::HTTP => Some(80),
        (false, _) => {
            let why = "only http:// URLs can be requested directly; use CONNECT for TLS".to_owned();
            return Err(TargetError::Refused(authority.to_string(), why));
        }
    };
    let refused = |why: &str| TargetError::Refused(authority.to_string(), why.to_owned());
    if authority.as_str().contains('@') {
        return Err(refused("the host must not be preceded by a user name"));
    }
    // `port_u16` returns `None` for an invalid port.
    let port = match (authority.port(), authority.port_u16().or(usual)) {
        (Some(_), None) | (None, None) => return Err(refused("the port is missing")),
        (_, Some(port)) => port,
    };
    let place = format!("{}:{port}", authority.host());
    let name = match private {
        PrivateNetworks::Refused => host_name(authority.host()),
        PrivateNetworks::Reached => host(authority.host()),
    };
    let Some(name) = name else {
        let why = "IP addresses cannot be on the allow-list; use the host name".to_owned();
        return Err(TargetError::Refused(place, why));
    };
    // Normalized, so that each host has one row in the log however it is spelled.
    let place = format!("{name}:{port}");
    Ok(ProxyTarget { place, name, port })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked(method: &str, uri: &str) -> Result<ProxyTarget, TargetError> {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        parse_target(&request, PrivateNetworks::Refused)
    }

    #[test]
    fn an_address_in_numbers_where_it_may_be_one() {
        for (uri, name) in [("http://127.0.0.1:80/a", "127.0.0.1"), ("http://[::1]/", "[::1]")] {
            let request = Request::builder().uri(uri).body(()).unwrap();
            let target = parse_target(&request, PrivateNetworks::Reached).unwrap();
            assert_eq!((target.name.as_str(), target.port), (name, 80));
            assert!(parse_target(&request, PrivateNetworks::Refused).is_err());
        }
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
            ("CONNECT", "127.0.0.1:443", "IP addresses"),
            ("CONNECT", "[::1]:443", "IP addresses"),
            ("CONNECT", "2130706433:80", "IP addresses"),
            ("CONNECT", "example.org", "port is missing"),
            ("GET", "http://127.1/", "IP addresses"),
            ("GET", "https://example.org/", "CONNECT"),
            ("GET", "ftp://example.org/", "CONNECT"),
            ("GET", "http://user:secret@example.org/", "user name"),
        ] {
            match asked(method, uri) {
                Err(TargetError::Refused(_, why)) => assert!(why.contains(said), "{uri}: {why}"),
                other => panic!("{method} {uri}: {other:?}"),
            }
        }
        assert_eq!(asked("GET", "/etc/passwd"), Err(TargetError::NotProxyRequest));
    }
}
