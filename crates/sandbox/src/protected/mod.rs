//! Protected files: names in the project that the user's own programs later run or trust.
//!
//! In tier A mounts keep existing protected files read-only. The rest is recorded before the
//! command and restored after it, when none of its processes is left, and meanwhile if it runs for
//! long: in tier B every change, in both tiers new names and links. The target of a link is protected like the name. Nothing is
//! deleted: files that the command made are moved aside.

mod asked_files;
mod baseline;
mod baseline_file;
mod bounded_read;
mod dir_watch;
mod disk_reserve;
mod file_state;
mod git_config;
mod git_dir_check;
mod git_filters;
mod git_index;
mod git_pointers;
mod hard_links;
mod link_targets;
mod linked_git_dir;
mod name_folding;
mod opened_dirs;
mod outside_repos;
mod path_checks;
mod path_finder;
mod persist;
mod protected_files;
mod protected_path;
mod real_dirs;
mod remedies;
mod restore;
mod sweep_plan;
mod sweeper;
mod user_git_config;
mod walk;

pub(crate) use baseline::{Baseline, ProtectionScope};
pub use baseline_file::{has_protected_names, record_repairs, repair};
pub use git_config::GitSetting;
pub(crate) use git_dir_check::{changes_harmlessly, leads_inside};
pub use git_filters::{GitFilters, find_git_filters};
pub(crate) use link_targets::{WriteScope, find_link_targets};
pub(crate) use linked_git_dir::LinkedGitDir;
pub use linked_git_dir::{
    EnclosingRepo, GitElsewhere, enclosing_repo, git_elsewhere, is_worktree_of,
};
pub use name_folding::{is_same_name, lies_at, name_parts};
pub(crate) use outside_repos::outside_repos;
pub(crate) use path_finder::find_protected;
pub use protected_files::{ProtectedBy, ProtectedFiles};
pub(crate) use protected_path::{ProtectedKind, ProtectedPath};
pub(crate) use sweeper::Guarded;
pub use sweeper::{ProtectedReport, ProtectedSink};
pub use user_git_config::{git_path, git_settings, small_file};
pub use walk::GIT_BARE;
