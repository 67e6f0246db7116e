//! The control socket: another user, and clients of a daemon whose event loop is blocked. Takes root,
//! which can be two users and trace any process.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::{PEER, Wire, greeting};
use crate::support::{Desk, needs, processes, run, send, until};
use nix::sys::signal::Signal;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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
    assert!(crate::support::is_root(), "only root can be two users: run this test as root");
    // Not in the person's home, which other users cannot enter.
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
    // With open directories and a known token, the daemon itself is the second barrier.
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
    assert_ne!(theirs.code, 126, "the program runs: {theirs:?}");
    assert!(!theirs.out.contains("agentd-supervisor"), "{theirs:?}");
    open_to_all(&desk.door(), 0o700);
    open_to_all(&desk.run_dir(), 0o700);
    assert_eq!(Wire::to(&desk.door()).pid, daemon.pid);
}

/// strace on a daemon, which holds its event loop back by seven seconds in each turn.
fn held_back(daemon: u32) -> Child {
    needs("strace");
    let delayed = ["-e", "trace=epoll_wait", "-e", "inject=epoll_wait:delay_enter=7s"];
    let strace = Command::new("strace")
        .args(["-p", &daemon.to_string(), "-o", "/dev/null", "-e", "signal=none"])
        .args(delayed)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{daemon}/status");
    let traced = || !fs::read_to_string(&status).unwrap().contains("TracerPid:\t0\n");
    until("the daemon is traced", traced);
    strace
}

/// Holds the first thread of a process until that has ended.
const HOLD: &str = r#"import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid, seize, interrupt = int(sys.argv[1]), 0x4206, 0x4207
if libc.ptrace(seize, pid, None, None) or libc.ptrace(interrupt, pid, None, None):
    sys.exit("not traced")
while not os.WIFSIGNALED(os.waitpid(pid, 0x40000000)[1]):
    print("held", flush=True)
"#;

/// A script at the daemon, whose one prompt waits for an answer of the model.
fn script(desk: &Desk, server: &Server) -> Child {
    let mut client = desk.with_server(server, &["-p", "x"]);
    let client = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the model is asked", || server.requests().len() == 1);
    client
}

/// An event loop that takes seconds for each turn, as with a disk or a machine in trouble: one client
/// has waited three times two seconds, and the daemon serves others too.
#[test]
fn a_slow_daemon_outlives_the_patience_of_one_client() {
    assert!(crate::support::is_root(), "only root can trace a daemon: run this test as root");
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => Answer::text("slowly").stalled_after(100, Duration::from_secs(12)),
        _ => Answer::text("Of another."),
    });
    let daemon = desk.daemon();
    let mut other = Wire::to(&desk.door());
    let session = other.open(&desk.opening(&server));
    let client = script(&desk, &server);
    let mut strace = held_back(daemon.pid);
    let doubted = Instant::now();
    // Longer than the patience that a client had with a daemon.
    while doubted.elapsed() < Duration::from_secs(16) {
        assert!(processes().iter().any(|it| it.pid == daemon.pid), "it was ended");
        std::thread::sleep(Duration::from_millis(100));
    }
    send(strace.id(), Signal::SIGTERM);
    strace.wait().unwrap();
    let ended = client.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "slowly\n", "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("agentd-supervisor does not answer; agentd waits for it"), "{said}");
    assert!(!said.contains("was lost"), "{said}");
    assert_eq!(server.requests().len(), 1, "no request was repeated");
    assert_eq!(Wire::to(&desk.door()).pid, daemon.pid);
    other.prompt(&session, "go");
    other.turn_ends();
}

/// Its event loop is blocked for good, while the process is not stopped.
#[test]
fn a_daemon_whose_event_loop_is_blocked_is_replaced() {
    assert!(crate::support::is_root(), "only root can trace a daemon: run this test as root");
    needs("python3");
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => Answer::text("slowly").stalled_after(100, Duration::from_secs(120)),
        _ => Answer::text("Done."),
    });
    let daemon = desk.daemon();
    let client = script(&desk, &server);
    let mut hold = Command::new("python3");
    hold.args(["-c", HOLD, &daemon.pid.to_string()]);
    let mut hold = hold.stdout(Stdio::piped()).spawn().unwrap();
    let mut held = [0; 4];
    hold.stdout.as_mut().unwrap().read_exact(&mut held).unwrap();
    let ended = client.wait_with_output().unwrap();
    let _ = hold.kill();
    hold.wait().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "Done.\n", "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("was lost"), "{ended:?}");
    assert_ne!(Wire::to(&desk.door()).pid, daemon.pid);
}
