//! Symbolic links on the way to a place, and where they lead: for `grants` and `root`, which makes
//! them again in the new root, and for `protected`.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// A symbolic link on the way to a grant, made again in the new root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub at: PathBuf,
    pub to: PathBuf,
}

/// The symbolic links that are followed on the way to `path`, outermost first.
pub(crate) fn links_to(path: &Path) -> Vec<Link> {
    follow(path).map(|(links, _)| links).unwrap_or_default()
}

/// The same, and where they lead, whether there is anything or not; `None` where they lead nowhere,
/// as those that lead to each other.
pub(crate) fn follow(path: &Path) -> Option<(Vec<Link>, PathBuf)> {
    let mut links = Vec::new();
    let mut real = PathBuf::from("/");
    let mut ahead: Vec<OsString> = parts(path);
    // The kernel's own bound on links in one path.
    while let Some(part) = ahead.pop() {
        if links.len() > 40 {
            return None;
        }
        if part == ".." {
            real.pop();
            continue;
        }
        let at = real.join(&part);
        match std::fs::read_link(&at) {
            Ok(to) => {
                if to.is_absolute() {
                    real = PathBuf::from("/");
                }
                ahead.extend(parts(&to));
                links.push(Link { at, to });
            }
            Err(_) => real = at,
        }
    }
    Some((links, real))
}

/// The names of a path, last first.
fn parts(path: &Path) -> Vec<OsString> {
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
        let links = links_to(&base.join("two/file"));
        assert_eq!(
            links,
            [
                Link { at: base.join("two"), to: base.join("one") },
                Link { at: base.join("one"), to: "real".into() },
            ]
        );
    }
}
