//! `agentd mcp ls`: the servers that a session of this project starts, and those that do not run.

use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::{CliContext, TrustFlag, real_dir};
use crate::open_request::plugin_settings;
use crate::output::{print, print_json};
use crate::settings::sound_with;
use crate::table::table;
use config::{Config, ConfigWarning, McpServerConfig, ProjectAccess, ServerPlace};
use protocol::hidden::on_one_line;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The project, and the plugins of `--plugin-dir`.
type ListedOf<'a> = (&'a Path, &'a [PathBuf]);

pub(super) fn main(of: ListedOf<'_>, json: bool) -> Result<CliExit, CliError> {
    with_listed(of, |listed| {
        match json {
            true => print_json(&listed.json()),
            false if listed.servers.is_empty() && listed.others.is_empty() => {
                eprintln!("agentd: there are no MCP servers; `agentd mcp add` adds one");
            }
            false => print(&listed.words()),
        }
        Ok(CliExit::Done)
    })
}

fn with_listed(
    (project, plugins): ListedOf<'_>,
    then: impl FnOnce(&ListedServers<'_>) -> Result<CliExit, CliError>,
) -> Result<CliExit, CliError> {
    let project = real_dir(project, "the project directory")?;
    let context = CliContext::of_process()?;
    let config = sound_with(&context, &project, &plugin_settings(plugins)?, TrustFlag::NotGiven)?;
    let passed = context.passed(None, &config.sandbox.env);
    let known = SetVariables {
        own: &|name| context.environment.get(name).is_some(),
        passed: &|name| passed.iter().any(|(known, _)| known == name),
    };
    then(&listed(&config, &known))
}

/// One server, with its fields.
pub(super) fn show(of: ListedOf<'_>, name: &str) -> Result<CliExit, CliError> {
    with_listed(of, |listed| {
        let of = |server: &Value| server["name"] == name;
        let found: Vec<Value> = listed.objects().filter(of).collect();
        if found.is_empty() {
            let why = format!("this project has no MCP server {name}");
            return Err(CliError::user(why).hint("`agentd mcp ls` lists them"));
        }
        for server in &found {
            print_json(&format!("{server:#}\n"));
        }
        Ok(CliExit::Done)
    })
}

/// The variables that are set.
struct SetVariables<'a> {
    /// Of the person. Those in `env` of a server have these values.
    own: &'a dyn Fn(&str) -> bool,
    /// Of sessions. Those in commands have these values, since commands are recorded.
    passed: &'a dyn Fn(&str) -> bool,
}

/// What is listed.
struct ListedServers<'a> {
    servers: Vec<ListedServer<'a>>,
    /// Servers that do not run, with the reason.
    others: Vec<&'a ConfigWarning>,
}

/// A server that a session starts, as far as its variables are set.
struct ListedServer<'a> {
    config: &'a McpServerConfig,
    /// Each variable that it names.
    variables: Vec<String>,
    /// Those among them without a value.
    missing: Vec<String>,
    /// Parts of its table that have no effect.
    notes: Vec<&'a str>,
}

fn listed<'a>(config: &'a Config, known: &SetVariables<'_>) -> ListedServers<'a> {
    let is_about = |warning: &ConfigWarning, server: &McpServerConfig| {
        let (by, origin) = (&server.by, &warning.origin);
        warning.key == by.text && origin.file == by.file && origin.line == by.line
    };
    let servers = config.servers.iter().map(|server| {
        let about = config.warnings.iter().filter(|warning| is_about(warning, server));
        let of_command = named(server.place.words().iter(), known.passed);
        let of_env = named(server.env.iter().map(|(_, text)| text), known.own);
        let (mut variables, mut missing) = (Vec::new(), Vec::new());
        for (name, is_missing) in of_command.into_iter().chain(of_env) {
            if is_missing && !missing.contains(&name) {
                missing.push(name.clone());
            }
            if !variables.contains(&name) {
                variables.push(name);
            }
        }
        let notes = about.map(|warning| warning.text.as_str()).collect();
        ListedServer { config: server, variables, missing, notes }
    });
    let others = config.warnings.iter().filter(|warning| {
        let is_of_server =
            ["mcp.", "mcpServers"].iter().any(|table| warning.key.starts_with(table));
        is_of_server && !config.servers.iter().any(|server| is_about(warning, server))
    });
    ListedServers { servers: servers.collect(), others: others.collect() }
}

/// The variables of these texts, and which of them needs a value and has none.
fn named<'a>(
    texts: impl Iterator<Item = &'a String>,
    is_set: &dyn Fn(&str) -> bool,
) -> Vec<(String, bool)> {
    let all = texts.flat_map(|text| {
        config::variables_in(text).into_iter().map(move |name| {
            let without = config::expand(text, |other| (other != name).then(String::new));
            (without.is_err() && !is_set(&name), name)
        })
    });
    all.map(|(is_missing, name)| (name, is_missing)).collect()
}

impl ListedServers<'_> {
    fn words(&self) -> String {
        let mut text = String::new();
        if !self.servers.is_empty() {
            let head =
                ["NAME", "COMMAND OR URL", "SANDBOX", "VARIABLES", "PLACE"].map(str::to_owned);
            let rows = self.servers.iter().map(ListedServer::cells);
            text.push_str(&table(&[head].into_iter().chain(rows).collect::<Vec<_>>()));
        }
        let mut more = Vec::new();
        for ListedServer { config, missing, notes, .. } in &self.servers {
            let unset = missing.iter();
            let unset = unset.map(|name| format!("does not run: the variable {name} is not set"));
            let lines = unset.chain(notes.iter().map(|note| (*note).to_owned()));
            more.extend(lines.map(|line| format!("{} {line}\n", config.name)));
        }
        more.extend(self.others.iter().map(|other| {
            let origin = &other.origin;
            format!("{} {} ({}:{})\n", name_of(other), other.text, origin.file, origin.line)
        }));
        if !text.is_empty() && !more.is_empty() {
            text.push('\n');
        }
        text + &more.concat()
    }

    fn json(&self) -> String {
        self.objects().map(|line| format!("{line}\n")).collect()
    }

    fn objects(&self) -> impl Iterator<Item = Value> {
        let servers = self.servers.iter().map(|server| {
            let ListedServer { config, variables, missing, notes } = server;
            let (program, url) = match &config.place {
                ServerPlace::Program(words) => (Some(words), None),
                ServerPlace::Url(url) => (None, Some(url)),
            };
            json!({
                "name": config.name,
                "runs": missing.is_empty(),
                "command": program,
                "url": url,
                "project": program.map(|_| access(config)),
                "package": config.package.as_ref().map(config::ServerPackage::in_words),
                "hosts": config.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "env": program.map(|_| config.env.iter().map(|(name, _)| name).collect::<Vec<_>>()),
                "headers": url.map(|_| headers(config)),
                "enabled_tools": config.enabled,
                "disabled_tools": config.disabled,
                "startup_timeout_ms": config.start_ms,
                "tool_timeout_ms": config.call_ms,
                "variables": variables,
                "missing": missing,
                "notes": notes,
                "file": config.by.file,
                "line": config.by.line,
            })
        });
        let others = self.others.iter().map(|other| {
            json!({
                "name": name_of(other),
                "runs": false,
                "why": other.text,
                "file": other.origin.file,
                "line": other.origin.line,
            })
        });
        servers.chain(others)
    }
}

impl ListedServer<'_> {
    fn cells(&self) -> [String; 5] {
        let Self { config, variables, missing, .. } = self;
        let mut hosts: Vec<String> = config.hosts.iter().map(ToString::to_string).collect();
        let sees = match &config.place {
            ServerPlace::Program(_) => format!("project {}", access(config)),
            ServerPlace::Url(_) => {
                hosts.insert(0, "its own host".to_owned());
                "no files".to_owned()
            }
        };
        let network = if hosts.is_empty() { "no network".to_owned() } else { hosts.join(" ") };
        let variables = variables.iter().map(|name| match missing.contains(name) {
            true => format!("{name} (not set)"),
            false => name.clone(),
        });
        [
            config.name.clone(),
            on_one_line(&config.place.words().join(" ")),
            format!("{sees}, {network}"),
            variables.collect::<Vec<_>>().join(" "),
            format!("{}:{}", config.by.file, config.by.line),
        ]
    }
}

fn access(config: &McpServerConfig) -> &'static str {
    match config.project {
        ProjectAccess::Reads => "read-only",
        ProjectAccess::Writes => "writable",
    }
}

/// The names of the headers of a server with an address; their values may be secrets.
fn headers(config: &McpServerConfig) -> Value {
    let names = config.env.iter().filter_map(|(_, header)| header.split_once(": "));
    Value::Object(names.map(|(name, _)| (name.to_owned(), "hidden".into())).collect())
}

/// The name of the server that a warning is about.
fn name_of(warning: &ConfigWarning) -> &str {
    warning.key.split_once('.').map_or(warning.key.as_str(), |(_, name)| name)
}
