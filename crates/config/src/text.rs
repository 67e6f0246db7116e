//! The text of one TOML file, flattened to known keys with their places.

use crate::credentials::{self, WrittenCredential};
use crate::error::{ConfigError, SourceLine};
use crate::event_hooks::{self, FileHooks};
use crate::keys;
use crate::mcp::{self, FileServers};
use crate::models::{self, NamedModel};
use crate::origin::ValueOrigin;
use crate::settings::SettingEntry;
use crate::source_text::{FileSource, IndexedSource};
use crate::warning::ConfigWarning;
use toml::de::DeTable;

/// The parsed content of a file.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// In the order of its lines.
    pub entries: Vec<SettingEntry>,
    /// The models that it names.
    pub models: Vec<NamedModel>,
    /// The hosts that it has keys for.
    pub credentials: Vec<WrittenCredential>,
    /// The hooks that it names.
    pub hooks: FileHooks,
    /// The MCP servers that it names.
    pub servers: FileServers,
    /// Lines of it that have no effect any more.
    pub warnings: Vec<ConfigWarning>,
}

/// Parses the file.
pub(crate) fn entries(source: &FileSource<'_>) -> Result<Entries, ConfigError> {
    let source = IndexedSource::of(*source);
    let table = DeTable::parse(source.source.text).map_err(|error| ConfigError::Syntax {
        place: error.span().map_or_else(|| source.place(&(0..0)), |span| source.place(&span)),
        message: error.message().to_owned(),
    })?;
    let mut found = Entries::default();
    source.flatten("", table.get_ref(), &mut found)?;
    found.entries.sort_by_key(|entry| entry.place.line);
    found.models = models::read(&source, table.get_ref())?;
    found.credentials = credentials::read(&source, table.get_ref())?;
    found.hooks = event_hooks::of_table(&source, table.get_ref())?;
    found.servers = mcp::of_table(&source, table.get_ref())?;
    Ok(found)
}

impl IndexedSource<'_> {
    fn flatten(
        &self,
        above: &str,
        table: &DeTable<'_>,
        found: &mut Entries,
    ) -> Result<(), ConfigError> {
        for (word, value) in table {
            let name = if above.is_empty() {
                word.get_ref().to_string()
            } else {
                format!("{above}.{}", word.get_ref())
            };
            if name == "models" || name == credentials::TABLE || name == mcp::TABLE {
                // The user chooses the names in these tables.
                continue;
            }
            if above == event_hooks::TABLE && keys::find(&name).is_none() {
                // An event; `event_hooks` reads it.
                continue;
            }
            if keys::is_retired(&name) {
                let (layer, SourceLine { file, line, .. }) =
                    (self.source.layer, self.place(&word.span()));
                found.warnings.push(ConfigWarning {
                    origin: ValueOrigin { layer, file, line },
                    key: name,
                    text: "has no effect any more: agentd knows the right value. Remove it".into(),
                });
            } else if let Some(key) = keys::find(&name) {
                let value = self.value(key.name, key.kind, value)?;
                found.entries.push(SettingEntry {
                    key,
                    value,
                    place: self.place(&word.span()),
                    layer: self.source.layer,
                });
            } else if !keys::is_table(&name) {
                let hint = keys::hint(&name);
                return Err(self.unknown(word, name, hint));
            } else {
                self.flatten(&name, self.table(&name, value)?, found)?;
            }
        }
        Ok(())
    }
}
