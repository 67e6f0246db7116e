//! Denials of `read` for files that agentd reads without a call: imports of instructions. For the supervisor,
//! which passes the rules on, and for the processes that read such files.

use super::match_target::{CallPath, MatchTarget};
use super::messages::rule_with_place;
use super::session_rules::SessionRules;
use crate::rule::path_pattern::RulePath;
use crate::rule::rule_pattern;
use crate::rule::rule_target::{self, RuleDepth, TargetRules};
use protocol::judgement::{Rule, RuleEffect, RuleSet};
use std::path::Path;

const READ: &str = "read";

/// The rules that deny calls of `read`.
#[must_use]
pub fn read_denials(rules: &RuleSet) -> RuleSet {
    let denies = |rule: &&Rule| {
        let of = rule_pattern::tool_of(rule);
        rule.effect == RuleEffect::Deny
            // A rule that cannot be parsed may be for it.
            && of.is_none_or(|of| {
                rule_target::find(READ).into_iter().any(|read| {
                    read.applied_rules(RuleEffect::Deny).any(|by| by.tool == of.name)
                })
            })
    };
    RuleSet { rules: rules.rules.iter().filter(denies).cloned().collect(), ..rules.clone() }
}

/// Why these rules let a file not be read, by the path that names it and by its real path.
#[must_use]
pub fn denied_read(rules: &RuleSet, named: &Path, real: &Path) -> Option<String> {
    read_denier(rules)(named, real)
}

/// The same for many files: the rules are parsed once.
pub fn read_denier(rules: &RuleSet) -> impl Fn(&Path, &Path) -> Option<String> + use<> {
    let parsed = (!rules.rules.is_empty()).then(|| SessionRules::new(rules));
    move |named, real| match parsed.as_ref()? {
        Ok(rules) => denied_by(rules, named, real),
        Err(_) => Some("a rule that denies reading cannot be followed".to_owned()),
    }
}

fn denied_by(rules: &SessionRules, named: &Path, real: &Path) -> Option<String> {
    let path = |path: &Path| RulePath::lexical(path.to_str()?, &rules.project);
    let Some(real) = path(real) else {
        return Some("no rule can be applied to its name".to_owned());
    };
    let path = CallPath { real, named: path(named), depth: RuleDepth::Named };
    let target = MatchTarget::Paths { call_paths: vec![path] };
    let (index, _) = rules.first_match(&rules.deny, READ, &target)?;
    let rule = rules.rules.get(index)?;
    Some(format!("the rule {} denies reading it", rule_with_place(rule)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::judgement::{Audience, PermissionMode};

    fn why(rule: (RuleEffect, &str), named: &str, real: &str) -> Option<String> {
        let (effect, text) = (rule.0, rule.1.to_owned());
        let rule = Rule { effect, text, file: "x.toml".to_owned(), line: 3 };
        let (mode, audience) = (PermissionMode::Auto, Audience::Person);
        let rules = RuleSet { rules: vec![rule], mode, audience, project: "/p".to_owned() };
        denied_read(&read_denials(&rules), Path::new(named), Path::new(real))
    }

    #[test]
    fn a_denial_of_read_holds_for_the_name_and_the_place_of_a_file() {
        let deny = |text| (RuleEffect::Deny, text);
        let said = why(deny("read:private/**"), "/p/private/a.md", "/p/private/a.md");
        let wanted = "the rule `read:private/**` (x.toml:3) denies reading it";
        assert_eq!(said.as_deref(), Some(wanted));
        for (rule, named, real) in [
            ("read:private/**", "/p/sub/../private/a.md", "/p/private/a.md"),
            ("read:private/**", "/p/a.md", "/p/private/a.md"),
            ("read:*.md", "/p/a.md", "/p/b.txt"),
            ("read", "/p/a.md", "/p/a.md"),
        ] {
            assert!(why(deny(rule), named, real).is_some(), "{rule} {named}");
        }
        for rule in [
            deny("read:other/**"),
            deny("write:private/**"),
            deny("bash:cat *"),
            (RuleEffect::Allow, "read:private/**"),
        ] {
            assert_eq!(why(rule, "/p/private/a.md", "/p/private/a.md"), None, "{rule:?}");
        }
    }
}
