//! What the list of changes says of commands that it does not cover.

/// The list's note about all commands.
#[derive(Debug)]
pub(crate) struct UndoCoverage {
    /// Why no command is covered here.
    pub(crate) unable: Option<&'static str>,
    /// The parts of the project that snapshots leave out.
    pub(crate) gap: Option<String>,
    /// Commands that are not in the list for want of a disk that takes them.
    pub(crate) unwritten: Vec<(u32, String)>,
}
