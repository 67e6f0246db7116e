//! Writes MCP servers into the person's file, and takes them out of it. Comments and the order of all else
//! stay. For `agentd mcp`.

use crate::edit_file::{self, FileAccessError};
use crate::error::ConfigError;
use crate::mcp::{self, McpServerConfig, ProjectAccess, ServerPlace, TABLE};
use crate::origin::Layer;
use crate::server_package::ServerPackage;
use crate::source_text::FileSource;
use crate::text;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

/// The key that `agentd mcp install` writes.
const PACKAGE: &str = "package";

/// A server to write.
#[derive(Debug, Clone, PartialEq)]
pub struct NewServer {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: ServerPlace,
    /// Variables that it gets; of one with an address, headers.
    pub env: Vec<(String, String)>,
    /// The hosts that it may reach.
    pub hosts: Vec<String>,
    /// Its right to the project.
    pub project: ProjectAccess,
    /// `enabled_tools`, where there is a list.
    pub enabled: Option<Vec<String>>,
    /// `disabled_tools`.
    pub disabled: Vec<String>,
    /// `startup_timeout_sec`.
    pub start_sec: Option<f64>,
    /// `tool_timeout_sec`.
    pub call_sec: Option<f64>,
    /// Its package, if it was installed.
    pub package: Option<ServerPackage>,
}

/// Why a server is not written or not taken out. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditServersError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] FileAccessError),
    /// The file cannot be parsed, before or afterwards.
    #[error(transparent)]
    Unsound(#[from] ConfigError),
    /// The name is taken.
    #[error("{}:{line} has a server {name} already", file.display())]
    Exists {
        /// The file.
        file: PathBuf,
        /// Where.
        line: u32,
        /// The name.
        name: String,
    },
    /// There is none of this name.
    #[error("{} has no server {name}", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
    },
    /// `mcp` has another form there.
    #[error("{} has no table `{TABLE}` that could be edited without a change of other lines", .0.display())]
    NoTable(PathBuf),
}

impl NewServer {
    /// As it stands in the file.
    #[must_use]
    pub fn text(&self) -> String {
        with_server("", self).unwrap_or_default()
    }

    fn table(&self) -> Table {
        let list = |words: &[String]| value(words.iter().map(String::as_str).collect::<Array>());
        let mut table = Table::new();
        let named = match &self.place {
            ServerPlace::Program(words) => {
                table.insert("command", list(words));
                "env"
            }
            ServerPlace::Url(url) => {
                table.insert("url", value(url));
                "headers"
            }
        };
        if !self.env.is_empty() {
            let all = self.env.iter().map(|(name, text)| (name.as_str(), text.as_str()));
            table.insert(named, value(all.collect::<InlineTable>()));
        }
        if !self.hosts.is_empty() {
            table.insert("hosts", list(&self.hosts));
        }
        if self.project == ProjectAccess::Writes {
            table.insert("write", value(true));
        }
        if let Some(enabled) = &self.enabled {
            table.insert("enabled_tools", list(enabled));
        }
        if !self.disabled.is_empty() {
            table.insert("disabled_tools", list(&self.disabled));
        }
        let times = [("startup_timeout_sec", self.start_sec), ("tool_timeout_sec", self.call_sec)];
        for (key, seconds) in times {
            if let Some(seconds) = seconds {
                table.insert(key, value(seconds));
            }
        }
        if let Some(package) = &self.package {
            table.insert(PACKAGE, value(package_table(package)));
        }
        table
    }
}

fn package_table(package: &ServerPackage) -> InlineTable {
    let ServerPackage { source, name, version, lock } = package;
    let fields = [("from", source.name()), ("name", name), ("version", version), ("lock", lock)];
    fields.into_iter().collect()
}

/// The line of a server in this file, if it has one of this name.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn server_line(file: &Path, name: &str) -> Result<Option<u32>, EditServersError> {
    let text = edit_file::text_of(file)?;
    parsed(file, &text)?;
    Ok(mcp::line_in(&text, name))
}

/// The server of this name in this file, if it has one that is not switched off.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn server_in(file: &Path, name: &str) -> Result<Option<McpServerConfig>, EditServersError> {
    let servers = parsed(file, &edit_file::text_of(file)?)?;
    Ok(servers.into_iter().find(|server| server.name == name))
}

/// Adds servers to this file, which is made where it is missing. Returns the line of each.
///
/// # Errors
/// Why none was written.
pub fn add_servers(file: &Path, servers: &[NewServer]) -> Result<Vec<u32>, EditServersError> {
    edit_file::edit(file, |old| {
        parsed(file, old)?;
        let no_table = || EditServersError::NoTable(file.to_owned());
        let mut new = old.to_owned();
        for server in servers {
            let name = &server.name;
            if let Some(line) = mcp::line_in(&new, name) {
                let (file, name) = (file.to_owned(), name.clone());
                return Err(EditServersError::Exists { file, line, name });
            }
            new = with_server(&new, server).ok_or_else(no_table)?;
        }
        let read = parsed(file, &new)?;
        let all_else = values(&new).map(|values| {
            servers.iter().fold(values, |values, server| without(values, &server.name))
        });
        if all_else != values(old) {
            return Err(no_table());
        }
        let line = |server: &NewServer| {
            let found = read.iter().find(|read| read.name == server.name)?;
            (found.place == server.place).then_some(found.by.line)
        };
        let lines = servers.iter().map(line).collect::<Option<_>>().ok_or_else(no_table)?;
        Ok((Some(new), lines))
    })
}

/// Gives a server of this file the command of an installed package. Returns its line.
///
/// # Errors
/// Why it was not. The file is as it was.
pub fn install_server(
    file: &Path,
    name: &str,
    (command, package): (&[String], &ServerPackage),
) -> Result<u32, EditServersError> {
    edit_file::edit(file, |old| {
        parsed(file, old)?;
        let missing = || EditServersError::Missing { file: file.to_owned(), name: name.to_owned() };
        mcp::line_in(old, name).ok_or_else(missing)?;
        let no_table = || EditServersError::NoTable(file.to_owned());
        let new = with_package(old, name, (command, package)).ok_or_else(no_table)?;
        let read = parsed(file, &new)?;
        let server = read.iter().find(|read| read.name == name).ok_or_else(no_table)?;
        let is_good = server.place.words() == command && server.package.as_ref() == Some(package);
        let rest = |text: &str| values(text).map(|values| without_command(values, name));
        if !is_good || rest(&new) != rest(old) {
            return Err(no_table());
        }
        Ok((Some(new), server.by.line))
    })
}

/// Takes a server out of this file. Returns the line where it stood.
///
/// # Errors
/// Why it was not.
pub fn remove_server(file: &Path, name: &str) -> Result<u32, EditServersError> {
    edit_file::edit(file, |old| {
        parsed(file, old)?;
        let missing = || EditServersError::Missing { file: file.to_owned(), name: name.to_owned() };
        let line = mcp::line_in(old, name).ok_or_else(missing)?;
        let no_table = || EditServersError::NoTable(file.to_owned());
        let new = without_server(old, name).ok_or_else(no_table)?;
        parsed(file, &new)?;
        if values(&new) != values(old).map(|values| without(values, name)) {
            return Err(no_table());
        }
        Ok((Some(new), line))
    })
}

/// The servers of a text, as the next start reads it.
fn parsed(file: &Path, text: &str) -> Result<Vec<McpServerConfig>, ConfigError> {
    let name = file.display().to_string();
    let read = text::entries(&FileSource { layer: Layer::User, file: &name, text })?;
    Ok(read.servers.servers)
}

/// All values, without a table of servers that is empty.
fn values(text: &str) -> Option<toml::Table> {
    let mut values = text.parse::<toml::Table>().ok()?;
    if values.get(TABLE).and_then(toml::Value::as_table).is_some_and(toml::Table::is_empty) {
        values.remove(TABLE);
    }
    Some(values)
}

/// The same without a server.
fn without(mut values: toml::Table, name: &str) -> toml::Table {
    if let Some(toml::Value::Table(servers)) = values.get_mut(TABLE) {
        servers.remove(name);
        if servers.is_empty() {
            values.remove(TABLE);
        }
    }
    values
}

/// The same without the keys of a server that an installation writes.
fn without_command(mut values: toml::Table, name: &str) -> toml::Table {
    let server = values.get_mut(TABLE).and_then(|servers| servers.get_mut(name));
    if let Some(server) = server.and_then(toml::Value::as_table_mut) {
        server.retain(|key, _| !["command", "args", PACKAGE].contains(&key));
    }
    values
}

fn with_package(
    text: &str,
    name: &str,
    (command, package): (&[String], &ServerPackage),
) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let server = document.get_mut(TABLE)?.as_table_like_mut()?.get_mut(name)?;
    let server = server.as_table_like_mut()?;
    let command = value(command.iter().map(String::as_str).collect::<Array>());
    for (key, new) in [("command", command), (PACKAGE, value(package_table(package)))] {
        match (server.get_mut(key).and_then(Item::as_value_mut), new) {
            // Comments beside it stay.
            (Some(old), Item::Value(mut new)) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            (_, new) => {
                server.insert(key, new);
            }
        }
    }
    server.remove("args");
    Some(document.to_string())
}

/// Puts it last, below comments that end the file.
fn with_server(text: &str, server: &NewServer) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let mut table = server.table();
    table.set_position(Some(last_position(document.as_table()) + 1));
    let end = document.trailing().as_str().unwrap_or_default().trim_end().to_owned();
    if !end.is_empty() {
        table.decor_mut().set_prefix(format!("{end}\n\n"));
        document.set_trailing("");
    }
    let implicit = || {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    };
    let servers = document.entry(TABLE).or_insert_with(implicit).as_table_like_mut()?;
    servers.insert(&server.name, Item::Table(table));
    Some(document.to_string())
}

fn without_server(text: &str, name: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let servers = document.get_mut(TABLE)?.as_table_like_mut()?;
    let removed = servers.remove(name)?;
    // A comment right above the server is about it. One that an empty line parts from it stays.
    let above = removed.as_table().and_then(|table| table.decor().prefix()?.as_str());
    if let Some((kept, _)) = above.and_then(|above| above.rsplit_once("\n\n"))
        && kept.contains('#')
    {
        let position = removed.as_table().and_then(Table::position).unwrap_or_default();
        let kept = kept.trim_end();
        if !put_above_next(&mut document, position, kept) {
            let end = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing(format!("{kept}\n{end}"));
        }
    }
    let new = document.to_string();
    Some(if text.starts_with('\n') { new } else { new.trim_start_matches('\n').to_owned() })
}

/// Puts comments above the first table behind this position. False if there is none.
fn put_above_next(document: &mut DocumentMut, position: isize, comments: &str) -> bool {
    let mut next = None;
    each_table(document.as_table(), &mut |table| {
        let behind = table.position().filter(|at| *at > position);
        next = behind.into_iter().chain(next).min();
    });
    let Some(next) = next else { return false };
    set_above(document.as_table_mut(), next, comments)
}

fn set_above(table: &mut Table, position: isize, comments: &str) -> bool {
    if table.position() == Some(position) && !table.is_implicit() {
        let own = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        let own = own.trim_start_matches('\n').to_owned();
        table.decor_mut().set_prefix(format!("{comments}\n\n{own}"));
        return true;
    }
    table.iter_mut().any(|(_, item)| match item {
        Item::Table(inner) => set_above(inner, position, comments),
        Item::ArrayOfTables(all) => {
            all.iter_mut().any(|inner| set_above(inner, position, comments))
        }
        Item::None | Item::Value(_) => false,
    })
}

fn last_position(table: &Table) -> isize {
    let mut last = 0;
    each_table(table, &mut |table| last = last.max(table.position().unwrap_or_default()));
    last
}

fn each_table(table: &Table, see: &mut dyn FnMut(&Table)) {
    see(table);
    for (_, item) in table {
        match item {
            Item::Table(inner) => each_table(inner, see),
            Item::ArrayOfTables(all) => all.iter().for_each(|inner| each_table(inner, see)),
            Item::None | Item::Value(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "edit_servers_tests.rs"]
mod tests;
