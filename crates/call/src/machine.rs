//! The machine: phases and inputs to effects.
//!
//! | Phase | Input | Effects | Next phase |
//! |---|---|---|---|
//! | New | Begin; undo by Restore | FetchRestore; without a store: Conclude `store_unavailable` | FetchingRestore, Over |
//! | New | Begin; undo by Snapshot | PrepareSnapshot, then as the plain Begin below | Probing, Judging |
//! | New | Begin; result may be cached, and there is a store | CacheGet | CacheLookup |
//! | New | Begin | Probe, if the call needs one; else Judge | Probing, Judging |
//! | CacheLookup | CacheAnswer with a result | Judge, by the paths in the result | Judging |
//! | CacheLookup | CacheAnswer without one, StoreLost | Probe or Judge | Probing, Judging |
//! | FetchingRestore | RestoreFetched with files | Probe | Probing |
//! | FetchingRestore | RestoreFetched with a result | Conclude | Over |
//! | Probing | Probed | Judge | Judging |
//! | Probing | Probed; a file changed since the model read it | Invalidate, Conclude `stale` | Over |
//! | Probing | Probed with an error | Conclude `probe_failed` | Over |
//! | Judging | Verdict Allow; runner | AuditDecision, BackUp or TakeSnapshot, StartRunner, PrepareGo | Starting |
//! | Judging | Verdict Allow; result cached | AuditDecision, Record, Conclude | Over |
//! | Judging | Verdict Allow; conversation | AuditDecision, Record, Conclude | Over |
//! | Judging | Verdict Allow; store | AuditDecision, Record, AskStore; without a store: Conclude | Recording, Over |
//! | Judging | Verdict Allow; other call | AuditDecision, Record, AskJob or AskServer | Recording |
//! | Judging | Verdict Allow; sub-agent | AuditDecision, Record, StartTask | Recording |
//! | Recording | `sent` | none | AtStore, AtOtherCall, AtSubAgent |
//! | Judging | Verdict Allow without the rights it asks for | as Deny | Over |
//! | Judging | Verdict Deny | AuditDecision, Record, Conclude | Over |
//! | Judging | StoppedByAnswer | AuditDecision, Record, Conclude `never started` | Over |
//! | Judging | Verdict Ask | Record, if the question is new; Ask | Judging |
//! | Judging | Verdict Ask; result cached | ForgetQuestion, then Probe or Judge without the result | Probing, Judging |
//! | Judging | Expired, with a pending question | ForgetQuestion, AuditExpired, Record, Conclude | Over |
//! | Judging | BrokerBack | Judge again; with a cached result: Probe or Judge without it | Judging, Probing |
//! | Judging | BrokerFailed | as Deny; in an earlier phase it is noted, and denies on Judging | Over |
//! | Starting | Caged (with a proxy, once it listens) and GoPrepared, in any order, unless cancelled | Go | unchanged |
//! | Starting | `sent` | none | Released |
//! | Released | Began | Show | Running |
//! | Starting | ReserveLost | StartRunner, or Conclude `never started` if it was cancelled | unchanged, Over |
//! | Probing, Starting | CageFailed | Conclude `sandbox_unavailable` or `not_granted` | Over |
//! | Starting, Released, Running | CageLost | none: the end of the runner follows | Starting |
//! | Starting, Released | RunnerGone, all heard | none: RunnerEnded follows, and no `Go` comes before | Starting |
//! | Released | RunnerGone, not all heard | none: it may have begun | Running |
//! | Probing, Starting, Released | RunnerEnded | Probe or StartRunner, once; then Conclude `runner_lost` | unchanged, Over |
//! | Running | Done | none | Reported |
//! | Running | RunnerEnded; a query | StartRunner, once; then as the rows below | Starting |
//! | Running | RunnerEnded; it protects files | Repair | Repairing |
//! | Running | RunnerEnded | Conclude `interrupted: may have run` | Over |
//! | Repairing | Repaired | Conclude `interrupted: may have run` | Over |
//! | Reported | RunnerEnded | Conclude with the report | Over |
//! | AtStore | Stored | Conclude | Over |
//! | AtStore, FetchingRestore | StoreLost, the first | none: StoreBack follows | unchanged |
//! | AtStore | StoreLost, the second or last | Conclude `store_unavailable`; a mutation `may have run` | Over |
//! | FetchingRestore | StoreLost, the second or last | Conclude `store_unavailable` | Over |
//! | AtStore, FetchingRestore | StoreBack | AskStore or FetchRestore again | unchanged |
//! | New, CacheLookup, FetchingRestore, Judging | Cancel | ForgetQuestion, Conclude `never started` | Over |
//! | Probing, Starting | Cancel | KillRunner; RunnerEnded or Probed concludes: `never started`, or `probe_failed` | unchanged |
//! | Released, Running | Cancel | CancelRunner | unchanged |
//! | Running, a command of the model's | Detach, the first | Invalidate, Detach | unchanged |
//! | AtOtherCall | OtherAnswered, ServerAnswered, Cancel | Conclude | Over |
//! | AtOtherCall | Cancel; a call of a server | AskServer to withdraw, Conclude `may have run` | Over |
//! | AtOtherCall | ServerLost | Conclude `may have run` | Over |
//! | AtOtherCall | a question of the server, and its answer | see `server_questions` | AtOtherCall |
//! | AtSubAgent | Detach, the first | Detach | unchanged |
//! | AtSubAgent | Cancel | StopTask; TaskEnded follows | unchanged |
//! | AtSubAgent | TaskEnded, Overdue | Conclude | Over |
//! | AtStore | Cancel, after StoreLost | as StoreLost, the last | Over |
//! | Probing, Starting, Released, Running, Reported | Overdue | KillRunner | unchanged |
//! | any | Output | Show | unchanged |
//! | any | WrongGrant | KillRunner, Conclude `wrong_grant` | Over |
//! | Released, Running, AtStore, AtOtherCall, AtSubAgent, Reported, Repairing | DiskFailed, LeaseLost | the stop of that phase, Conclude `may have run` | Over |
//! | any other | DiskFailed, LeaseLost | KillRunner, Conclude `disk` or `lease` | Over |
//!
//! `sent` is no input: the call actor says so in the moment in which it has sent the request of the effect Go,
//! AskStore, AskJob, AskServer or StartTask. An effect that fails before that leaves the phase as it was, so the phase
//! alone tells whether anything of the call may have happened.
//!
//! Every other pair changes nothing. Before Conclude, the store is sent CachePut or Invalidate as the
//! call's cache policy requires.

use crate::effect::{CallConclusion, CallEffect, Cut};
use crate::facts::{CachePolicy, CallFacts, Executor, NeedsProbe, PendingQuestion, UndoBy};
use crate::input::CallInput;
use crate::phase::CallPhase;
use crate::results::{failed, interruption, no_store, not_awaited, tampered_in_words};
use crate::server_ask::{ServerDemand, ServerRequest};
use protocol::call::{Outcome, ProbeReport, RunReport, TamperedFile, ToolResult};
use protocol::client::ClientEvent;
use protocol::confinement::Enforced;
use protocol::judgement::Verdict;
use protocol::store::{CachedResult, FileBackup};

/// One call.
#[derive(Debug)]
pub struct CallMachine {
    pub(crate) facts: CallFacts,
    pub(crate) phase: CallPhase,
    /// The files to restore.
    pub(crate) files: Vec<FileBackup>,
    pub(crate) probe: Option<ProbeReport>,
    /// The cached result, if there is one; it is delivered once the call is allowed.
    pub(crate) cached: Option<Box<CachedResult>>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) pending_question: Option<PendingQuestion>,
    pub(crate) enforced: Option<Enforced>,
    /// Why the broker is not started again, if it is not.
    pub(crate) broker_failure: Option<String>,
    /// Why the present runner's cage died before the call began, if it did.
    pub(crate) cage_loss: Option<String>,
    /// Why the store is not started again, if it is not.
    pub(crate) store_failure: Option<String>,
    pub(crate) retried: Retried,
    pub(crate) passed: Passed,
    pub(crate) cancelled: bool,
    /// Protected files that were restored in place of its runner.
    pub(crate) repaired: Vec<TamperedFile>,
}

/// What it has behind it, once each.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// START is written, and durable for a mutation; the decision is in the audit log, and the copies for undo are made or are not awaited any
    /// longer.
    pub(crate) go_prepared: bool,
    /// The conversation goes on while it runs.
    pub(crate) in_background: bool,
}

/// The retries that were used. Each is given once.
#[derive(Debug, Default)]
pub(crate) struct Retried {
    pub(crate) probe: bool,
    /// Of a runner that ended before `Go`.
    pub(crate) start: bool,
    /// Of a query that ended after `Go`.
    pub(crate) run: bool,
    pub(crate) store: bool,
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
            CallInput::Probed(probe) => self.on_probed(probe),
            CallInput::Verdict(verdict) => self.on_verdict(verdict),
            CallInput::StoppedByAnswer(basis, text) => self.on_stopped_by_answer(basis, text),
            CallInput::Expired => self.on_expired(),
            CallInput::BrokerBack => self.on_broker_back(),
            CallInput::BrokerFailed(why) => self.on_broker_failed(why),
            CallInput::Caged(enforced) => self.on_caged(enforced),
            CallInput::GoPrepared => self.on_go_prepared(),
            CallInput::Began => self.on_began(),
            CallInput::RunnerGone(heard) => {
                self.on_runner_gone(heard);
                Vec::new()
            }
            CallInput::ReserveLost => self.on_reserve_lost(),
            CallInput::CageFailed { step, reason } => self.on_uncaged(&step, &reason),
            CallInput::CageLost { why } => self.on_cage_lost(&why),
            CallInput::Output(text) => {
                let call = self.facts.call.id.clone();
                vec![CallEffect::Show(ClientEvent::Output { call, text })]
            }
            CallInput::Done(report) => {
                if self.phase.is_running() {
                    self.phase = CallPhase::Reported(Box::new(report));
                }
                Vec::new()
            }
            CallInput::RunnerEnded { cause } => self.on_runner_ended(cause),
            CallInput::CacheAnswer(found) => self.on_cache_answer(found),
            CallInput::RestoreFetched(files) => self.on_restore_fetched(files),
            CallInput::Stored(result) if self.phase.is_at_store() => self.conclude(result, Cut::No),
            CallInput::Stored(_) => Vec::new(),
            CallInput::OtherAnswered(result) if self.phase.is_at_other_call() => {
                self.conclude(result, Cut::No)
            }
            CallInput::OtherAnswered(_) => Vec::new(),
            CallInput::ServerAnswered(answer) if self.phase.is_at_other_call() => {
                let (report, enforced) = *answer;
                self.enforced = enforced;
                self.conclude_with(report.result.clone(), Some(report), Cut::No)
            }
            CallInput::ServerLost { cause } if self.phase.is_at_other_call() => {
                self.conclude_cut_short(Cut::AfterGo { cause })
            }
            CallInput::ServerAnswered(_) | CallInput::ServerLost { .. } => Vec::new(),
            CallInput::OfServer(input) => self.on_server_input(input),
            CallInput::TaskEnded(result) if self.phase.is_at_sub_agent() => {
                self.conclude(result, Cut::No)
            }
            CallInput::TaskEnded(_) => Vec::new(),
            CallInput::Detach => self.on_detach(),
            CallInput::Repaired(names) => self.on_repaired(names),
            CallInput::StoreLost { cause, will_restart } => self.on_store_lost(cause, will_restart),
            CallInput::StoreBack => self.on_store_back(),
            CallInput::WrongGrant(why) => self.on_wrong_grant(&why),
            CallInput::Cancel => self.cancel(),
            CallInput::Overdue if self.phase.has_runner() => vec![CallEffect::KillRunner],
            // The session ends and the sub-agent has not answered.
            CallInput::Overdue if self.phase.is_at_sub_agent() => {
                let cause = "was stopped with its session".to_owned();
                self.conclude_cut_short(Cut::AfterGo { cause })
            }
            CallInput::Overdue => Vec::new(),
            CallInput::DiskFailed(reason) => {
                self.on_no_record("disk", "the session cannot write to disk any more", &reason)
            }
            CallInput::LeaseLost(reason) => {
                self.on_no_record("lease", "this host has the session no longer", &reason)
            }
        }
    }

    fn begin(&mut self) -> Vec<CallEffect> {
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

    pub(crate) fn probe_or_judge(&mut self) -> Vec<CallEffect> {
        match self.facts.needs_probe {
            NeedsProbe::Yes => {
                self.phase = CallPhase::Probing;
                vec![self.probe_effect()]
            }
            NeedsProbe::No => self.judge(),
        }
    }

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

    /// The request of the last effect was sent: `Go`, or the one to the store, another call or a sub-agent.
    pub fn sent(&mut self) {
        self.phase = match std::mem::replace(&mut self.phase, CallPhase::Over) {
            CallPhase::Starting { caged: Some(enforced) } => CallPhase::Released { enforced },
            CallPhase::Recording { then } => *then,
            // A second request for the same call: to the next store, or an answer for a server.
            same @ (CallPhase::New
            | CallPhase::CacheLookup
            | CallPhase::FetchingRestore
            | CallPhase::Probing
            | CallPhase::Judging
            | CallPhase::Starting { caged: None }
            | CallPhase::Released { .. }
            | CallPhase::Running
            | CallPhase::AtStore
            | CallPhase::AtOtherCall(_)
            | CallPhase::AtSubAgent
            | CallPhase::Reported(_)
            | CallPhase::Repairing { .. }
            | CallPhase::Over) => same,
        };
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

    /// A bug: the runner was started for another call. It got no `Go` and is killed.
    fn on_wrong_grant(&mut self, why: &str) -> Vec<CallEffect> {
        self.enforced = None;
        let text = format!("The call was not run: {why}. This is a bug in agentd.");
        let result = failed(&self.facts.call.tool, Outcome::Failed, "wrong_grant", text);
        let kill = std::iter::once(CallEffect::KillRunner);
        kill.chain(self.conclude(result, Cut::No)).collect()
    }

    pub(crate) fn conclude_never_started(&mut self) -> Vec<CallEffect> {
        self.conclude_cut_short(Cut::BeforeGo { cause: "stopped by a person".to_owned() })
    }

    pub(crate) fn conclude_cut_short(&mut self, cut: Cut) -> Vec<CallEffect> {
        let names = tampered_in_words(&self.repaired);
        let result = interruption(&cut, &self.facts.call.tool, names);
        self.conclude(result, cut)
    }

    pub(crate) fn conclude(&mut self, result: ToolResult, cut: Cut) -> Vec<CallEffect> {
        self.conclude_with(result, None, cut)
    }

    pub(crate) fn conclude_with(
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
