//! The state of a call actor.

use super::job::Job;
use crate::audit_actor::AuditMsg;
use crate::fleet_seat::FleetLease;
use crate::messages::{CallMsg, ReserveMsg, SessionMsg};
use crate::records::TurnRound;
use crate::records::audit::RunFacts;
use crate::sign_in::SignInKeys;
use crate::worker_ref::WorkerRef;
use crate::written_dirs::WrittenDirs;
use call::{CallFacts, CallMachine, ProxyAttempt, ProxyMachine};
use launch::cage_cleanup::CageCleanup;
use launch::project_overlays::ProjectOverlays;
use launch::protected_restore::ProtectedCopies;
use launch::runner::Runner;
use launch::session_lock::SessionLock;
use launch::session_network::SessionNetwork;
use launch::spawner::Spawner;
use protocol::broker::BrokerLink;
use protocol::confinement::{Confinement, Enforced};
use protocol::hosts::HostRule;
use protocol::ids::Generation;
use protocol::judgement::Verdict;
use protocol::store::{StoreLink, UndoCover};
use protocol::tool::RunnerJob;
use ractor::concurrency::JoinHandle;
use ractor::{ActorRef, MessagingErr};
use setup::git_signing::AgentGrant;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A request for the runner of the session's reserve.
pub(crate) struct ReserveRequest {
    pub(super) verdict: Verdict,
    /// The file for its copies of protected files.
    pub(super) copies: Option<OwnedFd>,
}

/// Arguments of a call actor.
pub(crate) struct CallArgs {
    pub(crate) facts: CallFacts,
    pub(crate) confinement: Confinement,
    /// Access to the ssh agent, where the call asks for signed commits and tags.
    pub(crate) signing: Option<AgentGrant>,
    /// As in the configuration.
    pub(crate) background_after_ms: u64,
    /// The network that its process joins.
    pub(crate) network: Option<Arc<SessionNetwork>>,
    /// Hosts that rules deny, even if the allow-list names them.
    pub(crate) denied_hosts: Vec<HostRule>,
    /// The hosts that the person's configuration names for the client of a server, wherever they are: not the
    /// one where a log-in is renewed, which the server named.
    pub(crate) private_hosts: Vec<HostRule>,
    /// The keys that the proxy of its command signs in with.
    pub(crate) sign_in: Option<SignInKeys>,
    /// The program that inspects its paths and executes it.
    pub(crate) runner: tool_specs::RunnerProgram,
    pub(crate) place: TurnRound,
    pub(crate) hello: Duration,
    /// How long a runner may take to answer a ping.
    pub(crate) ping: Duration,
    /// How long people may take to answer a question, in milliseconds.
    pub(crate) question_ms: u64,
    /// The lease in a fleet under which it runs.
    pub(crate) lease: Option<FleetLease>,
    /// The session lock, which each runner shares.
    pub(crate) lock: SessionLock,
    /// The copies of protected files that the session's runners make.
    pub(crate) saved: ProtectedCopies,
    /// The overlays that hold the commands' changes to package caches.
    pub(crate) overlays: Option<Arc<ProjectOverlays>>,
    /// The directories that calls of any session write.
    pub(crate) written: Arc<WrittenDirs>,
    pub(crate) spawner: Spawner,
    pub(crate) session: ActorRef<SessionMsg>,
    pub(crate) broker: WorkerRef<BrokerLink>,
    pub(crate) store: WorkerRef<StoreLink>,
    /// Has a runner for it, unless it was asked before.
    pub(crate) reserve: Option<ActorRef<ReserveMsg>>,
    pub(crate) audit: ActorRef<AuditMsg>,
}

/// The two looks at a cage that was built before its call came.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    /// The runner found its cage complete.
    pub(super) enforced: Option<Enforced>,
    /// This process found the paths that the cage has opened unchanged.
    pub(super) same_paths: bool,
}

/// The proxy of the present runner's command.
pub(super) struct RunningProxy {
    pub(super) machine: ProxyMachine<OwnedFd>,
    /// Absent once it has ended.
    pub(super) process: Option<Runner>,
}

pub(super) type Timer = JoinHandle<Result<(), MessagingErr<CallMsg>>>;
type SlowTimer = JoinHandle<Result<(), MessagingErr<SessionMsg>>>;

/// One call that has an actor.
pub(crate) struct CallState {
    pub(super) args: CallArgs,
    pub(super) machine: CallMachine,
    pub(super) runner: Option<Runner>,
    /// What a runner that inspects the call's paths gets once its cage stands.
    pub(super) probe_job: Option<RunnerJob>,
    pub(super) proxy: Option<RunningProxy>,
    /// The next proxy is the first try, or the last.
    pub(super) proxy_attempt: ProxyAttempt,
    /// The number of the present runner; messages of earlier ones are dropped.
    pub(super) generation: Generation,
    pub(super) timers: CallTimers,
    /// The output of its command, and the calls about it.
    pub(super) job: Job<ActorRef<CallMsg>>,
    /// While the reserve is asked for its runner.
    pub(super) reserved_for: Option<ReserveRequest>,
    /// While the runner of the reserve is looked at again.
    pub(super) renewal: Option<Renewal>,
    pub(super) before_go: BeforeGo,
    pub(super) audited: Audited,
    pub(super) ran: RunFacts,
    /// All processes of the last runner have ended.
    pub(super) cage_cleanup: CageCleanup,
}

/// Aborted at the end of the call, so that a session does not collect those of all its calls.
#[derive(Default)]
pub(super) struct CallTimers {
    /// The time at which the call is killed.
    pub(super) overdue: Option<Timer>,
    /// The time at which the session is told that the command is slow.
    pub(super) slow: Option<SlowTimer>,
    pub(super) others: Vec<Timer>,
}

impl CallTimers {
    pub(super) fn abort(&self) {
        self.others.iter().chain(&self.overdue).for_each(Timer::abort);
        self.slow.iter().for_each(SlowTimer::abort);
    }
}

/// What `Go` waits for, until it is awaited.
#[derive(Default)]
pub(super) struct BeforeGo {
    /// The audit log's answer about the decision.
    pub(super) decision_written: Option<oneshot::Receiver<Result<(), String>>>,
    /// Answered when the store has copied the files that the call may change.
    pub(super) backed_up: Option<oneshot::Receiver<UndoCover>>,
}

/// The audit log's records of the call before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audited {
    Nothing,
    /// The proposal with its script, and the decision.
    Proposal,
}
