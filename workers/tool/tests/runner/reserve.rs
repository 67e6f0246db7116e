//! A runner whose cage stands before its call comes: it rests, is looked at again, and runs one call.

use crate::supervisor::{Project, Runner, run};
use nix::fcntl::{FcntlArg, fcntl};
use protocol::confinement::{Enforced, Profile, Tier};
use protocol::tool::{CageOrder, FromCage, FromTool, Handover, ToTool};
use serde_json::json;
use std::fs::{File, create_dir_all, read_to_string, write};
use std::path::Path;
use std::time::Duration;

pub const TESTS: &[crate::Test] = &[
    ("a_cage_that_rested_runs_its_call", a_cage_that_rested_runs_its_call),
    ("a_resting_runner_ends_with_its_channel", a_resting_runner_ends_with_its_channel),
    ("nothing_runs_without_renew", nothing_runs_without_renew),
    ("a_protected_file_that_appeared_or_was_replaced_is_noticed", a_protected_file_is_noticed),
    ("protected_files_are_restored_as_they_were_at_renew", restored_as_at_renew),
    ("a_resting_cage_locks_no_git_settings", a_resting_cage_locks_no_git_settings),
    ("what_a_cage_opened_is_named_with_its_identity", what_a_cage_opened_is_named),
];

fn resting(project: &Project) -> (Runner, Tier, String) {
    let mut runner = Runner::start();
    runner.say(&ToTool::Begin(Box::new(CageOrder::Reserve(project.confinement(Profile::Command)))));
    match runner.hear() {
        Some(FromTool::Cage(FromCage::Resting { tier, opened })) => (runner, tier, opened),
        other => panic!("{other:?}"),
    }
}

fn renewed(runner: &mut Runner) -> Enforced {
    runner.say(&ToTool::Renew);
    match runner.hear() {
        Some(FromTool::Cage(FromCage::Caged(enforced))) => enforced,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn stale(runner: &mut Runner, why: &str) {
    runner.say(&ToTool::Renew);
    match runner.hear() {
        Some(FromTool::Cage(FromCage::Lost(text))) => assert!(text.contains(why), "{text}"),
        other => panic!("{other:?}"),
    }
    assert!(runner.ended().success());
}

fn command(text: &str) -> ToTool {
    ToTool::Go(run("bash", &json!({ "command": text }).to_string()))
}

/// A repository as far as the protection looks at it.
fn repository(project: &Project) {
    for name in ["objects", "refs", "hooks"] {
        create_dir_all(project.path(".git").join(name)).unwrap();
    }
    write(project.path(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    write(project.path(".git/config"), "[core]\n\tbare = false\n").unwrap();
    write(project.path(".git/hooks/pre-commit"), "mine\n").unwrap();
}

fn a_cage_that_rested_runs_its_call() {
    let project = Project::new();
    let (mut runner, tier, _) = resting(&project);
    assert!(runner.keeper.is_some(), "the supervisor knows it before");
    runner.say(&ToTool::Ping(4));
    assert_eq!(runner.hear(), Some(FromTool::Pong(4)));
    write(project.path("made-meanwhile"), "words\n").unwrap();
    let file = tempfile::tempfile().unwrap();
    runner.say_with(&ToTool::Handover(Handover::Protected), &file);
    let enforced = renewed(&mut runner);
    assert_eq!(enforced.tier, tier);
    assert!(file.metadata().unwrap().len() > 0, "it is kept before the cage is announced");
    let fresh = Runner::start().enforced(&project.confinement(Profile::Command));
    assert_eq!(enforced, fresh, "the same record as of a cage that was built for its call");
    runner.say(&command("cat made-meanwhile; echo evil > .envrc"));
    let report = runner.done();
    assert!(report.result.text.contains("words"), "{report:?}");
    assert_eq!(report.tampered.len(), 1, "{report:?}");
    assert!(!project.path(".envrc").exists());
}

fn a_resting_runner_ends_with_its_channel() {
    let project = Project::new();
    let (mut runner, ..) = resting(&project);
    let keeper = runner.keeper.unwrap();
    let alive = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    assert!(alive(keeper.command));
    runner.say(&ToTool::Cancel);
    assert_eq!(runner.hear(), None);
    assert!(runner.ended().success());
    for _ in 0..200 {
        if !alive(keeper.pid) && !alive(keeper.command) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("its cage is left");
}

fn nothing_runs_without_renew() {
    let project = Project::new();
    let (mut runner, ..) = resting(&project);
    runner.say(&command("touch made"));
    assert_eq!(runner.hear(), None, "a message out of turn ends it");
    assert!(!runner.ended().success());
    assert!(!project.path("made").exists());
}

fn a_protected_file_is_noticed() {
    type Change = fn(&Project);
    let changes: [(Change, bool); 5] = [
        // The control: another file, a new content, and a name that no mount holds.
        (|project| write(project.path("ordinary"), "x").unwrap(), false),
        (|project| write(project.path(".git/hooks/pre-commit"), "mine too\n").unwrap(), false),
        (repository_in_the_project, false),
        (|project| write(project.path(".envrc"), "mine\n").unwrap(), true),
        (
            |project| {
                let config = project.path(".git/config");
                write(project.path("new"), "[core]\n").unwrap();
                std::fs::rename(project.path("new"), config).unwrap();
            },
            true,
        ),
    ];
    for (number, (change, noticed)) in changes.into_iter().enumerate() {
        let project = Project::new();
        repository(&project);
        let (mut runner, tier, _) = resting(&project);
        change(&project);
        // In tier B no mount holds a name: all is restored by the new record.
        match noticed && tier == Tier::A {
            true => stale(&mut runner, "a protected file was made, removed or replaced"),
            false => drop(renewed(&mut runner)),
        }
        println!("    change {number}, tier {tier:?}");
    }
}

fn repository_in_the_project(project: &Project) {
    for name in ["objects", "refs", "hooks"] {
        create_dir_all(project.path("inner/.git").join(name)).unwrap();
    }
    write(project.path("inner/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    write(project.path("inner/.git/config"), "").unwrap();
}

fn restored_as_at_renew() {
    let project = Project::new();
    write(project.path(".envrc"), "old\n").unwrap();
    let (mut runner, ..) = resting(&project);
    write(project.path(".envrc"), "new\n").unwrap();
    renewed(&mut runner);
    runner.say(&command("echo evil > .envrc; mv .envrc gone; echo evil > .envrc; true"));
    runner.done();
    assert_eq!(read_to_string(project.path(".envrc")).unwrap(), "new\n");
}

fn a_resting_cage_locks_no_git_settings() {
    let project = Project::new();
    repository(&project);
    let (mut runner, tier, _) = resting(&project);
    let config = File::options().read(true).write(true).open(project.path(".git/config")).unwrap();
    let lock = nix::libc::flock {
        l_type: nix::libc::F_WRLCK as nix::libc::c_short,
        l_whence: 0,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let taken = || fcntl(&config, FcntlArg::F_OFD_SETLK(&lock)).is_ok();
    // A process of the cage that has not ended yet has the files that it was started with.
    crate::endings::until("another cage may replace them", &taken);
    let free = nix::libc::flock { l_type: nix::libc::F_UNLCK as nix::libc::c_short, ..lock };
    fcntl(&config, FcntlArg::F_OFD_SETLK(&free)).unwrap();
    renewed(&mut runner);
    assert_eq!(taken(), tier == Tier::B, "only a cage with mounts locks them, for its call");
}

fn what_a_cage_opened_is_named() {
    let project = Project::new();
    let wanted = project.confinement(Profile::Command);
    let (_runner, tier, opened) = resting(&project);
    assert_eq!(sandbox::opened_paths(&wanted, tier).unwrap(), opened, "nothing has changed");
    write(project.path("made"), "x").unwrap();
    assert_eq!(sandbox::opened_paths(&wanted, tier).unwrap(), opened, "nor has a directory");
    let (own, aside) = (project.base.join("proj"), project.base.join("aside"));
    std::fs::rename(&own, &aside).unwrap();
    assert!(sandbox::opened_paths(&wanted, tier).is_err(), "it is gone");
    std::fs::create_dir(&own).unwrap();
    let now = sandbox::opened_paths(&wanted, tier).unwrap();
    let other = now.lines().find(|line| !opened.contains(*line));
    assert!(other.is_some_and(|line| line.contains("proj")), "{other:?}");
}
