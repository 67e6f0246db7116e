//! One run of a hook at an event: which hooks an event has, how a run is told from others, and the arguments of
//! its call. Pure.

use crate::tool_lookup::Reader;
use protocol::call::{Call, CallOrigin};
use protocol::hook::{BlockEffect, EventHook, HookEvent};
use protocol::mcp;
use protocol::session::SessionSetup;
use serde::Deserialize;
use serde_json::{Value, json};

/// A run that is due: the conversation names it as a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DueRun {
    pub origin: CallOrigin,
    pub tool: &'static str,
    pub input: String,
}

/// The arguments of a hook's run that identify it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct HookRun {
    event: String,
    pub command: String,
    #[serde(default)]
    broken: Option<String>,
    pub about: RunSubject,
}

/// The subject of the run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct RunSubject {
    pub call: Option<u32>,
    pub file: Option<String>,
}

impl HookRun {
    /// The run of a call; none if the call runs no hook.
    pub(super) fn of_call(call: &Call) -> Option<Self> {
        let of_hook = call.origin == CallOrigin::EventHook;
        of_hook.then(|| serde_json::from_str(&call.input).ok()).flatten()
    }

    pub(super) fn of_hook(hook: &EventHook, call: Option<u32>, file: Option<&str>) -> Self {
        Self {
            event: hook.event.name().to_owned(),
            command: hook.command.clone(),
            broken: hook.broken.clone(),
            about: RunSubject { call, file: file.map(str::to_owned) },
        }
    }

    pub(super) fn event(&self) -> Option<HookEvent> {
        HookEvent::parse(&self.event)
    }

    /// The effect of an answer that blocks.
    pub(super) fn block(&self) -> Option<BlockEffect> {
        self.event().map(|event| event.row().block)
    }

    pub(super) fn label(&self) -> String {
        format!("the {} hook `{}`", self.event, self.command)
    }
}

/// The hooks of an event of this subject. Of equal commands one runs.
pub(super) fn of_event<'a>(
    setup: &'a SessionSetup,
    event: HookEvent,
    subject: &'a str,
) -> impl Iterator<Item = &'a EventHook> {
    let all = &setup.hooks.events;
    all.iter().enumerate().filter_map(move |(at, hook)| {
        let again = |other: &&EventHook| {
            other.is_for(event, subject)
                && (&other.command, &other.broken) == (&hook.command, &hook.broken)
        };
        let fits = hook.is_for(event, subject) && !all[..at].iter().any(|other| again(&other));
        fits.then_some(hook)
    })
}

/// The call of a hook's run.
pub(super) fn due_run(hook: &EventHook, setup: &SessionSetup, about: &Value) -> DueRun {
    let input = json!({
        "event": hook.event.name(),
        "command": hook.command,
        "broken": hook.broken,
        "timeout_ms": hook.timeout_ms,
        "session": setup.id.0,
        "about": about,
    });
    let (origin, tool) = (CallOrigin::EventHook, hook.event.tool());
    DueRun { origin, tool, input: input.to_string() }
}

/// A hook is run once for each file of a call that names several.
pub(super) fn files(
    call: &Call,
    input: &str,
    setup: &SessionSetup,
    reader: Reader,
) -> Vec<Option<String>> {
    match reader(&call.tool, input, &setup.project) {
        Ok(read) if read.paths.len() > 1 => read.paths.into_iter().map(Some).collect(),
        Ok(_) | Err(_) => vec![None],
    }
}

/// A call as its hook is told of it.
pub(super) fn about_call((number, tool): (u32, &str), input: &str, file: Option<&str>) -> Value {
    let (tool, input) = subject(tool, input);
    let mut about = json!({ "call": number, "tool": tool, "input": input });
    if let Some(file) = file {
        about["file"] = file.into();
    }
    about
}

/// The tool that a matcher is compared with, and the arguments that a hook is given: a tool of an MCP server has
/// its own name and its own arguments, though one tool stands for all of them.
pub(super) fn subject(tool: &str, input: &str) -> (String, String) {
    let fields: Value = match tool == mcp::CALL {
        true => serde_json::from_str(input).unwrap_or_default(),
        false => Value::Null,
    };
    match (fields["tool"].as_str(), fields["arguments"].as_str()) {
        (Some(name), Some(arguments)) => (name.to_owned(), arguments.to_owned()),
        _ => (tool.to_owned(), input.to_owned()),
    }
}

/// The input of a call whose arguments a hook has changed to these.
pub(super) fn input_of(call: &Call, arguments: &str) -> String {
    match subject(&call.tool, &call.input).0 {
        name if name != call.tool => json!({ "tool": name, "arguments": arguments }).to_string(),
        _ => arguments.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ids::{CallId, SessionId};

    #[test]
    fn a_tool_of_a_server_is_shown_by_itself() {
        let input = r#"{"arguments":"{\"a\":1}","tool":"mcp__s__t"}"#;
        assert_eq!(subject("mcp", input), ("mcp__s__t".to_owned(), r#"{"a":1}"#.to_owned()));
        assert_eq!(subject("bash", input), ("bash".to_owned(), input.to_owned()));
        assert_eq!(subject("mcp", "no JSON").0, "mcp");
        let id = CallId { session: SessionId("s".to_owned()), number: 1 };
        let call = |tool: &str| Call {
            id: id.clone(),
            origin: CallOrigin::model("u"),
            tool: tool.to_owned(),
            input: input.to_owned(),
        };
        let changed = input_of(&call("mcp"), r#"{"a":2}"#);
        assert_eq!(subject("mcp", &changed), ("mcp__s__t".to_owned(), r#"{"a":2}"#.to_owned()));
        assert_eq!(input_of(&call("bash"), "{}"), "{}");
    }
}
