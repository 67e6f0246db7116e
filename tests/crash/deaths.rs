//! Any process of a run may be killed in the middle of its turn. The run still ends, loses no data
//! and repeats no effect.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call, text};
use crate::support::daemon::Wire;
use crate::support::wire::Supervisor;
use crate::support::{Desk, child_of, processes};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::client::{ClientEvent, FromClient, SessionStart};
use protocol::judgement;
use protocol::session::OpenTurn;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Outcome of a run in which a process was killed.
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

fn kill_now(pid: u32) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
}

/// Runs one prompt; `at` is called with the number of each request, before it is answered, and with
/// agentd's process id.
fn run_with(
    desk: &Desk,
    mut at: impl FnMut(usize, u32) + Send + 'static,
    mut answers: impl FnMut(usize) -> Answer + Send + 'static,
) -> (Ended, Server) {
    let agentd: Arc<OnceLock<u32>> = Arc::default();
    let known = Arc::clone(&agentd);
    let server = Server::answering(move |request, _| {
        at(request, *known.wait());
        answers(request)
    });
    let limits = ["--timeout", "200", "--max-turns", "100"];
    let arguments = [&["-p", "do it", "--permission-mode", "auto"][..], &limits].concat();
    let mut command = desk.with_server(&server, &arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    agentd.set(pid).unwrap();
    let output = child.wait_with_output().unwrap();
    // Workers of a killed supervisor end by themselves, each at its own pace.
    let left = || processes().into_iter().any(|it| it.session == pid);
    crate::support::until("no process is left behind", || !left());
    let ended = Ended {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    (ended, server)
}

fn worker(agentd: u32, name: &str) -> u32 {
    let supervisor = child_of(agentd, "agentd-supervisor").expect("a supervisor");
    child_of(supervisor, name).unwrap_or_else(|| panic!("no {name}"))
}

fn effect(id: &str) -> Answer {
    let input = json!({"command": "echo ran >> effects"}).to_string();
    Answer::says([text("I will."), call(id, "bash", &input)])
}

#[test]
fn the_conversation_dies_while_the_model_answers() {
    let desk = Desk::new();
    let (ended, server) = run_with(
        &desk,
        |request, agentd| {
            if request == 2 {
                kill_now(worker(agentd, "agentd-session"));
            }
        },
        |request| match request {
            1 => effect("toolu_1"),
            _ => Answer::text("Done."),
        },
    );
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert_eq!(desk.read("effects"), "ran\n", "once");
    let requests = server.requests();
    let (second, last) =
        (&requests[1].body["messages"], &requests.last().unwrap().body["messages"]);
    assert_eq!(second, last, "the new conversation asks what the old one asked");
}

#[test]
fn the_provider_dies_while_the_model_answers() {
    let desk = Desk::new();
    let (ended, _) = run_with(
        &desk,
        |request, agentd| {
            if request == 1 {
                kill_now(worker(agentd, "agentd-provider"));
            }
        },
        |request| match request {
            1 | 2 => effect("toolu_1"),
            _ => Answer::text("Done."),
        },
    );
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert!(ended.err.contains("retry"), "standard error reports it: {}", ended.err);
    assert_eq!(desk.read("effects"), "ran\n", "once");
}

#[test]
fn the_broker_dies_between_two_calls() {
    let desk = Desk::new();
    let (ended, _) = run_with(
        &desk,
        |request, agentd| {
            if request == 2 {
                kill_now(worker(agentd, "agentd-broker"));
            }
        },
        |request| match request {
            1 | 2 => effect(&format!("toolu_{request}")),
            _ => Answer::text("Done."),
        },
    );
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert_eq!(desk.read("effects"), "ran\nran\n");
}

#[test]
fn the_broker_dies_with_a_question_open_and_asks_it_again() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => effect("toolu_1"),
        _ => Answer::text("Done."),
    });
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open_asking(&desk, &server);
    terminal.prompt(&session, "do it");
    let mut asked = || {
        let event = terminal.event(|event| matches!(event, ClientEvent::Asked { .. }));
        let ClientEvent::Asked { question } = event else { panic!("{event:?}") };
        question
    };
    let first = asked();
    kill_now(child_of(supervisor.pid(), "agentd-broker").unwrap());
    let again = asked();
    assert_eq!((&again.call, &again.digest), (&first.call, &first.digest), "the same question");
    assert!(!desk.project().join("effects").exists(), "nothing ran unasked");
    terminal.say(&FromClient::Answer {
        call: again.call,
        digest: again.digest,
        answer: judgement::PersonAnswer::Once,
    });
    terminal.turn_ends();
    assert_eq!(desk.read("effects"), "ran\n", "once");
}

fn slow(id: &str) -> Answer {
    let command = "echo ran >> effects; touch begun; sleep 1; echo end >> effects";
    Answer::says([call(id, "bash", &json!({ "command": command }).to_string())])
}

/// Runs a command that has begun when the last of the named processes, each a child of the one
/// before it, is killed.
fn while_running(names: &'static [&'static str]) -> (Desk, Ended, Server) {
    signalled_while_running(Signal::SIGKILL, names)
}

/// The same with another signal.
fn signalled_while_running(
    signal: Signal,
    names: &'static [&'static str],
) -> (Desk, Ended, Server) {
    signalled_at(Desk::new(), signal, names)
}

/// The same at a desk that was made ready.
fn signalled_at(
    desk: Desk,
    signal: Signal,
    names: &'static [&'static str],
) -> (Desk, Ended, Server) {
    let project = desk.project();
    let (ended, server) = run_with(
        &desk,
        move |request, agentd| {
            if request == 1 {
                let begun = project.join("begun");
                std::thread::spawn(move || {
                    let until = Instant::now() + Duration::from_secs(20);
                    while !begun.exists() && Instant::now() < until {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    let mut pid = agentd;
                    for name in names {
                        pid = child_of(pid, name).unwrap_or_else(|| panic!("no {name}"));
                    }
                    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
                });
            }
        },
        |request| match request {
            1 => slow("toolu_1"),
            _ => Answer::text("Done."),
        },
    );
    (desk, ended, server)
}

#[test]
fn the_conversation_dies_while_a_command_runs_and_the_command_goes_on() {
    let (desk, ended, server) = while_running(&["agentd-supervisor", "agentd-session"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert_eq!(desk.read("effects"), "ran\nend\n", "once, to its end");
    let body = server.requests()[1].body["messages"].to_string();
    assert!(!body.contains("interrupted"), "{body}");
}

/// The new conversation waits for the command, and is pinged meanwhile.
#[test]
fn the_conversation_dies_while_a_long_command_runs_and_the_turn_goes_on() {
    let desk = Desk::new().with_ping_ms(100);
    let (desk, ended, _) =
        signalled_at(desk, Signal::SIGKILL, &["agentd-supervisor", "agentd-session"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert_eq!(desk.read("effects"), "ran\nend\n", "once, to its end");
}

#[test]
fn the_runner_dies_while_its_command_runs_and_the_model_is_told() {
    let (desk, ended, server) = while_running(&["agentd-supervisor", "agentd-tool"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert_eq!(desk.read("effects"), "ran\n", "cut short, and not run again");
    let body = server.requests()[1].body["messages"].to_string();
    assert!(body.contains("interrupted: may have run"), "{body}");
    assert_eq!(desk.ended(1)["outcome"]["how"], "interrupted");
}

#[test]
fn the_supervisor_dies_while_a_command_runs_and_another_goes_on() {
    let (desk, ended, server) = while_running(&["agentd-supervisor"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert!(ended.err.contains("supervisor was lost"), "standard error reports it: {}", ended.err);
    assert_eq!(desk.read("effects"), "ran\n", "cut short, and not run again");
    let body = server.requests()[1].body["messages"].to_string();
    assert!(body.contains("interrupted: may have run"), "{body}");
    assert_eq!(crate::support::run(desk.agentd(&["audit", "verify"])).code, 0);
}

#[test]
fn the_supervisor_dies_while_the_model_answers_and_another_goes_on() {
    let desk = Desk::new();
    let (ended, server) = run_with(
        &desk,
        |request, agentd| {
            if request == 2 {
                kill_now(child_of(agentd, "agentd-supervisor").unwrap());
            }
        },
        |request| match request {
            1 => effect("toolu_1"),
            _ => Answer::text("Done."),
        },
    );
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert_eq!(desk.read("effects"), "ran\n", "once");
    let requests = server.requests();
    assert_eq!(requests[1].body["messages"], requests.last().unwrap().body["messages"]);
}

/// Kills per round, and how many rounds: more than any limit on restarts lets a loop have.
const ROUNDS: usize = 34;

/// Runs it to its end; its process id is known while it runs.
pub fn run_known(mut command: Command, agentd: &OnceLock<u32>) -> crate::support::Run {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    agentd.set(child.id()).unwrap();
    let began = Instant::now();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    crate::support::Run {
        code: output.status.code().unwrap_or(-1),
        out,
        err,
        took: began.elapsed(),
    }
}

/// A turn of many rounds. Each round's request is asked twice: the named process, found from agentd's,
/// is killed while the model answers for the first time.
fn killed_once_a_round(victim: fn(u32) -> u32, arguments: &[&str]) -> (Desk, crate::support::Run) {
    let desk = Desk::new();
    let agentd: Arc<OnceLock<u32>> = Arc::default();
    let known = Arc::clone(&agentd);
    let mut struck = 0;
    let server = Server::answering(move |_, body| {
        let round = body["messages"].to_string().matches("\"tool_result\"").count();
        if round == struck && round < ROUNDS {
            struck += 1;
            kill_now(victim(*known.wait()));
            return Answer::text("never heard").stalled_after(1, Duration::from_secs(20));
        }
        match round {
            ROUNDS => Answer::text("Done."),
            _ => {
                let input = json!({ "command": format!("echo {round} >> effects") }).to_string();
                Answer::says([call(&format!("toolu_{round}"), "bash", &input)])
            }
        }
    });
    let always =
        ["-p", "do it", "--permission-mode", "auto", "--max-turns", "100", "--timeout", "300"];
    let arguments: Vec<_> = always.iter().chain(arguments).copied().collect();
    let ran = run_known(desk.with_server(&server, &arguments), &agentd);
    (desk, ran)
}

/// Each number of a round once, in order.
fn each_once() -> String {
    (0..ROUNDS).map(|round| format!("{round}\n")).collect()
}

#[test]
fn a_conversation_that_is_killed_once_a_round_comes_to_its_end() {
    let (desk, ran) = killed_once_a_round(|agentd| worker(agentd, "agentd-session"), &[]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    assert_eq!(desk.read("effects"), each_once());
}

#[test]
fn a_provider_that_is_killed_once_a_round_comes_to_its_end() {
    let (desk, ran) = killed_once_a_round(|agentd| worker(agentd, "agentd-provider"), &[]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    assert_eq!(desk.read("effects"), each_once());
}

#[test]
fn a_broker_that_is_killed_once_a_round_comes_to_its_end() {
    let desk = Desk::new();
    let (ended, _) = run_with(
        &desk,
        |_, agentd| kill_now(worker(agentd, "agentd-broker")),
        |request| match request {
            ..=ROUNDS => effect(&format!("toolu_{request}")),
            _ => Answer::text("Done."),
        },
    );
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert_eq!(desk.read("effects").lines().count(), ROUNDS);
}

#[test]
fn a_supervisor_that_is_killed_once_a_round_comes_to_its_end() {
    let supervisor = |agentd| child_of(agentd, "agentd-supervisor").expect("a supervisor");
    let (desk, ran) = killed_once_a_round(supervisor, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    assert_eq!(desk.read("effects"), each_once());
}

/// The only session of a desk, from its directory.
fn only_session(desk: &Desk) -> String {
    let mut sessions = std::fs::read_dir(desk.state().join("sessions")).unwrap();
    sessions.next().unwrap().unwrap().file_name().into_string().unwrap()
}

fn journal_of(desk: &Desk, id: &str) -> String {
    let journal = desk.state().join("sessions").join(id).join("journal.jsonl");
    std::fs::read_to_string(journal).unwrap()
}

/// How many supervisors were started: the first line that each one logs is about cgroups.
fn supervisor_starts(desk: &Desk) -> usize {
    let log = std::fs::read_to_string(desk.state().join("log/supervisor.log")).unwrap();
    let first = |line: &&str| line.contains(" supervisor_worker: ") && line.contains(" cgroup");
    log.lines().filter(first).count()
}

/// The client starts another supervisor until the third in a row dies without progress. Each new one
/// reads the pinned file again, which does not count as progress.
#[test]
fn a_supervisor_that_dies_each_time_is_given_up() {
    /// Supervisors that one client may lose, `LOSSES` of the client.
    const STARTS: usize = 3;
    for arguments in [&[][..], &["--context", "notes", "--output-format", "json"]] {
        let desk = Desk::new();
        desk.write("notes", "remember\n");
        let agentd: Arc<OnceLock<u32>> = Arc::default();
        let known = Arc::clone(&agentd);
        let (sender, killed) = std::sync::mpsc::channel();
        let server = Server::answering(move |number, _| {
            if number > STARTS {
                return Answer::text("one supervisor too many");
            }
            let supervisor = child_of(*known.wait(), "agentd-supervisor").unwrap();
            let family = processes().into_iter();
            let family = family.filter(|it| it.pid == supervisor || it.parent == supervisor);
            sender.send((supervisor, family.map(|it| it.pid).collect::<Vec<_>>())).unwrap();
            kill_now(supervisor);
            Answer::text("never heard").stalled_after(1, Duration::from_secs(20))
        });
        let arguments: Vec<_> = ["-p", "do it"].iter().chain(arguments).copied().collect();
        let ran = run_known(desk.with_server(&server, &arguments), &agentd);
        let (out, err) = (&ran.out, &ran.err);
        assert_eq!(ran.code, 15, "{err}");
        let id = only_session(&desk);
        for word in ["agentd-supervisor", "signal 9", &format!("--resume {id}")] {
            assert!(err.contains(word), "{word}: {err}");
        }
        let with_json = arguments.contains(&"json");
        if with_json {
            let line: serde_json::Value = serde_json::from_str(out.trim()).unwrap();
            assert_eq!(line["session_id"], id.as_str(), "{line}");
        }

        // No process of the run is left: no further supervisor, and no worker of a killed one.
        let (supervisors, family): (Vec<u32>, Vec<_>) = killed.try_iter().unzip();
        let family: Vec<u32> = family.concat();
        assert!(family.len() > 2 * STARTS, "each supervisor had workers: {family:?}");
        let client = *agentd.wait();
        let is_left =
            |it: &crate::support::Process| it.session == client || family.contains(&it.pid);
        crate::support::until("no process of the run is left", || !processes().iter().any(is_left));

        // Exactly the allowed number of starts, and one request by each supervisor.
        assert_eq!(supervisor_starts(&desk), STARTS, "{err}");
        assert_eq!(supervisors.len(), STARTS, "each one was killed: {err}");
        let requests = server.requests();
        assert_eq!(requests.len(), STARTS, "{err}");
        for request in &requests {
            let messages = request.body["messages"].to_string();
            assert_eq!(messages.matches("do it").count(), 1, "{messages}");
            assert_eq!(messages.matches("remember").count(), usize::from(with_json), "{messages}");
        }
        let count = |journal: &str, part: &str| journal.matches(part).count();
        let (prompt, pinned) = (r#""kind":"PROMPT""#, r#""pinned":"notes""#);
        let kept = journal_of(&desk, &id);
        assert_eq!(count(&kept, prompt), 1, "{kept}");
        assert_eq!(count(&kept, pinned), usize::from(with_json), "{kept}");

        let server = Server::scripted([Answer::text("on")]);
        let ran = desk.ask(&server, &["--resume", &id]);
        assert_eq!((ran.code, ran.result().as_str()), (0, "on"), "{ran:?}");
        let kept = journal_of(&desk, &id);
        assert_eq!(count(&kept, prompt), 2, "the resuming prompt is the only other one: {kept}");
        assert_eq!(count(&kept, pinned), usize::from(with_json), "{kept}");
        assert!(!kept.contains("interrupted"), "no person stopped anything: {kept}");
    }
}

/// Each further one is killed as soon as it is seen, before it has a session.
#[test]
fn a_supervisor_that_dies_while_it_opens_the_session_is_replaced_by_another() {
    for (more, code) in [(1, 0), (9, 15)] {
        let desk = Desk::new();
        let agentd: Arc<OnceLock<u32>> = Arc::default();
        let known = Arc::clone(&agentd);
        let server = Server::answering(move |number, _| {
            if number > 1 {
                return Answer::text("on");
            }
            let agentd = *known.wait();
            let first = child_of(agentd, "agentd-supervisor").unwrap();
            kill_now(first);
            std::thread::spawn(move || {
                let (mut last, mut left) = (first, more);
                while left > 0 && std::path::Path::new(&format!("/proc/{agentd}")).exists() {
                    match child_of(agentd, "agentd-supervisor") {
                        Some(next) if next != last => {
                            // It may have noticed the loss of its client and have ended.
                            let _ = kill(Pid::from_raw(next.cast_signed()), Signal::SIGKILL);
                            (last, left) = (next, left - 1);
                        }
                        Some(_) | None => std::thread::yield_now(),
                    }
                }
            });
            Answer::text("never heard").stalled_after(1, Duration::from_secs(20))
        });
        let ran = run_known(desk.with_server(&server, &["-p", "do it"]), &agentd);
        assert_eq!(ran.code, code, "{}", ran.err);
        match code {
            0 => assert_eq!(ran.out, "on\n", "{}", ran.err),
            _ => {
                let id = only_session(&desk);
                for word in ["agentd-supervisor", "session was reopened", &format!("--resume {id}")]
                {
                    assert!(ran.err.contains(word), "{word}: {}", ran.err);
                }
            }
        }
    }
}

/// Checks the report of a run whose turn ended because this process died each time: output,
/// journal, `show` and `ls`.
fn says_what_died(desk: &Desk, name: &str, ran: &crate::support::Run) {
    assert_eq!(ran.code, 17, "{ran:?}");
    let id = only_session(desk);
    let line = ran.json();
    assert_eq!((&line["subtype"], &line["is_error"]), (&json!("error_process_died"), &json!(true)));
    assert_eq!(line["process_died"]["process"], name, "{line}");
    let error = line["error"].as_str().unwrap();
    for word in [name, "signal 9", "turn 1", "request 1", &format!("--resume {id}")] {
        assert!(error.contains(word), "{word}: {error}");
    }
    let kept = journal_of(desk, &id);
    assert!(kept.contains(r#""how":"process_died""#), "{kept}");
    assert!(!kept.contains("interrupted"), "no person stopped anything: {kept}");
    let shown = crate::support::run(desk.agentd(&["show", &id])).out;
    for word in ["cut short", name, "signal 9", &format!("--resume {id}")] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let listed = crate::support::run(desk.agentd(&["ls"])).out;
    assert!(listed.contains("cut short"), "{listed}");
    let row = crate::support::run(desk.agentd(&["ls", "--json"])).json();
    assert_eq!(row["state"], "cut_short", "{row}");
    assert!(row["why"].as_str().unwrap().contains(name), "{row}");
    let server = Server::scripted([Answer::text("on")]);
    let ran = desk.ask(&server, &["--resume", &id]);
    assert_eq!((ran.code, ran.result().as_str()), (0, "on"), "{ran:?}");
    let row = crate::support::run(desk.agentd(&["ls", "--json"])).json();
    assert_eq!(row["state"], "ended", "{row}");
}

fn killed_at_each_request(
    desk: &Desk,
    name: &'static str,
    flags: &[&str],
) -> (crate::support::Run, Server) {
    let agentd: Arc<OnceLock<u32>> = Arc::default();
    let known = Arc::clone(&agentd);
    let server = Server::answering(move |_, _| {
        kill_now(worker(*known.wait(), name));
        Answer::text("never heard").stalled_after(1, Duration::from_secs(20))
    });
    let always = ["-p", "do it", "--output-format", "json"];
    let arguments: Vec<_> = always.iter().chain(flags).copied().collect();
    let ran = run_known(desk.with_server(&server, &arguments), &agentd);
    (ran, server)
}

/// No process is left to record an end. `ls` and `show` report the cut all the same.
#[test]
fn what_a_kill_of_everything_cut_short_is_said_before_it_is_resumed() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => slow("toolu_1"),
        _ => Answer::text("on"),
    });
    let mut client = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let mut client = client.stderr(Stdio::piped()).spawn().unwrap();
    crate::support::until("the call runs", || desk.project().join("begun").exists());
    let id = only_session(&desk);
    let show =
        |flags: &[&str]| crate::support::run(desk.agentd(&[&["show", &id], flags].concat())).out;
    assert!(!show(&[]).contains("cut short"), "it runs: {}", show(&[]));
    let supervisor = child_of(client.id(), "agentd-supervisor").unwrap();
    crate::support::send(client.id(), Signal::SIGSTOP);
    kill_now(supervisor);
    kill_now(client.id());
    client.wait().unwrap();
    let left = || processes().into_iter().any(|it| it.session == client.id());
    crate::support::until("no process is left behind", || !left());

    let row = crate::support::run(desk.agentd(&["ls", "--json"])).json();
    assert_eq!(row["state"], "cut_short", "{row}");
    assert!(row["why"].as_str().unwrap().contains("agentd-supervisor ended"), "{row}");
    assert!(crate::support::run(desk.agentd(&["ls"])).out.contains("cut short"));
    let shown = show(&[]);
    assert!(shown.contains("1 cut short") && shown.contains("it may have run"), "{shown}");
    assert!(shown.contains(&format!("--resume {id}")), "{shown}");
    let last = show(&["--json"]);
    assert!(last.contains(r#""kind":"CUT_SHORT""#), "{last}");
    let exported = crate::support::run(desk.agentd(&["export", &id])).out;
    assert!(exported.contains("was cut short"), "{exported}");

    let ran = desk.ask(&server, &["--resume", &id]);
    assert_eq!((ran.code, ran.result().as_str()), (0, "on"), "{ran:?}");
    let shown = show(&[]);
    assert_eq!(shown.matches("1 cut short").count(), 1, "it is on record now: {shown}");
    assert!(!shown.contains("--resume"), "{shown}");
    let row = crate::support::run(desk.agentd(&["ls", "--json"])).json();
    assert_eq!(row["state"], "ended", "{row}");
}

/// With a pinned file, which each new conversation reads again: that is no progress.
#[test]
fn a_conversation_that_dies_each_time_ends_its_turn_and_says_so() {
    for flags in [&[][..], &["--context", "notes"]] {
        let desk = Desk::new();
        desk.write("notes", "remember\n");
        let (ran, server) = killed_at_each_request(&desk, "agentd-session", flags);
        assert_eq!(server.requests().len(), 3, "each try asks the model anew, so there are few");
        says_what_died(&desk, "agentd-session", &ran);
    }
}

#[test]
fn a_provider_that_dies_each_time_ends_its_turn_and_says_so() {
    let desk = Desk::new();
    let (ran, server) = killed_at_each_request(&desk, "agentd-provider", &[]);
    assert_eq!(server.requests().len(), 5);
    says_what_died(&desk, "agentd-provider", &ran);
}

#[test]
fn a_session_does_not_go_on_before_the_last_command_of_its_dead_supervisor_has_ended() {
    let desk = Desk::new();
    let ticks = desk.project().join("ticks");
    let (ended, server) = run_with(
        &desk,
        move |request, agentd| match request {
            1 => {
                let begun = ticks.clone();
                std::thread::spawn(move || {
                    let until = Instant::now() + Duration::from_secs(20);
                    while !begun.exists() && Instant::now() < until {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    kill_now(child_of(agentd, "agentd-supervisor").unwrap());
                });
            }
            _ => {
                let before = std::fs::metadata(&ticks).unwrap().len();
                // A command that still ran would write some thirty lines in this time.
                std::thread::sleep(Duration::from_millis(300));
                let after = std::fs::metadata(&ticks).unwrap().len();
                std::fs::write(ticks.with_file_name("moved"), (after - before).to_string())
                    .unwrap();
            }
        },
        |request| match request {
            1 => {
                // Ignores TERM, so that it takes the whole ladder to end it.
                let command = "trap '' TERM; while :; do echo x >> ticks; sleep 0.01; done";
                Answer::says([call("toolu_1", "bash", &json!({ "command": command }).to_string())])
            }
            _ => Answer::text("Done."),
        },
    );
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert_eq!(desk.read("moved"), "0", "the command still ran when the model was asked again");
    assert_eq!(server.requests().len(), 2);
}

/// A stopped process is not dead: it is found by its silence.
#[test]
fn a_worker_that_is_stopped_is_found_and_replaced() {
    for name in ["agentd-session", "agentd-provider", "agentd-broker", "agentd-store"] {
        let desk = Desk::new();
        let (ended, _) = run_with(
            &desk,
            move |request, agentd| {
                if request == 1 {
                    let pid = i32::try_from(worker(agentd, name)).unwrap();
                    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
                }
            },
            |request| match request {
                1 => effect("toolu_1"),
                _ => Answer::text("Done."),
            },
        );
        let lived = (ended.code, ended.out.as_str());
        // The provider's first answer is asked for again, and so is the conversation's.
        assert_eq!(lived, (Some(0), "Done.\n"), "{name}: {}", ended.err);
    }
}

#[test]
fn a_runner_that_is_stopped_is_found_and_its_call_reported() {
    let (desk, ended, server) =
        signalled_while_running(Signal::SIGSTOP, &["agentd-supervisor", "agentd-tool"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    let effects = desk.read("effects");
    assert!(effects.starts_with("ran\n") && effects.matches("ran").count() == 1, "{effects}");
    let body = server.requests()[1].body["messages"].to_string();
    assert!(body.contains("interrupted: may have run"), "{body}");
    assert!(body.contains("did not answer"), "{body}");
}

#[test]
fn a_supervisor_that_is_stopped_is_found_and_replaced() {
    let (desk, ended, _) = signalled_while_running(Signal::SIGSTOP, &["agentd-supervisor"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
    assert!(ended.err.contains("supervisor was lost"), "standard error reports it: {}", ended.err);
    assert_eq!(desk.read("effects").matches("ran").count(), 1, "not run again");
}

/// A busy machine makes each supervisor silent for a while. The note shows that the wait was long
/// enough for it to be doubted.
#[test]
fn a_supervisor_that_is_silent_for_a_while_is_waited_for() {
    let desk = Desk::new();
    let server = Server::answering(|request, _| match request {
        1 => effect("toolu_1"),
        2 => Answer::text("half").stalled_after(2, Duration::from_secs(300)),
        _ => Answer::text("Asked again."),
    });
    let mut command = desk.with_server(&server, &["-p", "do it", "--permission-mode", "auto"]);
    let mut client = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    crate::support::until("the second request", || server.requests().len() == 2);
    let supervisor = child_of(client.id(), "agentd-supervisor").unwrap();
    crate::support::send(supervisor, Signal::SIGSTOP);
    let mut said = BufReader::new(client.stderr.take().unwrap()).lines();
    let doubted = said.by_ref().any(|line| line.unwrap().contains("agentd waits for it"));
    crate::support::send(supervisor, Signal::SIGCONT);
    assert!(doubted, "it was given up at once");
    // Longer than a client waits between two looks: it answers now.
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(child_of(client.id(), "agentd-supervisor"), Some(supervisor));
    crate::support::send(client.id(), Signal::SIGINT);
    assert_eq!(client.wait().unwrap().code(), Some(130));
    let rest: String = said.map(Result::unwrap).collect();
    assert!(!rest.contains("supervisor was lost"), "{rest}");
}

/// No client is attached yet; the client that resumed the turn is about to attach.
#[test]
fn the_conversation_dies_before_the_one_who_opened_the_session_attaches() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => effect("toolu_1"),
        2 | 3 => Answer::text("half").stalled_after(100, Duration::from_secs(30)),
        _ => Answer::text("done"),
    });
    let first = desk.daemon();
    let opening = protocol::client::SessionRequest {
        mode: Some(judgement::PermissionMode::Auto),
        ..desk.opening(&server)
    };
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    crate::support::until("the second request", || server.requests().len() == 2);
    kill_now(first.pid);
    drop(wire);
    std::mem::forget(first);
    let daemon = desk.daemon();
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::GoesOn };
    let mut wire = Wire::to(&desk.door());
    wire.opened(&protocol::client::SessionRequest { start, ..opening });
    // The conversation has its history and continues the turn.
    crate::support::until("the turn is resumed", || server.requests().len() >= 3);
    let conversation = child_of(daemon.pid, "agentd-session").unwrap();
    kill_now(conversation);
    crate::support::until("another one", || {
        child_of(daemon.pid, "agentd-session").is_some_and(|it| it != conversation)
    });
    wire.attach(
        &session,
        protocol::client::BacklogFrom::Seq(1),
        protocol::client::ClientRights::Full,
    );
    wire.prompt(&session, "and this?");
    wire.turn_ends();
    let ends = || {
        let journal = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
        std::fs::read_to_string(journal).unwrap()
    };
    crate::support::until("both turns end", || {
        ends().matches(r#""kind":"TURN_ENDED""#).count() == 2
    });
    assert!(!ends().contains("interrupted"), "{}", ends());
    assert_eq!(desk.read("effects"), "ran\n");
}

#[test]
fn an_image_is_sent_again_the_same_after_a_death() {
    for victim in ["agentd-session", "agentd-supervisor"] {
        let desk = Desk::new();
        let picture = image::RgbImage::from_fn(64, 48, |x, y| image::Rgb([x as u8, y as u8, 7]));
        picture.save(desk.project().join("shot.png")).unwrap();
        let file = desk.project().join("shot.png");
        let (ended, server) = run_with(
            &desk,
            move |request, agentd| {
                if request == 2 {
                    // Only the journal has it from here on.
                    let _ = std::fs::remove_file(&file);
                    match victim {
                        "agentd-supervisor" => kill_now(child_of(agentd, victim).unwrap()),
                        _ => kill_now(worker(agentd, victim)),
                    }
                }
            },
            |request| match request {
                1 => Answer::says([call("toolu_1", "read", r#"{"path":"shot.png"}"#)]),
                _ => Answer::text("Done."),
            },
        );
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), "Done.\n"), "{}", ended.err);
        let requests = server.requests();
        assert!(requests.len() > 2, "{victim}: asked again");
        let last = &requests.last().unwrap().body["messages"];
        assert_eq!(requests[1].body["messages"], *last, "{victim}");
        assert_eq!(last[2]["content"][0]["content"][1]["type"], "image", "{victim}");
    }
}
