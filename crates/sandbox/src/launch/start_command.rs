//! Forks the process that becomes the command and waits until it has locked itself.

use crate::cage::{Cage, CageOverlays, CommandStreams};
use crate::cage_renewal::CageRenewal;
use crate::cgroup::CommandCgroup;
use crate::error::{CageError, CageStep};
use crate::network_namespace::NetworkNamespace;
use crate::notify::{NotifyConfig, NotifySupervisor};
use crate::privileges::{self, NprocScope};
use crate::process_tree::{Containment, ProcessTree};
use crate::protected::Baseline;
use crate::seccomp::CompiledFilter;
use crate::spawn::exec_child::PendingExec;
use crate::spawn::setup_channel::SetupChannel;
use crate::spawn::stdio::open_dev_null;
use crate::sys;
use crate::usage::shared_memory::SharedMemory;
use landlock::RulesetCreated;
use nix::sched::CloneFlags;
use nix::sys::stat::Mode;
use protocol::confinement::Confinement;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

/// Everything that is needed to start the command's process.
pub(super) struct CageLaunch<'a> {
    pub(super) wanted: &'a Confinement,
    /// `None` without a cage.
    pub(super) lock: Option<CommandLock>,
    pub(super) baseline: Option<Baseline>,
    pub(super) inside: Option<EnteredNamespaces>,
    pub(super) counting: NprocScope,
    pub(super) bond: Containment,
    pub(super) group: Option<CommandCgroup>,
    pub(super) shared: SharedMemory,
}

/// The command's lock: its Landlock rules and the configuration of its notify supervisor.
pub(super) struct CommandLock {
    pub(super) watch: NotifyConfig,
    /// The command's own layer; this process entered its layer already.
    pub(super) rules: RulesetCreated,
}

/// The namespaces of tier A that the command's process enters by itself.
pub(super) struct EnteredNamespaces {
    pub(super) processes: OwnedFd,
    pub(super) mounts: OwnedFd,
}

impl CageLaunch<'_> {
    /// Forks the command's process and waits until it has locked itself.
    pub(super) fn launch(self) -> Result<Cage, CageError> {
        let piped = |error| CageError::os(CageStep::Handover, "a pipe for the output", error);
        let (watch, rules) = self.lock.map(|lock| (lock.watch, lock.rules)).unzip();
        let spec = watch.as_ref().map(|watch| watch.spec);
        let filter =
            spec.map(|spec| CompiledFilter::new(&spec)).transpose().map_err(CageError::from)?;
        let (output, its_output) = std::io::pipe().map_err(piped)?;
        let (errors, its_errors) = std::io::pipe().map_err(piped)?;
        let (its_input, input) = std::io::pipe().map_err(piped)?;
        let (line, its_line) = SetupChannel::pair()?;
        let inert = PendingExec {
            input: open_dev_null()?,
            piped: its_input.into(),
            output: its_output.into(),
            errors: its_errors.into(),
            root: self
                .inside
                .as_ref()
                .map(|inside| inside.mounts.try_clone())
                .transpose()
                .map_err(piped)?,
            rules,
            filter: filter.zip(spec),
            limits: self.wanted.limits,
            umask: Mode::from_bits_truncate(self.wanted.umask),
            counting: self.counting,
        };
        let start = move || inert.run(&its_line);
        let group = self.group.as_ref();
        let command = match (&self.inside, group) {
            (Some(inside), _) => {
                sys::fork_in(inside.processes.as_fd(), group.map(CommandCgroup::directory), start)
            }
            (None, Some(group)) => group.fork(CloneFlags::empty(), start),
            (None, None) => sys::fork(start),
        };
        let command = command
            .map_err(|error| CageError::os(CageStep::Fork, "the command's process", error))?;
        let mut tree = ProcessTree::new(command, self.bond, self.group);
        let end = sys::pidfd(command)
            .map_err(|error| CageError::os(CageStep::Fork, "a handle on the command", error))?;
        // The command's process has inherited the privileges that it needs. In tier A none may be
        // dropped earlier.
        privileges::drop_all()?;
        tree.ensure_guard()?;
        let mut ready = line.await_ready()?;
        let listener = match (ready.descriptors.pop(), watch) {
            (Some(notify), Some(watch)) => Some(
                NotifySupervisor::start(notify, watch)
                    .map_err(|error| CageError::os(CageStep::Listener, "its thread", error))?,
            ),
            (Some(_) | None, _) => None,
        };
        Ok(Cage {
            tree,
            listener,
            line,
            end,
            streams: CommandStreams {
                input: File::from(OwnedFd::from(input)),
                output: File::from(OwnedFd::from(output)),
                errors: File::from(OwnedFd::from(errors)),
            },
            baseline: self.baseline,
            limits: self.wanted.limits,
            network: self.wanted.network,
            proxy_listeners: Vec::new(),
            own_network: NetworkNamespace::default(),
            shared: self.shared,
            runnable: None,
            readable: Vec::new(),
            overlays: CageOverlays::default(),
            renewal: CageRenewal::default(),
        })
    }
}
