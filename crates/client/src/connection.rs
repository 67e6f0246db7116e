//! A connection to a supervisor's socket: build check, token, then words.

use interprocess::local_socket::{GenericFilePath, Stream, ToFsName, traits::Stream as _};
use ipc::{ChannelError, Receiver, Sender};
use protocol::client::{ClientLink, FromClient, ToClient};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// An open connection that was let in.
#[derive(Debug)]
pub struct Connection {
    words: Receiver<ToClient>,
    say: Sender<FromClient>,
    pid: u32,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody answers at the socket.
    #[error("no supervisor answers at {}", socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// The connection broke, or the other side is of another build.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The supervisor does not let this client in.
    #[error("the supervisor refused the connection: {reason}")]
    Refused {
        /// In its words.
        reason: String,
    },
    /// The supervisor broke the protocol.
    #[error("the supervisor said something else than Welcome")]
    OutOfTurn,
}

impl Connection {
    /// Connects and says who we are. Blocks until the supervisor has answered.
    ///
    /// # Errors
    /// Where nobody answers, builds differ or the token is not the supervisor's.
    pub fn open(socket: &Path, token: &str) -> Result<Self, ConnectError> {
        let unreachable = |source| ConnectError::Unreachable { socket: socket.to_owned(), source };
        let name = socket.to_fs_name::<GenericFilePath>().map_err(unreachable)?;
        let Stream::UdSocket(stream) = Stream::connect(name).map_err(unreachable)?;
        let (mut words, say) = ipc::connect::<ClientLink>(UnixStream::from(OwnedFd::from(stream)))?;
        let (token, build) = (token.to_owned(), protocol::BUILD_ID.to_owned());
        say.send(&FromClient::Hello { token, build })?;
        match words.recv()? {
            ToClient::Welcome { build: _, pid } => Ok(Self { words, say, pid }),
            ToClient::Refused { build: _, reason } => Err(ConnectError::Refused { reason }),
            ToClient::Opened { .. }
            | ToClient::Attached { .. }
            | ToClient::Detached { .. }
            | ToClient::Behind { .. }
            | ToClient::Page { .. }
            | ToClient::TakenBack { .. }
            | ToClient::Sessions(_)
            | ToClient::Status(_)
            | ToClient::Done
            | ToClient::Event { .. }
            | ToClient::Processes(_)
            | ToClient::Failed { .. } => Err(ConnectError::OutOfTurn),
        }
    }

    /// The supervisor's process id, as it says itself.
    #[must_use]
    pub fn supervisor_pid(&self) -> u32 {
        self.pid
    }

    /// Sends a word and the descriptors that ride behind it.
    ///
    /// # Errors
    /// Where the supervisor is gone.
    pub fn send(&self, word: &FromClient, papers: &[OwnedFd]) -> Result<(), ChannelError> {
        self.say.send(word)?;
        papers.iter().try_for_each(|paper| self.say.send_fd(paper.as_fd()))
    }

    /// The next word. Blocks.
    ///
    /// # Errors
    /// Where the supervisor is gone or broke the protocol.
    pub fn recv(&mut self) -> Result<ToClient, ChannelError> {
        self.words.recv()
    }

    /// The two halves, for a thread that listens while another speaks.
    pub(crate) fn split(self) -> (Receiver<ToClient>, Sender<FromClient>) {
        (self.words, self.say)
    }
}
