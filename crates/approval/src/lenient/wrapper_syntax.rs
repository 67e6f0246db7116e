//! Where the command begins that a wrapper such as `env` or `timeout` runs: for denials and questions.
//!
//! Data only: a wrapper or an option that is not in the table leaves each of its words in question.

use crate::lenient::programs::{ProgramTrait, ProgramTraits};
use crate::program_name::base_name;

/// The words between a wrapper and its command.
struct WrapperSyntax {
    name: &'static str,
    /// Options that take nothing.
    flags: &'static [&'static str],
    /// Options that take a value: in the same word, or, where they do not end in `=`, in the next one.
    values: &'static [&'static str],
    /// Options with which it runs nothing.
    shows: &'static [&'static str],
    /// Words before the command that are no options.
    operands: usize,
    variables: Variables,
}

/// Whether `NAME=value` may precede the command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variables {
    Set,
    None,
}

const PLAIN: WrapperSyntax = WrapperSyntax {
    name: "",
    flags: &[],
    values: &[],
    shows: &["--help", "--version"],
    operands: 0,
    variables: Variables::None,
};

const ROWS: &[WrapperSyntax] = &[
    WrapperSyntax { name: "builtin", ..PLAIN },
    WrapperSyntax { name: "command", flags: &["-p"], shows: &["-v", "-V", "-pv", "-pV"], ..PLAIN },
    WrapperSyntax {
        name: "env",
        flags: &["-", "-i", "-0", "-v", "--ignore-environment", "--null", "--debug"],
        values: &["-u", "-C", "--unset=", "--chdir="],
        variables: Variables::Set,
        ..PLAIN
    },
    WrapperSyntax { name: "exec", flags: &["-c", "-l", "-cl"], values: &["-a"], ..PLAIN },
    WrapperSyntax { name: "ionice", flags: &["-t"], values: &["-c", "-n"], ..PLAIN },
    WrapperSyntax { name: "nice", values: &["-n", "--adjustment="], ..PLAIN },
    WrapperSyntax { name: "nohup", ..PLAIN },
    WrapperSyntax {
        name: "setsid",
        flags: &["-c", "-f", "-w", "--ctty", "--fork", "--wait"],
        ..PLAIN
    },
    WrapperSyntax {
        name: "stdbuf",
        values: &["-i", "-o", "-e", "--input=", "--output=", "--error="],
        ..PLAIN
    },
    WrapperSyntax {
        name: "sudo",
        flags: &["-n", "-E", "-H", "-S", "-k", "-b", "-A", "-P", "--preserve-env"],
        values: &["-u", "-g", "-h", "-p", "-C", "-D", "-r", "-t", "-T", "--user=", "--group="],
        shows: &["-l", "-ll", "-V", "-v", "--list", "--help", "--version"],
        variables: Variables::Set,
        ..PLAIN
    },
    WrapperSyntax { name: "time", flags: &["-p", "-v", "-a"], values: &["-f", "-o"], ..PLAIN },
    WrapperSyntax {
        name: "timeout",
        flags: &["-v", "--verbose", "--foreground", "--preserve-status"],
        values: &["-s", "-k", "--signal=", "--kill-after="],
        operands: 1,
        ..PLAIN
    },
    WrapperSyntax {
        name: "xargs",
        flags: &["-0", "-r", "-t", "-p", "-x", "-0r", "-r0", "--null", "--no-run-if-empty"],
        values: &[
            "-n",
            "-P",
            "-L",
            "-s",
            "-d",
            "-I",
            "-a",
            "-E",
            "--max-args=",
            "--max-procs=",
            "--max-lines=",
            "--delimiter=",
            "--arg-file=",
        ],
        ..PLAIN
    },
];

/// Where a wrapper's command begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandStart {
    /// At this word, which exists, behind the wrapper's own.
    At(usize),
    /// It runs none.
    Nothing,
    /// At any word.
    Anywhere,
}

/// Where the command of this wrapper begins; the first word names it.
pub(crate) fn command_start(words: &[String]) -> CommandStart {
    let named =
        |row: &&WrapperSyntax| words.first().is_some_and(|word| base_name(word) == row.name);
    let Some(row) = ROWS.iter().find(named) else { return CommandStart::Anywhere };
    let (mut at, mut operands) = (1, row.operands);
    while let Some(word) = words.get(at) {
        let is_option = word.starts_with('-') && operands == row.operands;
        let sets = row.variables == Variables::Set && word.contains('=');
        let value = row.values.iter().find(|option| word.starts_with(**option));
        at += match value {
            _ if is_option && word == "--" => {
                // Behind it stand variables, operands and the command.
                let sets = |word: &&String| row.variables == Variables::Set && word.contains('=');
                let set = words[at + 1..].iter().take_while(sets).count();
                let begin = at + 1 + set + operands;
                return if begin < words.len() {
                    CommandStart::At(begin)
                } else {
                    CommandStart::Nothing
                };
            }
            _ if is_option && row.shows.contains(&word.as_str()) => return CommandStart::Nothing,
            _ if is_option && row.flags.contains(&word.as_str()) => 1,
            Some(option) if is_option && word.len() > option.len() => 1,
            Some(option) if is_option && !option.ends_with('=') => 2,
            _ if is_option => return CommandStart::Anywhere,
            _ if sets => 1,
            _ if operands > 0 => {
                operands -= 1;
                1
            }
            _ => return CommandStart::At(at),
        };
    }
    CommandStart::Nothing
}

/// Options behind which `find` and `fd` run a program.
pub(crate) const RUN_OPTIONS: &[&str] =
    &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// The positions at which a command begins: the command itself, and the commands that it runs.
pub(crate) fn starts(words: &[String]) -> Vec<usize> {
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at) {
        starts.push(at);
        let traits = ProgramTraits::of(word);
        if traits.has(ProgramTrait::Finds) {
            let runs = (at + 1..words.len()).filter(|at| RUN_OPTIONS.contains(&&*words[at - 1]));
            starts.extend(runs);
            break;
        }
        match traits.has(ProgramTrait::PassesOn).then(|| command_start(&words[at..])) {
            Some(CommandStart::At(further)) => at += further,
            Some(CommandStart::Anywhere) => {
                starts.extend(at + 1..words.len());
                break;
            }
            Some(CommandStart::Nothing) | None => break,
        }
    }
    starts
}
