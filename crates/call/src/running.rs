//! From the verdict to the end of the runner.

use crate::effect::{CallEffect, Cut};
use crate::facts::{Contained, Protects, UndoBy};
use crate::input::Heard;
use crate::machine::CallMachine;
use crate::phase::CallPhase;
use crate::results::failed;
use protocol::call::{Call, Outcome, TamperedFile};
use protocol::client::ClientEvent;
use protocol::confinement::{Enforced, Tier, UNGRANTED_STEP};
use protocol::judgement::{Basis, ToolKind, Verdict};
use protocol::tool::{JudgedPath, RunnerJob};
use protocol::web::{HostRight, RedirectScope};

impl CallMachine {
    /// The cage is complete.
    pub(crate) fn on_caged(&mut self, enforced: Enforced) -> Vec<CallEffect> {
        if self.facts.contained == Contained::Yes && enforced.of_command() != Some(Tier::A) {
            // Its START promises more than this cage keeps.
            let kill = std::iter::once(CallEffect::KillRunner);
            let why = "the fleet was told that the call runs in tier A, and its sandbox is weaker";
            return kill.chain(self.on_uncaged("tier", why)).collect();
        }
        if let CallPhase::Starting { caged } = &mut self.phase {
            *caged = Some(enforced);
        }
        self.go_if_ready()
    }

    /// START is in the journal, for a mutation durable in all copies, and the decision in the audit log.
    pub(crate) fn on_go_prepared(&mut self) -> Vec<CallEffect> {
        self.passed.go_prepared = true;
        self.go_if_ready()
    }

    fn go_if_ready(&mut self) -> Vec<CallEffect> {
        let CallPhase::Starting { caged: Some(_) } = &self.phase else { return Vec::new() };
        // A runner that is being killed gets no `Go`, though its cage is complete.
        if self.cancelled || !self.passed.go_prepared {
            return Vec::new();
        }
        vec![CallEffect::Go(self.job())]
    }

    /// From here on the call may have an effect.
    pub(crate) fn on_began(&mut self) -> Vec<CallEffect> {
        let CallPhase::Released { enforced } = &self.phase else { return Vec::new() };
        let (call, enforced) = (self.facts.call.id.clone(), enforced.clone());
        self.phase = CallPhase::Running;
        self.enforced = Some(enforced.clone());
        vec![CallEffect::Show(ClientEvent::Started { call, enforced })]
    }

    /// A runner that did not say that it began has done nothing, and gets no `Go` from now on.
    pub(crate) fn on_runner_gone(&mut self, heard: Heard) {
        match (&self.phase, heard) {
            (CallPhase::Released { enforced }, Heard::Cut) => {
                self.enforced = Some(enforced.clone());
                self.phase = CallPhase::Running;
            }
            (CallPhase::Starting { .. } | CallPhase::Released { .. }, _) => {
                self.phase = CallPhase::Starting { caged: None };
            }
            (_, _) => {}
        }
    }

    /// The conversation goes on while the command runs, or the sub-agent works. Its result comes later, once.
    pub(crate) fn on_detach(&mut self) -> Vec<CallEffect> {
        let may = self.facts.may_run_in_background()
            && (self.phase.is_running() || self.phase.is_at_sub_agent());
        if !may || self.cancelled || std::mem::replace(&mut self.passed.in_background, true) {
            return Vec::new();
        }
        self.cache_effect(None).into_iter().chain([CallEffect::Detach]).collect()
    }

    fn job(&self) -> RunnerJob {
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
                Some(Verdict::Allow(Basis::Person(_))) => HostRight::Given,
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

    pub(crate) fn on_uncaged(&mut self, step: &str, reason: &str) -> Vec<CallEffect> {
        if !self.phase.is_caging() {
            return Vec::new();
        }
        // A grant fails because of the session's directories, not because of this machine.
        let (code, text) = match step == UNGRANTED_STEP {
            true => ("not_granted", format!("The call was not run: {reason}.")),
            false => (
                "sandbox_unavailable",
                format!(
                    "The call was not run: its sandbox could not be made ({step}: {reason}). \
                     `agentd doctor` shows what this machine allows."
                ),
            ),
        };
        let outcome = Outcome::Confined { what: step.to_owned() };
        self.conclude(failed(&self.facts.call.tool, outcome, code, text), Cut::No)
    }

    /// Nothing of the call has happened: the end of its runner is treated as one before `Go`.
    pub(crate) fn on_cage_lost(&mut self, why: &str) -> Vec<CallEffect> {
        if self.phase.is_starting() || self.phase.is_released() {
            self.phase = CallPhase::Starting { caged: None };
            self.enforced = None;
            self.cage_loss = Some(format!("lost a process of its cage ({why})"));
        }
        Vec::new()
    }

    pub(crate) fn on_runner_ended(&mut self, cause: String) -> Vec<CallEffect> {
        let cause = self.cage_loss.take().unwrap_or(cause);
        let retried = &mut self.retried;
        match std::mem::replace(&mut self.phase, CallPhase::Over) {
            CallPhase::Probing | CallPhase::Starting { .. } | CallPhase::Released { .. }
                if self.cancelled =>
            {
                self.conclude_never_started()
            }
            CallPhase::Probing if !std::mem::replace(&mut retried.probe, true) => {
                self.phase = CallPhase::Probing;
                vec![self.probe_effect()]
            }
            // Before it begins nothing of the call has happened: it is started again silently.
            CallPhase::Starting { .. } | CallPhase::Released { .. }
                if !std::mem::replace(&mut retried.start, true) =>
            {
                self.start_again()
            }
            // A query changes nothing: it may run again.
            CallPhase::Running
                if self.facts.kind == ToolKind::Query
                    && !self.cancelled
                    && !std::mem::replace(&mut retried.run, true) =>
            {
                self.start_again()
            }
            CallPhase::Probing | CallPhase::Starting { .. } | CallPhase::Released { .. } => {
                let text = format!("The call was not run: its process {cause} before it began.");
                self.conclude(
                    failed(&self.facts.call.tool, Outcome::Crashed, "runner_lost", text),
                    Cut::No,
                )
            }
            CallPhase::Running if self.facts.protects == Protects::Files => {
                self.phase = CallPhase::Repairing { cause };
                vec![CallEffect::Repair]
            }
            CallPhase::Running => self.conclude_cut_short(Cut::AfterGo { cause }),
            CallPhase::Reported(report) => {
                let result = report.result.clone();
                self.conclude_with(result, Some(*report), Cut::No)
            }
            // There is no runner, or the repair goes on: the phase stays.
            phase @ (CallPhase::New
            | CallPhase::CacheLookup
            | CallPhase::FetchingRestore
            | CallPhase::Judging
            | CallPhase::Recording { .. }
            | CallPhase::AtStore
            | CallPhase::AtOtherCall(_)
            | CallPhase::AtSubAgent
            | CallPhase::Repairing { .. }
            | CallPhase::Over) => {
                self.phase = phase;
                Vec::new()
            }
        }
    }

    /// The retry for a runner that dies is left.
    pub(crate) fn on_reserve_lost(&mut self) -> Vec<CallEffect> {
        match self.phase.is_starting() {
            true if self.cancelled => self.conclude_never_started(),
            true => self.start_again(),
            false => Vec::new(),
        }
    }

    fn start_again(&mut self) -> Vec<CallEffect> {
        self.phase = CallPhase::Starting { caged: None };
        self.enforced = None;
        self.verdict.clone().map(CallEffect::StartRunner).into_iter().collect()
    }

    /// No process of the call is left, and the protected files that it changed were restored where
    /// possible.
    pub(crate) fn on_repaired(&mut self, names: Vec<TamperedFile>) -> Vec<CallEffect> {
        let CallPhase::Repairing { cause } = &self.phase else { return Vec::new() };
        let cut = Cut::AfterGo { cause: cause.clone() };
        self.repaired = names;
        self.conclude_cut_short(cut)
    }
}
