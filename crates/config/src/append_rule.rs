//! Writes an "always allow" answer as a rule into the user's file. For the
//! supervisor, which alone writes it.
//!
//! The file is replaced atomically, so a crash or a concurrent reader finds either the old or the
//! new file. Comments, order, permissions and a link to the file are preserved.

use crate::error::ConfigError;
use crate::origin::Layer;
use crate::source_text::FileSource;
use crate::text::{self, Entries};
use crate::value::ConfigValue;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table};

const KEY: &str = "permissions.allow";
/// Before an element of a list that has a line for each.
const INDENT: &str = "    ";

/// Why a rule is not in the file. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AppendRuleError {
    /// The file cannot be read or written.
    #[error("{} cannot be {act}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// `read` or `written`.
        act: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The file's content cannot be extended, or could not be parsed afterwards.
    #[error(transparent)]
    Unsound(#[from] ConfigError),
    /// The list is no list.
    #[error("{} has no list at {KEY} that could be added to", .0.display())]
    NoList(PathBuf),
}

/// Adds `rule` to `permissions.allow` of this file, which is made where it is missing. On disk when
/// this returns, with the line of the rule; a rule that is there already is left as it is.
///
/// # Errors
/// Why it was not written.
pub fn append_allow_rule(file: &Path, rule: &str) -> Result<u32, AppendRuleError> {
    let read = |source| AppendRuleError::Io { file: file.to_owned(), act: "read", source };
    let written = |source| AppendRuleError::Io { file: file.to_owned(), act: "written", source };
    // Where people keep such files elsewhere and link to them, the link stays.
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let dir = real.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(written)?;
    // Two answers at the same time would each lose the other's rule.
    let directory = File::open(dir).map_err(written)?;
    directory.lock().map_err(written)?;
    let old = match fs::read_to_string(&real) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(read(error)),
    };
    if let Some(line) = line_of(file, &old, rule)? {
        return Ok(line);
    }
    let new = with_rule(&old, rule).ok_or_else(|| AppendRuleError::NoList(file.to_owned()))?;
    let line =
        line_of(file, &new, rule)?.ok_or_else(|| AppendRuleError::NoList(file.to_owned()))?;
    replace(&real, &new).map_err(written)?;
    directory.sync_all().map_err(written)?;
    Ok(line)
}

/// The line on which the text allows `rule`, as it will be read at the next start.
fn line_of(file: &Path, text: &str, rule: &str) -> Result<Option<u32>, ConfigError> {
    let name = file.display().to_string();
    let Entries { entries, .. } =
        text::entries(&FileSource { layer: Layer::User, file: &name, text })?;
    let lists = entries.iter().filter(|entry| entry.key.name == KEY);
    Ok(lists
        .filter_map(|entry| match &entry.value {
            ConfigValue::List(items) => items.iter().find(|item| item.text == rule),
            ConfigValue::Text(_) | ConfigValue::Number(_) => None,
        })
        .map(|item| item.origin.line)
        .next())
}

fn with_rule(text: &str, rule: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let permissions = document.entry("permissions").or_insert_with(|| Item::Table(Table::new()));
    let allow = permissions.as_table_like_mut()?.entry("allow");
    let allow = allow.or_insert_with(|| {
        let mut fresh = Array::new();
        fresh.set_trailing("\n");
        Item::Value(fresh.into())
    });
    add(allow.as_array_mut()?, rule);
    Some(document.to_string())
}

/// Puts it last, on a line of its own where the others are; a comment stays with its rule.
fn add(list: &mut Array, rule: &str) {
    let text = |raw: Option<&toml_edit::RawString>| {
        raw.and_then(toml_edit::RawString::as_str).unwrap_or_default().to_owned()
    };
    let mut behind = text(Some(list.trailing()));
    let mut indent = INDENT.to_owned();
    let comma = list.trailing_comma();
    let last = list.len().checked_sub(1).and_then(|at| list.get_mut(at));
    if let Some(last) = last {
        let decor = last.decor_mut();
        if let Some((_, front)) = text(decor.prefix()).rsplit_once('\n') {
            front.clone_into(&mut indent);
        }
        if !comma {
            behind = format!("{}{behind}", text(decor.suffix()));
            decor.set_suffix("");
        }
    }
    if !behind.contains('\n') {
        return list.push(rule);
    }
    let mut value = toml_edit::Value::from(rule);
    value.decor_mut().set_prefix(format!("{}\n{indent}", behind.trim_end()));
    list.push_formatted(value);
    list.set_trailing_comma(true);
    list.set_trailing("\n");
}

/// The new text under the old name, in one step.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.new"));
    // Left by a process that was killed; the lock guarantees that no other process writes it.
    let _ = fs::remove_file(&beside);
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let done = out.write_all(text.as_bytes()).and_then(|()| match fs::metadata(file) {
        Ok(old) => out.set_permissions(old.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    });
    let done = done.and_then(|()| out.sync_all()).and_then(|()| fs::rename(&beside, file));
    if done.is_err() {
        let _ = fs::remove_file(&beside);
    }
    done
}

#[cfg(test)]
#[path = "append_rule_tests.rs"]
mod tests;
