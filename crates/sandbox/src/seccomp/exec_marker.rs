//! What tells the cage's own exec from those of the command: a number that nobody else knows, in a
//! register that the kernel does not read. For the filter, and for `inert`, which makes that exec.
//!
//! A notified exec waits for two changes of process, which the way to the command's program should
//! not pay for: what it becomes was judged already. The mark opens nothing. Whoever guessed it would
//! only keep a refused start out of the record, and the kernel would still refuse it.

use std::fmt;
use std::io;

/// The number. It is in the memory of the runner, which the command cannot read, of the command's
/// process until its program takes its place, and in the filter, which the kernel shows only to
/// those who have the machine's privileges and no filter of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExecMarker(pub(super) u64);

impl ExecMarker {
    /// A new one.
    ///
    /// # Errors
    /// Where the kernel gives no random bytes.
    pub(crate) fn new() -> io::Result<Self> {
        getrandom::u64().map(Self).map_err(|error| io::Error::other(error.to_string()))
    }

    /// As a filter asks for it: the low half, the high half.
    #[allow(clippy::cast_possible_truncation, reason = "halves")]
    pub(super) fn halves(self) -> [u32; 2] {
        [self.0 as u32, (self.0 >> 32) as u32]
    }

    /// For the register.
    pub(crate) fn register(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for ExecMarker {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Mark")
    }
}
