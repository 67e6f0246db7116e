//! Known failures of daemons, and a test for each that agentd does not have it. This file tests
//! processes, sessions and conversations. A test is named by the failure's number. The table below
//! lists the tests in other files.
#![allow(clippy::unwrap_used)]

/// Failures whose tests are in other files under other names.
const ELSEWHERE: [(u32, &str, &str); 23] = [
    (
        1,
        "crates/supervise/src/control_socket/daemon_lock.rs",
        "failure_1_a_lock_that_nobody_holds_is_no_obstacle",
    ),
    (
        2,
        "crates/supervise/src/control_socket/daemon_lock.rs",
        "failure_2_a_displaced_daemon_leaves_its_successor_s_socket",
    ),
    (3, "tests/daemon/lifetime.rs", "failure_3_a_daemon_of_another_build_is_named_and_left_alone"),
    (4, "tests/daemon/sessions.rs", "failure_19_and_4_two_projects_never_touch_each_other"),
    (5, "crates/launch/src/restart_tests.rs", "a_jump_of_the_clock_fails_nothing"),
    (8, "crates/launch/src/restart_tests.rs", "no_worker_loops"),
    (11, "tests/daemon/sessions.rs", "failure_11_a_question_outlives_the_broker_and_the_daemon"),
    (
        12,
        "tests/daemon/sessions.rs",
        "failure_12_and_20_fifty_clients_of_which_one_never_reads_slow_nobody",
    ),
    (
        14,
        "tests/daemon/sessions.rs",
        "failure_14_a_session_that_is_live_is_joined_and_never_opened_twice",
    ),
    (15, "tests/daemon/lifetime.rs", "failure_15_a_socket_path_that_is_too_long_is_named"),
    (17, "crates/session/tests/session/turns.rs", "open_calls_of_a_journal_are_closed_on_load"),
    (19, "tests/daemon/sessions.rs", "failure_19_and_4_two_projects_never_touch_each_other"),
    (
        20,
        "tests/daemon/sessions.rs",
        "failure_12_and_20_fifty_clients_of_which_one_never_reads_slow_nobody",
    ),
    (
        44,
        "crates/launch/src/process_tests.rs",
        "the_last_words_of_a_process_that_spoke_faster_than_it_was_heard_are_not_lost",
    ),
    (45, "crates/launch/src/process_tests.rs", "a_word_of_an_earlier_life_is_dropped"),
    (
        47,
        "tests/client/end_to_end.rs",
        "a_broken_stream_is_tried_again_and_its_half_is_neither_shown_nor_run",
    ),
    (
        47,
        "tests/crash/faults.rs",
        "a_provider_killed_in_mid_stream_is_asked_again_and_its_half_is_not_run",
    ),
    (48, "tests/crash/deaths.rs", "the_supervisor_dies_while_a_command_runs_and_another_goes_on"),
    (
        49,
        "tests/client/end_to_end.rs",
        "a_denied_call_does_not_run_and_a_run_without_a_person_says_so_with_ten",
    ),
    (50, "crates/session/tests/session/turns.rs", "words_about_another_request_are_ignored"),
    (51, "crates/session/tests/session/turns.rs", "prompts_wait_for_their_turn_in_order"),
    (52, "crates/protocol/src/hidden.rs", "no_hidden_character_is_left_by_any_way"),
    (
        53,
        "crates/supervise/src/route_tests.rs",
        "late_words_about_a_request_that_was_given_up_are_none_about_the_next_of_the_same_number",
    ),
];

#[test]
fn each_failure_has_its_test() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    for (number, file, test) in ELSEWHERE {
        let there = read(file).contains(&format!("fn {test}("));
        assert!(there, "failure {number}: {file} has no test {test}");
    }
    let own = ["crash/failures", "crash/daemon_failures", "cage/escapes", "daemon/bad_input"];
    let own = own.map(|file| read(&format!("tests/{file}.rs"))).concat();
    for number in (1..=22).chain(40..=53) {
        let shown = own.contains(&format!("\nfn failure_{number:02}_"))
            || ELSEWHERE.iter().any(|(other, ..)| *other == number);
        assert!(shown, "failure {number} has no test");
    }
}

use crate::support::anthropic::{Answer, Server, call};
use crate::support::wire::Supervisor;
use crate::support::{Desk, child_of, place, precede, processes, run, send, until, wrote};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, FromClient, SessionStart, ToClient};
use protocol::ids::SessionId;
use protocol::session::{OpenTurn, TurnEnd};
use serde_json::json;
use std::fs;
use std::time::Duration;

fn bash(id: &str, command: &str) -> crate::support::anthropic::Say {
    call(id, "bash", &json!({ "command": command }).to_string())
}

fn done() -> ClientEvent {
    ClientEvent::TurnEnded { end: TurnEnd::Done }
}

fn resume(session: &SessionId) -> SessionStart {
    SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits }
}

/// Every process stops, as in a machine that sleeps, while the supervisor pings its workers.
#[test]
fn failure_05_sleep_and_wake_fire_every_timeout_at_once() {
    let desk = Desk::new();
    let slow = Answer::text("slowly").stalled_after(100, Duration::from_secs(7));
    let server = Server::scripted([slow]);
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&session, "x");
    until("asked", || server.requests().len() == 1);
    let before = terminal.processes();
    // Longer than a ping's time: the supervisor pings the workers that a turn depends on by then.
    std::thread::sleep(Duration::from_millis(2100));
    let all: Vec<u32> = before.iter().map(|row| row.pid).collect();
    all.iter().for_each(|pid| send(*pid, Signal::SIGSTOP));
    // Longer than two such intervals, after which a silent worker is killed.
    std::thread::sleep(Duration::from_millis(4500));
    all.iter().for_each(|pid| send(*pid, Signal::SIGCONT));
    assert_eq!(terminal.turn_ends(), done());
    assert_eq!(terminal.processes(), before, "no process was taken for dead");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn failure_07_a_killed_session_is_started_again_by_itself() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => Answer::says([bash("toolu_1", "echo x >> effects; touch begun; sleep 300")]),
        _ => Answer::text("other"),
    });
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let left = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&left, "x");
    until("the call runs", || desk.project().join("begun").exists());
    let temp = std::path::Path::new("/tmp").join(format!("agentd-{left}"));
    assert!(temp.exists());
    send(supervisor.pid(), Signal::SIGKILL);
    supervisor.ended();

    let next = Supervisor::start(&desk);
    let mut terminal = next.terminal();
    let new = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&new, "y");
    assert_eq!(terminal.turn_ends(), done());
    assert!(temp.exists(), "the next supervisor of the session finds it");
    let sessions: Vec<_> = terminal.processes().into_iter().filter_map(|row| row.session).collect();
    assert!(sessions.iter().all(|session| *session == new), "{sessions:?}");
    assert_eq!(server.requests().len(), 2, "no client resumed the old session");
    assert_eq!(desk.read("effects"), "x\n");
    let mut again = next.terminal();
    again.open(&desk, &server, resume(&left));
    again.turn_ends();
    again.prompt(&left, "go on");
    assert_eq!(again.turn_ends(), done(), "the positive control");
    assert_eq!(desk.read("effects"), "x\n");
}

#[test]
fn failure_08_a_conversation_that_dies_on_its_journal_is_set_apart_and_the_others_go_on() {
    let desk = Desk::new();
    let place = place(&desk);
    let (poison, starts) = (desk.outside().join("poison"), desk.outside().join("starts"));
    let script = format!(
        "if [ -e {} ]; then echo x >> {}; exit 3; fi; exec $real",
        poison.display(),
        starts.display()
    );
    precede(&place, "agentd-session", &script);
    let server = Server::answering(|_, _| Answer::text("here"));
    let supervisor = Supervisor::of(&desk, &place.join("agentd-supervisor"));
    let (mut one, mut other) = (supervisor.terminal(), supervisor.terminal());
    let sick = one.open(&desk, &server, SessionStart::New);
    let well = other.open(&desk, &server, SessionStart::New);
    one.prompt(&sick, "first");
    one.turn_ends();
    other.prompt(&well, "first");
    other.turn_ends();
    let neighbour = other.worker(&well, "agentd-session");

    fs::write(&poison, "").unwrap();
    send(one.worker(&sick, "agentd-session"), Signal::SIGKILL);
    let degraded = one.event(|event| matches!(event, ClientEvent::Degraded { .. }));
    let ClientEvent::Degraded { reason } = degraded else { panic!("{degraded:?}") };
    assert!(reason.contains(&format!("`agentd restart {sick}`")), "{reason}");
    assert!(reason.contains("can be read"), "{reason}");
    assert_eq!(fs::read_to_string(&starts).unwrap(), "x\nx\nx\n", "three tries, no more");

    // It refuses prompts and can be read. The other session is not affected.
    let asked = server.requests().len();
    one.prompt(&sick, "second");
    one.event(|event| matches!(event, ClientEvent::Degraded { .. }));
    let mut late = supervisor.terminal();
    late.attach(&sick, protocol::client::BacklogFrom::Seq(1));
    late.event(|event| matches!(event, ClientEvent::Answer { .. }));
    late.event(|event| matches!(event, ClientEvent::Degraded { .. }));
    assert_eq!(server.requests().len(), asked);
    other.prompt(&well, "second");
    assert_eq!(other.turn_ends(), ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert_eq!(other.worker(&well, "agentd-session"), neighbour);

    // A person restarts it. The same fault ends it again.
    let again = run(desk.agentd(&["restart", &sick.0[..6]]));
    assert_eq!(again.code, 0, "{again:?}");
    one.event(|event| matches!(event, ClientEvent::Degraded { .. }));
    fs::remove_file(&poison).unwrap();
    let again = run(desk.agentd(&["restart", &sick.0]));
    assert_eq!(again.code, 0, "{again:?}");
    one.prompt(&sick, "third");
    assert_eq!(one.turn_ends(), ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert!(supervisor.end().success());
}

#[test]
fn failure_10_a_command_that_prints_without_end_fills_the_memory() {
    let desk = Desk::new();
    let flood = "head -c 300000000 /dev/zero | tr '\\0' 'x'; head -c 300000000 /dev/zero >&2";
    let server = Server::scripted([Answer::says([bash("toolu_1", flood)]), Answer::text("much")]);
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&session, "x");
    assert_eq!(terminal.turn_ends(), done());
    let status = fs::read_to_string(format!("/proc/{}/status", supervisor.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak < 100_000, "{peak} kB");
    let told = server.requests()[1].body["messages"].to_string();
    assert!(told.len() < 200_000, "{}", told.len());
}

/// A vendor refuses every later request of a conversation in which a call has no result.
#[test]
fn failure_17_a_call_without_a_result_stays_in_the_transcript() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => Answer::says([
            bash("toolu_1", "echo x >> effects; sleep 50"),
            bash("toolu_2", "echo x >> effects"),
        ]),
        _ => Answer::text("on"),
    });
    let mut client = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let mut client = client.spawn().unwrap();
    until("the first call runs", || wrote(&desk.project().join("effects")));
    // No process is left that could record an end or resume the turn.
    let supervisor = child_of(client.id(), "agentd-supervisor").unwrap();
    send(client.id(), Signal::SIGSTOP);
    send(supervisor, Signal::SIGKILL);
    send(client.id(), Signal::SIGKILL);
    client.wait().unwrap();
    let mut sessions = fs::read_dir(desk.state().join("sessions")).unwrap();
    let directory = sessions.next().unwrap().unwrap().path();
    let id = directory.file_name().unwrap().to_str().unwrap().to_owned();
    let kept = fs::read_to_string(directory.join("journal.jsonl")).unwrap();
    let number = |kind: &str| kept.matches(&format!(r#""kind":"{kind}""#)).count();
    assert_eq!((number("RESULT"), number("INTERRUPTED")), (0, 0), "calls are left open: {kept}");
    assert!(number("PROPOSED") > 0, "{kept}");

    for later in ["on with it", "and again"] {
        let ran = run(desk.with_server(&server, &["-p", later, "--resume", &id]));
        assert_eq!(ran.code, 0, "{later}: {ran:?}");
        let requests = server.requests();
        let messages = requests.last().unwrap().body["messages"].as_array().unwrap();
        let ids = |message: &serde_json::Value, kind: &str, name: &str| {
            let blocks = message["content"].as_array().into_iter().flatten();
            let blocks = blocks.filter(|block| block["type"] == kind);
            blocks.map(|block| block[name].clone()).collect::<Vec<_>>()
        };
        let calls = messages.iter().position(|it| it["role"] == "assistant").unwrap();
        let called = ids(&messages[calls], "tool_use", "id");
        assert_eq!(called.len(), 2, "{messages:#?}");
        assert_eq!(ids(&messages[calls + 1], "tool_result", "tool_use_id"), called);
    }
    assert_eq!(desk.read("effects"), "x\n", "and nothing was done again");
}

#[test]
fn failure_18_the_cage_is_applied_to_the_supervisor() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 | 2 => Answer::says([bash(&format!("toolu_{n}"), "grep ^Seccomp: /proc/self/status")]),
        _ => Answer::text("done"),
    });
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&session, "x");
    assert_eq!(terminal.turn_ends(), done(), "it wrote the second call down after the first");
    let told = server.requests()[2].body["messages"].to_string();
    assert_eq!(told.matches("Seccomp:\\t2").count(), 2, "the positive control: {told}");
    let status = fs::read_to_string(format!("/proc/{}/status", supervisor.pid())).unwrap();
    assert!(status.contains("Seccomp:\t0"), "{status}");
}

/// The supervisor's threads for blocking work end when they are idle. The thread that starts the
/// workers stays, since a worker ends with its parent thread. An idle process must not wake up.
#[test]
fn failure_43_workers_die_with_a_thread_and_idle_processes_wake_up() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("here"));
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&session, "x");
    assert_eq!(terminal.turn_ends(), done());
    let before = terminal.processes();
    assert_eq!(before.len(), 6, "with the runner in reserve: {before:?}");
    let switches = || -> Vec<(String, u64)> {
        let of = |row: &protocol::client::ProcessRow| {
            (row.worker.clone(), crate::support::switches(row.pid))
        };
        before.iter().map(of).collect()
    };
    // Threads for blocking work end after ten seconds without any. After that, two intervals
    // of pings pass without a wake-up.
    let mut counted = switches();
    until("idle processes sleep for four seconds", || {
        let earlier = counted.clone();
        std::thread::sleep(Duration::from_secs(4));
        counted = switches();
        counted == earlier
    });
    assert_eq!(terminal.processes(), before);
    assert_ne!(switches(), counted, "the positive control: an answer takes a wake-up");
}

#[test]
fn failure_45_a_restarted_worker_overlaps_its_predecessor() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("here"));
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    for name in ["agentd-session", "agentd-provider"] {
        let first = terminal.worker(&session, name);
        send(first, Signal::SIGKILL);
        // The kernel keeps 15 characters of a name.
        let short = &name[..name.len().min(15)];
        until("another one lives", || {
            let own = processes().into_iter().filter(|it| it.parent == supervisor.pid());
            let alive: Vec<_> = own.filter(|it| it.name == short).map(|it| it.pid).collect();
            assert!(alive.len() <= 1, "two at once: {alive:?}");
            alive.iter().any(|pid| *pid != first)
        });
    }
    terminal.prompt(&session, "x");
    assert_eq!(terminal.turn_ends(), done());
}

#[test]
fn failure_46_the_dead_are_not_reaped() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => Answer::says((0..6).map(|k| bash(&format!("toolu_{k}"), "sleep 0.01 & true"))),
        _ => Answer::text("done"),
    });
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    send(terminal.worker(&session, "agentd-session"), Signal::SIGKILL);
    terminal.prompt(&session, "x");
    assert_eq!(terminal.turn_ends(), done());
    let children = format!("/proc/{0}/task/{0}/children", supervisor.pid());
    let zombies = || -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", supervisor.pid())).unwrap().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<String> = lists
            .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        assert!(!children.is_empty(), "the kernel does not list children");
        let dead = |pid: &String| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
        };
        children.into_iter().filter(dead).collect()
    };
    assert!(std::path::Path::new(&children).exists());
    until("every dead child is reaped", || zombies().is_empty());
}

#[test]
fn failure_51_queued_messages_appear_out_of_order() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => Answer::text("slowly").stalled_after(200, Duration::from_secs(1)),
        _ => Answer::text("here"),
    });
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    let texts = ["one", "two", "three", "four", "five"];
    for text in &texts[..3] {
        terminal.prompt(&session, text);
    }
    until("asked", || server.requests().len() == 1);
    send(child_of(supervisor.pid(), "agentd-session").unwrap(), Signal::SIGKILL);
    for text in &texts[3..] {
        terminal.prompt(&session, text);
    }
    let mut kept = Vec::new();
    let mut ends = 0;
    while ends < texts.len() {
        let event = terminal.event(|event| {
            matches!(event, ClientEvent::Prompt { .. } | ClientEvent::TurnEnded { .. })
        });
        if let ClientEvent::Prompt { text, .. } = event {
            kept.push(text);
        } else {
            assert_eq!(event, done());
            ends += 1;
        }
    }
    assert_eq!(kept, texts);
}

#[test]
fn restart_names_what_it_does_not_find() {
    let desk = Desk::new();
    let nobody = run(desk.agentd(&["restart", "3f2a"]));
    assert_eq!(nobody.code, 2, "{nobody:?}");
    assert!(nobody.err.contains("no supervisor runs a session"), "{nobody:?}");
    let server = Server::scripted([]);
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    assert_eq!(run(desk.agentd(&["restart", "zzz"])).code, 2);
    assert_eq!(run(desk.agentd(&["restart", ""])).code, 2);
    let healthy = terminal.worker(&session, "agentd-session");
    assert_eq!(run(desk.agentd(&["restart", &session.0])).code, 0);
    assert_eq!(
        terminal.worker(&session, "agentd-session"),
        healthy,
        "a running worker is not restarted"
    );
    terminal.say(&FromClient::Restart { session: protocol::ids::SessionId("0".repeat(12)) });
    while !matches!(terminal.hear(), ToClient::Failed { .. }) {}
}
