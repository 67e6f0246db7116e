//! For rules that allow: unwraps `env`, `sh -c` and the like, and finds the words that no `*` of a
//! rule may match.
//!
//! Only forms that are certain are looked through: options that `runners` lists as changing nothing,
//! programs that are written out. All others need a rule of their own.

use crate::program_name::base_name;
use crate::shell::git;
use crate::shell::inserted::replaced;
use crate::shell::runners::{CommandStart, Reader, runner};
use crate::shell::safe_env::is_safe_prefix;
use crate::shell::script::{ArgWord, Unknown, WordStart};

/// The command that a wrapper runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WrappedCommand {
    /// A command in its place.
    Command(Vec<ArgWord>),
    /// A text, read by a shell of its own.
    Script(String),
    /// A text, read by the shell that reads the rest.
    Here(String),
}

/// Builtins that change the meaning of other commands in the same shell: names, variables, options,
/// traps.
const STATE: &[&str] = &[
    ".",
    "alias",
    "bind",
    "complete",
    "compopt",
    "declare",
    "enable",
    "export",
    "getopts",
    "hash",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Builtins that go to another directory, where `./x` is another program.
const MOVES: &[&str] = &["cd", "chdir", "popd", "pushd"];

/// Options of `find` that run a program or change files.
const FIND_ACTS: &[&str] =
    &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf"];

/// True for a builtin that changes the meaning of other commands.
pub(crate) fn changes_state(program: &str) -> bool {
    STATE.contains(&program)
}

/// True if the word may name a builtin that changes the directory.
pub(crate) fn may_change_dir(word: &ArgWord) -> bool {
    word.known().is_some_and(|word| MOVES.contains(&word))
}

/// True if a builtin evaluates its words and one of them could contain a command: `test -v
/// 'a[$(x)]'`.
pub(crate) fn may_evaluate_command(program: &str, words: &[ArgWord]) -> bool {
    // Even `a[i]` evaluates the value of the variable `i`.
    let known =
        |word: &ArgWord| word.known().is_some_and(|word| word.len() < 2 || !word.contains('['));
    match program {
        "compgen" | "fc" | "jobs" => true,
        "test" | "[" => {
            let words = match words {
                [words @ .., last] if program == "[" && last.known() == Some("]") => words,
                words => words,
            };
            let fits = match words {
                [sign, ArgWord::One(_)] => sign.known().is_some_and(|sign| UNARY.contains(&sign)),
                [
                    ArgWord::Known(_) | ArgWord::One(_),
                    sign,
                    ArgWord::Known(_) | ArgWord::One(_),
                ] => sign.known().is_some_and(|sign| BINARY.contains(&sign)),
                _ => false,
            };
            !fits && !words.iter().all(known)
        }
        "printf" => words.first().is_some_and(|first| !known(first) || is_option(first)),
        program => changes_state(program) && !words.iter().all(known),
    }
}

/// Tests of one word that evaluate nothing.
const UNARY: &[&str] = &["-d", "-e", "-f", "-n", "-r", "-s", "-w", "-x", "-z"];

/// Tests between two words, which come before any other reading of three.
const BINARY: &[&str] =
    &["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

fn is_option(word: &ArgWord) -> bool {
    word.known().is_none_or(|word| word.starts_with('-'))
}

/// The positions of words that a rule must write out, since they make the program run others. An
/// unknown word counts as such a word, unless it cannot be an option.
pub(crate) fn guarded(words: &[ArgWord]) -> Vec<usize> {
    let program = words.first().and_then(ArgWord::known).map(base_name).unwrap_or_default();
    let acts: fn(&str) -> bool = match program {
        "find" => |word| FIND_ACTS.contains(&word),
        "fd" | "fdfind" => |word| {
            let short =
                word.starts_with('-') && !word.starts_with("--") && word.contains(['x', 'X']);
            short || word.starts_with("--exec")
        },
        "rg" => |word| word.starts_with("--pre") || word.starts_with("--hostname-bin"),
        "git" => return git::guarded(words),
        _ => return Vec::new(),
    };
    let could = |word: &ArgWord| match word {
        ArgWord::Known(word) => acts(word),
        ArgWord::One(unknown) | ArgWord::Open(unknown) => unknown.start == WordStart::Any,
    };
    (1..words.len()).filter(|at| could(&words[*at])).collect()
}

/// The command that the wrapper runs, if that is certain.
pub(crate) fn unwrap_command(words: &[ArgWord]) -> Option<WrappedCommand> {
    let (program, rest) = words.split_first()?;
    let program = program.known()?;
    let name = match program.rsplit_once('/') {
        None => program,
        Some(("/bin" | "/usr/bin", name)) => name,
        Some(_) => return None,
    };
    let rest = match name {
        "builtin" | "command" | "exec" | "ionice" | "nice" | "nohup" | "setsid" | "stdbuf"
        | "time" | "timeout" => {
            let behind = behind(name, words)?;
            let time = words[..words.len() - behind.len()].last().and_then(ArgWord::known);
            let timed = time.is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()));
            if name == "timeout" && !timed {
                return None;
            }
            behind
        }
        "env" => {
            let sets = |word: &&ArgWord| {
                let pair = word.known().and_then(|word| word.split_once('='));
                pair.is_some_and(|(name, value)| {
                    is_safe_prefix(name, &ArgWord::Known(value.into()))
                })
            };
            &rest[rest.iter().take_while(sets).count()..]
        }
        "xargs" => return xargs(words),
        "sh" | "bash" | "dash" => return script(rest),
        "eval" => {
            let words: Option<Vec<&str>> = rest.iter().map(ArgWord::known).collect();
            return Some(WrappedCommand::Here(words?.join(" ")));
        }
        "git" => return without_pager(rest),
        _ => return None,
    };
    command(rest.to_vec())
}

/// The commands behind each `-exec` of `find`; `None` where one cannot be known.
pub(crate) fn find_runs(words: &[ArgWord]) -> Option<Vec<Vec<ArgWord>>> {
    let mut found = Vec::new();
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        match word.known()? {
            option @ ("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let asks = option.starts_with("-ok");
                let ends = |at: &usize| match behind[*at].known() {
                    Some(";") => true,
                    Some("+") => !asks && *at > 0 && behind[*at - 1].known() == Some("{}"),
                    Some(_) | None => false,
                };
                let length = (0..behind.len()).find(ends)?;
                // A path that `find` reports begins like its start directory, so not with `-`.
                let run = behind[..length].iter().map(|word| match word.known()?.contains("{}") {
                    true if word.known()?.starts_with("{}") => {
                        let ArgWord::One(seen) = replaced(word.known()?, "{}") else { return None };
                        Some(ArgWord::Open(Unknown { start: WordStart::Plain, ..seen }))
                    }
                    true => Some(replaced(word.known()?, "{}")),
                    false => Some(word.clone()),
                });
                found.push(run.collect::<Option<Vec<ArgWord>>>()?);
                rest = &behind[length + 1..];
            }
            // Such places may begin like an option.
            "-files0-from" => return None,
            word if FIND_ACTS.contains(&word) => return None,
            _ => {}
        }
    }
    (!found.is_empty()).then_some(found)
}

/// A command that begins with a program's name, not with an option or a variable; `env` and `time`
/// set such a variable for the program after it.
fn command(words: Vec<ArgWord>) -> Option<WrappedCommand> {
    let program = words.first()?.known()?;
    let named = !program.starts_with('-') && !program.contains('=');
    named.then_some(WrappedCommand::Command(words))
}

/// The command behind a runner's own words, which are all known.
fn behind<'a>(name: &str, words: &'a [ArgWord]) -> Option<&'a [ArgWord]> {
    match runner(name)?.command_start(words, Reader::Allow) {
        CommandStart::At(at) => {
            words[..at].iter().all(|word| word.known().is_some()).then_some(&words[at..])
        }
        CommandStart::Nothing | CommandStart::Anywhere => None,
    }
}

/// `xargs` appends words of its input to the command, or inserts them at a placeholder.
fn xargs(words: &[ArgWord]) -> Option<WrappedCommand> {
    if let Some(rest) = behind("xargs", words) {
        let input = ArgWord::unknown("the input of xargs");
        return command(rest.iter().cloned().chain([input]).collect());
    }
    let [_, option, mark, rest @ ..] = words else { return None };
    let mark = (option.known() == Some("-I")).then(|| mark.known()).flatten()?;
    let put = |word: &ArgWord| match word.known() {
        Some(known) if known.contains(mark) => replaced(known, mark),
        Some(_) | None => word.clone(),
    };
    command(rest.iter().map(put).collect())
}

/// `sh -c text`, with options that do not change which programs run.
fn script(words: &[ArgWord]) -> Option<WrappedCommand> {
    let [option, text, ..] = words else { return None };
    let letters = option.known()?.strip_prefix('-')?;
    let plain = letters.ends_with('c') && letters.bytes().all(|letter| b"celux".contains(&letter));
    plain.then(|| Some(WrappedCommand::Script(text.known()?.to_owned())))?
}

/// The only one of git's own options that does not affect which programs run.
fn without_pager(words: &[ArgWord]) -> Option<WrappedCommand> {
    let (option, rest) = words.split_first()?;
    let program = ArgWord::Known("git".into());
    (option.known() == Some("--no-pager")).then(|| {
        WrappedCommand::Command(std::iter::once(program).chain(rest.iter().cloned()).collect())
    })
}
