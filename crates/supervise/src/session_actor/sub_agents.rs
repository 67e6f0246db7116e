//! Sub-agents, and the work of a sub-agent's session: the flows that span the session. `tasks` starts and ends
//! sub-agents and speaks to the parent.
//!
//! Questions of sub-agents are shown to the clients of the session that waits for the sub-agent, answered there,
//! and judged where they were asked. Each level passes them on to the next.

use super::fleet;
use super::joins::opened_message;
use super::new_setting::{SettingStep, bind_by_parent};
use super::services::Service;
use super::state::SessionActorState;
use super::tasks::start::{TaskStart, outcome_of};
use super::tasks::{ENDED, TaskHost, ask_bounds};
use crate::messages::{OpenRequest, TaskOrder, TaskToSession};
use crate::route::Router;
use call::{CallInput, CallRemarks, Executor};
use journal::JournalRecord;
use protocol::client::ClientEvent;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::Question;
use protocol::session::{ConversationSetting, ToSession};
use setup::session_spec::session_of;
use tool_specs::TaskRequest;

impl SessionActorState {
    pub(super) async fn on_task_msg(&mut self, message: TaskToSession) {
        match message {
            TaskToSession::Start { call, request } => {
                let input = self.start_task(call, &request).await;
                input
                    .into_iter()
                    .for_each(|input| self.calls.running.send(&self.call_id(call), input));
            }
            TaskToSession::Opened { call, session } => {
                let opened = self.sub_agents.opened(call, session);
                opened.into_iter().for_each(|text| self.events.show_output(call, text));
            }
            TaskToSession::Waits(call) => {
                self.events.show_output(call, self.sub_agents.waits(call));
            }
            TaskToSession::Ended { call, result, left } => {
                if let Some(record) = self.calls.tampered.add(left) {
                    // A failure closes the session, and nothing runs.
                    let _ = self.events.record(vec![record], &mut self.calls.running).await;
                }
                self.calls.running.send(&self.call_id(call), CallInput::TaskEnded(result));
            }
            TaskToSession::Stop(call) => self.sub_agents.stop(call),
            TaskToSession::Asks(question) => {
                self.questions.put_of_task(Question::clone(&question));
                self.events.show(&ClientEvent::Asked { question: *question });
            }
            TaskToSession::Settled { call, allowed, basis } => {
                self.on_task_settled(call, allowed, basis);
            }
            TaskToSession::Calls(begun) => {
                if let Some(number) = self.sub_agents.call_of(&begun.id.session) {
                    self.events.show_agent_call(number, begun);
                }
            }
            TaskToSession::Rejected { client, call, reason } => {
                self.events.reject(&client, &call, &reason);
            }
            TaskToSession::BoundsFor(child) => {
                let (parent, bounds) = (self.spec.id().clone(), Box::new(self.spec.task_bounds()));
                let _ = child.send_message(TaskToSession::ParentBounds { parent, bounds }.into());
            }
            TaskToSession::ParentBounds { parent, bounds } => {
                if self.spec.task().is_some_and(|task| task.session == parent.0) {
                    let steps = bind_by_parent(&mut self.spec, *bounds);
                    self.carry_out_settings(steps);
                }
            }
        }
    }

    pub(super) fn call_id(&self, number: u32) -> CallId {
        CallId { session: self.spec.id().clone(), number }
    }

    /// Starts a sub-agent. Returns the input for its call, if that may go on or has ended.
    async fn start_task(&mut self, call: u32, request: &TaskRequest) -> Option<CallInput> {
        let host = TaskHost {
            spec: &self.spec,
            events: &mut self.events,
            running: &mut self.calls.running,
            passed_fds: self.workers.provider.passed_fds(),
            resources: &self.resources,
            own: &self.own,
            root: &self.root,
        };
        match self.sub_agents.start(call, request, host).await {
            Ok(()) => {
                let start = TaskStart::of(&self.spec, self.events.directory(), call);
                let in_background = start.is_for_background(request, &self.calls.services);
                in_background.then_some(CallInput::Detach)
            }
            Err(result) => Some(CallInput::TaskEnded(result)),
        }
    }

    /// Starts the calls that an earlier supervisor left. Each is judged again and finds the session that works
    /// for it. The conversation has the result that it runs, and is told its end.
    pub(super) async fn wait_for_left_tasks(&mut self) {
        for call in self.sub_agents.take_left() {
            let (number, service) = (call.id.number, Service::left(&call));
            let (place, remarks) = (self.turn.router.place(), CallRemarks::default());
            self.start_call(call, place, Executor::Runner, remarks).await;
            self.calls.services.begins(number, service);
        }
    }

    /// The record of what a call's sub-agent used.
    pub(super) async fn task_spent(&mut self, call: u32) -> Option<JournalRecord> {
        if !self.sub_agents.ends(call) {
            return None;
        }
        let child = session_of(self.spec.id(), call);
        for question in self.questions.below(&child) {
            self.on_task_settled(question, false, ENDED.to_owned());
        }
        let sessions = self.events.directory().parent()?;
        let totals = outcome_of(sessions.join(&child.0)).await.ok()?.totals();
        self.spec.count_use(&totals.used);
        Some(totals.spent(call, child.0))
    }

    /// The conversation counts the use of sub-agents.
    pub(super) fn send_bounds(&self) {
        let bounds = ConversationSetting::Bounds(self.spec.setup().max_session);
        self.workers.conversation.send(ToSession::Setting(bounds));
    }

    /// The supervisor actor knows this session from now on, so changes of its parent reach it, and its
    /// changes reach its sub-agents. They exchange what changed before.
    pub(super) fn exchange_bounds(&mut self) {
        self.carry_out_settings(vec![SettingStep::BindTasks]);
        if let Some(task) = self.spec.task() {
            ask_bounds(SessionId(task.session.clone()), self.own.clone(), &self.root);
        }
    }

    /// A question of a sub-agent is open no more, in whose session it was judged.
    fn on_task_settled(&mut self, call: CallId, allowed: bool, basis: String) {
        if self.questions.close_of_task(&call) {
            self.events.show(&ClientEvent::Decided { call, allowed, basis });
        }
    }

    /// The session of a sub-agent is open for its parent, which waits for its work: it begins, goes on, or is done.
    pub(super) async fn join_task(&mut self, request: OpenRequest, task: TaskOrder) {
        let steps = bind_by_parent(&mut self.spec, task.bounds);
        self.carry_out_settings(steps);
        let present = (self.calls.cages.tier(), self.events.last_seq());
        let message = opened_message(&self.spec, present, &request.opening);
        if request.reply.send(Ok((self.own.clone(), message))).is_ok() {
            if let Some(lease) = task.lease {
                fleet::watch(self.own.clone(), lease.clone());
                self.calls.running.work_under(lease);
            }
            self.events.own_task.begin(task.parent, task.done, self.questions.shown()).await;
            if !self.turn.router.turn_is_open() {
                self.events.fail_work().await;
            }
            if self.events.own_task.is_awaited() {
                self.begin_work().await;
            }
            return;
        }
        // Its call was stopped meanwhile: nothing begins, and nothing goes on.
        if !self.events.clients.any_attached() && !self.events.clients.any_expected() {
            self.route(Router::interrupt).await;
        }
        self.retire_if_unused();
    }

    /// The first turn of a sub-agent's session is the work that its parent waits for, also where a person
    /// types into it before.
    pub(super) async fn begin_work(&mut self) {
        let Some(task) = self.spec.task() else { return };
        if self.turn.router.turns() == 0
            && !self.turn.router.is_busy()
            && !self.closing.holds_turns()
        {
            self.begin_turn(task.prompt.clone()).await;
        }
    }
}
