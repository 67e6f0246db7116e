//! Where agentd's directories are: configuration, state, data, and the private place of its socket.

use crate::environment::Environment;
use crate::server_package::{self, ServerPackage};
use data_encoding::HEXLOWER;
use nix::unistd::AccessFlags;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file with the tokens of one log-in.
const LOG_IN: &str = "log-in.json";
/// The largest socket path in bytes: the kernel's field has 108, including a final NUL.
pub const SOCKET_PATH_CAP: usize = 107;

/// The four directories. Resolving them creates none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// Holds the user's `config.toml`; absent where neither `XDG_CONFIG_HOME` nor `HOME` is set.
    pub config: Option<PathBuf>,
    /// Sessions, audit log, logs, trust.
    pub state: PathBuf,
    /// Programs that agentd fetched; absent where neither `XDG_DATA_HOME` nor `HOME` is set.
    pub data: Option<PathBuf>,
    /// Socket and token; to be made with mode 0700.
    pub runtime: PathBuf,
}

/// Why there are no directories.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DirsError {
    /// No variable determines the state directory.
    #[error(
        "neither XDG_STATE_HOME nor HOME is set to an absolute path, so there is no place for agentd's state. Set XDG_STATE_HOME=/some/private/directory"
    )]
    NoState,
    /// The kernel would refuse the socket's path.
    #[error("the socket's path is {bytes} bytes long and the kernel takes {SOCKET_PATH_CAP}: {}. Set XDG_RUNTIME_DIR to a shorter directory of your own", path.display())]
    SocketPathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
}

/// The file for the rules of this project beside the user's file: named by the project's last component
/// for people, and by a digest of its real path.
pub(crate) fn project_rules_beside(user_file: &Path, project: &Path) -> PathBuf {
    let real = fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
    user_file.with_file_name(format!("project-{}.toml", project_dir_name(&real)))
}

/// The name of a project's own directory or file: the last component of its real path for people, and a
/// digest of the whole path.
#[must_use]
pub fn project_dir_name(project: &Path) -> String {
    let digest = Sha256::digest(project.as_os_str().as_bytes());
    let digest = HEXLOWER.encode(&digest[..8]);
    let last = project.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let plain: String = last.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    format!("{plain}-{digest}")
}

/// The directories of the store in the state directory: that of the project with this real path, and that of
/// the user.
#[must_use]
pub fn store_dirs(state: &Path, project: &Path) -> (PathBuf, PathBuf) {
    let state = fs::canonicalize(state).unwrap_or_else(|_| state.to_owned());
    let stores = state.join("store");
    (stores.join(project_dir_name(project)), stores.join("user"))
}

/// True if this user can have a private directory there, or can make the place.
#[must_use]
pub fn is_own_runtime(dir: &Path) -> bool {
    let uid = nix::unistd::geteuid().as_raw();
    let is_own = |path: &Path| fs::metadata(path).map(|found| found.is_dir() && found.uid() == uid);
    let can_write = |path: &Path| nix::unistd::access(path, AccessFlags::W_OK | AccessFlags::X_OK);
    match (is_own(dir), is_own(&dir.join("agentd"))) {
        // Made by another user of this directory, such as root with `sudo -E`.
        (Ok(true), Ok(false)) => false,
        (Ok(own), _) => own && can_write(dir).is_ok(),
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {
            let above = dir.ancestors().find(|above| above.exists());
            above.is_some_and(|above| can_write(above).is_ok())
        }
        (Err(_), _) => false,
    }
}

/// Where calls' temporary files lie if neither `/tmp` nor `/var/tmp` is writable. Not in the state
/// directory, which no call is given.
#[must_use]
pub fn temporary_fallback(environment: &Environment) -> Option<PathBuf> {
    let home = || environment.absolute("HOME").map(|home| home.join(".cache"));
    environment.absolute("XDG_CACHE_HOME").or_else(home).map(|cache| cache.join("agentd/tmp"))
}

impl Dirs {
    /// Resolves the directories from the environment by the XDG rules. Relative values are ignored
    /// and defaults below `HOME` are used. Without an `XDG_RUNTIME_DIR` of this user's own, the private
    /// directory is in the state directory: `su` and `sudo -E` pass on that of another log-in.
    pub fn resolve(environment: &Environment) -> Result<Self, DirsError> {
        let home = environment.absolute("HOME");
        let of = |name: &str, below: &str| {
            environment.absolute(name).or_else(|| Some(home.as_ref()?.join(below)))
        };
        let state = of("XDG_STATE_HOME", ".local/state").ok_or(DirsError::NoState)?.join("agentd");
        let given = environment.absolute("XDG_RUNTIME_DIR").filter(|dir| is_own_runtime(dir));
        let runtime = given.map_or_else(|| state.join("run"), |given| given.join("agentd"));
        let config = of("XDG_CONFIG_HOME", ".config").map(|dir| dir.join("agentd"));
        let data = of("XDG_DATA_HOME", ".local/share").map(|dir| dir.join("agentd"));
        Ok(Self { config, state, data, runtime })
    }

    /// The user's file, where there is a place for it.
    #[must_use]
    pub fn user_file(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|dir| dir.join("config.toml"))
    }

    /// The user's file for the rules of one project. It lies beside the user's own, out of the
    /// project: calls cannot write it, and no copy of the project carries it.
    #[must_use]
    pub fn project_rules_file(&self, project: &Path) -> Option<PathBuf> {
        self.user_file().map(|user| project_rules_beside(&user, project))
    }

    /// The record of trusted project files.
    #[must_use]
    pub fn trust_file(&self) -> PathBuf {
        self.state.join("trust")
    }

    /// The tokens of a log-in at the MCP server of this name and address, in a directory of their own: the
    /// client of the server may write there.
    #[must_use]
    pub fn log_in_file(&self, server: &str, url: &str) -> PathBuf {
        let digest = Sha256::digest(url);
        let digest = HEXLOWER.encode(&digest[..8]);
        self.log_ins().join(format!("{server}-{digest}")).join(LOG_IN)
    }

    /// The files of all log-ins at servers of this name, whatever their address.
    ///
    /// # Errors
    /// Their directory cannot be read.
    pub fn log_ins_of(&self, server: &str) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(self.log_ins()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let is_of = |name: &str| {
            let digest = name.strip_prefix(server)?.strip_prefix('-')?;
            let plain = digest.len() == 16 && digest.chars().all(|c| c.is_ascii_hexdigit());
            plain.then_some(())
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let file = path.join(LOG_IN);
            let is_of = path.file_name().and_then(OsStr::to_str).and_then(is_of).is_some();
            if is_of && file.exists() {
                found.push(file);
            }
        }
        found.sort();
        Ok(found)
    }

    /// The packages of MCP servers, each in a directory of its own.
    #[must_use]
    pub fn packages(&self) -> Option<PathBuf> {
        self.data.as_ref().map(|data| data.join("mcp"))
    }

    /// The directory of the package of the MCP server of this name.
    #[must_use]
    pub fn package_dir(&self, server: &str, package: &ServerPackage) -> Option<PathBuf> {
        self.packages().map(|packages| packages.join(package.dir_name(server)))
    }

    /// The directories of all packages of the MCP server of this name.
    ///
    /// # Errors
    /// Their directory cannot be read.
    pub fn packages_of(&self, server: &str) -> io::Result<Vec<PathBuf>> {
        let entries = match self.packages().map(fs::read_dir) {
            None => return Ok(Vec::new()),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Some(entries) => entries?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| server_package::is_dir_of(server, name)) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    fn log_ins(&self) -> PathBuf {
        self.state.join("mcp-log-ins")
    }

    /// The daemon's socket.
    ///
    /// # Errors
    /// Where the path is longer than the kernel takes.
    pub fn socket(&self) -> Result<PathBuf, DirsError> {
        Self::socket_in(&self.runtime)
    }

    /// The socket in a directory of one's own, as a supervisor for one run has.
    ///
    /// # Errors
    /// Where the path is longer than the kernel takes.
    pub fn socket_in(dir: &Path) -> Result<PathBuf, DirsError> {
        let path = dir.join("socket");
        let bytes = path.as_os_str().as_bytes().len();
        if bytes > SOCKET_PATH_CAP {
            return Err(DirsError::SocketPathTooLong { path, bytes });
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn resolve(pairs: &[(&str, &str)]) -> Result<Dirs, DirsError> {
        Dirs::resolve(&pairs.iter().copied().collect())
    }

    #[test]
    fn home_alone_is_enough() {
        let dirs = resolve(&[("HOME", "/home/me")]).unwrap();
        assert_eq!(dirs.state, Path::new("/home/me/.local/state/agentd"));
        assert_eq!(dirs.user_file().unwrap(), Path::new("/home/me/.config/agentd/config.toml"));
        assert_eq!(dirs.runtime, Path::new("/home/me/.local/state/agentd/run"));
        assert_eq!(dirs.trust_file(), Path::new("/home/me/.local/state/agentd/trust"));
        assert_eq!(dirs.socket().unwrap(), Path::new("/home/me/.local/state/agentd/run/socket"));
    }

    #[test]
    fn xdg_variables_win_and_relative_ones_are_ignored() {
        let own = tempfile::tempdir().unwrap();
        let dirs = resolve(&[
            ("HOME", "/home/me"),
            ("XDG_STATE_HOME", "/s"),
            ("XDG_CONFIG_HOME", "relative"),
            ("XDG_RUNTIME_DIR", own.path().to_str().unwrap()),
        ])
        .unwrap();
        assert_eq!(dirs.state, Path::new("/s/agentd"));
        assert_eq!(dirs.config.unwrap(), Path::new("/home/me/.config/agentd"));
        assert_eq!(dirs.runtime, own.path().join("agentd"));
    }

    #[test]
    fn a_runtime_directory_of_another_user_is_not_used() {
        let own = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let (missing, file) = (own.path().join("not/yet"), own.path().join("file"));
        fs::write(&file, "").unwrap();
        // Only root can give a directory away; and what belongs to root is of another user to all others.
        let of_other = match nix::unistd::geteuid().is_root() {
            true => {
                std::os::unix::fs::chown(other.path(), Some(12345), None).unwrap();
                other.path()
            }
            false => Path::new("/usr"),
        };
        for (dir, is_used) in
            [(own.path(), true), (&missing, true), (of_other, false), (&file, false)]
        {
            let pairs = [("XDG_STATE_HOME", "/s"), ("XDG_RUNTIME_DIR", dir.to_str().unwrap())];
            let runtime = resolve(&pairs).unwrap().runtime;
            let wanted = if is_used { dir.join("agentd") } else { "/s/agentd/run".into() };
            assert_eq!(runtime, wanted);
        }
    }

    #[test]
    fn a_log_in_is_kept_by_the_servers_name_and_address() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = resolve(&[("XDG_STATE_HOME", dir.path().to_str().unwrap())]).unwrap();
        assert_eq!(dirs.log_ins_of("a").unwrap(), Vec::<PathBuf>::new());
        let [one, other] = ["https://x", "https://y"].map(|url| dirs.log_in_file("a", url));
        let longer = dirs.log_in_file("a-b", "https://x");
        assert!(one != other && one.starts_with(&dirs.state), "{one:?}");
        fs::create_dir_all(one.parent().unwrap()).unwrap();
        for file in [&one, &other, &longer, &one.with_extension("lock")] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let mut both = [one, other];
        both.sort();
        assert_eq!(dirs.log_ins_of("a").unwrap(), both);
        assert_eq!(dirs.log_ins_of("a-b").unwrap(), [longer]);
    }

    #[test]
    fn packages_lie_in_the_data_directory_by_server_and_lock() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = resolve(&[("HOME", "/h"), ("XDG_DATA_HOME", dir.path().to_str().unwrap())]);
        let dirs = dirs.unwrap();
        let package = |lock: &str| ServerPackage {
            source: server_package::PackageSource::Npm,
            name: "x".to_owned(),
            version: "1".to_owned(),
            lock: ServerPackage::digest(lock.as_bytes()),
        };
        assert_eq!(dirs.packages_of("a").unwrap(), Vec::<PathBuf>::new());
        let mut own = ["1", "2"].map(|lock| dirs.package_dir("a", &package(lock)).unwrap());
        own.sort();
        let other = dirs.package_dir("a-b", &package("1")).unwrap();
        for path in own.iter().chain([&other, &dirs.packages().unwrap().join(".new-1")]) {
            fs::create_dir_all(path).unwrap();
        }
        assert!(other.starts_with(dir.path().join("agentd/mcp")), "{other:?}");
        assert_eq!(dirs.packages_of("a").unwrap(), own);
        assert_eq!(dirs.packages_of("a-b").unwrap(), [other]);
        let usual = resolve(&[("HOME", "/h")]).unwrap().packages().unwrap();
        assert_eq!(usual, Path::new("/h/.local/share/agentd/mcp"));
    }

    #[test]
    fn without_home_state_must_be_named() {
        for pairs in [&[][..], &[("HOME", "")], &[("HOME", "here")], &[("XDG_CONFIG_HOME", "/c")]] {
            assert_eq!(resolve(pairs), Err(DirsError::NoState), "{pairs:?}");
        }
        let dirs = resolve(&[("XDG_STATE_HOME", "/s")]).unwrap();
        assert_eq!((dirs.config.clone(), dirs.user_file()), (None, None));
    }

    #[test]
    fn a_socket_path_of_107_bytes_passes_and_of_108_does_not() {
        let dir = |len: usize| PathBuf::from(format!("/{}", "x".repeat(len - 1 - "/socket".len())));
        assert!(Dirs::socket_in(&dir(107)).is_ok());
        let error = Dirs::socket_in(&dir(108)).unwrap_err();
        assert!(error.to_string().contains("108 bytes long"), "{error}");
        assert!(error.to_string().contains("XDG_RUNTIME_DIR"), "{error}");
    }

    #[test]
    fn two_projects_of_one_name_have_two_directories() {
        let (one, two) =
            (project_dir_name(Path::new("/a/proj")), project_dir_name(Path::new("/b/proj")));
        assert_ne!(one, two);
        assert_eq!(one, project_dir_name(Path::new("/a/proj")));
        let odd = project_dir_name(Path::new("/a/..x y/\u{e9}"));
        assert!(odd.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    }
}
