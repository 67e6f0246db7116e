//! Tests of the listener against the kernel.
#![allow(clippy::unwrap_used)]

use super::{Signals, Watch};
use crate::seccomp::Plan;
use protocol::confinement::{Network, Tier};
use std::fs::File;

/// A watch of tier B without any grant.
pub(crate) fn watch(plan: Plan) -> Watch {
    Watch {
        plan,
        tier: Tier::B,
        network: Network::Off,
        signals: Signals::Open,
        writable: Vec::new(),
        read_only: Vec::new(),
        sockets: Vec::new(),
        proc: File::open("/proc").unwrap().into(),
        host: File::open("/").unwrap().into(),
    }
}
