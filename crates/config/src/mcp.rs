//! MCP servers: `[mcp.NAME]` of our own files and `mcpServers` of a project's `.mcp.json`, in the fields
//! of Claude Code and Codex. Pure; `load_servers` collects them.

use crate::error::ConfigError;
use crate::event_hooks::{json, json_of};
use crate::origin::Layer;
use crate::server_package::ServerPackage;
use crate::source_text::{FileSource, IndexedSource};
use crate::warning::ConfigWarning;
use protocol::did_you_mean::nearest;
use protocol::hosts::HostRule;
use protocol::judgement::{Rule, RuleEffect};
use protocol::mcp::HEADER_VARIABLE;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use url::Url;

/// The table of our own files.
pub(crate) const TABLE: &str = "mcp";
/// The project's file of Claude Code, and its table.
pub(crate) const PROJECT_SERVERS: &str = ".mcp.json";
pub(crate) const THEIR_TABLE: &str = "mcpServers";

/// The setting by which an editor or a program hands servers over for one session, as the JSON text of a file of
/// Claude Code. No file has it.
pub const HANDED_SERVERS: &str = "mcp.handed";
/// Seconds that a server may take to become ready, and that a call of it may take.
const START: f64 = 30.0;
const CALL: f64 = 120.0;
/// Most seconds of both.
pub(crate) const MOST: f64 = 600.0;
/// Headers that the transport sets.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];
/// The field with the package of a server.
const PACKAGE: &str = "package";
/// The fields of a server, for hints.
const FIELDS: [&str; 14] = [
    "command",
    "args",
    "env",
    "url",
    "headers",
    "http_headers",
    "bearer_token_env_var",
    "hosts",
    "write",
    "enabled",
    "enabled_tools",
    "disabled_tools",
    "startup_timeout_sec",
    "tool_timeout_sec",
];
/// The kinds of servers that run.
const KINDS: [&str; 3] = ["stdio", "http", "streamable-http"];
/// Longest name in bytes.
const LONGEST_NAME: usize = 40;

/// A server of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: ServerPlace,
    /// Variables that it gets, with `${VARIABLE}` as it is written. Those of a server with an address are
    /// headers, see [`HEADER_VARIABLE`].
    pub env: Vec<(String, String)>,
    /// The hosts that it may reach; without any it has no network.
    pub hosts: Vec<HostRule>,
    /// Its right to the project.
    pub project: ProjectAccess,
    /// The tools that models may see; all of them, if there is no list.
    pub enabled: Option<Vec<String>>,
    /// The tools that models do not see.
    pub disabled: Vec<String>,
    /// Its package, if `agentd mcp install` fetched it.
    pub package: Option<ServerPackage>,
    /// How long it may take to become ready.
    pub start_ms: u64,
    /// How long a call of it may take.
    pub call_ms: u64,
    /// The setting and its place, as the rule that allows its start.
    pub by: Rule,
    /// The layer of its file.
    pub layer: Layer,
}

/// Where a server is, with `${VARIABLE}` as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerPlace {
    /// A program and its arguments.
    Program(Vec<String>),
    /// An address, with http:// or https://.
    Url(String),
}

impl ServerPlace {
    /// The words that may have variables.
    #[must_use]
    pub fn words(&self) -> &[String] {
        match self {
            Self::Program(words) => words,
            Self::Url(url) => std::slice::from_ref(url),
        }
    }
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
        format!("{}: {}", self.name, self.place.words().join(" "))
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
    url: Option<String>,
    #[serde(default, alias = "http_headers")]
    headers: BTreeMap<String, String>,
    bearer_token_env_var: Option<String>,
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
    package: Option<Value>,
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
    source: &IndexedSource<'_>,
    table: &DeTable<'_>,
) -> Result<FileServers, ConfigError> {
    let Some(servers) = table.get(TABLE) else { return Ok(FileServers::default()) };
    check_fields(source, servers)?;
    let mut found = of_json(source.source, TABLE, &json(servers))?;
    for server in &mut found.servers {
        server.by.line = line_in(source.source.text, &server.name).unwrap_or(server.by.line);
    }
    Ok(found)
}

/// In our own files a field that is unknown is a slip, and so is one that does not count.
fn check_fields(
    source: &IndexedSource<'_>,
    servers: &Spanned<DeValue<'_>>,
) -> Result<(), ConfigError> {
    for (name, server) in servers.get_ref().as_table().into_iter().flatten() {
        for (word, value) in server.get_ref().as_table().into_iter().flatten() {
            let field = word.get_ref().as_ref();
            let key = format!("{TABLE}.{}.{field}", name.get_ref());
            let alone = Map::from_iter([(field.to_owned(), json(value))]);
            let Ok(written) = Written::deserialize(Value::Object(alone)) else {
                return Err(source.unfit(&key, value, wanted_of(field)));
            };
            if field == "type" {
                if !value.get_ref().as_str().is_some_and(|kind| KINDS.contains(&kind)) {
                    return Err(source.unfit(&key, value, format!("one of {}", KINDS.join(", "))));
                }
            } else if written.others.contains_key(field) {
                let meant = nearest(field, FIELDS).first().copied();
                let hint = meant.map(|meant| format!("; did you mean `{meant}`?"));
                let hint =
                    hint.unwrap_or_else(|| ". `agentd help mcp` lists those there are".into());
                return Err(source.unknown(word, key, hint));
            } else if field == PACKAGE && source.source.layer != Layer::User {
                let reason = "only your own configuration file can have it".to_owned();
                return Err(ConfigError::Misplaced {
                    place: source.place(&word.span()),
                    key,
                    reason,
                });
            }
        }
    }
    Ok(())
}

fn wanted_of(field: &str) -> &'static str {
    match field {
        "command" => "a program, or a list of it and its arguments",
        "url" | "bearer_token_env_var" => "a text",
        "write" | "enabled" => "true or false",
        "startup_timeout_sec" | "tool_timeout_sec" => "a number of seconds",
        "env" | "headers" | "http_headers" => "a table of texts",
        _ => "a list of texts",
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
pub(crate) fn of_claude(source: FileSource<'_>) -> Result<FileServers, ConfigError> {
    match json_of(source.file, source.text)?.get(THEIR_TABLE) {
        None | Some(Value::Null) => Ok(FileServers::default()),
        Some(servers) => of_json(source, THEIR_TABLE, servers),
    }
}

/// True if a server can have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
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

/// Those of a table.
pub(crate) fn of_json(
    source: FileSource<'_>,
    table: &str,
    servers: &Value,
) -> Result<FileServers, ConfigError> {
    let mut found = FileServers::default();
    let wanted = "a table with a server for each name";
    let servers = servers.as_object().ok_or_else(|| source.bad(table, table, servers, wanted))?;
    for (name, value) in servers {
        let (key, way) = (format!("{table}.{name}"), format!("{table}/{name}"));
        if !is_name(name) {
            return Err(source.bad(&way, &key, value, &wanted_name()));
        }
        let written: Written = serde_json::from_value(value.clone())
            .map_err(|error| source.bad(&way, &key, value, &format!("a server: {error}")))?;
        found.add(source, (name, &key), written, value)?;
    }
    Ok(found)
}

impl FileServers {
    /// Adds those of another file.
    pub(crate) fn extend(&mut self, other: Self) {
        self.servers.extend(other.servers);
        self.off.extend(other.off);
        self.warnings.extend(other.warnings);
    }

    fn add(
        &mut self,
        source: FileSource<'_>,
        (name, key): (&str, &str),
        written: Written,
        value: &Value,
    ) -> Result<(), ConfigError> {
        let mut warn = |text: String| {
            self.warnings.push(source.warning(name, key.to_owned(), text));
        };
        let kind = written.others.get("type").and_then(Value::as_str).unwrap_or("stdio");
        if !KINDS.contains(&kind) {
            warn(format!(
                "does not run: it has the type {kind}, and agentd knows {}",
                KINDS.join(", ")
            ));
            return Ok(());
        }
        for field in written.others.keys().filter(|field| *field != "type") {
            warn(format!("has `{field}`, which agentd does not know"));
        }
        // It opens a directory of the person's.
        let package = written.package.as_ref().filter(|_| source.layer == Layer::User);
        if written.package.is_some() && package.is_none() {
            warn("has `package`, which only your own configuration file can have".to_owned());
        }
        if !written.enabled {
            self.off.push(name.to_owned());
            return Ok(());
        }
        // For our own files; in JSON the name is enough.
        let way = |field: &str| format!("{TABLE}/{name}/{field}");
        let bad = |field: &str, wanted: &str| source.bad(&way(field), key, value, wanted);
        let (place, env) = placed(&written).map_err(|(field, why)| bad(field, &why))?;
        let package = package.map(ServerPackage::read).transpose();
        let package = package.map_err(|why| bad(PACKAGE, &why))?;
        if package.is_some() && matches!(place, ServerPlace::Url(_)) {
            return Err(bad(PACKAGE, "a server with a `command`, since it has a `package`"));
        }
        let host = |(at, text): (usize, &String)| {
            text.parse::<HostRule>().map_err(|error| {
                let (key, value) = (format!("{key}.hosts"), Value::from(text.as_str()));
                source.bad(&way(&format!("hosts/{at}")), &key, &value, &error.to_string())
            })
        };
        let hosts = written.hosts.iter().enumerate().map(host).collect::<Result<_, _>>()?;
        let time = |field: &str, seconds: Option<f64>, usual: f64| {
            let seconds = seconds.unwrap_or(usual);
            match seconds > 0.0 && seconds <= MOST {
                // It is at most ten minutes.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                true => Ok((seconds * 1000.0).ceil() as u64),
                false => {
                    let wanted = format!("a number of seconds above 0, up to {MOST}");
                    let value = Value::from(seconds);
                    Err(source.bad(&way(field), &format!("{key}.{field}"), &value, &wanted))
                }
            }
        };
        let (file, line) = (source.file.to_owned(), source.line_of(name));
        self.servers.push(McpServerConfig {
            name: name.to_owned(),
            place,
            env,
            hosts,
            project: if written.write { ProjectAccess::Writes } else { ProjectAccess::Reads },
            enabled: written.enabled_tools,
            disabled: written.disabled_tools,
            package,
            start_ms: time("startup_timeout_sec", written.startup_timeout_sec, START)?,
            call_ms: time("tool_timeout_sec", written.tool_timeout_sec, CALL)?,
            by: Rule { effect: RuleEffect::Allow, text: key.to_owned(), file, line },
            layer: source.layer,
        });
        Ok(())
    }
}

/// The field that is wrong, empty for none alone, and what the server must be.
type BadServer = (&'static str, String);

/// Where it is, and its variables.
fn placed(written: &Written) -> Result<(ServerPlace, Vec<(String, String)>), BadServer> {
    let env = written.env.clone().into_iter().collect();
    let Some(url) = &written.url else {
        let mut command = match &written.command {
            Some(Command::Program(program)) => vec![program.clone()],
            Some(Command::Words(words)) => words.clone(),
            None => Vec::new(),
        };
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(("command", "a server with a `command` or a `url`".to_owned()));
        }
        command.extend(written.args.iter().cloned());
        let has_headers = !written.headers.is_empty() || written.bearer_token_env_var.is_some();
        return match has_headers {
            true => Err(("", "a server with a `url`, since it has headers".to_owned())),
            false => Ok((ServerPlace::Program(command), env)),
        };
    };
    let of_command = written.command.is_some() || !written.args.is_empty() || written.write;
    if of_command || !written.env.is_empty() {
        let wanted = "a server with either a `url` or a `command`: `args`, `env` and `write` are for commands";
        return Err(("", wanted.to_owned()));
    }
    if !url.contains("${") {
        server_host(url).map_err(|why| ("url", why))?;
    }
    let reserved = |name: &&String| RESERVED.iter().any(|known| known.eq_ignore_ascii_case(name));
    if let Some(name) = written.headers.keys().find(reserved) {
        let wanted = format!("a server whose headers leave out {name}, which the protocol sets");
        return Err(("headers", wanted));
    }
    let mut headers: Vec<String> =
        written.headers.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    headers.extend(
        written
            .bearer_token_env_var
            .iter()
            .map(|name| format!("Authorization: Bearer ${{{name}}}")),
    );
    let numbered = headers.into_iter().enumerate();
    let env =
        numbered.map(|(at, header)| (format!("{HEADER_VARIABLE}{}", at + 1), header)).collect();
    Ok((ServerPlace::Url(url.clone()), env))
}

/// The host and the port of a server's address.
///
/// # Errors
/// It is no address of a web server, or holds a password.
pub fn server_host(url: &str) -> Result<HostRule, String> {
    let wanted = |why: &str| format!("a server with a `url` of http:// or https://: {why}");
    let read = Url::parse(url).map_err(|error| wanted(&error.to_string()))?;
    if !matches!(read.scheme(), "http" | "https") {
        return Err(wanted(&format!("it begins with {}:", read.scheme())));
    }
    if !read.username().is_empty() || read.password().is_some() {
        return Err(wanted("keys have their place in `headers` or `bearer_token_env_var`"));
    }
    let (Some(host), Some(port)) = (read.host_str(), read.port_or_known_default()) else {
        return Err(wanted("it has no host"));
    };
    HostRule::of_rule(&format!("{host}:{port}")).map_err(|error| wanted(&error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn claude(text: &str) -> Result<FileServers, ConfigError> {
        of_claude(FileSource { layer: Layer::Project, file: ".mcp.json", text })
    }

    fn own(text: &str) -> Result<FileServers, ConfigError> {
        let source = FileSource { layer: Layer::User, file: "config.toml", text };
        of_table(&IndexedSource::of(source), DeTable::parse(text).unwrap().get_ref())
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
            (&theirs.name, theirs.place.words(), &theirs.env),
            (
                &"files".to_owned(),
                &["npx", "-y", "x"].map(str::to_owned)[..],
                &vec![("A".to_owned(), "${B:-c}".to_owned())],
            )
        );
        assert_eq!((&ours.place, &ours.env), (&theirs.place, &theirs.env));
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
    fn a_server_with_an_address_has_its_headers_as_variables() {
        let theirs = claude(
            "{\"mcpServers\": {\"a\": {\"type\": \"http\", \"url\": \"${BASE:-https://x.org}/mcp\", \
             \"headers\": {\"X-Key\": \"${KEY}\"}}}}",
        );
        let ours = own(
            "[mcp.a]\nurl = \"http://127.0.0.1:80/mcp\"\nbearer_token_env_var = \"T\"\nhosts = \
             [\"login.x.org\"]\nheaders = { X = \"y\" }\n",
        );
        let (theirs, ours) = (&theirs.unwrap().servers[0], &ours.unwrap().servers[0]);
        let header = |at: u8, text: &str| (format!("{HEADER_VARIABLE}{at}"), text.to_owned());
        assert_eq!(theirs.env, [header(1, "X-Key: ${KEY}")]);
        assert_eq!(theirs.variables(), ["KEY"]);
        assert_eq!(ours.env, [header(1, "X: y"), header(2, "Authorization: Bearer ${T}")]);
        assert_eq!(ours.place, ServerPlace::Url("http://127.0.0.1:80/mcp".to_owned()));
        for (url, host, port, admitted) in [
            ("http://127.0.0.1:3000/mcp", "127.0.0.1", 3000, true),
            ("https://x.org/mcp", "x.org", 443, true),
            ("https://x.org/mcp", "x.org", 80, false),
            ("http://[::1]:80", "[::1]", 80, true),
        ] {
            assert_eq!(server_host(url).unwrap().admits(host, port), admitted, "{url}");
        }
    }

    #[test]
    fn a_server_of_another_kind_does_not_run() {
        let kinds = ["sse", "ws", "http", "streamable-http"];
        let of = |kind| {
            claude(&format!(
                "{{\"mcpServers\": {{\"a\": {{\"type\": \"{kind}\", \"url\": \"https://x\"}}}}}}"
            ))
        };
        let run = kinds.map(|kind| of(kind).unwrap().servers.len());
        assert_eq!(run, [0, 0, 1, 1]);
        assert!(of("sse").unwrap().warnings[0].text.contains("the type sse"));
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
            ("[mcp.a]\ncommand = 7", "2:11: `mcp.a.command` is"),
            ("[mcp.a]\ncommand = \"x\"\ntype = \"sse\"", "3:8: `mcp.a.type` is"),
            (
                "[mcp.a]\ncommand = \"x\"\nhost = []",
                "3:1: there is no key `mcp.a.host`; did you mean `hosts`?",
            ),
            ("[mcp.a]\ncommand = \"x\"\ncolour = 1", "3:1: there is no key `mcp.a.colour`"),
            ("[mcp.a]\ncommand = \"x\"\nhosts = [\"10.0.0.1\"]", "mcp.a.hosts"),
            ("[mcp.a]\ncommand = \"x\"\ntool_timeout_sec = 0", "seconds above 0"),
            ("[mcp.a]\nurl = \"ftp://x.org\"", "it begins with ftp"),
            ("[mcp.a]\nurl = \"https://u:p@x.org\"", "keys have their place"),
            ("[mcp.a]\nurl = \"x.org\"", "http:// or https://"),
            ("[mcp.a]\nurl = \"https://x.org\"\nheaders = { Host = \"y\" }", "leave out Host"),
            ("[mcp.a]\nurl = \"https://x.org\"\ncommand = \"x\"", "either a `url` or"),
            ("[mcp.a]\ncommand = \"x\"\nbearer_token_env_var = \"T\"", "since it has headers"),
            ("mcp = 7", "a table with a server"),
        ] {
            let why = own(text).expect_err(text).to_string();
            assert!(why.contains(words) && why.contains("config.toml"), "{text}: {why}");
        }
        for field in FIELDS {
            let no_value = serde_json::json!({ field: { "x": 1 } });
            assert!(Written::deserialize(no_value).is_err(), "{field} is no field");
        }
        let found = claude("{\"mcpServers\": {\"a\": {\"type\": \"http\", \"url\": \"https://x\"}, \"b\": {\"command\": \"x\", \"cwd\": \"/\"}, \"c\": {\"command\": \"x\", \"enabled\": false}}}").unwrap();
        let places: Vec<_> = found.servers.iter().map(|server| server.place.words()).collect();
        assert_eq!(places, [["https://x"], ["x"]]);
        assert_eq!(found.warnings.len(), 1);
    }

    #[test]
    fn a_package_is_of_the_persons_own_file_alone() {
        let lock = "0".repeat(64);
        let table = format!(
            "[mcp.a]\ncommand = \"x\"\npackage = {{ from = \"npm\", name = \"p\", version = \"1\", lock = \"{lock}\" }}\n"
        );
        let package = own(&table).unwrap().servers[0].package.clone().unwrap();
        assert_eq!((package.in_words().as_str(), package.lock), ("npm:p@1", lock));
        for (old, new) in [("\"npm\"", "\"cargo\""), ("command", "url"), ("version", "versions")] {
            own(&table.replace(old, new)).unwrap_err();
        }
        let theirs = r#"{"mcpServers": {"a": {"command": "x", "package": {"from": "npm"}}}}"#;
        let found = claude(theirs).unwrap();
        assert_eq!(found.servers[0].package, None);
        assert!(found.warnings[0].text.contains("only your own configuration file"), "{found:?}");
        let source = FileSource { layer: Layer::Project, file: "c", text: &table };
        let table = DeTable::parse(&table).unwrap();
        let error = of_table(&IndexedSource::of(source), table.get_ref()).unwrap_err();
        assert!(
            error.to_string().starts_with("c:3:1: `mcp.a.package` cannot be set here"),
            "{error}"
        );
    }
}
