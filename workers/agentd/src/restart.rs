//! `agentd restart`: restarts the failed processes of a session, by the supervisor that runs it.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::ps::processes;
use crate::query;
use client::{ChannelError, SupervisorConnection};
use protocol::client::{FromClient, RequestFailure, ToClient};
use protocol::ids::SessionId;
use std::collections::BTreeMap;

pub(crate) fn main(beginning: &str) -> Result<CliExit, CliError> {
    let hint = "a session that is only on disk needs no restart: opening it starts its workers";
    let (connection, session) = find_running(beginning, hint)?;
    restart(connection, session)
}

/// The one running session with this prefix, and its supervisor. The hint is for a session that does
/// not run.
pub(crate) fn find_running(
    beginning: &str,
    hint: &str,
) -> Result<(SupervisorConnection, SessionId), CliError> {
    let context = CliContext::of_process()?;
    let mut found = BTreeMap::new();
    let mut running = query::connect_all(&context);
    for (at, connection) in running.iter_mut().enumerate() {
        let rows = processes(connection)?;
        let here = rows.into_iter().filter_map(|row| row.session);
        let here: Vec<SessionId> = here.filter(|id| id.0.starts_with(beginning)).collect();
        for session in here {
            found.insert(session.0, at);
        }
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some((id, at)), None) if !beginning.is_empty() => {
            Ok((running.swap_remove(at), SessionId(id)))
        }
        (None, _) => {
            Err(CliError::user(format!("no supervisor runs a session {beginning:?}")).hint(hint))
        }
        (Some((one, _)), other) => {
            let other = other.map_or(String::new(), |(id, _)| format!(" and {id}"));
            Err(CliError::user(format!("{beginning:?} matches more than one session"))
                .hint(format!("give a longer prefix, for example of {one}{other}")))
        }
    }
}

fn restart(mut connection: SupervisorConnection, session: SessionId) -> Result<CliExit, CliError> {
    let lost = |error: ChannelError| {
        CliError::internal(chain(&error)).exit(CliExit::SupervisorUnreachable)
    };
    connection.send(&FromClient::Restart { session: session.clone() }, &[]).map_err(lost)?;
    match connection.recv().map_err(lost)? {
        ToClient::Done => {
            eprintln!("agentd: the failed processes of session {session} are restarted");
            Ok(CliExit::Done)
        }
        ToClient::Failed { kind: RequestFailure::NotFound, message } => {
            Err(CliError::user(message))
        }
        ToClient::Failed { kind: _, message } => Err(CliError::internal(message)),
        ToClient::Welcome { .. }
        | ToClient::Refused { .. }
        | ToClient::Opened { .. }
        | ToClient::Attached { .. }
        | ToClient::Detached { .. }
        | ToClient::Behind { .. }
        | ToClient::Page { .. }
        | ToClient::Servers { .. }
        | ToClient::TakenBack { .. }
        | ToClient::Changes { .. }
        | ToClient::Context { .. }
        | ToClient::Sessions(_)
        | ToClient::Status(_)
        | ToClient::Event { .. }
        | ToClient::Pong(_)
        | ToClient::NetworkOpened { .. }
        | ToClient::NetworkClosed { .. }
        | ToClient::Processes(_) => {
            Err(CliError::internal("the supervisor sent an unexpected answer"))
        }
    }
}
