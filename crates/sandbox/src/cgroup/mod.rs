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
//! | File | What it holds |
//! |---|---|
//! | `place.rs` | where this process's cgroup lies, from two texts of `/proc`; pure |
//! | `delegation.rs` | whether it is ours to arrange, and why not; pure |
//! | `find.rs` | the look that those two judge |
//! | `settle.rs` | arranging it, clearing and sweeping |
//! | `group.rs` | the cgroup of one command |
//! | `kernel.rs` | the two system calls that nix lacks |

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
