//! Events of a session as `session/update`: <https://agentclientprotocol.com/protocol/v1/prompt-turn>. Texts that the
//! editor has by pieces are not sent again with the whole answer.

use client::{call_title, describe_change, is_checklist};
use protocol::call::{Call, CallOrigin, ToolResult};
use protocol::client::{AnswerPart, ClientEvent, ModelFacts};
use protocol::confinement::{Enforced, Tier};
use protocol::content::{ContentBlock, Usage};
use protocol::hidden::on_screen;
use protocol::ids::CallId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most bytes of a running command's output that an update repeats.
const OUTPUT: usize = 4 << 10;

/// What the editor has seen of a session.
#[derive(Debug, Default)]
pub(crate) struct ShownEvents {
    /// The text of the present answer that was sent.
    answer: String,
    /// The same of its reasoning.
    thought: String,
    calls: BTreeMap<CallId, ShownCall>,
    plan: Vec<PlanEntry>,
    facts: ModelFacts,
    /// Cost so far in millionths of a dollar; absent once an answer had no known one.
    cost: Option<u64>,
}

#[derive(Debug)]
struct ShownCall {
    call: Call,
    /// The end of what it printed.
    output: String,
}

#[derive(Debug)]
struct PlanEntry {
    group: String,
    content: String,
    status: &'static str,
}

/// Whose prompts are told to the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    /// It has sent this one.
    Own,
    /// Another client's, or one of an earlier run.
    Others,
}

impl ShownEvents {
    /// Of a session with these facts, at its beginning.
    pub(crate) fn new(facts: ModelFacts) -> Self {
        Self { facts, cost: Some(0), ..Self::default() }
    }

    /// The call of a question.
    pub(crate) fn call(&self, id: &CallId) -> Option<&Call> {
        self.calls.get(id).map(|shown| &shown.call)
    }

    /// The updates of an event.
    pub(crate) fn show(&mut self, event: &ClientEvent, echo: Echo) -> Vec<Value> {
        match event {
            ClientEvent::Prompt { text, of: _ } => {
                self.answer.clear();
                self.thought.clear();
                match echo {
                    Echo::Own => Vec::new(),
                    Echo::Others => vec![chunk("user_message_chunk", text)],
                }
            }
            ClientEvent::Delta { part, text } => self.piece(*part, text),
            ClientEvent::Struck { reason, next } => {
                self.struck(reason, next.map(|next| next.in_words()))
            }
            ClientEvent::Answer { blocks, usage } => self.answer(blocks, *usage),
            ClientEvent::Proposed { call } => self.proposed(call),
            ClientEvent::Started { call, enforced } => self.started(call, enforced),
            ClientEvent::Output { call, text, begun } => self.printed(call, text, begun.as_deref()),
            ClientEvent::InBackground { call, text } => self.ended_so_far(call, text),
            ClientEvent::CallEnded { call, result, refused, spent: _ } => {
                self.ended(call, result, refused)
            }
            ClientEvent::Model { facts, .. } => {
                self.facts = *facts;
                Vec::new()
            }
            ClientEvent::Notice { text } => vec![note(text)],
            ClientEvent::AnswerRejected { reason, .. } => vec![note(reason)],
            ClientEvent::Degraded { reason } => vec![note(reason)],
            ClientEvent::Changed { change, by } => {
                vec![note(&format!("{} (by {by})", describe_change(change)))]
            }
            ClientEvent::Compacted(_) => {
                vec![note("the conversation that the model gets was made smaller")]
            }
            ClientEvent::Asked { .. }
            | ClientEvent::Decided { .. }
            | ClientEvent::Queue { .. }
            | ClientEvent::Learned { .. }
            | ClientEvent::TurnEnded { .. } => Vec::new(),
        }
    }

    fn piece(&mut self, part: AnswerPart, text: &str) -> Vec<Value> {
        match part {
            AnswerPart::Text => {
                self.answer.push_str(text);
                vec![chunk("agent_message_chunk", text)]
            }
            AnswerPart::Thinking => {
                self.thought.push_str(text);
                vec![chunk("agent_thought_chunk", text)]
            }
            AnswerPart::Tool | AnswerPart::Arguments => Vec::new(),
        }
    }

    /// What was sent cannot be taken back: the editor is told that it is void.
    fn struck(&mut self, reason: &str, next: Option<String>) -> Vec<Value> {
        let void = !self.answer.is_empty();
        self.answer.clear();
        self.thought.clear();
        let next = next.map(|next| format!("; {next}")).unwrap_or_default();
        if void {
            let text = format!(
                "\n\n[{}{next}. The text since the last call is void.]\n\n",
                on_screen(reason)
            );
            return vec![chunk("agent_message_chunk", &text)];
        }
        vec![note(&format!("{reason}{next}"))]
    }

    fn answer(&mut self, blocks: &[ContentBlock], usage: Usage) -> Vec<Value> {
        let (mut text, mut thought) = (String::new(), String::new());
        for block in blocks {
            match block {
                ContentBlock::Text { text: words } => text.push_str(words),
                ContentBlock::Thinking { text: words, raw: _ } => thought.push_str(words),
                ContentBlock::ToolUse { .. }
                | ContentBlock::ToolResult { .. }
                | ContentBlock::Image { .. } => {}
            }
        }
        let mut updates = Vec::new();
        for (kind, whole, sent) in [
            ("agent_thought_chunk", thought, std::mem::take(&mut self.thought)),
            ("agent_message_chunk", text, std::mem::take(&mut self.answer)),
        ] {
            let rest = whole.strip_prefix(&sent).unwrap_or(&whole);
            if !rest.is_empty() {
                updates.push(chunk(kind, rest));
            }
        }
        updates.extend(self.used(usage));
        updates
    }

    fn used(&mut self, usage: Usage) -> Option<Value> {
        let cost = self.facts.prices.and_then(|prices| prices.cost(usage));
        self.cost = self.cost.zip(cost).map(|(sum, more)| sum.saturating_add(more));
        let Usage { input, output, cache_read, cache_write } = usage;
        let size = self.facts.context?;
        input.or(output)?;
        let used: u64 = [input, output, cache_read, cache_write].into_iter().flatten().sum();
        let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
        if let Some(cost) = self.cost {
            update["cost"] = json!({"amount": cost as f64 / 1e6, "currency": "USD"});
        }
        Some(update)
    }

    fn proposed(&mut self, call: &Call) -> Vec<Value> {
        match call.origin {
            CallOrigin::Model { .. }
            | CallOrigin::PromptPart
            | CallOrigin::Undo
            | CallOrigin::Person => {}
            // What each new process repeats is no part of the conversation.
            CallOrigin::EventHook
            | CallOrigin::EditHook
            | CallOrigin::ServerStart
            | CallOrigin::PinnedRead => return Vec::new(),
        }
        let shown = ShownCall { call: call.clone(), output: String::new() };
        self.calls.insert(call.id.clone(), shown);
        if is_checklist(call) {
            return Vec::new();
        }
        let mut update = tool_fields(call);
        update["sessionUpdate"] = "tool_call".into();
        update["status"] = "pending".into();
        vec![update]
    }

    fn started(&self, id: &CallId, enforced: &Enforced) -> Vec<Value> {
        let meta = json!({"agentd": {
            "tier": tier(enforced.tier),
            "network": enforced.network,
            "limits": enforced.limits,
        }});
        self.update(id, &json!({"status": "in_progress", "_meta": meta}))
    }

    fn printed(&mut self, id: &CallId, text: &str, begun: Option<&Call>) -> Vec<Value> {
        let Some(shown) = self.calls.get_mut(id) else { return Vec::new() };
        match begun {
            Some(begun) => shown.output.push_str(&format!("{}\n", call_title(begun))),
            None => shown.output.push_str(text),
        }
        let mut cut = shown.output.len().saturating_sub(OUTPUT);
        while !shown.output.is_char_boundary(cut) {
            cut += 1;
        }
        shown.output.drain(..cut);
        let content = json!([text_content(&shown.output)]);
        self.update(id, &json!({"status": "in_progress", "content": content}))
    }

    fn ended_so_far(&self, id: &CallId, text: &str) -> Vec<Value> {
        self.update(id, &json!({"status": "in_progress", "content": [text_content(text)]}))
    }

    fn ended(&mut self, id: &CallId, result: &ToolResult, refused: &[String]) -> Vec<Value> {
        let Some(shown) = self.calls.get(id) else { return Vec::new() };
        if is_checklist(&shown.call) {
            let call = shown.call.clone();
            return if result.is_error { Vec::new() } else { self.planned(&call) };
        }
        let mut content: Vec<Value> = diffs(&shown.call);
        if content.is_empty() || result.is_error {
            content.push(text_content(&result.text));
        }
        let status = if result.is_error { "failed" } else { "completed" };
        let fields = json!({
            "status": status,
            "content": content,
            "rawOutput": {"text": result.text, "code": result.code},
            "_meta": {"agentd": {"refused": refused}},
        });
        let updates = self.update(id, &fields);
        self.calls.remove(id);
        updates
    }

    fn update(&self, id: &CallId, fields: &Value) -> Vec<Value> {
        if self.calls.get(id).is_none_or(|shown| is_checklist(&shown.call)) {
            return Vec::new();
        }
        let mut update = fields.clone();
        update["sessionUpdate"] = "tool_call_update".into();
        update["toolCallId"] = id.to_string().into();
        vec![update]
    }

    /// The plan after a call of a checklist.
    fn planned(&mut self, call: &Call) -> Vec<Value> {
        let Ok(input) = serde_json::from_str::<Value>(&call.input) else { return Vec::new() };
        let word = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
        let group = word("group");
        if let Some(items) = input.get("items").and_then(Value::as_array) {
            self.plan.retain(|entry| entry.group != group);
            let statuses = input.get("statuses").and_then(Value::as_array);
            for (place, item) in items.iter().enumerate() {
                let status = statuses.and_then(|all| all.get(place)).and_then(Value::as_str);
                self.plan.push(PlanEntry {
                    group: group.to_owned(),
                    content: item.as_str().unwrap_or_default().to_owned(),
                    status: plan_status(status.unwrap_or("pending")),
                });
            }
        } else {
            let item = word("item");
            let number = item.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let mut of_group: Vec<_> =
                self.plan.iter_mut().filter(|entry| entry.group == group).collect();
            let named = of_group.iter().position(|entry| entry.content == item).or(number);
            if let Some(entry) = named.and_then(|place| of_group.get_mut(place)) {
                entry.status = plan_status(word("status"));
            }
        }
        let entry = |entry: &PlanEntry| json!({"content": entry.content, "priority": "medium", "status": entry.status});
        let entries: Vec<_> = self.plan.iter().map(entry).collect();
        vec![json!({"sessionUpdate": "plan", "entries": entries})]
    }
}

/// A step that failed is over; the protocol has no word for it.
fn plan_status(status: &str) -> &'static str {
    match status {
        "in_progress" => "in_progress",
        "done" | "failed" => "completed",
        _ => "pending",
    }
}

/// What an editor shows of a call before it runs.
pub(crate) fn tool_fields(call: &Call) -> Value {
    let input: Value = serde_json::from_str(&call.input).unwrap_or_default();
    let path = input.get("path").and_then(Value::as_str);
    let line = input.get("offset").and_then(Value::as_u64);
    let locations: Vec<Value> = path
        .map(|path| match line {
            Some(line) => json!({"path": path, "line": line}),
            None => json!({"path": path}),
        })
        .into_iter()
        .collect();
    json!({
        "toolCallId": call.id.to_string(),
        "title": call_title(call),
        "name": call.tool,
        "kind": kind(&call.tool),
        "content": diffs(call),
        "locations": locations,
        "rawInput": input,
    })
}

/// The protocol's kind of a tool.
fn kind(tool: &str) -> &'static str {
    match tool {
        "read" | "git_diff" | "git_log" | "git_show" | "git_status" => "read",
        "write" | "edit" | "multi_edit" | "apply_patch" | "format" | "rewrite" | "undo_restore" => {
            "edit"
        }
        "delete" => "delete",
        "glob" | "grep" | "ls" | "scan" | "history_search" | "memory_search" | "tool_search" => {
            "search"
        }
        "bash" | "powershell" | "run" | "bash_input" | "bash_output" | "bash_stop" | "git_add"
        | "git_commit" | "verify" => "execute",
        "web_fetch" | "web_search" => "fetch",
        "exit_plan" => "switch_mode",
        "task" => "think",
        _ => "other",
    }
}

/// The changes that a call names itself, as diffs.
fn diffs(call: &Call) -> Vec<Value> {
    let Ok(input) = serde_json::from_str::<Value>(&call.input) else { return Vec::new() };
    let word = |name: &str| input.get(name).and_then(Value::as_str);
    let Some(path) = word("path") else { return Vec::new() };
    let diff = |old: Option<&str>, new: &str| json!({"type": "diff", "path": path, "oldText": old, "newText": new});
    match call.tool.as_str() {
        "write" => word("content").map(|new| diff(None, new)).into_iter().collect(),
        "edit" => word("old_string")
            .zip(word("new_string"))
            .map(|(old, new)| diff(Some(old), new))
            .into_iter()
            .collect(),
        "multi_edit" => {
            let edits = input.get("edits").and_then(Value::as_array).into_iter().flatten();
            edits
                .filter_map(|edit| {
                    let word = |name: &str| edit.get(name).and_then(Value::as_str);
                    Some(diff(Some(word("find")?), word("replace")?))
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// A text as a part of a tool call.
pub(crate) fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// Words of agentd's own, beside the model's.
pub(crate) fn note(text: &str) -> Value {
    chunk("agent_thought_chunk", &format!("[agentd: {}]\n", on_screen(text)))
}

fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::A => "A",
        Tier::B => "B",
        Tier::C => "C",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::call::Outcome;
    use protocol::client::{Prices, PromptUse};
    use protocol::ids::SessionId;

    fn call(number: u32, tool: &str, input: &Value) -> Call {
        let id = CallId { session: SessionId("s".to_owned()), number };
        Call { id, origin: CallOrigin::model("t"), tool: tool.to_owned(), input: input.to_string() }
    }

    fn ended(call: &Call, text: &str) -> ClientEvent {
        let result = ToolResult {
            outcome: Outcome::Done,
            text: text.to_owned(),
            summary: String::new(),
            is_error: false,
            code: None,
            images: Vec::new(),
        };
        ClientEvent::CallEnded { call: call.id.clone(), result, refused: Vec::new(), spent: None }
    }

    fn text(updates: &[Value]) -> Vec<(&str, &str)> {
        updates
            .iter()
            .map(|it| {
                (
                    it["sessionUpdate"].as_str().unwrap_or_default(),
                    it["content"]["text"].as_str().unwrap_or_default(),
                )
            })
            .collect()
    }

    #[test]
    fn an_answer_that_was_streamed_is_not_sent_again_and_the_rest_of_one_is() {
        let mut shown = ShownEvents::new(ModelFacts::default());
        let delta = |part, text: &str| ClientEvent::Delta { part, text: text.to_owned() };
        let answer = |text: &str| ClientEvent::Answer {
            blocks: vec![ContentBlock::Text { text: text.to_owned() }],
            usage: Usage::default(),
        };
        assert_eq!(
            text(&shown.show(&delta(AnswerPart::Text, "Hel"), Echo::Own)),
            [("agent_message_chunk", "Hel")]
        );
        assert_eq!(text(&shown.show(&answer("Hello"), Echo::Own)), [("agent_message_chunk", "lo")]);
        assert!(shown.show(&delta(AnswerPart::Tool, "x"), Echo::Own).is_empty());
        // In a replay nothing was streamed.
        assert_eq!(
            text(&shown.show(&answer("Hello"), Echo::Own)),
            [("agent_message_chunk", "Hello")]
        );
        // What was streamed and is void is said to be so, and the next answer comes whole.
        shown.show(&delta(AnswerPart::Text, "Hel"), Echo::Own);
        let struck = ClientEvent::Struck { reason: "the line was cut".to_owned(), next: None };
        assert!(text(&shown.show(&struck, Echo::Own))[0].1.contains("void"));
        assert_eq!(
            text(&shown.show(&answer("Hello"), Echo::Own)),
            [("agent_message_chunk", "Hello")]
        );
    }

    #[test]
    fn prompts_of_others_are_told() {
        let mut shown = ShownEvents::new(ModelFacts::default());
        let prompt = ClientEvent::Prompt { text: "hi".to_owned(), of: PromptUse::Prompt };
        assert!(shown.show(&prompt, Echo::Own).is_empty());
        assert_eq!(text(&shown.show(&prompt, Echo::Others)), [("user_message_chunk", "hi")]);
    }

    #[test]
    fn an_edit_is_a_diff_and_a_checklist_is_a_plan() {
        let mut shown = ShownEvents::new(ModelFacts::default());
        let edit = call(1, "edit", &json!({"path": "/p/a", "old_string": "a", "new_string": "b"}));
        let update = &shown.show(&ClientEvent::Proposed { call: edit.clone() }, Echo::Own)[0];
        assert_eq!(update["content"][0]["oldText"], "a");
        assert_eq!(update["locations"][0]["path"], "/p/a");
        let update = &shown.show(&ended(&edit, "done"), Echo::Own)[0];
        assert_eq!(
            (&update["status"], &update["content"][0]["newText"]),
            (&"completed".into(), &"b".into())
        );
        let list = call(
            2,
            "checklist_create",
            &json!({"group": "g", "title": "t", "items": ["one", "two"]}),
        );
        assert!(shown.show(&ClientEvent::Proposed { call: list.clone() }, Echo::Own).is_empty());
        assert_eq!(shown.show(&ended(&list, ""), Echo::Own)[0]["entries"][1]["status"], "pending");
        for (number, item) in [(3, "two"), (4, "1")] {
            let step = call(
                number,
                "checklist_update",
                &json!({"group": "g", "item": item, "status": "done"}),
            );
            shown.show(&ClientEvent::Proposed { call: step.clone() }, Echo::Own);
            let plan = &shown.show(&ended(&step, ""), Echo::Own)[0];
            let at = if number == 3 { 1 } else { 0 };
            assert_eq!(plan["entries"][at]["status"], "completed", "{plan}");
        }
        let odd =
            call(5, "checklist_update", &json!({"group": "g", "item": "9", "status": "done"}));
        shown.show(&ClientEvent::Proposed { call: odd.clone() }, Echo::Own);
        assert_eq!(shown.show(&ended(&odd, ""), Echo::Own).len(), 1);
    }

    #[test]
    fn printed_output_is_bounded_and_cut_between_characters() {
        let mut shown = ShownEvents::new(ModelFacts::default());
        let bash = call(1, "bash", &json!({"command": "yes"}));
        shown.show(&ClientEvent::Proposed { call: bash.clone() }, Echo::Own);
        let text = "ä".repeat(OUTPUT);
        let printed = ClientEvent::Output { call: bash.id, text, begun: None };
        let update = &shown.show(&printed, Echo::Own)[0];
        let kept = update["content"][0]["content"]["text"].as_str().unwrap_or_default();
        assert!(kept.len() <= OUTPUT && kept.len() > OUTPUT - 4, "{}", kept.len());
    }

    #[test]
    fn use_is_told_where_its_bounds_are_known() {
        let prices = Prices { input: 3_000_000, output: 0, cache_read: None, cache_write: None };
        let facts =
            ModelFacts { context: Some(1000), prices: Some(prices), ..ModelFacts::default() };
        let usage = Usage { input: Some(10), output: Some(5), cache_read: None, cache_write: None };
        let answer = ClientEvent::Answer { blocks: Vec::new(), usage };
        let update = ShownEvents::new(facts).show(&answer, Echo::Own);
        assert_eq!((&update[0]["used"], &update[0]["size"]), (&15.into(), &1000.into()));
        assert!(ShownEvents::new(ModelFacts::default()).show(&answer, Echo::Own).is_empty());
    }
}
