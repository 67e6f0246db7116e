//! One cgroup per command, if a cgroup was delegated to agentd. The kernel then enforces memory and
//! process limits of the whole call, and one write kills all its processes.
//!
//! The supervisor sets the delegated directory up once, at its start (`setup`). It moves agentd's
//! own processes into a leaf, `agentd-own`, since a cgroup with limited children may not hold
//! processes itself. Next to the leaf each runner creates `agentd-call-PID-START`, named after
//! itself, sets the limits, and starts the command's process in it (`command_cgroup`). A locked
//! runner cannot remove the directory, so the supervisor does. After a supervisor was killed, the
//! next one removes the leftovers.
//!
//! | File | Content |
//! |---|---|
//! | `cgroup_path.rs` | finds this process's cgroup in two texts of `/proc`; pure |
//! | `delegation.rs` | decides if agentd may arrange it, with the reason; pure |
//! | `inspect.rs` | collects the facts for these two |
//! | `setup.rs` | sets a delegated cgroup up, removes the cgroups of ended calls |
//! | `runner_id.rs` | identifies the runner of a call |
//! | `command_cgroup.rs` | the cgroup of one command |
//! | `cgroup_syscalls.rs` | the two system calls that nix lacks |

mod cgroup_path;
mod cgroup_syscalls;
mod command_cgroup;
mod delegation;
mod inspect;
mod runner_id;
mod setup;

pub use delegation::{Controller, Delegation, NoDelegation};
pub use inspect::delegation;
pub use setup::{remove_cgroup_of, set_up_cgroups};

pub(crate) use cgroup_syscalls::fork_within;
pub(crate) use command_cgroup::CommandCgroup;
