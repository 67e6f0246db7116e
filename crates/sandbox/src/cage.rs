//! The two doors: locking this process, and preparing a command's cage. For workers and `tools`.

use crate::cage_renewal::CageRenewal;
use crate::error::{CageError, CageStep};
use crate::network_namespace::NetworkNamespace;
use crate::notify::NotifySupervisor;
use crate::proc_stat;
use crate::process_tree::ProcessTree;
use crate::protected::{Baseline, Guarded};
use crate::running::RunningCommand;
use crate::spawn::exec_child::{Program, ProgramInput};
use crate::spawn::setup_channel::SetupChannel;
use crate::usage::limit_watcher::LimitWatcher;
use crate::usage::shared_memory::SharedMemory;
use protocol::confinement::{Limits, Network};
use protocol::tool::Keeper;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A cage that stands, with the command's process in it, locked and waiting for its program.
/// Dropping it ends that process.
#[derive(Debug)]
pub struct Cage {
    // Ended before the listener, so that no call waits for an answer that never comes.
    pub(crate) tree: ProcessTree,
    pub(crate) listener: Option<NotifySupervisor>,
    pub(crate) line: SetupChannel,
    pub(crate) end: OwnedFd,
    pub(crate) streams: CommandStreams,
    pub(crate) baseline: Option<Baseline>,
    pub(crate) limits: Limits,
    pub(crate) network: Network,
    pub(crate) proxy_listeners: Vec<TcpListener>,
    /// The network that was made for it; empty where it joined another, has the host's, or in tier B.
    pub(crate) own_network: NetworkNamespace,
    pub(crate) shared: SharedMemory,
    /// Real paths beneath which programs can be started, where others are in sight: in tier B.
    pub(crate) runnable: Option<Vec<PathBuf>>,
    /// Real paths beneath which files can be read.
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) overlays: CageOverlays,
    pub(crate) renewal: CageRenewal,
}

/// The runner's ends of a command's pipes.
#[derive(Debug)]
pub(crate) struct CommandStreams {
    /// Closed at the start of a program that wants no input.
    pub(crate) input: File,
    pub(crate) output: File,
    pub(crate) errors: File,
}

/// Places of the home in which the command changes a copy.
#[derive(Debug, Default)]
pub(crate) struct CageOverlays {
    pub(crate) paths: Vec<PathBuf>,
    /// Those as they are mounted, for the next calls.
    pub(crate) mounts: Vec<OwnedFd>,
}

impl Cage {
    /// Writes the state of the protected files to this file, for [`crate::repair`], and waits until
    /// the disk has it. Writes nothing if the policy protects no files.
    ///
    /// # Errors
    /// `CageStep::Saved`: nothing was run, and the command must not begin.
    pub fn save_baseline(&self, file: &mut File) -> Result<(), CageError> {
        let Some(before) = &self.baseline else { return Ok(()) };
        before.save(file).map_err(|error| {
            CageError::os(CageStep::Saved, "a copy of what the protected names hold", error)
        })
    }

    /// True if the command is confined. False if the user runs commands without a sandbox.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.listener.is_some()
    }

    /// True if the cage is of tier B, which has no network of its own.
    #[must_use]
    pub fn is_tier_b(&self) -> bool {
        self.runnable.is_some()
    }

    /// True if the command cannot reach hosts, except those of an allow-list.
    #[must_use]
    pub fn blocks_hosts(&self) -> bool {
        self.is_locked() && self.network != Network::On
    }

    /// Takes the listening sockets inside the command's network, with their addresses there, for
    /// the process that runs the proxy. The first is for programs that use a proxy. The list is
    /// empty the second time, and without an allow-list. No process of the command holds one of
    /// these sockets.
    ///
    /// # Errors
    /// A socket does not say where it is.
    pub fn take_proxy_listeners(&mut self) -> io::Result<Vec<(OwnedFd, SocketAddr)>> {
        let doors = std::mem::take(&mut self.proxy_listeners).into_iter();
        doors.map(|door| door.local_addr().map(|address| (door.into(), address))).collect()
    }

    /// Takes the network that was made for the command, for later commands of its session.
    pub fn take_own_network(&mut self) -> NetworkNamespace {
        std::mem::take(&mut self.own_network)
    }

    /// Takes copies of the mounted overlays, each for one further cage. The list is empty the
    /// second time. The overlays stay mounted while a copy, or a cage that uses one, lives.
    pub fn take_overlay_mounts(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.overlays.mounts)
    }

    /// Real paths of the home that are shown as overlays.
    #[must_use]
    pub fn overlays(&self) -> &[PathBuf] {
        &self.overlays.paths
    }

    /// True if the command has a root of its own, which shows the session's private directories:
    /// tier A.
    #[must_use]
    pub fn shows_private(&self) -> bool {
        self.tree.is_namespace()
    }

    /// Real paths beneath which the command can read.
    #[must_use]
    pub fn readable(&self) -> &[PathBuf] {
        &self.readable
    }

    /// True if the command sees the programs in this folder but can start none of them. A shell
    /// that finds such a program by `PATH` does not search further.
    #[must_use]
    pub fn refuses_programs_in(&self, folder: &Path) -> bool {
        let Some(runnable) = &self.runnable else { return false };
        folder.canonicalize().is_ok_and(|real| {
            // Where git is the only program, that is granted and not its folder.
            !runnable.iter().any(|place| real.starts_with(place) || place.starts_with(&real))
        })
    }

    /// The process that ends all other processes of this cage if the runner cannot. The supervisor,
    /// which waits for the runner, has to know it.
    #[must_use]
    pub fn keeper(&self) -> Option<Keeper> {
        self.tree.keeper()
    }

    /// Lets the waiting process become `program`. Returns once it has, or could not.
    ///
    /// # Errors
    /// `CageStep::Program` in plain words where it could not be executed, `CageStep::Lost` where a process
    /// of the cage died before it was: nothing was run, and the cage is gone.
    pub fn spawn(mut self, program: Program) -> Result<RunningCommand, CageError> {
        if let (Some(listener), Some(path)) = (&self.listener, program.path()) {
            listener.set_search_path(path);
        }
        self.tree.ensure_guard()?;
        program.send(&self.line)?;
        // The line closes when exec succeeds, and when the process dies before it.
        self.line.receive_ready()?;
        if !proc_stat::became_a_program(self.tree.command()) {
            return Err(CageError::new(
                CageStep::Lost,
                "the command's process ended before its program",
            ));
        }
        let bounds = LimitWatcher::new(self.limits, self.tree.cgroup(), self.shared);
        Ok(RunningCommand {
            input: match program.input {
                ProgramInput::Pipe => Some(self.streams.input),
                ProgramInput::Nothing | ProgramInput::File(_) => None,
            },
            tree: self.tree,
            notify: self.listener,
            pidfd: self.end,
            output: Some(self.streams.output),
            errors: Some(self.streams.errors),
            guarded: self.baseline.map_or(Guarded::Nothing, |it| Guarded::AtEnd(Box::new(it))),
            limits: bounds,
        })
    }
}
