//! One question to a supervisor that runs, and its answer.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use client::{
    ChannelError, ConnectError, PrivateSupervisor, SupervisorConnection, SupervisorLaunch,
    sibling_executable,
};
use protocol::client::{FromClient, RequestFailure, SessionRequest, SessionRow, ToClient};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for an answer that takes a bounded time. A supervisor gives its sessions five
/// seconds to report their state, and twelve to end.
const AT_ONCE: Duration = Duration::from_secs(15);

/// Connections to all running supervisors: the daemon first, then private ones. A supervisor that
/// does not answer is reported and skipped.
pub(crate) fn connect_all(context: &CliContext) -> Vec<SupervisorConnection> {
    let reached = |socket: &PathBuf| {
        connect_if_running(socket).unwrap_or_else(|failure| {
            warn_no_answer(&failure);
            None
        })
    };
    sockets(&context.dirs.runtime).iter().filter_map(reached).collect()
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

/// Connects to the supervisor at this socket. `None` if no process listens. An error if one runs
/// but refuses this client.
pub(crate) fn connect_if_running(socket: &Path) -> Result<Option<SupervisorConnection>, CliError> {
    match connect(socket) {
        Ok(connection) => Ok(Some(connection)),
        // A supervisor that just ended does not count as running.
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

/// How a supervisor is started by this executable. A key belongs to the provider alone.
pub(crate) fn launch(executable: &Path) -> SupervisorLaunch<'_> {
    SupervisorLaunch { executable, without: config::KEY_VARIABLES, with: &[] }
}

/// Asks a supervisor for this command alone, which ends behind it.
pub(crate) fn by_private_supervisor<T>(
    ask: impl FnOnce(&mut SupervisorConnection) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let executable = sibling_executable("agentd-supervisor")?;
    let own = PrivateSupervisor::start(&launch(&executable))?;
    let answer = SupervisorConnection::open(own.socket(), own.token())
        .map_err(CliError::from)
        .and_then(|mut connection| ask(&mut connection));
    own.end().map_err(|error| {
        CliError::internal(format!("cannot determine how agentd-supervisor ended: {error}"))
    })?;
    answer
}

/// A supervisor gave no answer; others may.
pub(crate) fn warn_no_answer(failure: &CliError) {
    eprintln!("agentd: {}; its sessions are not listed", failure.message());
}

/// Sends a request and waits for its answer, without a time limit.
pub(crate) fn ask(
    connection: &mut SupervisorConnection,
    word: &FromClient,
) -> Result<ToClient, CliError> {
    answered(connection, word, &[])
}

/// Sends a request with a time limit. A supervisor that exceeds it is stopped or stuck.
pub(crate) fn ask_within_limit(
    connection: &mut SupervisorConnection,
    word: &FromClient,
) -> Result<ToClient, CliError> {
    let pid = connection.supervisor_pid();
    checked(connection.ask_within(word, AT_ONCE).map_err(|error| no_answer(pid, &error))?)
}

/// The sessions of a supervisor, with the same time limit. A supervisor that ended meanwhile has
/// none.
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
        CliError::internal(format!("the supervisor (process {pid}) does not answer"))
            .exit(CliExit::SupervisorUnreachable)
            .hint("`agentd daemon stop --force` ends a stopped or stuck daemon")
    } else {
        lost(error)
    }
}

/// Opens a session, and waits for its name.
pub(crate) fn opened(
    connection: &mut SupervisorConnection,
    opening: SessionRequest,
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

pub(crate) fn lost(error: &ChannelError) -> CliError {
    CliError::internal(chain(error)).exit(CliExit::SupervisorUnreachable)
}

pub(crate) fn checked(word: ToClient) -> Result<ToClient, CliError> {
    if let ToClient::Failed { kind, message } = word {
        return Err(failed(kind, message));
    }
    Ok(word)
}

/// The same for a request whose answer is `Done`.
pub(crate) fn ask_done(
    connection: &mut SupervisorConnection,
    word: &FromClient,
) -> Result<(), CliError> {
    let answer = ask(connection, word)?;
    if answer == ToClient::Done { Ok(()) } else { Err(unexpected(&answer)) }
}

/// An answer to another question.
pub(crate) fn unexpected(word: &ToClient) -> CliError {
    CliError::internal(format!("the supervisor sent an unexpected answer: {word:?}"))
}

/// The error of a failed request, by who can fix it.
pub(crate) fn failed(kind: RequestFailure, message: String) -> CliError {
    let failure = match kind {
        RequestFailure::Configuration | RequestFailure::SandboxUnavailable => {
            CliError::config(message)
        }
        RequestFailure::Usage
        | RequestFailure::NotFound
        | RequestFailure::Held
        | RequestFailure::NoRoom
        | RequestFailure::Disk
        | RequestFailure::Ending => CliError::user(message),
        RequestFailure::Internal => CliError::internal(message),
    };
    failure.exit(CliExit::of_failed(kind))
}
