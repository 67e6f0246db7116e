//! Examples given with a rule: calls that it should match and calls that it should not. They are
//! tried when the configuration is loaded, so that an author finds a wrong rule there and not in
//! use.

use crate::judge::allow_command;
use crate::rule::error::{RuleError, RuleFault};
use crate::rule::page_pattern;
use crate::rule::path_pattern::RulePath;
use crate::rule::rule_index::{RuleIndex, ToolRules};
use crate::rule::rule_pattern;
use crate::rule::rule_target::MatchedBy;
use crate::shell::script::Script;
use crate::shell::{grammar, runs};
use protocol::judgement::{ExampleVerdict, RuleEffect, RuleExample};
use std::path::Path;
use tool_specs::MemoryScope;

/// Stands for the project, to which an example's path is relative.
const PROJECT: &str = "/project";

/// Tries each example against its rule alone.
///
/// # Errors
/// The first example that fails, with its place, or the first rule that cannot be parsed.
pub fn try_examples(examples: &[RuleExample]) -> Result<(), RuleError> {
    examples.iter().try_for_each(one)
}

fn one(example: &RuleExample) -> Result<(), RuleError> {
    let RuleExample { rule, what, said, line } = example;
    let parsed = rule_pattern::parse(rule)?;
    let (tool, subject) = (parsed.tool.name, parsed.tool.matched_by);
    let wrong = |fault| RuleError {
        file: rule.file.clone(),
        line: *line,
        text: rule.text.clone(),
        at: 0,
        fault,
    };
    let rule_index = RuleIndex::new(rule.effect, vec![(0, parsed)])
        .map_err(|error| wrong(RuleFault::Glob(error.to_string())))?;
    let fits = rule_index.for_tool(tool).is_some_and(|rules| match subject {
        MatchedBy::Command => command_fits(rules, (rule.effect, *said), what),
        MatchedBy::Host => match (what.parse(), rule.effect) {
            (Ok(host), RuleEffect::Allow) => rules.covering_host(&host).is_some(),
            (Ok(host), RuleEffect::Deny | RuleEffect::Ask) => rules.catching_host(&host).is_some(),
            (Err(_), _) => false,
        },
        MatchedBy::Page => page_pattern::page(what).is_some_and(|page| match rule.effect {
            RuleEffect::Allow => rules.covering_page(&page).is_some(),
            RuleEffect::Deny | RuleEffect::Ask => rules.catching_page(&page).is_some(),
        }),
        MatchedBy::ServerTool => rules.server_tool(what.trim()).is_some(),
        MatchedBy::MemoryScope => {
            MemoryScope::of_subject(what.trim()).is_some_and(|scope| rules.memory(scope).is_some())
        }
        // Of every call, as there is nothing to tell them apart by.
        MatchedBy::Nothing => true,
        MatchedBy::Path(_) => {
            let rule_path = RulePath::lexical(what, Path::new(PROJECT));
            rule_path.is_some_and(|rule_path| rules.covering_path(&rule_path).is_some())
        }
    });
    match (said, fits) {
        (ExampleVerdict::Fits, true) | (ExampleVerdict::Not, false) => Ok(()),
        (ExampleVerdict::Fits, false) => Err(wrong(RuleFault::FitsNot { what: what.clone() })),
        (ExampleVerdict::Not, true) => Err(wrong(RuleFault::Fits { what: what.clone() })),
    }
}

fn command_fits(
    rules: &ToolRules,
    (effect, said): (RuleEffect, ExampleVerdict),
    text: &str,
) -> bool {
    let script = grammar::read(text);
    match effect {
        RuleEffect::Allow => {
            let script = script.and_then(Script::plain);
            script.is_ok_and(|script| allow_command::allowed(rules, &script).is_some())
        }
        // Where it may fit, an example holds that says yes, and one that says no.
        RuleEffect::Deny | RuleEffect::Ask => runs::all_runs(&script).is_ok_and(|runs| {
            let fit = rules.fitting_command(&runs);
            fit.certain.is_some() || (said == ExampleVerdict::Fits && fit.perhaps.is_some())
        }),
    }
}
