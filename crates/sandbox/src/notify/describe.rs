//! Describes a refused call for the record, from its decisive argument.

use super::proc_reader::ProcReader;
use crate::seccomp::{FilterAction, FilterRule, NAMESPACES, SOCKET_TYPE};

/// Describes the requested action. Memory is read for this text only; the refusal depends on
/// registers.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn describe(
    rule: &FilterRule,
    args: &[u64; 6],
    tid: u32,
    processes: &ProcReader,
) -> String {
    let low = args.map(|argument| argument as u32);
    let path = |at: usize| match processes.path(tid, args[at]) {
        Some(path) => format!("{} {}", rule.what, path.display()),
        None => rule.what.to_owned(),
    };
    if let FilterAction::RefuseOutside(argument, _) = rule.then {
        return format!("{} of pid {}", rule.what, low[argument].cast_signed());
    }
    match rule.call {
        "socket" => socket(low[0], low[1], low[2]),
        "socketpair" => format!("{}, as a pair", socket(low[0], low[1], low[2])),
        "clone" | "unshare" => namespaces(low[0], rule.call),
        "ioctl" => request(low[1]),
        "personality" => format!("personality {:#x}", low[0]),
        "prlimit64" => format!("limits of pid {}", low[0].cast_signed()),
        "mount" => path(1),
        "umount2" | "chroot" | "swapon" | "swapoff" | "acct" | "execve" => path(0),
        "execveat" => path(1),
        _ => rule.what.to_owned(),
    }
}

/// For example `AF_INET stream socket`; names an unusual protocol.
pub(super) fn socket(family: u32, kind: u32, protocol: u32) -> String {
    let family = match family {
        1 => "AF_UNIX".to_owned(),
        2 => "AF_INET".to_owned(),
        4 => "AF_IPX".to_owned(),
        5 => "AF_APPLETALK".to_owned(),
        9 => "AF_X25".to_owned(),
        10 => "AF_INET6".to_owned(),
        15 => "AF_KEY".to_owned(),
        16 => "AF_NETLINK".to_owned(),
        17 => "AF_PACKET".to_owned(),
        21 => "AF_RDS".to_owned(),
        29 => "AF_CAN".to_owned(),
        30 => "AF_TIPC".to_owned(),
        31 => "AF_BLUETOOTH".to_owned(),
        38 => "AF_ALG".to_owned(),
        39 => "AF_NFC".to_owned(),
        40 => "AF_VSOCK".to_owned(),
        43 => "AF_SMC".to_owned(),
        44 => "AF_XDP".to_owned(),
        number => format!("family {number}"),
    };
    let kind = match kind & SOCKET_TYPE {
        1 => "stream".to_owned(),
        2 => "datagram".to_owned(),
        3 => "raw".to_owned(),
        5 => "packet sequence".to_owned(),
        number => format!("type {number}"),
    };
    match protocol {
        0 | 6 | 17 => format!("{family} {kind} socket"),
        262 => format!("{family} {kind} socket, protocol 262 (MPTCP)"),
        other => format!("{family} {kind} socket, protocol {other}"),
    }
}

fn namespaces(flags: u32, call: &str) -> String {
    const KINDS: &[(u32, &str)] = &[
        (0x1000_0000, "user"),
        (0x0002_0000, "mount"),
        (0x2000_0000, "pid"),
        (0x4000_0000, "network"),
        (0x0800_0000, "ipc"),
        (0x0400_0000, "host name"),
        (0x0200_0000, "cgroup"),
    ];
    let mut kinds: Vec<&str> = KINDS
        .iter()
        .filter(|(bit, _)| flags & NAMESPACES & bit != 0)
        .map(|(_, kind)| *kind)
        .collect();
    if call == "unshare" && flags & 0x80 != 0 {
        kinds.push("time");
    }
    format!("new namespaces: {}", kinds.join(", "))
}

fn request(number: u32) -> String {
    match number {
        0x5412 => "TIOCSTI, typing into the terminal".to_owned(),
        0x541C => "TIOCLINUX, driving the console".to_owned(),
        0x541D => "TIOCCONS, taking the console's output".to_owned(),
        0x5423 => "TIOCSETD, another line discipline".to_owned(),
        other => format!("request {other:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_in_words() {
        assert_eq!(socket(2, 1 | 0o2_000_000, 0), "AF_INET stream socket");
        assert_eq!(socket(10, 3, 58), "AF_INET6 raw socket, protocol 58");
        assert_eq!(socket(2, 1, 262), "AF_INET stream socket, protocol 262 (MPTCP)");
        assert_eq!(socket(40, 1, 0), "AF_VSOCK stream socket");
        assert_eq!(socket(99, 9, 0), "family 99 type 9 socket");
    }

    #[test]
    fn namespaces_in_words() {
        assert_eq!(namespaces(0x1002_0000, "clone"), "new namespaces: user, mount");
        assert_eq!(namespaces(0x80, "unshare"), "new namespaces: time");
    }
}
