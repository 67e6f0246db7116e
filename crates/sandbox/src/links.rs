//! Symbolic links on the way to a place: they are made again in the new root. For `grants`, `root`.

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
    let mut links = Vec::new();
    let mut real = PathBuf::from("/");
    let mut ahead: Vec<OsString> = parts(path);
    // The kernel's own bound on links in one path.
    while let Some(part) = ahead.pop() {
        if links.len() > 40 {
            break;
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
    links
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
