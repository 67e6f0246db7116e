//! Whether a file that a person pins can be shown to the model, as far as a look at it tells: so that a
//! wrong name is told at once. Whether it may be is judged when it is read, as of any file.

use protocol::confinement::Confinement;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Most bytes of a file that is read whole; `read` refuses more.
const WHOLE: u64 = 1_500_000;
/// So many bytes at a file's beginning tell whether it is text.
const BEGINNING: u64 = 8 << 10;

/// `Ok`, or why not, in plain words.
pub(super) async fn can_be_shown(cage: &Confinement, named: &str) -> Result<(), String> {
    let project = cage.project.to_path();
    let granted: Vec<PathBuf> =
        cage.added.iter().chain([&cage.temp]).map(|dir| dir.to_path()).collect();
    let path = named.to_owned();
    // A file may lie on a disk that does not answer.
    let looked =
        tokio::task::spawn_blocking(move || look(&project, &granted, Path::new(&path))).await;
    looked
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(|why| format!("{named} cannot be pinned: {why}"))
}

fn look(project: &Path, granted: &[PathBuf], named: &Path) -> Result<(), String> {
    let real = project.join(named).canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(project) && !granted.iter().any(|dir| real.starts_with(dir)) {
        return Err("it lies outside of what tools may use; `:add-dir DIR` adds its directory, \
                    then add it again"
            .to_owned());
    }
    let kind = real.metadata().map_err(|error| error.to_string())?;
    if !kind.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if kind.len() > WHOLE {
        return Err(format!("it has {} bytes; the most is {WHOLE}", kind.len()));
    }
    // What took its place since may be a pipe, which would be waited for.
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(&real);
    let mut beginning = Vec::new();
    file.and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning))
        .map_err(|error| error.to_string())?;
    if beginning.contains(&0) {
        return Err("it is no text".to_owned());
    }
    Ok(())
}
