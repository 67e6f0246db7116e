//! The strict parse, used to allow: it accepts only shell text that it understands completely.

pub(crate) mod git;
pub(crate) mod grammar;
pub(crate) mod quoting;
pub(crate) mod redirect;
pub(crate) mod safe_env;
pub(crate) mod script;
pub(crate) mod wrappers;
