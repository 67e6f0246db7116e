//! The text that a slash command or a skill stands for.

use super::{Decode, Encode, Rule};
use serde::{Deserialize, Serialize};

/// The text that a slash command or a skill stands for, as its file was when the prompt was sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(from = "PromptOnDisk", into = "PromptOnDisk")]
pub struct ExpandedPrompt {
    /// The file.
    pub file: String,
    /// Its text, with the arguments of the prompt.
    pub parts: Vec<PromptPart>,
    /// Rules that allow calls until the turn ends.
    pub allow: Vec<Rule>,
    /// The JSON Schema that the turn's last answer has to fit.
    pub answer_schema: Option<String>,
    /// The name of the model that the turn is for, if not for the session's.
    pub model: Option<String>,
    /// It is a person's own command, typed at the terminal of this name: the turn ends with the command, and the model
    /// gets its output with the next prompt.
    pub typed_by: Option<String>,
}

/// A part of an expanded prompt.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptPart {
    /// Text for the model.
    Text(String),
    /// A command: the conversation has it run, and the model gets its output in this place.
    Command(String),
    /// A file that the prompt shows, as `read` is given it: the model gets the image in this place.
    /// On disk it is behind the others.
    #[serde(skip)]
    File(String),
    /// A resource or a prompt of an MCP server: the conversation has the call made, and the model gets the
    /// answer in this place.
    Server {
        /// Its name for rules, `mcp__SERVER__@resource` or `mcp__SERVER__@prompt`.
        name: String,
        /// A JSON object.
        arguments: String,
    },
}

/// The same on disk.
#[derive(Serialize, Deserialize)]
struct PromptOnDisk {
    file: String,
    parts: Vec<PromptPart>,
    /// Files that the prompt shows behind them, as `read` is given them. A build that does not know this
    /// field shows none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allow: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer_schema: Option<String>,
    /// The name of the turn's model, if it was not the session's. A build that does not know this field
    /// asks the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The terminal of a person's own command. A build that does not know this field asks the model when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    typed_by: Option<String>,
}

impl From<PromptOnDisk> for ExpandedPrompt {
    fn from(stored: PromptOnDisk) -> Self {
        let PromptOnDisk { file, mut parts, files, allow, answer_schema, model, typed_by } = stored;
        parts.extend(files.into_iter().map(PromptPart::File));
        Self { file, parts, allow, answer_schema, model, typed_by }
    }
}

impl From<ExpandedPrompt> for PromptOnDisk {
    fn from(prompt: ExpandedPrompt) -> Self {
        let ExpandedPrompt { file, parts: all, allow, answer_schema, model, typed_by } = prompt;
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        for part in all {
            match part {
                PromptPart::File(path) => files.push(path),
                PromptPart::Text(_) | PromptPart::Command(_) | PromptPart::Server { .. } => {
                    parts.push(part);
                }
            }
        }
        Self { file, parts, files, allow, answer_schema, model, typed_by }
    }
}
