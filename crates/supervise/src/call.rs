//! The life of one call as a pure machine: what came in, what to do next, in which order.
//!
//! The call actor carries the effects out one after another and waits for each record to be on
//! disk before the next effect, so that their order here *is* "disk before deed". Steps 4 to 8 of
//! the path; see the README's table.

mod cache;

use crate::file_versions::FileVersions;
use crate::git_signing::AgentGrant;
use crate::protected_restore::in_words;
use protocol::call::{Call, Outcome, Probe, Report, Tampered, ToolResult};
use protocol::client::Event;
use protocol::confinement::Enforced;
use protocol::judgement::{Basis, Case, Question, Rule, RuleSet, ToolKind, Verdict, Widening};
use protocol::store::{Changed, KeptFile, Recalled};
use protocol::tool::{Errand, JudgedPath};
use protocol::web::{HostRight, Onward, WebAddress, WebSettings};

/// What the model reads of a question that nobody answered.
pub(crate) const EXPIRED: &str = "Not run: a person was asked about this call and nobody answered \
                                  in time. Do what needs no approval, or say what is left to \
                                  approve.";

/// What is known of a call before anything is done for it.
#[derive(Debug, Clone)]
pub(crate) struct CallFacts {
    pub(crate) call: Call,
    pub(crate) kind: ToolKind,
    /// As which of the two it is judged.
    pub(crate) judged_as: ToolKind,
    /// The text of the command, for tools that run one.
    pub(crate) command: Option<String>,
    /// The page of the web that it asks for, for tools that do.
    pub(crate) page: Option<WebAddress>,
    /// Whether its paths must be looked at before it is judged.
    pub(crate) probed: NeedsProbe,
    /// Its cage in plain words.
    pub(crate) confinement: String,
    /// What its cage has beyond the session's: a person says yes to it, or a rule that names it.
    pub(crate) widens: Vec<Widening>,
    pub(crate) env: Vec<(String, String)>,
    /// The means to sign its commits and tags, where it asks for that.
    pub(crate) signing: Option<AgentGrant>,
    pub(crate) timeout_ms: u64,
    pub(crate) max_result_chars: u32,
    /// What was asked about it in an earlier life.
    pub(crate) standing: Option<PendingQuestion>,
    pub(crate) answerer: Executor,
    /// Whether it can be undone.
    pub(crate) undo: UndoBy,
    pub(crate) protects: Protects,
    pub(crate) known: CachePolicy,
    /// What its arguments rest on: the files as the model knows them, where that matters.
    pub(crate) seen: FileVersions,
    /// What the person set, for tools of the web, and the rules about pages.
    pub(crate) web: Option<(WebSettings, RuleSet)>,
    /// What has it run behind edits.
    pub(crate) configured: Option<Rule>,
    /// Protected names that earlier calls left otherwise than they were.
    pub(crate) tampered: Vec<String>,
    /// What of its arguments was read otherwise than the model wrote it, for its result.
    pub(crate) note: Option<String>,
    /// A line for a command's result, below its output.
    pub(crate) hint: Option<String>,
}

/// What undoing has to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoBy {
    /// Nothing.
    Nothing,
    /// What it changes is kept first.
    Copy,
    /// It may change anything: the project is looked at before it and after it.
    Snapshot,
    /// The same, and it puts back what was kept for another.
    Restore,
}

/// What a runner looks after beside the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protects {
    Nothing,
    /// Protected names, which it puts right when nothing of the call lives.
    Files,
}

/// What answers that are kept have to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    /// Nothing.
    Unused,
    /// Its own may be among them.
    Lookup,
    /// It outdates those about its paths, however it ends.
    InvalidatesPaths,
    /// It outdates all of them, however it ends.
    InvalidatesAll,
}

/// Who does a call that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Executor {
    /// A process of its own.
    Runner,
    /// The conversation, which has said what it comes to.
    Conversation(ToolResult),
    /// The session's store, which does each call once, however often it is asked.
    Store,
}

/// A question that was put to people and has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingQuestion {
    /// What the answer is bound to.
    pub(crate) digest: String,
    /// When it expires, in milliseconds of Unix time.
    pub(crate) deadline: u64,
}

/// Whether a call is looked at before the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NeedsProbe {
    Yes,
    No,
}

/// Whether a worker that died is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WillRestart {
    Yes,
    No,
}

/// What happens to a call.
#[derive(Debug, PartialEq)]
pub(crate) enum CallInput {
    Begin,
    /// The look is done, or could not be taken and why.
    Probed(Result<Probe, String>),
    /// From the broker; a question comes with the deadline it would have if it were new.
    Verdict(Verdict),
    /// Nobody answered in time.
    Expired,
    /// The broker died and is back: it has forgotten the case.
    BrokerBack,
    /// Nothing can judge any more, and why.
    BrokerFailed(String),
    Caged(Enforced),
    Uncaged {
        step: String,
        reason: String,
    },
    /// A process of the cage died before the call began, for this reason; the runner ends.
    CageLost {
        why: String,
    },
    Output(String),
    Done(Report),
    /// The runner is dead, reaped and drained; or was never started.
    RunnerEnded {
        cause: String,
    },
    /// What was changed of the protected names, and what was done about each.
    Repaired(Vec<Tampered>),
    /// From the store: the answer as it was given before, proven fresh; or there is none, or nobody
    /// knows in time.
    CacheAnswer(Option<Box<Recalled>>),
    /// From the store: what is to be put back, or what the call comes to instead.
    RestoreFetched(Result<Vec<KeptFile>, ToolResult>),
    /// From the store: what it came to.
    Stored(ToolResult),
    /// The store died.
    StoreLost {
        cause: String,
        will_restart: WillRestart,
    },
    /// Another store lives, and knows which calls were done.
    StoreBack,
    /// A person or the session wants it to stop.
    Cancel,
    /// Its time is over by a margin: the runner should have ended it and did not.
    Overdue,
    /// The journal takes no more: no deed may follow.
    DiskFailed(String),
}

/// What is done for a call, in this order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallEffect {
    /// Ask the store whether the answer is known.
    CacheGet(Call),
    /// Have the store keep this answer.
    CachePut(Box<Report>),
    /// Tell the store what is not as it was.
    Invalidate(Changed),
    /// Start a runner under a probe's grant and send it this once its cage stands.
    Probe(Errand),
    Judge(Case),
    /// The broker need not hold the question any longer.
    ForgetQuestion,
    /// Make these durable together.
    Record(Vec<CallRecord>),
    /// Put this question to people until its deadline.
    Ask(Question),
    /// Put the decision into the audit log; goes on in parallel.
    AuditDecided(Verdict),
    /// Make the grant from this verdict and start the runner.
    Start(Verdict),
    /// Have the store keep what is at these paths, while the runner starts.
    BackUp(Vec<String>),
    /// Have the store make ready for a command that may come.
    PrepareSnapshot,
    /// Have the store look at the project before this command, while the runner starts.
    TakeSnapshot(String),
    /// Ask the store what is to be put back.
    FetchRestore(Call),
    /// Have the store do it.
    AskStore(Call),
    /// Let the caged runner go.
    Go(Errand),
    CancelRunner,
    KillRunner,
    /// Have another process put right what the runner did not.
    Repair,
    /// For the screens; not kept.
    Show(Event),
    /// Audit the end, make the result durable with the log's head, and hand it over. The last.
    Conclude(Box<CallConclusion>),
}

/// What the journal keeps of a call before its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallRecord {
    Asked(Question),
    Approved(Basis),
    Denied(Basis, String),
    Expired,
    Start,
}

/// How a call ended, with all that the record says of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallConclusion {
    pub(crate) result: ToolResult,
    pub(crate) report: Option<Report>,
    pub(crate) enforced: Option<Enforced>,
    /// The call that was given this answer first, where nothing was looked at anew.
    pub(crate) recalled: Option<u32>,
    /// Whether it was cut short after `Go`, before it, or not at all.
    pub(crate) cut: Cut,
    /// What was put right after its runner was lost.
    pub(crate) repaired: Vec<Tampered>,
}

impl CallConclusion {
    /// What the call changed of the protected names, by whomever it was found.
    pub(crate) fn tampered(&self) -> &[Tampered] {
        match &self.report {
            Some(report) => &report.tampered,
            None => &self.repaired,
        }
    }
}

/// Whether and when a call was cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    No,
    BeforeGo { cause: String },
    AfterGo { cause: String },
}

#[derive(Debug)]
enum CallPhase {
    New,
    /// The store was asked whether the answer is known.
    CacheLookup,
    /// The store was asked what is to be put back.
    FetchingRestore,
    Probing,
    Judging,
    Starting,
    Running,
    /// The store was asked.
    AtStore,
    /// It reported; its process has not ended yet.
    Reported(Box<Report>),
    /// Its runner ended by this cause before it could report, and what it changed of the protected
    /// names is being put right.
    Repairing {
        cause: String,
    },
    Over,
}

/// One call.
#[derive(Debug)]
pub(crate) struct CallMachine {
    facts: CallFacts,
    phase: CallPhase,
    /// What is to be put back.
    files: Vec<KeptFile>,
    probe: Option<Probe>,
    /// The answer, if it is known; given once the call is allowed.
    recalled: Option<Box<Recalled>>,
    verdict: Option<Verdict>,
    standing: Option<PendingQuestion>,
    enforced: Option<Enforced>,
    /// Why nothing can judge.
    broker_failure: Option<String>,
    /// Why the present runner never began, though it was let go.
    lost: Option<String>,
    /// Why there is no store to ask.
    store_failure: Option<String>,
    /// Second tries are given once each: for the look, before `Go`, and for a query after it.
    tries: Tries,
    cancelled: bool,
    /// What was put right of what its runner left.
    repaired: Vec<Tampered>,
}

/// Which second tries were used.
#[derive(Debug, Default)]
struct Tries {
    probed_again: bool,
    started_again: bool,
    ran_again: bool,
    stored_again: bool,
}

impl CallMachine {
    pub(crate) fn new(facts: CallFacts) -> Self {
        Self {
            standing: facts.standing.clone(),
            facts,
            phase: CallPhase::New,
            files: Vec::new(),
            probe: None,
            recalled: None,
            verdict: None,
            enforced: None,
            broker_failure: None,
            lost: None,
            store_failure: None,
            tries: Tries::default(),
            cancelled: false,
            repaired: Vec::new(),
        }
    }

    /// What follows from this.
    pub(crate) fn step(&mut self, input: CallInput) -> Vec<CallEffect> {
        match input {
            CallInput::Begin => self.begin(),
            CallInput::Probed(looked) => self.looked(looked),
            CallInput::Verdict(verdict) => self.judged(verdict),
            CallInput::Expired => self.expired(),
            CallInput::BrokerBack => self.broker_back(),
            CallInput::BrokerFailed(why) => self.broker_failed(why),
            CallInput::Caged(enforced) => self.caged(enforced),
            CallInput::Uncaged { step, reason } => self.uncaged(&step, &reason),
            CallInput::CageLost { why } => self.lost(why),
            CallInput::Output(text) => {
                let call = self.facts.call.id.clone();
                vec![CallEffect::Show(Event::Output { call, text })]
            }
            CallInput::Done(report) => {
                if matches!(self.phase, CallPhase::Running) {
                    self.phase = CallPhase::Reported(Box::new(report));
                }
                Vec::new()
            }
            CallInput::RunnerEnded { cause } => self.runner_ended(cause),
            CallInput::CacheAnswer(found) => self.recalled(found),
            CallInput::RestoreFetched(files) => self.fetched(files),
            CallInput::Stored(result) => match self.phase {
                CallPhase::AtStore => self.conclude(result, Cut::No),
                CallPhase::New
                | CallPhase::CacheLookup
                | CallPhase::FetchingRestore
                | CallPhase::Probing
                | CallPhase::Judging
                | CallPhase::Starting
                | CallPhase::Running
                | CallPhase::Reported(_)
                | CallPhase::Repairing { .. }
                | CallPhase::Over => Vec::new(),
            },
            CallInput::Repaired(names) => self.repaired(names),
            CallInput::StoreLost { cause, will_restart } => self.store_lost(cause, will_restart),
            CallInput::StoreBack => self.store_back(),
            CallInput::Cancel => self.cancel(),
            CallInput::Overdue => match self.phase {
                CallPhase::Over
                | CallPhase::New
                | CallPhase::CacheLookup
                | CallPhase::FetchingRestore
                | CallPhase::Judging
                | CallPhase::Repairing { .. }
                | CallPhase::AtStore => Vec::new(),
                CallPhase::Probing
                | CallPhase::Starting
                | CallPhase::Running
                | CallPhase::Reported(_) => {
                    vec![CallEffect::KillRunner]
                }
            },
            CallInput::DiskFailed(reason) => self.disk_failed(&reason),
        }
    }

    fn begin(&mut self) -> Vec<CallEffect> {
        if self.facts.undo == UndoBy::Restore {
            return match self.store_failure.clone() {
                Some(cause) => self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No),
                None => {
                    self.phase = CallPhase::FetchingRestore;
                    vec![CallEffect::FetchRestore(self.facts.call.clone())]
                }
            };
        }
        if self.facts.undo == UndoBy::Snapshot {
            let ready = std::iter::once(CallEffect::PrepareSnapshot);
            return ready.chain(self.probe_or_judge()).collect();
        }
        if self.facts.known == CachePolicy::Lookup && self.store_failure.is_none() {
            self.phase = CallPhase::CacheLookup;
            return vec![CallEffect::CacheGet(self.facts.call.clone())];
        }
        self.probe_or_judge()
    }

    fn probe_or_judge(&mut self) -> Vec<CallEffect> {
        match self.facts.probed {
            NeedsProbe::Yes => {
                self.phase = CallPhase::Probing;
                vec![self.look()]
            }
            NeedsProbe::No => self.judge(),
        }
    }

    fn judge(&mut self) -> Vec<CallEffect> {
        self.phase = CallPhase::Judging;
        match self.broker_failure.clone() {
            Some(why) => self.broker_failed(why),
            None => vec![CallEffect::Judge(self.case())],
        }
    }

    fn broker_back(&mut self) -> Vec<CallEffect> {
        self.broker_failure = None;
        match self.phase {
            CallPhase::Judging => self.forget_cached().unwrap_or_else(|| self.judge()),
            CallPhase::New
            | CallPhase::CacheLookup
            | CallPhase::FetchingRestore
            | CallPhase::Probing
            | CallPhase::Starting
            | CallPhase::Running
            | CallPhase::AtStore
            | CallPhase::Reported(_)
            | CallPhase::Repairing { .. }
            | CallPhase::Over => Vec::new(),
        }
    }

    /// Fails closed: what waits for a verdict, or comes to wait for one, is denied.
    fn broker_failed(&mut self, why: String) -> Vec<CallEffect> {
        let text = format!("The call was not run: nothing can judge it ({why}).");
        self.broker_failure = Some(why.clone());
        self.judged(Verdict::Deny(Basis::Unjudgeable(why), text))
    }

    fn fetched(&mut self, files: Result<Vec<KeptFile>, ToolResult>) -> Vec<CallEffect> {
        if !matches!(self.phase, CallPhase::FetchingRestore) {
            return Vec::new();
        }
        match files {
            Ok(files) => {
                self.files = files;
                self.phase = CallPhase::Probing;
                vec![self.look()]
            }
            Err(result) => self.conclude(result, Cut::No),
        }
    }

    fn look(&self) -> CallEffect {
        if self.facts.undo == UndoBy::Restore {
            return CallEffect::Probe(Errand::ProbeRestore(self.files.clone()));
        }
        let Call { tool, input, .. } = self.facts.call.clone();
        CallEffect::Probe(Errand::Probe { tool, input })
    }

    fn looked(&mut self, looked: Result<Probe, String>) -> Vec<CallEffect> {
        if !matches!(self.phase, CallPhase::Probing) {
            return Vec::new();
        }
        match looked {
            // It had looked before it could be ended.
            Ok(_) if self.cancelled => self.never_begun(),
            Ok(probe) => {
                if let Some(named) = self.facts.seen.changed(&probe) {
                    let result = changed(&self.facts.call.tool, named);
                    // It is told to read it again, and must not get what is known of it.
                    let paths = probe.paths.iter().map(|path| path.real.clone()).collect();
                    let mut effects = vec![CallEffect::Invalidate(Changed::Paths(paths))];
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

    fn case(&self) -> Case {
        Case {
            call: self.facts.call.clone(),
            kind: self.facts.judged_as,
            command: self.facts.command.clone(),
            page: self.facts.page.clone().map(Box::new),
            probe: self.probe.clone(),
            confinement: self.facts.confinement.clone(),
            widens: self.facts.widens.clone(),
            configured: self.facts.configured.clone(),
            tampered: self.facts.tampered.as_slice().into(),
        }
    }

    fn judged(&mut self, verdict: Verdict) -> Vec<CallEffect> {
        if !matches!(self.phase, CallPhase::Judging) {
            return Vec::new();
        }
        match verdict {
            Verdict::Allow(basis) if !gives(&basis, &self.facts) => {
                let why = "it asks for more than the session has, which no person and no rule for that gave";
                self.judged(Verdict::Deny(
                    Basis::Unjudgeable(why.to_owned()),
                    format!("The call was not run: {why}."),
                ))
            }
            Verdict::Allow(basis) => {
                let verdict = Verdict::Allow(basis.clone());
                let decided = CallEffect::AuditDecided(verdict.clone());
                let approved = CallRecord::Approved(basis.clone());
                let kept = CallEffect::Record(vec![approved, CallRecord::Start]);
                if let Some(found) = self.recalled.take() {
                    let approved = CallRecord::Approved(basis);
                    let mut effects = vec![decided, CallEffect::Record(vec![approved])];
                    effects.extend(self.conclude_cached(*found));
                    return effects;
                }
                match self.facts.answerer.clone() {
                    Executor::Runner => {
                        self.phase = CallPhase::Starting;
                        self.verdict = Some(verdict.clone());
                        let mut effects = vec![decided, CallEffect::Start(verdict), kept];
                        effects.splice(1..1, self.keep());
                        effects
                    }
                    Executor::Conversation(result) => {
                        let mut effects = vec![decided, kept];
                        effects.extend(self.conclude(result, Cut::No));
                        effects
                    }
                    Executor::Store => match self.store_failure.clone() {
                        Some(cause) => {
                            let kept = CallEffect::Record(vec![CallRecord::Approved(basis)]);
                            let mut effects = vec![decided, kept];
                            effects.extend(
                                self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No),
                            );
                            effects
                        }
                        None => {
                            self.phase = CallPhase::AtStore;
                            vec![decided, kept, CallEffect::AskStore(self.facts.call.clone())]
                        }
                    },
                }
            }
            Verdict::Deny(basis, text) => {
                let result = denial(&self.facts.call.tool, &basis, text.clone());
                let mut effects = vec![
                    CallEffect::AuditDecided(Verdict::Deny(basis.clone(), text.clone())),
                    CallEffect::Record(vec![CallRecord::Denied(basis, text)]),
                ];
                effects.extend(self.conclude(result, Cut::No));
                effects
            }
            // An answer takes its time, and the files may change meanwhile.
            Verdict::Ask(question) => match self.forget_cached() {
                Some(effects) => {
                    std::iter::once(CallEffect::ForgetQuestion).chain(effects).collect()
                }
                None => self.ask(question),
            },
        }
    }

    /// The same question keeps its deadline, however often it is put; it is on disk already.
    fn ask(&mut self, mut question: Question) -> Vec<CallEffect> {
        let kept = match &self.standing {
            Some(standing) => {
                question.deadline = standing.deadline;
                standing.digest == question.digest
            }
            None => false,
        };
        let Question { digest, deadline, .. } = question.clone();
        self.standing = Some(PendingQuestion { digest, deadline });
        let ask = CallEffect::Ask(question.clone());
        match kept {
            true => vec![ask],
            false => vec![CallEffect::Record(vec![CallRecord::Asked(question)]), ask],
        }
    }

    fn expired(&mut self) -> Vec<CallEffect> {
        if !matches!(self.phase, CallPhase::Judging) || self.standing.is_none() {
            return Vec::new();
        }
        let text = EXPIRED;
        let basis = Basis::NobodyToAsk("nobody answered in time".to_owned());
        let mut effects = vec![
            CallEffect::ForgetQuestion,
            CallEffect::AuditDecided(Verdict::Deny(basis, text.to_owned())),
            CallEffect::Record(vec![CallRecord::Expired]),
        ];
        effects.extend(self.conclude(
            failed(&self.facts.call.tool, Outcome::Denied, "expired", text.to_owned()),
            Cut::No,
        ));
        effects
    }

    /// The cage stands, and the effects before this one were carried out: START is on disk.
    fn caged(&mut self, enforced: Enforced) -> Vec<CallEffect> {
        // A runner that is being ended is not let go, though its cage stands.
        if !matches!(self.phase, CallPhase::Starting) || self.cancelled {
            return Vec::new();
        }
        self.phase = CallPhase::Running;
        self.enforced = Some(enforced.clone());
        let call = self.facts.call.id.clone();
        vec![CallEffect::Go(self.errand()), CallEffect::Show(Event::Started { call, enforced })]
    }

    /// Asked for before the runner starts, so that it costs no time of its own.
    fn keep(&self) -> Option<CallEffect> {
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

    fn errand(&self) -> Errand {
        let Call { tool, input, .. } = self.facts.call.clone();
        let paths = self.probe.iter().flat_map(|probe| &probe.paths);
        let judged = paths
            .map(|path| JudgedPath { real: path.real.clone(), digest: path.digest.clone() })
            .collect();
        if self.facts.undo == UndoBy::Restore {
            return Errand::Restore {
                files: self.files.clone(),
                judged,
                max_result_chars: self.facts.max_result_chars,
            };
        }
        let max_result_chars = self.facts.max_result_chars;
        if let Some((settings, rules)) = self.facts.web.clone() {
            let host = match &self.verdict {
                Some(Verdict::Allow(Basis::Person(_))) => HostRight::Given,
                _ if self.facts.widens.is_empty() => HostRight::Given,
                _ => HostRight::ByRule,
            };
            let onward = Onward { rules, host };
            return Errand::Web { tool, input, settings, onward, max_result_chars };
        }
        Errand::Run {
            tool,
            input,
            judged,
            env: self.facts.env.clone(),
            timeout_ms: self.facts.timeout_ms,
            max_result_chars,
        }
    }

    fn uncaged(&mut self, step: &str, reason: &str) -> Vec<CallEffect> {
        match self.phase {
            CallPhase::Probing | CallPhase::Starting => {
                // Where the session works decides that, not whether this machine can make cages.
                let (code, text) = match step == sandbox::CageStep::Grants.name() {
                    true => ("not_granted", format!("The call was not run: {reason}.")),
                    false => (
                        "sandbox_unavailable",
                        format!(
                            "The call was not run: its cage could not be made ({step}: {reason}). \
                             `agentd doctor` shows what this machine allows."
                        ),
                    ),
                };
                let outcome = Outcome::Confined { what: step.to_owned() };
                self.conclude(failed(&self.facts.call.tool, outcome, code, text), Cut::No)
            }
            CallPhase::New
            | CallPhase::CacheLookup
            | CallPhase::FetchingRestore
            | CallPhase::Judging
            | CallPhase::Running
            | CallPhase::AtStore
            | CallPhase::Reported(_)
            | CallPhase::Repairing { .. }
            | CallPhase::Over => Vec::new(),
        }
    }

    /// Nothing of the call has happened, as before `Go`: what follows is that of a runner which died
    /// then.
    fn lost(&mut self, why: String) -> Vec<CallEffect> {
        if matches!(self.phase, CallPhase::Starting | CallPhase::Running) {
            self.phase = CallPhase::Starting;
            self.enforced = None;
            self.lost = Some(format!("lost a process of its cage ({why})"));
        }
        Vec::new()
    }

    fn runner_ended(&mut self, cause: String) -> Vec<CallEffect> {
        let cause = self.lost.take().unwrap_or(cause);
        let tries = &mut self.tries;
        match std::mem::replace(&mut self.phase, CallPhase::Over) {
            CallPhase::Probing | CallPhase::Starting if self.cancelled => self.never_begun(),
            CallPhase::Probing if !std::mem::replace(&mut tries.probed_again, true) => {
                self.phase = CallPhase::Probing;
                vec![self.look()]
            }
            // Before `Go` nothing of the call has happened: one silent retry.
            CallPhase::Starting if !std::mem::replace(&mut tries.started_again, true) => {
                self.start_again()
            }
            // A query that has begun may begin again; it changes nothing.
            CallPhase::Running
                if self.facts.kind == ToolKind::Query
                    && !self.cancelled
                    && !std::mem::replace(&mut tries.ran_again, true) =>
            {
                self.start_again()
            }
            CallPhase::Probing | CallPhase::Starting => {
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
            CallPhase::Running => self.cut_short(Cut::AfterGo { cause }),
            CallPhase::Repairing { cause } => {
                self.phase = CallPhase::Repairing { cause };
                Vec::new()
            }
            CallPhase::Reported(report) => {
                let result = report.result.clone();
                self.conclude_with(result, Some(*report), Cut::No)
            }
            // It has no runner.
            CallPhase::AtStore => {
                self.phase = CallPhase::AtStore;
                Vec::new()
            }
            CallPhase::FetchingRestore => {
                self.phase = CallPhase::FetchingRestore;
                Vec::new()
            }
            CallPhase::CacheLookup => {
                self.phase = CallPhase::CacheLookup;
                Vec::new()
            }
            CallPhase::New | CallPhase::Judging | CallPhase::Over => Vec::new(),
        }
    }

    /// Nothing of it lives, and what it changed of the protected names was seen to.
    fn repaired(&mut self, names: Vec<Tampered>) -> Vec<CallEffect> {
        let CallPhase::Repairing { cause } = &self.phase else { return Vec::new() };
        let cut = Cut::AfterGo { cause: cause.clone() };
        self.repaired = names;
        self.cut_short(cut)
    }

    /// Another life is asked once more. What cannot be asked any more is a loss, and of a change
    /// nobody knows whether it was done.
    fn store_lost(&mut self, cause: String, back: WillRestart) -> Vec<CallEffect> {
        if back == WillRestart::No {
            self.store_failure = Some(cause.clone());
        }
        if matches!(self.phase, CallPhase::CacheLookup) {
            return self.recalled(None);
        }
        if !matches!(self.phase, CallPhase::AtStore | CallPhase::FetchingRestore) {
            return Vec::new();
        }
        let again = !std::mem::replace(&mut self.tries.stored_again, true);
        match (back == WillRestart::No || self.cancelled || !again, self.facts.kind) {
            (false, _) => Vec::new(),
            (true, _) if matches!(self.phase, CallPhase::FetchingRestore) => {
                self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No)
            }
            (true, ToolKind::Mutation) => self.cut_short(Cut::AfterGo { cause }),
            (true, ToolKind::Query) => {
                self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No)
            }
        }
    }

    fn store_back(&mut self) -> Vec<CallEffect> {
        self.store_failure = None;
        match self.phase {
            CallPhase::AtStore => vec![CallEffect::AskStore(self.facts.call.clone())],
            CallPhase::FetchingRestore => vec![CallEffect::FetchRestore(self.facts.call.clone())],
            CallPhase::New
            | CallPhase::CacheLookup
            | CallPhase::Probing
            | CallPhase::Judging
            | CallPhase::Starting
            | CallPhase::Running
            | CallPhase::Reported(_)
            | CallPhase::Repairing { .. }
            | CallPhase::Over => Vec::new(),
        }
    }

    fn start_again(&mut self) -> Vec<CallEffect> {
        self.phase = CallPhase::Starting;
        self.verdict.clone().map(CallEffect::Start).into_iter().collect()
    }

    fn cancel(&mut self) -> Vec<CallEffect> {
        self.cancelled = true;
        match self.phase {
            CallPhase::New
            | CallPhase::CacheLookup
            | CallPhase::FetchingRestore
            | CallPhase::Judging => {
                let mut effects = vec![CallEffect::ForgetQuestion];
                effects.extend(self.never_begun());
                effects
            }
            CallPhase::Probing | CallPhase::Starting => vec![CallEffect::KillRunner],
            CallPhase::Running => vec![CallEffect::CancelRunner],
            // It is a matter of moments, and cannot be taken back; a store that is being started
            // again is not asked again.
            CallPhase::AtStore => match self.tries.stored_again {
                true => {
                    let cause = "did not answer before a person stopped it".to_owned();
                    self.store_lost(cause, WillRestart::No)
                }
                false => Vec::new(),
            },
            CallPhase::Reported(_) | CallPhase::Repairing { .. } | CallPhase::Over => Vec::new(),
        }
    }

    fn disk_failed(&mut self, reason: &str) -> Vec<CallEffect> {
        let text =
            format!("The call was not run: the session can write no more to disk ({reason}).");
        let effects =
            self.conclude(failed(&self.facts.call.tool, Outcome::Failed, "disk", text), Cut::No);
        let kill = std::iter::once(CallEffect::KillRunner);
        kill.chain(effects).collect()
    }

    fn never_begun(&mut self) -> Vec<CallEffect> {
        self.cut_short(Cut::BeforeGo { cause: "stopped by a person".to_owned() })
    }

    fn cut_short(&mut self, cut: Cut) -> Vec<CallEffect> {
        let names = in_words(&self.repaired);
        let result = interruption(&cut, &self.facts.call.tool, names);
        self.conclude(result, cut)
    }

    fn conclude(&mut self, result: ToolResult, cut: Cut) -> Vec<CallEffect> {
        self.conclude_with(result, None, cut)
    }

    fn conclude_with(
        &mut self,
        result: ToolResult,
        report: Option<Report>,
        cut: Cut,
    ) -> Vec<CallEffect> {
        self.phase = CallPhase::Over;
        let known = self.cache_effect(report.as_ref());
        let enforced = self.enforced.take();
        let repaired = std::mem::take(&mut self.repaired);
        let conclusion = CallConclusion { result, report, enforced, recalled: None, cut, repaired };
        known.into_iter().chain([CallEffect::Conclude(Box::new(conclusion))]).collect()
    }
}

/// Whether this gives a call rights beyond the session's, if it asks for any.
fn gives(basis: &Basis, facts: &CallFacts) -> bool {
    let CallFacts { call, page, widens, .. } = facts;
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

fn failed(tool: &str, outcome: Outcome, code: &str, text: String) -> ToolResult {
    let summary = text.lines().next().unwrap_or_default().to_owned();
    ToolResult { summary, ..ToolResult::error(outcome, code, tool, &text, "") }
}

/// What the model reads of a call that had nobody to do it.
fn no_store(tool: &str, cause: &str) -> ToolResult {
    let text = format!("nothing was done: agentd-store {cause}");
    let hint = "Go on without it, and tell the person; `agentd restart` tries again.";
    ToolResult::error(Outcome::Failed, "store_unavailable", tool, &text, hint)
}

/// What the model reads of an edit that rests on a file as it was.
fn changed(tool: &str, named: &str) -> ToolResult {
    let text = format!(
        "{named:?} was changed by somebody else since you last read or wrote it; nothing was changed"
    );
    let hint = "Read it again and make the call anew.";
    let result = ToolResult::error(Outcome::Failed, "stale", tool, &text, hint);
    let summary = format!("{tool}: {named:?} was changed by somebody else");
    ToolResult { summary, ..result }
}

/// What the model and the person read of a call that was not allowed.
fn denial(tool: &str, basis: &Basis, text: String) -> ToolResult {
    match basis {
        Basis::Person(_) => failed(tool, Outcome::Denied, "denied", text),
        Basis::Rule(rule) => {
            failed(tool, Outcome::Refused { rule: rule.text.clone() }, "denied", text)
        }
        Basis::Mode(mode) | Basis::Opaque(mode) => {
            let rule = format!("mode {}", mode.name());
            failed(tool, Outcome::Refused { rule }, "denied", text)
        }
        Basis::NobodyToAsk(_) => {
            let rule = "nobody to ask".to_owned();
            failed(tool, Outcome::Refused { rule }, "nobody_to_ask", text)
        }
        Basis::Rights(_) | Basis::Query | Basis::Unjudgeable(_) => {
            failed(tool, Outcome::Refused { rule: "not judgeable".into() }, "denied", text)
        }
    }
}

/// What the model and the person read of a call that was cut short.
pub(crate) fn interruption(
    cut: &Cut,
    tool: &str,
    names: impl IntoIterator<Item = String>,
) -> ToolResult {
    // Only what takes several files away at once moves each aside first.
    let aside = match tool {
        "delete" => {
            " Of several names, what it had moved aside lies beside its place as \
             `.agentd-….NAME.gone`; rename it to have it back, as far as it is still whole."
        }
        _ => "",
    };
    let mut text = match cut {
        Cut::AfterGo { cause } => format!(
            "interrupted: may have run. The process of this call {cause} before it could report; \
             what it had begun may be done, half done or not done. Look before doing it again.{aside}"
        ),
        Cut::BeforeGo { cause } => format!("interrupted: never started ({cause})."),
        Cut::No => "interrupted".to_owned(),
    };
    for name in names {
        text.push_str(&format!("\n[a protected name: {name}]"));
    }
    failed(tool, Outcome::Interrupted, "interrupted", text)
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
