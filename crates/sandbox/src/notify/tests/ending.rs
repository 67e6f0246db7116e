//! The notify supervisor ends when no process is left under the filter, and on request.

use super::{NotifyConfig, test_config};
use crate::notify::{NotifySupervisor, RefusalLog, SearchPath};
use crate::seccomp::tests::child::{raw, take, under};
use crate::seccomp::tests::{MARK, NEW};
use crate::seccomp::{CompiledFilter, FilterSpec};
use protocol::confinement::{Network, Tier};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn plain() -> NotifyConfig {
    test_config(FilterSpec::command(Tier::B, Network::Off, NEW, MARK))
}

#[test]
fn it_ends_with_the_last_process() {
    let outcome = under(plain(), || vec![raw(libc::SYS_setns, [1; 6])]);
    assert_eq!(outcome.record.refusals.len(), 1);
    assert!(outcome.alone, "the thread had ended before finish was called");
}

#[test]
fn a_caller_that_dies_while_it_waits_harms_nobody() {
    let outcome = under(plain(), || {
        let mut children = Vec::new();
        for _ in 0..8 {
            // SAFETY: the copy makes one refused call after the other until it is killed.
            #[allow(unsafe_code)]
            let child = unsafe { libc::fork() };
            if child == 0 {
                loop {
                    raw(libc::SYS_setns, [1; 6]);
                }
            }
            children.push(child);
        }
        std::thread::sleep(Duration::from_millis(50));
        for child in children {
            raw(libc::SYS_kill, [child as u64, 9, 0, 0, 0, 0]);
        }
        vec![raw(libc::SYS_chroot, [1; 6])]
    });
    assert_eq!(outcome.answers, [-1]);
    assert!(outcome.record.refusals.iter().all(|line| line.errno == libc::EPERM));
    assert!(outcome.alone);
}

#[test]
fn finish_does_not_wait_for_a_busy_command() {
    let filter = CompiledFilter::new(&plain().spec).unwrap();
    let (mut number, mut tell) = std::io::pipe().unwrap();
    // SAFETY: the child makes calls until it is killed and never returns here.
    #[allow(unsafe_code)]
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let fd = filter.install().unwrap().unwrap();
        tell.write_all(&std::os::fd::AsRawFd::as_raw_fd(&fd).to_le_bytes()).unwrap();
        loop {
            raw(libc::SYS_setns, [1; 6]);
        }
    }
    let mut bytes = [0; 4];
    number.read_exact(&mut bytes).unwrap();
    let listener = NotifySupervisor::start(take(pid, i32::from_le_bytes(bytes)), plain()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    let record = listener.finish();
    let took = begun.elapsed();
    raw(libc::SYS_kill, [pid as u64, 9, 0, 0, 0, 0]);
    // SAFETY: waits for our own child.
    #[allow(unsafe_code)]
    unsafe {
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(record.refusals.len(), 1);
    assert!(record.refusals[0].count > 1);
}

/// As when the command makes a socket wait right after the look.
#[test]
fn finish_leaves_a_hanging_thread_behind_and_keeps_what_it_wrote() {
    let (stopped, stop) = std::io::pipe().unwrap();
    let (ending, ended) = std::sync::mpsc::channel();
    let record = Arc::new(Mutex::new(RefusalLog { refusals: Vec::new(), uncounted: 7 }));
    let thread = std::thread::spawn(move || {
        let _held = (ending, stopped);
        std::thread::sleep(Duration::from_secs(20));
    });
    let listener = NotifySupervisor {
        record,
        search_path: SearchPath::default(),
        stop: Some(stop),
        ended,
        thread: Some(thread),
    };
    let begun = Instant::now();
    assert_eq!(listener.finish().uncounted, 7);
    assert!(begun.elapsed() < Duration::from_secs(10));
}
