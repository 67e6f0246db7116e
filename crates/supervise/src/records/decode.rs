//! Decodes journal records into wire messages: the replay for a conversation, and the backlog for a
//! client that attaches. Used by the session actor; `encode` is the inverse.

use crate::call::{Cut, interruption};
use journal::{Entry, Record};
use protocol::call::{Call, Outcome, ToolResult};
use protocol::client::{Change, Event};
use protocol::confinement::{FilePath, Network};
use protocol::content::{Block, Usage};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{Mode, Rule, RuleEffect};
use protocol::provider::Failure;
use protocol::session::{Deaths, Happened, Span, TurnEnd};
use std::collections::{HashMap, VecDeque};

/// Decodes a journal for the conversation, record by record in order.
pub(crate) struct JournalReplay<'a> {
    session: &'a SessionId,
    /// For calls without an end: the vendor's id and the tool.
    use_ids: HashMap<u32, (String, String)>,
}

impl<'a> JournalReplay<'a> {
    pub(crate) fn of(session: &'a SessionId) -> Self {
        Self { session, use_ids: HashMap::new() }
    }

    pub(crate) fn next_event(&mut self, record: Record) -> Option<Happened> {
        happened(self.session, record, &mut self.use_ids)
    }
}

fn happened(
    session: &SessionId,
    record: Record,
    use_ids: &mut HashMap<u32, (String, String)>,
) -> Option<Happened> {
    match record {
        Record::Prompt { text } => Some(Happened::Prompt { text }),
        Record::Answer { round, blocks, usage: tokens } => Some(Happened::Answer {
            round,
            blocks: blocks.into_iter().map(block).collect(),
            usage: usage(tokens),
        }),
        Record::Proposed { call, use_id, tool, input, tool_kind: _ } => {
            use_ids.insert(call, (use_id.clone(), tool.clone()));
            let id = id(session, call);
            Some(Happened::Called { call: Call { id, use_id, tool, input } })
        }
        Record::Result {
            call,
            use_id,
            outcome: how,
            text,
            summary,
            is_error,
            code,
            full: _,
            recalled: _,
            audit: _,
        } => {
            use_ids.remove(&call);
            let result = ToolResult { outcome: outcome(how), text, summary, is_error, code };
            Some(Happened::Result { call: id(session, call), use_id, result })
        }
        Record::Interrupted { call, progress, cause, tampered, audit: _ } => {
            let (use_id, tool) = use_ids.remove(&call)?;
            let result = interruption(&cut(progress, cause), &tool, tampered);
            Some(Happened::Result { call: id(session, call), use_id, result })
        }
        Record::TurnEnded { end } => Some(Happened::TurnEnded { end: turn_end(end) }),
        Record::Compacted { dropped, result_chars } => {
            Some(Happened::Compacted { dropped, result_chars })
        }
        Record::Session(_)
        | Record::Queued { .. }
        | Record::TakenBack
        | Record::Closed
        | Record::Changed { .. }
        | Record::Learned { .. }
        | Record::Tampered { .. }
        | Record::Seen { .. }
        | Record::Asked { .. }
        | Record::Approved { .. }
        | Record::Denied { .. }
        | Record::Expired { .. }
        | Record::Start { .. }
        | Record::Unknown { .. } => None,
    }
}

/// The event that clients get for a record; `None` for records they do not see.
pub(crate) fn client_event(session: &SessionId, record: &Record) -> Option<Event> {
    match record.clone() {
        Record::Prompt { text } => Some(Event::Prompt { text }),
        Record::Answer { blocks, usage: tokens, round: _ } => Some(Event::Answer {
            blocks: blocks.into_iter().map(block).collect(),
            usage: usage(tokens),
        }),
        Record::Proposed { call, use_id, tool, input, tool_kind: _ } => {
            let id = id(session, call);
            Some(Event::Proposed { call: Call { id, use_id, tool, input } })
        }
        Record::Approved { call, basis: why, tool_kind: _ } => Some(Event::Decided {
            call: id(session, call),
            allowed: true,
            basis: describe_basis(&why),
        }),
        Record::Denied { call, basis: why, message: _ } => Some(Event::Decided {
            call: id(session, call),
            allowed: false,
            basis: describe_basis(&why),
        }),
        Record::Expired { call } => Some(Event::Decided {
            call: id(session, call),
            allowed: false,
            basis: "nobody answered in time".to_owned(),
        }),
        Record::Result {
            call,
            outcome: how,
            text,
            summary,
            is_error,
            code,
            use_id: _,
            full: _,
            recalled: _,
            audit: _,
        } => {
            let result = ToolResult { outcome: outcome(how), text, summary, is_error, code };
            Some(Event::CallEnded { call: id(session, call), result, refused: Vec::new() })
        }
        Record::Interrupted { call, progress, cause, tampered, audit: _ } => {
            let result = interruption(&cut(progress, cause), "", tampered);
            Some(Event::CallEnded { call: id(session, call), result, refused: Vec::new() })
        }
        Record::TurnEnded { end } => Some(Event::TurnEnded { end: turn_end(end) }),
        Record::Compacted { dropped, result_chars: _ } => Some(Event::Compacted { dropped }),
        Record::Changed { by, .. } => changed(record).map(|change| Event::Changed { change, by }),
        Record::Learned { rule: given, by, unwritten } => {
            Some(Event::Learned { rule: rule(given), by, unwritten })
        }
        // Clients get pending prompts separately, while they are pending.
        Record::Queued { .. } | Record::TakenBack => None,
        // An open question is shown by the call that waits for its answer.
        Record::Asked { .. }
        | Record::Seen { .. }
        | Record::Tampered { .. }
        | Record::Session(_)
        | Record::Start { .. }
        | Record::Closed
        | Record::Unknown { .. } => None,
    }
}

/// The change in a record; `None` for a value of a newer build, and for other records.
fn changed(record: &Record) -> Option<Change> {
    let Record::Changed { network, mode, added, model, pinned, unpinned, by: _ } = record else {
        return None;
    };
    if let Some(network) = network {
        return match network.split_once(' ') {
            None => Network::parse(network).map(Change::Network),
            Some((list, host)) if list == Network::Listed.name() => {
                host.parse().ok().map(Change::Host)
            }
            Some(_) => None,
        };
    }
    if let Some(mode) = mode {
        return Mode::parse(mode).map(Change::Mode);
    }
    let added = added.as_ref().map(|path| Change::AddDirectory(FilePath::from(&path.0)));
    added
        .or_else(|| model.clone().map(Change::Model))
        .or_else(|| pinned.clone().map(Change::Pin))
        .or_else(|| unpinned.clone().map(Change::Unpin))
}

/// The changes that the session recorded, in order.
pub(crate) fn changes(entries: &[Entry]) -> Vec<Change> {
    entries.iter().filter_map(|entry| changed(&entry.record)).collect()
}

/// Protected files that calls changed, that were not restored, and that no person has accepted.
pub(crate) fn tampered_names(entries: &[Entry]) -> Vec<String> {
    let last = entries.iter().rev().find_map(|entry| {
        let Record::Tampered { names } = &entry.record else { return None };
        Some(names.clone())
    });
    last.unwrap_or_default()
}

/// Rules from answers that hold for the session. Rules in files are read from there. A copy of a
/// session starts without these rules: they were not given for it.
pub(crate) fn learned_rules(entries: &[Entry]) -> Vec<Rule> {
    let parents = entries.iter().filter_map(|entry| {
        let Record::Session(header) = &entry.record else { return None };
        header.parent.as_ref()
    });
    let copied = parents.map(|parent| parent.seq).max().unwrap_or(0);
    let kept = |entry: &Entry| {
        let Record::Learned { rule: given, .. } = &entry.record else { return None };
        (given.line == 0 && entry.seq > copied).then(|| rule(given.clone()))
    };
    // A rule that this build cannot parse allows nothing.
    let followed = |rule: &Rule| approval::check(std::slice::from_ref(rule)).is_empty();
    entries.iter().filter_map(kept).filter(followed).collect()
}

fn rule(rule: journal::Rule) -> Rule {
    let journal::Rule { effect, text, file, line } = rule;
    let effect = match effect {
        journal::RuleEffect::Deny => RuleEffect::Deny,
        journal::RuleEffect::Ask => RuleEffect::Ask,
        journal::RuleEffect::Allow => RuleEffect::Allow,
    };
    Rule { effect, text, file, line }
}

/// The queued prompts, in order.
pub(crate) fn queued_prompts(entries: &[Entry]) -> VecDeque<String> {
    let waits = |entry: &Entry| {
        let Record::Queued { text } = &entry.record else { return None };
        Some(text.clone())
    };
    entries.iter().filter_map(waits).collect()
}

fn id(session: &SessionId, number: u32) -> CallId {
    CallId { session: session.clone(), number }
}

fn cut(progress: journal::Progress, cause: String) -> Cut {
    match progress {
        journal::Progress::NeverStarted => Cut::BeforeGo { cause },
        journal::Progress::MayHaveRun => Cut::AfterGo { cause },
    }
}

fn block(block: journal::Block) -> Block {
    match block {
        journal::Block::Text { text } => Block::Text { text },
        journal::Block::Thinking { text, raw } => Block::Thinking { text, raw },
        journal::Block::ToolUse { id, name, input } => Block::ToolUse { id, name, input },
        journal::Block::ToolResult { id, text, is_error } => {
            Block::ToolResult { id, text, is_error }
        }
    }
}

fn usage(usage: journal::Usage) -> Usage {
    let journal::Usage { input, output, cache_read, cache_write } = usage;
    Usage { input, output, cache_read, cache_write }
}

fn outcome(outcome: journal::Outcome) -> Outcome {
    match outcome {
        journal::Outcome::Done => Outcome::Done,
        journal::Outcome::Failed => Outcome::Failed,
        journal::Outcome::Exited { code } => Outcome::Exited { code },
        journal::Outcome::Signalled { signal } => Outcome::Signalled { signal },
        journal::Outcome::TimedOut => Outcome::TimedOut,
        journal::Outcome::Denied => Outcome::Denied,
        journal::Outcome::Refused { rule } => Outcome::Refused { rule },
        journal::Outcome::Confined { what } => Outcome::Confined { what },
        journal::Outcome::OutOfMemory => Outcome::OutOfMemory,
        journal::Outcome::Crashed => Outcome::Crashed,
        journal::Outcome::Interrupted => Outcome::Interrupted,
        journal::Outcome::Invalid => Outcome::Invalid,
    }
}

/// Describes the basis of a decision.
pub(crate) fn describe_basis(basis: &journal::Basis) -> String {
    match basis {
        journal::Basis::Rule(rule) if rule.line > 0 => {
            format!("rule `{}` ({}:{})", rule.text, rule.file, rule.line)
        }
        journal::Basis::Rule(rule) => format!("rule `{}` ({})", rule.text, rule.file),
        journal::Basis::Mode { mode } => format!("mode {mode}"),
        journal::Basis::Query => "it only looks".to_owned(),
        journal::Basis::Person { who } => format!("answered by {who}"),
        journal::Basis::NobodyToAsk { why } => format!("nobody to ask ({why})"),
        journal::Basis::Unjudgeable { why } => format!("cannot be judged ({why})"),
        journal::Basis::Opaque { mode } => {
            format!("mode {mode}; a program name in it could not be determined")
        }
    }
}

fn turn_end(end: journal::TurnEnd) -> TurnEnd {
    match end {
        journal::TurnEnd::Done => TurnEnd::Done,
        journal::TurnEnd::RoundsUsedUp { rounds } => TurnEnd::RoundsUsedUp { rounds },
        journal::TurnEnd::CallsUsedUp { calls, of } => TurnEnd::CallsUsedUp {
            calls,
            of: match of {
                journal::Span::Turn => Span::Turn,
                journal::Span::Session => Span::Session,
            },
        },
        journal::TurnEnd::Declined { explanation } => TurnEnd::Declined { explanation },
        journal::TurnEnd::Truncated => TurnEnd::Truncated,
        journal::TurnEnd::Interrupted => TurnEnd::Interrupted,
        journal::TurnEnd::ProviderFailed { failure: kind, message } => {
            TurnEnd::ProviderFailed { kind: failure(kind), message }
        }
        journal::TurnEnd::ProcessDied(died) => TurnEnd::ProcessDied(deaths(died)),
    }
}

pub(crate) fn deaths(died: journal::Deaths) -> Deaths {
    let journal::Deaths { process, cause, deaths: count, place } = died;
    Deaths { process, cause, count, place }
}

fn failure(failure: journal::Failure) -> Failure {
    match failure {
        journal::Failure::KeyRefused => Failure::KeyRefused,
        journal::Failure::NoKey => Failure::NoKey,
        journal::Failure::Unreachable => Failure::Unreachable,
        journal::Failure::Rejected => Failure::Rejected,
        journal::Failure::Overloaded => Failure::Overloaded,
        journal::Failure::RecordingDeparted => Failure::RecordingDeparted,
    }
}
