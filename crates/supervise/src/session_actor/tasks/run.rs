//! Opens the session of a sub-agent and waits for its work, beside the actor of its parent. The end of the
//! parent stops it, and so does the end of its call.

use crate::fleet_seat::FleetLease;
use crate::git_worktree::WorktreeKeeper;
use crate::messages::{
    ClientToSession, OpenRequest, RootMsg, RootToSession, SessionMsg, TaskOrder, TaskToSession,
};
use crate::session_tree::{self, HeldSession};
use crate::task_outcome::TaskOutcome;
use call::tampered_in_words;
use journal::TaskHeader;
use launch::protected_restore;
use launch::session_lock::SessionLock;
use protocol::call::{Outcome, ToolResult};
use protocol::client::{RequestFailure, SessionEnding, SessionRequest, ToClient};
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use protocol::provider::PassedFd;
use ractor::ActorRef;
use setup::open_failure::OpenFailure;
use setup::session_spec::TaskBounds;
use setup::task_worktree;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// Time between two attempts to open a session that another process uses.
const BETWEEN: Duration = Duration::from_millis(500);
/// Attempts to hold a session that has ended.
const ATTEMPTS: u32 = 10;
/// How long a sub-agent that is stopped may take to end its turn, and then its session. Its calls take up
/// to 5 s, its workers 3 s each.
const STOPPING: Duration = Duration::from_secs(15);

/// How long the session of a sub-agent may take to end after its work, before its worktree is kept.
const LEAVING: Duration = Duration::from_secs(10);
/// How long git may still look at a worktree after the call was stopped.
const LOOKING: Duration = Duration::from_secs(5);
/// How long a run without a person waits for a session that another process uses.
const HELD: Duration = Duration::from_secs(60);

/// A sub-agent's session, and the call that it works for.
pub(super) struct TaskPlace {
    pub(super) call: u32,
    pub(super) child: SessionId,
    /// Where the sessions lie.
    pub(super) sessions: PathBuf,
    pub(super) worktrees: WorktreeKeeper,
    pub(super) parent: ActorRef<SessionMsg>,
}

/// A sub-agent's session to open.
pub(super) struct NewTask {
    pub(super) of: TaskPlace,
    pub(super) header: TaskHeader,
    pub(super) bounds: TaskBounds,
    pub(super) lease: Option<FleetLease>,
    pub(super) opening: SessionRequest,
    pub(super) passed_fds: Vec<(PassedFd, OwnedFd)>,
    pub(super) max_chars: u32,
}

/// The stop of a call: the other end is dropped.
struct StopSignal {
    receiver: oneshot::Receiver<()>,
    is_given: bool,
}

impl StopSignal {
    async fn given(&mut self) {
        if !self.is_given {
            let _ = (&mut self.receiver).await;
            self.is_given = true;
        }
    }
}

/// Runs the task until its end, or until the other end of `stop` is dropped.
pub(super) async fn run(mut task: NewTask, root: ActorRef<RootMsg>, stop: oneshot::Receiver<()>) {
    let mut stop = StopSignal { receiver: stop, is_given: false };
    let result = work(&mut task, &root, &mut stop).await;
    task.of.ended(result);
}

/// Looks at the worktree of a sub-agent whose work was done before a death, and gives its result.
pub(super) async fn finish(
    mut of: TaskPlace,
    header: TaskHeader,
    mut result: ToolResult,
    stop: oneshot::Receiver<()>,
) {
    let mut stop = StopSignal { receiver: stop, is_given: false };
    let changes = of.look_at_worktree(&header, None, &mut stop).await;
    append(&mut result, changes);
    of.ended(result);
}

impl TaskPlace {
    fn ended(self, mut result: ToolResult) {
        let tampered = self.worktrees.tampered;
        for changed in tampered_in_words(&tampered) {
            append(&mut result, Some(format!("[git for its worktree changed {changed}]")));
        }
        let left = protected_restore::unrestored(&tampered);
        let ended = TaskToSession::Ended { call: self.call, result, left };
        let _ = self.parent.send_message(ended.into());
    }

    /// What became of the sub-agent's own worktree. It is removed only while no session can use it, so a
    /// session that is open ends before.
    async fn look_at_worktree(
        &mut self,
        header: &TaskHeader,
        open: Option<&ActorRef<SessionMsg>>,
        stop: &mut StopSignal,
    ) -> Option<String> {
        // That of a sub-agent above it is not its matter.
        let worktree =
            header.worktree.as_ref().filter(|it| task_worktree::is_own(it, &self.child))?;
        let has_ended = match open {
            Some(session) => session.wait(Some(LEAVING)).await.is_ok(),
            None => true,
        };
        let held = if has_ended { hold(&self.sessions, &self.child).await } else { None };
        match &held {
            Some(_) => Some(self.worktrees.finish(worktree, looking(stop)).await),
            None => task_worktree::left(header),
        }
    }
}

async fn work(task: &mut NewTask, root: &ActorRef<RootMsg>, stop: &mut StopSignal) -> ToolResult {
    let (header, is_new) = match prepared(task, stop).await {
        Ok(prepared) => prepared,
        Err(why) => return not_begun(&format!("its git worktree could not be made: {why}")),
    };
    // That of a sub-agent above it is not its matter.
    let own = header.worktree.as_ref().filter(|it| task_worktree::is_own(it, &task.of.child));
    // A session that opens after this gave up finds that out, and does nothing.
    let opened = tokio::select! {
        biased;
        () = stop.given() => Err(failed(Outcome::NeverStarted, "interrupted", STOPPED)),
        opened = open(task, &header, root) => opened.map_err(|failure| not_begun(&failure.message)),
    };
    let (session, mut outcome) = match opened {
        Ok(opened) => opened,
        Err(mut result) => {
            let begun = task.of.sessions.join(&task.of.child.0).exists();
            match own {
                Some(worktree) if is_new && !begun => {
                    task.of.worktrees.finish(worktree, looking(stop)).await;
                }
                Some(_) => append(&mut result, task_worktree::left(&header)),
                None => {}
            }
            return result;
        }
    };
    let opened = TaskToSession::Opened { call: task.of.call, session: session.clone() };
    let _ = task.of.parent.send_message(opened.into());
    let outcome = tokio::select! {
        outcome = &mut outcome => outcome.ok(),
        () = stop.given() => stop_session(&session, &mut outcome, STOPPING).await,
    };
    let mut result = match outcome {
        Some(outcome) => outcome.result(&header.agent, &task.of.child.0, task.max_chars),
        None => {
            let child = &task.of.child;
            let text = format!(
                "the sub-agent did not finish: session {child} failed; its records are on disk"
            );
            failed(Outcome::Crashed, "unfinished", &text)
        }
    };
    let changes = task.of.look_at_worktree(&header, Some(&session), stop).await;
    append(&mut result, changes);
    result
}

fn append(result: &mut ToolResult, text: Option<String>) {
    if let Some(text) = text {
        result.text = format!("{}\n{text}", result.text);
    }
}

/// The time that git may take to look at a worktree.
async fn looking(stop: &mut StopSignal) {
    stop.given().await;
    tokio::time::sleep(LOOKING).await;
}

/// Holds the session and those below it. Their processes may end a moment after it.
async fn hold(sessions: &Path, child: &SessionId) -> Option<(Vec<HeldSession>, SessionLock)> {
    for _ in 0..ATTEMPTS {
        let (sessions, child) = (sessions.to_owned(), child.clone());
        let held = tokio::task::spawn_blocking(move || {
            let held = session_tree::hold(&sessions, &child).ok()?;
            Some((held, SessionLock::try_acquire(&sessions.join(&child.0)).ok()?))
        });
        if let Ok(Some(held)) = held.await {
            return Some(held);
        }
        tokio::time::sleep(BETWEEN).await;
    }
    None
}

const STOPPED: &str = "the sub-agent was stopped before it began";

fn failed(outcome: Outcome, code: &str, text: &str) -> ToolResult {
    ToolResult::error(outcome, code, "task", text, "")
}

fn not_begun(why: &str) -> ToolResult {
    failed(Outcome::Failed, "not_begun", &format!("the sub-agent could not begin: {why}"))
}

/// The first record of the session, after its worktree was made, and whether that is new.
async fn prepared(task: &mut NewTask, stop: &mut StopSignal) -> Result<(TaskHeader, bool), String> {
    let mut header = task.header.clone();
    let Some(worktree) = header.worktree.as_mut().filter(|worktree| worktree.base.is_empty())
    else {
        return Ok((header, false));
    };
    let made = task.of.worktrees.make(worktree, stop.given()).await?;
    worktree.base = made.base;
    Ok((header, made.is_new))
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

/// Opens the session. One that another process uses is waited for: its work there counts. A run without a
/// person gives up after a while.
async fn open(
    task: &NewTask,
    header: &TaskHeader,
    root: &ActorRef<RootMsg>,
) -> Result<OpenTask, OpenFailure> {
    let mut waits = false;
    let until = (task.opening.audience == Audience::NonInteractive).then(|| Instant::now() + HELD);
    loop {
        match open_once(task, header, root).await {
            Err(OpenFailure { kind: RequestFailure::Held, .. })
                if until.is_none_or(|until| Instant::now() < until) =>
            {
                if !std::mem::replace(&mut waits, true) {
                    let _ = task.of.parent.send_message(TaskToSession::Waits(task.of.call).into());
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
        client: task.of.parent.get_id(),
        reply,
        task: Some(TaskOrder {
            header: Box::new(header.clone()),
            bounds: task.bounds.clone(),
            lease: task.lease.clone(),
            parent: task.of.parent.clone(),
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
