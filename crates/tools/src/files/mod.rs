//! Paths and files: the call's directories, path resolution, opening, protected files, read sets.

pub(crate) mod document;
pub(crate) mod file_type;
pub(crate) mod image;
pub(crate) mod path_trace;
pub(crate) mod precondition;
pub(crate) mod protected;
pub(crate) mod read_set;
pub(crate) mod safe_open;
pub(crate) mod source_text;
#[cfg(agentd_hooks)]
mod taken_over;
pub(crate) mod target_path;
