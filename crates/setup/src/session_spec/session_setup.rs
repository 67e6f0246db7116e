//! The start of a conversation: system prompt, offered tools and limits.

use super::SystemTexts;
use super::describe::describe_network;
use crate::agents::AgentCatalog;
use crate::command_env::CommandShell;
use crate::open_failure::OpenFailure;
use crate::sign_in_hosts;
use approval::SessionRules;
use config::{Config, HookConfig};
use protocol::client::RequestFailure;
use protocol::confinement::{Confinement, Level, Profile};
use protocol::content::ToolSpec;
use protocol::context::ContextSettings;
use protocol::hook::{EditHook, SessionHooks};
use protocol::hosts::HostPort;
use protocol::ids::SessionId;
use protocol::judgement::{RuleSet, ToolKind};
use protocol::session::{
    CopyBeforeChange, OfferedTool, SessionBounds, SessionSetup, TASK, TaskUse, ToolListing,
};
use tool_specs::ToolSpec as _;
use tool_specs::tool::tool_search::ToolSearchTool;

pub(super) fn session_setup(
    (id, agents): (&SessionId, &AgentCatalog),
    config: &Config,
    confinement: &Confinement,
    (env, shell): (&[(String, String)], &CommandShell),
) -> Result<SessionSetup, OpenFailure> {
    let model = config.provider.model.clone().ok_or_else(|| {
        OpenFailure::new(RequestFailure::Configuration, config.provider.name.vendor().no_model())
    })?;
    let tools: Vec<OfferedTool> = tool_specs::specs()
        .iter()
        .filter(|spec| {
            spec.caller == tool_specs::Caller::Model && is_available(spec, env, confinement)
        })
        .filter(|spec| spec.name != TASK || !agents.agents.is_empty())
        .map(|spec| offered_tool(spec, shell))
        .map(|tool| with_agents(tool, agents))
        .collect();
    Ok(SessionSetup {
        id: id.clone(),
        project: confinement.project.to_path().display().to_string(),
        model,
        // It follows when all of its parts are known.
        system: String::new(),
        tools,
        max_rounds: config.budget.rounds,
        max_calls: config.budget.calls,
        max_session: SessionBounds {
            calls: config.budget.session_calls,
            cost: None,
            tasks: config.budget.agents.at_once,
            used: TaskUse::default(),
        },
        max_tokens: config.provider.max_tokens,
        parallel: std::thread::available_parallelism()
            .map_or(2, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
        context: ContextSettings {
            max_result_chars: config.tools.max_result_chars.max(config.tools.max_read_chars),
            compaction: config.context.compaction,
        },
        facts: config.provider.facts,
        pinned: config.context.files.clone(),
        hooks: SessionHooks {
            verifiers: hooks(confinement, &config.verify),
            formatters: hooks(confinement, &config.format),
            // They follow when it is known whether the session is a sub-agent's.
            events: Vec::new(),
        },
        mode: config.permissions.mode,
    })
}

/// Limit of one `read` in characters: at most a third of the model's context, at three characters a
/// token.
pub fn read_chars(config: &Config) -> u32 {
    let tools = &config.tools;
    let context = config.provider.facts.context.unwrap_or(u64::MAX);
    let context = u32::try_from(context).unwrap_or(u32::MAX);
    tools.max_read_chars.min(context.max(tools.max_result_chars))
}

/// Commands that run after edits. In a session without a cage none run automatically.
fn hooks(confinement: &Confinement, of: &HookConfig) -> Vec<EditHook> {
    match confinement.level {
        Level::Uncaged => Vec::new(),
        Level::Required | Level::BestEffort => {
            of.commands.iter().map(|known| known.hook.clone()).collect()
        }
    }
}

/// Added to the guidance for edits if PowerShell is installed.
const HERE_STRINGS: &str =
    " In `powershell`, give text full of quotes as a single-quoted here-string (`@'` … `'@`).";

/// The system prompt.
pub(super) fn system_prompt(
    (confinement, signs_in): (&Confinement, &[HostPort]),
    texts: &SystemTexts,
    tools: &[OfferedTool],
) -> String {
    let mut offered = tools.iter().filter(|tool| tool.listing != ToolListing::Denied);
    let has_powershell = offered.any(|tool| tool.spec.name == "powershell");
    let network = describe_network(confinement) + &sign_in_hosts::describe(confinement, signs_in);
    let own = include_str!("../../../../config/system.md")
        .replace("{project}", &confinement.project.to_path().display().to_string())
        .replace("{network}", &network)
        .replace("{powershell}", if has_powershell { HERE_STRINGS } else { "" })
        .replace("{held_back}", &indented(&tool_specs::restrictions(confinement)));
    let mut prompt = own;
    if !texts.instructions.is_empty() {
        prompt.push_str(&format!("\n{}", texts.instructions));
    }
    if !texts.agent.is_empty() {
        prompt.push_str(&format!("\n{}\n", texts.agent.trim_end()));
    }
    if !texts.appended.is_empty() {
        prompt.push_str(&format!("\n{}\n", texts.appended.trim_end()));
    }
    prompt
}

/// Formats sentences as a nested list.
fn indented(sentences: &[String]) -> String {
    let items: Vec<_> = sentences.iter().map(|sentence| format!("  - {sentence}")).collect();
    items.join("\n")
}

/// True if a command can start the program of a tool, found as a shell would find it.
fn is_available(
    spec: &tool_specs::ToolDeclaration,
    env: &[(String, String)],
    confinement: &Confinement,
) -> bool {
    let Some(program) = spec.program else { return true };
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    let mut folders = std::env::split_paths(path.unwrap_or_default());
    folders.any(|folder| sandbox::startable_by_name(confinement, &folder, program))
}

fn offered_tool(spec: &tool_specs::ToolDeclaration, shell: &CommandShell) -> OfferedTool {
    let mut description = spec.told();
    if spec.name == "bash" {
        description.push_str(&format!(" {}", shell.describe()));
    }
    OfferedTool {
        spec: ToolSpec {
            name: spec.name.to_owned(),
            description,
            input_schema: (spec.schema)().to_string(),
        },
        kind: spec.kind,
        copies: match (spec.profile, spec.kind) {
            (Profile::Mutate, _) => CopyBeforeChange::Kept,
            (Profile::Command | Profile::Git, ToolKind::Mutation) => CopyBeforeChange::Compared,
            (_, _) => CopyBeforeChange::None,
        },
        aliases: spec.aliases.iter().map(|alias| alias.name.to_owned()).collect(),
        listing: match spec.found_by {
            Some(words) => ToolListing::Searched { words: words.to_owned() },
            None => ToolListing::Always,
        },
    }
}

/// Hides the tools that rules deny as a whole, but for those of every day: a model knows them anyway, and
/// learns the rule by a call.
pub(super) fn hide_denied(tools: &mut [OfferedTool], rules: &RuleSet) {
    let Ok(rules) = SessionRules::new(rules) else { return };
    for tool in tools {
        let is_of_every_day =
            tool.listing == ToolListing::Always && tool.spec.name != ToolSearchTool::NAME;
        if !is_of_every_day && rules.denies_each_call(&tool.spec.name) {
            tool.listing = ToolListing::Denied;
        }
    }
}

/// The tool that starts sub-agents names them.
fn with_agents(mut tool: OfferedTool, agents: &AgentCatalog) -> OfferedTool {
    if tool.spec.name == TASK {
        tool.spec.description.push_str(&format!(" {}", agents.describe()));
    }
    tool
}

/// The kind of the tool with this name; an unknown name counts as a mutation.
pub fn tool_kind(name: &str) -> ToolKind {
    let spec = tool_specs::specs().iter().find(|spec| spec.name == name);
    spec.map_or(ToolKind::Mutation, |spec| spec.kind)
}
