//! The hooks of a session: for each configured one the subjects that its matcher covers.

use config::{ConfiguredEventHook, EventHookConfig};
use protocol::confinement::{Confinement, Level};
use protocol::hook::{EventHook, HookEvent};

/// Hooks that run. In a session without a cage none run automatically. The turns of a sub-agent's
/// session end with `SubagentStop`, and its end is no event.
pub(super) fn event_hooks(
    confinement: &Confinement,
    of: &EventHookConfig,
    agent: Option<&str>,
    server_tools: &[String],
) -> Vec<EventHook> {
    let is_for = |known: &&ConfiguredEventHook| match (known.event, agent) {
        (HookEvent::SubagentStop, Some(agent)) => known.covers(agent),
        (HookEvent::SubagentStop, None) => false,
        (HookEvent::Stop | HookEvent::SessionEnd, Some(_)) => false,
        (_, Some(_) | None) => true,
    };
    match confinement.level {
        Level::Uncaged => Vec::new(),
        Level::Required | Level::BestEffort => {
            of.commands.iter().filter(is_for).map(|known| event_hook(known, server_tools)).collect()
        }
    }
}

/// Sentences for the person about hooks that never run.
pub(super) fn notes(confinement: &Confinement, of: &EventHookConfig) -> Vec<String> {
    if confinement.level == Level::Uncaged && !of.commands.is_empty() {
        let count = of.commands.len();
        return vec![format!(
            "{count} configured hooks do not run: this session has no sandbox for them"
        )];
    }
    let idle = of.commands.iter().filter_map(|known| {
        // Which tools MCP servers have is known later.
        let of_servers = known.matcher.contains("mcp");
        let none = event_hook(known, &[]).matched.is_some_and(|names| names.is_empty());
        let none = none && !of_servers;
        none.then(|| {
            let ConfiguredEventHook { event, matcher, by, .. } = known;
            format!(
                "{}:{}: the matcher {matcher:?} of a {} hook fits nothing that agentd has; it never \
                 runs",
                by.file,
                by.line,
                event.name()
            )
        })
    });
    idle.collect()
}

fn event_hook(known: &ConfiguredEventHook, server_tools: &[String]) -> EventHook {
    let of_call = known.event.is_about_call();
    let more = server_tools.iter().filter(|name| of_call && known.covers(name));
    EventHook {
        event: known.event,
        matched: match known.covers_all() {
            true => None,
            false => tool_specs::hook_subjects(known.event, |name| known.covers(name))
                .map(|names| names.into_iter().chain(more.cloned()).collect()),
        },
        command: known.command.clone(),
        broken: known.broken.clone(),
        timeout_ms: known.timeout_ms,
        file: known.by.file.clone(),
    }
}
