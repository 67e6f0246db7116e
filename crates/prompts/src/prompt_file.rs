//! A slash command or a skill, as its file says it.

use crate::prompt_owner::PromptOwner;
use std::path::PathBuf;

/// The kind of a prompt in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// A Markdown file below `commands`.
    Command,
    /// A directory with a `SKILL.md`.
    Skill,
}

impl PromptKind {
    /// For lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Skill => "skill",
        }
    }
}

/// A rule of `allowed-tools`, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedTool {
    /// The rule.
    pub text: String,
    /// Its line in the file, counted from 1.
    pub line: u32,
}

/// A prompt in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    /// Without the slash.
    pub name: String,
    /// Command or skill.
    pub kind: PromptKind,
    /// Whose it is.
    pub owner: PromptOwner,
    /// The file.
    pub file: PathBuf,
    /// What it does, on one line.
    pub description: String,
    /// Which arguments it takes; may be empty.
    pub argument_hint: String,
    /// Rules that allow while its turn runs.
    pub allowed_tools: Vec<AllowedTool>,
    /// The model that it wants.
    pub model: Option<String>,
    /// The text before arguments are put in.
    pub body: String,
    /// Files of the same name that it hides.
    pub hides: Vec<PathBuf>,
    /// The folder of its plugin, if it is of one.
    pub plugin_root: Option<PathBuf>,
}
