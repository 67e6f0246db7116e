//! The runner's process: started with a grant, limited in time, pinged, and read until it ends.

use super::not_started;
use super::state::{CallArgs, CallState, ExpectedFd, RunnerPhase, RunnerProcess};
use crate::cage_cleanup::{self, CageCleanup};
use crate::call::CallInput;
use crate::grant::Grant;
use crate::messages::{CallMsg, RunnerLimit};
use crate::orphans::NotRunnersChild;
use crate::project_overlays::ProjectOverlays;
use crate::protected_restore::{self, ProtectedRestorer};
use crate::records::images;
use crate::ssh_agent;
use crate::unix_time::now_ms;
use crate::worker::heartbeat::{Heartbeat, PingAction};
use crate::worker::log_lines;
use crate::worker::process::{ExitCause, Heard, WorkerProcess};
use protocol::client::ProcessRow;
use protocol::confinement::{Confinement, FilePath, Network, Profile};
use protocol::tool::{FromTool, Keeper, RunnerJob, SigningKey, ToTool};
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a runner may take to build its cage. It takes milliseconds, unless it was stopped.
const CAGE: Duration = Duration::from_secs(10);
/// How long a probe may take: it reads each file once, for its digest.
const PROBE: Duration = Duration::from_secs(60);
/// How long a runner may take to end a cancelled call. It gives a command 2 s before it kills it.
const CANCEL: Duration = Duration::from_secs(3);
/// How long a runner may take to exit after its report.
const EXIT: Duration = Duration::from_secs(5);

impl CallState {
    /// Sends the runner `Go` with this job, if there is one and its grant is for this call.
    pub(super) fn send_go(&mut self, job: RunnerJob) -> Result<(), Box<CallInput>> {
        let Some(runner) = &mut self.runner else {
            return Err(Box::new(CallInput::RunnerGone(Heard::All)));
        };
        let go = runner.grant.go(&self.args.facts.call.id, job);
        let go = go.map_err(|error| Box::new(CallInput::WrongGrant(error.to_string())))?;
        runner.process.send(&go);
        if matches!(runner.phase, RunnerPhase::Caged) {
            runner.phase = RunnerPhase::Released;
        }
        Ok(())
    }

    /// Turns a message of the runner into an input of the machine. A message out of turn ends the
    /// runner.
    pub(super) fn on_runner_msg(
        &mut self,
        myself: &ActorRef<CallMsg>,
        msg: FromTool,
    ) -> Option<CallInput> {
        let runner = self.runner.as_mut()?;
        runner.heartbeat.on_message();
        match (msg, &mut runner.phase) {
            (FromTool::Pong(_), _) => None,
            (FromTool::Log(line), _) => {
                let runner = self.args.runner.executable();
                log_lines::write(runner, &self.args.facts.call.id, &line);
                None
            }
            (FromTool::Caged(_), phase @ RunnerPhase::CagingProbe(_)) => {
                if let RunnerPhase::CagingProbe(job) =
                    std::mem::replace(phase, RunnerPhase::Probing)
                {
                    if let Err(input) = self.send_go(job) {
                        return Some(*input);
                    }
                    self.start_limit(myself, RunnerLimit::Probe);
                }
                None
            }
            (FromTool::Caged(enforced), phase @ RunnerPhase::CagingCall) => {
                *phase = RunnerPhase::Caged;
                self.overlay_turn = None;
                Some(CallInput::Caged(enforced))
            }
            (FromTool::Caged(enforced), RunnerPhase::Renewing(_)) => self.on_renewed(enforced),
            (FromTool::Lost(why), RunnerPhase::Renewing(_)) => self.give_reserve_up(&why),
            (
                FromTool::Uncaged { step, reason },
                RunnerPhase::CagingProbe(_) | RunnerPhase::CagingCall,
            ) => Some(CallInput::CageFailed { step, reason }),
            (FromTool::Began, RunnerPhase::Probing) => None,
            (FromTool::Began, phase @ (RunnerPhase::Released | RunnerPhase::Cancelled)) => {
                self.ran.started = Some(now_ms());
                if matches!(phase, RunnerPhase::Released) {
                    *phase = RunnerPhase::Running;
                    self.start_background_timer(myself);
                }
                Some(CallInput::Began)
            }
            (FromTool::Probed(probe), RunnerPhase::Probing) => {
                // Closing its channel ends it; nothing waits for that, but it may not stay stopped.
                self.forget_runner();
                Some(CallInput::Probed(probe))
            }
            (
                FromTool::Output { text, stream: _ },
                RunnerPhase::Running | RunnerPhase::Cancelled,
            ) => {
                ipc::step!("supervisor: first output");
                Some(CallInput::Output(text))
            }
            // It comes from a thread of its own, also behind the report.
            (
                FromTool::InputTaken(taken),
                RunnerPhase::Running | RunnerPhase::Cancelled | RunnerPhase::Reported,
            ) => {
                self.on_input_taken(taken);
                None
            }
            (FromTool::Done(report), phase @ (RunnerPhase::Running | RunnerPhase::Cancelled)) => {
                ipc::step!("supervisor: done in");
                *phase = RunnerPhase::Reported;
                self.start_limit(myself, RunnerLimit::Exit);
                let (tool, profile) = (&self.args.facts.call.tool, self.args.confinement.profile);
                Some(CallInput::Done(images::named(report, (tool, profile))))
            }
            (FromTool::Keeper(keeper), RunnerPhase::CagingCall) if runner.cage.is_empty() => {
                self.note_cage(keeper)
            }
            (
                FromTool::Lost(why),
                phase @ (RunnerPhase::CagingCall
                | RunnerPhase::Caged
                | RunnerPhase::Released
                | RunnerPhase::Running
                | RunnerPhase::Cancelled),
            ) => {
                *phase = RunnerPhase::Reported;
                self.ran.started = None;
                self.start_limit(myself, RunnerLimit::Exit);
                Some(CallInput::CageLost { why })
            }
            // The descriptor follows.
            (FromTool::ProxyListener, RunnerPhase::CagingCall) if self.proxy.is_some() => None,
            (FromTool::Mounted, RunnerPhase::CagingCall) if self.overlay_turn.is_some() => {
                self.next_fd = ExpectedFd::Mount;
                None
            }
            (
                FromTool::Namespace(kind),
                RunnerPhase::Running | RunnerPhase::Cancelled | RunnerPhase::Reported,
            ) => {
                self.next_fd = ExpectedFd::Namespace(kind);
                None
            }
            (
                FromTool::Server(said),
                RunnerPhase::Running | RunnerPhase::Cancelled | RunnerPhase::Reported,
            ) => {
                self.on_server_msg(said);
                None
            }
            (FromTool::Repaired(Ok(found)), RunnerPhase::Running | RunnerPhase::Cancelled) => {
                self.on_put_right(found);
                None
            }
            (FromTool::InBackground, RunnerPhase::Running) => {
                self.on_in_background(myself);
                None
            }
            // The call ends before the conversation could go on.
            (FromTool::InBackground, RunnerPhase::Cancelled | RunnerPhase::Reported) => None,
            (
                FromTool::ProxyListener
                | FromTool::Namespace(_)
                | FromTool::InBackground
                | FromTool::Mounted
                | FromTool::Resting { .. }
                | FromTool::Proxied { .. }
                | FromTool::Caged(_)
                | FromTool::Uncaged { .. }
                | FromTool::Probed(_)
                | FromTool::Output { .. }
                | FromTool::Server(_)
                | FromTool::InputTaken(_)
                | FromTool::Began
                | FromTool::Done(_)
                | FromTool::Keeper(_)
                | FromTool::Repaired(_)
                | FromTool::Certified(_)
                | FromTool::Lost(_),
                _,
            ) => {
                if let Some(runner) = &self.runner {
                    runner.process.kill_for_breach("a message out of turn");
                }
                None
            }
        }
    }

    /// The runner has ended only when all processes of its cage have, too. The machine hears of it at
    /// once: GoPrepared may come meanwhile.
    pub(super) async fn on_runner_ended(
        &mut self,
        myself: &ActorRef<CallMsg>,
        cause: ExitCause,
        heard: Heard,
    ) -> Option<CallInput> {
        if self.give_reserve_up("it has ended").is_some() {
            return Some(CallInput::ReserveLost);
        }
        let cage = self.runner.take().map(|runner| runner.cage).unwrap_or_default();
        self.carry_out(myself, CallInput::RunnerGone(heard)).await;
        // A process that the kernel cannot end still holds its resources.
        self.cage_cleanup = if cause == ExitCause::Unkillable {
            CageCleanup::Unkillable
        } else {
            CageCleanup::Done
        };
        if !cage.iter().any(|process| process.is_alive()) {
            return Some(CallInput::RunnerEnded { cause: cause.to_string() });
        }
        let (call, generation) = (myself.clone(), self.generation);
        tokio::spawn(async move {
            let emptied = cage_cleanup::end_cage(&cage).await;
            let _ = call.send_message(CallMsg::CageEnded(generation, cause, emptied));
        });
        None
    }

    /// Lists the processes of the runner's cage on disk, for this supervisor and the next one. A process
    /// that the next supervisor could not find must not run.
    pub(super) fn note_cage(&mut self, keeper: Keeper) -> Option<CallInput> {
        let runner = self.runner.as_mut()?;
        match self.args.lock.record_cage(runner.process.pid, keeper) {
            Ok(Ok(cage)) => runner.cage = cage,
            Ok(Err(NotRunnersChild)) => {
                runner.process.kill_for_breach("it named a process that is not its own")
            }
            Err(error) => {
                return Some(CallInput::DiskFailed(format!(
                    "the list of runners could not be written: {error}"
                )));
            }
        }
        None
    }

    /// Starts the time limit of this step of the present runner.
    pub(super) fn start_limit(&mut self, myself: &ActorRef<CallMsg>, limit: RunnerLimit) {
        let generation = self.generation;
        let reached = move || CallMsg::LimitReached(generation, limit);
        self.timers.others.push(myself.send_after(limit.time(), reached));
    }

    /// Pings the runner. It is killed if it has not answered the last ping.
    pub(super) fn ping_runner(&mut self, myself: &ActorRef<CallMsg>) {
        let Some(runner) = &mut self.runner else { return };
        match runner.heartbeat.next_action(runner.started_at.elapsed(), self.args.ping) {
            PingAction::Send => runner.process.send(&ToTool::Ping(0)),
            PingAction::Wait => {}
            PingAction::Unresponsive => return runner.process.kill_unresponsive(),
        }
        self.ping_later(myself);
    }

    pub(super) fn ping_later(&mut self, myself: &ActorRef<CallMsg>) {
        let generation = self.generation;
        let timer = myself.send_after(self.args.ping, move || CallMsg::Ping(generation));
        if let Some(done) = self.timers.ping.replace(timer) {
            done.abort();
        }
    }

    /// Kills a runner that has not finished this step: it is stuck or stopped. Its end is handled as any
    /// other.
    pub(super) fn limit_reached(&self, limit: RunnerLimit) {
        self.proxy_limit_reached(limit);
        let Some(runner) = &self.runner else { return };
        match (limit, &runner.phase) {
            (RunnerLimit::Cage, RunnerPhase::CagingProbe(_) | RunnerPhase::CagingCall)
            | (RunnerLimit::Renew(_), RunnerPhase::Renewing(_))
            | (RunnerLimit::Probe, RunnerPhase::Probing)
            | (RunnerLimit::Cancel, RunnerPhase::Cancelled)
            | (RunnerLimit::Exit, RunnerPhase::Reported) => {
                tracing::warn!(call = %self.args.facts.call.id, ?limit, "a runner exceeded its time limit");
                runner.process.kill();
            }
            (
                RunnerLimit::Cage
                | RunnerLimit::Renew(_)
                | RunnerLimit::Probe
                | RunnerLimit::Cancel
                | RunnerLimit::Exit
                | RunnerLimit::ProxyCage
                | RunnerLimit::ProxyExit,
                _,
            ) => {}
        }
    }

    pub(super) async fn start(
        &mut self,
        myself: &ActorRef<CallMsg>,
        grant: Grant,
        phase: RunnerPhase,
    ) -> Result<(), CallInput> {
        let agent = self.agent(&phase).await?;
        let saved = match phase {
            RunnerPhase::CagingCall => self.protected_file_copies(grant.confinement()).await?,
            RunnerPhase::CagingProbe(_)
            | RunnerPhase::Probing
            | RunnerPhase::Renewing(_)
            | RunnerPhase::Caged
            | RunnerPhase::Released
            | RunnerPhase::Running
            | RunnerPhase::Cancelled
            | RunnerPhase::Reported => None,
        };
        let joins = grant.confinement().joins.is_some();
        let started = self.args.spawner.spawn_runner(&grant, self.args.runner).await;
        let started = started.map_err(|error| not_started(&error))?;
        self.generation = self.generation.next();
        let (call, generation) = (myself.clone(), self.generation);
        let process = WorkerProcess::attach(started, generation, self.args.hello, move |report| {
            let _ = call.send_message(CallMsg::Runner(generation, report));
        })
        .map_err(|error| not_started(&error))?;
        let lock = self.args.lock.share(process.pid).map_err(|error| not_started(&error))?;
        process.send(&ToTool::SessionLock);
        process.send_descriptor(lock);
        if let Some(file) = saved {
            process.send(&ToTool::SaveProtected);
            process.send_descriptor(file);
        }
        if let Some(turn) = &mut self.overlay_turn {
            for (message, descriptor) in
                [(ToTool::Overlays, turn.lock()), (ToTool::Mounted, turn.take_mount())]
            {
                if let Some(descriptor) = descriptor {
                    process.send(&message);
                    process.send_descriptor(descriptor);
                }
            }
        }
        if let Some((keys, agent)) = agent {
            process.send(&ToTool::Sign(keys));
            process.send_descriptor(agent);
        }
        if let Some(network) = self.args.network.as_ref().filter(|_| joins) {
            network.send_to(&process).map_err(|error| not_started(&error))?;
        }
        process.send(&grant.begin());
        if matches!(phase, RunnerPhase::CagingCall) {
            self.ran.runner_pid = Some(process.pid);
        }
        let proxied = matches!(phase, RunnerPhase::CagingCall)
            && matches!(
                grant.confinement().profile,
                Profile::Command | Profile::Mcp | Profile::McpWrite | Profile::McpRemote
            )
            && grant.confinement().network == Network::Listed;
        let proxy = proxied.then(|| grant.proxy());
        let (pulse, born) = (Heartbeat::default(), Instant::now());
        self.runner = Some(RunnerProcess {
            process,
            grant,
            cage: Vec::new(),
            phase,
            heartbeat: pulse,
            started_at: born,
        });
        self.start_limit(myself, RunnerLimit::Cage);
        self.ping_later(myself);
        self.proxy = None;
        if let Some(grant) = proxy {
            self.start_proxy(myself, grant).await?;
        }
        Ok(())
    }

    /// Waits for the call's turn with the project's overlays, if its cage can mount them. Returns their
    /// directory.
    pub(super) async fn overlays(&mut self) -> Option<FilePath> {
        // An earlier runner of this call may not have returned its turn.
        self.overlay_turn = None;
        let overlays = self.args.overlays.clone()?;
        if !ProjectOverlays::are_mounted_in(&self.args.confinement) {
            return None;
        }
        self.overlay_turn = overlays.turn().await;
        self.overlay_turn.as_ref().map(|_| FilePath::from(overlays.directory()))
    }

    /// Connects to the person's ssh agent, for the runner of a call that may sign.
    pub(super) async fn agent(
        &self,
        phase: &RunnerPhase,
    ) -> Result<Option<(Vec<SigningKey>, OwnedFd)>, CallInput> {
        match (phase, &self.args.facts.signing) {
            (RunnerPhase::CagingCall, Some(signing)) => {
                let agent =
                    ssh_agent::connect(signing).await.map_err(|error| not_started(&error))?;
                Ok(Some((signing.keys.clone(), agent)))
            }
            (_, _) => Ok(None),
        }
    }

    /// Keeps the overlays that the cage mounted, for the next call.
    pub(super) fn mounted(&mut self, mounted: OwnedFd) {
        if let Some(turn) = &mut self.overlay_turn {
            turn.put_mount(mounted);
        }
    }

    /// A file for the runner's copies of protected files, where its policy has any.
    pub(super) async fn protected_file_copies(
        &self,
        confinement: &Confinement,
    ) -> Result<Option<OwnedFd>, CallInput> {
        if !sandbox::has_protected_names(confinement.profile) {
            return Ok(None);
        }
        let (saved, cage) = (self.args.saved.clone(), confinement.clone());
        let call = self.args.facts.call.id.number;
        let made = tokio::task::spawn_blocking(move || saved.begin(call, &cage)).await;
        let made = made.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        made.map(Some).map_err(|error| CallInput::CageFailed {
            step: sandbox::CageStep::Saved.name().to_owned(),
            reason: error.to_string(),
        })
    }

    /// Restores protected files in a process of its own, in place of the runner. The outcome is an input
    /// of the machine.
    pub(super) fn repair(&self, myself: &ActorRef<CallMsg>) {
        let CallArgs { spawner, lock, saved, hello, .. } = &self.args;
        let (spawner, lock, copies) = (spawner.clone(), lock.clone(), saved.clone());
        let repairer = ProtectedRestorer { spawner, lock, copies, hello: *hello };
        let (call, cage) = (self.args.facts.call.id.clone(), self.args.confinement.clone());
        let (myself, emptied) = (myself.clone(), self.cage_cleanup);
        tokio::spawn(async move {
            let names = match emptied {
                CageCleanup::Done => repairer.restore(&call, &cage).await,
                CageCleanup::Unkillable => vec![protected_restore::unrestored_unknown(
                    "a process of the call cannot be killed",
                )],
            };
            let _ = myself.send_message(CallMsg::Input(CallInput::Repaired(names)));
        });
    }

    pub(super) fn send_runner(&self, message: &ToTool) {
        if let Some(runner) = &self.runner {
            runner.process.send(message);
        }
    }

    /// Closes the channel of a runner whose end nothing waits for.
    pub(super) fn forget_runner(&mut self) {
        if let Some(runner) = self.runner.take() {
            runner.process.close_within(EXIT);
        }
        self.generation = self.generation.next();
    }

    pub(super) fn rows(&self) -> Vec<ProcessRow> {
        let pid = self.runner.as_ref().map_or(0, |runner| runner.process.pid);
        let runner = self.row_of(self.args.runner, pid);
        std::iter::once(runner).chain(self.proxy_row()).collect()
    }

    pub(super) fn row_of(&self, executable: tools::RunnerProgram, pid: u32) -> ProcessRow {
        ProcessRow {
            worker: executable.executable().to_owned(),
            session: Some(self.args.facts.call.id.session.clone()),
            pid,
            generation: self.generation.0,
            restarts: 0,
            last_cause: None,
            cage: None,
        }
    }
}

impl RunnerLimit {
    pub(super) fn time(self) -> Duration {
        match self {
            Self::Cage => CAGE,
            Self::Renew(time) => time,
            Self::Probe => PROBE,
            Self::Cancel => CANCEL,
            Self::Exit => EXIT,
            Self::ProxyCage => CAGE,
            Self::ProxyExit => CANCEL,
        }
    }
}
