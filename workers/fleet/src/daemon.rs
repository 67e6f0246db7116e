//! A connection to this host's daemon, as each of its terminals has one. `terminals` passes messages over it,
//! and `task_run` sees by it that the daemon runs, and ends a session.

use ipc::{HELLO_BYTES, Hello, MessageJoiner, codec};
use protocol::Link;
use protocol::client::{ClientLink, FromClient, SessionEnding, ToClient};
use protocol::ids::{Generation, SessionId};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// How long the daemon may take for an answer. A command of `agentd` asks it again then, and its error has the
/// cause.
const ANSWER: Duration = Duration::from_secs(5);

/// The daemon took the token.
pub(crate) struct DaemonConnection {
    stream: UnixStream,
    joiner: MessageJoiner,
}

impl DaemonConnection {
    /// Connects to the daemon of this build whose private directory this is.
    pub(crate) async fn open(runtime: &Path) -> io::Result<Self> {
        within_limit(async {
            let mut stream = UnixStream::connect(runtime.join("socket")).await?;
            let token = std::fs::read_to_string(runtime.join("token"))?;
            stream.write_all(&Hello::own().to_bytes()).await?;
            let mut bytes = [0; HELLO_BYTES];
            stream.read_exact(&mut bytes).await?;
            Hello::from_bytes(&bytes).and_then(|hello| hello.check()).map_err(io::Error::other)?;
            let mut open = Self { stream, joiner: MessageJoiner::new(ClientLink::MESSAGE_CAP) };
            let (build, token) = (protocol::BUILD_ID.to_owned(), token.trim().to_owned());
            let answer = open.ask(&FromClient::Hello { token, build }).await?;
            let is_welcome = matches!(answer, ToClient::Welcome { .. });
            is_welcome.then_some(open).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
        })
        .await
    }

    /// Ends a session that the daemon has, in order.
    pub(crate) async fn end(&mut self, session: &str) -> io::Result<()> {
        let session = SessionId(session.to_owned());
        let end = FromClient::End { session, ending: SessionEnding::Stop };
        let is_done = within_limit(self.ask(&end)).await? == ToClient::Done;
        is_done.then_some(()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The connection alone. The daemon says nothing after its welcome until it is asked.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream
    }

    async fn ask(&mut self, word: &FromClient) -> io::Result<ToClient> {
        self.stream.write_all(&bytes_of(word)?).await?;
        let mut buffer = [0; 4096];
        loop {
            if let Some(message) = self.joiner.next_message().map_err(io::Error::other)? {
                let body = message.body.ok_or(io::ErrorKind::InvalidData)?;
                return codec::decode(&body).map_err(io::Error::other);
            }
            match self.stream.read(&mut buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => self.joiner.push(buffer.get(..length).unwrap_or_default()),
            }
        }
    }
}

/// A message between a client and the daemon.
pub(crate) fn bytes_of<W: codec::Encode>(word: &W) -> io::Result<Vec<u8>> {
    let body = codec::encode(word).map_err(io::Error::other)?;
    Ok(ipc::frames(Generation(0), 0, &body))
}

async fn within_limit<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(ANSWER, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
