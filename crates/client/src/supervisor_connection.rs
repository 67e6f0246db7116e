//! A connection to a supervisor's socket: build check, token, then messages.

use interprocess::local_socket::{GenericFilePath, Stream, ToFsName, traits::Stream as _};
use ipc::{ChannelError, HelloError, Receiver, Sender};
use protocol::client::{ClientLink, FromClient, ToClient};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An authenticated connection.
#[derive(Debug)]
pub struct SupervisorConnection {
    receiver: Receiver<ToClient>,
    sender: Sender<FromClient>,
    /// The same socket, for its read timeout.
    socket: UnixStream,
    pid: u32,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No process listens at the socket.
    #[error("no supervisor answers at {}", socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A process listens there, but sends nothing.
    #[error("the supervisor at {} does not answer; `ps` shows it, and `kill -CONT` or `kill` on \
             agentd-supervisor helps", socket.display())]
    Silent {
        /// The socket.
        socket: PathBuf,
    },
    /// It closed the connection before it let us in: it is ending.
    #[error("the supervisor is ending")]
    Ended,
    /// Its token may not be read.
    #[error("the token {} cannot be read", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// It is of another build. Different builds cannot communicate.
    #[error(
        "the running daemon is build {theirs}, this is build {ours}; different builds cannot \
         communicate"
    )]
    OtherBuild {
        /// The daemon's.
        theirs: String,
        /// This program's.
        ours: String,
    },
    /// The connection broke.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The supervisor does not let this client in.
    #[error("the supervisor refused the connection: {reason}")]
    Refused {
        /// Its reason.
        reason: String,
    },
    /// The supervisor broke the protocol.
    #[error("the supervisor sent an unexpected message in place of Welcome")]
    OutOfTurn,
}

/// Longest wait for each message of the handshake. A running supervisor sends them within
/// milliseconds; a stopped one never does.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The error of a failed handshake.
fn handshake_error(error: ChannelError, socket: &Path) -> ConnectError {
    match error {
        ChannelError::Closed | ChannelError::Cut => ConnectError::Ended,
        ChannelError::Hello(HelloError::OtherBuild { theirs, ours }) => {
            ConnectError::OtherBuild { theirs, ours }
        }
        ChannelError::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
            ConnectError::Silent { socket: socket.to_owned() }
        }
        ChannelError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => ConnectError::Ended,
        ChannelError::Hello(HelloError::Foreign)
        | ChannelError::Io(_)
        | ChannelError::Frame(_)
        | ChannelError::Codec(_)
        | ChannelError::OutOfTurn
        | ChannelError::TooLong { .. }
        | ChannelError::ByHand { .. } => ConnectError::Channel(error),
    }
}

impl SupervisorConnection {
    /// Connects and authenticates. Blocks until the supervisor answers.
    ///
    /// # Errors
    /// If no process listens, builds differ or the token is wrong.
    pub fn open(socket: &Path, token: &str) -> Result<Self, ConnectError> {
        Self::open_within(socket, token, HANDSHAKE_TIMEOUT)
    }

    /// The same, with a time limit for each message of the handshake.
    pub(crate) fn open_within(
        socket: &Path,
        token: &str,
        patience: Duration,
    ) -> Result<Self, ConnectError> {
        let unreachable = |source| ConnectError::Unreachable { socket: socket.to_owned(), source };
        let name = socket.to_fs_name::<GenericFilePath>().map_err(unreachable)?;
        let Stream::UdSocket(stream) = Stream::connect(name).map_err(unreachable)?;
        let stream = UnixStream::from(OwnedFd::from(stream));
        stream.set_read_timeout(Some(patience)).map_err(unreachable)?;
        let (token, build) = (token.to_owned(), protocol::BUILD_ID.to_owned());
        let greeted = ipc::connect::<ClientLink>(stream.try_clone().map_err(unreachable)?);
        let (mut words, say) = greeted.map_err(|error| handshake_error(error, socket))?;
        say.send(&FromClient::Hello { token, build }).map_err(|_| ConnectError::Ended)?;
        let answer = words.recv().map_err(|error| handshake_error(error, socket))?;
        stream.set_read_timeout(None).map_err(unreachable)?;
        if let ToClient::Welcome { build: _, pid } = answer {
            return Ok(Self { receiver: words, sender: say, socket: stream, pid });
        }
        if let ToClient::Refused { build: _, reason } = answer {
            return Err(ConnectError::Refused { reason });
        }
        Err(ConnectError::OutOfTurn)
    }

    /// The process ID that the supervisor reported.
    #[must_use]
    pub fn supervisor_pid(&self) -> u32 {
        self.pid
    }

    /// Sends a message and the descriptors that follow it.
    ///
    /// # Errors
    /// Where the supervisor is gone.
    pub fn send(&self, word: &FromClient, papers: &[OwnedFd]) -> Result<(), ChannelError> {
        self.sender.send(word)?;
        papers.iter().try_for_each(|paper| self.sender.send_fd(paper.as_fd()))
    }

    /// Receives the next message. Blocks.
    ///
    /// # Errors
    /// Where the supervisor is gone or broke the protocol.
    pub fn recv(&mut self) -> Result<ToClient, ChannelError> {
        self.receiver.recv()
    }

    /// Receives a descriptor that follows the last message. Blocks.
    ///
    /// # Errors
    /// As [`SupervisorConnection::recv`].
    pub fn recv_descriptor(&mut self) -> Result<OwnedFd, ChannelError> {
        self.receiver.recv_fd()
    }

    /// Asks, and waits so long at most for the answer.
    ///
    /// # Errors
    /// Where the supervisor is gone, or did not answer in time.
    pub fn ask_within(
        &mut self,
        word: &FromClient,
        patience: Duration,
    ) -> Result<ToClient, ChannelError> {
        self.socket.set_read_timeout(Some(patience))?;
        self.sender.send(word)?;
        let answer = self.recv()?;
        self.socket.set_read_timeout(None)?;
        Ok(answer)
    }

    /// The two halves, for a thread that listens while another speaks.
    pub(crate) fn split(self) -> (Receiver<ToClient>, Sender<FromClient>) {
        (self.receiver, self.sender)
    }
}
