//! The tools as a model may name them.

use crate::answer::Wanted;
use protocol::session::{OfferedTool, OtherName};
use serde_json::{Map, Value};

/// A tool, and the other name it was called by, if it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub tool: &'a OfferedTool,
    pub by: Option<&'a OtherName>,
}

/// The tool of that name. A real name comes before all other names.
pub(crate) fn find<'a>(said: &str, tools: &'a [OfferedTool]) -> Option<Found<'a>> {
    if let Some(tool) = tools.iter().find(|tool| tool.spec.name == said) {
        return Some(Found { tool, by: None });
    }
    tools.iter().find_map(|tool| {
        let by = tool.aliases.iter().find(|alias| alias.name == said)?;
        Some(Found { tool, by: Some(by) })
    })
}

/// The arguments of a call under the tool's real name: as the model sent them, with what the other
/// name stands for put in where they say nothing of it.
pub(crate) fn input(wanted: &Wanted, tools: &[OfferedTool]) -> String {
    let merged = find(&wanted.name, tools).and_then(|found| found.by).and_then(|by| {
        let mut all: Map<String, Value> = serde_json::from_str(&by.defaults).ok()?;
        if all.is_empty() || !wanted.whole {
            return None;
        }
        all.extend(serde_json::from_str::<Map<String, Value>>(&wanted.input).ok()?);
        serde_json::to_string(&all).ok()
    });
    // Without defaults they stay as they are, byte for byte.
    merged.unwrap_or_else(|| wanted.input.clone())
}
