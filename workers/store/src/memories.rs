//! Lists and removes memories for `agentd memory`, in the cage of a session's store without its project. SQLite
//! keeps the sessions that run from being disturbed.

use anyhow::{Error, bail};
use protocol::confinement::{Confinement, FilePath, Profile};
use sandbox::Cage;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use store::KeptMemories;

/// Runs `list-memories PROJECT_STORE USER_STORE` or `remove-memory PROJECT_STORE USER_STORE ID`.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<()> {
    let words: Vec<&Path> = words.iter().map(Path::new).collect();
    let (project, user, id) = match words[..] {
        [verb, project, user] if verb == "list-memories" => (project, user, None),
        [verb, project, user, id] if verb == "remove-memory" => (project, user, Some(id)),
        _ => bail!("`agentd memory` lists and removes memories"),
    };
    // A directory that no session made holds nothing.
    let there = [project, user].into_iter().filter(|directory| directory.is_dir());
    let there: Vec<PathBuf> = there.map(Path::to_owned).collect();
    let Some(first) = there.first() else { return Ok(()) };
    Cage::enter(&confinement(first, &there))?;
    let mut kept = KeptMemories::of(project, user);
    let lines = match id {
        Some(id) => kept.remove(&id.to_string_lossy()),
        None => kept.list(),
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
