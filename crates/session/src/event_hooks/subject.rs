//! A call as hooks know it: a tool of an MCP server has its own name and its own arguments, though one tool
//! stands for all of them. Part of [`super::EventHooks`]. Pure.

use protocol::call::Call;
use protocol::mcp;
use serde_json::{Value, json};

/// The tool that a matcher is compared with, and the arguments that a hook is given.
pub(super) fn subject(tool: &str, input: &str) -> (String, String) {
    let fields: Value = match tool == mcp::CALL {
        true => serde_json::from_str(input).unwrap_or_default(),
        false => Value::Null,
    };
    match (fields["tool"].as_str(), fields["arguments"].as_str()) {
        (Some(name), Some(arguments)) => (name.to_owned(), arguments.to_owned()),
        _ => (tool.to_owned(), input.to_owned()),
    }
}

/// The input of a call whose arguments a hook has changed to these.
pub(super) fn input_of(call: &Call, arguments: &str) -> String {
    match subject(&call.tool, &call.input).0 {
        name if name != call.tool => json!({ "tool": name, "arguments": arguments }).to_string(),
        _ => arguments.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::call::CallOrigin;
    use protocol::ids::{CallId, SessionId};

    #[test]
    fn a_tool_of_a_server_is_shown_by_itself() {
        let input = r#"{"arguments":"{\"a\":1}","tool":"mcp__s__t"}"#;
        assert_eq!(subject("mcp", input), ("mcp__s__t".to_owned(), r#"{"a":1}"#.to_owned()));
        assert_eq!(subject("bash", input), ("bash".to_owned(), input.to_owned()));
        assert_eq!(subject("mcp", "no JSON").0, "mcp");
        let id = CallId { session: SessionId("s".to_owned()), number: 1 };
        let call = |tool: &str| Call {
            id: id.clone(),
            origin: CallOrigin::model("u"),
            tool: tool.to_owned(),
            input: input.to_owned(),
        };
        let changed = input_of(&call("mcp"), r#"{"a":2}"#);
        assert_eq!(subject("mcp", &changed), ("mcp__s__t".to_owned(), r#"{"a":2}"#.to_owned()));
        assert_eq!(input_of(&call("bash"), "{}"), "{}");
    }
}
