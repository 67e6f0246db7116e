//! An authenticated client connection: its reader and its writer. Messages and descriptors are
//! accepted only from the process that opened the connection.

use super::feed::to_bytes;
use crate::control_socket::peer::PeerProcess;
use ipc::{ChannelError, MessageJoiner, codec};
use protocol::Link;
use protocol::client::{ClientLink, FromClient, ToClient};
use protocol::ids::Generation;
use protocol::provider::PassedFd;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// An authenticated connection.
pub(crate) struct ClientStream {
    pub(crate) reader: ClientReader,
    pub(crate) writer: ClientWriter,
}

impl ClientStream {
    pub(crate) fn new(stream: UnixStream, opener: PeerProcess) -> Self {
        #[cfg(agentd_hooks)]
        ipc::hook::speaks_over(std::os::fd::AsFd::as_fd(&stream));
        let (reader, writer) = stream.into_split();
        Self { reader: ClientReader::of(reader, opener), writer: ClientWriter(writer) }
    }

    /// Where the client runs, for records.
    pub(crate) fn place(&self) -> &str {
        self.reader.opener.place()
    }
}

/// Reads a client's messages and the descriptors that come with them.
pub(crate) struct ClientReader {
    reader: OwnedReadHalf,
    pub(super) opener: Arc<PeerProcess>,
    joiner: MessageJoiner,
    descriptors: VecDeque<OwnedFd>,
    buffer: Vec<u8>,
}

impl ClientReader {
    fn of(reader: OwnedReadHalf, opener: PeerProcess) -> Self {
        Self {
            reader,
            opener: Arc::new(opener),
            joiner: MessageJoiner::new(ClientLink::MESSAGE_CAP),
            descriptors: VecDeque::new(),
            buffer: vec![0; 64 << 10],
        }
    }

    pub(crate) async fn recv(&mut self) -> Result<FromClient, ChannelError> {
        let body = self.message().await?.ok_or(ChannelError::OutOfTurn)?;
        Ok(codec::decode(&body)?)
    }

    /// The descriptors that follow an `Open`.
    pub(super) async fn passed_fds(
        &mut self,
        msg: &FromClient,
    ) -> Result<Vec<(PassedFd, OwnedFd)>, ChannelError> {
        let FromClient::Open(opening) = msg else { return Ok(Vec::new()) };
        let mut passed_fds = Vec::new();
        for paper in &opening.papers {
            let descriptor = match self.message().await? {
                None => self.descriptors.pop_front().ok_or(ChannelError::OutOfTurn)?,
                Some(_) => return Err(ChannelError::OutOfTurn),
            };
            passed_fds.push((paper.clone(), descriptor));
        }
        Ok(passed_fds)
    }

    async fn message(&mut self) -> Result<Option<Vec<u8>>, ChannelError> {
        loop {
            if let Some(message) = self.joiner.next_message()? {
                return Ok(message.body);
            }
            self.reader.readable().await?;
            let stream: &UnixStream = self.reader.as_ref();
            let (buffer, descriptors) = (&mut self.buffer, &mut self.descriptors);
            let read = stream.try_io(Interest::READABLE, || {
                ipc::fd::receive_from(stream.as_fd(), buffer, descriptors)
            });
            match read {
                Ok((0, _)) => return Err(ChannelError::Closed),
                Ok((length, writer)) if self.opener.is_writer(writer) => {
                    self.joiner.push(&self.buffer[..length]);
                }
                Ok((_, writer)) => {
                    tracing::warn!(?writer, "another process wrote over a client's connection");
                    let kind = std::io::ErrorKind::PermissionDenied;
                    let why = "a process that did not open this connection wrote over it";
                    return Err(std::io::Error::new(kind, why).into());
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Writes to a client.
pub(crate) struct ClientWriter(pub(super) OwnedWriteHalf);

impl ClientWriter {
    pub(crate) async fn send(&mut self, msg: &ToClient) -> Result<(), ChannelError> {
        let bytes = to_bytes(std::slice::from_ref(msg))?;
        Ok(self.0.write_all(&bytes).await?)
    }

    /// Sends a descriptor behind what was written last.
    pub(super) async fn hand(&mut self, descriptor: &OwnedFd) -> io::Result<()> {
        let frame = ipc::descriptor_frame(Generation(0));
        let stream: &UnixStream = self.0.as_ref();
        let sent = loop {
            stream.writable().await?;
            let send = || ipc::fd::send(stream.as_fd(), &frame, descriptor.as_fd());
            match stream.try_io(Interest::WRITABLE, send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => break sent?,
            }
        };
        self.0.write_all(&frame[sent..]).await
    }
}
