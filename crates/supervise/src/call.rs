//! The life of one call as a pure machine: what came in, what to do next, in which order.
//!
//! The call actor carries the effects out one after another and waits for each record to be on
//! disk before the next effect, so that their order here *is* "disk before deed". Steps 4 to 8 of
//! the path; see the README's table.

mod known;

use crate::git_signing::AgentGrant;
use crate::repair::in_words;
use crate::seen::Seen;
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
    pub(crate) probed: Probed,
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
    pub(crate) standing: Option<Standing>,
    pub(crate) answerer: Answerer,
    /// Whether it can be undone.
    pub(crate) undo: Undo,
    pub(crate) protects: Protects,
    pub(crate) known: Known,
    /// What its arguments rest on: the files as the model knows them, where that matters.
    pub(crate) seen: Seen,
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
pub(crate) enum Undo {
    /// Nothing.
    Not,
    /// What it changes is kept first.
    Kept,
    /// It may change anything: the project is looked at before it and after it.
    Compared,
    /// The same, and it puts back what was kept for another.
    Restores,
}

/// What a runner looks after beside the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protects {
    Nothing,
    /// Protected names, which it puts right when nothing of the call lives.
    Names,
}

/// What answers that are kept have to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing.
    Not,
    /// Its own may be among them.
    Asked,
    /// It outdates those about its paths, however it ends.
    OutdatesPaths,
    /// It outdates all of them, however it ends.
    OutdatesAll,
}

/// Who does a call that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answerer {
    /// A process of its own.
    Runner,
    /// The conversation, which has said what it comes to.
    Conversation(ToolResult),
    /// The session's store, which does each call once, however often it is asked.
    Store,
}

/// A question that was put to people and has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// What the answer is bound to.
    pub(crate) digest: String,
    /// When it expires, in milliseconds of Unix time.
    pub(crate) deadline: u64,
}

/// Whether a call is looked at before the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probed {
    Before,
    Not,
}

/// Whether a worker that died is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComesBack {
    Soon,
    Never,
}

/// What happens to a call.
#[derive(Debug, PartialEq)]
pub(crate) enum CallInput {
    Begin,
    /// The look is done, or could not be taken and why.
    Looked(Result<Probe, String>),
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
    Lost {
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
    Recalled(Option<Box<Recalled>>),
    /// From the store: what is to be put back, or what the call comes to instead.
    Fetched(Result<Vec<KeptFile>, ToolResult>),
    /// From the store: what it came to.
    Stored(ToolResult),
    /// The store died.
    StoreLost {
        cause: String,
        comes_back: ComesBack,
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
    Recall(Call),
    /// Have the store keep this answer.
    Remember(Box<Report>),
    /// Tell the store what is not as it was.
    Outdate(Changed),
    /// Start a runner under a probe's grant and send it this once its cage stands.
    Look(Errand),
    Judge(Case),
    /// The broker need not hold the question any longer.
    Forget,
    /// Make these durable together.
    Record(Vec<Fact>),
    /// Put this question to people until its deadline.
    Ask(Question),
    /// Put the decision into the audit log; goes on in parallel.
    AuditDecided(Verdict),
    /// Make the grant from this verdict and start the runner.
    Start(Verdict),
    /// Have the store keep what is at these paths, while the runner starts.
    Keep(Vec<String>),
    /// Have the store make ready for a command that may come.
    Prepare,
    /// Have the store look at the project before this command, while the runner starts.
    KeepAll(String),
    /// Ask the store what is to be put back.
    Fetch(Call),
    /// Have the store do it.
    AskStore(Call),
    /// Let the caged runner go.
    Go(Errand),
    CancelRunner,
    KillRunner,
    /// Have another process put right what the runner did not.
    Repair,
    /// For the screens; not kept.
    Tell(Event),
    /// Audit the end, make the result durable with the log's head, and hand it over. The last.
    Conclude(Box<Conclusion>),
}

/// What the journal keeps of a call before its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fact {
    Asked(Question),
    Approved(Basis),
    Denied(Basis, String),
    Expired,
    Start,
}

/// How a call ended, with all that the record says of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conclusion {
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

impl Conclusion {
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
enum Phase {
    New,
    /// The store was asked whether the answer is known.
    Recalling,
    /// The store was asked what is to be put back.
    Fetching,
    Looking,
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
pub(crate) struct CallLife {
    facts: CallFacts,
    phase: Phase,
    /// What is to be put back.
    files: Vec<KeptFile>,
    probe: Option<Probe>,
    /// The answer, if it is known; given once the call is allowed.
    recalled: Option<Box<Recalled>>,
    verdict: Option<Verdict>,
    standing: Option<Standing>,
    enforced: Option<Enforced>,
    /// Why nothing can judge.
    unjudgeable: Option<String>,
    /// Why the present runner never began, though it was let go.
    lost: Option<String>,
    /// Why there is no store to ask.
    storeless: Option<String>,
    /// Second tries are given once each: for the look, before `Go`, and for a query after it.
    tries: Tries,
    cancelled: bool,
    /// What was put right of what its runner left.
    repaired: Vec<Tampered>,
}

/// Which second tries were used.
#[derive(Debug, Default)]
struct Tries {
    looked_again: bool,
    started_again: bool,
    ran_again: bool,
    stored_again: bool,
}

impl CallLife {
    pub(crate) fn new(facts: CallFacts) -> Self {
        Self {
            standing: facts.standing.clone(),
            facts,
            phase: Phase::New,
            files: Vec::new(),
            probe: None,
            recalled: None,
            verdict: None,
            enforced: None,
            unjudgeable: None,
            lost: None,
            storeless: None,
            tries: Tries::default(),
            cancelled: false,
            repaired: Vec::new(),
        }
    }

    /// What follows from this.
    pub(crate) fn step(&mut self, input: CallInput) -> Vec<CallEffect> {
        match input {
            CallInput::Begin => self.begin(),
            CallInput::Looked(looked) => self.looked(looked),
            CallInput::Verdict(verdict) => self.judged(verdict),
            CallInput::Expired => self.expired(),
            CallInput::BrokerBack => self.broker_back(),
            CallInput::BrokerFailed(why) => self.broker_failed(why),
            CallInput::Caged(enforced) => self.caged(enforced),
            CallInput::Uncaged { step, reason } => self.uncaged(&step, &reason),
            CallInput::Lost { why } => self.lost(why),
            CallInput::Output(text) => {
                let call = self.facts.call.id.clone();
                vec![CallEffect::Tell(Event::Output { call, text })]
            }
            CallInput::Done(report) => {
                if matches!(self.phase, Phase::Running) {
                    self.phase = Phase::Reported(Box::new(report));
                }
                Vec::new()
            }
            CallInput::RunnerEnded { cause } => self.runner_ended(cause),
            CallInput::Recalled(found) => self.recalled(found),
            CallInput::Fetched(files) => self.fetched(files),
            CallInput::Stored(result) => match self.phase {
                Phase::AtStore => self.conclude(result, Cut::No),
                Phase::New
                | Phase::Recalling
                | Phase::Fetching
                | Phase::Looking
                | Phase::Judging
                | Phase::Starting
                | Phase::Running
                | Phase::Reported(_)
                | Phase::Repairing { .. }
                | Phase::Over => Vec::new(),
            },
            CallInput::Repaired(names) => self.repaired(names),
            CallInput::StoreLost { cause, comes_back } => self.store_lost(cause, comes_back),
            CallInput::StoreBack => self.store_back(),
            CallInput::Cancel => self.cancel(),
            CallInput::Overdue => match self.phase {
                Phase::Over
                | Phase::New
                | Phase::Recalling
                | Phase::Fetching
                | Phase::Judging
                | Phase::Repairing { .. }
                | Phase::AtStore => Vec::new(),
                Phase::Looking | Phase::Starting | Phase::Running | Phase::Reported(_) => {
                    vec![CallEffect::KillRunner]
                }
            },
            CallInput::DiskFailed(reason) => self.disk_failed(&reason),
        }
    }

    fn begin(&mut self) -> Vec<CallEffect> {
        if self.facts.undo == Undo::Restores {
            return match self.storeless.clone() {
                Some(cause) => self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No),
                None => {
                    self.phase = Phase::Fetching;
                    vec![CallEffect::Fetch(self.facts.call.clone())]
                }
            };
        }
        if self.facts.undo == Undo::Compared {
            let ready = std::iter::once(CallEffect::Prepare);
            return ready.chain(self.look_or_judge()).collect();
        }
        if self.facts.known == Known::Asked && self.storeless.is_none() {
            self.phase = Phase::Recalling;
            return vec![CallEffect::Recall(self.facts.call.clone())];
        }
        self.look_or_judge()
    }

    fn look_or_judge(&mut self) -> Vec<CallEffect> {
        match self.facts.probed {
            Probed::Before => {
                self.phase = Phase::Looking;
                vec![self.look()]
            }
            Probed::Not => self.judge(),
        }
    }

    fn judge(&mut self) -> Vec<CallEffect> {
        self.phase = Phase::Judging;
        match self.unjudgeable.clone() {
            Some(why) => self.broker_failed(why),
            None => vec![CallEffect::Judge(self.case())],
        }
    }

    fn broker_back(&mut self) -> Vec<CallEffect> {
        self.unjudgeable = None;
        match self.phase {
            Phase::Judging => self.forget_recalled().unwrap_or_else(|| self.judge()),
            Phase::New
            | Phase::Recalling
            | Phase::Fetching
            | Phase::Looking
            | Phase::Starting
            | Phase::Running
            | Phase::AtStore
            | Phase::Reported(_)
            | Phase::Repairing { .. }
            | Phase::Over => Vec::new(),
        }
    }

    /// Fails closed: what waits for a verdict, or comes to wait for one, is denied.
    fn broker_failed(&mut self, why: String) -> Vec<CallEffect> {
        let text = format!("The call was not run: nothing can judge it ({why}).");
        self.unjudgeable = Some(why.clone());
        self.judged(Verdict::Deny(Basis::Unjudgeable(why), text))
    }

    fn fetched(&mut self, files: Result<Vec<KeptFile>, ToolResult>) -> Vec<CallEffect> {
        if !matches!(self.phase, Phase::Fetching) {
            return Vec::new();
        }
        match files {
            Ok(files) => {
                self.files = files;
                self.phase = Phase::Looking;
                vec![self.look()]
            }
            Err(result) => self.conclude(result, Cut::No),
        }
    }

    fn look(&self) -> CallEffect {
        if self.facts.undo == Undo::Restores {
            return CallEffect::Look(Errand::ProbeRestore(self.files.clone()));
        }
        let Call { tool, input, .. } = self.facts.call.clone();
        CallEffect::Look(Errand::Probe { tool, input })
    }

    fn looked(&mut self, looked: Result<Probe, String>) -> Vec<CallEffect> {
        if !matches!(self.phase, Phase::Looking) {
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
                    let mut effects = vec![CallEffect::Outdate(Changed::Paths(paths))];
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
        if !matches!(self.phase, Phase::Judging) {
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
                let approved = Fact::Approved(basis.clone());
                let kept = CallEffect::Record(vec![approved, Fact::Start]);
                if let Some(found) = self.recalled.take() {
                    let approved = Fact::Approved(basis);
                    let mut effects = vec![decided, CallEffect::Record(vec![approved])];
                    effects.extend(self.conclude_known(*found));
                    return effects;
                }
                match self.facts.answerer.clone() {
                    Answerer::Runner => {
                        self.phase = Phase::Starting;
                        self.verdict = Some(verdict.clone());
                        let mut effects = vec![decided, CallEffect::Start(verdict), kept];
                        effects.splice(1..1, self.keep());
                        effects
                    }
                    Answerer::Conversation(result) => {
                        let mut effects = vec![decided, kept];
                        effects.extend(self.conclude(result, Cut::No));
                        effects
                    }
                    Answerer::Store => match self.storeless.clone() {
                        Some(cause) => {
                            let kept = CallEffect::Record(vec![Fact::Approved(basis)]);
                            let mut effects = vec![decided, kept];
                            effects.extend(
                                self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No),
                            );
                            effects
                        }
                        None => {
                            self.phase = Phase::AtStore;
                            vec![decided, kept, CallEffect::AskStore(self.facts.call.clone())]
                        }
                    },
                }
            }
            Verdict::Deny(basis, text) => {
                let result = denial(&self.facts.call.tool, &basis, text.clone());
                let mut effects = vec![
                    CallEffect::AuditDecided(Verdict::Deny(basis.clone(), text.clone())),
                    CallEffect::Record(vec![Fact::Denied(basis, text)]),
                ];
                effects.extend(self.conclude(result, Cut::No));
                effects
            }
            // An answer takes its time, and the files may change meanwhile.
            Verdict::Ask(question) => match self.forget_recalled() {
                Some(effects) => std::iter::once(CallEffect::Forget).chain(effects).collect(),
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
        self.standing = Some(Standing { digest, deadline });
        let ask = CallEffect::Ask(question.clone());
        match kept {
            true => vec![ask],
            false => vec![CallEffect::Record(vec![Fact::Asked(question)]), ask],
        }
    }

    fn expired(&mut self) -> Vec<CallEffect> {
        if !matches!(self.phase, Phase::Judging) || self.standing.is_none() {
            return Vec::new();
        }
        let text = EXPIRED;
        let basis = Basis::NobodyToAsk("nobody answered in time".to_owned());
        let mut effects = vec![
            CallEffect::Forget,
            CallEffect::AuditDecided(Verdict::Deny(basis, text.to_owned())),
            CallEffect::Record(vec![Fact::Expired]),
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
        if !matches!(self.phase, Phase::Starting) || self.cancelled {
            return Vec::new();
        }
        self.phase = Phase::Running;
        self.enforced = Some(enforced.clone());
        let call = self.facts.call.id.clone();
        vec![CallEffect::Go(self.errand()), CallEffect::Tell(Event::Started { call, enforced })]
    }

    /// Asked for before the runner starts, so that it costs no time of its own.
    fn keep(&self) -> Option<CallEffect> {
        let paths = self.probe.iter().flat_map(|probe| &probe.paths);
        let paths: Vec<String> =
            paths.filter(|path| path.in_scope).map(|path| path.real.clone()).collect();
        match self.facts.undo {
            Undo::Compared => {
                Some(CallEffect::KeepAll(self.facts.command.clone().unwrap_or_default()))
            }
            Undo::Kept | Undo::Restores => (!paths.is_empty()).then_some(CallEffect::Keep(paths)),
            Undo::Not => None,
        }
    }

    fn errand(&self) -> Errand {
        let Call { tool, input, .. } = self.facts.call.clone();
        let paths = self.probe.iter().flat_map(|probe| &probe.paths);
        let judged = paths
            .map(|path| JudgedPath { real: path.real.clone(), digest: path.digest.clone() })
            .collect();
        if self.facts.undo == Undo::Restores {
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
            Phase::Looking | Phase::Starting => {
                // Where the session works decides that, not whether this machine can make cages.
                let (code, text) = match step == sandbox::Step::Grants.name() {
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
            Phase::New
            | Phase::Recalling
            | Phase::Fetching
            | Phase::Judging
            | Phase::Running
            | Phase::AtStore
            | Phase::Reported(_)
            | Phase::Repairing { .. }
            | Phase::Over => Vec::new(),
        }
    }

    /// Nothing of the call has happened, as before `Go`: what follows is that of a runner which died
    /// then.
    fn lost(&mut self, why: String) -> Vec<CallEffect> {
        if matches!(self.phase, Phase::Starting | Phase::Running) {
            self.phase = Phase::Starting;
            self.enforced = None;
            self.lost = Some(format!("lost a process of its cage ({why})"));
        }
        Vec::new()
    }

    fn runner_ended(&mut self, cause: String) -> Vec<CallEffect> {
        let cause = self.lost.take().unwrap_or(cause);
        let tries = &mut self.tries;
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Looking | Phase::Starting if self.cancelled => self.never_begun(),
            Phase::Looking if !std::mem::replace(&mut tries.looked_again, true) => {
                self.phase = Phase::Looking;
                vec![self.look()]
            }
            // Before `Go` nothing of the call has happened: one silent retry.
            Phase::Starting if !std::mem::replace(&mut tries.started_again, true) => {
                self.start_again()
            }
            // A query that has begun may begin again; it changes nothing.
            Phase::Running
                if self.facts.kind == ToolKind::Query
                    && !self.cancelled
                    && !std::mem::replace(&mut tries.ran_again, true) =>
            {
                self.start_again()
            }
            Phase::Looking | Phase::Starting => {
                let text = format!("The call was not run: its process {cause} before it began.");
                self.conclude(
                    failed(&self.facts.call.tool, Outcome::Crashed, "runner_lost", text),
                    Cut::No,
                )
            }
            Phase::Running if self.facts.protects == Protects::Names => {
                self.phase = Phase::Repairing { cause };
                vec![CallEffect::Repair]
            }
            Phase::Running => self.cut_short(Cut::AfterGo { cause }),
            Phase::Repairing { cause } => {
                self.phase = Phase::Repairing { cause };
                Vec::new()
            }
            Phase::Reported(report) => {
                let result = report.result.clone();
                self.conclude_with(result, Some(*report), Cut::No)
            }
            // It has no runner.
            Phase::AtStore => {
                self.phase = Phase::AtStore;
                Vec::new()
            }
            Phase::Fetching => {
                self.phase = Phase::Fetching;
                Vec::new()
            }
            Phase::Recalling => {
                self.phase = Phase::Recalling;
                Vec::new()
            }
            Phase::New | Phase::Judging | Phase::Over => Vec::new(),
        }
    }

    /// Nothing of it lives, and what it changed of the protected names was seen to.
    fn repaired(&mut self, names: Vec<Tampered>) -> Vec<CallEffect> {
        let Phase::Repairing { cause } = &self.phase else { return Vec::new() };
        let cut = Cut::AfterGo { cause: cause.clone() };
        self.repaired = names;
        self.cut_short(cut)
    }

    /// Another life is asked once more. What cannot be asked any more is a loss, and of a change
    /// nobody knows whether it was done.
    fn store_lost(&mut self, cause: String, back: ComesBack) -> Vec<CallEffect> {
        if back == ComesBack::Never {
            self.storeless = Some(cause.clone());
        }
        if matches!(self.phase, Phase::Recalling) {
            return self.recalled(None);
        }
        if !matches!(self.phase, Phase::AtStore | Phase::Fetching) {
            return Vec::new();
        }
        let again = !std::mem::replace(&mut self.tries.stored_again, true);
        match (back == ComesBack::Never || self.cancelled || !again, self.facts.kind) {
            (false, _) => Vec::new(),
            (true, _) if matches!(self.phase, Phase::Fetching) => {
                self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No)
            }
            (true, ToolKind::Mutation) => self.cut_short(Cut::AfterGo { cause }),
            (true, ToolKind::Query) => {
                self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No)
            }
        }
    }

    fn store_back(&mut self) -> Vec<CallEffect> {
        self.storeless = None;
        match self.phase {
            Phase::AtStore => vec![CallEffect::AskStore(self.facts.call.clone())],
            Phase::Fetching => vec![CallEffect::Fetch(self.facts.call.clone())],
            Phase::New
            | Phase::Recalling
            | Phase::Looking
            | Phase::Judging
            | Phase::Starting
            | Phase::Running
            | Phase::Reported(_)
            | Phase::Repairing { .. }
            | Phase::Over => Vec::new(),
        }
    }

    fn start_again(&mut self) -> Vec<CallEffect> {
        self.phase = Phase::Starting;
        self.verdict.clone().map(CallEffect::Start).into_iter().collect()
    }

    fn cancel(&mut self) -> Vec<CallEffect> {
        self.cancelled = true;
        match self.phase {
            Phase::New | Phase::Recalling | Phase::Fetching | Phase::Judging => {
                let mut effects = vec![CallEffect::Forget];
                effects.extend(self.never_begun());
                effects
            }
            Phase::Looking | Phase::Starting => vec![CallEffect::KillRunner],
            Phase::Running => vec![CallEffect::CancelRunner],
            // It is a matter of moments, and cannot be taken back; a store that is being started
            // again is not asked again.
            Phase::AtStore => match self.tries.stored_again {
                true => {
                    let cause = "did not answer before a person stopped it".to_owned();
                    self.store_lost(cause, ComesBack::Never)
                }
                false => Vec::new(),
            },
            Phase::Reported(_) | Phase::Repairing { .. } | Phase::Over => Vec::new(),
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
        self.phase = Phase::Over;
        let known = self.for_the_store(report.as_ref());
        let enforced = self.enforced.take();
        let repaired = std::mem::take(&mut self.repaired);
        let conclusion = Conclusion { result, report, enforced, recalled: None, cut, repaired };
        known.into_iter().chain([CallEffect::Conclude(Box::new(conclusion))]).collect()
    }
}

/// Whether this gives a call rights beyond the session's, if it asks for any.
fn gives(basis: &Basis, facts: &CallFacts) -> bool {
    let CallFacts { call, page, widens, .. } = facts;
    match basis {
        Basis::Person(_) => true,
        Basis::Rights(rules) => approval::give(rules, (&call.tool, page.as_ref()), widens),
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
