//! The actor of a worker, which restarts its process.

pub(crate) mod actor;
