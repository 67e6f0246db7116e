//! Sub-agents: sessions that work for calls of this one. `task_run` opens such a session and waits for it;
//! `task_work` is the side of the sub-agent.
//!
//! The name of a sub-agent's session follows from its parent and the call. So a call that is repeated after a
//! crash finds the session that works for it already, and waits for the same answer.

use super::state::{RunningTask, SessionActorState};
use super::task_run::{NewTask, TaskPlace, finish, run};
use super::task_work::outcome_of;
use crate::git_worktree::WorktreeKeeper;
use crate::messages::{RootMsg, RootToSession, SessionMsg, TaskToSession};
use call::CallInput;
use config::is_model_alias;
use journal::{JournalRecord, TaskHeader};
use launch::protected_restore::ProtectedCopies;
use protocol::call::{Outcome, ToolResult};
use protocol::client::{ClientEvent, SessionEnding};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::PermissionMode;
use protocol::provider::PassedFd;
use protocol::session::ToSession;
use ractor::ActorRef;
use setup::agents::Workplace;
use setup::session_spec::{TaskShare, session_of};
use setup::task_worktree;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tokio::sync::oneshot;
use tools::{InterpretedCall, TaskRequest};

impl SessionActorState {
    /// Checks the work of a sub-agent before the call is judged.
    pub(super) fn check_task(&self, call: u32, found: &InterpretedCall) -> Result<(), ToolResult> {
        let Some(request) = &found.task else { return Ok(()) };
        if self.child_directory(call).is_some_and(|it| it.is_dir() && journal::was_begun(&it)) {
            // It was begun before a crash.
            return Ok(());
        }
        let agents = self.spec.agents();
        if agents.agents.is_empty() {
            let text = "this session starts no sub-agents: the limit agents.depth is reached";
            let hint = "Do the work yourself.";
            return Err(ToolResult::error(Outcome::Failed, "too_deep", "task", text, hint));
        }
        agents.find(request.agent.as_deref()).map_err(|why| {
            ToolResult::error(Outcome::Invalid, "invalid_arguments", "task", &why, "")
        })?;
        self.check_background_task(call, request)
    }

    pub(super) async fn on_task_msg(&mut self, message: TaskToSession) {
        match message {
            TaskToSession::Start { call, request } => match self.start_task(call, &request).await {
                Ok(()) => self.detach_task(call, &request),
                Err(result) => self.send_task_end(call, result),
            },
            TaskToSession::Opened { call, session } => self.on_task_opened(call, session),
            TaskToSession::Waits(call) => self.show_wait(call),
            TaskToSession::Ended { call, result, left } => {
                if let Some(record) = self.add_tampered(left) {
                    // A failure closes the session, and nothing runs.
                    let _ = self.record(vec![record]).await;
                }
                self.send_task_end(call, result);
            }
            TaskToSession::Stop(call) => self.stop_task(call),
            TaskToSession::Asks(question) => self.on_task_asks(*question),
            TaskToSession::Settled { call, allowed, basis } => {
                self.on_task_settled(call, allowed, basis);
            }
            TaskToSession::Rejected { client, call, reason } => {
                self.reject(&client, &call, &reason);
            }
            TaskToSession::BoundsFor(child) => {
                let _ = child.send_message(self.parent_bounds().into());
            }
            TaskToSession::ParentBounds { parent, bounds } => {
                self.on_parent_bounds(&parent, *bounds);
            }
        }
    }

    /// Starts it; the other answer is the result of a call that needs no start, or cannot.
    async fn start_task(&mut self, call: u32, request: &TaskRequest) -> Result<(), ToolResult> {
        match self.finished(call, request).await {
            Some((result, None)) => return Err(result),
            Some((result, Some(header))) => {
                let Some(of) = self.task_place(call) else { return Err(result) };
                let (stop, stopped) = oneshot::channel();
                self.tasks.running.entry(call).and_modify(|task| task.stop = Some(stop));
                tokio::spawn(finish(of, header, result, stopped));
                return Ok(());
            }
            None => {}
        }
        let most = self.spec.config.budget.agents.at_once;
        let running = u32::try_from(self.tasks.running.len()).unwrap_or(u32::MAX);
        if running >= most {
            let text = format!("{most} sub-agents run already, which is the limit agents.at_once");
            return Err(refused("too_many", text));
        }
        // Its calls are on record here alone: another host has to know of the call that it works for.
        let copy = self.journal.writer.copy_of_all();
        self.copied(copy).await.map_err(|why| refused("fleet", why))?;
        let mut header = match self.begun(call).await {
            Some(header) => *header,
            None => self.new_task(call, request, most - running).await?,
        };
        if let Some(name) = header.model.clone() {
            let (spec, named) = (self.spec.clone(), name.clone());
            let checked = tokio::task::spawn_blocking(move || spec.with_model(&named).map(drop));
            let checked = checked.await.map_err(|error| error.to_string());
            match checked.and_then(|checked| checked.map_err(|it| it.message)) {
                Ok(()) => {}
                // A file that was written for another provider.
                Err(why) if is_model_alias(&name) => {
                    let (agent, now) = (&header.agent, &self.spec.setup.model);
                    let text = format!("the sub-agent {agent} is for the model {now}: {why}");
                    self.show(&ClientEvent::Notice { text });
                    header.model = None;
                }
                Err(why) => {
                    return Err(refused("model", format!("the model of {}: {why}", header.agent)));
                }
            }
        }
        let Some(of) = self.task_place(call) else {
            return Err(refused("no_place", "its journal has no directory".to_owned()));
        };
        let passed_fds = self.passed_fds_again().map_err(|why| refused("keys", why))?;
        let (agent, share) = (header.agent.clone(), TaskShare::recorded(header.limits));
        let (stop, stopped) = oneshot::channel();
        let task = NewTask {
            of,
            opening: self.spec.task_opening(&header),
            header,
            bounds: self.spec.task_bounds(),
            lease: self.calls.lease.lease.clone(),
            passed_fds,
            max_chars: self.spec.config.tools.max_result_chars,
        };
        let running = RunningTask { agent, share, session: None, stop: Some(stop) };
        self.tasks.running.insert(call, running);
        tokio::spawn(run(task, self.root.clone(), stopped));
        Ok(())
    }

    fn task_place(&self, call: u32) -> Option<TaskPlace> {
        let id = CallId { session: self.spec.id.clone(), number: call };
        let (spawner, lock) = (self.resources.spawner.clone(), self.resources.lock.clone());
        let copies = ProtectedCopies::of(&self.journal.directory);
        let hello = self.resources.times.hello;
        Some(TaskPlace {
            worktrees: WorktreeKeeper::new(id, &self.spec, (spawner, lock, copies), hello),
            call,
            child: session_of(&self.spec.id, call),
            sessions: self.journal.directory.parent().map(Path::to_owned)?,
            parent: self.own.clone(),
        })
    }

    /// The first record of a sub-agent that was begun before a crash. Its bounds and its part of the budget
    /// stay as they are; its file does not matter any more.
    async fn begun(&self, call: u32) -> Option<Box<TaskHeader>> {
        let directory = self.child_directory(call)?;
        let read = tokio::task::spawn_blocking(move || journal::header(&directory).ok()?.task);
        read.await.ok().flatten()
    }

    /// The first record of a new sub-agent.
    async fn new_task(
        &self,
        call: u32,
        request: &TaskRequest,
        possible: u32,
    ) -> Result<TaskHeader, ToolResult> {
        let agent = self.spec.agents().find(request.agent.as_deref());
        let agent = agent.map_err(|why| refused("no_agent", why))?;
        if agent.workplace == Workplace::Worktree && self.spec.rules.mode == PermissionMode::Plan {
            let text = "mode plan changes nothing, and this agent works in a new git worktree";
            return Err(refused("plan", text.to_owned()));
        }
        if agent.workplace == Workplace::Worktree
            && self.spec.task().is_some_and(|it| it.worktree.is_some())
        {
            let text = "this session works in a git worktree of its own, and a sub-agent of it gets no other one";
            return Err(refused("in_worktree", text.to_owned()));
        }
        let share = self.share(possible).await.map_err(|why| refused("budget", why))?;
        let mut header = self.spec.task_header(agent, call, request, share);
        let (spec, skills) = (self.spec.clone(), agent.skills.clone());
        let texts = tokio::task::spawn_blocking(move || spec.skill_texts(&skills)).await;
        let texts = texts.unwrap_or_else(|error| Err(error.to_string()));
        header.instructions.push_str(&texts.map_err(|why| refused("skills", why))?);
        Ok(header)
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
        let used = outcome_of(self.journal.directory.clone()).await?.totals().used;
        let given: Vec<_> = self.tasks.running.values().map(|task| task.share).collect();
        TaskShare::of(bounds, used, &given, possible).map_err(str::to_owned)
    }

    fn child_directory(&self, call: u32) -> Option<PathBuf> {
        let child = session_of(&self.spec.id, call);
        self.journal.directory.parent().map(|sessions| sessions.join(child.0))
    }

    /// The result of a sub-agent that has finished its work for this call before, in another run of this
    /// session. What changed since, as its file, does not matter any more. The record comes with it where a
    /// death came before its worktree was looked at.
    async fn finished(
        &mut self,
        call: u32,
        request: &TaskRequest,
    ) -> Option<(ToolResult, Option<TaskHeader>)> {
        let child = session_of(&self.spec.id, call);
        let place = self.child_directory(call)?;
        let outcome = outcome_of(place).await.ok().filter(|outcome| outcome.end.is_some())?;
        let header = self.begun(call).await;
        let own = header.as_ref().and_then(|task| task.worktree.as_ref());
        let own = own.filter(|it| task_worktree::is_own(it, &child));
        let awaits = own.is_some_and(|worktree| task_worktree::check_place(worktree).is_ok());
        let agent = request.agent.clone().unwrap_or_else(|| "general".to_owned());
        let mut result = outcome.result(&agent, &child.0, self.spec.config.tools.max_result_chars);
        let left = header.as_ref().filter(|_| !awaits).and_then(|task| task_worktree::left(task));
        if let Some(place) = left {
            result.text = format!("{}\n{place}", result.text);
        }
        let share = TaskShare { calls: None, cost: None };
        let task = RunningTask { agent, share, session: None, stop: None };
        self.tasks.running.insert(call, task);
        Some((result, header.filter(|_| awaits).map(|header| *header)))
    }

    fn on_task_opened(&mut self, call: u32, session: ActorRef<SessionMsg>) {
        let Some(task) = self.tasks.running.get_mut(&call) else { return };
        let child = session_of(&self.spec.id, call);
        let text = format!("sub-agent {} works in session {child}\n", task.agent);
        task.session = Some(session);
        let call = CallId { session: self.spec.id.clone(), number: call };
        self.show(&ClientEvent::Output { call, text });
    }

    /// The task that waits for it ends it, or never begins it.
    fn stop_task(&mut self, call: u32) {
        if let Some(task) = self.tasks.running.get_mut(&call) {
            task.stop = None;
        }
    }

    fn show_wait(&self, call: u32) {
        let child = session_of(&self.spec.id, call);
        let text = format!("waits: another process uses session {child} of the sub-agent\n");
        let call = CallId { session: self.spec.id.clone(), number: call };
        self.show(&ClientEvent::Output { call, text });
    }

    fn send_task_end(&self, call: u32, result: ToolResult) {
        let call = CallId { session: self.spec.id.clone(), number: call };
        self.send_call(&call, CallInput::TaskEnded(result));
    }

    /// The record of what a call's sub-agent used.
    pub(super) async fn task_spent(&mut self, call: u32) -> Option<JournalRecord> {
        self.tasks.running.remove(&call)?;
        let child = session_of(&self.spec.id, call);
        self.end_task_questions(&child);
        let sessions = self.journal.directory.parent()?;
        let outcome = outcome_of(sessions.join(&child.0)).await.ok()?;
        let (totals, used) = (outcome.totals(), &mut self.spec.setup.max_session.used);
        used.calls = used.calls.saturating_add(totals.used.calls);
        let both = used.cost.zip(totals.used.cost);
        used.cost = both.map(|(all, new)| all.saturating_add(new));
        Some(totals.spent(call, child.0))
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

    /// The present rights of this session, for its sub-agents.
    fn parent_bounds(&self) -> TaskToSession {
        TaskToSession::ParentBounds {
            parent: self.spec.id.clone(),
            bounds: Box::new(self.spec.task_bounds()),
        }
    }

    /// Binds the sub-agents by the rights that this session has now.
    pub(super) fn pass_bounds_on(&self) {
        let (parent, bounds) = (self.spec.id.clone(), Box::new(self.spec.task_bounds()));
        let _ = self.root.send_message(RootMsg::NarrowTasks { parent, bounds });
    }

    /// The supervisor actor knows this session from now on, so changes of its parent reach it, and its
    /// changes reach its sub-agents. They exchange what changed before.
    pub(super) fn exchange_bounds(&self) {
        self.pass_bounds_on();
        if let Some(task) = self.spec.task() {
            let (parent, child) = (SessionId(task.session.clone()), self.own.clone());
            let (reply, found) = oneshot::channel();
            let _ = self.root.send_message(RootMsg::Find(parent, reply));
            tokio::spawn(async move {
                if let Ok(Some(parent)) = found.await {
                    let _ = parent.send_message(TaskToSession::BoundsFor(child).into());
                }
            });
        }
    }
}

fn refused(code: &str, text: String) -> ToolResult {
    ToolResult::error(Outcome::Failed, code, "task", &text, "Do the work yourself.")
}
