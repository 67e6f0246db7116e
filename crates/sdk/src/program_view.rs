//! A session as a program sees it. Pure: it takes what happens there and what the program says, and says what each gets.

use crate::hooks::{CalledHooks, ObservedAnswer, ProgramHook};
use crate::lines::{ControlRequest, PermissionReply};
use crate::names::{mode_name, mode_of, tool};
use crate::partial::PartialAnswer;
use crate::permission::{AskedProgram, PermissionCallback, ProgramAnswer};
use client::{
    AnswerCheck, LiveEvent, Moment, OpenedSession, RunView, SessionFacts, StreamJsonView, Timing,
    Transcript, misfit, repair_prompt,
};
use protocol::call::{Call, ToolResult};
use protocol::client::{
    AnswerForm, ClientEvent, FromClient, PromptUse, SessionQuery, SettingChange, ToClient,
    WhileBusy,
};
use protocol::context::ContextReport;
use protocol::ids::{CallId, SessionId};
use protocol::mcp::{ServerReport, ServerState};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version of the wire that is followed, as programs read it.
const WIRE: &str = "2.1.332";

/// If the events of a streamed answer are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialMessages {
    /// Each.
    Told,
    /// Only whole messages.
    Left,
}

/// If the program's own messages come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayedMessages {
    /// Once they are in the conversation.
    Told,
    /// Only those that join a running turn.
    Left,
}

/// What the program asked for when it started.
#[derive(Debug)]
pub struct ProgramOptions {
    /// The project directory.
    pub project: PathBuf,
    /// Partial messages.
    pub partial: PartialMessages,
    /// Its own messages.
    pub replay: ReplayedMessages,
    /// Its permission callback.
    pub callback: PermissionCallback,
    /// The form that answers must have. One that has it not is asked for once more.
    pub form: Option<Box<dyn AnswerCheck>>,
    /// The name by which it knows the session, in place of agentd's ID.
    pub shown_id: Option<String>,
}

/// What somebody gets.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramOutput {
    /// The program, a line.
    Line(Value),
    /// The session.
    Send(Box<FromClient>),
    /// All is done.
    Done,
}

/// The turn that runs.
#[derive(Debug)]
enum Turn {
    /// None, or another client's.
    NotOurs,
    /// It began with a prompt of the program.
    Ours(Box<OwnTurn>),
}

#[derive(Debug)]
struct OwnTurn {
    transcript: Transcript,
    /// In milliseconds, as all times here.
    began: u64,
    /// Since when calls run, and for how long they did before.
    calls_since: Option<u64>,
    in_calls: u64,
    tries: AnswerTries,
}

/// How often an answer of the wanted form was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerTries {
    First,
    Again,
}

/// A prompt that is in no turn yet.
#[derive(Debug)]
struct WaitingPrompt {
    text: String,
    from: PromptFrom,
    stage: PromptStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptFrom {
    /// The program.
    Program,
    /// The form of its answers: one that has it not is asked for again.
    Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptStage {
    /// It is on its way.
    Sent,
    /// It waits, on disk.
    Queued,
}

/// If events are new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BacklogState {
    /// The session is being opened: they are of the time before.
    Comes,
    /// They happen now.
    Over,
}

/// Requests of the program that the session has not answered.
#[derive(Debug, Default)]
struct WaitingRequests {
    /// They came before the session was open.
    early: Vec<(String, ControlRequest)>,
    changes: Vec<(String, SettingChange)>,
    contexts: Vec<String>,
    servers: Vec<String>,
}

/// If the program will say more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramInput {
    Open,
    Closed,
}

/// How the last turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastResult {
    /// Well, or there was none.
    Good,
    /// With an error.
    Error,
}

/// The session of a program.
pub struct ProgramView {
    options: ProgramOptions,
    /// Gives each line a name of its own.
    new_uuid: Box<dyn FnMut() -> String>,
    facts: Option<SessionFacts>,
    view: StreamJsonView,
    partial: PartialAnswer,
    /// Prompts that are in no turn yet.
    prompts: Vec<WaitingPrompt>,
    backlog: BacklogState,
    turn: Turn,
    /// The turn whose answer is asked for again.
    repaired: Option<Box<OwnTurn>>,
    /// The model's calls that have not ended.
    calls: BTreeMap<CallId, Call>,
    hooks: CalledHooks,
    questions: AskedProgram,
    waiting: WaitingRequests,
    input: ProgramInput,
    last: LastResult,
}

impl std::fmt::Debug for ProgramView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramView").field("options", &self.options).finish_non_exhaustive()
    }
}

impl ProgramView {
    /// Of a session that is being opened.
    #[must_use]
    pub fn new(options: ProgramOptions, new_uuid: Box<dyn FnMut() -> String>) -> Self {
        let questions = AskedProgram::new(options.project.clone());
        Self {
            options,
            new_uuid,
            facts: None,
            view: StreamJsonView,
            partial: PartialAnswer::default(),
            prompts: Vec::new(),
            backlog: BacklogState::Comes,
            turn: Turn::NotOurs,
            repaired: None,
            calls: BTreeMap::new(),
            hooks: CalledHooks::default(),
            questions,
            waiting: WaitingRequests::default(),
            input: ProgramInput::Open,
            last: LastResult::Good,
        }
    }

    /// How the last turn ended.
    #[must_use]
    pub fn last_result(&self) -> LastResult {
        self.last
    }

    /// Something happened in the session, at this time in milliseconds.
    pub fn happened(&mut self, event: LiveEvent, now: u64) -> Vec<ProgramOutput> {
        match event {
            LiveEvent::Opened { facts, last_seq: _ } => {
                self.facts = Some(facts);
                let early = std::mem::take(&mut self.waiting.early);
                let outputs: Vec<ProgramOutput> =
                    early.into_iter().flat_map(|(id, request)| self.request(id, request)).collect();
                outputs
            }
            LiveEvent::Message(message) => self.heard(message, now),
            LiveEvent::Lost(_) => {
                self.backlog = BacklogState::Comes;
                self.stream_events(PartialAnswer::strike)
            }
            LiveEvent::Note(_) => Vec::new(),
        }
    }

    /// The program says a prompt. Before the session is open, it waits.
    pub fn prompt(&mut self, text: String) -> Vec<ProgramOutput> {
        self.add_prompt(text, PromptFrom::Program)
    }

    /// Before the session is there, it waits.
    fn add_prompt(&mut self, text: String, from: PromptFrom) -> Vec<ProgramOutput> {
        self.prompts.push(WaitingPrompt { text: text.clone(), from, stage: PromptStage::Sent });
        match self.backlog {
            BacklogState::Comes => Vec::new(),
            BacklogState::Over => self.send_prompt(text).into_iter().collect(),
        }
    }

    /// The program wants something. `initialize` is answered by [`Self::initialized`].
    pub fn request(&mut self, id: String, request: ControlRequest) -> Vec<ProgramOutput> {
        let Some(session) = self.session() else {
            self.waiting.early.push((id, request));
            return Vec::new();
        };
        match request {
            ControlRequest::Initialize(_) => vec![self.refused(&id, "the session is open already")],
            ControlRequest::Interrupt => {
                let running = matches!(self.turn, Turn::Ours(_));
                let mut outputs = Vec::new();
                if running {
                    outputs.push(send(FromClient::Interrupt { session }));
                }
                outputs.push(self.done(&id, &json!({})));
                outputs
            }
            ControlRequest::SetMode(name) => match mode_of(&name) {
                Some(mode) => self.change(id, SettingChange::Mode(mode)),
                None => vec![self.refused(&id, &format!("agentd has no permission mode {name:?}"))],
            },
            ControlRequest::SetModel(Some(name)) => self.change(id, SettingChange::Model(name)),
            ControlRequest::SetModel(None) => {
                vec![self.refused(
                    &id,
                    "agentd needs the name of the model; the configured one has one too",
                )]
            }
            ControlRequest::ContextUsage => {
                self.waiting.contexts.push(id);
                vec![send(FromClient::Query { session, query: SessionQuery::Context })]
            }
            ControlRequest::McpStatus => {
                self.waiting.servers.push(id);
                vec![send(FromClient::Query { session, query: SessionQuery::Servers })]
            }
            ControlRequest::Unknown(name) => {
                vec![self.refused(&id, &format!("agentd has no control request {name:?}; `agentd help sdk` lists those that it has"))]
            }
        }
    }

    /// The answer to `initialize`.
    pub fn initialized(&mut self, id: &str) -> ProgramOutput {
        self.done(
            id,
            &json!({
                "commands": [],
                "agents": [],
                "models": [],
                "output_style": "default",
                "available_output_styles": ["default"],
                "account": {},
            }),
        )
    }

    /// A request is refused.
    pub fn refused(&mut self, id: &str, why: &str) -> ProgramOutput {
        ProgramOutput::Line(json!({
            "type": "control_response",
            "response": {"subtype": "error", "request_id": id, "error": why},
        }))
    }

    /// The program's permission callback or hook answers.
    pub fn reply(&mut self, id: &str, result: &Result<Value, String>) -> Vec<ProgramOutput> {
        if let Some(answer) = self.hooks.answered(id, result) {
            return match (answer, self.session(), &self.turn) {
                (ObservedAnswer::EndsTurn, Some(session), Turn::Ours(_)) => {
                    vec![send(FromClient::Interrupt { session })]
                }
                (ObservedAnswer::EndsTurn | ObservedAnswer::Seen, ..) => Vec::new(),
            };
        }
        let reply = PermissionReply::read(result);
        self.questions.reply(id, reply).map(answered).into_iter().collect()
    }

    /// The hooks that are called after calls.
    pub fn set_hooks(&mut self, hooks: Vec<ProgramHook>) {
        self.hooks.set(hooks);
    }

    /// The program's hooks see a call that has ended.
    fn call_hooks(&mut self, id: &CallId, result: &ToolResult) -> Vec<ProgramOutput> {
        let Some(call) = self.calls.remove(id) else { return Vec::new() };
        if matches!(self.turn, Turn::NotOurs) || self.input == ProgramInput::Closed {
            return Vec::new();
        }
        let own = serde_json::from_str(&call.input).unwrap_or_default();
        let drawn = tool(&call.tool, &own, &self.options.project);
        let mode = self.facts.as_ref().map(|facts| mode_name(facts.mode));
        let about = json!({
            "session_id": self.shown_session(),
            "cwd": self.options.project,
            "transcript_path": "",
            "permission_mode": mode,
        });
        let lines = self.hooks.after(&drawn, (&call, result), &about);
        lines.into_iter().map(ProgramOutput::Line).collect()
    }

    /// The session's name for the program.
    fn shown_session(&self) -> String {
        let shown = self.options.shown_id.clone();
        shown.or_else(|| self.session().map(|id| id.0)).unwrap_or_default()
    }

    /// The program says no more. What runs and waits still ends.
    pub fn input_closed(&mut self) -> Vec<ProgramOutput> {
        self.input = ProgramInput::Closed;
        let mut outputs: Vec<ProgramOutput> =
            self.questions.deny_all().into_iter().map(answered).collect();
        outputs.extend(self.done_if_idle());
        outputs
    }

    /// The session is not followed any more, and why. A prompt without a result gets one.
    pub fn ended(&mut self, why: &str) -> Vec<ProgramOutput> {
        let mut outputs = Vec::new();
        let waits = !self.prompts.is_empty() || matches!(self.turn, Turn::Ours(_));
        if waits {
            let session = self.session();
            outputs.extend(self.lines(&client::failure_line(session.as_ref(), why)));
            self.last = LastResult::Error;
        }
        self.prompts.clear();
        self.turn = Turn::NotOurs;
        outputs.push(ProgramOutput::Done);
        outputs
    }

    fn session(&self) -> Option<SessionId> {
        self.facts.as_ref().map(|facts| facts.session.clone())
    }

    fn send_prompt(&self, text: String) -> Option<ProgramOutput> {
        let form = self.options.form.as_ref();
        let form = form.map(|form| AnswerForm { words: form.instruction(), schema: form.schema() });
        let session = self.session()?;
        Some(send(FromClient::Prompt { session, text, form, busy: WhileBusy::Steer }))
    }

    fn change(&mut self, id: String, change: SettingChange) -> Vec<ProgramOutput> {
        let facts = self.facts.as_ref();
        let is_so = facts.is_some_and(|facts| match &change {
            SettingChange::Mode(mode) => facts.mode == *mode,
            SettingChange::Model(model) => facts.model == *model,
            SettingChange::Network(_)
            | SettingChange::Host(_)
            | SettingChange::AddDirectory(_)
            | SettingChange::Pin(_)
            | SettingChange::Unpin(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::CostLimit(_)
            | SettingChange::Flag(..)
            | SettingChange::Name(_) => false,
        });
        let Some(session) = self.session().filter(|_| !is_so) else {
            return vec![self.done(&id, &json!({}))];
        };
        self.waiting.changes.push((id, change.clone()));
        vec![send(FromClient::Change { session, change })]
    }

    fn heard(&mut self, message: ToClient, now: u64) -> Vec<ProgramOutput> {
        match message {
            ToClient::Event { event, .. } => self.event(&event, now),
            ToClient::Context { report, .. } => {
                if self.waiting.contexts.is_empty() {
                    return Vec::new();
                }
                let id = self.waiting.contexts.remove(0);
                vec![match report {
                    Ok(report) => self.done(&id, &context(&report)),
                    Err(why) => self.refused(&id, &why),
                }]
            }
            ToClient::Servers { servers, .. } => {
                if self.waiting.servers.is_empty() {
                    return Vec::new();
                }
                let id = self.waiting.servers.remove(0);
                let all: Vec<Value> = servers.iter().map(server).collect();
                vec![self.done(&id, &json!({"mcpServers": all}))]
            }
            ToClient::Failed { kind: _, message } => self.failed(&message),
            ToClient::Attached { .. } => {
                self.backlog = BacklogState::Over;
                let mut outputs = self.ask();
                let sent = self.prompts.iter().filter(|prompt| prompt.stage == PromptStage::Sent);
                outputs.extend(sent.filter_map(|prompt| self.send_prompt(prompt.text.clone())));
                outputs
            }
            ToClient::Detached { reason, .. } => self.ended(&reason),
            ToClient::Welcome { .. }
            | ToClient::Refused { .. }
            | ToClient::Opened { .. }
            | ToClient::NetworkOpened { .. }
            | ToClient::NetworkClosed { .. }
            | ToClient::Behind { .. }
            | ToClient::Page { .. }
            | ToClient::Changes { .. }
            | ToClient::TakenBack { .. }
            | ToClient::Sessions(_)
            | ToClient::Status(_)
            | ToClient::Done
            | ToClient::Processes(_)
            | ToClient::Pong(_) => Vec::new(),
        }
    }

    /// The last request of this client failed: a change or a prompt, if one of them waits.
    fn failed(&mut self, message: &str) -> Vec<ProgramOutput> {
        if !self.waiting.changes.is_empty() {
            let (id, _) = self.waiting.changes.remove(0);
            return vec![self.refused(&id, message)];
        }
        let Some(place) = self.prompts.iter().position(|it| it.stage == PromptStage::Sent) else {
            return Vec::new();
        };
        self.prompts.remove(place);
        self.repaired = None;
        self.last = LastResult::Error;
        let session = self.session();
        let mut outputs = self.lines(&client::failure_line(session.as_ref(), message));
        outputs.extend(self.done_if_idle());
        outputs
    }

    fn event(&mut self, event: &ClientEvent, now: u64) -> Vec<ProgramOutput> {
        if let Some(facts) = &mut self.facts {
            facts.update(event);
        }
        let mut outputs = self.prompt_entered(event, now);
        if let ClientEvent::Proposed { call } = event
            && call.origin.is_model()
        {
            self.calls.insert(call.id.clone(), call.clone());
        }
        outputs.extend(self.streamed(event));
        if let Turn::Ours(turn) = &mut self.turn {
            turn.transcript.update(event);
            turn.count_calls(now);
            let shown = self.view.show(&turn.transcript, Moment::Happened(event)).out;
            outputs.extend(self.lines(&shown));
        }
        match event {
            ClientEvent::Asked { question }
                if self.options.callback == PermissionCallback::Answers =>
            {
                self.questions.add(question);
                outputs.extend(self.ask());
            }
            ClientEvent::CallEnded { call, result, .. } => {
                outputs.extend(self.withdraw(call));
                outputs.extend(self.call_hooks(call, result));
            }
            ClientEvent::Decided { call, .. } => outputs.extend(self.withdraw(call)),
            ClientEvent::AnswerRejected { call, .. } => {
                self.questions.rejected(call);
                outputs.extend(self.ask());
            }
            ClientEvent::Changed { change, by: _ } => {
                if let Some(place) =
                    self.waiting.changes.iter().position(|(_, wanted)| wanted == change)
                {
                    let (id, _) = self.waiting.changes.remove(place);
                    outputs.push(self.done(&id, &json!({})));
                }
            }
            ClientEvent::Queue { waiting } => {
                for one in waiting {
                    let is_it = |it: &&mut WaitingPrompt| {
                        it.stage == PromptStage::Sent && it.text == one.text
                    };
                    if let Some(prompt) = self.prompts.iter_mut().find(is_it) {
                        prompt.stage = PromptStage::Queued;
                    }
                }
            }
            ClientEvent::TurnEnded { .. } | ClientEvent::Degraded { .. } => {
                outputs.extend(self.conclude(now));
            }
            ClientEvent::Asked { .. }
            | ClientEvent::Prompt { .. }
            | ClientEvent::Delta { .. }
            | ClientEvent::Struck { .. }
            | ClientEvent::Answer { .. }
            | ClientEvent::Proposed { .. }
            | ClientEvent::Started { .. }
            | ClientEvent::Output { .. }
            | ClientEvent::InBackground { .. }
            | ClientEvent::Compacted(_)
            | ClientEvent::Model { .. }
            | ClientEvent::Learned { .. }
            | ClientEvent::Notice { .. } => {}
        }
        outputs
    }

    /// A prompt of the program begins a turn, or joins the running one.
    fn prompt_entered(&mut self, event: &ClientEvent, now: u64) -> Vec<ProgramOutput> {
        let ClientEvent::Prompt { text, of } = event else { return Vec::new() };
        let Some(place) = self.prompts.iter().position(|waits| waits.text == *text) else {
            return Vec::new();
        };
        if self.prompts.remove(place).from == PromptFrom::Form {
            self.turn = self.repaired.take().map_or(Turn::NotOurs, Turn::Ours);
            return Vec::new();
        }
        let mut outputs = Vec::new();
        match of {
            PromptUse::Joined => outputs.push(self.replayed(text)),
            PromptUse::Prompt | PromptUse::Command => {
                let Some(facts) = self.facts.clone() else { return Vec::new() };
                let project = self.options.project.display().to_string();
                let opened = OpenedSession { facts, project, servers: Vec::new() };
                let mut transcript = Transcript::new(opened);
                transcript.begin_run();
                let init = self.view.show(&transcript, Moment::Opened(transcript.opened())).out;
                outputs.extend(self.lines(&init));
                if self.options.replay == ReplayedMessages::Told {
                    outputs.push(self.replayed(text));
                }
                let turn = OwnTurn {
                    transcript,
                    began: now,
                    calls_since: None,
                    in_calls: 0,
                    tries: AnswerTries::First,
                };
                self.turn = Turn::Ours(Box::new(turn));
            }
        }
        outputs
    }

    fn replayed(&mut self, text: &str) -> ProgramOutput {
        let line = json!({
            "type": "user",
            "message": {"role": "user", "content": text},
            "parent_tool_use_id": null,
            "isReplay": true,
        });
        self.line(line)
    }

    fn streamed(&mut self, event: &ClientEvent) -> Vec<ProgramOutput> {
        if self.options.partial == PartialMessages::Left || matches!(self.turn, Turn::NotOurs) {
            return Vec::new();
        }
        let model = self.facts.as_ref().map(|facts| facts.model.clone()).unwrap_or_default();
        if let ClientEvent::Delta { part, text } = event {
            self.stream_events(|partial| partial.piece(*part, text, &model))
        } else if let ClientEvent::Answer { blocks, usage } = event {
            self.stream_events(|partial| partial.end(blocks, *usage))
        } else if let ClientEvent::Struck { .. } = event {
            self.stream_events(PartialAnswer::strike)
        } else {
            Vec::new()
        }
    }

    fn stream_events(
        &mut self,
        of: impl FnOnce(&mut PartialAnswer) -> Vec<Value>,
    ) -> Vec<ProgramOutput> {
        let events = of(&mut self.partial);
        let line =
            |event| json!({"type": "stream_event", "event": event, "parent_tool_use_id": null});
        events.into_iter().map(|event| self.line(line(event))).collect()
    }

    /// Asks the program what is open, unless it may have been answered since.
    fn ask(&mut self) -> Vec<ProgramOutput> {
        if self.backlog == BacklogState::Comes {
            return Vec::new();
        }
        let calls = &self.calls;
        let use_id = |call: &CallId| Some(calls.get(call)?.origin.use_id()?.to_owned());
        let mut outputs: Vec<ProgramOutput> =
            self.questions.ask(use_id).into_iter().map(ProgramOutput::Line).collect();
        outputs.extend(self.questions.lost_answers().into_iter().map(answered));
        if self.input == ProgramInput::Closed {
            outputs.extend(self.questions.deny_all().into_iter().map(answered));
        }
        outputs
    }

    /// A question was answered: the program need not answer any more.
    fn withdraw(&mut self, call: &CallId) -> Option<ProgramOutput> {
        let id = self.questions.remove(call)?;
        Some(ProgramOutput::Line(json!({"type": "control_cancel_request", "request_id": id})))
    }

    /// The turn is over: its result.
    fn conclude(&mut self, now: u64) -> Vec<ProgramOutput> {
        let Turn::Ours(mut turn) = std::mem::replace(&mut self.turn, Turn::NotOurs) else {
            return self.done_if_idle().into_iter().collect();
        };
        let form = self.options.form.as_ref().filter(|_| turn.transcript.is_done());
        let checked = form.map(|form| form.check(turn.transcript.answer()));
        if let (Some(Err(faults)), AnswerTries::First) = (&checked, turn.tries) {
            let text = repair_prompt(faults);
            turn.tries = AnswerTries::Again;
            turn.transcript.reopen();
            self.repaired = Some(turn);
            return self.add_prompt(text, PromptFrom::Form);
        }
        let mut conclusion = turn.transcript.conclude(turn.timing(now), None);
        match checked {
            Some(Ok(value)) => conclusion.structured = Some(value),
            Some(Err(faults)) => {
                conclusion.fault = Some(misfit(&faults));
                conclusion.misfit = faults;
            }
            None => {}
        }
        self.last = if conclusion.fault.is_some() { LastResult::Error } else { LastResult::Good };
        let shown = self.view.show(&turn.transcript, Moment::Concluded(&conclusion)).out;
        let mut outputs = self.lines(&shown);
        outputs.extend(self.done_if_idle());
        outputs
    }

    fn done_if_idle(&self) -> Option<ProgramOutput> {
        let idle = self.prompts.is_empty() && matches!(self.turn, Turn::NotOurs);
        (idle && self.input == ProgramInput::Closed).then_some(ProgramOutput::Done)
    }

    /// Lines of the view for scripts, with what programs read beyond that.
    fn lines(&mut self, text: &str) -> Vec<ProgramOutput> {
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines.collect::<Vec<Value>>().into_iter().map(|line| self.line(line)).collect()
    }

    fn line(&mut self, mut line: Value) -> ProgramOutput {
        line["session_id"] = self.shown_session().into();
        line["uuid"] = (self.new_uuid)().into();
        match line["type"].as_str() {
            Some("assistant") => self.complete_assistant(&mut line),
            Some("system") if line["subtype"] == "init" => {
                let mode = self.facts.as_ref().map(|facts| mode_name(facts.mode));
                line["permissionMode"] = mode.into();
                line["claude_code_version"] = WIRE.into();
                line["apiKeySource"] = "none".into();
                for name in ["slash_commands", "agents", "skills", "plugins"] {
                    line[name] = json!([]);
                }
                line["output_style"] = "default".into();
            }
            Some("result") => {
                line["stop_reason"] = Value::Null;
                line["modelUsage"] = json!({});
            }
            Some(_) | None => {}
        }
        ProgramOutput::Line(line)
    }

    fn complete_assistant(&self, line: &mut Value) {
        let id = format!("msg_{}", line["uuid"].as_str().unwrap_or_default());
        let message = &mut line["message"];
        message["id"] = id.into();
        message["type"] = "message".into();
        message["stop_reason"] = Value::Null;
        message["stop_sequence"] = Value::Null;
        for name in ["input_tokens", "output_tokens"] {
            if message["usage"][name].is_null() {
                message["usage"][name] = 0.into();
            }
        }
        for block in message["content"].as_array_mut().into_iter().flatten() {
            if block["type"] == "tool_use"
                && let Some(own) = block["name"].as_str()
            {
                let (name, input) = tool(own, &block["input"], &self.options.project);
                (block["name"], block["input"]) = (name.into(), input);
            }
        }
    }

    fn done(&mut self, id: &str, response: &Value) -> ProgramOutput {
        ProgramOutput::Line(json!({
            "type": "control_response",
            "response": {"subtype": "success", "request_id": id, "response": response},
        }))
    }
}

impl OwnTurn {
    fn count_calls(&mut self, now: u64) {
        match (self.calls_since, self.transcript.open_calls()) {
            (None, 1..) => self.calls_since = Some(now),
            (Some(since), 0) => {
                self.in_calls += now.saturating_sub(since);
                self.calls_since = None;
            }
            (None, 0) | (Some(_), 1..) => {}
        }
    }

    fn timing(&self, now: u64) -> Timing {
        let all_ms = now.saturating_sub(self.began);
        Timing { all_ms, model_ms: all_ms.saturating_sub(self.in_calls) }
    }
}

fn send(word: FromClient) -> ProgramOutput {
    ProgramOutput::Send(Box::new(word))
}

fn answered(given: ProgramAnswer) -> ProgramOutput {
    let ProgramAnswer { call, digest, answer } = given;
    send(FromClient::Answer { call, digest, answer })
}

fn context(report: &ContextReport) -> Value {
    let parts: Vec<Value> = report
        .parts
        .iter()
        .map(|part| json!({"name": part.kind.name(), "tokens": part.tokens}))
        .collect();
    let used = report.used();
    let percentage = report.window.filter(|window| *window > 0).map(|window| used * 100 / window);
    json!({
        "categories": parts,
        "totalTokens": used,
        "maxTokens": report.window,
        "percentage": percentage,
        "model": report.model,
    })
}

fn server(report: &ServerReport) -> Value {
    let status = match report.state {
        ServerState::Starts => "pending",
        ServerState::Ready { .. } => "connected",
        ServerState::Ended(_) => "failed",
    };
    json!({"name": report.name, "status": status})
}

#[cfg(test)]
#[path = "program_view_tests.rs"]
mod tests;
