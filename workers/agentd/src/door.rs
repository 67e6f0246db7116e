//! One question to a supervisor that runs, and its answer.

use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::place::Place;
use crate::ps::{connect, sockets};
use client::{ChannelError, Connection};
use protocol::client::{FailedKind, FromClient, Opening, ToClient};
use std::os::fd::OwnedFd;

/// Connections to all supervisors that run: to the daemon first, then to those of one run each.
pub(crate) fn running(place: &Place) -> Vec<Connection> {
    // One that has just ended is none that runs.
    sockets(&place.dirs.runtime).iter().filter_map(|socket| connect(socket).ok()).collect()
}

/// Asks, and waits for the answer.
pub(crate) fn ask(connection: &mut Connection, word: &FromClient) -> Result<ToClient, Failure> {
    answered(connection, word, &[])
}

/// Opens a session, and waits for its name.
pub(crate) fn opened(
    connection: &mut Connection,
    opening: Opening,
    papers: &[OwnedFd],
) -> Result<ToClient, Failure> {
    answered(connection, &FromClient::Open(opening), papers)
}

fn answered(
    connection: &mut Connection,
    word: &FromClient,
    papers: &[OwnedFd],
) -> Result<ToClient, Failure> {
    let lost =
        |error: ChannelError| Failure::internal(chain(&error)).exit(Exit::SupervisorUnreachable);
    connection.send(word, papers).map_err(lost)?;
    let word = connection.recv().map_err(lost)?;
    if let ToClient::Failed { kind, message } = word {
        return Err(failed(kind, message));
    }
    Ok(word)
}

/// The same, where there is nothing to say but that it was done.
pub(crate) fn do_it(connection: &mut Connection, word: &FromClient) -> Result<(), Failure> {
    let answer = ask(connection, word)?;
    if answer == ToClient::Done { Ok(()) } else { Err(unexpected(&answer)) }
}

/// An answer to another question.
pub(crate) fn unexpected(word: &ToClient) -> Failure {
    Failure::internal(format!("the supervisor answered something else: {word:?}"))
}

/// What was not carried out, by whose it is to mend.
pub(crate) fn failed(kind: FailedKind, message: String) -> Failure {
    let failure = match kind {
        FailedKind::Configuration | FailedKind::SandboxUnavailable => Failure::config(message),
        FailedKind::Usage
        | FailedKind::NotFound
        | FailedKind::Held
        | FailedKind::Disk
        | FailedKind::Ending => Failure::user(message),
        FailedKind::Internal => Failure::internal(message),
    };
    failure.exit(Exit::of_failed(kind))
}
