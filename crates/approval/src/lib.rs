//! Judges calls against permission rules, without IO, clock or environment.
//!
//! [`SessionRules::new`] parses the rules of a session, [`SessionRules::judge`] judges one call.
//! The order is deny, ask, allow, then the mode. In mode `plan` a mutation is refused before allow
//! rules are tried. A query passes unless a rule denies it, and is never asked about. A call that
//! requests rights beyond its session also needs an approval, or a rule that names the right
//! (`network`, `host`, `directory`, `git-admin`, `git-sign`). An allowed call still runs in its
//! cage: the verdict and the confinement are separate.
//!
//! `shell` reads a command once, for both judges. Each word is literal or unknown before it runs: an
//! expansion, a substitution, a pattern for files.
//! - **To allow**, the text must be read without an obstacle. Every program that it could run must
//!   be written out and allowed; else the user is asked.
//! - **To deny or ask**, a rule answers yes, no or perhaps for each command that the text runs, also
//!   through `env`, `sh -c` and the like (`shell::runners`). Perhaps: the program's word is unknown,
//!   unknown words could make the pattern fit, the program may read the words in another order, or
//!   the text cannot be read. Yes denies; perhaps asks, and refuses where nobody answers. Of a program
//!   in neither list, `runners` and `idle`, each later word is compared too, and fits perhaps.
//!
//! A denial by text is no wall: programs that scripts, build files and other interpreters start are
//! the cage's matter.
//!
//! The parser is small and our own: no library meets the needs of a verdict. Compared on
//! 395 texts against `bash -n`, with a script of 64 KB, in November 2026:
//!
//! | | same result as bash | 64 KB | crates | against it |
//! |---|---|---|---|---|
//! | brush-parser 0.4.0 (MIT) | 391 | 39 ms | 76 | `((` twenty times takes over 20 s; 20,000 `$(` overflow the stack, which ends the process |
//! | tree-sitter-bash 0.25.1 (MIT) | 381 | 51 ms | 10, C | made for editors: it accepts `}`, `esac`, `then x` and repairs unknown syntax; C in three executables |
//! | yash-syntax 0.25.0 (GPL-3.0) | not tried | | | its licence; POSIX only |
//! | `shell` | asks about what it does not read | 7 ms, with the verdict over 1,000 rules | 0 | |
//!
//! A rule allows only syntax that `sh`, `dash` and `bash` read alike. `tests/traced.rs` runs allowed
//! commands in real shells and checks that nothing else starts.
//!
//! A `*` in a rule matches no word that makes `find`, `fd`, `git` or `rg` run other programs
//! (`-exec`, `-c`, `--pre`), unless the rule is `bash:*`. For other programs such words are
//! unknown. The scope of paths is not checked here: the tool answers `ACCESS DENIED`, and messages of
//! this crate only mention it.
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
mod user_question;

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
pub use user_question::{answers_in_words, unanswered};
