//! The state of a run, computed from its events. Pure.

use crate::answer_check::AnswerFault;
use crate::answer_texts::text_blocks;
use crate::cost::{context_left, in_dollars, sum};
use crate::screen_items::{CallBlock, CallPlace};
use crate::session_facts::SessionFacts;
use protocol::call::Call;
use protocol::client::{ClientEvent, SettingChange};
use protocol::content::{ContentBlock, Usage};
use protocol::context::{Compaction, SummaryStep};
use protocol::hidden::on_screen;
use protocol::ids::{CallId, SessionId};
use protocol::mcp::ServerReport;
use protocol::session::{CallSpan, TaskSpent, TurnEnd};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Code of a call that needed an approval in a non-interactive run.
const NOBODY_TO_ASK: &str = "nobody_to_ask";
/// Code of a call whose cage could not be made.
const SANDBOX_UNAVAILABLE: &str = "sandbox_unavailable";

/// The session of a run, as it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// What is known about it.
    pub facts: SessionFacts,
    /// The project directory, for people.
    pub project: String,
    /// Its MCP servers, where the view shows them.
    pub servers: Vec<ServerReport>,
}

impl OpenedSession {
    /// The warnings, a line each, for standard error.
    #[must_use]
    pub fn warning_lines(&self) -> String {
        self.facts.warnings.iter().map(|text| format!("agentd: {}\n", on_screen(text))).collect()
    }
}

/// Everything the events of a run add up to.
#[derive(Debug, Clone)]
pub struct Transcript {
    pub(crate) opened: OpenedSession,
    pub(crate) calls: BTreeMap<CallId, CallBlock>,
    answers: u32,
    usage: Usage,
    last_usage: Usage,
    tasks: Option<TasksSpent>,
    words: String,
    end: Option<TurnEnd>,
    priced: Priced,
    /// The calls before the first prompt of this run, once that is on record. The run of a fleet's task sees
    /// its session from the beginning.
    earlier: Option<BTreeSet<CallId>>,
}

/// Models that the answers of a run have prices of: one, or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Priced {
    ByOne,
    ByTwo,
}

/// What the sub-agents of a run used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TasksSpent {
    /// Their sessions.
    pub sessions: u32,
    /// Requests to the model.
    pub rounds: u32,
    /// Their calls.
    pub calls: u32,
    /// Tokens.
    pub usage: Usage,
    /// Their cost in millionths of a dollar, if known.
    pub cost: Option<u64>,
}

impl Default for TasksSpent {
    /// There was none.
    fn default() -> Self {
        Self { sessions: 0, rounds: 0, calls: 0, usage: Usage::default(), cost: Some(0) }
    }
}

impl TasksSpent {
    fn add(&mut self, spent: &TaskSpent) {
        self.sessions = self.sessions.saturating_add(1);
        self.rounds = self.rounds.saturating_add(spent.rounds);
        self.calls = self.calls.saturating_add(spent.calls);
        self.usage = sum(self.usage, spent.usage);
        self.cost = self.cost.zip(spent.cost).map(|(all, more)| all.saturating_add(more));
    }
}

/// Times of a run, in milliseconds of wall time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timing {
    /// From its beginning to its end.
    pub all_ms: u64,
    /// Of that, the time in which no call ran: the model was waited for.
    pub model_ms: u64,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunConclusion {
    /// How the turn ended; absent where the run ended before it.
    pub end: Option<TurnEnd>,
    /// Why the session cannot go on.
    pub degraded: Option<String>,
    /// The model's last text.
    pub answer: String,
    /// The error, if there was one.
    pub fault: Option<String>,
    /// Requests to the model that were answered.
    pub num_turns: u32,
    /// Tokens, as far as the vendor reported them, with those of sub-agents.
    pub usage: Usage,
    /// Their cost in millionths of a dollar, if known.
    pub cost: Option<u64>,
    /// The part of sub-agents, if there were any.
    pub tasks: Option<TasksSpent>,
    /// Tokens left in the model's context, if known.
    pub context_left: Option<u64>,
    /// How long it took.
    pub timing: Timing,
    /// The value of the answer, if a form was asked for.
    pub structured: Option<Value>,
    /// Why the answer has not that form.
    pub misfit: Vec<AnswerFault>,
    /// Calls that needed an approval: tool and arguments.
    pub unapproved: Vec<Call>,
    /// Calls whose cage could not be made.
    pub no_sandbox: u32,
}

impl RunConclusion {
    /// True if there was no error, and no call was refused for lack of an approval or a cage.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.fault.is_none() && self.unapproved.is_empty() && self.no_sandbox == 0
    }
}

impl Transcript {
    /// A run in which nothing has happened.
    #[must_use]
    pub fn new(opened: OpenedSession) -> Self {
        Self {
            opened,
            calls: BTreeMap::new(),
            answers: 0,
            usage: Usage::default(),
            last_usage: Usage::default(),
            tasks: None,
            words: String::new(),
            end: None,
            priced: Priced::ByOne,
            earlier: None,
        }
    }

    /// The prompt of this run is on record. The refusals of calls before its first one are not this run's.
    pub fn begin_run(&mut self) {
        self.earlier.get_or_insert_with(|| self.calls.keys().cloned().collect());
    }

    /// The session.
    #[must_use]
    pub fn opened(&self) -> &OpenedSession {
        &self.opened
    }

    /// The model's last text so far; empty if there is none.
    #[must_use]
    pub fn answer(&self) -> &str {
        &self.words
    }

    /// The cost of its answers and of its sub-agents, if all of it is known.
    fn cost(&self) -> Option<u64> {
        let own = match self.priced {
            Priced::ByOne => self.opened.facts.of_model.prices?.cost(self.usage)?,
            Priced::ByTwo => return None,
        };
        match &self.tasks {
            Some(tasks) => Some(own.saturating_add(tasks.cost?)),
            None => Some(own),
        }
    }

    /// Takes one event in.
    pub fn update(&mut self, event: &ClientEvent) {
        let model = self.opened.facts.model.clone();
        // It names the model as the configuration does. The event with the vendor's name follows.
        if !matches!(event, ClientEvent::Changed { change: SettingChange::Model(_), .. }) {
            self.opened.facts.update(event);
        }
        // Earlier answers had other prices, so the sum is unknown.
        if self.opened.facts.model != model && self.answers > 0 {
            self.priced = Priced::ByTwo;
        }
        match event {
            ClientEvent::Answer { blocks, usage } => {
                self.answers = self.answers.saturating_add(1);
                self.usage = sum(self.usage, *usage);
                self.last_usage = *usage;
                let words = words_of(blocks);
                if !words.is_empty() {
                    self.words = words;
                }
            }
            ClientEvent::Compacted(Compaction::Summary(
                SummaryStep::Written { usage, .. } | SummaryStep::Failed { usage, .. },
            )) => self.usage = sum(self.usage, *usage),
            ClientEvent::Compacted(
                Compaction::Cut { .. }
                | Compaction::Summary(SummaryStep::Asked { .. } | SummaryStep::Edited { .. }),
            ) => {}
            ClientEvent::Proposed { call } => {
                let known = || CallBlock::new(call.clone());
                self.calls.entry(call.id.clone()).or_insert_with(known);
            }
            ClientEvent::InBackground { call, text: _ } => {
                if let Some(known) = self.calls.get_mut(call) {
                    known.place = CallPlace::Background;
                }
            }
            ClientEvent::CallEnded { call, result, refused, spent } => {
                if let Some(spent) = spent {
                    self.tasks.get_or_insert_default().add(spent);
                }
                if let Some(known) = self.calls.get_mut(call) {
                    known.result = Some(result.clone());
                    known.refused.clone_from(refused);
                }
            }
            ClientEvent::TurnEnded { end } => self.end = Some(end.clone()),
            ClientEvent::Prompt { .. }
            | ClientEvent::Delta { .. }
            | ClientEvent::Struck { .. }
            | ClientEvent::Asked { .. }
            | ClientEvent::Decided { .. }
            | ClientEvent::Started { .. }
            | ClientEvent::Queue { .. }
            | ClientEvent::Changed { .. }
            | ClientEvent::Learned { .. }
            | ClientEvent::Notice { .. }
            | ClientEvent::Model { .. }
            | ClientEvent::AnswerRejected { .. }
            | ClientEvent::Degraded { .. }
            | ClientEvent::Output { .. } => {}
        }
    }

    /// True if the run has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.end.is_some() || self.degraded().is_some()
    }

    fn degraded(&self) -> Option<&String> {
        self.opened.facts.trouble.as_ref()
    }

    /// True if the turn had a normal end.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.end == Some(TurnEnd::Done) && self.degraded().is_none()
    }

    /// Another turn of the same run begins.
    pub fn reopen(&mut self) {
        self.end = None;
        self.words.clear();
    }

    /// How many calls have not ended.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.calls.values().filter(|known| known.result.is_none()).count()
    }

    /// The conclusion of the run so far. `stopped` is the reason of an end from outside.
    #[must_use]
    pub fn conclude(&self, took: Timing, stopped: Option<&str>) -> RunConclusion {
        let is_earlier = |known: &CallBlock| {
            self.earlier.as_ref().is_some_and(|calls| calls.contains(&known.call.id))
        };
        let coded = |code: &'static str| {
            self.calls.values().filter(move |known| !is_earlier(known)).filter(move |known| {
                known.result.as_ref().is_some_and(|result| result.code.as_deref() == Some(code))
            })
        };
        let fault = match (stopped, self.degraded(), &self.end) {
            (Some(why), ..) => Some(why.to_owned()),
            (None, _, Some(end @ TurnEnd::ProcessDied(_))) => {
                let way_on = resume_hint(&self.opened.facts.session);
                fault_of(end).map(|fault| format!("{fault}; {way_on}"))
            }
            (None, Some(why), _) => Some(why.clone()),
            (None, None, end) => end.as_ref().and_then(fault_of),
        };
        RunConclusion {
            end: self.end.clone(),
            degraded: self.degraded().cloned(),
            answer: self.words.clone(),
            fault,
            num_turns: self.answers,
            usage: match &self.tasks {
                Some(tasks) => sum(self.usage, tasks.usage),
                None => self.usage,
            },
            cost: self.cost(),
            tasks: self.tasks.clone(),
            context_left: context_left(self.last_usage, self.opened.facts.of_model),
            timing: took,
            structured: None,
            misfit: Vec::new(),
            unapproved: coded(NOBODY_TO_ASK).map(|known| known.call.clone()).collect(),
            no_sandbox: u32::try_from(coded(SANDBOX_UNAVAILABLE).count()).unwrap_or(u32::MAX),
        }
    }
}

/// How to go on with a session whose turn was cut short.
#[must_use]
pub fn resume_hint(session: &SessionId) -> String {
    format!(
        "`agentd show {session}` prints the session, `agentd -p PROMPT --resume {session}` \
         continues it"
    )
}

/// The error message for a turn's end. `None` for a normal end.
pub(crate) fn fault_of(end: &TurnEnd) -> Option<String> {
    match end {
        TurnEnd::Done => None,
        TurnEnd::RoundsUsedUp { rounds } => Some(format!(
            "the turn used up its {rounds} rounds; raise --max-turns, or resume the session"
        )),
        TurnEnd::CallsUsedUp { calls, of: CallSpan::Turn } => {
            Some(format!("the turn used up its {calls} tool calls; see budget.calls"))
        }
        TurnEnd::CallsUsedUp { calls, of: CallSpan::Session } => Some(format!(
            "the session used up its {calls} tool calls; raise budget.session_calls and resume \
             it, or start another"
        )),
        TurnEnd::CostReached { spent: Some(spent), most } => Some(format!(
            "the session has cost {}, and its limit is {}; raise --max-cost and resume it",
            in_dollars(*spent),
            in_dollars(*most)
        )),
        TurnEnd::CostReached { spent: None, most } => Some(format!(
            "an answer of the session has no known cost, so its limit of {} cannot hold; the \
             vendor reported no tokens, or the model has no price for them",
            in_dollars(*most)
        )),
        TurnEnd::Declined { explanation } if explanation.trim().is_empty() => {
            Some("the model declined the request".to_owned())
        }
        TurnEnd::Declined { explanation } => {
            Some(format!("the model declined the request: {explanation}"))
        }
        TurnEnd::Truncated => {
            Some("the answer was truncated at its token limit, or the context is full".to_owned())
        }
        TurnEnd::StoppedByHook { reason } => Some(format!("a hook ended the turn: {reason}")),
        TurnEnd::Interrupted => Some("the turn was interrupted".to_owned()),
        TurnEnd::ProviderFailed { kind: _, message } => Some(message.clone()),
        TurnEnd::ProcessDied(deaths) => Some(format!("the turn was cut short: {deaths}")),
    }
}

fn words_of(blocks: &[ContentBlock]) -> String {
    text_blocks(blocks).join("\n\n")
}
