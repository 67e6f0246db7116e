//! Starts the sub-agents of a session, ends them with it, and passes answers on to them.

use super::run::{NewTask, TaskPlace, finish, run};
use super::start::{FinishedTask, TaskStart, passed_on};
use super::{SubAgents, refused};
use crate::git_worktree::WorktreeKeeper;
use crate::messages::{ClientToSession, GivenAnswer, RootMsg, RootToSession, SessionMsg};
use crate::session_actor::events::SessionEvents;
use crate::session_actor::resources::SessionResources;
use crate::session_actor::running_calls::RunningCalls;
use journal::TaskHeader;
use launch::protected_restore::ProtectedCopies;
use protocol::call::ToolResult;
use protocol::client::SessionEnding;
use protocol::ids::CallId;
use protocol::provider::PassedFd;
use ractor::ActorRef;
use setup::session_spec::{SessionSpec, TaskShare, session_of};
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::sync::oneshot;
use tool_specs::TaskRequest;

/// The session that starts a sub-agent.
pub(in crate::session_actor) struct TaskHost<'a> {
    pub(in crate::session_actor) spec: &'a SessionSpec,
    /// Its journal, and people who get notices.
    pub(in crate::session_actor) events: &'a mut SessionEvents,
    pub(in crate::session_actor) running: &'a mut RunningCalls,
    /// The descriptors that clients passed.
    pub(in crate::session_actor) passed_fds: &'a [(PassedFd, OwnedFd)],
    pub(in crate::session_actor) resources: &'a SessionResources,
    pub(in crate::session_actor) own: &'a ActorRef<SessionMsg>,
    pub(in crate::session_actor) root: &'a ActorRef<RootMsg>,
}

impl TaskHost<'_> {
    fn place(&self, call: u32) -> Option<TaskPlace> {
        let SessionResources { spawner, lock, times, .. } = self.resources;
        let directory = self.events.directory();
        let io = (spawner.clone(), lock.clone(), ProtectedCopies::of(directory));
        let id = CallId { session: self.spec.id().clone(), number: call };
        Some(TaskPlace {
            worktrees: WorktreeKeeper::new(id, self.spec, io, times.hello),
            call,
            child: session_of(self.spec.id(), call),
            sessions: directory.parent().map(Path::to_owned)?,
            parent: self.own.clone(),
        })
    }
}

impl SubAgents<ActorRef<SessionMsg>, oneshot::Sender<()>> {
    /// Starts a sub-agent, or goes on with it. If its work is done, its worktree is looked at where that was not done.
    ///
    /// # Errors
    /// The result of the call: it cannot start, or there is nothing to wait for.
    pub(in crate::session_actor) async fn start(
        &mut self,
        call: u32,
        request: &TaskRequest,
        host: TaskHost<'_>,
    ) -> Result<(), ToolResult> {
        let start = TaskStart::of(host.spec, host.events.directory(), call);
        if let Some(finished) = start.finished(request).await {
            return self.finish(call, finished, &host);
        }
        let possible = self.room(host.spec.config().budget.agents.at_once)?;
        // Its calls are on record here alone: another host has to know of the call that it works for.
        let copied = host.events.all_copied(host.running).await;
        copied.map_err(|why| refused("fleet", why))?;
        let start = TaskStart::of(host.spec, host.events.directory(), call);
        let (header, notice) = start.header(request, &self.shares(), possible).await?;
        notice.into_iter().for_each(|text| host.events.show_notice(text));
        self.go_on(call, header, &host)
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
            lease: host.running.lease().cloned(),
            passed_fds,
            max_chars: host.spec.config().tools.max_result_chars,
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

    /// Passes an answer on to the sub-agent that asked, somewhere below this session.
    ///
    /// # Errors
    /// The answer, if that sub-agent does not run.
    pub(in crate::session_actor) fn pass_on(
        &self,
        answer: GivenAnswer,
    ) -> Result<(), Box<GivenAnswer>> {
        match self.way_to(&answer.call.session) {
            Some(session) => {
                let _ = session.send_message(ClientToSession::Answer(answer).into());
                Ok(())
            }
            None => Err(Box::new(answer)),
        }
    }
}
