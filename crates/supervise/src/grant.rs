//! The right to start one tool process. Its field is private and only the call's life makes one:
//! from the broker's verdict, as a probe, or to put right what such a call left; and a session's opening
//! makes one for a certificate. Nothing else can start a tool.

use protocol::call::Call;
use protocol::confinement::{Confinement, Network, Profile};
use protocol::judgement::{Basis, Verdict};
use protocol::tool::ToTool;

/// What a runner may be told to do, and in which cage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    confinement: Confinement,
    purpose: GrantPurpose,
}

/// What the process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GrantPurpose {
    /// It is told with `Go`.
    Job,
    /// Putting right what a call changed of the protected names.
    Repair,
}

/// A verdict that does not let a call run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the verdict does not allow the call")]
pub struct NotAllowed;

impl Grant {
    /// For the look before a verdict: the same directories, nothing writable, nothing executable.
    pub(crate) fn probe(of: &Confinement) -> Self {
        let confinement = Confinement { profile: Profile::Probe, cgroup: None, ..of.clone() };
        Self { confinement, purpose: GrantPurpose::Job }
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
            Verdict::Allow(basis) => {
                Ok((Self { confinement, purpose: GrantPurpose::Job }, basis.clone()))
            }
            Verdict::Deny(..) | Verdict::Ask(_) => Err(NotAllowed),
        }
    }

    /// For the proxy of the command that this grant is for: network, and nothing else of it.
    pub(crate) fn proxy(&self) -> Self {
        Self::web(&self.confinement)
    }

    /// For the process that makes the certificate which a session's proxies sign in with.
    pub(crate) fn certificate(of: &Confinement) -> Self {
        Self::web(of)
    }

    fn web(of: &Confinement) -> Self {
        let confinement = Confinement {
            profile: Profile::Web,
            network: Network::On,
            added: Vec::new(),
            home: None,
            cgroup: None,
            ..of.clone()
        };
        Self { confinement, purpose: GrantPurpose::Job }
    }

    /// To put right what a call of this confinement changed that was allowed and let go: as its
    /// runner would have, it starts nothing.
    pub(crate) fn repair(of: &Confinement) -> Self {
        let confinement = Confinement { cgroup: None, ..of.clone() };
        Self { confinement, purpose: GrantPurpose::Repair }
    }

    /// The word that has the process lock itself.
    pub(crate) fn begin(&self) -> ToTool {
        match self.purpose {
            GrantPurpose::Job => ToTool::Confine(self.confinement.clone()),
            GrantPurpose::Repair => ToTool::Repair(self.confinement.clone()),
        }
    }

    /// The cage it is for.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }
}
