//! A session's runner in reserve: a call takes it only while its cage is what the call needs, and losing
//! it at any moment costs nothing.
#![allow(clippy::unwrap_used)]

use crate::support::reserve::{Scene, is_alive};
use crate::support::{Desk, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::SettingChange;
use protocol::confinement::Network;
use std::fs;
use std::time::Duration;

#[test]
fn a_call_takes_the_runner_that_was_started_before_it_came() {
    let desk = Desk::new();
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
        let desk = Desk::new();
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
    let desk = Desk::new();
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
    let desk = Desk::new();
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
    let desk = Desk::new();
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
    let desk = Desk::new();
    let mut scene = Scene::new(&desk, "idle_reserve = \"500ms\"\n", &["echo ran >> effects"]);
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
    let desk = Desk::new();
    let mut scene = Scene::new(&desk, "idle_reserve = \"0s\"\n", &["echo ran >> effects"]);
    until("the request", || scene.server.requests().len() == 1);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(scene.reserve(), None);
    scene.answer();
    scene.call_ends();
    assert_eq!(scene.reserve(), None);
    scene.end();
}
