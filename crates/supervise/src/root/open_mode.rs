//! How a session is opened.

use journal::TaskHeader;
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use setup::session_spec::TaskBounds;

/// How the session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OpenMode {
    New,
    Resume(OpenTurn),
    Fork {
        of: SessionId,
        at: Option<u64>,
    },
    /// The session of a sub-agent, which is new or goes on.
    Task(Box<TaskStart>),
}

/// How a parent opens the session of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskStart {
    /// The first record, if the session is new.
    pub(super) header: Box<TaskHeader>,
    /// The rights that the parent has now.
    pub(super) bounds: TaskBounds,
}
