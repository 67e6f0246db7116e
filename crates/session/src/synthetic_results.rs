//! Results that no tool gave: calls that are no calls, that may not run, or that were cut short.

use crate::budget::{NoCalls, Shortage};
use protocol::call::{Outcome, ToolResult};
use protocol::session::CallSpan;

/// The code of a call that was refused because a bound of the turn or the session is used up.
const USED_UP: &str = "budget_used_up";

const CALLS: &str = "budget.calls";
const SESSION_CALLS: &str = "budget.session_calls";
const ROUNDS: &str = "budget.rounds";

/// The exhausted budget because of which the call of this result did not run.
pub(crate) fn for_want_of(result: &ToolResult) -> Option<Shortage> {
    match (&result.outcome, result.code.as_deref()) {
        (Outcome::Refused { rule }, Some(USED_UP)) => match rule.as_str() {
            SESSION_CALLS => Some(Shortage::Calls(CallSpan::Session)),
            CALLS => Some(Shortage::Calls(CallSpan::Turn)),
            _ => Some(Shortage::Rounds),
        },
        _ => None,
    }
}

/// Why a call was answered here instead of being run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// No tool of that name, or arguments that are none of its.
    NoCall(ToolResult),
    /// There is such a tool, and this session has it not.
    NotOffered { tool: String },
    /// The answer ended inside the call.
    Cut { tool: String, came: usize },
    /// The calls of the turn or of the session are used up.
    Budget(NoCalls),
    /// The rounds of the turn are used up.
    Rounds { most: u32 },
    /// The context is full, or the model declined in the same answer.
    AnswerNotUsed,
    /// A hook that decides about calls does not let it run.
    Hook { why: String },
    /// A person stopped the turn before this call began.
    Stopped,
    /// agentd ended while the call was open; nothing more is known of it.
    Lost,
}

impl NotRun {
    /// The text of the result; `tool` is the requested tool.
    pub fn result(&self, tool: &str) -> ToolResult {
        let refused = |rule: &str| Outcome::Refused { rule: rule.to_owned() };
        let (outcome, code, summary) = match self {
            Self::NoCall(result) => return result.clone(),
            Self::NotOffered { .. } => (Outcome::Invalid, "unknown_tool", "unknown tool"),
            Self::Cut { .. } => (Outcome::Invalid, "cut", "cut at the answer's end"),
            Self::Budget(NoCalls { of: CallSpan::Turn, .. }) => {
                (refused(CALLS), USED_UP, "the calls of this turn are used up")
            }
            Self::Budget(NoCalls { of: CallSpan::Session, .. }) => {
                (refused(SESSION_CALLS), USED_UP, "the calls of this session are used up")
            }
            Self::Rounds { .. } => {
                (refused(ROUNDS), USED_UP, "the rounds of this turn are used up")
            }
            Self::AnswerNotUsed => (Outcome::NeverStarted, "not_run", "not run"),
            Self::Hook { .. } => (Outcome::Denied, "hook", "not run: a hook does not let it"),
            Self::Stopped => (Outcome::NeverStarted, "not_run", "not run: the turn was stopped"),
            Self::Lost => (Outcome::Interrupted, "interrupted", "interrupted"),
        };
        let (message, hint) = self.words();
        let result = ToolResult::error(outcome, code, tool, &message, hint);
        ToolResult { summary: summary.to_owned(), ..result }
    }

    /// The reason and the next step.
    fn words(&self) -> (String, &'static str) {
        match self {
            Self::NoCall(result) => (result.text.clone(), ""),
            Self::NotOffered { tool } => (
                format!("this session has no tool {tool:?}"),
                "Use one of the tools you were given.",
            ),
            Self::Cut { tool, came } => (
                format!(
                    "the call of {tool} was cut where the answer ended, after {came} characters of \
                     its arguments; it did not run"
                ),
                "Ask again, in smaller pieces.",
            ),
            Self::Budget(NoCalls { most, of }) => (
                format!(
                    "the {most} tool calls of this {} are used up; this one did not run",
                    match of {
                        CallSpan::Turn => "turn",
                        CallSpan::Session => "session",
                    }
                ),
                "Answer with what you have.",
            ),
            Self::Rounds { most } => (
                format!("the {most} rounds of this turn are used up; this call did not run"),
                "Answer with what you have.",
            ),
            Self::AnswerNotUsed => {
                ("the call did not run, since its answer was not used".to_owned(), "")
            }
            Self::Hook { why } => {
                (format!("the call did not run: {why}"), "Do not try the same in another way.")
            }
            Self::Stopped => {
                ("the turn was stopped before this call began; it did not run".to_owned(), "")
            }
            Self::Lost => (
                "interrupted: agentd ended while this call was open, and its result is not known"
                    .to_owned(),
                "Look before you repeat it.",
            ),
        }
    }
}
