//! `agentd memory`: texts that are remembered for later sessions. `agentd-store` alone reads, adds and removes them.

use crate::audit::time;
use crate::cli::MemoryCommand;
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::{CliContext, real_dir};
use crate::output::{print, print_json};
use crate::table::table;
use client::{MemoryReach, one_line, store_output};
use protocol::hidden::{on_one_line, on_screen};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Longest text of a list, in characters.
const LINE: usize = 100;

pub(crate) fn main(command: &MemoryCommand) -> Result<CliExit, CliError> {
    let (MemoryCommand::Ls { project, .. }
    | MemoryCommand::Show { project, .. }
    | MemoryCommand::Rm { project, .. }) = command;
    let project = real_dir(project, "the project directory")?;
    let memories = ProjectMemories::of(&CliContext::of_process()?, &project)?;
    match command {
        MemoryCommand::Ls { json, user, of_project, .. } => {
            let mut rows = memories.rows()?;
            rows.retain(|row| match row["scope"] == "user" {
                true => !of_project,
                false => !user,
            });
            match json {
                true => print_json(&rows.iter().map(|row| format!("{row}\n")).collect::<String>()),
                false if rows.is_empty() => eprint!("agentd: {}", listed(&rows, LINE)),
                false => print(&listed(&rows, LINE)),
            }
        }
        MemoryCommand::Show { id, .. } => {
            let rows = memories.rows()?;
            let row = named(&rows, id)?;
            let [id, scope, saved, ..] = cells(row, LINE);
            let project = on_one_line(row["project"].as_str().unwrap_or("not on record"));
            let text = on_screen(word(row, "text"));
            print(&format!("{id} ({scope}), saved {saved} UTC\nproject: {project}\n\n{text}\n"));
        }
        MemoryCommand::Rm { ids, .. } => memories.remove(ids, print)?,
    }
    Ok(CliExit::Done)
}

/// The memories of a project and of all projects.
#[derive(Debug)]
pub(crate) struct ProjectMemories {
    executable: PathBuf,
    project: PathBuf,
    project_store: PathBuf,
    user_store: PathBuf,
}

impl ProjectMemories {
    /// Those of the project with this real path.
    pub(crate) fn of(context: &CliContext, project: &Path) -> Result<Self, CliError> {
        let executable = client::sibling_executable("agentd-store")?;
        let (project_store, user_store) = config::store_dirs(&context.dirs.state, project);
        Ok(Self { executable, project: project.to_owned(), project_store, user_store })
    }

    /// All of them.
    pub(crate) fn rows(&self) -> Result<Vec<Value>, CliError> {
        self.ask("list-memories", &[], "")
    }

    /// Removes memories, and says each. If one is not there, none is removed.
    pub(crate) fn remove(&self, ids: &[String], mut say: impl FnMut(&str)) -> Result<(), CliError> {
        let rows = self.rows()?;
        let known: Result<Vec<_>, _> = ids.iter().map(|id| named(&rows, id)).collect();
        known?;
        for id in ids {
            let rows = self.ask("remove-memory", &[OsStr::new(id)], "")?;
            // Empty if a session was faster.
            let row = named(&rows, id)?;
            let text = on_one_line(word(row, "text"));
            say(&format!("removed {id} ({}): {text}\n", word(row, "scope")));
        }
        Ok(())
    }

    /// Stores a text of the person, and says its ID.
    pub(crate) fn add(&self, reach: MemoryReach, text: &str) -> Result<String, CliError> {
        let scope = match reach {
            MemoryReach::Project => "project",
            MemoryReach::AllProjects => "user",
        };
        let rows = self.ask("add-memory", &[OsStr::new(scope), self.project.as_os_str()], text)?;
        let row = rows.first().ok_or_else(|| CliError::internal("agentd-store: no answer"))?;
        Ok(format!("remembered as {} ({scope})", word(row, "id")))
    }

    fn ask(&self, verb: &str, more: &[&OsStr], input: &str) -> Result<Vec<Value>, CliError> {
        let stores = [self.project_store.as_os_str(), self.user_store.as_os_str()];
        let words = [&[OsStr::new(verb)], &stores[..], more].concat();
        let lines = store_output(&self.executable, &words, input)
            .map_err(|error| CliError::config(error.to_string()).exit(CliExit::Failed))?;
        lines
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|error| CliError::internal(format!("agentd-store: {error}")))
    }
}

fn named<'a>(rows: &'a [Value], id: &str) -> Result<&'a Value, CliError> {
    rows.iter().find(|row| row["id"] == id).ok_or_else(|| {
        CliError::user(format!("no memory of this project or of all projects has the ID {id:?}"))
            .hint("`agentd memory ls` lists them, in a session `:memory`")
    })
}

/// The rows for a person, with at most so many characters of each text.
pub(crate) fn listed(rows: &[Value], most: usize) -> String {
    if rows.is_empty() {
        return "nothing is remembered for later sessions\n".to_owned();
    }
    let head = ["ID", "SCOPE", "SAVED", "PROJECT", "TEXT"].map(str::to_owned);
    table(&std::iter::once(head).chain(rows.iter().map(|row| cells(row, most))).collect::<Vec<_>>())
}

fn cells(row: &Value, most: usize) -> [String; 5] {
    let project = Path::new(word(row, "project")).file_name().unwrap_or(OsStr::new("-"));
    [
        word(row, "id").to_owned(),
        word(row, "scope").to_owned(),
        row["saved"].as_u64().map_or("-".to_owned(), time),
        one_line(&project.to_string_lossy(), 20),
        one_line(word(row, "text"), most),
    ]
}

fn word<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}
