//! `agentd init`: a commented configuration for this project, trusted from the start.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::{CliContext, TrustFlag, real_dir};
use crate::output::print;
use config::{
    Config, InitError, Layer, PluginFolder, TrustError, TrustStore, init_project,
    trust_claude_files, trusted_files,
};
use prompts::{AllowedTool, PluginPlace, PromptList, PromptOwner, PromptPlaces};
use protocol::hidden::{in_full, on_one_line};
use std::path::Path;

pub(crate) fn main(project: &Path) -> Result<CliExit, CliError> {
    let project = real_dir(project, "the project directory")?;
    let context = CliContext::of_process()?;
    let store = TrustStore::at(context.dirs.trust_file());
    let file = init_project(&project, &store).map_err(not_made)?;
    trust_claude_files(&project, &store).map_err(not_recorded)?;
    let config = context.load(&project, &[], TrustFlag::NotGiven)?;
    let places = PromptPlaces { project, ..PromptPlaces::default() };
    print(&format!(
        "wrote {} and recorded your trust in it\nyou may edit it; after a change it can only tighten \
         settings until you run `agentd init --trust`, or for one run with --trust-project\nyour trust \
         also lets agentd run the commands of `verify.commands` and `format.commands` after edits; by \
         default that is `cargo check` after edits of *.rs files, which runs build scripts\nand it \
         lets `allowed-tools` and commands of the project's slash commands count; see `agentd help \
         commands`\n{}{}",
        file.display(),
        about_hooks(&config),
        rights_of_prompts(&places, PromptOwner::Project),
    ));
    Ok(CliExit::Done)
}

/// Shows the project's files that trust lets count, then records it for what it showed.
pub(crate) fn trust(project: &Path) -> Result<CliExit, CliError> {
    let project = real_dir(project, "the project directory")?;
    let context = CliContext::of_process()?;
    let store = TrustStore::at(context.dirs.trust_file());
    // What cannot be used is an error before any trust is recorded.
    context.load(&project, &[], TrustFlag::Given)?;
    let mut files = Vec::new();
    let mut said = String::new();
    for file in trusted_files(&project) {
        let content =
            config::read_file(&file).map_err(|error| CliError::user(error.to_string()))?;
        let Some(content) = content else { continue };
        let text = String::from_utf8_lossy(&content);
        said.push_str(&format!("== {}\n{}\n\n", file.display(), in_full(text.trim_end())));
        files.push((file, content));
    }
    if files.is_empty() {
        return Err(CliError::user("this project has no settings that need trust")
            .hint("`agentd init` writes a configuration"));
    }
    let places = PromptPlaces { project, ..PromptPlaces::default() };
    said.push_str(&rights_of_prompts(&places, PromptOwner::Project));
    print(&said);
    for (file, content) in &files {
        store.record(file, content).map_err(not_recorded)?;
    }
    print("recorded your trust in these files; a change of one takes it back\n");
    Ok(CliExit::Done)
}

fn not_recorded(error: TrustError) -> CliError {
    CliError::config(chain(&error)).exit(CliExit::Failed)
}

fn not_made(error: InitError) -> CliError {
    let message = chain(&error);
    match error {
        InitError::Exists(_) | InitError::Link { .. } => {
            CliError::user(message).exit(CliExit::Failed)
        }
        InitError::Unwritable { .. } | InitError::Trust(_) => {
            CliError::config(message).exit(CliExit::Failed)
        }
    }
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
                in_full(&hook.in_words())
            )
        })
        .collect()
}

/// Trusts a plugin's folder as it is now; prints what that lets agentd do.
pub(crate) fn trust_plugin(dir: &Path) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let store = TrustStore::at(context.dirs.trust_file());
    let PluginFolder { plugin, files, hooks, servers, warnings } = PluginFolder::read(dir)?;
    let mut said = format!(
        "the plugin {} in {}: {files} files, digest {}\n",
        plugin.name,
        plugin.root.display(),
        plugin.digest.get(..16).unwrap_or_default(),
    );
    for hook in &hooks {
        let command = hook.command.lines().skip(1).collect::<Vec<_>>().join("\n");
        let (file, line, event) = (&hook.by.file, hook.by.line, hook.event.name());
        let command = in_full(&command);
        said.push_str(&format!("agentd runs the {event} hook of {file}:{line}: {command}\n"));
    }
    for server in &servers {
        let (file, line, words) =
            (&server.by.file, server.by.line, on_one_line(&server.in_words()));
        said.push_str(&format!("agentd starts the MCP server of {file}:{line}: {words}\n"));
    }
    let place = PluginPlace { name: plugin.name.clone(), root: plugin.root.clone() };
    let places = PromptPlaces { plugins: vec![place], ..PromptPlaces::default() };
    said.push_str(&rights_of_prompts(&places, PromptOwner::Plugin));
    warnings.iter().for_each(|warning| said.push_str(&format!("{warning}\n")));
    print(&said);
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
            let text = on_one_line(text);
            said.push_str(&format!("/{name} allows {text} in its turn ({path}:{line})\n"));
        }
        for command in prompts::commands(&file.body) {
            let command = on_one_line(command);
            said.push_str(&format!("/{name} runs `{command}` ({path})\n"));
        }
    }
    said
}
