//! Encodes wire messages as records of the journal. Used by the session and call actors; `decode` is
//! the inverse.

use crate::call::{CallConclusion, CallRecord, Cut};
use crate::protected_restore::in_words;
use journal::{Record, StoredPath};
use protocol::call::{Call, Outcome};
use protocol::client::Change;
use protocol::confinement::Network;
use protocol::content::{Block, Usage};
use protocol::judgement::{Basis, Rule, RuleEffect, ToolKind};
use protocol::provider::Failure;
use protocol::session::{Happened, Span, TurnEnd};

/// Encodes an event that the conversation committed. `kind` gives the kind of a tool by its name.
pub(crate) fn session_event(happened: Happened, kind: impl Fn(&str) -> ToolKind) -> Record {
    match happened {
        Happened::Prompt { text } => Record::Prompt { text },
        Happened::Answer { round, blocks, usage: tokens } => Record::Answer {
            round,
            blocks: blocks.into_iter().map(block).collect(),
            usage: usage(tokens),
        },
        Happened::Called { call } => proposed(call, kind),
        Happened::Result { call, use_id, result } => Record::Result {
            call: call.number,
            use_id,
            outcome: outcome(&result.outcome),
            text: result.text,
            full: None,
            summary: result.summary,
            is_error: result.is_error,
            code: result.code,
            recalled: None,
            audit: None,
        },
        Happened::TurnEnded { end } => Record::TurnEnded { end: turn_end(end) },
        Happened::Compacted { dropped, result_chars } => {
            Record::Compacted { dropped, result_chars }
        }
    }
}

fn proposed(call: Call, kind: impl Fn(&str) -> ToolKind) -> Record {
    let tool_kind = tool_kind(kind(&call.tool));
    let Call { id, use_id, tool, input } = call;
    Record::Proposed { call: id.number, use_id, tool, tool_kind, input }
}

/// A setting that a person changed.
pub(crate) fn setting_change(change: &Change, by: String) -> Record {
    let (mut network, mut mode, mut added, mut model) = (None, None, None, None);
    let (mut pinned, mut unpinned) = (None, None);
    match change {
        Change::Network(wanted) => network = Some(wanted.name().to_owned()),
        Change::Host(host) => network = Some(format!("{} {host}", Network::Listed.name())),
        Change::Mode(name) => mode = Some(name.name().to_owned()),
        Change::AddDirectory(path) => added = Some(StoredPath(path.to_path())),
        Change::Model(name) => model = Some(name.clone()),
        Change::Pin(file) => pinned = Some(file.clone()),
        Change::Unpin(file) => unpinned = Some(file.clone()),
    }
    Record::Changed { network, mode, added, model, pinned, unpinned, by }
}

/// A rule from a person's answer.
pub(crate) fn learned_rule(given: &Rule, by: String, unwritten: Option<String>) -> Record {
    Record::Learned { rule: rule(given), by, unwritten }
}

/// A fact about a call before its end.
pub(crate) fn call_fact(call: &Call, kind: ToolKind, fact: CallRecord) -> Record {
    let number = call.id.number;
    match fact {
        CallRecord::Asked(question) => Record::Asked {
            call: number,
            digest: question.digest,
            preview: question.preview,
            confinement: question.confinement,
            reason: question.reason,
            deadline: question.deadline,
        },
        CallRecord::Expired => Record::Expired { call: number },
        CallRecord::Approved(why) => {
            Record::Approved { call: number, tool_kind: tool_kind(kind), basis: basis(&why) }
        }
        CallRecord::Denied(why, message) => {
            Record::Denied { call: number, basis: basis(&why), message }
        }
        CallRecord::Start => Record::Start { call: number, tool_kind: tool_kind(kind) },
    }
}

/// The last record of a call.
pub(crate) fn call_end(
    call: &Call,
    conclusion: &CallConclusion,
    audit: Option<journal::Head>,
) -> Record {
    let number = call.id.number;
    let interrupted = |progress, cause: &String| Record::Interrupted {
        call: number,
        progress,
        cause: cause.clone(),
        tampered: in_words(conclusion.tampered()),
        audit,
    };
    match &conclusion.cut {
        Cut::AfterGo { cause } => interrupted(journal::Progress::MayHaveRun, cause),
        Cut::BeforeGo { cause } => interrupted(journal::Progress::NeverStarted, cause),
        Cut::No => {
            let result = conclusion.result.clone();
            Record::Result {
                call: number,
                use_id: call.use_id.clone(),
                outcome: outcome(&result.outcome),
                text: result.text,
                full: conclusion.report.as_ref().and_then(|report| report.full.clone()),
                summary: result.summary,
                is_error: result.is_error,
                code: result.code,
                recalled: conclusion.cached_from,
                audit,
            }
        }
    }
}

fn block(block: Block) -> journal::Block {
    match block {
        Block::Text { text } => journal::Block::Text { text },
        Block::Thinking { text, raw } => journal::Block::Thinking { text, raw },
        Block::ToolUse { id, name, input } => journal::Block::ToolUse { id, name, input },
        Block::ToolResult { id, text, is_error } => {
            journal::Block::ToolResult { id, text, is_error }
        }
    }
}

fn usage(usage: Usage) -> journal::Usage {
    let Usage { input, output, cache_read, cache_write } = usage;
    journal::Usage { input, output, cache_read, cache_write }
}

pub(crate) fn tool_kind(kind: ToolKind) -> journal::ToolKind {
    match kind {
        ToolKind::Query => journal::ToolKind::Query,
        ToolKind::Mutation => journal::ToolKind::Mutation,
    }
}

pub(super) fn outcome(outcome: &Outcome) -> journal::Outcome {
    match outcome {
        Outcome::Done => journal::Outcome::Done,
        Outcome::Failed => journal::Outcome::Failed,
        Outcome::Exited { code } => journal::Outcome::Exited { code: *code },
        Outcome::Signalled { signal } => journal::Outcome::Signalled { signal: *signal },
        Outcome::TimedOut => journal::Outcome::TimedOut,
        Outcome::Denied => journal::Outcome::Denied,
        Outcome::Refused { rule } => journal::Outcome::Refused { rule: rule.clone() },
        Outcome::Confined { what } => journal::Outcome::Confined { what: what.clone() },
        Outcome::OutOfMemory => journal::Outcome::OutOfMemory,
        Outcome::Crashed => journal::Outcome::Crashed,
        Outcome::Interrupted => journal::Outcome::Interrupted,
        Outcome::Invalid => journal::Outcome::Invalid,
    }
}

fn rule(rule: &Rule) -> journal::Rule {
    let effect = match rule.effect {
        RuleEffect::Deny => journal::RuleEffect::Deny,
        RuleEffect::Ask => journal::RuleEffect::Ask,
        RuleEffect::Allow => journal::RuleEffect::Allow,
    };
    let Rule { text, file, line, effect: _ } = rule.clone();
    journal::Rule { effect, text, file, line }
}

pub(super) fn basis(basis: &Basis) -> journal::Basis {
    match basis.clone() {
        Basis::Rule(written) => journal::Basis::Rule(rule(&written)),
        // The other rules are recorded with the rights that they granted.
        Basis::Rights(rules) => match rules.first() {
            Some(first) => journal::Basis::Rule(rule(first)),
            None => journal::Basis::Unjudgeable { why: "no rule was named".to_owned() },
        },
        Basis::Mode(mode) => journal::Basis::Mode { mode: mode.name().to_owned() },
        Basis::Query => journal::Basis::Query,
        Basis::Person(who) => journal::Basis::Person { who },
        Basis::NobodyToAsk(why) => journal::Basis::NobodyToAsk { why },
        Basis::Unjudgeable(why) => journal::Basis::Unjudgeable { why },
        Basis::Opaque(mode) => journal::Basis::Opaque { mode: mode.name().to_owned() },
    }
}

fn turn_end(end: TurnEnd) -> journal::TurnEnd {
    match end {
        TurnEnd::Done => journal::TurnEnd::Done,
        TurnEnd::RoundsUsedUp { rounds } => journal::TurnEnd::RoundsUsedUp { rounds },
        TurnEnd::CallsUsedUp { calls, of } => journal::TurnEnd::CallsUsedUp {
            calls,
            of: match of {
                Span::Turn => journal::Span::Turn,
                Span::Session => journal::Span::Session,
            },
        },
        TurnEnd::Declined { explanation } => journal::TurnEnd::Declined { explanation },
        TurnEnd::Truncated => journal::TurnEnd::Truncated,
        TurnEnd::Interrupted => journal::TurnEnd::Interrupted,
        TurnEnd::ProviderFailed { kind, message } => {
            journal::TurnEnd::ProviderFailed { failure: failure(kind), message }
        }
        TurnEnd::ProcessDied(died) => journal::TurnEnd::ProcessDied(journal::Deaths {
            process: died.process,
            cause: died.cause,
            deaths: died.count,
            place: died.place,
        }),
    }
}

fn failure(failure: Failure) -> journal::Failure {
    match failure {
        Failure::KeyRefused => journal::Failure::KeyRefused,
        Failure::NoKey => journal::Failure::NoKey,
        Failure::Unreachable => journal::Failure::Unreachable,
        Failure::Rejected => journal::Failure::Rejected,
        Failure::Overloaded => journal::Failure::Overloaded,
        // Earlier builds have no term for it, and the message is complete.
        Failure::ContextFull => journal::Failure::Rejected,
        Failure::RecordingDeparted => journal::Failure::RecordingDeparted,
    }
}
