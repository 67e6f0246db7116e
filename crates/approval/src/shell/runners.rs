//! Programs that run other programs, as data: for both judges. `idle` lists those that run none of
//! their words; a program in neither list may run each of its words.

use crate::program_name::base_name;
use crate::shell::script::ArgWord;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A program that runs others.
#[derive(Debug)]
pub(crate) struct Runner {
    pub name: &'static str,
    pub runs: Runs,
    /// Options that take nothing, and change nothing of the programs: a rule that allows looks
    /// through them.
    flags: &'static [&'static str],
    /// The same with a value: in the same word, or, where they do not end in `=`, in the next one.
    values: &'static [&'static str],
    /// Options that only a rule that denies looks through.
    more_flags: &'static [&'static str],
    more_values: &'static [&'static str],
    /// Options with which it runs nothing.
    shows: &'static [&'static str],
    /// Words before the command that are no options.
    operands: usize,
    variables: Variables,
}

/// What a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// The command behind its own words.
    Command,
    /// The same with words of its input.
    CommandWithInput,
    /// A command that begins at any of its words.
    LaterWords,
    /// A command or a text for a shell, in any of its words.
    Texts,
    /// The same, or else its input.
    TextsOrInput,
    /// Its input, and what its words name.
    InputOrTexts,
    /// All of its words, as a text for this shell.
    Joined,
    /// A text behind `-c`, a file, or its input.
    Shell,
    /// A file, as a text for this shell.
    File,
    /// Commands behind these options, up to `;` or `+`.
    Behind(&'static [&'static str]),
    /// Texts behind these options.
    Options(&'static [&'static str]),
    /// What its settings name.
    Git,
    /// What the variables hold that its words set.
    Variables,
    /// Its words may hold an index that is evaluated.
    Indices,
}

/// Whether `NAME=value` may precede the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variables {
    Set,
    None,
}

const PLAIN: Runner = Runner {
    name: "",
    runs: Runs::Command,
    flags: &[],
    values: &[],
    more_flags: &[],
    more_values: &[],
    shows: &["--help", "--version"],
    operands: 0,
    variables: Variables::None,
};

/// Options of `find` and `fd` behind which they run a program.
pub(crate) const RUN_OPTIONS: &[&str] =
    &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Programs of which the options are known.
const ROWS: &[Runner] = &[
    Runner { name: "builtin", ..PLAIN },
    Runner { name: "command", more_flags: &["-p"], shows: &["-v", "-V", "-pv", "-pV"], ..PLAIN },
    Runner {
        name: "env",
        more_flags: &["-", "-i", "-0", "-v", "--ignore-environment", "--null", "--debug"],
        more_values: &["-u", "-C", "--unset=", "--chdir="],
        variables: Variables::Set,
        ..PLAIN
    },
    Runner { name: "exec", more_flags: &["-c", "-l", "-cl"], more_values: &["-a"], ..PLAIN },
    Runner { name: "ionice", flags: &["-t"], values: &["-c", "-n"], ..PLAIN },
    Runner { name: "nice", values: &["-n", "--adjustment="], ..PLAIN },
    Runner { name: "nohup", ..PLAIN },
    Runner {
        name: "setsid",
        flags: &["-w", "-f", "--wait", "--fork"],
        more_flags: &["-c", "--ctty"],
        ..PLAIN
    },
    Runner {
        name: "stdbuf",
        values: &["-i", "-o", "-e"],
        more_values: &["--input=", "--output=", "--error="],
        ..PLAIN
    },
    Runner {
        name: "sudo",
        more_flags: &["-n", "-E", "-H", "-S", "-k", "-b", "-A", "-P", "--preserve-env"],
        more_values: &["-u", "-g", "-h", "-p", "-C", "-D", "-r", "-t", "-T", "--user=", "--group="],
        shows: &["-l", "-ll", "-V", "-v", "--list", "--help", "--version"],
        variables: Variables::Set,
        ..PLAIN
    },
    Runner {
        name: "time",
        flags: &["-p"],
        more_flags: &["-v", "-a"],
        more_values: &["-f", "-o"],
        ..PLAIN
    },
    Runner {
        name: "timeout",
        flags: &["-v", "--verbose", "--foreground", "--preserve-status"],
        values: &["-s", "-k", "--signal=", "--kill-after="],
        operands: 1,
        ..PLAIN
    },
    Runner {
        name: "xargs",
        runs: Runs::CommandWithInput,
        flags: &["-0", "-r", "-t", "--null", "--no-run-if-empty", "--verbose"],
        values: &["-n", "-P", "-L", "-s", "-d"],
        more_flags: &["-p", "-x", "-0r", "-r0"],
        more_values: &[
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
    Runner { name: "eval", runs: Runs::Joined, ..PLAIN },
    Runner { name: "git", runs: Runs::Git, ..PLAIN },
    Runner { name: "find", runs: Runs::Behind(RUN_OPTIONS), ..PLAIN },
    Runner { name: "fd", runs: Runs::Behind(RUN_OPTIONS), ..PLAIN },
    Runner { name: "fdfind", runs: Runs::Behind(RUN_OPTIONS), ..PLAIN },
    Runner { name: "rg", runs: Runs::Options(&["--pre", "--hostname-bin"]), ..PLAIN },
    Runner { name: "compgen", runs: Runs::Options(&["-C", "-F"]), ..PLAIN },
    Runner { name: "hash", runs: Runs::Options(&["-p"]), ..PLAIN },
    Runner { name: "nc", runs: Runs::Options(&["-c", "-e", "--exec", "--sh-exec"]), ..PLAIN },
    Runner { name: "split", runs: Runs::Options(&["--filter"]), ..PLAIN },
    Runner { name: "zip", runs: Runs::Options(&["-TT", "--unzip-command"]), ..PLAIN },
    Runner { name: "rsync", runs: Runs::Options(&["-e", "--rsh", "--rsync-path"]), ..PLAIN },
    Runner { name: "scp", runs: Runs::Options(&["-S", "-o"]), ..PLAIN },
    Runner { name: "sort", runs: Runs::Options(&["--compress-program"]), ..PLAIN },
    Runner {
        name: "tar",
        runs: Runs::Options(&[
            "-I",
            "-F",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--rsh-command",
            "--info-script",
        ]),
        ..PLAIN
    },
];

/// Programs of one kind, of which no options are known.
const KINDS: &[(Runs, &[&str])] = &[
    (
        Runs::Shell,
        &[
            "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "yash",
            "zsh",
        ],
    ),
    (Runs::File, &[".", "source"]),
    (Runs::Variables, &["declare", "export", "local", "readonly", "typeset"]),
    (Runs::Indices, &["[", "let", "printf", "read", "set", "test", "unset"]),
    (
        Runs::LaterWords,
        &[
            "busybox",
            "bwrap",
            "catchsegv",
            "chronic",
            "chrt",
            "coproc",
            "dbus-run-session",
            "direnv",
            "fakeroot",
            "faketime",
            "firejail",
            "gdb",
            "ltrace",
            "mise",
            "nix",
            "npx",
            "nsenter",
            "perf",
            "pkexec",
            "poetry",
            "prlimit",
            "proxychains",
            "proxychains4",
            "rlwrap",
            "setarch",
            "setpriv",
            "ssh-agent",
            "strace",
            "systemd-run",
            "taskset",
            "torify",
            "torsocks",
            "toybox",
            "unbuffer",
            "uv",
            "valgrind",
            "xvfb-run",
        ],
    ),
    (
        Runs::Texts,
        &[
            "alias",
            "bind",
            "complete",
            "entr",
            "expect",
            "flock",
            "hyperfine",
            "mapfile",
            "nix-shell",
            "readarray",
            "runuser",
            "screen",
            "script",
            "sg",
            "spawn",
            "tmux",
            "trap",
            "watch",
        ],
    ),
    (Runs::TextsOrInput, &["chroot", "doas", "parallel", "ssh", "su", "unshare"]),
    (Runs::InputOrTexts, &["at", "batch"]),
];

/// Programs that open a shell where no command is among their words.
pub(crate) const OPEN_SHELLS: &[&str] = &[
    "fakeroot",
    "firejail",
    "nix",
    "nix-shell",
    "nsenter",
    "pkexec",
    "poetry",
    "runuser",
    "script",
    "setpriv",
    "sg",
    "sudo",
    "systemd-run",
];

static BY_NAME: LazyLock<HashMap<&'static str, Runner>> = LazyLock::new(|| {
    let kinds = KINDS
        .iter()
        .flat_map(|(runs, names)| names.iter().map(|name| Runner { name, runs: *runs, ..PLAIN }));
    let rows = ROWS.iter().map(|row| Runner { ..*row });
    rows.chain(kinds).map(|row| (row.name, row)).collect()
});

/// The row of a program, in any directory.
pub(crate) fn runner(program: &str) -> Option<&'static Runner> {
    BY_NAME.get(base_name(program))
}

/// Where a runner's command begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandStart {
    /// At this word, which exists, behind the runner's own.
    At(usize),
    /// It runs none.
    Nothing,
    /// At any word.
    Anywhere,
}

/// Who looks through a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A rule that allows: only options that change nothing.
    Allow,
    /// A rule that denies or asks.
    Deny,
}

impl Runner {
    /// Where the command begins; the first word names the runner.
    pub(crate) fn command_start(&self, words: &[ArgWord], reader: Reader) -> CommandStart {
        let deny = reader == Reader::Deny;
        let is_flag =
            |word: &str| self.flags.contains(&word) || (deny && self.more_flags.contains(&word));
        let sets = |word: &str| deny && self.variables == Variables::Set && word.contains('=');
        let (mut at, mut operands) = (1, self.operands);
        while let Some(word) = words.get(at) {
            let letters = if deny { word.letters() } else { word.known() };
            let Some(word) = letters else {
                // A variable's value and an operand may be anything; an option may be any.
                match word {
                    ArgWord::One(seen)
                        if deny && sets(&seen.text) && !seen.text.starts_with('-') =>
                    {
                        at += 1;
                        continue;
                    }
                    ArgWord::One(_) if deny && operands > 0 => {
                        operands -= 1;
                        at += 1;
                        continue;
                    }
                    ArgWord::Known(_) | ArgWord::One(_) | ArgWord::Open(_) => {
                        return CommandStart::At(at);
                    }
                }
            };
            let is_option = word.starts_with('-') && operands == self.operands;
            let more = self.more_values.iter().filter(|_| deny);
            let value = self.values.iter().chain(more).find(|option| word.starts_with(**option));
            at += match value {
                _ if is_option && word == "--" && deny => {
                    // Behind it stand variables, operands and the command.
                    let set = words[at + 1..].iter().take_while(|word| sets(word.text())).count();
                    let begin = at + 1 + set + operands;
                    return match begin < words.len() {
                        true => CommandStart::At(begin),
                        false => CommandStart::Nothing,
                    };
                }
                _ if is_option && deny && self.shows.contains(&word) => {
                    return CommandStart::Nothing;
                }
                _ if is_option && is_flag(word) => 1,
                Some(option) if is_option && word.len() > option.len() => 1,
                Some(option) if is_option && !option.ends_with('=') => 2,
                _ if is_option => return CommandStart::Anywhere,
                _ if sets(word) => 1,
                _ if operands > 0 => {
                    operands -= 1;
                    1
                }
                _ => return CommandStart::At(at),
            };
        }
        CommandStart::Nothing
    }
}
