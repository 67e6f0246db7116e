//! Standard output for commands that print and end: a closed pipe is quiet, and no text from elsewhere gets to a
//! screen with a hidden character.

use protocol::hidden::{in_json, on_screen};
use std::io::Write;

/// Prints `text`, with a mark in the place of each hidden character.
pub(crate) fn print(text: &str) {
    print_styled(&on_screen(text));
}

/// JSON for other programs, which may be shown on a screen too: the same values, with hidden characters in JSON's
/// spelling.
pub(crate) fn print_json(json: &str) {
    print_styled(&in_json(json));
}

/// Prints agentd's own text, with its colours. A reader that closed the pipe has read enough.
pub(crate) fn print_styled(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
