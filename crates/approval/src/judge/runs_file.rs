//! Detects a command that names a file to run which calls can write. A lasting approval would also
//! hold for the next content of this file. For `question`.
//!
//! Programs that find files to run by themselves (`make`, `cargo test`, `python -m`) are not
//! covered.

use crate::program_name::base_name;
use crate::shell::grammar;
use crate::shell::runners::{Runs, runner};
use crate::shell::script::{ArgWord, SimpleCommand};
use crate::shell::wrappers::{self, WrappedCommand};
use std::path::Path;

/// Deepest nested command to inspect; a deeper one counts as running such a file.
const DEPTH_CAP: usize = 8;

/// They run the file that their first word names which is no option.
const INTERPRETERS: &[&str] = &[
    "Rscript", "awk", "bun", "deno", "elixir", "expect", "gawk", "groovy", "guile", "java",
    "julia", "lua", "luajit", "mawk", "nawk", "node", "nodejs", "ocaml", "perl", "php", "pwsh",
    "pypy", "pypy3", "python", "ruby", "scala", "swift", "tclsh", "ts-node", "tsx", "wasmtime",
];

/// Options whose value is code to run, in place of a file.
const IN_PLACE: &[&str] = &["-c", "-e", "-m", "-r", "-p", "--eval", "--print"];

/// Places where no call writes.
const OF_SYSTEM: &[&str] =
    &["/bin", "/sbin", "/usr", "/lib", "/lib64", "/opt", "/nix/store", "/gnu/store"];

/// The file as the command names it.
pub(crate) fn runs_file(simple: &SimpleCommand, project: &Path) -> Option<String> {
    of_words(&simple.words, project, 0)
}

fn of_words(words: &[ArgWord], project: &Path, depth: usize) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let program = first.known()?;
    if depth > DEPTH_CAP || (program.contains('/') && is_writable(program, project)) {
        return Some(program.to_owned());
    }
    let deeper = |words: &[ArgWord]| of_words(words, project, depth + 1);
    match wrappers::unwrap_command(words) {
        Some(WrappedCommand::Command(inner)) => return deeper(&inner),
        Some(WrappedCommand::Script(text) | WrappedCommand::Here(text)) => {
            let script = grammar::read_plain(&text).ok()?;
            return script.iter().find_map(|simple| deeper(&simple.words));
        }
        None => {}
    }
    let runs = runner(program).map(|row| row.runs);
    if let Some(Runs::Behind(_)) = runs {
        return wrappers::find_runs(words)?.iter().find_map(|run| deeper(run));
    }
    let name = base_name(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if matches!(runs, Some(Runs::Shell | Runs::File)) || INTERPRETERS.contains(&name) {
        return file_of(rest).filter(|file| is_writable(file, project)).map(str::to_owned);
    }
    // The command inside a wrapper that `unwrap_command` does not know.
    let is_path = |word: &&str| word.contains('/') && !word.starts_with('-');
    let mut behind = rest.iter().filter_map(ArgWord::known).filter(is_path);
    let behind = behind.find(|word| is_writable(word, project));
    let passes_on = matches!(
        runs,
        Some(
            Runs::Command
                | Runs::CommandWithInput
                | Runs::LaterWords
                | Runs::Texts
                | Runs::TextsOrInput
                | Runs::InputOrTexts
        )
    );
    behind.filter(|_| passes_on).map(str::to_owned)
}

/// The file behind an interpreter's options.
fn file_of(words: &[ArgWord]) -> Option<&str> {
    for word in words {
        match word.known()? {
            option if IN_PLACE.contains(&option) => return None,
            option if option.starts_with('-') => {}
            file => return Some(file),
        }
    }
    None
}

fn is_writable(file: &str, project: &Path) -> bool {
    let path = Path::new(file);
    let steps_up = path.components().any(|part| part == std::path::Component::ParentDir);
    let of_system = OF_SYSTEM.iter().any(|dir| path.starts_with(dir));
    !path.is_absolute() || steps_up || path.starts_with(project) || !of_system
}
