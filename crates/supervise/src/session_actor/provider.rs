//! The session's provider: started when it is needed, suspended when it was not asked for a while.

use super::state::{ProviderState, SessionActorState};
use crate::messages::{SessionMsg, SessionTimer};
use crate::worker::actor::{WorkerEvent, WorkerMsg};
#[cfg(agentd_hooks)]
use protocol::provider::FromProvider;
use protocol::provider::{PassedFd, ProviderLink, ToProvider};
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use std::time::Duration;

impl SessionActorState {
    pub(super) async fn on_provider_event(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        event: WorkerEvent<ProviderLink>,
    ) {
        match event {
            WorkerEvent::Up(generation) => {
                self.workers.provider.up(generation);
                self.configure_provider();
                let steps = self.turn.router.provider_up();
                self.carry_out(myself, steps).await;
                self.suspend_later(myself);
            }
            WorkerEvent::Message { message, permit } => {
                ipc::step!("supervisor: route", if matches!(message, FromProvider::Delta { .. }));
                if self.fall_back(myself, &message).await {
                    return;
                }
                let steps = self.turn.router.on_provider_msg(message);
                self.forward_to_conversation(myself, steps, permit).await;
                self.suspend_later(myself);
            }
            WorkerEvent::Down { cause, failed } => {
                self.workers.provider_state = ProviderState::Down;
                let steps = self.turn.router.provider_down(&cause, failed.as_deref());
                self.carry_out(myself, steps).await;
                if let Some(why) = failed {
                    self.provider_failed(why);
                }
            }
        }
    }

    /// Sends a message to the provider. A request starts a suspended provider.
    pub(super) async fn send_provider(&mut self, message: ToProvider) {
        if matches!(message, ToProvider::Ask(_)) {
            if let Some(resting) = self.timers.provider_idle.take() {
                resting.abort();
            }
            if self.workers.provider_state == ProviderState::Stale {
                self.suspend_provider();
            }
            let _ = self.workers.provider.actor().send_message(WorkerMsg::Resume);
        }
        match self.workers.provider_state {
            ProviderState::Ready | ProviderState::Stale => {
                let message = match message {
                    ToProvider::Ask(request) => ToProvider::Ask(self.fill_in_images(request).await),
                    ToProvider::Configure { .. } | ToProvider::Cancel | ToProvider::Ping(_) => {
                        message
                    }
                };
                self.workers.provider.send(message);
            }
            // An open request is sent when the process is up; a request to cancel died with the old
            // one.
            ProviderState::Down => {}
        }
    }

    /// A client passed descriptors, a newer key for example.
    pub(super) fn on_new_keys(&mut self) {
        if self.may_suspend() {
            self.replace_provider();
        }
    }

    /// The next request starts a new process, with the new server or key.
    pub(super) fn replace_provider(&mut self) {
        if self.workers.provider_state == ProviderState::Ready {
            self.workers.provider_state = ProviderState::Stale;
        }
    }

    /// Suspends the provider after a while, if it is not asked.
    pub(super) fn suspend_later(&mut self, myself: &ActorRef<SessionMsg>) {
        let idle =
            self.workers.provider_state != ProviderState::Down && !self.turn.router.awaits_answer();
        if idle && self.timers.provider_idle.is_none() && self.may_suspend() {
            let time = Duration::from_millis(self.spec.config.daemon.idle_provider_ms);
            let later = myself.send_after(time, || SessionMsg::Timer(SessionTimer::ProviderIdle));
            self.timers.provider_idle = Some(later.abort_handle());
        }
    }

    pub(super) fn on_provider_idle(&mut self) {
        self.timers.provider_idle = None;
        if self.workers.provider_state != ProviderState::Down && !self.turn.router.awaits_answer() {
            self.suspend_provider();
        }
    }

    fn suspend_provider(&mut self) {
        self.workers.provider_state = ProviderState::Down;
        let _ = self.workers.provider.actor().send_message(WorkerMsg::Suspend);
    }

    /// Where a recording is played or made, the process knows how far it is.
    pub(super) fn may_suspend(&self) -> bool {
        self.resources.passed_fds.iter().all(|(paper, _)| match paper {
            PassedFd::Key | PassedFd::Credential(_) | PassedFd::ServerVariable(_) => true,
            PassedFd::Replay | PassedFd::Record => false,
        })
    }

    /// Keys of hosts are for proxies.
    fn provider_fds(&self) -> impl Iterator<Item = &(PassedFd, OwnedFd)> {
        self.resources.passed_fds.iter().filter(|(paper, _)| !paper.is_for_calls())
    }

    /// Tells a provider that has just begun whom to speak to.
    pub(super) fn configure_provider(&mut self) {
        self.workers.provider_state = ProviderState::Ready;
        let message = ToProvider::Configure {
            source: self.spec.model().source(),
            patience: self.spec.config.provider.patience,
            proxy: self.spec.config.provider.proxy.clone(),
            papers: self.provider_fds().map(|(paper, _)| paper.clone()).collect(),
        };
        self.workers.provider.send(message);
        for (_, descriptor) in self.provider_fds() {
            match descriptor.try_clone() {
                Ok(copy) => self.workers.provider.send_descriptor(copy),
                Err(error) => {
                    tracing::error!(%error, "a descriptor could not be sent to the provider")
                }
            }
        }
    }
}
