//! A state directory or a project on a disk that is full: a small one is mounted for it, which takes root.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, run};
use protocol::client::ClientEvent;
use protocol::judgement::PermissionMode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A file system of its own, taken away with it.
struct Disk(PathBuf);

impl Disk {
    /// On the desk's state.
    fn of(desk: &Desk, size: &str) -> Self {
        Self::at(desk.outside().join("state"), size)
    }

    fn at(at: PathBuf, size: &str) -> Self {
        assert!(crate::support::is_root(), "this test mounts a file system; run it as root");
        crate::support::needs("mount");
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

/// The problems that the daemon and `doctor` report.
fn troubles(desk: &Desk) -> (String, String) {
    (run(desk.agentd(&["daemon", "status"])).out, run(desk.agentd(&["doctor"])).out)
}

/// Its log is on the full disk too, and what cannot be logged must not end it.
#[test]
fn a_daemon_whose_log_has_no_room_lives_on() {
    let desk = Desk::new();
    let disk = Disk::of(&desk, "3m");
    let daemon = desk.daemon();
    fill(&disk.0);
    let log = desk.state().join("log/supervisor.log");
    let full = || fs::metadata(&log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
    // Each visit is a line; what is left of the log's last block takes some.
    let mut sizes = Vec::new();
    for _ in 0..60 {
        let status = run(desk.agentd(&["daemon", "status"]));
        assert_eq!(status.code, 0, "{status:?}");
        sizes.push(full().len());
    }
    assert_eq!(sizes[58], sizes[59], "the control: the log takes no more");
    assert!(run(desk.agentd(&["daemon", "status"])).out.contains(&daemon.pid.to_string()));
}

/// A daemon outlives the run that met the full disk, and so does the session in it.
#[test]
fn a_daemon_takes_calls_again_once_a_full_disk_has_room() {
    let desk = Desk::new();
    let disk = Disk::of(&desk, "3m");
    let full = disk.0.clone();
    let server = Server::answering(move |n, _| match n {
        1 => {
            fill(&full);
            let command = format!("echo one >> ran; : {}", "y".repeat(9000));
            Answer::says([call("toolu_1", "bash", &json!({ "command": command }).to_string())])
        }
        2 | 4 => {
            let input = format!(r#"{{"command":"echo {n} >> ran"}}"#);
            Answer::says([call("toolu_2", "bash", &input)])
        }
        _ => Answer::text("on"),
    });
    let _daemon = desk.daemon();
    let (status, doctor) = troubles(&desk);
    assert!(!status.contains("trouble"), "the control: {status}");
    assert!(doctor.contains("ok      daemon"), "the control: {doctor}");
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.mode = Some(PermissionMode::Auto);
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    let reason = wire.event("the session is read-only", |event| match event {
        ClientEvent::Degraded { reason } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains(&format!("`agentd stop {session}`")), "{reason}");
    let (status, doctor) = troubles(&desk);
    for said in [&status, &doctor] {
        assert!(said.contains(&session.0) && said.contains("is the disk full?"), "{said}");
    }
    let restarted = run(desk.agentd(&["restart", &session.0]));
    assert!(restarted.code != 0 && restarted.err.contains("disk"), "{restarted:?}");

    fs::remove_file(disk.0.join("filler")).unwrap();
    assert!(troubles(&desk).0.contains(&session.0), "the session is read-only still");
    let second = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!((second.code, second.result().as_str()), (0, "on"), "{second:?}");
    assert_eq!(desk.read("ran"), "2\n");
    let restarted = run(desk.agentd(&["restart", &session.0]));
    let way_on = format!("`agentd stop {session}`");
    assert!(restarted.code != 0 && restarted.err.contains(&way_on), "{restarted:?}");
    assert_eq!(run(desk.agentd(&["stop", &session.0])).code, 0);
    let flags = ["--permission-mode", "auto", "--resume", &session.0];
    let again = desk.ask(&server, &flags);
    assert_eq!((again.code, again.result().as_str()), (0, "on"), "{again:?}");
    assert_eq!(desk.read("ran"), "2\n4\n");
    assert!(!troubles(&desk).0.contains("trouble"));
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{verified:?}");
}

/// The call that no record could be written of did not run, and its record follows.
#[test]
fn records_that_a_full_disk_refused_are_written_when_it_has_room() {
    let desk = Desk::new();
    let audit = desk.state().join("audit");
    fs::create_dir_all(&audit).unwrap();
    let disk = Disk::at(audit.clone(), "1m,mode=700");
    let full = disk.0.clone();
    let server = Server::answering(move |n, _| match n {
        1 => {
            fill(&full);
            let command = format!("echo one >> ran; : {}", "y".repeat(9000));
            Answer::says([call("toolu_1", "bash", &json!({ "command": command }).to_string())])
        }
        2 => Answer::says([call("toolu_2", "bash", r#"{"command":"echo 2 >> ran"}"#)]),
        _ => Answer::text("on"),
    });
    let _daemon = desk.daemon();
    let refused = desk.ask(&server, &["--permission-mode", "auto", "--timeout", "20"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    let (status, doctor) = troubles(&desk);
    for said in [&status, &doctor] {
        assert!(said.contains("the audit log takes no records"), "{said}");
    }
    fs::remove_file(disk.0.join("filler")).unwrap();
    let (status, _) = troubles(&desk);
    assert!(!status.contains("trouble"), "{refused:?} {status}");
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(desk.read("ran"), "2\n");
    let of = |event: &str| {
        let lines = desk.audit();
        lines.iter().filter(|line| line["event"] == event).count()
    };
    assert_eq!((of("decided"), of("ended")), (2, 2), "{:#?}", desk.audit());
    let session = refused.json()["session_id"].as_str().unwrap().to_owned();
    let resumed = desk.ask(&server, &["--resume", &session]);
    assert_eq!((resumed.code, resumed.result().as_str()), (0, "on"), "{resumed:?}");
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

/// Records of another supervisor come between. They are not taken for the record that the disk
/// refused.
#[test]
fn a_record_that_a_full_disk_refused_is_not_lost_behind_another_supervisors() {
    let desk = Desk::new();
    let audit = desk.state().join("audit");
    fs::create_dir_all(&audit).unwrap();
    let disk = Disk::at(audit, "1m,mode=700");
    let bash = |n: usize, command: &str| {
        let input = json!({ "command": command }).to_string();
        Answer::says([call(&format!("toolu_{n}"), "bash", &input)])
    };
    let server = Server::answering(move |n, _| match n {
        // Its record is longer than the rest of the log's last page.
        1 => bash(
            n,
            "touch begun; until [ -e go ]; do sleep 0.1; done; \
             for i in {1..60}; do echo x > /etc/refused-$i; done 2> /dev/null; true",
        ),
        2 | 4 => bash(n, "true"),
        _ => Answer::text("on"),
    });
    let _daemon = desk.daemon();
    let auto = ["-p", "x", "--permission-mode", "auto"];
    let mut waiting = desk.with_server(&server, &auto).spawn().unwrap();
    crate::support::until("the command runs", || desk.project().join("begun").exists());
    let mut beside = desk.with_server(&server, &auto);
    let runtime = tempfile::tempdir().unwrap();
    beside.env("XDG_RUNTIME_DIR", runtime.path());
    assert_eq!(run(beside).code, 0);
    let filler = disk.fill();
    fs::write(desk.project().join("go"), "").unwrap();
    waiting.wait().unwrap();
    fs::remove_file(filler).unwrap();
    assert_eq!(desk.ask(&server, &["--permission-mode", "auto"]).code, 0);
    let of = |event: &str| desk.audit().iter().filter(|line| line["event"] == event).count();
    assert_eq!((of("decided"), of("ended")), (3, 3), "{:#?}", desk.audit());
}

/// The command runs, the list marks it as not undoable, and earlier copies stay whole.
#[test]
fn a_full_disk_of_copies_holds_no_command_up_and_that_is_said() {
    let desk = Desk::new();
    fs::create_dir_all(desk.state().join("store")).unwrap();
    let disk = Disk::at(desk.state().join("store"), "2m");
    desk.write("a", "before");
    let full = disk.0.clone();
    let says = |tool: &str, input: Value| Answer::says([call("toolu_1", tool, &input.to_string())]);
    let server = Server::answering(move |n, _| match n {
        1 => says("bash", json!({"command": "echo x > a"})),
        2 => {
            let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
            for name in ["b", "c", "d"] {
                fs::write(full.join("../../../project").join(name), &bytes).unwrap();
            }
            fill(&full);
            says("bash", json!({"command": "echo y > a"}))
        }
        3 => says("undo_list", json!({})),
        4 => {
            fs::remove_file(full.join("filler")).unwrap();
            says("undo_list", json!({}))
        }
        5 => says("undo_restore", json!({"id": 1})),
        _ => Answer::text("on"),
    });
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let said: Vec<String> = server.requests()[1..]
        .iter()
        .map(|request| request.body["messages"].as_array().unwrap().last().unwrap().to_string())
        .collect();
    assert_eq!(desk.read("a"), "y\n", "{said:?}");
    assert!(said[3].contains("1 bash") && said[3].contains("2 bash"), "{said:?}");
    assert!(said[3].contains("not covered: stored data could not be used"), "{said:?}");
    // Later changes prevent the undo, as always; the copy itself is there.
    assert!(
        said[4].contains("nothing was restored, because these files have changed since: a"),
        "{said:?}"
    );
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

/// A disk that takes no write and gives no answer until it thaws.
struct Frozen(PathBuf);

impl Frozen {
    fn of(at: PathBuf) -> Self {
        crate::support::needs("fsfreeze");
        assert!(Command::new("fsfreeze").arg("-f").arg(&at).status().unwrap().success());
        Self(at)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(&self.0).status();
    }
}

/// agentd keeps the last sixteen torn ends of journals. Without room for another, none of them is
/// removed for it.
#[test]
fn a_full_disk_costs_no_torn_end_that_was_kept() {
    let desk = Desk::new();
    let disk = Disk::of(&desk, "2m");
    let server = Server::answering(|_, _| Answer::text("here"));
    assert_eq!(desk.ask(&server, &[]).code, 0);
    let audit = desk.state().join("audit");
    let torn = |number: u32| audit.join(format!("log.torn-{number}"));
    for number in 1..=16 {
        fs::write(torn(number), format!("half {number}")).unwrap();
    }
    let mut log = fs::File::options().append(true).open(audit.join("log.jsonl")).unwrap();
    let half = format!("{{\"half\":\"{}", "x".repeat(20_000));
    log.write_all(half.as_bytes()).unwrap();
    let filler = disk.fill();
    for _ in 0..3 {
        assert_ne!(desk.ask(&server, &[]).code, 0);
    }
    for number in 1..=16 {
        assert_eq!(fs::read_to_string(torn(number)).unwrap(), format!("half {number}"));
    }
    assert!(!torn(17).exists());
    fs::remove_file(filler).unwrap();
    assert_eq!(desk.ask(&server, &[]).code, 0);
    assert_eq!(fs::read_to_string(torn(17)).unwrap(), half);
    assert!(!torn(1).exists() && torn(2).exists());
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

/// The end has a time limit, and the session's records are there when the disk answers again.
#[test]
#[ignore = "needs a loop device: .ci/nightly machine"]
fn a_disk_that_hangs_does_not_keep_a_supervisor_from_its_end() {
    let desk = Desk::new();
    let sessions = desk.state().join("sessions");
    fs::create_dir_all(&sessions).unwrap();
    let image = desk.outside().join("image");
    fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
    crate::support::needs("mkfs.ext4");
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).status().unwrap();
    assert!(made.success());
    let mounted = Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&sessions).status();
    assert!(mounted.unwrap().success(), "this test mounts a file system; run it as root");
    let disk = Disk(sessions.clone());
    let server = Server::answering(|n, _| match n {
        1 => Answer::says([call("toolu_1", "bash", r#"{"command":"touch begun; sleep 300"}"#)]),
        _ => Answer::text("on"),
    });
    let supervisor = crate::support::wire::Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, protocol::client::SessionStart::New);
    terminal.prompt(&session, "go");
    crate::support::until("the command runs", || desk.project().join("begun").exists());
    let frozen = Frozen::of(sessions);
    let workers = || {
        let own =
            crate::support::processes().into_iter().filter(|it| it.parent == supervisor.pid());
        own.count()
    };
    assert!(workers() > 2, "the positive control");
    // A list of running sessions names one that waits for its disk, and does not wait itself.
    terminal.prompt(&session, "this waits on a disk that does not answer");
    let ps = run(desk.agentd(&["ps"]));
    assert!(ps.code == 0 && ps.out.contains("agentd-broker"), "{ps:?}");
    assert!(ps.out.contains(&session.0) && ps.out.contains("does not answer"), "{ps:?}");
    let ls = run(desk.agentd(&["ls"]));
    assert!(ls.code == 0 && ls.out.contains(&session.0), "{ls:?}");
    let stopped = run(desk.agentd(&["stop", &session.0]));
    assert!(
        stopped.code == 1 && stopped.err.contains("was asked to end and has not"),
        "{stopped:?}"
    );
    crate::support::send(supervisor.pid(), nix::sys::signal::Signal::SIGTERM);
    let mut last = None;
    while let Some(word) = terminal.hear_if_any() {
        last = Some(word);
    }
    // Its last thread waits for the disk; its other threads have ended.
    crate::support::until("its workers are gone", || workers() == 0);
    assert!(last.is_some());
    drop(frozen);
    assert!(supervisor.ended().success());
    let ran = desk.ask(&server, &["--resume", &session.0]);
    assert_eq!((ran.code, ran.result().as_str()), (0, "on"), "{ran:?}");
    let told = server.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(told.matches("tool_result").count(), 1, "{told}");
    drop(disk);
}

/// The store on a full disk: stored entries stay, refused ones are absent, and file tools work as
/// before. A change without a copy for undo is marked so.
#[test]
fn a_full_disk_loses_nothing_of_what_is_kept_and_keeps_no_call_from_its_work() {
    let desk = Desk::new();
    let store = desk.state().join("store");
    fs::create_dir_all(&store).unwrap();
    assert!(crate::support::is_root(), "this test mounts a file system; run it as root");
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", "size=2m,mode=700", "none"]).arg(&store);
    assert!(command.status().unwrap().success());
    let _disk = Disk(store.clone());
    desk.write("a.txt", &"old\n".repeat(20_000));
    let text = |n: usize| format!("marker{n} {}", "words of it ".repeat(60));
    let (full, free) = (store.clone(), store.join("filler"));
    let remember = move |n: usize, of: usize| {
        let input = json!({ "text": text(of) }).to_string();
        Answer::says([call(&format!("toolu_{n}"), "memory_add", &input)])
    };
    let said = |n: usize, tool: &str, input: serde_json::Value| {
        Answer::says([call(&format!("toolu_{n}"), tool, &input.to_string())])
    };
    let new = json!({"path": "a.txt", "content": "new\n"});
    const TRIES: usize = 12;
    let server = Server::answering(move |n, _| match n {
        1 => remember(n, 1),
        2 => said(n, "read", json!({"path": "a.txt", "limit": 1})),
        3..=TRIES => {
            fill(&full);
            remember(n, n)
        }
        13 => said(n, "read", json!({"path": "a.txt", "limit": 1})),
        14 => said(n, "read", json!({"path": "a.txt", "limit": 2})),
        15 => said(n, "write", new.clone()),
        16 => said(n, "undo_list", json!({})),
        17 => said(n, "memory_search", json!({"query": "words", "limit": 20})),
        18 => {
            fs::remove_file(&free).unwrap();
            remember(n, n)
        }
        19 => said(n, "memory_search", json!({"query": "words", "limit": 20})),
        _ => Answer::text("over"),
    });
    let ran = desk.ask(&server, &["--permission-mode", "auto", "--max-turns", "60"]);
    assert_eq!((ran.code, ran.result().as_str()), (0, "over"), "{ran:?}");
    let requests = server.requests();
    let result = |n: usize| {
        let messages = requests[n].body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"][0]["content"].to_string()
    };
    let kept = |n: &usize| result(*n).contains("remembered as");
    assert!(kept(&1) && kept(&18), "the controls: {} {}", result(1), result(18));
    let refused: Vec<usize> = (3..=TRIES).filter(|n| !kept(n)).collect();
    assert!(!refused.is_empty(), "the disk was full");
    for n in &refused {
        assert!(result(*n).contains("Error [disk_full]"), "{}", result(*n));
    }
    // While the disk is full and afterwards: all confirmed entries, and nothing else.
    for (search, last) in [(17, TRIES), (19, 18)] {
        let found = result(search);
        for n in (1..=last).filter(|n| *n == 1 || (3..=TRIES).contains(n) || *n == 18) {
            assert_eq!(found.contains(&format!("marker{n} ")), kept(&n), "marker{n}: {found}");
        }
    }
    assert!(result(13).contains("1\\told") && result(14).contains("2\\told"), "{}", result(14));
    assert_eq!(desk.read("a.txt"), "new\n", "{}", result(15));
    assert!(result(16).contains("Error [disk_full]"), "no copy, and that is said: {}", result(16));
}

/// A project on a disk that becomes full in the middle of a write. Old content stays whole, no
/// half-written file and no other name is left, and calls that need no room work.
#[test]
fn a_disk_that_is_full_in_the_middle_of_a_write_leaves_the_project_as_it_was() {
    let desk = Desk::new();
    let disk = Disk::at(desk.project(), "1m");
    let lines = |of: &str| format!("{of}\n").repeat(10_000);
    desk.write("a", &lines("old"));
    desk.write("b.rs", &"fn old() { go(1) }\n".repeat(2_000));
    desk.write("small", "old\n");
    desk.write("large", &lines("large"));
    desk.write("gone/c", "old\n");
    desk.write("gone/d", "old\n");
    let replace = json!([{"replace": {"pattern": "go($A)", "replacement": "stay_here($A)"}}]);
    let calls = [
        // The controls, while there is room.
        ("edit", json!({"path": "small", "old_string": "old", "new_string": "new"}), None),
        ("write", json!({"path": "large", "content": "new\n"}), None),
        // Eight kilobytes are left from here on.
        ("write", json!({"path": "a", "content": lines("new")}), Some("disk_full")),
        ("write", json!({"path": "new/deep/f", "content": lines("new")}), Some("disk_full")),
        (
            "edit",
            json!({"path": "a", "old_string": "old", "new_string": "newer", "replace_all": true}),
            Some("disk_full"),
        ),
        (
            "multi_edit",
            json!({"path": "a", "edits": [{"start_line": 2, "end_line": 2, "replace": "newer"}]}),
            Some("disk_full"),
        ),
        ("rewrite", json!({"path": "b.rs", "edits": replace}), Some("disk_full")),
        ("undo_restore", json!({"id": 2}), Some("disk_full")),
        ("edit", json!({"path": "small", "old_string": "new", "new_string": "newer"}), None),
        ("delete", json!({"paths": ["gone/c", "gone/d"]}), None),
        // There is room again.
        ("write", json!({"path": "a", "content": lines("new")}), None),
        ("undo_restore", json!({"id": 2}), None),
    ];
    let said = calls.clone();
    let (project, filler) = (desk.project(), disk.0.join("filler"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let snapshots = seen.clone();
    let server = Server::answering(move |n, _| {
        if n == 3 {
            fill(&project);
            let file = fs::File::options().write(true).open(&filler).unwrap();
            let size = file.metadata().unwrap().len();
            file.set_len(size - (8 << 10)).unwrap();
        }
        let mut found = BTreeMap::new();
        contents(&project, &mut found);
        snapshots.lock().unwrap().push(found);
        if n == 11 {
            fs::remove_file(&filler).unwrap();
        }
        match said.get(n - 1) {
            Some((tool, input, _)) => {
                Answer::says([call(&format!("toolu_{n}"), tool, &input.to_string())])
            }
            None => Answer::text("over"),
        }
    });
    let ran = desk.ask(&server, &["--permission-mode", "auto", "--max-turns", "60"]);
    assert_eq!((ran.code, ran.result().as_str()), (0, "over"), "{ran:?}");
    let (seen, requests) = (seen.lock().unwrap(), server.requests());
    for (at, (tool, _, code)) in calls.iter().enumerate() {
        let messages = requests[at + 1].body["messages"].as_array().unwrap();
        let result = messages.last().unwrap()["content"][0]["content"].to_string();
        let expected = code.map(|code| format!("Error [{code}]"));
        match expected {
            Some(expected) => {
                assert!(result.contains(&expected), "{at} {tool}: {result:.300}");
                assert_eq!(seen[at], seen[at + 1], "{at} {tool} changed something");
            }
            None => assert!(!result.contains("Error ["), "{at} {tool}: {result:.300}"),
        }
    }
    let last = seen.last().unwrap();
    let names: Vec<&str> = last.keys().map(String::as_str).collect();
    assert_eq!(names, ["a", "b.rs", "gone", "large", "small"]);
    assert_eq!(last["a"], Some(lines("new")));
    assert_eq!(last["large"], Some(lines("large")));
    assert_eq!(last["small"], Some("newer\n".to_owned()));
}

/// All names beneath a directory, with the content of files.
fn contents(directory: &Path, found: &mut BTreeMap<String, Option<String>>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() {
            found.insert(name, None);
            contents(&path, found);
        } else if name != "filler" {
            found.insert(name, Some(fs::read_to_string(path).unwrap()));
        }
    }
}
