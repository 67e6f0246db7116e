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
];

/// True for a program whose first operand says which of its commands it runs.
pub(crate) fn has_subcommands(program: &str) -> bool {
    PROGRAMS.contains(&base_name(program))
}

/// Where the subcommand stands; none for other programs.
pub(crate) fn subcommand_at(words: &[ArgWord]) -> Option<usize> {
    has_subcommands(words.first()?.text()).then_some(())?;
    let mut at = 1;
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
    Some(at)
}
