//! What a person had configured to be run behind edits: once the calls of a round are over, formatters
//! put each edited file in form, and then verifiers look at all of them. Each is a call that no model
//! asked for, and what came of it stands in the result of the last edit that it was for. It never makes
//! an edit fail. Pure.

use crate::known::{ReadCall, Reader};
use protocol::call::{Call, Outcome, ToolResult};
use protocol::ids::CallId;
use protocol::session::{Copies, Happened, Hook, OfferedTool};

/// The tool that runs verifiers.
const VERIFY: &str = "verify";
/// The tool that runs formatters.
pub(crate) const FORMAT: &str = "format";

/// What is run: the tool, the command, what marks the packages that it is run in, and for a formatter
/// the file.
type Run = (&'static str, String, Option<String>, Option<String>);

/// An edit of the running round that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    use_id: String,
    paths: Vec<String>,
    /// Those of them at which nothing is left to be put in form.
    removed: Vec<String>,
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
    pub(crate) fn apply(
        &mut self,
        happened: &Happened,
        tools: &[OfferedTool],
        reader: Reader,
    ) -> Option<Finding> {
        match happened {
            // Each round is looked at alone: an error that stays would be told again and again.
            Happened::Prompt { .. } | Happened::Answer { .. } | Happened::TurnEnded { .. } => {
                *self = Self::default();
            }
            Happened::Called { call } => self.called(call, tools, reader),
            Happened::Result { call, use_id: _, result } => return self.ended(call, result),
            Happened::Compacted { .. } => {}
        }
        None
    }

    fn called(&mut self, call: &Call, tools: &[OfferedTool], reader: Reader) {
        let Call { id, use_id, tool, input: text } = call;
        let input: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let of_hook = [VERIFY, FORMAT].into_iter().find(|name| use_id.is_empty() && tool == name);
        if let Some(tool) = of_hook {
            let of_it = paths(&input);
            let about = |edit: &&Edit| edit.paths.iter().any(|path| of_it.contains(path));
            let last = self.done.iter().rev().find(about).map(|edit| edit.use_id.clone());
            let word = |name: &str| input[name].as_str().map(str::to_owned);
            let command = word("command").unwrap_or_default();
            self.begun.push((tool, command, word("package"), word("path")));
            self.running.extend(last.map(|last| (call.clone(), last)));
            return;
        }
        let edits = tools.iter().any(|it| it.spec.name == *tool && it.copies == Copies::Kept);
        if !edits || use_id.is_empty() {
            return;
        }
        // They are read already, and so in no project's words.
        let Ok(ReadCall { paths, removed, .. }) = reader(tool, text, "") else { return };
        if !paths.is_empty() {
            self.open.push((id.clone(), Edit { use_id: use_id.clone(), paths, removed }));
        }
    }

    fn ended(&mut self, call: &CallId, result: &ToolResult) -> Option<Finding> {
        if let Some(at) = self.running.iter().position(|(running, _)| running.id == *call) {
            let (call, use_id) = self.running.remove(at);
            return Some(Finding { use_id, text: words(&call, result) });
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

    /// What is still to be run behind the edits of the round: a call of each, without its name. Files
    /// are looked at as they are when all of them are in form.
    pub(crate) fn due(&self, formatters: &[Hook], verifiers: &[Hook]) -> Vec<(String, String)> {
        let unformed = self.unformed(formatters);
        match unformed.is_empty() {
            true => self.unverified(verifiers),
            false => unformed,
        }
    }

    /// A formatter's call for each file, once.
    fn unformed(&self, formatters: &[Hook]) -> Vec<(String, String)> {
        let mut due: Vec<(String, String)> = Vec::new();
        for Hook { command, package, .. } in formatters.iter().filter(|_| !self.done.is_empty()) {
            let hooks =
                || formatters.iter().filter(|it| (&it.command, &it.package) == (command, package));
            for path in self.edited(hooks) {
                let last = self.done.iter().rev().find(|edit| edit.paths.contains(path));
                let run = (FORMAT, command.clone(), package.clone(), Some(path.clone()));
                let gone = last.is_some_and(|edit| edit.removed.contains(path));
                if gone || self.begun.contains(&run) {
                    continue;
                }
                let mut input = serde_json::json!({ "command": command, "path": path });
                if let Some(package) = package {
                    input["package"] = package.as_str().into();
                }
                let call = (FORMAT.to_owned(), input.to_string());
                if !due.contains(&call) {
                    due.push(call);
                }
            }
        }
        due
    }

    /// A verifier's call. What several kinds of files have in common is run once for all of them.
    fn unverified(&self, verifiers: &[Hook]) -> Vec<(String, String)> {
        let mut due: Vec<(String, String)> = Vec::new();
        for Hook { command, package, .. } in verifiers {
            let hooks =
                || verifiers.iter().filter(|it| (&it.command, &it.package) == (command, package));
            let edited = self.edited(hooks);
            let run = (VERIFY, command.clone(), package.clone(), None);
            if edited.is_empty() || self.begun.contains(&run) {
                continue;
            }
            let mut input = serde_json::json!({ "command": command, "paths": edited });
            if let Some(package) = package {
                input["package"] = package.as_str().into();
            }
            let call = (VERIFY.to_owned(), input.to_string());
            if !due.contains(&call) {
                due.push(call);
            }
        }
        due
    }

    /// The edited files that one of these hooks is for, each once, in the order of their edits.
    fn edited<'a, 'h, H: Iterator<Item = &'h Hook>>(
        &'a self,
        hooks: impl Fn() -> H,
    ) -> Vec<&'a String> {
        let mut edited = Vec::new();
        for path in self.done.iter().flat_map(|edit| &edit.paths) {
            if !edited.contains(&path) && hooks().any(|hook| hook.is_for(path)) {
                edited.push(path);
            }
        }
        edited
    }
}

/// The paths that a file tool names.
fn paths(input: &serde_json::Value) -> Vec<String> {
    let several = input["paths"].as_array().into_iter().flatten();
    let all = input["path"].as_str().into_iter().chain(several.filter_map(|path| path.as_str()));
    all.map(str::to_owned).collect()
}

/// What of it stands in the edit's result.
fn words(call: &Call, result: &ToolResult) -> String {
    let input: serde_json::Value = serde_json::from_str(&call.input).unwrap_or_default();
    let what = match call.tool == FORMAT {
        true => format!("formatter `{}`", input["command"].as_str().unwrap_or_default()),
        false => "verifier".to_owned(),
    };
    let summary = result.summary.trim();
    let why = summary.strip_prefix(&format!("{}: ", call.tool)).unwrap_or(summary);
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
        | Outcome::Invalid => format!("{what}: unavailable ({why})"),
    }
}
