//! A session without any sandbox: only where no cage can be made, only as long as its clients say so
//! themselves, and with nothing that would lean on a cage. For `plan` and the session actor.

use super::{OpenFailure, SessionSpec};
use config::Config;
use protocol::client::{FailedKind, Opening, Uncaged};
use protocol::confinement::{Level, Tier};
use protocol::judgement::Mode;

/// In questions and beside the session.
pub(super) const DESCRIPTION: &str =
    "this runs without any sandbox: it may do all that you may; network: on, nothing holds it off";

const AUTO: &str = "the mode auto allows what the cage holds, and this session has none: choose ask, \
                    accept-edits, plan or dont-ask, and allow commands by rules";

/// Whether this host, what was asked for and the mode go together.
///
/// # Errors
/// In plain words, with a way on.
pub(super) fn check_cage(
    opening: &Opening,
    host: Tier,
    config: &Config,
) -> Result<(), OpenFailure> {
    match (host, opening.uncaged) {
        (Tier::A | Tier::B, Uncaged::Refused) => Ok(()),
        (Tier::C, Uncaged::Refused) => Err(OpenFailure::new(
            FailedKind::SandboxUnavailable,
            "no cage can be made on this machine, so no tool may run. `agentd doctor` says which \
             step fails and what to do; --unsafe-no-sandbox runs calls without any",
        )),
        (Tier::A | Tier::B, Uncaged::Accepted) => Err(OpenFailure::new(
            FailedKind::Usage,
            format!(
                "--unsafe-no-sandbox is for machines on which no cage can be made, and on this one \
                 tier {} can: leave the flag out",
                host.name()
            ),
        )),
        (Tier::C, Uncaged::Accepted) => check_mode(config.permissions.mode),
    }
}

fn check_mode(mode: Mode) -> Result<(), OpenFailure> {
    match mode {
        Mode::Auto => Err(OpenFailure::new(FailedKind::Usage, AUTO)),
        Mode::Ask | Mode::AcceptEdits | Mode::Plan | Mode::DontAsk => Ok(()),
    }
}

impl SessionSpec {
    /// Whether this session can have this mode.
    ///
    /// # Errors
    /// In plain words, with a way on.
    pub(crate) fn check_mode(&self, mode: Mode) -> Result<(), OpenFailure> {
        match self.confinement.level {
            Level::Uncaged => check_mode(mode),
            Level::Required | Level::BestEffort => Ok(()),
        }
    }

    /// Whether a client that opens the session in this way may join it: who wants a cage is let into
    /// no session without one.
    ///
    /// # Errors
    /// In plain words, with a way on.
    pub(crate) fn check_join(&self, opening: &Opening) -> Result<(), OpenFailure> {
        match (self.confinement.level, opening.uncaged) {
            (Level::Uncaged, Uncaged::Refused) => Err(OpenFailure::new(
                FailedKind::SandboxUnavailable,
                format!(
                    "session {} runs without any sandbox; --unsafe-no-sandbox joins it all the same",
                    self.id
                ),
            )),
            (Level::Uncaged | Level::Required | Level::BestEffort, _) => Ok(()),
        }
    }
}
