//! Calls that the conversation makes by itself: the entry of the configuration that each needs, and the
//! rights and the environment that follow from it. Used by `calls`.

use super::rights;
use super::services::FirstRequest;
use crate::private_dirs;
use config::{HookConfig, ServerPlace};
use launch::spawner::Spawner;
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::company_proxy::proxy_variables_for_commands;
use protocol::confinement::{Confinement, FilePath, Network, Profile};
use protocol::hook::{EditHook, HookEvent};
use protocol::judgement::{Audience, Rule};
use protocol::mcp::{LOG_IN_VARIABLE, PROMPT, RESOURCE, ServerStart};
use protocol::provider::PassedFd;
use setup::git_signing::AgentGrant;
use setup::server_log_in;
use setup::session_spec::{SessionServer, SessionSpec};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use tool_specs::{CallAbout, ConfiguredRun, InterpretedCall, RunnerProgram, ServerToolCall};

/// How long a person's first request waits for a server: as long as nobody notices.
const SERVER_WAIT_MS: u64 = 50;
/// How much longer than its own time a script waits for a server.
const MARGIN_MS: u64 = 1000;
/// The policies' name for the client of a server that has an address.
const CLIENT: &str = "AGENTD_MCP";
/// The same for the package of a server.
const PACKAGE: &str = "AGENTD_MCP_PACKAGE";
/// Most bytes of a variable.
const MOST_BYTES: usize = 64 * 1024;

/// The hooks of this profile.
pub(super) fn hooks(spec: &SessionSpec, profile: Profile) -> Option<&HookConfig> {
    match profile {
        Profile::Verify => Some(&spec.config().verify),
        Profile::Format => Some(&spec.config().format),
        Profile::Probe
        | Profile::Query
        | Profile::Mutate
        | Profile::Command
        | Profile::Hook
        | Profile::GuardHook
        | Profile::Mcp
        | Profile::McpWrite
        | Profile::McpRemote
        | Profile::Session
        | Profile::Broker
        | Profile::Provider
        | Profile::Store
        | Profile::Web
        | Profile::Git
        | Profile::GitLook
        | Profile::Document => None,
    }
}

/// The environment of a call.
pub(super) fn env_of(
    (spec, passed_fds): (&SessionSpec, &[(PassedFd, OwnedFd)]),
    (call, profile): (&Call, Profile),
    confinement: &Confinement,
    signing: Option<&AgentGrant>,
) -> Vec<(String, String)> {
    let mut env = env_without_proxy((spec, passed_fds), (call, profile), signing);
    // Without any network they would lead nowhere, and with a list agentd's proxy uses them.
    if confinement.network == Network::On {
        let proxies = proxy_variables_for_commands(&spec.proxy_variables());
        let is_set = |name: &str| env.iter().any(|(known, _)| known == name);
        let unset: Vec<_> = proxies.into_iter().filter(|(name, _)| !is_set(name)).collect();
        env.extend(unset);
    }
    env
}

fn env_without_proxy(
    (spec, passed_fds): (&SessionSpec, &[(PassedFd, OwnedFd)]),
    (call, profile): (&Call, Profile),
    signing: Option<&AgentGrant>,
) -> Vec<(String, String)> {
    if let Some(server) = server_of(spec, call) {
        // A missing one was found before the server was due.
        let file = spec.log_in_file(server).map(|file| file.display().to_string());
        let log_in = file.map(|file| (LOG_IN_VARIABLE.to_owned(), file));
        return server_env(passed_fds, server)
            .unwrap_or_default()
            .into_iter()
            .chain(log_in)
            .collect();
    }
    rights::env(spec, profile, signing)
}

/// How long the conversation waits for a command. For a server that starts it hardly waits where a
/// person is there, whose next request has the tools; a script and a sub-agent would miss them.
pub(super) fn background_after_ms(spec: &SessionSpec, call: &Call) -> u64 {
    match (server_of(spec, call), first_request(spec)) {
        (None, _) => spec.config().tools.background_after_ms,
        (Some(_), FirstRequest::ComesAtOnce) => SERVER_WAIT_MS,
        (Some(server), FirstRequest::Waits) => server.config.start_ms + MARGIN_MS,
    }
}

/// The configuration entry for a call that the conversation makes by itself: it must have this
/// command, in this package, for each of these files; a hook at an event must have this time.
pub(super) fn configured(spec: &SessionSpec, call: &Call, found: &InterpretedCall) -> Option<Rule> {
    if matches!(found.profile, Profile::Mcp | Profile::McpWrite | Profile::McpRemote) {
        return server_of(spec, call).map(|server| server.config.by.clone());
    }
    match found.configured.as_ref()? {
        ConfiguredRun::EventHook { event, command, broken, timeout_ms } => {
            let event = HookEvent::parse(event)?;
            let own = call.origin == CallOrigin::EventHook && event.tool() == found.spec.name;
            let mut known = spec.config().hooks.commands.iter().filter(|_| own);
            let known = known.find(|known| {
                let same = known.event == event && known.command == *command;
                same && known.timeout_ms == *timeout_ms && known.broken == *broken
            });
            known.map(|known| known.by.clone())
        }
        ConfiguredRun::EditHook { command, package, paths } => {
            let of_edits = call.origin == CallOrigin::EditHook;
            let known = &hooks(spec, found.profile).filter(|_| of_edits)?.commands;
            let same = |hook: &EditHook| hook.command == *command && hook.package == *package;
            let mut by = paths.iter().map(|path| {
                known.iter().find(|known| same(&known.hook) && known.hook.is_for(path))
            });
            let first = by.next()??.by.clone();
            by.all(|other| other.is_some()).then_some(first)
        }
        // A server's entry is that of its start.
        ConfiguredRun::RemoteServer { .. } => None,
    }
}

/// Gives a server directories of its own and the network of its configuration, whatever the session has.
pub(super) fn confine_server(
    (spec, spawner): (&SessionSpec, &Spawner),
    call: &Call,
    confinement: &mut Confinement,
) -> Result<(), ToolResult> {
    let Some(server) = server_of(spec, call) else { return Ok(()) };
    private_dirs::set_own(&server.config.name, confinement).map_err(|error| {
        let why = format!("its own directories cannot be made: {error}");
        ToolResult::error(Outcome::Failed, "io", &call.tool, &why, "")
    })?;
    let package = spec
        .package_dir(server)
        .map_err(|why| ToolResult::error(Outcome::Failed, "io", &call.tool, &why, ""))?;
    confinement.tool_homes.extend(package.map(|dir| (PACKAGE.to_owned(), FilePath::from(dir))));
    if let ServerPlace::Url(_) = server.config.place {
        let client = spawner.path_of(RunnerProgram::Mcp);
        confinement.tool_homes.push((CLIENT.to_owned(), FilePath::from(client.as_path())));
    }
    let mut hosts = server.hosts.clone();
    if let Some(file) = spec.log_in_file(server)
        && let Some(host) = server_log_in::renewed_at(&file)
    {
        // It has no packages.
        confinement.caches = file.parent().map(FilePath::from);
        hosts.push(host);
    }
    if hosts.is_empty() {
        return Ok(());
    }
    rights::check_hosts(spec, &call.tool)?;
    (confinement.network, confinement.hosts) = (Network::Listed, hosts);
    Ok(())
}

/// The place of the server that a call starts.
pub(super) fn place_of(spec: &SessionSpec, call: &Call) -> Option<usize> {
    let is_it = |server: &SessionServer| {
        let ServerStart { tool, input } = &server.start;
        *tool == call.tool && *input == call.input
    };
    let of_start = call.origin == CallOrigin::ServerStart;
    spec.servers().iter().position(is_it).filter(|_| of_start)
}

/// The server of the session that a call starts.
pub(super) fn server_of<'a>(spec: &'a SessionSpec, call: &Call) -> Option<&'a SessionServer> {
    spec.servers().get(place_of(spec, call)?)
}

/// The environment of a server. The variables that clients passed are read here and nowhere else.
pub(super) fn server_env(
    passed_fds: &[(PassedFd, OwnedFd)],
    server: &SessionServer,
) -> Result<Vec<(String, String)>, String> {
    server.env(|name| {
        let is_it = |kind: &PassedFd| matches!(kind, PassedFd::ServerVariable(it) if it == name);
        let (_, file) = passed_fds.iter().find(|(kind, _)| is_it(kind))?;
        value_of(file)
    })
}

/// Whether the session's first request waits for its servers: no person would miss their tools later.
pub(super) fn first_request(spec: &SessionSpec) -> FirstRequest {
    match (spec.task(), spec.rules().audience) {
        (None, Audience::Person) => FirstRequest::ComesAtOnce,
        (Some(_), _) | (None, Audience::NonInteractive) => FirstRequest::Waits,
    }
}

/// Checks that a sub-agent was given the server's tool that it calls. A person may name its resources and
/// prompts.
///
/// # Errors
/// The tool.
pub(super) fn check_server_tool(
    spec: &SessionSpec,
    call: &Call,
    about: Option<&CallAbout>,
) -> Result<(), String> {
    let Some(CallAbout::Server(ServerToolCall { tool, .. })) = about else { return Ok(()) };
    let is_named_by_person = call.origin == CallOrigin::PromptPart
        && (tool.ends_with(RESOURCE) || tool.ends_with(PROMPT));
    if is_named_by_person || spec.has_server_tool(tool) {
        return Ok(());
    }
    Err(format!("this sub-agent was not given the tool {tool}"))
}
/// The text in a sealed memory file.
fn value_of(file: &OwnedFd) -> Option<String> {
    let file = File::from(file.try_clone().ok()?);
    let mut bytes = vec![0; MOST_BYTES];
    let length = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(length);
    String::from_utf8(bytes).ok()
}
