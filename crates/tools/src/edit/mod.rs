//! Changing files: text replacement, patches, removal, several files together, restoring.

pub(crate) mod apply_hunks;
pub(crate) mod canonical;
pub(crate) mod edit_buffer;
pub(crate) mod find_replace;
pub(crate) mod near_miss;
pub(crate) mod remove;
pub(crate) mod replace;
pub(crate) mod restore;
pub(crate) mod transaction;
