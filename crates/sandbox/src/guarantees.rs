//! The guarantees of each tier and their limits, as sentences for the record. Text only; used by
//! `cage`.

use crate::grants::Grants;
use crate::landlock::ruleset;
use crate::policy::ConfinementPolicy;
use crate::seccomp::TruncateGuard;
use nix::errno::Errno;
use protocol::confinement::{Confinement, FilePath, GitSettings, Limits, Network, Profile, Tier};
use std::io;
use std::path::{Path, PathBuf};

/// The facts about a cage on this host that the sentences depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CageFacts {
    pub tier: Tier,
    pub abi: u32,
    pub network: Network,
    /// Enforces the limit on processes.
    pub processes: LimitedBy,
    /// Enforces the limit on memory.
    pub memory: LimitedBy,
    /// `Yes` if the command has user ID 0.
    pub runs_as_root: RunsAsRoot,
    /// `Yes` if refused calls reach the record.
    pub observed: RefusalsObserved,
    /// How a call waits for the notify supervisor.
    pub waits: NotifyWait,
    /// Changes of mode, owner, times and attributes of files outside the grants.
    pub metadata: MetadataChanges,
    /// Kills the process tree if the runner dies.
    pub ended_by: TreeEndedBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitedBy {
    Kernel,
    /// The runner, which measures at intervals.
    Runner,
    Nothing,
}

/// A command's changes of mode, owner, times and attributes outside the grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataChanges {
    /// Such calls are refused.
    Refused,
    /// Nothing refuses them in tier B.
    Allowed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeEndedBy {
    /// A PID namespace, or the domain guard.
    Kernel,
    /// The runner alone, so only while it lives.
    Runner,
    /// The command's cgroup, which the supervisor kills if the runner cannot.
    Cgroup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunsAsRoot {
    /// User ID 0 without capabilities.
    Yes,
    /// Another user ID.
    No,
}

/// How a call waits for the notify supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotifyWait {
    /// Until it is answered, or the caller is killed.
    UntilAnswered,
    /// Until it is answered or any signal arrives.
    UntilSignal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalsObserved {
    Yes,
    No,
}

/// For a project with more protected files than agentd can watch.
pub(crate) const TOO_MANY_PROTECTED: &str = "The project has more protected files than agentd can watch: changes of files above 256 KiB are reported and not undone, and beyond 20,000 names changes are not noticed.";
/// For a kernel without Landlock ABI 6.
pub(crate) const NO_SCOPES: &str =
    "This kernel's Landlock does not restrict signals and abstract sockets.";

/// For a kernel without Landlock ABI 2.
pub(crate) const NO_MOVES: &str = "This kernel's Landlock refuses to move or link a file from one directory to another (EXDEV): `mv` copies it, other programs fail.";
/// For a command in tier B on a kernel without Landlock ABI 3.
pub(crate) const NO_TRUNCATION: &str = "This kernel's Landlock does not restrict truncation, so the system call filter does: `openat2` fails as if it were missing, and O_TRUNC without write access is refused everywhere.";
/// In addition, if there is no notify supervisor to make the call.
const NO_TRUNCATE: &str = "`truncate` is refused everywhere; `ftruncate` works.";
/// For a tool's own process on a kernel without Landlock ABI 3.
const NO_TRUNCATION_IN_PROCESS: &str = "This kernel's Landlock does not restrict truncation: the tool's own process could empty files outside the grants by `openat2`.";
/// For a kernel older than 5.19.
const INTERRUPTED_CALLS: &str = "A signal interrupts a call that waits for the notify supervisor: the call restarts or fails with EINTR. If its connection was made meanwhile, it fails with EISCONN.";

/// True if signals of a command in this tier cannot leave its cage: because of the PID namespace,
/// or because of Landlock's signal scope in this ABI.
#[must_use]
pub fn signals_are_confined(tier: Tier, abi: u32) -> bool {
    tier == Tier::A || abi >= ruleset::SCOPE_ABI
}

/// Limits on this kernel of a process of agentd that locked itself.
pub(crate) fn in_process_limits(abi: u32) -> Vec<String> {
    let old = [(ruleset::SCOPE_ABI, NO_SCOPES), (ruleset::TRUNCATE_ABI, NO_TRUNCATION_IN_PROCESS)];
    old.into_iter()
        .filter(|(from, _)| abi < *from)
        .map(|(_, sentences)| sentences.to_owned())
        .collect()
}

/// The network if nothing restricts it.
pub(crate) const UNRESTRICTED_NETWORK: &str = "on (nothing holds it off)";

/// The protections that are missing without a cage, and the ones that remain; one sentence each.
pub(crate) fn unsandboxed(limits: Limits, held: TreeEndedBy) -> Vec<String> {
    let mut sentences: Vec<String> = [
        "Nothing confines this call: it can read, change and delete every file that this user can, also outside the project.",
        "It has the network, whatever the session's setting.",
        "It can signal, trace and read this user's other processes, including agentd's, and connect to every socket of this user, including agentd's.",
        "No system call is refused, so the record shows no refusals.",
        "Still enforced: limits on time and output, a clean environment, no inherited descriptors, no new privileges, and the end of background processes.",
    ]
    .map(str::to_owned)
    .to_vec();
    match held {
        TreeEndedBy::Kernel => {}
        TreeEndedBy::Cgroup => sentences.push(LEAVES_CGROUP.to_owned()),
        TreeEndedBy::Runner => sentences.push(SURVIVORS.to_owned()),
    }
    let bounds = [
        ("processes", limits.processes),
        ("memory", limits.memory_bytes),
        ("CPU time", limits.cpu_seconds),
        ("file size", limits.file_bytes),
        ("open files", limits.open_files),
    ];
    let held: Vec<_> = bounds.iter().filter(|(_, most)| *most > 0).map(|(name, _)| *name).collect();
    if !held.is_empty() {
        sentences.push(format!("Still limited: {}.", held.join(", ")));
    }
    sentences
}

/// For a command in tier B if nothing refuses such changes.
const STATUS_OPEN: &str =
    "Mode, times and attributes of this user's files outside the grants can be changed.";
/// For a command in tier B that may not change the project.
const STATUS_KEPT: &str = "Mode, owner and times can be changed only within the grants, and extended attributes nowhere: the runner makes these calls in the command's place.";

/// For a command in tier B.
const LEFT_IN_MEMORY: &str = "Files that the command creates under new names in /dev/shm, and its System V memory, are removed after the call. They remain if the runner was killed. Files that it created through a link or in another program's directory remain too, as do semaphores and message queues.";
/// If no notify supervisor observes the command.
const ALL_LEFT_IN_MEMORY: &str = "Files that the command leaves in /dev/shm, and its System V memory, semaphores and message queues, remain.";

/// If only the runner kills them.
const SURVIVORS: &str =
    "Processes that left the command's session survive when the runner is killed.";

/// For a command with a cgroup and without a cage that keeps it there.
const LEAVES_CGROUP: &str = "A process of the command can leave its cgroup. It then has no limits; if it also left the command's session, it survives when the runner is killed.";

/// The network access that is enforced. `joined` is the call whose network the process is in.
pub(crate) fn network(tier: Tier, network: Network, joined: Option<u32>) -> String {
    let namespace = joined.map_or("own namespace".to_owned(), |call| {
        format!("namespace of call {call}, shared in this session")
    });
    match (network, tier, joined) {
        (Network::On, _, None) => "on".to_owned(),
        // `agentd-web`, which reads a page of the session's own servers.
        (Network::Off, Tier::A, _) | (Network::On, _, Some(_)) => format!("off ({namespace})"),
        (Network::Listed, Tier::A, _) => format!("allow-list ({namespace}, through our proxy)"),
        (Network::Off | Network::Listed, Tier::B | Tier::C, _) => {
            "off (no INET sockets)".to_owned()
        }
    }
}

/// A grant beyond the policy's rules for protected files.
pub(crate) fn git_settings(git: GitSettings) -> Option<String> {
    match git {
        GitSettings::Kept => None,
        GitSettings::DirectoryKept => Some(
            "The project's `.git` is read-only: nobody was asked about this call, and undo does not cover `.git`."
                .to_owned(),
        ),
        GitSettings::Writable => Some(
            "It may change git's settings and hooks in the project (git-admin); its changes are reported."
                .to_owned(),
        ),
    }
}

/// For a project or added directory that contains the whole home directory.
pub(crate) fn home(wanted: &Confinement) -> Option<String> {
    let home = wanted.home.as_ref()?.to_path();
    let holds = |dir: &FilePath| home.starts_with(dir.to_path());
    [&wanted.project].into_iter().chain(&wanted.added).any(holds).then(|| {
        "The grants include the user's home directory: keys and passwords in it can be read and changed."
            .to_owned()
    })
}

/// Maximum number of key paths that a record names.
const NAMED: usize = 6;

/// For credential files in the grants: the readable and the hidden ones.
pub(crate) fn keys(grants: &Grants) -> Vec<String> {
    let add = |places: &[PathBuf], what: &str| {
        let named = places.iter().take(NAMED).map(|place| place.display().to_string());
        let named = named.collect::<Vec<_>>().join(", ");
        let more = match places.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!places.is_empty()).then(|| format!("{what}: {named}{more}."))
    };
    let open =
        add(&grants.keys, "Keys are kept in the project, and the command can read and write them");
    let hidden = add(
        &grants.hidden,
        "Keys are kept in the project and are hidden: this command, and git in it, find these paths empty",
    );
    open.into_iter().chain(hidden).collect()
}

/// Package stores. Only the package manager knows which of their files git needs.
const STORES: [&str; 3] = ["/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew"];

/// Programs that can still be started where git is the only allowed one.
pub(crate) fn programs(profile: Profile, grants: &Grants) -> Vec<String> {
    if !matches!(profile, Profile::Git | Profile::GitLook) {
        return Vec::new();
    }
    let loader = "Besides git, the system's dynamic loader can be started, and with it any program that is readable here. It runs in this same cage.";
    let stores = STORES.into_iter().filter(|store| {
        grants.list.iter().any(|grant| grant.path == Path::new(store) && grant.access.runs())
    });
    let stores = stores.map(|store| {
        format!(
            "The programs in {store} can be started too, since this host's git is installed there."
        )
    });
    std::iter::once(loader.to_owned()).chain(stores).collect()
}

/// For protected files in tier A that a program outside replaces; `unseen` says why the kernel does
/// not report it.
pub(crate) fn replaced_names(unseen: Option<Errno>) -> String {
    match unseen {
        None => "If a program outside replaces a protected file during the call, the command can change the new file for some milliseconds, until it is protected again.".to_owned(),
        Some(errno) => format!("If a program outside replaces a protected file during the call, the command can change the new file from then on: the kernel does not report the replacement ({errno})."),
    }
}

/// Why programs without proxy support reach no host of the allow-list.
pub(crate) fn no_redirects(error: &io::Error) -> String {
    format!("Programs without proxy support reach no host of the allow-list: {error}.")
}

/// Writes that a read-only mount does not stop if Landlock grants writing to the directory around
/// it.
pub(crate) const SPECIAL_FILES: &str = "In directories of the home, /tmp and /var/tmp that are granted for reading, FIFOs can be written to and sockets connected to.";

/// Rights of the runner that the command does not have.
pub(crate) fn runner_rights(policy: &ConfinementPolicy) -> Option<String> {
    let writes = policy.runner.iter().any(|rule| rule.access.writes());
    writes.then(|| {
        "The program cannot write in the project; the runner outside its cage can, to replace one file with the program's output."
            .to_owned()
    })
}

/// The limits of a command's cage, one sentence each.
pub(crate) fn limits(facts: CageFacts) -> Vec<String> {
    let mut limits = Vec::new();
    let mut add = |sentence: &str| limits.push(sentence.to_owned());
    match facts.tier {
        Tier::A => {
            if facts.network == Network::Listed {
                add(
                    "A host of the allow-list may forward the data that it is sent. The proxy checks the server name that TLS sends in clear text, and nothing inside the connection. So a command can reach another host at the same address by a Host header, by an encrypted ClientHello, or without a server name.",
                );
            }
            if facts.abi < ruleset::UNIX_SOCKET_ABI {
                add(
                    "Sockets that other programs keep in the project or in readable directories (/usr, /opt, tool chains) can be connected to.",
                );
            }
        }
        Tier::B | Tier::C => {
            match facts.metadata {
                MetadataChanges::Allowed => add(STATUS_OPEN),
                MetadataChanges::Refused => add(STATUS_KEPT),
            }
            add(
                "Changes of protected files inside the project (.git/hooks, .git/config, .agentd and others) are detected after the call and undone, not prevented.",
            );
            add(
                "Programs cannot open terminals of their own, since the user's terminals are in the same directory.",
            );
            add("Names and command lines of other processes can be seen in /proc.");
            add(
                "Outside the grants, paths can be resolved and watched, and sizes, times, link targets and extended attributes of files can be read.",
            );
            add(
                "/dev/shm, System V memory, semaphores and message queues are shared with this user's other processes.",
            );
            match facts.observed {
                RefusalsObserved::Yes => add(LEFT_IN_MEMORY),
                RefusalsObserved::No => add(ALL_LEFT_IN_MEMORY),
            }
            if facts.network != Network::On {
                add("There is no loopback: programs that open 127.0.0.1 fail.");
            }
        }
    }
    if facts.observed == RefusalsObserved::Yes {
        add(
            "Starting a program or opening a file for writing fails with EINTR if a signal arrives before the notify supervisor has seen the call, and the signal's handler does not request a restart.",
        );
    }
    if facts.observed == RefusalsObserved::Yes && facts.waits == NotifyWait::UntilSignal {
        add(INTERRUPTED_CALLS);
    }
    old_landlock(facts).into_iter().for_each(&mut add);
    add(
        "Protected files that the command creates, and those in subdirectories of the project, are restored after the call. In directories named node_modules or target, only repositories are searched for.",
    );
    add(
        "Files created in the grants can be marked setuid: another user who starts them then acts as this one.",
    );
    if facts.runs_as_root == RunsAsRoot::Yes {
        add(
            "Started as root, the command has no capabilities: it cannot change other users' files.",
        );
        add("Root's own files in /etc can be read, except those that the policy excludes by name.");
    }
    match facts.processes {
        LimitedBy::Kernel => {}
        LimitedBy::Runner => add(
            "The number of processes is counted up to ten times a second: between two counts it can exceed its limit.",
        ),
        LimitedBy::Nothing => add("The number of processes is not limited."),
    }
    match facts.memory {
        LimitedBy::Kernel => {}
        LimitedBy::Runner => add(
            "Memory is measured up to ten times a second: between two measurements it can exceed its limit. Shared memory counts once, as the larger of the amount mapped and the amount in files, and up to one second late while other programs free as much. Not counted: files in memory that are in transit between two sockets, files in memory in the project or TMPDIR, message queues, and kernel buffers of pipes and sockets.",
        ),
        LimitedBy::Nothing => add("Memory is not limited."),
    }
    if facts.observed == RefusalsObserved::No {
        add(
            "Refused system calls are not observable: this kernel gives no notification descriptor.",
        );
        match facts.tier {
            Tier::A => {}
            Tier::B | Tier::C => add(
                "Priority, scheduling and CPU affinity of this user's other processes can be changed.",
            ),
        }
    }
    match facts.ended_by {
        TreeEndedBy::Kernel => {}
        TreeEndedBy::Runner => {
            add(SURVIVORS);
        }
        TreeEndedBy::Cgroup => add(
            "Processes that left the command's session survive when the runner and the supervisor are killed in the same instant, until a supervisor starts again.",
        ),
    }
    limits
}

/// Protections that an older version of Landlock lacks.
fn old_landlock(facts: CageFacts) -> Vec<&'static str> {
    let lengths = TruncateGuard::of(facts.tier, facts.abi) == TruncateGuard::ByFilter;
    [
        (facts.abi < ruleset::REFER_ABI, NO_MOVES),
        (lengths, NO_TRUNCATION),
        (lengths && facts.observed == RefusalsObserved::No, NO_TRUNCATE),
        (facts.abi < ruleset::SCOPE_ABI, NO_SCOPES),
    ]
    .into_iter()
    .filter_map(|(lost, sentences)| lost.then_some(sentences))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentences for each version of Landlock, tier by tier.
    #[test]
    fn each_version_is_claimed_for_what_it_does() {
        for abi in ruleset::MIN_ABI..=10 {
            for tier in [Tier::A, Tier::B] {
                let sentences = limits(CageFacts {
                    tier,
                    abi,
                    network: Network::Off,
                    processes: LimitedBy::Kernel,
                    memory: LimitedBy::Runner,
                    runs_as_root: RunsAsRoot::No,
                    observed: RefusalsObserved::Yes,
                    waits: NotifyWait::UntilAnswered,
                    metadata: MetadataChanges::Allowed,
                    ended_by: if abi < ruleset::SCOPE_ABI && tier == Tier::B {
                        TreeEndedBy::Runner
                    } else {
                        TreeEndedBy::Kernel
                    },
                });
                let says = |words: &str| sentences.iter().any(|limit| limit.contains(words));
                assert_eq!(says(NO_SCOPES), abi < 6, "{tier:?} {abi}");
                assert_eq!(says("survive when the runner"), abi < 6 && tier == Tier::B);
                assert_eq!(says("Sockets that other programs"), abi < 9 && tier == Tier::A);
                assert_eq!(says("from one directory to another"), abi < 2, "{tier:?} {abi}");
                assert_eq!(says("`openat2`"), abi < 3 && tier == Tier::B, "{tier:?} {abi}");
            }
        }
    }

    #[test]
    fn without_a_cage_no_cgroup_is_said_to_hold() {
        let says = |held| {
            let sentences = unsandboxed(Limits::NONE, held);
            sentences.iter().any(|sentence| sentence.contains("can leave its cgroup"))
        };
        assert!(says(TreeEndedBy::Cgroup) && !says(TreeEndedBy::Runner));
    }

    #[test]
    fn the_weaker_tier_admits_more() {
        let facts = |tier, abi| CageFacts {
            tier,
            abi,
            network: Network::Off,
            processes: LimitedBy::Kernel,
            memory: LimitedBy::Runner,
            runs_as_root: RunsAsRoot::No,
            observed: RefusalsObserved::Yes,
            waits: NotifyWait::UntilAnswered,
            metadata: MetadataChanges::Allowed,
            ended_by: TreeEndedBy::Kernel,
        };
        let silent = CageFacts { observed: RefusalsObserved::No, ..facts(Tier::B, 2) };
        let says = |facts, words: &str| limits(facts).iter().any(|limit| limit.contains(words));
        assert!(says(silent, "`truncate` is refused") && !says(facts(Tier::B, 2), "`truncate` is"));
        let taken_back = CageFacts { waits: NotifyWait::UntilSignal, ..facts(Tier::A, 7) };
        assert!(says(taken_back, "EISCONN") && !says(facts(Tier::A, 7), "EISCONN"));
        assert_eq!([1, 2, 3, 6].map(|abi| in_process_limits(abi).len()), [2, 2, 1, 0]);
        assert!(limits(facts(Tier::A, 7)).len() < limits(facts(Tier::B, 7)).len());
        assert!(limits(facts(Tier::B, 7)).len() < limits(facts(Tier::B, 5)).len());
        assert!(
            limits(facts(Tier::B, 7)).iter().any(|limit| limit.contains(".git/hooks")),
            "tier B says that it does not protect names"
        );
    }
}
