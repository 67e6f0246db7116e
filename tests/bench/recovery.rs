//! How fast it is whole again after a death, and how often idle processes wake up.

use crate::support::anthropic::{Answer, Server};
use crate::support::wire::Supervisor;
use crate::support::{Desk, send, switches, until};
use crate::{median, micros, row};
use journal::{ContentBlock, Journal, JournalRecord, SessionHeader, TurnEnd, Usage};
use nix::sys::signal::Signal;
use protocol::client::{BacklogFrom, ClientEvent, SessionStart, ToClient};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use std::time::{Duration, Instant};

/// Sessions to attach to again: the name in the table, turns of three records, words of each, and
/// the limit in milliseconds.
const SESSIONS: [(&str, usize, usize, f64); 2] =
    [("10,000 records", 3_333, 60, 150.0), ("1 GiB", 109_000, 1_000, 1000.0)];

pub(crate) fn rows() {
    worker();
    SESSIONS.into_iter().for_each(supervisor);
    idle();
}

/// From the kill of a conversation's process to the first message of its successor, a prompt on
/// disk.
fn worker() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("here"));
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    let prompt = |terminal: &mut crate::support::wire::Terminal| {
        let begun = Instant::now();
        terminal.prompt(&session, "x");
        terminal.event(|event| matches!(event, ClientEvent::Prompt { .. }));
        let took = begun.elapsed();
        terminal.turn_ends();
        took
    };
    let plain = median((0..15).map(|_| prompt(&mut terminal)).collect());
    let times = (0..15)
        .map(|_| {
            let pid = terminal.worker(&session, "agentd-session");
            let begun = Instant::now();
            send(pid, Signal::SIGKILL);
            // Not taken by the one that is dying.
            until("it is dead", || !crate::support::exists(format!("/proc/{pid}").as_ref()));
            prompt(&mut terminal);
            begun.elapsed()
        })
        .collect();
    let baseline = format!("a prompt without a death {:.2} ms", micros(plain) / 1e3);
    let figure = "a conversation killed, to the next prompt on disk and answered";
    row(figure, micros(median(times)) / 1e3, "ms", 10.0, &baseline);
}

/// From the kill of a supervisor to its successor's message that a session is attached.
fn supervisor((what, turns, words, limit): (&str, usize, usize, f64)) {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("here"));
    let session = SessionId("0123456789ab".to_owned());
    let sessions = desk.state().join("sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    let header = SessionHeader {
        format: journal::FORMAT,
        id: session.0.clone(),
        project: desk.project().into(),
        model: "m".to_owned(),
        agentd: "0".to_owned(),
        parent: None,
        task: None,
        fleet_task: None,
    };
    let turn = |n: usize| {
        let text = format!("{n} {}", "word ".repeat(words));
        [
            JournalRecord::Prompt { text: text.clone(), expanded: None },
            JournalRecord::Answer {
                round: 1,
                blocks: vec![ContentBlock::Text { text }],
                usage: Usage::default(),
                cost: None,
            },
            JournalRecord::TurnEnded { end: TurnEnd::Done },
        ]
    };
    let mut journal = Journal::create(&sessions, header).unwrap();
    // Many at once, since each writing ends with a sync.
    for first in (0..turns).step_by(1_000) {
        let next = (first + 1_000).min(turns);
        journal.append_all(&(first..next).flat_map(turn).collect::<Vec<_>>()).unwrap();
    }
    drop(journal);
    let open = |desk: &Desk| {
        let supervisor = Supervisor::start(desk);
        let mut terminal = supervisor.terminal();
        let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
        terminal.open_from(desk, &server, start, BacklogFrom::Seq(u64::MAX));
        while !matches!(terminal.hear(), ToClient::Attached { .. }) {}
        supervisor
    };
    let mut living = open(&desk);
    let times = (0..9)
        .map(|_| {
            let begun = Instant::now();
            send(living.pid(), Signal::SIGKILL);
            let next = open(&desk);
            let took = begun.elapsed();
            std::mem::replace(&mut living, next).ended();
            took
        })
        .collect();
    let figure = format!("supervisor killed, to its session of {what} attached");
    row(&figure, micros(median(times)) / 1e3, "ms", limit, "none");
}

/// Wake-ups of the supervisor and a session's processes in five seconds without anything to do.
fn idle() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("here"));
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&session, "x");
    terminal.turn_ends();
    let rows = terminal.processes();
    std::thread::sleep(Duration::from_secs(11));
    let count = || rows.iter().map(|row| switches(row.pid)).sum::<u64>();
    let before = count();
    std::thread::sleep(Duration::from_secs(5));
    row("wake-ups of four idle processes in 5 s", (count() - before) as f64, "", 0.0, "none");
}
