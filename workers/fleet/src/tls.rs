//! The TLS of a connection to the database, by the system's certificates. Used by `database`.

use crate::error::FleetError;
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long certificates that were read hold. Reading them opens each file of the system's store, too much
/// for each try at a database that is away. A worker runs for months, and they change.
const FRESH: Duration = Duration::from_secs(600);

static READ: Mutex<Option<(Instant, MakeRustlsConnect)>> = Mutex::new(None);

/// What encrypts a connection of this mode.
///
/// # Errors
/// The system's certificates cannot be used.
pub(crate) fn connector(mode: SslMode) -> Result<MakeRustlsConnect, FleetError> {
    if mode == SslMode::Disable {
        // It is not used, and trusts nobody.
        let config = builder()?.with_root_certificates(rustls::RootCertStore::empty());
        return Ok(MakeRustlsConnect::new(config.with_no_client_auth()));
    }
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, tls)) = read.as_ref()
        && at.elapsed() < FRESH
    {
        return Ok(tls.clone());
    }
    let config = builder()?.with_platform_verifier().map_err(failed)?;
    let tls = MakeRustlsConnect::new(config.with_no_client_auth());
    *read = Some((Instant::now(), tls.clone()));
    Ok(tls)
}

fn builder()
-> Result<rustls::ConfigBuilder<rustls::ClientConfig, rustls::WantsVerifier>, FleetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    builder.with_safe_default_protocol_versions().map_err(failed)
}

fn failed(error: rustls::Error) -> FleetError {
    FleetError::Host(format!("cannot prepare TLS: {error}"))
}
