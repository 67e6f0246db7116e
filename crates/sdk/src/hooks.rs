//! Hooks that live in the program. Those that only observe are called; those that judge are refused, since agentd has
//! no moment at which it could wait for them and close if they fail.

use protocol::call::{Call, ToolResult};
use serde_json::{Map, Value, json};

/// Events whose hooks judge.
const JUDGING: [&str; 7] = [
    "PreToolUse",
    "PermissionRequest",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "PreCompact",
    "ConfigChange",
];

/// A hook of the program that is called.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramHook {
    event: CalledEvent,
    /// The tools that it is for; all, if none is named.
    tools: Vec<String>,
    /// The callback's name.
    callback: String,
}

/// An event whose hooks are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CalledEvent {
    PostToolUse,
    PostToolUseFailure,
}

impl CalledEvent {
    fn name(self) -> &'static str {
        match self {
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::PostToolUse, Self::PostToolUseFailure].into_iter().find(|event| event.name() == name)
    }
}

/// Reads the hooks of `initialize`. Those of events that never happen here are left out.
///
/// # Errors
/// The event of a hook that judges, or a matcher that is no list of names.
pub(crate) fn read(hooks: &Map<String, Value>) -> Result<Vec<ProgramHook>, String> {
    let mut called = Vec::new();
    for (event, matchers) in hooks {
        let matchers: Vec<&Value> = matchers.as_array().into_iter().flatten().collect();
        if JUDGING.contains(&event.as_str()) && !matchers.is_empty() {
            return Err(format!(
                "initialize.hooks.{event}: agentd does not let a program's hook judge; write it into \
                 .claude/settings.json, where it runs in a sandbox and fails closed"
            ));
        }
        let Some(event) = CalledEvent::of(event) else { continue };
        for matcher in matchers {
            let tools = match matcher.get("matcher").and_then(Value::as_str) {
                None | Some("" | "*") => Vec::new(),
                Some(names) => names.split('|').map(str::to_owned).collect(),
            };
            let is_name =
                |name: &String| name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
            if let Some(odd) = tools.iter().find(|name| !is_name(name)) {
                return Err(format!(
                    "initialize.hooks.{}: the matcher {odd:?} is no list of tools, such as \"Edit|Write\"",
                    event.name()
                ));
            }
            let callbacks = matcher.get("hookCallbackIds").and_then(Value::as_array);
            for callback in callbacks.into_iter().flatten().filter_map(Value::as_str) {
                let (tools, callback) = (tools.clone(), callback.to_owned());
                called.push(ProgramHook { event, tools, callback });
            }
        }
    }
    Ok(called)
}

impl ProgramHook {
    /// The request of this hook after a call, if it is for it. The tool has its name for programs.
    pub(crate) fn request(
        &self,
        (name, input): &(String, Value),
        call: &Call,
        result: &ToolResult,
        about: &Value,
    ) -> Option<Value> {
        let wanted = if result.is_error {
            CalledEvent::PostToolUseFailure
        } else {
            CalledEvent::PostToolUse
        };
        let covered = self.tools.is_empty() || self.tools.contains(name);
        if self.event != wanted || !covered {
            return None;
        }
        let mut told = json!({
            "hook_event_name": self.event.name(),
            "tool_name": name,
            "tool_input": input,
            "tool_use_id": call.origin.use_id(),
        });
        match wanted {
            CalledEvent::PostToolUse => told["tool_response"] = result.text.as_str().into(),
            CalledEvent::PostToolUseFailure => told["error"] = result.text.as_str().into(),
        }
        for (field, value) in about.as_object().into_iter().flatten() {
            told[field] = value.clone();
        }
        Some(json!({
            "subtype": "hook_callback",
            "callback_id": self.callback,
            "input": told,
            "tool_use_id": call.origin.use_id(),
        }))
    }
}

/// The hooks of a program, and the requests that it has not answered.
#[derive(Debug, Default)]
pub(crate) struct CalledHooks {
    hooks: Vec<ProgramHook>,
    waiting: Vec<String>,
    /// Of the next request, for its id.
    number: u64,
}

impl CalledHooks {
    pub(crate) fn set(&mut self, hooks: Vec<ProgramHook>) {
        self.hooks = hooks;
    }

    /// The requests after a call. `drawn` is the call as programs draw it; `about` has what each hook is told.
    pub(crate) fn after(
        &mut self,
        drawn: &(String, Value),
        (call, result): (&Call, &ToolResult),
        about: &Value,
    ) -> Vec<Value> {
        let requests: Vec<Value> =
            self.hooks.iter().filter_map(|hook| hook.request(drawn, call, result, about)).collect();
        let mut lines = Vec::new();
        for request in requests {
            self.number += 1;
            let id = format!("hook/{}", self.number);
            lines.push(json!({"type": "control_request", "request_id": id, "request": request}));
            self.waiting.push(id);
        }
        lines
    }

    /// The program answers. None if it is no request of a hook.
    pub(crate) fn answered(
        &mut self,
        id: &str,
        result: &Result<Value, String>,
    ) -> Option<ObservedAnswer> {
        let place = self.waiting.iter().position(|waits| waits == id)?;
        self.waiting.remove(place);
        Some(answer(result))
    }
}

/// What an observing hook's answer leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObservedAnswer {
    /// It has seen the call.
    Seen,
    /// It ends the turn.
    EndsTurn,
}

/// Reads the answer of a hook. More than `continue` is not used.
fn answer(result: &Result<Value, String>) -> ObservedAnswer {
    let goes_on =
        result.as_ref().ok().and_then(|answer| answer.get("continue")).and_then(Value::as_bool);
    match goes_on {
        Some(false) => ObservedAnswer::EndsTurn,
        Some(true) | None => ObservedAnswer::Seen,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::call::{CallOrigin, Outcome};
    use protocol::ids::{CallId, SessionId};

    fn hooks(value: Value) -> Result<Vec<ProgramHook>, String> {
        read(value.as_object().unwrap())
    }

    #[test]
    fn a_hook_that_judges_is_refused_and_one_that_observes_is_called_for_its_tools() {
        for event in JUDGING {
            let mut all = Map::new();
            all.insert(event.to_owned(), json!([{"hookCallbackIds": ["h"]}]));
            assert!(read(&all).unwrap_err().contains(event));
            all.insert(event.to_owned(), json!([]));
            assert_eq!(read(&all), Ok(Vec::new()), "it asks for nothing");
        }
        assert!(
            hooks(json!({"PostToolUse": [{"matcher": "Edit.*", "hookCallbackIds": ["h"]}]}))
                .is_err()
        );
        assert_eq!(hooks(json!({"TaskCreated": [{"hookCallbackIds": ["h"]}]})), Ok(Vec::new()));
        let called =
            hooks(json!({"PostToolUse": [{"matcher": "Edit|Write", "hookCallbackIds": ["h"]}]}))
                .unwrap();
        let id = CallId { session: SessionId("s".to_owned()), number: 1 };
        let call = Call {
            id,
            origin: CallOrigin::model("t"),
            tool: "edit".to_owned(),
            input: "{}".to_owned(),
        };
        let result = |is_error| ToolResult {
            outcome: Outcome::Done,
            text: "done".to_owned(),
            summary: String::new(),
            is_error,
            code: None,
            images: Vec::new(),
        };
        let of = |name: &str, is_error| {
            called[0].request(
                &(name.to_owned(), json!({})),
                &call,
                &result(is_error),
                &json!({"cwd": "/p"}),
            )
        };
        let request = of("Edit", false).unwrap();
        assert_eq!(
            (&request["input"]["tool_response"], &request["input"]["cwd"]),
            (&"done".into(), &"/p".into())
        );
        assert!(of("Bash", false).is_none() && of("Edit", true).is_none());
    }

    #[test]
    fn a_hook_may_end_the_turn() {
        assert_eq!(answer(&Ok(json!({"continue": false}))), ObservedAnswer::EndsTurn);
        for seen in [Ok(json!({})), Ok(json!({"continue": true})), Err("it raised".to_owned())] {
            assert_eq!(answer(&seen), ObservedAnswer::Seen);
        }
    }
}
