//! Answers that were given before: when a call takes one of them, and what its end means for them. Part
//! of a call's life.

use super::{CallEffect, CallLife, Conclusion, Cut, Known, Phase};
use protocol::call::Report;
use protocol::store::{Changed, Recalled};

/// Most bytes of an answer that is kept.
pub(super) const LARGEST_KNOWN: usize = 512 << 10;

impl CallLife {
    /// It is judged by where the store found its path to lead, as after a look.
    pub(super) fn recalled(&mut self, found: Option<Box<Recalled>>) -> Vec<CallEffect> {
        if !matches!(self.phase, Phase::Recalling) {
            return Vec::new();
        }
        match found {
            Some(found) => {
                self.probe = Some(found.probe.clone());
                self.recalled = Some(found);
                self.judge()
            }
            None => self.look_or_judge(),
        }
    }

    /// What was known is not proven any more: as if it never had been.
    pub(super) fn forget_recalled(&mut self) -> Option<Vec<CallEffect>> {
        self.recalled.take()?;
        self.probe = None;
        Some(self.look_or_judge())
    }

    /// Its answer is known: nothing runs.
    pub(super) fn conclude_known(&mut self, found: Recalled) -> Vec<CallEffect> {
        self.phase = Phase::Over;
        vec![CallEffect::Conclude(Box::new(Conclusion {
            result: found.report.result.clone(),
            report: Some(found.report),
            enforced: None,
            recalled: Some(found.by),
            cut: Cut::No,
            repaired: Vec::new(),
        }))]
    }

    /// What the end of the call means for answers that are kept. The store is told before anybody
    /// hears of the end: what is asked next finds nothing that the call outdated.
    pub(super) fn for_the_store(&self, report: Option<&Report>) -> Option<CallEffect> {
        let paths = self.probe.iter().flat_map(|probe| &probe.paths);
        let paths: Vec<String> = paths.map(|path| path.real.clone()).collect();
        match (self.facts.known, report) {
            (Known::Asked, Some(report)) if report.evidence.is_some() && is_small(report) => {
                Some(CallEffect::Remember(Box::new(report.clone())))
            }
            // What was never started has changed nothing.
            (Known::OutdatesPaths | Known::OutdatesAll, _) if self.verdict.is_none() => None,
            (Known::OutdatesPaths, _) if !paths.is_empty() => {
                Some(CallEffect::Outdate(Changed::Paths(paths)))
            }
            (Known::OutdatesPaths | Known::OutdatesAll, _) => {
                Some(CallEffect::Outdate(Changed::Anything))
            }
            (Known::Not | Known::Asked, _) => None,
        }
    }
}

/// Whether an answer is worth its place among those that are kept.
fn is_small(report: &Report) -> bool {
    report.result.text.len() + report.full.as_ref().map_or(0, String::len) <= LARGEST_KNOWN
}
