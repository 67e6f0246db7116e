//! Approval: a rule and a call make a verdict, without IO, clock or environment.
//!
//! [`Rules::new`] reads the rules of a session, [`Rules::judge`] answers for one call. The order is
//! deny, ask, allow, then the mode; in the mode `plan` nothing that changes anything gets as far as a
//! rule that allows it. Tools that only look pass unless a rule denies them, and are never a
//! question. A call that asks for more than its session has needs a person's yes, or a rule that names
//! the right (`network`, `host`, `directory`, `git-admin`, `git-sign`), besides. What is allowed here still runs in its
//! cage: "may I" and "how confined" are two answers.
//!
//! Two readings of a command, and why they differ:
//! - **To allow**, a command must be understood whole (`grammar`, `quoting`, `redirect`): every program
//!   that it could run must be allowed, and where one cannot be known, a person is asked.
//! - **To deny or ask**, a command need only be seen. `expand` cuts the text as bash does: what a
//!   here-document, a comment, a quote or arithmetic holds starts nothing, unless a shell reads it. Where
//!   a quote or bracket does not close, every piece that could be a command is looked at instead.
//!
//! The grammar is our own and small, since no library reads a shell as a decision needs it. Compared
//! on 395 texts against `bash -n`, with a script of 64 KB, in November 2026:
//!
//! | | read as bash does | 64 KB | crates | why not |
//! |---|---|---|---|---|
//! | brush-parser 0.4.0 (MIT) | 391 | 39 ms | 76 | `((` twenty times takes over 20 s; 20,000 `$(` overflow the stack, which ends the process |
//! | tree-sitter-bash 0.25.1 (MIT) | 381 | 51 ms | 10, C | made for editors: it accepts `}`, `esac`, `then x` and mends what it does not know; C in three executables |
//! | yash-syntax 0.25.0 (GPL-3.0) | not tried | | | its licence; POSIX only |
//! | `grammar` | refuses what it does not follow | 1.3 ms | 0 | |
//!
//! It follows only what `sh`, `dash` and `bash` read alike, and `tests/traced.rs` runs what is
//! allowed in real shells to see that nothing else starts.
//!
//! A `*` of a rule covers no word that makes `find`, `fd`, `git` or `rg` run other programs
//! (`-exec`, `-c`, `--pre`), unless the rule is `bash:*`. Other programs that do so are not known.
//!
//! For the second reading `expand` puts in what bash would put in from the text alone, and `alike` knows
//! the programs that read their options in any order. Neither allows anything.
//!
//! Not seen by either: a program's name from outside the text (a file, another program's output, the
//! environment), and what a script file or another interpreter holds. Such a command is never allowed by
//! a rule unless the rule names that interpreter; the cage holds in any case.
//! Whether a path is in scope is no question here: the tool answers `ACCESS DENIED` for one that is
//! not, and the texts of this crate only mention it.
//!
//! Who calls it: the broker worker; the command line for `rules check` and `config check`; the
//! supervisor for [`needs_probe`] and [`give`], and before a session begins for [`try_examples`].

mod expand;
mod judge;
mod lenient;
mod parse_call;
mod program_name;
mod rule;
mod strict;

pub use judge::examples::try_examples;
pub use judge::match_target::COMMAND_CAP;
pub use judge::rights::{
    denied_hosts, grants_all, is_host_named, may_follow_redirect, page_rules, right_to_read,
};
pub use judge::session_rules::{SessionRules, check, needs_probe, remembered_rule};
pub use judge::widening::split_rights;
pub use parse_call::{CallSubject, NamedCall, programs};
pub use rule::error::{RuleError, RuleFault};
