//! The kernel's answers under the filter, silent and with the notify supervisor's record.

use super::child::{raw, under, without_listener};
use super::{MARK, NEW};
use crate::notify::tests::test_config;
use crate::seccomp::filter_rule::FilterAction;
use crate::seccomp::filter_spec::ExecFilter;
use crate::seccomp::rule_table::rules;
use crate::seccomp::syscall_numbers::{Arch, number};
use crate::seccomp::{FilterSpec, Reporting};
use protocol::confinement::{Network, RefusalKind, Tier};

/// A call that is refused by its arguments: name, arguments, errno, words in the record.
type Case = (&'static str, [u64; 6], i32, &'static str);

const EPERM: i32 = libc::EPERM;
const NO_FAMILY: i32 = libc::EAFNOSUPPORT;
const NO_PROTOCOL: i32 = libc::EPROTONOSUPPORT;
const CLOEXEC: u64 = libc::SOCK_CLOEXEC as u64;

/// Refused under every spec.
#[rustfmt::skip]
const BY_ARGUMENT: &[Case] = &[
    ("clone", [0x1000_0000 | 17, 0, 0, 0, 0, 0], EPERM, "new namespaces: user"),
    ("unshare", [0x1002_0000, 0, 0, 0, 0, 0], EPERM, "new namespaces: user, mount"),
    ("unshare", [0x80, 0, 0, 0, 0, 0], EPERM, "new namespaces: time"),
    ("personality", [0x0400_0000, 0, 0, 0, 0, 0], EPERM, "personality 0x4000000"),
    ("prlimit64", [1, 0, 0, 0, 0, 0], EPERM, "limits of pid 1"),
    ("setpriority", [2, 0, 5, 0, 0, 0], EPERM, "the priority of all processes of a user"),
    ("ioprio_set", [3, 0, 0, 0, 0, 0], EPERM, "the priority of all processes of a user"),
    ("ioctl", [0, 0x5412, 0, 0, 0, 0], EPERM, "TIOCSTI, typing into the terminal"),
    ("ioctl", [0, 0x541C, 0, 0, 0, 0], EPERM, "TIOCLINUX, driving the console"),
    ("ioctl", [0, 0xFFFF_FFFF_0000_5412, 0, 0, 0, 0], EPERM, "TIOCSTI, typing into the terminal"),
    ("ioctl", [0, 0x541D, 0, 0, 0, 0], EPERM, "TIOCCONS, taking the console's output"),
    ("ioctl", [0, 0x5423, 0, 0, 0, 0], EPERM, "TIOCSETD, another line discipline"),
    ("socket", [40, 1 | CLOEXEC, 0, 0, 0, 0], NO_FAMILY, "AF_VSOCK stream socket"),
    ("socket", [38, 5, 0, 0, 0, 0], NO_FAMILY, "AF_ALG packet sequence socket"),
    ("socket", [17, 3, 0x300, 0, 0, 0], NO_FAMILY, "AF_PACKET raw socket, protocol 768"),
    ("socket", [44, 3, 0, 0, 0, 0], NO_FAMILY, "AF_XDP raw socket"),
    ("socket", [16, 3, 9, 0, 0, 0], NO_PROTOCOL, "AF_NETLINK raw socket, protocol 9"),
    ("socketpair", [30, 1, 0, 0, 0, 0], NO_FAMILY, "AF_TIPC stream socket, as a pair"),
];

/// Refused where internet sockets are allowed.
#[rustfmt::skip]
const WITH_INET: &[Case] = &[
    ("socket", [2, 3, 1, 0, 0, 0], EPERM, "AF_INET raw socket, protocol 1"),
    ("socket", [10, 3, 255, 0, 0, 0], EPERM, "AF_INET6 raw socket, protocol 255"),
    ("socket", [2, 1, 262, 0, 0, 0], NO_PROTOCOL, "AF_INET stream socket, protocol 262 (MPTCP)"),
];

/// Refused where they are not.
#[rustfmt::skip]
const WITHOUT_INET: &[Case] = &[
    ("socket", [2, 1 | CLOEXEC, 0, 0, 0, 0], NO_FAMILY, "AF_INET stream socket"),
    ("socket", [2, 2, 17, 0, 0, 0], NO_FAMILY, "AF_INET datagram socket"),
    ("socket", [10, 1, 6, 0, 0, 0], NO_FAMILY, "AF_INET6 stream socket"),
    ("socket", [2, 1, 262, 0, 0, 0], NO_FAMILY, "AF_INET stream socket, protocol 262 (MPTCP)"),
];

/// Unix sockets whose address is chosen at each sending.
#[rustfmt::skip]
const CARRIED: &[Case] = &[
    ("socket", [1, 2, 0, 0, 0, 0], EPERM, "AF_UNIX datagram socket"),
    ("socket", [1, 3, 0, 0, 0, 0], EPERM, "AF_UNIX raw socket"),
];

/// Refused where no unix datagram socket is allowed.
#[rustfmt::skip]
const PAIR: &[Case] =
    &[("socketpair", [1, 2, 0, 0, 0, 0], EPERM, "AF_UNIX datagram socket, as a pair")];

fn cases(spec: &FilterSpec, more: &[&[Case]]) -> Vec<(i64, [u64; 6], i32, String, &'static str)> {
    let mut all = Vec::new();
    for rule in rules(spec) {
        if let (FilterAction::Refuse(errno) | FilterAction::Fallback(errno), true, Some(nr)) =
            (rule.then, rule.when.is_empty(), number(Arch::HOST, rule.call))
        {
            // Ones: were the filter not there, each of these would fail for another reason.
            all.push((i64::from(nr), [1; 6], errno, rule.what.to_owned(), rule.call));
        }
    }
    for (call, args, errno, words) in more.iter().copied().flatten() {
        let nr = number(Arch::HOST, call).unwrap();
        all.push((i64::from(nr), *args, *errno, (*words).to_owned(), call));
    }
    all
}

fn refused_silently(spec: FilterSpec, more: &[&[Case]]) {
    let cases = cases(&spec, more);
    let outcome = without_listener(spec, || cases.iter().map(|case| raw(case.0, case.1)).collect());
    assert_eq!((outcome.status, outcome.answers.len()), (0, cases.len()));
    for (case, answer) in cases.iter().zip(outcome.answers) {
        assert_eq!(answer, -i64::from(case.2), "{} {:x?}", case.4, case.1);
    }
}

fn refused_and_recorded(spec: FilterSpec, more: &[&[Case]]) {
    let cases = cases(&spec, more);
    let outcome =
        under(test_config(spec), || cases.iter().map(|case| raw(case.0, case.1)).collect());
    assert_eq!((outcome.status, outcome.answers.len()), (0, cases.len()));
    let mut lines = outcome.record.refusals.iter();
    for (case, answer) in cases.iter().zip(&outcome.answers) {
        assert_eq!(*answer, -i64::from(case.2), "{} {:x?}", case.4, case.1);
        if case.2 == libc::ENOSYS {
            continue;
        }
        let line = lines.next().unwrap_or_else(|| panic!("no line for {}", case.4));
        assert_eq!((line.syscall.as_str(), &line.subject.to_string()), (case.4, &case.3));
        assert_eq!((line.kind, line.errno), (RefusalKind::Refused, case.2));
        assert_eq!((line.pid, line.count), (outcome.pid, 1));
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn a_process_that_confines_itself_is_refused_silently() {
    refused_silently(FilterSpec::in_process(Network::Off, NEW), &[BY_ARGUMENT, WITHOUT_INET, PAIR]);
    refused_silently(FilterSpec::in_process(Network::On, NEW), &[BY_ARGUMENT, WITH_INET, PAIR]);
}

#[test]
fn a_command_without_a_listener_is_refused_silently() {
    let strict = |network| FilterSpec {
        reporting: Reporting::Errno,
        ..FilterSpec::command(Tier::B, network, NEW, MARK)
    };
    let unix: &[Case] = &[("socket", [1, 1, 0, 0, 0, 0], NO_FAMILY, "AF_UNIX stream socket")];
    refused_silently(strict(Network::Off), &[BY_ARGUMENT, WITHOUT_INET, PAIR, unix]);
    refused_silently(strict(Network::On), &[BY_ARGUMENT, WITH_INET, PAIR, unix]);
}

#[test]
fn each_refused_call_of_a_command_is_in_the_record() {
    refused_and_recorded(
        FilterSpec::command(Tier::A, Network::Off, NEW, MARK),
        &[BY_ARGUMENT, WITH_INET],
    );
    refused_and_recorded(
        FilterSpec::command(Tier::B, Network::Off, NEW, MARK),
        &[BY_ARGUMENT, WITHOUT_INET, PAIR, CARRIED],
    );
    refused_and_recorded(
        FilterSpec::command(Tier::B, Network::On, NEW, MARK),
        &[BY_ARGUMENT, WITH_INET, PAIR, CARRIED],
    );
}

#[test]
fn exec_is_refused_to_tools_and_allowed_to_commands() {
    let program = c"/bin/true";
    let exec = || {
        let arguments = [program.as_ptr(), std::ptr::null()];
        let none = [std::ptr::null::<libc::c_char>()];
        vec![raw(
            libc::SYS_execve,
            [program.as_ptr() as u64, arguments.as_ptr() as u64, none.as_ptr() as u64, 0, 0, 0],
        )]
    };
    let refused = without_listener(FilterSpec::in_process(Network::Off, NEW), exec);
    assert_eq!(refused.answers, [-i64::from(libc::EPERM)]);
    let mut spec = FilterSpec::in_process(Network::Off, NEW);
    spec.exec = ExecFilter::Allowed(MARK);
    let allowed = without_listener(spec, exec);
    assert_eq!((allowed.answers.len(), allowed.status), (0, 0), "the other program ended well");
}

#[test]
fn refusals_in_a_loop_are_one_line() {
    let outcome = under(test_config(FilterSpec::command(Tier::B, Network::Off, NEW, MARK)), || {
        (0..1000).map(|_| raw(libc::SYS_setns, [1; 6])).collect()
    });
    assert!(outcome.answers.iter().all(|&answer| answer == -1));
    assert_eq!(outcome.record.refusals.len(), 1);
    assert_eq!(outcome.record.refusals[0].count, 1000);
    assert_eq!(outcome.record.uncounted, 0);
}

#[test]
fn a_flood_of_different_refusals_is_counted() {
    let outcome = under(test_config(FilterSpec::command(Tier::B, Network::Off, NEW, MARK)), || {
        (0..1000).map(|n| raw(libc::SYS_prlimit64, [0x4000_0000 + n, 0, 0, 0, 0, 0])).collect()
    });
    assert_eq!(outcome.record.refusals.len(), 200);
    assert_eq!(outcome.record.uncounted, 800);
}

#[test]
fn own_limits_by_own_number_are_no_refusal() {
    let outcome = under(test_config(FilterSpec::command(Tier::B, Network::Off, NEW, MARK)), || {
        let own = u64::from(std::process::id());
        let parent = u64::from(std::os::unix::process::parent_id());
        [0, own, parent].map(|pid| raw(libc::SYS_prlimit64, [pid, 7, 0, 0, 0, 0])).to_vec()
    });
    assert_eq!(outcome.answers, [0, 0, -1]);
    assert_eq!(outcome.record.refusals.len(), 1);
}

#[test]
fn own_processes_are_scheduled_and_no_others() {
    let outcome = under(test_config(FilterSpec::command(Tier::B, Network::Off, NEW, MARK)), || {
        let own = u64::from(std::process::id());
        let parent = u64::from(std::os::unix::process::parent_id());
        let child = std::process::Command::new("sleep").arg("60").spawn();
        let Ok(mut child) = child else { return Vec::new() };
        let nobody = 0x3FFF_FFFF;
        let processors = [!0_u64; 128];
        let mut answers = Vec::new();
        for pid in [0, own, u64::from(child.id()), nobody, parent] {
            answers.extend([
                raw(libc::SYS_setpriority, [0, pid, 19, 0, 0, 0]),
                raw(libc::SYS_sched_setaffinity, [pid, 1024, processors.as_ptr() as u64, 0, 0, 0]),
            ]);
        }
        let _ = child.kill();
        let _ = child.wait();
        answers
    });
    let none = -i64::from(libc::ESRCH);
    assert_eq!(outcome.answers, [0, 0, 0, 0, 0, 0, none, none, -1, -1]);
    let found: Vec<_> =
        outcome.record.refusals.iter().map(|line| line.subject.to_string()).collect();
    let parent = std::process::id();
    let words = ["the priority", "the processors"].map(|what| format!("{what} of pid {parent}"));
    assert_eq!(found, words);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn x32_calls_do_not_exist() {
    let outcome = under(test_config(FilterSpec::command(Tier::B, Network::Off, NEW, MARK)), || {
        vec![raw(0x4000_0000 | 39, [0; 6]), raw(39, [0; 6])]
    });
    assert_eq!(outcome.answers, [-i64::from(libc::ENOSYS), i64::from(outcome.pid)]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_32_bit_door_ends_the_process_by_sigsys() {
    let outcome = under(test_config(FilterSpec::command(Tier::B, Network::Off, NEW, MARK)), || {
        // SAFETY: getpid by the old door; it changes nothing but rax, even where it is allowed.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::asm!("int 0x80", inout("rax") 20_u64 => _);
        }
        vec![1]
    });
    assert_eq!(outcome.answers, [0_i64; 0]);
    assert!(libc::WIFSIGNALED(outcome.status));
    assert_eq!(libc::WTERMSIG(outcome.status), libc::SIGSYS);
}
