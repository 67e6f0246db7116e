//! The life of one call, from top to bottom: each phase in the order in which a call comes to it, with the inputs
//! that lead on. The README of this crate has the same as a table, which a test compares with this machine.

pub(crate) mod requests;
mod server_questions;
#[cfg(test)]
mod transition_tests;
mod undo_cover;

use crate::effect::{CallConclusion, CallEffect, CallRecord, Cut};
use crate::facts::{
    CachePolicy, CallFacts, Executor, NeedsProbe, PendingQuestion, Protects, UndoBy,
};
use crate::input::{CallInput, Heard, WillRestart};
use crate::phase::{CageState, CallPhase, Passed, Retried};
use crate::results::{
    denial, failed, interruption, no_store, not_awaited, stale, tampered_in_words,
};
use crate::server_ask::{ServerAsks, ServerDemand, ServerRequest};
use journal::EXPIRED;
use protocol::call::{Outcome, ProbeReport, RunReport, TamperedFile, ToolResult};
use protocol::client::ClientEvent;
use protocol::confinement::{Enforced, UNGRANTED_STEP};
use protocol::judgement::{Basis, Question, ToolKind, Verdict};
use protocol::store::{CachedResult, FileBackup, MayHaveChanged, UndoCover};
use tool_specs::ServerToolCall;

/// One call.
#[derive(Debug)]
pub struct CallMachine {
    facts: CallFacts,
    phase: CallPhase,
    /// The files to restore.
    files: Vec<FileBackup>,
    probe: Option<ProbeReport>,
    /// The cached result, if there is one; it is delivered once the call is allowed.
    cached: Option<Box<CachedResult>>,
    verdict: Option<Verdict>,
    pending_question: Option<PendingQuestion>,
    enforced: Option<Enforced>,
    /// Why the broker is not started again, if it is not.
    broker_failure: Option<String>,
    /// Why the present runner's cage died before the call began, if it did.
    cage_loss: Option<String>,
    /// Why the store is not started again, if it is not.
    store_failure: Option<String>,
    retried: Retried,
    passed: Passed,
    cancelled: bool,
    /// Protected files that were restored in place of its runner.
    repaired: Vec<TamperedFile>,
}

impl CallMachine {
    /// A call that has not begun.
    pub fn new(facts: CallFacts) -> Self {
        Self {
            pending_question: facts.pending_question.clone(),
            facts,
            phase: CallPhase::New,
            files: Vec::new(),
            probe: None,
            cached: None,
            verdict: None,
            enforced: None,
            broker_failure: None,
            cage_loss: None,
            store_failure: None,
            retried: Retried::default(),
            passed: Passed::default(),
            cancelled: false,
            repaired: Vec::new(),
        }
    }

    /// True if the conversation goes on while it runs.
    pub fn is_in_background(&self) -> bool {
        self.passed.in_background
    }

    /// The guarantees of the cage of its runner, once that is complete.
    pub fn enforced(&self) -> Option<&Enforced> {
        self.enforced.as_ref()
    }

    /// Takes an input and returns the effects that follow from it.
    pub fn step(&mut self, input: CallInput) -> Vec<CallEffect> {
        match input {
            CallInput::Begin => self.begin(),
            CallInput::CacheAnswer(found) => self.on_cache_answer(found),
            CallInput::RestoreFetched(files) => self.on_restore_fetched(files),
            CallInput::Probed(probe) => self.on_probed(probe),
            CallInput::UndoCovers(cover) => self.on_undo_cover(cover),
            CallInput::Verdict(verdict) => self.on_verdict(verdict),
            CallInput::StoppedByAnswer(basis, text) => self.on_stopped_by_answer(basis, text),
            CallInput::Expired => self.on_expired(),
            CallInput::BrokerBack => self.on_broker_back(),
            CallInput::BrokerFailed(why) => self.on_broker_failed(why),
            CallInput::ReserveLost => self.on_reserve_lost(),
            CallInput::Caged(enforced) => self.on_caged(enforced),
            CallInput::CageFailed { step, reason } => self.on_uncaged(&step, &reason),
            CallInput::CageLost { why } => self.on_cage_lost(&why),
            CallInput::GoPrepared => self.on_go_prepared(),
            CallInput::GoWithoutCopies(why) => {
                self.passed.without_copies = Some(why);
                self.on_go_prepared()
            }
            CallInput::Began => self.on_began(),
            CallInput::Output(text) => {
                let call = self.facts.call.id.clone();
                vec![CallEffect::Show(ClientEvent::Output { call, text, begun: None })]
            }
            CallInput::Detach => self.on_detach(),
            CallInput::Done(report) => self.on_done(report),
            CallInput::RunnerGone(heard) => self.on_runner_gone(heard),
            CallInput::RunnerEnded { cause } => self.on_runner_ended(cause),
            CallInput::Repaired(names) => self.on_repaired(names),
            CallInput::Stored(result) if self.phase.is_at_store() => self.conclude(result, Cut::No),
            CallInput::OtherAnswered(result) if self.phase.is_at_other_call() => {
                self.conclude(result, Cut::No)
            }
            CallInput::TaskEnded(result) if self.phase.is_at_sub_agent() => {
                self.conclude(result, Cut::No)
            }
            CallInput::Stored(_) | CallInput::OtherAnswered(_) | CallInput::TaskEnded(_) => {
                Vec::new()
            }
            CallInput::StoreLost { cause, will_restart } => self.on_store_lost(cause, will_restart),
            CallInput::StoreBack => self.on_store_back(),
            CallInput::OfServer(input) => self.on_server_input(input),
            CallInput::ServerAnswered(answer) => self.on_server_answered(*answer),
            CallInput::ServerLost { cause } => self.on_server_lost(cause),
            CallInput::Cancel => self.cancel(),
            CallInput::Overdue => self.on_overdue(),
            CallInput::WrongGrant(why) => self.on_wrong_grant(&why),
            CallInput::DiskFailed(reason) => {
                self.on_no_record("disk", "the session cannot write to disk any more", &reason)
            }
            CallInput::LeaseLost(reason) => {
                self.on_no_record("lease", "this host has the session no longer", &reason)
            }
        }
    }

    // New: the store has something for it, or a probe inspects its paths, or it is judged.

    fn begin(&mut self) -> Vec<CallEffect> {
        if !matches!(self.phase, CallPhase::New) {
            return Vec::new();
        }
        match self.facts.undo {
            UndoBy::Restore => match self.store_failure.clone() {
                Some(cause) => self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No),
                None => {
                    self.phase = CallPhase::FetchingRestore;
                    vec![CallEffect::FetchRestore(self.facts.call.clone())]
                }
            },
            UndoBy::Snapshot => {
                let prepare = std::iter::once(CallEffect::PrepareSnapshot);
                prepare.chain(self.probe_or_judge()).collect()
            }
            UndoBy::Nothing | UndoBy::Copy
                if self.facts.cache == CachePolicy::Lookup && self.store_failure.is_none() =>
            {
                self.phase = CallPhase::CacheLookup;
                vec![CallEffect::CacheGet(self.facts.call.clone())]
            }
            UndoBy::Nothing | UndoBy::Copy => self.probe_or_judge(),
        }
    }

    /// The call is judged by the paths that the store resolved, as after a probe.
    fn on_cache_answer(&mut self, found: Option<Box<CachedResult>>) -> Vec<CallEffect> {
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

    fn on_restore_fetched(
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
                vec![CallEffect::Probe(self.probe_job())]
            }
            Err(result) => self.conclude(result, Cut::No),
        }
    }

    fn probe_or_judge(&mut self) -> Vec<CallEffect> {
        match self.facts.needs_probe {
            NeedsProbe::Yes => {
                self.phase = CallPhase::Probing;
                vec![CallEffect::Probe(self.probe_job())]
            }
            NeedsProbe::No => self.judge(),
        }
    }

    // Probing.

    fn on_probed(&mut self, probe: Result<ProbeReport, String>) -> Vec<CallEffect> {
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

    // Judging: the broker judges, or asks people.

    fn put_to_broker(&mut self) -> Vec<CallEffect> {
        self.phase = CallPhase::Judging;
        match self.broker_failure.clone() {
            Some(why) => self.on_broker_failed(why),
            None => vec![CallEffect::Judge(self.case())],
        }
    }

    fn on_verdict(&mut self, verdict: Verdict) -> Vec<CallEffect> {
        if !self.phase.is_judging() {
            return match verdict {
                Verdict::Ask(question) => self.on_server_question(question),
                Verdict::Allow(_) | Verdict::Deny(..) => Vec::new(),
            };
        }
        match verdict {
            Verdict::Allow(basis) if !self.facts.are_rights_covered_by(&basis) => {
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

    /// Asks people. The same question keeps its deadline however often it is put, and is recorded
    /// once.
    fn ask(&mut self, mut question: Question) -> Vec<CallEffect> {
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

    /// Who stopped the turn is on record; the end is that of any call that is stopped at its question.
    fn on_stopped_by_answer(&mut self, basis: Basis, text: String) -> Vec<CallEffect> {
        if !self.phase.is_judging() {
            return Vec::new();
        }
        let mut effects = denied(basis, text).to_vec();
        effects.extend(self.conclude_never_started());
        effects
    }

    fn on_expired(&mut self) -> Vec<CallEffect> {
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

    fn on_broker_back(&mut self) -> Vec<CallEffect> {
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
    fn on_broker_failed(&mut self, why: String) -> Vec<CallEffect> {
        let text = format!(
            "The call was not run: the broker, which judges calls, is not available ({why})."
        );
        self.broker_failure = Some(why.clone());
        if self.has_server_question() {
            return self.no_broker_for_servers(&why);
        }
        self.on_verdict(Verdict::Deny(Basis::Unjudgeable(why), text))
    }

    /// Drops a cached result, which may be outdated by now.
    fn forget_cached(&mut self) -> Option<Vec<CallEffect>> {
        self.cached.take()?;
        self.probe = None;
        Some(self.probe_or_judge())
    }

    fn on_deny(&mut self, basis: Basis, text: String) -> Vec<CallEffect> {
        let result = denial(&self.facts.call.tool, &basis, text.clone());
        let mut effects = denied(basis, text).to_vec();
        effects.extend(self.conclude(result, Cut::No));
        effects
    }

    // The verdict allows it.

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
                self.phase = CallPhase::Starting { cage: CageState::Building };
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

    /// Delivers the cached result; nothing runs.
    fn conclude_cached(&mut self, found: CachedResult) -> Vec<CallEffect> {
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

    // Starting: a runner builds its cage, while START is written.

    /// The retry for a runner that dies is left.
    fn on_reserve_lost(&mut self) -> Vec<CallEffect> {
        match self.phase.is_starting() {
            true if self.cancelled => self.conclude_never_started(),
            true => self.start_again(),
            false => Vec::new(),
        }
    }

    /// The cage is complete.
    fn on_caged(&mut self, enforced: Enforced) -> Vec<CallEffect> {
        // A proxy that listens late would complete the cage of a runner that is gone.
        if !matches!(self.phase, CallPhase::Starting { cage: CageState::Building }) {
            return Vec::new();
        }
        if let Some(why) = self.promised_more_than(&enforced) {
            let kill = std::iter::once(CallEffect::KillRunner);
            return kill.chain(self.on_uncaged("tier", why)).collect();
        }
        self.phase = CallPhase::Starting { cage: CageState::Complete(enforced) };
        self.go_if_ready()
    }

    /// START is in the journal, for a mutation durable in all copies, and the decision in the audit log.
    fn on_go_prepared(&mut self) -> Vec<CallEffect> {
        self.passed.go_prepared = true;
        self.go_if_ready()
    }

    fn go_if_ready(&mut self) -> Vec<CallEffect> {
        let CallPhase::Starting { cage: CageState::Complete(_) } = &self.phase else {
            return Vec::new();
        };
        // A runner that is being killed gets no `Go`, though its cage is complete.
        if self.cancelled || !self.passed.go_prepared {
            return Vec::new();
        }
        if let Some(result) = self.promised_undo_is_missing() {
            let kill = std::iter::once(CallEffect::KillRunner);
            return kill.chain(self.conclude(result, Cut::No)).collect();
        }
        vec![CallEffect::Go(self.job())]
    }

    /// The request of the last effect was sent: `Go`, or the one to the store, another call or a sub-agent. It is no
    /// input: an effect that fails before that leaves the phase as it was.
    pub fn sent(&mut self) {
        self.phase = std::mem::replace(&mut self.phase, CallPhase::Over).sent();
    }

    fn on_uncaged(&mut self, step: &str, reason: &str) -> Vec<CallEffect> {
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
    fn on_cage_lost(&mut self, why: &str) -> Vec<CallEffect> {
        if self.phase.is_starting() || self.phase.is_released() {
            self.phase = CallPhase::Starting { cage: CageState::Lost };
            self.enforced = None;
            self.cage_loss = Some(format!("lost a process of its cage ({why})"));
        }
        Vec::new()
    }

    fn start_again(&mut self) -> Vec<CallEffect> {
        self.phase = CallPhase::Starting { cage: CageState::Building };
        self.enforced = None;
        self.verdict.clone().map(CallEffect::StartRunner).into_iter().collect()
    }

    // Released and Running: `Go` was sent, and the runner has begun.

    /// From here on the call may have an effect.
    fn on_began(&mut self) -> Vec<CallEffect> {
        let CallPhase::Released { enforced } = &self.phase else { return Vec::new() };
        let (call, enforced) = (self.facts.call.id.clone(), enforced.clone());
        self.phase = CallPhase::Running;
        self.enforced = Some(enforced.clone());
        vec![CallEffect::Show(ClientEvent::Started { call, enforced })]
    }

    /// The report counts once its process has ended.
    fn on_done(&mut self, report: RunReport) -> Vec<CallEffect> {
        if self.phase.is_running() {
            self.phase = CallPhase::Reported(Box::new(report));
        }
        Vec::new()
    }

    /// A runner that did not say that it began has done nothing, and gets no `Go` from now on. Processes of its cage
    /// may live for seconds, and GoPrepared may come in that time.
    fn on_runner_gone(&mut self, heard: Heard) -> Vec<CallEffect> {
        match (&self.phase, heard) {
            (CallPhase::Released { enforced }, Heard::Cut) => {
                self.enforced = Some(enforced.clone());
                self.phase = CallPhase::Running;
            }
            (CallPhase::Starting { .. } | CallPhase::Released { .. }, _) => {
                self.phase = CallPhase::Starting { cage: CageState::Lost };
            }
            (_, _) => {}
        }
        Vec::new()
    }

    // The runner has ended, with all processes of its cage.

    fn on_runner_ended(&mut self, cause: String) -> Vec<CallEffect> {
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
                vec![CallEffect::Probe(self.probe_job())]
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
            | CallPhase::AskingUndo
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

    /// No process of the call is left, and the protected files that it changed were restored where
    /// possible.
    fn on_repaired(&mut self, names: Vec<TamperedFile>) -> Vec<CallEffect> {
        let CallPhase::Repairing { cause } = &self.phase else { return Vec::new() };
        let cut = Cut::AfterGo { cause: cause.clone() };
        self.repaired = names;
        self.conclude_cut_short(cut)
    }

    // AtStore and FetchingRestore: the store works for it, and may restart.

    /// The next store is asked once more. After that the call fails; a mutation may have run.
    fn on_store_lost(&mut self, cause: String, will_restart: WillRestart) -> Vec<CallEffect> {
        if will_restart == WillRestart::No {
            self.store_failure = Some(cause.clone());
        }
        if self.phase.is_cache_lookup() {
            return self.on_cache_answer(None);
        }
        if self.phase.is_asking_undo() {
            return self.on_undo_cover(UndoCover::Leaves(format!("the session's store {cause}")));
        }
        if !self.phase.is_at_store() && !self.phase.is_fetching() {
            return Vec::new();
        }
        let is_first = !std::mem::replace(&mut self.retried.store, true);
        if will_restart == WillRestart::Yes && !self.cancelled && is_first {
            return Vec::new();
        }
        match self.facts.kind {
            ToolKind::Mutation if self.phase.is_at_store() => {
                self.conclude_cut_short(Cut::AfterGo { cause })
            }
            ToolKind::Mutation | ToolKind::Query => {
                self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No)
            }
        }
    }

    fn on_store_back(&mut self) -> Vec<CallEffect> {
        self.store_failure = None;
        if self.phase.is_at_store() {
            return vec![CallEffect::AskStore(self.facts.call.clone())];
        }
        if self.phase.is_fetching() {
            return vec![CallEffect::FetchRestore(self.facts.call.clone())];
        }
        if self.phase.is_asking_undo() {
            // It was asked while none ran.
            return self.unanswered_undo().map(CallEffect::AskUndo).into_iter().collect();
        }
        Vec::new()
    }

    // Stopped from outside.

    fn cancel(&mut self) -> Vec<CallEffect> {
        self.cancelled = true;
        if self.phase.is_before_start() {
            let forget = std::iter::once(CallEffect::ForgetQuestion);
            return forget.chain(self.conclude_never_started()).collect();
        }
        if self.phase.is_caging() {
            return vec![CallEffect::KillRunner];
        }
        if self.phase.is_released() {
            return vec![CallEffect::CancelRunner];
        }
        if self.phase.is_at_store() {
            return self.cancel_at_store();
        }
        if self.phase.is_at_sub_agent() {
            return vec![CallEffect::StopTask];
        }
        if self.phase.is_at_other_call() && matches!(self.facts.executor, Executor::Server(_)) {
            return self.give_up("was stopped by a person".to_owned());
        }
        if self.phase.is_at_other_call() {
            return self.conclude(not_awaited(&self.facts.call.tool), Cut::No);
        }
        Vec::new()
    }

    /// A running store answers in a moment, and its change cannot be taken back: the call goes on. A
    /// store that is being restarted is not asked again.
    fn cancel_at_store(&mut self) -> Vec<CallEffect> {
        match self.retried.store {
            true => {
                let cause = "did not answer before a person stopped it".to_owned();
                self.on_store_lost(cause, WillRestart::No)
            }
            false => Vec::new(),
        }
    }

    /// The runner did not end in time; or the session ends, and the sub-agent has not answered.
    fn on_overdue(&mut self) -> Vec<CallEffect> {
        if self.phase.has_runner() {
            return vec![CallEffect::KillRunner];
        }
        if self.phase.is_at_sub_agent() {
            let cause = "was stopped with its session".to_owned();
            return self.conclude_cut_short(Cut::AfterGo { cause });
        }
        Vec::new()
    }

    /// A bug: the runner was started for another call. It got no `Go` and is killed.
    fn on_wrong_grant(&mut self, why: &str) -> Vec<CallEffect> {
        self.enforced = None;
        let text = format!("The call was not run: {why}. This is a bug in agentd.");
        let result = failed(&self.facts.call.tool, Outcome::Failed, "wrong_grant", text);
        let kill = std::iter::once(CallEffect::KillRunner);
        kill.chain(self.conclude(result, Cut::No)).collect()
    }

    fn on_no_record(&mut self, code: &str, what: &str, reason: &str) -> Vec<CallEffect> {
        if self.phase.may_have_run() {
            return self.give_up(format!("was given up, since {what} ({reason}),"));
        }
        let text = format!("The call was not run: {what} ({reason}).");
        let effects =
            self.conclude(failed(&self.facts.call.tool, Outcome::Failed, code, text), Cut::No);
        let kill = std::iter::once(CallEffect::KillRunner);
        kill.chain(effects).collect()
    }

    /// Stops a call that may have had an effect, and waits for no end of it.
    fn give_up(&mut self, cause: String) -> Vec<CallEffect> {
        let stop = match (&self.phase, &self.facts.executor) {
            (CallPhase::AtOtherCall(_), Executor::Server(call)) => {
                let (tool, demand) = (call.tool.clone(), ServerDemand::Withdraw);
                CallEffect::AskServer(ServerRequest { tool, demand })
            }
            (CallPhase::AtSubAgent, _) => CallEffect::StopTask,
            (_, _) => CallEffect::KillRunner,
        };
        let end = self.conclude_cut_short(Cut::AfterGo { cause });
        std::iter::once(stop).chain(end).collect()
    }

    // The end.

    fn conclude_never_started(&mut self) -> Vec<CallEffect> {
        self.conclude_cut_short(Cut::BeforeGo { cause: "stopped by a person".to_owned() })
    }

    fn conclude_cut_short(&mut self, cut: Cut) -> Vec<CallEffect> {
        let names = tampered_in_words(&self.repaired);
        let result = interruption(&cut, &self.facts.call.tool, names);
        self.conclude(result, cut)
    }

    fn conclude(&mut self, result: ToolResult, cut: Cut) -> Vec<CallEffect> {
        self.conclude_with(result, None, cut)
    }

    fn conclude_with(
        &mut self,
        result: ToolResult,
        report: Option<RunReport>,
        cut: Cut,
    ) -> Vec<CallEffect> {
        let forget = self.has_server_question().then_some(CallEffect::ForgetQuestion);
        self.phase = CallPhase::Over;
        let cache = self.cache_effect(report.as_ref());
        let enforced = self.enforced.take();
        let repaired = std::mem::take(&mut self.repaired);
        let conclusion =
            CallConclusion { result, report, enforced, cached_from: None, cut, repaired };
        let before = forget.into_iter().chain(cache);
        before.chain([CallEffect::Conclude(Box::new(conclusion))]).collect()
    }
}

fn denied(basis: Basis, text: String) -> [CallEffect; 2] {
    let verdict = Verdict::Deny(basis.clone(), text.clone());
    [CallEffect::AuditDecision(verdict), CallEffect::Record(vec![CallRecord::Denied(basis, text)])]
}
