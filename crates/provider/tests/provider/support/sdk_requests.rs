//! Requests that the vendors' own libraries read, beside those with images: a list of tools where others
//! wait behind `tool_search`, and an answer with a schema. For the tests of the encoders, and for the
//! example `sdk_requests`.
#![allow(dead_code)]

use protocol::content::{ContentBlock, Message, MessageRole, ModelRequest, ToolChoice, ToolSpec};

/// A schema that all vendors enforce.
pub const SCHEMA: &str = r#"{"type":"object","properties":{"count":{"type":"integer"},"names":{"type":"array","items":{"type":"string"}}},"required":["count","names"],"additionalProperties":false}"#;

fn message(role: MessageRole, blocks: Vec<ContentBlock>) -> Message {
    Message { role, blocks }
}

fn tool(name: &str, description: &str, field: &str) -> ToolSpec {
    let input_schema = serde_json::json!({
        "type": "object",
        "properties": { field: {"type": "string", "description": "d"} },
        "required": [field],
        "additionalProperties": false,
    });
    let (name, description) = (name.to_owned(), description.to_owned());
    ToolSpec { name, description, input_schema: input_schema.to_string() }
}

fn request(tools: Vec<ToolSpec>, messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        round: 1,
        model: "gpt-4".into(),
        system: "s".into(),
        tools,
        messages,
        max_tokens: 100,
        updated: None,
        calls: ToolChoice::Yes,
        images: Vec::new(),
        answer_schema: None,
    }
}

/// After a search: the found tool stands at the end of the list, and its schema is in the result too.
pub fn deferred() -> ModelRequest {
    let found = tool("git_show", "Shows a commit.", "ref");
    let search = "Finds tools. It finds: git_show, web_fetch.";
    let tools =
        vec![tool("read", "Reads.", "path"), tool("tool_search", search, "query"), found.clone()];
    let asked = |id: &str, name: &str, input: &str| ContentBlock::ToolUse {
        id: id.into(),
        name: name.into(),
        input: input.into(),
    };
    let result = |id: &str, text: String| ContentBlock::ToolResult {
        id: id.into(),
        text,
        is_error: false,
        images: Vec::new(),
    };
    let loaded = format!(
        "These tools are loaded. You can call them from your next answer on.\n\n<tool \
         name=\"git_show\">\n{}\nArguments: {}\n</tool>\n",
        found.description, found.input_schema
    );
    let user =
        |text: &str| message(MessageRole::User, vec![ContentBlock::Text { text: text.into() }]);
    let messages = vec![
        user("show the newest commit"),
        message(MessageRole::Assistant, vec![asked("t1", "tool_search", r#"{"query":"commit"}"#)]),
        message(MessageRole::User, vec![result("t1", loaded)]),
        message(MessageRole::Assistant, vec![asked("t2", "git_show", r#"{"ref":"HEAD"}"#)]),
        message(MessageRole::User, vec![result("t2", "commit 1".into())]),
    ];
    request(tools, messages)
}

/// With a schema for the answer, beside a tool.
pub fn with_schema() -> ModelRequest {
    let text = ContentBlock::Text { text: "count".into() };
    let messages = vec![message(MessageRole::User, vec![text])];
    let answer_schema = Some(SCHEMA.to_owned());
    ModelRequest { answer_schema, ..request(vec![tool("read", "Reads.", "path")], messages) }
}
