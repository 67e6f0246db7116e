//! The facts that a cage was built from and that can change while it rests. For `cage` and `resting_cage`.

use crate::grants::{Protection, ProtectionSearch};
use crate::notify::LockedGitConfigs;
use crate::protected::Baseline;
use crate::protection_limits::protection_limits;

/// The facts that a cage was built from and that can change.
#[derive(Debug, Default)]
pub(crate) struct CageRenewal {
    opened: String,
    search: Option<ProtectionSearch>,
    protection: Protection,
    git_configs: LockedGitConfigs,
    /// How many of them could be locked.
    locked: usize,
}

/// A cage that no longer fits what is there. Nothing was run in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StaleCage(String);

impl StaleCage {
    pub(crate) fn new(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl CageRenewal {
    pub(crate) fn new(
        opened: String,
        search: Option<ProtectionSearch>,
        protection: Protection,
        git_configs: LockedGitConfigs,
    ) -> Self {
        let locked = git_configs.count();
        Self { opened, search, protection, git_configs, locked }
    }

    /// The identities of the paths that the cage has opened or covers.
    pub(crate) fn opened(&self) -> &str {
        &self.opened
    }

    /// Lets other cages lock git's settings while this one rests.
    pub(crate) fn release_git_configs(&self) {
        self.git_configs.release();
    }

    /// Locks git's settings again and searches the protected files again. Returns their present state, if
    /// the policy protects any; `before` is the state when the cage was built.
    ///
    /// # Errors
    /// Why the cage no longer fits.
    pub(crate) fn look_again(
        &self,
        before: Option<&Baseline>,
    ) -> Result<Option<Baseline>, StaleCage> {
        let locked = self.git_configs.lock_again(&self.protection.git_configs);
        locked.map_err(|error| StaleCage(error.to_string()))?;
        if self.git_configs.count() != self.locked {
            return Err(StaleCage::new("other git settings can be locked than before"));
        }
        let Some(search) = &self.search else { return Ok(None) };
        let (protection, baseline) = search.run().map_err(|error| StaleCage(error.to_string()))?;
        if protection != self.protection {
            return Err(StaleCage::new("a protected file was made, removed or replaced"));
        }
        let now = Some(&baseline);
        let more_gaps = now.map(Baseline::gaps) > before.map(Baseline::gaps);
        if more_gaps || protection_limits(now) != protection_limits(before) {
            return Err(StaleCage::new("other protected files can be put back than before"));
        }
        Ok(Some(baseline))
    }
}
