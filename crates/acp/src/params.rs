//! Parameters of an editor's requests, and what a prompt of several parts is as words.
//! <https://agentclientprotocol.com/protocol/v1/schema>

use crate::frame::RpcError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Reads parameters.
///
/// # Errors
/// What is missing or wrong.
pub fn read<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, RpcError> {
    let params = if params.is_null() { Value::Object(serde_json::Map::new()) } else { params };
    serde_json::from_value(params)
        .map_err(|error| RpcError::params(format!("the parameters of {method}: {error}")))
}

/// Of `initialize`. The version that the editor knows is not looked at, and is a text in some: agentd speaks one, and an
/// editor that does not know that leaves.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// What it can do. Others' newer fields are left alone.
    #[serde(default)]
    pub client_capabilities: Value,
}

impl InitializeParams {
    /// True if the editor can show a program at a terminal, for a person to log in.
    #[must_use]
    pub fn has_terminal(&self) -> bool {
        let terminal = self.client_capabilities.pointer("/auth/terminal");
        terminal.is_some_and(|terminal| *terminal == Value::Bool(true))
    }

    /// True if the editor shows forms.
    #[must_use]
    pub fn has_forms(&self) -> bool {
        self.client_capabilities.pointer("/elicitation/form").is_some_and(|form| !form.is_null())
    }
}

/// MCP servers that an editor would have a session use.
#[derive(Debug, Default, Deserialize)]
pub struct HandedServers(Vec<Value>);

impl HandedServers {
    /// Each by its name, as a file of Claude Code has it, and those that agentd cannot start, with the reason.
    #[must_use]
    pub fn table(&self) -> (Map<String, Value>, Vec<String>) {
        let (mut table, mut refused) = (Map::new(), Vec::new());
        for server in &self.0 {
            let word = |name: &str| server.get(name).and_then(Value::as_str);
            let Some(given) = word("name") else {
                refused.push("an MCP server without a name".to_owned());
                continue;
            };
            let pairs = |field: &str| {
                let all = server.get(field).and_then(Value::as_array).into_iter().flatten();
                let pair = |one: &Value| {
                    let word =
                        |name: &str| one.get(name).and_then(Value::as_str).map(str::to_owned);
                    Some((word("name")?, Value::from(word("value")?)))
                };
                all.map(pair).collect::<Option<Map<_, _>>>()
            };
            let (Some(env), Some(headers)) = (pairs("env"), pairs("headers")) else {
                let what = "a variable or header of it is no name and value";
                refused.push(format!("the MCP server {given:?} ({what})"));
                continue;
            };
            let shaped = match (word("type"), word("command"), word("url")) {
                (None | Some("stdio"), Some(command), _) => {
                    json!({"command": command, "args": server.get("args"), "env": env})
                }
                (Some("http"), _, Some(url)) => {
                    json!({"type": "http", "url": url, "headers": headers})
                }
                (kind, ..) => {
                    let kind = kind.unwrap_or("without a command");
                    refused.push(format!("the MCP server {given:?} ({kind})"));
                    continue;
                }
            };
            let mut shaped = shaped;
            if shaped.get("args").is_some_and(Value::is_null) {
                shaped["args"] = json!([]);
            }
            let name = own_name(given);
            if table.contains_key(&name) {
                refused
                    .push(format!("the MCP server {given:?} (another one is named {name:?} here)"));
                continue;
            }
            table.insert(name, shaped);
        }
        (table, refused)
    }
}

/// A server's name as agentd's tools can begin with it.
fn own_name(given: &str) -> String {
    let plain = given.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let name: String = plain.collect::<String>().trim_matches('-').chars().take(32).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

/// Of `session/new`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewParams {
    /// The project directory.
    pub cwd: PathBuf,
    /// Directories granted beside it.
    #[serde(default)]
    pub additional_directories: Vec<PathBuf>,
    /// MCP servers.
    #[serde(default)]
    pub mcp_servers: HandedServers,
}

/// Of `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadParams {
    /// Which session.
    pub session_id: String,
    /// As of a new one.
    #[serde(flatten)]
    pub opening: NewParams,
}

/// Of `session/list`.
#[derive(Debug, Deserialize)]
pub struct ListParams {
    /// Only sessions of this project.
    pub cwd: Option<PathBuf>,
}

/// Of `session/close` and `session/delete`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloseParams {
    /// Which session.
    pub session_id: String,
}

/// Of `session/cancel`.
pub type CancelParams = CloseParams;

/// Of `session/set_mode`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeParams {
    /// Which session.
    pub session_id: String,
    /// The name of a mode.
    pub mode_id: String,
}

/// Of `session/set_config_option`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigParams {
    /// Which session.
    pub session_id: String,
    /// Which choice.
    pub config_id: String,
    /// Its new value.
    pub value: Value,
}

/// Of `session/prompt`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptParams {
    /// Which session.
    pub session_id: String,
    /// Its parts.
    prompt: Vec<PromptPart>,
}

/// A part of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum PromptPart {
    Text { text: String },
    ResourceLink { uri: String },
    Resource { resource: EmbeddedResource },
    Image {},
    Audio {},
}

/// A text that the editor sends along, as of an open file with unsaved changes.
#[derive(Debug, Deserialize)]
struct EmbeddedResource {
    uri: String,
    text: Option<String>,
}

impl PromptParams {
    /// The parts as words. A file that is only named stands as its path, which the model can read.
    ///
    /// # Errors
    /// A part that agentd does not take, or no words at all.
    pub fn words(&self) -> Result<String, RpcError> {
        let mut words = String::new();
        let mut texts = Vec::new();
        for part in &self.prompt {
            match part {
                PromptPart::Text { text } => words.push_str(text),
                PromptPart::ResourceLink { uri } => words.push_str(&named(uri)),
                PromptPart::Resource { resource: EmbeddedResource { uri, text: Some(text) } } => {
                    words.push_str(&named(uri));
                    texts.push(format!("{} as the editor has it:\n\n{text}", named(uri)));
                }
                PromptPart::Resource { resource: EmbeddedResource { uri, text: None } } => {
                    return Err(RpcError::params(format!(
                        "{uri} is sent as bytes, which agentd does not take from an editor; name the file instead"
                    )));
                }
                PromptPart::Image {} => {
                    return Err(RpcError::params(
                        "agentd takes no image from an editor yet; write @ and the image's path",
                    ));
                }
                PromptPart::Audio {} => {
                    return Err(RpcError::params("agentd takes no sound"));
                }
            }
        }
        if words.trim().is_empty() {
            return Err(RpcError::params("the prompt has no words"));
        }
        for text in texts {
            words.push_str("\n\n");
            words.push_str(&text);
        }
        Ok(words)
    }
}

/// A resource by the name that the model can read: a path, or the address as it is.
fn named(uri: &str) -> String {
    let Some(path) = uri.strip_prefix("file://") else { return uri.to_owned() };
    let path = path.split(['#', '?']).next().unwrap_or(path);
    decoded(path).unwrap_or_else(|| uri.to_owned())
}

/// A text without its percent codes; none if they are no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

/// An editor's answer to a request of ours.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// This option was chosen.
    Selected(String),
    /// The form was filled in.
    Filled(serde_json::Map<String, Value>),
    /// No.
    Declined,
    /// The person put it away, or the turn was cancelled.
    Cancelled,
    /// The editor cannot ask so, and why.
    Failed(String),
}

impl Reply {
    /// Reads the answer to `session/request_permission` or `elicitation/create`.
    #[must_use]
    pub fn read(result: Result<Value, Value>) -> Self {
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                let message = error.get("message").and_then(Value::as_str);
                return Self::Failed(message.unwrap_or("no reason").to_owned());
            }
        };
        let text = |pointer: &str| result.pointer(pointer).and_then(Value::as_str);
        match (text("/outcome/outcome"), text("/action")) {
            (Some("selected"), _) => match text("/outcome/optionId") {
                Some(option) => Self::Selected(option.to_owned()),
                None => Self::Failed("the answer names no option".to_owned()),
            },
            (Some("cancelled"), _) | (None, Some("cancel")) => Self::Cancelled,
            (None, Some("decline")) => Self::Declined,
            (None, Some("accept")) => {
                let content = result.get("content").and_then(Value::as_object);
                Self::Filled(content.cloned().unwrap_or_default())
            }
            (Some(other), _) | (None, Some(other)) => {
                Self::Failed(format!("an unknown answer {other:?}"))
            }
            (None, None) => Self::Failed("the answer has no outcome".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(parts: Value) -> Result<String, RpcError> {
        let params = json!({"sessionId": "s", "prompt": parts});
        read::<PromptParams>("session/prompt", params)?.words()
    }

    #[test]
    fn a_prompt_of_parts_is_one_text() {
        let parts = json!([
            {"type": "text", "text": "Explain "},
            {"type": "resource_link", "uri": "file:///a%20b/c.rs#L4", "name": "c.rs"},
            {"type": "text", "text": " beside "},
            {"type": "resource", "resource": {"uri": "file:///d.rs", "text": "fn d() {}"}},
            {"type": "text", "text": ".", "annotations": null, "_meta": {"x": 1}},
        ]);
        let wanted = "Explain /a b/c.rs beside /d.rs.\n\n/d.rs as the editor has it:\n\nfn d() {}";
        assert_eq!(words(parts).unwrap(), wanted);
        let odd = json!([{"type": "resource_link", "uri": "https://x/%zz", "name": "x"}]);
        assert_eq!(words(odd).unwrap(), "https://x/%zz");
        let odd = json!([{"type": "resource_link", "uri": "file:///%ff%", "name": "x"}]);
        assert_eq!(words(odd).unwrap(), "file:///%ff%", "a path that is no UTF-8");
    }

    #[test]
    fn a_part_that_is_not_taken_is_named() {
        for (part, named) in [
            (json!({"type": "image", "data": "", "mimeType": "image/png"}), "image"),
            (json!({"type": "audio", "data": "", "mimeType": "audio/wav"}), "sound"),
            (
                json!({"type": "resource", "resource": {"uri": "file:///x", "blob": ""}}),
                "file:///x",
            ),
            (json!({"type": "text", "text": " \n"}), "no words"),
            (json!({"type": "smell"}), "smell"),
        ] {
            let error = words(json!([part])).unwrap_err();
            assert!(error.message().contains(named), "{error:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named_and_newer_fields_are_left_alone() {
        let error = read::<NewParams>("session/new", json!({"mcpServers": []})).unwrap_err();
        assert!(error.message().contains("session/new: missing field `cwd`"), "{error:?}");
        let newer = json!({"cwd": "/", "mcpServers": [{"name": "a", "type": "acp"}], "new": {}});
        let read = read::<NewParams>("session/new", newer).unwrap();
        let (table, refused) = read.mcp_servers.table();
        assert!(table.is_empty() && refused[0].contains("acp"), "{refused:?}");
    }

    #[test]
    fn servers_are_handed_over_as_files_have_them() {
        let servers = json!([
            {"name": "My files!", "command": "/bin/s", "args": ["-x"], "env": [{"name": "K", "value": "v"}]},
            {"type": "http", "name": "web", "url": "https://x/mcp", "headers": [{"name": "A", "value": "b"}]},
            {"type": "sse", "name": "old", "url": "https://y"},
            {"name": "My-files", "command": "/bin/t"},
            {"name": "odd", "command": "/bin/t", "env": [{"name": "K", "value": 7}]},
        ]);
        let (table, refused) = serde_json::from_value::<HandedServers>(servers).unwrap().table();
        assert_eq!(
            table["My-files"],
            json!({"command": "/bin/s", "args": ["-x"], "env": {"K": "v"}})
        );
        assert_eq!(
            table["web"],
            json!({"type": "http", "url": "https://x/mcp", "headers": {"A": "b"}})
        );
        assert_eq!(table.len(), 2);
        for (said, named) in
            refused.iter().zip(["\"old\" (sse)", "\"My-files\" (another", "\"odd\" (a variable"])
        {
            assert!(said.contains(named), "{refused:?}");
        }
        assert_eq!(refused.len(), 3);
    }

    #[test]
    fn answers_are_read_and_odd_ones_are_none() {
        let of = |result| Reply::read(Ok(result));
        let chosen = json!({"outcome": {"outcome": "selected", "optionId": "a"}});
        assert_eq!(of(chosen), Reply::Selected("a".to_owned()));
        assert_eq!(of(json!({"outcome": {"outcome": "cancelled"}})), Reply::Cancelled);
        assert_eq!(of(json!({"action": "cancel"})), Reply::Cancelled);
        assert_eq!(of(json!({"action": "decline"})), Reply::Declined);
        assert!(
            matches!(of(json!({"action": "accept", "content": {"a": 1}})), Reply::Filled(it) if it.len() == 1)
        );
        for odd in [json!(null), json!({"outcome": "x"}), json!({"outcome": {"outcome": "y"}})] {
            assert!(matches!(of(odd.clone()), Reply::Failed(_)), "{odd}");
        }
    }
}
