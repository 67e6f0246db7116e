//! The end of a task on this host: nothing of it runs any more, the database has all its records, and then its
//! result. `task_run` calls it.

use crate::answer::error_of;
use crate::claim::Claim;
use crate::daemon::DaemonConnection;
use crate::error::FleetError;
use crate::host::Host;
use crate::rest::{Left, append_rest};
use crate::restore;
use crate::run;
use crate::seat::{IN_ROWS, LAPSED, Stores, put_blob, store_snapshot};
use crate::workspace::place_of;
use journal::Digest;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Most characters of an error that the task's row keeps.
const REASON: usize = 1000;

impl Host {
    /// Gives the database all records of a session once nothing of it runs here.
    pub(crate) async fn append_rest(
        &self,
        claim: &Claim,
        left: &Left<'_>,
    ) -> Result<u64, FleetError> {
        restore::end_session(&self.dirs.state, &claim.session).await?;
        let stores = (Arc::clone(&self.database), self.objects.clone());
        let most = Duration::from_millis(self.times.lease_ms);
        append_rest(left, stores, &self.dirs.state.join("sessions"), most).await
    }

    /// The result of a run that ended.
    pub(crate) async fn result(
        &self,
        claim: &Claim,
        left: &Left<'_>,
        code: i32,
        answer: Value,
        last_seq: u64,
    ) -> Value {
        let mut result = json!({
            "answer": answer["result"], "exit_code": code, "epoch": claim.epoch,
            "cost_usd": answer["total_cost_usd"], "usage": answer["usage"], "turns": answer["num_turns"],
            "audit": left.audit.borrow().clone(), "run": answer,
        });
        if code != 0 {
            result["error"] = error_of(code, &answer).into();
        }
        let mut workspace = left.workspace.lock().await;
        let saved = async {
            let mut stored = Ok(());
            // A retry goes on from here.
            if let Some(taken) = workspace.snapshot().await? {
                let stores = Stores { database: &self.database, objects: self.objects.as_ref() };
                let place = (claim.session.as_str(), claim.lease.as_str());
                stored = store_snapshot(stores, place, last_seq, &taken).await;
                // The patch and the branch have the changes all the same.
                workspace.stored(taken.tree);
            }
            let patch = workspace.patch().await?;
            if patch.len() as u64 > IN_ROWS {
                let why =
                    format!("the patch has {} MiB; the branch has the changes", patch.len() >> 20);
                return Err(FleetError::Host(why));
            }
            if !patch.is_empty() {
                let digest = Digest::of(&patch);
                put_blob(&self.database, &claim.lease, digest, &patch).await?;
                result["patch"] = digest.to_string().into();
            }
            stored
        };
        if let Err(error) = saved.await {
            result["patch_error"] = error.to_string().into();
        }
        let branch = format!("agentd/{}/{}", claim.task, claim.epoch);
        match workspace.push(&branch, &format!("task {} of the fleet\n", claim.task)).await {
            Ok(None) => {}
            Ok(Some(commit)) => {
                (result["branch"], result["commit"]) = (branch.into(), commit.into())
            }
            Err(error) => result["branch_error"] = error.to_string().into(),
        }
        result
    }

    /// Waits for a request as long as a lease is long: it is lost then, and the request would be refused.
    pub(crate) async fn for_a_lease<T>(
        &self,
        request: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        let lease = Duration::from_millis(self.times.lease_ms);
        let answered = tokio::time::timeout(lease, request).await;
        answered.unwrap_or_else(|_| Err(FleetError::Host(LAPSED.to_owned())))
    }

    /// Ends what a task has here, and then the task.
    pub(crate) async fn end(&self, claim: &Claim, state: &str, reason: &str, result: &Value) {
        self.stop_session(&claim.session).await;
        self.finish(claim, state, reason, result).await;
    }

    /// Ends a task in the database. Nothing of it runs here.
    pub(crate) async fn finish(&self, claim: &Claim, state: &str, reason: &str, result: &Value) {
        let reason: String = reason.chars().take(REASON).collect();
        let (lease, result) = (&claim.lease, &result.to_string());
        let (reason, state) = (Some(&reason).filter(|reason| !reason.is_empty()), &state);
        let finished = self
            .for_a_lease(self.database.until_answered(|client| async move {
                let text = "select agentd.finish($1::text::uuid, $2, $3, $4::text::jsonb)";
                client.execute(text, &[lease, state, &reason, result]).await
            }))
            .await;
        if let Err(error) = &finished {
            tracing::warn!(task = claim.task, %error, "the end of a task is not recorded");
        }
        self.forget(claim);
    }

    /// Ends a session, which the daemon keeps for a while when it is idle.
    pub(crate) async fn stop_session(&self, session: &str) {
        let ended = match DaemonConnection::open(&self.dirs.runtime).await {
            Ok(mut daemon) => daemon.end(session).await,
            Err(error) => Err(error),
        };
        if ended.is_err() {
            // Another process has it, or none.
            let _ = run::agentd(&["stop", session]).await;
        }
    }

    pub(crate) async fn release(&self, claim: &Claim) {
        let lease = &claim.lease;
        let released = self
            .database
            .once(|client| async move {
                client.execute("select agentd.release($1::text::uuid)", &[lease]).await
            })
            .await;
        if let Err(error) = released {
            tracing::warn!(task = claim.task, %error, "a task is not given back; its lease runs out");
        }
        self.forget(claim);
    }

    /// Removes the workspace and the papers of a task. Its session stays on disk, to be read.
    fn forget(&self, claim: &Claim) {
        self.seats.remove(&claim.lease);
        self.cancelled.send_if_modified(|of| of.remove(&claim.session));
        let paper =
            self.dirs.state.join("fleet").join("seats").join(format!("{}.seat", claim.session));
        for file in [self.seat_file(&claim.session), paper] {
            let _ = std::fs::remove_file(file);
        }
        let _ = std::fs::remove_dir_all(place_of(&self.work, &claim.session));
    }
}
