//! The items that a user sees of a session: events in, items out. Pure. Used by the screen and for
//! pages of earlier events.

use crate::answer_texts::text_blocks;
use crate::call_gist::{call_title, gist};
use crate::compaction_text::describe_compaction;
use crate::cost::Spent;
use crate::lines::one_line;
use crate::turn_progress::TurnProgress;
use crate::turn_totals::TurnTotals;
use protocol::call::{Call, Outcome, ToolResult};
use protocol::client::{AnswerPart, ClientEvent, PromptUse, SettingChange};
use protocol::confinement::Enforced;
use protocol::content::ContentBlock;
use protocol::ids::CallId;
use protocol::judgement::Question;
use protocol::session::{TASK, TurnEnd};

/// How the decision of a person begins, in the supervisor's words.
const ANSWERED_BY: &str = "answered by ";

/// Of a turn without calls.
const NO_CALL: u32 = u32::MAX;

/// Characters of a running call's output that are stored, to show its end.
const TAIL: usize = 16_000;
/// Most characters of a call's gist in a line about it.
const GIST: usize = 80;

/// A thing that is finished and can be shown for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenItem {
    /// A prompt.
    Prompt(String),
    /// Text of the model: complete lines, or the rest of its answer.
    Text(String),
    /// Reasoning of the model, whole.
    Thinking(String),
    /// The shown part of the answer is void, with the reason.
    Struck(String),
    /// A request failed and is tried again. Shown only if there is no live area, which counts the wait down.
    Retrying(String),
    /// The model requested a call. Shown only if there is no live area.
    Proposed(Call),
    /// A question to the user.
    Asked(Box<Question>),
    /// A question was answered, here or elsewhere.
    Decided {
        /// The tool.
        tool: String,
        /// The verdict.
        allowed: bool,
        /// The rule, mode or user that decided.
        basis: String,
    },
    /// A call ended.
    Ended(Box<CallBlock>),
    /// What the turn that ends took.
    TurnTotals(Box<TurnTotals>),
    /// The turn ended.
    TurnEnded(TurnEnd),
    /// A user changed a setting.
    Changed(SettingChange, String),
    /// Something to know.
    Note(String),
    /// Something that is not as it should be.
    Error(String),
}

impl ScreenItem {
    /// The same; the end of a turn with the cost of its answers.
    pub(crate) fn costing(self, cost: Spent) -> Self {
        let Self::TurnTotals(totals) = self else { return self };
        Self::TurnTotals(Box::new(totals.costing(cost)))
    }
}

/// A tool call and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallBlock {
    /// The call.
    pub call: Call,
    /// The rule, mode or user that decided.
    pub basis: Option<String>,
    /// The cage it runs in, once it does.
    pub cage: Option<Enforced>,
    /// Whether the conversation waits for it.
    pub place: CallPlace,
    /// The end of its output so far.
    pub tail: String,
    /// The lines of its output so far.
    pub lines: usize,
    /// Its result.
    pub result: Option<ToolResult>,
    /// Refusals by the kernel, one line each.
    pub refused: Vec<String>,
    /// The calls of the sub-agent that it is or was, as far as they are known.
    pub agent_calls: Option<u32>,
    /// The newest call of the sub-agent that it is, in words.
    pub agent_works: Option<String>,
}

/// Whether the conversation waits for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPlace {
    /// It does.
    Foreground,
    /// It goes on while the call runs.
    Background,
}

impl CallBlock {
    pub(crate) fn new(call: Call) -> Self {
        Self {
            call,
            basis: None,
            cage: None,
            place: CallPlace::Foreground,
            tail: String::new(),
            lines: 0,
            result: None,
            refused: Vec::new(),
            agent_calls: None,
            agent_works: None,
        }
    }

    /// True if a person allowed or denied it.
    pub(crate) fn is_answered_by_person(&self) -> bool {
        self.basis.as_deref().is_some_and(|basis| basis.starts_with(ANSWERED_BY))
    }

    /// True if this terminal saw it begin. A sub-agent has cages of its own, and says where it works.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.cage.is_some() || (self.call.tool == TASK && !self.tail.is_empty())
    }

    /// True if the conversation goes on while it runs.
    #[must_use]
    pub fn is_in_background(&self) -> bool {
        self.place == CallPlace::Background
    }

    fn printed(&mut self, text: &str) {
        self.tail.push_str(text);
        self.lines += text.matches('\n').count();
        let surplus = self.tail.chars().count().saturating_sub(TAIL);
        if surplus > 0 {
            self.tail = self.tail.chars().skip(surplus).collect();
        }
    }
}

/// First part of the streamed answer that this client received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum StreamStart {
    #[default]
    FromStart,
    /// The client attached during the answer, which is shown when it is complete.
    Midway,
}

/// Calls that run, questions that are open, and the answer that is streamed.
#[derive(Debug, Clone, Default)]
pub struct ScreenItems {
    open: Vec<CallBlock>,
    questions: Vec<Question>,
    streamed: String,
    /// Bytes of it that were already emitted as items.
    shown: usize,
    /// Streamed reasoning that was not emitted yet.
    thinking: String,
    /// Reasoning of this answer that was emitted.
    thought: String,
    seen: StreamStart,
    progress: TurnProgress,
    /// Of the running turn, if its beginning was seen.
    totals: Option<TurnTotals>,
    /// The number of the first call since the newest prompt; 0 before a prompt was received.
    turn_from: u32,
    /// The name of this terminal. Recorded events may name an earlier terminal of the same name.
    own_name: Option<String>,
}

impl ScreenItems {
    /// Calls that have no end yet, in the order asked.
    #[must_use]
    pub fn open(&self) -> &[CallBlock] {
        &self.open
    }

    /// Questions that wait, the oldest first.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The number of the first call of the newest turn; 0 where its prompt was not received, and
    /// above all numbers where it has no call.
    pub(crate) fn first_call_of_turn(&self) -> u32 {
        self.turn_from
    }

    /// Streamed text that was not emitted as an item yet.
    #[must_use]
    pub fn streaming(&self) -> &str {
        self.streamed.get(self.shown..).unwrap_or_default()
    }

    /// Streamed reasoning that was not emitted as an item yet.
    #[must_use]
    pub fn thinking(&self) -> &str {
        &self.thinking
    }

    /// How far the model's answer is.
    #[must_use]
    pub fn progress(&self) -> &TurnProgress {
        &self.progress
    }

    /// The one call that the conversation waits for.
    #[must_use]
    pub fn only_call(&self) -> Option<&CallBlock> {
        let mut calls = self.open.iter().filter(|call| !call.is_in_background());
        let first = calls.next();
        first.filter(|_| calls.next().is_none() && self.questions.is_empty())
    }

    /// The following events are new, and name this terminal so.
    pub fn attached_as(&mut self, name: String) {
        self.own_name = Some(name);
    }

    /// Who did something, for the person at this terminal.
    fn who(&self, by: &str) -> String {
        if self.own_name.as_deref() == Some(by) { "you".to_owned() } else { by.to_owned() }
    }

    /// The next event may be the middle of an answer.
    pub fn stream_started_earlier(&mut self) {
        self.seen = StreamStart::Midway;
    }

    /// Drops the state of a lost supervisor's turn.
    pub fn lost(&mut self) {
        *self = Self { turn_from: self.turn_from, ..Self::default() };
    }

    /// The next event is the prompt that begins a turn, now.
    pub(crate) fn turn_begins(&mut self) {
        self.totals = Some(TurnTotals::default());
    }

    /// Handles one event and returns its finished items.
    pub fn take(&mut self, event: &ClientEvent) -> Vec<ScreenItem> {
        self.progress.take(event);
        match event {
            ClientEvent::Delta { part: AnswerPart::Text, text } => {
                let mut items = self.end_of_thinking();
                items.extend(self.streamed(text));
                items
            }
            ClientEvent::Delta { part: AnswerPart::Thinking, text } => {
                self.thinking.push_str(text);
                Vec::new()
            }
            ClientEvent::Delta { part: AnswerPart::Tool | AnswerPart::Arguments, text: _ } => {
                Vec::new()
            }
            ClientEvent::Struck { reason, next } => {
                let shown = [&self.streamed, &self.thought, &self.thinking];
                let is_blank = shown.iter().all(|part| part.trim().is_empty());
                self.clear_stream();
                let again = next.map(|next| format!("{reason}; {}", next.in_words()));
                let void = match is_blank {
                    true if again.is_some() => None,
                    true => Some(ScreenItem::Note(reason.clone())),
                    false => Some(ScreenItem::Struck(reason.clone())),
                };
                void.into_iter().chain(again.map(ScreenItem::Retrying)).collect()
            }
            ClientEvent::Answer { blocks, usage } => {
                if let Some(totals) = &mut self.totals {
                    totals.answered(*usage);
                }
                // For a slow reader some pieces may be missing. Then all of it is shown again.
                let (whole, came) = (thinking_of(blocks), self.thought.clone() + &self.thinking);
                let is_complete = !self.thought.is_empty() && begins_with_text(&came, &whole);
                // Of an answer that was stopped, a part from its middle is not shown as the whole.
                let is_part = self.seen == StreamStart::Midway;
                if (!whole.is_empty() && !is_complete) || is_part {
                    self.thinking = whole;
                }
                self.seen = StreamStart::FromStart;
                let mut items = self.end_of_thinking();
                items.extend(self.rest_of(&text_blocks(blocks)).map(ScreenItem::Text));
                self.clear_stream();
                items
            }
            ClientEvent::Prompt { text, of: PromptUse::Joined } => vec![
                ScreenItem::Prompt(text.clone()),
                ScreenItem::Note("joined the turn".to_owned()),
            ],
            ClientEvent::Prompt { text, of } => {
                self.clear_stream();
                self.turn_from = NO_CALL;
                match of {
                    PromptUse::Prompt | PromptUse::Joined => {
                        vec![ScreenItem::Prompt(text.clone())]
                    }
                    // The line of its call says it, and no model is asked.
                    PromptUse::Command => {
                        self.totals = None;
                        Vec::new()
                    }
                }
            }
            ClientEvent::Proposed { call } => {
                self.clear_stream();
                if self.find(&call.id).is_some() {
                    return Vec::new();
                }
                self.turn_from = self.turn_from.min(call.id.number);
                if let Some(totals) = &mut self.totals {
                    totals.called(call);
                }
                self.open.push(CallBlock::new(call.clone()));
                vec![ScreenItem::Proposed(call.clone())]
            }
            ClientEvent::Asked { question } => {
                self.questions.retain(|known| known.call != question.call);
                self.questions.push(question.clone());
                vec![ScreenItem::Asked(Box::new(question.clone()))]
            }
            ClientEvent::Decided { call, allowed, basis } => self.decided(call, *allowed, basis),
            ClientEvent::Started { call, enforced } => {
                if let Some(block) = self.find_mut(call) {
                    block.cage = Some(enforced.clone());
                }
                Vec::new()
            }
            ClientEvent::Output { call, text, begun } => {
                if let Some(block) = self.find_mut(call) {
                    block.printed(text);
                    if let Some(begun) = begun {
                        block.agent_calls = Some(begun.id.number);
                        block.agent_works = Some(call_title(begun));
                    }
                }
                Vec::new()
            }
            ClientEvent::InBackground { call, text: _ } => {
                let Some(block) = self.find_mut(call) else { return Vec::new() };
                block.place = CallPlace::Background;
                let text = format!("call {} goes on in the background", call.number);
                vec![ScreenItem::Note(text)]
            }
            ClientEvent::CallEnded { call, result, refused, spent } => {
                if let Some(block) = self.open.iter_mut().find(|block| block.call.id == *call) {
                    block.agent_calls = spent.as_ref().map(|spent| spent.calls);
                }
                if let (Some(totals), Some(spent)) = (&mut self.totals, spent) {
                    totals.spent(spent);
                }
                self.ended(call, result, refused)
            }
            ClientEvent::TurnEnded { end } => {
                self.clear_stream();
                self.open.retain(CallBlock::is_in_background);
                self.questions.clear();
                let totals = self.totals.take().map(|totals| totals.ending(end.clone()));
                let totals = totals.map(|totals| ScreenItem::TurnTotals(Box::new(totals)));
                totals.into_iter().chain([ScreenItem::TurnEnded(end.clone())]).collect()
            }
            ClientEvent::Changed { change, by } => {
                vec![ScreenItem::Changed(change.clone(), self.who(by))]
            }
            ClientEvent::Learned { rule, by, unwritten } => {
                let place = if rule.line == 0 { "in this session" } else { "from now on" };
                let mut text = format!("{place} `{}` is allowed (by {})", rule.text, self.who(by));
                if rule.line > 0 {
                    text.push_str(&format!("; written to {}:{}", rule.file, rule.line));
                }
                let mut items = vec![ScreenItem::Note(text)];
                items.extend(unwritten.as_ref().map(|why| {
                    ScreenItem::Error(format!(
                        "the rule `{}` could not be written and ends with this session: {why}. \
                         Add it to permissions.allow yourself, or give the same answer again",
                        rule.text
                    ))
                }));
                items
            }
            ClientEvent::AnswerRejected { call: _, reason } => {
                vec![ScreenItem::Error(format!("the answer did not count: {reason}"))]
            }
            ClientEvent::Compacted(step) => vec![ScreenItem::Note(describe_compaction(step))],
            ClientEvent::Notice { text } => vec![ScreenItem::Note(text.clone())],
            ClientEvent::Degraded { reason } => vec![ScreenItem::Error(reason.clone())],
            ClientEvent::Queue { .. } | ClientEvent::Model { .. } => Vec::new(),
        }
    }

    /// A call that has no end yet.
    pub(crate) fn find(&self, call: &CallId) -> Option<&CallBlock> {
        self.open.iter().find(|block| block.call.id == *call)
    }

    fn find_mut(&mut self, call: &CallId) -> Option<&mut CallBlock> {
        self.open.iter_mut().find(|block| block.call.id == *call)
    }

    /// Reasoning is shown once, when text follows it or the answer ends.
    fn end_of_thinking(&mut self) -> Vec<ScreenItem> {
        let thinking = std::mem::take(&mut self.thinking);
        if self.seen == StreamStart::Midway || thinking.trim().is_empty() {
            return Vec::new();
        }
        self.thought.push_str(&thinking);
        self.thought.push('\n');
        vec![ScreenItem::Thinking(thinking.trim().to_owned())]
    }

    /// Whole lines are shown for good; the last one when it is ended.
    fn streamed(&mut self, text: &str) -> Vec<ScreenItem> {
        self.streamed.push_str(text);
        let finished = self.streaming().rfind('\n').map(|at| at + 1);
        match (self.seen, finished) {
            (StreamStart::FromStart, Some(length)) => {
                let words = self.streaming()[..length].to_owned();
                self.shown += length;
                vec![ScreenItem::Text(words)]
            }
            (StreamStart::FromStart, None) | (StreamStart::Midway, _) => Vec::new(),
        }
    }

    /// The part of the complete answer that was not emitted yet.
    fn rest_of(&self, texts: &[&str]) -> Option<String> {
        let shown = &self.streamed[..self.shown];
        let whole = texts.concat();
        // Of a stopped answer, pieces may have been shown that came too late for the record.
        if shown.starts_with(&whole) {
            return None;
        }
        // For a slow reader some deltas may be missing. Then the whole answer is shown again.
        let rest = match whole.strip_prefix(shown) {
            Some(rest) if !shown.is_empty() => rest.to_owned(),
            Some(_) | None => texts.join("\n\n"),
        };
        Some(rest).filter(|rest| !rest.trim().is_empty())
    }

    fn clear_stream(&mut self) {
        self.streamed.clear();
        self.shown = 0;
        self.thinking.clear();
        self.thought.clear();
        self.seen = StreamStart::FromStart;
    }

    fn decided(&mut self, call: &CallId, allowed: bool, basis: &str) -> Vec<ScreenItem> {
        let by = basis.strip_prefix(ANSWERED_BY);
        let is_answer = by.is_some();
        let basis = by.map_or(basis.to_owned(), |by| format!("{ANSWERED_BY}{}", self.who(by)));
        let asked = self.questions.iter().position(|question| question.call == *call);
        let of_server =
            asked.and_then(|at| self.questions.get(at)).is_some_and(Question::is_of_server);
        let mut earlier = None;
        if let Some(block) = self.find_mut(call).filter(|_| !of_server) {
            // Of an earlier question, only the answer is on record. A server asks after the decision.
            earlier = (is_answer && block.basis.is_none()).then(|| block.call.tool.clone());
            block.basis = Some(basis.clone());
        }
        let open = asked.map(|at| self.questions.remove(at).tool);
        let item = |tool| ScreenItem::Decided { tool, allowed, basis };
        open.or(earlier).map(item).into_iter().collect()
    }

    fn ended(&mut self, call: &CallId, result: &ToolResult, refused: &[String]) -> Vec<ScreenItem> {
        self.questions.retain(|question| question.call != *call);
        let Some(at) = self.open.iter().position(|block| block.call.id == *call) else {
            return Vec::new();
        };
        let mut block = self.open.remove(at);
        if block.call.undid_nothing(result) {
            return Vec::new();
        }
        block.result = Some(result.clone());
        block.refused = refused.to_vec();
        // It began long before, so its block may be far above.
        let is_cut = block.is_in_background() && result.outcome == Outcome::Interrupted;
        let note = is_cut.then(|| {
            let (number, what) = (call.number, one_line(&gist(&block.call), GIST));
            ScreenItem::Error(format!(
                "call {number} in the background was cut short and does not run any more: {what}"
            ))
        });
        std::iter::once(ScreenItem::Ended(Box::new(block))).chain(note).collect()
    }
}

/// True if a text begins with another, besides white space, which parts are joined by.
fn begins_with_text(text: &str, beginning: &str) -> bool {
    let ink = |text: &'_ str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    ink(text).starts_with(&ink(beginning))
}

fn thinking_of(blocks: &[ContentBlock]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Thinking { text, .. } if !text.trim().is_empty() => Some(text.trim()),
        ContentBlock::Thinking { .. }
        | ContentBlock::Text { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
