//! Errands whose runner is played by a shell script: its answer, its end, and that nothing of it is left.
#![allow(clippy::unwrap_used)]

use crate::errand::{Errand, ErrandFailure};
use crate::grant::Grant;
use crate::grant::tests::confinement;
use crate::runner::{RunnerNews, RunnerStart};
use crate::spawner::Spawner;
use ipc::{Hello, codec, frames};
use protocol::call::TamperedFile;
use protocol::ids::Generation;
use protocol::tool::{FromCage, FromCall, FromTool};
use std::fs::{self, File};
use std::future::{pending, ready};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tool_specs::RunnerProgram;

/// A directory with an `agentd-tool` that says these and then does the rest of the script.
fn playing(words: &[FromTool], then: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let mut bytes = Hello::own().to_bytes().to_vec();
    for word in words {
        bytes.extend(frames(Generation(0), 0, &codec::encode(word).unwrap()));
    }
    fs::write(place.path().join("words"), bytes).unwrap();
    let here = place.path().display();
    let script = format!("#!/bin/sh\necho $$ > {here}/pid\ncat {here}/words >&0\n{then}\n");
    let program = place.path().join("agentd-tool");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// A repair by that program.
async fn repair(
    place: &Path,
    limit: Duration,
    stop: impl Future<Output = ()>,
) -> Result<Vec<TamperedFile>, ErrandFailure> {
    let log = File::options().write(true).open("/dev/null").unwrap();
    let path = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let spawner = Spawner::start(place.to_owned(), log, path).unwrap();
    let start = RunnerStart {
        spawner: &spawner,
        program: RunnerProgram::Tool,
        grant: Grant::repair(&confinement()),
        hello: Duration::from_secs(20),
        lock: None,
        handed: Vec::new(),
        turn: None,
        generation: Generation(0),
        about: "a test".to_owned(),
    };
    let end = Duration::from_secs(20);
    let errand = Errand { start, go: None, who: "its process", limit, end };
    errand
        .run(stop, |news| if let RunnerNews::Repaired(found) = news { Some(found) } else { None })
        .await
}

fn is_alive(place: &Path) -> bool {
    let pid = fs::read_to_string(place.join("pid")).unwrap();
    !pid.trim().is_empty() && Path::new("/proc").join(pid.trim()).exists()
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_process_that_hangs_after_its_answer_is_ended_with_the_errand() {
    let place = playing(&[FromTool::Repaired(Ok(Vec::new()))], "exec sleep 60");
    let began = Instant::now();
    assert_eq!(repair(place.path(), LONG, pending()).await, Ok(Vec::new()));
    assert!(!is_alive(place.path()), "nothing runs when it returns");
    assert!(began.elapsed() < Duration::from_secs(30), "nor was its sleep waited for");
}

#[tokio::test]
async fn a_process_without_an_answer_is_ended_when_its_time_is_over() {
    let place = playing(&[], "exec sleep 60");
    let limit = Duration::from_secs(1);
    assert_eq!(repair(place.path(), limit, pending()).await, Err(ErrandFailure::TimedOut));
    assert!(!is_alive(place.path()));
}

#[tokio::test]
async fn an_errand_that_is_stopped_leaves_no_process() {
    let place = playing(&[], "exec sleep 60");
    let why = "it was interrupted".to_owned();
    assert_eq!(repair(place.path(), LONG, ready(())).await, Err(ErrandFailure::Ended(why)));
    // It may have been ended before its first line, or in it.
    assert!(!place.path().join("pid").exists() || !is_alive(place.path()));
}

#[tokio::test]
async fn a_failure_says_what_became_of_the_process() {
    let uncaged =
        FromTool::Cage(FromCage::Uncaged { step: "landlock".into(), reason: "no".into() });
    for (words, then, told) in [
        (&[uncaged][..], "exec sleep 60", "its process could not be confined (landlock: no)"),
        (&[][..], "exit 3", "its process exited with code 3"),
        (
            &[FromTool::Call(FromCall::Began)][..],
            "exec sleep 60",
            "its process broke the protocol: a message out of turn",
        ),
    ] {
        let place = playing(words, then);
        let failed = repair(place.path(), LONG, pending()).await;
        assert_eq!(failed, Err(ErrandFailure::Ended(told.to_owned())));
        assert!(!is_alive(place.path()), "{told}");
    }
}
