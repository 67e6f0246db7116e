//! Verifiers: what a person had configured to be run after edits is run once behind the last edit of a
//! round, by a call that no model asked for, and what it found stands in that edit's result. It never
//! makes an edit fail. Pure.

use protocol::call::{Call, Outcome, ToolResult};
use protocol::ids::CallId;
use protocol::session::{Copies, Happened, OfferedTool, Verifier};

/// The tool that runs them.
const VERIFY: &str = "verify";

/// What is run: the command, and what marks the packages that it is run in.
type Run = (String, Option<String>);

/// An edit of the running round that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    use_id: String,
    paths: Vec<String>,
}

/// The edits of the running round, and what was run behind them.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    /// Without a result yet.
    open: Vec<(CallId, Edit)>,
    done: Vec<Edit>,
    /// What was run, or runs now.
    begun: Vec<Run>,
    /// What runs now, and the edit whose result it is for.
    running: Vec<(Call, String)>,
}

/// What was found out about an edit, for its result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The edit's id.
    pub use_id: String,
    pub text: String,
}

impl Edits {
    /// Takes in one thing that happened.
    pub(crate) fn apply(&mut self, happened: &Happened, tools: &[OfferedTool]) -> Option<Finding> {
        match happened {
            // Each round is looked at alone: an error that stays would be told again and again.
            Happened::Prompt { .. } | Happened::Answer { .. } | Happened::TurnEnded { .. } => {
                *self = Self::default();
            }
            Happened::Called { call } => self.called(call, tools),
            Happened::Result { call, use_id: _, result } => return self.ended(call, result),
            Happened::Compacted { .. } => {}
        }
        None
    }

    fn called(&mut self, call: &Call, tools: &[OfferedTool]) {
        let Call { id, use_id, tool, input } = call;
        let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
        if use_id.is_empty() && tool == VERIFY {
            let of_it = paths(&input);
            let about = |edit: &&Edit| edit.paths.iter().any(|path| of_it.contains(path));
            let last = self.done.iter().rev().find(about).map(|edit| edit.use_id.clone());
            let command = input["command"].as_str().unwrap_or_default().to_owned();
            self.begun.push((command, input["package"].as_str().map(str::to_owned)));
            self.running.extend(last.map(|last| (call.clone(), last)));
            return;
        }
        let edits = tools.iter().any(|it| it.spec.name == *tool && it.copies == Copies::Kept);
        let paths = paths(&input);
        if edits && !use_id.is_empty() && !paths.is_empty() {
            self.open.push((id.clone(), Edit { use_id: use_id.clone(), paths }));
        }
    }

    fn ended(&mut self, call: &CallId, result: &ToolResult) -> Option<Finding> {
        if let Some(at) = self.running.iter().position(|(running, _)| running.id == *call) {
            let (_, use_id) = self.running.remove(at);
            return Some(Finding { use_id, text: words(result) });
        }
        let at = self.open.iter().position(|(open, _)| open == call)?;
        let (_, edit) = self.open.remove(at);
        if !result.is_error {
            self.done.push(edit);
        }
        None
    }

    /// What was named and has no result.
    pub(crate) fn unanswered(&self) -> Vec<Call> {
        self.running.iter().map(|(call, _)| call.clone()).collect()
    }

    /// What is still to be run behind the edits of the round: a call of each, without its name. What
    /// several kinds of files have in common is run once for all of them.
    pub(crate) fn due(&self, verifiers: &[Verifier]) -> Vec<(String, String)> {
        let mut due: Vec<(Run, Vec<&String>)> = Vec::new();
        for Verifier { files, package, command } in verifiers {
            let what = (command.clone(), package.clone());
            let all = self.done.iter().flat_map(|edit| &edit.paths);
            let edited: Vec<&String> = all.filter(|path| is_one_of(path, files)).collect();
            if edited.is_empty() || self.begun.contains(&what) {
                continue;
            }
            let at = due.iter().position(|(other, _)| *other == what).unwrap_or_else(|| {
                due.push((what, Vec::new()));
                due.len() - 1
            });
            for path in edited {
                if !due[at].1.contains(&path) {
                    due[at].1.push(path);
                }
            }
        }
        let inputs = due.into_iter().map(|((command, package), paths)| {
            let mut input = serde_json::json!({ "command": command, "paths": paths });
            if let Some(package) = package {
                input["package"] = package.into();
            }
            (VERIFY.to_owned(), input.to_string())
        });
        inputs.collect()
    }
}

/// The paths that a file tool names.
fn paths(input: &serde_json::Value) -> Vec<String> {
    let several = input["paths"].as_array().into_iter().flatten();
    let all = input["path"].as_str().into_iter().chain(several.filter_map(|path| path.as_str()));
    all.map(str::to_owned).collect()
}

/// Whether a path's last name is one of these.
fn is_one_of(path: &str, files: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match files.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => name == files,
    }
}

/// What of it stands in the edit's result.
fn words(result: &ToolResult) -> String {
    match result.outcome {
        Outcome::Done | Outcome::Exited { .. } => result.text.trim_end().to_owned(),
        Outcome::Failed
        | Outcome::Signalled { .. }
        | Outcome::TimedOut
        | Outcome::Denied
        | Outcome::Refused { .. }
        | Outcome::Confined { .. }
        | Outcome::OutOfMemory
        | Outcome::Crashed
        | Outcome::Interrupted
        | Outcome::Invalid => format!("verifier: unavailable ({})", result.summary.trim()),
    }
}
