//! The one thread that removes sessions' temporary directories: calls filled them, so how long that
//! takes is theirs to say, and nobody waits for it. It can do nothing with files but remove and rename
//! those in the directory that they lie in. Used by `temp`, and by the root, which starts and ends it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::oneshot;

enum RemovalRequest {
    Remove(PathBuf),
    /// All orders before this one have been carried out.
    Flush(oneshot::Sender<()>),
}

/// The handle of the thread. It ends with the last of them, or with the process: the next
/// supervisor's sweep takes up what it left.
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
                Ok(false) => tracing::info!("Landlock does not hold the thread that removes"),
                Err(error) => tracing::warn!(%error, "nothing holds the thread that removes"),
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

    /// Has it removed in its turn. Nothing may use it any more.
    pub(crate) fn remove(&self, path: PathBuf) {
        if let Err(mpsc::SendError(_)) = self.requests.send(RemovalRequest::Remove(path)) {
            tracing::error!("the thread that removes temporary directories has ended");
        }
    }

    /// Waits until everything so far is removed, but no longer than this.
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
            tracing::warn!(path = %path.display(), %error, "a temporary directory stays behind");
        }
    }
}
