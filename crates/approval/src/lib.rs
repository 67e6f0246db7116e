//! Approval: a rule and a call make a verdict, without IO, clock or environment.
//!
//! [`Rules::new`] reads the rules of a session, [`Rules::judge`] answers for one call. The order is
//! deny, ask, allow, then the mode. Tools that only look pass unless a rule denies them, and are
//! never a question. What is allowed here still runs in its cage: "may I" and "how confined" are
//! two answers.
//!
//! Two readings of a command, and why they differ:
//! - **To allow**, a command must be understood whole. Only plain words are ([`plain_words`]);
//!   anything a shell could make more of is asked about.
//! - **To deny or ask**, a command need only be seen. Every piece that could be a command of its
//!   own is looked at, and where the pieces are in doubt, all of them are.
//!
//! Not seen by either: what a variable, a script file or another interpreter holds. Such a command
//! is never allowed by a rule unless the rule names that interpreter; the cage holds in any case.
//! Whether a path is in scope is no question here: the tool answers `ACCESS DENIED` for one that is
//! not, and the texts of this crate only mention it.
//!
//! Who calls it: the broker worker; the command line for `rules check` and `config check`; the
//! supervisor for [`needs_probe`].

mod digest;
mod error;
mod glimpse;
mod lex;
mod paths;
mod pattern;
mod plain;
mod rules;
mod shelf;
mod subject;
mod wording;
mod words;

pub use error::{Fault, RuleError};
pub use plain::{NotPlain, plain_words};
pub use rules::{COMMAND_CAP, Rules, check, needs_probe};
