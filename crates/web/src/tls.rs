//! TLS to a server, which is verified by the machine's certificates. Used by `proxy` and `company_proxy`.

use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// The protocol inside TLS.
pub(crate) const HTTP_1: &[u8] = b"http/1.1";

pub(crate) fn connector() -> Result<TlsConnector, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP_1.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
