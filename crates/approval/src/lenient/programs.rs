//! How programs treat their arguments, by program name.

use crate::program_name::base_name;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

/// Programs that run their arguments as a command, after options that are not parsed.
const PASS_ON: &[&str] = &[
    "builtin",
    "busybox",
    "bwrap",
    "catchsegv",
    "chronic",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "dbus-run-session",
    "direnv",
    "doas",
    "entr",
    "env",
    "exec",
    "fakeroot",
    "faketime",
    "firejail",
    "flock",
    "gdb",
    "hyperfine",
    "ionice",
    "ltrace",
    "mise",
    "nice",
    "nix",
    "nix-shell",
    "nohup",
    "npx",
    "nsenter",
    "parallel",
    "perf",
    "pkexec",
    "poetry",
    "prlimit",
    "proxychains",
    "proxychains4",
    "rlwrap",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    // In a text of `expect`.
    "spawn",
    "ssh",
    "ssh-agent",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tmux",
    "torify",
    "torsocks",
    "toybox",
    "unbuffer",
    "unshare",
    "uv",
    "valgrind",
    "watch",
    "xargs",
    "xvfb-run",
];

/// Programs that read one of their words as a shell text.
const READ_TEXT: &[&str] = &[
    "alias",
    "entr",
    "env",
    "expect",
    "flock",
    "hyperfine",
    "mapfile",
    "nix-shell",
    "parallel",
    "readarray",
    "runuser",
    "screen",
    "script",
    "sg",
    "ssh",
    "su",
    "tmux",
    "trap",
    "watch",
    "xargs",
];

/// Shells: they read a text behind `-c`, or their standard input.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "zsh"];

/// Programs that hand their input to a shell.
const FEED_SHELLS: &[&str] = &["at", "batch", "chroot", "parallel", "ssh", "su", "sudo", "unshare"];

/// They take a text as if a shell read it.
const SOURCE: &[&str] = &[".", "source"];

/// Programs with subcommands. Options before the subcommand do not change its effect.
const HAVE_SUBCOMMANDS: &[&str] =
    &["cargo", "docker", "git", "kubectl", "npm", "pnpm", "systemctl"];

/// A property of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramTrait {
    PassesOn = 1,
    ReadsText = 2,
    Shell = 4,
    Sources = 8,
    HasSubcommands = 16,
    Finds = 32,
    Evaluates = 64,
    Prints = 128,
    IsGit = 256,
    FeedsShell = 512,
}

/// All that is known of a program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProgramTraits(u16);

impl ProgramTraits {
    /// The properties of a program, in any directory.
    pub(crate) fn of(word: &str) -> Self {
        BY_NAME.get(base_name(word)).copied().unwrap_or_default()
    }

    /// True if it has any property in this table.
    pub(crate) fn is_known(self) -> bool {
        self.0 != 0
    }

    pub(crate) fn has(self, one: ProgramTrait) -> bool {
        self.0 & one as u16 != 0
    }
}

/// One table, because it is searched for every word of a script.
static BY_NAME: LazyLock<HashMap<&'static str, ProgramTraits, BuildHasherDefault<Fnv>>> =
    LazyLock::new(|| {
        let tables: [(&[&'static str], ProgramTrait); 10] = [
            (PASS_ON, ProgramTrait::PassesOn),
            (READ_TEXT, ProgramTrait::ReadsText),
            (SHELLS, ProgramTrait::Shell),
            (SOURCE, ProgramTrait::Sources),
            (HAVE_SUBCOMMANDS, ProgramTrait::HasSubcommands),
            (&["fd", "fdfind", "find"], ProgramTrait::Finds),
            (&["eval"], ProgramTrait::Evaluates),
            (&["echo", "printf"], ProgramTrait::Prints),
            (&["git"], ProgramTrait::IsGit),
            (FEED_SHELLS, ProgramTrait::FeedsShell),
        ];
        let mut by_name: HashMap<&str, ProgramTraits, BuildHasherDefault<Fnv>> = HashMap::default();
        for (names, one) in tables {
            for name in names {
                by_name.entry(name).or_default().0 |= one as u16;
            }
        }
        by_name
    });

/// FNV-1a. The table's names are fixed, so an attacker cannot make them collide.
#[derive(Default)]
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
