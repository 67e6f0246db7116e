//! The words that make git run other programs, or say which ones it runs later. For both judges.
//!
//! Git accepts a prefix of a long option, several short options in one word, and `--no-pager`
//! before its subcommand; each of these could hide such a word.

use crate::shell::script::{ArgWord, WordStart};

/// Subcommands that run other programs, or say which ones git runs later.
const RUNNERS: &[&str] = &[
    "bisect",
    "config",
    "daemon",
    "difftool",
    "filter-branch",
    "for-each-repo",
    "hook",
    "instaweb",
    "maintenance",
    "merge-index",
    "mergetool",
    "rebase",
    "remote-ext",
    "send-email",
    "shell",
    "submodule",
];

/// Subcommands that run commands or texts among their words.
pub(crate) const RUN_THEIR_WORDS: &[&str] = &[
    "bisect",
    "difftool",
    "filter-branch",
    "for-each-repo",
    "instaweb",
    "merge-index",
    "mergetool",
    "rebase",
    "send-email",
    "submodule",
];

/// Settings that name no program.
pub(crate) const HARMLESS_KEYS: &[&str] = &[
    "advice.", "branch.", "color.", "commit.", "init.", "log.", "pull.", "push.", "safe.", "user.",
];

/// Options of any subcommand that name a program, or a setting that does; a directory of hooks, or
/// a file to write.
const LONG: &[&str] = &[
    "--config",
    "--exec",
    "--extcmd",
    "--open-files-in-pager",
    "--output",
    "--receive-pack",
    "--template",
    "--upload-pack",
];

/// Short options that do so, and of which subcommand. `-O` is guarded everywhere.
const SHORT: &[(&str, &[char])] = &[("clone", &['c', 'u']), ("grep", &['O'])];

/// The places of these words; git's own name is at 0.
pub(crate) fn guarded(words: &[ArgWord]) -> Vec<usize> {
    let before = |word: &&ArgWord| word.known() == Some("--no-pager");
    let subcommand = 1 + words.iter().skip(1).take_while(before).count();
    let name = words.get(subcommand).and_then(ArgWord::known).unwrap_or_default();
    let guards = |at: usize, word: &ArgWord| match word {
        // The word at the subcommand's position may be one of git's own options.
        ArgWord::Known(word) if at == subcommand => {
            word.starts_with('-') || word.contains("--") || RUNNERS.contains(&word.as_str())
        }
        ArgWord::Known(word) => names_program(name, word),
        ArgWord::One(unknown) | ArgWord::Open(unknown) => {
            unknown.start == WordStart::Any || at <= subcommand
        }
    };
    (subcommand..words.len()).filter(|at| guards(*at, &words[*at])).collect()
}

/// True for an option of this subcommand that names a program.
pub(crate) fn names_program(subcommand: &str, word: &str) -> bool {
    if word.starts_with("ext::") {
        return true;
    }
    if word.starts_with("--") {
        let option = word.split_once('=').map_or(word, |(option, _)| option);
        return option.len() > 2 && LONG.iter().any(|long| long.starts_with(option));
    }
    let Some(letters) = word.strip_prefix('-') else { return false };
    let told = SHORT.iter().find(|(name, _)| *name == subcommand);
    letters.starts_with('O') || told.is_some_and(|(_, short)| letters.contains(*short))
}
