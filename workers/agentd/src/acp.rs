//! `agentd acp`: an editor drives sessions of the daemon over standard input and output, by the Agent Client Protocol.
//!
//! One thread reads lines, one follows each session, and this one answers: all decisions are in the crate `acp`. When
//! the editor goes, its sessions go on in the daemon.

use crate::cli::SessionFlags;
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::{CliContext, TrustFlag, real_dir};
use crate::daemon;
use crate::handed_servers;
use crate::open_request::{KeyNeed, open_request};
use crate::program_input::{ProgramText, own_input, read_lines};
use crate::session_commands;
use crate::sessions;
use acp::{
    CancelParams, CloseParams, ConfigParams, EditorOutput, Incoming, InitializeParams, ListParams,
    LoadParams, ModeParams, NewParams, OpenedAs, PromptParams, Reply, RpcError, SessionView,
    error_line, read, result_line,
};
use client::{LiveEvent, LiveFrom, LiveReceiver, LiveSender, live, live_queue, sibling_executable};
use config::UiBusy;
use jiff::Timestamp;
use protocol::client::{SessionEnding, SessionRow, SessionStart, WhileBusy};
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use protocol::session::OpenTurn;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

/// The version of the protocol that is spoken.
const VERSION: u16 = 1;
/// How long the last words of an editor may take to reach their sessions.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What this command waits for.
// Each is moved once.
#[allow(clippy::large_enum_variant)]
enum AcpInput {
    Text(ProgramText),
    /// Something happened in a session.
    Live(u32, LiveEvent),
    /// A session is not followed any more.
    Over(u32, Option<RpcError>),
    /// The answer to a request that took time.
    Answer(Value),
}

impl From<ProgramText> for AcpInput {
    fn from(text: ProgramText) -> Self {
        Self::Text(text)
    }
}

/// Serves the editor until it goes.
pub(crate) fn main(flags: &SessionFlags) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    context.writable_state()?;
    // Unbounded: a thread that follows a session must never wait for this one, which sends to it.
    let (sender, inputs) = mpsc::channel();
    let (lines, input) = (sender.clone(), own_input()?);
    std::thread::spawn(move || read_lines(input, &lines));
    let mut editor =
        Editor { context, flags, sender, initialized: None, followed: Vec::new(), opened: 0 };
    for input in &inputs {
        match editor.take(input) {
            Ok(Going::On) => {}
            // Done, or nobody reads any more.
            Ok(Going::Ends) | Err(_) => break,
        }
    }
    // What was sent to the sessions goes first, unless one is stuck.
    editor.followed.iter().for_each(|followed| followed.sender.leave());
    let until = Instant::now() + LAST_WORDS;
    while !editor.followed.is_empty() {
        match inputs.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(AcpInput::Over(key, _)) => editor.followed.retain(|followed| followed.key != key),
            Ok(AcpInput::Text(_) | AcpInput::Live(..) | AcpInput::Answer(_)) => {}
            Err(_) => break,
        }
    }
    Ok(CliExit::Done)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Going {
    On,
    Ends,
}

/// The connection to an editor.
struct Editor<'a> {
    context: CliContext,
    flags: &'a SessionFlags,
    sender: Sender<AcpInput>,
    /// What the editor can do, once it has said so.
    initialized: Option<InitializeParams>,
    followed: Vec<Followed>,
    /// How many sessions were opened.
    opened: u32,
}

/// A session that the editor has open.
struct Followed {
    key: u32,
    /// Its ID; absent while a new one is opened.
    session: Option<SessionId>,
    view: SessionView,
    sender: LiveSender,
}

impl Editor<'_> {
    fn take(&mut self, input: AcpInput) -> io::Result<Going> {
        match input {
            AcpInput::Text(ProgramText::Eof) => return Ok(Going::Ends),
            AcpInput::Text(ProgramText::TooLong(most)) => {
                let error = RpcError::parse(format!("a line has more than {} MiB", most >> 20));
                write(&error_line(&Value::Null, &error))?;
            }
            AcpInput::Text(ProgramText::Line(line)) => match Incoming::read(&line) {
                Ok(incoming) => self.incoming(incoming)?,
                Err((id, error)) => write(&error_line(&id, &error))?,
            },
            AcpInput::Answer(line) => write(&line)?,
            AcpInput::Live(key, event) => {
                let Some(place) = self.place(key) else { return Ok(Going::On) };
                let outputs = self.followed[place].view.happened(event);
                let session = self.followed[place].view.session().cloned();
                self.followed[place].session = session.or(self.followed[place].session.take());
                self.perform(place, outputs)?;
            }
            AcpInput::Over(key, error) => {
                let Some(place) = self.place(key) else { return Ok(Going::On) };
                let mut followed = self.followed.remove(place);
                for output in followed.view.ended(error.as_ref()) {
                    if let EditorOutput::Line(line) = output {
                        write(&line)?;
                    }
                }
            }
        }
        Ok(Going::On)
    }

    fn place(&self, key: u32) -> Option<usize> {
        self.followed.iter().position(|followed| followed.key == key)
    }

    /// The session of this ID, among those that are open here.
    fn open(&self, session: &str) -> Result<usize, RpcError> {
        let is_it =
            |followed: &Followed| followed.session.as_ref().is_some_and(|it| it.0 == session);
        self.followed.iter().position(is_it).ok_or_else(|| {
            RpcError::not_found(format!(
                "session {session:?} is not open here; session/load opens one of an earlier time"
            ))
        })
    }

    fn perform(&mut self, place: usize, outputs: Vec<EditorOutput>) -> io::Result<()> {
        for output in outputs {
            match output {
                EditorOutput::Line(line) => write(&line)?,
                // If it is not followed any more, its end comes next and answers.
                EditorOutput::Send(word) => drop(self.followed[place].sender.send(*word)),
                EditorOutput::Leave => {
                    self.followed.remove(place).sender.leave();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn incoming(&mut self, incoming: Incoming) -> io::Result<()> {
        match incoming {
            Incoming::Request { id, method, params } => {
                if let Err(error) = self.request(&id, &method, params)? {
                    write(&error_line(&id, &error))?;
                }
            }
            Incoming::Notification { method, params } => {
                // Others need no answer and change nothing.
                if method == "session/cancel"
                    && let Ok(CancelParams { session_id }) = read(&method, params)
                    && let Ok(place) = self.open(&session_id)
                {
                    let outputs = self.followed[place].view.cancel(&session_id);
                    self.perform(place, outputs)?;
                }
            }
            Incoming::Reply { id, result } => {
                let id = id.as_str().unwrap_or_default();
                let reply = Reply::read(result);
                for place in 0..self.followed.len() {
                    if let Some(outputs) = self.followed[place].view.reply(id, reply.clone()) {
                        self.perform(place, outputs)?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Carries a request out, or says why not.
    fn request(
        &mut self,
        id: &Value,
        method: &str,
        params: Value,
    ) -> io::Result<Result<(), RpcError>> {
        if self.initialized.is_none() && method != "initialize" {
            return Ok(Err(RpcError::invalid("the first request must be initialize")));
        }
        let done = match method {
            "initialize" => read::<InitializeParams>(method, params).map(|params| {
                let answer = initialized(&params);
                self.initialized = Some(params);
                Some(answer)
            }),
            // A person logs in at a terminal; each session reads the key anew.
            "authenticate" => Ok(Some(json!({}))),
            "session/new" => read(method, params)
                .and_then(|params: NewParams| self.new_session(id, &params))
                .map(|()| None),
            "session/load" | "session/resume" => read(method, params)
                .and_then(|params: LoadParams| {
                    let (opened, from) = match method {
                        "session/load" => (OpenedAs::Loaded(id.clone()), LiveFrom::Beginning),
                        _ => (OpenedAs::Resumed(id.clone()), LiveFrom::Now),
                    };
                    self.open_earlier(opened, from, &params)
                })
                .map(|()| None),
            "session/list" => read(method, params).map(|params: ListParams| {
                self.list(id, params);
                None
            }),
            "session/delete" => read(method, params)
                .and_then(|CloseParams { session_id }| self.delete(id, &session_id))
                .map(|()| None),
            _ => return self.of_session(id, method, params),
        };
        match done {
            Ok(Some(answer)) => write(&result_line(id, &answer)).map(Ok),
            Ok(None) => Ok(Ok(())),
            Err(error) => Ok(Err(error)),
        }
    }

    /// A request about a session that is open here.
    fn of_session(
        &mut self,
        id: &Value,
        method: &str,
        params: Value,
    ) -> io::Result<Result<(), RpcError>> {
        let found = match method {
            "session/prompt" => read(method, params).and_then(|params: PromptParams| {
                let (place, words) = (self.open(&params.session_id)?, params.words()?);
                let view = &mut self.followed[place].view;
                Ok((place, view.prompt(id.clone(), &params.session_id, words)))
            }),
            "session/set_mode" => read(method, params).and_then(|params: ModeParams| {
                let place = self.open(&params.session_id)?;
                Ok((place, self.followed[place].view.set_mode(id.clone(), &params.mode_id)))
            }),
            "session/set_config_option" => read(method, params).and_then(|params: ConfigParams| {
                let place = self.open(&params.session_id)?;
                let ConfigParams { config_id, value, .. } = params;
                Ok((place, self.followed[place].view.set_option(id.clone(), &config_id, &value)))
            }),
            "session/close" => read(method, params).and_then(|CloseParams { session_id }| {
                let place = self.open(&session_id)?;
                Ok((place, self.followed[place].view.close(id, &session_id)))
            }),
            _ => Err(RpcError::no_method(method)),
        };
        match found {
            Ok((place, outputs)) => self.perform(place, outputs).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    fn new_session(&mut self, id: &Value, params: &NewParams) -> Result<(), RpcError> {
        let project = absolute(&params.cwd)?;
        let opened = OpenedAs::New(id.clone());
        self.follow(opened, LiveFrom::Now, SessionStart::New, (&project, params), None);
        Ok(())
    }

    fn open_earlier(
        &mut self,
        opened: OpenedAs,
        from: LiveFrom,
        params: &LoadParams,
    ) -> Result<(), RpcError> {
        let session = self.known(&params.session_id)?;
        let header = journal::header(&sessions::directory(&self.context, &session));
        let header = header.map_err(|error| RpcError::internal(error.to_string()))?;
        let project = absolute(&params.opening.cwd)?;
        if project != header.project.0 {
            return Err(RpcError::params(format!(
                "session {session} belongs to {}, not to {}",
                header.project.0.display(),
                project.display()
            )));
        }
        // An editor that opens it again starts over.
        if let Ok(place) = self.open(&session.0) {
            let mut before = self.followed.remove(place);
            let why = RpcError::internal("the session was opened again");
            for output in before.view.ended(Some(&why)) {
                if let EditorOutput::Line(line) = output {
                    let _ = self.sender.send(AcpInput::Answer(line));
                }
            }
            before.sender.leave();
        }
        let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::GoesOn };
        self.follow(opened, from, start, (&project, &params.opening), Some(session));
        Ok(())
    }

    /// A session of this ID, which is on disk.
    fn known(&self, session: &str) -> Result<SessionId, RpcError> {
        let all = journal::sessions(&self.context.sessions_dir()).unwrap_or_default();
        match all.iter().any(|known| known == session) {
            true => Ok(SessionId(session.to_owned())),
            false => Err(RpcError::not_found(format!("there is no session {session:?}"))),
        }
    }

    /// Follows a session on a thread of its own, from its opening on.
    fn follow(
        &mut self,
        opened: OpenedAs,
        from: LiveFrom,
        start: SessionStart,
        (project, params): (&Path, &NewParams),
        session: Option<SessionId>,
    ) {
        let flags = SessionFlags {
            project: Some(project.to_owned()),
            add_dir: self
                .flags
                .add_dir
                .iter()
                .chain(&params.additional_directories)
                .cloned()
                .collect(),
            ..self.flags.clone()
        };
        let shown = project.display().to_string();
        let mut view = SessionView::new(
            opened,
            shown,
            busy(&self.context, project),
            self.initialized.as_ref(),
        );
        let (servers, refused) = params.mcp_servers.table();
        if !refused.is_empty() {
            view = view.with_note(format!(
                "not used: {}. agentd starts servers by a command, or asks them over HTTP",
                refused.join(", ")
            ));
        }
        self.opened += 1;
        let (key, inputs) = (self.opened, self.sender.clone());
        let (sender, receiver) = live_queue();
        std::thread::spawn(move || {
            let error =
                follow_session((key, &inputs), (flags, servers), start, receiver, from).err();
            let _ = inputs.send(AcpInput::Over(key, error.as_ref().map(rpc_error)));
        });
        self.followed.push(Followed { key, session, view, sender });
    }

    fn list(&self, id: &Value, ListParams { cwd }: ListParams) {
        // Sessions are listed by the real path of their project.
        let cwd = cwd.map(|cwd| cwd.canonicalize().unwrap_or(cwd));
        self.answer_later(id, move || {
            let context = CliContext::of_process()?;
            let is_wanted = |row: &SessionRow| {
                let project = row.project.to_path();
                row.parent.is_none() && cwd.as_ref().is_none_or(|cwd| *cwd == project)
            };
            let rows = sessions::rows(&context).into_iter().filter(is_wanted);
            Ok(json!({"sessions": rows.map(|row| shown_row(&row)).collect::<Vec<_>>()}))
        });
    }

    fn delete(&mut self, id: &Value, session: &str) -> Result<(), RpcError> {
        let session = self.known(session)?;
        if let Ok(place) = self.open(&session.0) {
            let mut followed = self.followed.remove(place);
            let why = RpcError::internal("the session was deleted");
            for output in followed.view.ended(Some(&why)) {
                if let EditorOutput::Line(line) = output {
                    let _ = self.sender.send(AcpInput::Answer(line));
                }
            }
            followed.sender.leave();
        }
        self.answer_later(id, move || {
            session_commands::end(&session.0, SessionEnding::Stop)?;
            session_commands::remove(&session.0).map(|_| json!({}))
        });
        Ok(())
    }

    /// Answers a request from a thread of its own, since it asks supervisors.
    fn answer_later(
        &self,
        id: &Value,
        ask: impl FnOnce() -> Result<Value, CliError> + Send + 'static,
    ) {
        let (id, inputs) = (id.clone(), self.sender.clone());
        std::thread::spawn(move || {
            let line = match ask() {
                Ok(answer) => result_line(&id, &answer),
                Err(error) => error_line(&id, &rpc_error(&error)),
            };
            let _ = inputs.send(AcpInput::Answer(line));
        });
    }
}

fn follow_session(
    (key, inputs): (u32, &Sender<AcpInput>),
    (mut flags, servers): (SessionFlags, Map<String, Value>),
    start: SessionStart,
    receiver: LiveReceiver,
    from: LiveFrom,
) -> Result<(), CliError> {
    let mut context = CliContext::of_process()?;
    flags.conversation.servers = handed_servers::hand(servers, &mut context);
    let need = match start {
        SessionStart::New => KeyNeed::Always,
        SessionStart::Resume { .. } | SessionStart::Fork { .. } | SessionStart::Seat { .. } => {
            KeyNeed::WhereSet
        }
    };
    let session = open_request(&context, &flags, start, Audience::Person, need)?;
    let executable = sibling_executable("agentd-supervisor")?;
    let mut daemon = daemon::of(&context, &executable)?;
    // A daemon that refuses this client fails here, with the full reason.
    drop(daemon.find_or_start()?);
    let mut sink = |event| {
        // This command ends.
        let _ = inputs.send(AcpInput::Live(key, event));
    };
    live(&mut daemon, session, receiver, from, &mut sink)
        .map_err(|error| crate::run::failure(&client::RunFailure { session: None, error }))
}

/// What this agent can do.
fn initialized(params: &InitializeParams) -> Value {
    let setup = json!({
        "type": "terminal",
        "id": "setup",
        "name": "Vendor and key",
        "description": "Asks at a terminal for the vendor of the model and your key, and writes them into your configuration",
        "args": ["--setup"],
    });
    let methods = if params.has_terminal() { vec![setup] } else { Vec::new() };
    json!({
        "protocolVersion": VERSION,
        "agentInfo": {"name": "agentd", "title": "agentd", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities": {
                "list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {},
            },
        },
        "authMethods": methods,
    })
}

fn shown_row(row: &SessionRow) -> Value {
    let title = if row.name.is_empty() { &row.title } else { &row.name };
    let last = i64::try_from(row.last).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    json!({
        "sessionId": row.session.0,
        "cwd": row.project.to_path(),
        "title": title,
        "updatedAt": last.map(|last| last.to_string()),
    })
}

/// The real path of a directory that the editor names.
fn absolute(named: &Path) -> Result<PathBuf, RpcError> {
    if !named.is_absolute() {
        return Err(RpcError::params(format!(
            "cwd must be an absolute path, not {}",
            named.display()
        )));
    }
    real_dir(named, "the project directory").map_err(|error| RpcError::params(error.message()))
}

/// What becomes of a prompt while a turn runs. A configuration that cannot be read fails when the session is opened.
fn busy(context: &CliContext, project: &Path) -> WhileBusy {
    match context.load(project, &[], TrustFlag::NotGiven).map(|config| config.ui.busy) {
        Ok(UiBusy::Queue) => WhileBusy::Queue,
        Ok(UiBusy::Steer) | Err(_) => WhileBusy::Steer,
    }
}

fn rpc_error(error: &CliError) -> RpcError {
    let text = error.to_string();
    match error.code() {
        CliExit::KeyRefused => RpcError::no_key(text),
        CliExit::Usage => RpcError::params(text),
        CliExit::Done
        | CliExit::Failed
        | CliExit::Detached
        | CliExit::ApprovalNeeded
        | CliExit::SandboxUnavailable
        | CliExit::BudgetUsedUp
        | CliExit::ProviderUnreachable
        | CliExit::SupervisorUnreachable
        | CliExit::Configuration
        | CliExit::ProcessDied
        | CliExit::AnswerMisfit
        | CliExit::Findings
        | CliExit::SessionLocked
        | CliExit::TimeLimit
        | CliExit::Interrupted
        | CliExit::Terminated => RpcError::internal(text),
    }
}

fn write(line: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}
