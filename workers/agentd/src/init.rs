//! `agentd init`: a commented configuration for this project, trusted from the start.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::{CliContext, TrustFlag, real_dir};
use crate::output::print;
use client::sanitize;
use config::{
    Config, InitDone, InitError, Layer, PluginFolder, TrustStore, ValueOrigin, init_project,
    trust_claude_files,
};
use prompts::{AllowedTool, PluginPlace, PromptList, PromptOwner, PromptPlaces};
use std::path::Path;

pub(crate) fn main(project: &Path) -> Result<CliExit, CliError> {
    let project = real_dir(project, "the project directory")?;
    let context = CliContext::of_process()?;
    let store = TrustStore::at(context.dirs.trust_file());
    // What cannot be read is an error before any trust is recorded.
    context.load(&project, &[], TrustFlag::Given)?;
    let done = init_project(&project, &store).map_err(not_made)?;
    trust_claude_files(&project, &store)
        .map_err(|error| CliError::config(chain(&error)).exit(CliExit::Failed))?;
    let config = context.load(&project, &[], TrustFlag::NotGiven)?;
    let places = PromptPlaces { project, ..PromptPlaces::default() };
    let rights = rights_of_prompts(&places, PromptOwner::Project);
    print(&sanitize(&format!("{}{}{rights}", about_file(&done, &config), about_hooks(&config))));
    Ok(CliExit::Done)
}

fn not_made(error: InitError) -> CliError {
    let message = chain(&error);
    match error {
        InitError::Link { .. } => CliError::user(message).exit(CliExit::Failed),
        InitError::Unwritable { .. } | InitError::Unreadable { .. } | InitError::Trust(_) => {
            CliError::config(message).exit(CliExit::Failed)
        }
    }
}

fn is_of_project(origin: &ValueOrigin) -> bool {
    matches!(origin.layer, Layer::Project | Layer::Local)
}

/// What became of the file, and what the trust in it allows.
fn about_file(done: &InitDone, config: &Config) -> String {
    let mut said = match done {
        InitDone::Written(file) => {
            format!("wrote {} and recorded your trust in it\n", file.display())
        }
        InitDone::Kept(file) => {
            let settings = config.rows.iter().filter(|row| is_of_project(&row.origin));
            let settings = settings
                .filter(|row| row.key != "hooks")
                .map(|row| format!("it sets {} = {} ({})\n", row.key, row.value, row.origin));
            format!(
                "kept {} as it is and recorded your trust in it\n{}",
                file.display(),
                settings.collect::<String>()
            )
        }
    };
    said.push_str(
        "you may edit it; after a change it can only tighten settings until you run `agentd init` \
         again, or for one run with --trust-project\nyour trust also lets agentd run the commands of \
         `verify.commands` and `format.commands` after edits; by default that is `cargo check` after \
         edits of *.rs files, which runs build scripts\nand it lets `allowed-tools` and commands of \
         the project's slash commands count; see `agentd help commands`\n",
    );
    said
}

/// Each hook of the project that runs from now on.
fn about_hooks(config: &Config) -> String {
    let hooks = config.hooks.commands.iter();
    hooks
        .filter(|hook| matches!(hook.layer, Layer::Project | Layer::Local))
        .map(|hook| {
            let (file, line) = (&hook.by.file, hook.by.line);
            format!(
                "your trust also lets agentd run the hook of {file}:{line}: {}\n",
                hook.in_words()
            )
        })
        .collect()
}

/// Trusts a plugin's folder as it is now; prints what that lets agentd do.
pub(crate) fn trust_plugin(dir: &Path) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let store = TrustStore::at(context.dirs.trust_file());
    let PluginFolder { plugin, files, hooks, warnings } = PluginFolder::read(dir)?;
    let mut said = format!(
        "the plugin {} in {}: {files} files, digest {}\n",
        plugin.name,
        plugin.root.display(),
        plugin.digest.get(..16).unwrap_or_default(),
    );
    for hook in &hooks {
        let command = hook.command.lines().skip(1).collect::<Vec<_>>().join("\n");
        let (file, line, event) = (&hook.by.file, hook.by.line, hook.event.name());
        said.push_str(&format!("agentd runs the {event} hook of {file}:{line}: {command}\n"));
    }
    let place = PluginPlace { name: plugin.name.clone(), root: plugin.root.clone() };
    let places = PromptPlaces { plugins: vec![place], ..PromptPlaces::default() };
    said.push_str(&rights_of_prompts(&places, PromptOwner::Plugin));
    warnings.iter().for_each(|warning| said.push_str(&format!("{warning}\n")));
    print(&sanitize(&said));
    store
        .record(&plugin.root, plugin.digest.as_bytes())
        .map_err(|error| CliError::config(chain(&error)).exit(CliExit::Failed))?;
    print("recorded your trust in the plugin; a change of a file takes it back\n");
    Ok(CliExit::Done)
}

/// The rules and commands that slash commands and skills of this owner have, a line each.
fn rights_of_prompts(places: &PromptPlaces, owner: PromptOwner) -> String {
    let mut said = String::new();
    for file in PromptList::read(places).files.iter().filter(|file| file.owner == owner) {
        let (name, path) = (&file.name, file.file.display());
        for AllowedTool { text, line } in &file.allowed_tools {
            said.push_str(&format!("/{name} allows {text} in its turn ({path}:{line})\n"));
        }
        for command in prompts::commands(&file.body) {
            said.push_str(&format!("/{name} runs `{command}` ({path})\n"));
        }
    }
    said
}
