//! The process of a command's proxy: started beside the runner, heard, and ended with it. What follows
//! from its words is decided in `proxy`.

use super::{CallState, RunningProxy, not_started};
use crate::call::CallInput;
use crate::grant::Grant;
use crate::messages::{CallMsg, RunnerLimit};
use crate::proxy_machine::{ProxyAttempt, ProxyDecisions, ProxyEffect, ProxyInput, ProxyMachine};
use crate::worker::log_lines;
use crate::worker::process::{ExitCause, ProcessEvent, WorkerProcess};
use protocol::client::ProcessRow;
use protocol::tool::{Errand, FromTool, SignIn, ToTool};
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use tools::RunnerProgram;

/// A name is looked up as it is written: with one of the machine's search domains behind it, it would
/// be a host that is on no list.
const NO_SEARCH: (&str, &str) = ("LOCALDOMAIN", ".");

impl CallState {
    /// Starts it; its cage is built while the runner builds the command's.
    pub(super) async fn start_proxy(
        &mut self,
        myself: &ActorRef<CallMsg>,
        grant: &Grant,
    ) -> Result<(), CallInput> {
        let (name, value) = NO_SEARCH;
        let spawner = self.plan.spawner.with_env(&[(name.to_owned(), value.to_owned())]);
        let started = spawner.spawn_runner(grant, RunnerProgram::Web).await;
        let started = started.map_err(|error| not_started(&error))?;
        let (call, generation) = (myself.clone(), self.generation);
        let life = WorkerProcess::attach(started, generation, self.plan.hello, move |report| {
            let _ = call.send_message(CallMsg::Proxy(generation, report));
        })
        .map_err(|error| not_started(&error))?;
        // The session goes on only when it is gone too.
        let held = self.plan.hold.share(life.pid).map_err(|error| not_started(&error))?;
        life.send(&ToTool::Hold);
        life.send_descriptor(held);
        life.send(&grant.begin());
        let attempt = std::mem::replace(&mut self.proxy_attempt, ProxyAttempt::Last);
        self.proxy = Some(RunningProxy { machine: ProxyMachine::new(attempt), life: Some(life) });
        self.allow(myself, RunnerLimit::ProxyCage);
        Ok(())
    }

    /// Takes an input to the call's life past the proxy, if there is one.
    pub(super) async fn dispatch(&mut self, myself: &ActorRef<CallMsg>, input: CallInput) {
        if self.proxy.is_none() {
            return self.carry_out(myself, input).await;
        }
        let input = match input {
            CallInput::Caged(enforced) => ProxyInput::RunnerCaged(enforced),
            CallInput::Done(report) => ProxyInput::Reported(report),
            CallInput::RunnerEnded { cause } => ProxyInput::RunnerEnded(cause),
            input @ (CallInput::Begin
            | CallInput::Probed(_)
            | CallInput::Verdict(_)
            | CallInput::Expired
            | CallInput::BrokerBack
            | CallInput::BrokerFailed(_)
            | CallInput::Uncaged { .. }
            | CallInput::Output(_)
            | CallInput::Cancel
            | CallInput::Overdue
            | CallInput::Stored(_)
            | CallInput::RestoreFetched(_)
            | CallInput::StoreLost { .. }
            | CallInput::StoreBack
            | CallInput::CacheAnswer(_)
            | CallInput::CageLost { .. }
            | CallInput::Repaired(_)
            | CallInput::DiskFailed(_)) => return self.carry_out(myself, input).await,
        };
        self.proxy_step(myself, input).await;
    }

    /// A socket that the runner hands out.
    pub(super) async fn on_proxy_listener(&mut self, myself: &ActorRef<CallMsg>, socket: OwnedFd) {
        match (&self.proxy, &self.runner) {
            (Some(_), _) => self.proxy_step(myself, ProxyInput::Listener(socket)).await,
            (None, Some(runner)) => runner.life.kill_for_breach("a descriptor out of turn"),
            (None, None) => {}
        }
    }

    pub(super) async fn on_proxy_event(
        &mut self,
        myself: &ActorRef<CallMsg>,
        report: ProcessEvent<protocol::tool::ToolLink>,
    ) {
        let Some(beside) = &mut self.proxy else { return };
        let word = match report {
            ProcessEvent::Message { message: word, permit: _permit } => word,
            ProcessEvent::Descriptor(_) => {
                return beside.breach();
            }
            ProcessEvent::Ended(cause) => {
                beside.life = None;
                let ended = match matches!(cause, ExitCause::Exited(0)) {
                    true => ProxyInput::Ended,
                    false => ProxyInput::Died,
                };
                return self.proxy_step(myself, ended(cause.to_string())).await;
            }
        };
        let input = match word {
            FromTool::Caged(_) => ProxyInput::Caged,
            FromTool::Uncaged { step, reason } => {
                ProxyInput::Uncaged(format!("has no cage ({step}: {reason})"))
            }
            FromTool::Proxied { connections, uncounted } => {
                ProxyInput::Decisions(ProxyDecisions { connections, uncounted, cut: None })
            }
            FromTool::Log(line) => {
                log_lines::write("agentd-web", &self.plan.facts.call.id, &line);
                return;
            }
            FromTool::Pong(_) => return,
            FromTool::Door
            | FromTool::Mounted
            | FromTool::Output { .. }
            | FromTool::Probed(_)
            | FromTool::Done(_)
            | FromTool::Keeper(_)
            | FromTool::Repaired(_)
            | FromTool::Certified(_)
            | FromTool::Lost(_) => {
                return beside.breach();
            }
        };
        self.proxy_step(myself, input).await;
    }

    async fn proxy_step(&mut self, myself: &ActorRef<CallMsg>, input: ProxyInput<OwnedFd>) {
        let Some(beside) = &mut self.proxy else { return };
        for effect in beside.machine.step(input) {
            match effect {
                ProxyEffect::Serve(sockets) => {
                    let hosts = self.plan.confinement.hosts.clone();
                    let denied = self.plan.denied_hosts.clone();
                    let (sign_in, keys) = self.sign_in();
                    if let Some(RunningProxy { life: Some(life), .. }) = &self.proxy {
                        let doors = u16::try_from(sockets.len()).unwrap_or(u16::MAX);
                        life.send(&ToTool::Go(Errand::Proxy { doors, hosts, denied, sign_in }));
                        sockets.into_iter().chain(keys).for_each(|it| life.send_descriptor(it));
                    }
                }
                ProxyEffect::Finish => {
                    if let Some(RunningProxy { life: Some(life), .. }) = &self.proxy {
                        life.send(&ToTool::Cancel);
                    }
                    self.allow(myself, RunnerLimit::ProxyExit);
                }
                // Its time for the cage holds for this too.
                ProxyEffect::EndRunner => self.send_runner(&ToTool::Cancel),
                ProxyEffect::ToCall(input) => self.carry_out(myself, *input).await,
            }
        }
    }

    /// How it signs in, and the keys. A proxy may be started twice.
    fn sign_in(&self) -> (Option<SignIn>, Vec<OwnedFd>) {
        match self.plan.sign_in.as_ref().map(|it| (it.sign_in.clone(), it.copies())) {
            Some((sign_in, Ok(keys))) => (Some(sign_in), keys),
            Some((_, Err(error))) => {
                tracing::error!(%error, "the keys of a proxy could not be passed on");
                (None, Vec::new())
            }
            None => (None, Vec::new()),
        }
    }

    /// Its row, while it lives.
    pub(super) fn proxy_row(&self) -> Option<ProcessRow> {
        let life = self.proxy.as_ref()?.life.as_ref()?;
        Some(self.row_of(RunnerProgram::Web, life.pid))
    }

    /// A proxy that is still at this is stuck, or stopped; its end is dealt with as any other.
    pub(super) fn proxy_limit_reached(&self, stage: RunnerLimit) {
        let Some(RunningProxy { machine, life: Some(life) }) = &self.proxy else { return };
        match stage {
            RunnerLimit::ProxyCage if machine.is_caged() => {}
            RunnerLimit::ProxyCage | RunnerLimit::ProxyExit => {
                tracing::warn!(call = %self.plan.facts.call.id, ?stage, "a proxy is late");
                life.kill();
            }
            RunnerLimit::Cage | RunnerLimit::Probe | RunnerLimit::Cancel | RunnerLimit::Exit => {}
        }
    }
}

impl RunningProxy {
    fn breach(&self) {
        if let Some(life) = &self.life {
            life.kill_for_breach("a word out of turn");
        }
    }
}
