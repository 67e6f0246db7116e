//! Examples beside a rule: calls that it speaks of and calls that it does not, tried when its file
//! is read. A rule that says something else than its author thought is found there, not in use.

use crate::address;
use crate::command;
use crate::error::{Fault, RuleError};
use crate::glimpse::glimpses;
use crate::grammar;
use crate::paths::Spot;
use crate::pattern;
use crate::shelf::{Shelf, ToolRules};
use crate::subject::Subject;
use protocol::judgement::{Example, RuleEffect, Said};
use std::path::Path;

/// Stands for the project, to which an example's path is relative.
const PROJECT: &str = "/project";

/// Tries each example against its rule alone.
///
/// # Errors
/// The first one that does not hold, with its place, or whose rule is none.
pub fn try_examples(examples: &[Example]) -> Result<(), RuleError> {
    examples.iter().try_for_each(one)
}

fn one(example: &Example) -> Result<(), RuleError> {
    let Example { rule, what, said, line } = example;
    let parsed = pattern::parse(rule)?;
    let (tool, subject) = (parsed.tool.name, parsed.tool.subject);
    let wrong = |fault| RuleError {
        file: rule.file.clone(),
        line: *line,
        text: rule.text.clone(),
        at: 0,
        fault,
    };
    let shelf = Shelf::new(rule.effect, vec![(0, parsed)])
        .map_err(|error| wrong(Fault::Glob(error.to_string())))?;
    let fits = shelf.of(tool).is_some_and(|rules| match subject {
        Subject::Command => command_fits(rules, rule.effect, what),
        Subject::Host => match (what.parse(), rule.effect) {
            (Ok(host), RuleEffect::Allow) => rules.host_is(&host).is_some(),
            (Ok(host), RuleEffect::Deny | RuleEffect::Ask) => rules.host_caught(&host).is_some(),
            (Err(_), _) => false,
        },
        Subject::Page => address::page(what).is_some_and(|page| match rule.effect {
            RuleEffect::Allow => rules.page_is(&page).is_some(),
            RuleEffect::Deny | RuleEffect::Ask => rules.page_caught(&page).is_some(),
        }),
        // Of every call, as there is nothing to tell them apart by.
        Subject::Nothing => true,
        Subject::Path(_) => {
            let spot = Spot::named(what, Path::new(PROJECT));
            spot.is_some_and(|spot| rules.path_is(&spot).is_some())
        }
    });
    match (said, fits) {
        (Said::Fits, true) | (Said::Not, false) => Ok(()),
        (Said::Fits, false) => Err(wrong(Fault::FitsNot { what: what.clone() })),
        (Said::Not, true) => Err(wrong(Fault::Fits { what: what.clone() })),
    }
}

fn command_fits(rules: &ToolRules, effect: RuleEffect, text: &str) -> bool {
    let script = grammar::read(text);
    match effect {
        RuleEffect::Allow => script.is_ok_and(|script| command::allowed(rules, &script).is_some()),
        RuleEffect::Deny | RuleEffect::Ask => {
            glimpses(text, &script).is_ok_and(|(seen, _)| rules.command_caught(&seen).is_some())
        }
    }
}
