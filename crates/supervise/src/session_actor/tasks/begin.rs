//! Starts the sub-agents of a session, ends them with it, and passes answers on to them.

use super::run::{NewTask, TaskPlace, finish, run};
use super::start::{FinishedTask, passed_on};
use super::{SubAgents, refused};
use crate::fleet_seat::FleetLease;
use crate::git_worktree::WorktreeKeeper;
use crate::messages::{ClientToSession, GivenAnswer, RootMsg, RootToSession, SessionMsg};
use journal::TaskHeader;
use launch::protected_restore::ProtectedCopies;
use launch::session_lock::SessionLock;
use launch::spawner::Spawner;
use protocol::call::ToolResult;
use protocol::client::SessionEnding;
use protocol::ids::{CallId, SessionId};
use protocol::provider::PassedFd;
use ractor::ActorRef;
use setup::session_spec::{SessionSpec, TaskShare, session_of};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;

/// The session that starts a sub-agent.
pub(in crate::session_actor) struct TaskHost<'a> {
    pub(in crate::session_actor) spec: &'a SessionSpec,
    /// Its journal.
    pub(in crate::session_actor) directory: &'a Path,
    /// The descriptors that clients passed.
    pub(in crate::session_actor) passed_fds: &'a [(PassedFd, OwnedFd)],
    pub(in crate::session_actor) spawner: &'a Spawner,
    pub(in crate::session_actor) lock: &'a SessionLock,
    /// The time until the Hello of a process.
    pub(in crate::session_actor) hello: Duration,
    pub(in crate::session_actor) lease: Option<&'a FleetLease>,
    pub(in crate::session_actor) own: &'a ActorRef<SessionMsg>,
    pub(in crate::session_actor) root: &'a ActorRef<RootMsg>,
}

/// The work of a sub-agent for a call.
pub(in crate::session_actor) enum TaskWork {
    /// It was done in another run of the session.
    Finished(FinishedTask),
    /// It begins or goes on, with this first record.
    Begins(TaskHeader),
}

impl TaskHost<'_> {
    fn place(&self, call: u32) -> Option<TaskPlace> {
        let io = (self.spawner.clone(), self.lock.clone(), ProtectedCopies::of(self.directory));
        let id = CallId { session: self.spec.id.clone(), number: call };
        Some(TaskPlace {
            worktrees: WorktreeKeeper::new(id, self.spec, io, self.hello),
            call,
            child: session_of(&self.spec.id, call),
            sessions: self.directory.parent().map(Path::to_owned)?,
            parent: self.own.clone(),
        })
    }
}

impl SubAgents<ActorRef<SessionMsg>, oneshot::Sender<()>> {
    /// Starts a sub-agent, or goes on with it. If its work is done, its worktree is looked at where that was not done.
    ///
    /// # Errors
    /// The result of the call: it cannot start, or there is nothing to wait for.
    pub(in crate::session_actor) fn start(
        &mut self,
        call: u32,
        work: TaskWork,
        host: &TaskHost<'_>,
    ) -> Result<(), ToolResult> {
        match work {
            TaskWork::Finished(finished) => self.finish(call, finished, host),
            TaskWork::Begins(header) => self.go_on(call, header, host),
        }
    }

    fn finish(
        &mut self,
        call: u32,
        finished: FinishedTask,
        host: &TaskHost<'_>,
    ) -> Result<(), ToolResult> {
        let FinishedTask { agent, result, unchecked } = finished;
        let Some((header, of)) = unchecked.zip(host.place(call)) else {
            self.has_finished(call, agent, None);
            return Err(result);
        };
        let (stop, stopped) = oneshot::channel();
        self.has_finished(call, agent, Some(stop));
        tokio::spawn(finish(of, header, result, stopped));
        Ok(())
    }

    fn go_on(
        &mut self,
        call: u32,
        header: TaskHeader,
        host: &TaskHost<'_>,
    ) -> Result<(), ToolResult> {
        let Some(of) = host.place(call) else {
            return Err(refused("no_place", "its journal has no directory".to_owned()));
        };
        let passed_fds = passed_on(host.passed_fds)?;
        let (agent, share) = (header.agent.clone(), TaskShare::recorded(header.limits));
        let task = NewTask {
            of,
            opening: host.spec.task_opening(&header),
            header,
            bounds: host.spec.task_bounds(),
            lease: host.lease.cloned(),
            passed_fds,
            max_chars: host.spec.config.tools.max_result_chars,
        };
        let (stop, stopped) = oneshot::channel();
        self.begins(call, agent, share, stop);
        tokio::spawn(run(task, host.root.clone(), stopped));
        Ok(())
    }

    /// The sessions of sub-agents end with this one.
    pub(in crate::session_actor) fn close(&self, ending: SessionEnding) {
        for session in self.sessions() {
            let _ = session.send_message(RootToSession::Close(ending, oneshot::channel().0).into());
        }
    }

    /// Passes an answer on to the sub-agent that asked, somewhere below the session `own`.
    ///
    /// # Errors
    /// The answer, if that sub-agent does not run.
    pub(in crate::session_actor) fn pass_on(
        &self,
        answer: GivenAnswer,
        own: &SessionId,
    ) -> Result<(), Box<GivenAnswer>> {
        match self.way_to(&answer.call.session, own) {
            Some(session) => {
                let _ = session.send_message(ClientToSession::Answer(answer).into());
                Ok(())
            }
            None => Err(Box::new(answer)),
        }
    }
}
