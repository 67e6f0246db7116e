//! A cgroup of its own for each command, where somebody has delegated one to us: the kernel then holds
//! memory and number of processes of the call as a whole, and one word ends all of it.
//!
//! The directory that was delegated is arranged once, by the supervisor at its start (`settle`): our
//! own processes go into a leaf, `agentd-own`, since a cgroup that bounds others below it may hold none
//! itself. Beside it each command gets `agentd-call-PID-START`, named after its runner, which makes it,
//! sets its bounds, and lets the command's process be born in it (`group`). Once the runner is locked
//! it cannot remove it; the supervisor does (`sweep`), and the next one clears what a killed one left.
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
mod setup;

pub use delegation::{Controller, Delegation, NoDelegation};
pub use inspect::delegation;
pub use setup::{remove_cgroup_of, set_up_cgroups};

pub(crate) use cgroup_syscalls::fork_within;
pub(crate) use command_cgroup::CommandCgroup;
