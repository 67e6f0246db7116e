//! The daemon: its lifetime, its control socket, its sessions and their records.
#![allow(clippy::unwrap_used)]

mod audit;
mod bad_input;
mod control_socket;
mod lifetime;
mod limits;
mod older_shapes;
mod older_state;
mod reaping;
mod sessions;
mod stops;
#[path = "../support/mod.rs"]
mod support;
mod systemd;
