//! What the records of a session that still hold say: one fold over them, for everybody who opens a session,
//! ends what an earlier run left open, or shows it.

use crate::{
    BasisRecord, CallProgress, ExpandedPrompt, JournalEntry, JournalRecord, OwnOriginRecord, Rule,
    ToolKind,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A call that has no end on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// Its number in the session.
    pub number: u32,
    /// The vendor's id, which pairs its result. Empty where the model did not ask for it.
    pub use_id: String,
    /// Who else asked for it, where that is on record.
    pub own: Option<OwnOriginRecord>,
    /// The tool's name.
    pub tool: String,
    /// Query or mutation. A query may run again; a mutation that may have run never does.
    pub tool_kind: ToolKind,
    /// Its arguments as JSON text.
    pub input: String,
    /// True if `Go` was sent.
    pub progress: CallProgress,
    /// The reason of its verdict, if there is one to report.
    pub basis: Option<BasisRecord>,
    /// That it is not to run, where that was decided. Its result was lost, the decision holds.
    pub refused: Option<RefusedCall>,
}

/// A decision that a call does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedCall {
    /// A person, a rule or a mode said no.
    Denied {
        /// The text for the model.
        message: String,
    },
    /// No answer came in time.
    Expired,
}

/// That a call was let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallStart {
    /// The number of the record.
    pub seq: u64,
    /// Which call.
    pub call: u32,
    /// As in [`JournalRecord::Start`].
    pub contained: bool,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedQuestion {
    /// Which call it is about.
    pub call: u32,
    /// The digest that the answer must match.
    pub digest: String,
    /// When it expires, in milliseconds of Unix time.
    pub deadline: u64,
}

/// A prompt that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedPrompt {
    /// A person's words.
    pub text: String,
    /// It is for the running turn, if that asks the model again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steers: bool,
    /// As for a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expanded: Option<Box<ExpandedPrompt>>,
}

/// What records say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Past {
    open: BTreeMap<u32, OpenCall>,
    /// Calls that went to the background.
    pub background: BTreeSet<u32>,
    /// The starts of calls, in order.
    pub starts: Vec<CallStart>,
    /// The questions, in order.
    pub questions: Vec<AskedQuestion>,
    /// The prompts that wait, in order.
    pub queued: VecDeque<QueuedPrompt>,
    /// Protected files that calls changed, that were not restored, and that no person has accepted.
    pub tampered: Vec<String>,
    /// Rules from answers that hold for the session. A copy of a session starts without these: they were not
    /// given for it. Rules in files are read from there.
    pub learned: Vec<Rule>,
    /// The records of what sub-agents used, in order.
    pub spent: Vec<JournalEntry>,
    /// The last record that was taken over from another session.
    copied: u64,
}

impl Past {
    /// What these records say, which are in their order.
    pub fn fold<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> Self {
        let mut past = Self::default();
        for entry in entries {
            past.take(entry);
        }
        past
    }

    /// The calls that were proposed and have no end, by number.
    pub fn open_calls(&self) -> Vec<OpenCall> {
        self.open.values().cloned().collect()
    }

    fn take(&mut self, entry: &JournalEntry) {
        match &entry.record {
            JournalRecord::Session(header) => {
                self.copied = header.parent.as_ref().map_or(0, |parent| parent.seq);
            }
            JournalRecord::Prompt { .. } | JournalRecord::Joined { .. } => {
                // It was the oldest that waited, if any did.
                self.queued.pop_front();
            }
            JournalRecord::Queued { text, steers, expanded } => {
                let (text, steers, expanded) = (text.clone(), *steers, expanded.clone());
                self.queued.push_back(QueuedPrompt { text, steers, expanded });
            }
            JournalRecord::TakenBack { waiting } => self.queued = waiting.clone().into(),
            JournalRecord::Learned { rule, .. } => {
                if rule.line == 0 && entry.seq > self.copied {
                    self.learned.push(rule.clone());
                }
            }
            JournalRecord::Tampered { names } => self.tampered.clone_from(names),
            JournalRecord::Spent { .. } => self.spent.push(entry.clone()),
            JournalRecord::Proposed { call, use_id, own, tool, tool_kind, input } => {
                let fresh = OpenCall {
                    number: *call,
                    use_id: use_id.clone(),
                    own: own.clone(),
                    tool: tool.clone(),
                    tool_kind: *tool_kind,
                    input: input.clone(),
                    basis: None,
                    progress: CallProgress::NeverStarted,
                    refused: None,
                };
                self.open.insert(*call, fresh);
            }
            JournalRecord::Asked { call, digest, deadline, .. } => {
                let (call, digest, deadline) = (*call, digest.clone(), *deadline);
                self.questions.push(AskedQuestion { call, digest, deadline });
            }
            JournalRecord::Approved { call, basis, .. } => {
                self.decided(*call, |open| open.basis = Some(basis.clone()));
            }
            JournalRecord::Denied { call, message, basis } => self.decided(*call, |open| {
                open.basis = Some(basis.clone());
                open.refused = Some(RefusedCall::Denied { message: message.clone() });
            }),
            JournalRecord::Expired { call } => {
                self.decided(*call, |open| open.refused = Some(RefusedCall::Expired));
            }
            JournalRecord::Start { call, contained, .. } => {
                self.decided(*call, |open| open.progress = CallProgress::MayHaveRun);
                let (seq, call, contained) = (entry.seq, *call, *contained);
                self.starts.push(CallStart { seq, call, contained });
            }
            JournalRecord::Background { call, .. } => {
                self.background.insert(*call);
            }
            JournalRecord::Result { call, .. } | JournalRecord::Interrupted { call, .. } => {
                self.open.remove(call);
            }
            JournalRecord::Changed { .. }
            | JournalRecord::Compacted { .. }
            | JournalRecord::Summary(_)
            | JournalRecord::Seen { .. }
            | JournalRecord::Answer { .. }
            | JournalRecord::Answered { .. }
            | JournalRecord::TurnEnded { .. }
            | JournalRecord::Closed
            | JournalRecord::Unknown { .. } => {}
        }
    }

    fn decided(&mut self, call: u32, note: impl FnOnce(&mut OpenCall)) {
        if let Some(open) = self.open.get_mut(&call) {
            note(open);
        }
    }
}
