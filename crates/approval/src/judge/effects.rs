//! The mode `sandboxed`: the calls whose effects the full sandbox bounds and undo covers, and the effects of all
//! others in words. The supervisor and the store find out how far a call reaches; nothing is concluded from a
//! command's text but whether it names a change of the git directory, which the sandbox refuses in any case.

use super::match_target::{CallPath, MatchTarget};
use crate::program_name::base_name;
use crate::shell::runs::{AllRuns, Begin};
use crate::shell::subcommands::subcommand_at;
use protocol::confinement::FilePath;
use protocol::hidden::visible;
use protocol::hosts::HostRule;
use protocol::judgement::{Bounded, Effect, EffectReach, ExtraRight, JudgedCall};
use std::path::Path;

/// Subcommands of git that leave its directory as it is.
const GIT_READS: &[&str] = &[
    "blame",
    "cat-file",
    "check-ignore",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "version",
    "whatchanged",
];
/// Most paths, hosts and reasons of one question.
const NAMED: usize = 4;

/// The bounds of a call that may run without a question; else why it is asked about, or nothing where no effect is
/// the reason.
pub(super) fn bounds(case: &JudgedCall, target: &MatchTarget) -> Result<Bounded, Option<String>> {
    let beyond = match &case.reach {
        EffectReach::Unknown => return Err(None),
        EffectReach::Undoable => Vec::new(),
        EffectReach::Beyond(effects) => effects.iter().map(describe).collect(),
    };
    let (bounded, of_target) = match target {
        MatchTarget::Paths { call_paths } => (Bounded::Files, paths_beyond(call_paths)),
        MatchTarget::Command { runs, .. } => {
            let git = changes_git(runs).then(|| describe(&Effect::GitDirectory));
            (Bounded::Command, git.filter(|git| !beyond.contains(git)).into_iter().collect())
        }
        // The effects of these are not those of a sandbox.
        MatchTarget::Directory(_)
        | MatchTarget::Host(_)
        | MatchTarget::Page(_)
        | MatchTarget::ServerTool(_)
        | MatchTarget::Memory(_)
        | MatchTarget::Name => return Err((!beyond.is_empty()).then(|| beyond.join("; "))),
    };
    let why: Vec<String> = beyond.into_iter().chain(of_target).collect();
    if why.is_empty() { Ok(bounded) } else { Err(Some(why.join("; "))) }
}

/// The effects of rights that the session lacks.
pub(super) fn of_rights(rights: &[ExtraRight]) -> String {
    let each = rights.iter().map(|right| match right {
        ExtraRight::Network => describe(&Effect::Network),
        ExtraRight::Hosts(hosts) => reach(hosts),
        ExtraRight::Directory(dir) => outside(std::slice::from_ref(dir)),
        ExtraRight::GitAdmin => "it could change git's settings and hooks".to_owned(),
        ExtraRight::GitSign => "it would sign with your key".to_owned(),
    });
    each.collect::<Vec<_>>().join("; ")
}

/// An effect, as a part of a sentence.
fn describe(effect: &Effect) -> String {
    match effect {
        Effect::WeakerSandbox(tier) => {
            format!("its sandbox would be a weaker one (tier {})", tier.name())
        }
        Effect::Network => "it would have the whole network".to_owned(),
        Effect::Hosts(hosts) => reach(hosts),
        Effect::Outside(dirs) => outside(dirs),
        Effect::GitDirectory => "it changes `.git`, which undo does not cover".to_owned(),
        Effect::Background => {
            "it would run on in the background, where undo does not tell its changes from others"
                .to_owned()
        }
        Effect::Input => "it gives input to a command that runs already".to_owned(),
        Effect::ServerTool(name) => {
            format!("its MCP server does `{}`, which undo does not cover", visible(name))
        }
        Effect::NotUndone(why) => format!("undo would not cover it: {}", visible(why)),
    }
}

fn reach(hosts: &[HostRule]) -> String {
    let named = listed(hosts.iter().map(ToString::to_string));
    let noun = if hosts.len() == 1 { "host" } else { "hosts" };
    format!("it would reach the {noun} {named}")
}

fn outside(dirs: &[FilePath]) -> String {
    let named =
        listed(dirs.iter().map(|dir| format!("`{}`", visible(&dir.to_path().to_string_lossy()))));
    format!("it could write outside the project, in {named}")
}

fn listed(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(NAMED);
    let named = all.take(NAMED).collect::<Vec<_>>().join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

/// Why paths are asked about: those outside the project, and those that are protected.
fn paths_beyond(call_paths: &[CallPath]) -> Vec<String> {
    let why = call_paths.iter().filter_map(|call_path| match &call_path.real.relative {
        None => {
            let named = visible(&call_path.real.absolute);
            Some(format!("it writes outside the project: `/{named}`"))
        }
        Some(below) => is_protected(Path::new(below))
            .then(|| format!("`{}` is a protected file", visible(below))),
    });
    why.take(NAMED).collect()
}

/// True for a protected name, and for a path in a git directory.
fn is_protected(path: &Path) -> bool {
    let parts = sandbox::name_parts(path);
    let names = sandbox::protected_names().iter().map(|row| row.name).chain([".git"]);
    let is_named = |name: &str| (0..parts.len()).any(|from| sandbox::lies_at(&parts[from..], name));
    names.into_iter().any(is_named)
}

/// True if the text says that it changes the git directory.
fn changes_git(runs: &AllRuns) -> bool {
    runs.list.iter().filter(|run| run.begin == Begin::First).any(|run| {
        let is_git = run
            .words
            .first()
            .and_then(|word| word.known())
            .is_some_and(|program| base_name(program) == "git");
        let subcommand = subcommand_at(&run.words).and_then(|at| run.words.get(at));
        let named = subcommand.and_then(|word| word.known());
        is_git && named.is_some_and(|name| !GIT_READS.contains(&name))
    })
}
