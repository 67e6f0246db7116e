//! `agentd mcp`: the MCP servers of a project and of the person's file. `list` shows them, `edit` adds and
//! removes them, `install` fetches the package of one, `import` takes over those of other agents, `login` logs in. `serve` is agentd as a server.

mod check;
mod edit;
mod import;
mod install;
mod list;
mod login;
mod serve;

use crate::cli::{McpCommand, SessionFlags};
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use config::{EditServersError, ProjectAccess, ServerPlace};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The executable that speaks the protocol.
const EXECUTABLE: &str = "agentd-mcp";

pub(crate) fn main(command: McpCommand) -> Result<CliExit, CliError> {
    match command {
        McpCommand::Ls { project, plugin_dir, json } => list::main((&project, &plugin_dir), json),
        McpCommand::Add { name, host, url: Some(url), header, bearer_token_env_var, .. } => {
            let place = ServerPlace::Url(url);
            let env = edit::headers(header, bearer_token_env_var)?;
            edit::add(&edit::server(name, env, &host, (ProjectAccess::Reads, place)))
        }
        McpCommand::Add { name, env, host, write, command, .. } => {
            let project = if write { ProjectAccess::Writes } else { ProjectAccess::Reads };
            let place = ServerPlace::Program(command);
            edit::add(&edit::server(name, edit::variables(env)?, &host, (project, place)))
        }
        McpCommand::Check { names, project, plugin_dir, trust_project, json } => {
            let mut flags =
                SessionFlags { project: Some(project), trust_project, ..SessionFlags::default() };
            flags.conversation.plugin_dir = plugin_dir;
            check::main(flags, &names, json)
        }
        McpCommand::Install { name, package, yes, args } => {
            let consent = match yes {
                true => install::InstallConsent::Given,
                false => install::InstallConsent::Ask,
            };
            install::main(&install::InstallArgs { name, package, consent, args })
        }
        McpCommand::Show { name, project, plugin_dir } => {
            list::show((&project, &plugin_dir), &name)
        }
        McpCommand::Serve(flags) => serve::main(&flags),
        McpCommand::Rm { name } => edit::remove(&name),
        McpCommand::Login { name, scope, client_id, project } => {
            login::log_in(&project, &name, &login::Wishes { scopes: scope, client_id })
        }
        McpCommand::Logout { name } => login::log_out(&name),
        McpCommand::Import { names, from, yes, project } => {
            let act = if yes { import::ImportAct::Add } else { import::ImportAct::Show };
            import::main(&project, from, &names, act)
        }
    }
}

/// Has `agentd-mcp` take the place of this process. Returns only if it cannot.
fn become_agentd_mcp(words: &[&OsStr]) -> Result<Infallible, CliError> {
    let executable = client::sibling_executable(EXECUTABLE)?;
    Err(client::become_program(&executable, words).into())
}

/// The person's configuration file.
fn own_file(context: &CliContext) -> Result<PathBuf, CliError> {
    context.dirs.user_file().ok_or_else(|| {
        CliError::config("there is no place for your configuration file")
            .hint("set HOME or XDG_CONFIG_HOME to an absolute path")
    })
}

fn not_edited(error: &EditServersError) -> CliError {
    let message = chain(error);
    match error {
        EditServersError::Exists { .. } | EditServersError::Missing { .. } => {
            CliError::user(message).exit(CliExit::Failed)
        }
        EditServersError::Io(_) | EditServersError::NoTable(_) => {
            CliError::config(message).exit(CliExit::Failed)
        }
        EditServersError::Unsound(_) => CliError::config(message).hint("the file is as it was"),
    }
}
