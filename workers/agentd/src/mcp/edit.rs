//! `agentd mcp add` and `agentd mcp rm`: servers of the person's configuration file.

use super::install::store::remove_packages;
use super::{not_edited, own_file};
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::output::print;
use config::secrets::{Redactor, holds_secret, sounds_secret};
use config::{NewServer, ProjectAccess, ServerPlace, add_servers, remove_server};
use protocol::hosts::HostRule;

/// The variables of `--env`.
pub(super) fn variables(
    env: Vec<(String, Option<String>)>,
) -> Result<Vec<(String, String)>, CliError> {
    let variable = |(name, value): (String, Option<String>)| match value {
        None => Ok((name.clone(), format!("${{{name}}}"))),
        Some(value)
            if !value.contains("${") && (sounds_secret(&name) || holds_secret(&name, &value)) =>
        {
            Err(CliError::user(format!(
                "--env {name}=…: the value may be a secret, and agentd writes none into a file"
            ))
            .hint(format!(
                "give --env {name}: the server gets the value of your variable {name}; \
                 --env {name}='${{OTHER}}' names another variable"
            )))
        }
        Some(value) => Ok((name, value)),
    };
    env.into_iter().map(variable).collect()
}

/// The headers of `--header` and `--bearer-token-env-var`.
pub(super) fn headers(
    named: Vec<(String, String)>,
    bearer: Option<String>,
) -> Result<Vec<(String, String)>, CliError> {
    let is_key = |name: &str| sounds_secret(name) || name.eq_ignore_ascii_case("authorization");
    let secret = named
        .iter()
        .find(|(name, value)| !value.contains("${") && (is_key(name) || holds_secret(name, value)));
    if let Some((name, _)) = secret {
        return Err(CliError::user(format!(
            "--header {name}: the value may be a secret, and agentd writes none into a file"
        ))
        .hint(format!("name a variable: --header '{name}: ${{MY_VARIABLE}}'")));
    }
    let bearer = bearer.map(|name| ("Authorization".to_owned(), format!("Bearer ${{{name}}}")));
    Ok(named.into_iter().chain(bearer).collect())
}

/// The server of the flags.
pub(super) fn server(
    name: String,
    env: Vec<(String, String)>,
    hosts: &[HostRule],
    (project, place): (ProjectAccess, ServerPlace),
) -> NewServer {
    NewServer {
        name,
        place,
        env,
        hosts: hosts.iter().map(ToString::to_string).collect(),
        project,
        enabled: None,
        disabled: Vec::new(),
        start_sec: None,
        call_sec: None,
        package: None,
    }
}

pub(super) fn add(server: &NewServer) -> Result<CliExit, CliError> {
    let known = Redactor::new().map_err(|error| CliError::internal(error.to_string()))?;
    if config::writes_secret(server, &known) {
        return Err(has_secret());
    }
    let context = CliContext::of_process()?;
    let file = own_file(&context)?;
    let lines = add_servers(&file, std::slice::from_ref(server)).map_err(|e| not_edited(&e))?;
    let line = lines.first().copied().unwrap_or_default();
    let place = format!("{}:{line}", file.display());
    print(&format!("added to {place}\n\n{}", server.text()));
    if server.hosts.is_empty() && matches!(server.place, ServerPlace::Program(_)) {
        eprintln!(
            "agentd: it has no network; `hosts` in its table names the hosts that it may reach"
        );
    }
    Ok(CliExit::Done)
}

pub(super) fn has_secret() -> CliError {
    CliError::user("it has a secret, as it seems, and agentd writes none into a file".to_owned())
        .hint("name a variable in its place: `${MY_VARIABLE}` in a header or in --env")
}

pub(super) fn remove(name: &str) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let file = own_file(&context)?;
    let line = remove_server(&file, name).map_err(|error| {
        not_edited(&error).hint("`agentd mcp ls` names the file of each server of a project")
    })?;
    print(&format!("took {name} out of {}:{line}\n", file.display()));
    for dir in remove_packages(&context.dirs, name, None)? {
        print(&format!("removed its package {}\n", dir.display()));
    }
    Ok(CliExit::Done)
}
