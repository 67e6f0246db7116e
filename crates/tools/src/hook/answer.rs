//! The answer of a hook: from its exit code and its output to one decision. Pure.

use protocol::hook::{HookEvent, PlainText};
use protocol::surrogates;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most characters of a reason or of context that the model is shown.
const SHOWN: usize = 10_000;
/// Exit codes of a shell if the program is missing or cannot be executed.
const NOT_RUN: [i32; 2] = [126, 127];

/// The end of a hook's process.
pub(super) struct HookEnd<'a> {
    pub code: i32,
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// The decision, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookVerdict {
    /// The rules decide, as without the hook.
    Pass,
    /// A person has to approve it.
    Ask,
    /// It does not happen; after an event: the model learns the reason.
    Block,
    /// It does not happen, and the turn ends.
    Stop,
}

/// The answer, as the conversation reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct HookAnswer {
    pub verdict: HookVerdict,
    /// The hook's reason for it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Other arguments for the call, as JSON under Claude Code's names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<String>,
    /// For the model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// For the person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How it failed without blocking anything.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failed: String,
}

impl HookAnswer {
    fn pass() -> Self {
        let empty = String::new;
        Self {
            verdict: HookVerdict::Pass,
            reason: empty(),
            updated_input: None,
            context: empty(),
            message: empty(),
            failed: empty(),
        }
    }

    /// One line for people.
    pub(super) fn summary(&self) -> String {
        let about = |word: &str| match first_line(&self.reason) {
            "" => word.to_owned(),
            reason => format!("{word}: {reason}"),
        };
        match self.verdict {
            HookVerdict::Stop => about("ends the turn"),
            HookVerdict::Block => about("blocks"),
            HookVerdict::Ask => about("asks"),
            HookVerdict::Pass if !self.failed.is_empty() => self.failed.clone(),
            HookVerdict::Pass if self.updated_input.is_some() => "changes the input".to_owned(),
            HookVerdict::Pass if !self.context.is_empty() => "adds context".to_owned(),
            HookVerdict::Pass => "passes".to_owned(),
        }
    }
}

/// The object that a hook may print. Fields of other meaning are passed over, as Claude Code does.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Printed {
    r#continue: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<Specific>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Specific {
    hook_event_name: Option<String>,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
    decision: Option<Requested>,
}

/// The decision about a question, by its own form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Requested {
    behavior: String,
    message: Option<String>,
    interrupt: bool,
}

/// The decision of a hook that came to its end.
///
/// # Errors
/// It could not be started, or it printed an answer that cannot be read: why.
pub(super) fn answer(event: HookEvent, end: &HookEnd<'_>) -> Result<HookAnswer, String> {
    let said = first_line(end.stderr);
    match end.code {
        0 => {}
        2 => {
            let reason = match end.stderr.trim() {
                "" => "it exited with 2 and gave no reason".to_owned(),
                reason => shortened(reason),
            };
            return Ok(HookAnswer { verdict: HookVerdict::Block, reason, ..HookAnswer::pass() });
        }
        code if NOT_RUN.contains(&code) => {
            let said = if said.is_empty() { "the shell found no program" } else { said };
            return Err(format!("it could not be started: {said}"));
        }
        code => {
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            let failed = format!("exit code {code}{said}");
            return Ok(HookAnswer { failed, ..HookAnswer::pass() });
        }
    }
    let text = end.stdout.trim();
    if !text.starts_with('{') {
        let context = match event.row().plain_text {
            PlainText::Context => shortened(text),
            PlainText::Ignored => String::new(),
        };
        return Ok(HookAnswer { context, ..HookAnswer::pass() });
    }
    let printed: Printed = serde_json::from_str(&surrogates::replaced(text))
        .map_err(|error| format!("it printed an answer that cannot be read: {error}"))?;
    decided(event, printed)
}

fn decided(event: HookEvent, printed: Printed) -> Result<HookAnswer, String> {
    let specific = printed.hook_specific_output.unwrap_or_default();
    if let Some(name) = specific.hook_event_name.filter(|name| name != event.name()) {
        return Err(format!("it answered for the event {name:?}, not for {}", event.name()));
    }
    let unknown = |field: &str, word: &str| {
        Err(format!("it printed an answer that cannot be read: {field} is {word:?}"))
    };
    let older = match printed.decision.as_deref() {
        // Nothing that a hook says allows a call past a rule.
        None | Some("approve" | "allow") => HookVerdict::Pass,
        Some("block" | "deny") => HookVerdict::Block,
        Some("ask") => HookVerdict::Ask,
        Some(word) => return unknown("decision", word),
    };
    let newer = match specific.permission_decision.as_deref() {
        None => older,
        Some("allow") => HookVerdict::Pass,
        Some("deny") => HookVerdict::Block,
        Some("ask") => HookVerdict::Ask,
        Some(word) => return unknown("permissionDecision", word),
    };
    if let (Some(requested), Some(true) | None) = (specific.decision, printed.r#continue) {
        return decided_question(event, requested, printed.system_message);
    }
    let (verdict, reason) = match printed.r#continue {
        Some(false) => (HookVerdict::Stop, printed.stop_reason.or(printed.reason)),
        Some(true) | None => {
            (newer.max(older), specific.permission_decision_reason.or(printed.reason))
        }
    };
    let updated_input = match specific.updated_input {
        Some(input @ Value::Object(_)) => Some(input.to_string()),
        None | Some(Value::Null) => None,
        Some(_) => return Err("its updatedInput is no object".to_owned()),
    };
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let unsaid = match verdict {
        HookVerdict::Block | HookVerdict::Stop => "it gave no reason",
        HookVerdict::Pass | HookVerdict::Ask => "",
    };
    Ok(HookAnswer {
        verdict,
        reason: shortened(reason.as_deref().unwrap_or(unsaid)),
        updated_input,
        context: shortened(&specific.additional_context.unwrap_or_default()),
        message: shortened(&printed.system_message.unwrap_or_default()),
        failed: String::new(),
    })
}

/// The answer to a question: the person may be spared it by a denial only.
fn decided_question(
    event: HookEvent,
    requested: Requested,
    message: Option<String>,
) -> Result<HookAnswer, String> {
    if event != HookEvent::PermissionRequest {
        return Err("it answered with a decision about a question, and there is none".to_owned());
    }
    let Requested { behavior, message: reason, interrupt } = requested;
    let verdict = match (behavior.as_str(), interrupt) {
        ("allow", _) => HookVerdict::Pass,
        ("deny", false) => HookVerdict::Block,
        ("deny", true) => HookVerdict::Stop,
        (word, _) => {
            return Err(format!("it printed an answer that cannot be read: behavior is {word:?}"));
        }
    };
    let unheeded = "it would allow the call; agentd asks you, since no hook allows past a rule";
    let message = match verdict {
        HookVerdict::Pass => Some(message.unwrap_or_else(|| unheeded.to_owned())),
        HookVerdict::Ask | HookVerdict::Block | HookVerdict::Stop => message,
    };
    let reason = match verdict {
        HookVerdict::Pass | HookVerdict::Ask => String::new(),
        HookVerdict::Block | HookVerdict::Stop => {
            reason.filter(|text| !text.trim().is_empty()).unwrap_or("it gave no reason".to_owned())
        }
    };
    Ok(HookAnswer {
        verdict,
        reason: shortened(&reason),
        message: shortened(&message.unwrap_or_default()),
        ..HookAnswer::pass()
    })
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}\n[the rest of the hook's text is left out]", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use HookEvent::{PostToolUse, PreToolUse, Stop, UserPromptSubmit};

    fn of(event: HookEvent, code: i32, stdout: &str, stderr: &str) -> Result<HookAnswer, String> {
        answer(event, &HookEnd { code, stdout, stderr })
    }

    #[test]
    fn exit_codes_mean_what_claude_says() {
        assert_eq!(of(PreToolUse, 0, "", "noise").unwrap(), HookAnswer::pass());
        let two = of(PreToolUse, 2, "{\"decision\":\"approve\"}", "no rm here\n").unwrap();
        assert_eq!((two.verdict, two.reason.as_str()), (HookVerdict::Block, "no rm here"));
        assert!(of(Stop, 2, "", "").unwrap().reason.contains("no reason"));
        let three = of(PreToolUse, 3, "", "oops\nmore").unwrap();
        assert_eq!(
            (three.verdict, three.failed.as_str()),
            (HookVerdict::Pass, "exit code 3: oops")
        );
        for code in [126, 127] {
            assert!(of(PreToolUse, code, "", "x: not found").unwrap_err().contains("not found"));
        }
    }

    #[test]
    fn an_answer_in_json_denies_asks_adds_and_changes() {
        let json = |text: &str| of(PreToolUse, 0, text, "").unwrap();
        let deny = json(
            r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                "permissionDecisionReason": "not today", "additionalContext": "be kind"}}"#,
        );
        assert_eq!(deny.verdict, HookVerdict::Block);
        assert_eq!((deny.reason.as_str(), deny.context.as_str()), ("not today", "be kind"));
        let ask = json(r#"{"hookSpecificOutput": {"permissionDecision": "ask"}}"#);
        assert_eq!(ask.verdict, HookVerdict::Ask);
        let changed = json(
            r#"{"hookSpecificOutput": {"permissionDecision": "allow",
                "updatedInput": {"command": "ls"}}, "systemMessage": "hi", "suppressOutput": true}"#,
        );
        assert_eq!(changed.verdict, HookVerdict::Pass, "it never allows");
        assert_eq!(changed.updated_input.as_deref(), Some(r#"{"command":"ls"}"#));
        assert_eq!(changed.message, "hi");
        let older = json(r#"{"decision": "block", "reason": "no"}"#);
        assert_eq!((older.verdict, older.reason.as_str()), (HookVerdict::Block, "no"));
        assert_eq!(json(r#"{"decision": "approve"}"#).verdict, HookVerdict::Pass);
        let stop = json(r#"{"continue": false, "stopReason": "enough", "decision": "approve"}"#);
        assert_eq!((stop.verdict, stop.reason.as_str()), (HookVerdict::Stop, "enough"));
    }

    #[test]
    fn a_question_is_spared_by_a_denial_only() {
        let json = |text: &str| of(HookEvent::PermissionRequest, 0, text, "");
        let decided = |behavior: &str| {
            json(&format!(r#"{{"hookSpecificOutput": {{"decision": {behavior}}}}}"#))
        };
        let deny = decided(r#"{"behavior": "deny", "message": "not today"}"#).unwrap();
        assert_eq!((deny.verdict, deny.reason.as_str()), (HookVerdict::Block, "not today"));
        let stop = decided(r#"{"behavior": "deny", "interrupt": true}"#).unwrap();
        assert_eq!((stop.verdict, stop.reason.as_str()), (HookVerdict::Stop, "it gave no reason"));
        let allow = decided(r#"{"behavior": "allow", "updatedInput": {"command": "id"}}"#).unwrap();
        assert_eq!((allow.verdict, allow.updated_input), (HookVerdict::Pass, None));
        assert!(allow.message.contains("agentd asks you"), "{}", allow.message);
        assert!(decided(r#"{"behavior": "perhaps"}"#).unwrap_err().contains("perhaps"));
        let other = r#"{"hookSpecificOutput": {"decision": {"behavior": "deny"}}}"#;
        assert!(of(PreToolUse, 0, other, "").unwrap_err().contains("there is none"));
    }

    #[test]
    fn nonsense_is_named() {
        for (text, said) in [
            ("{not json", "cannot be read"),
            (r#"{"continue": "no"}"#, "cannot be read"),
            (r#"{"decision": "perhaps"}"#, "perhaps"),
            (r#"{"hookSpecificOutput": {"permissionDecision": "maybe"}}"#, "maybe"),
            (r#"{"hookSpecificOutput": {"updatedInput": "rm"}}"#, "no object"),
            (r#"{"hookSpecificOutput": {"hookEventName": "Stop"}}"#, "\"Stop\""),
        ] {
            let no = of(PreToolUse, 0, text, "").unwrap_err();
            assert!(no.contains(said), "{text}: {no}");
        }
    }

    #[test]
    fn plain_text_is_context_of_a_prompt_alone() {
        assert_eq!(of(UserPromptSubmit, 0, " It rains. \n", "").unwrap().context, "It rains.");
        assert_eq!(of(PostToolUse, 0, "It rains.", "").unwrap().context, "");
        let long = of(UserPromptSubmit, 0, &"x".repeat(SHOWN + 1), "").unwrap().context;
        assert!(long.ends_with("left out]") && long.len() < SHOWN + 100);
    }
}
