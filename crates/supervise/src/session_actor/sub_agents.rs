//! Sub-agents, and the work of a sub-agent's session: the actor's part. `tasks` knows them, `tasks/start` prepares
//! the start of one, and `tasks/run` opens its session and waits for it.
//!
//! Questions of sub-agents are shown to the clients of the session that waits for the sub-agent, answered there,
//! and judged where they were asked. Each level passes them on to the next.

use super::client_messages::opened_message;
use super::services::Service;
use super::state::SessionActorState;
use super::tasks::refused;
use super::tasks::run::{NewTask, TaskPlace, finish, run};
use super::tasks::start::{FinishedTask, TaskStart, outcome_of, passed_on};
use crate::git_worktree::WorktreeKeeper;
use crate::messages::{
    ClientMsg, ClientToSession, GivenAnswer, OpenRequest, RootMsg, RootToSession, SessionMsg,
    TaskOrder, TaskToSession,
};
use crate::records::origin;
use crate::task_outcome::TaskOutcome;
use call::{CallInput, CallRemarks, Executor};
use journal::{JournalRecord, OpenCall};
use launch::protected_restore::ProtectedCopies;
use protocol::call::{Call, ToolResult};
use protocol::client::{ClientEvent, SessionEnding};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::Question;
use protocol::session::ToSession;
use ractor::ActorRef;
use setup::session_spec::{TaskBounds, TaskShare, session_of};
use std::path::Path;
use tokio::sync::oneshot;
use tool_specs::TaskRequest;

/// Why a question is over without an answer.
const ENDED: &str = "its call has ended";

/// The sub-agents of a session.
impl SessionActorState {
    pub(super) async fn on_task_msg(&mut self, message: TaskToSession) {
        match message {
            TaskToSession::Start { call, request } => match self.start_task(call, &request).await {
                Ok(()) => self.detach_task(call, &request),
                Err(result) => self.send_task_end(call, result),
            },
            TaskToSession::Opened { call, session } => {
                let child = session_of(&self.spec.id, call);
                if let Some(agent) = self.tasks.sub_agents.opened(call, session) {
                    let text = format!("sub-agent {agent} works in session {child}\n");
                    self.show(&ClientEvent::Output { call: self.call_id(call), text });
                }
            }
            TaskToSession::Waits(call) => {
                let child = session_of(&self.spec.id, call);
                let text =
                    format!("waits: another process uses session {child} of the sub-agent\n");
                self.show(&ClientEvent::Output { call: self.call_id(call), text });
            }
            TaskToSession::Ended { call, result, left } => {
                if let Some(record) = self.add_tampered(left) {
                    // A failure closes the session, and nothing runs.
                    let _ = self.record(vec![record]).await;
                }
                self.send_task_end(call, result);
            }
            TaskToSession::Stop(call) => self.tasks.sub_agents.stop(call),
            TaskToSession::Asks(question) => {
                self.questions.put_of_task(Question::clone(&question));
                self.show(&ClientEvent::Asked { question: *question });
            }
            TaskToSession::Settled { call, allowed, basis } => {
                self.on_task_settled(call, allowed, basis);
            }
            TaskToSession::Rejected { client, call, reason } => {
                self.reject(&client, &call, &reason);
            }
            TaskToSession::BoundsFor(child) => {
                let (parent, bounds) = (self.spec.id.clone(), Box::new(self.spec.task_bounds()));
                let _ = child.send_message(TaskToSession::ParentBounds { parent, bounds }.into());
            }
            TaskToSession::ParentBounds { parent, bounds } => {
                let is_parent = self.spec.task().is_some_and(|task| task.session == parent.0);
                if is_parent {
                    self.bound_by_parent(*bounds);
                }
            }
        }
    }

    fn call_id(&self, number: u32) -> CallId {
        CallId { session: self.spec.id.clone(), number }
    }

    fn task_start(&self, call: u32) -> TaskStart<'_> {
        TaskStart::of(&self.spec, &self.journal.directory, call)
    }

    /// Starts it; the other answer is the result of a call that needs no start, or cannot.
    async fn start_task(&mut self, call: u32, request: &TaskRequest) -> Result<(), ToolResult> {
        let (stop, stopped) = oneshot::channel();
        if let Some(finished) = self.task_start(call).finished(request).await {
            let FinishedTask { agent, result, unchecked } = finished;
            let Some((header, of)) = unchecked.zip(self.task_place(call)) else {
                self.tasks.sub_agents.has_finished(call, agent, None);
                return Err(result);
            };
            self.tasks.sub_agents.has_finished(call, agent, Some(stop));
            tokio::spawn(finish(of, header, result, stopped));
            return Ok(());
        }
        let possible = self.tasks.sub_agents.room(self.spec.config.budget.agents.at_once)?;
        // Its calls are on record here alone: another host has to know of the call that it works for.
        let copy = self.journal.writer.copy_of_all();
        self.copied(copy).await.map_err(|why| refused("fleet", why))?;
        let start = self.task_start(call);
        let mut header = match start.begun().await {
            Some(header) => *header,
            None => start.new_header(request, &self.tasks.sub_agents.shares(), possible).await?,
        };
        if let Some(text) = start.check_model(&mut header).await? {
            self.show(&ClientEvent::Notice { text });
        }
        let Some(of) = self.task_place(call) else {
            return Err(refused("no_place", "its journal has no directory".to_owned()));
        };
        let passed_fds = passed_on(&self.resources.passed_fds)?;
        let (agent, share) = (header.agent.clone(), TaskShare::recorded(header.limits));
        let task = NewTask {
            of,
            opening: self.spec.task_opening(&header),
            header,
            bounds: self.spec.task_bounds(),
            lease: self.calls.lease.lease.clone(),
            passed_fds,
            max_chars: self.spec.config.tools.max_result_chars,
        };
        self.tasks.sub_agents.begins(call, agent, share, stop);
        tokio::spawn(run(task, self.root.clone(), stopped));
        Ok(())
    }

    fn task_place(&self, call: u32) -> Option<TaskPlace> {
        let (spawner, lock) = (self.resources.spawner.clone(), self.resources.lock.clone());
        let io = (spawner, lock, ProtectedCopies::of(&self.journal.directory));
        let hello = self.resources.times.hello;
        Some(TaskPlace {
            worktrees: WorktreeKeeper::new(self.call_id(call), &self.spec, io, hello),
            call,
            child: session_of(&self.spec.id, call),
            sessions: self.journal.directory.parent().map(Path::to_owned)?,
            parent: self.own.clone(),
        })
    }

    /// The sub-agent of this call begins its work: the conversation may go on.
    fn detach_task(&self, call: u32, request: &TaskRequest) {
        if self.task_start(call).is_for_background(request, &self.calls.services) {
            self.send_call(&self.call_id(call), CallInput::Detach);
        }
    }

    /// Starts the calls that an earlier supervisor left. Each is judged again and finds the session that works
    /// for it. The conversation has the result that it runs, and is told its end.
    pub(super) async fn wait_for_left_tasks(&mut self, myself: &ActorRef<SessionMsg>) {
        for open in self.tasks.sub_agents.take_left() {
            let origin = origin::of_open(&open);
            let OpenCall { number, tool, input, .. } = open;
            let call = Call {
                id: self.call_id(number),
                origin: origin.clone(),
                tool: tool.clone(),
                input,
            };
            let (place, remarks) = (self.turn.router.place(), CallRemarks::default());
            self.start_call(myself, call, place, Executor::Runner, remarks).await;
            let (rights, cage, network) = (Vec::new(), String::new(), None);
            self.calls.services.begins(number, Service { tool, origin, rights, cage, network });
        }
    }

    fn send_task_end(&self, call: u32, result: ToolResult) {
        self.send_call(&self.call_id(call), CallInput::TaskEnded(result));
    }

    /// The record of what a call's sub-agent used.
    pub(super) async fn task_spent(&mut self, call: u32) -> Option<JournalRecord> {
        if !self.tasks.sub_agents.ends(call) {
            return None;
        }
        let child = session_of(&self.spec.id, call);
        for question in self.questions.below(&child) {
            self.on_task_settled(question, false, ENDED.to_owned());
        }
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
        for session in self.tasks.sub_agents.sessions() {
            let _ = session.send_message(RootToSession::Close(ending, oneshot::channel().0).into());
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

    /// A question of a sub-agent is open no more, in whose session it was judged.
    fn on_task_settled(&mut self, call: CallId, allowed: bool, basis: String) {
        if self.questions.close_of_task(&call) {
            self.show(&ClientEvent::Decided { call, allowed, basis });
        }
    }

    /// Passes an answer on to the sub-agent that asked. Returns an answer to a question of this session.
    pub(super) fn pass_answer_on(&self, answer: GivenAnswer) -> Option<GivenAnswer> {
        if answer.call.session == self.spec.id {
            return Some(answer);
        }
        match self.tasks.sub_agents.way_to(&answer.call.session, &self.spec.id) {
            Some(session) => {
                let _ = session.send_message(ClientToSession::Answer(answer).into());
            }
            None => self.reject(&answer.client, &answer.call, ENDED),
        }
        None
    }
}

/// The work of a sub-agent's session: begun for a call of its parent, bound by the parent's rights, answered when
/// it has ended.
impl SessionActorState {
    /// The session of a sub-agent is open for its parent.
    pub(super) async fn join_task(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        request: OpenRequest,
        task: TaskOrder,
    ) {
        self.bound_by_parent(task.bounds);
        let message =
            opened_message(&self.spec, (self.calls.tier, self.journal.last_seq), &request.opening);
        if request.reply.send(Ok((self.own.clone(), message))).is_ok() {
            self.tasks.own.given_by(task.parent);
            if let Some(lease) = task.lease {
                self.work_under(lease);
            }
            for question in self.questions.shown().cloned() {
                self.tell_parent(&ClientEvent::Asked { question });
            }
            return self.begin_task(myself, task.done).await;
        }
        // Its call was stopped meanwhile: nothing begins, and nothing goes on.
        if !self.clients.any_attached() && !self.clients.any_expected() {
            let steps = self.turn.router.interrupt();
            self.carry_out(myself, steps).await;
        }
        self.retire_if_unused();
    }

    /// A parent waits for this session's work: it begins, goes on, or is done.
    async fn begin_task(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        done: oneshot::Sender<TaskOutcome>,
    ) {
        self.tasks.own.await_end(done);
        self.answer_task().await;
        if !self.turn.router.turn_is_open() {
            self.fail_task().await;
        }
        if self.tasks.own.is_awaited() {
            self.begin_work(myself).await;
        }
    }

    /// The first turn of a sub-agent's session is the work that its parent waits for, also where a person
    /// types into it before.
    pub(super) async fn begin_work(&mut self, myself: &ActorRef<SessionMsg>) {
        let Some(task) = self.spec.task() else { return };
        if self.turn.router.turns() == 0 && !self.turn.router.is_busy() && !self.is_paused() {
            let steps = self.turn.router.prompt(task.prompt.clone());
            self.carry_out(myself, steps).await;
            self.ping_later(myself);
        }
    }

    /// Answers the parents that wait, if the work has ended.
    pub(super) async fn answer_task(&mut self) {
        if !self.tasks.own.is_awaited() {
            return;
        }
        match outcome_of(self.journal.directory.clone()).await {
            Ok(outcome) if outcome.end.is_some() => self.send_outcome(&outcome),
            Ok(_) => {}
            Err(why) => {
                tracing::error!(session = %self.spec.id, why, "its work cannot be read");
                self.tasks.own.cannot_be_read();
            }
        }
    }

    /// Answers the parents that wait, if the session has failed so that its turn gets no end.
    pub(super) async fn fail_task(&mut self) {
        if let (true, Some(why)) = (self.tasks.own.is_awaited(), self.degraded()) {
            let read = outcome_of(self.journal.directory.clone()).await;
            let mut outcome = read.unwrap_or_default();
            outcome.failure = Some(why);
            self.send_outcome(&outcome);
        }
    }

    /// The session ends: parents that wait get the work so far.
    pub(super) async fn end_task(&mut self) {
        if self.tasks.own.is_awaited()
            && let Ok(outcome) = outcome_of(self.journal.directory.clone()).await
        {
            self.send_outcome(&outcome);
        }
    }

    fn send_outcome(&mut self, outcome: &TaskOutcome) {
        for waiting in self.tasks.own.ended() {
            let _ = waiting.send(outcome.clone());
        }
    }

    /// The parent has these rights now. Calls that start later have them.
    fn bound_by_parent(&mut self, bounds: TaskBounds) {
        if self.spec.set_parent_bounds(bounds) {
            self.discard_reserve();
            let text = self.spec.setup.system.clone();
            self.send_conversation(ToSession::System { text });
            self.send_mode();
        }
    }

    /// Passes a question, and its end, to the session that waits for this one.
    pub(super) fn tell_parent(&self, event: &ClientEvent) {
        let Some(parent) = self.tasks.own.parent() else { return };
        let agent = self.spec.task().map_or("", |task| task.agent.as_str());
        if let Some(message) = for_parent(event, &self.spec.id, agent) {
            let _ = parent.send_message(message.into());
        }
    }

    /// Tells a client that its answer does not count: a client of this session, or of its parent's.
    pub(super) fn reject(&self, client: &ActorRef<ClientMsg>, call: &CallId, reason: &str) {
        let (client, call, reason) = (client.clone(), call.clone(), reason.to_owned());
        match self.tasks.own.parent() {
            Some(parent) if !self.clients.has(&client) => {
                let message = TaskToSession::Rejected { client, call, reason };
                let _ = parent.send_message(message.into());
            }
            Some(_) | None => self.show_to(&client, ClientEvent::AnswerRejected { call, reason }),
        }
    }
}

/// The message about a question, or about its end, to the parent of this sub-agent's session.
fn for_parent(event: &ClientEvent, session: &SessionId, agent: &str) -> Option<TaskToSession> {
    if let ClientEvent::Asked { question } = event {
        let mut question = question.clone();
        if question.call.session == *session {
            let reason = question.reason;
            question.reason = format!("sub-agent {agent}, session {session}: {reason}");
        }
        Some(TaskToSession::Asks(Box::new(question)))
    } else if let ClientEvent::Decided { call, allowed, basis } = event {
        let (call, basis) = (call.clone(), basis.clone());
        Some(TaskToSession::Settled { call, allowed: *allowed, basis })
    } else if let ClientEvent::CallEnded { call, .. } = event {
        let (call, basis) = (call.clone(), ENDED.to_owned());
        Some(TaskToSession::Settled { call, allowed: false, basis })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::judgement::Ask;

    fn asked_in(session: &SessionId) -> ClientEvent {
        let question = Question {
            call: CallId { session: session.clone(), number: 3 },
            tool: "bash".into(),
            input: "{}".into(),
            preview: String::new(),
            confinement: String::new(),
            reason: "no rule allows it".into(),
            widens: Vec::new(),
            ask: Ask::Call { rules: Vec::new() },
            deadline: 1000,
            digest: "d".into(),
        };
        ClientEvent::Asked { question }
    }

    #[test]
    fn a_question_names_the_sub_agent_that_asks_once_however_far_it_goes_up() {
        let own = SessionId("0123456789ab-1".into());
        let below = SessionId("0123456789ab-1-2".into());
        let reason = |asks: Option<TaskToSession>| match asks {
            Some(TaskToSession::Asks(question)) => question.reason,
            _ => String::new(),
        };
        let own_reason = "sub-agent reader, session 0123456789ab-1: no rule allows it";
        assert_eq!(reason(for_parent(&asked_in(&own), &own, "reader")), own_reason);
        assert_eq!(reason(for_parent(&asked_in(&below), &own, "reader")), "no rule allows it");
    }

    #[test]
    fn the_parent_hears_of_questions_and_their_ends_alone() {
        let own = SessionId("0123456789ab-1".into());
        let call = CallId { session: own.clone(), number: 3 };
        let decided = ClientEvent::Decided { call, allowed: true, basis: "a rule".into() };
        let settled = for_parent(&decided, &own, "reader");
        assert!(matches!(settled, Some(TaskToSession::Settled { allowed: true, .. })));
        let notice = ClientEvent::Notice { text: "the disk is full".into() };
        assert!(for_parent(&notice, &own, "reader").is_none());
    }
}
