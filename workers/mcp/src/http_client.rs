//! The HTTP client for servers with an address and for their log-ins. Used by `http`, `login`, `oauth` and
//! `remote`.

use protocol::company_proxy::{ProxyEnvironment, WebScheme};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use std::time::Duration;

/// Longest time until a connection stands.
const CONNECT: Duration = Duration::from_secs(20);

/// The settings of a client for such servers; the caller adds a proxy or certificates. It follows no
/// redirect: the configured address is the one that a person approved.
pub(crate) fn client_settings() -> reqwest::ClientBuilder {
    // Fails only if one is installed already, which is as good.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT)
}

/// The client of these settings.
///
/// # Errors
/// There are no certificates.
pub(crate) fn built(settings: reqwest::ClientBuilder) -> Result<Client, String> {
    settings.build().map_err(|error| {
        format!("no TLS: {error}; certificates come from the system's store or SSL_CERT_FILE")
    })
}

/// Why a request failed to a server that this process reaches by its own environment, with the proxy on
/// the way there.
pub(crate) fn by_proxy(url: &str, why: String) -> String {
    let proxies = ProxyEnvironment::read(|name| std::env::var(name).ok());
    let Some(url) = Url::parse(url).ok() else { return why };
    let scheme = match url.scheme() {
        "https" => WebScheme::Https,
        _ => WebScheme::Http,
    };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return why;
    };
    match proxies.proxy_for(scheme, host, port) {
        Ok(None) => why,
        Ok(Some(proxy)) => format!(
            "{why}\nThe way to {host} leads through your proxy {proxy}. Correct {}, or name the host in \
             NO_PROXY to reach it without the proxy",
            proxy.variable
        ),
        Err(error) => format!("{why}\n{error}"),
    }
}
