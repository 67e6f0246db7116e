//! The part of a call that rules are matched against.

use crate::rule::path_pattern::RulePath;
use crate::rule::rule_index::RuleIndex;
use crate::rule::rule_target::{self, MatchedBy, RuleDepth};
use crate::rule::server_tool_pattern::name_of;
use crate::shell::grammar;
use crate::shell::runs::{self, AllRuns, TooDeep};
use crate::shell::script::{Script, ScriptError, SimpleCommand};
use protocol::call::{ProbeReport, ProbedPath};
use protocol::hidden::visible;
use protocol::hosts::HostRule;
use protocol::judgement::{JudgedCall, ToolKind};
use protocol::web::WebAddress;
use std::path::Path;
use tool_specs::MemoryScope;

/// Longest command in bytes: the kernel accepts no longer argument, so no shell could start with it.
pub const COMMAND_CAP: usize = 128 * 1024 - 1;

/// The part of a call, or of a right that it requests, that rules are matched against.
pub(crate) enum MatchTarget {
    /// A command: its programs, if a rule can allow them, and all that it runs in turn.
    Command { script: Result<Vec<SimpleCommand>, ScriptError>, runs: AllRuns },
    /// Paths, if they were probed.
    Paths { call_paths: Vec<CallPath> },
    /// A directory that it would have beside the project.
    Directory(RulePath),
    /// A host that it would reach.
    Host(HostRule),
    /// A page of the web that it would read.
    Page(WebAddress),
    /// A tool of an MCP server.
    ServerTool(String),
    /// A memory of this scope.
    Memory(MemoryScope),
    /// Nothing but the tool's name.
    Name,
}

/// One path of a call.
pub(crate) struct CallPath {
    /// Where it really is.
    pub real: RulePath,
    /// As the call named it, links not followed: a denied name is denied wherever it leads.
    pub named: Option<RulePath>,
    pub depth: RuleDepth,
}

impl MatchTarget {
    /// The target of the call in this project, or the reason why the call cannot be judged.
    pub(super) fn of(case: &JudgedCall, deny: &RuleIndex, project: &Path) -> Result<Self, String> {
        let known = rule_target::find(&case.call.tool).filter(|known| known.name == case.call.tool);
        match known.map(|known| known.matched_by) {
            None | Some(MatchedBy::Host | MatchedBy::Nothing) => Ok(MatchTarget::Name),
            Some(MatchedBy::Page) => {
                let page = case.page.as_deref().cloned().ok_or("the call names no web page")?;
                Ok(MatchTarget::Page(page))
            }
            Some(MatchedBy::ServerTool) => {
                let command =
                    case.command.as_deref().ok_or("the call names no tool of a server")?;
                Ok(MatchTarget::ServerTool(name_of(command).to_owned()))
            }
            Some(MatchedBy::MemoryScope) => {
                let subject = case.command.as_deref().and_then(MemoryScope::of_subject);
                Ok(MatchTarget::Memory(subject.ok_or("the call names no scope of memories")?))
            }
            Some(MatchedBy::Command) => {
                let command = case.command.as_deref().ok_or("the call has no command to judge")?;
                read_command(command)
            }
            Some(MatchedBy::Path(depth)) => match &case.probe {
                Some(probe) => read_paths(probe, depth, project),
                None if deny
                    .applied_to(&case.call.tool)
                    .any(|(rules, _)| rules.has_path_patterns())
                    || case.kind == ToolKind::Mutation =>
                {
                    Err("its paths were not probed, so no rule could be applied".into())
                }
                None => Ok(MatchTarget::Name),
            },
        }
    }
}

fn read_paths(
    probe: &ProbeReport,
    depth: RuleDepth,
    project: &Path,
) -> Result<MatchTarget, String> {
    // A call that names no path works on the project.
    let whole = ProbedPath {
        named: ".".into(),
        real: project.to_string_lossy().into_owned(),
        in_scope: true,
        digest: None,
    };
    let paths =
        if probe.paths.is_empty() { std::slice::from_ref(&whole) } else { &probe.paths[..] };
    let mut call_paths = Vec::new();
    for path in paths {
        let real = RulePath::new(&path.real, project)
            .ok_or_else(|| format!("`{}` is not a real path", visible(&path.real)))?;
        // A regular file has nothing below it.
        let file = |digest: &String| !digest.starts_with(ProbedPath::TREE);
        let depth = if path.digest.as_ref().is_some_and(file) { RuleDepth::Named } else { depth };
        let named = RulePath::lexical(&path.named, project);
        call_paths.push(CallPath { real, named, depth });
    }
    Ok(MatchTarget::Paths { call_paths })
}

fn read_command(command: &str) -> Result<MatchTarget, String> {
    if command.len() > COMMAND_CAP {
        return Err(format!(
            "the command is longer than {COMMAND_CAP} bytes, the most that the kernel accepts. Write a script file and run that"
        ));
    }
    if command.contains('\0') {
        return Err("the command contains a NUL byte, which no command can have".into());
    }
    let script = grammar::read(command);
    let runs = runs::all_runs(&script)
        .map_err(|TooDeep| "the command nests commands too deeply to be judged".to_owned())?;
    Ok(MatchTarget::Command { script: script.and_then(Script::plain), runs })
}
