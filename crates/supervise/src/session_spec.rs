//! Builds the specification of a session from its client's request and the configuration. Used by
//! the session opener.

mod join_conflicts;
mod model;
mod unsandboxed;

use crate::clean_settings::{CopiedSettings, SettingsOwner};
use crate::command_env::{CommandShell, command_env};
use crate::error_chain::chain;
use crate::forbidden_dirs::ForbiddenDirs;
use crate::git_signing::GitSigningSetup;
use crate::private_dirs;
use crate::project_caches;
use crate::sign_in;
use crate::store_dirs;
use crate::tool_homes;
use config::{
    Config, CredentialPaths, Dirs, Environment, HookConfig, KeySource, ProviderName, Sources,
    Trust, TrustStore,
};
use model::SpecOrigin;
use protocol::client::{Change, FailedKind, Opening, ProjectTrust, Uncaged};
use protocol::confinement::{
    Confinement, FilePath, GitSettings, Level, Network, Profile, Tier, WITHOUT_CAGE,
};
use protocol::content::ToolSpec;
use protocol::hosts::HostPort;
use protocol::ids::SessionId;
use protocol::judgement::{Audience, Mode, RuleSet, ToolKind};
use protocol::provider::{Auth, Server, Source};
use protocol::session::{Copies, Hook, OfferedTool, SessionSetup};
use protocol::store::StoreSetup;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Why a session cannot be opened as requested, for the client.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct OpenFailure {
    /// Its kind.
    pub kind: FailedKind,
    /// The message, with a remedy.
    pub message: String,
}

impl OpenFailure {
    pub(crate) fn new(kind: FailedKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl From<&journal::OpenError> for OpenFailure {
    /// Converts an error of the journal.
    fn from(error: &journal::OpenError) -> Self {
        let kind = match error {
            journal::OpenError::Held { .. } => FailedKind::Held,
            journal::OpenError::Read(
                journal::ReadError::Missing { .. } | journal::ReadError::NoHeader { .. },
            ) => FailedKind::NotFound,
            journal::OpenError::Read(_)
            | journal::OpenError::ReadOnlyDisk { .. }
            | journal::OpenError::Mend { .. } => FailedKind::Disk,
        };
        Self::new(kind, chain(error))
    }
}

/// Everything that is decided about a session before any process of it starts.
#[derive(Debug, Clone)]
pub(crate) struct SessionSpec {
    pub(crate) id: SessionId,
    pub(crate) config: Config,
    pub(crate) rules: RuleSet,
    pub(crate) setup: SessionSetup,
    pub(crate) source: Source,
    /// The cage of a command. Other calls change only its profile.
    pub(crate) confinement: Confinement,
    /// The environment of a command.
    pub(crate) env: Vec<(String, String)>,
    /// Git's signing settings, for calls that may sign.
    pub(crate) signing: GitSigningSetup,
    pub(crate) network: Network,
    pub(crate) mode: Mode,
    /// Variables of its workers beside the supervisor's: the location of certificates.
    pub(crate) worker_env: Vec<(String, String)>,
    /// Instructions that follow the system prompt, as the store found them.
    pub(crate) instructions: String,
    /// Setup of the session's store.
    pub(crate) store: StoreSetup,
    /// Directories that no call is given.
    pub(crate) forbidden: ForbiddenDirs,
    /// The file for rules that a person gives permanently.
    pub(crate) user_file: Option<PathBuf>,
    /// The request and directories it was built from.
    origin: SpecOrigin,
    /// Hosts that the proxies of its commands sign in to, if the allow-list names them.
    pub(crate) sign_in_hosts: Vec<HostPort>,
    /// Notes for the person, a sentence each: settings of the session's past that no longer hold,
    /// and keys in the project.
    pub(crate) notes: Vec<String>,
}

/// Properties of the host and the supervisor that a specification depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostContext<'a> {
    pub(crate) dirs: &'a Dirs,
    /// The strongest cage this host allows.
    pub(crate) host_tier: Tier,
    /// Where each command gets a cgroup of its own.
    pub(crate) cgroup: Option<&'a Path>,
    /// Where sessions' temporary directories are made.
    pub(crate) temp_root: &'a Path,
}

/// Builds the specification. Reads configuration files and resolves paths; changes nothing.
pub(crate) fn build_session_spec(
    id: SessionId,
    opening: &Opening,
    ground: HostContext<'_>,
) -> Result<SessionSpec, OpenFailure> {
    let project = real_dir(&opening.project.to_path(), "the project directory")?;
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
            .map_err(|error| OpenFailure::new(FailedKind::Configuration, chain(&error)))?;
    }
    config
        .key_files_are_apart(added.iter().map(FilePath::to_path))
        .map_err(|error| OpenFailure::new(FailedKind::Configuration, chain(&error)))?;
    let (mode, network) = (config.permissions.mode, config.network);
    let mut rules = config.rule_set(&project, opening.audience);
    let home = home_dir(&opening.env);
    let kept = ForbiddenDirs {
        keys: CredentialPaths::of(&opening.env, home.as_deref()),
        withheld: withheld_dirs(ground.dirs, dirs),
        user_file: dirs.user_file(),
        key_files: config.key_files.iter().map(|key| key.path.clone()).collect(),
    };
    rules.rules.extend(kept.deny_rules());
    approval::SessionRules::new(&rules)
        .and_then(|_| approval::try_examples(&config.permissions.examples))
        .map_err(|error| OpenFailure::new(FailedKind::Configuration, chain(&error)))?;
    let private = private_dirs::session_dir_path(ground.temp_root, &id.0);
    let highest_tier = ground.host_tier.min(config.sandbox.highest_tier);
    let level = cage_level(&config, opening.audience, opening.uncaged);
    let mut confinement = Confinement {
        profile: Profile::Command,
        project: FilePath::from(&project),
        added,
        temp: FilePath::from(private.join(private_dirs::TMP)),
        private: match (highest_tier, level) {
            (Tier::A, Level::Required | Level::BestEffort) => {
                private_dirs::mounts(&private, home.as_deref())
            }
            (Tier::A | Tier::B | Tier::C, _) => Vec::new(),
        },
        caches: Some(FilePath::from(project_caches::project_cache_dir(
            &ground.dirs.state,
            &project,
        ))),
        overlays: None,
        home: home.map(FilePath::from),
        tool_homes: Vec::new(),
        keys: kept.keys_at(&project),
        withheld: kept.withheld.clone(),
        network,
        hosts: config.hosts.clone(),
        git: GitSettings::Kept,
        highest_tier,
        level,
        cgroup: ground.cgroup.map(FilePath::from),
        limits: config.sandbox.limits,
    };
    let written = writable_paths(&confinement);
    confinement.tool_homes = tool_homes::from_variables(&opening.env, &kept, &written);
    let of_path = tool_homes::from_path(&opening.env, &confinement, &kept, &written);
    confinement.tool_homes.extend(of_path);
    for dir in &confinement.added {
        kept.check_added(&dir.to_path())?;
    }
    check_allow_list(&Change::Network(network), &confinement)?;
    let shell = CommandShell::find(&opening.env, &confinement);
    let env = command_env((&opening.env, &config.sandbox.env), &confinement, &shell);
    let setup = session_setup(&id, &config, &confinement, (&env, &shell))?;
    let store = store_dirs::store_setup(&id, &ground.dirs.state, &confinement);
    let source = source(&config);
    let notes = kept.keys_note(&project).into_iter().chain(kept.own_dirs_note(&project)).collect();
    let (user_file, worker_env) = (dirs.user_file(), worker_env(opening));
    Ok(SessionSpec {
        id,
        config,
        rules,
        setup,
        source,
        confinement,
        env,
        signing: GitSigningSetup::default(),
        network,
        mode,
        worker_env,
        instructions: String::new(),
        store,
        forbidden: kept,
        user_file,
        origin: SpecOrigin { opening: opening.clone(), dirs: dirs.clone() },
        sign_in_hosts: Vec::new(),
        notes,
    })
}

/// A script has no person who could see that its cage is weaker, so it requires the full cage.
fn cage_level(config: &Config, audience: Audience, uncaged: Uncaged) -> Level {
    match (uncaged, audience) {
        (Uncaged::Accepted, _) => Level::Uncaged,
        (Uncaged::Refused, Audience::Nobody) => Level::Required,
        (Uncaged::Refused, Audience::Person) => config.sandbox.level,
    }
}

/// The client's environment, as far as it was passed.
fn client_environment(opening: &Opening) -> Environment {
    let variables = opening.env.iter();
    let bytes = |value: &String| OsString::from_vec(value.clone().into_bytes());
    variables.map(|(name, value)| (name.clone(), bytes(value))).collect()
}

/// The supervisor's directories, with the user's configuration file where the client has it: the
/// daemon may have been started from another environment.
fn client_dirs(own: &Dirs, environment: &Environment) -> Dirs {
    let config = Dirs::resolve(environment).ok().and_then(|dirs| dirs.config);
    Dirs { config: config.or_else(|| own.config.clone()), ..own.clone() }
}

fn load(
    opening: &Opening,
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
    };
    Config::load(&sources)
        .map_err(|error| OpenFailure::new(FailedKind::Configuration, chain(&error)))
}

/// Flags as settings, so that the administrator's file takes precedence over them.
fn flag_settings(opening: &Opening) -> Vec<(String, String)> {
    let mode = opening.mode.map(|mode| ("permissions.mode".to_owned(), mode.name().to_owned()));
    let network = opening.network.map(|network| ("net.mode".to_owned(), network.name().to_owned()));
    opening.settings.iter().cloned().chain(mode).chain(network).collect()
}

pub(crate) fn real_dir(path: &Path, what: &str) -> Result<PathBuf, OpenFailure> {
    let usage = |text: String| OpenFailure::new(FailedKind::Usage, text);
    let real = path
        .canonicalize()
        .map_err(|error| usage(format!("{what} {} cannot be used: {error}", path.display())))?;
    match real.is_dir() {
        true => Ok(real),
        false => Err(usage(format!("{what} {} is not a directory", path.display()))),
    }
}

fn source(config: &Config) -> Source {
    match config.provider.name {
        ProviderName::Vendor(vendor) => Source::Server(Server {
            api: vendor.dialect,
            base_url: config.provider.base_url.clone(),
            auth: config.provider.key.as_ref().map_or(Auth::Keyless, KeySource::auth),
            headers: config.provider.headers.clone(),
            effort: config.provider.effort,
        }),
        ProviderName::Replay => Source::Replay(config.provider.replay_speed),
    }
}

fn session_setup(
    id: &SessionId,
    config: &Config,
    confinement: &Confinement,
    (env, shell): (&[(String, String)], &CommandShell),
) -> Result<SessionSetup, OpenFailure> {
    let model = config.provider.model.clone().ok_or_else(|| {
        OpenFailure::new(FailedKind::Configuration, config.provider.name.vendor().no_model())
    })?;
    let tools: Vec<OfferedTool> = tools::specs()
        .iter()
        .filter(|spec| spec.caller == tools::Caller::Model && is_available(spec, env, confinement))
        .map(|spec| offered_tool(spec, shell, confinement))
        .collect();
    Ok(SessionSetup {
        id: id.clone(),
        project: confinement.project.to_path().display().to_string(),
        model,
        system: system_prompt((confinement, &[]), "", &tools),
        tools,
        max_rounds: config.budget.rounds,
        max_calls: config.budget.calls,
        max_session_calls: config.budget.session_calls,
        max_tokens: config.provider.max_tokens,
        parallel: std::thread::available_parallelism()
            .map_or(2, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
        max_result_chars: config.tools.max_result_chars.max(config.tools.max_read_chars),
        context: config.provider.facts.context,
        pinned: config.context.files.clone(),
        verifiers: hooks(confinement, &config.verify),
        formatters: hooks(confinement, &config.format),
    })
}

/// Limit of one `read` in characters: at most a third of the model's context, at three characters a
/// token.
pub(crate) fn read_chars(config: &Config) -> u32 {
    let tools = &config.tools;
    let context = config.provider.facts.context.unwrap_or(u64::MAX);
    let context = u32::try_from(context).unwrap_or(u32::MAX);
    tools.max_read_chars.min(context.max(tools.max_result_chars))
}

/// Commands that run after edits. In a session without a cage none run automatically.
fn hooks(confinement: &Confinement, of: &HookConfig) -> Vec<Hook> {
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
fn system_prompt(
    (confinement, signs_in): (&Confinement, &[HostPort]),
    foreword: &str,
    tools: &[OfferedTool],
) -> String {
    let has_powershell = tools.iter().any(|tool| tool.spec.name == "powershell");
    let network = describe_network(confinement) + &sign_in::describe(confinement, signs_in);
    let own = include_str!("../../../config/system.md")
        .replace("{project}", &confinement.project.to_path().display().to_string())
        .replace("{network}", &network)
        .replace("{powershell}", if has_powershell { HERE_STRINGS } else { "" })
        .replace("{held_back}", &indented(&tools::restrictions(confinement)));
    match foreword {
        "" => own,
        foreword => format!("{own}\n{foreword}"),
    }
}

/// Formats sentences as a nested list.
fn indented(sentences: &[String]) -> String {
    let items: Vec<_> = sentences.iter().map(|sentence| format!("  - {sentence}")).collect();
    items.join("\n")
}

/// Describes the network of a command, for the model and for questions.
fn describe_network(confinement: &Confinement) -> String {
    if confinement.level == Level::Uncaged {
        return "on, whatever was set: without a sandbox it cannot be blocked".to_owned();
    }
    match (confinement.network, confinement.hosts.as_slice()) {
        (Network::Off, _) => "off".to_owned(),
        (Network::On, _) => "on".to_owned(),
        (Network::Listed, []) => "off (its list of allowed hosts is empty)".to_owned(),
        (Network::Listed, hosts) => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!("only {}, through a proxy", hosts.join(", "))
        }
    }
}

/// Checks that this cage can enforce the network that a change asks for.
///
/// # Errors
/// For an allow-list without a network namespace.
pub(crate) fn check_allow_list(
    change: &Change,
    confinement: &Confinement,
) -> Result<(), OpenFailure> {
    let listed = matches!(change, Change::Network(Network::Listed) | Change::Host(_));
    match confinement.highest_tier {
        Tier::B | Tier::C if listed => Err(OpenFailure::new(
            FailedKind::SandboxUnavailable,
            "an allow-list of hosts needs a network namespace (tier A), and this session's \
             commands \
             have less: switch the network off, or on as a whole. `agentd doctor` shows what this \
             machine allows",
        )),
        Tier::A | Tier::B | Tier::C => Ok(()),
    }
}

/// Paths that calls of the session can write, including the overlays that each command gets.
fn writable_paths(confinement: &Confinement) -> Vec<PathBuf> {
    let overlays =
        confinement.caches.as_ref().map(|kept| project_caches::overlays_dir(&kept.to_path()));
    confinement.written().into_iter().chain(overlays).collect()
}

impl SessionSpec {
    /// Sets whether a person can be asked, and thereby whether a weaker cage is accepted.
    pub(crate) fn set_audience(&mut self, audience: Audience) {
        self.rules.audience = audience;
        let uncaged = self.origin.opening.uncaged;
        self.confinement.level = cage_level(&self.config, audience, uncaged);
    }

    /// Sets where its private directories are, if they could not be made at the usual path.
    pub(crate) fn set_private_dirs(&mut self, made: &Path) {
        let wanted = self.confinement.temp.to_path();
        private_dirs::set_location(made, &mut self.confinement);
        let temp = self.confinement.temp.to_path();
        if temp == wanted {
            return;
        }
        let (wanted, path) = (wanted.display().to_string(), temp.display().to_string());
        let described = self.setup.tools.iter_mut().map(|tool| &mut tool.spec.description);
        for text in described.chain(self.env.iter_mut().map(|(_, value)| value)) {
            *text = text.replace(&wanted, &path);
        }
        self.rebuild_system_prompt();
    }

    /// The owner of settings that are copied for commands. `None` in a session without a cage,
    /// whose commands read the original settings.
    pub(crate) fn settings_owner(&self) -> Option<SettingsOwner<'_>> {
        let Confinement { home, level, .. } = &self.confinement;
        let home = home.as_ref().filter(|_| *level != Level::Uncaged)?.to_path();
        let (writable, kept) = (writable_paths(&self.confinement), self.forbidden.paths());
        Some(SettingsOwner { env: &self.origin.opening.env, home, writable, forbidden: kept })
    }

    /// Sets the configured hosts for which the client passed keys.
    pub(crate) fn set_sign_in_hosts(&mut self, hosts: Vec<HostPort>) {
        let all = self.config.credentials.iter().map(|credential| &credential.host);
        let without =
            sign_in::reachable(&self.confinement, all.filter(|host| !hosts.contains(host)));
        if !without.is_empty() {
            self.notes.push(format!(
                "the proxy does not sign in to {}: the client that opened this session passed no \
                 key. \
                 Open it with --net allow, and see that net.credentials gives one",
                without.join(", ")
            ));
        }
        self.sign_in_hosts = hosts;
        self.rebuild_system_prompt();
    }

    /// Sets the directory with copies of the owner's settings.
    pub(crate) fn set_copied_settings(&mut self, dir: &Path, handed: CopiedSettings) {
        self.confinement.tool_homes.push((config::SETTINGS_HOME.to_owned(), FilePath::from(dir)));
        let as_they_are = handed.readable_in_place.into_iter();
        let as_they_are = as_they_are.map(|(name, file)| (name.to_owned(), file.into()));
        self.confinement.tool_homes.extend(as_they_are);
        // If a variable is set twice, most programs use the first value.
        let ours = |name: &str| handed.variables.iter().any(|(own, _)| own == name);
        self.env.retain(|(name, _)| !ours(name));
        self.env.extend(handed.variables);
        self.signing = GitSigningSetup::new(handed.signing, &self.origin.opening.env);
        self.notes.extend(handed.note);
    }

    /// Sets the instructions that the store found.
    pub(crate) fn set_instructions(&mut self, foreword: String) {
        self.instructions = foreword;
        self.rebuild_system_prompt();
    }

    fn rebuild_system_prompt(&mut self) {
        let network = (&self.confinement, self.sign_in_hosts.as_slice());
        self.setup.system = system_prompt(network, &self.instructions, &self.setup.tools);
    }

    /// Lists all effects of a change: a switch to the allow-list also names the hosts that are
    /// already on it.
    pub(crate) fn expand_change(&self, change: Change) -> Vec<Change> {
        let lists = matches!(change, Change::Network(Network::Listed) | Change::Host(_));
        if !lists || self.confinement.network == Network::Listed {
            return vec![change];
        }
        let others = self.confinement.hosts.iter().cloned().map(Change::Host);
        let mut changes: Vec<_> = others.filter(|other| *other != change).collect();
        changes.push(change);
        changes
    }

    /// Applies a setting that a person changed, for calls that start later.
    pub(crate) fn apply_change(&mut self, change: &Change) {
        match change {
            Change::Network(network) => {
                self.network = *network;
                self.confinement.network = *network;
                self.rebuild_system_prompt();
            }
            Change::Host(host) => {
                if !self.confinement.hosts.contains(host) {
                    self.confinement.hosts.push(host.clone());
                }
                self.apply_change(&Change::Network(Network::Listed));
            }
            Change::Mode(mode) => match self.check_mode(*mode) {
                Ok(()) => {
                    self.mode = *mode;
                    self.rules.mode = *mode;
                }
                Err(failure) => self.notes.push(failure.message),
            },
            // `set_model` applies the rest.
            Change::Model(_) => {}
            Change::Pin(file) => {
                if !self.setup.pinned.contains(file) {
                    self.setup.pinned.push(file.clone());
                }
            }
            Change::Unpin(file) => self.setup.pinned.retain(|pinned| pinned != file),
            Change::AddDirectory(path) => {
                if !self.confinement.added.contains(path) {
                    self.confinement.added.push(path.clone());
                }
                self.rebuild_system_prompt();
            }
        }
    }
}

/// Whether a command can start the program of a tool, found as a shell would find it.
fn is_available(
    spec: &tools::ToolDeclaration,
    env: &[(String, String)],
    confinement: &Confinement,
) -> bool {
    let Some(program) = spec.program else { return true };
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    let mut folders = std::env::split_paths(path.unwrap_or_default());
    folders.any(|folder| sandbox::startable_by_name(confinement, &folder, program))
}

fn offered_tool(
    spec: &tools::ToolDeclaration,
    shell: &CommandShell,
    confinement: &Confinement,
) -> OfferedTool {
    let mut description = spec.told();
    if spec.name == "bash" {
        description.push_str(&format!(" {}", shell.describe()));
    }
    let runs_commands = ["bash", "run", "powershell"].contains(&spec.name);
    if runs_commands && confinement.level != Level::Uncaged {
        description.push_str(&format!(" {}", tools::temp_dirs(confinement)));
    }
    OfferedTool {
        spec: ToolSpec { name: spec.name.to_owned(), description, input_schema: (spec.schema)() },
        kind: spec.kind,
        copies: match (spec.profile, spec.kind) {
            (Profile::Mutate, _) => Copies::Kept,
            (Profile::Command | Profile::Git, ToolKind::Mutation) => Copies::Compared,
            (_, _) => Copies::None,
        },
    }
}

/// The kind of the tool with this name; an unknown name counts as a mutation.
pub(crate) fn tool_kind(name: &str) -> ToolKind {
    let spec = tools::specs().iter().find(|spec| spec.name == name);
    spec.map_or(ToolKind::Mutation, |spec| spec.kind)
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

/// Creates agentd's own directories that are missing: only an existing directory can be hidden from
/// calls.
pub(crate) fn make_withheld_dirs(confinement: &Confinement) {
    for dir in confinement.withheld.iter().map(FilePath::to_path).filter(|dir| !dir.exists()) {
        if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(&dir) {
            // Not fatal: a cage in which a call could create it is refused.
            tracing::debug!(dir = %dir.display(), %error, "a directory of our own cannot be made");
        }
    }
}

/// The location of the client's own certificates, not of the daemon's; and whether the workers run
/// without a cage, as its calls do.
fn worker_env(opening: &Opening) -> Vec<(String, String)> {
    let named =
        |(name, _): &&(String, String)| ["SSL_CERT_FILE", "SSL_CERT_DIR"].contains(&name.as_str());
    let uncaged = match opening.uncaged {
        Uncaged::Accepted => Some((WITHOUT_CAGE.to_owned(), "1".to_owned())),
        Uncaged::Refused => None,
    };
    opening.env.iter().filter(named).cloned().chain(uncaged).collect()
}

/// Describes a call's confinement, for questions and the client's first line.
pub(crate) fn describe_confinement(confinement: &Confinement) -> String {
    if confinement.level == Level::Uncaged {
        return unsandboxed::DESCRIPTION.to_owned();
    }
    let others = confinement.added.len();
    let writes = match (confinement.profile, others) {
        (Profile::Mutate | Profile::Command, 0) => "may write: this project".to_owned(),
        (Profile::Mutate | Profile::Command, more) => {
            format!("may write: this project and {more} added directories")
        }
        (Profile::Git, _) => "may write: this project".to_owned(),
        (Profile::Format, _) => "writes nothing; its output replaces the edited file".to_owned(),
        (
            Profile::Probe
            | Profile::Query
            | Profile::Session
            | Profile::Broker
            | Profile::Provider
            | Profile::Store
            | Profile::Web
            | Profile::Verify
            | Profile::GitLook,
            _,
        ) => "writes nothing".to_owned(),
    };
    let network = match confinement.profile == Profile::Command {
        true => describe_network(confinement),
        false => "off".to_owned(),
    };
    let git = match confinement.git {
        GitSettings::Kept => "",
        GitSettings::Writable => ", git's settings and hooks in it",
    };
    format!("{writes}{git}; network: {network}")
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
