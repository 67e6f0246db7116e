//! The text for the model about the end of a command or a sub-agent in the background. Pure; used by `history`.

use crate::truncate::cut;
use protocol::call::{Outcome, ToolResult};
use protocol::ids::CallId;
use protocol::session::TASK;

/// Most characters of the command's result; `bash_output` has the rest.
const RESULT: usize = 4_000;

/// The news of its end.
pub(crate) fn ended(call: &CallId, tool: &str, result: &ToolResult) -> String {
    let (number, end) = (call.number, &result.summary);
    let text = result.text.trim_end().to_owned();
    // No tool has the rest of a sub-agent's answer.
    let text = if tool == TASK { text } else { cut(text, RESULT) };
    let gone = match result.outcome == Outcome::Interrupted && tool != TASK {
        true => "\nIt does not run any more, and servers of it are gone.",
        false => "",
    };
    format!(
        "[Call {number} ({tool}), which ran in the background, has ended: {end}]\n{text}{gone}\n[end of call {number}]"
    )
}
