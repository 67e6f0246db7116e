//! The MCP servers of a session: each configured one with the call that starts it and its environment.

use super::{SessionSpec, event_hooks, server_package};
use crate::writable_paths::writable_paths;
use config::{McpServerConfig, ProjectAccess, ServerPlace, expand, server_host};
use data_encoding::HEXLOWER;
use protocol::confinement::{Confinement, Level};
use protocol::hosts::HostRule;
use protocol::mcp::{SERVER_TOOLS, ServerStart};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The variables of the session that each server gets.
const USUAL: [&str; 9] =
    ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TZ", "USER"];

/// Names and values.
type Variables = [(String, String)];

/// A server that the session starts.
#[derive(Debug, Clone)]
pub struct SessionServer {
    /// Its configuration.
    pub config: McpServerConfig,
    /// The call that starts it.
    pub start: ServerStart,
    /// Its address, if it has one, with values for its variables.
    url: Option<String>,
    /// The hosts that it may reach.
    pub hosts: Vec<HostRule>,
    /// The variables that every server gets.
    usual: Vec<(String, String)>,
    /// Those of the client that may be put in.
    client: Vec<(String, String)>,
}

impl SessionServer {
    /// The environment of its process: with the values of variables that the client passed by
    /// themselves, since they may be secrets.
    ///
    /// # Errors
    /// A variable is not set.
    pub fn env(
        &self,
        passed: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<(String, String)>, String> {
        let value = |name: &str| passed(name).or_else(|| plain(&self.client, name));
        let own =
            self.config.env.iter().map(|(name, text)| Ok((name.clone(), expand(text, value)?)));
        let own = own.collect::<Result<Vec<_>, String>>()?;
        let is_own = |name: &String| own.iter().any(|(other, _)| other == name);
        let usual = self.usual.iter().filter(|(name, _)| !is_own(name)).cloned();
        Ok(usual.chain(own.iter().cloned()).collect())
    }
}

fn plain(variables: &Variables, name: &str) -> Option<String> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

impl SessionSpec {
    /// Its MCP servers, in the order of the configuration.
    pub fn servers(&self) -> &[SessionServer] {
        &self.origin.servers
    }

    /// Has the hooks know these tools of its servers.
    pub fn know_server_tools(&mut self, names: &[String]) {
        let agent = self.task().map(|task| task.agent.clone());
        let (confinement, config) = (&self.confinement, &self.config.hooks);
        let hooks = event_hooks::event_hooks(confinement, config, agent.as_deref(), names);
        self.setup.hooks.events = hooks;
    }

    /// The directory of a server's package, if it has one, after a check of its lock.
    ///
    /// # Errors
    /// The package is gone or another one, or calls of the session may change it.
    pub fn package_dir(&self, server: &SessionServer) -> Result<Option<PathBuf>, String> {
        let writable = writable_paths(&self.confinement);
        server_package::checked_dir(&server.config, &self.origin.dirs, &writable)
    }

    /// The file of the person's log-in at a server that has an address.
    pub fn log_in_file(&self, server: &SessionServer) -> Option<PathBuf> {
        let url = server.url.as_ref()?;
        Some(self.origin.dirs.log_in_file(&server.config.name, url))
    }

    /// The record of the tools of a server that a person approved. A sub-agent in a git worktree has that of the
    /// project.
    pub fn pins_file(&self, server: &SessionServer) -> PathBuf {
        let worktree = self.task().and_then(|task| task.worktree.as_ref());
        let project = match worktree {
            Some(worktree) => worktree.project.0.clone(),
            None => self.confinement.project.to_path(),
        };
        pins_file_in(&self.origin.dirs.state, &project, &server.start.input)
    }
}

/// The file for the server with this start in a project.
fn pins_file_in(state: &Path, project: &Path, start: &str) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update(project.as_os_str().as_bytes());
    hash.update([0]);
    hash.update(start);
    let name = HEXLOWER.encode(&hash.finalize());
    state.join("mcp").join(name + ".json")
}

/// The servers, and sentences for the person about those that do not run.
pub(super) fn servers<'a>(
    configured: impl Iterator<Item = &'a McpServerConfig>,
    confinement: &Confinement,
    (client, command): (&Variables, &Variables),
) -> (Vec<SessionServer>, Vec<String>) {
    let mut configured = configured.peekable();
    if confinement.level == Level::Uncaged && configured.peek().is_some() {
        let count = configured.count();
        let note = format!("{count} MCP servers do not run: this session has no sandbox for them");
        return (Vec::new(), vec![note]);
    }
    let (mut servers, mut notes) = (Vec::new(), Vec::new());
    for config in configured {
        match server(config, (client, command)) {
            Ok(server) => servers.push(server),
            Err(why) => notes.push(format!(
                "{}:{}: the MCP server {} does not run: {why}",
                config.by.file, config.by.line, config.name
            )),
        }
    }
    (servers, notes)
}

fn server(
    config: &McpServerConfig,
    (client, command): (&Variables, &Variables),
) -> Result<SessionServer, String> {
    let words = config.place.words().iter();
    let words = words.map(|word| expand(word, |name| plain(client, name)));
    let words = words.collect::<Result<Vec<_>, _>>().map_err(|why| match config.place {
        ServerPlace::Program(_) => {
            format!(
                "{why} for its command, which is recorded; a secret can only stand in its `env`"
            )
        }
        ServerPlace::Url(_) => format!(
            "{why} for its address, which is recorded; a secret can only stand in its `headers`"
        ),
    })?;
    let usual = command.iter().filter(|(name, _)| USUAL.contains(&name.as_str())).cloned();
    let names: Vec<&String> = config.env.iter().map(|(name, _)| name).collect();
    let mut hosts = config.hosts.clone();
    let url = matches!(config.place, ServerPlace::Url(_)).then(|| words.concat());
    if let Some(url) = &url {
        hosts.push(server_host(url)?);
    }
    let listed: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    // Values of variables are not among them: the arguments are recorded.
    let mut input = json!({
        "env": names, "hosts": listed, "name": config.name, "start_ms": config.start_ms,
    });
    let [reads, writes, remote] = SERVER_TOOLS;
    let tool = match (&config.place, config.project) {
        (ServerPlace::Url(_), _) => {
            input["url"] = url.clone().into();
            remote
        }
        (ServerPlace::Program(_), ProjectAccess::Reads) => {
            input["command"] = words.into();
            reads
        }
        (ServerPlace::Program(_), ProjectAccess::Writes) => {
            input["command"] = words.into();
            writes
        }
    };
    let start = ServerStart { tool: tool.to_owned(), input: input.to_string() };
    Ok(SessionServer {
        config: config.clone(),
        start,
        url,
        hosts,
        usual: usual.collect(),
        client: client.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_and_servers_have_records_of_their_own() {
        let of = |project: &str, start| pins_file_in(Path::new("/s"), Path::new(project), start);
        assert!(of("/p", "{}").starts_with("/s/mcp"));
        assert_ne!(of("/p", "{}"), of("/q", "{}"));
        assert_ne!(of("/p", "{}"), of("/p", "[]"));
    }
}
