//! What runs and what waits, as rows: calls, sub-agents, MCP servers, sessions; and what a person can do about each. Pure.
//! The full screen shows the rows as a list, other terminals as text.

use crate::call_gist::call_title;
use crate::call_line::calls_in_words;
use crate::cost::in_dollars;
use crate::lines::{last_lines, one_line};
use crate::screen::Screen;
use crate::screen_items::CallBlock;
use protocol::call::CallOrigin;
use protocol::client::{ClientRights, SessionCost, SessionRow, SessionStatus};
use protocol::ids::{CallId, SessionId};
use protocol::mcp::{ServerReport, ServerState};
use protocol::session::TASK;
use std::collections::BTreeSet;

/// Characters of a title.
const TITLE: usize = 60;
/// Characters of the last line of an output, and of a reason.
const WORDS: usize = 60;
/// Ports that only root's programs listen at are no guess.
const FIRST_PORT: u16 = 1024;

/// The subject of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunningThing {
    /// A call of this session.
    Call(u32),
    /// The sub-agent of a call of this session.
    Agent(u32),
    /// An MCP server of this session.
    Server(String),
    /// A session of any project.
    Session(SessionId),
}

impl RunningThing {
    /// Its kind and its name: the first words of its row.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Call(number) => format!("call {number}"),
            Self::Agent(number) => format!("agent {number}"),
            Self::Server(name) => format!("server {name}"),
            Self::Session(session) => format!("session {session}"),
        }
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningRow {
    /// Its subject.
    pub thing: RunningThing,
    /// What it is, in one line.
    pub title: String,
    /// How it is.
    pub state: String,
}

/// Something that a person can do about a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunningAction {
    /// Show the output of this call while it comes.
    Follow(u32),
    /// Show its output so far.
    Output(u32),
    /// Go to this session.
    Join(SessionId),
    /// Open a port of this call to this machine.
    OpenPort(u32),
    /// Show the servers with their sandboxes and tools.
    Servers,
    /// End this call.
    Stop(u32),
}

impl RunningAction {
    /// The row of the list.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match self {
            Self::Follow(_) => "follow its output",
            Self::Output(_) => "show its output so far",
            Self::Join(_) => "join this session",
            Self::OpenPort(_) => "open a port to this machine",
            Self::Servers => "show the servers, their sandboxes and tools",
            Self::Stop(_) => "stop it",
        }
    }
}

/// Seconds for which a call was seen to run.
pub type SecondsOf<'a> = &'a dyn Fn(&CallId) -> Option<u64>;

/// All rows: the calls of the session first, the sessions last.
#[must_use]
pub fn running_rows(
    screen: &Screen,
    servers: &[ServerReport],
    seconds: SecondsOf<'_>,
) -> Vec<RunningRow> {
    let open = || screen.items().open().iter().filter(|call| !is_of_server(call));
    let (agents, calls): (Vec<_>, Vec<_>) = open().partition(|call| is_agent(call));
    let calls = calls.into_iter().map(|call| call_row(screen, call, seconds(&call.call.id)));
    let agents = agents.into_iter().map(|call| agent_row(screen, call, seconds(&call.call.id)));
    let (mut live, on_disk): (Vec<_>, Vec<_>) = screen
        .sessions()
        .iter()
        .filter(|row| row.parent.is_none())
        .partition(|row| !row.state.is_of_disk());
    live.sort_by_key(|row| !matches!(row.state, SessionStatus::Asking(_)));
    let sessions = live.into_iter().chain(on_disk).map(|row| session_row(screen, row));
    calls.chain(agents).chain(servers.iter().map(server_row)).chain(sessions).collect()
}

/// What can be done now about a row. Empty where nothing can, or where it is gone.
#[must_use]
pub fn running_actions(screen: &Screen, thing: &RunningThing) -> Vec<RunningAction> {
    let may_change = screen.options().rights == ClientRights::Full;
    match thing {
        RunningThing::Call(number) => {
            let Some(call) = call_of(screen, *number) else { return Vec::new() };
            // A question is answered where it is shown. Of a call that began before this terminal was attached, the
            // beginning may not be known here.
            let may_run = !is_asked(screen, call);
            let all = [
                (RunningAction::Follow(*number), may_run),
                (RunningAction::Output(*number), !call.tail.trim().is_empty()),
                (RunningAction::OpenPort(*number), call.is_in_background() && may_change),
                (RunningAction::Stop(*number), may_run && may_change),
            ];
            all.into_iter().filter(|(_, is_possible)| *is_possible).map(|(it, _)| it).collect()
        }
        RunningThing::Agent(number) => {
            let Some(call) = call_of(screen, *number) else { return Vec::new() };
            let session = agent_session(screen, call).map(|row| row.session.clone());
            let stop = may_change.then_some(RunningAction::Stop(*number));
            session.map(RunningAction::Join).into_iter().chain(stop).collect()
        }
        RunningThing::Server(_) => vec![RunningAction::Servers],
        RunningThing::Session(session) if screen.session() == Some(session) => Vec::new(),
        RunningThing::Session(session) => vec![RunningAction::Join(session.clone())],
    }
}

/// A call without an end, by its number.
#[must_use]
pub fn call_of(screen: &Screen, number: u32) -> Option<&CallBlock> {
    let session = screen.session()?;
    let is_it =
        |call: &&CallBlock| call.call.id.number == number && call.call.id.session == *session;
    screen.items().open().iter().find(is_it)
}

/// Numbers in the command and in its output that may be ports. A person chooses.
#[must_use]
pub fn likely_ports(call: &CallBlock) -> Vec<u16> {
    let is_port = |port: &u16| *port >= FIRST_PORT;
    let mut seen = BTreeSet::new();
    let title = call_title(&call.call);
    let of_command = title.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok());
    // A number of an output counts behind a colon, or behind the word.
    let of_output = call.tail.lines().flat_map(|line| {
        let places = line.match_indices([':', ' ']).map(|(at, sign)| (at, sign.len()));
        places.filter_map(move |(at, length)| {
            let before = line[..at].to_ascii_lowercase();
            let counts = line[at..].starts_with(':') || before.ends_with("port");
            let rest = &line[at + length..];
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            counts.then(|| rest[..end].parse().ok()).flatten()
        })
    });
    of_command.chain(of_output).filter(|port| is_port(port) && seen.insert(*port)).collect()
}

/// The rows as text, for terminals without lists.
#[must_use]
pub fn running_text(rows: &[RunningRow]) -> String {
    let line = |row: &RunningRow| format!("{}: {}: {}\n", row.thing.name(), row.title, row.state);
    let rows: String = rows.iter().map(line).collect();
    let rows = if rows.is_empty() { "nothing runs and nothing waits\n".to_owned() } else { rows };
    rows + ":output CALL shows the output of a call, :stop CALL ends it, :open CALL PORT opens a port of its server; \
            `agentd attach ID` goes to a session"
}

/// The state of a session in words.
#[must_use]
pub fn session_state(state: &SessionStatus) -> String {
    match state {
        SessionStatus::Ended => "on disk".to_owned(),
        SessionStatus::Idle => "ready".to_owned(),
        SessionStatus::Working => "working".to_owned(),
        SessionStatus::Background(count) => format!("{count} in the background"),
        SessionStatus::Asking(1) => "1 question waits".to_owned(),
        SessionStatus::Asking(count) => format!("{count} questions wait"),
        SessionStatus::Degraded(why) => format!("degraded: {}", one_line(why, WORDS)),
        SessionStatus::Unreadable(why) => format!("unreadable: {}", one_line(why, WORDS)),
        SessionStatus::CutShort(_) | SessionStatus::IdleCutShort(_) => "cut short".to_owned(),
    }
}

/// The cost of a session in words, where one is known.
#[must_use]
pub fn session_cost(cost: SessionCost) -> Option<String> {
    match cost {
        SessionCost::Unknown | SessionCost::AtLeast(0) => None,
        SessionCost::Whole(cost) => Some(in_dollars(cost)),
        SessionCost::AtLeast(cost) => Some(format!("at least {}", in_dollars(cost))),
    }
}

fn is_agent(call: &CallBlock) -> bool {
    call.call.tool == TASK
}

fn is_of_server(call: &CallBlock) -> bool {
    call.call.origin == CallOrigin::ServerStart
}

fn joined(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn in_seconds(seconds: Option<u64>) -> String {
    seconds.map(|seconds| format!("{seconds} s")).unwrap_or_default()
}

fn is_asked(screen: &Screen, call: &CallBlock) -> bool {
    screen.items().questions().iter().any(|asked| asked.call == call.call.id)
}

fn call_row(screen: &Screen, call: &CallBlock, seconds: Option<u64>) -> RunningRow {
    let state = match (is_asked(screen, call), call.is_in_background(), call.runs()) {
        (true, ..) => "asks you",
        (false, true, _) => "background",
        (false, false, true) => "runs",
        (false, false, false) => "waits",
    };
    let last = last_lines(&call.tail, 1).pop().unwrap_or_default();
    RunningRow {
        thing: RunningThing::Call(call.call.id.number),
        title: one_line(&call_title(&call.call), TITLE),
        state: joined([state.to_owned(), in_seconds(seconds), one_line(last.trim(), WORDS)]),
    }
}

/// The session of a sub-agent, as the supervisor listed it last.
fn agent_session<'a>(screen: &'a Screen, call: &CallBlock) -> Option<&'a SessionRow> {
    screen.sessions().iter().find(|row| row.parent.as_ref() == Some(&call.call.id))
}

fn agent_row(screen: &Screen, call: &CallBlock, seconds: Option<u64>) -> RunningRow {
    let title = call_title(&call.call);
    let title = title.strip_prefix("agent: ").unwrap_or(&title);
    let row = agent_session(screen, call);
    let child = row.map(|row| &row.session);
    let asks = screen.items().questions().iter().any(|asked| Some(&asked.call.session) == child);
    let place = if call.is_in_background() { "background" } else { "works" };
    let calls = call.agent_calls.map(calls_in_words);
    RunningRow {
        thing: RunningThing::Agent(call.call.id.number),
        title: one_line(title, TITLE),
        state: joined([
            if asks { "asks you" } else { place }.to_owned(),
            in_seconds(seconds),
            calls.unwrap_or_default(),
            call.agent_works.as_ref().map(|it| one_line(it, WORDS)).unwrap_or_default(),
        ]),
    }
}

fn server_row(report: &ServerReport) -> RunningRow {
    let tools = match report.tools.len() {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    RunningRow {
        thing: RunningThing::Server(report.name.clone()),
        title: one_line(&report.place, TITLE),
        state: match &report.state {
            ServerState::Starts => "starts".to_owned(),
            ServerState::Ready { .. } => joined(["ready".to_owned(), tools]),
            ServerState::Ended(why) => {
                format!("does not run, and was asked to start again: {}", one_line(why, WORDS))
            }
        },
    }
}

fn session_row(screen: &Screen, row: &SessionRow) -> RunningRow {
    let is_here = screen.session() == Some(&row.session);
    let project = row.project.to_path();
    let project = project.file_name().map(|it| it.to_string_lossy().into_owned());
    RunningRow {
        thing: RunningThing::Session(row.session.clone()),
        title: match row.name.as_str() {
            "" => one_line(&row.title, TITLE),
            name => one_line(name, TITLE),
        },
        state: joined([
            if is_here { "this one".to_owned() } else { String::new() },
            session_state(&row.state),
            session_cost(row.cost).unwrap_or_default(),
            row.model.clone(),
            project.map(|it| one_line(&it, TITLE)).unwrap_or_default(),
        ]),
    }
}
