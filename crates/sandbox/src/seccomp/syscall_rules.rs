//! The rules of a filter spec by system call number, evaluated on registers alone: the meaning of
//! the filter in Rust. The notify supervisor uses it to find the rule behind a notification; tests
//! compare the compiled program with it.

use super::exec_marker::ExecMarker;
use super::filter_rule::{ArgMatch, ArgTest, FilterAction, FilterRule};
use super::filter_spec::{FilterSpec, Reporting};
use super::rule_table::rules;
use super::syscall_numbers::{Arch, number};

/// The rules of one spec on one machine.
#[derive(Debug)]
pub(crate) struct SyscallRules {
    /// The machine.
    pub(super) arch: Arch,
    /// The marker of the cage's own exec.
    pub(super) marker: Option<ExecMarker>,
    /// Who answers refused calls.
    pub(super) reporting: Reporting,
    /// Rules by number, sorted; each list is in the order of evaluation.
    pub(super) calls: Vec<(u32, Vec<&'static FilterRule>)>,
}

impl SyscallRules {
    /// Sorts the rules of `spec` by their numbers on `arch`.
    pub(crate) fn new(spec: &FilterSpec, arch: Arch) -> Self {
        let mut calls: Vec<(u32, Vec<&'static FilterRule>)> = Vec::new();
        let in_force = rules(spec).filter(|rule| is_in_force(rule.then, spec.reporting));
        for rule in in_force {
            let Some(nr) = number(arch, rule.call) else {
                continue;
            };
            match calls.binary_search_by_key(&nr, |row| row.0) {
                Ok(row) => calls[row].1.push(rule),
                Err(row) => calls.insert(row, (nr, vec![rule])),
            }
        }
        Self { arch, marker: spec.marker(), reporting: spec.reporting, calls }
    }

    /// The rule that applies to this call, if any.
    pub(crate) fn judge(&self, nr: u32, args: &[u64; 6]) -> Option<&'static FilterRule> {
        let row = self.calls.binary_search_by_key(&nr, |row| row.0).ok()?;
        let rules = self.calls[row].1.iter().copied();
        rules.into_iter().find(|rule| applies(rule, args, self.marker))
    }
}

/// Without notifications no call is observed.
fn is_in_force(then: FilterAction, reporting: Reporting) -> bool {
    match (then, reporting) {
        (
            FilterAction::Refuse(_) | FilterAction::RefuseOthers(..) | FilterAction::Fallback(_),
            _,
        )
        | (
            FilterAction::RefuseOutside(..) | FilterAction::Observe(_) | FilterAction::Emulate(_),
            Reporting::Notify,
        ) => true,
        (
            FilterAction::RefuseOutside(..) | FilterAction::Observe(_) | FilterAction::Emulate(_),
            Reporting::Errno,
        ) => false,
    }
}

fn applies(rule: &FilterRule, args: &[u64; 6], marker: Option<ExecMarker>) -> bool {
    rule.when.iter().all(|test| holds(test, args, marker))
}

/// The kernel also takes these arguments as 32 bits and ignores the rest of the register.
#[allow(clippy::cast_possible_truncation)]
fn holds(test: &ArgTest, args: &[u64; 6], marker: Option<ExecMarker>) -> bool {
    let value = args[test.arg] as u32 & test.mask;
    match test.is {
        ArgMatch::In(values) => values.contains(&value),
        ArgMatch::NotIn(values) => !values.contains(&value),
        ArgMatch::Unmarked => marker.is_none_or(|marker| marker.register() != args[test.arg]),
    }
}
