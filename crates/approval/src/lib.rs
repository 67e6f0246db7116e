//! Judges calls against permission rules, without IO, clock or environment.
//!
//! [`SessionRules::new`] parses the rules of a session, [`SessionRules::judge`] judges one call.
//! The order is deny, ask, allow, then the mode. In mode `plan` a mutation is refused before allow
//! rules are tried. A query passes unless a rule denies it, and is never asked about. A call that
//! requests rights beyond its session also needs an approval, or a rule that names the right
//! (`network`, `host`, `directory`, `git-admin`, `git-sign`). An allowed call still runs in its
//! cage: the verdict and the confinement are separate.
//!
//! There are two parsers for commands:
//! - **To allow**, `strict` must understand the whole command. Every program that it could run must
//!   be allowed; if one is unknown, the user is asked.
//! - **To deny or ask**, it is enough to find a command somewhere in the text. `expand` cuts the
//!   text as bash does: here-documents, comments, quotes and arithmetic start nothing, unless a
//!   shell executes them. If a quote or bracket is not closed, every piece that could be a command
//!   is checked.
//!
//! The strict parser is small and our own: no library meets the needs of a verdict. Compared on
//! 395 texts against `bash -n`, with a script of 64 KB, in November 2026:
//!
//! | | same result as bash | 64 KB | crates | against it |
//! |---|---|---|---|---|
//! | brush-parser 0.4.0 (MIT) | 391 | 39 ms | 76 | `((` twenty times takes over 20 s; 20,000 `$(` overflow the stack, which ends the process |
//! | tree-sitter-bash 0.25.1 (MIT) | 381 | 51 ms | 10, C | made for editors: it accepts `}`, `esac`, `then x` and repairs unknown syntax; C in three executables |
//! | yash-syntax 0.25.0 (GPL-3.0) | not tried | | | its licence; POSIX only |
//! | `strict` | refuses unsupported syntax | 1.3 ms | 0 | |
//!
//! It accepts only syntax that `sh`, `dash` and `bash` read alike. `tests/traced.rs` runs allowed
//! commands in real shells and checks that nothing else starts.
//!
//! A `*` in a rule matches no word that makes `find`, `fd`, `git` or `rg` run other programs
//! (`-exec`, `-c`, `--pre`), unless the rule is `bash:*`. For other programs such words are
//! unknown.
//!
//! For the lenient parse, `expand` performs the expansions that bash would make from the text
//! alone, and `option_syntax` knows programs that accept their options in any order. Neither allows
//! anything.
//!
//! Both parses miss a program's name that comes from outside the text (a file, another program's
//! output, the environment), and the content of scripts and of other interpreters. No rule allows
//! such a command unless it names that interpreter; the cage confines it in any case. The scope of
//! paths is not checked here: the tool answers `ACCESS DENIED`, and messages of this crate only
//! mention it.
//!
//! Callers: the broker worker; the command line for `rules check`, `config check` and its flags; the
//! supervisor for [`needs_probe`] and [`grants_all`], and before a session begins for [`try_examples`].

mod fitting_answer;
mod judge;
mod parse_call;
mod program_name;
mod rule;
mod server_form;
mod server_question;
mod shell;

pub use fitting_answer::fits;
pub use judge::examples::try_examples;
pub use judge::match_target::COMMAND_CAP;
pub use judge::messages::rule_with_place;
pub use judge::plan::plan_denied;
pub use judge::read_denials::{denied_read, read_denials, read_denier};
pub use judge::rights::{
    denied_hosts, denying_directory, grants_all, is_host_named, may_follow_redirect, page_rules,
    right_to_read,
};
pub use judge::session_rules::{SessionRules, check, needs_probe, remembered_rule};
pub use judge::widening::split_rights;
pub use parse_call::{CallSubject, NamedCall, programs};
pub use rule::error::{RuleError, RuleFault};
pub use rule::rule_list::{adds_nothing_to_auto, claude_rule, gives_right, rules_of_flag};
pub use rule::server_tool_pattern::ServerToolPattern;
pub use server_form::ServerForm;
pub use server_question::{ServerAnswer, Unasked};
