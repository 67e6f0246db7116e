//! A cage that is built before its call comes, rests without one, and is looked at again when a call
//! takes it. For the runners of a session's reserve.
//!
//! The runner is locked in by then: it sees the names of protected files and the mount table. The paths
//! that the cage has opened are compared by the supervisor, which nothing hides from ([`opened_paths`]).

use crate::cage::Cage;
use crate::cage_renewal::StaleCage;
use crate::error::CageError;
use crate::grants::{GrantVia, Grants};
use crate::lock::effective_network;
use crate::network_namespace::Inherited;
use crate::policy;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use protocol::confinement::{Confinement, Enforced, Tier};
use protocol::tool::Keeper;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Name of a process that rests, by which people tell it from the runner of a call.
const RESTING: &CStr = c"agentd-reserve";

/// A cage that stands, with the command's process in it, for a call that has not come. It holds no lock
/// that another cage would wait for. Dropping it ends that process.
#[derive(Debug)]
pub struct RestingCage {
    cage: Cage,
    enforced: Enforced,
    mounts: MountTable,
    /// The name of this process, which has another one while it rests.
    name: CString,
}

impl Cage {
    /// As [`Cage::prepare`], for a call that has not come.
    ///
    /// # Errors
    /// As [`Cage::prepare`].
    pub fn prepare_to_rest(
        wanted: &Confinement,
        inherited: Inherited,
    ) -> Result<RestingCage, CageError> {
        let mounts = MountTable::open()?;
        let (cage, enforced) = Self::prepare(wanted, inherited)?;
        cage.renewal.release_git_configs();
        let name = prctl::get_name().unwrap_or_default();
        let _ = prctl::set_name(RESTING);
        Ok(RestingCage { cage, enforced, mounts, name })
    }
}

impl RestingCage {
    /// As [`Cage::keeper`].
    #[must_use]
    pub fn keeper(&self) -> Option<Keeper> {
        self.cage.keeper()
    }

    /// As [`Cage::take_overlay_mounts`].
    pub fn take_overlay_mounts(&mut self) -> Vec<OwnedFd> {
        self.cage.take_overlay_mounts()
    }

    /// The tier of the cage.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.enforced.tier
    }

    /// The identities of the paths that it has opened or covers, as [`opened_paths`] returned them when
    /// it was built.
    #[must_use]
    pub fn opened(&self) -> &str {
        self.cage.renewal.opened()
    }

    /// Looks at protected files and mounts again, and records the present state of the protected files.
    ///
    /// # Errors
    /// Why the cage no longer fits. The process that it confined ends.
    pub fn renew(self) -> Result<(Cage, Enforced), StaleCage> {
        let Self { mut cage, enforced, mounts, name } = self;
        let _ = prctl::set_name(&name);
        if mounts.changed() {
            return Err(StaleCage::new("something was mounted or unmounted"));
        }
        if let Some(baseline) = cage.renewal.look_again(cage.baseline.as_ref())? {
            cage.baseline = Some(baseline);
        }
        Ok((cage, enforced))
    }
}

/// The mount table of this process, as it was when it was opened.
#[derive(Debug)]
struct MountTable(File);

impl MountTable {
    fn open() -> Result<Self, CageError> {
        const PATH: &str = "/proc/self/mountinfo";
        let table = File::open(PATH);
        let table =
            table.map_err(|error| CageError::os(crate::error::CageStep::Grants, PATH, error))?;
        Ok(Self(table))
    }

    /// True if it has changed since, or if the kernel does not say.
    fn changed(&self) -> bool {
        let mut table = [PollFd::new(self.0.as_fd(), PollFlags::POLLPRI)];
        let polled = poll(&mut table, PollTimeout::ZERO).map_err(io::Error::from);
        // A file of `/proc` is always readable; proc_pid_mountinfo(5) has the two events.
        let news = PollFlags::POLLPRI | PollFlags::POLLERR;
        polled.is_err() || table[0].revents().is_none_or(|found| found.intersects(news))
    }
}

/// The identities of the paths that a cage of this confinement and tier would open or cover now: a line
/// each, with path, device, inode and access. Opens them, and so waits for their disks.
///
/// # Errors
/// Where such a cage cannot be made now.
pub fn opened_paths(wanted: &Confinement, tier: Tier) -> Result<String, CageError> {
    Ok(open_now(wanted, tier)?.identities())
}

/// The places that a cage of this confinement and tier would leave out now, since keys lie there or a command
/// could have led the way to them; a sentence each.
///
/// # Errors
/// Where such a cage cannot be made now.
pub fn left_out(wanted: &Confinement, tier: Tier) -> Result<Vec<String>, CageError> {
    Ok(open_now(wanted, tier)?.left_out)
}

fn open_now(wanted: &Confinement, tier: Tier) -> Result<Grants, CageError> {
    let policy = policy::of(wanted.profile);
    let wanted = Confinement { network: effective_network(policy, wanted), ..wanted.clone() };
    let means = match tier {
        Tier::A => GrantVia::MountedRoot,
        Tier::B | Tier::C => GrantVia::Landlock,
    };
    Grants::open_places(&wanted, policy, means)
}
