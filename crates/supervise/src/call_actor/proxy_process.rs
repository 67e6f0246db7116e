//! The process of a command's allow-list proxy: started with the runner, read, and ended with it. The
//! machine in `call::proxy_machine` decides what follows from its messages.

use super::not_started;
use super::state::{CallState, RunningProxy};
use crate::messages::CallMsg;
use call::{CallInput, ProxyAttempt, ProxyDecisions, ProxyEffect, ProxyInput, ProxyMachine};
use launch::grant::Grant;
use launch::process::ExitCause;
use launch::runner::{Runner, RunnerEvent, RunnerNews, RunnerStart};
use protocol::client::ProcessRow;
use protocol::tool::{RunnerJob, SignIn};
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use tool_specs::RunnerProgram;

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
        let start = RunnerStart {
            spawner: &spawner,
            program: RunnerProgram::Web,
            grant,
            hello: self.args.hello,
            // The session resumes only when the proxy has ended, too.
            lock: Some(&self.args.lock),
            handed: Vec::new(),
            turn: None,
            generation: self.generation,
            about: self.args.facts.call.id.to_string(),
        };
        let (call, generation) = (myself.clone(), self.generation);
        let process = Runner::start(start, move |event| {
            let _ = call.send_message(CallMsg::Proxy(generation, event));
        });
        let process = process.await.map_err(|error| not_started(&error))?;
        let attempt = std::mem::replace(&mut self.proxy_attempt, ProxyAttempt::Last);
        self.proxy =
            Some(RunningProxy { machine: ProxyMachine::new(attempt), process: Some(process) });
        Ok(())
    }

    /// A listening socket from the runner.
    pub(super) async fn on_proxy_listener(&mut self, myself: &ActorRef<CallMsg>, socket: OwnedFd) {
        match (&self.proxy, &self.runner) {
            (Some(_), _) => self.proxy_step(myself, ProxyInput::Listener(socket)).await,
            (None, Some(runner)) => runner.breach(),
            (None, None) => {}
        }
    }

    pub(super) async fn on_proxy_event(&mut self, myself: &ActorRef<CallMsg>, event: RunnerEvent) {
        let Some(RunningProxy { process: Some(process), .. }) = &mut self.proxy else { return };
        let input = match process.hear(event) {
            RunnerNews::Caged(_) => ProxyInput::Caged,
            RunnerNews::Uncaged { step, reason } => {
                ProxyInput::Uncaged(format!("has no cage ({step}: {reason})"))
            }
            RunnerNews::Proxied { connections, uncounted } => {
                ProxyInput::Decisions(ProxyDecisions { connections, uncounted, cut: None })
            }
            RunnerNews::Ended(cause, _) => {
                self.proxy.iter_mut().for_each(|proxy| proxy.process = None);
                let ended = match matches!(cause, ExitCause::Exited(0)) {
                    true => ProxyInput::Ended,
                    false => ProxyInput::Died,
                };
                ended(cause.to_string())
            }
            RunnerNews::Nothing
            | RunnerNews::Resting { .. }
            | RunnerNews::Lost(_)
            | RunnerNews::Listener(_)
            | RunnerNews::Namespace(..)
            | RunnerNews::Call(_)
            | RunnerNews::Probed(_)
            | RunnerNews::Repaired(_)
            | RunnerNews::Certified(_)
            | RunnerNews::Unlisted(_)
            | RunnerNews::Overdue => return,
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
                    let Some(RunningProxy { process: Some(process), .. }) = &mut self.proxy else {
                        continue;
                    };
                    let doors = u16::try_from(sockets.len()).unwrap_or(u16::MAX);
                    let job = RunnerJob::Proxy { doors, hosts, denied, private, sign_in };
                    if let Err(error) = process.go(&self.args.facts.call.id, job) {
                        tracing::error!(%error, "a proxy was not started");
                        process.kill();
                        continue;
                    }
                    sockets.into_iter().chain(keys).for_each(|it| process.send_descriptor(it));
                }
                ProxyEffect::Finish => {
                    if let Some(RunningProxy { process: Some(process), .. }) = &mut self.proxy {
                        process.cancel();
                    }
                }
                ProxyEffect::EndRunner => self.runner.iter_mut().for_each(Runner::cancel),
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
        Some(self.row_of(RunnerProgram::Web, process.pid()))
    }
}
