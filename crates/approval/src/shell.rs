//! Shell texts: the one parser, and what the programs in a text run in turn.

pub(crate) mod expansion;
pub(crate) mod git;
pub(crate) mod grammar;
pub(crate) mod idle;
pub(crate) mod inserted;
pub(crate) mod quoting;
pub(crate) mod redirect;
pub(crate) mod runners;
pub(crate) mod runs;
pub(crate) mod safe_env;
pub(crate) mod script;
pub(crate) mod subcommands;
pub(crate) mod wrappers;
