//! The daemon as a service: systemd's own program hands over the socket, and hears what becomes of it.

use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use crate::support::{Desk, needs, run, until};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// systemd's program that listens, waits for the first client and becomes `agentd daemon run`, of this place.
fn listening(desk: &Desk, socket: &Path) -> (Child, UnixDatagram) {
    needs("systemd-socket-activate");
    fs::create_dir_all(desk.door()).unwrap();
    fs::set_permissions(desk.door(), fs::Permissions::from_mode(0o700)).unwrap();
    let notify = desk.outside().join("notify");
    let heard = UnixDatagram::bind(&notify).unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let daemon = desk.agentd(&["daemon", "run"]);
    let mut command = Command::new("systemd-socket-activate");
    command.arg("-l").arg(socket);
    for (name, value) in daemon.get_envs() {
        command.arg("-E").arg(format!(
            "{}={}",
            name.to_str().unwrap(),
            value.unwrap_or_default().to_str().unwrap()
        ));
    }
    command.arg("-E").arg(format!("NOTIFY_SOCKET={}", notify.display()));
    command.args(["-E", "WATCHDOG_USEC=400000"]);
    // The first is `setsid`, which would make another process of it.
    command.args(daemon.get_args()).stdin(Stdio::null()).stdout(Stdio::null());
    let service = command.stderr(Stdio::piped()).spawn().unwrap();
    until("systemd's program listens", || socket.exists());
    (service, heard)
}

/// Reads until a line with this beginning comes, and returns it.
fn hears(heard: &UnixDatagram, wanted: &str) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    let mut all = String::new();
    while Instant::now() < until {
        let mut bytes = [0; 4096];
        let length = heard.recv(&mut bytes).unwrap_or_else(|error| {
            panic!("{wanted} was not said ({error}), only {all}");
        });
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if let Some(line) = text.lines().find(|line| line.starts_with(wanted)) {
            return line.to_owned();
        }
        all.push_str(&text);
    }
    panic!("{wanted} was not said, only {all}");
}

#[test]
fn the_first_client_starts_the_daemon_through_a_socket_that_stays() {
    let desk = Desk::new();
    let socket = desk.door().join("socket");
    let (mut service, heard) = listening(&desk, &socket);
    let inode = fs::metadata(&socket).unwrap().ino();
    let ran = run(desk.agentd(&["daemon", "status"]));
    assert!(ran.code == 0, "the first client finds it: {ran:?}");
    let server = Server::answering(|n, _| match n {
        1 => Answer::text("slowly").stalled_after(1, Duration::from_secs(60)),
        _ => Answer::text("Done."),
    });
    let mut wire = Wire::to(&desk.door());
    assert_eq!(wire.pid, service.id(), "the process that systemd started serves it");
    hears(&heard, "READY=1");
    hears(&heard, "WATCHDOG=1");
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    hears(&heard, "STATUS=1 sessions, 1 at work");
    hears(&heard, "WATCHDOG=1");
    let refused = run(desk.agentd(&["daemon", "stop"]));
    assert_eq!(refused.code, 1, "a turn runs: {refused:?}");
    let ran = run(desk.agentd(&["daemon", "stop", "--force"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    hears(&heard, "STOPPING=1");
    assert!(service.wait().unwrap().success(), "it ends in order");
    assert_eq!(fs::metadata(&socket).unwrap().ino(), inode, "the socket is systemd's");
    assert!(!desk.door().join("token").exists(), "nobody is there who knows it");
}

/// A client that finds the socket of a service that cannot start says so, and does not wait for ever.
#[test]
fn a_socket_where_no_client_looks_is_refused() {
    let desk = Desk::new();
    let elsewhere = desk.outside().join("elsewhere");
    let (service, _heard) = listening(&desk, &elsewhere);
    drop(std::os::unix::net::UnixStream::connect(&elsewhere).unwrap());
    let done = service.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success(), "{said}");
    assert!(said.contains("elsewhere") && said.contains("ListenStream=%t/agentd/socket"), "{said}");
}

/// A client inside of another service inherits that service's variables.
#[test]
fn only_the_daemon_of_a_service_reports_to_its_manager() {
    let desk = Desk::new();
    let notify = desk.outside().join("notify");
    let heard = UnixDatagram::bind(&notify).unwrap();
    heard.set_nonblocking(true).unwrap();
    let server = Server::answering(|_, _| Answer::text("Done."));
    let mut alone = desk.with_server(&server, &["-p", "x"]);
    alone.env("NOTIFY_SOCKET", &notify).env("WATCHDOG_USEC", "100000");
    let ran = run(alone);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut start = desk.agentd(&["daemon", "start"]);
    start.env("NOTIFY_SOCKET", &notify).env("WATCHDOG_USEC", "100000");
    assert_eq!(start.output().unwrap().status.code(), Some(0));
    let ran = run(desk.agentd(&["daemon", "stop"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let silence = heard.recv(&mut [0; 64]).unwrap_err();
    assert_eq!(silence.kind(), std::io::ErrorKind::WouldBlock);
}

/// A `systemctl` that writes down what it is asked.
fn with_manager(desk: &Desk, words: &[&str]) -> Command {
    let tools = desk.outside().join("tools");
    fs::create_dir_all(&tools).unwrap();
    let asked = desk.outside().join("asked");
    let script = format!("#!/bin/sh\necho \"$*\" >>'{}'\n", asked.display());
    fs::write(tools.join("systemctl"), script).unwrap();
    fs::set_permissions(tools.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = desk.agentd(words);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", tools.display()));
    command
}

#[test]
fn units_are_written_as_systemd_reads_them_and_removed() {
    needs("systemd-analyze");
    let desk = Desk::new();
    let ran = run(with_manager(&desk, &["daemon", "install"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let units = desk.home().join(".config/systemd/user");
    let mut verify = Command::new("systemd-analyze");
    verify.args(["--user", "verify"]).env("XDG_RUNTIME_DIR", desk.run_dir());
    verify.args([units.join("agentd.socket"), units.join("agentd.service")]);
    let verified = verify.output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("agentd."), "{said}");
    // The control: it would have said so.
    let service = fs::read_to_string(units.join("agentd.service")).unwrap();
    fs::write(units.join("agentd.service"), service.replace("Restart=", "Restarts=")).unwrap();
    let said = String::from_utf8_lossy(&verify.output().unwrap().stderr).into_owned();
    assert!(said.contains("Restarts"), "{said}");
    fs::write(units.join("agentd.service"), &service).unwrap();
    let doctor = run(desk.agentd(&["doctor"]));
    let line = doctor.out.lines().find(|line| line.contains(" systemd  ")).unwrap();
    assert!(line.contains("agentd daemon run"), "{line}");

    let server =
        Server::answering(|_, _| Answer::text("slowly").stalled_after(1, Duration::from_secs(60)));
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    until("the turn runs", || server.requests().len() == 1);
    let ran = run(with_manager(&desk, &["daemon", "uninstall"]));
    assert!(ran.code == 1 && ran.err.contains("a turn runs"), "{ran:?}");
    assert_eq!(fs::read_dir(&units).unwrap().count(), 2, "nothing was removed");
    let ran = run(with_manager(&desk, &["daemon", "uninstall", "--force"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    drop(daemon);
    assert_eq!(fs::read_dir(&units).unwrap().count(), 0);
    let asked = fs::read_to_string(desk.outside().join("asked")).unwrap();
    assert_eq!(
        asked,
        "--user daemon-reload\n--user enable --now agentd.socket\n\
         --user disable --now agentd.socket\n--user daemon-reload\n"
    );
}

#[test]
fn units_that_cannot_serve_are_not_installed() {
    let desk = Desk::new();
    let units = desk.home().join(".config/systemd/user");
    // systemd would take the socket of a daemon that runs.
    let daemon = desk.daemon();
    let ran = run(with_manager(&desk, &["daemon", "install"]));
    assert!(ran.code != 0 && ran.err.contains("agentd daemon stop"), "{ran:?}");
    drop(daemon);
    // Clients would look elsewhere.
    let mut nowhere = with_manager(&desk, &["daemon", "install"]);
    nowhere.env_remove("XDG_RUNTIME_DIR");
    let ran = run(nowhere);
    assert!(ran.code != 0 && ran.err.contains("XDG_RUNTIME_DIR"), "{ran:?}");
    assert!(!units.exists(), "nothing is written before");
    // The person's own unit stays as it is.
    fs::create_dir_all(&units).unwrap();
    fs::write(units.join("agentd.service"), "[Unit]\n").unwrap();
    for word in ["install", "uninstall"] {
        let ran = run(with_manager(&desk, &["daemon", word]));
        assert!(ran.code != 0 && ran.err.contains("not written by agentd"), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(units.join("agentd.service")).unwrap(), "[Unit]\n");
    fs::remove_file(units.join("agentd.service")).unwrap();
    // Without a manager the command says what failed.
    let ran = run(desk.agentd(&["daemon", "install"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("systemctl --user daemon-reload"), "{ran:?}");
}
