//! Resource usage of a call: its limits, and the measurement of processes, CPU time and memory.

pub(crate) mod limit_exceeded;
pub(crate) mod limit_watcher;
pub(crate) mod proc_usage;
pub(crate) mod shared_memory;
