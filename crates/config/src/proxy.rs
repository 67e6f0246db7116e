//! The proxy for a request: `HTTPS_PROXY`, unless `NO_PROXY` exempts the host.

/// The proxy for this base URL. Plain `http` goes without one, as `HTTPS_PROXY` says.
pub(crate) fn proxy_for(
    base_url: &str,
    https_proxy: Option<&str>,
    no_proxy: Option<&str>,
) -> Option<String> {
    let proxy = https_proxy?;
    let rest = base_url.strip_prefix("https://")?;
    let (host, port) = host_and_port(rest);
    let excepted = no_proxy
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .any(|entry| excepts(entry, &host, port));
    (!excepted).then(|| proxy.to_owned())
}

/// True if a URL's host is this machine.
pub(crate) fn is_loopback(base_url: &str) -> bool {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let (host, _) = host_and_port(rest);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn host_and_port(rest: &str) -> (String, Option<&str>) {
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, tail)) => (host, tail.strip_prefix(':')),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    (host.to_ascii_lowercase(), port)
}

/// One entry of `NO_PROXY`: `*`, a host, a domain with all below it, either with a port.
fn excepts(entry: &str, host: &str, port: Option<&str>) -> bool {
    if entry == "*" {
        return true;
    }
    let is_address = entry.parse::<std::net::IpAddr>().is_ok();
    let (name, wanted) =
        if is_address { (entry.to_ascii_lowercase(), None) } else { host_and_port(entry) };
    if wanted.is_some_and(|wanted| wanted != port.unwrap_or("443")) {
        return false;
    }
    let name = name.trim_start_matches("*.").trim_start_matches('.');
    !name.is_empty()
        && (host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_excepts_hosts_domains_and_ports() {
        let rows = [
            ("https://api.anthropic.com", None, true),
            ("https://api.anthropic.com", Some("*"), false),
            ("https://api.anthropic.com", Some("anthropic.com"), false),
            ("https://api.anthropic.com", Some(".anthropic.com"), false),
            ("https://api.anthropic.com", Some("example.org, *.anthropic.com"), false),
            ("https://api.anthropic.com", Some("thropic.com"), true),
            ("https://api.anthropic.com", Some(""), true),
            ("https://API.anthropic.com/x", Some("api.Anthropic.com"), false),
            ("https://host:8443", Some("host:8443"), false),
            ("https://host:8443", Some("host:443"), true),
            ("https://host", Some("host:443"), false),
            ("https://[::1]:8443", Some("::1"), false),
            ("https://10.0.0.1", Some("10.0.0.1"), false),
            ("http://host", None, false),
        ];
        for (url, no_proxy, through) in rows {
            let proxy = proxy_for(url, Some("http://proxy:3128"), no_proxy);
            assert_eq!(proxy.is_some(), through, "{url} {no_proxy:?}");
        }
        assert_eq!(proxy_for("https://host", None, None), None);
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
