//! Marks the cage's own exec, to tell it from the command's: a secret number in a register that the
//! kernel does not read. Used by the filter, and by `exec_child`, which makes that exec.
//!
//! A notified exec costs two context switches. The command's own program need not pay for them,
//! since agentd has already judged it. The marker grants nothing: a command that guessed it could
//! only keep a refused exec out of the record, and the kernel would still refuse the exec.

use crate::sys;
use std::fmt;
use std::io;

/// The number. It is stored in three places. The command cannot read the runner's memory. The
/// command's process holds it only until exec. The kernel shows the filter only to processes with
/// full privileges and without a filter of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExecMarker(pub(super) u64);

impl ExecMarker {
    /// Creates a random marker.
    ///
    /// # Errors
    /// The kernel provides no random bytes.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(sys::random()?))
    }

    /// The low half and the high half, as the filter compares them.
    #[allow(clippy::cast_possible_truncation, reason = "halves")]
    pub(super) fn halves(self) -> [u32; 2] {
        [self.0 as u32, (self.0 >> 32) as u32]
    }

    /// The value of the register.
    pub(crate) fn register(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for ExecMarker {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Mark")
    }
}
