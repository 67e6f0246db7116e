//! The rules of the filter: a table with a reason in each row.

use super::filter_rule::{
    ArgMatch, ArgTest, EmulatedCall, EntryChange, FilterAction, FilterRule, FollowLink,
    MetadataField, MetadataTarget, ObservedCall, OpenFlags, PathArg, ProcessAct, ProcessArg,
    TimeUnit,
};
use super::filter_spec::{
    ExecFilter, FilterSpec, InetSockets, MetadataRule, Reporting, TruncateGuard, UnixSockets,
};
use libc::{EACCES, EAFNOSUPPORT, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT};
use protocol::confinement::PathAct;

/// The rules of a spec, in the order of evaluation.
pub(super) fn rules(spec: &FilterSpec) -> impl Iterator<Item = &'static FilterRule> + use<> {
    let exec: &[FilterRule] = match spec.exec {
        ExecFilter::Refused => EXEC,
        ExecFilter::Allowed(_) => EXEC_OBSERVED,
    };
    let families: &[FilterRule] = match (spec.inet, spec.unix_here()) {
        (InetSockets::Refused, UnixSockets::Refused) => NO_FAMILIES,
        (InetSockets::Refused, UnixSockets::Emulated | UnixSockets::Allowed) => ONLY_UNIX,
        (InetSockets::Allowed, UnixSockets::Refused) => ONLY_INET,
        (InetSockets::Allowed, UnixSockets::Emulated | UnixSockets::Allowed) => BOTH_FAMILIES,
    };
    let (connect, pairs): (&[FilterRule], &[FilterRule]) = match spec.unix_here() {
        UnixSockets::Emulated => (EMULATED_CONNECT, NO_DATAGRAM_PAIR),
        UnixSockets::Refused => (OBSERVED_CONNECT, NO_DATAGRAM_PAIR),
        UnixSockets::Allowed => (OBSERVED_CONNECT, &[]),
    };
    let (shared, metadata): (&[FilterRule], &[FilterRule]) = match (spec.metadata, spec.reporting) {
        (MetadataRule::Emulated, Reporting::Notify) => (SHARED, EMULATED_METADATA),
        (MetadataRule::Open | MetadataRule::Emulated, _) => (SHARED, &[]),
        (MetadataRule::ReadOnly, _) => (&[], OBSERVED_METADATA),
    };
    let [emptied, hidden, length] = lengths(spec);
    [
        exec, KERNEL, ARGUMENTS, families, SOCKETS, pairs, connect, emptied, hidden, length,
        OBSERVED, shared, metadata,
    ]
    .into_iter()
    .flatten()
}

/// Rules for changes of length that Landlock does not restrict: opens that empty a file, opens
/// whose flags a filter cannot read, and `truncate`. Tools in agentd's own process need `openat2`,
/// and their record mentions it.
fn lengths(spec: &FilterSpec) -> [&'static [FilterRule]; 3] {
    match (spec.lengths, spec.exec, spec.reporting) {
        (TruncateGuard::ByKernel, _, _) => [&[]; 3],
        (TruncateGuard::ByFilter, ExecFilter::Refused, _) => {
            [NO_TRUNC_WITHOUT_WRITE, &[], NO_TRUNCATE]
        }
        (TruncateGuard::ByFilter, ExecFilter::Allowed(_), Reporting::Errno) => {
            [NO_TRUNC_WITHOUT_WRITE, NO_OPENAT2, NO_TRUNCATE]
        }
        (TruncateGuard::ByFilter, ExecFilter::Allowed(_), Reporting::Notify) => {
            [NO_TRUNC_WITHOUT_WRITE, NO_OPENAT2, TRUNCATE]
        }
    }
}

const ALL: u32 = u32::MAX;

const fn refuse(call: &'static str, what: &'static str) -> FilterRule {
    refuse_if(call, &[], EPERM, what)
}

const fn refuse_if(
    call: &'static str,
    when: &'static [ArgTest],
    errno: i32,
    what: &'static str,
) -> FilterRule {
    FilterRule { call, when, then: FilterAction::Refuse(errno), what }
}

const fn outside(
    call: &'static str,
    process: usize,
    when: &'static [ArgTest],
    what: &'static str,
) -> FilterRule {
    FilterRule { call, when, then: FilterAction::RefuseOutside(process, EPERM), what }
}

const fn fallback(call: &'static str, what: &'static str) -> FilterRule {
    FilterRule { call, when: &[], then: FilterAction::Fallback(ENOSYS), what }
}

const fn observe(call: &'static str, observed: ObservedCall) -> FilterRule {
    FilterRule { call, when: &[], then: FilterAction::Observe(observed), what: "" }
}

const fn observe_if(
    call: &'static str,
    when: &'static [ArgTest],
    observed: ObservedCall,
) -> FilterRule {
    FilterRule { call, when, then: FilterAction::Observe(observed), what: "" }
}

const fn names(call: &'static str, places: &'static [PathArg]) -> FilterRule {
    observe(call, ObservedCall::Names(places))
}

const fn place(path: usize, role: EntryChange) -> PathArg {
    PathArg { dir: None, path, role }
}

const fn place_at(dir: usize, role: EntryChange) -> PathArg {
    PathArg { dir: Some(dir), path: dir + 1, role }
}

const fn is_in(arg: usize, mask: u32, values: &'static [u32]) -> ArgTest {
    ArgTest { arg, mask, is: ArgMatch::In(values) }
}

const fn is_not_in(arg: usize, mask: u32, values: &'static [u32]) -> ArgTest {
    ArgTest { arg, mask, is: ArgMatch::NotIn(values) }
}

const fn any_bit(arg: usize, mask: u32) -> ArgTest {
    is_not_in(arg, mask, &[0])
}

/// Tools that work in their own process start no programs.
const EXEC: &[FilterRule] =
    &[refuse("execve", "starting a program"), refuse("execveat", "starting a program")];

/// The marker is in a register that `execve` does not read.
const UNMARKED: ArgTest = ArgTest { arg: 3, mask: ALL, is: ArgMatch::Unmarked };

/// Programs that a command starts: the kernel's decision depends on their location. The cage's own
/// exec carries the marker.
#[rustfmt::skip]
const EXEC_OBSERVED: &[FilterRule] = &[
    observe_if("execve", &[UNMARKED], ObservedCall::Start { dir: None, path: 0, flags: None }),
    observe("execveat", ObservedCall::Start { dir: Some(0), path: 1, flags: Some(4) }),
];

/// Kernel surface that no tool needs.
#[rustfmt::skip]
const KERNEL: &[FilterRule] = &[
    // Callers expect these to be missing on older kernels and use another call. Frequent, so never
    // notified.
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
/// A new time namespace: only `unshare` takes it; in `clone` this bit belongs to the exit signal.
const TIME_NAMESPACE: u32 = 0x80;

/// Calls that are refused by their arguments.
#[rustfmt::skip]
const ARGUMENTS: &[FilterRule] = &[
    refuse_if("clone", &[any_bit(0, NAMESPACES)], EPERM, "new namespaces"),
    refuse_if("unshare", &[any_bit(0, NAMESPACES | TIME_NAMESPACE)], EPERM, "new namespaces"),
    // PER_LINUX, PER_LINUX32, UNAME26, both, a query, and ADDR_NO_RANDOMIZE for debuggers.
    refuse_if("personality", &[is_not_in(0, ALL, &[0, 8, 0x2_0000, 0x2_0008, ALL, 0x4_0000])], EPERM, "an unusual personality"),
    // A confined tool could kill a process that it may not signal by setting RLIMIT_CPU.
    FilterRule { call: "prlimit64", when: &[is_not_in(0, ALL, &[0])], then: FilterAction::RefuseOthers(0, EPERM), what: "limits of another process" },
    // A confined tool could lower its supervisor to idle scheduling priority.
    outside("sched_setaffinity", 0, &[is_not_in(0, ALL, &[0])], "the processors"),
    outside("sched_setattr", 0, &[is_not_in(0, ALL, &[0])], "the scheduling"),
    outside("sched_setparam", 0, &[is_not_in(0, ALL, &[0])], "the scheduling"),
    outside("sched_setscheduler", 0, &[is_not_in(0, ALL, &[0])], "the scheduling"),
    outside("setpriority", 1, &[is_in(0, ALL, &[0, 1]), is_not_in(1, ALL, &[0])], "the priority"),
    outside("ioprio_set", 1, &[is_in(0, ALL, &[1, 2]), is_not_in(1, ALL, &[0])], "the priority"),
    refuse_if("setpriority", &[is_in(0, ALL, &[2])], EPERM, "the priority of all processes of a user"),
    refuse_if("ioprio_set", &[is_in(0, ALL, &[3])], EPERM, "the priority of all processes of a user"),
    // TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD: typing into the user's terminal, the console, its
    // line discipline.
    refuse_if("ioctl", &[is_in(1, ALL, &[0x5412, 0x541C, 0x541D, 0x5423])], EPERM, "driving the terminal"),
];

const UNIX: u32 = 1;
const INET: u32 = 2;
const INET6: u32 = 10;
const NETLINK: u32 = 16;
const STREAM: u32 = 1;
const DGRAM: u32 = 2;
const SEQPACKET: u32 = 5;
/// Mask of a socket's type without SOCK_NONBLOCK and SOCK_CLOEXEC.
pub(crate) const SOCKET_TYPE: u32 = 0xF;

const FAMILY: &str = "a socket family that is off";
const NO_FAMILIES: &[FilterRule] =
    &[refuse_if("socket", &[is_not_in(0, ALL, &[NETLINK])], EAFNOSUPPORT, FAMILY)];
const ONLY_UNIX: &[FilterRule] =
    &[refuse_if("socket", &[is_not_in(0, ALL, &[NETLINK, UNIX])], EAFNOSUPPORT, FAMILY)];
const ONLY_INET: &[FilterRule] =
    &[refuse_if("socket", &[is_not_in(0, ALL, &[NETLINK, INET, INET6])], EAFNOSUPPORT, FAMILY)];
const BOTH_FAMILIES: &[FilterRule] = &[refuse_if(
    "socket",
    &[is_not_in(0, ALL, &[NETLINK, UNIX, INET, INET6])],
    EAFNOSUPPORT,
    FAMILY,
)];

/// Types of sockets within the families, judged at their creation and never at operations on them.
#[rustfmt::skip]
const SOCKETS: &[FilterRule] = &[
    refuse_if("socket", &[is_in(0, ALL, &[INET, INET6]), is_not_in(1, SOCKET_TYPE, &[STREAM, DGRAM])], EPERM, "a raw socket"),
    // Default, ICMP echo, TCP, UDP, ICMPv6 echo. Without MPTCP (262) callers use TCP.
    refuse_if("socket", &[is_in(0, ALL, &[INET, INET6]), is_not_in(2, ALL, &[0, 1, 6, 17, 58])], EPROTONOSUPPORT, "an unusual protocol"),
    refuse_if("socket", &[is_in(0, ALL, &[NETLINK]), is_not_in(2, ALL, &[0])], EPROTONOSUPPORT, "a kernel channel other than route"),
    refuse_if("socketpair", &[is_not_in(0, ALL, &[UNIX])], EAFNOSUPPORT, "a pair of an unusual family"),
];

/// `sendto` can send on a datagram pair to any address, as on any datagram socket. Where those are
/// refused, a pair is too.
#[rustfmt::skip]
const NO_DATAGRAM_PAIR: &[FilterRule] = &[
    refuse_if("socketpair", &[is_not_in(1, SOCKET_TYPE, &[STREAM, SEQPACKET])], EPERM, "a datagram pair"),
];

/// With emulated unix sockets: a datagram socket takes an address at each send, without `connect`.
#[rustfmt::skip]
const EMULATED_CONNECT: &[FilterRule] = &[
    refuse_if("socket", &[is_in(0, ALL, &[UNIX]), is_not_in(1, SOCKET_TYPE, &[STREAM, SEQPACKET])], EPERM, "a unix datagram socket"),
    FilterRule { call: "connect", when: &[], then: FilterAction::Emulate(EmulatedCall::Connect), what: "a connection" },
];

const OBSERVED_CONNECT: &[FilterRule] = &[observe("connect", ObservedCall::Connect)];

/// O_TRUNC and the access mode.
const TRUNC_AND_MODE: u32 = 0o1003;
/// O_TRUNC with O_RDONLY, and with the access mode for ioctl only. The kernel empties the file
/// although the descriptor is not for writing, and an old Landlock checks only that.
const WITHOUT_WRITING: &[u32] = &[0o1000, 0o1003];

const NO_TRUNC_WITHOUT_WRITE: &[FilterRule] = &[
    refuse_if("open", &[is_in(1, TRUNC_AND_MODE, WITHOUT_WRITING)], EACCES, EMPTYING_A_FILE),
    refuse_if("openat", &[is_in(2, TRUNC_AND_MODE, WITHOUT_WRITING)], EACCES, EMPTYING_A_FILE),
];
const EMPTYING_A_FILE: &str = "emptying a file that is not opened for writing";

const NO_OPENAT2: &[FilterRule] =
    &[fallback("openat2", "its flags lie in memory, and may empty any file")];

const NO_TRUNCATE: &[FilterRule] =
    &[refuse_if("truncate", &[], EACCES, "a file's length by its path")];
const TRUNCATE: &[FilterRule] = &[FilterRule {
    call: "truncate",
    when: &[],
    then: FilterAction::Emulate(EmulatedCall::Truncate),
    what: "a file's length by its path",
}];

/// O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, __O_TMPFILE: alike on both machines.
const WRITE_INTENT: u32 = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20_000_000;

/// Calls that the kernel decides and the record shows.
#[rustfmt::skip]
const OBSERVED: &[FilterRule] = &[
    observe_if("open", &[any_bit(1, WRITE_INTENT)], ObservedCall::Open { dir: None, path: 0, flags: OpenFlags::Arg(1) }),
    observe_if("openat", &[any_bit(2, WRITE_INTENT)], ObservedCall::Open { dir: Some(0), path: 1, flags: OpenFlags::Arg(2) }),
    observe("openat2", ObservedCall::Open { dir: Some(0), path: 1, flags: OpenFlags::How(2) }),
    observe("creat", ObservedCall::Open { dir: None, path: 0, flags: OpenFlags::Creat }),
    names("truncate", &[place(0, EntryChange::Changed(PathAct::Length, FollowLink::Yes))]),
    names("mkdir", &[place(0, EntryChange::Made)]),
    names("mkdirat", &[place_at(0, EntryChange::Made)]),
    names("mknod", &[place(0, EntryChange::Made)]),
    names("mknodat", &[place_at(0, EntryChange::Made)]),
    names("symlink", &[place(1, EntryChange::Made)]),
    names("symlinkat", &[place_at(1, EntryChange::Made)]),
    names("rmdir", &[place(0, EntryChange::Removed)]),
    names("unlink", &[place(0, EntryChange::Removed)]),
    names("unlinkat", &[place_at(0, EntryChange::Removed)]),
    names("rename", &[place(0, EntryChange::Removed), place(1, EntryChange::Replaced)]),
    names("renameat", &[place_at(0, EntryChange::Removed), place_at(2, EntryChange::Replaced)]),
    names("renameat2", &[place_at(0, EntryChange::Removed), place_at(2, EntryChange::Replaced)]),
    names("link", &[place(0, EntryChange::Linked), place(1, EntryChange::Made)]),
    names("linkat", &[place_at(0, EntryChange::Linked), place_at(2, EntryChange::Made)]),
    observe("bind", ObservedCall::Bind),
    observe("kill", ObservedCall::Process(ProcessArg::Number(0), ProcessAct::Signal(1))),
    observe("tkill", ObservedCall::Process(ProcessArg::Number(0), ProcessAct::Signal(1))),
    observe("tgkill", ObservedCall::Process(ProcessArg::Number(0), ProcessAct::Signal(2))),
    observe("rt_sigqueueinfo", ObservedCall::Process(ProcessArg::Number(0), ProcessAct::Signal(1))),
    observe("rt_tgsigqueueinfo", ObservedCall::Process(ProcessArg::Number(0), ProcessAct::Signal(2))),
    observe("pidfd_send_signal", ObservedCall::Process(ProcessArg::Descriptor(0), ProcessAct::Signal(1))),
    observe("pidfd_getfd", ObservedCall::Process(ProcessArg::Descriptor(0), ProcessAct::Descriptor)),
    // PTRACE_ATTACH and PTRACE_SEIZE; other requests address a process that is already attached.
    observe_if("ptrace", &[is_in(0, ALL, &[16, 0x4206])], ObservedCall::Process(ProcessArg::Number(1), ProcessAct::Trace)),
    observe("process_vm_readv", ObservedCall::Process(ProcessArg::Number(0), ProcessAct::Memory)),
    observe("process_vm_writev", ObservedCall::Process(ProcessArg::Number(0), ProcessAct::Memory)),
];

/// Observed only where System V memory is shared with the user's other processes.
const SHARED: &[FilterRule] = &[observe("shmget", ObservedCall::Segment)];

const MODE: &str = "mode";
const OWNER: &str = "owner";
const TIMES: &str = "times";
const ATTRIBUTES: &str = "attributes";

/// Observed only where the tree is read-only: Landlock has no right for these calls.
#[rustfmt::skip]
const OBSERVED_METADATA: &[FilterRule] = &[
    names("chmod", &[place(0, EntryChange::Changed(PathAct::Mode, FollowLink::Yes))]),
    names("fchmodat", &[place_at(0, EntryChange::Changed(PathAct::Mode, FollowLink::Yes))]),
    names("fchmodat2", &[place_at(0, EntryChange::Changed(PathAct::Mode, FollowLink::Flag(3)))]),
    names("chown", &[place(0, EntryChange::Changed(PathAct::Owner, FollowLink::Yes))]),
    names("lchown", &[place(0, EntryChange::Changed(PathAct::Owner, FollowLink::No))]),
    names("fchownat", &[place_at(0, EntryChange::Changed(PathAct::Owner, FollowLink::Flag(4)))]),
    names("utime", &[place(0, EntryChange::Changed(PathAct::Times, FollowLink::Yes))]),
    names("utimes", &[place(0, EntryChange::Changed(PathAct::Times, FollowLink::Yes))]),
    names("futimesat", &[place_at(0, EntryChange::Changed(PathAct::Times, FollowLink::Yes))]),
    names("utimensat", &[place_at(0, EntryChange::Changed(PathAct::Times, FollowLink::Flag(3)))]),
    names("setxattr", &[place(0, EntryChange::Changed(PathAct::Attributes, FollowLink::Yes))]),
    names("lsetxattr", &[place(0, EntryChange::Changed(PathAct::Attributes, FollowLink::No))]),
    names("setxattrat", &[place_at(0, EntryChange::Changed(PathAct::Attributes, FollowLink::Flag(2)))]),
    names("removexattr", &[place(0, EntryChange::Changed(PathAct::Attributes, FollowLink::Yes))]),
    names("lremovexattr", &[place(0, EntryChange::Changed(PathAct::Attributes, FollowLink::No))]),
    names("removexattrat", &[place_at(0, EntryChange::Changed(PathAct::Attributes, FollowLink::Flag(2)))]),
    names("file_setattr", &[place_at(0, EntryChange::Changed(PathAct::Attributes, FollowLink::Flag(4)))]),
];

const fn status(
    call: &'static str,
    subject: MetadataTarget,
    respect: MetadataField,
    what: &'static str,
) -> FilterRule {
    FilterRule {
        call,
        when: &[],
        then: FilterAction::Emulate(EmulatedCall::Metadata(subject, respect)),
        what,
    }
}

const fn of_path(path: usize, follow: FollowLink) -> MetadataTarget {
    MetadataTarget::Path { dir: None, path, follow }
}

const fn of_path_at(dir: usize, follow: FollowLink) -> MetadataTarget {
    MetadataTarget::Path { dir: Some(dir), path: dir + 1, follow }
}

/// Emulated where the tree is not read-only and no project path is granted for writing. This
/// includes calls by descriptor, since Landlock does not check one that was opened for reading.
#[rustfmt::skip]
const EMULATED_METADATA: &[FilterRule] = &[
    status("chmod", of_path(0, FollowLink::Yes), MetadataField::Mode(1), MODE),
    status("fchmod", MetadataTarget::Descriptor(0), MetadataField::Mode(1), MODE),
    status("fchmodat", of_path_at(0, FollowLink::Yes), MetadataField::Mode(2), MODE),
    status("fchmodat2", of_path_at(0, FollowLink::Flag(3)), MetadataField::Mode(2), MODE),
    status("chown", of_path(0, FollowLink::Yes), MetadataField::Owner(1), OWNER),
    status("lchown", of_path(0, FollowLink::No), MetadataField::Owner(1), OWNER),
    status("fchown", MetadataTarget::Descriptor(0), MetadataField::Owner(1), OWNER),
    status("fchownat", of_path_at(0, FollowLink::Flag(4)), MetadataField::Owner(2), OWNER),
    status("utime", of_path(0, FollowLink::Yes), MetadataField::Times(1, TimeUnit::Seconds), TIMES),
    status("utimes", of_path(0, FollowLink::Yes), MetadataField::Times(1, TimeUnit::Micros), TIMES),
    status("futimesat", of_path_at(0, FollowLink::Yes), MetadataField::Times(2, TimeUnit::Micros), TIMES),
    status("utimensat", of_path_at(0, FollowLink::Flag(3)), MetadataField::Times(2, TimeUnit::Nanos), TIMES),
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
