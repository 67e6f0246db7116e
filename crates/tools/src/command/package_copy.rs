//! A copy of a cargo workspace in which `Cargo.lock` can be written: directories of links to the files
//! of the workspace. Used by `verify`, whose cage leaves the project read-only.

use nix::fcntl::OFlag;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

/// The file that cargo writes beside the workspace's manifest.
const LOCK: &str = "Cargo.lock";
/// The manifest of a package or a workspace.
const MANIFEST: &str = "Cargo.toml";
/// Limit for the bytes read of one such file: a hundred times the size in large workspaces.
const LARGEST: u64 = 32 << 20;
/// Built files, which the copy has no use for.
const TARGET: &str = "target";

/// Makes the copy of this package's workspace below `into`. Returns the package's place in it.
///
/// # Errors
/// A directory cannot be read, or a link cannot be made.
pub(crate) fn copy(package: &Path, project: &Path, into: &Path) -> io::Result<PathBuf> {
    let root = root(package, project);
    let below = package.strip_prefix(root).unwrap_or(Path::new(""));
    let (mut from, mut to) = (root.to_owned(), into.to_owned());
    fs::create_dir_all(&to)?;
    link_all(&from, &to, below.iter().next())?;
    if let Some(lock) = bytes(&from.join(LOCK)) {
        fs::write(to.join(LOCK), lock)?;
    }
    // Cargo asks the kernel where it is, which sees through links: the way to the package has none.
    let mut parts = below.iter().peekable();
    while let Some(part) = parts.next() {
        from.push(part);
        to.push(part);
        fs::create_dir(&to)?;
        link_all(&from, &to, parts.peek().copied())?;
    }
    Ok(to)
}

/// The outermost directory of the project whose manifest is a workspace's, or the package itself.
fn root<'a>(package: &'a Path, project: &Path) -> &'a Path {
    let is_workspace = |dir: &&Path| {
        let manifest = bytes(&dir.join(MANIFEST)).unwrap_or_default();
        let manifest = String::from_utf8_lossy(&manifest);
        manifest.lines().any(|line| line.trim_start().starts_with("[workspace"))
    };
    let within = package.ancestors().take_while(|dir| dir.starts_with(project));
    within.filter(is_workspace).last().unwrap_or(package)
}

/// All of a file that a call may have made: none that waits for its writer, or has no end.
fn bytes(path: &Path) -> Option<Vec<u8>> {
    let there = path.metadata().ok().filter(|there| there.is_file() && there.len() <= LARGEST)?;
    let mut bytes = Vec::new();
    let file =
        fs::File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).ok()?;
    file.take(there.len()).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Links to all entries of this directory except those that the copy has itself.
fn link_all(from: &Path, to: &Path, but: Option<&std::ffi::OsStr>) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        if name != LOCK && name != TARGET && Some(name.as_os_str()) != but {
            symlink(from.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_copy_has_its_own_lock_and_the_files_of_the_workspace() {
        let temp = tempfile::tempdir().unwrap();
        let project = temp.path().canonicalize().unwrap().join("p");
        let package = project.join("ws/crates/one");
        for dir in ["ws/crates/one/src", "ws/crates/two", "ws/target/debug"] {
            fs::create_dir_all(project.join(dir)).unwrap();
        }
        fs::write(project.join("ws/Cargo.toml"), "[workspace]\n").unwrap();
        fs::write(project.join("ws/Cargo.lock"), "lock").unwrap();
        fs::write(package.join("Cargo.toml"), "[package]\n").unwrap();
        fs::write(package.join("src/lib.rs"), "source").unwrap();
        let into = temp.path().join("copy");
        let place = copy(&package, &project, &into).unwrap();
        assert_eq!(place, into.join("crates/one"));
        assert!(place.canonicalize().unwrap().ends_with("copy/crates/one"), "no link leads there");
        assert_eq!(fs::read_to_string(place.join("src/lib.rs")).unwrap(), "source");
        assert!(into.join("crates/two").is_dir() && !into.join("target").exists());
        fs::write(into.join("Cargo.lock"), "other").unwrap();
        assert_eq!(fs::read_to_string(project.join("ws/Cargo.lock")).unwrap(), "lock");
        // A FIFO or device in their place does not block.
        fs::remove_file(project.join("ws/Cargo.lock")).unwrap();
        nix::unistd::mkfifo(&project.join("ws/Cargo.lock"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        copy(&package, &project, &temp.path().join("waiting")).unwrap();
        assert!(!temp.path().join("waiting/Cargo.lock").exists());
        // A package without a workspace is its own.
        let lone = project.join("lone");
        fs::create_dir(&lone).unwrap();
        fs::write(lone.join("Cargo.toml"), "[package]\n").unwrap();
        let into = temp.path().join("other");
        assert_eq!(copy(&lone, &project, &into).unwrap(), into);
        assert!(into.join("Cargo.toml").exists() && !into.join("Cargo.lock").exists());
    }
}
