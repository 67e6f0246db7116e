//! Lists, adds and removes memories for a person, in the cage of a session's store without its project. SQLite
//! keeps the sessions that run from being disturbed.

use anyhow::{Context, Error, bail};
use protocol::confinement::{Confinement, FilePath, Profile};
use sandbox::Cage;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use store::KeptMemories;

/// Most bytes that are read of a text. The most that is stored is shorter.
const MOST_READ: u64 = 1 << 20;

/// What is asked for.
enum Request<'a> {
    List,
    Remove(&'a Path),
    /// A text of standard input, in this scope, from the project with this path.
    Add(&'a Path, &'a Path),
}

/// Runs `list-memories PROJECT_STORE USER_STORE`, `remove-memory PROJECT_STORE USER_STORE ID`, or
/// `add-memory PROJECT_STORE USER_STORE SCOPE PROJECT` with the text on standard input.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<()> {
    let words: Vec<&Path> = words.iter().map(Path::new).collect();
    let (project, user, request) = match words[..] {
        [verb, project, user] if verb == "list-memories" => (project, user, Request::List),
        [verb, project, user, id] if verb == "remove-memory" => {
            (project, user, Request::Remove(id))
        }
        [verb, project, user, scope, of] if verb == "add-memory" => {
            (project, user, Request::Add(scope, of))
        }
        _ => bail!("`agentd memory` lists and removes memories"),
    };
    // A directory that no session made holds nothing.
    let there = [project, user].into_iter().filter(|directory| directory.is_dir());
    let there: Vec<PathBuf> = there.map(Path::to_owned).collect();
    let first = match (there.first(), &request) {
        (None, Request::List | Request::Remove(_)) => return Ok(()),
        (None, Request::Add(..)) => bail!("{} is no directory", project.display()),
        (Some(first), _) => first,
    };
    Cage::enter(&confinement(first, &there))?;
    let mut kept = KeptMemories::of(project, user);
    let lines = match request {
        Request::List => kept.list(),
        Request::Remove(id) => kept.remove(&id.to_string_lossy()),
        Request::Add(scope, of) => {
            let mut text = String::new();
            let input = std::io::stdin().lock().take(MOST_READ).read_to_string(&mut text);
            input.context("the text cannot be read")?;
            kept.add(&scope.to_string_lossy(), &of.to_string_lossy(), &text)
        }
    };
    let lines = lines.map_err(Error::msg)?;
    Ok(std::io::stdout().write_all(lines.as_bytes())?)
}

fn confinement(readable: &Path, writable: &[PathBuf]) -> Confinement {
    Confinement {
        added: writable.iter().map(FilePath::from).collect(),
        ..Confinement::closed(Profile::Store, FilePath::from(readable), FilePath::from("/"))
    }
}
