//! Resolves paths, and decides if they are inside the granted directories.
//!
//! Links are resolved one by one and paths are compared by components, so `proj` does not contain
//! `proj-evil`. This check gives a clear message; the cage enforces the limit.

use nix::errno::Errno;
use sandbox::CallScope;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows in one path.
const LINKS_MAX: usize = 40;

/// How the way along a path ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceEnd {
    /// There is something.
    Found,
    /// There is nothing yet; the nearest existing parent is a directory.
    Missing,
    /// A link leads to something that does not exist.
    Dangling,
    /// Links lead in a circle.
    Circle,
    /// A component that must be a directory is not one.
    NotADirectory,
    /// The system refused to look.
    Unreadable(Errno),
}

/// A path and where it leads.
#[derive(Debug, Clone)]
pub(crate) struct PathTrace {
    /// Absolute, without links. A part that does not exist yet is appended to its nearest existing
    /// parent.
    pub real: PathBuf,
    /// How the way ended.
    pub end: TraceEnd,
    /// True if the path ends with a slash and so means a directory.
    pub means_directory: bool,
}

/// Follows `named`, from the project where it is relative. Opens nothing.
pub(crate) fn trace_path(scope: &CallScope, named: &str) -> PathTrace {
    let path = scope.project.join(named);
    let start = PathBuf::from("/");
    let mut walk = PathResolver { scope, real: start, left: VecDeque::new(), links: 0, in_link: 0 };
    walk.push_front(&path);
    let end = walk.run();
    let means_directory = named.ends_with('/') || named.ends_with("/.") || named == ".";
    PathTrace { real: scope.on_host(&walk.real).into_owned(), end, means_directory }
}

struct PathResolver<'a> {
    scope: &'a CallScope,
    /// As a command finds it, without links.
    real: PathBuf,
    left: VecDeque<OsString>,
    links: usize,
    /// How many parts of `left` came out of a link.
    in_link: usize,
}

impl PathResolver<'_> {
    fn run(&mut self) -> TraceEnd {
        while let Some(part) = self.left.pop_front() {
            let from_link = self.in_link > 0;
            self.in_link = self.in_link.saturating_sub(1);
            if part == ".." {
                self.real.pop();
                continue;
            }
            let next = self.real.join(&part);
            // In a private directory there is nothing on the way to a granted one but that.
            if self.scope.leads_to_granted(&next) {
                self.real = next;
                continue;
            }
            match self.scope.on_host(&next).symlink_metadata() {
                Ok(meta) if meta.is_symlink() => match self.follow(&next) {
                    Ok(()) => {}
                    Err(end) => {
                        self.real = next;
                        return end;
                    }
                },
                Ok(meta) => {
                    self.real = next;
                    if !meta.is_dir() && !self.left.is_empty() {
                        return TraceEnd::NotADirectory;
                    }
                }
                Err(error) => {
                    self.real = next;
                    return self.stopped(&error, from_link);
                }
            }
        }
        TraceEnd::Found
    }

    fn follow(&mut self, link: &Path) -> Result<(), TraceEnd> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(TraceEnd::Circle);
        }
        let target = self
            .scope
            .on_host(link)
            .read_link()
            .map_err(|error| TraceEnd::Unreadable(errno(&error)))?;
        if target.is_absolute() {
            self.real = PathBuf::from("/");
        }
        let parts = self.push_front(&target);
        self.in_link += parts;
        Ok(())
    }

    /// The rest of the path cannot be inspected: it is appended, so that the check uses the place
    /// where it would be.
    fn stopped(&mut self, error: &io::Error, from_link: bool) -> TraceEnd {
        let number = errno(error);
        while let Some(part) = self.left.pop_front() {
            if part == ".." {
                self.real.pop();
            } else {
                self.real.push(part);
            }
        }
        if number != Errno::ENOENT {
            return if number == Errno::ENOTDIR {
                TraceEnd::NotADirectory
            } else {
                TraceEnd::Unreadable(number)
            };
        }
        if from_link { TraceEnd::Dangling } else { TraceEnd::Missing }
    }

    /// Puts the components of `path` before the remaining ones; returns their number.
    fn push_front(&mut self, path: &Path) -> usize {
        let parts: Vec<OsString> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_owned()),
                Component::ParentDir => Some(OsString::from("..")),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
            })
            .collect();
        let count = parts.len();
        for part in parts.into_iter().rev() {
            self.left.push_front(part);
        }
        count
    }
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn scope() -> (tempfile::TempDir, CallScope) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["proj/sub", "proj-evil", "temp"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::fs::write(base.join("proj/file"), "x").unwrap();
        std::fs::write(base.join("secret"), "x").unwrap();
        let scope = CallScope {
            project: base.join("proj"),
            added: vec![],
            temp: base.join("temp"),
            private: vec![],
            home: None,
            caches: None,
            withheld: vec![base.join("proj/state")],
        };
        (dir, scope)
    }

    #[test]
    fn where_paths_lead() {
        let (_dir, scope) = scope();
        let base = scope.project.parent().unwrap().to_owned();
        let link = |from: &str, to: &str| symlink(to, scope.project.join(from)).unwrap();
        link("out", "../secret");
        link("in", "sub/../file");
        link("dir-out", "..");
        link("dangling", "nowhere");
        link("dangling-out", "/nowhere/at/all");
        link("circle", "circle");
        link("abs", base.join("proj/sub").to_str().unwrap());
        for (named, real, inside, end) in [
            ("file", "proj/file", true, TraceEnd::Found),
            ("./sub/../file", "proj/file", true, TraceEnd::Found),
            ("", "proj", true, TraceEnd::Found),
            (".", "proj", true, TraceEnd::Found),
            ("new/deep/er", "proj/new/deep/er", true, TraceEnd::Missing),
            ("new/../../secret", "secret", false, TraceEnd::Missing),
            ("../proj-evil/x", "proj-evil/x", false, TraceEnd::Missing),
            ("../proj/file", "proj/file", true, TraceEnd::Found),
            ("../secret", "secret", false, TraceEnd::Found),
            ("out", "secret", false, TraceEnd::Found),
            ("in", "proj/file", true, TraceEnd::Found),
            ("dir-out/secret", "secret", false, TraceEnd::Found),
            ("dir-out/proj/file", "proj/file", true, TraceEnd::Found),
            ("dangling", "proj/nowhere", true, TraceEnd::Dangling),
            ("circle", "proj/circle", true, TraceEnd::Circle),
            ("file/x", "proj/file", true, TraceEnd::NotADirectory),
            ("abs/new", "proj/sub/new", true, TraceEnd::Missing),
            ("../temp/x", "temp/x", true, TraceEnd::Missing),
            ("state/token", "proj/state/token", false, TraceEnd::Missing),
        ] {
            let trace = trace_path(&scope, named);
            assert_eq!(trace.real, base.join(real), "{named}");
            assert_eq!(scope.contains(&trace.real), inside, "{named}");
            assert_eq!(trace.end, end, "{named}");
        }
        assert!(!scope.contains(&trace_path(&scope, "dangling-out").real));
        assert!(!scope.contains(&trace_path(&scope, "/etc/passwd").real));
        assert!(!scope.contains(&trace_path(&scope, "/proc/self/root/etc/passwd").real));
    }

    #[test]
    fn a_path_means_what_a_command_finds_there() {
        let (_dir, mut scope) = scope();
        let base = scope.project.parent().unwrap().to_owned();
        for name in ["own/tmp", "own/home", "t/added", "home"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::fs::write(base.join("own/tmp/file"), "x").unwrap();
        std::fs::write(base.join("t/secret"), "x").unwrap();
        let link = |from: &str, to: PathBuf| symlink(to, base.join(from)).unwrap();
        link("own/home/link", base.join("t/file"));
        link("proj/to-tmp", base.join("t"));
        scope.temp = base.join("own/tmp");
        scope.added = vec![base.join("t/added")];
        scope.private = vec![
            (base.join("t"), base.join("own/tmp")),
            (base.join("home"), base.join("own/home")),
        ];
        for (named, real, shown) in [
            ("t/file", "own/tmp/file", "t/file"),
            ("t/new/deep", "own/tmp/new/deep", "t/new/deep"),
            ("t/secret", "own/tmp/secret", "t/secret"),
            ("t/added/x", "t/added/x", "t/added/x"),
            ("home/link", "own/tmp/file", "t/file"),
            ("proj/to-tmp/file", "own/tmp/file", "t/file"),
            ("home/../t/file", "own/tmp/file", "t/file"),
            ("own/tmp/file", "own/tmp/file", "t/file"),
        ] {
            let found = trace_path(&scope, base.join(named).to_str().unwrap());
            assert_eq!(found.real, base.join(real), "{named}");
            assert!(scope.contains(&found.real), "{named}");
            assert_eq!(scope.shown(&found.real), base.join(shown), "{named}");
        }
        assert_eq!(trace_path(&scope, base.join("t").to_str().unwrap()).real, base.join("own/tmp"));
    }
}
