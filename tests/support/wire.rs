//! A supervisor that a test starts by hand, and terminals that use its protocol: for tests with
//! more than one session, or with a session without a prompt.

use super::{Desk, processes};
use crate::support::anthropic::Server;
use ipc::{Receiver, Sender};
use protocol::client::{
    BacklogFrom, ClientEvent, ClientLink, ClientRights, FromClient, OtherClients, ProcessRow,
    ProjectTrust, SessionRequest, SessionStart, ToClient, WhileBusy,
};
use protocol::confinement::FilePath;
use protocol::ids::SessionId;
use protocol::judgement::{Audience, PermissionMode};
use protocol::provider::PassedFd;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Nothing in these tests takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A supervisor without a client of its own. It ends with its lifeline.
pub struct Supervisor {
    child: Child,
    lifeline: Option<UnixStream>,
    socket: PathBuf,
    token: String,
}

impl Supervisor {
    pub fn start(desk: &Desk) -> Self {
        Self::of(desk, Path::new(env!("CARGO_BIN_EXE_agentd-supervisor")))
    }

    /// The one with this executable, whose workers are beside it.
    pub fn of(desk: &Desk, executable: &Path) -> Self {
        super::needs("setsid");
        let like = desk.agentd(&[]);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut command = Command::new("setsid");
        command.arg(executable).arg("--private").current_dir(desk.project()).env_clear();
        command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        let child = command.spawn().expect("the supervisor starts");
        drop(command);
        let mut line = String::new();
        BufReader::new(&ours).read_line(&mut line).unwrap();
        let word: serde_json::Value = serde_json::from_str(&line).expect("its address");
        let path = |name: &str| PathBuf::from(word[name].as_str().expect("a path in its address"));
        let token = fs::read_to_string(path("token_file")).unwrap().trim().to_owned();
        Self { child, lifeline: Some(ours), socket: path("socket"), token }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn terminal(&self) -> Terminal {
        let socket = UnixStream::connect(&self.socket).expect("its door");
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let (words, say) = ipc::connect::<ClientLink>(socket).unwrap();
        let mut terminal = Terminal { words, say };
        let build = protocol::BUILD_ID.to_owned();
        terminal.say(&FromClient::Hello { token: self.token.clone(), build });
        let welcome = terminal.hear();
        assert!(matches!(welcome, ToClient::Welcome { .. }), "{welcome:?}");
        terminal
    }

    /// Waits for its end, however it was ended, and checks that no process of it is left.
    pub fn ended(mut self) -> ExitStatus {
        let status = self.wait();
        let session = self.child.id();
        let until = Instant::now() + PATIENCE;
        while processes().iter().any(|process| process.session == session) {
            let left = processes().into_iter().filter(|process| process.session == session);
            assert!(Instant::now() < until, "left behind: {:?}", left.collect::<Vec<_>>());
            std::thread::sleep(Duration::from_millis(5));
        }
        status
    }

    /// Ends it as its client's end would.
    pub fn end(mut self) -> ExitStatus {
        self.lifeline = None;
        self.ended()
    }

    fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status,
                None if Instant::now() > until => {
                    let _ = self.child.kill();
                    panic!("the supervisor did not end");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.lifeline = None;
        let until = Instant::now() + Duration::from_secs(8);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// One terminal, connected to a supervisor.
pub struct Terminal {
    words: Receiver<ToClient>,
    say: Sender<FromClient>,
}

impl Terminal {
    pub fn say(&self, word: &FromClient) {
        self.say.send(word).expect("the supervisor listens");
    }

    #[track_caller]
    pub fn hear(&mut self) -> ToClient {
        self.words.recv().expect("a word of the supervisor within 20 s")
    }

    /// The next message, or `None` once the supervisor is gone.
    pub fn hear_if_any(&mut self) -> Option<ToClient> {
        self.words.recv().ok()
    }

    /// Opens a non-interactive session and attaches with full rights.
    #[track_caller]
    pub fn open(&mut self, desk: &Desk, server: &Server, start: SessionStart) -> SessionId {
        match self.try_open(desk, server, start) {
            Ok(session) => session,
            Err(why) => panic!("not opened: {why}"),
        }
    }

    /// Opens a new session whose calls are asked about.
    #[track_caller]
    pub fn open_asking(&mut self, desk: &Desk, server: &Server) -> SessionId {
        self.opened(desk, server, SessionStart::New, (PermissionMode::Ask, Audience::Person))
            .expect("a session")
    }

    /// Opens a non-interactive session, or returns the reason of the failure.
    #[track_caller]
    pub fn try_open(
        &mut self,
        desk: &Desk,
        server: &Server,
        start: SessionStart,
    ) -> Result<SessionId, String> {
        self.opened(desk, server, start, (PermissionMode::Auto, Audience::NonInteractive))
    }

    /// Opens a non-interactive session and attaches from this event on.
    #[track_caller]
    pub fn open_from(
        &mut self,
        desk: &Desk,
        server: &Server,
        start: SessionStart,
        from: BacklogFrom,
    ) {
        let session =
            self.begun(desk, server, start, (PermissionMode::Auto, Audience::NonInteractive));
        self.attach(&session.expect("a session"), from);
    }

    #[track_caller]
    fn opened(
        &mut self,
        desk: &Desk,
        server: &Server,
        start: SessionStart,
        who: (PermissionMode, Audience),
    ) -> Result<SessionId, String> {
        let session = self.begun(desk, server, start, who)?;
        self.attach(&session, BacklogFrom::Seq(1));
        Ok(session)
    }

    #[track_caller]
    fn begun(
        &mut self,
        desk: &Desk,
        server: &Server,
        start: SessionStart,
        (mode, audience): (PermissionMode, Audience),
    ) -> Result<SessionId, String> {
        let env = [
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), desk.home().display().to_string()),
            ("ANTHROPIC_BASE_URL".to_owned(), server.url()),
            ("ANTHROPIC_API_KEY".to_owned(), "set".to_owned()),
        ];
        let mut key = tempfile::tempfile().unwrap();
        key.write_all(super::KEY.as_bytes()).unwrap();
        std::io::Seek::rewind(&mut key).unwrap();
        let project = fs::canonicalize(desk.project()).unwrap();
        self.say(&FromClient::Open(SessionRequest {
            project: FilePath::from(&project),
            named: None,
            added: Vec::new(),
            start,
            env: env.into(),
            settings: Vec::new(),
            mode: Some(mode),
            network: None,
            trust: ProjectTrust::AsRecorded,
            audience,
            papers: vec![PassedFd::Key],
            uncaged: protocol::client::Unsandboxed::Refused,
            conversation: protocol::client::ConversationFlags::default(),
            agents: None,
            umask: 0o022,
            seat: None,
        }));
        self.say.send_fd(key.as_fd()).unwrap();
        let word = self.hear();
        if let ToClient::Failed { message, .. } = word {
            return Err(message);
        }
        let ToClient::Opened { session, .. } = word else { panic!("{word:?}") };
        Ok(session)
    }

    pub fn attach(&self, session: &SessionId, from: BacklogFrom) {
        self.say(&FromClient::Attach {
            session: session.clone(),
            from,
            rights: ClientRights::Full,
            others: OtherClients::Stay,
        });
    }

    pub fn prompt(&self, session: &SessionId, text: &str) {
        self.say(&FromClient::Prompt {
            session: session.clone(),
            text: text.to_owned(),
            form: None,
            busy: WhileBusy::Queue,
        });
    }

    /// Sends words for the running turn.
    pub fn steer(&self, session: &SessionId, text: &str) {
        self.say(&FromClient::Prompt {
            session: session.clone(),
            text: text.to_owned(),
            form: None,
            busy: WhileBusy::Steer,
        });
    }

    /// The first event of that kind; earlier events are dropped.
    #[track_caller]
    pub fn event(&mut self, kind: impl Fn(&ClientEvent) -> bool) -> ClientEvent {
        loop {
            if let ToClient::Event { event, .. } = self.hear()
                && kind(&event)
            {
                return event;
            }
        }
    }

    /// Waits for the end of a turn.
    #[track_caller]
    pub fn turn_ends(&mut self) -> ClientEvent {
        self.event(|event| matches!(event, ClientEvent::TurnEnded { .. }))
    }

    #[track_caller]
    pub fn processes(&mut self) -> Vec<ProcessRow> {
        self.say(&FromClient::Ps);
        loop {
            if let ToClient::Processes(rows) = self.hear() {
                return rows;
            }
        }
    }

    /// The process id of a session's worker.
    #[track_caller]
    pub fn worker(&mut self, session: &SessionId, name: &str) -> u32 {
        let rows = self.processes();
        let of = |row: &&ProcessRow| row.worker == name && row.session.as_ref() == Some(session);
        rows.iter().find(of).unwrap_or_else(|| panic!("no {name} in {rows:?}")).pid
    }
}
