//! Files, locks and settings that a session was opened with, and that it keeps.

use crate::audit_actor::AuditMsg;
use crate::project_caches::CacheLease;
use crate::written_dirs::WrittenDirs;
use launch::project_overlays::ProjectOverlays;
use launch::session_lock::SessionLock;
use launch::spawner::Spawner;
use launch::timeouts::WorkerTimeouts;
use protocol::tool::TlsIdentity;
use ractor::ActorRef;
use setup::session_spec::SessionSpec;
use std::fs::File;
use std::sync::Arc;

/// All of them.
pub(super) struct SessionResources {
    pub(super) audit: ActorRef<AuditMsg>,
    /// Keeps the package caches of its project.
    pub(super) caches: Option<CacheLease>,
    /// Keeps cleaners of `/tmp` away from its private directories.
    pub(super) _private: Option<File>,
    pub(super) lock: SessionLock,
    /// The certificate of its proxies, for hosts that they sign in to.
    pub(super) identity: Option<Arc<TlsIdentity>>,
    pub(super) spawner: Spawner,
    pub(super) times: WorkerTimeouts,
    /// The directories that calls of any session write.
    pub(super) written: Arc<WrittenDirs>,
}

impl SessionResources {
    /// Reads the directories that calls of other projects write. A call starts only if they can be read.
    pub(super) fn reread_written_dirs(&self, spec: &mut SessionSpec) {
        match self.written.all() {
            Ok(dirs) => spec.set_written_elsewhere(dirs),
            Err(error) => tracing::warn!(%error, "the list of written directories"),
        }
    }

    /// The overlays that hold the commands' changes to package caches.
    pub(super) fn overlays(&self) -> Option<Arc<ProjectOverlays>> {
        self.caches.as_ref().map(|caches| caches.overlays.clone())
    }
}
