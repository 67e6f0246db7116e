//! The two layers of a command's cage: this process's own, and the command's within it. They are the
//! same unless the runner does something itself that the command may not. For `runner` only.

use crate::error::{CageError, Step};
use crate::grants::{GrantVia, Grants};
use crate::layer::{self, Tcp};
use crate::policy::{Access, ConfinementPolicy};
use landlock::RulesetCreated;
use protocol::confinement::Confinement;
use std::os::fd::AsFd;

pub(crate) struct Layers {
    /// For this process.
    pub own: RulesetCreated,
    /// For the command.
    pub inner: RulesetCreated,
    same: Same,
}

/// Whether both are one set of rules in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Same {
    Yes,
    No,
}

impl Layers {
    /// Of what was granted to the command, and of what the policy grants to this process beyond that.
    ///
    /// # Errors
    /// `Step::Grants` and `Step::Layer`.
    pub(crate) fn new(
        wanted: &Confinement,
        policy: &ConfinementPolicy,
        grants: &Grants,
        tcp: Tcp,
    ) -> Result<Self, CageError> {
        let mut own = layer::rules(grants, tcp)?;
        if policy.runner.is_empty() {
            let inner = own.try_clone().map_err(|error| {
                CageError::os(Step::Layer, "a second handle on the rules", error)
            })?;
            return Ok(Self { own, inner, same: Same::Yes });
        }
        let beyond =
            ConfinementPolicy { grants: policy.runner, runner: &[], protected: &[], ..*policy };
        for grant in Grants::open_all(wanted, &beyond, GrantVia::Landlock)?.list {
            own = layer::add(own, &grant.fd, grant.access)?;
        }
        Ok(Self { own, inner: layer::rules(grants, tcp)?, same: Same::No })
    }

    /// Adds one place to both.
    ///
    /// # Errors
    /// `Step::Layer` where the kernel refuses it.
    pub(crate) fn add(self, place: impl AsFd, access: Access) -> Result<Self, CageError> {
        let inner = match self.same {
            Same::Yes => self.inner,
            Same::No => layer::add(self.inner, &place, access)?,
        };
        Ok(Self { own: layer::add(self.own, place, access)?, inner, same: self.same })
    }
}
