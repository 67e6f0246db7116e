//! Checks that rules allow a command: every program that it would run, one by one.

use crate::program_name::base_name;
use crate::rule::rule_index::{RuleNumber, ToolRules};
use crate::shell::grammar;
use crate::shell::script::{ArgWord, SimpleCommand};
use crate::shell::wrappers::{self, WrappedCommand};

/// Deepest text within a text that is looked into to allow it.
const DEPTH_CAP: usize = 4;

/// The context of a command, as far as it matters for its verdict.
#[derive(Debug, Clone, Copy)]
struct ShellContext {
    company: ShellUse,
    call_path: ShellDir,
    depth: usize,
}

/// Whether a command shares its shell with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellUse {
    Alone,
    Others,
}

/// Where a command's shell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellDir {
    Project,
    /// It may have gone to another directory, where `./x` is another program.
    Elsewhere,
}

/// A script of its own, in the project.
const ALONE: ShellContext =
    ShellContext { company: ShellUse::Alone, call_path: ShellDir::Project, depth: 0 };

/// The first rule that was needed to allow all of a script; none where one command is not allowed.
pub(crate) fn allowed(rules: &ToolRules, script: &[SimpleCommand]) -> Option<RuleNumber> {
    all(rules, script, ALONE)
}

/// The first command of a script that no rule allows.
pub(crate) fn not_allowed<'a>(
    rules: Option<&ToolRules>,
    script: &'a [SimpleCommand],
) -> Option<&'a SimpleCommand> {
    let beside = beside(script, ALONE);
    script.iter().find(|simple| rules.and_then(|rules| one(rules, &simple.words, beside)).is_none())
}

/// True if existing rules or one more rule allow every command.
pub(crate) fn covered(
    rules: Option<&ToolRules>,
    more: &ToolRules,
    script: &[SimpleCommand],
) -> bool {
    let beside = beside(script, ALONE);
    let allows =
        |rules: &ToolRules, simple: &SimpleCommand| one(rules, &simple.words, beside).is_some();
    script
        .iter()
        .all(|simple| allows(more, simple) || rules.is_some_and(|rules| allows(rules, simple)))
}

fn beside(script: &[SimpleCommand], above: ShellContext) -> ShellContext {
    let moves = script.iter().flat_map(|simple| simple.words.iter()).any(wrappers::may_change_dir);
    ShellContext {
        company: if script.len() > 1 { ShellUse::Others } else { above.company },
        call_path: if moves { ShellDir::Elsewhere } else { above.call_path },
        depth: above.depth,
    }
}

fn all(rules: &ToolRules, script: &[SimpleCommand], above: ShellContext) -> Option<RuleNumber> {
    let beside = beside(script, above);
    let mut first = None;
    for simple in script {
        let index = one(rules, &simple.words, beside)?;
        first = first.or(Some(index));
    }
    first
}

/// The rule that allows one command: one that matches it, or the rules for the programs that it
/// runs in turn.
fn one(rules: &ToolRules, words: &[ArgWord], beside: ShellContext) -> Option<RuleNumber> {
    let program = words.first()?.known()?;
    let relative = program.contains('/') && !program.starts_with('/');
    let strange = (wrappers::changes_state(program) && beside.company == ShellUse::Others)
        || (relative && beside.call_path == ShellDir::Elsewhere)
        || wrappers::may_evaluate_command(program, &words[1..]);
    if strange {
        return None;
    }
    let guarded = wrappers::guarded(words);
    rules.covering_command(words, &guarded).or_else(|| behind(rules, words, &guarded, beside))
}

/// The rule for the command inside a wrapper.
fn behind(
    rules: &ToolRules,
    words: &[ArgWord],
    guarded: &[usize],
    beside: ShellContext,
) -> Option<RuleNumber> {
    let deeper = ShellContext { depth: beside.depth + 1, ..beside };
    if deeper.depth > DEPTH_CAP {
        return None;
    }
    if words.first()?.known().map(base_name) == Some("find") && !guarded.is_empty() {
        // `find` itself must be allowed, and all that it runs.
        let runs = wrappers::find_runs(words)?;
        let itself = rules.covering_command(words, &[])?;
        let all = runs.iter().all(|run| one(rules, run, deeper).is_some());
        return all.then_some(itself);
    }
    match wrappers::unwrap_command(words)? {
        WrappedCommand::Command(words) => one(rules, &words, deeper),
        WrappedCommand::Script(text) => {
            let own = ShellContext { company: ShellUse::Alone, ..deeper };
            all(rules, &grammar::read_plain(&text).ok()?, own)
        }
        // It shares its shell with the other commands, and can change that shell.
        WrappedCommand::Here(text) => {
            let shared = ShellContext {
                company: ShellUse::Others,
                call_path: ShellDir::Elsewhere,
                ..deeper
            };
            let script = grammar::read_plain(&text).ok()?;
            let moves =
                script.iter().flat_map(|simple| simple.words.iter()).any(wrappers::may_change_dir);
            if moves { None } else { all(rules, &script, shared) }
        }
    }
}
