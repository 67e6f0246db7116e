//! Events that the supervisor sees and whose hooks the conversation has run: a question, a notification,
//! the end of the session. A hook may deny a call before a person is asked; the person is asked in any
//! other case, also where the hook or the conversation's process fails. Pure.

use config::ConfiguredEventHook;
use protocol::hook::{HookEvent, HookOccasion, HookRefusal};
use protocol::judgement::{Basis, Question, Rule, RuleEffect, Verdict};
use setup::server_tools;

/// Notifications by Claude Code's words: a question waits, and a session waits for a prompt.
pub(super) const PERMISSION_PROMPT: &str = "permission_prompt";
pub(super) const IDLE_PROMPT: &str = "idle_prompt";

/// A call needs a person's answer. The run of a hook has no hooks; they judge calls, and a server's question is
/// about none.
pub(super) fn question(question: &Question) -> Option<HookOccasion> {
    let is_of_call = !HookEvent::is_run_by(&question.tool) && !question.is_of_server();
    is_of_call.then(|| HookOccasion {
        event: HookEvent::PermissionRequest,
        subject: server_tools::called(&question.tool, &question.input)
            .unwrap_or_else(|| question.tool.clone()),
        call: Some((question.call.number, question.input.clone())),
        message: String::new(),
    })
}

pub(super) fn notification(word: &str, message: String) -> HookOccasion {
    let (event, subject) = (HookEvent::Notification, word.to_owned());
    HookOccasion { event, subject, call: None, message }
}

/// The session ends.
pub(super) fn end() -> HookOccasion {
    HookOccasion {
        event: HookEvent::SessionEnd,
        subject: "other".to_owned(),
        call: None,
        message: String::new(),
    }
}

/// The verdict of a hook that denies a call: its entry in the configuration is the rule.
pub(super) fn denied(known: &[ConfiguredEventHook], refusal: &HookRefusal) -> Verdict {
    let HookRefusal { command, reason } = refusal;
    let mut known = known.iter();
    let known = known
        .find(|known| known.event == HookEvent::PermissionRequest && known.command == *command);
    let basis = match known {
        Some(known) => Basis::Rule(Rule { effect: RuleEffect::Deny, ..known.by.clone() }),
        None => Basis::Unjudgeable("a hook denied it".to_owned()),
    };
    let text =
        format!("The call was not run: the PermissionRequest hook `{command}` denied it: {reason}");
    Verdict::Deny(basis, text)
}
