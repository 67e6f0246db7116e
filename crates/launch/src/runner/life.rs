//! The life of a runner as its messages tell it: what it may say when, and which step has a time limit. Pure.
//!
//! | Phase | It may say | Next phase |
//! |---|---|---|
//! | Building | of a call and a reserve `Keeper` once, `Mounted`; of a call `ProxyListener` | unchanged |
//! | Building | `Caged`; of a reserve `Resting` | Caged; Resting |
//! | Building | of a repair `Repaired` | Over |
//! | Building | `Uncaged` | Failed |
//! | Resting | nothing; the call that takes it brings Renewing | |
//! | Renewing | `Caged`, `Lost` | unchanged; its owner brings Caged |
//! | Building, Caged, Released, Running | of a call and a reserve `Lost` | Over |
//! | Caged | nothing else; `Go` brings Released | |
//! | Released | of a call and a probe `Began` | Running |
//! | Released, Running | of a probe `Probed`, of a certificate `Certified` | Over |
//! | Released | of a proxy `Proxied` | unchanged |
//! | Running | of a call `Output`, `PutRight`, `Namespace`, `InBackground`, `InputTaken`, `Server` | unchanged |
//! | Running | of a call `Done` | Over |
//! | Over | of a call `Namespace`, `InBackground`, `InputTaken`, `Server`, from threads of their own | unchanged |
//! | any | `Log`, `Pong` | unchanged |
//!
//! Everything else is out of turn.

use crate::grant::RunnerPurpose;
use protocol::tool::{FromCage, FromCall, FromTool, NamespaceKind};
use std::time::Duration;

/// How long a runner may take to build its cage. It takes milliseconds, unless it was stopped.
const CAGE: Duration = Duration::from_secs(10);
/// How long a probe may take: it reads each file once, for its digest.
const PROBE: Duration = Duration::from_secs(60);
/// How long a runner may take to end a cancelled job. It gives a command 2 s before it kills it.
const CANCEL: Duration = Duration::from_secs(3);
/// How long a runner may take to exit after its last message.
pub(crate) const EXIT: Duration = Duration::from_secs(5);

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LifePhase {
    Building,
    /// Its cage stands, for no call.
    Resting,
    /// A call takes it: it and its owner look at its cage again.
    Renewing,
    /// Its cage is complete. It waits for `Go`.
    Caged,
    /// It has `Go`, and has not said that it began.
    Released,
    Running,
    /// It has said its last message.
    Over,
    /// It has no cage, and never had a job.
    Failed,
}

/// A step with a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerStep {
    /// It builds its cage.
    Cage,
    /// It was taken from the reserve and inspects its cage.
    Renew,
    /// It inspects the call's paths.
    Probe,
    /// It ends a cancelled job.
    Cancel,
    /// It exits after its last message.
    Exit,
}

/// A descriptor that it announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnnouncedFd {
    /// A listening socket for the proxy.
    ProxyListener,
    /// The mounted overlays, for the next call.
    Mount,
    /// This namespace of a command that goes on in the background.
    Namespace(NamespaceKind),
}

/// Whom a message concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concerns {
    /// The owner of the runner.
    Owner,
    /// Nobody, or only the descriptor that follows.
    Nobody,
    /// It may not say that now.
    OutOfTurn,
}

/// The life of one runner.
#[derive(Debug)]
pub(super) struct RunnerLife {
    purpose: RunnerPurpose,
    phase: LifePhase,
    /// It was asked to end its job.
    cancelled: bool,
    has_keeper: bool,
    announced: Option<AnnouncedFd>,
}

impl RunnerLife {
    pub(super) fn new(purpose: RunnerPurpose) -> Self {
        let phase = LifePhase::Building;
        Self { purpose, phase, cancelled: false, has_keeper: false, announced: None }
    }

    /// Takes a message in.
    pub(super) fn hear(&mut self, message: &FromTool) -> Concerns {
        use {LifePhase as P, RunnerPurpose as For};
        let (next, concerns) = match (message, self.phase, self.purpose) {
            (FromTool::Log(_) | FromTool::Pong(_), phase, _) => (phase, Concerns::Nobody),
            (FromTool::Cage(news), ..) => return self.hear_cage(news),
            (FromTool::Call(news), ..) => return self.hear_call(news),
            (FromTool::Probed(_), P::Released | P::Running, For::Probe)
            | (FromTool::Certified(_), P::Released, For::Certificate)
            | (FromTool::Repaired(_), P::Building, For::Repair) => (P::Over, Concerns::Owner),
            (FromTool::Proxied { .. }, phase @ P::Released, For::Proxy) => (phase, Concerns::Owner),
            (
                FromTool::Probed(_)
                | FromTool::Certified(_)
                | FromTool::Repaired(_)
                | FromTool::Proxied { .. },
                phase,
                _,
            ) => (phase, Concerns::OutOfTurn),
        };
        self.phase = next;
        concerns
    }

    fn hear_cage(&mut self, news: &FromCage) -> Concerns {
        use {LifePhase as P, RunnerPurpose as For};
        let (next, concerns) = match (news, self.phase, self.purpose) {
            (FromCage::Keeper(_), P::Building, For::Call | For::Reserve) if !self.has_keeper => {
                self.has_keeper = true;
                (P::Building, Concerns::Owner)
            }
            (FromCage::Mounted, P::Building, For::Call | For::Reserve) => {
                self.announced = Some(AnnouncedFd::Mount);
                (P::Building, Concerns::Nobody)
            }
            (FromCage::ProxyListener, P::Building, For::Call) => {
                self.announced = Some(AnnouncedFd::ProxyListener);
                (P::Building, Concerns::Nobody)
            }
            (FromCage::Resting { .. }, P::Building, For::Reserve) => (P::Resting, Concerns::Owner),
            (
                FromCage::Caged(_),
                P::Building,
                For::Call | For::Probe | For::Proxy | For::Certificate,
            ) => (P::Caged, Concerns::Owner),
            (FromCage::Caged(_) | FromCage::Lost(_), P::Renewing, _) => {
                (P::Renewing, Concerns::Owner)
            }
            (FromCage::Uncaged { .. }, P::Building, _) => (P::Failed, Concerns::Owner),
            (
                FromCage::Lost(_),
                P::Building | P::Caged | P::Released | P::Running,
                For::Call | For::Reserve,
            ) => (P::Over, Concerns::Owner),
            (
                FromCage::Keeper(_)
                | FromCage::Mounted
                | FromCage::ProxyListener
                | FromCage::Resting { .. }
                | FromCage::Caged(_)
                | FromCage::Uncaged { .. }
                | FromCage::Lost(_),
                phase,
                _,
            ) => (phase, Concerns::OutOfTurn),
        };
        self.phase = next;
        concerns
    }

    fn hear_call(&mut self, news: &FromCall) -> Concerns {
        use {LifePhase as P, RunnerPurpose as For};
        let (next, concerns) = match (news, self.phase, self.purpose) {
            (FromCall::Began, P::Released, For::Call) => (P::Running, Concerns::Owner),
            (FromCall::Began, P::Released, For::Probe) => (P::Running, Concerns::Nobody),
            (FromCall::Output { .. } | FromCall::PutRight(_), P::Running, For::Call) => {
                (P::Running, Concerns::Owner)
            }
            (FromCall::Namespace(kind), phase @ (P::Running | P::Over), For::Call) => {
                self.announced = Some(AnnouncedFd::Namespace(*kind));
                (phase, Concerns::Nobody)
            }
            (
                FromCall::InputTaken(_) | FromCall::Server(_),
                phase @ (P::Running | P::Over),
                For::Call,
            ) => (phase, Concerns::Owner),
            (FromCall::InBackground, P::Running, For::Call) if !self.cancelled => {
                (P::Running, Concerns::Owner)
            }
            // The call ends before the conversation could go on.
            (FromCall::InBackground, phase @ (P::Running | P::Over), For::Call) => {
                (phase, Concerns::Nobody)
            }
            (FromCall::Done(_), P::Running, For::Call) => (P::Over, Concerns::Owner),
            (
                FromCall::Began
                | FromCall::Output { .. }
                | FromCall::PutRight(_)
                | FromCall::Namespace(_)
                | FromCall::InputTaken(_)
                | FromCall::Server(_)
                | FromCall::InBackground
                | FromCall::Done(_),
                phase,
                _,
            ) => (phase, Concerns::OutOfTurn),
        };
        self.phase = next;
        concerns
    }

    /// The descriptor that it announced last, once.
    pub(super) fn take_announced(&mut self) -> Option<AnnouncedFd> {
        self.announced.take()
    }

    /// `Go` is sent.
    pub(super) fn released(&mut self) {
        if self.phase == LifePhase::Caged {
            self.phase = LifePhase::Released;
        }
    }

    /// It is asked to end its job.
    pub(super) fn cancelled(&mut self) {
        self.cancelled = true;
    }

    /// A call takes it.
    pub(super) fn renewed(&mut self, purpose: RunnerPurpose) {
        self.purpose = purpose;
        self.phase = LifePhase::Renewing;
    }

    /// Its cage fits the call that took it.
    pub(super) fn fits(&mut self) {
        if self.phase == LifePhase::Renewing {
            self.phase = LifePhase::Caged;
        }
    }

    pub(super) fn purpose(&self) -> RunnerPurpose {
        self.purpose
    }

    /// It works, and was not asked to end.
    pub(super) fn is_running(&self) -> bool {
        self.phase == LifePhase::Running && !self.cancelled
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// The step that has just begun, with its time limit.
    pub(super) fn limit(&self) -> Option<(RunnerStep, Duration)> {
        match (self.phase, self.purpose) {
            // The restoring itself has the limit of its owner.
            (LifePhase::Building, RunnerPurpose::Repair) => None,
            (LifePhase::Building, _) => Some((RunnerStep::Cage, CAGE)),
            (LifePhase::Over | LifePhase::Failed, _) => Some((RunnerStep::Exit, EXIT)),
            (_, _) if self.cancelled => Some((RunnerStep::Cancel, CANCEL)),
            (LifePhase::Released, RunnerPurpose::Probe) => Some((RunnerStep::Probe, PROBE)),
            (_, _) => None,
        }
    }

    /// True if it is in this step.
    pub(super) fn is_at(&self, step: RunnerStep) -> bool {
        match step {
            RunnerStep::Cage => self.phase == LifePhase::Building,
            RunnerStep::Renew => self.phase == LifePhase::Renewing,
            RunnerStep::Probe => {
                self.purpose == RunnerPurpose::Probe
                    && matches!(self.phase, LifePhase::Released | LifePhase::Running)
            }
            RunnerStep::Cancel => {
                self.cancelled && !matches!(self.phase, LifePhase::Over | LifePhase::Failed)
            }
            RunnerStep::Exit => matches!(self.phase, LifePhase::Over | LifePhase::Failed),
        }
    }
}
