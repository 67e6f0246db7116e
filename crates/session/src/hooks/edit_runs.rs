//! Runs of hooks after edits. At the end of a round, formatters format each edited file,
//! then verifiers check all of them. Each run is a call that no model requested; its findings are
//! added to the result of the last edit that it covers. A failing hook does not fail the edit.
//! Pure.

use super::HookText;
use super::run::DueRun;
use crate::tool_lookup::{ReadCall, Reader};
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::hook::{EditHook, SessionHooks};
use protocol::ids::CallId;
use protocol::session::{CopyBeforeChange, OfferedTool, SessionEvent, SessionSetup};

/// The tool that runs verifiers.
const VERIFY: &str = "verify";
/// The tool that runs formatters.
pub(crate) const FORMAT: &str = "format";

/// A hook run: the tool, the command, the marker file of the packages it runs in, and for a
/// formatter the file.
type Run = (&'static str, String, Option<String>, Option<String>);

/// An edit of the running round that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HookedEdit {
    use_id: String,
    paths: Vec<String>,
    /// Its files that need no formatting.
    removed: Vec<String>,
}

/// The edits of the running round, and the hook runs for them.
#[derive(Debug, Default)]
pub(super) struct RoundEdits {
    /// Without a result yet.
    open: Vec<(CallId, HookedEdit)>,
    done: Vec<HookedEdit>,
    /// Finished and running hooks.
    begun: Vec<Run>,
    /// The running hook, and the edit whose result it reports in.
    running: Vec<(Call, String)>,
}

impl RoundEdits {
    /// Takes in one thing that happened.
    pub(super) fn apply(
        &mut self,
        happened: &SessionEvent,
        tools: &[OfferedTool],
        reader: Reader,
    ) -> Option<HookText> {
        match happened {
            // Each round is checked alone; otherwise a lasting error would be reported again and
            // again.
            SessionEvent::Prompt { .. }
            | SessionEvent::Answer { .. }
            | SessionEvent::TurnEnded { .. } => {
                *self = Self::default();
            }
            SessionEvent::Called { call } => self.called(call, tools, reader),
            SessionEvent::Result { call, result, .. } => return self.ended(call, result),
            SessionEvent::BackgroundEnded { .. }
            | SessionEvent::Joined { .. }
            | SessionEvent::Compacted { .. } => {}
        }
        None
    }

    fn called(&mut self, call: &Call, tools: &[OfferedTool], reader: Reader) {
        let Call { id, origin, tool, input: text } = call;
        let input: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        if *origin == CallOrigin::EditHook {
            let Some(tool) = [VERIFY, FORMAT].into_iter().find(|name| tool == name) else { return };
            let of_it = paths(&input);
            let about = |edit: &&HookedEdit| edit.paths.iter().any(|path| of_it.contains(path));
            let last = self.done.iter().rev().find(about).map(|edit| edit.use_id.clone());
            let word = |name: &str| input[name].as_str().map(str::to_owned);
            let command = word("command").unwrap_or_default();
            self.begun.push((tool, command, word("package"), word("path")));
            self.running.extend(last.map(|last| (call.clone(), last)));
            return;
        }
        let edits =
            tools.iter().any(|it| it.spec.name == *tool && it.copies == CopyBeforeChange::Kept);
        let Some(use_id) = origin.use_id().filter(|_| edits) else { return };
        // They are read already, and so in no project's words.
        let Ok(ReadCall { paths, removed, .. }) = reader(tool, text, "") else { return };
        if !paths.is_empty() {
            self.open.push((id.clone(), HookedEdit { use_id: use_id.to_owned(), paths, removed }));
        }
    }

    /// A call has other arguments than the model named.
    pub(super) fn rewritten(&mut self, call: &Call, setup: &SessionSetup, reader: Reader) {
        self.open.retain(|(open, _)| *open != call.id);
        let Ok(read) = reader(&call.tool, &call.input, &setup.project) else { return };
        self.called(&Call { input: read.input, ..call.clone() }, &setup.tools, reader);
    }

    fn ended(&mut self, call: &CallId, result: &ToolResult) -> Option<HookText> {
        if let Some(at) = self.running.iter().position(|(running, _)| running.id == *call) {
            let (call, use_id) = self.running.remove(at);
            return Some(HookText::Result { use_id, text: words(&call, result) });
        }
        let at = self.open.iter().position(|(open, _)| open == call)?;
        let (_, edit) = self.open.remove(at);
        if !result.is_error {
            self.done.push(edit);
        }
        None
    }

    /// Calls named so far without a result.
    pub(super) fn unanswered(&self) -> Vec<Call> {
        self.running.iter().map(|(call, _)| call.clone()).collect()
    }

    /// The hook runs still to do for the round's edits: one call each, not yet numbered. Verifiers
    /// run after all files are formatted.
    pub(super) fn due(&self, hooks: &SessionHooks) -> Vec<DueRun> {
        let unformed = self.unformed(&hooks.formatters);
        match unformed.is_empty() {
            true => self.unverified(&hooks.verifiers),
            false => unformed,
        }
    }

    /// A formatter's call for each file, once.
    fn unformed(&self, formatters: &[EditHook]) -> Vec<DueRun> {
        let mut due: Vec<DueRun> = Vec::new();
        for EditHook { command, package, .. } in formatters.iter().filter(|_| !self.done.is_empty())
        {
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
                let call = due_run(FORMAT, &input);
                if !due.contains(&call) {
                    due.push(call);
                }
            }
        }
        due
    }

    /// A verifier's call. A command that covers several kinds of files runs once for all of them.
    fn unverified(&self, verifiers: &[EditHook]) -> Vec<DueRun> {
        let mut due: Vec<DueRun> = Vec::new();
        for EditHook { command, package, .. } in verifiers {
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
            let call = due_run(VERIFY, &input);
            if !due.contains(&call) {
                due.push(call);
            }
        }
        due
    }

    /// The edited files that one of these hooks is for, each once, in the order of their edits.
    fn edited<'a, 'h, H: Iterator<Item = &'h EditHook>>(
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

fn due_run(tool: &'static str, input: &serde_json::Value) -> DueRun {
    DueRun { origin: CallOrigin::EditHook, tool, input: input.to_string() }
}

/// The paths that a file tool names.
fn paths(input: &serde_json::Value) -> Vec<String> {
    let several = input["paths"].as_array().into_iter().flatten();
    let all = input["path"].as_str().into_iter().chain(several.filter_map(|path| path.as_str()));
    all.map(str::to_owned).collect()
}

/// The part of its output that goes into the edit's result.
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
        | Outcome::NeverStarted
        | Outcome::Invalid => format!("{what}: unavailable ({why})"),
    }
}
