//! A connection to this host's daemon, as each of its terminals has one. `terminals` passes messages over it,
//! and `task_run` sees by it that the daemon runs, and ends a session.

use crate::connection::Connection;
use protocol::client::{ClientLink, FromClient, SessionEnding, ToClient};
use protocol::ids::SessionId;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// How long the daemon may take for an answer. A command of `agentd` asks it again then, and its error has the
/// cause.
const ANSWER: Duration = Duration::from_secs(5);

/// The daemon took the token.
pub(crate) struct DaemonConnection(Connection);

impl DaemonConnection {
    /// Connects to the daemon of this build whose private directory this is.
    pub(crate) async fn open(runtime: &Path) -> io::Result<Self> {
        within_limit(async {
            let stream = UnixStream::connect(runtime.join("socket")).await?;
            let token = std::fs::read_to_string(runtime.join("token"))?;
            let mut open = Self(Connection::greet::<ClientLink>(stream).await?);
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
    pub(crate) fn into_halves(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        self.0.into_halves()
    }

    async fn ask(&mut self, word: &FromClient) -> io::Result<ToClient> {
        self.0.writer.send(word).await?;
        self.0.reader.recv().await
    }
}

async fn within_limit<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(ANSWER, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
