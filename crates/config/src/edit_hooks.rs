//! The hooks that run after edits, as configured.

use crate::error::ConfigError;
use crate::hook_text::read;
use crate::origin::Layer;
use crate::value::ListItem;
use protocol::hook::EditHook;
use protocol::judgement::{Rule, RuleEffect};

/// A hook, and the setting that configured it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredHook {
    /// The command, and the edits after which it runs.
    pub hook: EditHook,
    /// The setting and its place, as the rule that allows the command.
    pub by: Rule,
}

/// The hooks of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookConfig {
    /// Empty if switched off, or if the project is not trusted: code of the project would run.
    pub commands: Vec<ConfiguredHook>,
    /// Hooks that do not run because the project is not trusted.
    pub untrusted: Vec<ConfiguredHook>,
    /// Longest time of one call in milliseconds.
    pub timeout_ms: u64,
}

impl HookConfig {
    /// Those of one kind, as they are written.
    ///
    /// # Errors
    /// Never, since each was read when its file was.
    pub(crate) fn of(
        key: &'static str,
        is_on: bool,
        items: &[ListItem],
        timeout_ms: u64,
    ) -> Result<Self, ConfigError> {
        let commands = if is_on { configured(key, items)? } else { Vec::new() };
        Ok(Self { commands, untrusted: Vec::new(), timeout_ms })
    }
}

/// The hooks in a key's list. For the same files the last one applies.
///
/// # Errors
/// Never, since each was read when its file was.
fn configured(key: &'static str, items: &[ListItem]) -> Result<Vec<ConfiguredHook>, ConfigError> {
    let mut found: Vec<ConfiguredHook> = Vec::new();
    for ListItem { text, origin, .. } in items {
        let hook = read(text).ok_or(ConfigError::Incomplete { key })?;
        found.retain(|old| old.hook.files != hook.files);
        let line = match origin.layer {
            Layer::BuiltIn | Layer::Environment | Layer::Flag => 0,
            Layer::Managed | Layer::User | Layer::Project | Layer::Local => origin.line,
        };
        let (text, file) = (format!("{key} = {text:?}"), origin.file.clone());
        found.push(ConfiguredHook {
            hook,
            by: Rule { effect: RuleEffect::Allow, text, file, line },
        });
    }
    Ok(found)
}
