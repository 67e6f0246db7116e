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
/// Subcommands of git that only read with this word behind them, or none.
const GIT_READS_WITH: &[(&str, &[&str])] = &[
    ("branch", &["", "--all", "--list", "--show-current", "-a", "-l", "-r", "-v", "-vv"]),
    ("config", &["--get", "--get-all", "--list", "-l", "get", "list"]),
    ("remote", &["", "--verbose", "-v", "get-url"]),
    ("stash", &["list", "show"]),
    ("tag", &["", "--list", "-l"]),
    ("worktree", &["list"]),
];
/// Most paths, hosts and reasons of one question.
const NAMED: usize = 4;

/// The bounds of a call that may run without a question; else why it is asked about, or nothing where no effect is
/// the reason.
pub(super) fn bounds(case: &JudgedCall, target: &MatchTarget) -> Result<Bounded, Option<String>> {
    let beyond = match &case.reach {
        EffectReach::Unknown | EffectReach::InSandbox => return Err(None),
        EffectReach::Undoable => Vec::new(),
        EffectReach::Beyond(effects) => effects.iter().map(describe).collect(),
    };
    let Some((bounded, of_target)) = of_target(target) else {
        return Err((!beyond.is_empty()).then(|| beyond.join("; ")));
    };
    let of_target = of_target.into_iter().filter(|why| !beyond.contains(why)).collect::<Vec<_>>();
    let why: Vec<String> = beyond.into_iter().chain(of_target).collect();
    if why.is_empty() { Ok(bounded) } else { Err(Some(why.join("; "))) }
}

/// True if the mode `sandboxed` would find no effect to ask about, by the cage and the paths. Undo is not asked.
pub(super) fn stays_in_sandbox(case: &JudgedCall, target: &MatchTarget) -> bool {
    case.reach == EffectReach::InSandbox
        && case.extra_rights.is_empty()
        && of_target(target).is_some_and(|(_, why)| why.is_empty())
}

/// What bounds a call with this target, and its effects that are known by the target alone. None where its effects
/// are not those of a sandbox.
fn of_target(target: &MatchTarget) -> Option<(Bounded, Vec<String>)> {
    match target {
        MatchTarget::Paths { call_paths } => Some((Bounded::Files, paths_beyond(call_paths))),
        MatchTarget::Command { runs, .. } => {
            Some((Bounded::Command, said_change_of_git(runs).into_iter().collect()))
        }
        MatchTarget::Directory(_)
        | MatchTarget::Host(_)
        | MatchTarget::Page(_)
        | MatchTarget::ServerTool(_)
        | MatchTarget::Memory(_)
        | MatchTarget::Name => None,
    }
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
        Effect::GitDirectory => "it may change `.git`, which undo does not cover".to_owned(),
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
    if hosts.is_empty() {
        return "it would have a network with a list of hosts".to_owned();
    }
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

/// The change that the text asks of git, if it asks for one that undo does not cover.
fn said_change_of_git(runs: &AllRuns) -> Option<String> {
    runs.list.iter().filter(|run| run.begin == Begin::First).find_map(|run| {
        let known = |at: usize| run.words.get(at).and_then(|word| word.known());
        let at = subcommand_at(&run.words).filter(|_| known(0).map(base_name) == Some("git"))?;
        let name = known(at)?;
        let next = run.words.get(at + 1).map_or(Some(""), |word| word.known());
        let fits = |words: &[&str]| next.is_some_and(|next| words.contains(&next));
        let reads = GIT_READS.contains(&name)
            || GIT_READS_WITH.iter().any(|(of, words)| *of == name && fits(words));
        match name {
            _ if reads => None,
            "clean" => Some("undo brings back no ignored file that it removes".to_owned()),
            _ => Some(describe(&Effect::GitDirectory)),
        }
    })
}
