//! The right to start one tool process. Its field is private and only the call's life makes one:
//! from the broker's verdict, or as a probe. Nothing else can start a tool.

use protocol::call::Call;
use protocol::confinement::{Confinement, Network, Profile};
use protocol::judgement::{Basis, Verdict};

/// What a runner may be told to do, and in which cage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    confinement: Confinement,
}

/// A verdict that does not let a call run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the verdict does not allow the call")]
pub struct NotAllowed;

impl Grant {
    /// For the look before a verdict: the same directories, nothing writable, nothing executable.
    pub(crate) fn probe(of: &Confinement) -> Self {
        Self { confinement: Confinement { profile: Profile::Probe, cgroup: None, ..of.clone() } }
    }

    /// For a call that was allowed.
    ///
    /// # Errors
    /// [`NotAllowed`] for every other verdict.
    pub(crate) fn of(
        _call: &Call,
        verdict: &Verdict,
        confinement: Confinement,
    ) -> Result<(Self, Basis), NotAllowed> {
        match verdict {
            Verdict::Allow(basis) => Ok((Self { confinement }, basis.clone())),
            Verdict::Deny(..) | Verdict::Ask(_) => Err(NotAllowed),
        }
    }

    /// For the proxy of the command that this grant is for: network, and nothing else of it.
    pub(crate) fn proxy(&self) -> Self {
        let confinement = Confinement {
            profile: Profile::Web,
            network: Network::On,
            added: Vec::new(),
            home: None,
            cgroup: None,
            ..self.confinement.clone()
        };
        Self { confinement }
    }

    /// The cage it is for.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }
}
