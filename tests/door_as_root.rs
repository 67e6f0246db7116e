//! Another user at the daemon's door; takes root, which can be both.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use support::daemon::{PEER, Wire, greeting};
use support::{Desk, needs, run};

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The same program, as this user and as another.
fn as_nobody(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(words);
    command
}

#[test]
fn another_user_is_turned_away_and_the_owner_comes_in() {
    assert!(support::is_root(), "only root can be two users: run this test as root");
    // Not one of the person's own home, where nobody else may go.
    let python = "/usr/bin/python3";
    assert!(Path::new(python).exists(), "this test drives {python}; install it");
    needs("setpriv");
    let desk = Desk::new();
    let daemon = desk.daemon();
    let (script, file) = (desk.write("peer.py", PEER), desk.project().join("greeting"));
    fs::write(&file, greeting(&desk.door())).unwrap();
    let socket = desk.door().join("socket").display().to_string();
    let (script, file) = (script.display().to_string(), file.display().to_string());
    let hello = ipc::HELLO_BYTES.to_string();
    let peer = [python, &script, &socket, &file, &hello];
    let answered = |mut peer: Command| {
        let ended = peer.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).trim().parse::<usize>().unwrap();
        (said, String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    for path in [desk.outside(), desk.project()] {
        open_to_all(&path, 0o755);
    }
    open_to_all(Path::new(&file), 0o644);
    // The private directory is the first lock.
    let (heard, why) = answered(as_nobody(&peer));
    assert!(heard == 0 && why.contains("Permission denied"), "{heard} {why}");
    // With all of it open, and the token known, the daemon itself is the second.
    for path in [desk.run_dir(), desk.door()] {
        open_to_all(&path, 0o755);
    }
    open_to_all(Path::new(&socket), 0o666);
    open_to_all(&desk.door().join("token"), 0o644);
    let (heard, why) = answered(as_nobody(&peer));
    assert_eq!(heard, 0, "{why}");
    assert!(!why.contains("Permission denied"), "it did connect: {why}");
    let log = fs::read_to_string(desk.state().join("log/supervisor.log")).unwrap();
    assert!(log.contains("belongs to user 65534"), "{log}");
    let own = {
        let mut command = Command::new(peer[0]);
        command.args(&peer[1..]);
        command
    };
    assert!(answered(own).0 > ipc::HELLO_BYTES, "its owner comes in");
    // And with agentd itself.
    let own = run(desk.agentd(&["ps"]));
    assert!(own.code == 0 && own.out.contains("agentd-supervisor"), "{own:?}");
    let theirs = desk.agentd(&["ps"]);
    let mut nobody = as_nobody(&[theirs.get_program().to_str().unwrap()]);
    nobody.args(theirs.get_args()).current_dir(desk.project()).env_clear();
    nobody.envs(theirs.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let theirs = run(nobody);
    assert!(!theirs.out.contains("agentd-supervisor"), "{theirs:?}");
    open_to_all(&desk.door(), 0o700);
    open_to_all(&desk.run_dir(), 0o700);
    assert_eq!(Wire::to(&desk.door()).pid, daemon.pid);
}
