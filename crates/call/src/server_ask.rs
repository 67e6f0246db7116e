//! The questions of an MCP server during a call, and the inputs and effects about them. `server_questions`
//! has the steps.

use protocol::mcp::{ServerQuestion, ServerReply};
use std::collections::VecDeque;

/// The questions of a call that its server works on.
#[derive(Debug, Default)]
pub(crate) struct ServerAsks {
    /// The first is open.
    pub(crate) asks: VecDeque<ServerAsk>,
    /// How many there were.
    pub(crate) count: u32,
    /// One was open since the call's time was looked at.
    pub(crate) since_late: bool,
}

/// A question, by its number on the server's channel.
#[derive(Debug, PartialEq)]
pub struct ServerAsk {
    /// Its number on the server's channel.
    pub ask: u64,
    /// The question.
    pub question: Box<ServerQuestion>,
}

/// An event of a call that a server works on.
#[derive(Debug, PartialEq)]
pub enum ServerInput {
    /// It asks people.
    Asks(ServerAsk),
    /// It does not wait for this answer any more.
    Unasked(u64),
    /// Its open question has an answer.
    Replied(QuestionReply),
    /// It did not end the call in its time.
    Late,
}

/// An effect of a call that a server works on.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEffect {
    /// Have the broker put this question to people.
    Ask(u64, Box<ServerQuestion>),
    /// Show this to people, and to the model with the result.
    Note(String),
    /// Give the server more time for the call.
    Await,
}

/// The answer to the open question.
#[derive(Debug, PartialEq)]
pub struct QuestionReply {
    /// For the server.
    pub reply: ServerReply,
    /// The person; absent where agentd answered.
    pub by: Option<String>,
    /// Why agentd answered, for people and the model.
    pub note: Option<String>,
}

impl QuestionReply {
    pub(crate) fn cancelled(server: &str, why: &str) -> Self {
        let note = format!(
            "[a question of the MCP server {server} has no answer: {why}]",
            server = protocol::hidden::visible(server)
        );
        Self { reply: ServerReply::Cancel, by: None, note: Some(note) }
    }
}

/// From the call of a server's tool to the call that runs the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRequest {
    /// The tool's name for models.
    pub tool: String,
    /// What it demands.
    pub demand: ServerDemand,
}

/// What the call of a server's tool demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerDemand {
    /// To call the tool with these arguments, a JSON object.
    Call(String),
    /// The call does not wait any more.
    Withdraw,
    /// To pass on the answer to a question of the server, by its number on the server's channel.
    Reply(u64, ServerReply),
}
