//! `agentd mcp login` and `agentd mcp logout`. The log-in itself is the work of `agentd-mcp`, which takes the
//! place of this process: no token comes here.

use super::become_agentd_mcp;
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::{CliContext, TrustFlag, real_dir};
use crate::settings::sound_as;
use config::{McpServerConfig, ServerPlace, expand, server_host};
use std::ffi::OsStr;
use std::path::Path;

/// The flags of a log-in.
pub(super) struct Wishes {
    pub(super) scopes: Vec<String>,
    pub(super) client_id: Option<String>,
}

pub(super) fn log_in(project: &Path, name: &str, wishes: &Wishes) -> Result<CliExit, CliError> {
    let project = real_dir(project, "the project directory")?;
    let context = CliContext::of_process()?;
    let config = sound_as(&context, &project, TrustFlag::NotGiven)?;
    let server = config.servers.iter().find(|server| server.name == name);
    let server = server.ok_or_else(|| {
        CliError::user(format!("there is no MCP server {name}"))
            .hint("`agentd mcp ls` lists the servers, `agentd mcp add --url` adds one")
    })?;
    let passed = context.passed(None, &config.sandbox.env);
    let value =
        |name: &str| passed.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let url = address(server, value)?;
    context.writable_state()?;
    let file = context.dirs.log_in_file(name, &url);
    let first = [OsStr::new("--login"), name.as_ref(), url.as_ref(), file.as_os_str()];
    let scopes = wishes.scopes.iter().flat_map(|scope| ["--scope", scope]);
    let client = wishes.client_id.iter().flat_map(|id| ["--client-id", id]);
    let more = scopes.chain(client).map(OsStr::new);
    let never = become_agentd_mcp(&first.into_iter().chain(more).collect::<Vec<_>>())?;
    match never {}
}

/// The address of a server that a person may log in at.
fn address(
    server: &McpServerConfig,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, CliError> {
    let place = format!("{} ({}:{})", server.name, server.by.file, server.by.line);
    let ServerPlace::Url(url) = &server.place else {
        return Err(CliError::user(format!(
            "{place} is a program, and a log-in is for a server with a `url`"
        )));
    };
    let has_token = |(_, header): &(String, String)| {
        header.split(':').next().is_some_and(|name| name.eq_ignore_ascii_case("authorization"))
    };
    if server.env.iter().any(has_token) {
        return Err(CliError::user(format!("{place} has a token in its configuration")).hint(
            "take `bearer_token_env_var` or the header `Authorization` out of it to log in",
        ));
    }
    let url = expand(url, value).and_then(|url| server_host(&url).map(|_| url));
    url.map_err(|why| CliError::config(format!("{place}: {why}")))
}

pub(super) fn log_out(name: &str) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let files = context.dirs.log_ins_of(name).map_err(|error| CliError::config(chain(&error)))?;
    if files.is_empty() {
        return Err(
            CliError::user(format!("you are not logged in to {name}")).exit(CliExit::Failed)
        );
    }
    let files = files.iter().map(|file| file.as_os_str());
    let words: Vec<&OsStr> = [OsStr::new("--logout")].into_iter().chain(files).collect();
    let never = become_agentd_mcp(&words)?;
    match never {}
}
