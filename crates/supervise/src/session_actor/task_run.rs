//! Opens the session of a sub-agent and waits for its work, beside the actor of its parent. The end of the
//! parent stops it, and so does the end of its call.

use crate::git_worktree::{self, WorktreeKeeper};
use crate::messages::{
    ClientToSession, OpenRequest, RootMsg, RootToSession, SessionMsg, TaskOrder, TaskToSession,
};
use crate::open_failure::OpenFailure;
use crate::session_spec::TaskBounds;
use crate::task_outcome::TaskOutcome;
use journal::TaskHeader;
use protocol::call::{Outcome, ToolResult};
use protocol::client::{RequestFailure, SessionEnding, SessionRequest, ToClient};
use protocol::ids::SessionId;
use protocol::provider::PassedFd;
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time between two attempts to open a session that another process uses.
const BETWEEN: Duration = Duration::from_millis(500);
/// How long a sub-agent that is stopped may take to end its turn, and then its session. Its calls take up
/// to 5 s, its workers 3 s each.
const STOPPING: Duration = Duration::from_secs(15);

/// How long the session of a sub-agent may take to end after its work, before its worktree is kept.
const LEAVING: Duration = Duration::from_secs(10);

/// A sub-agent's session to open.
pub(super) struct NewTask {
    pub(super) call: u32,
    pub(super) child: SessionId,
    pub(super) header: TaskHeader,
    pub(super) worktrees: WorktreeKeeper,
    pub(super) bounds: TaskBounds,
    pub(super) opening: SessionRequest,
    pub(super) passed_fds: Vec<(PassedFd, OwnedFd)>,
    pub(super) parent: ActorRef<SessionMsg>,
    pub(super) max_chars: u32,
}

/// Runs the task until its end, or until the other end of `stop` is dropped.
pub(super) async fn run(task: NewTask, root: ActorRef<RootMsg>, mut stop: oneshot::Receiver<()>) {
    let result = work(&task, &root, &mut stop).await;
    let _ = task.parent.send_message(TaskToSession::Ended { call: task.call, result }.into());
}

async fn work(
    task: &NewTask,
    root: &ActorRef<RootMsg>,
    stop: &mut oneshot::Receiver<()>,
) -> ToolResult {
    let header = match prepared(task).await {
        Ok(header) => header,
        Err(why) => return not_begun(&format!("its git worktree could not be made: {why}")),
    };
    let worktree = header.worktree.as_ref();
    // A session that opens after this gave up finds that out, and does nothing.
    let opened = tokio::select! {
        biased;
        _ = &mut *stop => Err(failed(Outcome::Interrupted, "interrupted", STOPPED)),
        opened = open(task, &header, root) => opened.map_err(|failure| not_begun(&failure.message)),
    };
    let (session, mut outcome) = match opened {
        Ok(opened) => opened,
        Err(result) => {
            if let Some(worktree) = worktree {
                task.worktrees.finish(worktree).await;
            }
            return result;
        }
    };
    let opened = TaskToSession::Opened { call: task.call, session: session.clone() };
    let _ = task.parent.send_message(opened.into());
    let outcome = tokio::select! {
        outcome = &mut outcome => outcome.ok(),
        _ = stop => stop_session(&session, &mut outcome, STOPPING).await,
    };
    let mut result = match outcome {
        Some(outcome) => outcome.result(&header.agent, &task.child.0, task.max_chars),
        None => {
            let child = &task.child;
            let text = format!(
                "the sub-agent did not finish: session {child} failed; its records are on disk"
            );
            failed(Outcome::Crashed, "unfinished", &text)
        }
    };
    if let Some(worktree) = worktree {
        // It is removed only once no session uses it.
        let changes = match session.wait(Some(LEAVING)).await {
            Ok(()) => task.worktrees.finish(worktree).await,
            Err(_) => git_worktree::left(&header).unwrap_or_default(),
        };
        result.text = format!("{}\n{changes}", result.text);
    }
    result
}

const STOPPED: &str = "the sub-agent was stopped before it began";

fn failed(outcome: Outcome, code: &str, text: &str) -> ToolResult {
    ToolResult::error(outcome, code, "task", text, "")
}

fn not_begun(why: &str) -> ToolResult {
    failed(Outcome::Failed, "not_begun", &format!("the sub-agent could not begin: {why}"))
}

/// The first record of the session, after its worktree was made.
async fn prepared(task: &NewTask) -> Result<TaskHeader, String> {
    let mut header = task.header.clone();
    if let Some(worktree) = header.worktree.as_mut().filter(|worktree| worktree.base.is_empty()) {
        worktree.base = task.worktrees.make(worktree).await?;
    }
    Ok(header)
}

/// Interrupts the session. One whose turn does not end in time is ended.
async fn stop_session(
    session: &ActorRef<SessionMsg>,
    outcome: &mut oneshot::Receiver<TaskOutcome>,
    patience: Duration,
) -> Option<TaskOutcome> {
    let _ = session.send_message(ClientToSession::Interrupt.into());
    if let Ok(outcome) = timeout(patience, &mut *outcome).await {
        return outcome.ok();
    }
    let end = RootToSession::Close(SessionEnding::Kill, oneshot::channel().0);
    let _ = session.send_message(end.into());
    timeout(patience, outcome).await.ok().and_then(Result::ok)
}

type OpenTask = (ActorRef<SessionMsg>, oneshot::Receiver<TaskOutcome>);

/// Opens the session. One that another process uses is waited for: its work there counts.
async fn open(
    task: &NewTask,
    header: &TaskHeader,
    root: &ActorRef<RootMsg>,
) -> Result<OpenTask, OpenFailure> {
    let mut waits = false;
    loop {
        match open_once(task, header, root).await {
            Err(OpenFailure { kind: RequestFailure::Held, .. }) => {
                if !std::mem::replace(&mut waits, true) {
                    let _ = task.parent.send_message(TaskToSession::Waits(task.call).into());
                }
                tokio::time::sleep(BETWEEN).await;
            }
            opened => return opened,
        }
    }
}

async fn open_once(
    task: &NewTask,
    header: &TaskHeader,
    root: &ActorRef<RootMsg>,
) -> Result<OpenTask, OpenFailure> {
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
            header: Box::new(header.clone()),
            bounds: task.bounds.clone(),
            parent: task.parent.clone(),
            done,
        }),
    };
    let _ = root.send_message(RootMsg::Open(Box::new(order)));
    let opened = opened.await.map_err(|_| internal("the supervisor is ending".to_owned()))?;
    let (session, _): (_, ToClient) = opened?;
    Ok((session, outcome))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ractor::{Actor, ActorProcessingErr};
    use tokio::sync::mpsc;

    /// A session that does nothing of what it is told, and notes it.
    struct Deaf;

    impl Actor for Deaf {
        type Msg = SessionMsg;
        type State = mpsc::UnboundedSender<&'static str>;
        type Arguments = Self::State;

        async fn pre_start(
            &self,
            _: ActorRef<SessionMsg>,
            told: Self::Arguments,
        ) -> Result<Self::State, ActorProcessingErr> {
            Ok(told)
        }

        async fn handle(
            &self,
            _: ActorRef<SessionMsg>,
            message: SessionMsg,
            told: &mut Self::State,
        ) -> Result<(), ActorProcessingErr> {
            let interrupt = matches!(message, SessionMsg::Client(ClientToSession::Interrupt));
            told.send(if interrupt { "interrupt" } else { "close" }).unwrap();
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_sub_agent_that_does_not_stop_is_ended_and_not_waited_for_without_end() {
        let (told, mut heard) = mpsc::unbounded_channel();
        let (session, _) = Actor::spawn(None, Deaf, told).await.unwrap();
        let (_done, mut outcome) = oneshot::channel();
        let patience = Duration::from_millis(50);
        assert_eq!(stop_session(&session, &mut outcome, patience).await, None);
        assert_eq!(heard.recv().await, Some("interrupt"));
        assert_eq!(heard.recv().await, Some("close"));
        // The control: one that stops answers.
        let (done, mut outcome) = oneshot::channel();
        done.send(TaskOutcome::default()).unwrap();
        let stopped = stop_session(&session, &mut outcome, STOPPING).await;
        assert_eq!(stopped, Some(TaskOutcome::default()));
        session.stop(None);
    }
}
