//! Watches the directories of a project for protected names while a command runs. It only tells that
//! there may be one: a search decides.

use super::path_finder::{ADDRESSES, GIT, OF_GIT};
use super::sweep_plan::Coverage;
use super::walk::{ELSEWHERE, GIT_BARE, OF_OTHERS, eq_ignoring_case, known_name};
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use nix::sys::statfs;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Most directories that are watched for one command. Each takes about a kilobyte of the kernel.
pub(super) const MOST_DIRS: usize = 16_384;
/// Reads of the queue, some hundred events each, before the queue counts as a flood.
const MOST_READS: usize = 1000;

/// A name appears.
const ARRIVALS: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_ONLYDIR)
    .union(AddWatchFlags::IN_DONT_FOLLOW);
/// A name appears, goes, or changes its content. Not its mode, which a search itself changes.
const CHANGES: AddWatchFlags = ARRIVALS
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MODIFY);

/// File systems whose files other machines or processes change without an event.
const WITHOUT_EVENTS: [i64; 9] = [
    0x6969,      // NFS
    0x6573_5546, // FUSE
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x517b,      // SMB
    0x0102_1997, // 9P
    0x00c3_6400, // Ceph
    0x5346_414f, // AFS
    0x0bd0_0bd0, // Lustre
];

/// Which names in a directory count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirKind {
    /// Those of its place.
    Plain(DirPlace),
    /// It has the names of a repository without a `.git`, and may be a working tree all the same: those
    /// of its place, and those that git runs or trusts.
    Bare(DirPlace),
    /// A `.git`: those that git runs or trusts.
    Git,
    /// All.
    Protected,
}

/// Where a directory lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirPlace {
    /// Protected names count.
    Project,
    /// Among dependencies and builds: repositories only.
    Dependencies,
    /// Among git directories of submodules, at any depth.
    Modules,
}

impl DirKind {
    fn mask(self) -> AddWatchFlags {
        match self {
            Self::Plain(_) => ARRIVALS,
            Self::Bare(_) | Self::Git | Self::Protected => CHANGES,
        }
    }
}

/// What the events told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchNews {
    Nothing,
    /// A protected path may have appeared or changed, or events were lost.
    Look,
}

impl WatchNews {
    fn or(self, other: Self) -> Self {
        match self {
            Self::Nothing => other,
            Self::Look => Self::Look,
        }
    }
}

#[derive(Debug)]
struct WatchedDir {
    path: PathBuf,
    kind: DirKind,
}

#[derive(Debug)]
pub(super) struct DirWatch {
    inotify: Inotify,
    dirs: HashMap<WatchDescriptor, WatchedDir>,
    roots: Vec<PathBuf>,
    /// First parts of protected names.
    names: Vec<&'static str>,
    /// Protected paths with names of their own: targets of links, folders of hooks.
    exact: HashSet<PathBuf>,
    most: usize,
    coverage: Coverage,
}

impl DirWatch {
    /// Watches these directories with all in them, and git directories that lie elsewhere.
    ///
    /// # Errors
    /// The user has no instances left (`fs.inotify.max_user_instances`).
    pub(super) fn new(
        (roots, gits): (Vec<PathBuf>, Vec<PathBuf>),
        names: Vec<&'static str>,
        exact: HashSet<PathBuf>,
        most: usize,
    ) -> Result<Self, Errno> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let (dirs, coverage) = (HashMap::new(), Coverage::All);
        let mut watch = Self { inotify, dirs, roots, names, exact, most, coverage };
        watch.add_all();
        for git in gits {
            watch.add(git, DirKind::Git);
        }
        Ok(watch)
    }

    fn add_all(&mut self) {
        for root in self.roots.clone() {
            if statfs::statfs(&root).is_ok_and(|disk| tells_not_all(&disk)) {
                self.coverage = Coverage::Some;
            }
            self.add(root, DirKind::Plain(DirPlace::Project));
        }
    }

    pub(super) fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Reads all events, and watches new directories.
    pub(super) fn read(&mut self) -> WatchNews {
        let mut news = WatchNews::Nothing;
        for _ in 0..MOST_READS {
            let Ok(events) = self.inotify.read_events() else { return news };
            if events.is_empty() {
                return news;
            }
            for event in events {
                news = news.or(self.take_in(&event));
            }
        }
        WatchNews::Look
    }

    fn take_in(&mut self, event: &InotifyEvent) -> WatchNews {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            // New directories may be among those that were lost.
            self.add_all();
            return WatchNews::Look;
        }
        if event.mask.contains(AddWatchFlags::IN_IGNORED) {
            self.dirs.remove(&event.wd);
            return WatchNews::Nothing;
        }
        let (Some(dir), Some(name)) = (self.dirs.get(&event.wd), &event.name) else {
            return WatchNews::Nothing;
        };
        let (path, kind) = (dir.path.join(name), dir.kind);
        let arrives = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
        let arrived = event.mask.intersects(arrives);
        let mut news = self.judge(&path, name, kind);
        if let DirKind::Plain(place) = kind
            && arrived
            && is_bare_part(name)
        {
            let folder = dir.path.clone();
            if is_bare(&self.names_in(&folder)) {
                news = news.or(self.add(folder, DirKind::Bare(place)));
            }
        }
        let is_git = matches!(kind, DirKind::Git | DirKind::Bare(_));
        if event.mask.contains(AddWatchFlags::IN_ISDIR)
            && arrived
            && let Some(kind) = self.kind_of(&path, name, kind)
        {
            news = news.or(self.add(path, kind));
        } else if is_git && arrived && path.is_symlink() {
            news = WatchNews::Look;
        }
        news
    }

    /// What a name in a directory tells.
    fn judge(&self, path: &Path, name: &OsStr, among: DirKind) -> WatchNews {
        let by_place = |place| match place {
            DirPlace::Project => known_name(name, &self.names).is_some(),
            DirPlace::Dependencies => known_name(name, &[GIT]).is_some(),
            DirPlace::Modules => name == GIT_BARE[0],
        };
        let counts = match among {
            DirKind::Protected => true,
            DirKind::Plain(place) => by_place(place),
            DirKind::Bare(place) => by_place(place) || is_git_part(name),
            DirKind::Git => is_git_part(name),
        };
        if counts || self.exact.contains(path) { WatchNews::Look } else { WatchNews::Nothing }
    }

    /// How a directory in another one is watched; `None` if it need not be.
    fn kind_of(&self, path: &Path, name: &OsStr, among: DirKind) -> Option<DirKind> {
        let of_modules = matches!(among, DirKind::Git | DirKind::Bare(DirPlace::Modules));
        match among {
            _ if self.exact.contains(path) => Some(DirKind::Protected),
            DirKind::Protected => Some(DirKind::Protected),
            _ if of_modules && name == "modules" => Some(DirKind::Plain(DirPlace::Modules)),
            DirKind::Git | DirKind::Bare(_) if is_git_part(name) => Some(DirKind::Protected),
            DirKind::Git => None,
            DirKind::Plain(DirPlace::Modules) | DirKind::Bare(DirPlace::Modules) => {
                Some(DirKind::Plain(DirPlace::Modules))
            }
            _ if name == GIT => Some(DirKind::Git),
            DirKind::Plain(DirPlace::Dependencies) | DirKind::Bare(DirPlace::Dependencies) => {
                Some(DirKind::Plain(DirPlace::Dependencies))
            }
            _ if OF_OTHERS.iter().any(|it| name == *it) => {
                Some(DirKind::Plain(DirPlace::Dependencies))
            }
            DirKind::Plain(DirPlace::Project) | DirKind::Bare(DirPlace::Project) => {
                match known_name(name, &self.names) {
                    Some(_) => Some(DirKind::Protected),
                    None => Some(DirKind::Plain(DirPlace::Project)),
                }
            }
        }
    }

    /// Watches a directory and those in it, nearest first and dependencies last. Each is watched before
    /// it is read, so that no name appears unseen.
    fn add(&mut self, folder: PathBuf, kind: DirKind) -> WatchNews {
        let mut news = WatchNews::Nothing;
        let (mut next, mut others) = (VecDeque::from([(folder, kind)]), VecDeque::new());
        while let Some((folder, mut kind)) = next.pop_front().or_else(|| others.pop_front()) {
            if !self.add_one(&folder, kind) {
                continue;
            }
            let entries = self.names_in(&folder);
            if let DirKind::Plain(place) = kind
                && is_bare(&entries)
            {
                kind = DirKind::Bare(place);
                self.add_one(&folder, kind);
            }
            if matches!(kind, DirKind::Bare(_)) {
                news = WatchNews::Look;
            }
            for entry in entries {
                let (name, path) = (entry.file_name(), entry.path());
                news = news.or(self.judge(&path, &name, kind));
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                let within = self.kind_of(&path, &name, kind);
                match (within, kind) {
                    // In a repository, any directory may be a working tree, and most hold objects.
                    (Some(within @ DirKind::Plain(DirPlace::Dependencies)), _)
                    | (Some(within @ DirKind::Plain(_)), DirKind::Bare(_)) => {
                        others.push_back((path, within));
                    }
                    (Some(within), _) => next.push_back((path, within)),
                    (None, _) => {}
                }
            }
        }
        news
    }

    /// All in a directory. It may have been closed since it is watched.
    fn names_in(&mut self, folder: &Path) -> Vec<DirEntry> {
        use std::io::ErrorKind;
        match std::fs::read_dir(folder) {
            Ok(entries) => entries.flatten().collect(),
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                    self.coverage = Coverage::Some;
                }
                Vec::new()
            }
        }
    }

    /// Watches one directory; false if it is not watched.
    fn add_one(&mut self, folder: &Path, kind: DirKind) -> bool {
        if self.dirs.len() >= self.most {
            self.coverage = Coverage::Some;
            return false;
        }
        match self.inotify.add_watch(folder, kind.mask()) {
            Ok(number) => {
                self.dirs.insert(number, WatchedDir { path: folder.to_owned(), kind });
                true
            }
            // Gone, or a link by now.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => false,
            // No watches are left, or it is closed to its owner.
            Err(_) => {
                self.coverage = Coverage::Some;
                false
            }
        }
    }
}

impl AsFd for DirWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// A name in a git directory that git runs or trusts, by its first part.
fn is_git_part(name: &OsStr) -> bool {
    let first = |name: &&'static str| name.split('/').next().unwrap_or_default();
    let mut parts = OF_GIT.iter().map(first).chain(ADDRESSES).chain(["worktrees", "modules"]);
    parts.any(|part| name == part)
}

/// True if git takes a directory of these names for a repository.
fn is_bare(names: &[DirEntry]) -> bool {
    let has = |part: &str| names.iter().any(|it| eq_ignoring_case(&it.file_name(), part));
    has(GIT_BARE[0]) && (has(ELSEWHERE) || GIT_BARE.iter().all(|part| has(part)))
}

fn is_bare_part(name: &OsStr) -> bool {
    GIT_BARE.iter().chain([&ELSEWHERE]).any(|part| eq_ignoring_case(name, part))
}

fn tells_not_all(disk: &statfs::Statfs) -> bool {
    let statfs::FsType(kind) = disk.filesystem_type();
    #[allow(clippy::unnecessary_cast, reason = "its type differs between systems")]
    let kind = kind as i64;
    WITHOUT_EVENTS.contains(&(kind & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    const NAMES: [&str; 3] = [".envrc", ".git", ".vscode"];

    fn watch(root: &Path, most: usize) -> DirWatch {
        let roots = (vec![root.to_owned()], Vec::new());
        DirWatch::new(roots, NAMES.to_vec(), HashSet::new(), most).unwrap()
    }

    /// A project, with its root as the kernel tells it.
    fn project() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for made in ["src/data", ".git/hooks", ".git/objects", "node_modules/x", "tree/.vscode"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        (dir, root)
    }

    #[test]
    fn protected_names_are_told_and_others_are_not() {
        let (_dir, root) = project();
        let mut watch = watch(&root, MOST_DIRS);
        assert_eq!((watch.coverage(), watch.read()), (Coverage::All, WatchNews::Nothing));
        for quiet in ["src/data/file", ".git/index", ".git/objects/x", "node_modules/x/.envrc"] {
            fs::write(root.join(quiet), "x").unwrap();
            assert_eq!(watch.read(), WatchNews::Nothing, "{quiet}");
        }
        for told in ["src/data/.envrc", ".git/config", ".git/hooks/x", "tree/.vscode/tasks.json"] {
            fs::write(root.join(told), "x").unwrap();
            assert_eq!(watch.read(), WatchNews::Look, "{told}");
        }
        fs::create_dir(root.join("node_modules/x/.git")).unwrap();
        assert_eq!(watch.read(), WatchNews::Look);
        fs::write(root.join("node_modules/x/.git/config"), "x").unwrap();
        assert_eq!(watch.read(), WatchNews::Look, "a git directory among dependencies");
    }

    #[test]
    fn new_directories_are_watched_with_all_in_them_also_where_they_were_moved_to() {
        let (dir, root) = project();
        let mut watch = watch(&root, MOST_DIRS);
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        assert_eq!(watch.read(), WatchNews::Nothing);
        fs::write(root.join("a/b/c/.envrc"), "x").unwrap();
        assert_eq!(watch.read(), WatchNews::Look);
        // A tree from elsewhere, with a name deep inside.
        let other = tempfile::tempdir_in(dir.path().parent().unwrap()).unwrap();
        fs::create_dir_all(other.path().join("t/u/v")).unwrap();
        fs::write(other.path().join("t/u/v/.envrc"), "x").unwrap();
        fs::rename(other.path().join("t"), root.join("t")).unwrap();
        assert_eq!(watch.read(), WatchNews::Look);
        // A tree that is moved is known by its new path.
        fs::rename(root.join("src"), root.join("moved")).unwrap();
        assert_eq!(watch.read(), WatchNews::Nothing);
        fs::write(root.join("moved/data/.envrc"), "x").unwrap();
        assert_eq!(watch.read(), WatchNews::Look);
    }

    #[test]
    fn a_repository_without_a_working_tree_is_told_of_as_soon_as_it_is_one() {
        let (_dir, root) = project();
        let mut watch = watch(&root, MOST_DIRS);
        fs::create_dir_all(root.join("bare/objects")).unwrap();
        fs::create_dir_all(root.join("bare/refs")).unwrap();
        assert_eq!(watch.read(), WatchNews::Nothing);
        fs::write(root.join("bare/HEAD"), "x").unwrap();
        assert_eq!(watch.read(), WatchNews::Look);
        fs::write(root.join("bare/config"), "x").unwrap();
        assert_eq!(watch.read(), WatchNews::Look);
    }

    #[test]
    fn the_names_of_a_repository_hide_no_others() {
        for folder in ["", "src/data", "node_modules/x", "target/x", ".git/modules/x"] {
            let (_dir, root) = project();
            let bare = root.join(folder);
            let mut watch = watch(&root, MOST_DIRS);
            for made in ["objects", "refs", "old"] {
                fs::create_dir_all(bare.join(made)).unwrap();
            }
            fs::write(bare.join("HEAD"), "x").unwrap();
            watch.read();
            fs::create_dir(bare.join("new")).unwrap();
            fs::write(bare.join("file"), "x").unwrap();
            assert_eq!(watch.read(), WatchNews::Nothing, "{folder}: the control");
            let is_project = matches!(folder, "" | "src/data");
            let of_project = [".envrc", "old/.envrc", "new/.envrc"].iter().filter(|_| is_project);
            for told in of_project.chain(&["config", "config.worktree"]) {
                fs::write(bare.join(told), "x").unwrap();
                assert_eq!(watch.read(), WatchNews::Look, "{folder}/{told}");
            }
            fs::write(bare.join("config"), "changed").unwrap();
            assert_eq!(watch.read(), WatchNews::Look, "{folder}: changes");
            if folder != ".git/modules/x" {
                fs::create_dir_all(bare.join("new/.git")).unwrap();
                assert_eq!(watch.read(), WatchNews::Look, "{folder}: another repository");
                fs::write(bare.join("new/.git/config"), "x").unwrap();
                assert_eq!(watch.read(), WatchNews::Look, "{folder}: its settings");
            }
        }
    }

    #[test]
    fn a_directory_that_was_closed_before_it_is_read_is_known_to_be_unwatched() {
        let (_dir, root) = project();
        let mut watch = watch(&root, MOST_DIRS);
        assert!(watch.names_in(&root.join("gone")).is_empty());
        assert_eq!(watch.coverage(), Coverage::All, "the control: gone by now");
        // Unreadable also to root.
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        assert!(watch.names_in(&root.join("loop")).is_empty());
        assert_eq!(watch.coverage(), Coverage::Some);
    }

    #[test]
    fn directories_beyond_the_limit_are_known_to_be_unwatched() {
        let (_dir, root) = project();
        assert_eq!(watch(&root, 4).coverage(), Coverage::Some);
        let mut watch = watch(&root, MOST_DIRS);
        watch.most = watch.dirs.len() + 1;
        fs::create_dir_all(root.join("one/two")).unwrap();
        watch.read();
        assert_eq!(watch.coverage(), Coverage::Some, "also of new ones");
    }
}
