//! One question to a supervisor that runs, and its answer.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use client::{ChannelError, ConnectError, SupervisorConnection};
use protocol::client::{FailedKind, FromClient, Opening, SessionRow, ToClient};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for what a supervisor knows, or does in a bounded time. It gives its sessions five
/// seconds to say how they are, and twelve to end.
const AT_ONCE: Duration = Duration::from_secs(15);

/// Connections to all supervisors that run: to the daemon first, then to those of one run each. Of one
/// that gives no answer that is said, and it hides none of the others.
pub(crate) fn connect_all(place: &CliContext) -> Vec<SupervisorConnection> {
    let reached = |socket: &PathBuf| {
        connect_if_running(socket).unwrap_or_else(|failure| {
            warn_no_answer(&failure);
            None
        })
    };
    sockets(&place.dirs.runtime).iter().filter_map(reached).collect()
}

/// The sockets of supervisors: of the one for all sessions, and of those for one run each.
pub(crate) fn sockets(runtime: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(runtime).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path().join("socket")).collect();
    found.sort();
    found.insert(0, runtime.join("socket"));
    found.retain(|socket| socket.exists());
    found
}

/// The supervisor at this socket, or nothing where nobody is there. An error is of one that runs and
/// does not let itself be spoken to.
pub(crate) fn connect_if_running(socket: &Path) -> Result<Option<SupervisorConnection>, CliError> {
    match connect(socket) {
        Ok(connection) => Ok(Some(connection)),
        // One that has just ended is none that runs.
        Err(ConnectError::Ended) => Ok(None),
        Err(ConnectError::Unreachable { source, .. } | ConnectError::Token { source, .. })
            if matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn connect(socket: &Path) -> Result<SupervisorConnection, ConnectError> {
    let path = socket.with_file_name("token");
    match std::fs::read_to_string(&path) {
        Ok(token) => SupervisorConnection::open(socket, token.trim()),
        Err(source) => Err(ConnectError::Token { path, source }),
    }
}

/// A supervisor gave no answer; others may.
pub(crate) fn warn_no_answer(failure: &CliError) {
    eprintln!("agentd: {}; what it does is not known here", failure.message());
}

/// Asks, and waits for the answer, however long what is asked for takes.
pub(crate) fn ask(
    connection: &mut SupervisorConnection,
    word: &FromClient,
) -> Result<ToClient, CliError> {
    answered(connection, word, &[])
}

/// Asks what is known at once: one that does not say it in time is stopped or stuck.
pub(crate) fn ask_within_limit(
    connection: &mut SupervisorConnection,
    word: &FromClient,
) -> Result<ToClient, CliError> {
    let pid = connection.supervisor_pid();
    checked(connection.ask_within(word, AT_ONCE).map_err(|error| no_answer(pid, &error))?)
}

/// The sessions of a supervisor, asked in the same way; one that has ended in the meantime has none.
pub(crate) fn sessions_of(
    connection: &mut SupervisorConnection,
) -> Result<Vec<SessionRow>, CliError> {
    let pid = connection.supervisor_pid();
    match connection.ask_within(&FromClient::List, AT_ONCE) {
        Ok(ToClient::Sessions(rows)) => Ok(rows),
        Ok(other) => Err(unexpected(&checked(other)?)),
        Err(error) if has_ended(&error) => Ok(Vec::new()),
        Err(error) => Err(no_answer(pid, &error)),
    }
}

fn has_ended(error: &ChannelError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    match error {
        ChannelError::Closed | ChannelError::Cut => true,
        ChannelError::Io(error) => matches!(error.kind(), BrokenPipe | ConnectionReset),
        ChannelError::Frame(_)
        | ChannelError::Codec(_)
        | ChannelError::Hello(_)
        | ChannelError::OutOfTurn
        | ChannelError::TooLong { .. }
        | ChannelError::ByHand { .. } => false,
    }
}

fn no_answer(pid: u32, error: &ChannelError) -> CliError {
    let silent =
        matches!(error, ChannelError::Io(error) if error.kind() == io::ErrorKind::WouldBlock);
    if silent {
        CliError::internal(format!("the supervisor (process {pid}) gives no answer"))
            .exit(CliExit::SupervisorUnreachable)
            .hint("`agentd daemon stop --force` ends one that is stopped or stuck")
    } else {
        lost(error)
    }
}

/// Opens a session, and waits for its name.
pub(crate) fn opened(
    connection: &mut SupervisorConnection,
    opening: Opening,
    papers: &[OwnedFd],
) -> Result<ToClient, CliError> {
    answered(connection, &FromClient::Open(opening), papers)
}

fn answered(
    connection: &mut SupervisorConnection,
    word: &FromClient,
    papers: &[OwnedFd],
) -> Result<ToClient, CliError> {
    connection.send(word, papers).map_err(|error| lost(&error))?;
    checked(connection.recv().map_err(|error| lost(&error))?)
}

fn lost(error: &ChannelError) -> CliError {
    CliError::internal(chain(error)).exit(CliExit::SupervisorUnreachable)
}

fn checked(word: ToClient) -> Result<ToClient, CliError> {
    if let ToClient::Failed { kind, message } = word {
        return Err(failed(kind, message));
    }
    Ok(word)
}

/// The same, where there is nothing to say but that it was done.
pub(crate) fn ask_done(
    connection: &mut SupervisorConnection,
    word: &FromClient,
) -> Result<(), CliError> {
    let answer = ask(connection, word)?;
    if answer == ToClient::Done { Ok(()) } else { Err(unexpected(&answer)) }
}

/// An answer to another question.
pub(crate) fn unexpected(word: &ToClient) -> CliError {
    CliError::internal(format!("the supervisor answered something else: {word:?}"))
}

/// What was not carried out, by whose it is to mend.
pub(crate) fn failed(kind: FailedKind, message: String) -> CliError {
    let failure = match kind {
        FailedKind::Configuration | FailedKind::SandboxUnavailable => CliError::config(message),
        FailedKind::Usage
        | FailedKind::NotFound
        | FailedKind::Held
        | FailedKind::Disk
        | FailedKind::Ending => CliError::user(message),
        FailedKind::Internal => CliError::internal(message),
    };
    failure.exit(CliExit::of_failed(kind))
}
