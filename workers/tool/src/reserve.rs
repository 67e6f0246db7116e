//! A runner in reserve: its cage stands before its call comes, and is looked at again when it comes.

use crate::{Preamble, SupervisorSender, ignore_closed, note_cage, save};
use anyhow::bail;
use ipc::Receiver;
use protocol::confinement::Confinement;
use protocol::tool::{FromCage, FromTool, Handover, ToTool};
use sandbox::{Cage, CageError, RestingCage};
use std::fs::File;
use std::os::fd::AsFd;

/// Builds the cage and rests until a call takes it. `None` if no call did, or if the cage did not fit
/// any more; the supervisor knows.
pub(crate) fn rest(
    confinement: &Confinement,
    handed: &mut Preamble,
    (words, say): (&mut Receiver<ToTool>, &SupervisorSender),
) -> anyhow::Result<Option<Cage>> {
    let mut cage = match Cage::prepare_to_rest(confinement, std::mem::take(&mut handed.inherited)) {
        Ok(cage) => cage,
        Err(CageError { step, reason, hint, source: _ }) => {
            let reason = format!("{reason}; {hint}");
            say.send(&FromTool::Cage(FromCage::Uncaged { step: step.name().to_owned(), reason }))?;
            return Ok(None);
        }
    };
    if let Some(keeper) = cage.keeper() {
        say.send(&FromTool::Cage(FromCage::Keeper(keeper)))?;
    }
    ipc::step!("tool: cage built");
    for mounted in cage.take_overlay_mounts() {
        say.send(&FromTool::Cage(FromCage::Mounted))?;
        say.send_fd(mounted.as_fd())?;
    }
    say.send(&FromTool::Cage(FromCage::Resting {
        tier: cage.tier(),
        opened: cage.opened().to_owned(),
    }))?;
    ipc::step!("tool: rests");
    loop {
        match words.recv() {
            Ok(ToTool::Renew) => break,
            Ok(ToTool::Handover(Handover::Protected)) => handed.take(Handover::Protected, words)?,
            Ok(ToTool::Ping(number)) => say.send(&FromTool::Pong(number))?,
            // Dropping the cage ends its waiting processes.
            Ok(ToTool::Cancel) => return Ok(None),
            Ok(ToTool::Handover(_) | ToTool::Begin(_) | ToTool::Call(_) | ToTool::Go(_)) => {
                bail!("an unexpected message came before Renew")
            }
            Err(error) => return ignore_closed(error).map(|()| None),
        }
    }
    renew(cage, say, &mut handed.protected)
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
            say.send(&FromTool::Cage(FromCage::Caged(enforced)))?;
            Ok(Some(cage))
        }
        Err(why) => {
            say.send(&FromTool::Cage(FromCage::Lost(why)))?;
            Ok(None)
        }
    }
}
