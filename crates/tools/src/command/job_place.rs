//! Where a command runs.

use std::fs::File;

/// Where a command runs, in the terms of a shell's job control.
#[derive(Debug)]
pub(crate) enum JobPlace {
    /// The conversation waits for its end.
    Foreground,
    /// The same, with these bytes on standard input.
    Fed(Vec<u8>),
    /// The same in `/`, with this file on standard input: for a cage without the project.
    Over(File),
    /// The conversation goes on while it runs.
    Background,
    /// The same in `/`: for a cage without the project.
    Apart,
}
