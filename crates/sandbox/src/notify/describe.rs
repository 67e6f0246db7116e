//! The subject of a refused call for the record, from its decisive argument.

use super::proc_reader::ProcReader;
use crate::seccomp::{FilterAction, FilterRule, NAMESPACES, SOCKET_TYPE};
use protocol::confinement::{ProcessAct, SocketSpec, Subject};

/// What was requested. Memory is read for the record only; the refusal depends on registers.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn subject(
    rule: &FilterRule,
    args: &[u64; 6],
    tid: u32,
    processes: &ProcReader,
) -> Subject {
    let low = args.map(|argument| argument as u32);
    let path = |at: usize| Some(processes.path(tid, args[at])?.display().to_string());
    let operation = |path| Subject::Operation { what: rule.what.to_owned(), path };
    if let FilterAction::RefuseOutside(argument, _) = rule.then {
        let act = ProcessAct::Setting(rule.what.to_owned());
        return Subject::Process { act, pid: low[argument].cast_signed() };
    }
    match rule.call {
        "socket" => Subject::Socket(socket(low)),
        "socketpair" => Subject::SocketPair(socket(low)),
        "clone" | "unshare" => namespaces(low[0], rule.call),
        "ioctl" => Subject::Request(low[1]),
        "personality" => Subject::Personality(low[0]),
        "prlimit64" => Subject::Process { act: ProcessAct::Limits, pid: low[0].cast_signed() },
        "execve" => Subject::Start { path: path(0) },
        "execveat" => Subject::Start { path: path(1) },
        "mount" => operation(path(1)),
        "umount2" | "chroot" | "swapon" | "swapoff" | "acct" => operation(path(0)),
        _ => operation(None),
    }
}

fn socket([family, kind, protocol, ..]: [u32; 6]) -> SocketSpec {
    SocketSpec { family, kind: kind & SOCKET_TYPE, protocol }
}

fn namespaces(flags: u32, call: &str) -> Subject {
    const KINDS: &[(u32, &str)] = &[
        (0x1000_0000, "user"),
        (0x0002_0000, "mount"),
        (0x2000_0000, "pid"),
        (0x4000_0000, "network"),
        (0x0800_0000, "ipc"),
        (0x0400_0000, "host name"),
        (0x0200_0000, "cgroup"),
    ];
    let mut kinds: Vec<String> = KINDS
        .iter()
        .filter(|(bit, _)| flags & NAMESPACES & bit != 0)
        .map(|(_, kind)| (*kind).to_owned())
        .collect();
    if call == "unshare" && flags & 0x80 != 0 {
        kinds.push("time".to_owned());
    }
    Subject::Namespaces(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_by_name() {
        let of = |flags, call| namespaces(flags, call).to_string();
        assert_eq!(of(0x1002_0000, "clone"), "new namespaces: user, mount");
        assert_eq!(of(0x80, "unshare"), "new namespaces: time");
    }
}
