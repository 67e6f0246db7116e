//! The sandbox: confines this process or a command, and reports the protections that are in force.
//!
//! [`Cage::enter`] locks the calling process for good (workers and file tools). [`Cage::prepare`]
//! and [`Cage::spawn`] run a command in its own cage. Every worker calls [`harden`] first.
//! [`probe_host`] tests the abilities of this host, and [`set_up_cgroups`] prepares a delegated
//! cgroup so that each command gets one.
//!
//! The crate's README describes the order of steps, the failures of other orders, and the measured
//! costs.

mod cage;
mod cage_renewal;
mod call_scope;
mod cgroup;
mod enter;
mod error;
mod fleet_git;
mod git_config_file;
mod grants;
mod guarantees;
mod host_probe;
mod landlock;
mod launch;
mod lock;
mod mounts;
mod namespaces;
mod network_namespace;
mod network_refusal;
mod notify;
mod policy;
#[cfg(test)]
mod policy_source;
mod privileges;
mod proc_stat;
mod process_tree;
mod protected;
mod protection_limits;
mod removal;
mod resolved_path;
mod resting_cage;
mod running;
mod seccomp;
mod self_test;
mod spawn;
mod startable;
mod sys;
mod unsandboxed;
mod usage;

pub use cage::Cage;
pub use cage_renewal::StaleCage;
pub use call_scope::{CallScope, PrivateHome};
pub use cgroup::{
    Controller, Delegation, NoDelegation, delegation, remove_cgroup_of, set_up_cgroups,
};
pub use error::{CageError, CageStep};
pub use fleet_git::restrict_to_git_in;
pub use guarantees::signals_are_confined;
pub use host_probe::{HostProbe, HostStep, StepOutcome, probe_host, probe_tier, temporary_root};
pub use network_namespace::{Inherited, NetworkNamespace};
pub use network_refusal::refuse_new_sockets;
pub use policy::{NameClass, ProtectedName, protected_names};
pub use privileges::{close_inherited_fds, harden, unwritable_for_calls};
pub use proc_stat::is_own_process;
pub use protected::{
    EnclosingRepo, GIT_BARE, GitElsewhere, GitFilters, GitSetting, ProtectedBy, ProtectedFiles,
    ProtectedReport, ProtectedSink, enclosing_repo, find_git_filters, git_elsewhere, git_path,
    git_settings, has_protected_names, is_same_name, is_worktree_of, lies_at, name_parts,
    record_repairs, repair, small_file,
};
pub use removal::{remove_tree, restrict_to_removal_in};
pub use resolved_path::{is_changeable_in, is_led_by_commands, is_redirectable_in};
pub use resting_cage::{RestingCage, left_out, opened_paths};
pub use running::{CommandExit, CommandOutcome, RunningCommand};
pub use self_test::{AttackOutcome, AttackResult, run_attack, self_test};
pub use spawn::exec_child::{Program, ProgramInput};
pub use startable::{runnable_paths, startable, startable_by_name};
pub use unsandboxed::worker_confinement;
pub use usage::limit_exceeded::{LimitExceeded, LimitKind};
