//! The column at the right: calls, checklist, session. Pure.

use crate::row::{Row, wrap_text};
use crate::theme::Theme;
use client::{
    CallBlock, CallPlace, ConnectionState, Screen, TurnState, call_title, context_left,
    display_width, last_lines, one_line,
};
use protocol::client::ClientRights;
use protocol::confinement::Network;
use protocol::hidden::on_screen;
use std::collections::HashMap;
use std::time::Instant;

/// Running calls that are listed.
const CALLS: usize = 8;

/// When calls were seen to run first, by their number in the session.
pub(crate) type Started = HashMap<String, Instant>;

/// What the panels show beside the screen model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PanelFacts<'a> {
    pub(crate) checklist: &'a str,
    /// The project's directory.
    pub(crate) project: &'a str,
    pub(crate) started: &'a Started,
}

/// When the panels are in view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PanelView {
    /// In a wide terminal, while they have something to say.
    ByNews,
    /// The person wants to see them.
    Shown,
    /// The person does not, unless there is trouble.
    Hidden,
}

/// True if the panels say what stands nowhere else on the screen. A call that the turn waits for is in the living
/// line: a column that comes and goes with each call would wrap the conversation anew each time.
pub(crate) fn have_news(screen: &Screen, checklist: &str) -> bool {
    have_trouble(screen)
        || !checklist.is_empty()
        || screen.items().open().iter().any(CallBlock::is_in_background)
}

/// True if a part of the session has failed.
pub(crate) fn have_trouble(screen: &Screen) -> bool {
    screen.facts().is_some_and(|facts| facts.trouble.is_some())
}

/// All panels, one below the other: what needs the person first.
pub(crate) fn panels(
    screen: &Screen,
    facts: PanelFacts<'_>,
    width: usize,
    look: &Theme,
) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(why) = screen.facts().and_then(|facts| facts.trouble.as_ref()) {
        rows.push(Row::new("Trouble", look.bad));
        rows.extend(wrap_text(&on_screen(why), look.bad, width, ""));
        rows.push(Row::default());
    }
    let calls = screen.items().open();
    if !calls.is_empty() {
        rows.push(Row::new("Calls", look.heading));
        rows.extend(
            calls.iter().take(CALLS).map(|call| call_row(call, facts.started, width, look)),
        );
        rows.push(Row::default());
    }
    let checklist = facts.checklist;
    if !checklist.is_empty() {
        rows.push(Row::new("Checklist", look.heading));
        rows.extend(checklist.lines().flat_map(|line| wrap_text(line, look.text, width, "    ")));
        rows.push(Row::default());
    }
    rows.extend(session(screen, facts.project, width, look));
    rows
}

fn call_row(call: &CallBlock, started: &Started, width: usize, look: &Theme) -> Row {
    let seconds = started.get(&call.call.id.to_string()).map(|since| since.elapsed().as_secs());
    let state = match (call.place, seconds) {
        (CallPlace::Background, Some(seconds)) => format!("background {seconds} s "),
        (CallPlace::Background, None) => "background ".to_owned(),
        (CallPlace::Foreground, Some(seconds)) => format!("{seconds} s "),
        (CallPlace::Foreground, None) => "waits ".to_owned(),
    };
    Row::new("● ", look.asks)
        .with(&state, look.dim)
        .with(&one_line(&call_title(&call.call), 200), look.text)
        .cut(width)
}

/// Running calls with the end of their output, for the end of the conversation. The call that the living line is
/// about has its name and its last line there.
pub(crate) fn running(screen: &Screen, started: &Started, width: usize, look: &Theme) -> Vec<Row> {
    let only = screen.items().only_call().map(|call| &call.call.id);
    // The question shows its call.
    let asked: Vec<_> = screen.items().questions().iter().map(|asked| &asked.call).collect();
    let open = screen.items().open().iter().filter(|call| !asked.contains(&&call.call.id));
    let mut rows = Vec::new();
    for call in open.take(CALLS) {
        let mut lines = last_lines(&call.tail, 3);
        if only == Some(&call.call.id) {
            lines.pop();
        } else {
            rows.push(call_row(call, started, width, look));
        }
        if call.is_in_background() {
            continue;
        }
        let row = |line: &String| Row::new(&format!("  {line}"), look.dim).cut(width);
        rows.extend(lines.iter().map(row));
    }
    rows
}

fn session(screen: &Screen, project: &str, width: usize, look: &Theme) -> Vec<Row> {
    let facts = screen.facts();
    let mut rows = vec![Row::new("Session", look.heading)];
    let mut fact = |label: &str, text: &str, style| {
        rows.push(Row::new(&format!("{label:<8} "), look.dim).with(text, style).cut(width));
    };
    if let Some(session) = screen.session() {
        fact("id", &session.0, look.text);
    }
    if let Some(facts) = facts.filter(|facts| !facts.name.is_empty()) {
        fact("name", &one_line(&facts.name, width), look.text);
    }
    let (state, style) = match (screen.connection(), screen.turn()) {
        (ConnectionState::Closed, _) => ("connecting", look.bad),
        (ConnectionState::Replaying, _) => ("reading", look.dim),
        (ConnectionState::Live, _) if !screen.items().questions().is_empty() => {
            ("asking", look.asks)
        }
        (ConnectionState::Live, TurnState::Working) => ("working", look.asks),
        (ConnectionState::Live, TurnState::Idle) => ("ready", look.good),
    };
    fact("state", state, style);
    // The end of a path says more than its beginning.
    let surplus = display_width(project).saturating_sub(width.saturating_sub(10));
    let end: String = project.chars().skip(surplus).collect();
    fact("project", &if surplus > 0 { format!("…{end}") } else { end }, look.text);
    if screen.options().rights == ClientRights::ReadOnly {
        fact("rights", "read-only", look.asks);
    }
    if let Some(facts) = facts {
        fact("mode", facts.mode.name(), look.text);
        match facts.network {
            Network::Off => fact("network", "off", look.good),
            Network::On => fact("network", "ON", look.bad),
            Network::Listed => {
                fact("network", &format!("{} listed hosts", facts.hosts.len()), look.asks);
            }
        }
        let sandbox = facts.sandbox.trim_start_matches("sandbox: ");
        if !sandbox.is_empty() {
            fact("sandbox", sandbox, look.text);
        }
        if !facts.model.is_empty() {
            fact("model", &facts.model, look.text);
        }
    }
    let tokens = screen.tokens();
    let of_model = facts.map(|facts| facts.of_model).unwrap_or_default();
    if let (Some(window), Some(left)) = (of_model.context, context_left(tokens.newest, of_model)) {
        fact(
            "context",
            &bar(window.saturating_sub(left), window, width.saturating_sub(16)),
            look.text,
        );
    }
    if let (Some(input), Some(output)) = (tokens.all.input, tokens.all.output) {
        fact("tokens", &format!("{input} in, {output} out"), look.text);
    }
    if let Some(cost) = tokens.spent.in_words() {
        fact("cost", &cost, look.text);
    }
    rows
}

fn bar(used: u64, of: u64, width: usize) -> String {
    let percent = used.saturating_mul(100) / of.max(1);
    let full = width * usize::try_from(percent.min(100)).unwrap_or(100) / 100;
    format!("{}{} {percent}%", "█".repeat(full), "░".repeat(width - full))
}
