//! Puts vendor, model and key file of a person into their configuration file. All other lines stay as they are.

use crate::edit_file::{self, FileAccessError};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, value};

/// The table.
const TABLE: &str = "provider";

/// Why the file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditProviderError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] FileAccessError),
    /// It is no TOML.
    #[error("{} is no TOML: {why}", file.display())]
    Unsound {
        /// The file.
        file: PathBuf,
        /// Where, and why.
        why: String,
    },
    /// `provider` is something else there.
    #[error("{} has `provider`, which is no table", .0.display())]
    NoTable(PathBuf),
}

/// The vendor of a person, and how it is reached.
#[derive(Debug, Clone, Copy)]
pub struct ProviderChoice<'a> {
    /// Its value of `provider.name`.
    pub vendor: &'a str,
    /// The model, where the vendor has no default one.
    pub model: Option<&'a str>,
    /// The file that has the key, where the vendor needs one.
    pub key_file: Option<&'a str>,
}

/// Writes it into this file, which is made where it is missing. What the table said of name, model and key goes.
///
/// # Errors
/// Why nothing was written.
pub fn set_provider(file: &Path, choice: ProviderChoice<'_>) -> Result<(), EditProviderError> {
    edit_file::edit(file, |old| {
        let mut document: DocumentMut = old.parse().map_err(|error: toml_edit::TomlError| {
            let why = error.to_string().trim_end().replace('\n', " ");
            EditProviderError::Unsound { file: file.to_owned(), why }
        })?;
        let entry = document.entry(TABLE).or_insert_with(|| Item::Table(Table::new()));
        let no_table = || EditProviderError::NoTable(file.to_owned());
        let table = entry.as_table_like_mut().ok_or_else(no_table)?;
        let ProviderChoice { vendor, model, key_file } = choice;
        for (key, text) in [("name", Some(vendor)), ("model", model), ("key_file", key_file)] {
            match text {
                Some(text) => drop(table.insert(key, value(text))),
                None => drop(table.remove(key)),
            }
        }
        table.remove("key_command");
        Ok((Some(document.to_string()), ()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_table_is_made_or_changed_and_the_rest_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agentd/config.toml");
        let choice = ProviderChoice { vendor: "anthropic", model: None, key_file: Some("/k") };
        set_provider(&file, choice).unwrap();
        let made = std::fs::read_to_string(&file).unwrap();
        assert_eq!(made, "[provider]\nname = \"anthropic\"\nkey_file = \"/k\"\n");
        let old = "# mine\n[ui]\nbusy = \"queue\" # so\n\n[provider]\nkey_command = \"pass\"\nmodel = \"x\"\nretries = 2\n";
        std::fs::write(&file, old).unwrap();
        set_provider(&file, ProviderChoice { vendor: "ollama", model: Some("m"), key_file: None })
            .unwrap();
        let new = std::fs::read_to_string(&file).unwrap();
        assert!(new.starts_with("# mine\n[ui]\nbusy = \"queue\" # so\n"), "{new}");
        assert!(
            new.contains("retries = 2")
                && new.contains("name = \"ollama\"")
                && new.contains("model = \"m\""),
            "{new}"
        );
        assert!(!new.contains("pass") && !new.contains("key_file"), "{new}");
        for bad in ["provider = 7\n", "[provider\n"] {
            std::fs::write(&file, bad).unwrap();
            assert!(set_provider(&file, choice).is_err());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), bad, "it stays");
        }
    }
}
