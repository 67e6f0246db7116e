//! Cached results: taken before a call, cached or invalidated at its end.

use crate::effect::{CallConclusion, CallEffect, Cut};
use crate::facts::CachePolicy;
use crate::machine::CallMachine;
use crate::phase::CallPhase;
use protocol::call::RunReport;
use protocol::store::{CachedResult, MayHaveChanged};

/// Most bytes of a result that is cached.
pub(crate) const MAX_CACHED_BYTES: usize = 512 << 10;

impl CallMachine {
    /// The call is judged by the paths that the store resolved, as after a probe.
    pub(crate) fn on_cache_answer(&mut self, found: Option<Box<CachedResult>>) -> Vec<CallEffect> {
        if !self.phase.is_cache_lookup() {
            return Vec::new();
        }
        match found {
            Some(found) => {
                self.probe = Some(found.probe.clone());
                self.cached = Some(found);
                self.judge()
            }
            None => self.probe_or_judge(),
        }
    }

    /// Drops a cached result, which may be outdated by now.
    pub(crate) fn forget_cached(&mut self) -> Option<Vec<CallEffect>> {
        self.cached.take()?;
        self.probe = None;
        Some(self.probe_or_judge())
    }

    /// Delivers the cached result; nothing runs.
    pub(crate) fn conclude_cached(&mut self, found: CachedResult) -> Vec<CallEffect> {
        self.phase = CallPhase::Over;
        vec![CallEffect::Conclude(Box::new(CallConclusion {
            result: found.report.result.clone(),
            report: Some(found.report),
            enforced: None,
            cached_from: Some(found.by),
            cut: Cut::No,
            repaired: Vec::new(),
        }))]
    }

    /// The change of the cache at the call's end. It is sent before the end is reported, so no later
    /// call finds a result that this one invalidated.
    pub(crate) fn cache_effect(&self, report: Option<&RunReport>) -> Option<CallEffect> {
        let paths = self.probe.iter().flat_map(|probe| &probe.paths);
        let paths: Vec<String> = paths.map(|path| path.real.clone()).collect();
        match (self.facts.cache, report) {
            (CachePolicy::Lookup, Some(report))
                if report.evidence.is_some() && is_small(report) =>
            {
                Some(CallEffect::CachePut(Box::new(report.clone())))
            }
            // A call that was never started has changed nothing.
            (CachePolicy::InvalidatesPaths | CachePolicy::InvalidatesAll, _)
                if self.verdict.is_none() =>
            {
                None
            }
            (CachePolicy::InvalidatesPaths, _) if !paths.is_empty() => {
                Some(CallEffect::Invalidate(MayHaveChanged::Paths(paths)))
            }
            (CachePolicy::InvalidatesPaths | CachePolicy::InvalidatesAll, _) => {
                Some(CallEffect::Invalidate(MayHaveChanged::Anything))
            }
            (CachePolicy::Unused | CachePolicy::Lookup, _) => None,
        }
    }
}

fn is_small(report: &RunReport) -> bool {
    report.result.text.len() + report.full.as_ref().map_or(0, String::len) <= MAX_CACHED_BYTES
}
