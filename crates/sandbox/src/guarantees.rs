//! What a tier promises and what it does not, as the record tells it. Words alone; for `cage` only.

use crate::grants::Grants;
use crate::policy::ConfinementPolicy;
use crate::ruleset;
use crate::seccomp::TruncateGuard;
use nix::errno::Errno;
use protocol::confinement::{Confinement, FilePath, GitSettings, Limits, Network, Profile, Tier};
use std::io;
use std::path::{Path, PathBuf};

/// What the host let us do, as far as the words of the record depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CageFacts {
    pub tier: Tier,
    pub abi: u32,
    pub network: Network,
    /// Who bounds the number of processes.
    pub processes: LimitedBy,
    /// Who bounds memory.
    pub memory: LimitedBy,
    /// Whether the command has root's number.
    pub runs_as_root: RunsAsRoot,
    /// Whether refused calls reach the record.
    pub observed: RefusalsObserved,
    /// Whether a signal takes back a call that is looked at.
    pub waits: NotifyWait,
    /// Who keeps mode, owner, times and attributes of files outside the grants.
    pub metadata: MetadataChanges,
    /// Whether the death of the runner ends the tree.
    pub ended_by: TreeEndedBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitedBy {
    Kernel,
    /// By the runner, which looks from time to time.
    Runner,
    Nothing,
}

/// What becomes of changes of mode, owner, times and attributes outside the grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataChanges {
    /// They are refused.
    Refused,
    /// Nobody refuses them in tier B.
    Allowed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeEndedBy {
    /// By a PID namespace or by the guard.
    Kernel,
    /// Only while the runner lives.
    Runner,
    /// By its cgroup, which the supervisor ends when the runner cannot.
    Cgroup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunsAsRoot {
    /// It has, and none of its powers.
    Yes,
    /// It is somebody else.
    No,
}

/// How a call waits for the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotifyWait {
    /// Until it is answered.
    UntilAnswered,
    /// Until it is answered or a signal comes.
    UntilSignal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalsObserved {
    Yes,
    No,
}

/// Said where more is protected than can be watched.
pub(crate) const TOO_MANY_PROTECTED: &str = "More is protected in the project than can be watched: of files above 256 KiB a change is told and not undone, beyond 20,000 names none is noticed.";
/// Said where the kernel is older than ABI 6.
pub(crate) const NO_SCOPES: &str =
    "This kernel's Landlock does not hold back signals and abstract sockets.";

/// Said where the kernel is older than ABI 2.
pub(crate) const NO_MOVES: &str = "This kernel's Landlock refuses to move or link a file from one directory to another (EXDEV): `mv` copies it, other programs fail.";
/// Said of a command in tier B where the kernel is older than ABI 3.
pub(crate) const NO_TRUNCATION: &str = "This kernel's Landlock does not hold back truncation, so the system call filter does: `openat2` is answered as missing, and opening with O_TRUNC but not for writing is refused everywhere.";
/// Said besides where nobody can carry it out.
const NO_TRUNCATE: &str = "`truncate` is refused everywhere; `ftruncate` works.";
/// Said of a tool's own process where the kernel is older than ABI 3.
const NO_TRUNCATION_IN_PROCESS: &str = "This kernel's Landlock does not hold back truncation: the tool's own process could empty files outside the grants by `openat2`.";
/// Said where the kernel is older than 5.19.
const INTERRUPTED_CALLS: &str = "A signal takes back a call that is being looked at, which is then made again or fails with EINTR; a connection that was made meanwhile is answered EISCONN.";

/// Whether signals of a command in this tier end at its cage: by the namespace, or by the scopes of
/// this version of Landlock.
#[must_use]
pub fn signals_are_confined(tier: Tier, abi: u32) -> bool {
    tier == Tier::A || abi >= ruleset::SCOPE_ABI
}

/// What a process of ours that locked itself does not promise on this kernel.
pub(crate) fn in_process_limits(abi: u32) -> Vec<String> {
    let old = [(ruleset::SCOPE_ABI, NO_SCOPES), (ruleset::TRUNCATE_ABI, NO_TRUNCATION_IN_PROCESS)];
    old.into_iter().filter(|(from, _)| abi < *from).map(|(_, said)| said.to_owned()).collect()
}

/// Said of the network where nothing holds it off.
pub(crate) const UNRESTRICTED_NETWORK: &str = "on (nothing holds it off)";

/// What is lost without any cage, and what holds all the same, each a sentence.
pub(crate) fn unsandboxed(limits: Limits, held: TreeEndedBy) -> Vec<String> {
    let mut said: Vec<String> = [
        "Nothing confines this call: it can read, change and delete all that this user can, outside the project too.",
        "It has the network, whatever the session's setting says.",
        "It can signal, trace and read this user's other processes, agentd's among them, and speak to every socket of this user, agentd's own too.",
        "Refused system calls are not observable: none is refused.",
        "Held all the same: the time and the output of the call, its environment and descriptors, no new privileges, and the end of what it leaves running.",
    ]
    .map(str::to_owned)
    .to_vec();
    match held {
        TreeEndedBy::Kernel => {}
        TreeEndedBy::Cgroup => said.push(LEAVES_CGROUP.to_owned()),
        TreeEndedBy::Runner => said.push(SURVIVORS.to_owned()),
    }
    let bounds = [
        ("processes", limits.processes),
        ("memory", limits.memory_bytes),
        ("processor time", limits.cpu_seconds),
        ("size of a file", limits.file_bytes),
        ("open files", limits.open_files),
    ];
    let held: Vec<_> = bounds.iter().filter(|(_, most)| *most > 0).map(|(name, _)| *name).collect();
    if !held.is_empty() {
        said.push(format!("Bounded all the same: {}.", held.join(", ")));
    }
    said
}

/// Said of a command in tier B where nothing keeps them.
const STATUS_OPEN: &str =
    "Mode, times and attributes of this user's files outside the grants can be changed.";
/// Said of a command in tier B that changes nothing of the project.
const STATUS_KEPT: &str = "Mode, owner and times can be changed within the grants alone, and extended attributes nowhere: the runner makes these calls in the command's place.";

/// Said of a command in tier B.
const LEFT_IN_MEMORY: &str = "What the command makes in /dev/shm under new names there, and its System V memory, are removed after the call: not where its runner was killed, nor what it made there by a link or in another program's folder. Semaphores and message queues stay.";
/// Said where no listener sees what it makes.
const ALL_LEFT_IN_MEMORY: &str = "What the command leaves in /dev/shm and of System V memory, semaphores and message queues stays.";

/// Said where nothing but the runner ends them.
const SURVIVORS: &str =
    "Processes that left the command's session survive when the runner is killed.";

/// Said where it has a cgroup and no cage that keeps it there.
const LEAVES_CGROUP: &str = "The command can leave its cgroup: what does is bound by nothing, and survives when it left the command's session and the runner is killed.";

/// Network as enforced.
pub(crate) fn network(tier: Tier, network: Network) -> &'static str {
    match (network, tier) {
        (Network::On, Tier::A | Tier::B | Tier::C) => "on",
        (Network::Off, Tier::A) => "off (own namespace)",
        (Network::Listed, Tier::A) => "allow-list (own namespace, through our proxy)",
        (Network::Off | Network::Listed, Tier::B | Tier::C) => "off (no INET sockets)",
    }
}

/// What it was given beyond what its policy says of protected names.
pub(crate) fn git_settings(git: GitSettings) -> Option<String> {
    match git {
        GitSettings::Kept => None,
        GitSettings::Writable => Some(
            "It may change git's settings and hooks in the project (git-admin); what it changed is told."
                .to_owned(),
        ),
    }
}

/// Said where the whole home is granted, since it is the project or lies in it.
pub(crate) fn home(wanted: &Confinement) -> Option<String> {
    let home = wanted.home.as_ref()?.to_path();
    let holds = |dir: &FilePath| home.starts_with(dir.to_path());
    [&wanted.project].into_iter().chain(&wanted.added).any(holds).then(|| {
        "The person's home lies in what was granted: keys and passwords in it can be read and changed."
            .to_owned()
    })
}

/// Most places of keys that a record names.
const NAMED: usize = 6;

/// Said of keys that lie in what was granted, and of those that were taken out of it.
pub(crate) fn keys(grants: &Grants) -> Vec<String> {
    let say = |places: &[PathBuf], what: &str| {
        let named = places.iter().take(NAMED).map(|place| place.display().to_string());
        let named = named.collect::<Vec<_>>().join(", ");
        let more = match places.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!places.is_empty()).then(|| format!("{what}: {named}{more}."))
    };
    let open = say(
        &grants.keys,
        "Keys are kept in the project, as readable and writable as the rest of it",
    );
    let hidden = say(
        &grants.hidden,
        "Keys are kept in the project and were taken out: for this command, and for git in it, their places are empty",
    );
    open.into_iter().chain(hidden).collect()
}

/// Where a package manager keeps all that it has: which of it git needs, only that manager knows.
const STORES: [&str; 3] = ["/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew"];

/// What is left where git is the only program.
pub(crate) fn programs(profile: Profile, grants: &Grants) -> Vec<String> {
    if !matches!(profile, Profile::Git | Profile::GitLook) {
        return Vec::new();
    }
    let loader = "Beside git the system's loader can be started, and by it a program that can be read here: with no more than this cage.";
    let stores = STORES.into_iter().filter(|store| {
        grants.list.iter().any(|grant| grant.path == Path::new(store) && grant.access.runs())
    });
    let stores = stores.map(|store| {
        format!("The programs in {store} can be started too: git of this host comes from there.")
    });
    std::iter::once(loader.to_owned()).chain(stores).collect()
}

/// What becomes of protected names in tier A that a program outside replaces; the errno says why it is not seen.
pub(crate) fn replaced_names(unseen: Option<Errno>) -> String {
    match unseen {
        None => "A protected name that a program outside of the call replaces meanwhile is open to the command until it is closed again, some milliseconds.".to_owned(),
        Some(errno) => format!("A protected name that a program outside of the call replaces meanwhile is open to the command from then on: the kernel does not watch it ({errno})."),
    }
}

/// Why programs that take no proxy reach no host of an allow-list.
pub(crate) fn no_redirects(error: &io::Error) -> String {
    format!("Programs that take no proxy reach no host of the allow-list: {error}.")
}

/// What a read-only mount does not hold, where Landlock grants writing to what is around it.
pub(crate) const SPECIAL_FILES: &str = "FIFOs in places of the home, /tmp and /var/tmp that are granted for reading can be written to, and sockets there connected to.";

/// What this process itself may do that the command may not.
pub(crate) fn runner_rights(policy: &ConfinementPolicy) -> Option<String> {
    let writes = policy.runner.iter().any(|rule| rule.access.writes());
    writes.then(|| {
        "The program cannot write in the project; the runner outside of its cage can, to put what it printed in one file's place."
            .to_owned()
    })
}

/// What a command's cage does not promise, each a sentence.
pub(crate) fn limits(ground: CageFacts) -> Vec<String> {
    let mut limits = Vec::new();
    let mut say = |sentence: &str| limits.push(sentence.to_owned());
    match ground.tier {
        Tier::A => {
            if ground.network == Network::Listed {
                say(
                    "A host of the allow-list may pass on what it is sent. The name that TLS asks for in the open has to be the listed one; what is said inside is not looked at, so another host at the same address may be meant by a request's Host line, by an encrypted hello, or where no name is said.",
                );
            }
            if ground.abi < ruleset::UNIX_SOCKET_ABI {
                say(
                    "Sockets that other programs keep in readable places (/usr, /opt, tool chains) can be connected to.",
                );
            }
        }
        Tier::B | Tier::C => {
            match ground.metadata {
                MetadataChanges::Allowed => say(STATUS_OPEN),
                MetadataChanges::Refused => say(STATUS_KEPT),
            }
            say(
                "Changes of protected names inside the project (.git/hooks, .git/config, .agentd and others) are detected after the call and undone, not prevented.",
            );
            say("Programs cannot open terminals of their own, since the person's are beside them.");
            say("Names and command lines of other processes can be seen in /proc.");
            say(
                "Outside the grants names can be followed and watched, and sizes, times, link targets and extended attributes of files seen.",
            );
            say(
                "/dev/shm, System V memory, semaphores and message queues are shared with this user's other processes.",
            );
            match ground.observed {
                RefusalsObserved::Yes => say(LEFT_IN_MEMORY),
                RefusalsObserved::No => say(ALL_LEFT_IN_MEMORY),
            }
            if ground.network != Network::On {
                say("There is no loopback: programs that open 127.0.0.1 fail.");
            }
        }
    }
    if ground.observed == RefusalsObserved::Yes {
        say(
            "A start of a program, or an opening for writing, fails with EINTR where a signal comes before it was looked at and the program's handler asks for no restart.",
        );
    }
    if ground.observed == RefusalsObserved::Yes && ground.waits == NotifyWait::UntilSignal {
        say(INTERRUPTED_CALLS);
    }
    old_landlock(ground).into_iter().for_each(&mut say);
    say(
        "Protected names that the command makes anew, and those in folders of the project, are put right after the call. In folders named node_modules or target only repositories are looked for.",
    );
    say(
        "Files made in the grants can be marked setuid: another user who starts them then acts as this one.",
    );
    if ground.runs_as_root == RunsAsRoot::Yes {
        say(
            "Started as root, the command has no capabilities: it cannot change other users' files.",
        );
        say(
            "Root's own files in /etc can be read, but for those that the policy takes out by name.",
        );
    }
    match ground.processes {
        LimitedBy::Kernel => {}
        LimitedBy::Runner => say(
            "The number of processes is counted up to ten times a second: between two looks it can be above its bound.",
        ),
        LimitedBy::Nothing => say("The number of processes is not bounded."),
    }
    match ground.memory {
        LimitedBy::Kernel => {}
        LimitedBy::Runner => say(
            "Memory is measured up to ten times a second: between two looks it can be above its bound. Shared memory counts once, the larger of what is mapped and what is in files; not counted are files in memory that are in flight between two sockets, files in memory in the project or TMPDIR, message queues, and what the kernel buffers for pipes and sockets.",
        ),
        LimitedBy::Nothing => say("Memory is not bounded."),
    }
    if ground.observed == RefusalsObserved::No {
        say("Refused system calls are not observable: this kernel gives no listener.");
        match ground.tier {
            Tier::A => {}
            Tier::B | Tier::C => say(
                "Priority, scheduling and processors of this user's other processes can be changed.",
            ),
        }
    }
    match ground.ended_by {
        TreeEndedBy::Kernel => {}
        TreeEndedBy::Runner => {
            say(SURVIVORS);
        }
        TreeEndedBy::Cgroup => say(
            "Processes that left the command's session survive when the runner and the supervisor are killed in the same instant, until a supervisor starts again.",
        ),
    }
    limits
}

/// What is lost to a version of Landlock that lacks it.
fn old_landlock(ground: CageFacts) -> Vec<&'static str> {
    let lengths = TruncateGuard::of(ground.tier, ground.abi) == TruncateGuard::ByFilter;
    [
        (ground.abi < ruleset::REFER_ABI, NO_MOVES),
        (lengths, NO_TRUNCATION),
        (lengths && ground.observed == RefusalsObserved::No, NO_TRUNCATE),
        (ground.abi < ruleset::SCOPE_ABI, NO_SCOPES),
    ]
    .into_iter()
    .filter_map(|(lost, said)| lost.then_some(said))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the record says of each version of Landlock, tier by tier.
    #[test]
    fn each_version_is_claimed_for_what_it_does() {
        for abi in ruleset::MIN_ABI..=10 {
            for tier in [Tier::A, Tier::B] {
                let said = limits(CageFacts {
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
                let says = |words: &str| said.iter().any(|limit| limit.contains(words));
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
            let said = unsandboxed(Limits::NONE, held);
            said.iter().any(|sentence| sentence.contains("can leave its cgroup"))
        };
        assert!(says(TreeEndedBy::Cgroup) && !says(TreeEndedBy::Runner));
    }

    #[test]
    fn the_weaker_tier_admits_more() {
        let ground = |tier, abi| CageFacts {
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
        let silent = CageFacts { observed: RefusalsObserved::No, ..ground(Tier::B, 2) };
        let says = |ground, words: &str| limits(ground).iter().any(|limit| limit.contains(words));
        assert!(
            says(silent, "`truncate` is refused") && !says(ground(Tier::B, 2), "`truncate` is")
        );
        let taken_back = CageFacts { waits: NotifyWait::UntilSignal, ..ground(Tier::A, 7) };
        assert!(says(taken_back, "EISCONN") && !says(ground(Tier::A, 7), "EISCONN"));
        assert_eq!([1, 2, 3, 6].map(|abi| in_process_limits(abi).len()), [2, 2, 1, 0]);
        assert!(limits(ground(Tier::A, 7)).len() < limits(ground(Tier::B, 7)).len());
        assert!(limits(ground(Tier::B, 7)).len() < limits(ground(Tier::B, 5)).len());
        assert!(
            limits(ground(Tier::B, 7)).iter().any(|limit| limit.contains(".git/hooks")),
            "tier B says that it does not protect names"
        );
    }
}
