//! Calls that the conversation makes by itself: the entry of the configuration that each needs, and the
//! rights and the environment that follow from it. Used by `calls`.

use super::rights;
use super::services::FirstRequest;
use super::state::SessionActorState;
use crate::private_dirs;
use config::{HookConfig, ServerPlace};
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::company_proxy::proxy_variables_for_commands;
use protocol::confinement::{Confinement, FilePath, Network, Profile};
use protocol::hook::{EditHook, HookEvent};
use protocol::judgement::Rule;
use protocol::mcp::LOG_IN_VARIABLE;
use setup::git_signing::AgentGrant;
use setup::server_log_in;
use tools::{ConfiguredRun, InterpretedCall, RunnerProgram};

/// How long a person's first request waits for a server: as long as nobody notices.
const SERVER_WAIT_MS: u64 = 50;
/// How much longer than its own time a script waits for a server.
const MARGIN_MS: u64 = 1000;
/// The policies' name for the client of a server that has an address.
const CLIENT: &str = "AGENTD_MCP";
/// The same for the package of a server.
const PACKAGE: &str = "AGENTD_MCP_PACKAGE";

impl SessionActorState {
    /// The hooks of this profile.
    pub(super) fn hooks(&self, profile: Profile) -> Option<&HookConfig> {
        match profile {
            Profile::Verify => Some(&self.spec.config.verify),
            Profile::Format => Some(&self.spec.config.format),
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
        &self,
        (call, profile): (&Call, Profile),
        confinement: &Confinement,
        signing: Option<&AgentGrant>,
    ) -> Vec<(String, String)> {
        let mut env = self.env_without_proxy((call, profile), signing);
        // Without any network they would lead nowhere, and with a list agentd's proxy uses them.
        if confinement.network == Network::On {
            let proxies = proxy_variables_for_commands(&self.spec.proxy_variables());
            let is_set = |name: &str| env.iter().any(|(known, _)| known == name);
            let unset: Vec<_> = proxies.into_iter().filter(|(name, _)| !is_set(name)).collect();
            env.extend(unset);
        }
        env
    }

    fn env_without_proxy(
        &self,
        (call, profile): (&Call, Profile),
        signing: Option<&AgentGrant>,
    ) -> Vec<(String, String)> {
        if let Some(server) = self.server_of(call) {
            // A missing one was found before the server was due.
            let file = self.spec.log_in_file(server).map(|file| file.display().to_string());
            let log_in = file.map(|file| (LOG_IN_VARIABLE.to_owned(), file));
            return self.server_env(server).unwrap_or_default().into_iter().chain(log_in).collect();
        }
        rights::env(&self.spec, profile, signing)
    }

    /// How long the conversation waits for a command. For a server that starts it hardly waits where a
    /// person is there, whose next request has the tools; a script and a sub-agent would miss them.
    pub(super) fn background_after_ms(&self, call: &Call) -> u64 {
        match (self.server_of(call), self.first_request()) {
            (None, _) => self.spec.config.tools.background_after_ms,
            (Some(_), FirstRequest::ComesAtOnce) => SERVER_WAIT_MS,
            (Some(server), FirstRequest::Waits) => server.config.start_ms + MARGIN_MS,
        }
    }

    /// The configuration entry for a call that the conversation makes by itself: it must have this
    /// command, in this package, for each of these files; a hook at an event must have this time.
    pub(super) fn configured(&self, call: &Call, found: &InterpretedCall) -> Option<Rule> {
        if matches!(found.profile, Profile::Mcp | Profile::McpWrite | Profile::McpRemote) {
            return self.server_of(call).map(|server| server.config.by.clone());
        }
        match found.configured.as_ref()? {
            ConfiguredRun::EventHook { event, command, broken, timeout_ms } => {
                let event = HookEvent::parse(event)?;
                let own = call.origin == CallOrigin::EventHook && event.tool() == found.spec.name;
                let mut known = self.spec.config.hooks.commands.iter().filter(|_| own);
                let known = known.find(|known| {
                    let same = known.event == event && known.command == *command;
                    same && known.timeout_ms == *timeout_ms && known.broken == *broken
                });
                known.map(|known| known.by.clone())
            }
            ConfiguredRun::EditHook { command, package, paths } => {
                let of_edits = call.origin == CallOrigin::EditHook;
                let known = &self.hooks(found.profile).filter(|_| of_edits)?.commands;
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
        &self,
        call: &Call,
        confinement: &mut Confinement,
    ) -> Result<(), ToolResult> {
        let Some(server) = self.server_of(call) else { return Ok(()) };
        private_dirs::set_own(&server.config.name, confinement).map_err(|error| {
            let why = format!("its own directories cannot be made: {error}");
            ToolResult::error(Outcome::Failed, "io", &call.tool, &why, "")
        })?;
        let package = self
            .spec
            .package_dir(server)
            .map_err(|why| ToolResult::error(Outcome::Failed, "io", &call.tool, &why, ""))?;
        confinement.tool_homes.extend(package.map(|dir| (PACKAGE.to_owned(), FilePath::from(dir))));
        if let ServerPlace::Url(_) = server.config.place {
            let client = self.resources.spawner.path_of(RunnerProgram::Mcp);
            confinement.tool_homes.push((CLIENT.to_owned(), FilePath::from(client.as_path())));
        }
        let mut hosts = server.hosts.clone();
        if let Some(file) = self.spec.log_in_file(server)
            && let Some(host) = server_log_in::renewed_at(&file)
        {
            // It has no packages.
            confinement.caches = file.parent().map(FilePath::from);
            hosts.push(host);
        }
        if hosts.is_empty() {
            return Ok(());
        }
        rights::check_hosts(&self.spec, &call.tool)?;
        (confinement.network, confinement.hosts) = (Network::Listed, hosts);
        Ok(())
    }
}
