//! What a program says, a line each.

use crate::hooks::{self, ProgramHook};
use serde_json::{Map, Value};

/// A line of a program.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramLine {
    /// It waits for an answer to this id.
    Request {
        /// Its id.
        id: String,
        /// What it wants.
        request: ControlRequest,
    },
    /// The answer to a request of ours.
    Reply {
        /// The id of that request.
        id: String,
        /// The answer, or what went wrong.
        result: Result<Value, String>,
    },
    /// A prompt.
    User(String),
    /// Nothing that concerns us: a sign of life, or the end of a request.
    Nothing,
}

/// What a program wants.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlRequest {
    /// The first one.
    Initialize(InitializeRequest),
    /// Stop the running turn.
    Interrupt,
    /// Another permission mode, by a name.
    SetMode(String),
    /// Another model; absent for the configured one.
    SetModel(Option<String>),
    /// What fills the context.
    ContextUsage,
    /// The MCP servers.
    McpStatus,
    /// Something that agentd does not do, by its name.
    Unknown(String),
}

/// Of `initialize`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InitializeRequest {
    /// Sub-agents, as the JSON text of `--agents`.
    pub agents: Option<String>,
    /// Text for the end of the system prompt.
    pub append_system: Option<String>,
    /// Its hooks that are called.
    pub hooks: Vec<ProgramHook>,
    /// What it asks for and agentd does not do. Nothing of it is left out in silence.
    pub refused: Option<String>,
}

/// The answer of a permission callback.
#[derive(Debug, Clone, PartialEq)]
pub enum PermissionReply {
    /// Yes.
    Allow {
        /// The arguments to run it with; those of the question, if it is absent.
        input: Option<Value>,
        /// It wants calls like this one allowed from now on.
        keeps: KeptPermission,
    },
    /// No.
    Deny {
        /// Why, for the model.
        message: String,
        /// The turn ends too.
        interrupts: AfterDeny,
    },
    /// It failed, and why.
    Failed(String),
}

/// If an answer holds for later calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptPermission {
    /// For this call alone.
    Once,
    /// Until the session ends.
    Session,
}

/// What follows a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterDeny {
    /// The turn goes on.
    GoOn,
    /// The turn ends.
    Interrupt,
}

impl ProgramLine {
    /// Reads a line.
    ///
    /// # Errors
    /// Why it is none, in plain words.
    pub fn read(line: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("a line is no JSON: {error}"))?;
        let word = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        match word("/type") {
            Some("user") => prompt(&value).map(Self::User),
            Some("control_request") => {
                let id = word("/request_id").ok_or("a control_request has no request_id")?;
                let request = value.get("request").and_then(Value::as_object);
                let request = request.ok_or("a control_request has no request")?;
                Ok(Self::Request { id: id.to_owned(), request: control(request) })
            }
            Some("control_response") => {
                let id = word("/response/request_id");
                let id = id.ok_or("a control_response has no request_id")?.to_owned();
                let result = match word("/response/subtype") {
                    Some("success") => {
                        Ok(value.pointer("/response/response").cloned().unwrap_or_default())
                    }
                    Some(_) | None => {
                        Err(word("/response/error").unwrap_or("no reason").to_owned())
                    }
                };
                Ok(Self::Reply { id, result })
            }
            Some("control_cancel_request" | "keep_alive" | "update_environment_variables") => {
                Ok(Self::Nothing)
            }
            Some(other) => Err(format!("a line of the type {other:?} is not known")),
            None => Err("a line has no type".to_owned()),
        }
    }
}

fn control(request: &Map<String, Value>) -> ControlRequest {
    let word = |name: &str| request.get(name).and_then(Value::as_str).map(str::to_owned);
    let subtype = word("subtype").unwrap_or_default();
    match subtype.as_str() {
        "initialize" => ControlRequest::Initialize(initialize(request)),
        "interrupt" => ControlRequest::Interrupt,
        "set_permission_mode" => ControlRequest::SetMode(word("mode").unwrap_or_default()),
        "set_model" => ControlRequest::SetModel(word("model")),
        "get_context_usage" => ControlRequest::ContextUsage,
        "mcp_status" => ControlRequest::McpStatus,
        _ => ControlRequest::Unknown(subtype),
    }
}

fn initialize(request: &Map<String, Value>) -> InitializeRequest {
    let is_set = |name: &str| request.get(name).is_some_and(asks_for_something);
    let refused = [
        (
            "sdkMcpServers",
            "MCP servers within the program: `agentd mcp add` runs one as a program of its own, in a sandbox",
        ),
        ("systemPrompt", "another system prompt: use the preset with `append`"),
        ("skills", "a list of skills: all that the project has are offered"),
    ];
    let refused = refused.into_iter().find(|(name, _)| is_set(name));
    let text = |name: &str| match request.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
        Some(_) | None => None,
    };
    let hooks = match request.get("hooks").and_then(Value::as_object).map(hooks::read) {
        Some(Ok(called)) => Ok(called),
        Some(Err(why)) => Err(why),
        None => Ok(Vec::new()),
    };
    InitializeRequest {
        agents: is_set("agents").then(|| request["agents"].to_string()),
        append_system: text("appendSystemPrompt"),
        refused: match (refused, &hooks) {
            (Some((name, what)), _) => {
                Some(format!("initialize.{name}: agentd does not take {what}"))
            }
            (None, Err(why)) => Some(why.clone()),
            (None, Ok(_)) => None,
        },
        hooks: hooks.unwrap_or_default(),
    }
}

/// False for what a program sends where its caller has set nothing.
fn asks_for_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(all) => all.iter().any(asks_for_something),
        Value::Object(all) => !all.is_empty(),
        Value::String(text) => !text.trim().is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

impl PermissionReply {
    /// Reads the answer of a permission callback.
    #[must_use]
    pub fn read(result: &Result<Value, String>) -> Self {
        let response = match result {
            Ok(response) => response,
            Err(why) => return Self::Failed(why.clone()),
        };
        let field = |name: &str| response.get(name);
        match field("behavior").and_then(Value::as_str) {
            Some("allow") => {
                let updates = field("updatedPermissions").and_then(Value::as_array);
                let keeps = match updates.is_some_and(|updates| !updates.is_empty()) {
                    true => KeptPermission::Session,
                    false => KeptPermission::Once,
                };
                PermissionReply::Allow { input: field("updatedInput").cloned(), keeps }
            }
            Some("deny") => PermissionReply::Deny {
                message: field("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
                interrupts: match field("interrupt").and_then(Value::as_bool) {
                    Some(true) => AfterDeny::Interrupt,
                    Some(false) | None => AfterDeny::GoOn,
                },
            },
            Some(other) => PermissionReply::Failed(format!("the unknown behavior {other:?}")),
            None => PermissionReply::Failed("an answer without a behavior".to_owned()),
        }
    }
}

/// The words of a user message.
fn prompt(value: &Value) -> Result<String, String> {
    let text = match value.pointer("/message/content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let text = |block: &Value| match block.get("type").and_then(Value::as_str) {
                Some("text") => {
                    Ok(block.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
                }
                Some(other) => Err(format!(
                    "a user message has a part of the type {other:?}; agentd takes text"
                )),
                None => Err("a part of a user message has no type".to_owned()),
            };
            blocks.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n\n")
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            return Err("a user message has no message.content".to_owned());
        }
    };
    if text.trim().is_empty() { Err("a user message is empty".to_owned()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]
    use super::*;
    use serde_json::json;

    fn request(fields: Value) -> ControlRequest {
        let line = json!({"type": "control_request", "request_id": "r", "request": fields});
        match ProgramLine::read(&line.to_string()).unwrap() {
            ProgramLine::Request { id, request } if id == "r" => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_read_and_unknown_ones_keep_their_name() {
        assert_eq!(request(json!({"subtype": "interrupt"})), ControlRequest::Interrupt);
        assert_eq!(
            request(json!({"subtype": "set_model", "model": null})),
            ControlRequest::SetModel(None)
        );
        assert_eq!(
            request(json!({"subtype": "rewind_files"})),
            ControlRequest::Unknown("rewind_files".to_owned())
        );
        assert_eq!(request(json!({})), ControlRequest::Unknown(String::new()));
    }

    #[test]
    fn what_a_program_would_miss_is_refused_and_what_it_leaves_empty_is_not() {
        let of = |fields: Value| match request(fields) {
            ControlRequest::Initialize(read) => read,
            other => panic!("{other:?}"),
        };
        let empty = of(
            json!({"subtype": "initialize", "hooks": null, "agents": {}, "sdkMcpServers": [], "systemPrompt": [""], "new": 1}),
        );
        assert_eq!(empty, InitializeRequest::default());
        let hooks =
            json!({"subtype": "initialize", "hooks": {"PreToolUse": [{"hookCallbackIds": ["a"]}]}});
        assert!(of(hooks).refused.unwrap().contains("initialize.hooks.PreToolUse"));
        let agents = of(
            json!({"subtype": "initialize", "agents": {"a": {"description": "d", "prompt": "p"}}}),
        );
        assert!(agents.agents.unwrap().contains("\"a\"") && agents.refused.is_none());
    }

    #[test]
    fn an_answer_that_is_not_clear_is_no_yes() {
        let of = |response: Value| {
            let line = json!({"type": "control_response", "response": response});
            match ProgramLine::read(&line.to_string()).unwrap() {
                ProgramLine::Reply { result, .. } => PermissionReply::read(&result),
                other => panic!("{other:?}"),
            }
        };
        let success = |answer: Value| {
            of(json!({"subtype": "success", "request_id": "r", "response": answer}))
        };
        let yes =
            PermissionReply::Allow { input: Some(json!({"a": 1})), keeps: KeptPermission::Once };
        assert_eq!(success(json!({"behavior": "allow", "updatedInput": {"a": 1}})), yes);
        let no =
            PermissionReply::Deny { message: "no".to_owned(), interrupts: AfterDeny::Interrupt };
        assert_eq!(success(json!({"behavior": "deny", "message": "no", "interrupt": true})), no);
        for odd in [json!({"behavior": "maybe"}), json!({}), json!(null), json!("allow")] {
            assert!(matches!(success(odd), PermissionReply::Failed(_)));
        }
        assert!(matches!(
            of(json!({"subtype": "error", "request_id": "r"})),
            PermissionReply::Failed(_)
        ));
    }

    #[test]
    fn bad_lines_are_named() {
        let user = |content: Value| {
            ProgramLine::read(&json!({"type": "user", "message": {"content": content}}).to_string())
        };
        assert_eq!(
            user(json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])),
            Ok(ProgramLine::User("a\n\nb".to_owned()))
        );
        assert!(user(json!([{"type": "image"}])).unwrap_err().contains("image"));
        assert!(user(json!(" ")).unwrap_err().contains("empty"));
        for (line, named) in [("{", "no JSON"), ("{}", "no type"), (r#"{"type":"x"}"#, "\"x\"")] {
            assert!(ProgramLine::read(line).unwrap_err().contains(named), "{line}");
        }
        assert_eq!(ProgramLine::read(r#"{"type":"keep_alive"}"#), Ok(ProgramLine::Nothing));
    }
}
