//! A plan's rules by system call number, asked about registers alone: the filter's meaning in Rust.
//! The listener uses it to know why it was called; tests hold the compiled program against it.

use super::mark::Mark;
use super::numbers::{Arch, number};
use super::rules::{Is, Rule, Test, Then};
use super::table::rules;
use super::{Plan, Reporting};

/// The rules of one plan on one machine.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The machine.
    pub(super) arch: Arch,
    /// What the cage's own exec carries.
    pub(super) mark: Option<Mark>,
    /// Who answers refusals.
    pub(super) reporting: Reporting,
    /// Rules by number, sorted; each list is in the order of asking.
    pub(super) calls: Vec<(u32, Vec<&'static Rule>)>,
}

impl Policy {
    /// Sorts the rules of `plan` by their numbers on `arch`.
    pub(crate) fn new(plan: &Plan, arch: Arch) -> Self {
        let mut calls: Vec<(u32, Vec<&'static Rule>)> = Vec::new();
        let said = rules(plan).filter(|rule| speaks(rule.then, plan.reporting));
        for rule in said {
            let Some(nr) = number(arch, rule.call) else {
                continue;
            };
            match calls.binary_search_by_key(&nr, |row| row.0) {
                Ok(row) => calls[row].1.push(rule),
                Err(row) => calls.insert(row, (nr, vec![rule])),
            }
        }
        Self { arch, mark: plan.mark(), reporting: plan.reporting, calls }
    }

    /// The rule that applies to this call, if any does.
    pub(crate) fn judge(&self, nr: u32, args: &[u64; 6]) -> Option<&'static Rule> {
        let row = self.calls.binary_search_by_key(&nr, |row| row.0).ok()?;
        let rules = self.calls[row].1.iter().copied();
        rules.into_iter().find(|rule| applies(rule, args, self.mark))
    }
}

/// Without a listener nothing is looked at.
fn speaks(then: Then, reporting: Reporting) -> bool {
    match (then, reporting) {
        (Then::Refuse(_) | Then::RefuseOthers(..) | Then::Fallback(_), _)
        | (Then::RefuseOutside(..) | Then::Look(_) | Then::Carry(_), Reporting::Notify) => true,
        (Then::RefuseOutside(..) | Then::Look(_) | Then::Carry(_), Reporting::Errno) => false,
    }
}

fn applies(rule: &Rule, args: &[u64; 6], mark: Option<Mark>) -> bool {
    rule.when.iter().all(|test| holds(test, args, mark))
}

/// The kernel, too, takes these arguments as 32 bits and ignores the rest of the register.
#[allow(clippy::cast_possible_truncation)]
fn holds(test: &Test, args: &[u64; 6], mark: Option<Mark>) -> bool {
    let value = args[test.arg] as u32 & test.mask;
    match test.is {
        Is::In(values) => values.contains(&value),
        Is::NotIn(values) => !values.contains(&value),
        Is::Unmarked => mark.is_none_or(|mark| mark.register() != args[test.arg]),
    }
}
