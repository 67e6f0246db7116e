//! The tools of a server, each with the digest by which a change is noticed. Pure.

use crate::pages::Page;
use data_encoding::HEXLOWER;
use protocol::mcp::{NO_SCHEMA, ServerTool};
use rmcp::model::Tool;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Most tools of one server, and most bytes of one of them.
const MOST: usize = 500;
const LONGEST: usize = 64 * 1024;

/// The tools of a page with tools that are not of the protocol's form, and the next page. A tool without a name is
/// left out here, and for one without a schema the supervisor has a sentence.
pub(crate) fn page(page: &Value) -> Option<Page<Tool>> {
    let tool = |tool: &Value| {
        let mut tool = tool.as_object()?.clone();
        tool.retain(|field, _| {
            matches!(field.as_str(), "name" | "title" | "description" | "inputSchema")
        });
        if !tool.get("inputSchema").is_some_and(Value::is_object) {
            tool.insert("inputSchema".to_owned(), json!({ "type": NO_SCHEMA }));
        }
        ["title", "description"].iter().for_each(|field| {
            if !tool.get(*field).is_none_or(Value::is_string) {
                tool.remove(*field);
            }
        });
        serde_json::from_value(Value::Object(tool)).ok()
    };
    let tools = page.get("tools")?.as_array()?.iter().filter_map(tool).collect();
    Some((tools, page.get("nextCursor").and_then(Value::as_str).map(str::to_owned)))
}

/// The tools as agentd knows them. Those that are too large are left out, each with its name.
pub(crate) fn tools(listed: Vec<Tool>) -> (Vec<ServerTool>, Vec<String>) {
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for tool in listed {
        let name: String = tool.name.chars().take(200).collect();
        match server_tool(tool).filter(|_| kept.len() < MOST) {
            Some(tool) => kept.push(tool),
            None => left_out.push(name),
        }
    }
    (kept, left_out)
}

fn server_tool(tool: Tool) -> Option<ServerTool> {
    let described = json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    })
    .to_string();
    if described.len() > LONGEST {
        return None;
    }
    let digest = HEXLOWER.encode(&Sha256::digest(&described));
    let description = tool.description.map(String::from).or(tool.title).unwrap_or_default();
    let input_schema = serde_json::to_string(&*tool.input_schema).ok()?;
    Some(ServerTool { name: tool.name.into_owned(), description, input_schema, digest })
}
