//! Answers that were given before: when a call takes one of them, and what its end means for them. Part
//! of a call's life.

use super::{CachePolicy, CallConclusion, CallEffect, CallMachine, CallPhase, Cut};
use protocol::call::Report;
use protocol::store::{Changed, Recalled};

/// Most bytes of an answer that is kept.
pub(super) const MAX_CACHED_BYTES: usize = 512 << 10;

impl CallMachine {
    /// It is judged by where the store found its path to lead, as after a look.
    pub(super) fn recalled(&mut self, found: Option<Box<Recalled>>) -> Vec<CallEffect> {
        if !matches!(self.phase, CallPhase::CacheLookup) {
            return Vec::new();
        }
        match found {
            Some(found) => {
                self.probe = Some(found.probe.clone());
                self.recalled = Some(found);
                self.judge()
            }
            None => self.probe_or_judge(),
        }
    }

    /// What was known is not proven any more: as if it never had been.
    pub(super) fn forget_cached(&mut self) -> Option<Vec<CallEffect>> {
        self.recalled.take()?;
        self.probe = None;
        Some(self.probe_or_judge())
    }

    /// Its answer is known: nothing runs.
    pub(super) fn conclude_cached(&mut self, found: Recalled) -> Vec<CallEffect> {
        self.phase = CallPhase::Over;
        vec![CallEffect::Conclude(Box::new(CallConclusion {
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
    pub(super) fn cache_effect(&self, report: Option<&Report>) -> Option<CallEffect> {
        let paths = self.probe.iter().flat_map(|probe| &probe.paths);
        let paths: Vec<String> = paths.map(|path| path.real.clone()).collect();
        match (self.facts.known, report) {
            (CachePolicy::Lookup, Some(report))
                if report.evidence.is_some() && is_small(report) =>
            {
                Some(CallEffect::CachePut(Box::new(report.clone())))
            }
            // What was never started has changed nothing.
            (CachePolicy::InvalidatesPaths | CachePolicy::InvalidatesAll, _)
                if self.verdict.is_none() =>
            {
                None
            }
            (CachePolicy::InvalidatesPaths, _) if !paths.is_empty() => {
                Some(CallEffect::Invalidate(Changed::Paths(paths)))
            }
            (CachePolicy::InvalidatesPaths | CachePolicy::InvalidatesAll, _) => {
                Some(CallEffect::Invalidate(Changed::Anything))
            }
            (CachePolicy::Unused | CachePolicy::Lookup, _) => None,
        }
    }
}

/// Whether an answer is worth its place among those that are kept.
fn is_small(report: &Report) -> bool {
    report.result.text.len() + report.full.as_ref().map_or(0, String::len) <= MAX_CACHED_BYTES
}
