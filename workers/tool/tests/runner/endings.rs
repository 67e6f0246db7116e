//! Calls that end early: the output so far is kept, and no process is left.

use crate::supervisor::{Project, Runner, appears, run};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::call::Outcome;
use protocol::confinement::Profile;
use protocol::tool::{CageOrder, FromCage, FromTool, Keeper, KeeperKind, ToTool};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

pub const TESTS: &[crate::Test] = &[
    (
        "a_command_without_end_times_out_and_keeps_its_output",
        a_command_without_end_times_out_and_keeps_its_output,
    ),
    ("the_calls_own_time_wins_over_the_default", the_calls_own_time_wins_over_the_default),
    ("a_time_above_ten_minutes_is_cut_and_said", a_time_above_ten_minutes_is_cut_and_said),
    (
        "a_grandchild_that_holds_the_pipe_does_not_hold_the_call",
        a_grandchild_that_holds_the_pipe_does_not_hold_the_call,
    ),
    (
        "a_background_process_is_not_ended_without_a_word",
        a_background_process_is_not_ended_without_a_word,
    ),
    (
        "what_a_background_process_prints_soon_is_kept",
        what_a_background_process_prints_soon_is_kept,
    ),
    ("cancel_ends_the_tree_and_keeps_the_output", cancel_ends_the_tree_and_keeps_the_output),
    ("a_search_can_be_cancelled", a_search_can_be_cancelled),
    ("the_supervisors_end_ends_the_tree", the_supervisors_end_ends_the_tree),
    (
        "a_keeper_that_is_stopped_outlives_neither_its_runner_nor_its_command",
        a_keeper_that_is_stopped_outlives_neither_its_runner_nor_its_command,
    ),
    ("a_guard_that_is_lost_has_a_successor", a_guard_that_is_lost_has_a_successor),
    (
        "a_cage_that_dies_before_its_program_is_lost_and_nothing_was_run",
        a_cage_that_dies_before_its_program_is_lost_and_nothing_was_run,
    ),
    ("without_go_nothing_runs", without_go_nothing_runs),
    ("words_out_of_turn_end_the_runner", words_out_of_turn_end_the_runner),
];

/// A process that leaves its group and session, ignores termination signals, holds the pipes, and
/// writes for as long as it runs.
const DAEMON: &str =
    "setsid sh -c 'trap \"\" TERM INT HUP; while :; do echo x >> alive; sleep 0.05; done' &";

/// The file has stopped growing, so its writer is gone.
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
        "printed\n--- agentd ---\n[timeout_ms may be up to 600000]\nexit code: 124 (timed out after 700 ms; all its processes were killed)"
    );
    assert!(silent(&project.path("alive")), "the daemon that it left lives on");
}

fn the_calls_own_time_wins_over_the_default() {
    let project = Project::new();
    let protocol::tool::RunnerJob::Run { tool, input, judged, env, max_result_chars, .. } =
        run("bash", r#"{"command":"sleep 5"}"#)
    else {
        unreachable!("made as a run")
    };
    let mut runner = Runner::caged(&project.confinement(Profile::Command));
    runner.say(&ToTool::Go(protocol::tool::RunnerJob::Run {
        tool,
        input,
        judged,
        env,
        timeout_ms: 200,
        max_result_chars,
        denied_reads: protocol::judgement::RuleSet::empty(),
    }));
    assert_eq!(runner.done().result.outcome, Outcome::TimedOut);
}

fn a_time_above_ten_minutes_is_cut_and_said() {
    let project = Project::new();
    for (tool, mut input) in
        [("bash", json!({"command": "echo ran"})), ("run", json!({"argv": ["echo", "ran"]}))]
    {
        for (ms, note) in
            [(600_000_u64, ""), (600_001, "600001"), (u64::MAX, "18446744073709551615")]
        {
            input["timeout_ms"] = json!(ms);
            let result = project.run(tool, input.clone()).result;
            assert!(result.text.starts_with("ran\n"), "{}", result.text);
            assert!(result.text.ends_with("exit code: 0"), "{}", result.text);
            let said = format!("[timeout_ms {note} was reduced to 600000");
            assert_eq!(result.text.contains(&said), !note.is_empty(), "{}", result.text);
        }
    }
}

fn a_grandchild_that_holds_the_pipe_does_not_hold_the_call() {
    let project = Project::new();
    let begin = Instant::now();
    let report =
        project.run("bash", json!({"command": format!("{DAEMON} sleep 0.2; echo done; exit 5")}));
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    assert_eq!(report.result.outcome, Outcome::Exited { code: 5 });
    let said = "done\n--- agentd ---\n[background processes were killed when the command ended: sh, sleep; start and use \
                a server in one command]\nexit code: 5";
    let alone = said.replace("sh, sleep", "sh");
    assert!([said, &alone].contains(&report.result.text.as_str()), "{}", report.result.text);
    assert!(silent(&project.path("alive")), "the daemon that it left lives on");
}

/// The command starts a sibling: a child of the runner, and not of the namespace's PID 1.
const SIBLING: &str = r#"exec python3 -c '
import ctypes, os, platform
print("started", flush=True)
clone = 56 if platform.machine() == "x86_64" else 220
if ctypes.CDLL(None).syscall(clone, 0x8000 | 17, 0, 0, 0, 0) == 0:
    for number in range(3):
        os.dup2(os.open("/dev/null", os.O_RDWR), number)
    os.execvp("sleep", ["sleep", "300"])
'"#;

fn a_background_process_is_not_ended_without_a_word() {
    for (script, said) in [
        (SIBLING, Some("background processes were killed when the command ended: ")),
        ("sleep 300 >/dev/null 2>&1 & echo started", Some(": sleep;")),
        (
            "for i in 1 2 3; do setsid sleep 300 >/dev/null 2>&1 </dev/null & done; echo started",
            Some(": sleep (3);"),
        ),
        ("nohup sleep 300 >log 2>&1 & echo started", Some(": sleep;")),
        // The positive control: ended processes are not mentioned.
        ("sleep 0.01 & wait; echo started", None),
        ("echo started", None),
    ] {
        let project = Project::new();
        let text = project.run("bash", json!({"command": script})).result.text;
        assert!(
            text.starts_with("started\n") && text.ends_with("exit code: 0"),
            "{script}: {text}"
        );
        match said {
            Some(said) => assert!(text.contains(said), "{script}: {text}"),
            None => assert_eq!(text, "started\n--- agentd ---\nexit code: 0", "{script}"),
        }
    }
}

fn what_a_background_process_prints_soon_is_kept() {
    let project = Project::new();
    let report = project.run("bash", json!({"command": "(sleep 0.05; echo late) & echo first"}));
    assert_eq!(report.result.text, "first\nlate\n--- agentd ---\nexit code: 0");
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
        report.result.text.ends_with("exit code: 130 (cancelled; all its processes were killed)")
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

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
}

/// The state, the parent and the rest of `/proc/PID/stat`; none where it is gone.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

fn gone(pid: u32) -> bool {
    stat(pid).is_none_or(|fields| fields[0] == "Z" || fields[0] == "X")
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(20), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Its living children but its keeper.
fn other_children(runner: &Runner) -> Vec<u32> {
    let own = runner.child.id().to_string();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let child = |pid: &u32| stat(*pid).is_some_and(|fields| fields[1] == own && fields[0] != "Z");
    all.filter(|pid| Some(*pid) != runner.keeper.map(|keeper| keeper.pid)).filter(child).collect()
}

fn a_keeper_that_is_stopped_outlives_neither_its_runner_nor_its_command() {
    // The runner is killed.
    let project = Project::new();
    let mut runner =
        project.started("bash", json!({"command": format!("{DAEMON} echo printed; sleep 60")}));
    runner.hear_until("printed");
    assert!(appears(&project.path("alive")));
    let keeper = runner.keeper.expect("a keeper").pid;
    signal(keeper, Signal::SIGSTOP);
    until("it is stopped", || stat(keeper).is_some_and(|fields| fields[0] == "T"));
    runner.child.kill().unwrap();
    runner.child.wait().unwrap();
    until("the keeper ends", || gone(keeper));
    assert!(silent(&project.path("alive")), "the daemon outlives the runner");

    // The command ends.
    let mut runner = project.started("bash", json!({"command": "echo printed; sleep 0.5"}));
    runner.hear_until("printed");
    let keeper = runner.keeper.expect("a keeper").pid;
    signal(keeper, Signal::SIGSTOP);
    let begin = Instant::now();
    assert_eq!(runner.done().result.text, "printed\n--- agentd ---\nexit code: 0");
    assert!(gone(keeper) && begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
}

fn a_guard_that_is_lost_has_a_successor() {
    let project = Project::new();
    let mut confinement = project.confinement(Profile::Command);
    // It is looked for as often as a bound is.
    confinement.limits.processes = 100;
    let mut runner = Runner::caged(&confinement);
    let Some(Keeper { pid, kind: KeeperKind::Guard, .. }) = runner.keeper else { return };
    let command = json!({"command": format!("{DAEMON} echo printed; sleep 60")}).to_string();
    runner.say(&ToTool::Go(run("bash", &command)));
    runner.hear_until("printed");
    assert!(appears(&project.path("alive")));
    let before = other_children(&runner);
    signal(pid, Signal::SIGKILL);
    until("another guard stands", || other_children(&runner).len() > before.len());
    // It listens a moment after it was forked.
    std::thread::sleep(Duration::from_millis(100));
    runner.child.kill().unwrap();
    runner.child.wait().unwrap();
    let daemon = project.path("alive");
    until("the daemon ends", || silent(&daemon));
}

fn a_cage_that_dies_before_its_program_is_lost_and_nothing_was_run() {
    let project = Project::new();
    let go = || ToTool::Go(run("bash", r#"{"command":"echo ran >> ran"}"#));
    for of_keeper in [true, false] {
        let mut runner = Runner::caged(&project.confinement(Profile::Command));
        let keeper = runner.keeper.expect("a keeper");
        signal(if of_keeper { keeper.pid } else { keeper.command }, Signal::SIGKILL);
        // The first process of a namespace ends only after the command's was waited for.
        let guard = of_keeper && keeper.kind == KeeperKind::Guard;
        until("it is dead", || gone(if guard { keeper.pid } else { keeper.command }));
        runner.say(&go());
        if guard {
            let text = runner.done().result.text;
            assert!(text.ends_with("exit code: 0"), "it has a successor: {text}");
            std::fs::remove_file(project.path("ran")).unwrap();
            continue;
        }
        let word = runner.hear();
        assert!(matches!(word, Some(FromTool::Cage(FromCage::Lost(_)))), "{word:?}");
        assert!(runner.ended().success());
        assert!(!project.path("ran").exists());
    }
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
    let confine =
        ToTool::Begin(Box::new(CageOrder::Confine(project.confinement(Profile::Command))));
    for words in [vec![go.clone()], vec![ToTool::Cancel], vec![confine.clone(), confine]] {
        let mut runner = Runner::start();
        words.iter().for_each(|word| runner.say(word));
        assert!(!runner.ended().success());
    }
    assert!(!project.path("ran").exists());
}
