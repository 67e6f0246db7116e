//! `agentd doctor --project`: names the files for agents in a project, those that agentd uses and those that
//! it ignores, with the reason. It reads, and runs nothing.

mod agent_files;
mod instructions;
mod other_files;
mod own_files;
mod prompt_files;
mod settings;

use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::{CliContext, real_dir};
use crate::output::print;
use protocol::hidden::{in_full, on_one_line};
use serde::Serialize;
use std::path::Path;

/// Most lines about one kind of file.
const MOST: usize = 100;

/// What agentd does with a file or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum PartState {
    /// It counts.
    Used,
    /// It counts once you trust the file.
    Untrusted,
    /// It has no effect.
    Ignored,
    /// No session can begin with it, once the file is trusted.
    Wrong,
}

impl PartState {
    fn name(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Untrusted => "untrusted",
            Self::Ignored => "ignored",
            Self::Wrong => "WRONG",
        }
    }
}

/// A file or a part of it.
#[derive(Debug, Serialize)]
struct ProjectPart {
    state: PartState,
    /// Relative to the project, with the line where that is known.
    place: String,
    /// Its use, or the reason.
    text: String,
}

/// All that was found, in the order of the report.
#[derive(Debug)]
struct ProjectReport<'a> {
    project: &'a Path,
    context: &'a CliContext,
    parts: Vec<ProjectPart>,
}

impl ProjectReport<'_> {
    fn add(&mut self, state: PartState, place: &str, text: impl Into<String>) {
        // Messages name files by their whole path, which the reader knows.
        let inside = format!("{}/", self.project.display());
        // Names of a project may contain control characters, and JSON goes to terminals too.
        let text = in_full(&text.into().replace(&inside, ""));
        let place = on_one_line(&place.replace(&inside, ""));
        self.parts.push(ProjectPart { state, place, text });
    }

    fn ignored(&mut self, place: &str, text: impl Into<String>) {
        self.add(PartState::Ignored, place, text);
    }

    /// An error of a file. Its message begins with its place.
    fn wrong(&mut self, message: &str) {
        let (place, text) = message.split_once(": ").unwrap_or((".agentd", message));
        self.add(PartState::Wrong, place, text);
    }

    /// Ends a group of lines that may be long.
    fn cap(&mut self, first: usize, what: &str) {
        let more = self.parts.len().saturating_sub(first + MOST);
        if more > 0 {
            self.parts.truncate(first + MOST);
            self.ignored(what, format!("{more} more lines are not shown"));
        }
    }
}

/// Reports on the project at `named`.
pub(crate) fn main(named: &Path, json: bool) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let project = real_dir(named, "the project directory")?;
    let mut report = ProjectReport { project: &project, context: &context, parts: Vec::new() };
    instructions::look(&mut report);
    settings::look(&mut report);
    own_files::look(&mut report);
    prompt_files::look(&mut report);
    agent_files::look(&mut report);
    other_files::look(&mut report);
    let parts = report.parts;
    let is_wrong = parts.iter().any(|part| part.state == PartState::Wrong);
    match json {
        true => {
            let line = serde_json::json!({
                "project": project.display().to_string(),
                "ok": !is_wrong,
                "parts": parts,
            });
            print(&format!("{line}\n"));
        }
        false => print(&page(&parts)),
    }
    Ok(if is_wrong { CliExit::Configuration } else { CliExit::Done })
}

fn page(parts: &[ProjectPart]) -> String {
    if parts.is_empty() {
        return "this project has no files for agents\n".to_owned();
    }
    let line = |part: &ProjectPart| {
        let ProjectPart { state, place, text } = part;
        let text = text.replace('\n', " ");
        format!("{:<9} {place:<30} {text}\n", state.name())
    };
    parts.iter().map(line).collect()
}
