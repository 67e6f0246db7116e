//! How calls end before their time: what was printed is kept, and no process is left.

use crate::supervisor::{Project, Runner, appears, run};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use protocol::call::Outcome;
use protocol::confinement::Profile;
use protocol::tool::ToTool;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

pub const TESTS: &[crate::Test] = &[
    (
        "a_command_without_end_times_out_and_keeps_its_output",
        a_command_without_end_times_out_and_keeps_its_output,
    ),
    ("the_calls_own_time_wins_over_the_default", the_calls_own_time_wins_over_the_default),
    (
        "a_grandchild_that_holds_the_pipe_does_not_hold_the_call",
        a_grandchild_that_holds_the_pipe_does_not_hold_the_call,
    ),
    (
        "what_a_background_process_prints_soon_is_kept",
        what_a_background_process_prints_soon_is_kept,
    ),
    ("cancel_ends_the_tree_and_keeps_the_output", cancel_ends_the_tree_and_keeps_the_output),
    ("a_search_can_be_cancelled", a_search_can_be_cancelled),
    ("the_supervisors_end_ends_the_tree", the_supervisors_end_ends_the_tree),
    ("without_go_nothing_runs", without_go_nothing_runs),
    ("words_out_of_turn_end_the_runner", words_out_of_turn_end_the_runner),
];

/// A process that leaves its group and session, ignores what asks it to end, holds the pipes, and
/// writes as long as it lives.
const DAEMON: &str =
    "setsid sh -c 'trap \"\" TERM INT HUP; while :; do echo x >> alive; sleep 0.05; done' &";

/// The file has stopped growing, so whoever wrote it is gone.
fn silent(path: &Path) -> bool {
    let length = || std::fs::metadata(path).unwrap().len();
    let before = length();
    std::thread::sleep(Duration::from_millis(300));
    length() == before
}

fn a_command_without_end_times_out_and_keeps_its_output() {
    let project = Project::new();
    let begin = Instant::now();
    let command = format!("{DAEMON} echo printed; while :; do sleep 1; done");
    let report = project.run("bash", json!({"command": command, "timeout_ms": 700}));
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    assert_eq!(report.result.outcome, Outcome::TimedOut);
    assert_eq!(report.result.code.as_deref(), Some("timed_out"));
    assert_eq!(
        report.result.text,
        "printed\nexit code: 124 (timed out after 700 ms; all its processes were ended)"
    );
    assert!(silent(&project.path("alive")), "the daemon that it left lives on");
}

fn the_calls_own_time_wins_over_the_default() {
    let project = Project::new();
    let protocol::tool::Errand::Run { tool, input, judged, env, max_result_chars, .. } =
        run("bash", r#"{"command":"sleep 5"}"#)
    else {
        unreachable!("made as a run")
    };
    let mut runner = Runner::caged(&project.confinement(Profile::Command));
    runner.say(&ToTool::Go(protocol::tool::Errand::Run {
        tool,
        input,
        judged,
        env,
        timeout_ms: 200,
        max_result_chars,
    }));
    assert_eq!(runner.done().result.outcome, Outcome::TimedOut);
}

fn a_grandchild_that_holds_the_pipe_does_not_hold_the_call() {
    let project = Project::new();
    let begin = Instant::now();
    let report =
        project.run("bash", json!({"command": format!("{DAEMON} sleep 0.2; echo done; exit 5")}));
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    assert_eq!(report.result.outcome, Outcome::Exited { code: 5 });
    assert_eq!(
        report.result.text,
        "done\n[processes that it left running held its output and were ended]\nexit code: 5"
    );
    assert!(silent(&project.path("alive")), "the daemon that it left lives on");
}

fn what_a_background_process_prints_soon_is_kept() {
    let project = Project::new();
    let report = project.run("bash", json!({"command": "(sleep 0.05; echo late) & echo first"}));
    assert_eq!(report.result.text, "first\nlate\nexit code: 0");
}

fn cancel_ends_the_tree_and_keeps_the_output() {
    let project = Project::new();
    let mut runner =
        project.started("bash", json!({"command": format!("{DAEMON} echo printed; sleep 60")}));
    runner.hear_until("printed");
    assert!(appears(&project.path("alive")));
    let begin = Instant::now();
    runner.say(&ToTool::Cancel);
    let report = runner.done();
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    assert_eq!(report.result.outcome, Outcome::Interrupted);
    assert!(report.result.text.starts_with("printed\n"), "{}", report.result.text);
    assert!(
        report
            .result
            .text
            .ends_with("exit code: 130 (ended on request; all its processes were ended)")
    );
    assert!(silent(&project.path("alive")));
}

fn a_search_can_be_cancelled() {
    let project = Project::new();
    for i in 0..3000 {
        std::fs::write(project.path(&format!("f{i}")), "x\n".repeat(2000)).unwrap();
    }
    let mut runner = project.started("grep", json!({"pattern": "nothing (like|of) it"}));
    runner.say(&ToTool::Cancel);
    assert_eq!(runner.done().result.outcome, Outcome::Interrupted);
}

fn the_supervisors_end_ends_the_tree() {
    let project = Project::new();
    let mut runner =
        project.started("bash", json!({"command": format!("echo $$ > pid; {DAEMON} sleep 60")}));
    assert!(appears(&project.path("alive")));
    runner.hang_up();
    runner.ended();
    assert!(silent(&project.path("alive")), "the daemon outlives the supervisor");
}

fn without_go_nothing_runs() {
    let project = Project::new();
    for word in [None, Some(ToTool::Cancel)] {
        let mut runner = Runner::caged(&project.confinement(Profile::Command));
        match word {
            None => runner.hang_up(),
            Some(word) => runner.say(&word),
        }
        assert!(runner.ended().success());
        let pid = Pid::from_raw(i32::try_from(runner.child.id()).unwrap());
        assert_eq!(kill(pid, None), Err(Errno::ESRCH));
    }
    let mut runner = Runner::start();
    runner.hang_up();
    assert!(runner.ended().success());
}

fn words_out_of_turn_end_the_runner() {
    let project = Project::new();
    let go = ToTool::Go(run("bash", r#"{"command":"touch ran"}"#));
    let confine = ToTool::Confine(project.confinement(Profile::Command));
    for words in [vec![go.clone()], vec![ToTool::Cancel], vec![confine.clone(), confine]] {
        let mut runner = Runner::start();
        words.iter().for_each(|word| runner.say(word));
        assert!(!runner.ended().success());
    }
    assert!(!project.path("ran").exists());
}
