//! The start of a sub-agent: whether its call may start it, and the first record of its session, which is read
//! where that was begun before. Reads the session's settings and the journals; the session actor does the rest.

use super::refused;
use crate::session_actor::services::{Asker, Services};
use crate::task_outcome::TaskOutcome;
use config::is_model_alias;
use journal::TaskHeader;
use protocol::call::{Outcome, ToolResult};
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use protocol::provider::PassedFd;
use setup::agents::Workplace;
use setup::session_spec::{SessionSpec, TaskShare, session_of};
use setup::task_worktree;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tool_specs::TaskRequest;

/// A call of a session that wants a sub-agent.
#[derive(Clone, Copy)]
pub(in crate::session_actor) struct TaskStart<'a> {
    spec: &'a SessionSpec,
    /// The journal of the session.
    directory: &'a Path,
    call: u32,
}

/// The work of a sub-agent that did it for this call before, in another run of the session.
pub(in crate::session_actor) struct FinishedTask {
    pub(in crate::session_actor) agent: String,
    pub(in crate::session_actor) result: ToolResult,
    /// Its first record, where a death came before its worktree was looked at.
    pub(in crate::session_actor) unchecked: Option<TaskHeader>,
}

impl<'a> TaskStart<'a> {
    pub(in crate::session_actor) fn of(
        spec: &'a SessionSpec,
        directory: &'a Path,
        call: u32,
    ) -> Self {
        Self { spec, directory, call }
    }

    fn child(&self) -> SessionId {
        session_of(self.spec.id(), self.call)
    }

    fn child_directory(&self) -> Option<PathBuf> {
        self.directory.parent().map(|sessions| sessions.join(self.child().0))
    }

    /// Checks the work before the call is judged.
    pub(in crate::session_actor) fn check<A: Asker>(
        &self,
        request: &TaskRequest,
        services: &Services<A>,
    ) -> Result<(), ToolResult> {
        if self.child_directory().is_some_and(|it| it.is_dir() && journal::was_begun(&it)) {
            // It was begun before a crash.
            return Ok(());
        }
        let agents = self.spec.agents();
        if agents.agents.is_empty() {
            let text = "this session starts no sub-agents: the limit agents.depth is reached";
            return Err(refused("too_deep", text.to_owned()));
        }
        agents.find(request.agent.as_deref()).map_err(|why| {
            ToolResult::error(Outcome::Invalid, "invalid_arguments", "task", &why, "")
        })?;
        match self.is_for_background(request, services) {
            true => services.check_room("task"),
            false => Ok(()),
        }
    }

    /// The call or the agent's file wants it, or it went to the background under an earlier supervisor.
    pub(in crate::session_actor) fn is_for_background<A: Asker>(
        &self,
        request: &TaskRequest,
        services: &Services<A>,
    ) -> bool {
        let agent = self.spec.agents().find(request.agent.as_deref());
        request.background || agent.is_ok_and(|agent| agent.background) || services.has(self.call)
    }

    /// The first record of the sub-agent, which may have been begun before a crash, and a notice for people. A new
    /// one is one of so many possible ones beside those with these shares.
    pub(in crate::session_actor) async fn header(
        &self,
        request: &TaskRequest,
        given: &[TaskShare],
        possible: u32,
    ) -> Result<(TaskHeader, Option<String>), ToolResult> {
        let mut header = match self.begun().await {
            Some(header) => *header,
            None => self.new_header(request, given, possible).await?,
        };
        let notice = self.check_model(&mut header).await?;
        Ok((header, notice))
    }

    /// The first record of a sub-agent that was begun before a crash. Its bounds and its part of the budget
    /// stay as they are; its file does not matter any more.
    async fn begun(&self) -> Option<Box<TaskHeader>> {
        let directory = self.child_directory()?;
        let read = tokio::task::spawn_blocking(move || journal::header(&directory).ok()?.task);
        read.await.ok().flatten()
    }

    /// The work that it has finished. What changed since, as its file, does not matter any more.
    pub(in crate::session_actor) async fn finished(
        &self,
        request: &TaskRequest,
    ) -> Option<FinishedTask> {
        let child = self.child();
        let outcome = outcome_of(self.child_directory()?).await.ok()?;
        let outcome = Some(outcome).filter(|outcome| outcome.end.is_some())?;
        let header = self.begun().await;
        let own = header.as_ref().and_then(|task| task.worktree.as_ref());
        let own = own.filter(|it| task_worktree::is_own(it, &child));
        let awaits = own.is_some_and(|worktree| task_worktree::check_place(worktree).is_ok());
        let agent = request.agent.clone().unwrap_or_else(|| "general".to_owned());
        let mut result =
            outcome.result(&agent, &child.0, self.spec.config().tools.max_result_chars);
        let left = header.as_ref().filter(|_| !awaits).and_then(|task| task_worktree::left(task));
        if let Some(place) = left {
            result.text = format!("{}\n{place}", result.text);
        }
        let unchecked = header.filter(|_| awaits).map(|header| *header);
        Some(FinishedTask { agent, result, unchecked })
    }

    /// The first record of a new sub-agent, one of so many possible ones beside those with these shares.
    async fn new_header(
        &self,
        request: &TaskRequest,
        given: &[TaskShare],
        possible: u32,
    ) -> Result<TaskHeader, ToolResult> {
        let agent = self.spec.agents().find(request.agent.as_deref());
        let agent = agent.map_err(|why| refused("no_agent", why))?;
        if agent.workplace == Workplace::Worktree && self.spec.rules().mode == PermissionMode::Plan
        {
            let text = "mode plan changes nothing, and this agent works in a new git worktree";
            return Err(refused("plan", text.to_owned()));
        }
        if agent.workplace == Workplace::Worktree
            && self.spec.task().is_some_and(|it| it.worktree.is_some())
        {
            let text = "this session works in a git worktree of its own, and a sub-agent of it gets no other one";
            return Err(refused("in_worktree", text.to_owned()));
        }
        let share = self.share(given, possible).await.map_err(|why| refused("budget", why))?;
        let mut header = self.spec.task_header(agent, self.call, request, share);
        let (spec, skills) = (self.spec.clone(), agent.skills.clone());
        let texts = tokio::task::spawn_blocking(move || spec.skill_texts(&skills)).await;
        let texts = texts.unwrap_or_else(|error| Err(error.to_string()));
        header.instructions.push_str(&texts.map_err(|why| refused("skills", why))?);
        Ok(header)
    }

    /// Its part of the session's budget.
    async fn share(&self, given: &[TaskShare], possible: u32) -> Result<TaskShare, String> {
        let bounds = self.spec.setup().max_session;
        if bounds.calls.is_none() && bounds.cost.is_none() {
            return Ok(TaskShare { calls: None, cost: None });
        }
        let used = outcome_of(self.directory.to_owned()).await?.totals().used;
        TaskShare::of(bounds, used, given, possible).map_err(str::to_owned)
    }

    /// Checks that its model can be used. Returns a notice where it uses the session's model instead, because its
    /// file was written for another provider.
    async fn check_model(&self, header: &mut TaskHeader) -> Result<Option<String>, ToolResult> {
        let Some(name) = header.model.clone() else { return Ok(None) };
        let (spec, named) = (self.spec.clone(), name.clone());
        let checked = tokio::task::spawn_blocking(move || spec.with_model(&named).map(drop));
        let checked = checked.await.map_err(|error| error.to_string());
        match checked.and_then(|checked| checked.map_err(|it| it.message)) {
            Ok(()) => Ok(None),
            Err(why) if is_model_alias(&name) => {
                header.model = None;
                let (agent, now) = (&header.agent, &self.spec.setup().model);
                Ok(Some(format!("the sub-agent {agent} is for the model {now}: {why}")))
            }
            Err(why) => Err(refused("model", format!("the model of {}: {why}", header.agent))),
        }
    }
}

/// The descriptors that clients passed, for another session.
pub(in crate::session_actor) fn passed_on(
    passed: &[(PassedFd, OwnedFd)],
) -> Result<Vec<(PassedFd, OwnedFd)>, ToolResult> {
    // A recording has one place that it is read at: two sessions would take each other's answers.
    if passed.iter().any(|(kind, _)| *kind == PassedFd::Replay) {
        let text = "a session that plays a recording starts no sub-agents";
        return Err(refused("keys", text.to_owned()));
    }
    let passed = passed.iter().filter(|(kind, _)| *kind != PassedFd::Record);
    passed
        .map(|(kind, file)| file.try_clone().map(|file| (kind.clone(), file)))
        .collect::<Result<_, _>>()
        .map_err(|error| refused("keys", format!("its keys cannot be passed on: {error}")))
}

/// Reads the work of the session in this directory.
pub(in crate::session_actor) async fn outcome_of(
    directory: PathBuf,
) -> Result<TaskOutcome, String> {
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
