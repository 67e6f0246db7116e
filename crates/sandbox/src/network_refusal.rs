//! Takes the network from a process that had it and is about to work on hostile bytes. Used by `web`.

use crate::error::CageError;
use crate::landlock::ruleset;
use crate::seccomp::{self, FilterSpec};
use protocol::confinement::Network;

/// From now on no thread of this process gets a socket to anywhere, for good. Sockets that are open
/// stay so: the caller closes them first.
///
/// # Errors
/// `CageStep::Filter`; then nothing was refused.
pub fn refuse_new_sockets() -> Result<(), CageError> {
    let spec = FilterSpec::in_process(Network::Off, ruleset::abi().unwrap_or(0));
    seccomp::install(&spec).map(drop).map_err(CageError::from)
}
