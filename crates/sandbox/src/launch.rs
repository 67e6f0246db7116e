//! The runner's way from a policy to a waiting command, for each tier. For `cage` only.
//!
//! The order is the one that was found to work; the crate's note says what fails otherwise.

use crate::cage::Cage;
use crate::cgroup::{CommandCgroup, Controller};
use crate::error::{CageError, CageStep};
use crate::grants::{self, GrantVia, Grants, PathGrant};
use crate::guarantees::{
    self, CageFacts, LimitedBy, MetadataChanges, NotifyWait, RefusalsObserved, RunsAsRoot,
    TreeEndedBy,
};
use crate::landlock::domain_guard::SignalScope;
use crate::landlock::nested_rules::NestedRules;
use crate::landlock::ruleset::{self, TcpAccess};
use crate::mounts::hosts_file;
use crate::mounts::{MountPlan as RootPlan, MountRestrictions};
use crate::namespaces::{self, UserNs};
use crate::notify::{
    self, ListeningPorts, LockedGitConfig as HeldSettings, NotifyConfig, NotifySupervisor,
    OutsideSignals, ProtectedWatch, RunnablePaths,
};
use crate::policy::{Access, ConfinementPolicy, FreshMount};
use crate::privileges::{self, NprocScope};
use crate::process_tree::{Containment, ProcessTree};
use crate::protected::Baseline;
use crate::seccomp::{self, CompiledFilter, ExecMarker, FilterSpec};
use crate::spawn::exec_child::PendingExec;
use crate::spawn::pid1::{NO_PROCESS_LIMIT as INIT_UNBOUNDED, Pid1};
use crate::spawn::setup_channel::SetupChannel;
use crate::spawn::stdio::open_dev_null;
use crate::sys;
use crate::unsandboxed;
use crate::usage::shared_memory::{SHM, SharedMemory, SharedShmCreations};
use landlock::RulesetCreated;
use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::sys::prctl;
use nix::unistd::getuid;
use protocol::confinement::{Confinement, Enforced, Level, Network, Tier};
use protocol::hosts::redirects;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Builds the strongest cage that is wanted and that this host allows.
///
/// # Errors
/// The step that failed.
pub(crate) fn prepare(
    wanted: &Confinement,
    mounted: Option<OwnedFd>,
    policy: &ConfinementPolicy,
    abi: u32,
) -> Result<(Cage, Enforced), CageError> {
    grants::check_private_dirs(wanted)?;
    match wanted.highest_tier {
        Tier::A => match namespaces::enter_user_ns()? {
            UserNs::Refused(errno) => {
                refuse_allow_list(wanted, &format!("this host refuses them ({errno})"))?;
                refuse_lower_tier(wanted, errno)?;
                let (cage, mut enforced) = tier_b(wanted, policy, abi)?;
                let limit = format!("Namespaces were refused ({errno}), so tier B holds.");
                enforced.limits.insert(0, limit);
                Ok((cage, enforced))
            }
            left @ (UserNs::NotNeeded | UserNs::Entered) => {
                tier_a(wanted, (policy, mounted), abi, left)
            }
        },
        Tier::B | Tier::C => {
            refuse_allow_list(wanted, "tier B does without")?;
            tier_b(wanted, policy, abi)
        }
    }
}

/// Nothing but a network of its own keeps a command from going around a list.
fn refuse_allow_list(wanted: &Confinement, why: &str) -> Result<(), CageError> {
    match wanted.network {
        Network::Off | Network::On => Ok(()),
        Network::Listed => Err(CageError::new(
            CageStep::Namespaces,
            format!("an allow-list of hosts needs namespaces, and {why}"),
        )
        .hint("switch the network off, or on as a whole: `:net off`, `:net on`, `--net`")),
    }
}

/// Tier B claims less than the tier that was asked for, and only best-effort accepts that.
fn refuse_lower_tier(wanted: &Confinement, errno: Errno) -> Result<(), CageError> {
    match wanted.level {
        Level::BestEffort => Ok(()),
        Level::Required | Level::Uncaged => Err(CageError::new(
            CageStep::Namespaces,
            format!("tier A needs them, and this host refuses them ({errno})"),
        )
        .hint(
            "`sandbox.level = \"best-effort\"` accepts tier B where a person sits before the session, `sandbox.tier = \"b\"` does without namespaces always",
        )),
    }
}

/// Namespaces around Landlock and seccomp, in a root built by allow.
fn tier_a(
    wanted: &Confinement,
    (policy, mounted): (&ConfinementPolicy, Option<OwnedFd>),
    abi: u32,
    left: UserNs,
) -> Result<(Cage, Enforced), CageError> {
    let (group, without) = CommandCgroup::for_command(wanted);
    let mut grants = Grants::open_all(wanted, policy, GrantVia::MountedRoot)?;
    let mut beside = guarantees::keys(&grants);
    beside.extend(guarantees::programs(wanted.profile, &grants));
    let held = notify::lock_all(std::mem::take(&mut grants.git_configs))?;
    let watched = ProtectedWatch::of(&grants.protected);
    let protects = !grants.protected.is_empty();
    let mut redirects = redirects(&wanted.hosts);
    let hosts = hosts_file::text_with(&redirects);
    if hosts.is_none() {
        redirects.clear();
    }
    let plan = RootPlan::new(&grants, wanted.limits.memory_bytes)
        .with_staging_dirs(held.iter().filter_map(HeldSettings::staging_dir).collect())
        .with_hosts(hosts);
    let mut watch = watch(wanted, policy, &grants, Some(&plan), abi)?;
    let fresh = plan.fresh_mounts();
    let first = Pid1::start(plan.clone(), mounted, wanted.limits.processes)?;
    // Meanwhile, on another processor, the root is built.
    let mut losses = namespaces::leave_network_and_ipc(wanted.network)?;
    let (doors, refused) = namespaces::bind_proxy_listeners(wanted.network, &redirects)?;
    beside.extend(refused.map(|error| guarantees::no_redirects(&error)));
    // Their fresh namesakes are granted instead. The host's /proc stays in the rules, for the
    // listener: the command cannot reach it.
    let is_own =
        |grant: &mut PathGrant| matches!(grant.fresh, Some(FreshMount::Pts | FreshMount::Shm));
    let fresh_ones: Vec<PathGrant> = grants.list.extract_if(.., is_own).collect();
    let mut layers = NestedRules::new(wanted, policy, &grants, tcp(Tier::A, wanted.network))?;
    let ready = first.await_root()?;
    let unbounded = ready.losses.iter().any(|loss| loss == INIT_UNBOUNDED);
    losses.extend(ready.losses.into_iter().filter(|loss| loss != INIT_UNBOUNDED));
    let mut descriptors = ready.descriptors.into_iter();
    let (Some(processes), Some(mounts)) = (descriptors.next(), descriptors.next()) else {
        return Err(CageError::new(CageStep::Root, "the new root did not arrive"));
    };
    let mut shared = SharedMemory::unobserved();
    for ((path, access), place) in fresh.into_iter().zip(descriptors.by_ref()) {
        layers = layers.add(&place, access)?;
        if path == SHM {
            shared = SharedMemory::private(place);
        }
    }
    let mounted = descriptors.collect();
    grants.list.extend(fresh_ones);
    beside.extend(grants.without_overlays(&ready.without_overlay));
    let plan = plan.without_overlays(&ready.without_overlay);
    beside.extend(plan.shows_host_in_private().then(|| guarantees::SPECIAL_FILES.to_owned()));
    set_access(&mut watch, &grants, plan.restrictions());
    let (watched, unseen) = match watched {
        Ok(watched) => (Some(watched), None),
        Err(errno) => (None, Some(errno)),
    };
    (watch.settings, watch.watched, watch.mounter) = (held, watched, first.mounter()?);
    let (readable, overlays) = (readable(&grants), grants.overlays());
    // The rules hold the places from here on; each process below would close them all again.
    grants.list.clear();
    if wanted.level == Level::Required && !losses.is_empty() {
        return Err(CageError::new(CageStep::Root, losses.join(" "))
            .hint("`sandbox.level = \"best-effort\"` accepts the loss, `sandbox.tier = \"b\"` does without namespaces"));
    }
    let NestedRules { own, command: inner, .. } = layers;
    let signal_scope = SignalScope::enter(own)?;
    let mut cage = CageLaunch {
        wanted,
        lock: Some(CommandLock { watch, rules: inner }),
        baseline: grants.baseline.take(),
        inside: Some(EnteredNamespaces { processes, mounts }),
        counting: match left {
            UserNs::Entered => NprocScope::Own,
            UserNs::NotNeeded | UserNs::Refused(_) => NprocScope::Shared,
        },
        bond: Containment::Namespace { first, signal_scope },
        group,
        shared,
    }
    .launch()?;
    // The listener is who watches.
    let unseen = unseen.or_else(|| cage.listener.is_none().then_some(Errno::ENOSYS));
    beside.extend(protects.then(|| guarantees::replaced_names(unseen)));
    cage.proxy_listeners = doors;
    (cage.readable, cage.overlays, cage.overlay_mounts) = (readable, overlays, mounted);
    let ground = CageFacts {
        tier: Tier::A,
        abi,
        network: wanted.network,
        // RLIMIT_NPROC counts in the user namespace, but never binds uid 0.
        processes: if unbounded && (left == UserNs::NotNeeded || getuid().is_root()) {
            bounded(&cage, Controller::Processes, wanted.limits.processes)
        } else {
            by_kernel(wanted.limits.processes)
        },
        memory: bounded(&cage, Controller::Memory, wanted.limits.memory_bytes),
        runs_as_root: root_powers(),
        observed: observed(&cage),
        waits: waits(),
        metadata: MetadataChanges::Refused,
        ended_by: TreeEndedBy::Kernel,
    };
    let names = namespaces::namespace_names(left, wanted.network);
    let mut enforced = enforced(wanted, ground, names, grants.missing);
    enforced.cgroup = cage.tree.group().map(CommandCgroup::enforced_limits).unwrap_or_default();
    enforced.limits.extend(protection_limits(&cage).into_iter().chain(without));
    enforced.limits.extend(beside.into_iter().chain(guarantees::runner_rights(policy)));
    let losses = losses.into_iter().map(|loss| format!("Lost: {loss}"));
    enforced.limits.extend(losses);
    Ok((cage, enforced))
}

/// Landlock and seccomp alone; this process is the subreaper.
fn tier_b(
    wanted: &Confinement,
    policy: &ConfinementPolicy,
    abi: u32,
) -> Result<(Cage, Enforced), CageError> {
    prctl::set_child_subreaper(true)
        .map_err(|error| CageError::os(CageStep::Fork, "becoming the subreaper", error))?;
    let (group, without) = CommandCgroup::for_command(wanted);
    let mut grants = Grants::open_all(wanted, policy, GrantVia::Landlock)?;
    let mut beside = guarantees::keys(&grants);
    beside.extend(guarantees::programs(wanted.profile, &grants));
    let watch = watch(wanted, policy, &grants, None, abi)?;
    let (runnable, readable) = (watch.runnable.places.clone(), readable(&grants));
    let shared =
        watch.shm_creations.clone().map_or_else(SharedMemory::unobserved, SharedMemory::shared);
    let layers = NestedRules::new(wanted, policy, &grants, tcp(Tier::B, wanted.network))?;
    // As above; started as root it is all of `/etc`, entry by entry.
    grants.list.clear();
    privileges::drop_all()?;
    let NestedRules { own, command: inner, .. } = layers;
    let signal_scope = SignalScope::enter(own)?;
    let mut cage = CageLaunch {
        wanted,
        lock: Some(CommandLock { watch, rules: inner }),
        baseline: grants.baseline.take(),
        inside: None,
        counting: NprocScope::Shared,
        bond: Containment::Domain { signal_scope, guard: None },
        group,
        shared,
    }
    .launch()?;
    cage.runnable = Some(runnable);
    cage.readable = readable;
    let ground = CageFacts {
        tier: Tier::B,
        abi,
        network: wanted.network,
        processes: bounded(&cage, Controller::Processes, wanted.limits.processes),
        memory: bounded(&cage, Controller::Memory, wanted.limits.memory_bytes),
        runs_as_root: root_powers(),
        observed: observed(&cage),
        waits: waits(),
        metadata: match (policy.keeps_project(), observed(&cage)) {
            (true, RefusalsObserved::Yes) => MetadataChanges::Refused,
            (true, RefusalsObserved::No) | (false, _) => MetadataChanges::Allowed,
        },
        ended_by: match (signal_scope, cage.tree.group()) {
            (Some(_), _) => TreeEndedBy::Kernel,
            (None, Some(_)) => TreeEndedBy::Cgroup,
            (None, None) => TreeEndedBy::Runner,
        },
    };
    let mut enforced = enforced(wanted, ground, Vec::new(), grants.missing);
    enforced.cgroup = cage.tree.group().map(CommandCgroup::enforced_limits).unwrap_or_default();
    enforced.limits.extend(protection_limits(&cage).into_iter().chain(without));
    enforced.limits.extend(beside.into_iter().chain(guarantees::runner_rights(policy)));
    Ok((cage, enforced))
}

/// The same without Landlock and seccomp. Its time, its end and its bounds are kept as ever, and
/// protected names are put right after it.
///
/// # Errors
/// The step that failed.
pub(crate) fn prepare_unsandboxed(
    wanted: &Confinement,
    policy: &ConfinementPolicy,
) -> Result<(Cage, Enforced), CageError> {
    refuse_allow_list(wanted, "this host makes none")?;
    prctl::set_child_subreaper(true)
        .map_err(|error| CageError::os(CageStep::Fork, "becoming the subreaper", error))?;
    let (group, without) = CommandCgroup::for_command(wanted);
    let held = if group.is_some() { TreeEndedBy::Cgroup } else { TreeEndedBy::Runner };
    let mut grants = Grants::open_all(wanted, policy, GrantVia::Landlock)?;
    let cage = CageLaunch {
        wanted,
        lock: None,
        baseline: grants.baseline.take(),
        inside: None,
        counting: NprocScope::Shared,
        bond: Containment::Domain { signal_scope: None, guard: None },
        group,
        shared: SharedMemory::unobserved(),
    }
    .launch()?;
    let mut enforced = unsandboxed::enforced(wanted, held, grants.missing);
    enforced.cgroup = cage.tree.group().map(CommandCgroup::enforced_limits).unwrap_or_default();
    enforced.limits.extend(protection_limits(&cage).into_iter().chain(without));
    Ok((cage, enforced))
}

/// What it takes to start the command's process.
struct CageLaunch<'a> {
    wanted: &'a Confinement,
    /// `None` without a cage.
    lock: Option<CommandLock>,
    baseline: Option<Baseline>,
    inside: Option<EnteredNamespaces>,
    counting: NprocScope,
    bond: Containment,
    group: Option<CommandCgroup>,
    shared: SharedMemory,
}

/// What keeps the command in, and who looks at it.
struct CommandLock {
    watch: NotifyConfig,
    /// The command's own layer; this process entered its layer already.
    rules: RulesetCreated,
}

/// The namespaces of tier A that the command's process enters by itself.
struct EnteredNamespaces {
    processes: OwnedFd,
    mounts: OwnedFd,
}

impl CageLaunch<'_> {
    /// Forks the command's process and waits until it has locked itself.
    fn launch(self) -> Result<Cage, CageError> {
        let piped = |error| CageError::os(CageStep::Handover, "a pipe for the output", error);
        let (watch, rules) = self.lock.map(|lock| (lock.watch, lock.rules)).unzip();
        let plan = watch.as_ref().map(|watch| watch.plan);
        let filter =
            plan.map(|plan| CompiledFilter::new(&plan)).transpose().map_err(CageError::from)?;
        let (output, its_output) = std::io::pipe().map_err(piped)?;
        let (errors, its_errors) = std::io::pipe().map_err(piped)?;
        let (line, its_line) = SetupChannel::pair()?;
        let inert = PendingExec {
            input: open_dev_null()?,
            output: its_output.into(),
            errors: its_errors.into(),
            root: self
                .inside
                .as_ref()
                .map(|inside| inside.mounts.try_clone())
                .transpose()
                .map_err(piped)?,
            rules,
            filter: filter.zip(plan),
            limits: self.wanted.limits,
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
        // The command has what it needs of them; in tier A this is the moment.
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
            output: File::from(OwnedFd::from(output)),
            errors: File::from(OwnedFd::from(errors)),
            baseline: self.baseline,
            limits: self.wanted.limits,
            network: self.wanted.network,
            proxy_listeners: Vec::new(),
            shared: self.shared,
            runnable: None,
            readable: Vec::new(),
            overlays: Vec::new(),
            overlay_mounts: Vec::new(),
        })
    }
}

/// Where the command can read.
fn readable(grants: &Grants) -> Vec<PathBuf> {
    let list = grants.list.iter().filter(|grant| grant.access != Access::List);
    list.map(|grant| grant.path.clone()).collect()
}

/// What the listener has to know. To be made before this process locks itself.
fn watch(
    wanted: &Confinement,
    policy: &ConfinementPolicy,
    grants: &Grants,
    root: Option<&RootPlan>,
    abi: u32,
) -> Result<NotifyConfig, CageError> {
    let (tier, islands) = match root {
        Some(plan) => (Tier::A, plan.restrictions()),
        None => (Tier::B, MountRestrictions::default()),
    };
    let place = |path: &str| {
        File::options()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(path)
            .map(OwnedFd::from)
            .map_err(|error| CageError::os(CageStep::Listener, path, error))
    };
    let proc = place("/proc")?;
    let host_ports = match (tier, wanted.network) {
        (Tier::A, Network::Off | Network::Listed) => Some(
            ListeningPorts::open(&proc)
                .map_err(|error| CageError::os(CageStep::Listener, "/proc/self/net/tcp", error))?,
        ),
        (Tier::A, Network::On) | (Tier::B | Tier::C, _) => None,
    };
    let mark = ExecMarker::new()
        .map_err(|error| CageError::os(CageStep::Filter, "random bytes for its own use", error))?;
    let plan = FilterSpec::command(tier, wanted.network, abi, mark);
    let mut watch = NotifyConfig {
        plan: if policy.keeps_project() { plan.emulating_metadata() } else { plan },
        tier,
        shm_creations: match tier {
            Tier::A => None,
            Tier::B | Tier::C => Some(SharedShmCreations::default()),
        },
        network: wanted.network,
        signals: match guarantees::signals_are_confined(tier, abi) {
            true => OutsideSignals::Refused,
            false => OutsideSignals::Allowed,
        },
        sockets: Vec::new(),
        runnable: RunnablePaths::default(),
        writable: Vec::new(),
        read_only: Vec::new(),
        settings: Vec::new(),
        watched: None,
        mounter: None,
        file_bytes: wanted.limits.file_bytes,
        host_ports,
        host: place("/")?,
        proc,
    };
    set_access(&mut watch, grants, islands);
    Ok(watch)
}

/// What may be done where, in the root as it stands.
fn set_access(watch: &mut NotifyConfig, grants: &Grants, islands: MountRestrictions) {
    let granted = |may: fn(Access) -> bool| -> Vec<_> {
        let list = grants.list.iter().filter(|grant| may(grant.shown()));
        list.map(|grant| grant.path.clone()).collect()
    };
    watch.sockets = granted(Access::writes);
    watch.runnable = RunnablePaths {
        places: granted(Access::runs),
        islands: islands.no_exec,
        private: grants.private_dirs(),
    };
    // Devices may be opened for writing too.
    watch.writable = granted(|access| match access {
        Access::Write | Access::Build | Access::Device | Access::Terminal => true,
        Access::List | Access::Read | Access::Run => false,
    });
    watch.read_only = islands.read_only;
}

/// The record of what holds.
fn enforced(
    wanted: &Confinement,
    ground: CageFacts,
    namespaces: Vec<String>,
    missing: Vec<String>,
) -> Enforced {
    Enforced {
        tier: ground.tier,
        profile: wanted.profile.name().to_owned(),
        landlock_abi: ground.abi,
        network: guarantees::network(ground.tier, ground.network).to_owned(),
        namespaces,
        seccomp: true,
        refusals_observable: ground.observed == RefusalsObserved::Yes,
        dropped: ruleset::missing_rights(ground.abi),
        limits: guarantees::git_settings(wanted.git)
            .into_iter()
            .chain(guarantees::home(wanted))
            .chain(guarantees::limits(ground))
            .collect(),
        missing,
        cgroup: Vec::new(),
    }
}

/// What is to be said of protected names: where there are very many, and where they lead.
fn protection_limits(cage: &Cage) -> Vec<String> {
    let Some(before) = &cage.baseline else { return Vec::new() };
    let crowded = before.is_incomplete().then(|| guarantees::TOO_MANY_PROTECTED.to_owned());
    crowded.into_iter().chain(before.limits().iter().cloned()).collect()
}

/// Who keeps a bound that is the cgroup's, or else this process's; zero is none.
fn bounded(cage: &Cage, controller: Controller, most: u64) -> LimitedBy {
    match cage.tree.group() {
        Some(group) if group.enforces(controller) => LimitedBy::Kernel,
        Some(_) | None if most > 0 => LimitedBy::Runner,
        Some(_) | None => LimitedBy::Nothing,
    }
}

/// The same for one that the kernel keeps.
fn by_kernel(most: u64) -> LimitedBy {
    if most > 0 { LimitedBy::Kernel } else { LimitedBy::Nothing }
}

/// Whether the command is root by number.
fn root_powers() -> RunsAsRoot {
    if getuid().is_root() { RunsAsRoot::Yes } else { RunsAsRoot::No }
}

fn observed(cage: &Cage) -> RefusalsObserved {
    match cage.listener {
        Some(_) => RefusalsObserved::Yes,
        None => RefusalsObserved::No,
    }
}

fn waits() -> NotifyWait {
    if seccomp::supports_killable_wait() {
        NotifyWait::UntilAnswered
    } else {
        NotifyWait::UntilSignal
    }
}

/// Whether the layer refuses TCP too. Not in tier A, where loopback of the own namespace works.
pub(crate) fn tcp(tier: Tier, network: Network) -> TcpAccess {
    match (tier, network) {
        (Tier::B | Tier::C, Network::Off | Network::Listed) => TcpAccess::Refused,
        (Tier::A, Network::Off | Network::On | Network::Listed)
        | (Tier::B | Tier::C, Network::On) => TcpAccess::Unrestricted,
    }
}
