//! Tests that need root: disks, mounts, other users.
#![allow(clippy::unwrap_used)]

mod builds;
mod control_socket;
mod disk;
mod keys;
mod mounts;
mod network_disk;
#[path = "../support/mod.rs"]
mod support;
