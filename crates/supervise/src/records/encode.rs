//! Encodes wire messages as records of the journal. Used by the session and call actors; `decode` is
//! the inverse.

use super::{images, origin};
use crate::person_prompt::PersonPrompt;
use call::{CallConclusion, CallFacts, CallRecord, Contained, Cut, tampered_in_words};
use journal::{JournalRecord, QueuedPrompt, StoredPath};
use protocol::call::{Call, CallOrigin, ToolResult};
use protocol::client::{SettingChange, WhileBusy};
use protocol::confinement::Network;
use protocol::content::ContentBlock;
use protocol::context::Compaction;
use protocol::ids::CallId;
use protocol::judgement::{Basis, Rule, ToolKind};
use protocol::session::{SessionEvent, TurnEnd};

/// Encodes an event that the conversation committed. `kind` gives the kind of a tool by its name.
pub(crate) fn session_event(
    happened: SessionEvent,
    kind: impl Fn(&str) -> ToolKind,
) -> JournalRecord {
    match happened {
        SessionEvent::Prompt { text, expanded } => JournalRecord::Prompt { text, expanded },
        SessionEvent::Answer { round, blocks, usage, cost } => JournalRecord::Answer {
            cost,
            round,
            blocks: blocks.into_iter().map(without_image).collect(),
            usage,
        },
        SessionEvent::Called { call } => proposed(call, kind),
        // That a call goes on in the background is not for the conversation to say.
        SessionEvent::Result { call, origin, stage: _, result } => {
            ended(call, origin::record(origin).0, result)
        }
        // The supervisor records the end of a call itself.
        SessionEvent::BackgroundEnded { call, tool: _, result } => {
            ended(call, String::new(), result)
        }
        SessionEvent::TurnEnded { end } => JournalRecord::TurnEnded { end: turn_end(end) },
        SessionEvent::Compacted(compaction) => compacted(compaction),
        SessionEvent::Joined { text } => JournalRecord::Joined { text },
    }
}

/// The end of a call, for which no runner reported.
fn ended(call: CallId, use_id: String, result: ToolResult) -> JournalRecord {
    JournalRecord::Result {
        call: call.number,
        use_id,
        outcome: result.outcome,
        text: result.text,
        full: None,
        summary: result.summary,
        is_error: result.is_error,
        code: result.code,
        // The conversation makes none.
        images: Vec::new(),
        refused: Vec::new(),
        recalled: None,
        audit: None,
    }
}

fn compacted(compaction: Compaction) -> JournalRecord {
    match compaction {
        Compaction::Cut { dropped, result_chars, old } => {
            JournalRecord::Compacted { dropped, result_chars, old }
        }
        Compaction::Summary(step) => JournalRecord::Summary(step),
    }
}

fn proposed(call: Call, kind: impl Fn(&str) -> ToolKind) -> JournalRecord {
    let tool_kind = kind(&call.tool);
    let Call { id, origin, tool, input } = call;
    let (use_id, own) = origin::record(origin);
    JournalRecord::Proposed { call: id.number, use_id, own, tool, tool_kind, input }
}

/// A prompt that waits.
pub(crate) fn queued(prompt: PersonPrompt) -> JournalRecord {
    let QueuedPrompt { text, steers, expanded } = waiting(prompt);
    JournalRecord::Queued { text, steers, expanded }
}

fn waiting(prompt: PersonPrompt) -> QueuedPrompt {
    let PersonPrompt { text, expanded, busy } = prompt;
    QueuedPrompt { text, steers: busy == WhileBusy::Steer, expanded }
}

/// These prompts wait, in this order, and no others: one record, so that no death comes between.
pub(crate) fn waiting_alone(prompts: Vec<PersonPrompt>) -> JournalRecord {
    JournalRecord::TakenBack { waiting: prompts.into_iter().map(waiting).collect() }
}

/// The session is ended in order, in the middle of a turn.
pub(crate) fn closed() -> JournalRecord {
    JournalRecord::Closed
}

/// A call goes on in the background, and the model gets this text meanwhile.
pub(crate) fn background((call, origin): (u32, CallOrigin), text: String) -> JournalRecord {
    JournalRecord::Background { call, use_id: origin::record(origin).0, text }
}

/// Protected files that calls changed and that no person has accepted.
pub(crate) fn tampered(names: Vec<String>) -> JournalRecord {
    JournalRecord::Tampered { names }
}

/// A setting that a person changed.
pub(crate) fn setting_change(change: &SettingChange, by: String) -> JournalRecord {
    let (mut network, mut mode, mut added, mut model) = (None, None, None, None);
    let (mut pinned, mut unpinned, mut appended_system, mut cost_limit) = (None, None, None, None);
    let (mut flag, mut name) = (None, None);
    match change {
        SettingChange::Network(wanted) => network = Some(wanted.name().to_owned()),
        SettingChange::Host(host) => network = Some(format!("{} {host}", Network::Listed.name())),
        SettingChange::Mode(wanted) => mode = Some(wanted.name().to_owned()),
        SettingChange::AddDirectory(path) => added = Some(StoredPath(path.to_path())),
        SettingChange::Model(wanted) => model = Some(wanted.clone()),
        SettingChange::Pin(file) => pinned = Some(file.clone()),
        SettingChange::Unpin(file) => unpinned = Some(file.clone()),
        SettingChange::AppendedSystem(text) => appended_system = Some(text.clone()),
        SettingChange::CostLimit(most) => cost_limit = Some(*most),
        SettingChange::Flag(key, value) => flag = Some((key.clone(), value.clone())),
        SettingChange::Name(given) => name = Some(given.clone()),
    }
    JournalRecord::Changed {
        network,
        mode,
        added,
        model,
        pinned,
        unpinned,
        appended_system,
        cost_limit,
        flag,
        name,
        by,
    }
}

/// A rule from a person's answer.
pub(crate) fn learned_rule(given: &Rule, by: String, unwritten: Option<String>) -> JournalRecord {
    JournalRecord::Learned { rule: given.clone(), by, unwritten }
}

/// A fact about a call before its end.
pub(crate) fn call_fact(about: &CallFacts, fact: CallRecord) -> JournalRecord {
    let (number, kind) = (about.call.id.number, about.kind);
    match fact {
        CallRecord::Asked(question) => JournalRecord::Asked {
            call: number,
            digest: question.digest,
            preview: question.preview,
            confinement: question.confinement,
            reason: question.reason,
            deadline: question.deadline,
        },
        CallRecord::Answered(action, by) => {
            JournalRecord::Answered { call: number, action: action.name().to_owned(), by }
        }
        CallRecord::Expired => JournalRecord::Expired { call: number },
        CallRecord::Approved(why) => {
            JournalRecord::Approved { call: number, tool_kind: kind, basis: basis(&why) }
        }
        CallRecord::Denied(why, message) => {
            JournalRecord::Denied { call: number, basis: basis(&why), message }
        }
        CallRecord::Start => JournalRecord::Start {
            call: number,
            tool_kind: kind,
            contained: about.contained == Contained::Yes,
        },
    }
}

/// The last record of a call.
pub(crate) fn call_end(
    call: &Call,
    conclusion: &CallConclusion,
    refused: &[String],
    audit: Option<journal::ChainHead>,
) -> JournalRecord {
    let number = call.id.number;
    let interrupted = |progress, cause: &String| JournalRecord::Interrupted {
        call: number,
        progress,
        cause: cause.clone(),
        tampered: tampered_in_words(conclusion.tampered()),
        audit,
    };
    match &conclusion.cut {
        Cut::AfterGo { cause } => interrupted(journal::CallProgress::MayHaveRun, cause),
        Cut::BeforeGo { cause } => interrupted(journal::CallProgress::NeverStarted, cause),
        Cut::No => {
            let result = conclusion.result.clone();
            JournalRecord::Result {
                call: number,
                use_id: origin::record(call.origin.clone()).0,
                outcome: result.outcome,
                text: result.text,
                full: conclusion.report.as_ref().and_then(|report| report.full.clone()),
                summary: result.summary,
                is_error: result.is_error,
                code: result.code,
                images: images::records(
                    conclusion.report.as_ref().map_or(&[], |report| report.images.as_slice()),
                ),
                refused: refused.to_vec(),
                recalled: conclusion.cached_from,
                audit,
            }
        }
    }
}

/// Answers hold no images, and records of them have no word for one.
fn without_image(block: ContentBlock) -> ContentBlock {
    match block {
        ContentBlock::Image { image } => ContentBlock::Text { text: format!("[image {image}]") },
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. } => block,
    }
}

pub(crate) fn basis(basis: &Basis) -> journal::BasisRecord {
    match basis.clone() {
        Basis::Rule(written) => journal::BasisRecord::Rule(written),
        // The other rules are recorded with the rights that they granted.
        Basis::Rights(rules) => match rules.first() {
            Some(first) => journal::BasisRecord::Rule(first.clone()),
            None => journal::BasisRecord::Unjudgeable { why: "no rule was named".to_owned() },
        },
        Basis::Mode(mode) => journal::BasisRecord::Mode { mode: mode.name().to_owned() },
        Basis::Query => journal::BasisRecord::Query,
        Basis::Person(who) => journal::BasisRecord::Person { who, note: None },
        Basis::NotedByPerson { by, note } => {
            journal::BasisRecord::Person { who: by, note: Some(note) }
        }
        // The words that go to the model with the result, as those of a note do.
        Basis::Answered { by, answers } => {
            journal::BasisRecord::Person { who: by, note: Some(answers) }
        }
        Basis::NobodyToAsk(why) => journal::BasisRecord::NobodyToAsk { why },
        Basis::Unjudgeable(why) => journal::BasisRecord::Unjudgeable { why },
        Basis::Sandboxed(bounded) => journal::BasisRecord::Sandboxed { bounded },
        Basis::Opaque(mode) => journal::BasisRecord::Opaque { mode: mode.name().to_owned() },
        Basis::Typed(who) => journal::BasisRecord::Typed { who },
    }
}

/// An end as records have it.
fn turn_end(mut end: TurnEnd) -> TurnEnd {
    if let TurnEnd::ProviderFailed { kind, .. } = &mut end {
        *kind = kind.recorded();
    }
    end
}
