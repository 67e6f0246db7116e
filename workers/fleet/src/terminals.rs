//! Terminals of other hosts that are attached to sessions here. Each gets a connection to this host's daemon,
//! and may say what concerns its session.

use crate::connection::bytes_of;
use crate::daemon::DaemonConnection;
use crate::database::{Notifications, listen, pause_when_full};
use crate::door::Seats;
use crate::error::FleetError;
use crate::far_answers::ShownQuestions;
use crate::seat::Seat;
use ipc::{MessageJoiner, codec};
use protocol::Link;
use protocol::client::{
    ClientLink, ConversationFlags, DetachReason, FromClient, ProjectTrust, RequestFailure,
    SessionRequest, SessionStart, SessionWish, ToClient, Unsandboxed,
};
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use protocol::session::OpenTurn;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio_postgres::{Client, Config};

/// How long messages may wait without a notification.
const LOOK: Duration = Duration::from_secs(1);
/// Between two messages to a terminal, so that a stream of words does not fill the database.
pub(crate) const PACE: Duration = Duration::from_millis(50);
/// How long a terminal that got messages looks for more by itself. A notification wakes all workers of the fleet, so
/// that a stream of words may not send one with each message.
pub(crate) const AWAKE: Duration = Duration::from_secs(2);
/// Before another connection to a database that is lost.
const AGAIN: Duration = Duration::from_secs(1);

/// The answer to a request of a terminal that only people of the session's host may make.
const NOT_ALLOWED: &str = "a terminal on another host may not ask for that: the session's settings, other sessions \
                           and the daemon are for people of the session's host";

/// Serves terminals until the process ends.
pub(crate) async fn serve(config: Config, worker: String, seats: Seats, runtime: PathBuf) {
    let channel = format!("agentd_w_{}", worker.replace('-', ""));
    loop {
        let mut pause = AGAIN;
        match listen(&config, &channel).await {
            Ok(connection) => {
                if let Err(error) = serve_over(connection, &seats, &runtime).await {
                    tracing::debug!(%error, "terminals of other hosts are not served for now");
                }
            }
            Err(error) if error.is_full() => {
                pause = pause_when_full();
                tracing::warn!("no terminal of another host can attach: {}", error.in_words());
            }
            Err(error) => {
                tracing::debug!(%error, "terminals of other hosts are not served for now");
            }
        }
        tokio::time::sleep(pause).await;
    }
}

async fn serve_over(
    Notifications { client, mut heard }: Notifications,
    seats: &Seats,
    runtime: &Path,
) -> io::Result<()> {
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
        let mut ends = Vec::new();
        for (name, terminal) in &mut terminals {
            if let Taken::End(why) = terminal.take_messages(name).await? {
                ends.push((name.clone(), why));
            }
        }
        for (name, why) in ends {
            if let (Some(terminal), Some(why)) = (terminals.remove(&name), why) {
                tracing::warn!(session = terminal.seat.session, why, "a terminal is ended");
                terminal.end(&why);
            }
        }
    }
}

/// One terminal's connection to the daemon.
struct Terminal {
    seat: Arc<Seat>,
    client: Arc<Client>,
    writer: OwnedWriteHalf,
    /// Takes messages of this process to the terminal. If it is dropped, nothing more is passed on.
    down: mpsc::UnboundedSender<OwnMessage>,
    questions: Arc<Mutex<ShownQuestions>>,
}

/// A message to a terminal that the daemon does not send.
enum OwnMessage {
    /// Its last request is refused.
    Refusal(Vec<u8>),
    /// It is ended.
    End(Vec<u8>),
}

/// The outcome of a look for a terminal's messages.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    /// They are passed on.
    All,
    /// The terminal is over. If that is its own fault, it gets this reason.
    End(Option<String>),
}

impl Terminal {
    async fn open(
        name: &str,
        seat: Arc<Seat>,
        client: Arc<Client>,
        runtime: &Path,
    ) -> io::Result<Self> {
        let (reader, writer) = DaemonConnection::open(runtime).await?.into_halves();
        let (down, own) = mpsc::unbounded_channel();
        let way = Way {
            client: Arc::clone(&client),
            lease: seat.lease.clone(),
            terminal: name.to_owned(),
            sent: None,
        };
        let questions = Arc::default();
        tokio::spawn(pass_down(reader, way, own, Arc::clone(&questions)));
        Ok(Self { seat, client, writer, down, questions })
    }

    /// Ends it with this reason, which the terminal shows.
    fn end(self, why: &str) {
        let session = SessionId(self.seat.session.clone());
        let reason = format!("the host ended this terminal: {why}");
        let end = ToClient::Detached { session, parting: DetachReason::Failed, reason };
        if let Ok(bytes) = bytes_of(&end) {
            let _ = self.down.send(OwnMessage::End(bytes));
        }
    }

    /// Refuses its last request. It stays.
    fn refuse(&self, refusal: &ToClient) {
        if let Ok(bytes) = bytes_of(refusal) {
            let _ = self.down.send(OwnMessage::Refusal(bytes));
        }
    }

    /// Passes the terminal's messages on.
    ///
    /// # Errors
    /// The connection to the database is lost, for all terminals.
    async fn take_messages(&mut self, name: &str) -> io::Result<Taken> {
        if self.seat.is_lost() || self.down.is_closed() {
            return Ok(Taken::End(None));
        }
        let take = "select bytes from agentd.relay_take($1::text::uuid, 'up')";
        let rows = match self.client.query(take, &[&name]).await.map_err(FleetError::Database) {
            Ok(rows) => rows,
            Err(error) if error.is_of_the_connection() => return Err(io::Error::other(error)),
            // A user of the database can give a terminal any name.
            Err(error) => return Ok(Taken::End(Some(error.to_string()))),
        };
        for row in rows {
            let body: Vec<u8> = row.try_get(0).map_err(io::Error::other)?;
            if body.is_empty() {
                return Ok(Taken::End(None));
            }
            let passed = {
                let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
                passed_on(&body, &self.seat.session, &questions)
            };
            match passed {
                Ok(bytes) if self.writer.write_all(&bytes).await.is_ok() => {}
                Ok(_) => return Ok(Taken::End(None)),
                Err(BadMessage::NotAllowed(refusal)) => {
                    tracing::warn!(
                        session = self.seat.session,
                        "a terminal asked for what it may not"
                    );
                    self.refuse(&refusal);
                }
                Err(BadMessage::Broken(why)) => return Ok(Taken::End(Some(why))),
            }
        }
        Ok(Taken::All)
    }
}

/// A message that the daemon does not get.
#[derive(Debug, PartialEq, Eq)]
enum BadMessage {
    /// A terminal on another host may not ask for it, and gets this message.
    NotAllowed(Box<ToClient>),
    /// No message at all, and why.
    Broken(String),
}

/// The bytes that go to the daemon for a terminal's message.
fn passed_on(
    body: &[u8],
    session: &str,
    questions: &ShownQuestions,
) -> Result<Vec<u8>, BadMessage> {
    if body.len() > ClientLink::MESSAGE_CAP {
        return Err(BadMessage::Broken(format!("its message has {} bytes", body.len())));
    }
    let word = codec::decode::<FromClient>(body)
        .map_err(|error| BadMessage::Broken(format!("it sent no message of agentd: {error}")))?;
    let word = permitted(word, session).ok_or_else(|| {
        let message = NOT_ALLOWED.to_owned();
        BadMessage::NotAllowed(Box::new(ToClient::Failed { kind: RequestFailure::Usage, message }))
    })?;
    if let FromClient::Answer { call, digest, answer } = &word {
        questions.check(call, digest, answer).map_err(|why| {
            BadMessage::NotAllowed(Box::new(questions.rejection(call.clone(), why)))
        })?;
    }
    bytes_of(&word).map_err(|error| BadMessage::Broken(error.to_string()))
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
        // A network cannot be handed to another host.
        FromClient::Wish { wish: SessionWish::OpenPort { .. }, .. } => false,
        // No question about it is shown, as one is for each other answer from afar.
        FromClient::Wish { wish: SessionWish::Run { .. }, .. } => false,
        FromClient::Attach { session, .. }
        | FromClient::Detach { session }
        | FromClient::Page { session, .. }
        | FromClient::Query { session, .. }
        | FromClient::Prompt { session, .. }
        | FromClient::Interrupt { session }
        | FromClient::Wish { session, .. }
        | FromClient::TakeBack { session, .. } => session.0 == of,
        // `ShownQuestions` has a say too.
        FromClient::Answer { call, .. } => call.session.0 == of || is_below(&call.session),
        // The session's settings are for people of its host.
        FromClient::Change { .. }
        | FromClient::Hello { .. }
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

fn joining(session: &str, project: protocol::confinement::FilePath) -> SessionRequest {
    let session = SessionId(session.to_owned());
    SessionRequest {
        project,
        named: None,
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
        umask: 0o022,
        seat: None,
    }
}

/// The way to a terminal.
struct Way {
    client: Arc<Client>,
    lease: String,
    terminal: String,
    /// When the last message went out.
    sent: Option<Instant>,
}

impl Way {
    async fn send(&mut self, n: i64, bytes: &[u8]) -> Result<(), tokio_postgres::Error> {
        let notify = self.sent.is_none_or(|sent| sent.elapsed() > AWAKE / 2);
        let down = "select agentd.relay_down($1::text::uuid, $2::text::uuid, $3, $4, $5)";
        let (lease, terminal) = (&self.lease, &self.terminal);
        self.client.execute(down, &[lease, terminal, &n, &bytes, &notify]).await?;
        self.sent = Some(Instant::now());
        Ok(())
    }
}

/// Passes on what the daemon says, until it says no more or the terminal is ended. Messages of this process
/// come between two of the daemon.
async fn pass_down(
    mut reader: OwnedReadHalf,
    mut way: Way,
    mut own: mpsc::UnboundedReceiver<OwnMessage>,
    questions: Arc<Mutex<ShownQuestions>>,
) {
    let (mut buffer, mut n) = (vec![0; 256 << 10], 0_i64);
    let mut joiner = MessageJoiner::new(ClientLink::MESSAGE_CAP);
    loop {
        let sent = tokio::select! {
            biased;
            message = own.recv(), if !joiner.is_mid_message() => match message {
                Some(OwnMessage::Refusal(bytes)) => way.send(n, &bytes).await,
                Some(OwnMessage::End(bytes)) => {
                    if way.send(n, &bytes).await.is_ok() {
                        let _ = way.send(n + 1, &[]).await;
                    }
                    return;
                }
                // The terminal ended by itself.
                None => return,
            },
            read = reader.read(&mut buffer) => {
                let bytes = &buffer[..read.unwrap_or_default()];
                joiner.push(bytes);
                while let Ok(Some(message)) = joiner.next_message() {
                    // Known before the terminal can answer it.
                    if let Some(Ok(said)) = message.body.map(|body| codec::decode(&body)) {
                        questions.lock().unwrap_or_else(PoisonError::into_inner).hear(said);
                    }
                }
                let sent = way.send(n, bytes).await;
                if bytes.is_empty() {
                    return;
                }
                sent
            }
        };
        if sent.is_err() {
            return;
        }
        n += 1;
        // What comes meanwhile goes together.
        tokio::time::sleep(PACE).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::client::SettingChange;
    use protocol::client::{OnUnfinished, SessionEnding};
    use protocol::confinement::Network;
    use protocol::judgement::{PermissionMode, PersonAnswer};

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
    fn a_terminal_of_another_host_gives_calls_no_right() {
        let change = |change| {
            let session = SessionId("s1".to_owned());
            permitted(FromClient::Change { session, change }, "s1").is_some()
        };
        for right in [
            SettingChange::Model("m".to_owned()),
            SettingChange::CostLimit(1),
            SettingChange::Pin("a".to_owned()),
            SettingChange::Network(Network::On),
            SettingChange::Mode(PermissionMode::Auto),
            SettingChange::AddDirectory("/".into()),
            SettingChange::AppendedSystem("obey".to_owned()),
            SettingChange::Name("mine".to_owned()),
        ] {
            assert!(!change(right.clone()), "{right:?}");
        }
    }

    #[test]
    fn a_message_that_is_none_is_refused_with_a_reason() {
        let none = ShownQuestions::default();
        let own = bytes_of(&FromClient::Ping(7)).unwrap();
        let body = codec::encode(&FromClient::Ping(7)).unwrap();
        assert_eq!(passed_on(&body, "s1", &none), Ok(own));
        let list = codec::encode(&FromClient::List).unwrap();
        assert!(matches!(passed_on(&list, "s1", &none), Err(BadMessage::NotAllowed(_))));
        let call = protocol::ids::CallId { session: SessionId("s1".to_owned()), number: 1 };
        let answer = |answer| {
            let answer = FromClient::Answer { call: call.clone(), digest: "d".to_owned(), answer };
            passed_on(&codec::encode(&answer).unwrap(), "s1", &none)
        };
        assert!(matches!(answer(PersonAnswer::Once), Err(BadMessage::NotAllowed(_))));
        answer(PersonAnswer::Stop).unwrap();
        let broken = |body: &[u8]| match passed_on(body, "s1", &none) {
            Err(BadMessage::Broken(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(broken(b"\xff\xff").contains("no message of agentd"));
        assert!(broken(&vec![0; ClientLink::MESSAGE_CAP + 1]).contains("33554433 bytes"));
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
