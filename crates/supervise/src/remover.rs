//! The thread that removes sessions' temporary directories. Calls filled them, so a removal may
//! take long, and no other code waits for it. The thread is confined: it can only remove and rename
//! files below these directories. Used by the private directories, and by the root, which starts
//! and ends it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::oneshot;

enum RemovalRequest {
    Remove(PathBuf),
    /// Answered once all earlier requests are done.
    Flush(oneshot::Sender<()>),
}

/// Handle of the thread, which ends with the last handle or with the process. The next supervisor
/// removes the rest.
#[derive(Debug, Clone)]
pub(crate) struct Remover {
    requests: mpsc::Sender<RemovalRequest>,
}

impl Remover {
    /// Starts the thread, which removes directories in these `roots` only.
    pub(crate) fn start(roots: &[PathBuf]) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let roots = roots.to_owned();
        std::thread::Builder::new().name("remover".into()).spawn(move || {
            match sandbox::restrict_to_removal_in(&roots) {
                Ok(true) => {}
                Ok(false) => tracing::info!("Landlock does not confine the remover thread"),
                Err(error) => tracing::warn!(%error, "the remover thread is not confined"),
            }
            for order in inbox {
                match order {
                    RemovalRequest::Remove(path) => remove_directory(&path),
                    RemovalRequest::Flush(done) => _ = done.send(()),
                }
            }
        })?;
        Ok(Self { requests: orders })
    }

    /// Queues a removal. The directory must not be used any more.
    pub(crate) fn remove(&self, path: PathBuf) {
        if let Err(mpsc::SendError(_)) = self.requests.send(RemovalRequest::Remove(path)) {
            tracing::error!("the thread that removes temporary directories has ended");
        }
    }

    /// Waits until all queued removals are done, at most this long.
    pub(crate) async fn finish(&self, patience: Duration) {
        let (done, told) = oneshot::channel();
        let _ = self.requests.send(RemovalRequest::Flush(done));
        if tokio::time::timeout(patience, told).await.is_err() {
            tracing::info!("temporary directories are left for the next start to remove");
        }
    }
}

fn remove_directory(path: &Path) {
    match sandbox::remove_tree(path) {
        Ok(()) => tracing::debug!(path = %path.display(), "removed"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a temporary directory cannot be \
                                                            removed");
        }
    }
}
