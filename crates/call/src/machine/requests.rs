//! The content of a call's requests: the case for the broker, the jobs of its runners, the files to back up, and the
//! change of the cache.

use super::CallMachine;
use crate::effect::CallEffect;
use crate::facts::{CachePolicy, Executor, NeedsProbe, UndoBy};
use protocol::call::{Call, RunReport};
use protocol::judgement::{Basis, JudgedCall, Verdict};
use protocol::store::MayHaveChanged;
use protocol::tool::{JudgedPath, RunnerJob};
use protocol::web::{HostRight, RedirectScope};

/// Most bytes of a result that is cached.
pub(crate) const MAX_CACHED_BYTES: usize = 512 << 10;

impl CallMachine {
    pub(super) fn probe_job(&self) -> RunnerJob {
        if self.facts.undo == UndoBy::Restore {
            return RunnerJob::ProbeRestore(self.files.clone());
        }
        let Call { tool, input, .. } = self.facts.call.clone();
        RunnerJob::Probe { tool, input }
    }

    /// The case of a command that waits for its turn. None for a call whose verdict depends on files, on the store or
    /// on another call: it is judged at its turn.
    #[must_use]
    pub fn case_ahead(&self) -> Option<JudgedCall> {
        let is_command = self.facts.undo == UndoBy::Snapshot
            && self.facts.executor == Executor::Runner
            && self.facts.needs_probe == NeedsProbe::No;
        (is_command && self.unanswered_undo().is_none()).then(|| self.case())
    }

    pub(super) fn case(&self) -> JudgedCall {
        JudgedCall {
            call: self.facts.call.clone(),
            kind: self.facts.kind_for_verdict,
            command: self.facts.command.clone(),
            page: self.facts.page.clone().map(Box::new),
            probe: self.probe.clone(),
            confinement: self.facts.confinement.clone(),
            extra_rights: self.facts.extra_rights.clone(),
            configured: self.facts.configured.clone(),
            tampered: self.facts.tampered.as_slice().into(),
            typed_by: self.facts.typed_by.as_deref().map(Box::from),
            asked: self.facts.remarks.asked.as_deref().map(Box::from),
            reach: self.reach(),
        }
    }

    pub(super) fn paths_in_scope(&self) -> Vec<String> {
        let paths = self.probe.iter().flat_map(|probe| &probe.paths);
        paths.filter(|path| path.in_scope).map(|path| path.real.clone()).collect()
    }

    pub(super) fn job(&self) -> RunnerJob {
        let Call { tool, input, .. } = self.facts.call.clone();
        let paths = self.probe.iter().flat_map(|probe| &probe.paths);
        let judged = paths
            .map(|path| JudgedPath { real: path.real.clone(), digest: path.digest.clone() })
            .collect();
        let max_result_chars = self.facts.max_result_chars;
        let denied_reads = self.facts.denied_reads.clone();
        if self.facts.undo == UndoBy::Restore {
            let files = self.files.clone();
            return RunnerJob::Restore { files, judged, max_result_chars, denied_reads };
        }
        if let Some((settings, rules)) = self.facts.web.clone() {
            let host = match &self.verdict {
                Some(Verdict::Allow(Basis::Person(_) | Basis::NotedByPerson { .. })) => {
                    HostRight::Given
                }
                _ if self.facts.extra_rights.is_empty() => HostRight::Given,
                _ => HostRight::ByRule,
            };
            let onward = RedirectScope { rules, host };
            return RunnerJob::Web { tool, input, settings, onward, max_result_chars };
        }
        RunnerJob::Run {
            tool,
            input,
            judged,
            env: self.facts.env.clone(),
            timeout_ms: self.facts.timeout_ms,
            max_result_chars,
            denied_reads,
        }
    }

    /// The backup that makes the call undoable. It runs while the runner starts and costs no time of
    /// its own.
    pub(super) fn backup_effect(&self) -> Option<CallEffect> {
        let paths = self.paths_in_scope();
        match self.facts.undo {
            UndoBy::Snapshot => {
                Some(CallEffect::TakeSnapshot(self.facts.command.clone().unwrap_or_default()))
            }
            UndoBy::Copy | UndoBy::Restore => {
                (!paths.is_empty()).then_some(CallEffect::BackUp(paths))
            }
            UndoBy::Nothing => None,
        }
    }

    /// The change of the cache at the call's end. It is sent before the end is reported, so no later
    /// call finds a result that this one invalidated.
    pub(super) fn cache_effect(&self, report: Option<&RunReport>) -> Option<CallEffect> {
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
