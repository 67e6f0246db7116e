//! What the filter refuses and what it shows to the listener: a table with a reason on each line.

use super::rules::{
    Act, Errand, Flags, Follow, Is, Look, Place, Respect, Role, Rule, Subject, Target, Test, Then,
    Unit,
};
use super::{Exec, Inet, Lengths, Metadata, Plan, Reporting, Unix};
use libc::{EACCES, EAFNOSUPPORT, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT};

/// The rules of a plan, in the order in which they are asked.
pub(super) fn rules(plan: &Plan) -> impl Iterator<Item = &'static Rule> + use<> {
    let exec: &[Rule] = match plan.exec {
        Exec::Refused => EXEC,
        Exec::Allowed(_) => STARTS,
    };
    let families: &[Rule] = match (plan.inet, plan.unix_here()) {
        (Inet::Refused, Unix::Refused) => NO_FAMILIES,
        (Inet::Refused, Unix::Carried | Unix::Allowed) => ONLY_UNIX,
        (Inet::Allowed, Unix::Refused) => ONLY_INET,
        (Inet::Allowed, Unix::Carried | Unix::Allowed) => BOTH_FAMILIES,
    };
    let connect: &[Rule] = match plan.unix_here() {
        Unix::Carried => CARRIED,
        Unix::Refused | Unix::Allowed => LOOKED_AT,
    };
    let (shared, metadata): (&[Rule], &[Rule]) = match (plan.metadata, plan.reporting) {
        (Metadata::Carried, Reporting::Notify) => (SHARED, CARRIED_METADATA),
        (Metadata::Open | Metadata::Carried, _) => (SHARED, &[]),
        (Metadata::ReadOnly, _) => (&[], METADATA),
    };
    let [emptied, hidden, length] = lengths(plan);
    [
        exec, KERNEL, ARGUMENTS, families, SOCKETS, connect, emptied, hidden, length, OBSERVED,
        shared, metadata,
    ]
    .into_iter()
    .flatten()
}

/// What keeps lengths where Landlock does not: opens that empty, opens that hide what they do, and
/// `truncate`. A tool of ours needs `openat2` itself, which its record says.
fn lengths(plan: &Plan) -> [&'static [Rule]; 3] {
    match (plan.lengths, plan.exec, plan.reporting) {
        (Lengths::ByKernel, _, _) => [&[]; 3],
        (Lengths::ByFilter, Exec::Refused, _) => [EMPTIED, &[], NO_TRUNCATE],
        (Lengths::ByFilter, Exec::Allowed(_), Reporting::Errno) => [EMPTIED, HIDDEN, NO_TRUNCATE],
        (Lengths::ByFilter, Exec::Allowed(_), Reporting::Notify) => [EMPTIED, HIDDEN, TRUNCATE],
    }
}

const ALL: u32 = u32::MAX;

const fn refuse(call: &'static str, what: &'static str) -> Rule {
    refuse_if(call, &[], EPERM, what)
}

const fn refuse_if(
    call: &'static str,
    when: &'static [Test],
    errno: i32,
    what: &'static str,
) -> Rule {
    Rule { call, when, then: Then::Refuse(errno), what }
}

const fn outside(
    call: &'static str,
    process: usize,
    when: &'static [Test],
    what: &'static str,
) -> Rule {
    Rule { call, when, then: Then::RefuseOutside(process, EPERM), what }
}

const fn fallback(call: &'static str, what: &'static str) -> Rule {
    Rule { call, when: &[], then: Then::Fallback(ENOSYS), what }
}

const fn look(call: &'static str, look: Look) -> Rule {
    Rule { call, when: &[], then: Then::Look(look), what: "" }
}

const fn look_if(call: &'static str, when: &'static [Test], look: Look) -> Rule {
    Rule { call, when, then: Then::Look(look), what: "" }
}

const fn names(call: &'static str, places: &'static [Place]) -> Rule {
    look(call, Look::Names(places))
}

const fn place(path: usize, role: Role) -> Place {
    Place { dir: None, path, role }
}

const fn place_at(dir: usize, role: Role) -> Place {
    Place { dir: Some(dir), path: dir + 1, role }
}

const fn is_in(arg: usize, mask: u32, values: &'static [u32]) -> Test {
    Test { arg, mask, is: Is::In(values) }
}

const fn is_not_in(arg: usize, mask: u32, values: &'static [u32]) -> Test {
    Test { arg, mask, is: Is::NotIn(values) }
}

const fn any_bit(arg: usize, mask: u32) -> Test {
    is_not_in(arg, mask, &[0])
}

/// Tools that work in their own process start nothing.
const EXEC: &[Rule] =
    &[refuse("execve", "starting a program"), refuse("execveat", "starting a program")];

/// In a register that `execve` does not read.
const UNMARKED: Test = Test { arg: 3, mask: ALL, is: Is::Unmarked };

/// Programs that a command starts: which of them the kernel refuses depends on where they lie. The
/// cage's own exec has the mark.
#[rustfmt::skip]
const STARTS: &[Rule] = &[
    look_if("execve", &[UNMARKED], Look::Start { dir: None, path: 0, flags: None }),
    look("execveat", Look::Start { dir: Some(0), path: 1, flags: Some(4) }),
];

/// Kernel surface that no tool needs.
#[rustfmt::skip]
const KERNEL: &[Rule] = &[
    // Callers know these as absent from older kernels and take another way. Hot: never notified.
    fallback("clone3", "its flags lie in memory, where a filter cannot judge them"),
    fallback("io_uring_setup", "its operations pass no filter"),
    fallback("io_uring_enter", "its operations pass no filter"),
    fallback("io_uring_register", "its operations pass no filter"),
    fallback("userfaultfd", "stretches races in the kernel"),
    fallback("memfd_secret", "memory that nobody can count"),
    fallback("open_tree", "mounts"),
    fallback("open_tree_attr", "mounts"),
    fallback("move_mount", "mounts"),
    fallback("fsopen", "mounts"),
    fallback("fsconfig", "mounts"),
    fallback("fsmount", "mounts"),
    fallback("fspick", "mounts"),
    fallback("mount_setattr", "mounts"),

    refuse("mount", "mounting"),
    refuse("umount2", "unmounting"),
    refuse("pivot_root", "another root directory"),
    refuse("chroot", "another root directory"),
    refuse("setns", "joining a namespace"),
    refuse("bpf", "programs in the kernel"),
    refuse("perf_event_open", "performance counters"),
    refuse("add_key", "the kernel's key rings"),
    refuse("request_key", "the kernel's key rings"),
    refuse("keyctl", "the kernel's key rings"),
    refuse("open_by_handle_at", "opening a file past its path"),
    refuse("kexec_load", "another kernel"),
    refuse("kexec_file_load", "another kernel"),
    refuse("init_module", "kernel modules"),
    refuse("finit_module", "kernel modules"),
    refuse("delete_module", "kernel modules"),
    refuse("reboot", "restarting the machine"),
    refuse("swapon", "swap space"),
    refuse("swapoff", "swap space"),
    refuse("acct", "process accounting"),
    refuse("quotactl", "disk quotas"),
    refuse("quotactl_fd", "disk quotas"),
    refuse("settimeofday", "setting the clock"),
    refuse("clock_settime", "setting the clock"),
    refuse("adjtimex", "setting the clock"),
    refuse("clock_adjtime", "setting the clock"),
    refuse("sethostname", "the machine's name"),
    refuse("setdomainname", "the machine's name"),
    refuse("iopl", "hardware ports"),
    refuse("ioperm", "hardware ports"),
    refuse("modify_ldt", "the processor's segment table"),
    refuse("syslog", "the kernel's log"),
    refuse("vhangup", "hanging up the terminal"),
    refuse("fanotify_init", "watching every file"),
    refuse("move_pages", "another process's memory"),
    refuse("migrate_pages", "another process's memory"),
];

/// New user, mount, pid, network, ipc, uts and cgroup namespaces.
pub(crate) const NAMESPACES: u32 = 0x7E02_0000;
/// A new time namespace: only `unshare` takes it, in `clone` the bit belongs to the exit signal.
const TIME_NAMESPACE: u32 = 0x80;

/// Calls that are refused by their arguments.
#[rustfmt::skip]
const ARGUMENTS: &[Rule] = &[
    refuse_if("clone", &[any_bit(0, NAMESPACES)], EPERM, "new namespaces"),
    refuse_if("unshare", &[any_bit(0, NAMESPACES | TIME_NAMESPACE)], EPERM, "new namespaces"),
    // PER_LINUX, PER_LINUX32, UNAME26, both, the question, and ADDR_NO_RANDOMIZE for debuggers.
    refuse_if("personality", &[is_not_in(0, ALL, &[0, 8, 0x2_0000, 0x2_0008, ALL, 0x4_0000])], EPERM, "an unusual personality"),
    // A confined tool ended a process it could not signal through RLIMIT_CPU.
    Rule { call: "prlimit64", when: &[is_not_in(0, ALL, &[0])], then: Then::RefuseOthers(0, EPERM), what: "limits of another process" },
    // A confined tool made its supervisor run only when nobody else wants the processor.
    outside("sched_setaffinity", 0, &[is_not_in(0, ALL, &[0])], "the processors"),
    outside("sched_setattr", 0, &[is_not_in(0, ALL, &[0])], "the scheduling"),
    outside("sched_setparam", 0, &[is_not_in(0, ALL, &[0])], "the scheduling"),
    outside("sched_setscheduler", 0, &[is_not_in(0, ALL, &[0])], "the scheduling"),
    outside("setpriority", 1, &[is_in(0, ALL, &[0, 1]), is_not_in(1, ALL, &[0])], "the priority"),
    outside("ioprio_set", 1, &[is_in(0, ALL, &[1, 2]), is_not_in(1, ALL, &[0])], "the priority"),
    refuse_if("setpriority", &[is_in(0, ALL, &[2])], EPERM, "the priority of all processes of a user"),
    refuse_if("ioprio_set", &[is_in(0, ALL, &[3])], EPERM, "the priority of all processes of a user"),
    // TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD: keys typed for the person, the console, its line discipline.
    refuse_if("ioctl", &[is_in(1, ALL, &[0x5412, 0x541C, 0x541D, 0x5423])], EPERM, "driving the terminal"),
];

const UNIX: u32 = 1;
const INET: u32 = 2;
const INET6: u32 = 10;
const NETLINK: u32 = 16;
const STREAM: u32 = 1;
const DGRAM: u32 = 2;
const SEQPACKET: u32 = 5;
/// The kind of a socket without SOCK_NONBLOCK and SOCK_CLOEXEC.
pub(crate) const SOCKET_TYPE: u32 = 0xF;

const FAMILY: &str = "a socket family that is off";
const NO_FAMILIES: &[Rule] =
    &[refuse_if("socket", &[is_not_in(0, ALL, &[NETLINK])], EAFNOSUPPORT, FAMILY)];
const ONLY_UNIX: &[Rule] =
    &[refuse_if("socket", &[is_not_in(0, ALL, &[NETLINK, UNIX])], EAFNOSUPPORT, FAMILY)];
const ONLY_INET: &[Rule] =
    &[refuse_if("socket", &[is_not_in(0, ALL, &[NETLINK, INET, INET6])], EAFNOSUPPORT, FAMILY)];
const BOTH_FAMILIES: &[Rule] = &[refuse_if(
    "socket",
    &[is_not_in(0, ALL, &[NETLINK, UNIX, INET, INET6])],
    EAFNOSUPPORT,
    FAMILY,
)];

/// Kinds of sockets within the families, at their creation and never at operations on them.
#[rustfmt::skip]
const SOCKETS: &[Rule] = &[
    refuse_if("socket", &[is_in(0, ALL, &[INET, INET6]), is_not_in(1, SOCKET_TYPE, &[STREAM, DGRAM])], EPERM, "a raw socket"),
    // Default, ICMP echo, TCP, UDP, ICMPv6 echo. Without MPTCP (262) callers take TCP.
    refuse_if("socket", &[is_in(0, ALL, &[INET, INET6]), is_not_in(2, ALL, &[0, 1, 6, 17, 58])], EPROTONOSUPPORT, "an unusual protocol"),
    refuse_if("socket", &[is_in(0, ALL, &[NETLINK]), is_not_in(2, ALL, &[0])], EPROTONOSUPPORT, "a kernel channel other than route"),
    refuse_if("socketpair", &[is_not_in(0, ALL, &[UNIX])], EAFNOSUPPORT, "a pair of an unusual family"),
    // A datagram pair can be pointed at any address by sendto.
    refuse_if("socketpair", &[is_not_in(1, SOCKET_TYPE, &[STREAM, SEQPACKET])], EPERM, "a datagram pair"),
];

/// Where unix sockets are carried: datagrams choose their address at each sending, past `connect`.
#[rustfmt::skip]
const CARRIED: &[Rule] = &[
    refuse_if("socket", &[is_in(0, ALL, &[UNIX]), is_not_in(1, SOCKET_TYPE, &[STREAM, SEQPACKET])], EPERM, "a unix datagram socket"),
    Rule { call: "connect", when: &[], then: Then::Carry(Errand::Connection), what: "a connection" },
];

const LOOKED_AT: &[Rule] = &[look("connect", Look::Connect)];

/// O_TRUNC and the access mode.
const EMPTYING: u32 = 0o1003;
/// O_TRUNC with O_RDONLY, and with the mode for ioctl alone: the kernel empties the file, and the descriptor
/// is not one for writing, which is all that an old Landlock looks at.
const WITHOUT_WRITING: &[u32] = &[0o1000, 0o1003];

const EMPTIED: &[Rule] = &[
    refuse_if("open", &[is_in(1, EMPTYING, WITHOUT_WRITING)], EACCES, EMPTYING_A_FILE),
    refuse_if("openat", &[is_in(2, EMPTYING, WITHOUT_WRITING)], EACCES, EMPTYING_A_FILE),
];
const EMPTYING_A_FILE: &str = "emptying a file that is not opened for writing";

const HIDDEN: &[Rule] = &[fallback("openat2", "its flags lie in memory, and may empty any file")];

const NO_TRUNCATE: &[Rule] = &[refuse_if("truncate", &[], EACCES, "a file's length by its path")];
const TRUNCATE: &[Rule] = &[Rule {
    call: "truncate",
    when: &[],
    then: Then::Carry(Errand::Length),
    what: "a file's length by its path",
}];

/// O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, __O_TMPFILE: alike on both machines.
const WRITE_INTENT: u32 = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20_000_000;

/// What the kernel decides and the record wants to know.
#[rustfmt::skip]
const OBSERVED: &[Rule] = &[
    look_if("open", &[any_bit(1, WRITE_INTENT)], Look::Open { dir: None, path: 0, flags: Flags::Arg(1) }),
    look_if("openat", &[any_bit(2, WRITE_INTENT)], Look::Open { dir: Some(0), path: 1, flags: Flags::Arg(2) }),
    look("openat2", Look::Open { dir: Some(0), path: 1, flags: Flags::How(2) }),
    look("creat", Look::Open { dir: None, path: 0, flags: Flags::Creat }),
    names("truncate", &[place(0, Role::Changed("length", Follow::Yes))]),
    names("mkdir", &[place(0, Role::Made)]),
    names("mkdirat", &[place_at(0, Role::Made)]),
    names("mknod", &[place(0, Role::Made)]),
    names("mknodat", &[place_at(0, Role::Made)]),
    names("symlink", &[place(1, Role::Made)]),
    names("symlinkat", &[place_at(1, Role::Made)]),
    names("rmdir", &[place(0, Role::Removed)]),
    names("unlink", &[place(0, Role::Removed)]),
    names("unlinkat", &[place_at(0, Role::Removed)]),
    names("rename", &[place(0, Role::Removed), place(1, Role::Replaced)]),
    names("renameat", &[place_at(0, Role::Removed), place_at(2, Role::Replaced)]),
    names("renameat2", &[place_at(0, Role::Removed), place_at(2, Role::Replaced)]),
    names("link", &[place(0, Role::Linked), place(1, Role::Made)]),
    names("linkat", &[place_at(0, Role::Linked), place_at(2, Role::Made)]),
    look("bind", Look::Bind),
    look("kill", Look::Process(Target::Number(0), Act::Signal(1))),
    look("tkill", Look::Process(Target::Number(0), Act::Signal(1))),
    look("tgkill", Look::Process(Target::Number(0), Act::Signal(2))),
    look("rt_sigqueueinfo", Look::Process(Target::Number(0), Act::Signal(1))),
    look("rt_tgsigqueueinfo", Look::Process(Target::Number(0), Act::Signal(2))),
    look("pidfd_send_signal", Look::Process(Target::Descriptor(0), Act::Signal(1))),
    look("pidfd_getfd", Look::Process(Target::Descriptor(0), Act::Descriptor)),
    // PTRACE_ATTACH and PTRACE_SEIZE; the rest speaks to a process already attached.
    look_if("ptrace", &[is_in(0, ALL, &[16, 0x4206])], Look::Process(Target::Number(1), Act::Trace)),
    look("process_vm_readv", Look::Process(Target::Number(0), Act::Memory)),
    look("process_vm_writev", Look::Process(Target::Number(0), Act::Memory)),
];

/// Looked at only where System V memory is shared with this user's other processes.
const SHARED: &[Rule] = &[look("shmget", Look::Segment)];

const MODE: &str = "mode";
const OWNER: &str = "owner";
const TIMES: &str = "times";
const ATTRIBUTES: &str = "attributes";

/// Looked at only where the tree is read-only: Landlock has no right for these.
#[rustfmt::skip]
const METADATA: &[Rule] = &[
    names("chmod", &[place(0, Role::Changed(MODE, Follow::Yes))]),
    names("fchmodat", &[place_at(0, Role::Changed(MODE, Follow::Yes))]),
    names("fchmodat2", &[place_at(0, Role::Changed(MODE, Follow::Flag(3)))]),
    names("chown", &[place(0, Role::Changed(OWNER, Follow::Yes))]),
    names("lchown", &[place(0, Role::Changed(OWNER, Follow::No))]),
    names("fchownat", &[place_at(0, Role::Changed(OWNER, Follow::Flag(4)))]),
    names("utime", &[place(0, Role::Changed(TIMES, Follow::Yes))]),
    names("utimes", &[place(0, Role::Changed(TIMES, Follow::Yes))]),
    names("futimesat", &[place_at(0, Role::Changed(TIMES, Follow::Yes))]),
    names("utimensat", &[place_at(0, Role::Changed(TIMES, Follow::Flag(3)))]),
    names("setxattr", &[place(0, Role::Changed(ATTRIBUTES, Follow::Yes))]),
    names("lsetxattr", &[place(0, Role::Changed(ATTRIBUTES, Follow::No))]),
    names("setxattrat", &[place_at(0, Role::Changed(ATTRIBUTES, Follow::Flag(2)))]),
    names("removexattr", &[place(0, Role::Changed(ATTRIBUTES, Follow::Yes))]),
    names("lremovexattr", &[place(0, Role::Changed(ATTRIBUTES, Follow::No))]),
    names("removexattrat", &[place_at(0, Role::Changed(ATTRIBUTES, Follow::Flag(2)))]),
    names("file_setattr", &[place_at(0, Role::Changed(ATTRIBUTES, Follow::Flag(4)))]),
];

const fn status(
    call: &'static str,
    subject: Subject,
    respect: Respect,
    what: &'static str,
) -> Rule {
    Rule { call, when: &[], then: Then::Carry(Errand::Status(subject, respect)), what }
}

const fn of_path(path: usize, follow: Follow) -> Subject {
    Subject::Path { dir: None, path, follow }
}

const fn of_path_at(dir: usize, follow: Follow) -> Subject {
    Subject::Path { dir: Some(dir), path: dir + 1, follow }
}

/// Made by the listener where the tree is not read-only and nothing of the project is granted for writing.
/// By a descriptor too: Landlock asks nothing of one that was opened for reading.
#[rustfmt::skip]
const CARRIED_METADATA: &[Rule] = &[
    status("chmod", of_path(0, Follow::Yes), Respect::Mode(1), MODE),
    status("fchmod", Subject::Descriptor(0), Respect::Mode(1), MODE),
    status("fchmodat", of_path_at(0, Follow::Yes), Respect::Mode(2), MODE),
    status("fchmodat2", of_path_at(0, Follow::Flag(3)), Respect::Mode(2), MODE),
    status("chown", of_path(0, Follow::Yes), Respect::Owner(1), OWNER),
    status("lchown", of_path(0, Follow::No), Respect::Owner(1), OWNER),
    status("fchown", Subject::Descriptor(0), Respect::Owner(1), OWNER),
    status("fchownat", of_path_at(0, Follow::Flag(4)), Respect::Owner(2), OWNER),
    status("utime", of_path(0, Follow::Yes), Respect::Times(1, Unit::Seconds), TIMES),
    status("utimes", of_path(0, Follow::Yes), Respect::Times(1, Unit::Micros), TIMES),
    status("futimesat", of_path_at(0, Follow::Yes), Respect::Times(2, Unit::Micros), TIMES),
    status("utimensat", of_path_at(0, Follow::Flag(3)), Respect::Times(2, Unit::Nanos), TIMES),
    refuse_if("setxattr", &[], EOPNOTSUPP, ATTRIBUTES),
    refuse_if("lsetxattr", &[], EOPNOTSUPP, ATTRIBUTES),
    refuse_if("fsetxattr", &[], EOPNOTSUPP, ATTRIBUTES),
    refuse_if("setxattrat", &[], EOPNOTSUPP, ATTRIBUTES),
    refuse_if("removexattr", &[], EOPNOTSUPP, ATTRIBUTES),
    refuse_if("lremovexattr", &[], EOPNOTSUPP, ATTRIBUTES),
    refuse_if("fremovexattr", &[], EOPNOTSUPP, ATTRIBUTES),
    refuse_if("removexattrat", &[], EOPNOTSUPP, ATTRIBUTES),
    refuse_if("file_setattr", &[], EOPNOTSUPP, ATTRIBUTES),
    // FS_IOC_SETFLAGS in both widths, FS_IOC_SETVERSION in both, FS_IOC_FSSETXATTR.
    refuse_if("ioctl", &[is_in(1, ALL, &[0x4008_6602, 0x4004_6602, 0x4008_7602, 0x4004_7602, 0x401C_5820])], EOPNOTSUPP, ATTRIBUTES),
];
