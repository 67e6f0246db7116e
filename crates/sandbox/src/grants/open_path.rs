//! Opens one place of a policy and records it as a grant, or records why it is left out.

use super::exclusions::{
    RemainingEntry, entries_except, expand_pattern, is_harmless_maven_settings, is_readable,
};
use super::grant_list::Grants;
use super::key_places::OpenedGrant;
use super::path_grant::{GrantVia, PathGrant};
use crate::error::{CageError, CageStep};
use crate::policy::{GrantRule, GrantTarget, IfAbsent};
use crate::resolved_path::open_path_fd;
use crate::resolved_path::{PathLink, ResolvedPath};
use crate::sys;
use nix::errno::Errno;
use protocol::confinement::{Confinement, FilePath};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

/// What the kernel names anew in each cage.
const OF_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Result of opening a granted path.
enum OpenedPath {
    /// The place itself, opened, and its real path.
    Opened(File, PathBuf),
    /// A link of the user's leads into a directory that the call may write anyway. The call keeps
    /// the rights of that directory there.
    InWritableDir(PathBuf),
    /// Nothing that may be granted: why.
    Refused(String),
}

/// Paths within a place that a rule excludes. A path that this user cannot read needs no cover: the
/// kernel refuses it already.
pub(super) fn excluded_in(rule: &GrantRule, real: &Path) -> Vec<PathBuf> {
    let secret = rule.except.iter().flat_map(|name| expand_pattern(real, name));
    let secret = secret.filter(|name| {
        is_readable(&real.join(name)) && !is_harmless_maven_settings(&real.join(name))
    });
    // Nothing can be mounted on a symbolic link. A target elsewhere is granted, or not, by its own
    // path.
    let secret = secret.filter_map(|name| {
        let at = real.join(name);
        Some(at.canonicalize().unwrap_or(at).strip_prefix(real).ok()?.to_owned())
    });
    secret.collect()
}

/// The place that a variable names, unless it would open the whole home or the whole system.
pub(crate) fn from_variable(
    base: Option<PathBuf>,
    rest: &str,
    home: Option<&Path>,
) -> Option<PathBuf> {
    let base = base?;
    let climbs = base.components().any(|part| matches!(part, Component::ParentDir));
    // The home is a real path, and a variable may name it by a link.
    let real = base.canonicalize().unwrap_or_else(|_| base.clone());
    let whole = [&base, &real]
        .iter()
        .any(|base| base.parent().is_none() || home.is_some_and(|home| home.starts_with(base)));
    if !base.is_absolute() || climbs || whole {
        return None;
    }
    Some(if rest.is_empty() { base } else { base.join(rest) })
}

/// True if a path lies in the project or in an added directory.
pub(super) fn is_in_project(wanted: &Confinement, path: &Path) -> bool {
    let own = [&wanted.project].into_iter().chain(&wanted.added);
    own.map(FilePath::to_path).any(|own| path.starts_with(own))
}

impl Grants {
    /// One place; a missing one is noted as `absent` says.
    pub(super) fn grant_path(
        &mut self,
        rule: &GrantRule,
        path: &Path,
        absent: IfAbsent,
        means: GrantVia,
    ) -> Result<(), CageError> {
        let (place, real) = match self.open_noting_links(rule, path) {
            Ok(OpenedPath::Opened(place, real)) => (place, real),
            Ok(OpenedPath::InWritableDir(real)) => {
                self.cover_secrets(rule, &real, means);
                return Ok(());
            }
            Ok(OpenedPath::Refused(why)) => {
                self.left_out.push(format!("{} is left out: {why}", path.display()));
                return Ok(());
            }
            Err(error) => {
                let usual = absent == IfAbsent::Usual
                    && matches!(
                        error.raw_os_error(),
                        Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES)
                    );
                if !usual {
                    self.missing.push(format!("{}: {error}", path.display()));
                }
                return Ok(());
            }
        };
        if real.parent().is_none() {
            // Everything would be in it, our own directories too: nothing can be mounted over a
            // root that the whole host is bound onto.
            return Err(CageError::new(
                CageStep::Grants,
                "the root directory would be granted, and with it everything",
            )
            .hint("work in a directory below it"));
        }
        let folder = place
            .metadata()
            .map_err(|error| CageError::os(CageStep::Grants, path.display(), error))?
            .is_dir();
        let mut secret = excluded_in(rule, &real);
        let opened = OpenedGrant { at: rule.at, named: path, real: &real };
        let keys = self.key_places.within(opened).into_iter().filter(|key| is_readable(key));
        secret.extend(keys.filter_map(|key| Some(key.strip_prefix(&real).ok()?.to_owned())));
        match means {
            GrantVia::Landlock => {
                let secret: Vec<&Path> = secret.iter().map(PathBuf::as_path).collect();
                if !secret.is_empty() {
                    for piece in entries_except(path, &place, &secret)? {
                        let RemainingEntry { path, place, folder } = piece;
                        let access = rule.access;
                        let host = path.clone();
                        self.list.push(PathGrant {
                            path,
                            host,
                            access,
                            fd: place,
                            is_dir: folder,
                            fresh: None,
                            overlay: None,
                        });
                    }
                    return Ok(());
                }
            }
            GrantVia::MountedRoot => self.covered.extend(secret.iter().map(|name| real.join(name))),
        }
        self.list.push(PathGrant {
            host: real.clone(),
            path: real,
            access: rule.access,
            fd: place.into(),
            is_dir: folder,
            fresh: rule.fresh,
            overlay: None,
        });
        Ok(())
    }

    /// Makes the links again by which a person opened the project, so that its path leads there in tier A as on
    /// the host. It is no grant: what lies at the end is granted by its real path.
    pub(super) fn link_project(&mut self, project: &Path, named: &Path) {
        let Some(way) = ResolvedPath::resolve(named).filter(|way| way.end == project) else {
            return;
        };
        // Names of processes and devices (`/proc/self/cwd`) are others in the new root.
        let of_kernel = |link: &PathLink| OF_KERNEL.iter().any(|dir| link.at.starts_with(dir));
        if way.links.iter().any(of_kernel) {
            return;
        }
        let written = [self.written.here.as_slice(), &self.written.elsewhere].concat();
        match way.first_redirect_in(&written) {
            Some(name) => self.left_out.push(format!(
                "{} leads to the project by {}, a name that commands of a project can write; it is left out. Open \
                 the project by {}",
                named.display(),
                name.display(),
                project.display()
            )),
            None => self.note_links(way.links),
        }
    }

    /// Links that tier A makes again.
    fn note_links(&mut self, links: Vec<PathLink>) {
        for link in links {
            if !self.links.contains(&link) {
                self.links.push(link);
            }
        }
    }

    /// Covers the excluded paths of a place that gets no grant of its own.
    pub(super) fn cover_secrets(&mut self, rule: &GrantRule, real: &Path, means: GrantVia) {
        let is_shown = self.list.iter().any(|grant| real.starts_with(&grant.path));
        if means == GrantVia::MountedRoot && is_shown {
            self.covered.extend(excluded_in(rule, real).iter().map(|name| real.join(name)));
        }
    }

    /// Opens a place; where links lead to it, judges and notes them.
    fn open_noting_links(&mut self, rule: &GrantRule, named: &Path) -> io::Result<OpenedPath> {
        // One call for the usual case, in which there is no link at all.
        match sys::open_without_links(named) {
            Ok(place) => {
                return Ok(self.apart_from_keys(rule, named, (place.into(), named.into())));
            }
            // ELOOP: there is a link. ENOSYS: a kernel before 5.6, or a filter around us.
            Err(Errno::ELOOP | Errno::ENOSYS | Errno::EPERM) => {}
            Err(errno) => return Err(errno.into()),
        }
        let way = ResolvedPath::resolve(named).ok_or(Errno::ELOOP)?;
        let of_home = matches!(rule.at, GrantTarget::Home(_) | GrantTarget::Variable { .. });
        // An added directory is given by its real path or not at all.
        let name =
            way.first_redirect_in(&self.written.here).filter(|_| rule.at != GrantTarget::Added);
        let elsewhere = || way.first_redirect_in(&self.written.elsewhere).filter(|_| of_home);
        if let Some(name) = name.or_else(elsewhere) {
            let why = format!(
                "{}, on the way to it, is a name that commands of a project can write. Put a directory in \
                 its place, or have the link lead elsewhere",
                name.display()
            );
            return Ok(OpenedPath::Refused(why));
        }
        let is_led = !way.links.is_empty();
        let is_person_s = of_home || matches!(rule.at, GrantTarget::Path(_));
        let in_own = is_led && is_person_s && way.ends_in(&self.written.here);
        let found = if in_own {
            way.end.symlink_metadata()?;
            OpenedPath::InWritableDir(way.end)
        } else {
            let place = open_path_fd(named)?;
            // The place itself says where it is, whatever happens to the links.
            let real = std::fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
            if real != way.end {
                let why = "a link on the way to it changed meanwhile";
                return Ok(OpenedPath::Refused(why.to_owned()));
            }
            if is_led && of_home && self.key_places.holds_home(&real) {
                let why = format!("it leads to {}, where much more lies", real.display());
                return Ok(OpenedPath::Refused(why));
            }
            match self.apart_from_keys(rule, named, (place, real)) {
                found @ OpenedPath::Opened(..) => found,
                left @ (OpenedPath::Refused(_) | OpenedPath::InWritableDir(_)) => return Ok(left),
            }
        };
        self.note_links(way.links);
        Ok(found)
    }

    /// Compares an opened place with the places of keys, by its real path.
    fn apart_from_keys(
        &self,
        rule: &GrantRule,
        named: &Path,
        (place, real): (File, PathBuf),
    ) -> OpenedPath {
        let opened = OpenedGrant { at: rule.at, named, real: &real };
        let Some(key) = self.key_places.reached_by(opened) else {
            return OpenedPath::Opened(place, real);
        };
        let led = match named == real {
            true => String::new(),
            false => format!("it leads to {}, and ", real.display()),
        };
        OpenedPath::Refused(format!(
            "{led}no call is given {}, with keys or settings of the system. Have it lead to another \
             directory",
            key.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_variable_never_opens_the_whole_home() {
        let home = Path::new("/home/ann");
        let from = |value: &str, rest: &str| from_variable(Some(value.into()), rest, Some(home));
        assert_eq!(from("/home/ann", ""), None);
        assert_eq!(from("/home", "bin"), None);
        assert_eq!(from("/", "bin"), None);
        assert_eq!(from("relative", "bin"), None);
        assert_eq!(from("/home/ann/../ann", ""), None);
        assert_eq!(from("/opt/cargo", "bin"), Some("/opt/cargo/bin".into()));
        assert_eq!(from("/home/ann/rust", ""), Some("/home/ann/rust".into()));
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("data");
        let link = dir.path().join("ann");
        std::fs::create_dir_all(home.join("go")).unwrap();
        std::os::unix::fs::symlink(&home, &link).unwrap();
        let linked = |name: &str| from_variable(Some(link.join(name)), "", Some(&home));
        assert_eq!(linked(""), None);
        assert_eq!(linked("go"), Some(link.join("go")));
    }
}
