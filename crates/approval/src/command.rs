//! Whether rules allow a command: every program that it would run, one by one.

use crate::grammar;
use crate::script::{Simple, Word};
use crate::shelf::{Index, ToolRules};
use crate::through::{self, Inner};
use crate::words::base_name;

/// Deepest text within a text that is looked into to allow it.
const DEPTH_CAP: usize = 4;

/// What stands beside a command, as far as it matters for it.
#[derive(Debug, Clone, Copy)]
struct Beside {
    company: Company,
    place: Place,
    depth: usize,
}

/// Whether other commands share a command's shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    Alone,
    Others,
}

/// Where a command's shell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Project,
    /// It may have gone to another directory, where `./x` is another program.
    Elsewhere,
}

/// A script of its own, in the project.
const ALONE: Beside = Beside { company: Company::Alone, place: Place::Project, depth: 0 };

/// The first rule that was needed to allow all of a script; none where one command is not allowed.
pub(crate) fn allowed(rules: &ToolRules, script: &[Simple]) -> Option<Index> {
    all(rules, script, ALONE)
}

/// The first command of a script that no rule allows.
pub(crate) fn not_allowed<'a>(
    rules: Option<&ToolRules>,
    script: &'a [Simple],
) -> Option<&'a Simple> {
    let beside = beside(script, ALONE);
    script.iter().find(|simple| rules.and_then(|rules| one(rules, &simple.words, beside)).is_none())
}

/// Whether every command is allowed by the rules that are there or by one more.
pub(crate) fn covered(rules: Option<&ToolRules>, more: &ToolRules, script: &[Simple]) -> bool {
    let beside = beside(script, ALONE);
    let allows = |rules: &ToolRules, simple: &Simple| one(rules, &simple.words, beside).is_some();
    script
        .iter()
        .all(|simple| allows(more, simple) || rules.is_some_and(|rules| allows(rules, simple)))
}

fn beside(script: &[Simple], above: Beside) -> Beside {
    let moves = script.iter().flat_map(|simple| &simple.words).any(through::moves);
    Beside {
        company: if script.len() > 1 { Company::Others } else { above.company },
        place: if moves { Place::Elsewhere } else { above.place },
        depth: above.depth,
    }
}

fn all(rules: &ToolRules, script: &[Simple], above: Beside) -> Option<Index> {
    let beside = beside(script, above);
    let mut first = None;
    for simple in script {
        let index = one(rules, &simple.words, beside)?;
        first = first.or(Some(index));
    }
    first
}

/// The rule that allows one command: one that says it, or those that say what it runs in turn.
fn one(rules: &ToolRules, words: &[Word], beside: Beside) -> Option<Index> {
    let program = words.first()?.known()?;
    let relative = program.contains('/') && !program.starts_with('/');
    let strange = (through::changes_state(program) && beside.company == Company::Others)
        || (relative && beside.place == Place::Elsewhere)
        || through::evaluates(program, &words[1..]);
    if strange {
        return None;
    }
    let guarded = through::guarded(words);
    rules.command_is(words, &guarded).or_else(|| behind(rules, words, &guarded, beside))
}

/// The rule for what stands behind a wrapper.
fn behind(rules: &ToolRules, words: &[Word], guarded: &[usize], beside: Beside) -> Option<Index> {
    let deeper = Beside { depth: beside.depth + 1, ..beside };
    if deeper.depth > DEPTH_CAP {
        return None;
    }
    if words.first()?.known().map(base_name) == Some("find") && !guarded.is_empty() {
        // `find` itself must be allowed, and all that it runs.
        let runs = through::find_runs(words)?;
        let itself = rules.command_is(words, &[])?;
        let all = runs.iter().all(|run| one(rules, run, deeper).is_some());
        return all.then_some(itself);
    }
    match through::inner(words)? {
        Inner::Command(words) => one(rules, &words, deeper),
        Inner::Script(text) => {
            let own = Beside { company: Company::Alone, ..deeper };
            all(rules, &grammar::read(&text).ok()?, own)
        }
        // It shares its shell with what stands beside it, and can change it.
        Inner::Here(text) => {
            let shared = Beside { company: Company::Others, place: Place::Elsewhere, ..deeper };
            let script = grammar::read(&text).ok()?;
            let moves = script.iter().flat_map(|simple| &simple.words).any(through::moves);
            if moves { None } else { all(rules, &script, shared) }
        }
    }
}
