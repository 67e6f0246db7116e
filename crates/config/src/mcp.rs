//! MCP servers: `[mcp.NAME]` of our own files and `mcpServers` of a project's `.mcp.json`, in the fields
//! of Claude Code and Codex. Pure; `load_servers` collects them.

use crate::error::{ConfigError, SourceLine};
use crate::event_hooks::{HookFile, json, json_of};
use crate::origin::Layer;
use crate::warning::ConfigWarning;
use protocol::hosts::HostRule;
use protocol::judgement::{Rule, RuleEffect};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use toml::de::DeTable;

/// The table of our own files.
pub(crate) const TABLE: &str = "mcp";
/// The project's file of Claude Code, and its table.
pub(crate) const PROJECT_SERVERS: &str = ".mcp.json";
pub(crate) const THEIR_TABLE: &str = "mcpServers";
/// Seconds that a server may take to become ready, and that a call of it may take.
const START: f64 = 30.0;
const CALL: f64 = 120.0;
/// Most seconds of both.
pub(crate) const MOST: f64 = 600.0;
/// Longest name in bytes.
const LONGEST_NAME: usize = 40;

/// A server of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    /// Its name.
    pub name: String,
    /// The program and its arguments, with `${VARIABLE}` as it is written.
    pub command: Vec<String>,
    /// Variables that it gets, likewise.
    pub env: Vec<(String, String)>,
    /// The hosts that it may reach; without any it has no network.
    pub hosts: Vec<HostRule>,
    /// Its right to the project.
    pub project: ProjectAccess,
    /// The tools that models may see; all of them, if there is no list.
    pub enabled: Option<Vec<String>>,
    /// The tools that models do not see.
    pub disabled: Vec<String>,
    /// How long it may take to become ready.
    pub start_ms: u64,
    /// How long a call of it may take.
    pub call_ms: u64,
    /// The setting and its place, as the rule that allows its start.
    pub by: Rule,
    /// The layer of its file.
    pub layer: Layer,
}

/// The right of a server to the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectAccess {
    /// It reads it.
    Reads,
    /// It may write it.
    Writes,
}

impl McpServerConfig {
    /// Name and command in one line.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{}: {}", self.name, self.command.join(" "))
    }
}

impl McpServerConfig {
    /// The variables whose values its environment needs.
    #[must_use]
    pub fn variables(&self) -> Vec<String> {
        self.env.iter().flat_map(|(_, text)| variables_in(text)).collect()
    }
}

/// The variables that a text names.
#[must_use]
pub fn variables_in(text: &str) -> Vec<String> {
    let names = RefCell::new(Vec::new());
    let each = |name: &str| {
        names.borrow_mut().push(name.to_owned());
        Some(String::new())
    };
    // Each has a value.
    let _ = expand(text, each);
    names.into_inner()
}

/// A text with the values of `${VARIABLE}` and `${VARIABLE:-default}`.
///
/// # Errors
/// A variable without a default is not set.
pub fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}').map(|end| at + end) else { break };
        out.push_str(&rest[..at]);
        let (name, default) = match rest[at + 2..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&rest[at + 2..end], None),
        };
        let value = value(name).filter(|value| !value.is_empty() || default.is_none());
        let value = value.or_else(|| default.map(str::to_owned));
        out.push_str(&value.ok_or_else(|| format!("the variable {name} is not set"))?);
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The fields of a server.
#[derive(Deserialize)]
struct Written {
    command: Option<Command>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    write: bool,
    #[serde(default = "yes")]
    enabled: bool,
    enabled_tools: Option<Vec<String>>,
    #[serde(default)]
    disabled_tools: Vec<String>,
    startup_timeout_sec: Option<f64>,
    tool_timeout_sec: Option<f64>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// A program, alone or with its arguments.
#[derive(Deserialize)]
#[serde(untagged)]
enum Command {
    Program(String),
    Words(Vec<String>),
}

fn yes() -> bool {
    true
}

/// The servers of one file.
#[derive(Debug, Default)]
pub(crate) struct FileServers {
    pub servers: Vec<McpServerConfig>,
    /// The names of those that are switched off.
    pub off: Vec<String>,
    pub warnings: Vec<ConfigWarning>,
}

/// Those of one of our own files.
pub(crate) fn of_table(
    source: HookFile<'_>,
    table: &DeTable<'_>,
) -> Result<FileServers, ConfigError> {
    let Some(servers) = table.get(TABLE) else { return Ok(FileServers::default()) };
    let mut found = read(source, TABLE, &json(servers.get_ref()))?;
    for server in &mut found.servers {
        server.by.line = line_in(source.text, &server.name).unwrap_or(server.by.line);
    }
    // A key of our own that is unknown is a slip.
    match found.warnings.into_iter().next() {
        None => Ok(FileServers { warnings: Vec::new(), ..found }),
        Some(ConfigWarning { origin, key, text }) => Err(ConfigError::UnknownKey {
            place: SourceLine { file: origin.file, line: origin.line, column: 1 },
            key,
            hint: format!(". It {text}"),
        }),
    }
}

/// The line of a server of one of our own files.
pub(crate) fn line_in(text: &str, name: &str) -> Option<u32> {
    let table = DeTable::parse(text).ok()?;
    let servers = table.get_ref().get(TABLE)?.get_ref().as_table()?;
    let (key, _) = servers.iter().find(|(key, _)| key.get_ref() == name)?;
    u32::try_from(text[..key.span().start].matches('\n').count() + 1).ok()
}

/// Those of a file of Claude Code.
pub(crate) fn of_claude(source: HookFile<'_>) -> Result<FileServers, ConfigError> {
    match json_of(source.file, source.text)?.get(THEIR_TABLE) {
        None | Some(Value::Null) => Ok(FileServers::default()),
        Some(servers) => read(source, THEIR_TABLE, servers),
    }
}

/// True if a server can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(plain)
        && !name.contains("__")
        && !name.starts_with('_')
        && !name.ends_with('_')
}

pub(crate) fn wanted_name() -> String {
    format!(
        "named by at most {LONGEST_NAME} letters, digits, `-` and single `_` between them: the names of its tools \
         begin with it"
    )
}

fn read(source: HookFile<'_>, table: &str, servers: &Value) -> Result<FileServers, ConfigError> {
    let mut found = FileServers::default();
    let wanted = "a table with a server for each name";
    let servers = servers.as_object().ok_or_else(|| source.bad(table, servers, wanted))?;
    for (name, value) in servers {
        let key = format!("{table}.{name}");
        if !is_name(name) {
            return Err(source.bad(&key, value, &wanted_name()));
        }
        let written: Written = serde_json::from_value(value.clone())
            .map_err(|error| source.bad(&key, value, &format!("a server: {error}")))?;
        found.add(source, (name, &key), written, value)?;
    }
    Ok(found)
}

impl FileServers {
    fn add(
        &mut self,
        source: HookFile<'_>,
        (name, key): (&str, &str),
        written: Written,
        value: &Value,
    ) -> Result<(), ConfigError> {
        let mut warn = |text: String| {
            self.warnings.push(source.warning(name, key.to_owned(), text));
        };
        if written.others.contains_key("url") {
            warn("names a server by its URL; agentd starts servers with a command only".to_owned());
            return Ok(());
        }
        for field in written.others.keys().filter(|field| *field != "type") {
            warn(format!("has `{field}`, which agentd does not know"));
        }
        if !written.enabled {
            self.off.push(name.to_owned());
            return Ok(());
        }
        let mut command = match written.command {
            Some(Command::Program(program)) => vec![program],
            Some(Command::Words(words)) => words,
            None => Vec::new(),
        };
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(source.bad(key, value, "a server with a `command`"));
        }
        command.extend(written.args);
        let host = |text: &String| {
            text.parse::<HostRule>().map_err(|error| {
                source.bad(&format!("{key}.hosts"), &Value::from(text.as_str()), &error.to_string())
            })
        };
        let hosts = written.hosts.iter().map(host).collect::<Result<_, _>>()?;
        let time = |field: &str, seconds: Option<f64>, usual: f64| {
            let seconds = seconds.unwrap_or(usual);
            match seconds > 0.0 && seconds <= MOST {
                // It is at most ten minutes.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                true => Ok((seconds * 1000.0).ceil() as u64),
                false => {
                    let wanted = format!("a number of seconds above 0, up to {MOST}");
                    Err(source.bad(&format!("{key}.{field}"), &Value::from(seconds), &wanted))
                }
            }
        };
        let place = (source.file.to_owned(), source.line_of(name));
        self.servers.push(McpServerConfig {
            name: name.to_owned(),
            command,
            env: written.env.into_iter().collect(),
            hosts,
            project: if written.write { ProjectAccess::Writes } else { ProjectAccess::Reads },
            enabled: written.enabled_tools,
            disabled: written.disabled_tools,
            start_ms: time("startup_timeout_sec", written.startup_timeout_sec, START)?,
            call_ms: time("tool_timeout_sec", written.tool_timeout_sec, CALL)?,
            by: Rule {
                effect: RuleEffect::Allow,
                text: key.to_owned(),
                file: place.0,
                line: place.1,
            },
            layer: source.layer,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn claude(text: &str) -> Result<FileServers, ConfigError> {
        of_claude(HookFile { layer: Layer::Project, file: ".mcp.json", text })
    }

    fn own(text: &str) -> Result<FileServers, ConfigError> {
        let source = HookFile { layer: Layer::User, file: "config.toml", text };
        of_table(source, DeTable::parse(text).unwrap().get_ref())
    }

    #[test]
    fn a_server_has_its_fields_in_both_forms() {
        let theirs = claude(
            "{\"mcpServers\": {\n\"files\": {\"type\": \"stdio\", \"command\": \"npx\", \"args\": \
             [\"-y\", \"x\"], \"env\": {\"A\": \"${B:-c}\"}}}}",
        );
        let ours = own(
            "[mcp.files]\ncommand = [\"npx\", \"-y\", \"x\"]\nenv = { A = \"${B:-c}\" }\nhosts = \
             [\"docs.rs\"]\nwrite = true\nenabled_tools = [\"a\"]\ndisabled_tools = [\"b\"]\n\
             startup_timeout_sec = 1.5\ntool_timeout_sec = 7\n",
        );
        let (theirs, ours) = (&theirs.unwrap().servers[0], &ours.unwrap().servers[0]);
        assert_eq!(
            (&theirs.name, &theirs.command, &theirs.env),
            (
                &"files".to_owned(),
                &["npx", "-y", "x"].map(str::to_owned).to_vec(),
                &vec![("A".to_owned(), "${B:-c}".to_owned())],
            )
        );
        assert_eq!((&ours.command, &ours.env), (&theirs.command, &theirs.env));
        assert_eq!(
            (theirs.project, theirs.start_ms, theirs.call_ms),
            (ProjectAccess::Reads, 30_000, 120_000)
        );
        assert_eq!(
            (ours.project, ours.start_ms, ours.call_ms),
            (ProjectAccess::Writes, 1500, 7000)
        );
        assert_eq!(ours.hosts, ["docs.rs".parse().unwrap()]);
        assert_eq!(
            (ours.enabled.as_deref(), &ours.disabled[..]),
            (Some(&["a".to_owned()][..]), &["b".to_owned()][..])
        );
        assert_eq!((theirs.by.text.as_str(), theirs.by.line), ("mcpServers.files", 2));
    }

    #[test]
    fn variables_are_put_in_where_they_are_set() {
        let set = [("A", "1"), ("EMPTY", "")];
        let value = |name: &str| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        for (text, wanted) in [
            ("x", Ok("x")),
            ("a${A}b${A}", Ok("a1b1")),
            ("${B:-c}${A:-d}", Ok("c1")),
            ("${EMPTY}|${EMPTY:-e}", Ok("|e")),
            ("${B:-}", Ok("")),
            ("$A ${A", Ok("$A ${A")),
            ("${B}", Err("the variable B is not set")),
        ] {
            let found = expand(text, value);
            assert_eq!(found.as_deref().map_err(String::as_str), wanted, "{text}");
        }
        let found = own("[mcp.a]\ncommand = \"x\"\nenv = { A = \"${B}-${C:-d}\", E = \"f\" }");
        assert_eq!(found.unwrap().servers[0].variables(), ["B", "C"]);
    }

    #[test]
    fn what_is_no_server_is_told_with_its_place() {
        for (text, words) in [
            ("[mcp.a__b]\ncommand = \"x\"", "single `_`"),
            ("[mcp.a_]\ncommand = \"x\"", "single `_`"),
            ("[mcp._a]\ncommand = \"x\"", "single `_`"),
            ("[mcp.a]\nargs = [\"x\"]", "a server with a `command`"),
            ("[mcp.a]\ncommand = 7", "a server: "),
            ("[mcp.a]\ncommand = \"x\"\ncolour = 1", "`colour`"),
            ("[mcp.a]\ncommand = \"x\"\nhosts = [\"10.0.0.1\"]", "mcp.a.hosts"),
            ("[mcp.a]\ncommand = \"x\"\ntool_timeout_sec = 0", "seconds above 0"),
            ("[mcp.a]\nurl = \"https://x.org\"", "by its URL"),
            ("mcp = 7", "a table with a server"),
        ] {
            let why = own(text).expect_err(text).to_string();
            assert!(why.contains(words) && why.contains("config.toml"), "{text}: {why}");
        }
        let found = claude("{\"mcpServers\": {\"a\": {\"type\": \"http\", \"url\": \"https://x\"}, \"b\": {\"command\": \"x\", \"cwd\": \"/\"}, \"c\": {\"command\": \"x\", \"enabled\": false}}}").unwrap();
        assert_eq!(found.servers.len(), 1);
        assert_eq!(found.warnings.len(), 2);
    }
}
