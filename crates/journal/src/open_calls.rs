//! Which calls were open when a session's journal ended.

use crate::{Basis, Progress, Record, ToolKind};
use std::collections::BTreeMap;

/// A call that has no end on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// Its number in the session.
    pub number: u32,
    /// The vendor's id, which pairs its result.
    pub use_id: String,
    /// The tool's name.
    pub tool: String,
    /// Whether it looks or changes. A query may be run again; a mutation that may have run never.
    pub tool_kind: ToolKind,
    /// Its arguments as JSON text.
    pub input: String,
    /// Whether it was let go.
    pub progress: Progress,
    /// Why it was decided as it was, where it was and that is told.
    pub basis: Option<Basis>,
    /// That it is not to run, where that was decided. Its result was lost, the decision holds.
    pub refused: Option<Refused>,
}

/// A decision that a call does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A person, a rule or a mode said no.
    Denied {
        /// What the model is told.
        message: String,
    },
    /// Nobody answered in time.
    Expired,
}

/// The calls that were proposed and have no end, by number.
pub fn open_calls<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<OpenCall> {
    let mut open = BTreeMap::new();
    for record in records {
        match record {
            Record::Proposed { call, use_id, tool, tool_kind, input } => {
                let fresh = OpenCall {
                    number: *call,
                    use_id: use_id.clone(),
                    tool: tool.clone(),
                    tool_kind: *tool_kind,
                    input: input.clone(),
                    basis: None,
                    progress: Progress::NeverStarted,
                    refused: None,
                };
                open.insert(*call, fresh);
            }
            Record::Start { call, .. } => {
                if let Some(started) = open.get_mut(call) {
                    started.progress = Progress::MayHaveRun;
                }
            }
            Record::Approved { call, basis, .. } => {
                if let Some(approved) = open.get_mut(call) {
                    approved.basis = Some(basis.clone());
                }
            }
            Record::Denied { call, message, basis } => {
                if let Some(denied) = open.get_mut(call) {
                    denied.basis = Some(basis.clone());
                    denied.refused = Some(Refused::Denied { message: message.clone() });
                }
            }
            Record::Expired { call } => {
                if let Some(expired) = open.get_mut(call) {
                    expired.refused = Some(Refused::Expired);
                }
            }
            Record::Result { call, .. } | Record::Interrupted { call, .. } => {
                open.remove(call);
            }
            Record::Session(_)
            | Record::Prompt { .. }
            | Record::Queued { .. }
            | Record::TakenBack
            | Record::Compacted { .. }
            | Record::Changed { .. }
            | Record::Learned { .. }
            | Record::Seen { .. }
            | Record::Answer { .. }
            | Record::Asked { .. }
            | Record::Tampered { .. }
            | Record::TurnEnded { .. }
            | Record::Closed
            | Record::Unknown { .. } => {}
        }
    }
    open.into_values().collect()
}
