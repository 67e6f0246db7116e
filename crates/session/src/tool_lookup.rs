//! Calls as a model wrote them, read as calls of the tools that the session offers.

use crate::answer::RequestedCall;
use crate::builtin_tools;
use crate::synthetic_results::NotRun;
use protocol::call::ToolResult;
use protocol::judgement::ToolKind;
use protocol::mcp;
use protocol::session::{OfferedTool, SessionSetup};

/// A call in the terms of the tool table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCall {
    /// The tool's real name.
    pub tool: String,
    /// Its arguments, checked; they read as themselves.
    pub input: String,
    /// Corrections made while reading its arguments.
    pub note: Option<String>,
    /// The paths that it names.
    pub paths: Vec<String>,
    /// Its paths that it removes.
    pub removed: Vec<String>,
}

/// The error for text that is not a valid call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The tool's real name, where there is such a tool.
    pub tool: Option<String>,
    /// For the model.
    pub result: Box<ToolResult>,
}

/// Reads a name and arguments in a project. Pure: the same words are always the same call.
pub type Reader = fn(name: &str, input: &str, project: &str) -> Result<ReadCall, CallError>;

/// A call without a number yet, and whether it may run.
#[derive(Debug)]
pub(crate) struct ReadAttempt {
    /// The tool's real name where it is known.
    pub tool: String,
    pub input: String,
    pub note: Option<String>,
    /// How it waits for its neighbours, or why it is no call.
    pub order: Result<ToolKind, NotRun>,
}

/// Reads a call that a model requested.
pub(crate) fn read(wanted: &RequestedCall, setup: &SessionSetup, reader: Reader) -> ReadAttempt {
    let (name, input) = (wanted.name.as_str(), wanted.input.as_str());
    // A truncated call is only read for its tool.
    let read = reader(name, if wanted.whole { input } else { "{}" }, &setup.project);
    let tool = match &read {
        Ok(call) => Some(call.tool.clone()),
        Err(none) => none.tool.clone(),
    };
    // A tool of a server is offered by its own name.
    let offered = |tool: &String| {
        let name = if tool == mcp::CALL { &wanted.name } else { tool };
        setup.tools.iter().find(|known| known.spec.name == *name)
    };
    let order = match (&tool, tool.as_ref().and_then(offered), &read) {
        (Some(tool), None, _) if tool == mcp::CALL => {
            Err(NotRun::NotOffered { tool: wanted.name.clone() })
        }
        (Some(tool), None, _) => Err(NotRun::NotOffered { tool: tool.clone() }),
        (Some(tool), Some(_), _) if !wanted.whole => {
            let came = input.chars().count();
            Err(NotRun::Cut { tool: tool.clone(), came })
        }
        (Some(_), Some(known), Ok(_)) => Ok(order(known)),
        (_, _, Err(none)) => Err(NotRun::NoCall((*none.result).clone())),
        (None, _, Ok(call)) => Err(NotRun::NotOffered { tool: call.tool.clone() }),
    };
    let (input, note) = match (read, &order) {
        (Ok(call), Ok(_)) => (call.input, call.note),
        // It is kept as it came.
        (Ok(_) | Err(_), _) => (wanted.input.clone(), None),
    };
    ReadAttempt { tool: tool.unwrap_or_else(|| wanted.name.clone()), input, note, order }
}

/// A call that the conversation answers itself waits for those before it, which it may be about.
fn order(tool: &OfferedTool) -> ToolKind {
    if builtin_tools::is_own(&tool.spec.name) { ToolKind::Mutation } else { tool.kind }
}
