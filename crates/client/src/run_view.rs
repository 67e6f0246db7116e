//! What a view is: moments of a run in, text for the two output streams out. Pure.

use crate::transcript::{OpenedSession, RunConclusion, Transcript};
use protocol::client::Event;

/// Something a view may show.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// The session is open.
    Opened(&'a OpenedSession),
    /// Something happened there; the transcript holds it already.
    Happened(&'a Event),
    /// The run is over.
    Concluded(&'a RunConclusion),
}

/// What goes where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViewOutput {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
}

/// A way to show a run.
pub trait RunView {
    /// What is shown of this moment.
    fn show(&mut self, transcript: &Transcript, moment: Moment<'_>) -> ViewOutput;
}
