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
mod exclusions;
mod fence;
mod grants;
mod handover;
mod host_probe;
mod hosts_file;
mod inert;
mod init;
mod launch;
mod layer;
mod layers;
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
mod resolved_path;
mod root;
mod seals;
mod seccomp;
mod shared_memory;
mod startable;
mod stat;
mod sys;
mod tree;
mod unsandboxed;

pub use attempts::{Attempt, Stand, act, attempts};
pub use bounds::{Bound, Exceeded};
pub use cage::Cage;
pub use caged::{Caged, Ending, Exit};
pub use cgroup::{Controller, Delegation, Reason, delegation, settle, sweep};
pub use claims::holds_signals;
pub use error::{CageError, Step};
pub use host_probe::{HostProbe, HostStep, StepOutcome, probe_host};
pub use inert::Program;
pub use privileges::{harden, let_go};
pub use protected::{
    GIT_BARE, GitFilters, GitSetting, find_git_filters, git_path, git_settings,
    has_protected_names, is_same_name, lies_at, name_parts, paths_named_by_git_config,
    record_repairs, repair, small_file,
};
pub use removal::{remove_tree, restrict_to_removal_in};
pub use resolved_path::{is_changeable_in, is_redirectable_in};
pub use startable::{runnable_places, startable, startable_by_name};
pub use stat::is_own_process;
pub use unsandboxed::worker_confinement;
