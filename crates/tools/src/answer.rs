//! What a tool found, and the result that the model gets of it.

use crate::control::visible;
use crate::cut;
use crate::failure::{Code, Failure};
use protocol::call::{Effect, Outcome, ToolResult};

/// Where the whole is.
const KEPT: &str = "the person has all of it in agentd show --calls";
/// Most characters of a whole that are kept. It goes over the runner's wire beside the result.
const FULL_CHARS: usize = 2_500_000;

/// What a tool came to.
#[derive(Debug)]
pub(crate) struct Answer {
    /// For the model, before it is cut.
    pub body: String,
    /// Lines below it that no cut removes, in order; what is last stays last.
    pub footer: Vec<String>,
    /// One short line for the screen.
    pub summary: String,
    /// How to get what a cut leaves out.
    pub how_to_get_more: &'static str,
    /// What it did to files.
    pub effects: Vec<Effect>,
    /// How it ended.
    pub outcome: Outcome,
    /// A stable word where it is an error.
    pub code: Option<Code>,
}

impl Answer {
    /// A success.
    pub fn done(body: String, summary: String, effects: Vec<Effect>) -> Self {
        Self {
            body,
            footer: Vec::new(),
            summary,
            how_to_get_more: "narrow the call to get them",
            effects,
            outcome: Outcome::Done,
            code: None,
        }
    }

    /// Cut to `max` characters, with all of its text where something was cut, and its effects.
    pub fn into_result(self, max: usize) -> (ToolResult, Option<String>, Vec<Effect>) {
        let footer = self.footer.join("\n");
        let is_error = match self.outcome {
            Outcome::Done | Outcome::Exited { code: 0 } => false,
            Outcome::Exited { .. }
            | Outcome::Failed
            | Outcome::Signalled { .. }
            | Outcome::TimedOut
            | Outcome::Denied
            | Outcome::Refused { .. }
            | Outcome::Confined { .. }
            | Outcome::OutOfMemory
            | Outcome::Crashed
            | Outcome::Interrupted
            | Outcome::Invalid => true,
        };
        let room = max.saturating_sub(footer.chars().count() + 1);
        let with_footer = |mut text: String| {
            if !footer.is_empty() {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&footer);
            }
            text
        };
        let is_cut = self.body.chars().count() > room;
        let how = format!("{}; {KEPT}", self.how_to_get_more);
        let text = with_footer(cut::fit(&self.body, room, &how));
        let full = is_cut.then(|| with_footer(cut::fit(&self.body, FULL_CHARS, "")));
        let result = ToolResult {
            outcome: self.outcome,
            text,
            summary: self.summary,
            is_error,
            code: self.code.map(|code| code.name().to_owned()),
        };
        (result, full, self.effects)
    }
}

/// The result of a tool that could not.
pub(crate) fn failed(tool: &str, failure: Failure, max: usize) -> ToolResult {
    let Failure { code, message, hint, outcome, source: _ } = failure;
    let result = ToolResult::error(outcome, code.name(), tool, &message, &hint);
    let text = cut::fit(&crate::control::visible_lines(&result.text), max, "");
    let summary = visible(&result.summary).into_owned();
    ToolResult { text, summary, ..result }
}
