//! The tool that a refusal names: a vendor refuses a whole request for the schema of one tool. Pure; for `request`.

use crate::fault::{AttemptFault, FaultCause};
use protocol::content::ToolSpec;
use protocol::mcp::PREFIX;

/// The words before the place of a tool: Gemini's, Anthropic's (`tools.3.custom.input_schema`), OpenAI's
/// (`tools[3].function.parameters`), and that of servers on FastAPI (`"loc": ["body", "tools", 3, …]`).
const PLACES: [&str; 6] = [
    "function_declarations[",
    "functionDeclarations[",
    "tools.",
    "tools[",
    "\"tools\",",
    "\"tools\", ",
];
/// The letters around a name.
const QUOTES: [&str; 3] = ["'", "\"", "`"];

/// The tool of an MCP server among those of a request for which it was refused. agentd's own have
/// schemas that vendors take: another fault of the request would take them away one by one.
pub(crate) fn refused_tool<'a>(fault: &AttemptFault, tools: &'a [ToolSpec]) -> Option<&'a str> {
    if !matches!(fault.cause, FaultCause::Status(400 | 422)) {
        return None;
    }
    let at = |place: &&str| {
        let (_, behind) = fault.words.split_once(*place)?;
        let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        tools.get(behind[..digits].parse::<usize>().ok()?)
    };
    let is_about_schemas = ["schema", "function", "tool"].iter().any(|it| fault.words.contains(it));
    let is_named = |tool: &&ToolSpec| {
        is_about_schemas
            && QUOTES.iter().any(|it| fault.words.contains(&format!("{it}{}{it}", tool.name)))
    };
    let by_name = || tools.iter().find(is_named);
    let (of_gemini, others) = PLACES.split_at(2);
    let tool = of_gemini.iter().find_map(at).or_else(by_name);
    let tool = tool.or_else(|| others.iter().find_map(at)).map(|tool| tool.name.as_str());
    tool.filter(|name| name.starts_with(PREFIX))
}

/// The tool in words for people.
pub(crate) fn shown(name: &str) -> String {
    match name.strip_prefix(PREFIX).and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) => format!("the tool {tool} of the MCP server {server}"),
        None => format!("the tool {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vendor_s_place_or_name_is_found_and_nothing_else() {
        let tool = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: "{}".to_owned(),
        };
        let tools = ["read", "bash", "mcp__s__a", "mcp__s__b"].map(tool);
        let of = |words: &str| {
            let fault = AttemptFault::new(FaultCause::Status(400), words);
            refused_tool(&fault, &tools)
        };
        for words in [
            "invalid_request_error: tools.3.custom.input_schema.type: Field required",
            "Invalid 'tools[3].function.parameters'",
            "Invalid schema for function 'mcp__s__b': schema must be a JSON Schema of 'type: \"object\"'",
            "* GenerateContentRequest.tools[0].function_declarations[3].parameters: bad",
            r#"{"detail":[{"loc":["body","tools",3,"function"]}]}"#,
        ] {
            assert_eq!(of(words), Some("mcp__s__b"), "{words}");
        }
        for words in [
            "tools.9: bad",
            "tools: too many",
            "messages.3.content: bad",
            "cannot 'read' it",
            "tools.0.custom.cache_control: a maximum of 4 blocks",
        ] {
            assert_eq!(of(words), None, "{words}");
        }
        let other = AttemptFault::new(FaultCause::Status(500), "tools.3: bad");
        assert_eq!(refused_tool(&other, &tools), None);
        assert_eq!(shown("mcp__s__b"), "the tool b of the MCP server s");
    }
}
