//! Programs with subcommands: options before a subcommand do not change its effect.

use crate::program_name::base_name;
use crate::shell::script::ArgWord;

const PROGRAMS: &[&str] = &["cargo", "docker", "git", "kubectl", "npm", "pnpm", "systemctl"];

/// Options before a subcommand that take the next word.
const WITH_WORD: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config",
    "--config-env",
    "--color",
    "--prefix",
    "-Z",
    "-H",
    "-n",
    "--context",
    "--host",
    "--attr-source",
    "--shallow-file",
];

/// Options that take none.
const FLAGS: &[&str] = &[
    "-P",
    "-h",
    "-p",
    "-q",
    "-s",
    "-v",
    "-vv",
    "--bare",
    "--frozen",
    "--help",
    "--locked",
    "--no-pager",
    "--offline",
    "--paginate",
    "--quiet",
    "--silent",
    "--user",
    "--verbose",
    "--version",
];
/// Most places of a subcommand that are tried.
const PLACES_CAP: usize = 8;

/// True for a program whose first operand says which of its commands it runs.
pub(crate) fn has_subcommands(program: &str) -> bool {
    PROGRAMS.contains(&base_name(program))
}

/// Where the subcommand stands; none for other programs.
pub(crate) fn subcommand_at(words: &[ArgWord]) -> Option<usize> {
    has_subcommands(words.first()?.text()).then(|| behind_options(words, 1))
}

/// All places where it may stand, the likeliest first: a word behind an option that is not known
/// may be its value.
pub(crate) fn subcommand_places(words: &[ArgWord]) -> impl Iterator<Item = usize> {
    let takes = |word: &str| word.starts_with('-') && !word.contains('=') && !FLAGS.contains(&word);
    let next = move |at: &usize| {
        let before = words.get(at - 1).filter(|word| takes(word.text()));
        before.filter(|_| at + 1 < words.len()).map(|_| behind_options(words, at + 1))
    };
    std::iter::successors(subcommand_at(words), next).take(PLACES_CAP)
}

/// The first place from this one on that holds no option and no value of one.
fn behind_options(words: &[ArgWord], mut at: usize) -> usize {
    while let Some(word) = words.get(at) {
        let value = words.get(at + 1);
        at += match word.known() {
            // A value that may be several words hides the subcommand.
            Some(word)
                if WITH_WORD.contains(&word) && value.is_some_and(|it| !it.hides_words()) =>
            {
                2
            }
            Some(word) if word.starts_with(['-', '+']) => 1,
            Some(_) | None => break,
        };
    }
    at
}
