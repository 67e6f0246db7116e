//! The root directory of a command in tier A: planned from its grants, then built by mounts.

mod build_root;
pub(crate) mod hosts_file;
mod mount_plan;
mod mount_point;
pub(crate) mod overlay_mounts;

pub(crate) use build_root::{BuiltRoot, StagingDir, make_read_only};
pub(crate) use mount_plan::{MountPlan, MountRestrictions};
