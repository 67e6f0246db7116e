//! A state directory on a disk that is full: a small one is mounted for it, which takes root.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::anthropic::{Answer, Server, call};
use support::{Desk, run};

/// A file system of its own on the desk's state, taken away with it.
struct Disk(PathBuf);

impl Disk {
    fn of(desk: &Desk, size: &str) -> Self {
        assert!(support::is_root(), "this test mounts a file system; run it as root");
        support::needs("mount");
        let at = desk.outside().join("state");
        let options = format!("size={size}");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &options, "none"]).arg(&at);
        assert!(command.status().unwrap().success());
        Self(at)
    }

    fn fill(&self) -> PathBuf {
        fill(&self.0)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Takes all the room that is left.
fn fill(disk: &Path) -> PathBuf {
    let filler = disk.join("filler");
    let _ = fs::write(&filler, vec![1; 8 << 20]);
    filler
}

fn only_session(desk: &Desk) -> String {
    let mut sessions = fs::read_dir(desk.state().join("sessions")).unwrap().flatten();
    sessions.next().unwrap().file_name().into_string().unwrap()
}

#[test]
fn a_full_disk_lets_no_mutation_start_and_says_so() {
    let desk = Desk::new();
    let disk = Disk::of(&desk, "2m");
    let full = disk.0.clone();
    let server = Server::answering(move |n, _| match n {
        1 => {
            fill(&full);
            let command = format!("echo x >> ran; : {}", "y".repeat(9000));
            Answer::says([call("toolu_1", "bash", &json!({ "command": command }).to_string())])
        }
        _ => Answer::text("on"),
    });
    let ran = desk.ask(&server, &["--permission-mode", "auto", "--timeout", "20"]);
    assert!(!desk.project().join("ran").exists());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.result().contains("disk"), "{ran:?}");
    fs::remove_file(disk.0.join("filler")).unwrap();
    let again = desk.ask(&server, &["--resume", &only_session(&desk)]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

/// Nothing begins, the sentence names the place and the way on, and nothing half made stays.
#[test]
fn a_disk_that_is_full_from_the_start_is_named() {
    let desk = Desk::new();
    let disk = Disk::of(&desk, "1m");
    let filler = disk.fill();
    let server = Server::answering(|_, _| Answer::text("here"));
    let refused = run(desk.with_server(&server, &["-p", "x"]));
    assert_ne!(refused.code, 0, "{refused:?}");
    let err = refused.err.to_lowercase();
    assert!(err.contains("no space") || err.contains("full"), "{refused:?}");
    assert!(refused.err.contains(&desk.state().display().to_string()), "{refused:?}");
    assert!(server.requests().is_empty(), "nothing is asked that cannot be written down");
    fs::remove_file(filler).unwrap();
    let ran = run(desk.with_server(&server, &["-p", "x"]));
    assert_eq!(ran.code, 0, "the positive control: {ran:?}");
}
