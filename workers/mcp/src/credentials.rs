//! The tokens of a log-in, in a file of the person's alone. The client in its cage may write the directory of
//! the file, so that nothing in there is trusted outside: the hosts that the cage reaches for new tokens stand
//! in a file beside the directory. Used by `login` and `remote`.

use crate::grantor::Grantor;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The suffix of the file beside the directory.
const HOSTS: &str = "hosts";
/// Longest file in bytes.
const LONGEST: u64 = 1 << 20;
/// Rights that nobody but the owner has.
const OTHERS: u32 = 0o077;
/// Longest wait for another process that refreshes the same tokens.
const REFRESH: Duration = Duration::from_secs(40);

/// The content of the file. It is secret, so that nothing prints it.
#[derive(Serialize, Deserialize)]
pub(crate) struct LogInFile {
    /// The server, as it was when the log-in was made.
    pub(crate) url: String,
    pub(crate) grantor: Grantor,
    pub(crate) credentials: StoredCredentials,
}

impl LogInFile {
    /// The file's content, if there is one.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it is no such file.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, String> {
        let wrong = |why: String| format!("{}: {why}", path.display());
        // A client that was taken over may have put anything in its place: a link, or a pipe without an end.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(error.to_string())),
        };
        let metadata = file.metadata().map_err(|error| wrong(error.to_string()))?;
        if !metadata.is_file() {
            return Err(wrong("it is no file; log in again".to_owned()));
        }
        if metadata.mode() & OTHERS != 0 {
            return Err(wrong("others may read the tokens in it; log in again".to_owned()));
        }
        let mut text = String::new();
        let read = file.take(LONGEST).read_to_string(&mut text);
        read.map_err(|error| wrong(error.to_string()))?;
        // The parser's own message may repeat a token.
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|_| wrong("it is no log-in of agentd; log in again".to_owned()))
    }

    /// Writes the file at once or not at all.
    fn write(&self, path: &Path) -> io::Result<()> {
        let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let text = serde_json::to_vec(self)?;
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        // One that a killed process left has this process's number by chance.
        remove(&beside)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        let placed = written.and_then(|()| fs::rename(&beside, path));
        if placed.is_err() {
            // The first error counts.
            let _ = remove(&beside);
        }
        placed
    }
}

/// Records the hosts that tokens in this file are sent to, where no cage writes: first the one that they
/// come from.
///
/// # Errors
/// The file beside the directory cannot be written.
pub(crate) fn record_hosts(path: &Path, hosts: &[String]) -> io::Result<()> {
    let file = hosts_file(path)?;
    if let Some(all) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(all)?;
    }
    fs::write(file, hosts.join("\n"))
}

/// The hosts that tokens in this file are sent to: where they come from, then the server. None without a
/// log-in.
pub(crate) fn recorded_hosts(path: &Path) -> Vec<String> {
    let text = hosts_file(path).and_then(fs::read_to_string).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Removes all of a log-in.
///
/// # Errors
/// The tokens, or the file beside their directory, stay.
pub(crate) fn remove_log_in(path: &Path) -> io::Result<()> {
    remove(path)?;
    // The lock of its refreshes has no secret; without a log-in nobody waits for it.
    let _ = remove(&path.with_extension("lock"));
    let _ = path.parent().map(fs::remove_dir);
    remove(&hosts_file(path)?)
}

fn hosts_file(path: &Path) -> io::Result<PathBuf> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(dir.with_extension(HOSTS))
}

/// Removes a file that need not be there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Stores tokens in a file.
pub(crate) struct FileStore {
    pub(crate) path: PathBuf,
    pub(crate) url: String,
    pub(crate) grantor: Grantor,
}

impl FileStore {
    fn failed(&self, error: &io::Error) -> AuthError {
        AuthError::CredentialStoreError(format!("{}: {error}", self.path.display()))
    }
}

#[async_trait::async_trait]
impl CredentialStore for FileStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let read = LogInFile::read(&self.path).map_err(AuthError::CredentialStoreError)?;
        Ok(read.map(|file| file.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let (url, grantor) = (self.url.clone(), self.grantor.clone());
        let file = LogInFile { url, grantor, credentials };
        file.write(&self.path).map_err(|error| self.failed(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        remove(&self.path).map_err(|error| self.failed(&error))
    }

    /// Of several processes one refreshes at a time, since a refresh may end the earlier token.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let path = self.path.with_extension("lock");
        let mut open = OpenOptions::new();
        let open = open.write(true).create(true).truncate(false).mode(0o600);
        // A client that was taken over may have put a link there, for `--token` outside of its cage.
        let open = open.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        let file = open.open(path).map_err(|error| self.failed(&error))?;
        let end = Instant::now() + REFRESH;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(CredentialRefreshGuard::new(file))),
                Err(TryLockError::WouldBlock) if Instant::now() < end => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(self.failed(&io::Error::from(error))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rmcp::transport::auth::AuthorizationMetadata;
    use std::os::unix::fs::PermissionsExt;

    fn file() -> LogInFile {
        let grantor = Grantor {
            resource: "https://a.example/mcp".to_owned(),
            redirect: "http://127.0.0.1:1/callback".to_owned(),
            client_secret: None,
            metadata: AuthorizationMetadata::default(),
        };
        let credentials = StoredCredentials::new("client".to_owned(), None, Vec::new(), None);
        LogInFile { url: "https://a.example/mcp".to_owned(), grantor, credentials }
    }

    #[test]
    fn the_file_is_its_owners_alone_and_one_that_others_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp/a.json");
        assert!(LogInFile::read(&path).unwrap().is_none());
        file().write(&path).unwrap();
        file().write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(LogInFile::read(&path).unwrap().unwrap().url, "https://a.example/mcp");
        assert_eq!(fs::read_dir(dir.path().join("mcp")).unwrap().count(), 1);
        record_hosts(&path, &["a.example:443".to_owned()]).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("mcp.hosts")).unwrap(), "a.example:443");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(LogInFile::read(&path).err().unwrap().contains("others may read"));
        remove_log_in(&path).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        remove_log_in(&path).unwrap();
    }

    #[test]
    fn the_lock_of_a_refresh_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (dir.path().join("log-in.json"), dir.path().join("elsewhere"));
        let LogInFile { url, grantor, credentials: _ } = file();
        let store = FileStore { path: path.clone(), url, grantor };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let locked = || runtime.block_on(store.acquire_refresh_guard());
        assert!(locked().unwrap().is_some(), "the control");
        remove(&path.with_extension("lock")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, path.with_extension("lock")).unwrap();
        assert!(locked().is_err() && !elsewhere.exists());
    }

    #[test]
    fn a_file_that_is_none_of_ours_is_not_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        let mut made =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        made.write_all(b"{\"url\": \"s3cret\"}").unwrap();
        let error = LogInFile::read(&path).err().unwrap();
        assert!(error.contains("log in again") && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn what_a_client_put_in_place_of_the_file_is_neither_followed_nor_awaited() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real.json");
        file().write(&real).unwrap();
        let path = dir.path().join("a.json");
        std::os::unix::fs::symlink(&real, &path).unwrap();
        assert!(LogInFile::read(&path).is_err());
        remove(&path).unwrap();
        let mode = rustix::fs::Mode::from(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(LogInFile::read(&path).err().unwrap().contains("no file"));
        assert!(LogInFile::read(&real).unwrap().is_some(), "the control");
    }
}
