//! A runner in reserve: its cage stands before its call comes, and is looked at again when it comes.

use crate::{SupervisorSender, ignore_closed, note_cage, save};
use anyhow::bail;
use ipc::Receiver;
use protocol::confinement::Confinement;
use protocol::tool::{FromTool, ToTool};
use sandbox::{Cage, CageError, Inherited, RestingCage};
use std::fs::File;
use std::os::fd::AsFd;

/// Builds the cage and rests until a call takes it. `None` if no call did, or if the cage did not fit
/// any more; the supervisor knows.
pub(crate) fn rest(
    confinement: &Confinement,
    inherited: Inherited,
    (words, say): (&mut Receiver<ToTool>, &SupervisorSender),
    saved: &mut Option<File>,
) -> anyhow::Result<Option<Cage>> {
    let mut cage = match Cage::prepare_to_rest(confinement, inherited) {
        Ok(cage) => cage,
        Err(CageError { step, reason, hint, source: _ }) => {
            let reason = format!("{reason}; {hint}");
            say.send(&FromTool::Uncaged { step: step.name().to_owned(), reason })?;
            return Ok(None);
        }
    };
    if let Some(keeper) = cage.keeper() {
        say.send(&FromTool::Keeper(keeper))?;
    }
    ipc::step!("tool: cage built");
    for mounted in cage.take_overlay_mounts() {
        say.send(&FromTool::Mounted)?;
        say.send_fd(mounted.as_fd())?;
    }
    say.send(&FromTool::Resting { tier: cage.tier(), opened: cage.opened().to_owned() })?;
    ipc::step!("tool: rests");
    loop {
        match words.recv() {
            Ok(ToTool::Renew) => break,
            Ok(ToTool::SaveProtected) => *saved = Some(File::from(words.recv_fd()?)),
            Ok(ToTool::Ping(number)) => say.send(&FromTool::Pong(number))?,
            // Dropping the cage ends its waiting processes.
            Ok(ToTool::Cancel) => return Ok(None),
            Ok(
                ToTool::SessionLock
                | ToTool::Overlays
                | ToTool::Mounted
                | ToTool::Join(_)
                | ToTool::Sign(_)
                | ToTool::Confine(_)
                | ToTool::Reserve(_)
                | ToTool::Repair(_)
                | ToTool::Background
                | ToTool::Protected(_)
                | ToTool::Server(_)
                | ToTool::Input { .. }
                | ToTool::Go(_),
            ) => bail!("an unexpected message came before Renew"),
            Err(error) => return ignore_closed(error).map(|()| None),
        }
    }
    renew(cage, say, saved)
}

fn renew(
    cage: RestingCage,
    say: &SupervisorSender,
    saved: &mut Option<File>,
) -> anyhow::Result<Option<Cage>> {
    let renewed = cage.renew().map_err(|stale| stale.to_string());
    let renewed = renewed.and_then(|(cage, enforced)| {
        save(Some(&cage), saved).map_err(|error| error.to_string())?;
        Ok((cage, enforced))
    });
    match renewed {
        Ok((cage, enforced)) => {
            ipc::step!("tool: cage renewed");
            note_cage(&enforced);
            say.send(&FromTool::Caged(enforced))?;
            Ok(Some(cage))
        }
        Err(why) => {
            say.send(&FromTool::Lost(why))?;
            Ok(None)
        }
    }
}
