//! Calls as a model wrote them, read as calls of the tools that the session offers.

use crate::answer::Wanted;
use crate::made_up::NotRun;
use crate::own;
use protocol::call::ToolResult;
use protocol::judgement::ToolKind;
use protocol::session::{OfferedTool, SessionSetup};

/// A call in the words of the table of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCall {
    /// The tool's real name.
    pub tool: String,
    /// Its arguments, checked; they read as themselves.
    pub input: String,
    /// What of them was read otherwise than it was written.
    pub note: Option<String>,
    /// The paths that it names.
    pub paths: Vec<String>,
    /// Those of them at which it leaves nothing.
    pub removed: Vec<String>,
}

/// What is no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCall {
    /// The tool's real name, where there is such a tool.
    pub tool: Option<String>,
    /// For the model.
    pub result: Box<ToolResult>,
}

/// Reads a name and arguments in a project. Pure: the same words are always the same call.
pub type Reader = fn(name: &str, input: &str, project: &str) -> Result<ReadCall, NoCall>;

/// A call that has no number yet, and whether it may run.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The tool's real name where it is known.
    pub tool: String,
    pub input: String,
    pub note: Option<String>,
    /// How it waits for its neighbours, or why it is no call.
    pub order: Result<ToolKind, NotRun>,
}

/// Reads what a model asked for.
pub(crate) fn read(wanted: &Wanted, setup: &SessionSetup, reader: Reader) -> Reading {
    let (name, input) = (wanted.name.as_str(), wanted.input.as_str());
    // What was cut is read for its tool alone.
    let read = reader(name, if wanted.whole { input } else { "{}" }, &setup.project);
    let tool = match &read {
        Ok(call) => Some(call.tool.clone()),
        Err(none) => none.tool.clone(),
    };
    let offered = |tool: &String| setup.tools.iter().find(|known| known.spec.name == *tool);
    let order = match (&tool, tool.as_ref().and_then(offered), &read) {
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
    Reading { tool: tool.unwrap_or_else(|| wanted.name.clone()), input, note, order }
}

/// A call that the conversation answers itself waits for those before it, which it may be about.
fn order(tool: &OfferedTool) -> ToolKind {
    if own::is_own(&tool.spec.name) { ToolKind::Mutation } else { tool.kind }
}
