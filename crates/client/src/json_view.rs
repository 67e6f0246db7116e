//! The views for programs: one JSON object a line, in the shapes that scripts already read.

use crate::run_view::{Moment, RunView, ShownOpening, ViewOutput};
use crate::screen_items::CallBlock;
use crate::transcript::{OpenedSession, RunConclusion, TasksSpent, Transcript};
use protocol::call::{Call, Outcome};
use protocol::client::ClientEvent;
use protocol::content::{ContentBlock, Usage};
use protocol::ids::SessionId;
use protocol::mcp::{ServerReport, ServerState};
use protocol::session::{TurnEnd, WorkerDeaths};
use serde_json::{Map, Value, json};

/// `--output-format json`: the result alone.
#[derive(Debug, Default)]
pub struct JsonView;

/// `--output-format stream-json`: the opening, each message, the result.
#[derive(Debug, Default)]
pub struct StreamJsonView;

impl RunView for JsonView {
    fn opening(&self) -> ShownOpening {
        ShownOpening::Session
    }

    fn show(&mut self, transcript: &Transcript, moment: Moment<'_>) -> ViewOutput {
        match moment {
            Moment::Concluded(conclusion) => line(&result(transcript.opened(), conclusion)),
            Moment::Opened(opened) => {
                ViewOutput { out: String::new(), err: opened.warning_lines() }
            }
            Moment::Happened(_) => ViewOutput::default(),
        }
    }
}

impl RunView for StreamJsonView {
    fn opening(&self) -> ShownOpening {
        ShownOpening::SessionAndServers
    }

    fn show(&mut self, transcript: &Transcript, moment: Moment<'_>) -> ViewOutput {
        match moment {
            Moment::Opened(opened) => {
                ViewOutput { err: opened.warning_lines(), ..line(&init(opened)) }
            }
            Moment::Happened(event) => {
                message(transcript, event).map(|fields| line(&fields)).unwrap_or_default()
            }
            Moment::Concluded(conclusion) => line(&result(transcript.opened(), conclusion)),
        }
    }
}

/// The result of a run that failed before a conclusion. It has every field that readers require.
#[must_use]
pub fn failure_line(session: Option<&SessionId>, message: &str) -> String {
    object(&[
        ("type", "result".into()),
        ("subtype", "error_during_execution".into()),
        ("is_error", true.into()),
        ("result", message.into()),
        ("session_id", session.map_or("", |session| session.0.as_str()).into()),
        ("num_turns", 0.into()),
        ("duration_ms", 0.into()),
        ("duration_api_ms", 0.into()),
        ("error", message.into()),
    ])
}

fn line(fields: &[(&str, Value)]) -> ViewOutput {
    ViewOutput { out: object(fields), err: String::new() }
}

/// A line with its fields in this order, `type` first: people read these lines too, and scripts
/// cut them with less than a parser.
fn object(fields: &[(&str, Value)]) -> String {
    let field = |(name, value): &(&str, Value)| format!("{}:{value}", Value::from(*name));
    let fields: Vec<_> = fields.iter().map(field).collect();
    format!("{{{}}}\n", fields.join(","))
}

fn init(opened: &OpenedSession) -> Vec<(&'static str, Value)> {
    let served = opened.servers.iter().flat_map(|server| &server.tools).map(|tool| &tool.name);
    let served = served.filter(|name| !opened.facts.tools.contains(name));
    let tools: Vec<&String> = opened.facts.tools.iter().chain(served).collect();
    let servers: Vec<Value> = opened.servers.iter().map(server).collect();
    vec![
        ("type", "system".into()),
        ("subtype", "init".into()),
        ("session_id", opened.facts.session.0.as_str().into()),
        ("cwd", opened.project.as_str().into()),
        ("model", opened.facts.model.as_str().into()),
        ("tools", json!(tools)),
        ("mcp_servers", json!(servers)),
        ("permissionMode", opened.facts.mode.name().into()),
        ("sandbox", opened.facts.sandbox.as_str().into()),
        ("agentd_version", protocol::BUILD_ID.into()),
    ]
}

/// An MCP server, in the words of Claude Code.
fn server(report: &ServerReport) -> Value {
    let status = match report.state {
        ServerState::Starts => "pending",
        ServerState::Ready { .. } => "connected",
        ServerState::Ended(_) => "failed",
    };
    json!({"name": report.name, "status": status})
}

/// The line of an event that is a message of the conversation.
fn message(transcript: &Transcript, event: &ClientEvent) -> Option<Vec<(&'static str, Value)>> {
    let opened = transcript.opened();
    match event {
        ClientEvent::Answer { blocks, usage } => {
            let message = json!({
                "role": "assistant",
                "model": opened.facts.model,
                "content": blocks.iter().map(content).collect::<Vec<_>>(),
                "usage": tokens(*usage),
            });
            Some(vec![
                ("type", "assistant".into()),
                ("message", message),
                ("parent_tool_use_id", Value::Null),
                ("session_id", opened.facts.session.0.as_str().into()),
            ])
        }
        ClientEvent::InBackground { call, text } => {
            // The model did not ask for the start of a server.
            let known = transcript.calls.get(call)?;
            let result = tool_result(known.call.origin.use_id()?, text, false);
            let details = json!({
                "call": call.to_string(),
                "tool": known.call.tool,
                "outcome": "in_background",
            });
            Some(result_line(opened, result, details))
        }
        // Its call has had its result.
        ClientEvent::CallEnded { call, result, .. }
            if transcript.calls.get(call).is_some_and(CallBlock::is_in_background) =>
        {
            Some(vec![
                ("type", "system".into()),
                ("subtype", "background_ended".into()),
                ("session_id", opened.facts.session.0.as_str().into()),
                ("call", call.to_string().into()),
                ("outcome", outcome(&result.outcome)),
                ("content", result.text.as_str().into()),
                ("is_error", result.is_error.into()),
            ])
        }
        ClientEvent::CallEnded { call, result, refused, spent: _ } => {
            // Calls that the model did not request are not part of its conversation.
            let known = transcript.calls.get(call)?;
            let use_id = known.call.origin.use_id()?;
            let message = tool_result(use_id, &result.text, result.is_error);
            let details = json!({
                "call": call.to_string(),
                "tool": known.call.tool,
                "outcome": outcome(&result.outcome),
                "code": result.code,
                "refused": refused,
            });
            Some(result_line(opened, message, details))
        }
        ClientEvent::Prompt { .. }
        | ClientEvent::Delta { .. }
        | ClientEvent::Struck { .. }
        | ClientEvent::Proposed { .. }
        | ClientEvent::Asked { .. }
        | ClientEvent::Decided { .. }
        | ClientEvent::Started { .. }
        | ClientEvent::Output { .. }
        | ClientEvent::Queue { .. }
        | ClientEvent::Changed { .. }
        | ClientEvent::Learned { .. }
        | ClientEvent::Compacted { .. }
        | ClientEvent::Notice { .. }
        | ClientEvent::Model { .. }
        | ClientEvent::AnswerRejected { .. }
        | ClientEvent::TurnEnded { .. }
        | ClientEvent::Degraded { .. } => None,
    }
}

fn tool_result(use_id: &str, text: &str, is_error: bool) -> Value {
    json!({
        "role": "user",
        "content": [{
            "type": "tool_result",
            "tool_use_id": use_id,
            "content": text,
            "is_error": is_error,
        }],
    })
}

/// The line of a call's result.
fn result_line(
    opened: &OpenedSession,
    message: Value,
    details: Value,
) -> Vec<(&'static str, Value)> {
    vec![
        ("type", "user".into()),
        ("message", message),
        ("parent_tool_use_id", Value::Null),
        ("session_id", opened.facts.session.0.as_str().into()),
        ("tool_use_result", details),
    ]
}

fn content(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text { text } => json!({"type": "text", "text": text}),
        ContentBlock::Thinking { text, raw } => {
            json!({"type": "thinking", "thinking": text, "signature": signature(raw)})
        }
        ContentBlock::ToolUse { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": arguments(input)})
        }
        ContentBlock::Image { image } => {
            json!({"type": "text", "text": format!("[image {image}]")})
        }
        ContentBlock::ToolResult { id, text, is_error, images: _ } => json!({
            "type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error,
        }),
    }
}

/// The vendor's signature of its reasoning, empty if there is none. Readers require the field.
fn signature(raw: &str) -> Value {
    let raw: Value = serde_json::from_str(raw).unwrap_or_default();
    raw.get("signature").filter(|it| it.is_string()).cloned().unwrap_or_else(|| "".into())
}

/// Arguments as a JSON object, or as text if the model wrote invalid JSON.
fn arguments(input: &str) -> Value {
    serde_json::from_str(input).unwrap_or_else(|_| Value::from(input))
}

fn result(opened: &OpenedSession, conclusion: &RunConclusion) -> Vec<(&'static str, Value)> {
    let subtype = match (&conclusion.end, &conclusion.fault) {
        (Some(TurnEnd::Done), None) => "success",
        _ if !conclusion.misfit.is_empty() => "error_max_structured_output_retries",
        (Some(TurnEnd::RoundsUsedUp { .. } | TurnEnd::CallsUsedUp { .. }), _) => "error_max_turns",
        (Some(TurnEnd::CostReached { .. }), _) => "error_max_budget_usd",
        (Some(TurnEnd::ProcessDied(_)), _) => "error_process_died",
        _ => "error_during_execution",
    };
    let text = match &conclusion.fault {
        Some(fault) if conclusion.answer.is_empty() => fault,
        Some(_) | None => &conclusion.answer,
    };
    let denials: Vec<_> = conclusion.unapproved.iter().map(denial).collect();
    let mut fields = vec![
        ("type", "result".into()),
        ("subtype", subtype.into()),
        ("is_error", conclusion.fault.is_some().into()),
        ("result", text.as_str().into()),
        ("session_id", opened.facts.session.0.as_str().into()),
        ("num_turns", conclusion.num_turns.into()),
        ("duration_ms", conclusion.timing.all_ms.into()),
        ("duration_api_ms", conclusion.timing.model_ms.into()),
        ("usage", tokens(conclusion.usage)),
        ("permission_denials", denials.into()),
    ];
    // Unknown values are left out; 0 would be wrong.
    if let Some(cost) = conclusion.cost {
        fields.push(("total_cost_usd", (cost as f64 / 1e6).into()));
    }
    if let Some(tasks) = &conclusion.tasks {
        fields.push(("sub_agents", sub_agents(tasks)));
    }
    if let Some(left) = conclusion.context_left {
        fields.push(("context_tokens_left", left.into()));
    }
    if let Some(value) = &conclusion.structured {
        fields.push(("structured_output", value.clone()));
    }
    if !conclusion.misfit.is_empty() {
        let misfit = conclusion.misfit.iter();
        let faults: Vec<_> =
            misfit.map(|fault| json!({"path": fault.path, "message": fault.message})).collect();
        fields.push(("schema_errors", faults.into()));
    }
    if let Some(fault) = &conclusion.fault {
        fields.push(("error", fault.as_str().into()));
    }
    if let Some(TurnEnd::ProcessDied(WorkerDeaths { process, cause, count, place })) =
        &conclusion.end
    {
        let died = json!({"process": process, "cause": cause, "deaths": count, "place": place});
        fields.push(("process_died", died));
    }
    fields
}

fn denial(call: &Call) -> Value {
    json!({
        "tool_name": call.tool,
        "tool_use_id": call.origin.use_id().unwrap_or_default(),
        "tool_input": arguments(&call.input),
        "call": call.id.to_string(),
    })
}

/// The part of sub-agents in the use of a run.
fn sub_agents(tasks: &TasksSpent) -> Value {
    let TasksSpent { sessions, rounds, calls, usage, cost } = tasks;
    let mut part = json!({
        "sessions": sessions,
        "num_turns": rounds,
        "calls": calls,
        "usage": tokens(*usage),
    });
    if let Some(cost) = cost {
        part["total_cost_usd"] = (*cost as f64 / 1e6).into();
    }
    part
}

/// Tokens under the names that scripts expect. Unknown counts are left out.
fn tokens(usage: Usage) -> Value {
    let Usage { input, output, cache_read, cache_write } = usage;
    let known = [
        ("input_tokens", input),
        ("output_tokens", output),
        ("cache_read_input_tokens", cache_read),
        ("cache_creation_input_tokens", cache_write),
    ];
    let known =
        known.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into())));
    Value::Object(known.collect::<Map<_, _>>())
}

fn outcome(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Done => json!({"kind": "done"}),
        Outcome::Failed => json!({"kind": "failed"}),
        Outcome::Exited { code } => json!({"kind": "exited", "code": code}),
        Outcome::Signalled { signal } => json!({"kind": "signalled", "signal": signal}),
        Outcome::TimedOut => json!({"kind": "timed_out"}),
        Outcome::Denied => json!({"kind": "denied"}),
        Outcome::Refused { rule } => json!({"kind": "refused", "rule": rule}),
        Outcome::Confined { what } => json!({"kind": "confined", "what": what}),
        Outcome::OutOfMemory => json!({"kind": "out_of_memory"}),
        Outcome::Crashed => json!({"kind": "crashed"}),
        Outcome::Interrupted => json!({"kind": "interrupted"}),
        Outcome::Invalid => json!({"kind": "invalid"}),
        Outcome::NeverStarted => json!({"kind": "never_started"}),
    }
}
