//! The call's runner: started for its probe, then for the call, and heard until it ends.

use super::not_started;
use super::state::{CallArgs, CallState};
use crate::messages::CallMsg;
use crate::records::images;
use crate::ssh_agent;
use crate::unix_time::now_ms;
use call::{CallInput, Heard};
use launch::cage_cleanup::CageCleanup;
use launch::grant::{Grant, RunnerPurpose};
use launch::process::ExitCause;
use launch::project_overlays::{OverlayTurn, ProjectOverlays};
use launch::protected_restore::{self, ProtectedRestorer};
use launch::runner::{Runner, RunnerEvent, RunnerNews, RunnerStart};
use protocol::client::ProcessRow;
use protocol::confinement::{Confinement, FilePath, Network, Profile};
use protocol::tool::{FromCall, Handover, RunnerJob};
use ractor::ActorRef;
use std::os::fd::OwnedFd;

impl CallState {
    /// Sends the runner `Go` with this job, if there is one and its grant is for this call.
    pub(super) fn send_go(&mut self, job: RunnerJob) -> Result<(), Box<CallInput>> {
        let runner =
            self.runner.as_mut().ok_or_else(|| Box::new(CallInput::RunnerGone(Heard::All)))?;
        let sent = runner.go(&self.args.facts.call.id, job);
        sent.map_err(|error| Box::new(CallInput::WrongGrant(error.to_string())))
    }

    /// Turns an event of the runner into an input of the machine.
    pub(super) async fn on_runner_event(
        &mut self,
        myself: &ActorRef<CallMsg>,
        event: RunnerEvent,
    ) -> Option<CallInput> {
        if let RunnerEvent::Buried(cause, emptied) = event {
            return Some(self.on_buried(&cause, emptied));
        }
        let runner = self.runner.as_mut()?;
        let is_probe = runner.purpose() == RunnerPurpose::Probe;
        match runner.hear(event) {
            RunnerNews::Caged(_) if is_probe => {
                let job = self.probe_job.take()?;
                self.send_go(job).err().map(|input| *input)
            }
            RunnerNews::Caged(enforced) if self.renewal.is_some() => self.on_renewed(enforced),
            RunnerNews::Caged(enforced) => Some(CallInput::Caged(enforced)),
            RunnerNews::Lost(why) if self.renewal.is_some() => self.give_reserve_up(&why),
            RunnerNews::Lost(why) => {
                self.ran.started = None;
                Some(CallInput::CageLost { why })
            }
            RunnerNews::Uncaged { step, reason } => Some(CallInput::CageFailed { step, reason }),
            RunnerNews::Unlisted(error) => Some(CallInput::DiskFailed(format!(
                "the list of runners could not be written: {error}"
            ))),
            RunnerNews::Listener(socket) => {
                self.on_proxy_listener(myself, socket).await;
                None
            }
            RunnerNews::Namespace(kind, descriptor) => {
                self.job.namespace.add(kind, descriptor);
                None
            }
            RunnerNews::Probed(probe) => {
                self.forget_runner();
                Some(CallInput::Probed(probe))
            }
            RunnerNews::Call(said) => self.on_said(myself, said),
            RunnerNews::Ended(cause, heard) => {
                ipc::step!("supervisor: process ended");
                self.on_runner_ended(myself, cause, heard).await
            }
            RunnerNews::Nothing
            | RunnerNews::Overdue
            | RunnerNews::Resting { .. }
            | RunnerNews::Proxied { .. }
            | RunnerNews::Repaired(_)
            | RunnerNews::Certified(_) => None,
        }
    }

    fn on_said(&mut self, myself: &ActorRef<CallMsg>, said: FromCall) -> Option<CallInput> {
        match said {
            FromCall::Began => {
                self.ran.started = Some(now_ms());
                if self.runner.as_ref().is_some_and(|runner| !runner.is_cancelled()) {
                    self.start_background_timer(myself);
                }
                Some(CallInput::Began)
            }
            FromCall::Output { text, stream: _ } => {
                ipc::step!("supervisor: first output");
                Some(CallInput::Output(text))
            }
            FromCall::Done(report) => {
                ipc::step!("supervisor: done in");
                let (tool, profile) = (&self.args.facts.call.tool, self.args.confinement.profile);
                Some(CallInput::Done(images::named(*report, (tool, profile))))
            }
            FromCall::InputTaken(taken) => {
                let steps = self.job.input_taken(taken);
                self.carry_out_job(myself, steps);
                None
            }
            FromCall::Server(said) => {
                let runs_as = (self.args.confinement.profile, self.machine.enforced());
                let steps = self.job.asks.said(said, runs_as);
                self.carry_out_job(myself, steps);
                None
            }
            FromCall::PutRight(found) => {
                self.on_put_right(myself, found);
                None
            }
            FromCall::InBackground => {
                self.on_in_background(myself);
                None
            }
            // Its descriptor follows.
            FromCall::Namespace(_) => None,
        }
    }

    /// The runner has ended only when all processes of its cage have, too. The machine hears of it at
    /// once: GoPrepared may come meanwhile.
    async fn on_runner_ended(
        &mut self,
        myself: &ActorRef<CallMsg>,
        cause: ExitCause,
        heard: Heard,
    ) -> Option<CallInput> {
        if let Some(input) = self.give_reserve_up("it has ended") {
            return Some(input);
        }
        if let Some(runner) = self.runner.take() {
            self.carry_out(myself, CallInput::RunnerGone(heard)).await;
            let (cause, emptied) = runner.bury(cause)?;
            return Some(self.on_buried(&cause, emptied));
        }
        None
    }

    fn on_buried(&mut self, cause: &ExitCause, emptied: CageCleanup) -> CallInput {
        self.cage_cleanup = emptied;
        CallInput::RunnerEnded { cause: cause.to_string() }
    }

    /// Starts a runner that inspects the call's paths.
    pub(super) async fn start_probe(
        &mut self,
        myself: &ActorRef<CallMsg>,
        grant: Grant,
        job: RunnerJob,
    ) -> Result<(), CallInput> {
        self.probe_job = Some(job);
        self.start(myself, grant, Vec::new(), None).await
    }

    /// Starts a runner of the call's own, and the proxy of its allow-list beside it.
    pub(super) async fn start_call(
        &mut self,
        myself: &ActorRef<CallMsg>,
        grant: Grant,
        turn: Option<OverlayTurn>,
    ) -> Result<(), CallInput> {
        let mut handed = Vec::new();
        if let Some(file) = self.protected_file_copies(grant.confinement()).await? {
            handed.push((Handover::Protected, file));
        }
        if let Some(signing) = &self.args.signing {
            let agent = ssh_agent::connect(signing).await.map_err(|error| not_started(&error))?;
            handed.push((Handover::Sign(signing.keys.clone()), agent));
        }
        if let Some(network) = &self.args.network
            && grant.confinement().joins.is_some()
        {
            handed.extend(network.handed().map_err(|error| not_started(&error))?);
        }
        let proxied = grant.confinement().network == Network::Listed
            && matches!(
                grant.confinement().profile,
                Profile::Command | Profile::Mcp | Profile::McpWrite | Profile::McpRemote
            );
        let proxy = proxied.then(|| grant.proxy());
        self.start(myself, grant, handed, turn).await?;
        self.ran.runner_pid = self.runner.as_ref().map(Runner::pid);
        if let Some(grant) = proxy {
            self.start_proxy(myself, grant).await?;
        }
        Ok(())
    }

    async fn start(
        &mut self,
        myself: &ActorRef<CallMsg>,
        grant: Grant,
        handed: Vec<(Handover, OwnedFd)>,
        turn: Option<OverlayTurn>,
    ) -> Result<(), CallInput> {
        self.proxy = None;
        self.generation = self.generation.next();
        let start = RunnerStart {
            spawner: &self.args.spawner,
            program: self.args.runner,
            grant,
            hello: self.args.hello,
            lock: Some(&self.args.lock),
            handed,
            turn,
            generation: self.generation,
            about: self.args.facts.call.id.to_string(),
        };
        let (call, generation) = (myself.clone(), self.generation);
        let runner = Runner::start(start, move |event| {
            let _ = call.send_message(CallMsg::Runner(generation, event));
        });
        let mut runner = runner.await.map_err(|error| not_started(&error))?;
        runner.ping_every(self.args.ping);
        self.runner = Some(runner);
        Ok(())
    }

    /// Waits for the call's turn with the project's overlays, if its cage can mount them.
    pub(super) async fn overlay_turn(&mut self) -> Option<(OverlayTurn, FilePath)> {
        let overlays = self.args.overlays.clone()?;
        if !ProjectOverlays::are_mounted_in(&self.args.confinement) {
            return None;
        }
        let turn = overlays.turn().await?;
        Some((turn, FilePath::from(overlays.directory())))
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

    /// Closes the channel of a runner whose end nothing waits for.
    pub(super) fn forget_runner(&mut self) {
        if let Some(runner) = self.runner.take() {
            runner.dismiss();
        }
        self.generation = self.generation.next();
    }

    pub(super) fn rows(&self) -> Vec<ProcessRow> {
        let pid = self.runner.as_ref().map_or(0, Runner::pid);
        let runner = self.row_of(self.args.runner, pid);
        std::iter::once(runner).chain(self.proxy_row()).collect()
    }

    pub(super) fn row_of(&self, executable: tool_specs::RunnerProgram, pid: u32) -> ProcessRow {
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
