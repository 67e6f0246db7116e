//! A command's view of the machine, for notes about inaccessible paths and hosts.

use crate::command::missing_path::{self, SandboxView};
use crate::command::missing_program::ProgramLookup;
use crate::command::setup::CommandSetup;
use crate::failure::{FailureCode, ToolFailure};
use crate::refusal_hints;
use crate::signing::Signer;
use crate::tool_context::ToolContext;
use protocol::call::TamperedFile;
use protocol::confinement::{PathAct, Refusal, Subject};
use std::path::{Path, PathBuf};
use tool_specs::Restriction;

/// A command's view of the machine.
pub(super) struct CommandView<'a> {
    pub(super) is_locked: bool,
    pub(super) granted: Vec<PathBuf>,
    pub(super) home: Option<String>,
    /// The person's search path.
    pub(super) path: String,
    /// The restriction that applies to a refused connection; none where the network is on.
    pub(super) network_restriction: Option<Restriction>,
    pub(super) signer: Option<&'a Signer>,
    /// True if the command sees the session's directories in the places of the machine's.
    pub(super) shows_private: bool,
    /// The directory of a copy of the person's git settings.
    pub(super) git_settings: Option<PathBuf>,
}

impl<'a> CommandView<'a> {
    pub(super) fn of(side: &CommandSetup<'a>) -> Self {
        let value = |wanted: &str| side.env.iter().find(|(name, _)| name == wanted);
        let (home, path) = (value("HOME"), value("PATH"));
        let copy = value("GIT_CONFIG_GLOBAL").and_then(|(_, file)| Path::new(file).parent());
        Self {
            is_locked: side.cage.is_locked(),
            granted: side.cage.readable().to_vec(),
            home: home.map(|(_, home)| home.clone()),
            path: path.map(|(_, path)| path.clone()).unwrap_or_default(),
            network_restriction: side.cage.blocks_hosts().then_some(
                match (side.proxy, side.cage.is_tier_b()) {
                    (Some(_), _) => Restriction::Direct,
                    (None, false) => Restriction::Network,
                    (None, true) => Restriction::WholeNetwork,
                },
            ),
            signer: side.signer,
            shows_private: side.cage.shows_private(),
            git_settings: copy.filter(|copy| copy.is_absolute()).map(Path::to_owned),
        }
    }

    /// The lookup of the user's programs.
    pub(super) fn search(&self) -> ProgramLookup<'_> {
        let home = self.home.as_deref().map(Path::new);
        ProgramLookup { path: &self.path, granted: &self.granted, home }
    }

    /// Why a program was not found, where it is known.
    pub(super) fn explain(&self, failure: ToolFailure, name: &str) -> ToolFailure {
        let is_missing =
            matches!(failure.code, FailureCode::NotFound | FailureCode::PermissionDenied);
        let is_searched = self.is_locked && is_missing && !name.contains('/');
        match is_searched.then(|| self.search().reason(name)).flatten() {
            Some(reason) => ToolFailure { hint: format!("{reason}."), ..failure },
            None => failure,
        }
    }
}

/// How more is given than this call had, where it tried to do more: each way once.
pub(super) fn hint_lines(
    (refusals, tampered): (&[&Refusal], &[TamperedFile]),
    project: &Path,
    view: &CommandView,
) -> Vec<String> {
    let settings = view.git_settings.as_deref();
    let of = |refusal: &&Refusal| match refusal_hints::restriction_of(refusal, project, settings) {
        // A hook of another place is a program like others.
        Some(Restriction::Program) => Some(Restriction::Program),
        Some(Restriction::Network) => view.network_restriction,
        Some(Restriction::LocalAddress) => {
            view.network_restriction.and(Some(Restriction::LocalAddress))
        }
        Some(Restriction::Settings) => Some(Restriction::Settings),
        // It passes by itself.
        _ if matches!(refusal.subject, Subject::Path { act: PathAct::Busy, .. }) => None,
        _ if of_git_settings(&refusal.subject) => Some(Restriction::Git),
        other => other,
    };
    let held = tampered.iter().filter(|name| !name.remedy.is_permitted());
    let names = held.map(|name| match is_git_settings(&name.path) {
        true => Restriction::Git,
        false => Restriction::Protected,
    });
    let mut met: Vec<Restriction> = Vec::new();
    for barrier in refusals.iter().filter_map(of).chain(names) {
        if !met.contains(&barrier) {
            met.push(barrier);
        }
    }
    met.into_iter().filter_map(Restriction::hint_line).collect()
}

/// True for a change of git's settings or hooks, or the run of a hook.
fn of_git_settings(subject: &Subject) -> bool {
    if let Subject::Program { script: Some(script), .. } = subject {
        return is_git_settings(script);
    }
    subject.path().is_some_and(is_git_settings)
}

/// True if this names git settings or hooks, also those of submodules and worktrees.
pub(super) fn is_git_settings(text: &str) -> bool {
    let Some((_, below)) = text.split_once(".git/") else { return false };
    below.contains("info/attributes")
        || below.split(['/', ' ', ',', '"']).any(|name| {
            let name = name.trim_end_matches(".lock");
            matches!(name, "hooks" | "config" | "config.worktree")
        })
}

/// The note about a path that the command could not see, if its standard error mentions one.
pub(super) fn missing_path_note(
    said: &str,
    refusals: &[&Refusal],
    view: &CommandView<'_>,
    ctx: &ToolContext<'_>,
) -> Option<String> {
    let shown = SandboxView {
        granted: &view.granted,
        withheld: &ctx.scope.withheld,
        home: view.home.as_deref().map(Path::new),
        own_home: ctx.scope.home.as_ref().map(|home| home.kept_at.as_path()),
    };
    let refused = refusals.iter().filter_map(|refusal| refusal.subject.path()).map(Path::new);
    view.is_locked.then(|| missing_path::line(said, refused, &shown)).flatten()
}
