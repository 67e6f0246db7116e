//! The verdict on a plan that a model shows: a person approves it with a mode, or gives a reason why
//! not. No rule and no mode approves one. The broker asks it about calls of `exit_plan` only.

use super::digest::digest;
use protocol::hidden::visible;
use protocol::judgement::{
    Ask, Audience, Basis, JudgedCall, PLAN_REFUSED, PermissionMode, Question, Verdict,
};
use serde_json::Value;

/// The modes that a plan may be approved with. The first is the most careful one.
const MODES: [PermissionMode; 5] = [
    PermissionMode::Ask,
    PermissionMode::AcceptEdits,
    PermissionMode::Sandboxed,
    PermissionMode::Auto,
    PermissionMode::DontAsk,
];

/// For the model, in a session without a person to ask.
const IS_THE_ANSWER: &str = "Not shown to a person: this session is non-interactive. The plan is the answer of this \
     turn, and the session stays in permission mode `plan`.";

/// The verdict on a plan.
pub(super) fn verdict(case: &JudgedCall, mode: PermissionMode, audience: Audience) -> Verdict {
    let plan = plan_of(case);
    match (mode, audience) {
        // A person has changed the mode before they answered.
        (
            PermissionMode::Ask
            | PermissionMode::AcceptEdits
            | PermissionMode::Sandboxed
            | PermissionMode::Auto
            | PermissionMode::DontAsk,
            _,
        ) => Verdict::Allow(Basis::Mode(mode)),
        (PermissionMode::Plan, _) if plan.trim().is_empty() => {
            let why = "the plan is empty".to_owned();
            let text =
                format!("Not shown: {why}. Call exit_plan again with the text of your plan.");
            Verdict::Deny(Basis::Unjudgeable(why), text)
        }
        (PermissionMode::Plan, Audience::NonInteractive) => {
            Verdict::Deny(Basis::Mode(mode), IS_THE_ANSWER.to_owned())
        }
        (PermissionMode::Plan, Audience::Person) => Verdict::Ask(Question {
            call: case.call.id.clone(),
            tool: case.call.tool.clone(),
            input: case.call.input.clone(),
            preview: visible(&plan),
            confinement: case.confinement.clone(),
            reason: "the session is in mode plan: nothing changes before you approve a plan"
                .to_owned(),
            widens: Vec::new(),
            ask: Ask::Plan { modes: MODES.to_vec() },
            deadline: 0,
            digest: digest(case),
        }),
    }
}

/// For the model: a person did not approve its plan.
#[must_use]
pub fn plan_denied(reason: &str) -> String {
    let stays = "The session stays in permission mode `plan`.";
    match reason.trim() {
        "" => format!("{PLAN_REFUSED}. {stays} Ask what they want, or show another plan."),
        reason => format!("{PLAN_REFUSED}: {reason}\n{stays} Change the plan, and show it again."),
    }
}

/// The text of the plan; calls whose arguments do not fit are refused before.
fn plan_of(case: &JudgedCall) -> String {
    let input: Value = serde_json::from_str(&case.call.input).unwrap_or_default();
    input.get("plan").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::call::{Call, CallOrigin};
    use protocol::ids::{CallId, SessionId};
    use protocol::judgement::{EXIT_PLAN, EffectReach, ToolKind};

    fn case(plan: &str) -> JudgedCall {
        let id = CallId { session: SessionId("s".to_owned()), number: 1 };
        let input = serde_json::json!({ "plan": plan }).to_string();
        JudgedCall {
            call: Call { id, origin: CallOrigin::model("u"), tool: EXIT_PLAN.to_owned(), input },
            kind: ToolKind::Query,
            command: None,
            page: None,
            probe: None,
            confinement: String::new(),
            extra_rights: Vec::new(),
            configured: None,
            tampered: Box::new([]),
            asked: None,
            typed_by: None,
            reach: EffectReach::Unknown,
        }
    }

    #[test]
    fn a_plan_is_a_question_in_mode_plan_and_no_other() {
        let Verdict::Ask(question) =
            verdict(&case("1. x\u{202e}"), PermissionMode::Plan, Audience::Person)
        else {
            panic!()
        };
        assert!(question.is_plan() && question.preview.contains("1. x"));
        assert!(!question.preview.contains('\u{202e}'), "{}", question.preview);
        assert_eq!(question.ask, Ask::Plan { modes: MODES.to_vec() });
        for mode in MODES {
            let said = verdict(&case("1. x"), mode, Audience::Person);
            assert_eq!(said, Verdict::Allow(Basis::Mode(mode)));
        }
        let empty = verdict(&case(" \n"), PermissionMode::Plan, Audience::Person);
        assert!(matches!(empty, Verdict::Deny(Basis::Unjudgeable(_), _)), "{empty:?}");
        let alone = verdict(&case("1. x"), PermissionMode::Plan, Audience::NonInteractive);
        assert!(matches!(alone, Verdict::Deny(Basis::Mode(PermissionMode::Plan), _)), "{alone:?}");
    }

    #[test]
    fn the_model_gets_the_reason_of_a_refusal() {
        assert!(plan_denied(" use yarn ").contains("use yarn\nThe session stays"));
    }
}
