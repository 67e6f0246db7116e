//! The processes that serve a session, and the messages that wait while one of them is away. Each process has an
//! owner that holds its address; no other code sends to it.

pub(super) mod conversation;
pub(super) mod provider;
pub(super) mod replay;
pub(super) mod store;

use super::failures::Failures;
use crate::messages::{CallMsg, SessionMsg, SessionTimer};
use crate::worker::actor::{WorkerActor, WorkerArgs, WorkerEvent};
use crate::worker_ref::WorkerRef;
use call::{CallInput, WillRestart};
use conversation::ConversationSeat;
use launch::progress::MessageProgress;
use launch::spawner::{Spawner, WorkerKind};
use launch::timeouts::WorkerTimeouts;
use protocol::Link;
use protocol::broker::{BrokerLink, ToBroker};
use protocol::client::ProcessRow;
use protocol::hook::{HookEvent, HookOccasion, SessionHooks};
use protocol::provider::{PassedFd, ProviderLink, ToProvider};
use protocol::session::{SessionLink, ToSession};
use protocol::store::{StoreLink, ToStore};
use provider::ProviderSeat;
use ractor::{Actor, ActorRef, SpawnErr};
use setup::session_spec::SessionSpec;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use store::StoreSeat;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The processes that serve a session. The broker serves every session.
pub(super) struct Workers {
    pub(super) conversation: ConversationSeat,
    pub(super) provider: ProviderSeat,
    pub(super) store: StoreSeat,
    pub(super) broker: WorkerRef<BrokerLink>,
    pings: Pings,
}

/// The parts of a session that start its workers.
pub(super) struct Starting<'a> {
    pub(super) spec: &'a SessionSpec,
    pub(super) spawner: &'a Spawner,
    pub(super) session: &'a ActorRef<SessionMsg>,
    pub(super) times: WorkerTimeouts,
}

impl Starting<'_> {
    /// Starts one of them, whose events become messages of the session.
    async fn worker<L: Link + 'static>(
        &self,
        kind: WorkerKind,
        message: fn(WorkerEvent<L>) -> SessionMsg,
    ) -> Result<WorkerRef<L>, SpawnErr>
    where
        L::From: MessageProgress,
    {
        let session = self.session.clone();
        let args = WorkerArgs {
            kind,
            session: Some(self.spec.id().clone()),
            spawner: self.spawner.clone(),
            timeouts: match kind {
                WorkerKind::Session => self.times.replaying(),
                WorkerKind::Broker | WorkerKind::Provider | WorkerKind::Store => self.times,
            },
            on_event: Arc::new(move |event| {
                let _ = session.send_message(message(event));
            }),
        };
        let own = self.session.get_cell();
        let (worker, _) =
            WorkerActor::<L>::spawn_linked(None, WorkerActor::new(), args, own).await?;
        Ok(WorkerRef::new(worker))
    }
}

/// When the workers are pinged.
struct Pings {
    session: ActorRef<SessionMsg>,
    every: Duration,
    /// Until the next ping.
    timer: Option<AbortHandle>,
}

impl Workers {
    /// Starts those of a session that is opened, with the descriptors that clients passed for it.
    pub(super) async fn start(
        starting: Starting<'_>,
        broker: WorkerRef<BrokerLink>,
        passed_fds: Vec<(PassedFd, OwnedFd)>,
    ) -> Result<Self, SpawnErr> {
        let store = starting.worker(WorkerKind::Store, SessionMsg::Store).await?;
        let conversation = starting.worker(WorkerKind::Session, SessionMsg::Conversation).await?;
        let provider = starting.worker(WorkerKind::Provider, SessionMsg::Provider).await?;
        let (session, every) = (starting.session.clone(), starting.times.ping);
        Ok(Self {
            conversation: ConversationSeat::of(conversation),
            provider: ProviderSeat::of(provider, passed_fds),
            store: StoreSeat::of(starting.spec.id().clone(), store),
            broker,
            pings: Pings { session, every, timer: None },
        })
    }

    /// The timer of a ping is over.
    pub(super) fn ping_is_due(&mut self) {
        self.pings.timer = None;
    }

    pub(super) fn ping(&self) {
        self.conversation.process().ping(ToSession::Ping(0));
        self.provider.process().ping(ToProvider::Ping(0));
        self.broker.ping(ToBroker::Ping(0));
        self.store.process().ping(ToStore::Ping(0));
    }

    /// A turn is open: they are pinged in a while.
    pub(super) fn ping_later(&mut self) {
        if self.pings.timer.is_none() {
            let ping = || SessionMsg::Timer(SessionTimer::Ping);
            let later = self.pings.session.send_after(self.pings.every, ping);
            self.pings.timer = Some(later.abort_handle());
        }
    }

    /// Starts the processes that have failed again.
    pub(super) fn retry(&self) {
        self.conversation.process().retry();
        self.provider.process().retry();
        self.store.process().retry();
    }

    /// A call that has just begun would wait for ever for a worker that has failed.
    pub(super) fn tell_failures(&self, call: &ActorRef<CallMsg>, failures: &Failures) {
        if let Some(why) = failures.broker() {
            let _ = call.send_message(CallMsg::Input(CallInput::BrokerFailed(why.to_owned())));
        }
        if let Some(cause) = self.store.failure() {
            let (cause, will_restart) = (cause.to_owned(), WillRestart::No);
            let _ = call.send_message(CallMsg::Input(CallInput::StoreLost { cause, will_restart }));
        }
    }

    /// Asks for the rows of the session's own processes.
    pub(super) fn describe(&self) -> [oneshot::Receiver<ProcessRow>; 3] {
        [
            self.conversation.process().describe(),
            self.provider.process().describe(),
            self.store.process().describe(),
        ]
    }

    /// The session's own processes, to end behind its calls.
    pub(super) fn own(&self) -> OwnProcesses {
        OwnProcesses {
            conversation: self.conversation.process().clone(),
            provider: self.provider.process().clone(),
            store: self.store.process().clone(),
        }
    }

    /// Has the conversation of a session that takes input run the hooks of an event; false if none of them runs.
    pub(super) fn run_hooks(&self, known: &SessionHooks, occasion: HookOccasion) -> bool {
        let runs =
            has_hooks(known, occasion.event, &occasion.subject) && self.conversation.has_begun();
        if runs {
            self.conversation.send(ToSession::HooksDue(occasion));
        }
        runs
    }

    /// The session has ended: no timer runs.
    pub(super) fn stop_timers(&mut self) {
        for timer in [self.pings.timer.take(), self.provider.timer_over()].into_iter().flatten() {
            timer.abort();
        }
    }
}

/// The processes that serve one session alone.
pub(super) struct OwnProcesses {
    conversation: WorkerRef<SessionLink>,
    provider: WorkerRef<ProviderLink>,
    store: WorkerRef<StoreLink>,
}

impl OwnProcesses {
    /// Ends all of them. Each has this time.
    pub(super) async fn end(self, patience: Duration) {
        for stopped in [self.conversation.stop(), self.provider.stop(), self.store.stop()] {
            let _ = tokio::time::timeout(patience, stopped).await;
        }
    }
}

/// True if a hook of the session is for this event.
pub(super) fn has_hooks(known: &SessionHooks, event: HookEvent, subject: &str) -> bool {
    known.events.iter().any(|hook| hook.is_for(event, subject))
}
