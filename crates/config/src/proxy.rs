//! The proxy for requests to a model's server.

use crate::environment::Environment;
use crate::error::ConfigError;
use crate::variables;
use protocol::company_proxy::{self, PROXY_VARIABLES, ProxyEnvironment, WebScheme};
use url::Url;

/// The proxy's address for this base URL, with its password.
pub(crate) fn proxy_for(
    base_url: &str,
    environment: &Environment,
) -> Result<Option<String>, ConfigError> {
    let mut read = Vec::new();
    for name in PROXY_VARIABLES {
        read.extend(variables::text_of(environment, name)?.map(|value| (name, value)));
    }
    let value =
        |name: &str| read.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let proxies = ProxyEnvironment::read(value);
    let Some((scheme, host, port)) = server(base_url) else { return Ok(None) };
    let proxy = proxies.proxy_for(scheme, &host, port).map_err(ConfigError::Proxy)?;
    Ok(proxy.map(|proxy| proxy.url()))
}

/// True if a URL's host is this machine.
pub(crate) fn is_loopback(base_url: &str) -> bool {
    server(base_url).is_some_and(|(_, host, _)| company_proxy::is_loopback(&host))
}

fn server(base_url: &str) -> Option<(WebScheme, String, u16)> {
    let url = Url::parse(base_url).ok()?;
    let scheme = match url.scheme() {
        "https" => WebScheme::Https,
        _ => WebScheme::Http,
    };
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    Some((scheme, host, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_base_url_has_the_proxy_of_its_scheme() {
        let (https, http) = (("HTTPS_PROXY", "http://s:1"), ("http_proxy", "http://h:1"));
        for (url, variables, wanted) in [
            ("https://a.test/v1", &[https, http][..], Some("http://s:1")),
            ("http://a.test/v1", &[https, http], Some("http://h:1")),
            ("http://a.test/v1", &[https], None),
            ("https://a.test:8443", &[https, ("NO_PROXY", "a.test:443")], Some("http://s:1")),
            ("https://a.test", &[https, ("NO_PROXY", "a.test:443")], None),
            ("http://127.0.0.1:11434/v1", &[http, ("ALL_PROXY", "socks5://x")], None),
        ] {
            let environment = variables.iter().copied().collect();
            assert_eq!(proxy_for(url, &environment).unwrap().as_deref(), wanted, "{url}");
        }
        let environment = [("ALL_PROXY", "socks5://ann:secret@x:1")].into_iter().collect();
        let error = proxy_for("https://a.test", &environment).unwrap_err().to_string();
        assert!(error.contains("ALL_PROXY") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn loopback_is_known_by_name_and_address() {
        for (url, local) in [
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:8080", true),
            ("http://localhost", true),
            ("http://localhost.example.org", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(url), local, "{url}");
        }
    }
}
