//! What every runner hears before its job: descriptors, the cage to build, then `Go`. For `agentd-web` too.

use crate::{SupervisorSender, ignore_closed};
use anyhow::bail;
use ipc::{ChannelError, Receiver};
use protocol::tool::{CageOrder, FromTool, Handover, RunnerJob, SigningKey, ToTool};
use sandbox::Inherited;
use std::fs::File;
use std::os::fd::OwnedFd;

/// The descriptors that a runner was handed.
#[derive(Default)]
pub struct Preamble {
    /// The session's lock. It is to be kept until nothing of the call lives.
    pub lock: Option<OwnedFd>,
    /// The lock on the project's overlays, to be kept as long.
    pub(crate) overlays: Option<OwnedFd>,
    /// What the cage takes over of earlier calls.
    pub inherited: Inherited,
    /// The file for the content of protected files.
    pub(crate) protected: Option<File>,
    /// A connection to the person's ssh agent, and the keys that it is for.
    pub(crate) agent: Option<(OwnedFd, Vec<SigningKey>)>,
}

impl Preamble {
    /// Reads up to the order to build a cage; `None` if the supervisor is gone before.
    ///
    /// # Errors
    /// A message out of turn; a broken channel.
    pub fn read(
        words: &mut Receiver<ToTool>,
        say: &SupervisorSender,
    ) -> anyhow::Result<Option<(Self, Box<CageOrder>)>> {
        let mut handed = Self::default();
        loop {
            match words.recv() {
                Ok(ToTool::Handover(what)) => handed.take(what, words)?,
                Ok(ToTool::Begin(order)) => return Ok(Some((handed, order))),
                Ok(ToTool::Ping(number)) => say.send(&FromTool::Pong(number))?,
                Ok(ToTool::Go(_) | ToTool::Renew | ToTool::Cancel | ToTool::Call(_)) => {
                    bail!("a message came before the cage's order")
                }
                Err(error) => return ignore_closed(error).map(|()| None),
            }
        }
    }

    /// True if there is something for a command's cage, of which `agentd-web` makes no use.
    #[must_use]
    pub fn is_for_command(&self) -> bool {
        self.overlays.is_some()
            || self.inherited.overlays.is_some()
            || self.protected.is_some()
            || self.agent.is_some()
    }

    /// Receives the descriptor that follows.
    pub(crate) fn take(
        &mut self,
        what: Handover,
        words: &mut Receiver<ToTool>,
    ) -> Result<(), ChannelError> {
        let descriptor = words.recv_fd()?;
        match what {
            Handover::SessionLock => self.lock = Some(descriptor),
            Handover::Overlays => self.overlays = Some(descriptor),
            Handover::Mounted => self.inherited.overlays = Some(descriptor),
            Handover::Join(kind) => self.inherited.network.add(kind, descriptor),
            Handover::Sign(keys) => self.agent = Some((descriptor, keys)),
            Handover::Protected => self.protected = Some(File::from(descriptor)),
        }
        Ok(())
    }
}

/// Waits for the job behind the cage; `None` if there will be none. Nothing was started then: dropping the
/// cage ends its waiting processes.
///
/// # Errors
/// A message out of turn; a broken channel.
pub fn next_job(
    words: &mut Receiver<ToTool>,
    say: &SupervisorSender,
) -> anyhow::Result<Option<RunnerJob>> {
    loop {
        match words.recv() {
            Ok(ToTool::Go(job)) => return Ok(Some(job)),
            Ok(ToTool::Ping(number)) => say.send(&FromTool::Pong(number))?,
            Ok(ToTool::Cancel) => return Ok(None),
            Ok(ToTool::Handover(_) | ToTool::Begin(_) | ToTool::Renew | ToTool::Call(_)) => {
                bail!("a message out of turn came before Go")
            }
            Err(error) => return ignore_closed(error).map(|()| None),
        }
    }
}
