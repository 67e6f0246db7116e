//! Grants of a directory without its secrets. Landlock grants a directory whole or not at all, so
//! each other entry gets a grant of its own.

use crate::error::{CageError, CageStep};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::{AccessFlags, access};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Something in a directory that is no secret.
#[derive(Debug)]
pub(crate) struct RemainingEntry {
    pub path: PathBuf,
    /// Opened with `O_PATH`.
    pub place: OwnedFd,
    pub folder: bool,
}

/// The pieces of an opened directory without `secrets`, which are paths within it. The directory itself can
/// then not be listed: Landlock has no rule that ends at a directory. Each piece is opened from the
/// directory, not from `path`: a link on the way may lead elsewhere by now.
///
/// The directory is listed anew for each call. A cached list would miss new names and would grant a
/// name that was since moved over a secret.
///
/// # Errors
/// `CageStep::Grants` where the directory cannot be listed.
pub(crate) fn entries_except(
    path: &Path,
    place: &impl AsFd,
    secrets: &[&Path],
) -> Result<Vec<RemainingEntry>, CageError> {
    let mut pieces = Vec::new();
    let opened = format!("/proc/self/fd/{}", place.as_fd().as_raw_fd());
    let entries = std::fs::read_dir(opened)
        .map_err(|error| CageError::os(CageStep::Grants, path.display(), error))?;
    for entry in entries.flatten() {
        // A link opens nothing by itself; where it leads is granted or it is not.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_symlink() {
            continue;
        }
        let name = entry.file_name();
        let below: Vec<&Path> =
            secrets.iter().filter_map(|secret| secret.strip_prefix(&name).ok()).collect();
        if below.iter().any(|rest| rest.as_os_str().is_empty()) {
            continue;
        }
        let inner = path.join(&name);
        // A file that went away meanwhile, or became a link, is no loss.
        let Ok(inner_place) = open_no_link(place, &name) else { continue };
        if !below.is_empty() {
            pieces.extend(entries_except(&inner, &inner_place, &below)?);
            continue;
        }
        pieces.push(RemainingEntry { path: inner, place: inner_place, folder: kind.is_dir() });
    }
    Ok(pieces)
}

/// Opens a name in a directory without reading it; fails where it is a link.
fn open_no_link(dir: &impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let place = openat(dir, name, flags, Mode::empty())?;
    match SFlag::from_bits_truncate(fstat(&place)?.st_mode) & SFlag::S_IFMT == SFlag::S_IFLNK {
        true => Err(Errno::ELOOP),
        false => Ok(place),
    }
}

/// Expands a policy's pattern in this directory: `*` matches the rest of a name, or all of it.
/// Symbolic links are skipped; their targets have names of their own.
pub(crate) fn expand_pattern(path: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in name.split('/') {
        found = match part.strip_suffix('*') {
            None => found.into_iter().map(|below| below.join(part)).collect(),
            Some(begin) => {
                found.iter().flat_map(|below| names_starting_with(path, below, begin)).collect()
            }
        };
    }
    found
}

/// The names in `below` that begin so.
fn names_starting_with(path: &Path, below: &Path, begin: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path.join(below)).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| {
        entry.file_name().as_encoded_bytes().starts_with(begin.as_bytes())
            && entry.file_type().is_ok_and(|kind| !kind.is_symlink())
    });
    entries.map(|entry| below.join(entry.file_name())).collect()
}

/// True if this user could read a secret: the file itself, or any file directly in the directory.
pub(crate) fn is_readable(path: &Path) -> bool {
    match access(path, AccessFlags::R_OK) {
        Ok(()) => match std::fs::read_dir(path) {
            Ok(entries) => {
                entries.flatten().any(|entry| access(&entry.path(), AccessFlags::R_OK).is_ok())
            }
            Err(_) => true,
        },
        // Who may pass a directory and not list it may still know a name in it.
        Err(Errno::EACCES) => access(path, AccessFlags::X_OK).is_ok(),
        Err(_) => false,
    }
}

/// Longest settings file that is inspected, in bytes.
const MOST: u64 = 64 * 1024;
/// Strings in Maven settings that may hold keys, or properties of any name.
const OF_MAVEN: [&str; 6] = ["<server>", "<server ", "<profile", "<propert", "password", "@"];

/// True for a Maven settings file without credentials, such as the file that each Maven ships and
/// cannot start without. Comments are not inspected, for the shipped file's comments are full of
/// examples.
pub(crate) fn is_harmless_maven_settings(path: &Path) -> bool {
    if path.file_name().is_none_or(|name| name != "settings.xml") {
        return false;
    }
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST).read_to_string(&mut text));
    if read.is_err() || text.len() as u64 == MOST {
        return false;
    }
    let mut parts = text.split("<!--");
    let mut rest = parts.next().unwrap_or_default().to_lowercase();
    for part in parts {
        rest.push_str(&part.split_once("-->").map_or(part, |(_, rest)| rest).to_lowercase());
    }
    !OF_MAVEN.iter().any(|name| rest.contains(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn beside_secrets_lies_all_else_and_nothing_that_a_link_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["ssl/private", "ssl/certs", "elsewhere"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["passwd", "shadow", "shadow.old", "ssl/openssl.cnf", "elsewhere/key"] {
            std::fs::write(at(file), "x").unwrap();
        }
        std::os::unix::fs::symlink(at("elsewhere"), at("apt")).unwrap();
        let secrets = ["shadow", "ssl/private", "apt/auth.conf"].map(Path::new);
        let place = File::open(dir.path()).unwrap();
        let found = entries_except(dir.path(), &place, &secrets).unwrap();
        let mut found: Vec<PathBuf> = found.into_iter().map(|piece| piece.path).collect();
        found.sort();
        let wanted = ["elsewhere", "passwd", "shadow.old", "ssl/certs", "ssl/openssl.cnf"];
        assert_eq!(found, wanted.map(at));
    }

    #[test]
    fn a_star_is_the_rest_of_a_name() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["tools/1.0/etc", "tools/2.0", "mcp-a", "mcp"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("1.0", dir.path().join("tools/latest")).unwrap();
        for (name, stands_for) in [
            ("fixed/npmrc", &["fixed/npmrc"][..]),
            ("mcp-*", &["mcp-a"]),
            ("tools/*/etc/npmrc", &["tools/1.0/etc/npmrc", "tools/2.0/etc/npmrc"]),
            ("missing/*", &[]),
        ] {
            let mut found = expand_pattern(dir.path(), name);
            found.sort();
            assert_eq!(found, stands_for.iter().map(PathBuf::from).collect::<Vec<_>>(), "{name}");
        }
    }

    #[test]
    fn settings_of_maven_are_plain_without_a_sign_in() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text, plain) in [
            (
                "settings.xml",
                "<settings><!-- <password>x</password> --><servers></servers></settings>",
                true,
            ),
            (
                "settings.xml",
                "<settings><mirrors><mirror><id>a</id></mirror></mirrors></settings>",
                true,
            ),
            ("settings.xml", "<servers><server><id>a</id></server></servers>", false),
            ("settings.xml", "<servers><!-- x --><Server>a</Server></servers>", false),
            ("settings.xml", "<proxy><Password>x</Password></proxy>", false),
            ("settings.xml", "<url>https://ann:x@h/</url>", false),
            ("settings.xml", "<profiles><profile/></profiles>", false),
            ("npmrc", "", false),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            assert_eq!(is_harmless_maven_settings(&path), plain, "{name}: {text}");
        }
        assert!(!is_harmless_maven_settings(&dir.path().join("missing/settings.xml")));
    }

    #[test]
    fn a_directory_that_one_may_only_pass_is_not_taken_for_unreadable() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("private");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("key"), "x").unwrap();
        let with = |mode| {
            std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(mode)).unwrap();
            is_readable(&inner)
        };
        assert!(with(0o755));
        assert!(with(0o311), "its key can be read by whoever knows the name");
        assert_eq!(with(0o000), nix::unistd::getuid().is_root());
        assert!(!is_readable(&dir.path().join("missing")));
        with(0o755);
    }
}
