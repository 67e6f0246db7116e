//! Shows the demo's conversation and collects the inputs of the checks.

use super::accident::Accidents;
use client::{Colour, Moment, RunView, ShownOpening, Transcript, ViewOutput, one_line};
use protocol::call::{Call, ToolResult};
use protocol::client::ClientEvent;
use protocol::confinement::{Enforced, Tier};
use protocol::content::ContentBlock;
use protocol::hidden::on_screen;
use protocol::ids::CallId;
use serde_json::Value;

/// Most lines shown of one result.
const LINES: usize = 20;
/// Longest line of a result, in characters.
const LINE: usize = 150;

/// Shows the conversation and collects the inputs of the checks.
#[derive(Debug)]
pub(super) struct DemoView {
    colour: Colour,
    /// Every result, by the number of its call.
    pub(super) results: Vec<(CallId, ToolResult)>,
    /// The cages that stood.
    pub(super) cages: Vec<Enforced>,
    /// Attacks on the demo's own processes.
    pub(super) accidents: Accidents,
}

impl DemoView {
    pub(super) fn new(colour: Colour) -> Self {
        let accidents = Accidents::default();
        Self { colour, results: Vec::new(), cages: Vec::new(), accidents }
    }

    /// True if the commands' cages stop signals to processes outside.
    pub(super) fn holds_signals(&self) -> bool {
        let mut commands = self.cages.iter().filter(|cage| !cage.in_process);
        commands.all(|cage| sandbox::signals_are_confined(cage.tier, cage.landlock_abi))
    }

    fn said(&self, blocks: &[ContentBlock]) -> String {
        let mut text = String::new();
        for block in blocks {
            match block {
                ContentBlock::Text { text: words } => {
                    text.push_str(&format!(
                        "\n{} {}\n",
                        self.colour.bold("model:"),
                        on_screen(words)
                    ));
                }
                ContentBlock::Thinking { .. }
                | ContentBlock::Image { .. }
                | ContentBlock::ToolUse { .. }
                | ContentBlock::ToolResult { .. } => {}
            }
        }
        text
    }

    fn proposed(&self, call: &Call) -> String {
        let name = format!("[{}] {}", call.id.number, self.colour.bold(&on_screen(&call.tool)));
        let input: Value = serde_json::from_str(&call.input).unwrap_or_default();
        match (input["command"].as_str(), input["path"].as_str()) {
            (Some(script), _) => {
                let lines = script.lines().map(|line| format!("    $ {}\n", on_screen(line)));
                format!("  {name}\n{}", lines.collect::<String>())
            }
            (None, Some(path)) => format!("  {name} {}\n", one_line(path, LINE)),
            (None, None) => format!("  {name} {}\n", one_line(&call.input, LINE)),
        }
    }

    fn ended(&mut self, call: &CallId, result: &ToolResult) -> String {
        self.results.push((call.clone(), result.clone()));
        let mut text = format!("  [{}] {}\n", call.number, one_line(&result.summary, LINE));
        // Many texts begin with their own summary.
        let told = |line: &&str| line.contains(result.summary.as_str());
        let skipped = usize::from(result.text.lines().next().is_some_and(|line| told(&line)));
        let lines: Vec<&str> = result.text.lines().skip(skipped).collect();
        for line in lines.iter().take(LINES) {
            let line = format!("    {}", one_line(line, LINE));
            let line =
                if result.is_error { self.colour.red(&line) } else { self.colour.dim(&line) };
            text.push_str(&format!("{line}\n"));
        }
        if lines.len() > LINES {
            text.push_str(&format!("    ({} more lines)\n", lines.len() - LINES));
        }
        text
    }
}

impl RunView for DemoView {
    fn opening(&self) -> ShownOpening {
        ShownOpening::Session
    }

    fn show(&mut self, _: &Transcript, moment: Moment<'_>) -> ViewOutput {
        let out = match moment {
            Moment::Opened(opened) => {
                let warnings =
                    opened.facts.warnings.iter().map(|text| format!("{}\n", on_screen(text)));
                format!(
                    "session {}, {}\n{}",
                    opened.facts.session,
                    opened.facts.sandbox,
                    warnings.collect::<String>()
                )
            }
            Moment::Happened(ClientEvent::Answer { blocks, usage: _ }) => self.said(blocks),
            Moment::Happened(ClientEvent::Proposed { call }) => self.proposed(call),
            Moment::Happened(ClientEvent::Started { call, enforced }) => {
                self.cages.push(enforced.clone());
                self.accidents.at(call.number).unwrap_or_default()
            }
            Moment::Happened(ClientEvent::Struck { reason, next: _ }) => {
                format!("  -- {} --\n", on_screen(reason))
            }
            Moment::Happened(ClientEvent::CallEnded { call, result, .. }) => {
                self.ended(call, result)
            }
            Moment::Happened(_) | Moment::Concluded(_) => String::new(),
        };
        ViewOutput { out, err: String::new() }
    }
}

/// A cage in one line.
pub(super) fn in_words(cage: &Enforced) -> String {
    let tier = match cage.tier {
        Tier::A => "A",
        Tier::B => "B",
        Tier::C => "NONE",
    };
    let seccomp = if cage.seccomp { "a seccomp filter" } else { "no seccomp filter" };
    let seen = if cage.refusals_observable { "recorded" } else { "not observable" };
    format!(
        "tier {tier}, Landlock ABI {}, {seccomp}, network {}; refused system calls are {seen}",
        cage.landlock_abi, cage.network
    )
}
