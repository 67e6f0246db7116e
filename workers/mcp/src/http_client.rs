//! The HTTP client for servers with an address and for their log-ins. Used by `http`, `login`, `oauth` and
//! `remote`.

use reqwest::Client;
use reqwest::redirect::Policy;
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
