//! A session's records as turns, calls and times, for one page. Pure. For `export`.

use crate::audit::end_of;
use client::{Spent, argument_lines, in_dollars, telling_argument};
use config::secrets::Redactor;
use journal::{ContentBlock, JournalEntry, JournalRecord, Outcome, Usage};
use protocol::hidden::{on_screen, visible};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A whole session.
#[derive(Debug, Default)]
pub(super) struct SessionReport {
    pub(super) session: String,
    pub(super) project: String,
    /// Each model that was asked, in the order of their requests.
    pub(super) models: Vec<String>,
    pub(super) began: u64,
    pub(super) last: u64,
    pub(super) turns: Vec<TurnReport>,
    pub(super) calls: BTreeMap<u32, CallReport>,
    pub(super) usage: Usage,
    pub(super) spent: Spent,
    /// Why no call has its audit record.
    pub(super) audit_fault: Option<String>,
    /// When the question of each call was asked.
    asked: BTreeMap<u32, u64>,
}

/// From a prompt to the next one.
#[derive(Debug, Default)]
pub(super) struct TurnReport {
    pub(super) began: u64,
    pub(super) items: Vec<ReportItem>,
    /// Where its time went, in order; spans of one kind that meet are one.
    pub(super) spans: Vec<(SpanKind, u64)>,
    /// Until here its time is in a span.
    until: u64,
}

/// What a part of a turn's time was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    /// An answer was awaited.
    Model,
    /// A question to a person was open.
    Person,
    /// A call ran.
    Call,
    Other,
}

/// One thing in a turn.
#[derive(Debug)]
pub(super) enum ReportItem {
    Prompt(String),
    /// Markdown.
    Answer(String),
    Thinking(String),
    Call(u32),
    Note(String),
}

/// One call.
#[derive(Debug, Default)]
pub(super) struct CallReport {
    pub(super) tool: String,
    /// The most informative argument.
    pub(super) headline: String,
    pub(super) input: String,
    /// What was shown, and why, of a call that a person was asked about.
    pub(super) question: Option<(String, String)>,
    pub(super) started: Option<u64>,
    /// The conversation went on while it ran.
    pub(super) in_background: bool,
    pub(super) ended: Option<u64>,
    pub(super) end: CallEnd,
    pub(super) text: String,
    /// Its records in the audit log: the verdict, the cage, the refusals.
    pub(super) audit: String,
    /// How many system calls and connections were refused.
    pub(super) refusals: u64,
}

/// How a call ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum CallEnd {
    #[default]
    Open,
    Good(String),
    Bad(String),
}

impl SessionReport {
    /// Adds the next record. Prices are those of the model that answered.
    pub(super) fn add(
        &mut self,
        entry: &JournalEntry,
        redactor: &mut Redactor,
        prices: impl Fn(&str) -> Option<protocol::client::Prices>,
    ) {
        let time = entry.time;
        self.last = self.last.max(time);
        let redactor = RefCell::new(redactor);
        let plain = |text: &str| on_screen(&redactor.borrow_mut().mask(text));
        // Masked first: a control code in a secret would end the mask once it is spelled.
        let spelled = |text: &str| visible(&redactor.borrow_mut().mask(text)).to_string();
        match &entry.record {
            JournalRecord::Session(header) => {
                self.session.clone_from(&header.id);
                self.project = plain(&header.project.0.display().to_string());
                self.models.push(plain(&header.model));
                self.began = time;
            }
            JournalRecord::Prompt { text, .. } => {
                let items = vec![ReportItem::Prompt(plain(text))];
                self.turns.push(TurnReport { began: time, items, spans: Vec::new(), until: time });
            }
            JournalRecord::Joined { text } => {
                let note = ReportItem::Note("joined the turn".to_owned());
                self.turn(time).items.extend([ReportItem::Prompt(plain(text)), note]);
            }
            JournalRecord::Answer { blocks, usage, .. } => {
                let turn = self.turn(time);
                turn.spend(SpanKind::Model, turn.until, time);
                for block in blocks {
                    let item = match block {
                        ContentBlock::Text { text } => ReportItem::Answer(plain(text)),
                        ContentBlock::Thinking { text, .. } if !text.trim().is_empty() => {
                            ReportItem::Thinking(plain(text))
                        }
                        ContentBlock::Thinking { .. }
                        | ContentBlock::ToolUse { .. }
                        | ContentBlock::Image { .. }
                        | ContentBlock::ToolResult { .. } => continue,
                    };
                    turn.items.push(item);
                }
                self.usage = client::sum(self.usage, *usage);
                let model = self.models.last().map_or("", String::as_str);
                self.spent.answered(*usage, prices(model));
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
            } => {
                if let Some(model) = model {
                    self.models.push(plain(model));
                }
                let named = |what: &str, value: &Option<String>| {
                    value.as_ref().map(|value| format!("{what} {value}"))
                };
                let added = added.as_ref().map(|path| path.0.display().to_string());
                let what = named("network", network)
                    .or_else(|| named("mode", mode))
                    .or_else(|| named("added directory", &added))
                    .or_else(|| named("model", model))
                    .or_else(|| named("pinned", pinned))
                    .or_else(|| named("unpinned", unpinned))
                    .or_else(|| named("system prompt ends with:", appended_system))
                    .or_else(|| cost_limit.map(|most| format!("cost limit {}", in_dollars(most))))
                    .or_else(|| flag.as_ref().map(|(key, value)| format!("{key} {value}")))
                    .or_else(|| named("name", name));
                // The name of a session does not go along into a copy.
                if let Some(what) = what {
                    let note = plain(&format!("{what} (by {by})"));
                    self.turn(time).items.push(ReportItem::Note(note));
                }
            }
            JournalRecord::Learned { rule, by, .. } => {
                let note = plain(&format!("the rule {} allows from here on (by {by})", rule.text));
                self.turn(time).items.push(ReportItem::Note(note));
            }
            JournalRecord::Proposed { call, tool, input, .. } => {
                let known = CallReport {
                    tool: plain(tool),
                    headline: spelled(&telling_argument(input)),
                    input: spelled(&argument_lines(input)),
                    ..CallReport::default()
                };
                self.calls.insert(*call, known);
                self.turn(time).items.push(ReportItem::Call(*call));
            }
            JournalRecord::Asked { call, preview, reason, .. } => {
                self.asked.insert(*call, time);
                let question = (spelled(preview), plain(reason));
                self.calls.entry(*call).or_default().question = Some(question);
            }
            JournalRecord::Approved { call, .. } => self.answered(*call, time),
            JournalRecord::Denied { call, .. }
            | JournalRecord::Answered { call, .. }
            | JournalRecord::Expired { call } => {
                self.answered(*call, time);
            }
            JournalRecord::Start { call, .. } => {
                self.calls.entry(*call).or_default().started = Some(time);
            }
            JournalRecord::Background { call, .. } => {
                let known = self.calls.entry(*call).or_default();
                known.in_background = true;
                let from = known.started.unwrap_or(time);
                let note = format!("call {call} goes on in the background");
                let turn = self.turn(time);
                turn.spend(SpanKind::Call, from, time);
                turn.items.push(ReportItem::Note(note));
            }
            JournalRecord::Spent { call, session, .. } => {
                self.turn(time)
                    .items
                    .push(ReportItem::Note(format!("call {call} was done in session {session}")));
            }
            JournalRecord::Result { call, outcome: how, summary, text, full, is_error, .. } => {
                let text = plain(full.as_ref().unwrap_or(text));
                let is_good =
                    !is_error && matches!(how, Outcome::Done | Outcome::Exited { code: 0 });
                let end = plain(&end_of(how, summary));
                let end = if is_good { CallEnd::Good(end) } else { CallEnd::Bad(end) };
                self.ended(*call, time, end, text);
            }
            JournalRecord::Interrupted { call, progress, cause, .. } => {
                let how = match progress {
                    journal::CallProgress::NeverStarted => Outcome::NeverStarted,
                    journal::CallProgress::MayHaveRun => Outcome::Interrupted,
                };
                let end = CallEnd::Bad(end_of(&how, ""));
                self.ended(*call, time, end, plain(cause));
            }
            JournalRecord::TurnEnded { end } => {
                let words = plain(&crate::describe::ending(end));
                let turn = self.turn(time);
                turn.spend(SpanKind::Other, turn.until, time);
                turn.items.push(ReportItem::Note(words));
            }
            JournalRecord::Compacted { dropped, .. } => {
                let note = format!("the first {dropped} messages are no longer sent to the model");
                self.turn(time).items.push(ReportItem::Note(note));
            }
            JournalRecord::Summary(summary) => {
                let turn = self.turn(time);
                if summary.use_of_model().is_some() {
                    turn.spend(SpanKind::Model, turn.until, time);
                }
                turn.items.push(ReportItem::Note(plain(&crate::describe::summary(summary))));
            }
            JournalRecord::Tampered { names } => {
                let note = plain(&format!("changed protected files: {}", names.join("; ")));
                self.turn(time).items.push(ReportItem::Note(note));
            }
            JournalRecord::Queued { .. }
            | JournalRecord::TakenBack { .. }
            | JournalRecord::Seen { .. }
            | JournalRecord::Closed
            | JournalRecord::Unknown { .. } => {}
        }
    }

    /// The time of each kind, over all turns.
    pub(super) fn spent_on(&self, kind: SpanKind) -> u64 {
        let spans = self.turns.iter().flat_map(|turn| &turn.spans);
        spans.filter(|(of, _)| *of == kind).map(|(_, ms)| ms).sum()
    }

    /// The present turn. Settings may change before the first prompt.
    fn turn(&mut self, time: u64) -> &mut TurnReport {
        if self.turns.is_empty() {
            self.turns.push(TurnReport { began: time, until: time, ..TurnReport::default() });
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    fn answered(&mut self, call: u32, time: u64) {
        if let Some(asked) = self.asked.remove(&call) {
            self.turn(time).spend(SpanKind::Person, asked, time);
        }
    }

    fn ended(&mut self, call: u32, time: u64, end: CallEnd, text: String) {
        let known = self.calls.entry(call).or_default();
        (known.ended, known.end, known.text) = (Some(time), end, text);
        // The time of a call in the background is that of what went on meanwhile.
        if !known.in_background {
            let from = known.started.unwrap_or(time);
            self.turn(time).spend(SpanKind::Call, from, time);
        }
    }
}

impl TurnReport {
    /// Time between two moments, without what is in an earlier span.
    fn spend(&mut self, kind: SpanKind, from: u64, to: u64) {
        for (kind, from, to) in [(SpanKind::Other, self.until, from), (kind, from, to)] {
            let from = from.max(self.until);
            let Some(ms) = to.checked_sub(from).filter(|ms| *ms > 0) else { continue };
            self.until = to;
            match self.spans.last_mut() {
                Some((last, before)) if *last == kind => *before += ms,
                Some(_) | None => self.spans.push((kind, ms)),
            }
        }
    }
}
