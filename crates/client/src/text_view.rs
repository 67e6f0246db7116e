//! The view for people: the answer on standard output, everything else on standard error.

use crate::call_gist::gist;
use crate::colour::{Colour, Terminal};
use crate::compaction_text::describe_compaction;
use crate::lines::one_line;
use crate::refusal_lines::refusal_lines;
use crate::run_view::{Moment, RunView, ShownOpening, ViewOutput};
use crate::transcript::{RunConclusion, Transcript};
use protocol::call::{Call, ToolResult};
use protocol::client::ClientEvent;
use protocol::hidden::on_screen;
use protocol::ids::CallId;

/// Longest line about a call, in characters.
const LINE: usize = 100;

/// `--output-format text`.
#[derive(Debug)]
pub struct TextView {
    colour: Colour,
    answer_to: Terminal,
}

impl TextView {
    /// `colour` is that of standard error. `answer_to` is the kind of standard output: control
    /// codes are removed only for a terminal.
    #[must_use]
    pub fn new(colour: Colour, answer_to: Terminal) -> Self {
        Self { colour, answer_to }
    }

    fn happened(&self, transcript: &Transcript, event: &ClientEvent) -> String {
        match event {
            ClientEvent::Proposed { call } => {
                let what = one_line(&gist(call), LINE);
                format!("{} {what}\n", self.colour.bold(&one_line(&call.tool, LINE)))
            }
            ClientEvent::CallEnded { call, result, refused, spent: _ } => {
                self.ended(transcript, call, result, refused)
            }
            ClientEvent::InBackground { call, text: _ } => {
                let text = format!("call {} goes on in the background", call.number);
                format!("{}\n", self.colour.dim(&text))
            }
            ClientEvent::Struck { reason, next } => {
                let next = next.map(|next| format!("; {}", next.in_words())).unwrap_or_default();
                format!("{}\n", self.colour.dim(&(one_line(reason, LINE) + &next)))
            }
            ClientEvent::Compacted(step) => {
                format!("{}\n", self.colour.dim(&on_screen(&describe_compaction(step))))
            }
            ClientEvent::Notice { text } => format!("{}\n", self.colour.dim(&on_screen(text))),
            ClientEvent::Asked { question } => {
                format!("asked: {}\n", one_line(&question.reason, LINE))
            }
            ClientEvent::Prompt { .. }
            | ClientEvent::Delta { .. }
            | ClientEvent::Answer { .. }
            | ClientEvent::Decided { .. }
            | ClientEvent::Started { .. }
            | ClientEvent::Output { .. }
            | ClientEvent::Queue { .. }
            | ClientEvent::Changed { .. }
            | ClientEvent::Learned { .. }
            | ClientEvent::Model { .. }
            | ClientEvent::AnswerRejected { .. }
            | ClientEvent::TurnEnded { .. }
            | ClientEvent::Degraded { .. } => String::new(),
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
        let line = format!("  {} {summary}", one_line(tool, LINE));
        let line = if result.is_error { self.colour.red(&line) } else { self.colour.dim(&line) };
        format!("{line}\n{}", refusal_lines(refused, call, self.colour, LINE))
    }

    fn concluded(&self, transcript: &Transcript, conclusion: &RunConclusion) -> ViewOutput {
        let mut shown = ViewOutput::default();
        if !conclusion.answer.is_empty() {
            let words = match self.answer_to {
                Terminal::Yes => on_screen(&conclusion.answer),
                Terminal::No => conclusion.answer.clone(),
            };
            shown.out = words.trim_end_matches('\n').to_owned() + "\n";
        }
        if let Some(fault) = &conclusion.fault {
            let fault = format!("agentd: {}", on_screen(fault));
            shown.err.push_str(&format!("{}\n", self.colour.red(&fault)));
        }
        let session = &transcript.opened().facts.session;
        if let Some(first) = conclusion.unapproved.first() {
            let count = conclusion.unapproved.len();
            shown.err.push_str(&format!(
                "agentd: {count} call(s) needed an approval, but this run is non-interactive; \
                 the first is {}: {}\n  allow them by a rule or by --permission-mode; see \
                 `agentd audit ls --session {session} --denied`\n",
                one_line(&first.tool, LINE),
                one_line(&gist(first), LINE),
            ));
        }
        if let Some(web) = allow_web(&conclusion.unapproved) {
            shown.err.push_str(&web);
        }
        if conclusion.no_sandbox > 0 {
            shown.err.push_str(&format!(
                "agentd: {} call(s) were refused because no cage could be made; see `agentd \
                 doctor`\n",
                conclusion.no_sandbox
            ));
        }
        let name = self.colour.dim(&format!("session {session}"));
        shown.err.push_str(&format!("{name}\n"));
        shown
    }
}

impl RunView for TextView {
    fn opening(&self) -> ShownOpening {
        ShownOpening::Session
    }

    fn show(&mut self, transcript: &Transcript, moment: Moment<'_>) -> ViewOutput {
        match moment {
            Moment::Opened(opened) => {
                ViewOutput { out: String::new(), err: opened.warning_lines() }
            }
            Moment::Happened(event) => {
                ViewOutput { out: String::new(), err: self.happened(transcript, event) }
            }
            Moment::Concluded(conclusion) => self.concluded(transcript, conclusion),
        }
    }
}

/// The arguments of a call, one a line, text as it is; unchanged if they are no object.
#[must_use]
pub fn argument_lines(input: &str) -> String {
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(input) else {
        return input.to_owned();
    };
    let line = |(name, value): (&String, &serde_json::Value)| match value.as_str() {
        Some(text) if text.contains('\n') => format!("{name}:\n{text}\n"),
        Some(text) => format!("{name}: {text}\n"),
        None => format!("{name}: {value}\n"),
    };
    fields.iter().map(line).collect()
}

/// One line on how to allow the web pages of these calls. `None` if none of them is a web call.
fn allow_web(calls: &[Call]) -> Option<String> {
    let asks = |call: &&Call| ["web_fetch", "web_search"].contains(&call.tool.as_str());
    let call = calls.iter().find(asks)?;
    let host = match call.tool.as_str() {
        "web_fetch" => host_of(&gist(call)),
        _ => None,
    };
    let (host, of_search) = match host {
        Some(host) => (host, ""),
        None => ("HOST".to_owned(), ", where HOST is that of `web.search_url` for a search"),
    };
    Some(format!(
        "agentd: allow web pages with --allow-web {host} or the rule `{tool}:{host}` in \
         permissions.allow{of_search}\n",
        tool = call.tool
    ))
}

/// The host of a URL, with its port unless it is 80 or 443. The model wrote the URL and the user
/// may copy the host into a shell, so other characters are refused.
fn host_of(url: &str) -> Option<String> {
    let rest = url.trim().split_once("://")?.1;
    let host = rest.split(['/', '?', '#']).next()?.to_ascii_lowercase();
    let host = host.strip_suffix(":443").or(host.strip_suffix(":80")).unwrap_or(&host);
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
    (!host.is_empty() && !host.starts_with('-') && host.chars().all(fits)).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_shown_as_a_person_may_copy_it() {
        for (url, host) in [
            ("https://Docs.RS/serde?x#y", Some("docs.rs")),
            ("http://docs.rs:8443", Some("docs.rs:8443")),
            ("https://docs.rs:443/", Some("docs.rs")),
            ("http://10.0.0.7:80/a", Some("10.0.0.7")),
            ("https://a.org;reboot/", None),
            ("https://$(reboot)/", None),
            ("https://--yolo/", None),
            ("docs.rs", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
