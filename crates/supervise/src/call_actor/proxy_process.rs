//! The process of a command's allow-list proxy: started with the runner, read, and ended with it. The
//! machine in `call::proxy_machine` decides what follows from its messages.

use super::not_started;
use super::state::{CallState, RunningProxy};
use crate::grant::Grant;
use crate::messages::{CallMsg, RunnerLimit};
use crate::worker::log_lines;
use crate::worker::process::{ExitCause, ProcessEvent, WorkerProcess};
use call::{CallInput, ProxyAttempt, ProxyDecisions, ProxyEffect, ProxyInput, ProxyMachine};
use protocol::client::ProcessRow;
use protocol::tool::{FromTool, RunnerJob, SignIn, ToTool};
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use tools::RunnerProgram;

/// Names are resolved as written. With one of the machine's search domains appended, a name would be
/// another host, which the list does not have.
const NO_SEARCH: (&str, &str) = ("LOCALDOMAIN", ".");

impl CallState {
    /// Starts the proxy. It builds its cage while the runner builds the command's.
    pub(super) async fn start_proxy(
        &mut self,
        myself: &ActorRef<CallMsg>,
        grant: Grant,
    ) -> Result<(), CallInput> {
        let (name, value) = NO_SEARCH;
        let spawner = self.args.spawner.with_env(&[(name.to_owned(), value.to_owned())]);
        let started = spawner.spawn_runner(&grant, RunnerProgram::Web).await;
        let started = started.map_err(|error| not_started(&error))?;
        let (call, generation) = (myself.clone(), self.generation);
        let process = WorkerProcess::attach(started, generation, self.args.hello, move |report| {
            let _ = call.send_message(CallMsg::Proxy(generation, report));
        })
        .map_err(|error| not_started(&error))?;
        // The session resumes only when the proxy has ended, too.
        let lock = self.args.lock.share(process.pid).map_err(|error| not_started(&error))?;
        process.send(&ToTool::SessionLock);
        process.send_descriptor(lock);
        process.send(&grant.begin());
        let attempt = std::mem::replace(&mut self.proxy_attempt, ProxyAttempt::Last);
        self.proxy = Some(RunningProxy {
            machine: ProxyMachine::new(attempt),
            grant,
            process: Some(process),
        });
        self.start_limit(myself, RunnerLimit::ProxyCage);
        Ok(())
    }

    /// A listening socket from the runner.
    pub(super) async fn on_proxy_listener(&mut self, myself: &ActorRef<CallMsg>, socket: OwnedFd) {
        match (&self.proxy, &self.runner) {
            (Some(_), _) => self.proxy_step(myself, ProxyInput::Listener(socket)).await,
            (None, Some(runner)) => runner.process.kill_for_breach("a descriptor out of turn"),
            (None, None) => {}
        }
    }

    pub(super) async fn on_proxy_event(
        &mut self,
        myself: &ActorRef<CallMsg>,
        report: ProcessEvent<protocol::tool::ToolLink>,
    ) {
        let Some(proxy) = &mut self.proxy else { return };
        let message = match report {
            ProcessEvent::Message { message, permit: _permit } => message,
            ProcessEvent::Descriptor(_) => {
                return proxy.breach();
            }
            ProcessEvent::Ended(cause, _) => {
                proxy.process = None;
                let ended = match matches!(cause, ExitCause::Exited(0)) {
                    true => ProxyInput::Ended,
                    false => ProxyInput::Died,
                };
                return self.proxy_step(myself, ended(cause.to_string())).await;
            }
        };
        let input = match message {
            FromTool::Caged(_) => ProxyInput::Caged,
            FromTool::Uncaged { step, reason } => {
                ProxyInput::Uncaged(format!("has no cage ({step}: {reason})"))
            }
            FromTool::Proxied { connections, uncounted } => {
                ProxyInput::Decisions(ProxyDecisions { connections, uncounted, cut: None })
            }
            FromTool::Log(line) => {
                log_lines::write("agentd-web", &self.args.facts.call.id, &line);
                return;
            }
            FromTool::Pong(_) => return,
            FromTool::ProxyListener
            | FromTool::Began
            | FromTool::Mounted
            | FromTool::Namespace(_)
            | FromTool::InBackground
            | FromTool::Resting { .. }
            | FromTool::Output { .. }
            | FromTool::Server(_)
            | FromTool::InputTaken(_)
            | FromTool::Probed(_)
            | FromTool::Done(_)
            | FromTool::Keeper(_)
            | FromTool::Repaired(_)
            | FromTool::Certified(_)
            | FromTool::Lost(_) => {
                return proxy.breach();
            }
        };
        self.proxy_step(myself, input).await;
    }

    pub(super) async fn proxy_step(
        &mut self,
        myself: &ActorRef<CallMsg>,
        input: ProxyInput<OwnedFd>,
    ) {
        let Some(proxy) = &mut self.proxy else { return };
        for effect in proxy.machine.step(input) {
            match effect {
                ProxyEffect::Serve(sockets) => {
                    let hosts = self.args.confinement.hosts.clone();
                    let denied = self.args.denied_hosts.clone();
                    let private = self.args.private_hosts.clone();
                    let (sign_in, keys) = self.sign_in();
                    if let Some(RunningProxy { process: Some(process), grant, .. }) = &self.proxy {
                        let doors = u16::try_from(sockets.len()).unwrap_or(u16::MAX);
                        let job = RunnerJob::Proxy { doors, hosts, denied, private, sign_in };
                        match grant.go(&self.args.facts.call.id, job) {
                            Ok(go) => process.send(&go),
                            Err(error) => {
                                tracing::error!(%error, "a proxy was not started");
                                process.kill();
                                continue;
                            }
                        }
                        sockets.into_iter().chain(keys).for_each(|it| process.send_descriptor(it));
                    }
                }
                ProxyEffect::Finish => {
                    if let Some(RunningProxy { process: Some(process), .. }) = &self.proxy {
                        process.send(&ToTool::Cancel);
                    }
                    self.start_limit(myself, RunnerLimit::ProxyExit);
                }
                // The limit of its cage applies to this, too.
                ProxyEffect::EndRunner => self.send_runner(&ToTool::Cancel),
                ProxyEffect::ToCall(input) => self.carry_out(myself, *input).await,
            }
        }
    }

    /// The hosts that it signs in to, and copies of the keys: a proxy may be started twice.
    fn sign_in(&self) -> (Option<SignIn>, Vec<OwnedFd>) {
        match self.args.sign_in.as_ref().map(|it| (it.sign_in.clone(), it.copies())) {
            Some((sign_in, Ok(keys))) => (Some(sign_in), keys),
            Some((_, Err(error))) => {
                tracing::error!(%error, "the keys could not be sent to a proxy");
                (None, Vec::new())
            }
            None => (None, Vec::new()),
        }
    }

    /// The row of a running proxy.
    pub(super) fn proxy_row(&self) -> Option<ProcessRow> {
        let process = self.proxy.as_ref()?.process.as_ref()?;
        Some(self.row_of(RunnerProgram::Web, process.pid))
    }

    /// Kills a proxy that has not finished this step: it is stuck or stopped. Its end is handled as any
    /// other.
    pub(super) fn proxy_limit_reached(&self, limit: RunnerLimit) {
        let Some(RunningProxy { machine, process: Some(process), .. }) = &self.proxy else {
            return;
        };
        match limit {
            RunnerLimit::ProxyCage if machine.is_caged() => {}
            RunnerLimit::ProxyCage | RunnerLimit::ProxyExit => {
                tracing::warn!(call = %self.args.facts.call.id, ?limit, "a proxy exceeded its time limit");
                process.kill();
            }
            RunnerLimit::Cage
            | RunnerLimit::Renew(_)
            | RunnerLimit::Probe
            | RunnerLimit::Cancel
            | RunnerLimit::Exit => {}
        }
    }
}

impl RunningProxy {
    fn breach(&self) {
        if let Some(process) = &self.process {
            process.kill_for_breach("a message out of turn");
        }
    }
}
