//! `agentd ls`: the sessions there are, live ones and those on disk.

use crate::audit::time;
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::output::print;
use crate::sessions;
use crate::table::table;
use client::one_line;
use protocol::client::{SessionRow, SessionStatus};
use serde_json::json;

pub(crate) fn main(json: bool) -> Result<CliExit, CliError> {
    let rows = sessions::rows(&CliContext::of_process()?);
    match json {
        true => print(&rows.iter().map(line).collect::<String>()),
        false if rows.is_empty() => {
            eprintln!("agentd: there is no session yet; `agentd` in a project starts one");
        }
        false => {
            let head = ["SESSION", "STATE", "TURNS", "LAST", "PROJECT", "TITLE"].map(str::to_owned);
            let all: Vec<_> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
            print(&table(&all));
        }
    }
    Ok(CliExit::Done)
}

fn cells(row: &SessionRow) -> [String; 6] {
    let project = row.project.to_path();
    let (word, why) = state(&row.state);
    let title = if row.title.is_empty() { why.unwrap_or("-") } else { &row.title };
    [
        row.session.0.clone(),
        match &row.state {
            SessionStatus::Asking(count) => format!("asking {count}"),
            SessionStatus::Background(count) => format!("background {count}"),
            SessionStatus::Ended
            | SessionStatus::Idle
            | SessionStatus::Working
            | SessionStatus::Degraded(_)
            | SessionStatus::Unreadable(_)
            | SessionStatus::CutShort(_)
            | SessionStatus::IdleCutShort(_) => word.replace('_', " "),
        },
        row.turns.map_or("-".to_owned(), |turns| turns.to_string()),
        if row.last == 0 { "-".to_owned() } else { time(row.last) },
        project.file_name().map_or("-".to_owned(), |name| one_line(&name.to_string_lossy(), 20)),
        one_line(title, 60),
    ]
}

/// The name of a state in JSON, and its reason, if it has one.
fn state(state: &SessionStatus) -> (&'static str, Option<&str>) {
    match state {
        SessionStatus::Ended => ("ended", None),
        SessionStatus::Idle => ("idle", None),
        SessionStatus::Working => ("working", None),
        SessionStatus::Asking(_) => ("asking", None),
        SessionStatus::Background(_) => ("background", None),
        SessionStatus::Degraded(why) => ("degraded", Some(why)),
        SessionStatus::Unreadable(why) => ("unreadable", Some(why)),
        SessionStatus::CutShort(why) | SessionStatus::IdleCutShort(why) => ("cut_short", Some(why)),
    }
}

fn line(row: &SessionRow) -> String {
    let (word, why) = state(&row.state);
    let questions = match row.state {
        SessionStatus::Asking(count) => count,
        SessionStatus::Ended
        | SessionStatus::Idle
        | SessionStatus::Working
        | SessionStatus::Background(_)
        | SessionStatus::Degraded(_)
        | SessionStatus::Unreadable(_)
        | SessionStatus::CutShort(_)
        | SessionStatus::IdleCutShort(_) => 0,
    };
    let line = json!({
        "session_id": row.session.0,
        "title": row.title,
        "project": row.project.to_path().display().to_string(),
        "model": row.model,
        "state": word,
        "why": why,
        "questions": questions,
        "began": row.began,
        "last": row.last,
        "turns": row.turns,
        "clients": row.clients,
    });
    format!("{line}\n")
}
