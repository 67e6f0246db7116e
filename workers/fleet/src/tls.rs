//! The TLS of a connection to the database, by the system's certificates. Used by `database`.

use crate::error::FleetError;
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long certificates that were read hold. Reading them opens each file of the system's store, too much
/// for each try at a database that is away. A worker runs for months, and they change.
const FRESH: Duration = Duration::from_secs(600);

static READ: Mutex<Option<(Instant, MakeRustlsConnect)>> = Mutex::new(None);

/// What encrypts a connection.
///
/// # Errors
/// The system's certificates cannot be used.
pub(crate) fn connector() -> Result<MakeRustlsConnect, FleetError> {
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, tls)) = read.as_ref()
        && at.elapsed() < FRESH
    {
        return Ok(tls.clone());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(rustls::ConfigBuilder::with_platform_verifier)
        .map_err(|error| FleetError::Host(format!("cannot prepare TLS: {error}")))?;
    let tls = MakeRustlsConnect::new(config.with_no_client_auth());
    *read = Some((Instant::now(), tls.clone()));
    Ok(tls)
}
