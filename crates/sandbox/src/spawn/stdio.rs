//! Standard streams of processes without input and output.

use crate::error::{CageError, CageStep};
use std::fs::File;
use std::os::fd::OwnedFd;

/// Opens `/dev/null`, for a process without input.
pub(crate) fn open_dev_null() -> Result<OwnedFd, CageError> {
    File::open("/dev/null")
        .map(OwnedFd::from)
        .map_err(|error| CageError::os(CageStep::Handover, "/dev/null", error))
}
