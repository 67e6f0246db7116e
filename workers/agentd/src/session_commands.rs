//! `agentd stop`, `kill`, `rm` and `fork`: requests to a supervisor about a whole session.

use crate::attach_services::drafts;
use crate::cli::SessionFlags;
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::daemon;
use crate::fleet_commands;
use crate::open_request::{KeyNeed, open_request};
use crate::output::{print, print_json};
use crate::prompt_history;
use crate::query;
use crate::sessions;
use client::sibling_executable;
use protocol::client::{FromClient, SessionEnding, SessionStart, ToClient};
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use serde_json::json;
use std::path::Path;

/// Ends a running session. A session that is not running is left as it is.
pub(crate) fn end(beginning: &str, ending: SessionEnding) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let session = fleet_commands::named_here(&context, beginning)?;
    match sessions::holder(&context, &session)? {
        Some(mut connection) => {
            let word = FromClient::End { session: session.clone(), ending };
            let answer = query::ask_within_limit(&mut connection, &word)?;
            if answer != ToClient::Done {
                return Err(query::unexpected(&answer));
            }
            eprintln!(
                "agentd: session {session} has ended; `agentd attach {session}` continues it"
            );
        }
        None => {
            let header = journal::header(&sessions::directory(&context, &session));
            match header.ok().and_then(|header| header.fleet_task) {
                Some(task) => eprintln!(
                    "agentd: session {session} is not running on this host; `agentd tasks show {task}` \
                     has the state of its task"
                ),
                None => eprintln!("agentd: session {session} is not running"),
            }
        }
    }
    Ok(CliExit::Done)
}

/// Removes an ended session and those of its sub-agents. Only supervisors write in the state directory, so the daemon does it
/// if it runs, or else a private supervisor.
pub(crate) fn remove(beginning: &str) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let session = fleet_commands::named_here(&context, beginning)?;
    let tasks = sessions::of_tasks(&context, &session);
    let executable = sibling_executable("agentd-supervisor")?;
    let word = FromClient::Remove { session: session.clone() };
    match daemon::of(&context, &executable)?.find()? {
        Some(mut connection) => query::ask_done(&mut connection, &word)?,
        None => {
            query::by_private_supervisor(|connection| query::ask_done(connection, &word))?;
        }
    }
    // Drafts are the terminals' own.
    for draft in tasks.iter().chain([&session]).flat_map(|session| drafts(&context, session)) {
        let _ = std::fs::remove_file(draft);
    }
    let removed: Vec<_> = tasks.iter().chain([&session]).collect();
    if let Err(error) = prompt_history::forget(&context.dirs.state, &removed) {
        eprintln!("agentd: its prompts stay in the history of the input line: {error}");
    }
    match &tasks[..] {
        [] => eprintln!("agentd: session {session} is removed; its audit records stay"),
        tasks => {
            let names: Vec<_> = tasks.iter().map(|task| task.0.as_str()).collect();
            let names = names.join(", ");
            eprintln!(
                "agentd: session {session} is removed, with those of its sub-agents ({names}); \
                 their audit records stay"
            );
        }
    }
    Ok(CliExit::Done)
}

/// The last record of a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ForkEnd {
    /// The end of the last turn.
    LastTurn,
    /// This record.
    Record(u64),
    /// The one before this prompt, counted from 1.
    BeforePrompt(u32),
}

/// Begins a new session as a copy of another, and names it.
pub(crate) fn fork(beginning: &str, end: ForkEnd, json: bool) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let of = sessions::named(&context, beginning)?;
    let directory = sessions::directory(&context, &of);
    let header = journal::header(&directory);
    let at = match end {
        ForkEnd::LastTurn => None,
        ForkEnd::Record(seq) => Some(seq),
        ForkEnd::BeforePrompt(number) => Some(before_prompt(&of, &directory, number)?),
    };
    let header = header.map_err(|error| CliError::config(chain(&error)).exit(CliExit::Failed))?;
    let flags = SessionFlags { project: Some(header.project.0), ..Default::default() };
    let start = SessionStart::Fork { of: of.clone(), at };
    let (opening, papers) =
        open_request(&context, &flags, start, Audience::Person, KeyNeed::WhereSet)?;
    let executable = sibling_executable("agentd-supervisor")?;
    let mut connection = daemon::of(&context, &executable)?.find_or_start()?;
    let answer = query::opened(&mut connection, opening, &papers)?;
    let ToClient::Opened { session, .. } = answer else { return Err(query::unexpected(&answer)) };
    match json {
        true => print_json(&format!("{}\n", json!({"session_id": session.0, "of": of.0}))),
        false => print(&format!("{session}\n")),
    }
    Ok(CliExit::Done)
}

/// The record before a prompt, counted from 1.
fn before_prompt(session: &SessionId, directory: &Path, number: u32) -> Result<u64, CliError> {
    let unreadable =
        |error: &dyn std::error::Error| CliError::config(chain(error)).exit(CliExit::Failed);
    let entries = journal::read(directory).map_err(|error| unreadable(&error))?.without_texts();
    let mut prompts = 0;
    for entry in entries {
        // The records before the damage can still be copied.
        let Ok(entry) = entry else { break };
        prompts += u32::from(entry.record.is_prompt());
        if prompts == number && number > 0 {
            return Ok(entry.seq - 1);
        }
    }
    let text = format!("session {session} has no prompt {number}: it has {prompts}");
    Err(CliError::user(text).hint(format!("`agentd show {session}` prints them")))
}
