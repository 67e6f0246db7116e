//! Events that the supervisor sees and whose hooks the conversation has run: a question, a notification,
//! the end of the session. A hook may deny a call before a person is asked; the person is asked in any
//! other case, also where the hook or the conversation's process fails. Pure.

use super::links::has_hooks;
use config::{Config, ConfiguredEventHook};
use protocol::call::FileEffect;
use protocol::hook::{HookEvent, HookOccasion, HookRefusal};
use protocol::judgement::{Audience, Basis, Question, Rule, RuleEffect, Verdict};
use protocol::store::FileChanges;
use setup::server_tools;
use setup::session_spec::SessionSpec;
use std::time::Duration;

/// Notifications by Claude Code's words: a question waits, and a session waits for a prompt.
const PERMISSION_PROMPT: &str = "permission_prompt";
const IDLE_PROMPT: &str = "idle_prompt";

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

/// True if hooks decide about this question before people see it.
pub(super) fn has_request_hooks(spec: &SessionSpec, asked: &Question) -> bool {
    let hooks = &spec.setup().hooks;
    question(asked).is_some_and(|of| has_hooks(hooks, of.event, &of.subject))
}

/// People see the question of a call. That of a hook's run has no notification.
pub(super) fn asked(question: &Question) -> Option<HookOccasion> {
    let words = match question.is_of_server() {
        true => question.reason.trim_end_matches(" asks:").to_owned() + " asks you",
        false if question.of_model().is_empty() => {
            format!("agentd asks for your permission to use {}", question.tool)
        }
        false => "the model asks you a question".to_owned(),
    };
    let is_of_hook = HookEvent::is_run_by(&question.tool);
    (!is_of_hook).then(|| notification(PERMISSION_PROMPT, words))
}

/// The session waits for a prompt.
pub(super) fn idle() -> HookOccasion {
    notification(IDLE_PROMPT, "agentd waits for your prompt".to_owned())
}

/// After how long without a prompt people are notified, if they are.
pub(super) fn idle_after(spec: &SessionSpec) -> Option<Duration> {
    let of_person = spec.rules().audience == Audience::Person && spec.task().is_none();
    let runs = of_person && has_hooks(&spec.setup().hooks, HookEvent::Notification, IDLE_PROMPT);
    runs.then(|| Duration::from_millis(spec.config().hooks.idle_ms))
}

/// True if hooks decide about prompts.
pub(super) fn judge_prompts(spec: &SessionSpec) -> bool {
    has_hooks(&spec.setup().hooks, HookEvent::UserPromptSubmit, "")
}

fn notification(word: &str, message: String) -> HookOccasion {
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

/// The command behind edits that would have followed these changes in a trusted project, in a sentence.
pub(super) fn untrusted(config: &Config, did: &FileChanges) -> Option<String> {
    let changed = |effect: &FileEffect| match effect {
        FileEffect::Written(path) | FileEffect::Created(path) => Some(path.clone()),
        FileEffect::Read(_)
        | FileEffect::Deleted(_)
        | FileEffect::Ran(_)
        | FileEffect::Signed { .. } => None,
    };
    let edited: Vec<String> = did.effects.iter().filter_map(changed).collect();
    let mut hooks = config.verify.untrusted.iter().chain(&config.format.untrusted);
    let known = hooks.find(|known| edited.iter().any(|path| known.hook.is_for(path)))?;
    Some(format!(
        "`{}` does not run after edits, because this project is not trusted. Trust it with \
         `agentd init`, or for one run with --trust-project",
        known.hook.command
    ))
}
