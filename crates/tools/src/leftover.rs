//! The names under which a change lies beside a file for a moment, and what becomes of those that a
//! call left behind because it was killed.
//!
//! A name says whose it is: the session, and the process. A session changes files by one call at a
//! time, and goes on only when none of its earlier life runs any more: at the beginning of such a call
//! each name of its session is a dead one's. Names of others are never touched.

use crate::control::visible;
use crate::open;
use crate::protected;
use crate::remove::{own_place, rename};
use crate::scope::{Place, trace};
use nix::unistd::{UnlinkatFlags, unlinkat};
use protocol::call::ToolResult;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Longest name in bytes that stands in the name of what is moved aside, which has to be one too.
const SHOWN_NAME: usize = 190;
/// Ends the name of what is moved aside.
const GONE: &str = ".gone";
/// Ends the name of what is not yet whole.
const FRESH: &str = ".tmp";

/// For what is moved aside: whoever finds it sees what it was called.
pub(crate) fn gone(place: &Place, (number, attempt): (usize, usize), was: &OsStr) -> String {
    let was = was.to_str().filter(|name| name.len() <= SHOWN_NAME).unwrap_or_default();
    format!("{}{number}-{attempt}.{was}{GONE}", own(place))
}

/// For a file that is being written.
pub(crate) fn fresh(place: &Place, attempt: usize) -> String {
    format!("{}{attempt}{FRESH}", own(place))
}

fn own(place: &Place) -> String {
    let session = place.session().unwrap_or("0");
    format!(".agentd-{session}-{}-", std::process::id())
}

/// What was put right where a call is about to change something, a line each.
#[derive(Debug, Default)]
pub(crate) struct Mended(Vec<String>);

impl Mended {
    /// Says it below what the call itself came to.
    pub fn tell(self, result: &mut ToolResult) {
        for line in self.0 {
            if !result.text.is_empty() && !result.text.ends_with('\n') {
                result.text.push('\n');
            }
            result.text.push_str(&visible(&line));
        }
    }
}

/// Puts right what killed calls of this session left in the directories of these paths: what was moved
/// aside gets its name back where that is free, and what was never whole is removed.
pub(crate) fn mend(place: &Place, named: &[String]) -> Mended {
    let mut mended = Mended::default();
    let Some(session) = place.session() else { return mended };
    let mut directories: Vec<PathBuf> = Vec::new();
    for path in named {
        let places = [Some(trace(place, path).real), own_place(path, place)];
        for parent in places.iter().flatten().filter_map(|real| real.parent()) {
            if place.contains(parent) && !directories.iter().any(|known| known == parent) {
                directories.push(parent.to_owned());
            }
        }
    }
    for directory in directories {
        in_directory(place, session, &directory, &mut mended);
    }
    mended
}

fn in_directory(place: &Place, session: &str, directory: &Path, mended: &mut Mended) {
    let Ok(entries) = directory.read_dir() else { return };
    let mut found: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    found.retain(|name| is_left(name, session));
    if found.is_empty() {
        return;
    }
    found.sort();
    let Ok(opened) = open::directory(directory) else { return };
    for name in found {
        let shown = |name: &str| place.shown(&directory.join(name)).display().to_string();
        match former(&name) {
            None if name.ends_with(FRESH) => {
                let _ = unlinkat(&opened, name.as_str(), UnlinkatFlags::NoRemoveDir);
            }
            Some(was) if put_back(place, (directory, &opened), &name, was) => {
                mended.0.push(format!(
                    "[{} is there again: a call that was killed had moved it aside]",
                    shown(was)
                ));
            }
            Some(_) | None => mended.0.push(format!(
                "[{} is what a call that was killed had moved aside; its name is taken or not known: \
                 rename or remove it]",
                shown(&name)
            )),
        }
    }
}

/// Whether it names what another process of this session was about.
fn is_left(name: &str, session: &str) -> bool {
    let rest = name.strip_prefix(".agentd-").and_then(|rest| rest.strip_prefix(session));
    let Some((numbers, end)) = rest.and_then(|rest| rest.strip_prefix('-')?.split_once('.')) else {
        return false;
    };
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = numbers.split('-').collect();
    let other = parts.first().is_some_and(|pid| *pid != std::process::id().to_string());
    let count = match end.ends_with("gone") {
        true => 3,
        false if end == "tmp" => 2,
        false => return false,
    };
    other && parts.len() == count && parts.into_iter().all(number)
}

/// What it was called that lies aside under this name; none where that is not known.
fn former(name: &str) -> Option<&str> {
    let (_, rest) = name.strip_prefix('.')?.split_once('.')?;
    rest.strip_suffix(GONE).filter(|was| !was.is_empty() && *was != "." && *was != "..")
}

/// Never over what is there, and never to a name that only a person changes: a command can make
/// such names too.
fn put_back(place: &Place, (directory, opened): (&Path, &OwnedFd), name: &str, was: &str) -> bool {
    let real = directory.join(was);
    let inside = place.root_of(&real).and_then(|root| real.strip_prefix(root).ok());
    let free = place.contains(&real) && inside.and_then(protected::name).is_none();
    free && rename(opened, OsStr::new(name), OsStr::new(was)).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_names_of_other_processes_of_the_same_session_are_left_ones() {
        let own = std::process::id();
        for (name, left) in [
            (".agentd-ab12-1-0-0.a.gone".to_owned(), true),
            (".agentd-ab12-1-0-0.a.b.gone".to_owned(), true),
            (".agentd-ab12-1-0-0..gone".to_owned(), true),
            (".agentd-ab12-1-0.tmp".to_owned(), true),
            (format!(".agentd-ab12-{own}-0-0.a.gone"), false),
            (".agentd-ab13-1-0-0.a.gone".to_owned(), false),
            (".agentd-ab12-1-0-x.a.gone".to_owned(), false),
            (".agentd-ab12-1-0.a.gone".to_owned(), false),
            (".agentd-ab12-1-0-0.tmp".to_owned(), false),
            (".agentd-1-0-0.a.gone".to_owned(), false),
            (".agentd-ab12".to_owned(), false),
        ] {
            assert_eq!(is_left(&name, "ab12"), left, "{name}");
        }
        assert_eq!(former(".agentd-ab12-1-0-0.a.b.gone"), Some("a.b"));
        assert_eq!(former(".agentd-ab12-1-0-0..gone"), None);
        assert_eq!(former(".agentd-ab12-1-0-0....gone"), None);
        assert_eq!(former(".agentd-ab12-1-0.tmp"), None);
    }

    #[test]
    fn what_was_aside_gets_its_name_back_unless_that_is_taken_or_a_persons() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |name: &str| base.join("p").join(name);
        std::fs::create_dir(base.join("p")).unwrap();
        let temp = base.join("agentd-ab12");
        let place =
            Place { project: base.join("p"), added: Vec::new(), temp, withheld: Vec::new() };
        let left = |n: u32, was: &str| format!(".agentd-ab12-1-{n}-0.{was}.gone");
        let foreign = ".agentd-ab13-1-0-0.a.gone";
        let (taken, protected, half) = (left(1, "b"), left(2, ".envrc"), ".agentd-ab12-1-0.tmp");
        for name in [&left(0, "a"), &taken, &protected, half, foreign] {
            std::fs::write(at(name), name).unwrap();
        }
        std::fs::write(at("b"), "theirs").unwrap();
        let Mended(said) = mend(&place, &["b".to_owned(), "new".to_owned()]);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("[a is there again"), "{said:?}");
        assert!(said[1..].iter().all(|line| line.contains("rename or remove it")), "{said:?}");
        let mut names: Vec<_> = at(".")
            .read_dir()
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [&taken, &protected, foreign, "a", "b"]);
        assert_eq!(std::fs::read_to_string(at("a")).unwrap(), left(0, "a"));
        assert_eq!(std::fs::read_to_string(at("b")).unwrap(), "theirs");
        // Elsewhere nothing is looked for.
        let Mended(said) = mend(&place, &["sub/x".to_owned()]);
        assert_eq!(said, [""; 0]);
    }
}
