//! The rights that a call asks for: which of them go beyond the session's, and its confinement with
//! them. Used by `calls`.

use crate::ssh_agent;
use protocol::call::{Outcome, ToolResult};
use protocol::client::SettingChange;
use protocol::confinement::{Confinement, FilePath, GitSettings, Network, Profile};
use protocol::hosts::HostRule;
use protocol::judgement::ExtraRight;
use protocol::web::{PrivateNetworks, WebAddress};
use setup::forbidden_dirs::keys_below;
use setup::git_signing::AgentGrant;
use setup::session_spec::{SessionSpec, check_allow_list, real_dir};
use std::path::{Path, PathBuf};
use tool_specs::{GitSigning, InterpretedCall, Restriction};

/// The rights that are asked for, for this call alone, and the cage that holds them.
pub(super) async fn asked(
    spec: &SessionSpec,
    found: &InterpretedCall,
    page: Option<&WebAddress>,
) -> Result<(Vec<ExtraRight>, Confinement), ToolResult> {
    let (profile, git) = (found.profile, found.git);
    if let Some(page) = page {
        // Its process has the network and nothing else; the host that it requests is judged.
        let more =
            approval::right_to_read(page, spec.confinement().network, &spec.confinement().hosts);
        let confinement =
            Confinement { profile, network: Network::On, ..spec.confinement().clone() };
        return Ok((more.into_iter().collect(), confinement));
    }
    let (network, hosts, more) = network_of(spec, found)?;
    check_network(spec, found.spec.name, network)?;
    let mut confinement =
        Confinement { profile, network, hosts, git, ..spec.confinement().clone() };
    let mut widens = Vec::new();
    match (network, spec.confinement().network) {
        (Network::On, Network::Off | Network::Listed) => widens.push(ExtraRight::Network),
        (Network::On | Network::Off | Network::Listed, _) => {}
    }
    if !more.is_empty() {
        widens.push(ExtraRight::Hosts(more));
    }
    if let Some(named) = &found.directory {
        let real = resolved(spec, found.spec.name, named).await?;
        let has = [&confinement.project, &confinement.temp];
        if !has.into_iter().chain(&confinement.added).any(|dir| real.starts_with(dir.to_path())) {
            let real = FilePath::from(&real);
            confinement.added.push(real.clone());
            confinement.keys.extend(keys_below(&real));
            widens.push(ExtraRight::Directory(real));
        }
    }
    match git {
        GitSettings::Kept | GitSettings::DirectoryKept => {}
        GitSettings::Writable => widens.push(ExtraRight::GitAdmin),
    }
    match found.signing {
        GitSigning::Off => {}
        GitSigning::ByAgent => widens.push(ExtraRight::GitSign),
    }
    Ok((widens, confinement))
}

/// The means of a call that asks for signatures. Where none can be made, the call fails here, before a
/// person is asked.
pub(super) async fn signing(
    spec: &SessionSpec,
    found: &InterpretedCall,
) -> Result<Option<AgentGrant>, ToolResult> {
    let none = |why: String| {
        let hint = "Nothing was run. Leave `git_signing` out to commit without a signature.";
        let result = ToolResult::error(Outcome::Invalid, "no_signing", found.spec.name, &why, hint);
        ToolResult { summary: "signing is not available here".to_owned(), ..result }
    };
    match found.signing {
        GitSigning::Off => Ok(None),
        GitSigning::ByAgent => {
            let grant = spec.signing().grant().map_err(none)?;
            ssh_agent::checked(grant).await.map(Some).map_err(none)
        }
    }
}

/// The hint in the result of a command that would sign outside of the sandbox.
pub(super) fn unsigned(spec: &SessionSpec, found: &InterpretedCall) -> Option<String> {
    let command = found.command.as_deref().filter(|_| found.signing == GitSigning::Off)?;
    spec.signing().is_missed_by(command).then(|| Restriction::Signing.hint_line()).flatten()
}

/// The environment of a call: with the settings of git that sign, where it may. A hook also learns the
/// permission mode, and its sub-agent; a reader of documents, whether the model sees.
pub(super) fn env(
    spec: &SessionSpec,
    profile: Profile,
    signing: Option<&AgentGrant>,
) -> Vec<(String, String)> {
    let mut env = spec.env().to_vec();
    if let Some(AgentGrant { settings, .. }) = signing {
        env.retain(|(name, _)| name != "GIT_CONFIG_GLOBAL");
        env.push(("GIT_CONFIG_GLOBAL".to_owned(), settings.display().to_string()));
    }
    if matches!(profile, Profile::Hook | Profile::GuardHook) {
        env.push(("AGENTD_HOOK_MODE".to_owned(), spec.rules().mode.name().to_owned()));
        let agent = spec.task().map(|task| task.agent.clone());
        env.extend(agent.map(|agent| ("AGENTD_HOOK_AGENT".to_owned(), agent)));
    }
    if profile == Profile::Document && spec.setup().facts.vision == Some(true) {
        env.push((tool_specs::image_bounds::MODEL_SEES.to_owned(), "yes".to_owned()));
    }
    env
}

/// The page that a call of a web tool requests: the one that it names, or the search page.
pub(super) fn page(
    spec: &SessionSpec,
    found: &InterpretedCall,
) -> Result<Option<WebAddress>, ToolResult> {
    let web = &spec.config().web;
    match (&found.page, found.profile) {
        (None, Profile::Web) => {
            let url = tool_specs::web_url(&web.search_url, web.private);
            let page =
                url.map_err(|why| none(found.spec.name, &format!("web.search_url: {why}")))?;
            Ok(tool_specs::web_address(&page))
        }
        // Its process refuses addresses of private networks, unless the person lets them be reached.
        (Some(page), _)
            if !page.is_named()
                && web.private == PrivateNetworks::Refused
                && !approval::is_host_named(&spec.rules().rules, page) =>
        {
            Err(by_number(found.spec.name, page))
        }
        (page, _) => Ok(page.clone()),
    }
}

/// The result of a call that names a numeric address, where private networks are refused.
fn by_number(tool: &str, page: &WebAddress) -> ToolResult {
    let why = format!("{page} {}", tool_specs::NUMERIC_ADDRESS_REFUSED);
    let hint = format!(
        "Fetch it by the name of its host. A person can name the address in a rule, \
         `web_fetch:{site}` under permissions.allow, and let pages of private networks be fetched: \
         web.private_networks = \"allow\".",
        site = page.site()
    );
    ToolResult::error(Outcome::Invalid, "invalid_arguments", tool, &why, &hint)
}

/// The network of a call, its allow-list if it has one, and the hosts of it that the session does
/// not have.
fn network_of(
    spec: &SessionSpec,
    found: &InterpretedCall,
) -> Result<(Network, Vec<HostRule>, Vec<HostRule>), ToolResult> {
    let session = spec.confinement().network;
    let network = found.network.unwrap_or(session);
    let mut hosts = match session {
        Network::Listed => spec.confinement().hosts.clone(),
        Network::Off | Network::On => Vec::new(),
    };
    // With all of the network there is nothing to add.
    if found.hosts.is_empty() || network == Network::On {
        return Ok((network, hosts, Vec::new()));
    }
    check_allow_list(&SettingChange::Network(Network::Listed), spec.confinement())
        .map_err(|failure| no_list(spec, found.spec.name, &failure.message))?;
    let has = |host: &&HostRule| hosts.iter().any(|own| own.covers(host));
    let more: Vec<HostRule> = found.hosts.iter().filter(|host| !has(host)).cloned().collect();
    hosts.extend(more.iter().cloned());
    Ok((Network::Listed, hosts, more))
}

/// Fails where a call cannot have an allow-list of hosts.
pub(super) fn check_hosts(spec: &SessionSpec, tool: &str) -> Result<(), ToolResult> {
    let listed = SettingChange::Network(Network::Listed);
    check_allow_list(&listed, spec.confinement())
        .map_err(|failure| no_list(spec, tool, &failure.message))
}

/// A call may not ask for more network than the administrator allows, so that no person and no rule can
/// grant it.
fn check_network(spec: &SessionSpec, tool: &str, network: Network) -> Result<(), ToolResult> {
    spec.check_managed(&SettingChange::Network(network)).map_err(|failure| {
        let listed = SettingChange::Network(Network::Listed);
        let hosts = spec
            .check_managed(&listed)
            .and_then(|()| check_allow_list(&listed, spec.confinement()));
        let hint = match hosts {
            Ok(()) => {
                "Nothing was run. Leave `network` out: no user can grant it here. Request the hosts \
                 with `hosts`."
            }
            Err(_) => {
                "Nothing was run. Leave `network` and `hosts` out: no user can grant them here."
            }
        };
        let why = &failure.message;
        let result = ToolResult::error(Outcome::Invalid, "network_managed", tool, why, hint);
        let summary = "the administrator does not allow this network".to_owned();
        ToolResult { summary, ..result }
    })
}

/// The directory with links resolved: the question names the directory that is granted.
async fn resolved(spec: &SessionSpec, tool: &str, named: &str) -> Result<PathBuf, ToolResult> {
    let confinement = spec.confinement();
    let home = confinement.home.as_ref().map(FilePath::to_path);
    let path = match (named.strip_prefix("~/").or(named.strip_prefix("~")), home) {
        (Some(below), Some(home)) if named == "~" || named.starts_with("~/") => home.join(below),
        _ => confinement.project.to_path().join(Path::new(named)),
    };
    // A directory may lie on a disk that does not answer.
    let real = tokio::task::spawn_blocking(move || real_dir(&path, "the directory"));
    let found = real.await.map_err(|error| none(tool, &error.to_string()))?;
    found.map_err(|failure| none(tool, &failure.to_string()))
}

fn none(tool: &str, why: &str) -> ToolResult {
    let hint = "Nothing was run; `directory` takes the absolute path of a directory that exists.";
    ToolResult::error(Outcome::Invalid, "invalid_arguments", tool, why, hint)
}

/// The result of a call that asks for hosts where allow-lists are not possible.
fn no_list(spec: &SessionSpec, tool: &str, why: &str) -> ToolResult {
    let hint = match spec.check_managed(&SettingChange::Network(Network::On)) {
        Ok(()) => "Leave `hosts` out, or ask for `network` on.",
        Err(_) => "Leave `hosts` out.",
    };
    let result = ToolResult::error(Outcome::Invalid, "no_allow_list", tool, why, hint);
    ToolResult { summary: "an allow-list is not available here".to_owned(), ..result }
}
