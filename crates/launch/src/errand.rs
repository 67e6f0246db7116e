//! A job that no actor waits for: started, heard to its answer, and ended with everything in its cage. For the
//! restoring of protected files, git for a worktree, and a session's certificate.

use crate::cage_cleanup::CageCleanup;
use crate::process::ExitCause;
use crate::runner::{Runner, RunnerEvent, RunnerNews, RunnerStart};
use protocol::tool::ToTool;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How a job is run.
pub(crate) struct Errand<'a> {
    pub(crate) start: RunnerStart<'a>,
    /// `Go` with the job, once the cage stands; a repair needs none.
    pub(crate) go: Option<ToTool>,
    /// The process in a sentence about its end.
    pub(crate) who: &'static str,
    /// The longest time up to its answer.
    pub(crate) limit: Duration,
    /// How long its process, which is killed then, may take to end.
    pub(crate) end: Duration,
}

/// Why a job has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ErrandFailure {
    /// It did not answer in time.
    TimedOut,
    /// Its process ended, or never started.
    Ended(String),
    /// The kernel cannot end a process of it, which may still be at work.
    Unkillable,
}

impl Errand<'_> {
    /// Runs it until `answer` has made one of its news, or `stop`. When this returns, its process and those of
    /// its cage have ended; where the kernel cannot end one, a job without an answer says so.
    pub(crate) async fn run<T>(
        self,
        stop: impl Future<Output = ()>,
        mut answer: impl FnMut(RunnerNews) -> Option<Result<T, String>>,
    ) -> Result<T, ErrandFailure> {
        let Self { start, go, who, limit, end } = self;
        let (sender, mut events) = mpsc::unbounded_channel();
        let started = Runner::start(start, move |event| drop(sender.send(event))).await;
        let mut runner = started.map_err(|error| ErrandFailure::Ended(error.to_string()))?;
        let mut cause = None;
        let work = async {
            while let Some(event) = events.recv().await {
                let answered = match runner.hear(event) {
                    RunnerNews::Caged(_) => {
                        go.iter().for_each(|go| runner.release(go));
                        None
                    }
                    RunnerNews::Uncaged { step, reason } => {
                        Some(Err(format!("{who} could not be confined ({step}: {reason})")))
                    }
                    RunnerNews::Lost(why) => Some(Err(why)),
                    RunnerNews::Unlisted(error) => Some(Err(error.to_string())),
                    RunnerNews::Overdue => Some(Err("its process did not get on".to_owned())),
                    RunnerNews::Ended(ended, _) => {
                        let why = format!("its process {ended}");
                        cause = Some(ended);
                        Some(Err(why))
                    }
                    news @ (RunnerNews::Nothing
                    | RunnerNews::Resting { .. }
                    | RunnerNews::Listener(_)
                    | RunnerNews::Namespace(..)
                    | RunnerNews::Call(_)
                    | RunnerNews::Probed(_)
                    | RunnerNews::Proxied { .. }
                    | RunnerNews::Repaired(_)
                    | RunnerNews::Certified(_)) => answer(news),
                };
                if let Some(answered) = answered {
                    return answered.map_err(ErrandFailure::Ended);
                }
            }
            Err(ErrandFailure::Ended("its process is gone".to_owned()))
        };
        let answered = tokio::select! {
            biased;
            () = stop => Err(ErrandFailure::Ended("it was interrupted".to_owned())),
            answered = timeout(limit, work) => answered.unwrap_or(Err(ErrandFailure::TimedOut)),
        };
        // One that has answered has nothing left to do.
        runner.kill();
        match (end_of(runner, cause, &mut events, end).await, answered) {
            (CageCleanup::Unkillable, Err(_)) => Err(ErrandFailure::Unkillable),
            (_, answered) => answered,
        }
    }
}

/// Waits until its processes have ended.
async fn end_of(
    mut runner: Runner,
    mut cause: Option<ExitCause>,
    events: &mut mpsc::UnboundedReceiver<RunnerEvent>,
    limit: Duration,
) -> CageCleanup {
    let dead = async {
        while cause.is_none() {
            let Some(event) = events.recv().await else { break };
            if let RunnerNews::Ended(ended, _) = runner.hear(event) {
                cause = Some(ended);
            }
        }
    };
    let _ = timeout(limit, dead).await;
    let Some(cause) = cause else { return CageCleanup::Unkillable };
    if let Some((_, emptied)) = runner.bury(cause) {
        return emptied;
    }
    while let Some(event) = events.recv().await {
        if let RunnerEvent::Buried(_, emptied) = event {
            return emptied;
        }
    }
    CageCleanup::Unkillable
}
