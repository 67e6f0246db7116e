//! The text for the model about the end of a command in the background. Pure; used by `history`.

use crate::truncate::cut;
use protocol::call::ToolResult;
use protocol::ids::CallId;

/// Most characters of the command's result; `bash_output` has the rest.
const RESULT: usize = 4_000;

/// The news of its end.
pub(crate) fn ended(call: &CallId, tool: &str, result: &ToolResult) -> String {
    let (number, end) = (call.number, &result.summary);
    let text = cut(result.text.trim_end().to_owned(), RESULT);
    format!(
        "[Call {number} ({tool}), which ran in the background, has ended: {end}]\n{text}\n[end of call {number}]"
    )
}
