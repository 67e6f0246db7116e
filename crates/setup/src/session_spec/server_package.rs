//! The packages of MCP servers that `agentd mcp install` fetched: where they lie, and the checks before each
//! start of their servers. Used by the session specification.

use config::{Dirs, McpServerConfig, ServerPackage};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest lock file that is read. Those of large packages have some hundred kilobytes.
const LOCK_CAP: u64 = 16 << 20;

/// The real directories of all packages.
pub(super) fn package_dirs(servers: &[McpServerConfig], dirs: &Dirs) -> Vec<PathBuf> {
    servers.iter().filter_map(|server| dir_of(server, dirs)).collect()
}

fn dir_of(server: &McpServerConfig, dirs: &Dirs) -> Option<PathBuf> {
    let dir = dirs.package_dir(&server.name, server.package.as_ref()?)?;
    Some(dir.canonicalize().unwrap_or(dir))
}

/// The directory of a server's package, with the lock that the configuration names. `None` if the server
/// has no package. Calls of the session may write in the `writable` directories.
///
/// # Errors
/// The package is gone or another one, or calls of the session may change it.
pub(super) fn checked_dir(
    server: &McpServerConfig,
    dirs: &Dirs,
    writable: &[PathBuf],
) -> Result<Option<PathBuf>, String> {
    let Some(package) = &server.package else { return Ok(None) };
    let Some(dir) = dir_of(server, dirs) else {
        return Err("neither XDG_DATA_HOME nor HOME names the place of its package".to_owned());
    };
    if sandbox::is_changeable_in(&dir, writable) {
        let dir = dir.display();
        return Err(format!(
            "calls of this session may write in {dir}, where its package lies: work in a directory \
             that does not contain it"
        ));
    }
    check_lock(&dir, package).map_err(|why| {
        let (name, of) = (&server.name, package.in_words());
        format!("{why}; `agentd mcp install {name}` fetches {of} again")
    })?;
    Ok(Some(dir))
}

/// Compares the lock of a package with the recorded one.
fn check_lock(dir: &Path, package: &ServerPackage) -> Result<(), String> {
    let file = dir.join(package.source.lock_file());
    let shown = file.display();
    let lock =
        read_capped(&file).map_err(|error| match error.kind() == io::ErrorKind::NotFound {
            true => format!("its package is not installed here: {shown} is missing"),
            false => format!("the lock of its package, {shown}, cannot be read: {error}"),
        })?;
    match ServerPackage::digest(&lock) == package.lock {
        true => Ok(()),
        false => Err(format!("its package is another one: {shown} is not the recorded lock")),
    }
}

fn read_capped(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(LOCK_CAP + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()).is_ok_and(|length| length <= LOCK_CAP) {
        true => Ok(bytes),
        false => Err(io::Error::other(format!("it is larger than {LOCK_CAP} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use config::PackageSource;

    #[test]
    fn a_lock_is_the_recorded_one_or_an_error_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let package = ServerPackage {
            source: PackageSource::Npm,
            name: "x".to_owned(),
            version: "1".to_owned(),
            lock: ServerPackage::digest(b"{}"),
        };
        let why = check_lock(dir.path(), &package).unwrap_err();
        assert!(why.contains("not installed here") && why.contains("package-lock.json"), "{why}");
        let lock = dir.path().join("package-lock.json");
        std::fs::write(&lock, "{}").unwrap();
        check_lock(dir.path(), &package).unwrap();
        std::fs::write(&lock, "{ }").unwrap();
        let why = check_lock(dir.path(), &package).unwrap_err();
        assert!(why.contains("not the recorded lock"), "{why}");
        std::fs::remove_file(&lock).unwrap();
        std::fs::create_dir(&lock).unwrap();
        let why = check_lock(dir.path(), &package).unwrap_err();
        assert!(why.contains("cannot be read"), "{why}");
    }
}
