//! The view for people: the answer on standard output, what happens on the way on standard error.

use crate::colour::{Colour, Terminal};
use crate::plain::{one_line, plain};
use crate::transcript::{Conclusion, Transcript};
use crate::view::{Moment, Shown, View};
use protocol::call::{Call, ToolResult};
use protocol::client::Event;
use protocol::ids::CallId;

/// Longest line about a call, in characters.
const LINE: usize = 100;
/// Most refusals named under a call; the record holds all.
const REFUSALS: usize = 5;

/// `--output-format text`.
#[derive(Debug)]
pub struct TextView {
    colour: Colour,
    answer_to: Terminal,
}

impl TextView {
    /// `colour` is that of standard error; `answer_to` says what standard output is, since only a
    /// terminal must be kept from control codes.
    #[must_use]
    pub fn new(colour: Colour, answer_to: Terminal) -> Self {
        Self { colour, answer_to }
    }

    fn happened(&self, transcript: &Transcript, event: &Event) -> String {
        match event {
            Event::Proposed { call } => {
                let what = one_line(&gist(call), LINE);
                format!("{} {what}\n", self.colour.bold(&plain(&call.tool)))
            }
            Event::CallEnded { call, result, refused } => {
                self.ended(transcript, call, result, refused)
            }
            Event::Struck { reason } => {
                format!("{}\n", self.colour.dim(&one_line(reason, LINE)))
            }
            Event::Notice { text } => format!("{}\n", self.colour.dim(&plain(text))),
            Event::Asked { question } => {
                format!("asked: {}\n", one_line(&question.reason, LINE))
            }
            Event::Prompt { .. }
            | Event::TextDelta { .. }
            | Event::Answer { .. }
            | Event::Decided { .. }
            | Event::Started { .. }
            | Event::Output { .. }
            | Event::Queue { .. }
            | Event::Changed { .. }
            | Event::Learned { .. }
            | Event::Compacted { .. }
            | Event::NotCompacted { .. }
            | Event::Model { .. }
            | Event::AnswerRejected { .. }
            | Event::TurnEnded { .. }
            | Event::Degraded { .. } => String::new(),
        }
    }

    fn ended(
        &self,
        transcript: &Transcript,
        call: &CallId,
        result: &ToolResult,
        refused: &[String],
    ) -> String {
        // Several calls may run at once, so each end names its call.
        let tool = transcript.calls.get(call).map_or("", |known| known.call.tool.as_str());
        let summary = one_line(&result.summary, LINE);
        let line = format!("  {} {summary}", plain(tool));
        let line = if result.is_error { self.colour.red(&line) } else { self.colour.dim(&line) };
        let mut lines = format!("{line}\n");
        for refusal in refused.iter().take(REFUSALS) {
            let refusal = format!("  refused: {}", one_line(refusal, LINE));
            lines.push_str(&self.colour.red(&refusal));
            lines.push('\n');
        }
        if refused.len() > REFUSALS {
            let more = refused.len() - REFUSALS;
            lines.push_str(&format!("  and {more} more; see `agentd audit show {call}`\n"));
        }
        lines
    }

    fn concluded(&self, transcript: &Transcript, conclusion: &Conclusion) -> Shown {
        let mut shown = Shown::default();
        if !conclusion.words.is_empty() {
            let words = match self.answer_to {
                Terminal::Yes => plain(&conclusion.words),
                Terminal::No => conclusion.words.clone(),
            };
            shown.out = words.trim_end_matches('\n').to_owned() + "\n";
        }
        if let Some(fault) = &conclusion.fault {
            let fault = format!("agentd: {}", plain(fault));
            shown.err.push_str(&format!("{}\n", self.colour.red(&fault)));
        }
        let session = &transcript.opened().session;
        if let Some(first) = conclusion.nobody_to_ask.first() {
            let count = conclusion.nobody_to_ask.len();
            shown.err.push_str(&format!(
                "agentd: {count} call(s) needed an approval and nobody could be asked, the first \
                 of them {}: {}\n  allow them by a rule or by --permission-mode; see `agentd audit \
                 ls --session {session} --denied`\n",
                plain(&first.tool),
                one_line(&gist(first), LINE),
            ));
        }
        if conclusion.uncaged > 0 {
            shown.err.push_str(&format!(
                "agentd: {} call(s) were refused because no cage could be made; see `agentd \
                 doctor`\n",
                conclusion.uncaged
            ));
        }
        let name = self.colour.dim(&format!("session {session}"));
        shown.err.push_str(&format!("{name}\n"));
        shown
    }
}

impl View for TextView {
    fn show(&mut self, transcript: &Transcript, moment: Moment<'_>) -> Shown {
        match moment {
            Moment::Opened(opened) => Shown { out: String::new(), err: opened.warning_lines() },
            Moment::Happened(event) => {
                Shown { out: String::new(), err: self.happened(transcript, event) }
            }
            Moment::Concluded(conclusion) => self.concluded(transcript, conclusion),
        }
    }
}

/// What a call is about: its one argument that says most, else all of them.
pub(crate) fn gist(call: &Call) -> String {
    let Ok(serde_json::Value::Object(input)) = serde_json::from_str(&call.input) else {
        return call.input.clone();
    };
    let telling = ["command", "argv", "path", "pattern", "url", "query"];
    match telling.iter().find_map(|name| input.get(*name)) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => call.input.clone(),
    }
}
