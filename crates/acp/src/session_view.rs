//! A session as an editor sees it. Pure: it takes what happens there and what the editor asks, and says what each gets.

use crate::frame::{RpcError, error_line, notification_line, request_line, result_line};
use crate::params::Reply;
use crate::prompts::{AnsweredPrompt, OpenPrompts, RunningTurn};
use crate::questions::{Answered, EditorRequest, Forms, WaitingQuestions};
use crate::settings;
use crate::updates::{Echo, ShownEvents, note};
use client::{LiveEvent, SessionFacts};
use protocol::call::Call;
use protocol::client::{ClientEvent, FromClient, ModelFacts, SettingChange, ToClient, WhileBusy};
use protocol::ids::{CallId, SessionId};
use serde_json::{Value, json};

/// How the editor came to a session, and the request that waits for it.
#[derive(Debug, Clone, PartialEq)]
pub enum OpenedAs {
    /// `session/new`.
    New(Value),
    /// `session/load`: all its events are shown again, before the answer.
    Loaded(Value),
    /// `session/resume`: only new events are shown.
    Resumed(Value),
}

/// What somebody gets.
#[derive(Debug, Clone, PartialEq)]
pub enum EditorOutput {
    /// The editor, a line.
    Line(Value),
    /// The session.
    Send(Box<FromClient>),
    /// The session is left; it goes on.
    Leave,
}

/// A change of a setting that an editor waits for.
#[derive(Debug)]
struct WantedChange {
    request: Value,
    change: SettingChange,
    answer: ChangeAnswer,
}

/// The answer to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeAnswer {
    Nothing,
    AllOptions,
}

/// If events are new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BacklogState {
    /// They are of the time before: questions among them may be answered.
    Comes,
    /// They happen now.
    Over,
}

/// A session that an editor has open.
#[derive(Debug)]
pub struct SessionView {
    /// The request that opened it, until it is answered.
    opening: Option<OpenedAs>,
    facts: Option<SessionFacts>,
    busy: WhileBusy,
    backlog: BacklogState,
    shown: ShownEvents,
    prompts: OpenPrompts,
    questions: WaitingQuestions,
    changes: Vec<WantedChange>,
    /// Words for the person, once the session is open.
    notes: Vec<String>,
}

impl SessionView {
    /// Of a session that is being opened. `project` shortens titles; `initialize` says if the editor shows forms.
    #[must_use]
    pub fn new(
        opening: OpenedAs,
        project: String,
        busy: WhileBusy,
        editor: Option<&crate::params::InitializeParams>,
    ) -> Self {
        let has_forms = editor.is_some_and(crate::params::InitializeParams::has_forms);
        let forms = if has_forms { Forms::Shown } else { Forms::Unknown };
        Self {
            opening: Some(opening),
            facts: None,
            busy,
            backlog: BacklogState::Comes,
            shown: ShownEvents::new(ModelFacts::default()),
            prompts: OpenPrompts::default(),
            questions: WaitingQuestions::new(forms, project),
            changes: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Words for the person, once the session is open.
    #[must_use]
    pub fn with_note(mut self, text: String) -> Self {
        self.notes.push(text);
        self
    }

    /// Its ID, once it is open.
    #[must_use]
    pub fn session(&self) -> Option<&SessionId> {
        self.facts.as_ref().map(|facts| &facts.session)
    }

    /// Something happened there.
    pub fn happened(&mut self, event: LiveEvent) -> Vec<EditorOutput> {
        match event {
            LiveEvent::Opened { facts, last_seq: _ } => {
                self.shown = ShownEvents::new(facts.of_model);
                self.notes.extend(facts.warnings.iter().cloned());
                self.facts = Some(facts);
                Vec::new()
            }
            LiveEvent::Message(message) => self.heard(message),
            LiveEvent::Lost(why) => {
                self.backlog = BacklogState::Comes;
                let reason =
                    format!("the supervisor was lost ({why}); another one continues the session");
                self.show(&ClientEvent::Struck { reason, next: None }, Echo::Own)
            }
            LiveEvent::Note(text) => self.update(note(&text)).into_iter().collect(),
        }
    }

    /// It is not followed any more, and why, where that is an error.
    pub fn ended(&mut self, error: Option<&RpcError>) -> Vec<EditorOutput> {
        let error = error.cloned().unwrap_or_else(|| RpcError::internal("the session was ended"));
        let mut outputs = Vec::new();
        if let Some(OpenedAs::New(id) | OpenedAs::Loaded(id) | OpenedAs::Resumed(id)) =
            self.opening.take()
        {
            outputs.push(EditorOutput::Line(error_line(&id, &error)));
        }
        for wanted in std::mem::take(&mut self.changes) {
            outputs.push(EditorOutput::Line(error_line(&wanted.request, &error)));
        }
        outputs.extend(answers(self.prompts.fail(error.message())));
        outputs
    }

    /// The editor sends a prompt.
    pub fn prompt(&mut self, request: Value, session: &str, text: String) -> Vec<EditorOutput> {
        self.prompts.add(request, text.clone());
        match self.backlog {
            // Sent once the session is there.
            BacklogState::Comes => Vec::new(),
            BacklogState::Over => vec![self.send_prompt(SessionId(session.to_owned()), text)],
        }
    }

    fn send_prompt(&self, session: SessionId, text: String) -> EditorOutput {
        send(FromClient::Prompt { session, text, form: None, busy: self.busy })
    }

    /// The editor cancels what it has asked for.
    pub fn cancel(&mut self, session: &str) -> Vec<EditorOutput> {
        let session = SessionId(session.to_owned());
        let cancelling = self.prompts.cancel();
        let take_back =
            |text| send(FromClient::TakeBack { session: session.clone(), only: Some(text) });
        let mut outputs: Vec<EditorOutput> =
            cancelling.take_back.into_iter().map(take_back).collect();
        if cancelling.running == RunningTurn::Interrupt {
            outputs.push(send(FromClient::Interrupt { session: session.clone() }));
        }
        outputs
    }

    /// The editor leaves the session. What it has asked for is cancelled.
    pub fn close(&mut self, request: &Value, session: &str) -> Vec<EditorOutput> {
        let mut outputs = self.cancel(session);
        outputs.extend(answers(self.prompts.leave()));
        outputs.push(EditorOutput::Line(result_line(request, &json!({}))));
        outputs.push(EditorOutput::Leave);
        outputs
    }

    /// The editor chooses a mode.
    pub fn set_mode(&mut self, request: Value, mode: &str) -> Vec<EditorOutput> {
        self.set(request, settings::change("mode", &mode.into()), ChangeAnswer::Nothing)
    }

    /// The editor makes another choice.
    pub fn set_option(&mut self, request: Value, choice: &str, value: &Value) -> Vec<EditorOutput> {
        self.set(request, settings::change(choice, value), ChangeAnswer::AllOptions)
    }

    fn set(
        &mut self,
        request: Value,
        change: Result<SettingChange, RpcError>,
        answer: ChangeAnswer,
    ) -> Vec<EditorOutput> {
        let (change, facts) = match (change, &self.facts) {
            (Ok(change), Some(facts)) => (change, facts),
            (Ok(_), None) => {
                let error = RpcError::internal("the session is not open yet");
                return vec![EditorOutput::Line(error_line(&request, &error))];
            }
            (Err(error), _) => return vec![EditorOutput::Line(error_line(&request, &error))],
        };
        if settings::is_so(facts, &change) {
            return vec![self.changed(&request, answer)];
        }
        let session = facts.session.clone();
        self.changes.push(WantedChange { request, change: change.clone(), answer });
        vec![send(FromClient::Change { session, change })]
    }

    /// The editor answers a request. None if it is not one of this session's.
    pub fn reply(&mut self, id: &str, reply: Reply) -> Option<Vec<EditorOutput>> {
        let shown = &self.shown;
        let answered = self.questions.reply(id, reply, |call| shown.call(call).cloned())?;
        Some(self.on_answer(answered))
    }

    fn on_answer(&self, answered: Answered) -> Vec<EditorOutput> {
        match answered {
            Answered::Answer(call, digest, answer) => {
                vec![send(FromClient::Answer { call, digest, answer })]
            }
            Answered::Next(request) => vec![asked(&request)],
            Answered::Open(words) => self.update(note(&words)).into_iter().collect(),
            Answered::Nothing => Vec::new(),
        }
    }

    fn heard(&mut self, message: ToClient) -> Vec<EditorOutput> {
        match message {
            ToClient::Event { event, .. } => self.event(&event),
            ToClient::Attached { .. } => {
                self.backlog = BacklogState::Over;
                let mut outputs: Vec<EditorOutput> = self.answer_opening().into_iter().collect();
                let notes = std::mem::take(&mut self.notes);
                outputs.extend(notes.iter().filter_map(|text| self.update(note(text))));
                outputs.extend(self.ask());
                if let Some(session) = self.session() {
                    let unsent = self.prompts.unsent().into_iter();
                    outputs.extend(unsent.map(|text| self.send_prompt(session.clone(), text)));
                }
                outputs
            }
            ToClient::TakenBack { texts, .. } => answers(self.prompts.taken_back(&texts)),
            ToClient::Failed { kind: _, message } => self.failed(&message),
            ToClient::Detached { reason, .. } => self.ended(Some(&RpcError::internal(reason))),
            // Answers to what an editor does not ask.
            ToClient::Welcome { .. }
            | ToClient::Refused { .. }
            | ToClient::Opened { .. }
            | ToClient::NetworkOpened { .. }
            | ToClient::NetworkClosed { .. }
            | ToClient::Behind { .. }
            | ToClient::Page { .. }
            | ToClient::Changes { .. }
            | ToClient::Context { .. }
            | ToClient::Servers { .. }
            | ToClient::Sessions(_)
            | ToClient::Status(_)
            | ToClient::Done
            | ToClient::Processes(_)
            | ToClient::Pong(_) => Vec::new(),
        }
    }

    fn event(&mut self, event: &ClientEvent) -> Vec<EditorOutput> {
        if let Some(facts) = &mut self.facts {
            facts.update(event);
        }
        let entered = self.prompts.enter(event);
        let echo = if entered.is_some() { Echo::Own } else { Echo::Others };
        let mut outputs = self.show(event, echo);
        if let (Some(RunningTurn::Interrupt), Some(session)) = (entered, self.session()) {
            outputs.push(send(FromClient::Interrupt { session: session.clone() }));
        }
        match event {
            ClientEvent::Asked { question } => {
                self.questions.add(question);
                outputs.extend(self.ask());
            }
            ClientEvent::Decided { call, .. } | ClientEvent::CallEnded { call, .. } => {
                outputs.extend(self.withdraw(call));
            }
            ClientEvent::AnswerRejected { call, .. } => {
                self.questions.rejected(call);
                outputs.extend(self.ask());
            }
            ClientEvent::TurnEnded { end } => outputs.extend(answers(self.prompts.end(end))),
            ClientEvent::Queue { waiting } => self.prompts.queued(waiting),
            ClientEvent::Degraded { reason } => outputs.extend(answers(self.prompts.fail(reason))),
            ClientEvent::Changed { change, by: _ } => outputs.extend(self.on_change(change)),
            ClientEvent::Model { .. } => outputs.extend(self.options_update()),
            ClientEvent::Prompt { .. }
            | ClientEvent::Delta { .. }
            | ClientEvent::Struck { .. }
            | ClientEvent::Answer { .. }
            | ClientEvent::Proposed { .. }
            | ClientEvent::Started { .. }
            | ClientEvent::Output { .. }
            | ClientEvent::InBackground { .. }
            | ClientEvent::Compacted(_)
            | ClientEvent::Learned { .. }
            | ClientEvent::Notice { .. } => {}
        }
        outputs
    }

    fn show(&mut self, event: &ClientEvent, echo: Echo) -> Vec<EditorOutput> {
        let updates = self.shown.show(event, echo);
        updates.into_iter().filter_map(|update| self.update(update)).collect()
    }

    /// An update of this session. None before the editor knows it.
    fn update(&self, update: Value) -> Option<EditorOutput> {
        if matches!(self.opening, Some(OpenedAs::New(_) | OpenedAs::Resumed(_))) {
            return None;
        }
        let session = self.session()?.0.as_str();
        let params = json!({"sessionId": session, "update": update});
        Some(EditorOutput::Line(notification_line("session/update", &params)))
    }

    /// The answer to the request that opened the session.
    fn answer_opening(&mut self) -> Option<EditorOutput> {
        let opening = self.opening.take()?;
        let facts = self.facts.as_ref()?;
        let mut result = json!({
            "modes": settings::modes(facts),
            "configOptions": settings::options(facts),
            "_meta": {"agentd": {"sandbox": facts.sandbox, "warnings": facts.warnings}},
        });
        let id = match opening {
            OpenedAs::New(id) => {
                result["sessionId"] = facts.session.0.as_str().into();
                id
            }
            OpenedAs::Loaded(id) | OpenedAs::Resumed(id) => id,
        };
        Some(EditorOutput::Line(result_line(&id, &result)))
    }

    /// Asks the editor what is open, unless the questions may have been answered since.
    fn ask(&mut self) -> Vec<EditorOutput> {
        if self.backlog == BacklogState::Comes {
            return Vec::new();
        }
        let shown = &self.shown;
        let call = |id: &CallId| -> Option<Call> { shown.call(id).cloned() };
        let mut outputs: Vec<EditorOutput> = self.questions.ask(call).iter().map(asked).collect();
        let lost = self.questions.lost_answers();
        outputs.extend(lost.into_iter().flat_map(|answer| self.on_answer(answer)));
        outputs
    }

    /// A question was answered: the editor need not answer any more.
    fn withdraw(&mut self, call: &CallId) -> Option<EditorOutput> {
        let request = self.questions.remove(call)?;
        let params = json!({"requestId": request});
        Some(EditorOutput::Line(notification_line("$/cancel_request", &params)))
    }

    /// The last request of this client failed: a change or a prompt.
    fn failed(&mut self, message: &str) -> Vec<EditorOutput> {
        if !self.changes.is_empty() {
            let wanted = self.changes.remove(0);
            return vec![EditorOutput::Line(error_line(
                &wanted.request,
                &RpcError::internal(message),
            ))];
        }
        match self.prompts.refused(message) {
            Some(refused) => answers(vec![refused]),
            None => self.update(note(message)).into_iter().collect(),
        }
    }

    fn on_change(&mut self, change: &SettingChange) -> Vec<EditorOutput> {
        let mut outputs = Vec::new();
        if let Some(place) = self.changes.iter().position(|wanted| wanted.change == *change) {
            let wanted = self.changes.remove(place);
            outputs.push(self.changed(&wanted.request, wanted.answer));
        }
        match change {
            SettingChange::Mode(mode) => {
                let update =
                    json!({"sessionUpdate": "current_mode_update", "currentModeId": mode.name()});
                outputs.extend(self.update(update));
                outputs.extend(self.options_update());
            }
            SettingChange::Network(_) | SettingChange::Host(_) | SettingChange::Model(_) => {
                outputs.extend(self.options_update());
            }
            SettingChange::Name(name) => {
                let update = json!({"sessionUpdate": "session_info_update", "title": name});
                outputs.extend(self.update(update));
            }
            SettingChange::AddDirectory(_)
            | SettingChange::Pin(_)
            | SettingChange::Unpin(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::CostLimit(_)
            | SettingChange::Flag(..) => {}
        }
        outputs
    }

    fn options_update(&self) -> Option<EditorOutput> {
        let options = settings::options(self.facts.as_ref()?);
        self.update(json!({"sessionUpdate": "config_option_update", "configOptions": options}))
    }

    fn changed(&self, request: &Value, answer: ChangeAnswer) -> EditorOutput {
        let result = match (answer, &self.facts) {
            (ChangeAnswer::AllOptions, Some(facts)) => {
                json!({"configOptions": settings::options(facts)})
            }
            (ChangeAnswer::AllOptions | ChangeAnswer::Nothing, _) => json!({}),
        };
        EditorOutput::Line(result_line(request, &result))
    }
}

fn send(word: FromClient) -> EditorOutput {
    EditorOutput::Send(Box::new(word))
}

fn asked(request: &EditorRequest) -> EditorOutput {
    EditorOutput::Line(request_line(&request.id, request.method, &request.params))
}

fn answers(answered: Vec<AnsweredPrompt>) -> Vec<EditorOutput> {
    let line = |AnsweredPrompt { request, result }: AnsweredPrompt| match result {
        Ok(result) => result_line(&request, &result),
        Err(why) => error_line(&request, &RpcError::internal(why)),
    };
    answered.into_iter().map(line).map(EditorOutput::Line).collect()
}

#[cfg(test)]
#[path = "session_view_tests.rs"]
mod tests;
