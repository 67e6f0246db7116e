//! The daemon of this user: found at its socket, or started there. Used by the command line.

use crate::liveness::LivenessCheck;
use crate::silence::SilenceAction;
use crate::spawn::{self, StartError, SupervisorLaunch};
use crate::supervisor_connection::{ConnectError, HANDSHAKE_TIMEOUT, SupervisorConnection};
use crate::supervisor_source::{SourceResult, SupervisorSource};
use ipc::ChannelError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use protocol::client::{FromClient, ToClient};
use protocol::ids::SessionId;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time for an ending daemon to free its socket. It waits for its calls and workers.
const ENDING: Duration = Duration::from_secs(15);
/// How long a token may be that of the daemon before, whose place another has just taken.
const NEW_TOKEN: Duration = Duration::from_secs(2);
/// Longest wait for a list of sessions. A stopped daemon never sends one.
const LISTING: Duration = Duration::from_secs(1);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The process of a daemon that was connected to. Its socket may outlive it, where a service manager keeps that.
#[derive(Debug)]
pub struct DaemonProcess(OwnedFd);

impl DaemonProcess {
    /// The one at the other end, which has just answered.
    ///
    /// # Errors
    /// Where it has ended.
    pub fn of(connection: &SupervisorConnection) -> io::Result<Self> {
        let pid = i32::try_from(connection.supervisor_pid()).ok().and_then(Pid::from_raw);
        let process = pidfd_open(pid.ok_or(io::ErrorKind::NotFound)?, PidfdFlags::empty())?;
        Ok(Self(process))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// `TimedOut` if it still runs.
    pub fn wait_for_end(&self, patience: Duration) -> io::Result<()> {
        wait_for_end(&self.0, patience)
    }
}

/// A way to the daemon.
#[derive(Debug)]
pub struct DaemonSource<'a> {
    launch: SupervisorLaunch<'a>,
    socket: PathBuf,
    /// The process that was connected to last.
    connected: Option<u32>,
    /// It does not answer.
    liveness: Option<LivenessCheck>,
}

/// Why there is no daemon to speak to.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// It runs, but this client cannot connect.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It does not run and cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl<'a> DaemonSource<'a> {
    /// The daemon at this socket. `launch` starts one if none runs.
    #[must_use]
    pub fn at(socket: PathBuf, launch: SupervisorLaunch<'a>) -> Self {
        Self { launch, socket, connected: None, liveness: None }
    }

    /// Connects to the running daemon. `None` if none runs.
    ///
    /// # Errors
    /// Where one answers and there is no speaking to it, as with one of another build.
    pub fn find(&self) -> Result<Option<SupervisorConnection>, ConnectError> {
        let began = Instant::now();
        loop {
            match connect(&self.socket, HANDSHAKE_TIMEOUT) {
                Ok(connection) => return Ok(Some(connection)),
                Err(error) if is_unreachable(&error) => return Ok(None),
                Err(ConnectError::Refused { .. }) if began.elapsed() < NEW_TOKEN => {
                    std::thread::sleep(PAUSE);
                }
                Err(ConnectError::Ended) if began.elapsed() < ENDING => std::thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
        }
    }

    /// Connects to the daemon, and starts it if none runs. If several clients do so at once, one
    /// starts it, and all connect to that one.
    ///
    /// # Errors
    /// See [`DaemonError`].
    pub fn find_or_start(&self) -> Result<SupervisorConnection, DaemonError> {
        let until = Instant::now() + ENDING;
        loop {
            if let Some(connection) = self.find()? {
                return Ok(connection);
            }
            match spawn::start_daemon(&self.launch) {
                Ok(()) => {}
                // That daemon may end before this client connects. The loop then starts another.
                Err(StartError::Cannot { kind, .. })
                    if kind == "taken" && Instant::now() < until => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends SIGTERM to a daemon that does not answer messages, and waits for its end. The process
    /// ID comes from the socket's peer credentials, not from a file.
    ///
    /// # Errors
    /// Where the kernel refuses, it does not end, or no supervisor listens.
    pub fn terminate(&self, patience: Duration) -> io::Result<()> {
        let (_, process) = self.listener()?;
        // A stopped process handles SIGTERM only after SIGCONT.
        pidfd_send_signal(&process, Signal::CONT)?;
        pidfd_send_signal(&process, Signal::TERM)?;
        wait_for_end(&process, patience)
    }

    /// The process that listens at the socket.
    fn listener(&self) -> io::Result<(Pid, OwnedFd)> {
        let peer = UnixStream::connect(&self.socket)?;
        let listener = getsockopt(&peer, PeerCredentials)?;
        let pid = Pid::from_raw(listener.pid()).ok_or(io::ErrorKind::NotFound)?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        // It still listens, so its process ID has not been reused.
        drop(UnixStream::connect(&self.socket)?);
        // Unless a service manager keeps the socket: then its own, or that of a daemon that has ended.
        let executable = std::fs::read_link(format!("/proc/{}/exe", pid.as_raw_pid()))?;
        let name = executable.file_name().unwrap_or_default().to_string_lossy();
        if name.trim_end_matches(" (deleted)") != "agentd-supervisor" {
            let named = executable.display();
            return Err(io::Error::other(format!(
                "no agentd-supervisor listens at the socket, but {named} does; \
                 `systemctl --user stop agentd.socket agentd.service` ends what systemd started"
            )));
        }
        Ok((pid, process))
    }
}

/// Waits for the end of a process.
fn wait_for_end(process: &OwnedFd, patience: Duration) -> io::Result<()> {
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    let until = Instant::now() + patience;
    loop {
        match poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) if Instant::now() < until => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

impl SupervisorSource for DaemonSource<'_> {
    fn connect(&mut self) -> SourceResult<SupervisorConnection> {
        let connection = self.find_or_start()?;
        self.connected = Some(connection.supervisor_pid());
        Ok(connection)
    }

    fn connect_where_live(
        &mut self,
        session: &SessionId,
    ) -> SourceResult<Option<SupervisorConnection>> {
        let connection = match connect(&self.socket, HANDSHAKE_TIMEOUT) {
            Ok(connection) => Some(connection),
            Err(error) if is_unreachable(&error) => None,
            // The daemon is ending, has just replaced another one, or is stopped. A stopped daemon
            // may still hold the session's lock.
            Err(
                ConnectError::Refused { .. } | ConnectError::Ended | ConnectError::Silent { .. },
            ) => None,
            Err(error) => return Err(error.into()),
        };
        let Some(mut connection) = connection else { return Ok(None) };
        if !has_live(&mut connection, session)? {
            return Ok(None);
        }
        self.connected = Some(connection.supervisor_pid());
        Ok(Some(connection))
    }

    fn on_silence(&mut self, checks: u32) -> SilenceAction {
        if checks == 0 {
            self.liveness = None;
        }
        let (pid, socket) = (self.connected, self.socket.clone());
        let begun = || LivenessCheck::of(pid, move |patience| connect(&socket, patience));
        self.liveness.get_or_insert_with(begun).check()
    }

    fn kill(&mut self) {
        // Another client may have replaced it meanwhile; that one is left alone.
        if let Ok((pid, process)) = self.listener()
            && self.connected == u32::try_from(pid.as_raw_pid()).ok()
        {
            // Fails only if it has already ended.
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

/// True if the daemon runs this session, rather than only lists it from disk.
fn has_live(
    connection: &mut SupervisorConnection,
    session: &SessionId,
) -> Result<bool, ChannelError> {
    let rows = match connection.ask_within(&FromClient::List, LISTING) {
        Ok(ToClient::Sessions(rows)) => rows,
        // It may answer the next time.
        Err(ChannelError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Vec::new(),
        Ok(_) => return Err(ChannelError::OutOfTurn),
        Err(error) => return Err(error),
    };
    Ok(rows.iter().any(|row| row.session == *session && !row.state.is_of_disk()))
}

fn connect(socket: &Path, patience: Duration) -> Result<SupervisorConnection, ConnectError> {
    let token_file = socket.with_file_name("token");
    let token = match std::fs::read_to_string(&token_file) {
        Ok(token) => token,
        // Without a socket there is no token. With a socket, the supervisor decides about an empty
        // token.
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(ConnectError::Token { path: token_file, source }),
    };
    SupervisorConnection::open_within(socket, token.trim(), patience)
}

/// True if no process listens at the socket.
fn is_unreachable(error: &ConnectError) -> bool {
    let ConnectError::Unreachable { source, socket: _ } = error else { return false };
    matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
