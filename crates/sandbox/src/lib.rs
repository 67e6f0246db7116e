//! Locks this process or a command, and says what was really enforced.
//!
//! Two doors: [`Cage::enter`] locks the calling process for good (workers and file tools);
//! [`Cage::prepare`] and [`Cage::spawn`] run a command in a cage of its own. Beside them
//! [`harden`], the first line of every worker, [`host`], which tries what this host allows, and
//! [`settle`], which gives each command a cgroup of its own where one was delegated.
//!
//! The README beside this crate has the order of steps, what fails otherwise, and what it costs.

mod attempts;
mod bounds;
mod cage;
mod caged;
mod census;
mod cgroup;
mod claims;
mod error;
mod fence;
mod grants;
mod handover;
mod host;
mod hosts_file;
mod inert;
mod init;
mod layer;
mod layers;
mod links;
mod listener;
mod mount_point;
mod namespaces;
mod overlay;
mod policy;
#[cfg(test)]
mod policy_source;
mod privileges;
mod protected;
mod removal;
mod root;
mod runner;
mod seals;
mod seccomp;
mod secrets;
mod shared_memory;
mod startable;
mod stat;
mod sys;
mod tree;
mod uncaged;

pub use attempts::{Attempt, Stand, act, attempts};
pub use bounds::{Bound, Exceeded};
pub use cage::Cage;
pub use caged::{Caged, Ending, Exit};
pub use cgroup::{Controller, Delegation, Reason, delegation, settle, sweep};
pub use claims::holds_signals;
pub use error::{CageError, Step};
pub use host::{HostProbe, HostStep, StepOutcome, host};
pub use inert::Program;
pub use links::{is_led_by, is_written_by};
pub use privileges::{harden, let_go};
pub use protected::{
    Filters, GIT_BARE, GitSetting, filters, git_path, git_settings, is_same_name, led_by_settings,
    lies_at, parts, protects, repair, repaired, small_file,
};
pub use removal::{only_remove_in, remove_tree};
pub use startable::{runnable_places, startable, startable_by_name};
pub use stat::is_own_process;
pub use uncaged::of_worker;
