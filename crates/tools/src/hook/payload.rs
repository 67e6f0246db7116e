//! The standard input of a hook: one JSON object with Claude Code's fields.

use protocol::hook::{HookEvent, HookField};
use serde_json::{Value, json};
use std::path::Path;
use tool_specs::hook_input::HookSubject;
use tool_specs::{hook_tool_input, hook_tool_name};

/// Where and how the session works.
pub(super) struct HookSession<'a> {
    pub id: &'a str,
    pub project: &'a Path,
    /// As configuration names it.
    pub mode: &'a str,
    /// The sub-agent whose session it is.
    pub agent: Option<&'a str>,
}

/// The object for the hook.
pub(super) fn payload(event: HookEvent, about: &HookSubject, session: &HookSession<'_>) -> Value {
    let mut fields = json!({
        "session_id": session.id,
        "transcript_path": "",
        "cwd": session.project.to_string_lossy(),
        "permission_mode": permission_mode(session.mode),
        "hook_event_name": event.name(),
    });
    for field in event.row().input {
        let (tool, result) = (about.tool.as_deref(), about.result.as_deref());
        let value: Option<Value> = match field {
            HookField::ToolName => tool.map(|tool| hook_tool_name(tool).into()),
            HookField::ToolInput => tool.map(|tool| input_of(tool, about, session.project)),
            HookField::ToolUseId => {
                let call = about.call.map(|call| call.to_string());
                tool.map(|_| call.unwrap_or_default().into())
            }
            HookField::ToolResponse => result.map(|text| json!({ "content": text })),
            HookField::Error => result.map(Value::from),
            HookField::Prompt => about.prompt.as_deref().map(Value::from),
            HookField::StopHookActive => about.continued.map(|continued| (continued > 0).into()),
            HookField::Word(_) => about.word.as_deref().map(Value::from),
            HookField::Sentence(_) => about.message.as_deref().map(Value::from),
        };
        if let Some(value) = value {
            fields[field.name()] = value;
        }
    }
    if let Some(agent) = session.agent {
        fields["agent_id"] = session.id.into();
        fields["agent_type"] = agent.into();
    }
    fields
}

fn input_of(tool: &str, about: &HookSubject, project: &Path) -> Value {
    let input = about.input.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let input = input.unwrap_or_else(|| json!({}));
    hook_tool_input(tool, &input, about.file.as_deref(), project)
}

/// Claude Code's name of a permission mode.
fn permission_mode(mode: &str) -> &str {
    match mode {
        "ask" => "default",
        "accept-edits" => "acceptEdits",
        "auto" => "bypassPermissions",
        "dont-ask" => "dontAsk",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(event: HookEvent, about: HookSubject) -> Value {
        let session =
            HookSession { id: "0123", project: Path::new("/p"), mode: "accept-edits", agent: None };
        payload(event, &about, &session)
    }

    #[test]
    fn each_event_has_the_fields_of_claude() {
        let call = HookSubject {
            call: Some(7),
            tool: Some("write".to_owned()),
            input: Some(r#"{"path":"a","content":"x"}"#.to_owned()),
            ..HookSubject::default()
        };
        let expected = json!({
            "session_id": "0123", "transcript_path": "", "cwd": "/p",
            "permission_mode": "acceptEdits", "hook_event_name": "PreToolUse",
            "tool_name": "Write", "tool_input": {"file_path": "/p/a", "content": "x"},
            "tool_use_id": "7",
        });
        assert_eq!(shown(HookEvent::PreToolUse, call.clone()), expected);
        let done = HookSubject { result: Some("created a".to_owned()), ..call };
        let after = shown(HookEvent::PostToolUse, done.clone());
        assert_eq!(after["tool_response"]["content"], "created a");
        assert_eq!(shown(HookEvent::PostToolUseFailure, done)["error"], "created a");
        let prompt = HookSubject { prompt: Some("Go.".to_owned()), ..HookSubject::default() };
        let prompt = shown(HookEvent::UserPromptSubmit, prompt);
        assert_eq!((&prompt["prompt"], prompt.get("tool_name")), (&json!("Go."), None));
        let word =
            |word: &str| HookSubject { word: Some(word.to_owned()), ..HookSubject::default() };
        assert_eq!(shown(HookEvent::SessionStart, word("startup"))["source"], "startup");
        assert_eq!(shown(HookEvent::SessionEnd, word("other"))["reason"], "other");
        let focus = HookSubject { message: Some("the parser".to_owned()), ..word("manual") };
        let focus = shown(HookEvent::PreCompact, focus);
        assert_eq!(
            (&focus["trigger"], &focus["custom_instructions"]),
            (&json!("manual"), &json!("the parser"))
        );
        let stop = |continued| HookSubject { continued: Some(continued), ..HookSubject::default() };
        assert_eq!(shown(HookEvent::Stop, stop(0))["stop_hook_active"], false);
        assert_eq!(shown(HookEvent::Stop, stop(1))["stop_hook_active"], true);
        let waits = HookSubject { message: Some("agentd waits".to_owned()), ..word("idle_prompt") };
        let waits = shown(HookEvent::Notification, waits);
        assert_eq!(waits["notification_type"], "idle_prompt");
        assert_eq!((&waits["message"], waits.get("agent_type")), (&json!("agentd waits"), None));
        let session =
            HookSession { id: "0123-1", project: Path::new("/p"), mode: "ask", agent: Some("rev") };
        let ended = payload(HookEvent::SubagentStop, &stop(0), &session);
        assert_eq!((&ended["agent_type"], &ended["agent_id"]), (&json!("rev"), &json!("0123-1")));
    }
}
