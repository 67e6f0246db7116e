//! Writes an "always allow" answer as a rule into the user's file. For the
//! supervisor. Comments and order are preserved; `edit_file` replaces the file.

use crate::edit_file::{self, FileAccessError};
use crate::error::ConfigError;
use crate::origin::Layer;
use crate::source_text::FileSource;
use crate::text::{self, Entries};
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table};

const KEY: &str = "permissions.allow";
/// Before an element of a list that has a line for each.
const INDENT: &str = "    ";

/// Why a rule is not in the file. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AppendRuleError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] FileAccessError),
    /// The file's content cannot be extended, or could not be parsed afterwards.
    #[error(transparent)]
    Unsound(#[from] ConfigError),
    /// The list is no list.
    #[error("{} has no list at {KEY} that could be added to", .0.display())]
    NoList(PathBuf),
}

/// Adds `rule` to `permissions.allow` of this file. A missing file is made, with `head` as its comment. On
/// disk when this returns, with the line of the rule; a rule that is there already is left as it is.
///
/// # Errors
/// Why it was not written.
pub fn append_allow_rule(file: &Path, head: &str, rule: &str) -> Result<u32, AppendRuleError> {
    let head: String = head.lines().map(|line| format!("# {line}\n")).collect();
    edit_file::edit(file, |old| {
        if let Some(line) = line_of(file, old, rule)? {
            return Ok((None, line));
        }
        let no_list = || AppendRuleError::NoList(file.to_owned());
        let mut new = with_rule(old, rule).ok_or_else(no_list)?;
        if old.is_empty() {
            new.insert_str(0, &head);
        }
        let line = line_of(file, &new, rule)?.ok_or_else(no_list)?;
        Ok((Some(new), line))
    })
}

/// The line on which the text allows `rule`, as it will be read at the next start.
fn line_of(file: &Path, text: &str, rule: &str) -> Result<Option<u32>, ConfigError> {
    let name = file.display().to_string();
    let Entries { entries, .. } =
        text::entries(&FileSource { layer: Layer::User, file: &name, text })?;
    let lists = entries.iter().filter(|entry| entry.key.name == KEY);
    Ok(lists
        .filter_map(|entry| entry.value.items()?.iter().find(|item| item.text == rule))
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

#[cfg(test)]
#[path = "append_rule_tests.rs"]
mod tests;
