//! Calls with write intent: which name they touch, and whether the kernel will refuse it.
//!
//! Landlock and read-only mounts refuse without telling anybody. So the listener copies the
//! claimed path while the caller waits, lets the call go on, and evaluates the same grants: a
//! prediction, marked as such in the record. Where the copy cannot be had nothing is predicted.

use super::notice::Notice;
use super::paths::{End, Found, Kind, Root, find, on_read_only_mount};
use super::processes::Processes;
use super::signals::{self, Whose};
use super::territory::Territory;
use crate::seccomp::{Flags, Follow, Look, Role};
use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW, EACCES, O_CREAT, O_EXCL, O_NOFOLLOW, O_PATH, O_TMPFILE};
use std::path::{Path, PathBuf};

/// What a call says it will do to a path, copied before it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// Absolute, but with links and dots as said.
    pub(super) path: PathBuf,
    /// What is to happen there.
    pub(super) deed: Deed,
}

/// What is to happen at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// Opened for writing with these flags.
    Open(i32),
    /// A name of a tree is made, removed or changed.
    Name(Role, End),
}

/// Where paths lead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Roots<'a> {
    /// The command's root directory.
    pub(super) cage: &'a Root,
    /// The host's.
    pub(super) host: &'a Root,
}

/// Copies what the call claims, from registers and the caller's memory.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn claims(look: &Look, notice: &Notice, processes: &Processes) -> Vec<Claim> {
    let args = &notice.args;
    let absolute = |dir: Option<usize>, path: usize| {
        let dir = dir.map_or(AT_FDCWD, |argument| args[argument] as i32);
        claimed(processes, notice.tid, dir, args[path])
    };
    match look {
        Look::Open { dir, path, flags } => {
            let flags = match *flags {
                Flags::Arg(argument) => args[argument] as i32,
                Flags::Creat => libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
                Flags::How(argument) => match open_how(processes, notice.tid, args[argument]) {
                    Some(flags) => flags,
                    None => return Vec::new(),
                },
            };
            let path = absolute(*dir, *path);
            path.filter(|path| !traced_memory(path, notice, processes))
                .map(|path| Claim { path, deed: Deed::Open(flags) })
                .into_iter()
                .collect()
        }
        Look::Names(places) => places
            .iter()
            .filter_map(|place| {
                let path = absolute(place.dir, place.path)?;
                let end = match place.role {
                    Role::Changed(_, Follow::Yes) => End::Followed,
                    Role::Changed(_, Follow::Flag(argument))
                        if args[argument] as i32 & AT_SYMLINK_NOFOLLOW == 0 =>
                    {
                        End::Followed
                    }
                    Role::Changed(_, Follow::No | Follow::Flag(_))
                    | Role::Made
                    | Role::Removed
                    | Role::Replaced
                    | Role::Linked => End::Itself,
                };
                Some(Claim { path, deed: Deed::Name(place.role, end) })
            })
            .collect(),
        Look::Start { .. } | Look::Process(..) | Look::Connect | Look::Bind | Look::Segment => {
            Vec::new()
        }
    }
}

/// Of a `renameat2`, by its flags: a name that must be new is made, not replaced. `mv` asks so first, and
/// where something is there the kernel says so before it looks at rights.
pub(super) fn narrow(claims: &mut [Claim], flags: u64) {
    if flags & u64::from(libc::RENAME_NOREPLACE) == 0 {
        return;
    }
    for claim in claims {
        if let Deed::Name(role @ Role::Replaced, _) = &mut claim.deed {
            *role = Role::Made;
        }
    }
}

/// The first claim that the kernel will refuse: its errno and the words for the record.
pub(super) fn predict(
    claims: &[Claim],
    processes: &Processes,
    roots: Roots<'_>,
    territory: &Territory,
) -> Option<(i32, String)> {
    for claim in claims {
        let end = match claim.deed {
            Deed::Open(flags) if flags & (O_NOFOLLOW | O_EXCL) != 0 => End::Itself,
            Deed::Open(_) => End::Followed,
            Deed::Name(_, end) => end,
        };
        let found = find(processes, roots.cage, &claim.path, end);
        if let Some(real) = left_out(claim, &found, end, processes, roots.host) {
            territory.refusal(&real)?;
            return Some((libc::ENOENT, words(claim.deed, &real)));
        }
        match judge(claim.deed, &found, territory) {
            Judged::Refused(errno, real) => {
                let errno = match errno {
                    // A mount of its own in the read-only tree, such as a fresh `/proc`.
                    libc::EROFS if !on_read_only_mount(roots.cage, &real) => EACCES,
                    errno => errno,
                };
                return Some((errno, words(claim.deed, &real)));
            }
            Judged::Passes => {}
            Judged::FailsAnyway => return None,
        }
    }
    None
}

/// What is on the host but not in the cage was kept from it by leaving it out.
fn left_out(
    claim: &Claim,
    found: &Found,
    end: End,
    processes: &Processes,
    host: &Root,
) -> Option<PathBuf> {
    let wanted = match (found, claim.deed) {
        (Found::Nowhere, _) => true,
        (Found::Free(_), Deed::Open(flags)) => flags & O_CREAT == 0,
        (Found::Free(_), Deed::Name(Role::Removed | Role::Linked | Role::Changed(..), _)) => true,
        (Found::Free(_), Deed::Name(Role::Made | Role::Replaced, _))
        | (Found::There(..) | Found::Barred(_) | Found::Unknown, _) => false,
    };
    if !wanted {
        return None;
    }
    match (find(processes, host, &claim.path, end), found) {
        // The host's `/proc` numbers and shows other processes.
        (Found::There(real, _), _) | (Found::Free(real), Found::Nowhere)
            if real.starts_with("/proc") =>
        {
            None
        }
        (Found::There(real, _), _) | (Found::Free(real), Found::Nowhere) => Some(real),
        // Not even the listener may look there; in the cage it is not there.
        (Found::Barred(said), _) => Some(said),
        (Found::Free(_) | Found::Nowhere | Found::Unknown, _) => None,
    }
}

/// What will become of one claim.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Judged {
    /// Refused by the grants.
    Refused(i32, PathBuf),
    /// Nothing is in its way here.
    Passes,
    /// It fails for a reason that has nothing to do with the cage, or nobody can tell.
    FailsAnyway,
}

/// Pure. The kernel looks at what is there before it looks at rights: `mkdir -p` over existing
/// directories, or removing what is not there, is no refusal.
fn judge(deed: Deed, found: &Found, territory: &Territory) -> Judged {
    let refused = |errno: Option<i32>, real: &Path| match errno {
        Some(errno) => Judged::Refused(errno, real.to_owned()),
        None => Judged::Passes,
    };
    match (deed, found) {
        (_, Found::Barred(said)) => match territory.refusal(said) {
            Some(_) => Judged::Refused(EACCES, said.clone()),
            None => Judged::FailsAnyway,
        },
        (_, Found::Nowhere | Found::Unknown) => Judged::FailsAnyway,
        (Deed::Open(flags), _) if flags & O_PATH != 0 => Judged::FailsAnyway,
        (Deed::Open(flags), Found::There(real, kind)) => {
            let nameless = flags & O_TMPFILE == O_TMPFILE;
            let exclusive = flags & O_CREAT != 0 && flags & O_EXCL != 0 && !nameless;
            if exclusive || (*kind == Kind::Directory) != nameless {
                return Judged::FailsAnyway;
            }
            match (kind, territory.special_refusal(real)) {
                (Kind::Socket, None) => Judged::FailsAnyway,
                (Kind::Socket | Kind::Pipe, refusal) => refused(refusal, real),
                // Read-only mounts open none.
                (Kind::Device, _) => refused(territory.refusal(real).and(Some(EACCES)), real),
                (Kind::Directory | Kind::Program | Kind::Other, _) => {
                    refused(territory.refusal(real), real)
                }
            }
        }
        (Deed::Open(flags), Found::Free(real)) => {
            if flags & O_CREAT == 0 {
                return Judged::FailsAnyway;
            }
            refused(territory.name_refusal(real), real)
        }
        (Deed::Name(Role::Made, _), Found::Free(real))
        | (Deed::Name(Role::Removed, _), Found::There(real, _))
        | (Deed::Name(Role::Replaced, _), Found::There(real, _) | Found::Free(real)) => {
            refused(territory.name_refusal(real), real)
        }
        // A second name inside for a file outside: the two trees have different rights.
        (Deed::Name(Role::Linked, _), Found::There(real, _)) => {
            refused(territory.refusal(real).map(|_| libc::EXDEV), real)
        }
        (Deed::Name(Role::Changed(..), _), Found::There(real, _)) => {
            refused(territory.refusal(real), real)
        }
        (Deed::Name(Role::Made, _), Found::There(..))
        | (Deed::Name(Role::Removed | Role::Linked | Role::Changed(..), _), Found::Free(_)) => {
            Judged::FailsAnyway
        }
    }
}

fn words(deed: Deed, real: &Path) -> String {
    let real = real.display();
    match deed {
        Deed::Open(_) => format!("{real} for writing"),
        Deed::Name(Role::Made, _) => format!("{real}, making it"),
        Deed::Name(Role::Removed, _) => format!("{real}, removing it"),
        Deed::Name(Role::Replaced, _) => format!("{real}, as a new name"),
        Deed::Name(Role::Linked, _) => format!("{real}, linking to it"),
        Deed::Name(Role::Changed(what, _), _) => format!("{real}, its {what}"),
    }
}

/// The path as said, made absolute by the caller's own directory; nothing where there is no path.
pub(super) fn claimed(processes: &Processes, tid: u32, dir: i32, at: u64) -> Option<PathBuf> {
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

/// `/proc/self` means its reader, which is not the listener: the caller's own entry instead, by
/// its number in the caller's own namespace. `/dev/fd` and its like lead there.
fn own_entry(processes: &Processes, tid: u32, said: PathBuf) -> Option<PathBuf> {
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

/// Whether it is the memory of a process of the cage, as a file. Nothing in `/proc` is granted for
/// writing, so the kernel refuses it, but what it would give is allowed by tracing: debuggers try
/// the file first and go on without it. A fallback, like calls that the kernel is said to lack.
fn traced_memory(path: &Path, notice: &Notice, processes: &Processes) -> bool {
    let Some(text) = path.to_str().and_then(|text| text.strip_prefix("/proc/")) else {
        return false;
    };
    let number = match text.split('/').collect::<Vec<_>>().as_slice() {
        [process, "mem"] | [process, "task", _, "mem"] => process.parse::<u32>(),
        _ => return false,
    };
    // The first process of a namespace is ours, not the command's.
    number.is_ok_and(|number| {
        number != 1 && signals::owner(number, notice.tid, processes) == Whose::Own
    })
}

/// The flags in `struct open_how`.
fn open_how(processes: &Processes, tid: u32, at: u64) -> Option<i32> {
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

    fn judged_in(tier: Tier, deed: Deed, found: &Found) -> Judged {
        let writable = ["/p", "/dev/null"].map(PathBuf::from).to_vec();
        let islands = vec![PathBuf::from("/p/.git/hooks")];
        judge(deed, found, &Territory::new(tier, writable, islands))
    }

    fn judged(deed: Deed, found: &Found) -> Judged {
        judged_in(Tier::B, deed, found)
    }

    fn there(path: &str) -> Found {
        Found::There(PathBuf::from(path), Kind::Other)
    }

    fn free(path: &str) -> Found {
        Found::Free(PathBuf::from(path))
    }

    #[test]
    fn opens() {
        let write = Deed::Open(libc::O_WRONLY);
        let create = Deed::Open(libc::O_WRONLY | O_CREAT | libc::O_TRUNC);
        let only_new = Deed::Open(libc::O_WRONLY | O_CREAT | O_EXCL);
        let refused = |path: &str| Judged::Refused(EACCES, PathBuf::from(path));
        for (deed, found, expected) in [
            (write, there("/p/x"), Judged::Passes),
            (write, there("/dev/null"), Judged::Passes),
            (write, there("/etc/passwd"), refused("/etc/passwd")),
            (write, free("/etc/new"), Judged::FailsAnyway),
            (create, free("/etc/new"), refused("/etc/new")),
            (create, free("/p/new"), Judged::Passes),
            (create, there("/etc/passwd"), refused("/etc/passwd")),
            (only_new, there("/etc/passwd"), Judged::FailsAnyway),
            (only_new, free("/etc/new"), refused("/etc/new")),
            (write, Found::There("/etc".into(), Kind::Directory), Judged::FailsAnyway),
            (
                Deed::Open(O_TMPFILE | 2),
                Found::There("/etc".into(), Kind::Directory),
                refused("/etc"),
            ),
            (Deed::Open(O_PATH | 2), there("/etc/passwd"), Judged::FailsAnyway),
            (write, Found::Unknown, Judged::FailsAnyway),
            (write, Found::Nowhere, Judged::FailsAnyway),
            (write, Found::Barred("/root/x".into()), refused("/root/x")),
        ] {
            assert_eq!(judged(deed, &found), expected, "{deed:?} {found:?}");
        }
    }

    #[test]
    fn names() {
        let deed = |role| Deed::Name(role, End::Itself);
        let refused = |errno, path: &str| Judged::Refused(errno, PathBuf::from(path));
        for (role, found, expected) in [
            (Role::Made, free("/p/d"), Judged::Passes),
            (Role::Made, free("/q/d"), refused(EACCES, "/q/d")),
            (Role::Made, there("/q"), Judged::FailsAnyway),
            (Role::Removed, there("/p/d"), Judged::Passes),
            (Role::Removed, there("/q/d"), refused(EACCES, "/q/d")),
            (Role::Removed, free("/q/d"), Judged::FailsAnyway),
            (Role::Removed, there("/p"), refused(EACCES, "/p")),
            (Role::Replaced, free("/q/d"), refused(EACCES, "/q/d")),
            (Role::Replaced, there("/q/d"), refused(EACCES, "/q/d")),
            (Role::Linked, there("/q/d"), refused(libc::EXDEV, "/q/d")),
            (Role::Linked, there("/p/d"), Judged::Passes),
            (Role::Changed("mode", Follow::Yes), there("/q"), refused(EACCES, "/q")),
            (Role::Changed("mode", Follow::Yes), there("/dev/null"), Judged::Passes),
        ] {
            assert_eq!(judged(deed(role), &found), expected, "{role:?} {found:?}");
        }
    }

    #[test]
    fn read_only_islands_of_tier_a() {
        let deed = |role| Deed::Name(role, End::Itself);
        let refused = |errno, path: &str| Judged::Refused(errno, PathBuf::from(path));
        let is = |path: &str, kind| Found::There(PathBuf::from(path), kind);
        for (deed, found, expected) in [
            (deed(Role::Removed), there("/p/.git/hooks"), refused(libc::EBUSY, "/p/.git/hooks")),
            (deed(Role::Made), free("/p/.git/hooks/x"), refused(libc::EROFS, "/p/.git/hooks/x")),
            (Deed::Open(2), there("/p/.git/hooks/x"), refused(libc::EROFS, "/p/.git/hooks/x")),
            (Deed::Open(2), there("/p/.git/index"), Judged::Passes),
            // What a read-only mount does not hold: Landlock alone does, outside.
            (Deed::Open(2), is("/p/.git/hooks/x", Kind::Pipe), Judged::Passes),
            (Deed::Open(2), is("/p/.git/hooks/x", Kind::Socket), Judged::FailsAnyway),
            (
                Deed::Open(2),
                is("/p/.git/hooks/x", Kind::Device),
                refused(EACCES, "/p/.git/hooks/x"),
            ),
            (Deed::Open(2), is("/usr/x", Kind::Pipe), refused(EACCES, "/usr/x")),
            (Deed::Open(2), is("/usr/x", Kind::Socket), refused(EACCES, "/usr/x")),
            (Deed::Open(2), is("/usr/x", Kind::Device), refused(EACCES, "/usr/x")),
            (Deed::Open(2), is("/dev/null", Kind::Device), Judged::Passes),
            (Deed::Open(2), is("/p/x", Kind::Pipe), Judged::Passes),
        ] {
            assert_eq!(judged_in(Tier::A, deed, &found), expected, "{deed:?} {found:?}");
        }
    }
}
