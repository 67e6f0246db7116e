//! The lines about what the kernel refused to a call. For the views that print lines.

use crate::colour::Colour;
use crate::lines::one_line;
use protocol::ids::CallId;

/// Most refusals named under a call; the audit record has all.
const REFUSALS: usize = 5;

/// The first refusals by the kernel under a call, cut after so many characters.
pub(crate) fn refusal_lines(
    refused: &[String],
    call: &CallId,
    colour: Colour,
    width: usize,
) -> String {
    let line = |refusal: &String| colour.red(&format!("  refused: {}", one_line(refusal, width)));
    let mut lines: String =
        refused.iter().take(REFUSALS).map(|refusal| line(refusal) + "\n").collect();
    if refused.len() > REFUSALS {
        let more = refused.len() - REFUSALS;
        lines.push_str(&format!("  and {more} more; see `agentd audit show {call}`\n"));
    }
    lines
}
