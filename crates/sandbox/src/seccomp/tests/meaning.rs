//! The compiled program agrees with the rules on both machines, and with seccompiler's program.

use super::interpreter::{Data, run};
use super::{MARK, NEW};
use crate::seccomp::bpf_program::{X32, action, compile};
use crate::seccomp::filter_rule::{ArgMatch, ArgTest, FilterAction};
use crate::seccomp::filter_spec::{ExecFilter, MetadataRule, UnixSockets};
use crate::seccomp::rule_table::rules;
use crate::seccomp::syscall_numbers::{Arch, NUMBERS, number};
use crate::seccomp::syscall_rules::SyscallRules;
use crate::seccomp::{FilterSpec, InetSockets, Reporting, TruncateGuard};
use proptest::prelude::*;
use protocol::confinement::{Network, Tier};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::{BTreeMap, BTreeSet};

const BOTH: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

/// Every possible spec.
pub(super) fn plans() -> Vec<FilterSpec> {
    let mut plans = Vec::new();
    for inet in [InetSockets::Refused, InetSockets::Allowed] {
        for unix in [UnixSockets::Refused, UnixSockets::Emulated, UnixSockets::Allowed] {
            for exec in [ExecFilter::Refused, ExecFilter::Allowed(MARK)] {
                for metadata in [MetadataRule::Open, MetadataRule::Emulated, MetadataRule::ReadOnly]
                {
                    for lengths in [TruncateGuard::ByKernel, TruncateGuard::ByFilter] {
                        for reporting in [Reporting::Errno, Reporting::Notify] {
                            plans.push(FilterSpec {
                                inet,
                                unix,
                                exec,
                                metadata,
                                lengths,
                                reporting,
                            });
                        }
                    }
                }
            }
        }
    }
    plans
}

/// The answer in plain Rust, from table to kernel word.
fn expected(policy: &SyscallRules, data: &Data) -> u32 {
    if data.arch != policy.arch.audit() {
        return libc::SECCOMP_RET_KILL_PROCESS;
    }
    if policy.arch == Arch::X86_64 && data.nr >= X32 {
        return libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    }
    match policy.judge(data.nr, &data.args) {
        Some(rule) => action(rule.then, policy.reporting),
        None => libc::SECCOMP_RET_ALLOW,
    }
}

/// Values in rules, their neighbours, and arbitrary ones.
fn argument() -> impl Strategy<Value = u64> {
    let spoken: BTreeSet<u64> = plans()
        .iter()
        .flat_map(rules)
        .flat_map(|rule| rule.when)
        .flat_map(|test| match test.is {
            ArgMatch::In(values) | ArgMatch::NotIn(values) => values.iter().chain([&test.mask]),
            ArgMatch::Unmarked => [].iter().chain([&test.mask]),
        })
        .map(|&value| u64::from(value))
        .chain([MARK.register()])
        .flat_map(|value| [value, value + 1, value.wrapping_sub(1)])
        .collect();
    let spoken = proptest::sample::select(spoken.into_iter().collect::<Vec<_>>());
    prop_oneof![
        3 => spoken.clone(),
        1 => (spoken, any::<u32>()).prop_map(|(low, high)| low & 0xFFFF_FFFF | u64::from(high) << 32),
        1 => (0_u32..64).prop_map(|bit| 1 << bit),
        1 => any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn the_program_agrees_with_the_table(args in proptest::array::uniform6(argument())) {
        for arch in BOTH {
            for spec in plans() {
                let policy = SyscallRules::new(&spec, arch);
                let program = compile(&policy).unwrap();
                for nr in (0..500).chain([X32 - 1, X32, X32 + 59, u32::MAX]) {
                    let data = Data { nr, arch: arch.audit(), args };
                    prop_assert_eq!(run(&program, &data), expected(&policy, &data), "{:?} {} {:?}", arch, nr, spec);
                }
            }
        }
    }

    #[test]
    fn seccompiler_takes_the_same_calls(args in proptest::array::uniform6(argument())) {
        for (arch, target) in [(Arch::X86_64, TargetArch::x86_64), (Arch::Aarch64, TargetArch::aarch64)] {
            let silent = FilterSpec { unix: UnixSockets::Emulated, ..plans()[0] };
            for spec in [silent, FilterSpec::command(Tier::A, Network::Off, NEW, MARK)] {
                let policy = SyscallRules::new(&spec, arch);
                let (ours, theirs) = (compile(&policy).unwrap(), oracle(&policy, target));
                for nr in 0..500 {
                    let data = Data { nr, arch: arch.audit(), args };
                    let allowed = |program| run(program, &data) == libc::SECCOMP_RET_ALLOW;
                    prop_assert_eq!(allowed(&ours), allowed(&theirs), "{:?} {} {:x?}", arch, nr, args);
                }
            }
        }
    }
}

#[test]
fn the_other_machine_and_x32_are_shut_out() {
    let policy = SyscallRules::new(&plans()[0], Arch::X86_64);
    let program = compile(&policy).unwrap();
    let answer = |arch, nr| run(&program, &Data { nr, arch, args: [0; 6] });
    // AUDIT_ARCH_I386, as `int 0x80` reports itself.
    assert_eq!(answer(0x4000_0003, 1), libc::SECCOMP_RET_KILL_PROCESS);
    assert_eq!(answer(0xC000_00B7, 1), libc::SECCOMP_RET_KILL_PROCESS);
    assert_eq!(answer(0xC000_003E, X32 | 1), libc::SECCOMP_RET_ERRNO | 38);
    assert_eq!(answer(0xC000_003E, 1), libc::SECCOMP_RET_ALLOW);
}

#[test]
fn what_runs_all_the_time_is_never_notified() {
    let hot = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_close,
        libc::SYS_mmap,
        libc::SYS_wait4,
        libc::SYS_futex,
        libc::SYS_getdents64,
        libc::SYS_newfstatat,
        libc::SYS_exit_group,
        libc::SYS_sendto,
        libc::SYS_recvfrom,
    ];
    for spec in plans().into_iter().filter(|spec| spec.exec != ExecFilter::Refused) {
        let policy = SyscallRules::new(&spec, Arch::HOST);
        for nr in hot {
            assert_eq!(policy.judge(u32::try_from(nr).unwrap(), &[0; 6]), None);
        }
        let fork = policy.judge(u32::try_from(libc::SYS_clone).unwrap(), &[17, 0, 0, 0, 0, 0]);
        assert_eq!(fork, None);
        let threads = policy.judge(u32::try_from(libc::SYS_clone3).unwrap(), &[0; 6]);
        assert!(matches!(threads.unwrap().then, FilterAction::Fallback(libc::ENOSYS)));
    }
}

/// Each start of a program is shown to the notify supervisor, but for the cage's own.
#[test]
fn one_mark_alone_keeps_a_start_from_being_looked_at() {
    let mark = MARK.register();
    for arch in BOTH {
        for spec in plans() {
            let program = compile(&SyscallRules::new(&spec, arch)).unwrap();
            let answer = |call, args| {
                run(&program, &Data { nr: number(arch, call).unwrap(), arch: arch.audit(), args })
            };
            let with = |register| answer("execve", [1, 2, 3, register, 5, 6]);
            let (marked, others) = match (spec.exec, spec.reporting) {
                (ExecFilter::Refused, Reporting::Errno) => {
                    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
                    (refused, refused)
                }
                (ExecFilter::Refused, Reporting::Notify) => {
                    (libc::SECCOMP_RET_USER_NOTIF, libc::SECCOMP_RET_USER_NOTIF)
                }
                (ExecFilter::Allowed(_), Reporting::Errno) => {
                    (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_ALLOW)
                }
                (ExecFilter::Allowed(_), Reporting::Notify) => {
                    (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_USER_NOTIF)
                }
            };
            assert_eq!(with(mark), marked, "{arch:?} {spec:?}");
            let halves = [mark & 0xFFFF_FFFF, mark >> 32 << 32, mark.swap_bytes()];
            for other in halves.into_iter().chain([0, mark + 1, mark ^ 1 << 63]) {
                assert_eq!(with(other), others, "{arch:?} {spec:?} {other:x}");
            }
            // Only there, and only in this call.
            assert_eq!(answer("execve", [mark, mark, mark, 0, mark, mark]), others);
            assert_eq!(answer("execveat", [mark; 6]), others);
        }
    }
}

#[test]
fn every_rule_names_a_call_that_exists_and_every_number_is_used() {
    let named: BTreeSet<&str> = plans().iter().flat_map(rules).map(|rule| rule.call).collect();
    let known: BTreeSet<&str> = NUMBERS.iter().map(|row| row.0).collect();
    assert_eq!(named, known);
    assert!(NUMBERS.is_sorted_by_key(|row| row.0));
    for (name, ..) in NUMBERS {
        assert!(BOTH.iter().any(|&arch| number(arch, name).is_some()), "{name}");
    }
}

/// Numbers of machines that share the kernel's generic table, as its headers on this machine say.
#[test]
fn numbers_of_aarch64_agree_with_the_headers() {
    let file = "/usr/include/asm-generic/unistd.h";
    let text = std::fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("this test reads the kernel's headers, {file}: {error}"));
    let mut said: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some("#define"), Some(name), Some(value)) =
            (words.next(), words.next(), words.next())
        {
            said.entry(name).or_insert(value);
        }
    }
    let known = |call: &str| -> Option<u32> {
        let value = said.get(format!("__NR_{call}").as_str())?;
        said.get(value).unwrap_or(value).parse().ok()
    };
    let all: u32 = said["__NR_syscalls"].parse().unwrap();
    let mut compared = 0;
    for (name, ..) in NUMBERS {
        match (number(Arch::Aarch64, name), known(name)) {
            // Newer than these headers.
            (Some(ours), None) => assert!(ours >= all, "{name}: the headers do not have it"),
            (ours, theirs) => assert_eq!(ours, theirs, "{name}"),
        }
        compared += usize::from(known(name).is_some());
    }
    assert!(compared > 60, "only {compared} were compared");
}

/// The numbers that libc knows for this machine, as a check on the table.
#[test]
fn numbers_agree_with_libc() {
    for (name, nr) in [
        ("acct", libc::SYS_acct),
        ("bind", libc::SYS_bind),
        ("bpf", libc::SYS_bpf),
        ("clone3", libc::SYS_clone3),
        ("connect", libc::SYS_connect),
        ("fchmodat2", libc::SYS_fchmodat2),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("keyctl", libc::SYS_keyctl),
        ("kill", libc::SYS_kill),
        ("mount", libc::SYS_mount),
        ("openat", libc::SYS_openat),
        ("openat2", libc::SYS_openat2),
        ("personality", libc::SYS_personality),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("prlimit64", libc::SYS_prlimit64),
        ("sched_setaffinity", libc::SYS_sched_setaffinity),
        ("sched_setattr", libc::SYS_sched_setattr),
        ("sched_setparam", libc::SYS_sched_setparam),
        ("sched_setscheduler", libc::SYS_sched_setscheduler),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("ptrace", libc::SYS_ptrace),
        ("quotactl_fd", libc::SYS_quotactl_fd),
        ("renameat2", libc::SYS_renameat2),
        ("setns", libc::SYS_setns),
        ("socket", libc::SYS_socket),
        ("socketpair", libc::SYS_socketpair),
        ("tgkill", libc::SYS_tgkill),
        ("unlinkat", libc::SYS_unlinkat),
        ("unshare", libc::SYS_unshare),
        ("utimensat", libc::SYS_utimensat),
        ("vhangup", libc::SYS_vhangup),
    ] {
        assert_eq!(number(Arch::HOST, name), u32::try_from(nr).ok(), "{name}");
    }
}

/// seccompiler's program for the same rules; it has one answer for all, which is enough here.
fn oracle(policy: &SyscallRules, target: TargetArch) -> BpfProgram {
    let mut map: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (nr, rules) in &policy.calls {
        let always = rules.iter().any(|rule| rule.when.is_empty());
        let list =
            if always { vec![] } else { rules.iter().flat_map(|rule| spread(rule.when)).collect() };
        map.insert(i64::from(*nr), list);
    }
    let filter = SeccompFilter::new(map, SeccompAction::Allow, SeccompAction::Errno(1), target);
    filter.unwrap().try_into().unwrap()
}

/// Tests that all hold, as seccompiler's alternatives of conjunctions.
fn spread(tests: &[ArgTest]) -> Vec<SeccompRule> {
    let mut rows: Vec<Vec<SeccompCondition>> = vec![vec![]];
    for test in tests {
        let choices = alternatives(test);
        rows = rows
            .iter()
            .flat_map(|row| choices.iter().map(|choice| [row.clone(), choice.clone()].concat()))
            .collect();
    }
    rows.into_iter().map(|row| SeccompRule::new(row).unwrap()).collect()
}

fn alternatives(test: &ArgTest) -> Vec<Vec<SeccompCondition>> {
    let arg = u8::try_from(test.arg).unwrap();
    let one = |op, value: u32| {
        SeccompCondition::new(arg, SeccompCmpArgLen::Dword, op, u64::from(value)).unwrap()
    };
    let mask = u64::from(test.mask);
    match test.is {
        ArgMatch::In(values) => {
            values.iter().map(|&v| vec![one(SeccompCmpOp::MaskedEq(mask), v)]).collect()
        }
        ArgMatch::NotIn(values) if test.mask == u32::MAX => {
            vec![values.iter().map(|&v| one(SeccompCmpOp::Ne, v)).collect()]
        }
        ArgMatch::NotIn(&[0]) => (0..32)
            .map(|bit| 1_u32 << bit)
            .filter(|bit| test.mask & bit != 0)
            .map(|bit| vec![one(SeccompCmpOp::MaskedEq(u64::from(bit)), bit)])
            .collect(),
        ArgMatch::Unmarked => {
            let (qword, register) = (SeccompCmpArgLen::Qword, MARK.register());
            vec![vec![SeccompCondition::new(arg, qword, SeccompCmpOp::Ne, register).unwrap()]]
        }
        ArgMatch::NotIn(values) => (0..=test.mask)
            .filter(|v| !values.contains(v))
            .map(|v| vec![one(SeccompCmpOp::MaskedEq(mask), v)])
            .collect(),
    }
}
