//! The request that opens a session, from flags, environment and configuration, with the
//! descriptors that follow it.

use crate::cli::{NetFlag, ReplaySpeedFlag, RuleArgs, SessionFlags};
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::{CliContext, TrustFlag, real_dir};
use crate::no_key;
use client::{key_of_command, key_of_file, seal_key};
use config::{Config, CredentialConfig, CredentialKey, KeySource, ProviderName};
use protocol::client::{
    ConversationFlags, ProjectTrust, SessionRequest, SessionStart, Unsandboxed,
};
use protocol::confinement::{FilePath, Network};
use protocol::hosts::HostPort;
use protocol::judgement::{Audience, RuleEffect};
use protocol::provider::PassedFd;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Need for an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyNeed {
    /// Without one nothing can be answered.
    Always,
    /// The session may already have a key, the client is read-only, or the prompt asks no model.
    WhereSet,
}

/// The opening, and the descriptors that its `papers` name.
pub(crate) fn open_request(
    context: &CliContext,
    flags: &SessionFlags,
    start: SessionStart,
    audience: Audience,
    need: KeyNeed,
) -> Result<(SessionRequest, Vec<OwnedFd>), CliError> {
    let named = flags.project.as_deref().unwrap_or(Path::new("."));
    let project = real_dir(named, "the project directory")?;
    let mut added = Vec::new();
    for dir in &flags.add_dir {
        added.push(FilePath::from(real_dir(dir, "the added directory")?));
    }
    let mut settings = settings(flags)?;
    settings.extend(
        flags
            .conversation
            .servers
            .iter()
            .map(|text| (config::HANDED_SERVERS.to_owned(), text.clone())),
    );
    settings.extend(plugin_settings(&flags.conversation.plugin_dir)?);
    for file in &flags.context {
        settings.push(("context.files".to_owned(), pinned(file, &project)?));
    }
    let trust = if flags.trust_project { TrustFlag::Given } else { TrustFlag::NotGiven };
    let config = context.load(&project, &settings, trust)?;
    if config.provider.model.is_none() {
        let words = config.provider.name.vendor().no_model();
        return Err(CliError::config(words)
            .hint("see the vendor's documentation for its models; `[models]` names your own"));
    }
    let key = match (key(context, &config), need) {
        (Err(_), KeyNeed::WhereSet) => None,
        (key, _) => key?,
    };
    let key_variable = match &key {
        Some(KeySource::Variable(variable)) => Some(variable.name),
        Some(KeySource::File { .. } | KeySource::Command { .. }) | None => None,
    };
    let (mut papers, mut descriptors) = passed_fds(context, flags, &config, key)?;
    let network = network(flags);
    if network.unwrap_or(config.network) == Network::Listed {
        for (host, descriptor) in host_keys(&config, need)? {
            papers.push(PassedFd::Credential(host));
            descriptors.push(descriptor);
        }
    }
    for (name, descriptor) in server_variables(context, &config)? {
        papers.push(PassedFd::ServerVariable(name));
        descriptors.push(descriptor);
    }
    let opening = SessionRequest {
        project: FilePath::from(&project),
        named: named_path(context, named, &project).map(FilePath::from),
        added,
        start,
        env: context.passed(key_variable, &config.sandbox.env),
        settings,
        mode: flags.permission_mode,
        network,
        trust: match trust {
            TrustFlag::Given => ProjectTrust::ThisRun,
            TrustFlag::NotGiven => ProjectTrust::AsRecorded,
        },
        audience,
        papers,
        uncaged: match flags.unsafe_no_sandbox {
            true => Unsandboxed::Accepted,
            false => Unsandboxed::Refused,
        },
        conversation: ConversationFlags {
            appended_system: flags.conversation.append_system_prompt.clone(),
            cost_limit: flags.conversation.max_cost,
        },
        agents: flags.conversation.agents.clone(),
        umask: crate::context::own_umask(),
        seat: None,
    };
    Ok((opening, descriptors))
}

/// The path by which a person knows the project, where links are on it: the shell keeps that of the working
/// directory in `PWD`.
fn named_path(context: &CliContext, named: &Path, project: &Path) -> Option<PathBuf> {
    let here = context.environment.absolute("PWD").unwrap_or_default();
    let path: PathBuf = here.join(named).components().collect();
    let leads_there = path.canonicalize().is_ok_and(|real| real == project);
    (path.is_absolute() && path != project && leads_there).then_some(path)
}

/// The plugins that flags name, as settings.
pub(crate) fn plugin_settings(plugins: &[PathBuf]) -> Result<Vec<(String, String)>, CliError> {
    let dirs = plugins.iter().map(|dir| {
        let real = real_dir(dir, "the plugin's directory")?;
        let text = real.to_str().map(str::to_owned).ok_or_else(|| {
            CliError::user(format!("--plugin-dir {}: its name is not UTF-8", dir.display()))
        });
        Ok(("plugins.dirs".to_owned(), text?))
    });
    dirs.collect()
}

/// The name of a pinned file as tools receive it. A missing file is most likely a typo, so it is an
/// error.
fn pinned(file: &Path, project: &Path) -> Result<String, CliError> {
    let named = file.display();
    let failed = |why: String| CliError::user(format!("--context {named}: {why}"));
    let real = file.canonicalize().map_err(|error| failed(error.to_string()))?;
    if !real.is_file() {
        return Err(failed("it is not a regular file".to_owned()));
    }
    let below = real.strip_prefix(project).unwrap_or(&real);
    below.to_str().map(str::to_owned).ok_or_else(|| failed("its name is not UTF-8".to_owned()))
}

/// The network that the flags set.
fn network(flags: &SessionFlags) -> Option<Network> {
    match flags.net {
        Some(NetFlag::Off) => Some(Network::Off),
        Some(NetFlag::On) => Some(Network::On),
        Some(NetFlag::Allow) => Some(Network::Listed),
        None => (!flags.allow_host.is_empty()).then_some(Network::Listed),
    }
}

/// The flags that are settings, as keys and values of the configuration.
fn settings(flags: &SessionFlags) -> Result<Vec<(String, String)>, CliError> {
    let mut settings = Vec::new();
    let mut set = |key: &str, value: &str| settings.push((key.to_owned(), value.to_owned()));
    match (flags.provider, &flags.recording.replay) {
        (Some(ProviderName::Replay), None) => {
            return Err(CliError::user("--provider replay has no recording to play")
                .hint("name one with --replay FILE; --record FILE makes one"));
        }
        (Some(ProviderName::Replay) | None, Some(_)) => set("provider.name", "replay"),
        (Some(provider), Some(_)) => {
            return Err(CliError::user(format!(
                "--replay plays a recording in place of --provider {}",
                provider.as_str()
            ))
            .hint("remove one of the two"));
        }
        (Some(provider), None) => set("provider.name", provider.as_str()),
        (None, None) => {}
    }
    match flags.recording.replay_speed {
        Some(ReplaySpeedFlag::Full) => set("provider.replay_speed", "full"),
        Some(ReplaySpeedFlag::Recorded) => set("provider.replay_speed", "recorded"),
        None => {}
    }
    if let Some(model) = &flags.model {
        set("provider.model", model);
    }
    if let Some(model) = &flags.conversation.fallback_model {
        set("provider.fallback_model", model);
    }
    if let Some(rounds) = flags.conversation.max_turns {
        set("budget.rounds", &rounds.to_string());
    }
    for host in &flags.allow_host {
        set("net.allow", host);
    }
    for host in &flags.allow_web {
        for tool in ["web_fetch", "web_search"] {
            set("permissions.allow", &format!("{tool}:{host}"));
        }
    }
    let RuleArgs { allowed_tools, disallowed_tools } = &flags.rules;
    for (flag, key, effect, texts) in [
        ("--allowed-tools", "permissions.allow", RuleEffect::Allow, allowed_tools),
        ("--disallowed-tools", "permissions.deny", RuleEffect::Deny, disallowed_tools),
    ] {
        for text in texts {
            let rules = approval::rules_of_flag(text, effect).map_err(|error| {
                CliError::user(format!("{flag}: {}", chain(&error)))
                    .hint("`agentd help rules` shows the rules, `agentd tools` the tools")
            })?;
            rules.iter().for_each(|rule| set(key, rule));
        }
    }
    Ok(settings)
}

/// The source of the API key, if this run needs one.
fn key(context: &CliContext, config: &Config) -> Result<Option<KeySource>, CliError> {
    let ProviderName::Vendor(vendor) = config.provider.name else { return Ok(None) };
    match &config.provider.key {
        Some(key) => Ok(Some(key.clone())),
        None if vendor.is_keyless(config.provider.local) => Ok(None),
        None => {
            let is_set =
                |name: &str| context.environment.get(name).is_some_and(|it| !it.is_empty());
            let file = context.dirs.user_file().map(|file| file.display().to_string());
            let missing = format!("there is no key for {}", config.provider.base_url);
            Err(CliError::config(missing).exit(CliExit::KeyRefused).hint(no_key::ways_on(
                vendor,
                is_set,
                file.as_deref(),
            )))
        }
    }
}

fn passed_fds(
    context: &CliContext,
    flags: &SessionFlags,
    config: &Config,
    key: Option<KeySource>,
) -> Result<(Vec<PassedFd>, Vec<OwnedFd>), CliError> {
    let mut papers = Vec::new();
    let mut descriptors = Vec::new();
    let mut add = |paper, descriptor| {
        papers.push(paper);
        descriptors.push(descriptor);
    };
    if let Some(key) = key {
        add(PassedFd::Key, sealed(context, &key)?);
    }
    match (&flags.recording.replay, config.provider.name) {
        (Some(file), _) => {
            let opened = std::fs::File::open(file);
            add(PassedFd::Replay, opened.map_err(|e| unusable("recording", file, &e))?.into());
        }
        (None, ProviderName::Replay) => {
            return Err(CliError::config("provider.name is \"replay\" and there is no recording")
                .hint("name one with --replay FILE"));
        }
        (None, ProviderName::Vendor(_)) => {}
    }
    if let Some(file) = &flags.recording.record {
        // A recording contains the conversation, so only its owner may read it.
        let opened =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
        add(PassedFd::Record, opened.map_err(|e| unusable("recording", file, &e))?.into());
    }
    Ok((papers, descriptors))
}

/// The keys for hosts, each in a sealed memory file. A missing key is an error only if its host is
/// allowed here.
fn host_keys(config: &Config, need: KeyNeed) -> Result<Vec<(HostPort, OwnedFd)>, CliError> {
    let mut keys = Vec::new();
    for credential in &config.credentials {
        match (host_key(credential), need, credential.is_listed(&config.hosts)) {
            (Ok(key), _, _) => keys.push((credential.host.clone(), key)),
            (Err(failure), KeyNeed::Always, true) => return Err(failure),
            (Err(_), KeyNeed::Always | KeyNeed::WhereSet, _) => {}
        }
    }
    Ok(keys)
}

fn host_key(credential: &CredentialConfig) -> Result<OwnedFd, CliError> {
    let failed = |why: String| {
        CliError::config(format!(
            "{}: net.credentials.\"{}\": {why}",
            credential.origin, credential.host
        ))
    };
    match &credential.key {
        CredentialKey::File(path) => key_of_file(path).map_err(|error| failed(chain(&error))),
        CredentialKey::Command(line) => key_of_command(line)
            .map_err(|error| failed(format!("key_command `{line}` gave no key: {error}"))),
    }
}

/// The variables that MCP servers name, each in a sealed memory file: they may be secrets.
fn server_variables(
    context: &CliContext,
    config: &Config,
) -> Result<Vec<(String, OwnedFd)>, CliError> {
    let names: BTreeSet<String> =
        config.servers.iter().flat_map(config::McpServerConfig::variables).collect();
    let set = names.into_iter().filter_map(|name| {
        let value = context.environment.get(&name)?.as_bytes().to_vec();
        Some((name, value))
    });
    set.map(|(name, value)| {
        let failed = |error| CliError::internal(format!("cannot pass {name} on: {error}"));
        Ok((name.clone(), seal_key(&value).map_err(failed)?))
    })
    .collect()
}

/// The key in a sealed memory file.
fn sealed(context: &CliContext, key: &KeySource) -> Result<OwnedFd, CliError> {
    match key {
        KeySource::Variable(variable) => {
            let value = context.environment.get(variable.name).unwrap_or_default();
            seal_key(value.as_bytes().trim_ascii())
                .map_err(|error| CliError::internal(format!("cannot pass the key on: {error}")))
        }
        KeySource::File { path, .. } => key_of_file(path)
            .map_err(|error| CliError::config(chain(&error)).exit(CliExit::KeyRefused)),
        KeySource::Command { line, .. } => key_of_command(line).map_err(|error| {
            CliError::config(format!("provider.key_command `{line}` gave no key: {error}"))
                .exit(CliExit::KeyRefused)
        }),
    }
}

fn unusable(what: &str, file: &Path, error: &io::Error) -> CliError {
    CliError::user(format!("the {what} {} cannot be opened: {error}", file.display()))
}
