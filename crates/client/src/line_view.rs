//! Items as lines that scroll away, for an attached terminal. Pure.

use crate::call_gist::call_title;
use crate::call_line::{CallLine, CallState, failure_of, reason_of_person, shown_output};
use crate::colour::Colour;
use crate::cost::in_dollars;
use crate::lines::{one_line, wrap};
use crate::refusal_lines::refusal_lines;
use crate::screen_items::{CallBlock, ScreenItem};
use crate::text_view::argument_lines;
use crate::transcript::fault_of;
use protocol::call::Call;
use protocol::client::SettingChange;
use protocol::confinement::Network;
use protocol::hidden::{on_screen, visible};
use protocol::judgement::{Ask, ExtraRight, Question, SERVER_QUESTION};
use protocol::session::TurnEnd;

/// Longest line about a call, in characters.
const LINE: usize = 120;
/// Last lines of a call's output that are shown; the audit record has all.
const OUTPUT_LINES: usize = 6;

/// Where items are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveArea {
    /// Running calls and questions are shown below the items, in rows that are repainted.
    Shown,
    /// Nothing else is shown.
    Absent,
}

/// How the parts of a session are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// By signs, indents and colours.
    Signs,
    /// By a word before each, for those who hear the screen.
    Words,
}

/// The view.
#[derive(Debug, Clone, Copy)]
pub struct LineView {
    colour: Colour,
    live_area: LiveArea,
    labels: Labels,
    /// Columns of the terminal. agentd's own texts are wrapped to them. Texts of the model and of
    /// tools are not, so that they can be copied unchanged.
    columns: usize,
}

impl LineView {
    /// `live_area` says if live rows are shown below the lines.
    #[must_use]
    pub fn new(colour: Colour, around: LiveArea) -> Self {
        Self { colour, live_area: around, labels: Labels::Signs, columns: usize::MAX }
    }

    /// The same with such labels.
    #[must_use]
    pub fn with_labels(self, labels: Labels) -> Self {
        Self { labels, ..self }
    }

    /// `word` where labels are words.
    fn label(&self, word: &'static str) -> &'static str {
        match self.labels {
            Labels::Words => word,
            Labels::Signs => "",
        }
    }

    /// The same in a terminal of so many columns.
    #[must_use]
    pub fn in_columns(self, columns: usize) -> Self {
        Self { columns, ..self }
    }

    pub(crate) fn colour(&self) -> Colour {
        self.colour
    }

    /// The lines of an item, each with its end.
    #[must_use]
    pub fn lines(&self, item: &ScreenItem) -> String {
        match item {
            ScreenItem::Prompt(text) => {
                let mark = if self.labels == Labels::Words { "You: " } else { "> " };
                format!("\n{}\n\n", self.colour.bold(&indented(mark, text)))
            }
            ScreenItem::Text(text) => ended(&on_screen(text)),
            ScreenItem::Thinking(text) => {
                self.dim_line(&format!("thinking: {}", one_line(text, LINE)))
            }
            ScreenItem::Struck(reason) => {
                let struck = format!("the shown part of this answer is void: {reason}");
                self.dim_line(&struck)
            }
            ScreenItem::Retrying(text) => match self.live_area {
                LiveArea::Shown => String::new(),
                LiveArea::Absent => self.dim_line(text),
            },
            ScreenItem::Proposed(call) => match self.live_area {
                LiveArea::Shown => String::new(),
                LiveArea::Absent => {
                    let title = self.colour.bold(&one_line(&call_title(call), LINE));
                    format!("{}{title}\n", self.label("Call: "))
                }
            },
            ScreenItem::Asked(question) => self.question(question),
            ScreenItem::Decided { tool, allowed, basis } => {
                let word = match (tool == SERVER_QUESTION, *allowed) {
                    (true, true) => "answered",
                    (true, false) => "not answered",
                    (false, true) => "allowed",
                    (false, false) => "not allowed",
                };
                let line = format!("  {} {word}: {}", one_line(tool, LINE), one_line(basis, LINE));
                let line = wrap(&line, self.columns, 2);
                let line = if *allowed { self.colour.green(&line) } else { self.colour.red(&line) };
                format!("{line}\n")
            }
            ScreenItem::Ended(block) => self.block(block),
            ScreenItem::TurnTotals(totals) => match totals.in_words().as_str() {
                "" => String::new(),
                words => self.dim_line(&format!("{}{words}", self.label("The turn took: "))),
            },
            ScreenItem::TurnEnded(end) => self.turn_end(end),
            ScreenItem::Changed(change, by) => {
                self.dim_line(&format!("{} (by {})", describe_change(change), one_line(by, LINE)))
            }
            ScreenItem::Note(text) => {
                let text = wrap(on_screen(text).trim_end_matches('\n'), self.columns, 0);
                ended(&self.colour.dim(&text))
            }
            ScreenItem::Error(text) => ended(&self.trouble(text)),
        }
    }

    fn trouble(&self, text: &str) -> String {
        let text = format!("agentd: {}", on_screen(text).trim_end_matches('\n'));
        self.colour.red(&wrap(&text, self.columns, 0))
    }

    /// A dimmed line of agentd's own text.
    fn dim_line(&self, text: &str) -> String {
        format!("{}\n", self.colour.dim(&wrap(&on_screen(text), self.columns, 0)))
    }

    /// A line of a call's output, unwrapped.
    fn dim_as_it_is(&self, text: &str) -> String {
        format!("{}\n", self.colour.dim(&on_screen(text)))
    }

    fn block(&self, block: &CallBlock) -> String {
        let line = CallLine::of(block);
        let title = one_line(&line.title, LINE);
        // Nothing unfolds here, so the line also says who or what decided.
        let basis = block.basis.as_deref().map(|basis| one_line(basis, LINE));
        let basis = basis.filter(|basis| !line.facts.iter().any(|fact| fact.contains(basis)));
        let basis = basis.map(|basis| format!(" ({basis})")).unwrap_or_default();
        let mut text = match self.labels {
            Labels::Words => {
                let (word, facts) = (line.state.word(), line.facts.join(", "));
                let facts = if facts.is_empty() { facts } else { format!(": {facts}") };
                format!("Call ended: {word}: {title}{facts}{basis}\n")
            }
            Labels::Signs => {
                let (mark, end) = (line.state.mark(), line.end());
                let (mark, end) = match line.state {
                    CallState::Done | CallState::Runs => {
                        (self.colour.green(mark), self.colour.dim(&end))
                    }
                    CallState::Failed | CallState::NotRun | CallState::Unknown => {
                        (self.colour.red(mark), self.colour.red(&end))
                    }
                };
                format!("{mark} {}{end}{}\n", self.colour.bold(&title), self.colour.dim(&basis))
            }
        };
        let most = if is_checklist(&block.call) { usize::MAX } else { OUTPUT_LINES };
        text.push_str(&self.output(&shown_output(block), most));
        if let Some(why) = failure_of(block) {
            text.push_str(&format!("{}\n", self.colour.red(&format!("  {}", one_line(why, LINE)))));
        }
        if let Some(reason) = reason_of_person(block) {
            text.push_str(&self.dim_line(&format!("  “{}”", one_line(reason, LINE))));
        }
        text + &refusal_lines(&block.refused, &block.call.id, self.colour, LINE)
    }

    /// The last lines of a call's output.
    fn output(&self, output: &str, most: usize) -> String {
        let lines: Vec<&str> = output.trim_end().lines().collect();
        let left_out = lines.len().saturating_sub(most);
        let mut text = String::new();
        if left_out > 0 {
            let lines = if left_out == 1 { "line" } else { "lines" };
            text.push_str(&self.dim_line(&format!("  … {left_out} {lines}")));
        }
        for line in &lines[left_out..] {
            text.push_str(&self.dim_as_it_is(&format!("  {line}")));
        }
        text
    }

    fn question(&self, question: &Question) -> String {
        let Question { call, tool, preview, confinement, reason, widens, .. } = question;
        let asks = asks(question);
        let head = match question.is_of_server() {
            true => on_screen(reason).clone(),
            false => format!("{} {}: {asks}", one_line(tool, LINE), call.number),
        };
        let head = self.label("Question: ").to_owned() + &head;
        let mut text = format!("\n{}\n", self.colour.bold(&head));
        let preview = match preview.trim().is_empty() {
            true => argument_lines(&question.input),
            false => preview.clone(),
        };
        for line in visible(&preview).trim_end().lines() {
            let line = format!("    {line}");
            let line = match line.trim_start().chars().next() {
                _ if question.is_plan() || question.is_of_server() => line,
                Some('+') => self.colour.green(&line),
                Some('-') => self.colour.red(&line),
                Some(_) | None => line,
            };
            text.push_str(&format!("{line}\n"));
        }
        // Further rows are indented to the text after the label.
        let about = |line: String| wrap(&line, self.columns, 7);
        if question.is_of_server() {
            text.push_str(&about(format!("  ({}; {asks})\n", on_screen(confinement))));
            return text;
        }
        if question.has_own_reason() {
            text.push_str(&about(format!("  why:   {}\n", on_screen(reason))));
        }
        text.push_str(&about(format!("  cage:  {}\n", on_screen(confinement))));
        for widening in widens {
            let line = about(format!("  wider: {}", describe_widening(widening)));
            text.push_str(&format!("{}\n", self.colour.red(&line)));
        }
        text
    }

    fn turn_end(&self, end: &TurnEnd) -> String {
        match (end, fault_of_turn(end)) {
            (TurnEnd::Interrupted, _) => self.dim_line("the turn was stopped"),
            (_, Some(fault)) => format!("{}\n", self.trouble(&fault)),
            (_, None) => match self.live_area {
                LiveArea::Shown => "\n".to_owned(),
                LiveArea::Absent => self.dim_line("the turn is over; type the next prompt"),
            },
        }
    }
}

/// What a question asks, behind the name of its call.
#[must_use]
pub fn asks(question: &Question) -> &'static str {
    match question.ask {
        Ask::Form { .. } => "do you fill in its form?",
        Ask::Visit => "did you visit its page?",
        Ask::Plan { .. } => "do you approve this plan?",
        Ask::Call { .. } => "may it run?",
        Ask::Choose { .. } => "the model asks you",
    }
}

/// The error message for a turn's end, with a way on. `None` for a normal end.
#[must_use]
pub fn fault_of_turn(end: &TurnEnd) -> Option<String> {
    let fault = fault_of(end)?;
    Some(match end {
        TurnEnd::ProcessDied(_) => format!("{fault}; your next prompt continues the session"),
        TurnEnd::Done
        | TurnEnd::RoundsUsedUp { .. }
        | TurnEnd::CallsUsedUp { .. }
        | TurnEnd::CostReached { .. }
        | TurnEnd::Declined { .. }
        | TurnEnd::Truncated
        | TurnEnd::StoppedByHook { .. }
        | TurnEnd::Interrupted
        | TurnEnd::ProviderFailed { .. } => fault,
    })
}

/// Describes a right beyond the session's.
#[must_use]
pub fn describe_widening(widening: &ExtraRight) -> String {
    match widening {
        ExtraRight::Network => "network, for this call only".to_owned(),
        ExtraRight::Hosts(hosts) => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!("network to {}, for this call only", hosts.join(", "))
        }
        ExtraRight::Directory(dir) => {
            format!("{}, for this call only", on_screen(&dir.to_path().display().to_string()))
        }
        ExtraRight::GitAdmin => {
            "git's settings and hooks (.git/config, .git/hooks), for this call only".to_owned()
        }
        ExtraRight::GitSign => {
            "signatures of git commits and tags by your ssh agent, for this call only".to_owned()
        }
    }
}

/// True if a call shows a checklist. The conversation keeps it short, so all of it is shown.
#[must_use]
pub fn is_checklist(call: &Call) -> bool {
    matches!(call.tool.as_str(), "checklist_create" | "checklist_update")
}

/// A changed setting, as one line.
#[must_use]
pub fn describe_change(change: &SettingChange) -> String {
    match change {
        SettingChange::Network(Network::On) => "network on for all new commands".into(),
        SettingChange::Network(Network::Off) => "network off for all new commands".into(),
        SettingChange::Network(Network::Listed) => {
            "network to the allowed hosts for new commands".into()
        }
        SettingChange::Host(host) => {
            format!("network to {host} and the other allowed hosts for new commands")
        }
        SettingChange::Mode(mode) => format!("mode {}", mode.name()),
        SettingChange::Model(name) => format!("model {name}, starting with the next request"),
        SettingChange::Pin(file) => {
            format!("{} is pinned, starting with the next request", on_screen(file))
        }
        SettingChange::Unpin(file) => format!("{} is no longer pinned", on_screen(file)),
        SettingChange::CostLimit(most) => {
            format!("the session ends its turn before it costs more than {}", in_dollars(*most))
        }
        SettingChange::Flag(key, value) => {
            format!("each run of this session has {} {}", on_screen(key), one_line(value, LINE))
        }
        SettingChange::Name(name) if name.is_empty() => "the session has no name now".to_owned(),
        SettingChange::Name(name) => format!("the session is named {:?}", on_screen(name)),
        SettingChange::AppendedSystem(text) => {
            format!("the system prompt ends with: {}", one_line(text, LINE))
        }
        SettingChange::AddDirectory(dir) => {
            format!("tools may use {}", dir.to_path().display())
        }
    }
}

fn indented(mark: &str, text: &str) -> String {
    let text = on_screen(text);
    let lines: Vec<_> = text.trim_end().lines().map(|line| format!("{mark}{line}")).collect();
    lines.join("\n")
}

fn ended(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
