//! Servers of the Model Context Protocol: the part of the wire to `agentd-mcp` that is about a running
//! server, and the part of the wire to the conversation that is about its start.

use crate::call::RunReport;
use crate::hook::EventHook;
use crate::offered_tool::OfferedTool;
use crate::{Decode, Encode};

/// The beginning of a tool's name where a server has the tool: `mcp__SERVER__TOOL`.
pub const PREFIX: &str = "mcp__";
/// The tool by which models call a tool of a server.
pub const CALL: &str = "mcp";
/// The variables of a server with an address begin so: each has a header of every request, `Name: value`.
pub const HEADER_VARIABLE: &str = "AGENTD_MCP_HEADER_";
/// The variable with the file of the log-in at a server with an address.
pub const LOG_IN_VARIABLE: &str = "AGENTD_MCP_LOG_IN";
/// The tools that run a server: with the project read-only, with it writable, and the client of a server
/// that has an address.
pub const SERVER_TOOLS: [&str; 3] = ["mcp_server", "mcp_writer", "mcp_remote"];

/// True for a call that runs a server.
#[must_use]
pub fn runs_server(tool: &str) -> bool {
    SERVER_TOOLS.contains(&tool)
}

/// The start of a server, which the conversation requests as a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerStart {
    /// One of [`SERVER_TOOLS`].
    pub tool: String,
    /// Its arguments as JSON.
    pub input: String,
}

/// News about servers, for the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ServerNews {
    /// Have this one started.
    Due(ServerStart),
    /// The tools of all servers that run, in place of the earlier ones.
    Tools {
        /// The tools.
        tools: Vec<OfferedTool>,
        /// The session's hooks at events, whose matchers may cover these tools.
        hooks: Vec<EventHook>,
    },
}

/// A server of a session, for people.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerReport {
    /// Its name.
    pub name: String,
    /// Its command or its address.
    pub place: String,
    /// Its cage in words, where it runs.
    pub sandbox: Option<String>,
    /// Where it is in its life.
    pub state: ServerState,
    /// Its tools, while it runs.
    pub tools: Vec<ServedTool>,
    /// What it offers people in their prompts, while it runs.
    pub words: Vec<PromptWords>,
}

/// Words that stand for something of a server in a person's prompt.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PromptWords {
    /// As they are typed: `@SERVER:URI` or `/mcp__SERVER__PROMPT`.
    pub text: String,
    /// The arguments that a prompt takes; empty for a resource.
    pub arguments: String,
    /// By the server, without hidden letters.
    pub description: String,
}

/// Where a server is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ServerState {
    /// It was asked to start, and is not ready.
    Starts,
    /// It answers.
    Ready {
        /// So long after its call was proposed, in milliseconds.
        after_ms: u64,
    },
    /// It does not run: why, in words.
    Ended(String),
}

/// A tool of a server that runs.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServedTool {
    /// Its name for models.
    pub name: String,
    /// Its description by the server, without hidden letters.
    pub description: String,
    /// Words of the description that speak of other tools or of rules.
    pub marked: Option<String>,
}

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerTool {
    /// The server's name for it.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: String,
    /// SHA-256 in hexadecimal over name, title, description, schemas and annotations.
    pub digest: String,
}

/// The type of the arguments of a tool that has no schema.
pub const NO_SCHEMA: &str = "missing";

/// The name behind `mcp__SERVER__` under which rules know the resources of a server, and its prompts. No tool has
/// one: names of tools have no such letter.
pub const RESOURCE: &str = "@resource";
/// See [`RESOURCE`].
pub const PROMPT: &str = "@prompt";

/// What a call wants of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ServerAction {
    /// Run this tool.
    Tool,
    /// Give the resource that the arguments name.
    Resource,
    /// Give the prompt that the arguments name.
    Prompt,
}

impl ServerAction {
    /// By the name of a call behind `mcp__SERVER__`.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            RESOURCE => Self::Resource,
            PROMPT => Self::Prompt,
            _ => Self::Tool,
        }
    }
}

/// What a server offers people in their prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct ServerOffers {
    /// Resources that it lists.
    pub resources: Vec<ServerResource>,
    /// It has resources that it does not list: those of templates, or too many.
    pub has_unlisted: bool,
    /// Prompts.
    pub prompts: Vec<ServerPrompt>,
    /// Why it did not list its prompts.
    pub no_prompts: Option<String>,
}

/// A resource as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerResource {
    /// Names it.
    pub uri: String,
    /// For people.
    pub description: String,
}

/// A prompt as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerPrompt {
    /// The server's name for it.
    pub name: String,
    /// For people.
    pub description: String,
    /// Its arguments, in their order.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a server's prompt.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// The server does without it.
    pub is_optional: bool,
}

/// What a server asks a person during a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerQuestion {
    /// The server's name in the configuration.
    pub server: String,
    /// Its words, as it sent them.
    pub message: String,
    /// What it wants.
    pub wants: ServerWants,
}

/// What a server wants of a person.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ServerWants {
    /// A form with these fields filled in: a flat JSON Schema.
    Form(String),
    /// Something at this web address, which no process of agentd visits.
    Visit(String),
}

/// The answer to a server's question.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ServerReply {
    /// The person's answers as a JSON object, checked against the schema; empty for an address.
    Accept(String),
    /// The person does not want to answer.
    Decline,
    /// The question has no answer.
    Cancel,
}

/// The same for the record: no answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyAction {
    /// Answered.
    Accept,
    /// Refused.
    Decline,
    /// Closed without an answer.
    Cancel,
}

impl ReplyAction {
    /// The protocol's word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

impl ServerReply {
    /// What the person did, without the answers.
    #[must_use]
    pub fn action(&self) -> ReplyAction {
        match self {
            Self::Accept(_) => ReplyAction::Accept,
            Self::Decline => ReplyAction::Decline,
            Self::Cancel => ReplyAction::Cancel,
        }
    }
}

/// Why a server is of no use, in words.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ServerFault {
    /// It wants a log-in of the person.
    WantsLogIn(String),
    /// Anything else.
    Other(String),
}

impl ServerFault {
    /// The words.
    #[must_use]
    pub fn into_words(self) -> String {
        match self {
            Self::WantsLogIn(why) | Self::Other(why) => why,
        }
    }
}

impl From<String> for ServerFault {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

/// From the supervisor to a running server.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToServer {
    /// Call a tool, or get a resource or a prompt; answered once.
    Call {
        /// Names the call on this channel.
        number: u64,
        /// What it is.
        action: ServerAction,
        /// The server's name for the tool.
        tool: String,
        /// A JSON object.
        arguments: String,
        /// The call's longest time in milliseconds.
        timeout_ms: u64,
        /// Most characters of the result for the model.
        max_result_chars: u32,
    },
    /// Nobody waits for the answer any more: tell the server.
    Cancel(u64),
    /// The answer to a question of the server.
    Reply {
        /// Names the question on this channel.
        ask: u64,
        /// The answer.
        reply: ServerReply,
    },
}

/// From a running server.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromServer {
    /// It is ready, or its list has changed: all of its tools.
    Tools(Vec<ServerTool>),
    /// Behind the first tools, and when it has changed: all that it offers people.
    Offers(ServerOffers),
    /// The call is on its way.
    Progress {
        /// Of which call.
        number: u64,
        /// A line, control codes neutralised.
        text: String,
    },
    /// The answer to a call.
    Answer {
        /// Of which call.
        number: u64,
        /// The result.
        report: Box<RunReport>,
    },
    /// The server asks a person; answered by `Reply`, unless the call ends first.
    Asks {
        /// During which call.
        number: u64,
        /// Names the question on this channel.
        ask: u64,
        /// The question.
        question: Box<ServerQuestion>,
    },
    /// A sentence about the server, for people.
    Note(String),
    /// The server does not wait for this answer any more.
    Unasked {
        /// During which call.
        number: u64,
        /// The question.
        ask: u64,
    },
}
