//! Standard output for commands that print and end: a closed pipe is quiet.

use std::io::Write;

/// Prints `text`. A reader that closed the pipe has read enough.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// JSON for other programs, which may be shown on a screen too.
pub(crate) fn print_json(json: &str) {
    print(&protocol::hidden::in_json(json));
}
