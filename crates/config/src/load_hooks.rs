//! Collects the hooks of all files: our own, and those of Claude Code, which it reads with their rules. Called by
//! `load`.

use crate::claude_rules::ClaudeRules;
use crate::config::{Config, ConfigRow};
use crate::error::ConfigError;
use crate::event_hooks::{self, DisablesAll, EventHookConfig, FileHooks};
use crate::file_text::read_text;
use crate::keys::HookKeys;
use crate::load_servers::CollectedServers;
use crate::mcp::FileServers;
use crate::origin::Layer;
use crate::plugin::{Plugin, PluginFolder};
use crate::project::FileTrust;
use crate::project_trust::project_trust;
use crate::section::Section;
use crate::settings::LayeredSettings;
use crate::source_text::FileSource;
use crate::sources::Sources;
use crate::warning::ConfigWarning;
use std::path::Path;

/// The project's files of Claude Code that may hold hooks, relative to the project.
pub(crate) const CLAUDE_PROJECT_FILES: [&str; 2] =
    [".claude/settings.json", ".claude/settings.local.json"];
/// The user's file of Claude Code, relative to the home directory.
const CLAUDE_USER_FILE: &str = ".claude/settings.json";

/// The hooks found so far.
#[derive(Debug, Default)]
pub(crate) struct CollectedHooks {
    found: EventHookConfig,
    /// Of Claude Code's files.
    rules: ClaudeRules,
    warnings: Vec<ConfigWarning>,
}

impl CollectedHooks {
    /// Adds those of one of our own files.
    pub(crate) fn add(&mut self, file: FileHooks, trust: FileTrust) {
        let FileHooks { hooks, warnings, disables_all: _ } = file;
        match trust {
            FileTrust::Trusted => {
                self.found.commands.extend(hooks);
                self.warnings.extend(warnings);
            }
            FileTrust::Untrusted => self.warnings.extend(untrusted(&hooks)),
        }
    }

    /// Adds those of Claude Code's files with their rules, unless the settings pass over them.
    pub(crate) fn add_claude(
        &mut self,
        settings: &LayeredSettings,
        sources: &Sources,
    ) -> Result<(), ConfigError> {
        if !HookKeys::read(settings, sources)?.claude_files {
            return Ok(());
        }
        let mut all = Vec::new();
        let mut disabled = DisablesAll::No;
        let mut add = |file: FileHooks| {
            if file.disables_all == DisablesAll::Yes {
                disabled = DisablesAll::Yes;
            }
            all.push(file);
        };
        let user = sources.environment.absolute("HOME").map(|home| home.join(CLAUDE_USER_FILE));
        if let Some(path) = user
            && let Some((file, text)) = read_text(&path)?
        {
            let source = FileSource { layer: Layer::User, file: &file, text: &text };
            let found = event_hooks::of_claude(source)?;
            // Calls could write it: then its hooks count as the project's, or not at all.
            if !is_in_project(&path, sources) {
                add(found);
            }
            self.rules.add(source, sources);
        }
        for (name, layer) in CLAUDE_PROJECT_FILES.into_iter().zip([Layer::Project, Layer::Local]) {
            let path = sources.project.join(name);
            let Some((file, text)) = read_text(&path)? else { continue };
            let trust = project_trust(&sources.trust, &path, text.as_bytes(), &mut self.warnings);
            let source = FileSource { layer, file: &file, text: &text };
            match (event_hooks::of_claude(source), trust) {
                (Ok(found), FileTrust::Trusted) => add(found),
                (Ok(found), FileTrust::Untrusted) => self.warnings.extend(untrusted(&found.hooks)),
                // The file of a project that is not trusted may hold anything.
                (Err(_), FileTrust::Untrusted) if event_hooks::json_of(&file, &text).is_ok() => {}
                (Err(error), FileTrust::Untrusted) => {
                    let text = format!("cannot be read, so that no denial of it holds: {error}");
                    let key = "permissions".to_owned();
                    self.warnings.push(source.warning("", key, text));
                }
                (Err(error), FileTrust::Trusted) => return Err(error),
            }
            self.rules.add(source, sources);
        }
        if disabled == DisablesAll::Yes {
            return Ok(());
        }
        for FileHooks { hooks, warnings, .. } in all {
            self.found.commands.extend(hooks);
            self.warnings.extend(warnings);
        }
        Ok(())
    }

    /// Adds those of the plugins, which run behind the others, and their servers.
    pub(crate) fn add_plugins(
        &mut self,
        settings: &LayeredSettings,
        sources: &Sources,
        servers: &mut CollectedServers,
    ) -> Result<Vec<Plugin>, ConfigError> {
        let mut plugins: Vec<Plugin> = Vec::new();
        for dir in HookKeys::read(settings, sources)?.plugin_dirs {
            let found = PluginFolder::trusted(&dir, &sources.plugin_trust)?;
            let same = |known: &&Plugin| known.name == found.plugin.name;
            match plugins.iter().find(same) {
                Some(known) if known.root == found.plugin.root => continue,
                Some(known) => {
                    let (name, other) = (&known.name, known.root.display());
                    let why = format!("its name {name} is that of the plugin in {other}");
                    return Err(ConfigError::Plugin { dir, why });
                }
                None => {}
            }
            self.found.commands.extend(found.hooks);
            self.warnings.extend(found.warnings);
            let of_plugin = FileServers { servers: found.servers, ..FileServers::default() };
            servers.add(of_plugin, FileTrust::Trusted);
            plugins.push(found.plugin);
        }
        Ok(plugins)
    }

    /// Puts them into the configuration.
    pub(crate) fn put_into(self, config: &mut Config) {
        config.rows.extend(self.found.commands.iter().map(|hook| ConfigRow {
            key: event_hooks::TABLE,
            value: hook.in_words(),
            origin: hook.origin(),
        }));
        config.hooks.commands = self.found.commands;
        config.permissions.rules.extend(self.rules.rules);
        config.warnings.extend(self.rules.warnings);
        config.warnings.extend(self.warnings);
    }
}

/// True if the file lies in the project, wherever links lead.
fn is_in_project(path: &Path, sources: &Sources) -> bool {
    path.canonicalize().is_ok_and(|real| real.starts_with(&sources.project))
}

/// Names hooks that do not run because their file is not trusted: once a file.
fn untrusted(hooks: &[event_hooks::ConfiguredEventHook]) -> Option<ConfigWarning> {
    let first = hooks.first()?;
    let origin = first.origin();
    let what = match hooks.len() {
        1 => "is a hook that does not run".to_owned(),
        many => format!("is the first of {many} hooks that do not run"),
    };
    Some(ConfigWarning {
        origin,
        key: format!("{}.{}", event_hooks::TABLE, first.event.name()),
        text: format!(
            "{what}, since you have not said that you trust this file as it is now. Read it; then \
             run `agentd init --trust`, or give --trust-project for one run"
        ),
    })
}
