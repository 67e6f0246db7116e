//! The joined answers of hooks before a call: the arguments with which it may be judged, the wish for a person's
//! approval, and the note for its result. Pure.

use super::hook_answer::{EndedRun, HookDecision};
use crate::tool_lookup::Reader;
use protocol::call::Call;
use protocol::session::SessionSetup;

/// The hooks have let a step pass.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// The arguments of the call.
    pub input: String,
    /// A hook wants a person to approve it, and why.
    pub asked: Option<String>,
    /// Which hook changed the arguments, for the result.
    pub note: Option<String>,
}

impl Passed {
    pub(super) fn new(call: Option<&Call>) -> Self {
        let input = call.map(|call| call.input.clone()).unwrap_or_default();
        Self { input, ..Self::default() }
    }

    /// Adds the answer of one run for a call of so many files. The error says why the call does not run.
    pub(super) fn join(
        &mut self,
        ended: &EndedRun,
        (from, files): (&str, usize),
        (call, shown): (&Call, &str),
        (setup, reader): (&SessionSetup, Reader),
    ) -> Result<(), String> {
        let Ok(answer) = &ended.answer else { return Ok(()) };
        if answer.verdict == HookDecision::Ask {
            let reason = answer.reason.as_str();
            let because = if reason.is_empty() { "" } else { ": " };
            self.asked.get_or_insert_with(|| format!("{from} asks about it{because}{reason}"));
        }
        let Some(updated) = &answer.updated_input else { return Ok(()) };
        match reader(shown, updated, &setup.project) {
            Ok(read) if read.tool == call.tool && files == 1 => {
                self.input = read.input;
                self.note = Some(format!("[{} changed the arguments]", ended.run.label()));
                Ok(())
            }
            Ok(_) => Err(format!("{from} changes the input of a call of several files")),
            Err(no) => Err(format!(
                "{from} changes the input to arguments that are none of {shown}: {}",
                no.result.text
            )),
        }
    }
}
