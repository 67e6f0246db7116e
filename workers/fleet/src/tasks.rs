//! `agentd tasks`.

use crate::database::open;
use crate::error::FleetError;
use crate::export;
use crate::schema::say;
use crate::shown::{one_line, span};
use fleet::{ExportAs, RetryFrom, TaskState, TasksCommand};
use protocol::hidden::{in_json, on_screen};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;
use tokio_postgres::{Client, Row};

/// Between two looks at a journal that is followed.
const LOOK: Duration = Duration::from_millis(250);
/// Lines of a journal that are read at once.
const PAGE: i64 = 500;

/// What the lists and the export show of a task.
pub(crate) const COLUMNS: &str =
    "t.id, t.batch, t.place, t.state, t.repo, t.ref, t.prompt, t.epoch,
    t.session, t.reason, t.labels, t.priority, t.on_host_loss, w.name as host,
    extract(epoch from coalesce(t.ended, clock_timestamp()) - t.started)::float8 as seconds,
    t.result::text as result,
    to_char(t.submitted at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as submitted";
/// The tables that they come from.
pub(crate) const FROM: &str = "agentd.task t
    left join agentd.lease l on l.session = t.session and t.state = 'running'
    left join agentd.worker w on w.id = l.worker";

pub(crate) async fn main(command: TasksCommand) -> Result<(), FleetError> {
    match command {
        TasksCommand::Ls { state, batch, json, database } => {
            list(&open(&database).await?, state, batch, json).await
        }
        TasksCommand::Show { task, json, database } => {
            show(&open(&database).await?, task, json).await
        }
        TasksCommand::Logs { task, follow, json, database } => {
            logs(&open(&database).await?, task, follow, json).await
        }
        TasksCommand::Diff { task, database } => diff(&open(&database).await?, task).await,
        TasksCommand::Cancel { tasks, database } => cancel(&open(&database).await?, &tasks).await,
        TasksCommand::Retry { tasks, anew, database } => {
            let from = if anew { RetryFrom::Beginning } else { RetryFrom::Session };
            retry(&open(&database).await?, &tasks, from).await
        }
        TasksCommand::Export { batch, format, database } => {
            let rows = rows(&open(&database).await?, None, batch).await?;
            let tasks: Vec<Value> = rows.iter().map(as_json).collect::<Result<_, _>>()?;
            say(&match format {
                ExportAs::Jsonl => export::lines(&tasks),
                ExportAs::Html => export::page(&tasks),
            })
        }
    }
}

async fn rows(
    client: &Client,
    state: Option<TaskState>,
    batch: Option<i64>,
) -> Result<Vec<Row>, FleetError> {
    let text = format!(
        "select {COLUMNS} from {FROM}
         where ($1::text is null or t.state = $1) and ($2::bigint is null or t.batch = $2)
         order by t.id"
    );
    Ok(client.query(&text, &[&state.map(TaskState::word), &batch]).await?)
}

/// A task as one JSON object.
pub(crate) fn as_json(row: &Row) -> Result<Value, FleetError> {
    let text = |name: &str| row.try_get::<_, Option<String>>(name);
    let result = text("result")?.and_then(|result| serde_json::from_str::<Value>(&result).ok());
    Ok(serde_json::json!({
        "task": row.try_get::<_, i64>("id")?,
        "batch": row.try_get::<_, i64>("batch")?,
        "state": text("state")?,
        "reason": text("reason")?,
        "repo": text("repo")?,
        "ref": text("ref")?,
        "prompt": text("prompt")?,
        "labels": row.try_get::<_, Vec<String>>("labels")?,
        "priority": row.try_get::<_, i32>("priority")?,
        "on_host_loss": text("on_host_loss")?,
        "session": text("session")?,
        "epoch": row.try_get::<_, i32>("epoch")?,
        "host": text("host")?,
        "submitted": text("submitted")?,
        "seconds": row.try_get::<_, Option<f64>>("seconds")?,
        "result": result,
    }))
}

async fn list(
    client: &Client,
    state: Option<TaskState>,
    batch: Option<i64>,
    json: bool,
) -> Result<(), FleetError> {
    let rows = rows(client, state, batch).await?;
    let tasks: Vec<Value> = rows.iter().map(as_json).collect::<Result<_, _>>()?;
    if json {
        return say(&export::lines(&tasks));
    }
    let mut out = format!("{:>6}  {:<9}  {:>7}  {:<16}  PROMPT\n", "TASK", "STATE", "TIME", "HOST");
    for task in &tasks {
        let word = |key: &str| task[key].as_str().unwrap_or_default().to_owned();
        let time = task["seconds"].as_f64().map(span).unwrap_or_default();
        let prompt: String = one_line(&word("prompt")).chars().take(60).collect();
        let host: String = one_line(&word("host")).chars().take(16).collect();
        let (id, state) = (&task["task"], one_line(&word("state")));
        let _ = writeln!(out, "{id:>6}  {state:<9}  {time:>7}  {host:<16}  {prompt}");
        let reason = word("reason");
        if !reason.is_empty() {
            let _ = writeln!(out, "        {}", one_line(&reason));
        }
    }
    say(&out)
}

async fn task_row(client: &Client, task: i64) -> Result<Row, FleetError> {
    let text = format!("select {COLUMNS} from {FROM} where t.id = $1");
    client.query_opt(&text, &[&task]).await?.ok_or(FleetError::NoTask(task))
}

async fn show(client: &Client, task: i64, json: bool) -> Result<(), FleetError> {
    let task = as_json(&task_row(client, task).await?)?;
    if json {
        return say(&export::lines(&[task]));
    }
    let mut out = String::new();
    let Value::Object(fields) = &task else { return Ok(()) };
    for (key, value) in fields.iter().filter(|(key, value)| *key != "result" && !value.is_null()) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(out, "{key:<13} {}", on_screen(&text));
    }
    if let Value::Object(result) = &task["result"] {
        for key in ["branch", "branch_error", "patch_error", "turns", "usage", "cost_usd", "audit"]
        {
            if let Some(value) = result.get(key).filter(|value| !value.is_null()) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _ = writeln!(out, "{key:<13} {}", on_screen(&text));
            }
        }
        if let Some(answer) = result.get("answer").and_then(Value::as_str) {
            let _ = writeln!(out, "\n{}", on_screen(answer));
        }
    }
    say(&out)
}

async fn logs(client: &Client, task: i64, follow: bool, json: bool) -> Result<(), FleetError> {
    let (mut session, mut seen) = (String::new(), 0_i64);
    loop {
        let row = client
            .query_opt("select session, state from agentd.task where id = $1", &[&task])
            .await?
            .ok_or(FleetError::NoTask(task))?;
        let (now, state): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        if now != session {
            // A task that starts over has another session.
            (session, seen) = (now, 0);
        }
        loop {
            let lines = client
                .query(
                    "select seq, line from agentd.journal where session = $1 and seq > $2
                     order by seq limit $3",
                    &[&session, &seen, &PAGE],
                )
                .await?;
            for row in &lines {
                seen = row.try_get(0)?;
                let line: &str = row.try_get(1)?;
                match json {
                    true => say(&format!("{}\n", in_json(line.trim_end())))?,
                    false => say(&export::record_line(line))?,
                }
            }
            if lines.len() < usize::try_from(PAGE).unwrap_or(usize::MAX) {
                break;
            }
        }
        if !follow || !matches!(state.as_str(), "queued" | "running") {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn diff(client: &Client, task: i64) -> Result<(), FleetError> {
    let found = client
        .query_opt(
            "select t.state, b.bytes from agentd.task t
             left join agentd.blob b on b.tenant = t.tenant
                 and b.sha256 = decode(t.result ->> 'patch', 'hex')
             where t.id = $1",
            &[&task],
        )
        .await?
        .ok_or(FleetError::NoTask(task))?;
    let (state, patch): (&str, Option<&[u8]>) = (found.try_get(0)?, found.try_get(1)?);
    match patch {
        // A file gets the patch as it is, a person to read.
        Some(patch) if std::io::stdout().is_terminal() => {
            say(&on_screen(&String::from_utf8_lossy(patch)))
        }
        Some(patch) => {
            use std::io::Write as _;
            std::io::stdout().write_all(patch).map_err(FleetError::Output)
        }
        None if matches!(state, "queued" | "running") => {
            Err(FleetError::Refused(format!("task {task} is {state}: its patch comes at its end")))
        }
        None => Ok(()),
    }
}

async fn cancel(client: &Client, tasks: &[i64]) -> Result<(), FleetError> {
    let mut over = Vec::new();
    for task in tasks {
        task_row(client, *task).await?;
        let row = client.query_one("select agentd.cancel($1)", &[task]).await?;
        if !row.try_get::<_, bool>(0)? {
            over.push(task.to_string());
        }
    }
    match over.is_empty() {
        true => Ok(()),
        false => Err(FleetError::Refused(format!("over already: {}", over.join(", ")))),
    }
}

async fn retry(client: &Client, tasks: &[i64], from: RetryFrom) -> Result<(), FleetError> {
    let mut busy = Vec::new();
    for task in tasks {
        task_row(client, *task).await?;
        let anew = from == RetryFrom::Beginning;
        let row = client.query_one("select agentd.again($1, $2)", &[task, &anew]).await?;
        if !row.try_get::<_, bool>(0)? {
            busy.push(task.to_string());
        }
    }
    match busy.is_empty() {
        true => Ok(()),
        false => Err(FleetError::Refused(format!(
            "waits or runs already: {}; agentd tasks cancel ends one",
            busy.join(", ")
        ))),
    }
}
