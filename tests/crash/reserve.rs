//! A session's runner in reserve: a call takes it only while its cage is what the call needs, and losing
//! it at any moment costs nothing.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::reserve::{Scene, is_alive};
use crate::support::{Desk, child_of, needs, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::SettingChange;
use protocol::confinement::Network;
use serde_json::json;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_call_takes_the_runner_that_was_started_before_it_came() {
    let desk = Desk::new().with_ping_ms(1000);
    let mut scene = Scene::new(&desk, "", &["echo ran >> effects", "echo ran >> effects"]);
    let first = scene.resting();
    scene.answer();
    scene.call_ends();
    let second = scene.resting();
    assert_ne!(first, second, "a runner runs one call");
    scene.answer();
    scene.call_ends();
    scene.end();
    assert_eq!(scene.runners(), [first, second]);
    assert_eq!(desk.read("effects"), "ran\nran\n");
    assert!(!is_alive(first) && !is_alive(second));
    assert_eq!(scene.server.requests().len(), 3);
}

#[test]
fn a_reserve_that_dies_or_is_stopped_costs_nothing() {
    for signal in [Signal::SIGKILL, Signal::SIGSTOP] {
        let desk = Desk::new().with_ping_ms(1000);
        let mut scene = Scene::new(&desk, "", &["echo ran >> effects"]);
        let pid = scene.resting();
        send(pid, signal);
        scene.answer();
        scene.call_ends();
        scene.end();
        let runners = scene.runners();
        assert!(runners.len() == 1 && runners[0] != pid, "{signal}: {runners:?}, not {pid}");
        assert_eq!(desk.read("effects"), "ran\n", "once");
        until("the reserve has ended", || !is_alive(pid));
    }
}

#[test]
fn a_changed_setting_never_meets_an_old_reserve() {
    let desk = Desk::new().with_ping_ms(1000);
    let more = desk.home().join("more");
    fs::create_dir(&more).unwrap();
    let reach = format!("echo ran > {}/made", more.display());
    let mut scene = Scene::new(&desk, "", &[&reach, &reach]);
    let first = scene.resting();
    // The control: the directory is not granted yet.
    scene.answer();
    scene.call_ends();
    assert_eq!(scene.runners(), [first]);
    assert!(!more.join("made").exists());
    let old = scene.resting();
    scene.change(SettingChange::AddDirectory(more.as_path().into()));
    until("the old reserve has ended", || !is_alive(old));
    assert_eq!(scene.reserve(), None, "the next one comes with the next request");
    scene.answer();
    scene.call_ends();
    assert_eq!(fs::read_to_string(more.join("made")).unwrap(), "ran\n");
    let third = scene.resting();
    scene.change(SettingChange::Network(Network::On));
    until("the old reserve has ended", || !is_alive(third));
    scene.end();
}

#[test]
fn a_replaced_project_never_meets_an_old_reserve() {
    let desk = Desk::new().with_ping_ms(1000);
    let mut scene = Scene::new(&desk, "", &["echo ran >> effects"]);
    let pid = scene.resting();
    let aside = desk.outside().join("aside");
    fs::rename(desk.project(), &aside).unwrap();
    fs::create_dir(desk.project()).unwrap();
    scene.answer();
    scene.call_ends();
    scene.end();
    assert_ne!(scene.runners(), [pid]);
    assert_eq!(desk.read("effects"), "ran\n", "in the project that is there now");
    assert!(!aside.join("effects").exists());
    until("the reserve has ended", || !is_alive(pid));
}

#[test]
fn a_protected_file_that_appears_is_protected_in_the_next_call() {
    let desk = Desk::new().with_ping_ms(1000);
    let mut scene = Scene::new(&desk, "", &["echo changed > .git/hooks/pre-commit"]);
    let pid = scene.resting();
    desk.write(".git/HEAD", "ref: refs/heads/main\n");
    desk.write(".git/config", "");
    desk.write(".git/objects/x", "");
    desk.write(".git/refs/x", "");
    desk.write(".git/hooks/pre-commit", "kept\n");
    scene.answer();
    scene.call_ends();
    scene.end();
    assert_ne!(scene.runners(), [pid], "the cage did not know the hook");
    assert_eq!(desk.read(".git/hooks/pre-commit"), "kept\n");
}

#[test]
fn a_reserve_ends_after_its_time_and_with_its_session() {
    let desk = Desk::new().with_ping_ms(1000);
    // Long enough for a busy machine to see it.
    let mut scene = Scene::new(&desk, "idle_reserve = \"3s\"\n", &["echo ran >> effects"]);
    let pid = scene.resting();
    until("the reserve has ended", || !is_alive(pid));
    assert_eq!(scene.reserve(), None);
    scene.answer();
    scene.call_ends();
    assert_eq!(desk.read("effects"), "ran\n", "without it");
    let pid = scene.resting();
    let ended = run(desk.agentd(&["kill", &scene.session.0]));
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(!is_alive(pid), "it does not outlive its session");
}

#[test]
fn no_reserve_is_started_where_none_is_wanted() {
    let desk = Desk::new().with_ping_ms(1000);
    let mut scene = Scene::new(&desk, "idle_reserve = \"0s\"\n", &["echo ran >> effects"]);
    until("the request", || scene.server.requests().len() == 1);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(scene.reserve(), None);
    scene.answer();
    scene.call_ends();
    assert_eq!(scene.reserve(), None);
    scene.end();
}

/// Stands for the first process of a container that waits for nothing: it gets each process whose parent
/// ends, and counts those that it has at the end.
const FIRST_PROCESS: &str = r#"
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
code = subprocess.call(sys.argv[1:])
left = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        name, fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)
    except OSError:
        continue
    if int(fields.split()[1]) == os.getpid():
        left.append(name + ") " + fields[0])
print(f"code {code}, left {left}")
"#;

/// The runner of the reserve is killed at the end of a run, and that of a call by the test.
#[test]
fn a_run_leaves_no_process_to_a_first_process_that_waits_for_none() {
    needs("python3");
    for (tier, killed) in [("A", false), ("B", false), ("A", true), ("B", true)] {
        let desk = Desk::new();
        let script = if killed { "touch begun; sleep 50" } else { "touch begun" };
        let input = json!({ "command": script }).to_string();
        let server = Server::answering(move |n, _| match n {
            1 => Answer::says([call("toolu_1", "bash", &input)]),
            // The next reserve rests by then.
            _ => Answer::text("done").stalled_after(10, Duration::from_secs(1)),
        });
        let like = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        let mut command = Command::new("python3");
        command.args(["-c", FIRST_PROCESS]).arg(like.get_program()).args(like.get_args());
        command.env_clear().envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("AGENTD_SANDBOX_TIER", tier).current_dir(desk.project());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let first = command.spawn().unwrap();
        if killed {
            until("the call runs", || desk.project().join("begun").exists());
            let agentd = child_of(first.id(), "agentd").unwrap();
            let supervisor = child_of(agentd, "agentd-supervisor").unwrap();
            send(child_of(supervisor, "agentd-tool").unwrap(), Signal::SIGKILL);
        }
        let output = first.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.ends_with("code 0, left []\n"), "{tier} {killed}: {output:?}");
    }
}
