//! From a policy and a call's wishes to real places, each opened once. For `cage` only.

use super::key_places::KeyPlaces;
use super::path_grant::PathGrant;
use super::protection::{Protection, ProtectionSearch};
use crate::protected::{Baseline, LinkedGitDir};
use crate::resolved_path::PathLink;
use std::path::PathBuf;

/// Everything that a cage grants in the file system.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    pub list: Vec<PathGrant>,
    /// Of use to `Means::Root` only.
    pub links: Vec<PathLink>,
    /// Granted, but not there.
    pub missing: Vec<String>,
    /// Granted, and left out since keys lie there or a command could have led the way, a sentence each.
    pub left_out: Vec<String>,
    /// To be covered by something empty; for `Means::Root` only.
    pub covered: Vec<PathBuf>,
    /// Keys among those.
    pub hidden: Vec<PathBuf>,
    /// Keys in the project that stay readable.
    pub keys: Vec<PathBuf>,
    /// For `GrantVia::MountedRoot` only.
    pub protection: Protection,
    /// Finds the protected paths again. `None` if the policy protects none.
    pub search: Option<ProtectionSearch>,
    /// State of the protected paths before the command. `None` if the policy protects none.
    pub baseline: Option<Baseline>,
    /// Why places are not shown by an overlay that should be, a sentence each.
    pub overlay_failures: Vec<String>,
    /// Overlays of paths that the user does not have: the command sees only the changes of earlier
    /// commands.
    pub empty_overlays: Vec<PathBuf>,
    /// Where calls write, and so could turn a link.
    pub(super) written: WrittenPlaces,
    /// Places of keys, which no grant reaches.
    pub(super) key_places: KeyPlaces,
    /// Where the project's git directory lies, if elsewhere.
    pub(super) linked: Option<LinkedGitDir>,
}

/// Directories that calls can write on the host.
#[derive(Debug, Default)]
pub(crate) struct WrittenPlaces {
    /// Those of this session's calls. A path that a symbolic link in them redirects is not granted.
    pub(super) here: Vec<PathBuf>,
    /// Those of other projects' calls. A place of the home is not granted by a link in them.
    pub(super) elsewhere: Vec<PathBuf>,
}

impl Grants {
    /// Where the root of tier A shows something else than the host has there.
    pub(crate) fn private_dirs(&self) -> Vec<PathBuf> {
        let shown = |grant: &&PathGrant| grant.host != grant.path && grant.overlay.is_none();
        let private = self.list.iter().filter(shown);
        private.map(|grant| grant.path.clone()).collect()
    }

    /// True if a mount, not Landlock, keeps programs of this path from starting. That is so where
    /// the nearest surrounding grant that allows programs is a private directory: Landlock adds the
    /// rights of the directory around a mount to the mount's own. Within a directory of the host
    /// the path has that directory's rights, as in tier B.
    pub(crate) fn is_no_exec(&self, place: &PathGrant) -> bool {
        let around = self.list.iter().filter(|grant| place.path.starts_with(&grant.path));
        let running = around.filter(|grant| grant.shown().runs());
        let nearest = running.max_by_key(|grant| grant.path.components().count());
        nearest.is_some_and(|grant| grant.host != grant.path && grant.overlay.is_none())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::policy::Access;
    use crate::resolved_path::open_path_fd;
    use std::path::Path;

    #[test]
    fn a_private_directory_around_a_place_starts_nothing_in_it() {
        use Access::{Build, Read, Run, Write};
        let grants = |list: &[(&str, Access)]| Grants {
            list: list
                .iter()
                .map(|(path, access)| PathGrant {
                    // Private ones are written with a slash at the end.
                    path: path.trim_end_matches('/').into(),
                    host: if path.ends_with('/') { "/state".into() } else { path.into() },
                    access: *access,
                    fd: open_path_fd(Path::new("/")).unwrap().into(),
                    is_dir: true,
                    fresh: None,
                    overlay: None,
                })
                .collect(),
            ..Grants::default()
        };
        for (around, place, inert) in [
            (&[("/home/a/", Build)][..], ("/home/a/x", Read), true),
            (&[("/home/a/", Build)], ("/home/a/x", Run), false),
            (&[("/home/a/", Build)], ("/home/b", Read), false),
            (&[("/home/a/", Write)], ("/home/a/x", Read), false),
            (&[("/home/a", Build)], ("/home/a/x", Read), false),
            (&[("/home/a/", Build), ("/home/a/p", Build)], ("/home/a/p/x", Read), false),
            (&[("/home/a/", Build), ("/home/a/p", Read)], ("/home/a/p/x", Read), true),
            (&[("/home", Run), ("/home/a/", Build)], ("/home/a/x", Read), true),
            (&[("/tmp/", Build), ("/tmp/a/", Write)], ("/tmp/a/x", Read), true),
        ] {
            let grants = grants(&[around, &[place]].concat());
            let place = grants.list.last().unwrap();
            assert_eq!(grants.is_no_exec(place), inert, "{:?} in {around:?}", place.path);
        }
    }
}
