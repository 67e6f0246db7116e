//! One claimed task on this host: its workspace and its run of `agentd`.

use crate::answer::{RunEnd, answer_of, error_of};
use crate::claim::Claim;
use crate::daemon::DaemonConnection;
use crate::door;
use crate::error::FleetError;
use crate::host::Host;
use crate::private_file::write_private;
use crate::rest::Left;
use crate::restore::{self, Prepared};
use crate::run;
use crate::seat::{Appender, LAPSED, Lines, Seat, SeatState};
use crate::secret::secret;
use crate::task_flags::HostSettings;
use crate::workspace::{Workspace, is_shared_disk, place_of};
use fleet::{AfterRun, Onward, after_run};
use journal::RestoredSession;
use protocol::fleet::LeaseClock;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, watch};

/// How much later this process may hear of the end of its host than others of the host.
const MOMENT: Duration = Duration::from_secs(1);
/// Exit codes of a run that lost its daemon, or found the session in the hands of one that ends.
const LOST_DAEMON: [i32; 2] = [15, 75];
/// Pauses before the run is started again.
const RUNS_AGAIN: [Duration; 6] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// A seat, and the lines that its supervisor will send.
pub(crate) type Seated = (Arc<Seat>, mpsc::UnboundedReceiver<Lines>);

/// A claim whose run may have begun, as a file keeps it: a worker that starts again goes on with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) claim: Claim,
    pub(crate) token: String,
    prompt: String,
    restored: Option<RestoredSession>,
}

impl Host {
    pub(crate) fn seat_file(&self, session: &str) -> PathBuf {
        self.dirs.state.join("fleet").join("seats").join(format!("{session}.json"))
    }

    /// Goes on with a claim whose run a worker before this one began here.
    pub(crate) async fn run_again(self, begun: Begun, seat: Seated) {
        let _turn = self.turns.of(&begun.claim.session).await;
        let place = place_of(&self.work, &begun.claim.session);
        let reopened = restore::reopen(&self.database, &begun.claim, &place).await;
        match reopened {
            Ok(workspace) => self.run_begun(begun, workspace, seat).await,
            Err(error) => self.end(&begun.claim, "held", &error.to_string(), &Value::Null).await,
        }
    }

    /// Runs a claimed task to its end.
    pub(crate) async fn run(self, claim: Claim, lease: LeaseClock) {
        let seat = self.seat_of(&claim, String::new(), lease).0;
        // While the workspace is made, the lease is renewed too.
        self.seats.add(Arc::clone(&seat));
        // A run here whose lease was lost ends first: it has the same workspace.
        let _turn = self.turns.of(&claim.session).await;
        let prepare = restore::prepare(
            &self.database,
            (&self.dirs.state, &self.work),
            self.objects.as_ref(),
            &claim,
        );
        let mut state = seat.state.subscribe();
        let prepared = tokio::select! {
            prepared = prepare => prepared,
            _ = state.wait_for(|state| state.lost.is_some()) => {
                return self.seats.remove(&claim.lease);
            }
        };
        let lease = seat.state.borrow().clock;
        if seat.is_lost() {
            return self.seats.remove(&claim.lease);
        }
        match prepared {
            Ok(Prepared { workspace, restored, onward: Onward::GoOn, prompt }) => {
                let token = secret().unwrap_or_default();
                let taken = self.seat_of(&claim, token.clone(), lease);
                self.seats.add(Arc::clone(&taken.0));
                let begun = Begun { claim, token, prompt, restored };
                self.run_begun(begun, workspace, taken).await;
            }
            Ok(Prepared { onward: Onward::Hold(why), .. }) => {
                self.end(&claim, "held", &why, &Value::Null).await;
            }
            Ok(Prepared { onward: Onward::StartOver, .. }) => self.start_over(claim, lease).await,
            Err(error) if error.is_lost_lease() => self.seats.remove(&claim.lease),
            Err(error) => self.cannot_run(&claim, &error, None).await,
        }
    }

    async fn start_over(self, mut claim: Claim, lease: LeaseClock) {
        let name = &claim.lease;
        let fresh = self
            .for_a_lease(self.database.until_answered(|client| async move {
                client.query_one("select agentd.start_over($1::text::uuid)", &[name]).await
            }))
            .await;
        self.seats.remove(&claim.lease);
        let _ = restore::set_aside(&self.dirs.state, &claim.session).await;
        match fresh.and_then(|row| Ok(row.try_get(0)?)) {
            Ok(session) => {
                (claim.session, claim.last_seq, claim.failed_over) = (session, 0, false);
                Box::pin(self.run(claim, lease)).await;
            }
            Err(error) => tracing::warn!(task = claim.task, %error, "a task does not start over"),
        }
    }

    pub(crate) fn seat_of(&self, claim: &Claim, token: String, clock: LeaseClock) -> Seated {
        let (lines, incoming) = mpsc::unbounded_channel();
        let last_seq = u64::try_from(claim.last_seq).unwrap_or_default();
        let state = watch::channel(SeatState { clock, last_seq, lost: None }).0;
        let (session, lease) = (claim.session.clone(), claim.lease.clone());
        (Arc::new(Seat { session, token, lease, state, lines }), incoming)
    }

    async fn run_begun(&self, begun: Begun, workspace: Workspace, (seat, incoming): Seated) {
        let claim = begun.claim.clone();
        let workspace = Arc::new(Mutex::new(workspace));
        let audit = watch::channel(None).0;
        let directory = self.dirs.state.join("sessions").join(&claim.session);
        let appender = Appender::new(
            Arc::clone(&seat),
            Arc::clone(&self.database),
            (Arc::clone(&workspace), self.objects.clone()),
            directory,
            audit.clone(),
        );
        let appending = tokio::spawn(appender.run(incoming));
        let dir = workspace.lock().await.tree().to_owned();
        let ended = self.run_agentd_again(&begun, &seat, dir).await;
        let workspace = || Arc::clone(&workspace);
        let left = || Left { seat: &seat, workspace: workspace(), audit: audit.clone() };
        match ended {
            Ok(RunEnd::Exited { code, answer }) => {
                self.exited(&claim, left(), (code, answer)).await;
            }
            Ok(RunEnd::Released) => {
                self.give_back(&claim, "this worker ends", Some(left())).await;
            }
            Ok(RunEnd::Lost(why)) if why == LAPSED => {
                self.give_back(&claim, &why, Some(left())).await;
            }
            Ok(RunEnd::Lost(why)) => {
                tracing::warn!(task = claim.task, why, "the task is not this host's any more");
                // If the lease holds, the reason is this host's, and a person has to know.
                self.end(&claim, "held", &why, &Value::Null).await;
            }
            Err(error) => self.cannot_run(&claim, &error, Some(left())).await,
        }
        appending.abort();
        self.seats.remove(&claim.lease);
    }

    /// Ends a task whose run ended by itself, or gives it back if that was this host's doing.
    async fn exited(&self, claim: &Claim, left: Left<'_>, (code, answer): (i32, Value)) {
        let turn = restore::turn_of(&self.dirs.state.join("sessions").join(&claim.session));
        let after = match self.is_cancelled(&claim.session) {
            true => AfterRun::Cancelled,
            false => after_run(code, turn, claim.epoch),
        };
        let state = match after {
            AfterRun::Done => "done",
            AfterRun::Cancelled => "cancelled",
            AfterRun::Failed => "failed",
            AfterRun::GiveBack => {
                if !left.seat.is_lost() {
                    self.rest();
                }
                return self.give_back(claim, &error_of(code, &answer), Some(left)).await;
            }
        };
        // What runs in the background writes files and records until it ends.
        self.stop_session(&claim.session).await;
        let last_seq = match self.append_rest(claim, &left).await {
            Ok(last_seq) => last_seq,
            Err(error) => {
                let why = format!("the run ended here, and {error}");
                return self.finish(claim, "held", &why, &Value::Null).await;
            }
        };
        let result = self.result(claim, &left, code, answer, last_seq).await;
        let reason = match after {
            AfterRun::Done => "",
            AfterRun::Failed | AfterRun::Cancelled | AfterRun::GiveBack => {
                result["error"].as_str().unwrap_or_default()
            }
        };
        self.finish(claim, state, reason, &result).await;
    }

    /// A task that cannot run here fails, or another host gets it if the reason is this one's. Without the
    /// files in the object store it waits for a person in the end.
    async fn cannot_run(&self, claim: &Claim, error: &FleetError, left: Option<Left<'_>>) {
        if error.is_of_this_host() && fleet::give_back(claim.epoch) == AfterRun::GiveBack {
            self.rest();
            return self.give_back(claim, &error.to_string(), left).await;
        }
        let state = if matches!(error, FleetError::Objects(_)) { "held" } else { "failed" };
        self.end(claim, state, &error.to_string(), &Value::Null).await;
    }

    /// Gives a task back once nothing of it runs here and the database has all its records. Else its lease
    /// runs out.
    async fn give_back(&self, claim: &Claim, why: &str, left: Option<Left<'_>>) {
        tracing::warn!(task = claim.task, why, "the task is given back");
        let given = match &left {
            Some(left) => self.append_rest(claim, left).await.map(drop),
            None => restore::end_session(&self.dirs.state, &claim.session).await,
        };
        match given {
            Ok(()) => self.release(claim).await,
            // A person has to know why the records cannot be kept. If the lease is lost, this does nothing.
            Err(error @ FleetError::Host(_)) => {
                self.end(claim, "held", &error.to_string(), &Value::Null).await;
            }
            Err(error) => {
                tracing::warn!(task = claim.task, %error, "the task is not given back");
                self.seats.remove(&claim.lease);
            }
        }
    }

    fn is_cancelled(&self, session: &str) -> bool {
        self.cancelled.borrow().contains(session)
    }

    /// Runs `agentd -p`, and again where it lost its daemon: the session goes on in the next one.
    async fn run_agentd_again(
        &self,
        begun: &Begun,
        seat: &Seat,
        workspace: PathBuf,
    ) -> Result<RunEnd, FleetError> {
        for pause in RUNS_AGAIN {
            match self.run_agentd(begun, seat, workspace.clone()).await {
                Ok(RunEnd::Exited { code, .. })
                    if LOST_DAEMON.contains(&code)
                        && !seat.is_lost()
                        && !self.is_cancelled(&begun.claim.session) =>
                {
                    tracing::info!(task = begun.claim.task, "its daemon ended; the task goes on");
                    tokio::time::sleep(pause).await;
                }
                ended => return ended,
            }
        }
        self.run_agentd(begun, seat, workspace).await
    }

    /// Starts `agentd -p` in the workspace and waits for its end.
    async fn run_agentd(
        &self,
        begun: &Begun,
        seat: &Seat,
        workspace: PathBuf,
    ) -> Result<RunEnd, FleetError> {
        let claim = &begun.claim;
        if *self.ending.borrow() {
            return Ok(RunEnd::Released);
        }
        let settings = HostSettings::load(&self.dirs)?;
        claim.flags.iter().try_for_each(|flag| settings.check(flag)).map_err(FleetError::Host)?;
        let file = self.seat_file(&claim.session);
        write_private(&file, &serde_json::to_vec(begun).unwrap_or_default())?;
        let paper =
            self.dirs.state.join("fleet").join("seats").join(format!("{}.seat", claim.session));
        let seat_paper = json!({
            "session": claim.session, "task": claim.task, "token": begun.token,
            "socket": door::socket_in(&self.dirs.runtime), "restored": begun.restored,
            "shared_disk": is_shared_disk(&workspace), "ask": claim.ask,
        });
        write_private(&paper, seat_paper.to_string().as_bytes())?;
        // Terminals attach to sessions of the daemon.
        if DaemonConnection::open(&self.dirs.runtime).await.is_err() {
            let started = run::agentd(&["daemon", "start"]).await;
            started.map_err(|error| FleetError::ThisHost(error.to_string()))?;
        }
        let mut words: Vec<OsString> =
            ["-p", "", "--output-format", "json"].map(OsString::from).into();
        words.extend(["--project-dir".into(), workspace.into_os_string()]);
        words.extend(["--fleet-seat".into(), paper.into_os_string()]);
        words.extend(claim.flags.iter().map(OsString::from));
        if let Some(ms) = claim.timeout_ms {
            words.extend(["--timeout".into(), format!("{}", ms.max(1) / 1000).into()]);
        }
        let mut child = run::start_agentd(&words, &begun.prompt).await?;
        let (mut ending, mut cancelled) = (self.ending.subscribe(), self.cancelled.subscribe());
        let mut state = seat.state.subscribe();
        let session = claim.session.clone();
        let interruption = {
            let ended = async { drop(ending.wait_for(|ending| *ending).await) };
            let lost = async {
                let lost = state.wait_for(|state| state.lost.is_some()).await;
                lost.ok().and_then(|state| state.lost.clone()).unwrap_or_default()
            };
            let cancel = async { drop(cancelled.wait_for(|of| of.contains(&session)).await) };
            tokio::select! {
                exited = answer_of(&mut child) => match exited {
                    // A shutdown of the host may end the daemon before this worker.
                    Ok(RunEnd::Exited { code, .. }) if code != 0 && self.ends_soon().await => {
                        Interruption::WorkerEnds
                    }
                    exited => return exited,
                },
                () = ended => Interruption::WorkerEnds,
                why = lost => Interruption::Lost(why),
                () = cancel => Interruption::Cancel,
            }
        };
        match interruption {
            Interruption::WorkerEnds => {
                // The end of the client stops nothing. The daemon ends the session in order, in the middle
                // of its turn, so that another host goes on with it.
                let _ = child.kill().await;
                // A session that no daemon has is stopped.
                let _ = run::agentd(&["stop", &session]).await;
                return Ok(RunEnd::Released);
            }
            Interruption::Lost(why) => {
                let _ = child.kill().await;
                let _ = run::agentd(&["kill", &session]).await;
                return Ok(RunEnd::Lost(why));
            }
            Interruption::Cancel => {
                if let Some(pid) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
                {
                    let _ = kill_process(pid, Signal::INT);
                }
            }
        }
        answer_of(&mut child).await
    }

    /// True if this worker is to end, now or within a moment.
    async fn ends_soon(&self) -> bool {
        let mut ending = self.ending.subscribe();
        let ended = ending.wait_for(|ending| *ending);
        tokio::time::timeout(MOMENT, ended).await.is_ok()
    }
}

/// Why a run is interrupted.
enum Interruption {
    WorkerEnds,
    Lost(String),
    Cancel,
}
