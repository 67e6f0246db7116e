//! `agentd sandbox`: what a command finds and is refused in each tier, as one table. `doctor` takes from
//! it what a machine that gives tier B goes without.

use crate::cli_exit::CliExit;
use crate::output::print;
use std::sync::LazyLock;

/// What there is, in tier A and in tier B.
struct Row {
    what: &'static str,
    in_a: &'static str,
    in_b: &'static str,
    /// What is lost in tier B, as a part of a sentence; empty where nothing is.
    lost: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        what: "/tmp and /var/tmp",
        in_a: "private directories of the session, kept between calls and runs",
        in_b: "the machine's, refused; temporary files go to $TMPDIR",
        lost: "/tmp and /var/tmp of the session's own",
    },
    Row {
        what: "the home directory",
        in_a: "one of the session's own, with what is granted of the person's in it",
        in_b: "the person's, of which only what is granted can be read, and nothing changed",
        lost: "a home that programs can write",
    },
    Row {
        what: "tool homes and package caches (~/.cargo, ~/.npm, ~/.m2, ~/go, ~/.local/bin, …)",
        in_a: "overlays: the person's lie below, changes are kept for the project and seen by no other",
        in_b: "the person's, read-only; cargo, Go and npm use caches of the project",
        lost: "installing programs in their usual places",
    },
    Row {
        what: "what was not granted",
        in_a: "is not there",
        in_b: "is listed by its directory, and refused",
        lost: "that what is not granted is not even seen",
    },
    Row {
        what: "network off",
        in_a: "an empty network: a call's own servers on 127.0.0.1 are reached by that call",
        in_b: "no internet sockets at all",
        lost: "servers of a call on 127.0.0.1",
    },
    Row {
        what: "network by list",
        in_a: "hosts that are listed, through agentd's proxy; by its whole name a host is reached without a proxy too",
        in_b: "refused: the network is off or on as a whole",
        lost: "a network for listed hosts alone",
    },
    Row {
        what: "keys in the project",
        in_a: "are covered by something empty",
        in_b: "can be read; each record names them",
        lost: "that keys within the project are hidden",
    },
    Row {
        what: "git's settings and hooks",
        in_a: "are mounted read-only; git itself changes what runs no program (names, remotes, branches)",
        in_b: "are put right after each command",
        lost: "that a command's own git cannot see a change of them",
    },
    Row {
        what: "processes",
        in_a: "a process namespace: those of the machine are not seen",
        in_b: "those of the machine are listed, and cannot be signalled or traced",
        lost: "processes of its own alone",
    },
    Row {
        what: "programs with a sandbox of their own (Chromium, Electron, bwrap)",
        in_a: "none can be made within this one: `--no-sandbox` for Chromium and Electron",
        in_b: "the same",
        lost: "",
    },
    Row {
        what: "shared memory (/dev/shm)",
        in_a: "the call's own",
        in_b: "the machine's, where commands read and write what is this user's",
        lost: "shared memory of its own alone",
    },
    Row {
        what: "terminals",
        in_a: "programs open terminals of their own",
        in_b: "none can be opened",
        lost: "terminals of a program's own (script, tmux, expect)",
    },
];

/// The page, as `agentd help sandbox` has it too.
pub(crate) static PAGE: LazyLock<String> = LazyLock::new(|| {
    let rows = ROWS.iter().map(|row| {
        let Row { what, in_a, in_b, .. } = row;
        format!("{what}\n  tier A: {in_a}\n  tier B: {in_b}\n")
    });
    format!(
        "Tier A is namespaces, Landlock and seccomp; tier B is Landlock and seccomp, for machines that \
         allow no namespaces. `agentd doctor` says which this machine gives.\n\n{}",
        rows.collect::<Vec<_>>().join("\n")
    )
});

/// Prints it.
pub(crate) fn main() -> CliExit {
    print(&PAGE);
    CliExit::Done
}

/// What a machine without tier A goes without, as one sentence.
pub(crate) fn lost_in_b() -> String {
    let lost: Vec<&str> = ROWS.iter().map(|row| row.lost).filter(|lost| !lost.is_empty()).collect();
    format!("Commands do without: {} (`agentd sandbox`).", lost.join("; "))
}
