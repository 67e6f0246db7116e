//! Landlock: rulesets, and the domain in which a command's processes are confined.

pub(crate) mod domain_guard;
pub(crate) mod nested_rules;
pub(crate) mod ruleset;
