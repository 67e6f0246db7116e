//! `agentd stop`, `kill`, `rm` and `fork`: what is done to a session as a whole, by a supervisor.

use crate::cli::SessionFlags;
use crate::daemon;
use crate::door;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::opening::{KeyNeed, opening};
use crate::output::print;
use crate::place::{KEY_VARIABLES, Place};
use crate::sessions;
use client::{Connection, Launch, PrivateSupervisor, beside_self};
use protocol::client::{Ending, FromClient, Start, ToClient};
use protocol::judgement::Audience;
use serde_json::json;

/// Ends a live session; one that is not live has ended already.
pub(crate) fn end(beginning: &str, ending: Ending) -> Result<Exit, Failure> {
    let place = Place::of_process()?;
    let session = sessions::named(&place, beginning)?;
    match sessions::holder(&place, &session)? {
        Some(mut connection) => {
            let word = FromClient::End { session: session.clone(), ending };
            let answer = door::ask_at_once(&mut connection, &word)?;
            if answer != ToClient::Done {
                return Err(door::unexpected(&answer));
            }
            eprintln!("agentd: session {session} has ended; `agentd attach {session}` goes on");
        }
        None => eprintln!("agentd: session {session} does not run"),
    }
    Ok(Exit::Done)
}

/// Removes an ended session. A supervisor does it, which alone writes there: the daemon where it runs,
/// else one that ends with this.
pub(crate) fn remove(beginning: &str) -> Result<Exit, Failure> {
    let place = Place::of_process()?;
    let session = sessions::named(&place, beginning)?;
    let executable = beside_self("agentd-supervisor")?;
    let word = FromClient::Remove { session: session.clone() };
    match daemon::of(&place, &executable)?.find()? {
        Some(mut connection) => door::do_it(&mut connection, &word)?,
        None => {
            let launch = Launch { executable: &executable, without: KEY_VARIABLES, with: &[] };
            let own = PrivateSupervisor::start(&launch)?;
            let removed = Connection::open(own.socket(), own.token())
                .map_err(Failure::from)
                .and_then(|mut connection| door::do_it(&mut connection, &word));
            own.end().map_err(|error| {
                Failure::internal(format!("cannot tell how agentd-supervisor ended: {error}"))
            })?;
            removed?;
        }
    }
    eprintln!("agentd: session {session} is removed; its audit records stay");
    Ok(Exit::Done)
}

/// Begins a new session as a copy of another, and names it.
pub(crate) fn fork(beginning: &str, at: Option<u64>, json: bool) -> Result<Exit, Failure> {
    let place = Place::of_process()?;
    let of = sessions::named(&place, beginning)?;
    let header = journal::header(&sessions::directory(&place, &of));
    let header = header.map_err(|error| Failure::config(chain(&error)).exit(Exit::Failed))?;
    let flags = SessionFlags { project: Some(header.project.0), ..Default::default() };
    let start = Start::Fork { of: of.clone(), at };
    let (opening, papers) = opening(&place, &flags, start, Audience::Person, KeyNeed::WhereSet)?;
    let executable = beside_self("agentd-supervisor")?;
    let mut connection = daemon::of(&place, &executable)?.find_or_start()?;
    let answer = door::opened(&mut connection, opening, &papers)?;
    let ToClient::Opened { session, .. } = answer else { return Err(door::unexpected(&answer)) };
    match json {
        true => print(&format!("{}\n", json!({"session_id": session.0, "of": of.0}))),
        false => print(&format!("{session}\n")),
    }
    Ok(Exit::Done)
}
