//! A worker process and the actor that restarts it.

pub(crate) mod actor;
pub(crate) mod heartbeat;
pub(crate) mod log_lines;
pub(crate) mod process;
pub(crate) mod restart;
pub(crate) mod spawner;
pub(crate) mod timeouts;
