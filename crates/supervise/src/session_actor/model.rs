//! The session's way to its model: a provider that is there while it is needed, and rests when
//! nobody has asked it for a while.

use super::{SessionMsg, SessionState};
use crate::slot::SlotMsg;
use protocol::provider::{Paper, ToProvider};
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Whether the provider's process can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It lives and was told whom to speak to.
    Ready,
    /// The same, but since then a client gave other papers: the next request is for a new process.
    Outdated,
    /// None lives, or it was told nothing yet. It is told what is open when it is.
    Unready,
}

impl SessionState {
    /// Says it to the provider, which is started for a request where it rests.
    pub(super) fn say_to_provider(&mut self, word: ToProvider) {
        if matches!(word, ToProvider::Ask(_)) {
            if let Some(resting) = self.resting.take() {
                resting.abort();
            }
            if self.reach == Reach::Outdated {
                self.rest();
            }
            let _ = self.provider.slot().send_message(SlotMsg::Wake);
        }
        match self.reach {
            Reach::Ready | Reach::Outdated => self.provider.send(word),
            // What is open is asked when it is up; what was to be given up died with it.
            Reach::Unready => {}
        }
    }

    /// A client gave papers, a newer key for example.
    pub(super) fn papers_came(&mut self) {
        if self.may_rest() {
            self.server_changed();
        }
    }

    /// The next request is for a process that is told anew whom to speak to.
    pub(super) fn server_changed(&mut self) {
        if self.reach == Reach::Ready {
            self.reach = Reach::Outdated;
        }
    }

    /// Has the provider rest after a while, if nothing is asked of it.
    pub(super) fn rest_later(&mut self, myself: &ActorRef<SessionMsg>) {
        let idle = self.reach != Reach::Unready && !self.router.asks();
        if idle && self.resting.is_none() && self.may_rest() {
            let time = Duration::from_millis(self.plan.config.daemon.idle_provider_ms);
            let later = myself.send_after(time, || SessionMsg::ProviderUnused);
            self.resting = Some(later.abort_handle());
        }
    }

    pub(super) fn provider_unused(&mut self) {
        self.resting = None;
        if self.reach != Reach::Unready && !self.router.asks() {
            self.rest();
        }
    }

    fn rest(&mut self) {
        self.reach = Reach::Unready;
        let _ = self.provider.slot().send_message(SlotMsg::Rest);
    }

    /// Where a recording is played or made, the process knows how far it is.
    pub(super) fn may_rest(&self) -> bool {
        self.papers.iter().all(|(paper, _)| match paper {
            Paper::Key | Paper::Credential(_) => true,
            Paper::Replay | Paper::Record => false,
        })
    }

    /// Keys of hosts are for proxies.
    fn of_provider(&self) -> impl Iterator<Item = &(Paper, OwnedFd)> {
        self.papers.iter().filter(|(paper, _)| !matches!(paper, Paper::Credential(_)))
    }

    /// Tells a provider that has just begun whom to speak to.
    pub(super) fn configure_provider(&mut self) {
        self.reach = Reach::Ready;
        let word = ToProvider::Configure {
            source: self.plan.source.clone(),
            patience: self.plan.config.provider.patience,
            proxy: self.plan.config.provider.proxy.clone(),
            papers: self.of_provider().map(|(paper, _)| paper.clone()).collect(),
        };
        self.provider.send(word);
        for (_, descriptor) in self.of_provider() {
            match descriptor.try_clone() {
                Ok(copy) => self.provider.send_descriptor(copy),
                Err(error) => tracing::error!(%error, "a descriptor could not be passed on"),
            }
        }
    }
}
