//! Builds the specification of a session from its client's request and the configuration. Used by
//! the session opener.

mod change;
mod cost_limit;
mod describe;
mod event_hooks;
mod join_conflicts;
mod mode_note;
mod model;
mod server_package;
mod servers;
mod session_setup;
mod task;
mod task_servers;
mod unsandboxed;

pub use change::check_allow_list;
pub use cost_limit::{check_earlier_costs, check_price};
pub use describe::describe_confinement;
pub use servers::SessionServer;
pub use session_setup::{read_chars, tool_kind};
pub use task::{TaskShare, is_below, session_of};

use crate::cache_paths::project_cache_dir;
use crate::chosen_model::ChosenModel;
use crate::command_env::{CommandShell, command_env};
use crate::forbidden_dirs::{ForbiddenDirs, deny_rules, keys_near, keys_note};
use crate::git_signing::GitSigningSetup;
use crate::open_failure::OpenFailure;
use crate::private_paths;
use crate::project_place::{enclosing_repo_note, git_elsewhere_note, other_owner_note};
use crate::settings::{Effective, Settings};
use crate::skill_links::linked_skills;
use crate::store_setup;
pub use crate::task_bounds::TaskBounds;
use crate::tool_homes::{self, WrittenPaths};
use crate::writable_paths::writable_paths;
use config::{Config, CredentialPaths, Dirs, Environment, Sources, Trust, TrustStore};
use journal::TaskHeader;
use model::SpecOrigin;
use protocol::client::{
    ProjectTrust, RequestFailure, SessionRequest, SessionStart, SettingChange, Unsandboxed,
};
use protocol::company_proxy::PROXY_VARIABLES;
use protocol::confinement::{
    Confinement, FilePath, GitSettings, Level, Profile, Tier, WITHOUT_CAGE,
};
use protocol::error_chain::chain;
use protocol::hosts::HostPort;
use protocol::ids::SessionId;
use protocol::judgement::{Audience, RuleSet};
use protocol::session::SessionSetup;
use protocol::store::StoreSetup;
use sandbox::EnclosingRepo;
use session_setup::session_setup;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All decisions about a session that are made before any of its processes starts.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    /// The session.
    id: SessionId,
    /// The name that a person gave it; empty where none did.
    name: String,
    /// All configuration files and flags together.
    config: Config,
    /// The rules for its calls, and the permission mode.
    rules: RuleSet,
    /// The start of its conversation.
    setup: SessionSetup,
    /// The settings that may change while it is open: the source of those in the other fields.
    settings: Settings,
    /// The cage of a command. Other calls change only its profile.
    confinement: Confinement,
    /// The environment of a command.
    env: Vec<(String, String)>,
    /// Git's signing settings, for calls that may sign.
    signing: GitSigningSetup,
    /// Variables of its workers beside the supervisor's: the location of certificates.
    worker_env: Vec<(String, String)>,
    /// Texts that follow agentd's own in the system prompt.
    texts: SystemTexts,
    /// Setup of the session's store.
    store: StoreSetup,
    /// Directories that no call is given.
    forbidden: ForbiddenDirs,
    /// The request and directories it was built from.
    origin: SpecOrigin,
    /// Hosts that the proxies of its commands sign in to, if the allow-list names them.
    sign_in_hosts: Vec<HostPort>,
    /// Notes for the person, a sentence each: settings of the session's past that no longer hold,
    /// and keys in the project.
    notes: Vec<String>,
    /// Places that its calls are not granted, since keys lie there or a command could have led the way; a
    /// sentence each, which the notes have too.
    left_out: Vec<String>,
}

/// Texts that follow agentd's own in the system prompt.
#[derive(Debug, Clone, Default)]
pub(crate) struct SystemTexts {
    /// The project's instructions, as the store found them.
    instructions: String,
    /// Sentences for the person about them.
    instruction_notes: Vec<String>,
    /// The text of `--append-system-prompt`.
    appended: String,
    /// The instructions of a sub-agent.
    agent: String,
}

/// Properties of the host and the supervisor that a specification depends on.
#[derive(Debug, Clone, Copy)]
pub struct HostContext<'a> {
    /// The supervisor's directories.
    pub dirs: &'a Dirs,
    /// The strongest cage this host allows.
    pub host_tier: Tier,
    /// Where each command gets a cgroup of its own.
    pub cgroup: Option<&'a Path>,
    /// Where sessions' temporary directories are made.
    pub temp_root: &'a Path,
    /// The call that it works for, if it is a sub-agent's session.
    pub task: Option<&'a TaskHeader>,
    /// Directories that calls of any project could write.
    pub written: &'a [FilePath],
}

/// Builds the specification. Reads configuration files and resolves paths; changes nothing.
pub fn build_session_spec(
    id: SessionId,
    opening: &SessionRequest,
    ground: HostContext<'_>,
) -> Result<SessionSpec, OpenFailure> {
    let opening = &task::narrowed(opening, ground.task);
    let project = real_dir(&opening.project.to_path(), "the project directory")?;
    // The configuration is that of the parent's project: a copy of it in a worktree could say less.
    let place = task::workplace(&project, ground.task)?;
    let environment = client_environment(opening);
    let dirs = &client_dirs(ground.dirs, &environment);
    let config = load(opening, dirs, &project, environment)?;
    unsandboxed::check_cage(opening, ground.host_tier, &config)?;
    let mut added = Vec::new();
    for dir in opening.added.iter().map(FilePath::to_path).chain(config.tools.add_dirs.clone()) {
        added.push(FilePath::from(real_dir(&dir, "the added directory")?));
    }
    if let Some(user) = dirs.user_file() {
        config::user_file_is_own(&user, added.iter().map(FilePath::to_path))
            .map_err(|error| OpenFailure::new(RequestFailure::Configuration, chain(&error)))?;
    }
    config
        .key_files_are_apart(added.iter().map(FilePath::to_path))
        .map_err(|error| OpenFailure::new(RequestFailure::Configuration, chain(&error)))?;
    let network = config.network;
    let mut rules = config.rule_set(&place, opening.audience);
    let home = home_dir(&opening.env);
    let mut kept = ForbiddenDirs {
        keys: CredentialPaths::of(&opening.env, home.as_deref()),
        withheld: withheld_dirs(ground.dirs, dirs),
        user_file: dirs.user_file(),
        key_files: config.key_files.iter().map(|key| key.path.clone()).collect(),
        rules: config.permissions.rules.clone(),
        plugins: Vec::new(),
        packages: Vec::new(),
    };
    // Resolved once: with the homes of all users these are thousands of system calls.
    let forbidden = kept.paths_with(kept.keys.places());
    let repo = sandbox::enclosing_repo(&place, home.as_deref());
    let around = match &repo {
        EnclosingRepo::Used(tree) => Some(FilePath::from(tree)),
        EnclosingRepo::LeftOut { .. } | EnclosingRepo::Absent => None,
    };
    let keys = kept.keys_for([&FilePath::from(&place)].into_iter().chain(&around).chain(&added));
    rules.rules.extend(deny_rules(&forbidden));
    approval::SessionRules::new(&rules)
        .and_then(|_| approval::try_examples(&config.permissions.examples))
        .map_err(|error| OpenFailure::new(RequestFailure::Configuration, chain(&error)))?;
    let private = private_paths::session_dir_path(ground.temp_root, &id.0);
    let highest_tier = ground.host_tier.min(config.sandbox.highest_tier);
    let level = cage_level(&config, opening.audience, opening.uncaged);
    let mut confinement = Confinement {
        profile: Profile::Command,
        project: FilePath::from(&place),
        added,
        temp: FilePath::from(private.join(private_paths::TMP)),
        private: match (highest_tier, level) {
            (Tier::A, Level::Required | Level::BestEffort) => {
                private_paths::mounts(&private, home.as_deref())
            }
            (Tier::A | Tier::B | Tier::C, _) => Vec::new(),
        },
        caches: Some(FilePath::from(project_cache_dir(&ground.dirs.state, &project))),
        overlays: None,
        home: home.map(FilePath::from),
        tool_homes: Vec::new(),
        keys,
        named: opening.named.clone(),
        written_elsewhere: ground.written.to_vec(),
        withheld: kept.withheld.clone(),
        network,
        hosts: config.hosts.clone(),
        repository: around.clone(),
        joins: None,
        umask: opening.umask,
        git: GitSettings::Kept,
        highest_tier,
        level,
        cgroup: ground.cgroup.map(FilePath::from),
        limits: config.sandbox.limits,
    };
    let written = WrittenPaths::of(&confinement);
    let mut left_out = Vec::new();
    confinement.tool_homes =
        tool_homes::from_variables(&opening.env, &forbidden, &written, &mut left_out);
    let of_path =
        tool_homes::from_path(&opening.env, &confinement, (&forbidden, &written), &mut left_out);
    confinement.tool_homes.extend(of_path);
    confinement.tool_homes.extend(store_setup::plugin_homes(&config.plugins));
    for plugin in &config.plugins {
        kept.check_added(&plugin.root)?;
    }
    kept.plugins = config.plugins.iter().map(|plugin| plugin.root.clone()).collect();
    // A session without a cage runs no hook.
    if confinement.level != Level::Uncaged {
        for place in writable_paths(&confinement) {
            kept.check_plugins(&place)?;
        }
    }
    kept.packages = server_package::package_dirs(&config.servers, dirs);
    for dir in &confinement.added {
        kept.check_added(&dir.to_path())?;
    }
    check_allow_list(&SettingChange::Network(network), &confinement)?;
    let shell = CommandShell::find(&opening.env, &confinement);
    let env = command_env((&opening.env, &config.sandbox.env), &confinement, &shell);
    let depth = task::depth(&config, ground.task);
    let places = task::places((&confinement, &config), dirs.config.clone());
    let agents = task::catalog(&places, &config, opening.agents.as_deref(), depth)?;
    let mut setup = session_setup((&id, &agents), &config, &confinement, (&env, &shell))?;
    let mut texts = SystemTexts::default();
    if let Some(task) = ground.task {
        task::narrow(task, (&mut rules, &mut confinement), &mut setup, &mut texts);
    }
    session_setup::hide_denied(&mut setup.tools, &rules);
    let agent = ground.task.map(|task| task.agent.as_str());
    setup.hooks.events = event_hooks::event_hooks(&confinement, &config.hooks, agent, &[]);
    setup.system = session_setup::system_prompt((&confinement, &[]), &texts, &setup.tools);
    if opening.start == SessionStart::New {
        check_price(opening.conversation.cost_limit, &setup.model, setup.facts)?;
    }
    let home = confinement.home.as_ref().map(FilePath::to_path);
    let skills = linked_skills((&place, home.as_deref()), &forbidden, &written);
    let store = store_setup::store_setup(
        &id,
        &ground.dirs.state,
        &confinement,
        &config.plugins,
        skills.granted,
    );
    let notes = keys_note(&keys_near(&place, &confinement.keys)).into_iter();
    let notes = notes.chain(kept.own_dirs_note(&project));
    // A sub-agent's worktree is a repository of its own.
    let notes = notes.chain(enclosing_repo_note(&place, &repo));
    let notes = notes.chain(other_owner_note(&place));
    let of_skills = skills.left_out.into_iter().map(|(_, said)| said);
    let notes = notes.chain(of_skills.filter(|_| ground.task.is_none()));
    let notes = notes.chain(git_elsewhere_note(&place, home.as_deref(), &confinement.added));
    let notes = notes.chain(event_hooks::notes(&confinement, &config.hooks));
    // A sub-agent has those that its parent gave it.
    let is_given = |name: &String| ground.task.is_none_or(|task| task.servers.contains(name));
    let configured = config.servers.iter().filter(|server| is_given(&server.name));
    let (servers, of_servers) = servers::servers(configured, &confinement, (&opening.env, &env));
    // The person has seen those of a sub-agent's servers and agents in the parent's session.
    let notes = notes.chain(of_servers.into_iter().filter(|_| ground.task.is_none()));
    let of_agents = agents.notes.iter().filter(|_| ground.task.is_none()).cloned();
    let notes = notes.chain(of_agents).collect();
    let worker_env = worker_env(opening);
    let provider = config.provider.clone();
    let configured = Effective {
        mode: rules.mode,
        network: confinement.network,
        hosts: confinement.hosts.clone(),
        added: confinement.added.clone(),
        rules: rules.rules.clone(),
        turn_rules: Vec::new(),
        model: ChosenModel { chosen_by: None, model: setup.model.clone(), provider },
    };
    Ok(SessionSpec {
        id,
        name: String::new(),
        config,
        rules,
        setup,
        settings: Settings::new(configured),
        confinement,
        env,
        signing: GitSigningSetup::default(),
        worker_env,
        texts,
        store,
        forbidden: kept,
        origin: SpecOrigin {
            opening: opening.clone(),
            dirs: dirs.clone(),
            task: ground.task.cloned().map(Box::new),
            agents: Arc::new(agents),
            servers: servers.into(),
        },
        sign_in_hosts: Vec::new(),
        notes,
        left_out,
    })
}

impl SessionSpec {
    /// The session.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The name that a person gave it; empty where none did.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All configuration files and flags together.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The rules for its calls, and the permission mode.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// The start of its conversation.
    pub fn setup(&self) -> &SessionSetup {
        &self.setup
    }

    /// The cage of a command. Other calls change only its profile.
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// The environment of a command.
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Git's signing settings, for calls that may sign.
    pub fn signing(&self) -> &GitSigningSetup {
        &self.signing
    }

    /// Variables of its workers beside the supervisor's: the location of certificates.
    pub fn worker_env(&self) -> &[(String, String)] {
        &self.worker_env
    }

    /// Setup of the session's store.
    pub fn store(&self) -> &StoreSetup {
        &self.store
    }

    /// Directories that no call is given.
    pub fn forbidden(&self) -> &ForbiddenDirs {
        &self.forbidden
    }

    /// Notes for the person, a sentence each: settings of the session's past that no longer hold,
    /// and keys in the project.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Places that its calls are not granted, since keys lie there or a command could have led the way; a
    /// sentence each, which the notes have too.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Sentences for the person about the project's instructions.
    pub fn instruction_notes(&self) -> &[String] {
        &self.texts.instruction_notes
    }

    /// The client's variables that name a proxy. They may hold its password.
    pub fn proxy_variables(&self) -> Vec<(String, String)> {
        let named = self.origin.opening.env.iter();
        named.filter(|(name, _)| PROXY_VARIABLES.contains(&name.as_str())).cloned().collect()
    }
}

/// A script has no person who could see that its cage is weaker, so it requires the full cage.
fn cage_level(config: &Config, audience: Audience, uncaged: Unsandboxed) -> Level {
    match (uncaged, audience) {
        (Unsandboxed::Accepted, _) => Level::Uncaged,
        (Unsandboxed::Refused, Audience::NonInteractive) => Level::Required,
        (Unsandboxed::Refused, Audience::Person) => config.sandbox.level,
    }
}

/// The client's environment, as far as it was passed.
fn client_environment(opening: &SessionRequest) -> Environment {
    let variables = opening.env.iter();
    let bytes = |value: &String| OsString::from_vec(value.clone().into_bytes());
    variables.map(|(name, value)| (name.clone(), bytes(value))).collect()
}

/// The supervisor's directories, with the user's configuration file and packages where the client has
/// them: the daemon may have been started from another environment.
fn client_dirs(own: &Dirs, environment: &Environment) -> Dirs {
    let (config, data) = match Dirs::resolve(environment) {
        Ok(client) => (client.config, client.data),
        Err(_) => (None, None),
    };
    let config = config.or_else(|| own.config.clone());
    Dirs { config, data: data.or_else(|| own.data.clone()), ..own.clone() }
}

fn load(
    opening: &SessionRequest,
    dirs: &Dirs,
    project: &Path,
    environment: Environment,
) -> Result<Config, OpenFailure> {
    let sources = Sources {
        managed: PathBuf::from(config::MANAGED_FILE),
        user: dirs.user_file(),
        project: project.to_owned(),
        environment,
        flags: flag_settings(opening),
        trust: match opening.trust {
            ProjectTrust::ThisRun => Trust::Trusted,
            ProjectTrust::AsRecorded => Trust::AsRecorded(TrustStore::at(dirs.trust_file())),
        },
        plugin_trust: TrustStore::at(dirs.trust_file()),
        claude_rules: approval::claude_rule,
    };
    Config::load(&sources)
        .map_err(|error| OpenFailure::new(RequestFailure::Configuration, chain(&error)))
}

/// Flags as settings, so that the administrator's file takes precedence over them.
fn flag_settings(opening: &SessionRequest) -> Vec<(String, String)> {
    let mode = opening.mode.map(|mode| ("permissions.mode".to_owned(), mode.name().to_owned()));
    let network = opening.network.map(|network| ("net.mode".to_owned(), network.name().to_owned()));
    opening.settings.iter().cloned().chain(mode).chain(network).collect()
}

/// The real path of a directory.
///
/// # Errors
/// If it does not exist or is no directory; `what` names it in the message.
pub fn real_dir(path: &Path, what: &str) -> Result<PathBuf, OpenFailure> {
    let usage = |text: String| OpenFailure::new(RequestFailure::Usage, text);
    let real = path
        .canonicalize()
        .map_err(|error| usage(format!("{what} {} cannot be used: {error}", path.display())))?;
    match real.is_dir() {
        true => Ok(real),
        false => Err(usage(format!("{what} {} is not a directory", path.display()))),
    }
}

fn home_dir(env: &[(String, String)]) -> Option<PathBuf> {
    let (_, home) = env.iter().find(|(name, _)| name == "HOME")?;
    let home = Path::new(home);
    (home.is_absolute() && home.is_dir()).then(|| home.canonicalize().ok()).flatten()
}

/// Directories of agentd that no call may reach: journal, audit log, socket, token, rules. A
/// missing directory is listed too; otherwise a call could create it, with rules of its own in it.
fn withheld_dirs(dirs: &Dirs, client: &Dirs) -> Vec<FilePath> {
    let own = [Some(&dirs.state), Some(&dirs.runtime), dirs.config.as_ref()];
    let clients = client.config.as_ref().filter(|config| dirs.config.as_ref() != Some(config));
    own.into_iter()
        .chain([clients])
        .flatten()
        .filter_map(|dir| real_path(dir))
        .map(FilePath::from)
        .collect()
}

/// The real path of a directory that may not exist: its nearest existing ancestor with links
/// resolved, then the rest.
fn real_path(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find_map(|above| {
        let (real, rest) = (above.canonicalize().ok()?, dir.strip_prefix(above).ok()?);
        // Joining an empty path would add a slash.
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    })
}

/// The location of the client's own certificates (the daemon's may differ), and the mark of workers
/// without a cage.
fn worker_env(opening: &SessionRequest) -> Vec<(String, String)> {
    let named =
        |(name, _): &&(String, String)| ["SSL_CERT_FILE", "SSL_CERT_DIR"].contains(&name.as_str());
    let uncaged = match opening.uncaged {
        Unsandboxed::Accepted => Some((WITHOUT_CAGE.to_owned(), "1".to_owned())),
        Unsandboxed::Refused => None,
    };
    opening.env.iter().filter(named).cloned().chain(uncaged).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_directory_of_ours_that_is_missing_is_withheld_where_it_would_be_made() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("dotfiles")).unwrap();
        std::os::unix::fs::symlink("dotfiles", real.join(".config")).unwrap();
        let missing = real.join("dotfiles/agentd");
        assert_eq!(real_path(&real.join(".config/agentd")), Some(missing.clone()));
        std::fs::create_dir(&missing).unwrap();
        assert_eq!(real_path(&real.join(".config/agentd")), Some(missing));
    }
}
