//! One settings file of Claude Code in a project, by itself and as if it were trusted. For
//! `agentd doctor --project`; `load_hooks` reads the files for sessions.

use crate::error::ConfigError;
use crate::event_hooks::{self, ConfiguredEventHook, DisablesAll};
use crate::file_text::read_text;
use crate::origin::Layer;
use crate::source_text::FileSource;
use crate::warning::ConfigWarning;
use serde_json::Value;
use std::path::Path;

/// A settings file of Claude Code.
#[derive(Debug)]
pub struct ClaudeFile {
    /// Its bytes, over which trust is recorded.
    pub text: String,
    /// All its settings.
    pub settings: Value,
    /// Its hooks, those of events without support included.
    pub hooks: Vec<ConfiguredEventHook>,
    /// Parts of its hooks that have no effect.
    pub warnings: Vec<ConfigWarning>,
    /// It switches all hooks of such files off.
    pub disables_hooks: bool,
}

impl ClaudeFile {
    /// Reads a file; none where there is none.
    ///
    /// # Errors
    /// Why a session with this file, once it is trusted, cannot begin.
    pub fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let Some((file, text)) = read_text(path)? else { return Ok(None) };
        let source = FileSource { layer: Layer::Project, file: &file, text: &text };
        let found = event_hooks::of_claude(source)?;
        let settings = event_hooks::json_of(&file, &text)?;
        let disables_hooks = found.disables_all == DisablesAll::Yes;
        let (hooks, warnings) = (found.hooks, found.warnings);
        Ok(Some(Self { text, settings, hooks, warnings, disables_hooks }))
    }
}
