//! The list of sessions: supervisors report the running ones, the disk has the others. An
//! unreadable session does not hide the rest.

use crate::cli::SessionFlags;
use crate::cli_error::{CliError, chain};
use crate::context::{CliContext, real_dir};
use crate::query;
use client::{SupervisorConnection, one_line};
use protocol::client::{SessionRow, SessionStatus};
use protocol::confinement::FilePath;
use protocol::ids::{CallId, SessionId};
use protocol::session_name;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Longest title, in characters.
const TITLE: usize = 60;

/// All sessions, those with the newest record first.
pub(crate) fn rows(context: &CliContext) -> Vec<SessionRow> {
    let mut rows: Vec<SessionRow> = Vec::new();
    for mut connection in query::connect_all(context) {
        for row in listed(&mut connection) {
            // Each supervisor also lists the sessions on disk. Only the one that runs a session
            // knows its state.
            match rows.iter_mut().find(|known| known.session == row.session) {
                Some(known) if known.state.is_of_disk() => *known = row,
                Some(_) => {}
                None => rows.push(row),
            }
        }
    }
    let known: BTreeSet<String> = rows.iter().map(|row| row.session.0.clone()).collect();
    let unknown = on_disk(context).into_iter().filter(|id| !known.contains(id));
    rows.extend(unknown.map(|id| from_disk(&context.sessions_dir().join(&id), id)));
    rows.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.session.cmp(&b.session)));
    rows
}

/// The sessions that a supervisor lists. If it does not answer, this is reported, and the rows come
/// from disk.
fn listed(connection: &mut SupervisorConnection) -> Vec<SessionRow> {
    query::sessions_of(connection).unwrap_or_else(|failure| {
        query::warn_no_answer(&failure);
        Vec::new()
    })
}

/// The supervisor that runs this session. `None` if none does. An error if a supervisor did not
/// answer, because it may be that one.
pub(crate) fn holder(
    context: &CliContext,
    session: &SessionId,
) -> Result<Option<SupervisorConnection>, CliError> {
    let mut silent = None;
    for socket in query::sockets(&context.dirs.runtime) {
        let found = query::connect_if_running(&socket).and_then(|connection| match connection {
            Some(mut connection) => Ok(holds(&mut connection, session)?.then_some(connection)),
            None => Ok(None),
        });
        match found {
            Ok(Some(connection)) => return Ok(Some(connection)),
            Ok(None) => {}
            Err(failure) => silent = Some(failure),
        }
    }
    let unknown =
        |it: CliError| it.preceded_by(&format!("it is unknown if session {session} is running"));
    silent.map_or(Ok(None), |failure| Err(unknown(failure)))
}

fn holds(connection: &mut SupervisorConnection, session: &SessionId) -> Result<bool, CliError> {
    let rows = query::sessions_of(connection)?;
    Ok(rows.iter().any(|row| row.session == *session && !row.state.is_of_disk()))
}

/// The sessions on disk of its sub-agents, and of theirs.
pub(crate) fn of_tasks(context: &CliContext, session: &SessionId) -> Vec<SessionId> {
    let beginning = format!("{session}-");
    on_disk(context)
        .into_iter()
        .filter(|name| name.starts_with(&beginning))
        .map(SessionId)
        .collect()
}

/// The newest session of this project.
pub(crate) fn newest_of(context: &CliContext, project: &Path) -> Option<SessionRow> {
    // A sub-agent's session is not one that a person would go on with.
    let own = |row: &SessionRow| row.project.to_path() == project && row.parent.is_none();
    rows(context).into_iter().find(own)
}

/// The one session that a person gave this name. `None` if there is none, and for a text that could be an ID.
pub(crate) fn by_name(context: &CliContext, text: &str) -> Result<Option<SessionId>, CliError> {
    let Ok(name) = session_name::check(text) else { return Ok(None) };
    let sessions = context.sessions_dir();
    let has_name = |id: &String| journal::glance(&sessions.join(id)).name == name;
    let found: Vec<String> = on_disk(context).into_iter().filter(has_name).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(SessionId(one.clone()))),
        several => Err(CliError::user(format!("{} sessions are named {name:?}", several.len()))
            .hint(format!("give one of their IDs:\n  {}", candidates(context, several)))),
    }
}

/// The one session whose ID begins so, or that has this name.
pub(crate) fn named(context: &CliContext, beginning: &str) -> Result<SessionId, CliError> {
    if let Some(session) = by_name(context, beginning)? {
        return Ok(session);
    }
    let mut found = on_disk(context);
    // The name of a sub-agent's session begins with its parent's.
    match found.iter().any(|name| name == beginning) {
        true => found.retain(|name| name == beginning),
        false => found.retain(|name| name.starts_with(beginning)),
    }
    match found.as_slice() {
        [one] if !beginning.is_empty() => Ok(SessionId(one.clone())),
        [] => Err(CliError::user(format!("there is no session {beginning:?}"))
            .hint("`agentd ls` lists them")),
        several => {
            Err(CliError::user(format!("{} sessions begin with {beginning:?}", several.len()))
                .hint(format!("give a longer prefix:\n  {}", candidates(context, several))))
        }
    }
}

/// True if names of sessions here begin so.
pub(crate) fn are_named(context: &CliContext, beginning: &str) -> bool {
    on_disk(context).iter().any(|name| name.starts_with(beginning))
}

/// The directory of a session.
pub(crate) fn directory(context: &CliContext, session: &SessionId) -> PathBuf {
    context.sessions_dir().join(&session.0)
}

/// The first of several sessions, a line each.
fn candidates(context: &CliContext, several: &[String]) -> String {
    let candidate = |id: &String| {
        let row = from_disk(&context.sessions_dir().join(id), id.clone());
        format!("{id}  {}", row.title)
    };
    let mut some: Vec<_> = several.iter().take(5).map(candidate).collect();
    if several.len() > some.len() {
        some.push("…".to_owned());
    }
    some.join("\n  ")
}

/// Names of all sessions on disk, in order.
fn on_disk(context: &CliContext) -> Vec<String> {
    journal::sessions(&context.sessions_dir()).unwrap_or_default()
}

fn from_disk(dir: &Path, id: String) -> SessionRow {
    let seen = journal::glance(dir);
    let state = match (&seen.trouble, seen.cut_short(dir)) {
        (Some(why), _) => SessionStatus::Unreadable(chain(why)),
        (None, Some(died)) => SessionStatus::CutShort(died.to_string()),
        (None, None) => SessionStatus::Ended,
    };
    let task = seen.header.as_ref().and_then(|header| header.task.as_ref());
    let parent =
        task.map(|task| CallId { session: SessionId(task.session.clone()), number: task.call });
    let (project, model) = seen.header.map_or_else(Default::default, |it| (it.project.0, it.model));
    SessionRow {
        session: SessionId(id),
        name: seen.name,
        title: one_line(&seen.first_prompt, TITLE),
        project: FilePath::from(project),
        model,
        state,
        began: seen.began,
        last: seen.last,
        turns: seen.turns,
        cost: seen.cost,
        clients: 0,
        parent,
    }
}

/// The newest session of the project that the flags name. An error if there is none.
pub(crate) fn newest_here(
    context: &CliContext,
    flags: &SessionFlags,
) -> Result<SessionId, CliError> {
    let named = flags.project.as_deref().unwrap_or(Path::new("."));
    let project = real_dir(named, "the project directory")?;
    newest_of(context, &project).map(|row| row.session).ok_or_else(|| {
        CliError::user(format!("there is no session of {}", project.display()))
            .hint("`agentd ls` lists all sessions, `agentd new` starts one")
    })
}
