//! Sub-agents: sessions that work for calls of this one, and the work of this session if it is one.
//!
//! The name of a sub-agent's session follows from its parent and the call. So a call that is repeated after a
//! crash finds the session that works for it already, and waits for the same answer.

use super::state::{RunningTask, SessionActorState};
use crate::call::CallInput;
use crate::error_chain::chain;
use crate::messages::{OpenRequest, RootMsg, RootToSession, SessionMsg, TaskOrder, TaskToSession};
use crate::open_failure::OpenFailure;
use crate::session_spec::{TaskShare, session_of};
use crate::task_outcome::TaskOutcome;
use journal::{JournalRecord, TaskHeader};
use protocol::call::{Outcome, ToolResult};
use protocol::client::{ClientEvent, RequestFailure, SessionEnding, SessionRequest, ToClient};
use protocol::ids::{CallId, SessionId};
use protocol::provider::PassedFd;
use protocol::session::ToSession;
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;
use tools::{InterpretedCall, TaskRequest};

/// How often a session is opened whose last process has not ended yet, and how long between.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(500);

/// A sub-agent's session to open.
struct NewTask {
    call: u32,
    agent: String,
    child: SessionId,
    header: TaskHeader,
    opening: SessionRequest,
    passed_fds: Vec<(PassedFd, OwnedFd)>,
    parent: ActorRef<SessionMsg>,
    max_chars: u32,
}

impl SessionActorState {
    /// Checks the work of a sub-agent before the call is judged.
    pub(super) fn check_task(&self, call: u32, found: &InterpretedCall) -> Result<(), ToolResult> {
        let Some(request) = &found.task else { return Ok(()) };
        if self.child_directory(call).is_some_and(|directory| directory.is_dir()) {
            // It was begun before a crash.
            return Ok(());
        }
        let agents = self.spec.agents();
        if agents.agents.is_empty() {
            let text = "this session starts no sub-agents: the limit agents.depth is reached";
            let hint = "Do the work yourself.";
            return Err(ToolResult::error(Outcome::Failed, "too_deep", "task", text, hint));
        }
        agents.find(request.agent.as_deref()).map(|_| ()).map_err(|why| {
            ToolResult::error(Outcome::Invalid, "invalid_arguments", "task", &why, "")
        })
    }

    pub(super) async fn on_task_msg(&mut self, message: TaskToSession) {
        match message {
            TaskToSession::Start { call, request } => {
                if let Err(result) = self.start_task(call, &request).await {
                    self.send_task_end(call, result);
                }
            }
            TaskToSession::Opened { call, session } => self.on_task_opened(call, session),
            TaskToSession::Ended { call, result } => self.send_task_end(call, result),
            TaskToSession::Stop(call) => self.stop_task(call),
            TaskToSession::Asks { session, tool } => self.show_question_of(session, tool),
        }
    }

    /// Starts it; the other answer is the result of a call that needs no start, or cannot.
    async fn start_task(&mut self, call: u32, request: &TaskRequest) -> Result<(), ToolResult> {
        let refused = |code: &str, text: String| {
            ToolResult::error(Outcome::Failed, code, "task", &text, "Do the work yourself.")
        };
        if let Some(result) = self.finished(call, request).await {
            return Err(result);
        }
        let most = self.spec.config.budget.agents.at_once;
        let running = u32::try_from(self.tasks.running.len()).unwrap_or(u32::MAX);
        if running >= most {
            let text = format!("{most} sub-agents run already, which is the limit agents.at_once");
            return Err(refused("too_many", text));
        }
        let agent = self.spec.agents().find(request.agent.as_deref());
        let agent = agent.map_err(|why| refused("no_agent", why))?.clone();
        if let Some(name) = agent.model.clone() {
            let (spec, named) = (self.spec.clone(), name.clone());
            let checked = tokio::task::spawn_blocking(move || spec.with_model(&named).map(drop));
            let checked = checked.await.map_err(|error| error.to_string());
            if let Err(why) = checked.and_then(|checked| checked.map_err(|it| it.message)) {
                return Err(refused("model", format!("the model of {}: {why}", agent.name)));
            }
        }
        let share = self.share(most - running).await.map_err(|why| refused("budget", why))?;
        let (header, opening) = self.spec.task_session(&agent, call, request, share);
        let passed_fds = self.passed_fds_again().map_err(|why| refused("keys", why))?;
        let task = NewTask {
            call,
            agent: agent.name.clone(),
            child: session_of(&self.spec.id, call),
            header,
            opening,
            passed_fds,
            parent: self.own.clone(),
            max_chars: self.spec.config.tools.max_result_chars,
        };
        let running = RunningTask { agent: agent.name, share, session: None, stopping: false };
        self.tasks.running.insert(call, running);
        tokio::spawn(run(task, self.root.clone(), self.own.clone()));
        Ok(())
    }

    /// The descriptors that clients passed, for another session.
    fn passed_fds_again(&self) -> Result<Vec<(PassedFd, OwnedFd)>, String> {
        // A recording has one place that it is read at: two sessions would take each other's answers.
        let passed = self.resources.passed_fds.iter();
        let passed = passed.filter(|(kind, _)| *kind != PassedFd::Record);
        if self.resources.passed_fds.iter().any(|(kind, _)| *kind == PassedFd::Replay) {
            return Err("a session that plays a recording starts no sub-agents".to_owned());
        }
        passed
            .map(|(kind, file)| file.try_clone().map(|file| (kind.clone(), file)))
            .collect::<Result<_, _>>()
            .map_err(|error| format!("its keys cannot be passed on: {error}"))
    }

    /// The part of the session's budget that one of so many possible sub-agents gets.
    async fn share(&self, possible: u32) -> Result<TaskShare, String> {
        let bounds = self.spec.setup.max_session;
        if bounds.calls.is_none() && bounds.cost.is_none() {
            return Ok(TaskShare { calls: None, cost: None });
        }
        let used = outcome_of(self.journal.directory.clone()).await?.used;
        let given: Vec<_> = self.tasks.running.values().map(|task| task.share).collect();
        TaskShare::of(bounds, used, &given, possible).map_err(str::to_owned)
    }

    fn child_directory(&self, call: u32) -> Option<PathBuf> {
        let child = session_of(&self.spec.id, call);
        self.journal.directory.parent().map(|sessions| sessions.join(child.0))
    }

    /// The result of a sub-agent that has finished its work for this call before, in another run of this
    /// session. What changed since, as its file, does not matter any more.
    async fn finished(&mut self, call: u32, request: &TaskRequest) -> Option<ToolResult> {
        let child = session_of(&self.spec.id, call);
        let place = self.child_directory(call)?;
        let outcome = outcome_of(place).await.ok().filter(|outcome| outcome.end.is_some())?;
        let agent = request.agent.clone().unwrap_or_else(|| "general".to_owned());
        let result = outcome.result(&agent, &child.0, self.spec.config.tools.max_result_chars);
        let share = TaskShare { calls: None, cost: None };
        let task = RunningTask { agent, share, session: None, stopping: false };
        self.tasks.running.insert(call, task);
        Some(result)
    }

    fn on_task_opened(&mut self, call: u32, session: ActorRef<SessionMsg>) {
        let Some(task) = self.tasks.running.get_mut(&call) else { return };
        let child = session_of(&self.spec.id, call);
        let text = format!("sub-agent {} works in session {child}\n", task.agent);
        task.session = Some(session.clone());
        let call = CallId { session: self.spec.id.clone(), number: call };
        if task.stopping {
            interrupt(&session);
        }
        self.show(&ClientEvent::Output { call, text });
    }

    /// A sub-agent waits for a person, who sees this session and not that one.
    fn show_question_of(&self, child: SessionId, tool: String) {
        let text = format!(
            "a sub-agent asks about a call of {tool}: `agentd attach {child}` shows the question"
        );
        self.show(&ClientEvent::Notice { text });
        self.pass_question_on(child, tool);
    }

    /// Tells the parent about a question, if the session is a sub-agent's.
    pub(super) fn pass_question_on(&self, session: SessionId, tool: String) {
        if let Some(parent) = &self.tasks.parent {
            let _ = parent.send_message(TaskToSession::Asks { session, tool }.into());
        }
    }

    fn stop_task(&mut self, call: u32) {
        let Some(task) = self.tasks.running.get_mut(&call) else { return };
        task.stopping = true;
        if let Some(session) = &task.session {
            interrupt(session);
        }
    }

    fn send_task_end(&self, call: u32, result: ToolResult) {
        let call = CallId { session: self.spec.id.clone(), number: call };
        self.send_call(&call, CallInput::TaskEnded(result));
    }

    /// The record of what a call's sub-agent used.
    pub(super) async fn task_spent(&mut self, call: u32) -> Option<JournalRecord> {
        self.tasks.running.remove(&call)?;
        let child = session_of(&self.spec.id, call);
        let sessions = self.journal.directory.parent()?;
        let outcome = outcome_of(sessions.join(&child.0)).await.ok()?;
        let used = &mut self.spec.setup.max_session.used;
        used.calls = used.calls.saturating_add(outcome.used.calls);
        let both = used.cost.zip(outcome.used.cost);
        used.cost = both.map(|(all, new)| all.saturating_add(new));
        Some(outcome.spent(call, child.0))
    }

    /// The conversation counts the use of sub-agents.
    pub(super) fn send_bounds(&self) {
        self.send_conversation(ToSession::Bounds(self.spec.setup.max_session));
    }

    /// The sessions of sub-agents end with this one.
    pub(super) fn close_tasks(&self, ending: SessionEnding) {
        for session in self.tasks.running.values().filter_map(|task| task.session.as_ref()) {
            let _ = session.send_message(RootToSession::Close(ending, oneshot::channel().0).into());
        }
    }

    /// The session of a sub-agent is open for its parent.
    pub(super) async fn join_task(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        request: OpenRequest,
        task: TaskOrder,
    ) {
        let message = self.opened_message(&request.opening);
        if request.reply.send(Ok((self.own.clone(), message))).is_ok() {
            self.tasks.parent = Some(task.parent);
            self.begin_task(myself, task.done).await;
        }
    }

    /// A parent waits for this session's work: it begins, goes on, or is done.
    async fn begin_task(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        done: oneshot::Sender<TaskOutcome>,
    ) {
        self.tasks.waiting.push(done);
        self.answer_task().await;
        let Some(task) = self.spec.task() else { return };
        if !self.tasks.waiting.is_empty()
            && self.turn.router.turns() == 0
            && !self.turn.router.must_queue()
        {
            let steps = self.turn.router.prompt(task.prompt.clone());
            self.carry_out(myself, steps).await;
            self.ping_later(myself);
        }
    }

    /// Answers the parents that wait, if the work has ended.
    pub(super) async fn answer_task(&mut self) {
        if self.tasks.waiting.is_empty() {
            return;
        }
        match outcome_of(self.journal.directory.clone()).await {
            Ok(outcome) if outcome.end.is_some() => self.send_outcome(&outcome),
            Ok(_) => {}
            Err(why) => {
                tracing::error!(session = %self.spec.id, why, "its work cannot be read");
                self.tasks.waiting.clear();
            }
        }
    }

    /// The session ends: parents that wait get the work so far.
    pub(super) async fn end_task(&mut self) {
        if self.tasks.waiting.is_empty() {
            return;
        }
        if let Ok(outcome) = outcome_of(self.journal.directory.clone()).await {
            self.send_outcome(&outcome);
        }
    }

    fn send_outcome(&mut self, outcome: &TaskOutcome) {
        for waiting in self.tasks.waiting.drain(..) {
            let _ = waiting.send(outcome.clone());
        }
    }
}

fn interrupt(session: &ActorRef<SessionMsg>) {
    let _ = session.send_message(crate::messages::ClientToSession::Interrupt.into());
}

/// Opens the session of a sub-agent and waits for its work.
async fn run(task: NewTask, root: ActorRef<RootMsg>, parent: ActorRef<SessionMsg>) {
    let call = task.call;
    let result = match open(&task, &root).await {
        Err(failure) => {
            let text = format!("the sub-agent could not begin: {}", failure.message);
            ToolResult::error(Outcome::Failed, "not_begun", "task", &text, "")
        }
        Ok((session, outcome)) => {
            let _ = parent.send_message(TaskToSession::Opened { call, session }.into());
            match outcome.await {
                Ok(outcome) => outcome.result(&task.agent, &task.child.0, task.max_chars),
                Err(_) => {
                    let child = &task.child;
                    let text = format!(
                        "the sub-agent did not finish: session {child} failed; its records are on disk"
                    );
                    ToolResult::error(Outcome::Crashed, "unfinished", "task", &text, "")
                }
            }
        }
    };
    let _ = parent.send_message(TaskToSession::Ended { call, result }.into());
}

type OpenTask = (ActorRef<SessionMsg>, oneshot::Receiver<TaskOutcome>);

async fn open(task: &NewTask, root: &ActorRef<RootMsg>) -> Result<OpenTask, OpenFailure> {
    let mut left = TRIES;
    loop {
        left -= 1;
        match open_once(task, root).await {
            Err(OpenFailure { kind: RequestFailure::Held, .. }) if left > 0 => {
                tokio::time::sleep(BETWEEN).await;
            }
            opened => return opened,
        }
    }
}

async fn open_once(task: &NewTask, root: &ActorRef<RootMsg>) -> Result<OpenTask, OpenFailure> {
    let internal = |why: String| OpenFailure::new(RequestFailure::Internal, why);
    let fds = task.passed_fds.iter().map(|(kind, file)| Ok((kind.clone(), file.try_clone()?)));
    let passed_fds = fds.collect::<std::io::Result<_>>();
    let (done, outcome) = oneshot::channel();
    let (reply, opened) = oneshot::channel();
    let order = OpenRequest {
        opening: task.opening.clone(),
        passed_fds: passed_fds.map_err(|error| internal(error.to_string()))?,
        client: task.parent.get_id(),
        reply,
        task: Some(TaskOrder {
            header: Box::new(task.header.clone()),
            parent: task.parent.clone(),
            done,
        }),
    };
    let _ = root.send_message(RootMsg::Open(Box::new(order)));
    let opened = opened.await.map_err(|_| internal("the supervisor is ending".to_owned()))?;
    let (session, _): (_, ToClient) = opened?;
    Ok((session, outcome))
}

/// Reads the work of the session in this directory.
async fn outcome_of(directory: PathBuf) -> Result<TaskOutcome, String> {
    let read = tokio::task::spawn_blocking(move || read_outcome(&directory));
    read.await.unwrap_or_else(|error| Err(error.to_string()))
}

fn read_outcome(directory: &Path) -> Result<TaskOutcome, String> {
    let mut outcome = TaskOutcome::default();
    for entry in journal::read(directory).map_err(|error| chain(&error))? {
        outcome.take(&entry.map_err(|error| chain(&error))?.record);
    }
    Ok(outcome)
}
