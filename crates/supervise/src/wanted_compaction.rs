//! The wish of a person for room in the model's context that a supervisor's death left unanswered, as the
//! hooks that ran for it show. Pure. Used where a session is opened.

use crate::records::origin;
use journal::{JournalEntry, JournalRecord, LOST, Outcome};
use protocol::call::CallOrigin;
use protocol::hook::HookEvent;
use serde_json::Value;

/// The focus of the wish, from the records that the earlier supervisor left.
pub(crate) fn wanted_compaction(entries: &[JournalEntry]) -> Option<String> {
    let mut wanted: Option<(u32, String)> = None;
    for JournalEntry { record, .. } in entries {
        match record {
            JournalRecord::Proposed { call, use_id, own, tool, input, .. } => {
                let by = origin::origin((use_id, own.as_ref()), (tool, input));
                let of_hook = by == CallOrigin::EventHook;
                let wish = of_hook.then(|| wish(input)).flatten().map(|focus| (*call, focus));
                wanted = wish.or(wanted);
            }
            JournalRecord::Result { call, outcome, text, .. } => {
                let is_cut = matches!(outcome, Outcome::Interrupted | Outcome::NeverStarted);
                let ends = is_cut || blocks(text);
                wanted = wanted.filter(|(hook, _)| hook != call || !ends);
            }
            JournalRecord::Interrupted { call, cause, .. } => {
                wanted = wanted.filter(|(hook, _)| hook != call || cause == LOST);
            }
            JournalRecord::Compacted { .. }
            | JournalRecord::Summary(_)
            | JournalRecord::Prompt { .. }
            | JournalRecord::TurnEnded { .. } => wanted = None,
            JournalRecord::Session(_)
            | JournalRecord::Queued { .. }
            | JournalRecord::Joined { .. }
            | JournalRecord::TakenBack { .. }
            | JournalRecord::Closed
            | JournalRecord::Changed { .. }
            | JournalRecord::Learned { .. }
            | JournalRecord::Tampered { .. }
            | JournalRecord::Seen { .. }
            | JournalRecord::Spent { .. }
            | JournalRecord::Answer { .. }
            | JournalRecord::Asked { .. }
            | JournalRecord::Approved { .. }
            | JournalRecord::Denied { .. }
            | JournalRecord::Expired { .. }
            | JournalRecord::Answered { .. }
            | JournalRecord::Start { .. }
            | JournalRecord::Background { .. }
            | JournalRecord::Unknown { .. } => {}
        }
    }
    wanted.map(|(_, focus)| focus)
}

/// The focus, if this hook runs before a compaction that a person wants.
fn wish(input: &str) -> Option<String> {
    let input: Value = serde_json::from_str(input).ok()?;
    let about = &input["about"];
    let is_wish = input["event"] == HookEvent::PreCompact.name() && about["word"] == "manual";
    is_wish.then(|| about["message"].as_str().unwrap_or_default().to_owned())
}

/// True if the hook answers that the context stays as it is.
fn blocks(text: &str) -> bool {
    let answer: Option<Value> = serde_json::from_str(text).ok();
    answer.is_some_and(|answer| answer["verdict"] == "block" || answer["verdict"] == "stop")
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::{CallProgress, ToolKind, TurnEnd};
    use serde_json::json;

    fn of(records: Vec<JournalRecord>) -> Option<String> {
        let entries = (1..).zip(records);
        let entries = entries.map(|(seq, record)| JournalEntry { seq, time: 0, record });
        wanted_compaction(&entries.collect::<Vec<_>>())
    }

    fn hook(call: u32, word: &str) -> JournalRecord {
        let about = json!({ "word": word, "message": "the parser" });
        JournalRecord::Proposed {
            call,
            use_id: String::new(),
            own: Some(journal::OwnOriginRecord::EventHook),
            tool: "guard_hook".into(),
            tool_kind: ToolKind::Query,
            input: json!({ "event": "PreCompact", "command": "x", "about": about }).to_string(),
        }
    }

    fn ended(call: u32, outcome: Outcome, text: &str) -> JournalRecord {
        JournalRecord::Result {
            full: None,
            call,
            use_id: String::new(),
            outcome,
            text: text.into(),
            summary: String::new(),
            is_error: false,
            code: None,
            images: Vec::new(),
            refused: Vec::new(),
            recalled: None,
            audit: None,
        }
    }

    fn lost(call: u32, cause: &str) -> JournalRecord {
        let (progress, tampered, audit) = (CallProgress::MayHaveRun, Vec::new(), None);
        JournalRecord::Interrupted { call, progress, cause: cause.into(), tampered, audit }
    }

    #[test]
    fn a_wish_stays_until_it_is_answered() {
        let pass = || ended(1, Outcome::Done, r#"{"verdict":"pass"}"#);
        for left in [
            vec![hook(1, "manual")],
            vec![hook(1, "manual"), pass()],
            vec![hook(1, "manual"), ended(1, Outcome::Failed, "")],
            vec![hook(1, "manual"), lost(1, LOST)],
            vec![hook(1, "manual"), pass(), hook(2, "manual")],
        ] {
            assert_eq!(of(left.clone()).as_deref(), Some("the parser"), "{left:?}");
        }
        let cut = JournalRecord::Compacted { dropped: 1, result_chars: 9, old: 0 };
        for answered in [
            vec![hook(1, "auto")],
            vec![hook(1, "manual"), pass(), cut],
            vec![hook(1, "manual"), ended(1, Outcome::Done, r#"{"verdict":"block"}"#)],
            vec![hook(1, "manual"), ended(1, Outcome::Interrupted, "cancelled")],
            vec![hook(1, "manual"), lost(1, "stopped by a person")],
            vec![hook(1, "manual"), JournalRecord::TurnEnded { end: TurnEnd::Interrupted }],
        ] {
            assert_eq!(of(answered.clone()), None, "{answered:?}");
        }
    }
}
