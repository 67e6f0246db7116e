//! Tells that nothing in the directories of a scan changed since, by inotify(7), so that no other scan
//! is needed. For `snapshot`.
//!
//! Two changes give no event: those by a memory mapping, until no process has the mapping, and those by
//! another name of the file. So files with several names switch it off; and what a process wrote by a
//! mapping that it still has is found by the next scan only, as is a mount over a directory.

use super::ignored::IgnoreRules;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Scans of fewer names are as fast, and a person has few inotify instances
/// (`fs.inotify.max_user_instances`, 128 by default).
pub(super) const MANY: usize = 2_000;

/// All changes of names and content in a directory. The end of a mapping closes its file.
const CHANGES: AddWatchFlags = AddWatchFlags::IN_MODIFY
    .union(AddWatchFlags::IN_ATTRIB)
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ONLYDIR)
    .union(AddWatchFlags::IN_DONT_FOLLOW);

/// The watched directories of the last scan.
#[derive(Debug)]
pub(super) struct TreeWatch {
    inotify: Inotify,
    /// Nothing is proved until the next scan.
    changed: bool,
    /// Directories with a repository, whose `.git/info/exclude` is not watched, and their digests.
    repositories: Vec<(PathBuf, String)>,
}

impl TreeWatch {
    /// None where the user has no instance left.
    pub(super) fn start() -> Option<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
        Some(Self { inotify, changed: true, repositories: Vec::new() })
    }

    /// A scan begins. Its directories are added before they are listed.
    pub(super) fn begin_scan(&mut self) {
        self.has_events();
        self.changed = false;
    }

    /// Watches a directory, which may be watched already.
    pub(super) fn add(&mut self, directory: &Path) {
        // Without a watch left for it (`fs.inotify.max_user_watches`) nothing can be proved.
        self.changed |= self.inotify.add_watch(directory, CHANGES).is_err();
    }

    /// The scan is complete; `rules` are the digests of ignore rules by their directories.
    pub(super) fn end_scan(&mut self, project: &Path, rules: &BTreeMap<OsString, String>) {
        let rules = rules.iter().map(|(path, digest)| (project.join(path), digest.clone()));
        self.repositories =
            rules.filter(|(path, _)| path.join(".git").symlink_metadata().is_ok()).collect();
    }

    /// The last scan proves nothing, or the known state is no longer that of it.
    pub(super) fn forget(&mut self) {
        self.changed = true;
    }

    /// True if the last scan would find the same now.
    pub(super) fn is_unchanged(&mut self) -> bool {
        self.changed |= self.has_events();
        let same = |(path, was): &(PathBuf, String)| IgnoreRules::of(path, None).1 == *was;
        !self.changed && self.repositories.iter().all(same)
    }

    /// Takes all events. An overflow of the queue is an event, too.
    fn has_events(&self) -> bool {
        let mut found = false;
        loop {
            match self.inotify.read_events() {
                Ok(_) => found = true,
                Err(Errno::EAGAIN) => return found,
                Err(_) => return true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tree::ProjectTree;
    use super::*;
    use std::fs;
    use std::time::{Duration, Instant};

    fn scanned(project: &Path, watch: &mut TreeWatch) {
        use std::os::unix::fs::MetadataExt;
        let device = project.metadata().unwrap().dev();
        let until = Instant::now() + Duration::from_secs(5);
        ProjectTree::of(project, device, until, Some(watch));
    }

    #[test]
    fn every_kind_of_change_is_seen_and_reading_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap();
        fs::create_dir_all(project.join("a/b")).unwrap();
        fs::create_dir_all(project.join(".git/info")).unwrap();
        let file = project.join("a/b/file");
        fs::write(&file, "x").unwrap();
        let mut watch = TreeWatch::start().unwrap();
        assert!(!watch.is_unchanged(), "nothing was scanned");
        let changes: [(&str, &dyn Fn()); 8] = [
            ("content", &|| fs::write(&file, "y").unwrap()),
            ("a new name", &|| fs::write(project.join("a/new"), "").unwrap()),
            ("a name that is gone", &|| fs::remove_file(project.join("a/new")).unwrap()),
            ("a moved directory", &|| fs::rename(project.join("a"), project.join("c")).unwrap()),
            ("moved back", &|| fs::rename(project.join("c"), project.join("a")).unwrap()),
            ("permissions", &|| {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            }),
            ("rules", &|| fs::write(project.join(".gitignore"), "b\n").unwrap()),
            ("rules of a repository", &|| {
                fs::write(project.join(".git/info/exclude"), "a\n").unwrap()
            }),
        ];
        for (what, change) in changes {
            scanned(&project, &mut watch);
            assert!(watch.is_unchanged(), "before {what}");
            let _ = fs::read(&file);
            fs::write(project.join(".git/index"), "z").unwrap();
            assert!(watch.is_unchanged(), "reading, and git's own files");
            change();
            assert!(!watch.is_unchanged(), "{what}");
            assert!(!watch.is_unchanged(), "until the next scan");
        }
        scanned(&project, &mut watch);
        watch.forget();
        assert!(!watch.is_unchanged());
        use std::os::unix::fs::MetadataExt;
        let device = project.metadata().unwrap().dev();
        ProjectTree::of(&project, device, Instant::now(), Some(&mut watch));
        assert!(!watch.is_unchanged(), "a scan without time lists nothing");
    }

    #[test]
    fn a_file_with_another_name_elsewhere_proves_nothing() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let project = dir.path().canonicalize().unwrap();
        fs::write(project.join("file"), "x").unwrap();
        let mut watch = TreeWatch::start().unwrap();
        scanned(&project, &mut watch);
        assert!(watch.is_unchanged(), "the control");
        fs::hard_link(project.join("file"), elsewhere.path().join("other")).unwrap();
        scanned(&project, &mut watch);
        assert!(!watch.is_unchanged());
    }
}
