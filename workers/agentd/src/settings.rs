//! `agentd config`: the configuration as a run in this project would see it.

use crate::cli::ConfigCommand;
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::{CliContext, TrustFlag, real_dir};
use crate::output::print;
use config::{Config, ConfigRow, CredentialConfig};
use protocol::hidden::on_screen;
use protocol::judgement::Audience;
use std::path::Path;

pub(crate) fn main(command: &ConfigCommand) -> Result<CliExit, CliError> {
    match command {
        ConfigCommand::Show { origin, project } => {
            let config = load(project)?;
            let line = |row: &ConfigRow| match origin {
                true => format!("{} = {}    # {}\n", row.key, row.value, row.origin),
                false => format!("{} = {}\n", row.key, row.value),
            };
            print(&config.rows.iter().map(line).collect::<String>());
        }
        ConfigCommand::Check { project } => {
            let config = load(project)?;
            // Another project's list, or `:net allow`, may have the host.
            for CredentialConfig { host, origin, .. } in
                config.credentials.iter().filter(|one| !one.is_listed(&config.hosts))
            {
                eprintln!(
                    "agentd: {origin}: `net.credentials.\"{host}\"` is not used here: net.allow \
                     lacks {host}"
                );
            }
            print(&format!("valid, with {} warnings\n", config.warnings.len()));
        }
    }
    Ok(CliExit::Done)
}

/// Loads it, its rules included; warnings go to standard error.
fn load(project: &Path) -> Result<Config, CliError> {
    let project = real_dir(project, "the project directory")?;
    sound(&project)
}

/// Loads and checks the configuration of a project, rules included.
pub(crate) fn sound(project: &Path) -> Result<Config, CliError> {
    let config = sound_as(&CliContext::of_process()?, project, TrustFlag::NotGiven)?;
    for warning in &config.warnings {
        eprintln!("agentd: {}", on_screen(&warning.to_string()));
    }
    Ok(config)
}

/// The same without warnings, for this trust.
pub(crate) fn sound_as(
    context: &CliContext,
    project: &Path,
    trust: TrustFlag,
) -> Result<Config, CliError> {
    sound_with(context, project, &[], trust)
}

/// The same with the settings of flags.
pub(crate) fn sound_with(
    context: &CliContext,
    project: &Path,
    flags: &[(String, String)],
    trust: TrustFlag,
) -> Result<Config, CliError> {
    let config = context.load(project, flags, trust)?;
    approval::SessionRules::new(&config.rule_set(project, Audience::NonInteractive))
        .map_err(|error| CliError::config(chain(&error)))?;
    approval::try_examples(&config.permissions.examples)
        .map_err(|error| CliError::config(chain(&error)))?;
    Ok(config)
}
