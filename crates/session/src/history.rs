//! The messages sent to a model: the conversation, rebuilt exactly from persisted events.
//!
//! Live events and journal records use the same method, [`History::apply`], so that a replayed
//! session sends exactly the same requests. For any records in any order the messages are valid:
//! roles alternate, the user is first, each call has its result in the next message in the
//! requested order, and nothing is empty.

mod prompt;
mod room;

use crate::background;
use crate::budget::TurnBudget;
use crate::builtin_tools::BuiltinTools;
use crate::compact::{block_size, size};
use crate::limits::HistoryLimits;
use crate::pending_prompt::PendingPrompt;
use crate::synthetic_results;
use crate::truncate::cut;
use protocol::call::{Call, CallStage, ToolResult};
use protocol::content::{ContentBlock, Message, MessageRole};
use protocol::ids::CallId;
use protocol::session::{SessionEvent, SessionSetup, TurnEnd};
use room::{SummaryState, VendorCount};
use std::collections::{BTreeMap, HashMap};

/// A call of the newest answer that waits for its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenUse {
    /// The vendor's id.
    pub use_id: String,
    /// As the model said it.
    pub name: String,
    /// As the model sent it.
    pub input: String,
    /// Our name for it, once it has one.
    pub call: Option<CallId>,
    result: Option<ContentBlock>,
}

/// Where a turn begins: behind so many blocks of this message, which was the last one. And whose it is.
#[derive(Debug, Clone, Copy)]
struct TurnMark {
    message: usize,
    block: usize,
    /// The turn is that of a person's own command.
    is_typed: bool,
}

/// The conversation so far.
#[derive(Debug)]
pub(crate) struct History {
    limits: HistoryLimits,
    messages: Vec<Message>,
    open: Vec<OpenUse>,
    /// The calls of all answers by the vendor's id, each with its number once it has one, else 0.
    use_ids: HashMap<String, u32>,
    turn: Option<TurnMark>,
    budget: TurnBudget,
    last_round: u32,
    last_call: u32,
    vendor_count: VendorCount,
    own: BuiltinTools,
    /// News for the model's next message: commands in the background that ended.
    news: Vec<String>,
    /// The prompt of the running turn, while commands of its text run.
    pending: Option<PendingPrompt>,
    /// The JSON Schema that the answer of the running turn has to fit.
    answer_schema: Option<String>,
    /// Calls that run in the background, a line each.
    background: BTreeMap<u32, String>,
    summary: SummaryState,
}

impl History {
    pub fn new(limits: HistoryLimits) -> Self {
        Self {
            limits,
            messages: Vec::new(),
            open: Vec::new(),
            use_ids: HashMap::new(),
            turn: None,
            budget: TurnBudget::new(limits.most),
            last_round: 0,
            last_call: 0,
            vendor_count: VendorCount::default(),
            own: BuiltinTools::default(),
            news: Vec::new(),
            pending: None,
            answer_schema: None,
            background: BTreeMap::new(),
            summary: SummaryState::default(),
        }
    }

    /// Another model has other limits.
    pub fn set_limits(&mut self, limits: HistoryLimits) {
        self.limits = limits;
        self.budget.set(limits.most);
    }

    /// Takes in one thing that happened.
    pub fn apply(&mut self, happened: &SessionEvent) {
        self.own.apply(happened);
        match happened {
            SessionEvent::Prompt { text, expanded } => self.prompt(text, expanded.as_deref()),
            SessionEvent::Answer { round, blocks, usage, cost } => {
                self.budget.cost(*cost);
                self.answer(*round, blocks);
                self.count(*usage);
            }
            SessionEvent::Compacted(step) => self.compact(step),
            SessionEvent::Joined { text } => self.joined(text),
            SessionEvent::Called { call } => {
                self.last_call = self.last_call.max(call.id.number);
                if let Some(pending) = &mut self.pending {
                    pending.called(call);
                }
                // Calls that the model did not request are not counted against its budget.
                let Some(use_id) = call.origin.use_id() else { return };
                self.budget.called();
                if let Some(number) = self.use_ids.get_mut(use_id) {
                    *number = call.id.number;
                }
                let open = self.open.iter_mut().find(|o| o.use_id == use_id);
                if let Some(open) = open
                    && open.call.is_none()
                {
                    open.call = Some(call.id.clone());
                }
            }
            SessionEvent::Result { call, origin, stage, result } => {
                if let Some(pending) = &mut self.pending {
                    pending.ended(call, result);
                    self.say_pending_if_complete();
                }
                if let Some(want) = synthetic_results::for_want_of(result) {
                    self.budget.not_run(want);
                }
                let most = self.limits.result_chars;
                if let Some(open) =
                    self.open.iter_mut().find(|o| Some(o.use_id.as_str()) == origin.use_id())
                    && open.result.is_none()
                {
                    let text = if result.text.trim().is_empty() {
                        "(no output)".to_owned()
                    } else {
                        cut(result.text.clone(), most)
                    };
                    if *stage == CallStage::InBackground {
                        let command = format!("call {}: {} {}", call.number, open.name, open.input);
                        self.background.insert(call.number, command);
                    }
                    let id = open.use_id.clone();
                    let (is_error, images) = (result.is_error, result.images.clone());
                    open.result = Some(ContentBlock::ToolResult { id, text, is_error, images });
                }
                self.close_if_answered();
            }
            SessionEvent::BackgroundEnded { tool, .. } if protocol::mcp::runs_server(tool) => {}
            SessionEvent::BackgroundEnded { call, tool, result } => {
                self.background.remove(&call.number);
                self.news.push(background::ended(call, tool, result));
            }
            SessionEvent::TurnEnded { end } => self.turn_ended(end),
        }
    }

    /// Adds a note for the model to the next prompt, about an event that it has not seen.
    pub fn noted(&mut self, text: &str) {
        self.user_says(&format!("[{text}]"));
    }

    /// The result of a call that the conversation answers itself.
    pub fn own_answer(&self, call: &Call, setup: &SessionSetup) -> Option<ToolResult> {
        self.own.answer(call, setup)
    }

    /// The tools that the model has loaded, in that order.
    pub fn loaded_tools(&self) -> &[String] {
        self.own.loaded()
    }

    /// The messages of the next request.
    pub fn messages(&self) -> Vec<Message> {
        self.messages.clone()
    }

    /// The same, to look at.
    pub fn as_messages(&self) -> &[Message] {
        &self.messages
    }

    /// Calls of the newest answer that have no result yet, in the order asked.
    pub fn unanswered(&self) -> Vec<OpenUse> {
        self.open.iter().filter(|open| open.result.is_none()).cloned().collect()
    }

    /// True while a prompt's turn has not ended.
    pub fn in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// True if the newest message is the model's.
    pub fn ends_with_answer(&self) -> bool {
        self.messages.last().is_some_and(|last| last.role == MessageRole::Assistant)
    }

    /// True if the newest message holds results of calls.
    pub fn ends_with_results(&self) -> bool {
        self.messages.last().is_some_and(|last| {
            last.blocks.iter().any(|block| matches!(block, ContentBlock::ToolResult { .. }))
        })
    }

    /// A vendor's id unlike every earlier one: some servers and every recording played twice
    /// repeat theirs, and a vendor refuses a history with an id in it twice.
    /// It joins those `taken` in the same answer.
    pub fn new_id(&self, id: String, taken: &mut Vec<String>) -> String {
        let free =
            |id: &String| !id.is_empty() && !self.use_ids.contains_key(id) && !taken.contains(id);
        let new = if free(&id) {
            id
        } else {
            let stem = if id.is_empty() { "call" } else { id.as_str() };
            (2_u64..).map(|n| format!("{stem}_{n}")).find(free).unwrap_or(id)
        };
        taken.push(new.clone());
        new
    }

    /// Usage and remaining budget.
    pub fn budget(&self) -> &TurnBudget {
        &self.budget
    }

    /// The highest number of a request that was answered.
    pub fn last_round(&self) -> u32 {
        self.last_round
    }

    /// The highest number of a call.
    pub fn last_call(&self) -> u32 {
        self.last_call
    }

    fn user_says(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.user_shows(ContentBlock::Text { text: text.to_owned() });
    }

    fn user_shows(&mut self, block: ContentBlock) {
        self.vendor_count.uncounted += block_size(&block);
        match self.messages.last_mut() {
            Some(last) if last.role == MessageRole::User => last.blocks.push(block),
            Some(_) | None => {
                self.messages.push(Message { role: MessageRole::User, blocks: vec![block] });
            }
        }
    }

    fn answer(&mut self, round: u32, blocks: &[ContentBlock]) {
        self.say_pending();
        self.close();
        self.last_round = self.last_round.max(round);
        self.budget.answered();
        let mut sent: Vec<ContentBlock> = Vec::new();
        for block in blocks {
            match block {
                ContentBlock::Text { text } => {
                    if !text.trim().is_empty() {
                        sent.push(block.clone());
                    }
                }
                ContentBlock::Thinking { .. } => sent.push(block.clone()),
                ContentBlock::ToolUse { id, name, input } => {
                    if !id.is_empty() && !self.use_ids.contains_key(id) {
                        self.use_ids.insert(id.clone(), 0);
                        sent.push(block.clone());
                        self.open.push(OpenUse {
                            use_id: id.clone(),
                            name: name.clone(),
                            input: input.clone(),
                            call: None,
                            result: None,
                        });
                    }
                }
                ContentBlock::ToolResult { .. } | ContentBlock::Image { .. } => {}
            }
        }
        // Vendors refuse a message that ends with reasoning.
        while matches!(sent.last(), Some(ContentBlock::Thinking { .. })) {
            sent.pop();
        }
        if sent.is_empty() {
            return;
        }
        self.vendor_count.uncounted += sent.iter().map(block_size).sum::<usize>();
        match self.messages.last_mut() {
            // A paused answer goes on in the same message.
            Some(last) if last.role == MessageRole::Assistant => last.blocks.extend(sent),
            Some(_) => self.messages.push(Message { role: MessageRole::Assistant, blocks: sent }),
            None => {
                self.user_says("(The beginning of this conversation is lost.)");
                self.messages.push(Message { role: MessageRole::Assistant, blocks: sent });
            }
        }
    }

    fn take_news(&mut self) -> String {
        std::mem::take(&mut self.news).join("\n")
    }

    /// Puts the results into one message once every call of the answer has its own.
    fn close_if_answered(&mut self) {
        if self.open.is_empty() || self.open.iter().any(|open| open.result.is_none()) {
            return;
        }
        let calls = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        let mut blocks: Vec<ContentBlock> =
            self.open.drain(..).filter_map(|open| open.result).collect();
        // In the last result and not after it: words behind results invite an empty answer.
        if let Some(notice) = self.budget.notice(calls)
            && let Some(ContentBlock::ToolResult { text, .. }) = blocks.last_mut()
        {
            text.push_str("\n\n");
            text.push_str(&notice);
        }
        let news = self.take_news();
        if !news.is_empty()
            && let Some(ContentBlock::ToolResult { text, .. }) = blocks.last_mut()
        {
            text.push_str("\n\n");
            text.push_str(&news);
        }
        let message = Message { role: MessageRole::User, blocks };
        self.vendor_count.uncounted += size(&message);
        self.messages.push(message);
    }

    /// Says something more in the newest results, at the end of this call's.
    pub fn add_to_result(&mut self, use_id: &str, more: &str) {
        // Its neighbours may still run.
        let of_open = self.open.iter_mut().find(|open| open.use_id == use_id);
        if let Some(ContentBlock::ToolResult { text, .. }) =
            of_open.and_then(|open| open.result.as_mut())
        {
            text.push_str("\n\n");
            text.push_str(more);
            return;
        }
        let Some(last) = self.messages.last_mut() else { return };
        let of_it = last.blocks.iter_mut().find_map(|block| match block {
            ContentBlock::ToolResult { id, text, .. } if id == use_id => Some(text),
            ContentBlock::ToolResult { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. } => None,
        });
        if let Some(text) = of_it {
            text.push_str("\n\n");
            text.push_str(more);
            self.vendor_count.uncounted += more.len() + 2;
        }
    }

    /// Closes calls without a result, so that the history is valid.
    fn close(&mut self) {
        for open in self.open.iter_mut().filter(|open| open.result.is_none()) {
            open.result = Some(ContentBlock::ToolResult {
                id: open.use_id.clone(),
                text: "interrupted: the result of this call is not known".to_owned(),
                is_error: true,
                images: Vec::new(),
            });
        }
        self.close_if_answered();
    }

    fn turn_ended(&mut self, end: &TurnEnd) {
        self.say_pending();
        match end {
            TurnEnd::Declined { .. } => {
                self.close();
                let calls = self.budget.calls();
                self.forget_turn(&format!(
                    "[A request at this place was declined by the model and is left out; it had \
                     asked for {calls} tool calls.]"
                ));
            }
            TurnEnd::Done
            | TurnEnd::RoundsUsedUp { .. }
            | TurnEnd::CallsUsedUp { .. }
            | TurnEnd::CostReached { .. }
            | TurnEnd::Truncated
            | TurnEnd::StoppedByHook { .. }
            | TurnEnd::Interrupted
            | TurnEnd::ProviderFailed { .. }
            | TurnEnd::ProcessDied(_) => {}
        }
        self.turn = None;
        self.summary.turn_ended();
    }

    /// The prompt of the turn that ends was refused, or not judged: the model never gets it.
    pub fn leave_prompt_out(&mut self) {
        self.say_pending();
        self.forget_turn("[A prompt at this place was refused by a hook and is left out.]");
        self.own.forget_prompt();
    }

    /// A declined request would be declined again with every later one, so it is left out.
    fn forget_turn(&mut self, instead: &str) {
        let Some(mark) = self.turn else { return };
        self.messages.truncate(mark.message + 1);
        if let Some(last) = self.messages.get_mut(mark.message) {
            last.blocks.truncate(mark.block);
            if last.blocks.is_empty() {
                self.messages.pop();
            }
        }
        self.user_says(instead);
    }
}
