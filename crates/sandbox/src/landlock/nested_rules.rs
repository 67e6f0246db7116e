//! The two Landlock rulesets of a command's cage: the runner's own, and the command's nested in it.
//! They are the same unless the policy gives the runner more rights.

use crate::error::{CageError, CageStep};
use crate::grants::{GrantVia, Grants};
use crate::landlock::ruleset::{self, TcpAccess};
use crate::policy::{Access, ConfinementPolicy};
use landlock::RulesetCreated;
use protocol::confinement::Confinement;
use std::os::fd::AsFd;

pub(crate) struct NestedRules {
    /// The ruleset of this process.
    pub own: RulesetCreated,
    /// The ruleset of the command.
    pub command: RulesetCreated,
    same: SharedRuleset,
}

/// `Yes` if both are the same ruleset in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SharedRuleset {
    Yes,
    No,
}

impl NestedRules {
    /// From the command's grants, and from the policy's additional grants to this process.
    ///
    /// # Errors
    /// `CageStep::Grants` and `CageStep::Layer`.
    pub(crate) fn new(
        wanted: &Confinement,
        policy: &ConfinementPolicy,
        grants: &Grants,
        tcp: TcpAccess,
    ) -> Result<Self, CageError> {
        let mut own = ruleset::rules(&grants.list, tcp)?;
        if policy.runner.is_empty() {
            let inner = own.try_clone().map_err(|error| {
                CageError::os(CageStep::Layer, "a second handle on the rules", error)
            })?;
            return Ok(Self { own, command: inner, same: SharedRuleset::Yes });
        }
        let beyond =
            ConfinementPolicy { grants: policy.runner, runner: &[], protected: &[], ..*policy };
        for grant in Grants::open_all(wanted, &beyond, GrantVia::Landlock)?.list {
            own = ruleset::add(own, &grant.fd, grant.access)?;
        }
        Ok(Self { own, command: ruleset::rules(&grants.list, tcp)?, same: SharedRuleset::No })
    }

    /// Adds one path to both.
    ///
    /// # Errors
    /// `CageStep::Layer` if the kernel refuses it.
    pub(crate) fn add(self, place: impl AsFd, access: Access) -> Result<Self, CageError> {
        let inner = match self.same {
            SharedRuleset::Yes => self.command,
            SharedRuleset::No => ruleset::add(self.command, &place, access)?,
        };
        Ok(Self { own: ruleset::add(self.own, place, access)?, command: inner, same: self.same })
    }
}
