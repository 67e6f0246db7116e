//! Changes to a session's specification after it was built.

use super::session_setup::{hide_denied, system_prompt};
use super::task::lower;
use super::unsandboxed::check_mode;
use super::{SessionSpec, cage_level};
use crate::forbidden_dirs::keys_below;
use crate::git_signing::GitSigningSetup;
use crate::open_failure::OpenFailure;
use crate::private_paths;
use crate::sign_in_hosts;
use crate::slash_command::SlashContext;
use crate::writable_paths::writable_paths;
use protocol::client::{RequestFailure, SettingChange};
use protocol::confinement::{Confinement, FilePath, Level, Network, Tier};
use protocol::error_chain::chain;
use protocol::hidden::on_one_line;
use protocol::hosts::HostPort;
use protocol::judgement::Audience;
use protocol::session::{OfferedTool, ToolListing};
use protocol::store::ForkedFrom;
use settings_copies::{CopiedSettings, SettingsOwner};
use std::path::{Path, PathBuf};

impl SessionSpec {
    /// The file for rules that a person gives permanently for all projects.
    pub fn user_file(&self) -> Option<PathBuf> {
        self.origin.dirs.user_file()
    }

    /// The file for rules that a person gives permanently for this project, and the comment on top of it.
    pub fn project_rules_file(&self) -> Option<(PathBuf, String)> {
        let project = self.origin.opening.project.to_path();
        let file = self.origin.dirs.project_rules_file(&project)?;
        let shown = on_one_line(&project.to_string_lossy());
        Some((file, format!("Rules that hold in the project {shown} alone.")))
    }

    /// Where slash commands lie, and which of them give rights.
    pub fn slash_context(&self) -> SlashContext {
        let of = (&self.confinement, &self.config);
        SlashContext {
            places: super::task::places(of, self.origin.dirs.config.clone()),
            plugins: self.config.plugins.clone(),
            project_is_trusted: self.config.project_is_trusted,
            writable: writable_paths(&self.confinement),
        }
    }

    /// Sets who can be asked. A non-interactive session requires the full cage, unless it accepted none.
    pub fn set_audience(&mut self, audience: Audience) {
        self.rules.audience = audience;
        let uncaged = self.origin.opening.uncaged;
        self.confinement.level = cage_level(&self.config, audience, uncaged);
    }

    /// Sets where its private directories are, if they could not be made at the usual path.
    pub fn set_private_dirs(&mut self, made: &Path) {
        let wanted = self.confinement.temp.to_path();
        private_paths::set_location(made, &mut self.confinement);
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
    pub fn settings_owner(&self) -> Option<SettingsOwner<'_>> {
        let Confinement { home, level, .. } = &self.confinement;
        let home = home.as_ref().filter(|_| *level != Level::Uncaged)?.to_path();
        let (writable, kept) = (writable_paths(&self.confinement), self.forbidden.paths());
        let elsewhere = self.confinement.written_elsewhere.iter().map(FilePath::to_path).collect();
        let env = &self.origin.opening.env;
        Some(SettingsOwner { env, home, writable, elsewhere, forbidden: kept })
    }

    /// Notes the places that its commands are not granted, as a cage of them would leave them out now.
    pub fn note_left_out(&mut self) {
        let caged = self.confinement.level != Level::Uncaged;
        let tier = self.confinement.highest_tier;
        let found = caged.then(|| sandbox::left_out(&self.confinement, tier));
        // A cage that cannot be made is the result of the first call.
        for text in found.and_then(Result::ok).into_iter().flatten() {
            if !self.left_out.contains(&text) {
                self.left_out.push(text);
            }
        }
        // The person has seen those of a sub-agent in the parent's session.
        if self.task().is_none() {
            self.notes.extend(self.left_out.iter().cloned());
        }
    }

    /// Sets the configured hosts for which the client passed keys.
    pub fn set_sign_in_hosts(&mut self, hosts: Vec<HostPort>) {
        let all = self.config.credentials.iter().map(|credential| &credential.host);
        let without =
            sign_in_hosts::reachable(&self.confinement, all.filter(|host| !hosts.contains(host)));
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
    pub fn set_copied_settings(&mut self, dir: &Path, handed: CopiedSettings) {
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

    /// Sets the instructions that the store found. Returns true if they are others than before.
    pub fn set_instructions(&mut self, instructions: String) -> bool {
        let changed = self.texts.instructions != instructions;
        if changed {
            self.texts.instructions = instructions;
            self.rebuild_system_prompt();
        }
        changed
    }

    /// Requests list these tools from the start, which the instructions name.
    pub fn list_tools(&mut self, names: &[String]) {
        for tool in &mut self.setup.tools {
            if names.contains(&tool.spec.name) && tool.listing != ToolListing::Denied {
                tool.listing = ToolListing::Always;
            }
        }
    }

    /// Hides tools of servers that rules deny.
    pub fn hide_denied(&self, tools: &mut [OfferedTool]) {
        hide_denied(tools, &self.rules);
    }

    /// Sets the sentences about the instructions. Returns true if they are others than before.
    pub fn set_instruction_notes(&mut self, notes: &[String]) -> bool {
        let changed = self.texts.instruction_notes != notes;
        self.texts.instruction_notes = notes.to_vec();
        changed
    }

    /// Adds notes for the person.
    pub fn add_notes(&mut self, notes: impl IntoIterator<Item = String>) {
        self.notes.extend(notes);
    }

    /// Sets the session that it was forked from, and the last call of that one.
    pub fn set_forked_from(&mut self, from: Option<ForkedFrom>) {
        self.store.forked_from = from;
    }

    /// Sets the directories that calls of other projects could write.
    pub fn set_written_elsewhere(&mut self, dirs: Vec<FilePath>) {
        self.confinement.written_elsewhere = dirs;
    }

    pub(super) fn rebuild_system_prompt(&mut self) {
        let network = (&self.confinement, self.sign_in_hosts.as_slice());
        self.setup.system = system_prompt(network, &self.texts, &self.setup.tools);
    }

    /// Lists all effects of a change: a switch to the allow-list also names the hosts that are
    /// already on it.
    pub fn expand_change(&self, change: SettingChange) -> Vec<SettingChange> {
        let lists =
            matches!(change, SettingChange::Network(Network::Listed) | SettingChange::Host(_));
        if !lists || self.confinement.network == Network::Listed {
            return vec![change];
        }
        let others = self.confinement.hosts.iter().cloned().map(SettingChange::Host);
        let mut changes: Vec<_> = others.filter(|other| *other != change).collect();
        changes.push(change);
        changes
    }

    /// Checks that a change loosens no value of the administrator's file.
    ///
    /// # Errors
    /// A message with the file and the line.
    pub fn check_managed(&self, change: &SettingChange) -> Result<(), OpenFailure> {
        let (key, word) = match change {
            SettingChange::Network(network) => ("net.mode", network.name()),
            SettingChange::Host(_) => ("net.mode", Network::Listed.name()),
            SettingChange::Mode(mode) => ("permissions.mode", mode.name()),
            SettingChange::AddDirectory(_)
            | SettingChange::Model(_)
            | SettingChange::Pin(_)
            | SettingChange::Unpin(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::CostLimit(_)
            | SettingChange::Flag(..)
            | SettingChange::Name(_) => return Ok(()),
        };
        let checked = self.config.managed.check(key, word);
        checked.map_err(|error| OpenFailure::new(RequestFailure::Configuration, chain(&error)))
    }

    /// Checks that a person may change this setting while the session is open.
    ///
    /// # Errors
    /// The bound, with a way on.
    pub fn check_change(&self, change: &SettingChange) -> Result<(), OpenFailure> {
        self.check_managed(change)?;
        self.check_task_bounds(change)?;
        let usage = |why: String| Err(OpenFailure::new(RequestFailure::Usage, why));
        match change {
            SettingChange::Network(_) | SettingChange::Host(_) => {
                check_allow_list(change, &self.confinement)
            }
            SettingChange::Mode(mode) => check_mode(self.confinement.level, *mode),
            SettingChange::CostLimit(_) => usage(
                "the limit of a session's cost is set where it is opened, with --max-cost"
                    .to_owned(),
            ),
            SettingChange::Flag(key, _) => {
                usage(format!("{key} is set where the session is opened"))
            }
            SettingChange::Model(_)
            | SettingChange::AddDirectory(_)
            | SettingChange::Pin(_)
            | SettingChange::Unpin(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::Name(_) => Ok(()),
        }
    }

    /// Applies a setting that a person changed, for calls that start later. The model needs
    /// `choose_model`.
    pub fn apply_change(&mut self, change: &SettingChange) {
        match change {
            SettingChange::Network(_) | SettingChange::Host(_) => {}
            SettingChange::Mode(mode) => {
                if let Err(failure) = check_mode(self.confinement.level, *mode) {
                    return self.notes.push(failure.message);
                }
            }
            // The configuration was read with the flags.
            SettingChange::Model(_) | SettingChange::Flag(..) => return,
            SettingChange::Pin(file) => {
                if !self.setup.pinned.contains(file) {
                    self.setup.pinned.push(file.clone());
                }
                return;
            }
            SettingChange::Unpin(file) => return self.setup.pinned.retain(|pinned| pinned != file),
            SettingChange::Name(name) => return self.name.clone_from(name),
            SettingChange::CostLimit(most) => {
                let share = self.task().and_then(|task| task.limits.cost);
                self.setup.max_session.cost = lower(Some(*most), share);
                return;
            }
            SettingChange::AppendedSystem(text) => {
                self.texts.appended.clone_from(text);
                return self.rebuild_system_prompt();
            }
            SettingChange::AddDirectory(path) => {
                if !self.confinement.added.contains(path) {
                    self.confinement.keys.extend(keys_below(path));
                }
            }
        }
        self.change_settings(|settings| settings.change(change));
    }
}

/// Checks that this cage can enforce the network that a change asks for.
///
/// # Errors
/// For an allow-list without a network namespace.
pub fn check_allow_list(
    change: &SettingChange,
    confinement: &Confinement,
) -> Result<(), OpenFailure> {
    let listed = matches!(change, SettingChange::Network(Network::Listed) | SettingChange::Host(_));
    match confinement.highest_tier {
        Tier::B | Tier::C if listed => Err(OpenFailure::new(
            RequestFailure::SandboxUnavailable,
            "an allow-list of hosts needs a network namespace (tier A), and this session's \
             commands \
             have less: switch the network off, or on as a whole. `agentd doctor` shows what this \
             machine allows",
        )),
        Tier::A | Tier::B | Tier::C => Ok(()),
    }
}
