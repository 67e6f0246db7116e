//! Git in the cage of a command of a call's session, without network: for the worktree of a sub-agent.

use crate::errand::{Errand, ErrandFailure};
use crate::grant::Grant;
use crate::protected_restore::{ProtectedCopies, ProtectedRestorer, unrestored_unknown};
use crate::runner::{RunnerNews, RunnerStart};
use crate::session_lock::SessionLock;
use crate::spawner::Spawner;
use protocol::call::{Outcome, TamperRemedy, TamperedFile};
use protocol::confinement::Confinement;
use protocol::ids::{CallId, Generation};
use protocol::judgement::RuleSet;
use protocol::tool::{FromCall, Handover, OutputStream, RunnerJob};
use serde_json::json;
use std::time::Duration;
use tool_specs::RunnerProgram;

/// Longest time for the checkout of a large repository.
const LIMIT: Duration = Duration::from_secs(300);
/// How long git may take beyond that: its runner counts the limit too, and puts protected files right.
const MARGIN: Duration = Duration::from_secs(30);
/// How long a runner may take to end after its report.
const END: Duration = Duration::from_secs(5);
/// Said where a process of git waits for a disk that does not answer.
const UNKILLABLE: &str = "a process of git cannot be killed";
/// Most characters of an error.
const MOST_CHARS: usize = 4000;

/// Where and for which call git runs.
pub struct GitCage {
    /// The call of the sub-agent.
    pub call: CallId,
    /// That of its session.
    pub confinement: Confinement,
    /// The environment of git.
    pub env: Vec<(String, String)>,
    /// Starts its process.
    pub spawner: Spawner,
    /// The session's lock, which the process shares.
    pub lock: SessionLock,
    /// For the protected files that git may change.
    pub copies: ProtectedCopies,
    /// How long the process may take to say hello.
    pub hello: Duration,
}

/// The end of a script.
pub struct GitReport {
    /// Its output, or the reason for its failure.
    pub result: Result<String, String>,
    /// Protected files that git changed, and the remedy for each.
    pub tampered: Vec<TamperedFile>,
}

impl GitCage {
    /// Runs a script of the shell until its end, or until `stop`.
    ///
    /// # Errors
    /// Why nothing was started.
    pub async fn run(
        &self,
        script: String,
        stop: impl Future<Output = ()>,
    ) -> Result<GitReport, String> {
        let grant = Grant::worktree(&self.call, &self.confinement);
        let job = RunnerJob::Run {
            tool: "bash".to_owned(),
            input: json!({ "command": script }).to_string(),
            judged: Vec::new(),
            env: self.env.clone(),
            timeout_ms: u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX),
            max_result_chars: 8000,
            denied_reads: RuleSet::empty(),
        };
        let go = grant.go(&self.call, job).map_err(|error| error.to_string())?;
        let (copies, number) = (self.copies.clone(), self.call.number);
        let cage = grant.confinement().clone();
        let saved = tokio::task::spawn_blocking(move || copies.begin(number, &cage)).await;
        let saved = saved.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let cage = grant.confinement().clone();
        let start = RunnerStart {
            spawner: &self.spawner,
            program: RunnerProgram::Tool,
            grant,
            hello: self.hello,
            lock: Some(&self.lock),
            handed: vec![(Handover::Protected, saved)],
            turn: None,
            generation: Generation(0),
            about: self.call.to_string(),
        };
        let errand = Errand { start, go: Some(go), who: "git", limit: LIMIT + MARGIN, end: END };
        let mut printed = Printed::default();
        let answered = errand.run(stop, |news| {
            if let RunnerNews::Call(said) = news { printed.hear(said).map(Ok) } else { None }
        });
        let mut report = match answered.await {
            Ok(report) => report,
            Err(ErrandFailure::Unkillable) => GitReport {
                result: Err(UNKILLABLE.to_owned()),
                tampered: vec![unrestored_unknown(UNKILLABLE)],
            },
            Err(ErrandFailure::TimedOut) => GitReport {
                result: Err(format!("git took longer than {} s", LIMIT.as_secs())),
                tampered: self.restore(&cage).await,
            },
            Err(ErrandFailure::Ended(why)) => {
                GitReport { result: Err(why), tampered: self.restore(&cage).await }
            }
        };
        // A death from here on finds nothing of git to put right.
        self.copies.remove(self.call.number);
        report.tampered.retain(|it| it.remedy != TamperRemedy::Granted);
        Ok(report)
    }

    async fn restore(&self, cage: &Confinement) -> Vec<TamperedFile> {
        let restorer = ProtectedRestorer {
            spawner: self.spawner.clone(),
            lock: self.lock.clone(),
            copies: self.copies.clone(),
            hello: self.hello,
        };
        restorer.restore(&self.call, cage).await
    }
}

/// What a script prints.
#[derive(Default)]
struct Printed {
    out: String,
    err: String,
}

impl Printed {
    /// Takes in what its process says; returns its end.
    fn hear(&mut self, said: FromCall) -> Option<GitReport> {
        match said {
            FromCall::Output { stream: OutputStream::Out, text } => self.out.push_str(&text),
            FromCall::Output { stream: OutputStream::Err, text } => self.err.push_str(&text),
            FromCall::Done(report) => {
                let is_done = report.result.outcome == Outcome::Exited { code: 0 };
                let result = match (is_done, self.err.trim()) {
                    (true, _) => Ok(std::mem::take(&mut self.out)),
                    (false, "") => Err(report.result.summary),
                    (false, err) => Err(err.chars().take(MOST_CHARS).collect()),
                };
                return Some(GitReport { result, tampered: report.tampered });
            }
            FromCall::Began
            | FromCall::Namespace(_)
            | FromCall::InBackground
            | FromCall::InputTaken(_)
            | FromCall::Server(_)
            | FromCall::PutRight(_) => {}
        }
        None
    }
}
