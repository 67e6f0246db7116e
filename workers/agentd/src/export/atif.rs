//! `agentd export --format atif`: a session as a trajectory of the Agent Trajectory Interchange Format 1.7 (the models
//! of Harbor 0.26, `harbor/models/trajectories`), by which harnesses compare agents. Tier, network and refusals of each
//! call are in `extra`. Pure.

use crate::describe;
use client::{InterruptedEnd, outcome_words};
use jiff::Timestamp;
use journal::{
    CallProgress, ContentBlock, EndedRecord, JournalEntry, JournalRecord, SessionHeader, TurnEnd,
    Usage,
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// A step or a result, as an object.
type Fields = Map<String, Value>;

/// Where the results of a call stand.
#[derive(Debug, Clone)]
struct CallPlace {
    /// The step that asked for it.
    step: usize,
    /// The vendor's id; none where no model asked.
    use_id: Option<String>,
}

/// A session on its way to a trajectory.
#[derive(Debug, Default)]
pub(crate) struct Trajectory {
    agent: Value,
    session: String,
    steps: Vec<Fields>,
    /// By the number of the call.
    calls: HashMap<u32, CallPlace>,
    /// Tokens read, written, and taken from the cache, and the cost in millionths of a US dollar, where all are known.
    tokens: [u64; 3],
    cost: Option<u64>,
}

impl Trajectory {
    /// Takes the next record in.
    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        let time = entry.time;
        match &entry.record {
            JournalRecord::Session(header) => self.begin(header),
            JournalRecord::Prompt { text, .. } => self.step(time, "user", text),
            JournalRecord::Joined { text } => {
                self.step(time, "user", text);
                self.extend_last("extra", json!({"joined_the_turn": true}));
            }
            JournalRecord::Answer { blocks, usage, cost, .. } => {
                self.answer(time, blocks, *usage, *cost);
            }
            JournalRecord::Proposed { call, use_id, tool, input, .. } => {
                self.proposed(time, (*call, use_id), (tool, input));
            }
            JournalRecord::Result { call, outcome, text, summary, refused, .. } => {
                let ended = outcome_words(outcome, InterruptedEnd::of_summary(summary));
                self.result(*call, text, json!({"call": call, "end": ended, "refused": refused}));
            }
            JournalRecord::Interrupted { call, progress, cause, .. } => {
                let ran = match progress {
                    CallProgress::NeverStarted => "never started",
                    CallProgress::MayHaveRun => "may have run",
                };
                self.result(*call, cause, json!({"call": call, "end": ran}));
            }
            JournalRecord::Background { call, text, .. } => {
                self.result(*call, text, json!({"call": call, "end": "goes on in the background"}));
            }
            JournalRecord::TurnEnded { end: TurnEnd::Done } => {}
            JournalRecord::TurnEnded { end } => {
                self.step(time, "system", &describe::ending(end));
            }
            JournalRecord::Summary(summary) => {
                self.step(time, "system", &describe::summary(summary));
            }
            JournalRecord::Compacted { dropped, .. } => {
                let text = format!("the first {dropped} messages are no longer sent to the model");
                self.step(time, "system", &text);
            }
            JournalRecord::Changed { model: Some(model), .. } => {
                self.step(time, "system", &format!("the model is {model} from here on"));
            }
            JournalRecord::Changed { .. }
            | JournalRecord::Queued { .. }
            | JournalRecord::TakenBack { .. }
            | JournalRecord::Learned { .. }
            | JournalRecord::Asked { .. }
            | JournalRecord::Approved { .. }
            | JournalRecord::Denied { .. }
            | JournalRecord::Expired { .. }
            | JournalRecord::Answered { .. }
            | JournalRecord::Start { .. }
            | JournalRecord::Seen { .. }
            | JournalRecord::Spent { .. }
            | JournalRecord::Tampered { .. }
            | JournalRecord::Closed
            | JournalRecord::Unknown { .. } => {}
        }
    }

    /// Adds what the audit log has of a call's end.
    pub(crate) fn audited(&mut self, ended: &EndedRecord) {
        let Some(place) = self.calls.get(&ended.call) else { return };
        let refused: u64 = ended.refusals.iter().map(|refusal| refusal.count).sum();
        let mut extra = json!({"refusals": refused + ended.refusals_uncounted});
        if let (Some(cage), Some(extra)) = (&ended.enforced, extra.as_object_mut()) {
            extra.insert("tier".to_owned(), json!(cage.tier));
            extra.insert("network".to_owned(), json!(cage.network));
        }
        let results = self.steps[place.step].get_mut("observation");
        let results = results.and_then(|observation| observation["results"].as_array_mut());
        let of_call = results.into_iter().flatten().rfind(|it| it["extra"]["call"] == ended.call);
        if let (Some(result), Value::Object(extra)) = (of_call, extra)
            && let Some(known) = result["extra"].as_object_mut()
        {
            known.extend(extra);
        }
    }

    /// The whole. The format has no trajectory without a step.
    pub(crate) fn end(self) -> Option<Value> {
        if self.steps.is_empty() {
            return None;
        }
        let [read, written, cached] = self.tokens;
        let mut totals = json!({
            "total_prompt_tokens": read,
            "total_completion_tokens": written,
            "total_cached_tokens": cached,
            "total_steps": self.steps.len(),
        });
        if let Some(cost) = self.cost {
            totals["total_cost_usd"] = in_dollars(cost);
        }
        let steps = self.steps.into_iter().map(Value::Object);
        Some(json!({
            "schema_version": "ATIF-v1.7",
            "session_id": self.session,
            "agent": self.agent,
            "steps": steps.collect::<Vec<_>>(),
            "final_metrics": totals,
        }))
    }

    fn begin(&mut self, header: &SessionHeader) {
        self.session.clone_from(&header.id);
        self.agent =
            json!({"name": "agentd", "version": header.agentd, "model_name": header.model});
        self.cost = Some(0);
    }

    fn step(&mut self, time: u64, source: &str, message: &str) {
        let step = json!({
            "step_id": self.steps.len() + 1,
            "timestamp": timestamp(time),
            "source": source,
            "message": message,
        });
        if let Value::Object(step) = step {
            self.steps.push(step);
        }
    }

    fn extend_last(&mut self, field: &str, value: Value) {
        if let Some(last) = self.steps.last_mut() {
            last.insert(field.to_owned(), value);
        }
    }

    fn answer(&mut self, time: u64, blocks: &[ContentBlock], usage: Usage, cost: Option<u64>) {
        let (mut words, mut thoughts, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for block in blocks {
            match block {
                ContentBlock::Text { text } => words.push(text.as_str()),
                ContentBlock::Thinking { text, .. } => thoughts.push(text.as_str()),
                ContentBlock::ToolUse { id, name, input } => calls.push(json!({
                    "tool_call_id": id, "function_name": name, "arguments": arguments(input),
                })),
                ContentBlock::ToolResult { .. } | ContentBlock::Image { .. } => {}
            }
        }
        self.step(time, "agent", &words.join("\n\n"));
        let thoughts = thoughts.join("\n\n");
        if !thoughts.trim().is_empty() {
            self.extend_last("reasoning_content", thoughts.into());
        }
        if !calls.is_empty() {
            self.extend_last("tool_calls", calls.into());
        }
        let of = |count: Option<u64>| count.unwrap_or_default();
        let read = of(usage.input) + of(usage.cache_read) + of(usage.cache_write);
        let (written, cached) = (of(usage.output), of(usage.cache_read));
        let mut metrics = json!({
            "prompt_tokens": read, "completion_tokens": written, "cached_tokens": cached,
        });
        if let Some(cost) = cost {
            metrics["cost_usd"] = in_dollars(cost);
        }
        self.extend_last("metrics", metrics);
        for (total, more) in self.tokens.iter_mut().zip([read, written, cached]) {
            *total += more;
        }
        self.cost = self.cost.zip(cost).map(|(total, more)| total + more);
    }

    fn proposed(&mut self, time: u64, (call, use_id): (u32, &str), (tool, input): (&str, &str)) {
        let asks = |step: &Fields| {
            let calls = step.get("tool_calls").and_then(Value::as_array);
            calls.into_iter().flatten().any(|call| call["tool_call_id"] == use_id)
        };
        let step = self.steps.iter().rposition(asks).filter(|_| !use_id.is_empty());
        let place = match step {
            Some(step) => CallPlace { step, use_id: Some(use_id.to_owned()) },
            // A hook, a command of a prompt or of the person.
            None => {
                self.step(time, "system", &format!("{tool} {input}"));
                CallPlace { step: self.steps.len() - 1, use_id: None }
            }
        };
        self.calls.insert(call, place);
    }

    fn result(&mut self, call: u32, text: &str, mut extra: Value) {
        if let Some(extra) = extra.as_object_mut() {
            extra.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
        }
        let Some(CallPlace { step, use_id }) = self.calls.get(&call).cloned() else { return };
        let mut result = json!({"content": text, "extra": extra});
        if let Some(id) = use_id {
            result["source_call_id"] = id.into();
        }
        let observation = self.steps[step].entry("observation");
        let observation = observation.or_insert_with(|| json!({"results": []}));
        if let Some(results) = observation["results"].as_array_mut() {
            results.push(result);
        }
    }
}

/// The arguments as an object, which the format wants; text that is none is its only field.
fn arguments(input: &str) -> Value {
    match serde_json::from_str(input) {
        Ok(object @ Value::Object(_)) => object,
        Ok(_) | Err(_) if input.trim().is_empty() => json!({}),
        Ok(_) | Err(_) => json!({"input": input}),
    }
}

fn in_dollars(millionths: u64) -> Value {
    json!(millionths as f64 / 1_000_000.0)
}

/// A time in milliseconds of Unix time as ISO 8601.
fn timestamp(time: u64) -> String {
    let time = i64::try_from(time).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use journal::Outcome;

    fn of(records: Vec<JournalRecord>) -> Value {
        let mut trajectory = Trajectory::default();
        for (seq, record) in (1..).zip(records) {
            trajectory.add(&JournalEntry { seq, time: 1_700_000_000_123, record });
        }
        trajectory.end().unwrap()
    }

    fn answer(blocks: Vec<ContentBlock>, cost: Option<u64>) -> JournalRecord {
        let usage =
            Usage { input: Some(10), output: Some(2), cache_read: Some(5), cache_write: None };
        JournalRecord::Answer { round: 1, blocks, usage, cost }
    }

    fn header() -> JournalRecord {
        JournalRecord::Session(SessionHeader {
            format: 1,
            id: "0123456789ab".into(),
            project: journal::StoredPath("/p".into()),
            model: "m".into(),
            agentd: "0.3.0".into(),
            parent: None,
            task: None,
            fleet_task: None,
        })
    }

    fn proposed(call: u32, use_id: &str, input: &str) -> JournalRecord {
        JournalRecord::Proposed {
            call,
            use_id: use_id.into(),
            own: None,
            tool: "bash".into(),
            tool_kind: journal::ToolKind::Mutation,
            input: input.into(),
        }
    }

    fn result(call: u32, text: &str, refused: &[&str]) -> JournalRecord {
        JournalRecord::Result {
            call,
            use_id: String::new(),
            outcome: Outcome::Exited { code: 0 },
            text: text.into(),
            full: None,
            summary: String::new(),
            is_error: false,
            code: None,
            images: Vec::new(),
            refused: refused.iter().map(|&it| it.into()).collect(),
            recalled: None,
            audit: None,
        }
    }

    #[test]
    fn a_turn_is_its_prompt_answers_with_their_results_and_totals() {
        let call = |id: &str, input: &str| ContentBlock::ToolUse {
            id: id.into(),
            name: "bash".into(),
            input: input.into(),
        };
        let prompt = JournalRecord::Prompt { text: "go".into(), expanded: None };
        let all = of(vec![
            header(),
            prompt,
            answer(vec![call("a", "{\"command\":\"ls\"}"), call("b", "no json")], Some(3)),
            proposed(1, "a", "{}"),
            proposed(2, "b", "{}"),
            result(1, "out", &["openat /x"]),
            proposed(3, "", "{\"hook\":1}"),
            result(3, "ok", &[]),
            JournalRecord::Joined { text: "only three".into() },
            answer(vec![ContentBlock::Text { text: "Done.".into() }], Some(4)),
            JournalRecord::TurnEnded { end: TurnEnd::Done },
        ]);
        let sources: Vec<_> =
            all["steps"].as_array().unwrap().iter().map(|step| &step["source"]).collect();
        assert_eq!(sources, ["user", "agent", "system", "user", "agent"]);
        let first = &all["steps"][1];
        assert_eq!(first["timestamp"], "2023-11-14T22:13:20.123Z");
        assert_eq!(first["tool_calls"][1]["arguments"], json!({"input": "no json"}));
        let results = first["observation"]["results"].as_array().unwrap();
        let want = json!({"content": "out", "source_call_id": "a",
            "extra": {"call": 1, "end": "done", "refused": ["openat /x"]}});
        assert_eq!(results[..], [want]);
        assert!(all["steps"][2]["observation"]["results"][0].get("source_call_id").is_none());
        assert_eq!(all["steps"][3]["extra"], json!({"joined_the_turn": true}));
        let metrics = json!({"prompt_tokens": 15, "completion_tokens": 2, "cached_tokens": 5, "cost_usd": 4e-6});
        assert_eq!(all["steps"][4]["metrics"], metrics);
        let totals = json!({"total_prompt_tokens": 30, "total_completion_tokens": 4,
            "total_cached_tokens": 10, "total_steps": 5, "total_cost_usd": 7e-6});
        assert_eq!(all["final_metrics"], totals);
    }

    #[test]
    fn an_unknown_cost_makes_the_total_unknown_and_no_step_no_trajectory() {
        let all = of(vec![header(), answer(Vec::new(), Some(3)), answer(Vec::new(), None)]);
        assert!(all["final_metrics"].get("total_cost_usd").is_none(), "{all}");
        assert!(Trajectory::default().end().is_none());
    }
}
