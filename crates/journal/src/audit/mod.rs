//! The audit log: one record when a call is decided, one when it ends, each sealed with the hash
//! of the one before. It lies outside the sessions, in a directory that no tool can reach.

pub(crate) mod chain;
pub(crate) mod entry;
pub(crate) mod fault;
pub(crate) mod files;
mod last_line;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod retention;
pub(crate) mod verify;

/// Name of the file that is written, in the log's directory.
const FILE: &str = "log.jsonl";
/// Name of the directory of scripts and long inputs.
const SCRIPTS: &str = "scripts";
