//! What clients say, a word at a time with the descriptors that ride behind it, and from nobody but the
//! process that opened the connection. Used by the client actor, and by the door for the first word.

use super::{ClientMsg, Feed, to_bytes};
use crate::peer::Opener;
use ipc::{ChannelError, Joiner, codec};
use protocol::Link;
use protocol::client::{ClientLink, FromClient, ToClient};
use protocol::provider::Paper;
use ractor::ActorRef;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Words of one client that wait to be carried out.
const PENDING_REQUESTS: usize = 64;

/// What a client says.
pub(crate) struct ClientReader {
    reader: OwnedReadHalf,
    opener: Arc<Opener>,
    joiner: Joiner,
    descriptors: VecDeque<OwnedFd>,
    buffer: Vec<u8>,
}

/// A word with the descriptors that came with it.
pub(crate) struct ClientRequest {
    pub(super) word: FromClient,
    pub(super) papers: Vec<(Paper, OwnedFd)>,
    _permit: OwnedSemaphorePermit,
}

impl ClientReader {
    pub(super) fn of(reader: OwnedReadHalf, opener: Opener) -> Self {
        Self {
            reader,
            opener: Arc::new(opener),
            joiner: Joiner::new(ClientLink::MESSAGE_CAP),
            descriptors: VecDeque::new(),
            buffer: vec![0; 64 << 10],
        }
    }

    pub(crate) async fn recv(&mut self) -> Result<FromClient, ChannelError> {
        let body = self.message().await?.ok_or(ChannelError::OutOfTurn)?;
        Ok(codec::decode(&body)?)
    }

    /// The descriptors that ride behind an `Open`.
    async fn papers(&mut self, word: &FromClient) -> Result<Vec<(Paper, OwnedFd)>, ChannelError> {
        let FromClient::Open(opening) = word else { return Ok(Vec::new()) };
        let mut papers = Vec::new();
        for paper in &opening.papers {
            let descriptor = match self.message().await? {
                None => self.descriptors.pop_front().ok_or(ChannelError::OutOfTurn)?,
                Some(_) => return Err(ChannelError::OutOfTurn),
            };
            papers.push((paper.clone(), descriptor));
        }
        Ok(papers)
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
                Ok((length, writer)) if self.opener.is(writer) => {
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

/// Hears the client until it is gone, or the process that opened its connection is.
pub(super) async fn hear(mut reader: ClientReader, actor: ActorRef<ClientMsg>, outbox: Feed) {
    let opener = Arc::clone(&reader.opener);
    let why = tokio::select! {
        why = listen(&mut reader, &actor, &outbox) => why,
        () = opener.ended() => "the process that opened its connection has ended".to_owned(),
    };
    let _ = actor.send_message(ClientMsg::Gone(why));
}

/// Until there is nothing more to hear; says why. A word is read only when the actor has room for
/// it.
async fn listen(reader: &mut ClientReader, actor: &ActorRef<ClientMsg>, outbox: &Feed) -> String {
    let pending = Arc::new(Semaphore::new(PENDING_REQUESTS));
    let error = loop {
        let word = match reader.recv().await {
            Ok(word) => word,
            Err(error) => break error,
        };
        // Here, since the actor may wait for a session to be opened.
        if let FromClient::Ping(number) = word {
            if let Ok(pong) = to_bytes(&[ToClient::Pong(number)]) {
                let _ = outbox.put(pong);
            }
            continue;
        }
        let papers = match reader.papers(&word).await {
            Ok(papers) => papers,
            Err(error) => break error,
        };
        let Ok(heard) = Arc::clone(&pending).acquire_owned().await else {
            break ChannelError::Closed;
        };
        let heard = ClientRequest { word, papers, _permit: heard };
        if actor.send_message(ClientMsg::Request(Box::new(heard))).is_err() {
            break ChannelError::Closed;
        }
    };
    error.to_string()
}
