//! `agentd ls`: the sessions there are, live ones and those on disk.

use crate::audit::time;
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::fleet_commands;
use crate::output::{print, print_json};
use crate::sessions;
use crate::table::table;
use client::{in_dollars, one_line};
use protocol::client::{SessionCost, SessionRow, SessionStatus};
use serde_json::{Value, json};

pub(crate) fn main(json: bool) -> Result<CliExit, CliError> {
    let rows = sessions::rows(&CliContext::of_process()?);
    let is_here = |session: &Value| rows.iter().any(|row| session["session_id"] == row.session.0);
    let mut elsewhere = fleet_commands::sessions_elsewhere();
    elsewhere.retain(|session| !is_here(session));
    match json {
        true => {
            let other = elsewhere.iter().map(|session| format!("{session}\n"));
            print_json(&rows.iter().map(line).chain(other).collect::<String>());
        }
        false if rows.is_empty() && elsewhere.is_empty() => {
            eprintln!("agentd: there is no session yet; `agentd` in a project starts one");
        }
        false => {
            let head = ["SESSION", "STATE", "TURNS", "COST", "LAST", "PROJECT", "TITLE"]
                .map(str::to_owned);
            let other = elsewhere.iter().map(other_cells);
            let all: Vec<_> = std::iter::once(head).chain(tree(&rows)).chain(other).collect();
            print(&table(&all));
        }
    }
    Ok(CliExit::Done)
}

/// A session on another host of the fleet.
fn other_cells(session: &Value) -> [String; 7] {
    let word = |key: &str| session[key].as_str().unwrap_or_default();
    let project = word("project").trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    [
        word("session_id").to_owned(),
        format!("{} on {}", word("state"), one_line(word("host"), 20)),
        "-".to_owned(),
        "-".to_owned(),
        session["began"].as_f64().map_or("-".to_owned(), |began| time(began as u64)),
        one_line(project, 20),
        one_line(word("title"), 60),
    ]
}

/// The lines of a table, each sub-agent below the session that it works for.
fn tree(rows: &[SessionRow]) -> Vec<[String; 7]> {
    let is_known = |row: &SessionRow| {
        let parent = row.parent.as_ref();
        parent.is_some_and(|call| rows.iter().any(|other| other.session == call.session))
    };
    let mut lines = Vec::new();
    rows.iter().filter(|row| !is_known(row)).for_each(|row| add(row, rows, 0, &mut lines));
    lines
}

fn add(row: &SessionRow, rows: &[SessionRow], depth: usize, lines: &mut Vec<[String; 7]>) {
    let mut line = cells(row);
    line[0].insert_str(0, &"  ".repeat(depth));
    lines.push(line);
    let of_row = |other: &&SessionRow| {
        other.parent.as_ref().is_some_and(|call| call.session == row.session)
            && other.session != row.session
    };
    // The depth of sub-agents is bounded; a file that says otherwise ends no list.
    if depth < 10 {
        rows.iter().filter(of_row).for_each(|child| add(child, rows, depth + 1, lines));
    }
}

fn cells(row: &SessionRow) -> [String; 7] {
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
        match row.cost {
            SessionCost::Unknown | SessionCost::AtLeast(0) => "-".to_owned(),
            SessionCost::Whole(cost) => in_dollars(cost),
            SessionCost::AtLeast(cost) => format!(">{}", in_dollars(cost)),
        },
        if row.last == 0 { "-".to_owned() } else { time(row.last) },
        project.file_name().map_or("-".to_owned(), |name| one_line(&name.to_string_lossy(), 20)),
        match row.name.as_str() {
            "" => one_line(title, 60),
            name => format!("{}: {}", one_line(name, 60), one_line(title, 60)),
        },
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
    let (cost, is_whole) = match row.cost {
        SessionCost::Unknown => (None, false),
        SessionCost::Whole(cost) => (Some(cost as f64 / 1e6), true),
        SessionCost::AtLeast(cost) => (Some(cost as f64 / 1e6), false),
    };
    let line = json!({
        "session_id": row.session.0,
        "name": row.name,
        "title": row.title,
        "project": row.project.to_path().display().to_string(),
        "model": row.model,
        "state": word,
        "why": why,
        "questions": questions,
        "began": row.began,
        "last": row.last,
        "turns": row.turns,
        "cost_usd": cost,
        "cost_is_whole": is_whole,
        "clients": row.clients,
        "parent": row.parent.as_ref().map(|call| &call.session.0),
        "parent_call": row.parent.as_ref().map(|call| call.number),
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::FilePath;
    use protocol::ids::{CallId, SessionId};

    fn row(name: &str, parent: Option<&str>) -> SessionRow {
        let parent = parent.map(|it| CallId { session: SessionId(it.to_owned()), number: 1 });
        SessionRow {
            session: SessionId(name.to_owned()),
            name: String::new(),
            title: "t".to_owned(),
            project: FilePath::from(std::path::Path::new("/p")),
            model: "m".to_owned(),
            state: SessionStatus::Idle,
            began: 0,
            last: 0,
            turns: Some(1),
            cost: SessionCost::Unknown,
            clients: 0,
            parent,
        }
    }

    #[test]
    fn a_cost_is_shown_as_far_as_it_is_known() {
        for (cost, shown, dollars, is_whole) in [
            (SessionCost::Whole(120_000), "$0.12", json!(0.12), true),
            (SessionCost::AtLeast(120_000), ">$0.12", json!(0.12), false),
            (SessionCost::AtLeast(0), "-", json!(0.0), false),
            (SessionCost::Unknown, "-", Value::Null, false),
        ] {
            let row = SessionRow { cost, ..row("a", None) };
            assert_eq!(cells(&row)[3], shown);
            let line: Value = serde_json::from_str(&line(&row)).unwrap_or_default();
            assert_eq!((&line["cost_usd"], &line["cost_is_whole"]), (&dollars, &json!(is_whole)));
        }
    }

    #[test]
    fn sub_agents_stand_below_their_parents() {
        let rows = [
            row("a-1-2", Some("a-1")),
            row("b", None),
            row("a-1", Some("a")),
            row("a", None),
            row("gone-1", Some("gone")),
        ];
        let names: Vec<String> = tree(&rows).into_iter().map(|[name, ..]| name).collect();
        assert_eq!(names, ["b", "a", "  a-1", "    a-1-2", "gone-1"]);
    }
}
