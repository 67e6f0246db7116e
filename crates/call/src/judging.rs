//! From the probe to the verdict.

use crate::effect::{CallEffect, CallRecord, Cut};
use crate::facts::{CallFacts, Executor, PendingQuestion, UndoBy};
use crate::machine::CallMachine;
use crate::phase::CallPhase;
use crate::results::{EXPIRED, denial, failed, no_store, stale};
use crate::server_ask::{ServerAsks, ServerDemand, ServerRequest};
use protocol::call::{Call, Outcome, ProbeReport, ToolResult};
use protocol::judgement::{Basis, JudgedCall, Question, Verdict};
use protocol::store::{FileBackup, MayHaveChanged};
use protocol::tool::RunnerJob;
use tools::ServerToolCall;

impl CallMachine {
    pub(crate) fn on_restore_fetched(
        &mut self,
        files: Result<Vec<FileBackup>, ToolResult>,
    ) -> Vec<CallEffect> {
        if !self.phase.is_fetching() {
            return Vec::new();
        }
        match files {
            Ok(files) => {
                self.files = files;
                self.phase = CallPhase::Probing;
                vec![self.probe_effect()]
            }
            Err(result) => self.conclude(result, Cut::No),
        }
    }

    pub(crate) fn probe_effect(&self) -> CallEffect {
        if self.facts.undo == UndoBy::Restore {
            return CallEffect::Probe(RunnerJob::ProbeRestore(self.files.clone()));
        }
        let Call { tool, input, .. } = self.facts.call.clone();
        CallEffect::Probe(RunnerJob::Probe { tool, input })
    }

    pub(crate) fn on_probed(&mut self, probe: Result<ProbeReport, String>) -> Vec<CallEffect> {
        if !self.phase.is_probing() {
            return Vec::new();
        }
        match probe {
            // The probe was done before it could be killed.
            Ok(_) if self.cancelled => self.conclude_never_started(),
            Ok(probe) => {
                if let Some(named) = self.facts.file_versions.first_changed(&probe) {
                    let result = stale(&self.facts.call.tool, named);
                    // The model is told to read the file again: it must not get a cached result.
                    let paths = probe.paths.iter().map(|path| path.real.clone()).collect();
                    let mut effects = vec![CallEffect::Invalidate(MayHaveChanged::Paths(paths))];
                    effects.extend(self.conclude(result, Cut::No));
                    return effects;
                }
                self.probe = Some(probe);
                self.judge()
            }
            Err(text) => self.conclude(
                failed(&self.facts.call.tool, Outcome::Failed, "probe_failed", text),
                Cut::No,
            ),
        }
    }

    pub(crate) fn judge(&mut self) -> Vec<CallEffect> {
        self.phase = CallPhase::Judging;
        match self.broker_failure.clone() {
            Some(why) => self.on_broker_failed(why),
            None => vec![CallEffect::Judge(self.case())],
        }
    }

    fn case(&self) -> JudgedCall {
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
            asked: self.facts.remarks.asked.as_deref().map(Box::from),
        }
    }

    pub(crate) fn on_broker_back(&mut self) -> Vec<CallEffect> {
        self.broker_failure = None;
        if self.has_server_question() {
            return self.on_broker_back_for_servers();
        }
        if !self.phase.is_judging() {
            return Vec::new();
        }
        self.forget_cached().unwrap_or_else(|| self.judge())
    }

    /// Fails closed: denies the call, now or when its judgement is due.
    pub(crate) fn on_broker_failed(&mut self, why: String) -> Vec<CallEffect> {
        let text = format!(
            "The call was not run: the broker, which judges calls, is not available ({why})."
        );
        self.broker_failure = Some(why.clone());
        if self.has_server_question() {
            return self.no_broker_for_servers(&why);
        }
        self.on_verdict(Verdict::Deny(Basis::Unjudgeable(why), text))
    }

    pub(crate) fn on_verdict(&mut self, verdict: Verdict) -> Vec<CallEffect> {
        if !self.phase.is_judging() {
            return match verdict {
                Verdict::Ask(question) => self.on_server_question(question),
                Verdict::Allow(_) | Verdict::Deny(..) => Vec::new(),
            };
        }
        match verdict {
            Verdict::Allow(basis) if !gives_rights(&basis, &self.facts) => {
                let why = "it asks for rights beyond the session's, and neither a person nor a rule gave them";
                self.on_deny(
                    Basis::Unjudgeable(why.to_owned()),
                    format!("The call was not run: {why}."),
                )
            }
            Verdict::Allow(basis) => self.on_allow(basis),
            Verdict::Deny(basis, text) => self.on_deny(basis, text),
            // A person takes time to answer, and the files may change meanwhile.
            Verdict::Ask(question) => match self.forget_cached() {
                Some(effects) => {
                    std::iter::once(CallEffect::ForgetQuestion).chain(effects).collect()
                }
                None => self.ask(question),
            },
        }
    }

    fn on_allow(&mut self, basis: Basis) -> Vec<CallEffect> {
        let verdict = Verdict::Allow(basis.clone());
        let decided = CallEffect::AuditDecision(verdict.clone());
        let approved = CallEffect::Record(vec![CallRecord::Approved(basis.clone())]);
        let started = vec![CallRecord::Approved(basis), CallRecord::Start];
        if let Some(found) = self.cached.take() {
            let mut effects = vec![decided, approved];
            effects.extend(self.conclude_cached(*found));
            return effects;
        }
        match (self.facts.executor.clone(), self.store_failure.clone()) {
            (Executor::Runner, _) => {
                self.phase = CallPhase::Starting { caged: None };
                self.verdict = Some(verdict.clone());
                let mut effects = vec![decided];
                effects.extend(self.backup_effect());
                effects.extend([CallEffect::StartRunner(verdict), CallEffect::PrepareGo(started)]);
                effects
            }
            (Executor::Conversation(result), _) => {
                let mut effects = vec![decided, CallEffect::Record(started)];
                effects.extend(self.conclude(result, Cut::No));
                effects
            }
            (Executor::Job(request), _) => {
                self.record_for(CallPhase::AtOtherCall(ServerAsks::default()));
                vec![decided, CallEffect::Record(started), CallEffect::AskJob(request)]
            }
            (Executor::Server(ServerToolCall { tool, arguments }), _) => {
                self.record_for(CallPhase::AtOtherCall(ServerAsks::default()));
                let demand = ServerDemand::Call(arguments);
                let ask = CallEffect::AskServer(ServerRequest { tool, demand });
                vec![decided, CallEffect::Record(started), ask]
            }
            (Executor::SubAgent(request), _) => {
                self.record_for(CallPhase::AtSubAgent);
                vec![decided, CallEffect::Record(started), CallEffect::StartTask(request)]
            }
            (Executor::Store, Some(cause)) => {
                let mut effects = vec![decided, approved];
                effects.extend(self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No));
                effects
            }
            (Executor::Store, None) => {
                self.record_for(CallPhase::AtStore);
                let ask = CallEffect::AskStore(self.facts.call.clone());
                vec![decided, CallEffect::Record(started), ask]
            }
        }
    }

    fn record_for(&mut self, then: CallPhase) {
        self.phase = CallPhase::Recording { then: Box::new(then) };
    }

    fn on_deny(&mut self, basis: Basis, text: String) -> Vec<CallEffect> {
        let result = denial(&self.facts.call.tool, &basis, text.clone());
        let mut effects = denied(basis, text).to_vec();
        effects.extend(self.conclude(result, Cut::No));
        effects
    }

    /// Who stopped the turn is on record; the end is that of any call that is stopped at its question.
    pub(crate) fn on_stopped_by_answer(&mut self, basis: Basis, text: String) -> Vec<CallEffect> {
        if !self.phase.is_judging() {
            return Vec::new();
        }
        let mut effects = denied(basis, text).to_vec();
        effects.extend(self.conclude_never_started());
        effects
    }

    /// Asks people. The same question keeps its deadline however often it is put, and is recorded
    /// once.
    pub(crate) fn ask(&mut self, mut question: Question) -> Vec<CallEffect> {
        let is_recorded = match &self.pending_question {
            Some(pending) => {
                question.deadline = pending.deadline;
                pending.digest == question.digest
            }
            None => false,
        };
        let Question { digest, deadline, .. } = question.clone();
        self.pending_question = Some(PendingQuestion { digest, deadline });
        let ask = CallEffect::Ask(question.clone());
        match is_recorded {
            true => vec![ask],
            false => vec![CallEffect::Record(vec![CallRecord::Asked(question)]), ask],
        }
    }

    pub(crate) fn on_expired(&mut self) -> Vec<CallEffect> {
        if self.has_server_question() {
            return self.on_server_question_expired();
        }
        if !self.phase.is_judging() || self.pending_question.is_none() {
            return Vec::new();
        }
        let mut effects = vec![
            CallEffect::ForgetQuestion,
            CallEffect::AuditExpired,
            CallEffect::Record(vec![CallRecord::Expired]),
        ];
        effects.extend(self.conclude(
            failed(&self.facts.call.tool, Outcome::Denied, "expired", EXPIRED.to_owned()),
            Cut::No,
        ));
        effects
    }

    /// The backup that makes the call undoable. It runs while the runner starts and costs no time of
    /// its own.
    fn backup_effect(&self) -> Option<CallEffect> {
        let paths = self.probe.iter().flat_map(|probe| &probe.paths);
        let paths: Vec<String> =
            paths.filter(|path| path.in_scope).map(|path| path.real.clone()).collect();
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
}

fn denied(basis: Basis, text: String) -> [CallEffect; 2] {
    let verdict = Verdict::Deny(basis.clone(), text.clone());
    [CallEffect::AuditDecision(verdict), CallEffect::Record(vec![CallRecord::Denied(basis, text)])]
}

/// True if this basis covers the rights beyond the session's that the call asks for.
fn gives_rights(basis: &Basis, facts: &CallFacts) -> bool {
    let CallFacts { call, page, extra_rights: widens, .. } = facts;
    match basis {
        Basis::Person(_) => true,
        Basis::Rights(rules) => approval::grants_all(rules, (&call.tool, page.as_ref()), widens),
        Basis::Rule(_)
        | Basis::Mode(_)
        | Basis::Query
        | Basis::NobodyToAsk(_)
        | Basis::Unjudgeable(_)
        | Basis::Opaque(_) => widens.is_empty(),
    }
}
