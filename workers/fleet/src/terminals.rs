//! Terminals of other hosts that are attached to sessions here. Each gets a connection to this host's daemon,
//! and may say what concerns its session.

use crate::database::{Notifications, listen};
use crate::door::Seats;
use crate::seat::Seat;
use ipc::{HELLO_BYTES, Hello, MessageJoiner, codec};
use protocol::Link;
use protocol::client::{
    ClientLink, ConversationFlags, FromClient, ProjectTrust, SessionRequest, SessionStart,
    SettingChange, ToClient, Unsandboxed,
};
use protocol::ids::{Generation, SessionId};
use protocol::judgement::Audience;
use protocol::session::OpenTurn;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio_postgres::{Client, Config};

/// How long messages may wait without a notification.
const LOOK: Duration = Duration::from_secs(1);
/// Between two messages to a terminal, so that a stream of words does not fill the database.
const PACE: Duration = Duration::from_millis(50);
/// Before another connection to a database that is lost.
const AGAIN: Duration = Duration::from_secs(1);

/// Serves terminals until the process ends.
pub(crate) async fn serve(config: Config, worker: String, seats: Seats, runtime: PathBuf) {
    loop {
        if let Err(error) = serve_once(&config, &worker, &seats, &runtime).await {
            tracing::debug!(%error, "terminals of other hosts are not served for now");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn serve_once(
    config: &Config,
    worker: &str,
    seats: &Seats,
    runtime: &Path,
) -> io::Result<()> {
    let channel = format!("agentd_w_{}", worker.replace('-', ""));
    let Notifications { client, mut heard } =
        listen(config, &channel).await.map_err(io::Error::other)?;
    let client = Arc::new(client);
    let mut terminals: BTreeMap<String, Terminal> = BTreeMap::new();
    loop {
        let payload = match tokio::time::timeout(LOOK, heard.recv()).await {
            Ok(Some(payload)) => Some(payload),
            Ok(None) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Err(_) => None,
        };
        if let Some((terminal, session)) = payload.as_deref().and_then(|text| text.split_once(' '))
            && !terminals.contains_key(terminal)
            && let Some(seat) = seats.held(session)
        {
            match Terminal::open(terminal, seat, Arc::clone(&client), runtime).await {
                Ok(open) => drop(terminals.insert(terminal.to_owned(), open)),
                Err(error) => tracing::warn!(session, %error, "a terminal cannot attach"),
            }
        }
        let mut over = Vec::new();
        for (name, terminal) in &mut terminals {
            if !terminal.take_messages(name).await? {
                over.push(name.clone());
            }
        }
        over.iter().for_each(|name| drop(terminals.remove(name)));
    }
}

/// One terminal's connection to the daemon.
struct Terminal {
    seat: Arc<Seat>,
    client: Arc<Client>,
    writer: OwnedWriteHalf,
    /// Passes on what the daemon says.
    down: tokio::task::JoinHandle<()>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.down.abort();
    }
}

impl Terminal {
    async fn open(
        name: &str,
        seat: Arc<Seat>,
        client: Arc<Client>,
        runtime: &Path,
    ) -> io::Result<Self> {
        let mut stream = UnixStream::connect(runtime.join("socket")).await?;
        let token = std::fs::read_to_string(runtime.join("token"))?;
        stream.write_all(&Hello::own().to_bytes()).await?;
        let mut bytes = [0; HELLO_BYTES];
        stream.read_exact(&mut bytes).await?;
        Hello::from_bytes(&bytes).and_then(|hello| hello.check()).map_err(io::Error::other)?;
        let (build, token) = (protocol::BUILD_ID.to_owned(), token.trim().to_owned());
        stream.write_all(&bytes_of(&FromClient::Hello { token, build })?).await?;
        let mut joiner = MessageJoiner::new(ClientLink::MESSAGE_CAP);
        let mut buffer = vec![0; 4096];
        let welcome = loop {
            if let Some(message) = joiner.next_message().map_err(io::Error::other)? {
                break codec::decode::<ToClient>(&message.body.ok_or(io::ErrorKind::InvalidData)?);
            }
            match stream.read(&mut buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => joiner.push(&buffer[..length]),
            }
        };
        if !matches!(welcome.map_err(io::Error::other)?, ToClient::Welcome { .. }) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (reader, writer) = stream.into_split();
        let down = tokio::spawn(pass_down(
            reader,
            Arc::clone(&client),
            seat.lease.clone(),
            name.to_owned(),
        ));
        Ok(Self { seat, client, writer, down })
    }

    /// Passes the terminal's messages on. False if it is over.
    async fn take_messages(&mut self, name: &str) -> io::Result<bool> {
        if self.seat.is_lost() || self.down.is_finished() {
            return Ok(false);
        }
        let take = "select bytes from agentd.relay_take($1::text::uuid, 'up')";
        let rows = self.client.query(take, &[&name]).await.map_err(io::Error::other)?;
        for row in rows {
            let body: Vec<u8> = row.try_get(0).map_err(io::Error::other)?;
            if body.is_empty() {
                return Ok(false);
            }
            let Ok(word) = codec::decode::<FromClient>(&body) else { return Ok(false) };
            let Some(word) = permitted(word, &self.seat.session) else {
                tracing::warn!(session = self.seat.session, "a terminal said what it may not say");
                return Ok(false);
            };
            if self.writer.write_all(&bytes_of(&word)?).await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The message, if it concerns this session alone. An `Open` is replaced by one that joins the session.
fn permitted(word: FromClient, of: &str) -> Option<FromClient> {
    // Sub-agents' sessions are named after their parent's.
    let is_below = |session: &SessionId| session.0.starts_with(&format!("{of}-"));
    let allowed = match &word {
        FromClient::Open(opening) => {
            return Some(FromClient::Open(joining(of, opening.project.clone())));
        }
        FromClient::Ping(_) => true,
        FromClient::Attach { session, .. }
        | FromClient::Detach { session }
        | FromClient::Page { session, .. }
        | FromClient::Query { session, .. }
        | FromClient::Prompt { session, .. }
        | FromClient::Interrupt { session }
        | FromClient::Wish { session, .. }
        | FromClient::TakeBack { session, .. } => session.0 == of,
        // Rights on the host are for its own people.
        FromClient::Change { session, change } => session.0 == of && gives_no_right(change),
        FromClient::Answer { call, .. } => call.session.0 == of || is_below(&call.session),
        FromClient::Hello { .. }
        | FromClient::List
        | FromClient::End { .. }
        | FromClient::Remove { .. }
        | FromClient::Restart { .. }
        | FromClient::Ps
        | FromClient::Status
        | FromClient::Shutdown { .. } => false,
    };
    allowed.then_some(word)
}

/// True for a setting that gives calls no more rights.
fn gives_no_right(change: &SettingChange) -> bool {
    match change {
        SettingChange::Model(_)
        | SettingChange::Pin(_)
        | SettingChange::Unpin(_)
        | SettingChange::CostLimit(_) => true,
        SettingChange::Network(_)
        | SettingChange::Host(_)
        | SettingChange::Mode(_)
        | SettingChange::AddDirectory(_)
        | SettingChange::AppendedSystem(_)
        | SettingChange::Flag(..) => false,
    }
}

fn joining(session: &str, project: protocol::confinement::FilePath) -> SessionRequest {
    let session = SessionId(session.to_owned());
    SessionRequest {
        project,
        added: Vec::new(),
        start: SessionStart::Resume { session, open_turn: OpenTurn::GoesOn },
        env: Vec::new(),
        settings: Vec::new(),
        mode: None,
        network: None,
        trust: ProjectTrust::AsRecorded,
        audience: Audience::Person,
        papers: Vec::new(),
        uncaged: Unsandboxed::Refused,
        conversation: ConversationFlags::default(),
        agents: None,
        seat: None,
    }
}

async fn pass_down(
    mut reader: tokio::net::unix::OwnedReadHalf,
    client: Arc<Client>,
    lease: String,
    terminal: String,
) {
    let (mut buffer, mut n) = (vec![0; 256 << 10], 0_i64);
    loop {
        let length = reader.read(&mut buffer).await.unwrap_or_default();
        let bytes = &buffer[..length];
        let down = "select agentd.relay_down($1::text::uuid, $2::text::uuid, $3, $4)";
        let sent = client.execute(down, &[&lease, &terminal, &n, &bytes]).await;
        if length == 0 || sent.is_err() {
            return;
        }
        n += 1;
        // What comes meanwhile goes together.
        tokio::time::sleep(PACE).await;
    }
}

fn bytes_of(word: &FromClient) -> io::Result<Vec<u8>> {
    let body = codec::encode(word).map_err(io::Error::other)?;
    Ok(ipc::frames(Generation(0), 0, &body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::client::{OnUnfinished, SessionEnding};

    #[test]
    fn a_terminal_speaks_of_its_session_only() {
        let session = |name: &str| SessionId(name.to_owned());
        let own = FromClient::Interrupt { session: session("s1") };
        assert_eq!(permitted(own.clone(), "s1"), Some(own.clone()));
        assert_eq!(permitted(own, "s2"), None);
        for word in [
            FromClient::List,
            FromClient::Ps,
            FromClient::Shutdown { unfinished: OnUnfinished::Refuse },
            FromClient::Remove { session: session("s1") },
            FromClient::End { session: session("s1"), ending: SessionEnding::Kill },
        ] {
            assert_eq!(permitted(word, "s1"), None);
        }
    }

    #[test]
    fn an_opening_becomes_one_that_joins_the_session() {
        let wanted = SessionRequest {
            start: SessionStart::New,
            uncaged: Unsandboxed::Accepted,
            trust: ProjectTrust::ThisRun,
            ..joining("other", "/p".into())
        };
        let opened = permitted(FromClient::Open(wanted), "s1");
        assert_eq!(opened, Some(FromClient::Open(joining("s1", "/p".into()))));
    }
}
