//! `agentd submit`.

use crate::error::FleetError;
use crate::schema::say;
use crate::task_flags::check_before_submission;
use fleet::{SubmitArgs, tasks_of};
use std::io::Read;
use std::path::Path;

/// Submits the tasks in one transaction: all of them, or none.
pub(crate) async fn main(args: &SubmitArgs) -> Result<(), FleetError> {
    let text = args.file.as_deref().map(read).transpose()?;
    let mut tasks = tasks_of(args, text.as_deref())?;
    for task in &mut tasks {
        let mut flags = task.flags.iter();
        flags.try_for_each(|flag| check_before_submission(flag)).map_err(FleetError::Refused)?;
        // A host has another working directory.
        if Path::new(&task.repo).is_dir() {
            let real = std::fs::canonicalize(&task.repo).map_err(FleetError::file(&task.repo))?;
            task.repo = real.to_string_lossy().into_owned();
        }
    }
    let client = crate::database::open(&args.database).await?;
    let list =
        serde_json::to_string(&tasks).map_err(|error| FleetError::Host(error.to_string()))?;
    let rows =
        client.query("select id, session from agentd.submit($1::text::jsonb)", &[&list]).await?;
    let mut out = String::new();
    let mut ids = Vec::new();
    for row in &rows {
        let (id, session): (i64, &str) = (row.try_get(0)?, row.try_get(1)?);
        if args.json {
            out.push_str(&format!("{}\n", serde_json::json!({"task": id, "session": session})));
        }
        ids.push(id);
    }
    if !args.json
        && let (Some(first), Some(last)) = (ids.first(), ids.last())
    {
        out = match first == last {
            true => format!("task {first}\n"),
            false => format!("tasks {first} to {last}, batch {first}\n"),
        };
    }
    say(&out)
}

fn read(file: &Path) -> Result<String, FleetError> {
    let mut text = String::new();
    match file == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(file).map(|read| text = read),
    }
    .map_err(FleetError::file(file))?;
    Ok(text)
}
