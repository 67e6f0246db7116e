//! Predicts calls with write intent: the path that they change, and the kernel's refusal.
//!
//! Landlock and read-only mounts refuse calls without a report. So the notify supervisor copies the
//! path while the caller waits, continues the call, and evaluates the same grants. The result is a
//! prediction, and is marked as such in the record. If the path cannot be copied, nothing is
//! predicted.

use super::notify_fd::Notification;
use super::predicted_signal::{self, ProcessOwner};
use super::proc_reader::ProcReader;
use super::resolve::{FileKind, FinalLink, Resolved, RootDir, on_read_only_mount, resolve};
use super::writable::WritablePaths;
use crate::seccomp::{EntryChange, FollowLink, ObservedCall, OpenFlags};
use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW, EACCES, O_CREAT, O_EXCL, O_NOFOLLOW, O_PATH, O_TMPFILE};
use protocol::confinement::{PathAct, Subject};
use std::path::{Path, PathBuf};

/// The path that a call names and the requested action, copied before the call continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathClaim {
    /// Absolute, with links and dots as given.
    pub(super) path: PathBuf,
    /// The requested action.
    pub(super) action: PathAction,
}

/// An action on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathAction {
    /// Opened for writing with these flags.
    Open(i32),
    /// A name is created, removed or changed.
    Name(EntryChange, FinalLink),
}

/// The root directories that paths start from.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootDirs<'a> {
    /// The command's root directory.
    pub(super) cage: &'a RootDir,
    /// The host's root directory.
    pub(super) host: &'a RootDir,
}

/// Copies paths and actions from registers and from the caller's memory.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn claims(
    call: &ObservedCall,
    notice: &Notification,
    processes: &ProcReader,
) -> Vec<PathClaim> {
    let args = &notice.args;
    let absolute = |dir: Option<usize>, path: usize| {
        let dir = dir.map_or(AT_FDCWD, |argument| args[argument] as i32);
        claimed_path(processes, notice.tid, dir, args[path])
    };
    match call {
        ObservedCall::Open { dir, path, flags } => {
            let flags = match *flags {
                OpenFlags::Arg(argument) => args[argument] as i32,
                OpenFlags::Creat => libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
                OpenFlags::How(argument) => match open_how(processes, notice.tid, args[argument]) {
                    Some(flags) => flags,
                    None => return Vec::new(),
                },
            };
            let path = absolute(*dir, *path);
            path.filter(|path| !traced_memory(path, notice, processes))
                .map(|path| PathClaim { path, action: PathAction::Open(flags) })
                .into_iter()
                .collect()
        }
        ObservedCall::Names(places) => places
            .iter()
            .filter_map(|place| {
                let path = absolute(place.dir, place.path)?;
                let end = match place.role {
                    EntryChange::Changed(_, FollowLink::Yes) => FinalLink::Followed,
                    EntryChange::Changed(_, FollowLink::Flag(argument))
                        if args[argument] as i32 & AT_SYMLINK_NOFOLLOW == 0 =>
                    {
                        FinalLink::Followed
                    }
                    EntryChange::Changed(_, FollowLink::No | FollowLink::Flag(_))
                    | EntryChange::Made
                    | EntryChange::Removed
                    | EntryChange::Replaced
                    | EntryChange::Linked => FinalLink::NotFollowed,
                };
                Some(PathClaim { path, action: PathAction::Name(place.role, end) })
            })
            .collect(),
        ObservedCall::Start { .. }
        | ObservedCall::Process(..)
        | ObservedCall::Connect
        | ObservedCall::Bind
        | ObservedCall::Segment => Vec::new(),
    }
}

/// Applies the flags of a `renameat2`: with RENAME_NOREPLACE the name is created, not replaced.
/// `mv` tries this first. If the name exists, the kernel fails the call before it checks
/// permissions.
pub(super) fn apply_rename_flags(claims: &mut [PathClaim], flags: u64) {
    if flags & u64::from(libc::RENAME_NOREPLACE) == 0 {
        return;
    }
    for claim in claims {
        if let PathAction::Name(role @ EntryChange::Replaced, _) = &mut claim.action {
            *role = EntryChange::Made;
        }
    }
}

/// The first action that the kernel will refuse: its errno and the description for the record.
pub(super) fn predict(
    claims: &[PathClaim],
    processes: &ProcReader,
    roots: RootDirs<'_>,
    writable: &WritablePaths,
) -> Option<(i32, Subject)> {
    for claim in claims {
        let end = match claim.action {
            PathAction::Open(flags) if flags & (O_NOFOLLOW | O_EXCL) != 0 => FinalLink::NotFollowed,
            PathAction::Open(_) => FinalLink::Followed,
            PathAction::Name(_, end) => end,
        };
        let found = resolve(processes, roots.cage, &claim.path, end);
        if let Some(real) = left_out(claim, &found, end, processes, roots.host) {
            writable.write_refusal(&real)?;
            return Some((libc::ENOENT, subject(claim.action, &real)));
        }
        match judge(claim.action, &found, writable) {
            WritePrediction::Refused(errno, real) => {
                let errno = match errno {
                    // A separate mount in the read-only tree, such as a new `/proc`.
                    libc::EROFS if !on_read_only_mount(roots.cage, &real) => EACCES,
                    errno => errno,
                };
                return Some((errno, subject(claim.action, &real)));
            }
            WritePrediction::Passes => {}
            WritePrediction::FailsAnyway => return None,
        }
    }
    None
}

/// The real path on the host, if the file exists there and the cage's root leaves it out.
fn left_out(
    claim: &PathClaim,
    found: &Resolved,
    end: FinalLink,
    processes: &ProcReader,
    host: &RootDir,
) -> Option<PathBuf> {
    let wanted = match (found, claim.action) {
        (Resolved::NoParent, _) => true,
        (Resolved::Missing(_), PathAction::Open(flags)) => flags & O_CREAT == 0,
        (
            Resolved::Missing(_),
            PathAction::Name(
                EntryChange::Removed | EntryChange::Linked | EntryChange::Changed(..),
                _,
            ),
        ) => true,
        (Resolved::Missing(_), PathAction::Name(EntryChange::Made | EntryChange::Replaced, _))
        | (Resolved::Exists(..) | Resolved::NotSearchable(_) | Resolved::Unknown, _) => false,
    };
    if !wanted {
        return None;
    }
    match (resolve(processes, host, &claim.path, end), found) {
        // The host's `/proc` shows other processes with other numbers.
        (Resolved::Exists(real, _), _) | (Resolved::Missing(real), Resolved::NoParent)
            if real.starts_with("/proc") =>
        {
            None
        }
        (Resolved::Exists(real, _), _) | (Resolved::Missing(real), Resolved::NoParent) => {
            Some(real)
        }
        // Even this process may not search there; in the cage it does not exist.
        (Resolved::NotSearchable(said), _) => Some(said),
        (Resolved::Missing(_) | Resolved::NoParent | Resolved::Unknown, _) => None,
    }
}

/// The predicted result of one action.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WritePrediction {
    /// Refused by the grants.
    Refused(i32, PathBuf),
    /// The cage does not refuse it.
    Passes,
    /// Fails for a reason other than the cage, or the result is unknown.
    FailsAnyway,
}

/// Pure. The kernel checks the existence of a file before it checks permissions. So `mkdir -p` over
/// existing directories, or removing a missing file, does not count as a refusal.
fn judge(action: PathAction, found: &Resolved, writable: &WritablePaths) -> WritePrediction {
    let refused = |errno: Option<i32>, real: &Path| match errno {
        Some(errno) => WritePrediction::Refused(errno, real.to_owned()),
        None => WritePrediction::Passes,
    };
    match (action, found) {
        (_, Resolved::NotSearchable(said)) => match writable.write_refusal(said) {
            Some(_) => WritePrediction::Refused(EACCES, said.clone()),
            None => WritePrediction::FailsAnyway,
        },
        (_, Resolved::NoParent | Resolved::Unknown) => WritePrediction::FailsAnyway,
        (PathAction::Open(flags), _) if flags & O_PATH != 0 => WritePrediction::FailsAnyway,
        (PathAction::Open(flags), Resolved::Exists(real, kind)) => {
            let nameless = flags & O_TMPFILE == O_TMPFILE;
            let exclusive = flags & O_CREAT != 0 && flags & O_EXCL != 0 && !nameless;
            if exclusive || (*kind == FileKind::Directory) != nameless {
                return WritePrediction::FailsAnyway;
            }
            match (kind, writable.special_refusal(real)) {
                (FileKind::Socket, None) => WritePrediction::FailsAnyway,
                (FileKind::Socket | FileKind::Pipe, refusal) => refused(refusal, real),
                // Devices cannot be opened on read-only mounts.
                (FileKind::Device, _) => {
                    refused(writable.write_refusal(real).and(Some(EACCES)), real)
                }
                (FileKind::Directory | FileKind::Program | FileKind::Other, _) => {
                    refused(writable.write_refusal(real), real)
                }
            }
        }
        (PathAction::Open(flags), Resolved::Missing(real)) => {
            if flags & O_CREAT == 0 {
                return WritePrediction::FailsAnyway;
            }
            refused(writable.name_refusal(real), real)
        }
        (PathAction::Name(EntryChange::Made, _), Resolved::Missing(real))
        | (PathAction::Name(EntryChange::Removed, _), Resolved::Exists(real, _))
        | (
            PathAction::Name(EntryChange::Replaced, _),
            Resolved::Exists(real, _) | Resolved::Missing(real),
        ) => refused(writable.name_refusal(real), real),
        // A second name inside for a file outside: the two directories have different rights.
        (PathAction::Name(EntryChange::Linked, _), Resolved::Exists(real, _)) => {
            refused(writable.write_refusal(real).map(|_| libc::EXDEV), real)
        }
        (PathAction::Name(EntryChange::Changed(..), _), Resolved::Exists(real, _)) => {
            refused(writable.write_refusal(real), real)
        }
        (PathAction::Name(EntryChange::Made, _), Resolved::Exists(..))
        | (
            PathAction::Name(
                EntryChange::Removed | EntryChange::Linked | EntryChange::Changed(..),
                _,
            ),
            Resolved::Missing(_),
        ) => WritePrediction::FailsAnyway,
    }
}

fn subject(action: PathAction, real: &Path) -> Subject {
    let act = match action {
        PathAction::Open(_) => PathAct::Write,
        PathAction::Name(EntryChange::Made, _) => PathAct::Make,
        PathAction::Name(EntryChange::Removed, _) => PathAct::Remove,
        PathAction::Name(EntryChange::Replaced, _) => PathAct::Replace,
        PathAction::Name(EntryChange::Linked, _) => PathAct::Link,
        PathAction::Name(EntryChange::Changed(act, _), _) => act,
    };
    Subject::Path { path: real.display().to_string(), act }
}

/// The path as given, made absolute by the caller's directory; `None` if there is no path.
pub(super) fn claimed_path(processes: &ProcReader, tid: u32, dir: i32, at: u64) -> Option<PathBuf> {
    let said = processes.path(tid, at)?;
    if said.as_os_str().is_empty() {
        return None;
    }
    if said.is_absolute() {
        return own_entry(processes, tid, said);
    }
    let base = match dir {
        AT_FDCWD => processes.link(tid, "cwd")?,
        fd => processes.link(tid, &format!("fd/{}", u32::try_from(fd).ok()?))?,
    };
    base.is_absolute().then(|| base.join(said))
}

/// `/proc/self` refers to its reader, which is this process. It is replaced by the caller's own
/// entry, numbered in the caller's namespace. `/dev/fd` and similar paths lead there too.
fn own_entry(processes: &ProcReader, tid: u32, said: PathBuf) -> Option<PathBuf> {
    let own = |numbers: Vec<u32>| Some(Path::new("/proc").join(numbers.last()?.to_string()));
    for (prefix, entry) in [
        ("/proc/self", ""),
        ("/dev/fd", "fd"),
        ("/dev/stdin", "fd/0"),
        ("/dev/stdout", "fd/1"),
        ("/dev/stderr", "fd/2"),
    ] {
        if let Ok(rest) = said.strip_prefix(prefix) {
            return Some(own(processes.status(tid)?.tgids)?.join(entry).join(rest));
        }
    }
    match said.strip_prefix("/proc/thread-self") {
        Ok(rest) => Some(own(processes.status(tid)?.tids)?.join(rest)),
        Err(_) => Some(said),
    }
}

/// True for the memory file (`/proc/PID/mem`) of a process in the cage. The kernel refuses to open
/// it for writing, since no grant covers `/proc`. But tracing allows the same access, and debuggers
/// try the file first and continue without it. So this is treated as a fallback, like a missing
/// system call.
fn traced_memory(path: &Path, notice: &Notification, processes: &ProcReader) -> bool {
    let Some(text) = path.to_str().and_then(|text| text.strip_prefix("/proc/")) else {
        return false;
    };
    let number = match text.split('/').collect::<Vec<_>>().as_slice() {
        [process, "mem"] | [process, "task", _, "mem"] => process.parse::<u32>(),
        _ => return false,
    };
    // PID 1 of a namespace is agentd's, not the command's.
    number.is_ok_and(|number| {
        number != 1 && predicted_signal::owner(number, notice.tid, processes) == ProcessOwner::Cage
    })
}

/// The flags in `struct open_how`.
fn open_how(processes: &ProcReader, tid: u32, at: u64) -> Option<i32> {
    let bytes = processes.memory(tid, at, 8)?;
    let flags = u64::from_ne_bytes(bytes.try_into().ok()?);
    let flags = i32::try_from(flags).ok()?;
    let writes = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;
    (flags & writes != 0 || flags & O_TMPFILE == O_TMPFILE).then_some(flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::Tier;

    fn judged_in(tier: Tier, action: PathAction, found: &Resolved) -> WritePrediction {
        let writable = ["/p", "/dev/null"].map(PathBuf::from).to_vec();
        let islands = vec![PathBuf::from("/p/.git/hooks")];
        judge(action, found, &WritablePaths::new(tier, writable, islands))
    }

    fn judged(action: PathAction, found: &Resolved) -> WritePrediction {
        judged_in(Tier::B, action, found)
    }

    fn there(path: &str) -> Resolved {
        Resolved::Exists(PathBuf::from(path), FileKind::Other)
    }

    fn free(path: &str) -> Resolved {
        Resolved::Missing(PathBuf::from(path))
    }

    #[test]
    fn opens() {
        let write = PathAction::Open(libc::O_WRONLY);
        let create = PathAction::Open(libc::O_WRONLY | O_CREAT | libc::O_TRUNC);
        let only_new = PathAction::Open(libc::O_WRONLY | O_CREAT | O_EXCL);
        let refused = |path: &str| WritePrediction::Refused(EACCES, PathBuf::from(path));
        for (action, found, expected) in [
            (write, there("/p/x"), WritePrediction::Passes),
            (write, there("/dev/null"), WritePrediction::Passes),
            (write, there("/etc/passwd"), refused("/etc/passwd")),
            (write, free("/etc/new"), WritePrediction::FailsAnyway),
            (create, free("/etc/new"), refused("/etc/new")),
            (create, free("/p/new"), WritePrediction::Passes),
            (create, there("/etc/passwd"), refused("/etc/passwd")),
            (only_new, there("/etc/passwd"), WritePrediction::FailsAnyway),
            (only_new, free("/etc/new"), refused("/etc/new")),
            (
                write,
                Resolved::Exists("/etc".into(), FileKind::Directory),
                WritePrediction::FailsAnyway,
            ),
            (
                PathAction::Open(O_TMPFILE | 2),
                Resolved::Exists("/etc".into(), FileKind::Directory),
                refused("/etc"),
            ),
            (PathAction::Open(O_PATH | 2), there("/etc/passwd"), WritePrediction::FailsAnyway),
            (write, Resolved::Unknown, WritePrediction::FailsAnyway),
            (write, Resolved::NoParent, WritePrediction::FailsAnyway),
            (write, Resolved::NotSearchable("/root/x".into()), refused("/root/x")),
        ] {
            assert_eq!(judged(action, &found), expected, "{action:?} {found:?}");
        }
    }

    #[test]
    fn names() {
        let action = |role| PathAction::Name(role, FinalLink::NotFollowed);
        let refused = |errno, path: &str| WritePrediction::Refused(errno, PathBuf::from(path));
        for (role, found, expected) in [
            (EntryChange::Made, free("/p/d"), WritePrediction::Passes),
            (EntryChange::Made, free("/q/d"), refused(EACCES, "/q/d")),
            (EntryChange::Made, there("/q"), WritePrediction::FailsAnyway),
            (EntryChange::Removed, there("/p/d"), WritePrediction::Passes),
            (EntryChange::Removed, there("/q/d"), refused(EACCES, "/q/d")),
            (EntryChange::Removed, free("/q/d"), WritePrediction::FailsAnyway),
            (EntryChange::Removed, there("/p"), refused(EACCES, "/p")),
            (EntryChange::Replaced, free("/q/d"), refused(EACCES, "/q/d")),
            (EntryChange::Replaced, there("/q/d"), refused(EACCES, "/q/d")),
            (EntryChange::Linked, there("/q/d"), refused(libc::EXDEV, "/q/d")),
            (EntryChange::Linked, there("/p/d"), WritePrediction::Passes),
            (
                EntryChange::Changed(PathAct::Mode, FollowLink::Yes),
                there("/q"),
                refused(EACCES, "/q"),
            ),
            (
                EntryChange::Changed(PathAct::Mode, FollowLink::Yes),
                there("/dev/null"),
                WritePrediction::Passes,
            ),
        ] {
            assert_eq!(judged(action(role), &found), expected, "{role:?} {found:?}");
        }
    }

    #[test]
    fn read_only_islands_of_tier_a() {
        let action = |role| PathAction::Name(role, FinalLink::NotFollowed);
        let refused = |errno, path: &str| WritePrediction::Refused(errno, PathBuf::from(path));
        let is = |path: &str, kind| Resolved::Exists(PathBuf::from(path), kind);
        for (action, found, expected) in [
            (
                action(EntryChange::Removed),
                there("/p/.git/hooks"),
                refused(libc::EBUSY, "/p/.git/hooks"),
            ),
            (
                action(EntryChange::Made),
                free("/p/.git/hooks/x"),
                refused(libc::EROFS, "/p/.git/hooks/x"),
            ),
            (
                PathAction::Open(2),
                there("/p/.git/hooks/x"),
                refused(libc::EROFS, "/p/.git/hooks/x"),
            ),
            (PathAction::Open(2), there("/p/.git/index"), WritePrediction::Passes),
            // Files that a read-only mount does not protect; outside, Landlock alone does.
            (PathAction::Open(2), is("/p/.git/hooks/x", FileKind::Pipe), WritePrediction::Passes),
            (
                PathAction::Open(2),
                is("/p/.git/hooks/x", FileKind::Socket),
                WritePrediction::FailsAnyway,
            ),
            (
                PathAction::Open(2),
                is("/p/.git/hooks/x", FileKind::Device),
                refused(EACCES, "/p/.git/hooks/x"),
            ),
            (PathAction::Open(2), is("/usr/x", FileKind::Pipe), refused(EACCES, "/usr/x")),
            (PathAction::Open(2), is("/usr/x", FileKind::Socket), refused(EACCES, "/usr/x")),
            (PathAction::Open(2), is("/usr/x", FileKind::Device), refused(EACCES, "/usr/x")),
            (PathAction::Open(2), is("/dev/null", FileKind::Device), WritePrediction::Passes),
            (PathAction::Open(2), is("/p/x", FileKind::Pipe), WritePrediction::Passes),
        ] {
            assert_eq!(judged_in(Tier::A, action, &found), expected, "{action:?} {found:?}");
        }
    }
}
