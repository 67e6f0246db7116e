//! Why a filter could not be installed.

use crate::error::{CageError, CageStep};
use std::io;

/// Why the filter was not installed. Nothing was changed, except that no_new_privs may be set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    /// no_new_privs, which must be set first.
    #[error("the kernel refused no_new_privs")]
    NoNewPrivs(#[source] io::Error),
    /// The program itself.
    #[error("the kernel refused the system call filter")]
    Filter(#[source] seccompiler::Error),
    /// The program with notifications: an old kernel (EINVAL), or an earlier filter already
    /// notifies (EBUSY).
    #[error("the kernel gave no notification descriptor for refused system calls")]
    Listener(#[source] io::Error),
    /// A rule is longer than a jump can reach: a bug in the table.
    #[error("the system call filter is too long")]
    TooLong,
}

impl From<InstallError> for CageError {
    /// The step that the failure belongs to.
    fn from(error: InstallError) -> Self {
        let step = match &error {
            InstallError::NoNewPrivs(_) => CageStep::Privileges,
            InstallError::Filter(_) | InstallError::TooLong => CageStep::Filter,
            InstallError::Listener(_) => CageStep::Listener,
        };
        Self::os(step, "seccomp", io::Error::other(error))
    }
}
