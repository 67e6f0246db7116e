//! `agentd-session`: one conversation in a process that can reach only its channel.

use ipc::ChannelError;
use protocol::confinement::{Confinement, Profile};
use protocol::error_chain::chain;
use protocol::mcp::ServerNews;
use protocol::session::{FromSession, SessionLink, ToSession};
use sandbox::{Cage, CageError};
use session::{CallError, ReadCall, Session};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// Exit code if no cage can be built, the same as for commands.
const NO_CAGE: u8 = 11;

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The channel may have failed, so the error goes to standard error.
            eprintln!("agentd-session: {}", chain(&*error));
            match error.is::<CageError>() {
                true => ExitCode::from(NO_CAGE),
                false => ExitCode::FAILURE,
            }
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    sandbox::harden()
        .map_err(|error| format!("the process cannot be hardened: {}", chain(&error)))?;
    ipc::step!("session: up");
    let (mut words, say) = ipc::worker::<SessionLink>()?;
    let log = say.clone();
    ipc::log::start("session", move |line| drop(log.send(&FromSession::Log(line))));
    Cage::enter(&sandbox::worker_confinement(nothing_but_the_channel()))?;
    let mut session = loop {
        match words.recv() {
            Ok(ToSession::Begin(setup)) => break Session::new(setup, read_call),
            // The replay is incomplete while a call of an earlier run is still running.
            Ok(ToSession::Ping(number)) => say.send(&FromSession::Pong(number))?,
            // `Begin` will carry the newest values.
            Ok(
                ToSession::System { .. }
                | ToSession::Setting(_)
                | ToSession::Model { .. }
                | ToSession::Pinned(_)
                | ToSession::Servers(ServerNews::Tools { .. }),
            ) => {}
            Ok(
                ToSession::Replay(_)
                | ToSession::ReplayDone { .. }
                | ToSession::Prompt { .. }
                | ToSession::Stream(_)
                | ToSession::ProviderDied(_)
                | ToSession::CallEnded { .. }
                | ToSession::BackgroundEnded { .. }
                | ToSession::HooksDue(_)
                | ToSession::Servers(ServerNews::Due(_))
                | ToSession::Interrupt
                | ToSession::Joining(_)
                | ToSession::Describe
                | ToSession::Compact { .. }
                | ToSession::EditSummary(_),
            ) => return Err("a message came before Begin".into()),
            Err(ChannelError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    };
    loop {
        let word = match words.recv() {
            Ok(word) => word,
            Err(ChannelError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        ipc::step!("session: words join", if matches!(word, ToSession::Joining(protocol::session::JoiningWords::Taken(_))));
        for said in session.step(word) {
            ipc::step!("session: before commit", if matches!(said, FromSession::Commit(_)));
            ipc::step!("session: before words join", if matches!(said, FromSession::TakeJoining));
            ipc::step!("session: before run", if matches!(said, FromSession::Run { .. }));
            note(&said);
            say.send(&said)?;
        }
    }
}

/// Logs the steps of a turn.
fn note(said: &FromSession) {
    match said {
        FromSession::Ready => tracing::info!("ready"),
        FromSession::Ask(request) => tracing::info!(round = request.round, "asks the model"),
        FromSession::Run { call, .. } => {
            tracing::info!(call = %call.id, tool = call.tool, "proposes")
        }
        FromSession::Answered { call, .. } => {
            tracing::info!(call = %call.id, tool = call.tool, "answers itself");
        }
        FromSession::CancelAsk => tracing::info!("drops its request to the model"),
        FromSession::CancelCall(call) => tracing::info!(%call, "cancels"),
        FromSession::Commit(_)
        | FromSession::HooksEnded { .. }
        | FromSession::NotCompacted { .. }
        | FromSession::Context(_)
        | FromSession::Notice { .. }
        | FromSession::StatPinned { .. }
        | FromSession::TakeJoining
        | FromSession::Ahead { .. }
        | FromSession::Pong(_)
        | FromSession::Log(_) => {}
    }
}

/// Parses a call as the model wrote it, by the table of tools.
fn read_call(name: &str, input: &str, project: &str) -> Result<ReadCall, CallError> {
    let none = |invalid: tool_specs::InvalidCall| CallError {
        tool: invalid.tool().map(str::to_owned),
        result: Box::new(invalid.result()),
    };
    let call = tool_specs::interpret_at(name, input, Path::new(project)).map_err(none)?;
    let tool_specs::InterpretedCall { spec, input, note, paths, removed, .. } = call;
    Ok(ReadCall { tool: spec.name.to_owned(), input, note, paths, removed })
}

/// The profile grants no file, so the directories have no effect.
fn nothing_but_the_channel() -> Confinement {
    Confinement::closed(Profile::Session, "/", "/")
}
