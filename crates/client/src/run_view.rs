//! Interface of the views: turns the moments of a run into text for the two output streams. Pure.

use crate::transcript::{OpenedSession, RunConclusion, Transcript};
use protocol::client::ClientEvent;

/// Something a view may show.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// The session is open.
    Opened(&'a OpenedSession),
    /// An event, which the transcript already includes.
    Happened(&'a ClientEvent),
    /// The run is over.
    Concluded(&'a RunConclusion),
}

/// Text for each stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViewOutput {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
}

/// The parts of the opening that a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownOpening {
    /// The session as it is opened.
    Session,
    /// Its MCP servers too, which are awaited.
    SessionAndServers,
}

/// A way to show a run.
pub trait RunView {
    /// The parts of the opening that it shows.
    fn opening(&self) -> ShownOpening;

    /// The text for this moment.
    fn show(&mut self, transcript: &Transcript, moment: Moment<'_>) -> ViewOutput;
}
