//! `agentd sdk`, as `agentd-claude` calls it: a program drives one session over standard input and output, by the wire of
//! the Claude Agent SDKs. One thread reads lines, one follows the session, and this one answers: all decisions are in
//! the crate `sdk`.

use crate::answer_schema::AnswerSchema;
use crate::cli::{SdkFlags, SessionFlags};
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::{CliContext, real_dir};
use crate::daemon;
use crate::handed_servers;
use crate::open_request::{KeyNeed, open_request};
use crate::output::print;
use crate::program_input::{ProgramText, own_input, read_lines};
use crate::sessions;
use client::{
    AnswerCheck, LiveEvent, LiveFrom, LiveReceiver, LiveSender, live, live_queue,
    sibling_executable,
};
use protocol::client::{FromClient, SessionStart, SettingChange};
use protocol::judgement::Audience;
use protocol::session::OpenTurn;
use sdk::{
    ControlRequest, LastResult, PartialMessages, PermissionCallback, ProgramLine, ProgramOptions,
    ProgramOutput, ProgramView, ReplayedMessages,
};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

/// How a session's name begins that a program has given a name of its own.
const NAMED: &str = "session ";

/// What this command waits for.
// Each is moved once.
#[allow(clippy::large_enum_variant)]
enum SdkInput {
    Text(ProgramText),
    Live(LiveEvent),
    /// The session is not followed any more.
    Over(Result<(), CliError>),
}

impl From<ProgramText> for SdkInput {
    fn from(text: ProgramText) -> Self {
        Self::Text(text)
    }
}

/// Serves the program until it has said its last word and has its last answer.
pub(crate) fn main(flags: SdkFlags) -> Result<CliExit, CliError> {
    if flags.version {
        print(&format!("2.1.332 (agentd {})\n", env!("CARGO_PKG_VERSION")));
        return Ok(CliExit::Done);
    }
    flags.check()?;
    let context = CliContext::of_process()?;
    context.writable_state()?;
    let servers = flags.servers()?;
    let (options, start, followed_flags) = wanted(&context, flags)?;
    let named = options.shown_id.clone().filter(|_| matches!(start, SessionStart::New));
    let audience = match options.callback {
        PermissionCallback::Answers => Audience::Person,
        PermissionCallback::Absent => Audience::NonInteractive,
    };
    // Unbounded: the thread that follows the session must never wait for this one, which sends to it.
    let (inputs, received) = mpsc::channel();
    let (lines, input) = (inputs.clone(), own_input()?);
    std::thread::spawn(move || read_lines(input, &lines));
    let (sender, receiver) = live_queue();
    let mut program = Program {
        view: ProgramView::new(options, Box::new(new_uuid)),
        sender,
        begun: Instant::now(),
        named,
        opening: Some(Opening {
            flags: followed_flags,
            servers,
            start,
            audience,
            receiver,
            inputs,
        }),
        failed: None,
    };
    for input in received {
        match program.take(input) {
            Ok(Going::On) => {}
            // Done, or nobody reads any more.
            Ok(Going::Ends) | Err(_) => break,
        }
    }
    program.sender.leave();
    match (program.failed, program.view.last_result()) {
        (Some(failure), _) => Err(failure),
        (None, LastResult::Error) => Ok(CliExit::Failed),
        (None, LastResult::Good) => Ok(CliExit::Done),
    }
}

/// What the program wants, from its flags.
fn wanted(
    context: &CliContext,
    flags: SdkFlags,
) -> Result<(ProgramOptions, SessionStart, SessionFlags), CliError> {
    let form = flags.json_schema.as_deref().map(AnswerSchema::read).transpose()?;
    let form = form.map(|schema| Box::new(schema) as Box<dyn AnswerCheck>);
    let session = flags.session();
    let mut shown_id = flags.session_id.clone();
    let earlier = match (&flags.resume, flags.continue_newest) {
        (Some(id), _) => match sessions::by_name(context, &format!("{NAMED}{id}"))? {
            Some(session) => {
                shown_id.get_or_insert_with(|| id.clone());
                Some(session)
            }
            None => Some(sessions::named(context, id)?),
        },
        (None, true) => Some(sessions::newest_here(context, &session)?),
        (None, false) => None,
    };
    let start = match (earlier, flags.fork) {
        (Some(of), true) => {
            shown_id = flags.session_id;
            SessionStart::Fork { of, at: None }
        }
        (Some(session), false) => SessionStart::Resume { session, open_turn: OpenTurn::Waits },
        (None, _) => SessionStart::New,
    };
    let options = ProgramOptions {
        project: real_dir(Path::new("."), "the project directory")?,
        partial: match flags.include_partial_messages {
            true => PartialMessages::Told,
            false => PartialMessages::Left,
        },
        replay: match flags.replay_user_messages {
            true => ReplayedMessages::Told,
            false => ReplayedMessages::Left,
        },
        callback: match flags.permission_prompt_tool {
            Some(_) => PermissionCallback::Answers,
            None => PermissionCallback::Absent,
        },
        form,
        shown_id,
    };
    Ok((options, start, session))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Going {
    On,
    Ends,
}

/// The connection to a program.
struct Program {
    view: ProgramView,
    sender: LiveSender,
    begun: Instant,
    /// The program's own name of a new session, until the session has it.
    named: Option<String>,
    /// How the session is opened, until the program has said its first word.
    opening: Option<Opening>,
    /// Why the session is not followed any more.
    failed: Option<CliError>,
}

struct Opening {
    flags: SessionFlags,
    servers: Map<String, Value>,
    start: SessionStart,
    audience: Audience,
    receiver: LiveReceiver,
    inputs: Sender<SdkInput>,
}

impl Program {
    fn take(&mut self, input: SdkInput) -> io::Result<Going> {
        let outputs = match input {
            SdkInput::Text(ProgramText::Line(line)) => return self.line(&line),
            SdkInput::Text(ProgramText::TooLong(most)) => {
                complain(&format!("a line has more than {} MiB", most >> 20));
                return Ok(Going::On);
            }
            SdkInput::Text(ProgramText::Eof) => {
                if self.opening.is_some() {
                    self.failed =
                        Some(CliError::user("standard input was closed before initialize"));
                    return Ok(Going::Ends);
                }
                self.view.input_closed()
            }
            SdkInput::Live(event) => {
                if let LiveEvent::Opened { facts, .. } = &event {
                    facts.warnings.iter().for_each(|warning| complain(warning));
                    if let Some(id) = self.named.take() {
                        let change = SettingChange::Name(format!("{NAMED}{id}"));
                        let session = facts.session.clone();
                        let _ = self.sender.send(FromClient::Change { session, change });
                    }
                }
                let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.view.happened(event, now)
            }
            SdkInput::Over(result) => {
                let why = match &result {
                    Ok(()) => "the session was ended".to_owned(),
                    Err(failure) => failure.to_string(),
                };
                self.failed = result.err();
                self.view.ended(&why)
            }
        };
        self.perform(outputs)
    }

    fn line(&mut self, line: &str) -> io::Result<Going> {
        let outputs = match ProgramLine::read(line) {
            Ok(ProgramLine::Request { id, request: ControlRequest::Initialize(wanted) })
                if self.opening.is_some() =>
            {
                if let Some(why) = wanted.refused {
                    let refused = self.view.refused(&id, &why);
                    self.perform(vec![refused])?;
                    self.failed = Some(CliError::user(why));
                    return Ok(Going::Ends);
                }
                if let Some(opening) = &mut self.opening {
                    let conversation = &mut opening.flags.conversation;
                    conversation.agents = wanted.agents.or(conversation.agents.take());
                    conversation.append_system_prompt =
                        wanted.append_system.or(conversation.append_system_prompt.take());
                }
                self.view.set_hooks(wanted.hooks);
                self.open();
                vec![self.view.initialized(&id)]
            }
            Ok(ProgramLine::Request { id, request }) => self.view.request(id, request),
            Ok(ProgramLine::Reply { id, result }) => self.view.reply(&id, &result),
            Ok(ProgramLine::User(text)) => {
                // A program may say its prompt first.
                self.open();
                self.view.prompt(text)
            }
            Ok(ProgramLine::Nothing) => Vec::new(),
            Err(why) => {
                complain(&why);
                Vec::new()
            }
        };
        self.perform(outputs)
    }

    fn perform(&mut self, outputs: Vec<ProgramOutput>) -> io::Result<Going> {
        for output in outputs {
            match output {
                ProgramOutput::Line(line) => write(&line)?,
                // If it is not followed any more, its end comes next.
                ProgramOutput::Send(word) => drop(self.sender.send(*word)),
                ProgramOutput::Done => return Ok(Going::Ends),
            }
        }
        Ok(Going::On)
    }

    /// Opens the session, and follows it on a thread of its own.
    fn open(&mut self) {
        let Some(Opening { flags, servers, start, audience, receiver, inputs }) =
            self.opening.take()
        else {
            return;
        };
        std::thread::spawn(move || {
            let result = follow((flags, servers), start, audience, receiver, &inputs);
            let _ = inputs.send(SdkInput::Over(result));
        });
    }
}

fn follow(
    (mut flags, servers): (SessionFlags, Map<String, Value>),
    start: SessionStart,
    audience: Audience,
    receiver: LiveReceiver,
    inputs: &Sender<SdkInput>,
) -> Result<(), CliError> {
    let mut context = CliContext::of_process()?;
    flags.conversation.servers = handed_servers::hand(servers, &mut context);
    let session = open_request(&context, &flags, start, audience, KeyNeed::Always)?;
    let executable = sibling_executable("agentd-supervisor")?;
    let mut daemon = daemon::of(&context, &executable)?;
    // A daemon that refuses this client fails here, with the full reason.
    drop(daemon.find_or_start()?);
    let mut sink = |event| {
        // This command ends.
        let _ = inputs.send(SdkInput::Live(event));
    };
    live(&mut daemon, session, receiver, LiveFrom::Now, &mut sink)
        .map_err(|error| crate::run::failure(&client::RunFailure { session: None, error }))
}

/// Words for whoever reads the program's log.
fn complain(text: &str) {
    // A closed standard error is not an error.
    let _ = writeln!(io::stderr(), "agentd: {}", protocol::hidden::on_screen(text));
}

fn write(line: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}

/// A random UUID. <https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-4>
fn new_uuid() -> String {
    let mut bytes = [0; 16];
    // Without randomness the names of lines are all the same; no program acts on them alone.
    let _ = getrandom::fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = data_encoding::HEXLOWER.encode(&bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
