//! Which calls were open when a session's journal ended.

use crate::{BasisRecord, CallProgress, JournalRecord, OwnOriginRecord, ToolKind};
use std::collections::BTreeMap;

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

/// The calls that were proposed and have no end, by number.
pub fn open_calls<'a>(records: impl IntoIterator<Item = &'a JournalRecord>) -> Vec<OpenCall> {
    let mut open = BTreeMap::new();
    for record in records {
        match record {
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
                open.insert(*call, fresh);
            }
            JournalRecord::Start { call, .. } => {
                if let Some(started) = open.get_mut(call) {
                    started.progress = CallProgress::MayHaveRun;
                }
            }
            JournalRecord::Approved { call, basis, .. } => {
                if let Some(approved) = open.get_mut(call) {
                    approved.basis = Some(basis.clone());
                }
            }
            JournalRecord::Denied { call, message, basis } => {
                if let Some(denied) = open.get_mut(call) {
                    denied.basis = Some(basis.clone());
                    denied.refused = Some(RefusedCall::Denied { message: message.clone() });
                }
            }
            JournalRecord::Expired { call } => {
                if let Some(expired) = open.get_mut(call) {
                    expired.refused = Some(RefusedCall::Expired);
                }
            }
            JournalRecord::Result { call, .. } | JournalRecord::Interrupted { call, .. } => {
                open.remove(call);
            }
            JournalRecord::Session(_)
            | JournalRecord::Prompt { .. }
            | JournalRecord::Queued { .. }
            | JournalRecord::TakenBack
            | JournalRecord::Compacted { .. }
            | JournalRecord::Summary(_)
            | JournalRecord::Changed { .. }
            | JournalRecord::Learned { .. }
            | JournalRecord::Seen { .. }
            | JournalRecord::Answer { .. }
            | JournalRecord::Asked { .. }
            | JournalRecord::Answered { .. }
            | JournalRecord::Background { .. }
            | JournalRecord::Spent { .. }
            | JournalRecord::Tampered { .. }
            | JournalRecord::TurnEnded { .. }
            | JournalRecord::Closed
            | JournalRecord::Unknown { .. } => {}
        }
    }
    open.into_values().collect()
}
