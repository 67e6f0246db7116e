//! The facts about a cage that the notify supervisor needs.

use super::emulated_git_config::LockedGitConfigs;
use super::listening_ports::ListeningPorts;
use super::predicted_signal::OutsideSignals;
use super::protected_watch::ProtectedWatch;
use super::writable::RunnablePaths;
use crate::seccomp::FilterSpec;
use crate::spawn::read_only_mounts::ReadOnlyMounter;
use crate::usage::shared_memory::SharedShmCreations;
use protocol::confinement::{Network, Tier};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Everything that the notify supervisor needs to know.
#[derive(Debug)]
pub(crate) struct NotifyConfig {
    /// The spec that the filter was built from.
    pub(crate) spec: FilterSpec,
    /// The tier of the cage; it determines the errno of a refused write.
    pub(crate) tier: Tier,
    /// Where creations in `/dev/shm` are recorded; `None` if the command has its own mount there.
    pub(crate) shm_creations: Option<SharedShmCreations>,
    /// Tier A without network: connections other than loopback fail in an empty namespace.
    pub(crate) network: Network,
    /// The kernel's treatment of signals that leave the command's Landlock domain.
    pub(crate) signals: OutsideSignals,
    /// Directories and files that the command may write; real paths as it sees them.
    pub(crate) writable: Vec<PathBuf>,
    /// Paths below which it may start programs.
    pub(crate) runnable: RunnablePaths,
    /// Read-only paths within the writable ones.
    pub(crate) read_only: Vec<PathBuf>,
    /// Git configuration files that the command may change in harmless ways.
    pub(crate) settings: LockedGitConfigs,
    /// Protected files with read-only mounts.
    pub(crate) watched: Option<ProtectedWatch>,
    /// Requests such mounts from PID 1; only in tier A.
    pub(crate) mounter: Option<ReadOnlyMounter>,
    /// Maximum size of a file that the command writes; 0 without a limit.
    pub(crate) file_bytes: u64,
    /// Granted roots for sockets of an emulated `connect`; real paths.
    pub(crate) sockets: Vec<PathBuf>,
    /// Listening ports of the host, if the command gets its own network. Opened before that network
    /// was created.
    pub(crate) host_ports: Option<ListeningPorts>,
    /// The host's root directory, opened with `O_PATH` before any namespace or mount was made.
    pub(crate) host: OwnedFd,
    /// A `/proc` with the runner's PID numbering, opened before any namespace or mount was made.
    /// The runner's Landlock ruleset must allow reading below it.
    pub(crate) proc: OwnedFd,
}

/// The directories of the command's PATH, set before it starts.
pub(super) type SearchPath = Arc<OnceLock<Vec<PathBuf>>>;
