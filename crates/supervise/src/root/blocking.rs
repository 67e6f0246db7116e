//! Work that waits, on a thread of its own.

use protocol::client::RequestFailure;
use setup::open_failure::OpenFailure;

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OpenFailure> + Send + 'static,
) -> Result<T, OpenFailure> {
    let failed = |error: tokio::task::JoinError| {
        OpenFailure::new(RequestFailure::Internal, format!("a thread ended: {error}"))
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(failed(error)))
}
