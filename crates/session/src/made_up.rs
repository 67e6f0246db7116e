//! Results that no tool gave: calls that are no calls, that may not run, or that were cut short.

use crate::answer::Wanted;
use crate::budget::{NoCalls, Want};
use crate::known::{Found, find};
use crate::nearest::nearest;
use protocol::call::{Outcome, ToolResult};
use protocol::session::{OfferedTool, Span};

/// The code of a call that was refused because a bound of the turn or the session is used up.
const USED_UP: &str = "budget_used_up";

const CALLS: &str = "budget.calls";
const SESSION_CALLS: &str = "budget.session_calls";
const ROUNDS: &str = "budget.rounds";

/// What the call of this result did not run for want of.
pub(crate) fn for_want_of(result: &ToolResult) -> Option<Want> {
    match (&result.outcome, result.code.as_deref()) {
        (Outcome::Refused { rule }, Some(USED_UP)) => match rule.as_str() {
            SESSION_CALLS => Some(Want::Calls(Span::Session)),
            CALLS => Some(Want::Calls(Span::Turn)),
            _ => Some(Want::Rounds),
        },
        _ => None,
    }
}

/// Why a call was answered here instead of being run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// No tool of that name.
    UnknownTool { said: String, near: Vec<String> },
    /// The arguments are no JSON object.
    Arguments { tool: String, why: String },
    /// The answer ended inside the call.
    Cut { tool: String, came: usize },
    /// The calls of the turn or of the session are used up.
    Budget(NoCalls),
    /// The rounds of the turn are used up.
    Rounds { most: u32 },
    /// The context is full, or the model declined in the same answer.
    AnswerNotUsed,
    /// A person stopped the turn before this call began.
    Stopped,
    /// agentd ended while the call was open, and nobody knows more of it.
    Lost,
}

impl NotRun {
    /// In the words of the conversation.
    pub fn result(&self) -> ToolResult {
        let (outcome, code, summary) = match self {
            Self::UnknownTool { .. } => (Outcome::Invalid, "unknown_tool", "unknown tool"),
            Self::Arguments { .. } => (Outcome::Invalid, "invalid_arguments", "invalid arguments"),
            Self::Cut { .. } => (Outcome::Invalid, "cut", "cut at the answer's end"),
            Self::Budget(NoCalls { of: Span::Turn, .. }) => (
                Outcome::Refused { rule: CALLS.to_owned() },
                USED_UP,
                "the calls of this turn are used up",
            ),
            Self::Budget(NoCalls { of: Span::Session, .. }) => (
                Outcome::Refused { rule: SESSION_CALLS.to_owned() },
                USED_UP,
                "the calls of this session are used up",
            ),
            Self::Rounds { .. } => (
                Outcome::Refused { rule: ROUNDS.to_owned() },
                USED_UP,
                "the rounds of this turn are used up",
            ),
            Self::AnswerNotUsed => (Outcome::Denied, "not_run", "not run"),
            Self::Stopped => (Outcome::Denied, "not_run", "not run: the turn was stopped"),
            Self::Lost => (Outcome::Interrupted, "interrupted", "interrupted"),
        };
        ToolResult {
            outcome,
            text: self.text(),
            summary: summary.to_owned(),
            is_error: true,
            code: Some(code.to_owned()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::UnknownTool { said, near } => {
                let said: String = said.chars().take(80).collect();
                let hint = match near.as_slice() {
                    [] => "Use one of the tools you were given.".to_owned(),
                    [one] => format!("Did you mean {one}?"),
                    several => format!("Did you mean one of {}?", several.join(", ")),
                };
                format!("There is no tool called {said:?}. {hint}")
            }
            Self::Arguments { tool, why } => {
                format!("The arguments of {tool} are not a JSON object: {why}. Nothing was run.")
            }
            Self::Cut { tool, came } => format!(
                "The call of {tool} was cut where the answer ended, after {came} characters of its \
                 arguments. It did not run. Ask again, in smaller pieces."
            ),
            Self::Budget(NoCalls { most, of }) => format!(
                "The {most} tool calls of this {} are used up; this one did not run. Answer with \
                 what you have.",
                match of {
                    Span::Turn => "turn",
                    Span::Session => "session",
                }
            ),
            Self::Rounds { most } => {
                format!("The {most} rounds of this turn are used up; this call did not run.")
            }
            Self::AnswerNotUsed => {
                "The call did not run, since its answer was not used.".to_owned()
            }
            Self::Stopped => {
                "The turn was stopped before this call began; it did not run.".to_owned()
            }
            Self::Lost => "interrupted: agentd ended while this call was open, and its result is \
                           not known. Look before you repeat it."
                .to_owned(),
        }
    }
}

/// The tool that a call means, or why it is no call.
pub(crate) fn resolve<'a>(
    wanted: &Wanted,
    tools: &'a [OfferedTool],
) -> Result<&'a OfferedTool, NotRun> {
    let said = wanted.name.as_str();
    let Some(Found { tool, .. }) = find(said, tools) else {
        let names = tools.iter().map(|tool| tool.spec.name.as_str());
        let near = nearest(said, names).into_iter().map(str::to_owned).collect();
        return Err(NotRun::UnknownTool { said: said.to_owned(), near });
    };
    let name = &tool.spec.name;
    if !wanted.whole {
        let came = wanted.input.chars().count();
        return Err(NotRun::Cut { tool: name.clone(), came });
    }
    match serde_json::from_str::<serde_json::Value>(&wanted.input) {
        Ok(serde_json::Value::Object(_)) => Ok(tool),
        Ok(other) => {
            let why = format!("they are {}", kind(&other));
            Err(NotRun::Arguments { tool: name.clone(), why })
        }
        Err(error) => Err(NotRun::Arguments { tool: name.clone(), why: error.to_string() }),
    }
}

fn kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "a truth value",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a string",
        serde_json::Value::Array(_) => "a list",
        serde_json::Value::Object(_) => "an object",
    }
}
