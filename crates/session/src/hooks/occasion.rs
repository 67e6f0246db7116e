//! An event that came to pass: the subject of its hooks, and the facts that they are told. Pure.

use super::run::{about_call, subject};
use protocol::call::{Call, ToolResult};
use protocol::hook::{HookEvent, HookOccasion};
use protocol::mcp;
use serde_json::{Value, json};

/// Most characters of a result that a hook is given.
const RESULT: usize = 100_000;

/// An event, and the facts that its hooks are told.
pub(super) struct Occasion<'a> {
    pub event: HookEvent,
    pub told: Told<'a>,
}

/// The facts that hooks are told.
pub(super) enum Told<'a> {
    /// A call of the model: for each of its files a hook runs once.
    Call(&'a Call, Option<&'a ToolResult>),
    /// An event of the supervisor, and the commands that have run for it.
    Aside(&'a HookOccasion, &'a [String]),
    /// Anything else, with the word that a matcher is compared with.
    Other(&'static str, Value),
}

impl Occasion<'_> {
    /// The subject that a matcher is compared with.
    pub(super) fn subject(&self) -> String {
        match &self.told {
            Told::Call(call, _) => subject(&call.tool, &call.input).0,
            Told::Aside(occasion, _) => occasion.subject.clone(),
            Told::Other(word, _) => (*word).to_owned(),
        }
    }

    /// The number of the call that it is about.
    pub(super) fn number(&self) -> Option<u32> {
        match &self.told {
            Told::Call(call, _) => Some(call.id.number),
            Told::Aside(occasion, _) => occasion.call.as_ref().map(|(number, _)| *number),
            Told::Other(..) => None,
        }
    }

    /// The argument `about` of a hook's run; a hook before may have changed the input.
    pub(super) fn about(&self, input: &str, file: Option<&str>) -> Value {
        match &self.told {
            Told::Call(call, result) => {
                let mut about = about_call((call.id.number, &call.tool), input, file);
                if let Some(result) = result {
                    about["result"] = result.text.chars().take(RESULT).collect::<String>().into();
                }
                about
            }
            Told::Aside(occasion, _) => about_event(occasion),
            Told::Other(_, about) => about.clone(),
        }
    }
}

/// The facts about an event that the supervisor saw.
fn about_event(occasion: &HookOccasion) -> Value {
    let HookOccasion { subject, call, message, .. } = occasion;
    match call {
        Some((number, input)) => {
            // The arguments of a tool of an MCP server are in the input of the one that stands for it.
            let is_of_server = subject.starts_with(mcp::PREFIX);
            let tool = if is_of_server { mcp::CALL } else { subject.as_str() };
            about_call((*number, tool), input, None)
        }
        None if message.is_empty() => json!({ "word": subject }),
        None => json!({ "word": subject, "message": message }),
    }
}
