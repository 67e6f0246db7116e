//! The verdict on one call, and the messages about it.

pub(crate) mod allow_command;
pub(crate) mod digest;
pub(crate) mod effects;
pub(crate) mod examples;
pub(crate) mod match_target;
pub(crate) mod messages;
pub(crate) mod plan;
pub(crate) mod question;
pub(crate) mod read_denials;
pub(crate) mod rights;
pub(crate) mod runs_file;
pub(crate) mod session_rules;
pub(crate) mod suggestions;
pub(crate) mod widening;
