//! The control socket: access checks and handshake.
//!
//! A private directory (0700) holds the socket and a token (0600). A peer must run as this user,
//! must not have been started by this supervisor, must be of the same build, and must know the
//! token. A message that another process writes to its connection ends that connection.

use daemon_lock::DaemonLock;
use data_encoding::HEXLOWER;
pub(crate) mod daemon_lock;
pub(crate) mod peer;
mod place;

use crate::client_actor::connection::ClientStream;
use config::{Dirs, DirsError};
use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::local_socket::{GenericFilePath, ListenerOptions, ToFsName};
use interprocess::os::unix::uds_local_socket::tokio::Listener as UdSocket;
use ipc::{HELLO_BYTES, Hello};
use nix::sys::socket::{Backlog, listen};
use peer::PeerProcess;
use protocol::client::{FromClient, ToClient};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// How long a peer has for the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the control socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ControlSocketError {
    /// Its path is too long.
    #[error(transparent)]
    Path(#[from] DirsError),
    /// The directory belongs to another user or is open to others.
    #[error("{} must belong to you alone (mode 0700); it belongs to user {uid} with mode \
             {mode:o}. Remove it, or set XDG_RUNTIME_DIR to a directory of your own", path.display())]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        uid: u32,
        /// Its mode.
        mode: u32,
    },
    /// A daemon already answers there.
    #[error("a daemon runs already and answers at {}", socket.display())]
    DaemonRunning {
        /// Its socket.
        socket: PathBuf,
    },
    /// The service manager listens where no client looks.
    #[error("the service manager handed over a socket at {given}, but clients look at {}: the unit needs \
             ListenStream=%t/agentd/socket, and XDG_RUNTIME_DIR must be that of the user manager", wanted.display())]
    Elsewhere {
        /// Its address.
        given: String,
        /// Where clients look.
        wanted: PathBuf,
    },
    /// Another start of the daemon does not finish.
    #[error("another start of the daemon holds {} and does not end; look for agentd-supervisor in \
             `ps`", lock.display())]
    DaemonStarting {
        /// The lock.
        lock: PathBuf,
    },
    /// A system call failed.
    #[error("cannot open the control socket in {}: {source}. Set XDG_RUNTIME_DIR to a directory of \
             your own", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Which kind of supervisor listens, and where.
#[derive(Debug)]
pub enum ListenMode {
    /// A supervisor for one run: its own directory, which it creates and removes.
    Private(PathBuf),
    /// The daemon, for all sessions of its user.
    Daemon(DaemonLock),
    /// The same, at a socket that the service manager made and keeps.
    Handed(HandedSocket),
}

/// A listening socket that a service manager handed over, at the place where clients look.
#[derive(Debug)]
pub struct HandedSocket {
    listener: StdUnixListener,
    directory: PathBuf,
}

impl HandedSocket {
    /// Checks that it is the control socket of this directory, which belongs to this user alone.
    ///
    /// # Errors
    /// [`ControlSocketError::Elsewhere`] if clients would not find it; others if the directory is not private.
    pub fn check(listener: StdUnixListener, directory: &Path) -> Result<Self, ControlSocketError> {
        let failed = |source| ControlSocketError::Io { path: directory.to_owned(), source };
        let wanted = Dirs::socket_in(directory)?;
        let address = listener.local_addr().map_err(failed)?;
        if address.as_pathname() != Some(wanted.as_path()) {
            return Err(ControlSocketError::Elsewhere { given: format!("{address:?}"), wanted });
        }
        daemon_lock::check_private(directory)?;
        Ok(Self { listener, directory: directory.to_owned() })
    }
}

/// The open control socket.
pub(crate) struct ControlSocket {
    listener: Listener,
    token: String,
    pub(crate) socket: PathBuf,
    pub(crate) token_file: PathBuf,
    directory: PathBuf,
    cleanup: SocketCleanup,
}

/// Files to remove when the socket is closed.
enum SocketCleanup {
    /// The whole directory.
    Directory,
    /// The socket with this inode, and the token.
    Socket(u64),
    /// The token. The socket is the service manager's.
    Token,
}

impl ControlSocket {
    /// Opens the socket. Must be called on the runtime.
    pub(crate) fn open(way: &ListenMode) -> Result<Self, ControlSocketError> {
        match way {
            ListenMode::Private(directory) => {
                let failed = |source| ControlSocketError::Io { path: directory.clone(), source };
                if let Some(parent) = directory.parent() {
                    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
                    remove_stale_dirs(parent);
                }
                Dirs::socket_in(directory)?;
                DirBuilder::new().mode(0o700).create(directory).map_err(failed)?;
                // Between bind and listen a socket looks stale, so its directory is locked
                // meanwhile.
                let opening = File::open(directory).map_err(failed)?;
                opening.lock().map_err(failed)?;
                Self::listen(directory, |_| SocketCleanup::Directory)
            }
            ListenMode::Daemon(claim) => {
                remove_stale_dirs(claim.directory());
                Self::listen(claim.directory(), SocketCleanup::Socket)
            }
            ListenMode::Handed(handed) => {
                remove_stale_dirs(&handed.directory);
                Self::listen_at(handed)
            }
        }
    }

    fn listen(
        directory: &Path,
        left: impl FnOnce(u64) -> SocketCleanup,
    ) -> Result<Self, ControlSocketError> {
        let failed = |source| ControlSocketError::Io { path: directory.to_owned(), source };
        let socket = Dirs::socket_in(directory)?;
        daemon_lock::check_private(directory)?;
        let token = new_token().map_err(failed)?;
        let token_file = directory.join("token");
        write_private(&token_file, &token).map_err(failed)?;
        let name = socket.as_os_str().to_fs_name::<GenericFilePath>().map_err(failed)?;
        let listener = ListenerOptions::new()
            .name(name)
            .reclaim_name(false)
            .try_overwrite(false)
            .create_tokio()
            .map_err(failed)?;
        let Listener::UdSocket(listening) = &listener;
        peer::request_credentials(listening).map_err(failed)?;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&socket, mode).map_err(failed)?;
        let left = left(std::fs::symlink_metadata(&socket).map_err(failed)?.ino());
        let directory = directory.to_owned();
        Ok(Self { listener, token, socket, token_file, directory, cleanup: left })
    }

    /// Listens at a socket that clients may have connected to already.
    fn listen_at(handed: &HandedSocket) -> Result<Self, ControlSocketError> {
        let directory = handed.directory.clone();
        let failed = |source| ControlSocketError::Io { path: directory.clone(), source };
        let socket = Dirs::socket_in(&directory)?;
        let token = new_token().map_err(failed)?;
        let token_file = directory.join("token");
        write_private(&token_file, &token).map_err(failed)?;
        let own = handed.listener.try_clone().map_err(failed)?;
        // Its peer credentials are those of the process that listened last: clients find this one by them.
        listen(&own, Backlog::MAXCONN).map_err(|errno| failed(errno.into()))?;
        own.set_nonblocking(true).map_err(failed)?;
        let listener = UdSocket::try_from(OwnedFd::from(own));
        let listener = listener.map_err(|error| failed(io::Error::other(error.to_string())))?;
        peer::request_credentials(&listener).map_err(failed)?;
        let (listener, cleanup) = (Listener::UdSocket(listener), SocketCleanup::Token);
        Ok(Self { listener, token, socket, token_file, directory, cleanup })
    }

    /// Accepts the next peer, unchecked.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        let Stream::UdSocket(stream) = self.listener.accept().await?;
        let stream = std::os::unix::net::UnixStream::from(OwnedFd::try_from(stream)?);
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }

    pub(crate) fn token(&self) -> String {
        self.token.clone()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let gone = match self.cleanup {
            SocketCleanup::Directory => std::fs::remove_dir_all(&self.directory),
            SocketCleanup::Socket(own) => daemon_lock::remove_own_socket(&self.directory, own),
            SocketCleanup::Token => std::fs::remove_file(&self.token_file),
        };
        if let Err(error) = gone {
            tracing::warn!(path = %self.directory.display(), %error, "the socket cannot be \
                                                                      removed");
        }
    }
}

/// Removes directories of private supervisors that were killed, which have a socket that refuses
/// connections. A directory that is being set up is locked or has no socket yet.
fn remove_stale_dirs(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let directory = entry.path();
        let private = entry.file_name().to_string_lossy().starts_with("run-");
        let Ok(opening) = File::open(&directory) else { continue };
        if opening.try_lock().is_err() {
            continue;
        }
        let answer = std::os::unix::net::UnixStream::connect(directory.join("socket"));
        let deserted = answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if private && deserted && std::fs::remove_dir_all(&directory).is_ok() {
            tracing::info!(path = %directory.display(), "a stale socket was removed");
        }
    }
}

/// Checks a peer and performs the handshake; `None` if it is refused.
pub(crate) async fn admit(stream: UnixStream, token: &str) -> Option<ClientStream> {
    let opener = match peer::identify(&stream) {
        Ok(opener) => opener,
        Err(stranger) => {
            tracing::warn!(%stranger, "a peer was refused");
            return None;
        }
    };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(stream, opener, token)).await {
        Ok(Ok(client)) => Some(client),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a peer was refused");
            None
        }
        Err(_) => {
            tracing::warn!("a peer did not complete the handshake in time");
            None
        }
    }
}

async fn handshake(
    mut stream: UnixStream,
    opener: PeerProcess,
    token: &str,
) -> Result<ClientStream, HandshakeError> {
    let mut bytes = [0; HELLO_BYTES];
    stream.read_exact(&mut bytes).await?;
    stream.write_all(&Hello::own().to_bytes()).await?;
    // The peer compares the build in our Hello with its own and reports both.
    Hello::from_bytes(&bytes)?.check()?;
    let mut client = ClientStream::new(stream, opener);
    let build = protocol::BUILD_ID.to_owned();
    let known = match client.reader.recv().await? {
        FromClient::Hello { token: shown, build: _ } => {
            constant_time_eq(shown.as_bytes(), token.as_bytes())
        }
        FromClient::Open(_)
        | FromClient::Attach { .. }
        | FromClient::Prompt { .. }
        | FromClient::Answer { .. }
        | FromClient::Interrupt { .. }
        | FromClient::Wish { .. }
        | FromClient::Ps
        | FromClient::Detach { .. }
        | FromClient::Page { .. }
        | FromClient::Query { .. }
        | FromClient::TakeBack { .. }
        | FromClient::Change { .. }
        | FromClient::List
        | FromClient::End { .. }
        | FromClient::Remove { .. }
        | FromClient::Restart { .. }
        | FromClient::Status
        | FromClient::Ping(_)
        | FromClient::Shutdown { .. } => false,
    };
    if !known {
        let reason = "the token does not match; it is in a file beside the socket".to_owned();
        client.writer.send(&ToClient::Refused { build, reason }).await?;
        return Err("the token does not match".into());
    }
    client.writer.send(&ToClient::Welcome { build, pid: std::process::id() }).await?;
    Ok(client)
}

/// Why a peer was refused; only logged.
type HandshakeError = Box<dyn std::error::Error + Send + Sync>;

/// Compares in constant time, so that the time shows nothing of the token.
fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |sum, (x, y)| sum | (x ^ y));
    a.len() == b.len() && difference == 0
}

/// 256 bits as 64 hex digits.
fn new_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(HEXLOWER.encode(&bytes))
}

/// Writes the file atomically: a client reads either the old token or the new one.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("new");
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(fresh, path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{File, constant_time_eq, remove_stale_dirs};
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_door_that_is_being_opened_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run-1");
        std::fs::create_dir(&run).unwrap();
        let opening = File::open(&run).unwrap();
        opening.lock().unwrap();
        let flags = SockFlag::SOCK_CLOEXEC;
        let bound = socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
        bind(bound.as_raw_fd(), &UnixAddr::new(&run.join("socket")).unwrap()).unwrap();
        remove_stale_dirs(dir.path());
        assert!(run.exists());
        opening.unlock().unwrap();
        remove_stale_dirs(dir.path());
        assert!(!run.exists(), "the control: nobody listens");
    }

    #[test]
    fn tokens_are_equal_only_when_they_are() {
        assert!(constant_time_eq(b"abc", b"abc"));
        assert!(
            !constant_time_eq(b"abc", b"abd")
                && !constant_time_eq(b"ab", b"abc")
                && !constant_time_eq(b"", b"a")
        );
    }
}
