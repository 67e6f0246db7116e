//! The answer to a client, from the JSON that `agentd` printed. Pure. Used by `serve`.

use super::run::Output;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Most bytes of an answer.
const ANSWER: usize = 256 << 10;
/// Most sessions of a list.
const SESSIONS: usize = 50;
/// Most characters of a session's first words.
const WORDS: usize = 120;

/// A result for the client.
#[derive(Debug, PartialEq)]
pub(super) enum Report {
    Good(Value),
    /// The run failed; the value says how.
    Bad(Value),
}

/// The result of a run.
///
/// # Errors
/// If agentd printed no result.
pub(super) fn of_run(output: &Output) -> Result<Report, String> {
    if output.lost > 0 {
        return Err(format!(
            "the result is {} bytes longer than agentd passes on; `agentd ls` names the session, \
             `agentd show ID` prints it",
            output.lost
        ));
    }
    let ran = serde_json::from_slice::<Map<String, Value>>(&output.out).map_err(|_| {
        let said = String::from_utf8_lossy(&output.err);
        format!(
            "the run ended with exit code {} without a result: {}",
            output.exit_code,
            said.trim()
        )
    })?;
    let field = |name: &str| ran.get(name).cloned().unwrap_or_default();
    let mut report = Map::new();
    let session = field("session_id");
    report.insert("answer".to_owned(), answer(&field("result"), &session).into());
    report.insert("session_id".to_owned(), session);
    report.insert("exit_code".to_owned(), output.exit_code.into());
    report.insert("cost_usd".to_owned(), field("total_cost_usd"));
    for name in ["error", "num_turns", "duration_ms", "permission_denials"] {
        if let Some(value) = ran.get(name).filter(|value| !value.is_null()) {
            report.insert(name.to_owned(), value.clone());
        }
    }
    let report = Value::Object(report);
    Ok(if output.exit_code == 0 { Report::Good(report) } else { Report::Bad(report) })
}

fn answer(result: &Value, session: &Value) -> String {
    let result = result.as_str().unwrap_or_default();
    let end = (0..=ANSWER.min(result.len())).rev().find(|at| result.is_char_boundary(*at));
    let kept = result.get(..end.unwrap_or(0)).unwrap_or_default();
    match result.len().saturating_sub(kept.len()) {
        0 => result.to_owned(),
        more => format!(
            "{kept}\n[{more} bytes more: `agentd show {}`]",
            session.as_str().unwrap_or_default()
        ),
    }
}

/// The list of sessions in or below these directories, the newest first.
///
/// # Errors
/// If agentd printed no list.
pub(super) fn of_sessions(output: &Output, dirs: &[PathBuf]) -> Result<Report, String> {
    if output.exit_code != 0 {
        let said = String::from_utf8_lossy(&output.err);
        return Err(format!("the sessions cannot be listed: {}", said.trim()));
    }
    let text = String::from_utf8_lossy(&output.out);
    let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_here = |row: &Value| {
        let project = row.get("project").and_then(Value::as_str).map(Path::new);
        project.is_some_and(|project| dirs.iter().any(|dir| project.starts_with(dir)))
    };
    let rows: Vec<Value> = rows.filter(is_here).map(|row| session(&row)).collect();
    let left_out = rows.len().saturating_sub(SESSIONS);
    let rows: Vec<_> = rows.into_iter().take(SESSIONS).collect();
    Ok(Report::Good(json!({"sessions": rows, "left_out": left_out})))
}

fn session(row: &Value) -> Value {
    let field = |name: &str| row.get(name).cloned().unwrap_or_default();
    let title = field("title");
    let words: String = title.as_str().unwrap_or_default().chars().take(WORDS).collect();
    json!({
        "session_id": field("session_id"),
        "project": field("project"),
        "state": field("state"),
        "first_words": words,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn printed(exit_code: i32, out: &str) -> Output {
        Output { exit_code, out: out.into(), lost: 0, err: b"agentd: error: no\n".to_vec() }
    }

    #[test]
    fn a_run_is_reported_with_its_session_cost_and_exit_code() {
        let out =
            r#"{"result":"Done.","session_id":"s","total_cost_usd":0.5,"num_turns":2,"usage":{}}"#;
        let want = json!({"answer": "Done.", "session_id": "s", "exit_code": 0, "cost_usd": 0.5, "num_turns": 2});
        assert_eq!(of_run(&printed(0, out)), Ok(Report::Good(want)));
        let out = r#"{"result":"no key","session_id":"","error":"no key"}"#;
        let Ok(Report::Bad(bad)) = of_run(&printed(13, out)) else { panic!("it failed") };
        assert_eq!((&bad["error"], &bad["exit_code"]), (&json!("no key"), &json!(13)));
    }

    #[test]
    fn a_run_without_a_result_is_an_error_with_what_it_said() {
        let why = of_run(&printed(2, "")).unwrap_err();
        assert!(why.contains("exit code 2") && why.ends_with("agentd: error: no"), "{why}");
        let long = Output { lost: 9, ..printed(0, "{}") };
        assert!(of_run(&long).unwrap_err().contains("9 bytes longer"));
    }

    #[test]
    fn a_long_answer_is_cut_and_says_where_it_is_whole() {
        let out = json!({"result": "ä".repeat(ANSWER), "session_id": "s"}).to_string();
        let Ok(Report::Good(good)) = of_run(&printed(0, &out)) else { panic!("it is good") };
        let answer = good["answer"].as_str().unwrap();
        let note = format!("\n[{ANSWER} bytes more: `agentd show s`]");
        assert_eq!(answer.len(), ANSWER + note.len());
        assert!(answer.ends_with(&note));
    }

    #[test]
    fn sessions_of_other_projects_are_not_listed() {
        let row = |project: &str| json!({"session_id": "s", "project": project, "state": "ended", "title": "Hi"});
        let out = [row("/a/b"), row("/ab"), row("/c"), row("/a")].map(|row| format!("{row}\n"));
        let dirs = [PathBuf::from("/a")];
        let Ok(Report::Good(list)) = of_sessions(&printed(0, &out.concat()), &dirs) else {
            panic!("it is good")
        };
        let projects: Vec<_> =
            list["sessions"].as_array().unwrap().iter().map(|it| &it["project"]).collect();
        assert_eq!(projects, ["/a/b", "/a"]);
        assert_eq!(list["sessions"][0]["first_words"], "Hi");
    }
}
