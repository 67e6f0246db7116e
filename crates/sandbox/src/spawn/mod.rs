//! The two processes that the runner forks for a cage, PID 1 of its namespaces and the command's
//! process before exec, and the channels to them.

pub(crate) mod exec_child;
pub(crate) mod pid1;
pub(crate) mod read_only_mounts;
pub(crate) mod setup_channel;
pub(crate) mod stdio;
