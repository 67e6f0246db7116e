//! Resolves a path link by link and records every symbolic link on the way.
//!
//! A command can make a name that it can write lead anywhere, by the next call even to keys. So
//! every name on the way matters, not only the current end.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// A symbolic link on the way to a grant, made again in the new root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathLink {
    pub at: PathBuf,
    pub to: PathBuf,
}

/// The way to a path, name by name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// The links that are followed, outermost first.
    pub links: Vec<PathLink>,
    /// Names that it leaves again by `..`.
    left_dirs: Vec<PathBuf>,
    /// The end of the path, whether it exists or not.
    pub end: PathBuf,
}

impl ResolvedPath {
    /// `None` where the way ends nowhere, as links do that lead to each other.
    pub(crate) fn resolve(path: &Path) -> Option<Self> {
        Self::resolve_with(path, |at| std::fs::read_link(at).ok())
    }

    /// The same with a function that returns the target of a link.
    fn resolve_with(path: &Path, read_link: impl Fn(&Path) -> Option<PathBuf>) -> Option<Self> {
        let (mut links, mut left) = (Vec::new(), Vec::new());
        let mut real = PathBuf::from("/");
        let mut ahead: Vec<OsString> = reversed_parts(path);
        // The kernel's own bound on links in one path.
        while let Some(part) = ahead.pop() {
            if links.len() > 40 {
                return None;
            }
            if part == ".." {
                left.push(real.clone());
                real.pop();
                continue;
            }
            let at = real.join(&part);
            match read_link(&at) {
                Some(to) => {
                    if to.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    ahead.extend(reversed_parts(&to));
                    links.push(PathLink { at, to });
                }
                None => real = at,
            }
        }
        Some(Self { links, left_dirs: left, end: real })
    }

    /// The first name on the way that lies in one of these places and leads on from there.
    pub(crate) fn first_redirect_in(&self, places: &[PathBuf]) -> Option<&Path> {
        let names = self.links.iter().map(|link| &link.at).chain(&self.left_dirs);
        let mut names = names.map(PathBuf::as_path);
        names.find(|name| lies_in(name, places))
    }

    /// True if it ends in one of these directories.
    pub(crate) fn ends_in(&self, places: &[PathBuf]) -> bool {
        lies_in(&self.end, places)
    }
}

/// True if a process that can write these directories (real paths) decides where a path leads: a
/// link on the way lies in them, or the path cannot be resolved.
#[must_use]
pub fn is_redirectable_in(path: &Path, places: &[PathBuf]) -> bool {
    ResolvedPath::resolve(path).is_none_or(|way| way.first_redirect_in(places).is_some())
}

/// True if a process that can write these directories (real paths) decides which file a path names:
/// it can redirect the path, replace the file at its end, or write it under another name.
#[must_use]
pub fn is_changeable_in(path: &Path, places: &[PathBuf]) -> bool {
    ResolvedPath::resolve(path).is_none_or(|way| {
        way.first_redirect_in(places).is_some()
            || way.ends_in(places)
            || has_name_in(&way.end, places)
    }) || lies_in(path, places)
}

/// True if a file of this user has several hard links, and one could lie in these places: the same
/// file system.
fn has_name_in(path: &Path, places: &[PathBuf]) -> bool {
    let Ok(found) = path.symlink_metadata() else { return false };
    let is_own = found.uid() == nix::unistd::geteuid().as_raw();
    let on_same = |place: &PathBuf| place.metadata().is_ok_and(|it| it.dev() == found.dev());
    found.is_file() && found.nlink() > 1 && is_own && places.iter().any(on_same)
}

/// True if commands decide which file a path names: those that can write `own` by [`is_changeable_in`], and
/// those of other projects, which can write `elsewhere`, by a link on the way. What they wrote into a directory
/// that a link of the person names is theirs, and no more.
#[must_use]
pub fn is_led_by_commands(path: &Path, own: &[PathBuf], elsewhere: &[PathBuf]) -> bool {
    is_changeable_in(path, own) || is_redirectable_in(path, elsewhere)
}

fn lies_in(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// A path without repeated slashes and `.`, as [`is_within`] compares it.
pub(crate) fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// True if a plain path is a plain directory or lies in it. `Path::starts_with` takes ten times as long, since
/// it reads both name by name, and each grant of a call is compared with each key.
pub(crate) fn is_within(path: &Path, dir: &Path) -> bool {
    let (path, dir) = (path.as_os_str().as_bytes(), dir.as_os_str().as_bytes());
    let below = |rest: &[u8]| rest.is_empty() || rest.starts_with(b"/") || dir.ends_with(b"/");
    path.strip_prefix(dir).is_some_and(below)
}

/// The links that are followed on the way to a path, and where they lead.
pub(crate) fn follow_links(path: &Path) -> Option<(Vec<PathLink>, PathBuf)> {
    ResolvedPath::resolve(path).map(|way| (way.links, way.end))
}

/// The names of a path, last first.
fn reversed_parts(path: &Path) -> Vec<OsString> {
    let mut parts: Vec<OsString> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        })
        .collect();
    parts.reverse();
    parts
}

/// Opens a place without reading it.
pub(crate) fn open_path_fd(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH).open(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn links_are_followed_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        std::fs::write(base.join("real/file"), "").unwrap();
        std::os::unix::fs::symlink("real", base.join("one")).unwrap();
        std::os::unix::fs::symlink(base.join("one"), base.join("two")).unwrap();
        let way = ResolvedPath::resolve(&base.join("two/file")).unwrap();
        assert_eq!(way.end, base.join("real/file"));
        assert_eq!(
            way.links,
            [
                PathLink { at: base.join("two"), to: base.join("one") },
                PathLink { at: base.join("one"), to: "real".into() },
            ]
        );
    }

    #[test]
    fn a_file_with_another_name_on_the_disk_of_a_project_is_changeable() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("project")).unwrap();
        let places = [base.join("project")];
        std::fs::write(base.join("settings"), "").unwrap();
        assert!(!is_changeable_in(&base.join("settings"), &places));
        assert!(!is_changeable_in(&base, &places), "a directory has no other name");
        std::fs::hard_link(base.join("settings"), base.join("project/own")).unwrap();
        assert!(is_changeable_in(&base.join("settings"), &places));
    }

    #[test]
    fn whoever_can_write_a_name_on_the_way_decides_where_it_leads() {
        let links = [
            ("/home/outer", "/project/inner"),
            ("/project/inner", "/keys"),
            ("/home/ends", "project/deep/file"),
            ("/home/project", "/project"),
            ("/home/apart", "/opt/tool"),
            ("/home/climbs", "/project/deep/../../opt"),
            ("/project/within", "deep"),
            ("/home/round", "round"),
            ("/projects", "/opt"),
        ];
        let read = |at: &Path| {
            let found = links.iter().find(|(name, _)| at == Path::new(name));
            found.map(|(_, to)| PathBuf::from(to))
        };
        let places = ["/project", "/cache"].map(PathBuf::from);
        for (path, led, ends) in [
            ("/home/outer", true, false),
            ("/home/outer/id", true, false),
            ("/home/ends", false, true),
            ("/home/ends/../../../opt", true, false),
            ("/home/apart", false, false),
            ("/home/climbs", true, false),
            ("/project/within", true, true),
            ("/project/deep", false, true),
            ("/project/../opt", true, false),
            ("/cache/x", false, true),
            ("/projects/x", false, false),
            ("/home/none", false, false),
        ] {
            let way = ResolvedPath::resolve_with(Path::new(path), read).unwrap();
            assert_eq!(
                (way.first_redirect_in(&places).is_some(), way.ends_in(&places)),
                (led, ends),
                "{path}"
            );
        }
        assert_eq!(ResolvedPath::resolve_with(Path::new("/home/round"), read), None);
        let way = ResolvedPath::resolve_with(Path::new("/home/outer"), read).unwrap();
        assert_eq!(way.first_redirect_in(&places), Some(Path::new("/project/inner")));
    }

    #[test]
    fn a_path_lies_within_a_directory_as_the_standard_library_says() {
        let paths = ["/", "/a", "/a/b", "/a/bc", "/ab", "//a//b/", "/a/./b", "/a/b/c"];
        for (path, dir) in paths.iter().flat_map(|path| paths.map(|dir| (*path, dir))) {
            let found = is_within(&plain(Path::new(path)), &plain(Path::new(dir)));
            assert_eq!(found, Path::new(path).starts_with(dir), "{path} {dir}");
        }
    }
}
