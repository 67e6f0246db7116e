//! A connection between two processes of this user and this build: both say hello, then each sends messages.
//! Used over the sockets of the daemon, of supervisors that take a seat, and of a relay's terminal.

use ipc::{HELLO_BYTES, Hello, MessageJoiner, codec};
use protocol::Link;
use protocol::ids::Generation;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection on which both sides said hello.
pub(crate) struct Connection {
    pub(crate) reader: MessageReader,
    pub(crate) writer: MessageWriter,
}

/// The messages of the other side.
pub(crate) struct MessageReader {
    half: OwnedReadHalf,
    joiner: MessageJoiner,
    buffer: Vec<u8>,
}

/// Sends messages to the other side.
pub(crate) struct MessageWriter(OwnedWriteHalf);

impl Connection {
    /// Says hello to a process that connected here, if it is of this user.
    pub(crate) async fn accept<L: Link>(stream: UnixStream) -> io::Result<Self> {
        if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Self::greet::<L>(stream).await
    }

    /// Says hello over a new connection.
    pub(crate) async fn greet<L: Link>(mut stream: UnixStream) -> io::Result<Self> {
        stream.write_all(&Hello::own().to_bytes()).await?;
        let mut bytes = [0; HELLO_BYTES];
        stream.read_exact(&mut bytes).await?;
        Hello::from_bytes(&bytes).and_then(|hello| hello.check()).map_err(io::Error::other)?;
        let (half, writer) = stream.into_split();
        let joiner = MessageJoiner::new(L::MESSAGE_CAP);
        let reader = MessageReader { half, joiner, buffer: vec![0; READ_BYTES] };
        Ok(Self { reader, writer: MessageWriter(writer) })
    }

    /// The socket alone, for bytes that are passed on. Messages that were received and not taken are lost.
    pub(crate) fn into_halves(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        (self.reader.half, self.writer.0)
    }
}

impl MessageReader {
    /// The next message. May be cancelled.
    pub(crate) async fn recv<R: codec::Decode<()>>(&mut self) -> io::Result<R> {
        let body = self.recv_bytes().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        codec::decode(&body).map_err(io::Error::other)
    }

    /// The bytes of the next message; none at the end of the connection. May be cancelled.
    pub(crate) async fn recv_bytes(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(message) = self.joiner.next_message().map_err(io::Error::other)? {
                return Ok(Some(message.body.ok_or(io::ErrorKind::InvalidData)?));
            }
            match self.half.read(&mut self.buffer).await? {
                0 => return Ok(None),
                length => self.joiner.push(self.buffer.get(..length).unwrap_or_default()),
            }
        }
    }
}

impl MessageWriter {
    pub(crate) async fn send<W: codec::Encode>(&mut self, word: &W) -> io::Result<()> {
        self.send_bytes(&bytes_of(word)?).await
    }

    /// Sends messages that are bytes already.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }
}

/// A message with its frame.
pub(crate) fn bytes_of<W: codec::Encode>(word: &W) -> io::Result<Vec<u8>> {
    let body = codec::encode(word).map_err(io::Error::other)?;
    Ok(ipc::frames(Generation(0), 0, &body))
}
