//! The work of a sub-agent's session: begun for a call of its parent, bound by the parent's rights, answered
//! when it has ended. `tasks` is the side of the parent.

use super::state::SessionActorState;
use crate::messages::{OpenRequest, SessionMsg, TaskOrder};
use crate::task_outcome::TaskOutcome;
use protocol::client::ClientEvent;
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use protocol::session::ToSession;
use ractor::ActorRef;
use setup::session_spec::TaskBounds;
use std::path::{Path, PathBuf};
use tokio::sync::oneshot;

impl SessionActorState {
    /// The session of a sub-agent is open for its parent.
    pub(super) async fn join_task(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        request: OpenRequest,
        task: TaskOrder,
    ) {
        if self.spec.set_parent_bounds(task.bounds) {
            self.on_rights_changed();
        }
        let message = self.opened_message(&request.opening);
        if request.reply.send(Ok((self.own.clone(), message))).is_ok() {
            self.tasks.parent = Some(task.parent);
            if let Some(lease) = task.lease {
                self.work_under(lease);
            }
            for question in self.clients.questions.shown().cloned() {
                self.tell_parent(&ClientEvent::Asked { question });
            }
            return self.begin_task(myself, task.done).await;
        }
        // Its call was stopped meanwhile: nothing begins, and nothing goes on.
        if self.clients.attached.is_empty() && self.clients.expected.is_empty() {
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
        self.tasks.waiting.push(done);
        self.answer_task().await;
        if !self.turn.router.turn_is_open() {
            self.fail_task().await;
        }
        if !self.tasks.waiting.is_empty() {
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

    /// Answers the parents that wait, if the session has failed so that its turn gets no end.
    pub(super) async fn fail_task(&mut self) {
        if self.tasks.waiting.is_empty() {
            return;
        }
        let Some(why) = self.degraded() else { return };
        let read = outcome_of(self.journal.directory.clone()).await;
        let mut outcome = read.unwrap_or_default();
        outcome.failure = Some(why);
        self.send_outcome(&outcome);
    }

    /// The parent has these rights now, if the session is a sub-agent's.
    pub(super) fn on_parent_bounds(&mut self, parent: &SessionId, bounds: TaskBounds) {
        let is_parent = self.spec.task().is_some_and(|task| task.session == parent.0);
        if is_parent && self.spec.set_parent_bounds(bounds) {
            self.on_rights_changed();
        }
    }

    /// Calls that start later have the new rights.
    fn on_rights_changed(&mut self) {
        self.discard_reserve();
        let text = self.spec.setup.system.clone();
        self.send_conversation(ToSession::System { text });
        self.send_mode();
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
        self.tasks.parent = None;
        for waiting in self.tasks.waiting.drain(..) {
            let _ = waiting.send(outcome.clone());
        }
    }
}

/// Reads the work of the session in this directory.
pub(super) async fn outcome_of(directory: PathBuf) -> Result<TaskOutcome, String> {
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
