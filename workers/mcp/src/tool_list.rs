//! The tools of a server, each with the digest by which a change is noticed. Pure.

use protocol::mcp::ServerTool;
use rmcp::model::Tool;
use serde_json::json;
use sha2::{Digest, Sha256};

/// Most tools of one server, and most bytes of one of them.
const MOST: usize = 500;
const LONGEST: usize = 64 * 1024;

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
    let digest: String =
        Sha256::digest(&described).iter().map(|byte| format!("{byte:02x}")).collect();
    let description = tool.description.map(String::from).or(tool.title).unwrap_or_default();
    let input_schema = serde_json::to_string(&*tool.input_schema).ok()?;
    Some(ServerTool { name: tool.name.into_owned(), description, input_schema, digest })
}
