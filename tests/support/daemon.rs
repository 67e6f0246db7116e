//! A bare client of a supervisor, for tests that send and receive single messages.
#![allow(dead_code, clippy::unwrap_used)]

use ipc::{ChannelError, Receiver, Sender};
use nix::sys::memfd::{MFdFlags, memfd_create};
use protocol::client::{
    AnswerPart, BacklogFrom, ClientEvent, ClientLink, ClientRights, FromClient, OtherClients,
    ProjectTrust, SessionQuery, SessionRequest, SessionStart, ToClient, WhileBusy,
};
use protocol::confinement::FilePath;
use protocol::ids::{Generation, SessionId};
use protocol::judgement::{Audience, PermissionMode, Question};
use protocol::mcp::{ServerReport, ServerState};
use protocol::provider::PassedFd;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest wait for a message; only a machine in trouble takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A greeted connection.
pub struct Wire {
    words: Receiver<ToClient>,
    say: Sender<FromClient>,
    pub pid: u32,
    socket: UnixStream,
}

impl Wire {
    /// Connects to the supervisor whose socket and token are in this directory.
    pub fn to(door: &Path) -> Self {
        Self::try_to(door).unwrap()
    }

    pub fn try_to(door: &Path) -> Result<Self, ChannelError> {
        let socket = UnixStream::connect(door.join("socket"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let (mut words, say) = ipc::connect::<ClientLink>(socket.try_clone()?)?;
        let token = std::fs::read_to_string(door.join("token"))?;
        say.send(&FromClient::Hello { token, build: protocol::BUILD_ID.into() })?;
        match words.recv()? {
            ToClient::Welcome { pid, .. } => Ok(Self { words, say, pid, socket }),
            other => panic!("no welcome: {other:?}"),
        }
    }

    #[track_caller]
    pub fn say(&self, word: FromClient) {
        self.say.send(&word).unwrap();
    }

    /// The same, to a supervisor that may be gone.
    pub fn try_say(&self, word: FromClient) -> Result<(), ChannelError> {
        self.say.send(&word)
    }

    #[track_caller]
    pub fn hear(&mut self) -> ToClient {
        self.words.recv().unwrap()
    }

    pub fn try_hear(&mut self) -> Result<ToClient, ChannelError> {
        self.words.recv()
    }

    /// Sends a copy of the connection over this socket.
    pub fn lend(&self, to: &UnixStream) {
        ipc::fd::send(to.as_fd(), b"x", self.socket.as_fd()).unwrap();
    }

    /// True if no message comes within this time. A message that comes is dropped.
    pub fn silent_for(&mut self, time: Duration) -> bool {
        self.socket.set_read_timeout(Some(time)).unwrap();
        let silent = self.words.recv().is_err();
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }

    /// Receives messages until this closure returns a value for one.
    #[track_caller]
    pub fn until<T>(&mut self, what: &str, mut wanted: impl FnMut(&ToClient) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        while Instant::now() < until {
            match self.words.recv() {
                Ok(word) => {
                    if let Some(found) = wanted(&word) {
                        return found;
                    }
                    heard.push(word);
                }
                Err(error) => panic!("no {what}: {error}; received {heard:#?}"),
            }
        }
        panic!("no {what} in time; received {heard:#?}")
    }

    /// Receives messages until this closure returns a value for an event.
    #[track_caller]
    pub fn event<T>(&mut self, what: &str, mut wanted: impl FnMut(&ClientEvent) -> Option<T>) -> T {
        self.until(what, |word| match word {
            ToClient::Event { event, .. } => wanted(event),
            _ => None,
        })
    }

    /// Waits until each MCP server of the session is ready or has ended. Events meanwhile are dropped.
    #[track_caller]
    pub fn servers_ready(&mut self, session: &SessionId) {
        let is_settled = |report: &ServerReport| report.state != ServerState::Starts;
        loop {
            self.say(FromClient::Query { session: session.clone(), query: SessionQuery::Servers });
            let settled = self.until("the servers", |word| match word {
                ToClient::Servers { servers, .. } => {
                    // A test that then lacks a server's tool shows why.
                    println!(
                        "servers: {:?}",
                        servers.iter().map(|it| &it.state).collect::<Vec<_>>()
                    );
                    Some(!servers.is_empty() && servers.iter().all(is_settled))
                }
                _ => None,
            });
            if settled {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Receives messages until a question comes.
    #[track_caller]
    pub fn question(&mut self) -> Question {
        self.event("a question", |event| match event {
            ClientEvent::Asked { question } => Some(question.clone()),
            _ => None,
        })
    }

    #[track_caller]
    pub fn turn_ends(&mut self) {
        self.event("the turn's end", |event| {
            matches!(event, ClientEvent::TurnEnded { .. }).then_some(())
        });
    }

    /// Waits until this text of the model arrives, in one or several pieces.
    #[track_caller]
    pub fn model_text(&mut self, wanted: &str) {
        let mut text = String::new();
        self.event(&format!("the model's text {wanted:?}"), |event| {
            if let ClientEvent::Delta { part: AnswerPart::Text, text: more } = event {
                text.push_str(more);
            }
            text.contains(wanted).then_some(())
        });
    }

    /// Opens a session with a key, and attaches to it without its backlog.
    #[track_caller]
    pub fn open(&mut self, opening: &SessionRequest) -> SessionId {
        let (session, next) = self.opened(opening);
        self.attach(&session, BacklogFrom::Seq(next), ClientRights::Full);
        session
    }

    /// Opens a session with a key; its name and the number of the next event.
    #[track_caller]
    pub fn opened(&mut self, opening: &SessionRequest) -> (SessionId, u64) {
        self.open_with_key(opening);
        match self.hear() {
            ToClient::Opened { session, last_seq, .. } => (session, last_seq + 1),
            other => panic!("not opened: {other:?}"),
        }
    }

    /// Asks for a session, with a key.
    #[track_caller]
    pub fn open_with_key(&self, opening: &SessionRequest) {
        self.open_with(opening, super::KEY);
    }

    /// The same with another key.
    #[track_caller]
    pub fn open_with(&self, opening: &SessionRequest, words: &str) {
        self.say(FromClient::Open(opening.clone()));
        for paper in &opening.papers {
            assert_eq!(*paper, PassedFd::Key, "the only paper of these tests");
            self.say.send_fd(key(words).as_fd()).unwrap();
        }
    }

    /// Attaches, and returns the messages up to the end of the backlog.
    #[track_caller]
    pub fn attach(
        &mut self,
        session: &SessionId,
        from: BacklogFrom,
        rights: ClientRights,
    ) -> Vec<ToClient> {
        let (session, others) = (session.clone(), OtherClients::Stay);
        self.say(FromClient::Attach { session, from, rights, others });
        let mut before = Vec::new();
        self.until("Attached", |word| {
            before.push(word.clone());
            matches!(word, ToClient::Attached { .. }).then_some(())
        });
        before
    }

    #[track_caller]
    pub fn prompt(&self, session: &SessionId, text: &str) {
        self.say(FromClient::Prompt {
            session: session.clone(),
            text: text.into(),
            form: None,
            busy: WhileBusy::Queue,
        });
    }
}

/// Connects to a script's own supervisor and attaches to its session, read-only. A client gets the text
/// of an unfinished answer only while it is attached, so the model server calls this before it answers.
pub fn observer(desk: &super::Desk) -> impl Fn() -> Wire + Send + use<> {
    let (supervisors, sessions) = (desk.door(), desk.state().join("sessions"));
    move || {
        let first = |directory: &Path| std::fs::read_dir(directory).unwrap().next();
        let only = |directory: &Path| first(directory).expect("a run").unwrap();
        let mut wire = Wire::to(&only(&supervisors).path());
        let session = only(&sessions).file_name().into_string().unwrap();
        wire.attach(&SessionId(session), BacklogFrom::Seq(1), ClientRights::ReadOnly);
        wire
    }
}

/// The first bytes of a client that knows the token.
pub fn greeting(door: &Path) -> Vec<u8> {
    let token = std::fs::read_to_string(door.join("token")).unwrap();
    let hello = FromClient::Hello { token, build: protocol::BUILD_ID.into() };
    [ipc::Hello::own().to_bytes().to_vec(), bytes_of(&hello)].concat()
}

/// A message as it goes over the wire.
pub fn bytes_of(word: &FromClient) -> Vec<u8> {
    ipc::frames(Generation(0), 0, &ipc::codec::encode(word).unwrap())
}

/// A script that connects to a socket, sends the content of a file, and prints the number of bytes
/// received. It stops after more bytes than a Hello has, or at the end of the connection.
pub const PEER: &str = r#"import socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.settimeout(10)
heard = b""
try:
    peer.connect(sys.argv[1])
    peer.sendall(open(sys.argv[2], "rb").read())
    while len(heard) <= int(sys.argv[3]):
        more = peer.recv(65536)
        if not more:
            break
        heard += more
except OSError as error:
    print(error, file=sys.stderr)
print(len(heard))
"#;

/// A new session there, asked for as by a person at a terminal.
pub fn opening(project: &Path, env: &[(&str, &str)]) -> SessionRequest {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    SessionRequest {
        project: FilePath::from(project),
        named: None,
        added: Vec::new(),
        start: SessionStart::New,
        env: env.collect(),
        settings: Vec::new(),
        mode: Some(PermissionMode::Ask),
        network: None,
        trust: ProjectTrust::AsRecorded,
        audience: Audience::Person,
        papers: vec![PassedFd::Key],
        uncaged: protocol::client::Unsandboxed::Refused,
        conversation: protocol::client::ConversationFlags::default(),
        agents: None,
        umask: 0o022,
        seat: None,
    }
}

fn key(words: &str) -> OwnedFd {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"key", flags).unwrap());
    file.write_all(words.as_bytes()).unwrap();
    file.rewind().unwrap();
    file.into()
}
