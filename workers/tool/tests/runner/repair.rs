//! A runner that saves the protected files, and another that restores them.

use crate::supervisor::{Project, Runner, appears, run};
use protocol::call::{TamperRemedy, TamperedFile};
use protocol::confinement::Profile;
use protocol::tool::{CageOrder, FromCage, FromTool, Handover, ToTool};
use serde_json::json;
use std::fs::{File, write};

pub const TESTS: &[crate::Test] = &[
    (
        "what_a_killed_runner_kept_lets_another_put_right",
        what_a_killed_runner_kept_lets_another_put_right,
    ),
    (
        "whoever_puts_right_writes_no_further_than_the_command",
        whoever_puts_right_writes_no_further_than_the_command,
    ),
    ("without_room_for_the_copy_nothing_runs", without_room_for_the_copy_nothing_runs),
    ("what_a_runner_put_right_itself_is_told_again", what_a_runner_put_right_itself_is_told_again),
];

/// A runner of this command that saved the files and was started.
fn keeping(project: &Project, file: &File, command: &str) -> Runner {
    let mut runner = Runner::start();
    runner.say_with(&ToTool::Handover(Handover::Protected), file);
    runner.enforced(&project.confinement(Profile::Command));
    assert!(file.metadata().unwrap().len() > 0, "it is kept before the cage is announced");
    runner.say(&ToTool::Go(run("bash", &json!({ "command": command }).to_string())));
    runner
}

fn repair(project: &Project, file: &File) -> FromTool {
    let mut runner = Runner::start();
    runner.say_with(&ToTool::Handover(Handover::Protected), file);
    runner.say(&ToTool::Begin(Box::new(CageOrder::Repair(project.confinement(Profile::Command)))));
    let answer = runner.hear().unwrap();
    assert!(runner.ended().success());
    answer
}

fn what_a_killed_runner_kept_lets_another_put_right() {
    let project = Project::new();
    let file = tempfile::tempfile().unwrap();
    let mut runner = keeping(&project, &file, "echo evil > .envrc; touch begun; sleep 60");
    assert!(appears(&project.path("begun")));
    runner.child.kill().unwrap();
    runner.child.wait().unwrap();
    assert!(project.path(".envrc").exists(), "the command could make it");
    let FromTool::Repaired(Ok(names)) = repair(&project, &file) else { panic!() };
    let [name] = &names[..] else { panic!("{names:?}") };
    assert_eq!(name.path, ".envrc");
    assert!(matches!(name.remedy, TamperRemedy::Quarantined { .. }), "{name:?}");
    assert!(!project.path(".envrc").exists() && project.path("begun").exists());
    assert_eq!(repair(&project, &file), FromTool::Repaired(Ok(Vec::new())), "once is enough");
}

/// Its supervisor may die before the report is on disk.
fn what_a_runner_put_right_itself_is_told_again() {
    let project = Project::new();
    let file = tempfile::tempfile().unwrap();
    let report = keeping(&project, &file, "echo evil > .envrc").done();
    assert_eq!(report.tampered.len(), 1, "{report:?}");
    assert!(!project.path(".envrc").exists());
    assert_eq!(repair(&project, &file), FromTool::Repaired(Ok(report.tampered)));
    // Of a command that changed nothing there is nothing to tell.
    let file = tempfile::tempfile().unwrap();
    assert_eq!(keeping(&project, &file, "true").done().tampered, []);
    assert_eq!(repair(&project, &file), FromTool::Repaired(Ok(Vec::new())));
}

/// The file says where to write, and the cage says where that is allowed.
fn whoever_puts_right_writes_no_further_than_the_command() {
    let (project, other) = (Project::new(), Project::new());
    let file = tempfile::tempfile().unwrap();
    drop(keeping(&other, &file, "true"));
    let made = other.path(".envrc");
    write(&made, "evil\n").unwrap();
    let FromTool::Repaired(Ok(names)) = repair(&project, &file) else { panic!() };
    let [TamperedFile { remedy: TamperRemedy::Left { .. }, .. }] = &names[..] else {
        panic!("{names:?}")
    };
    assert!(made.exists());
    // The same file within its own cage.
    let FromTool::Repaired(Ok(names)) = repair(&other, &file) else { panic!() };
    let [TamperedFile { remedy: TamperRemedy::Quarantined { .. }, .. }] = &names[..] else {
        panic!("{names:?}")
    };
    assert!(!made.exists());
}

fn without_room_for_the_copy_nothing_runs() {
    let project = Project::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut runner = Runner::start();
    runner.say_with(&ToTool::Handover(Handover::Protected), &full);
    runner.say(&ToTool::Begin(Box::new(CageOrder::Confine(project.confinement(Profile::Command)))));
    match runner.hear() {
        Some(FromTool::Cage(FromCage::Uncaged { step, reason })) => {
            assert_eq!(step, "saved");
            assert!(reason.contains("No space left") && reason.contains("free space"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert!(runner.ended().success());
}
