//! Names in the project that somebody's own programs run or believe later. For `grants`, `runner`
//! and `caged`.
//!
//! Tier A keeps those that exist read-only. What a mount cannot hold is looked at before the
//! command and put right when nothing of it is left: in tier B every change, in both tiers names
//! that are new and links. What a link leads to is protected like the name. Nothing is thrown away:
//! what the command made is moved aside.

mod doors;
mod filters;
mod fold;
mod index;
mod led;
mod linked;
mod mend;
mod outside;
mod person;
mod places;
mod read;
mod reserve;
mod saved;
mod seen;
mod settings;
mod told;
mod vet;
mod walk;

pub use filters::{Filters, filters, led_by_settings};
pub use fold::{is_same_name, lies_at, parts};
pub(crate) use led::{Ground, Led, led};
pub(crate) use linked::Linked;
pub(crate) use mend::{Before, Territory};
pub(crate) use outside::outside;
pub use person::{git_path, git_settings, small_file};
pub(crate) use places::{Kind, Place, named};
pub use saved::{protects, repair, repaired};
pub use settings::GitSetting;
pub(crate) use vet::{changes_harmlessly, leads_inside};
pub use walk::GIT_BARE;

use std::path::Path;

/// A directory itself, not a link to one.
fn is_real_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Whether there is anything by that name, a dangling link too.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
