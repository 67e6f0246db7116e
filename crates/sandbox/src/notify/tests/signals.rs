//! Reaching for processes outside is in the record, reaching for own ones is not.

use super::{lines, test_config};
use crate::notify::{NotifyConfig, OutsideSignals};
use crate::seccomp::FilterSpec;
use crate::seccomp::tests::child::{raw, under};
use crate::seccomp::tests::{MARK, NEW};
use landlock::{Ruleset, RulesetAttr, RulesetStatus, Scope};
use protocol::confinement::{Network, RefusalKind, Tier};
use std::process::Command;

fn lock() {
    let ruleset = Ruleset::default().scope(Scope::Signal).unwrap().create().unwrap();
    let status = ruleset.restrict_self().unwrap();
    assert_eq!(status.ruleset, RulesetStatus::FullyEnforced, "Landlock ABI 6 is needed");
}

#[test]
fn a_victim_outside_is_out_of_reach_and_each_try_is_recorded() {
    let mut victim = Command::new("sleep").arg("60").spawn().unwrap();
    // Not a child of the runner would be the usual victim; the runner here is this process, and
    // its own parent is outside for certain.
    let parent = u64::from(std::os::unix::process::parent_id());
    let spec = FilterSpec::command(Tier::B, Network::Off, NEW, MARK);
    let outcome =
        under(NotifyConfig { signals: OutsideSignals::Refused, ..test_config(spec) }, || {
            lock();
            let mut byte = [0_u8];
            let local = [byte.as_mut_ptr() as u64, 1];
            let remote = [0x1000_u64, 1];
            vec![
                raw(libc::SYS_kill, [parent, 0, 0, 0, 0, 0]),
                raw(libc::SYS_tgkill, [parent, parent, 0, 0, 0, 0]),
                raw(libc::SYS_kill, [(-(parent as i64)) as u64, 0, 0, 0, 0, 0]).min(0),
                raw(libc::SYS_ptrace, [libc::PTRACE_ATTACH as u64, parent, 0, 0, 0, 0]),
                raw(
                    libc::SYS_process_vm_readv,
                    [parent, local.as_ptr() as u64, 1, remote.as_ptr() as u64, 1, 0],
                ),
            ]
        });
    victim.kill().unwrap();
    victim.wait().unwrap();
    let denied = -i64::from(libc::EPERM);
    assert_eq!(outcome.answers[..2], [denied, denied]);
    assert_eq!(outcome.answers[3..], [denied, denied]);
    let pid = format!("pid {parent}");
    let found = lines(&outcome.record.refusals);
    for (call, words) in [
        ("kill", format!("signal 0 to {pid}")),
        ("tgkill", format!("signal 0 to {pid}")),
        ("ptrace", format!("attaching to {pid}")),
        ("process_vm_readv", format!("memory of {pid}")),
    ] {
        let line = (RefusalKind::Predicted, call, words.as_str(), libc::EPERM);
        assert!(found.contains(&line), "{call}: {found:?}");
    }
}

#[test]
fn own_processes_are_reached_and_nothing_is_recorded() {
    let spec = FilterSpec::command(Tier::B, Network::Off, NEW, MARK);
    let outcome =
        under(NotifyConfig { signals: OutsideSignals::Refused, ..test_config(spec) }, || {
            lock();
            let own = u64::from(std::process::id());
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            let number = u64::from(child.id());
            let descriptor = raw(libc::SYS_pidfd_open, [number, 0, 0, 0, 0, 0]);
            let mut answers = vec![
                raw(libc::SYS_kill, [own, 0, 0, 0, 0, 0]),
                raw(libc::SYS_tgkill, [own, own, 0, 0, 0, 0]),
                raw(libc::SYS_kill, [0, 0, 0, 0, 0, 0]),
                raw(libc::SYS_kill, [number, 0, 0, 0, 0, 0]),
                raw(libc::SYS_ptrace, [libc::PTRACE_SEIZE as u64, number, 0, 0, 0, 0]),
                raw(libc::SYS_pidfd_send_signal, [descriptor as u64, 9, 0, 0, 0, 0]),
            ];
            child.wait().unwrap();
            answers.push(raw(libc::SYS_kill, [number, 0, 0, 0, 0, 0]));
            answers
        });
    assert_eq!(outcome.answers, [0, 0, 0, 0, 0, 0, -i64::from(libc::ESRCH)]);
    assert_eq!(lines(&outcome.record.refusals), []);
}

#[test]
fn signals_that_the_kernel_lets_through_are_not_called_refused() {
    let parent = u64::from(std::os::unix::process::parent_id());
    let spec = FilterSpec::command(Tier::B, Network::Off, NEW, MARK);
    let outcome = under(test_config(spec), || vec![raw(libc::SYS_kill, [parent, 0, 0, 0, 0, 0])]);
    assert_eq!(lines(&outcome.record.refusals), []);
}
