//! The list of sessions: those on disk, with the state of the live ones. Also ends and removes
//! single sessions.

use super::shutdown::{NO_REPLY, REPLY_TIMEOUT};
use super::state::RootState;
use crate::messages::RootToSession;
use crate::private_dirs;
use crate::session_tree;
use crate::store_dirs;
use journal::OpenedJournal;
use protocol::client::{RequestFailure, SessionEnding, SessionRow, SessionStatus};
use protocol::confinement::FilePath;
use protocol::error_chain::chain;
use protocol::ids::{CallId, SessionId};
use setup::open_failure::OpenFailure;
use setup::private_paths::session_dir_path;
use setup::session_spec::is_below;
use setup::task_worktree;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// Characters of the first prompt that are shown as the title.
const TITLE: usize = 60;
/// How long a request to end a session waits. Its calls have 2 s and each of its workers 3 s; a
/// session that takes longer waits for a disk.
const END_TIMEOUT: Duration = Duration::from_secs(12);

impl RootState {
    /// Lists all sessions, the most recently written first.
    pub(super) fn list(&self, reply: oneshot::Sender<Vec<SessionRow>>) {
        let sessions = self.settings.dirs.state.join("sessions");
        let glances = self.request_glances();
        tokio::spawn(async move {
            let rows = tokio::task::spawn_blocking(move || sessions_on_disk(&sessions)).await;
            let mut rows = rows.unwrap_or_default();
            let mut by_session: HashMap<SessionId, &mut SessionRow> =
                rows.iter_mut().map(|row| (row.session.clone(), row)).collect();
            let until = Instant::now() + REPLY_TIMEOUT;
            for (session, glance) in glances {
                let glance = tokio::time::timeout_at(until, glance).await;
                let Some(row) = by_session.get_mut(&session) else { continue };
                match glance {
                    Ok(Ok(glance)) => {
                        (row.state, row.clients) = (glance.state, glance.clients);
                        row.turns = Some(glance.turns);
                    }
                    // It ended in the meantime: the state on disk is right.
                    Ok(Err(_)) => {}
                    Err(_) => row.state = SessionStatus::Degraded(NO_REPLY.to_owned()),
                }
            }
            rows.sort_by_key(|row| std::cmp::Reverse(row.last));
            let _ = reply.send(rows);
        });
    }

    pub(super) fn end_session(
        &self,
        session: &SessionId,
        ending: SessionEnding,
        reply: oneshot::Sender<Result<(), OpenFailure>>,
    ) {
        let retiring = self.retiring.get(session).map(|it| &it.actor);
        let Some(actor) = self.sessions.get(session).or(retiring) else {
            let message = format!("session {session} is not open here; there is nothing to end");
            let _ = reply.send(Err(OpenFailure::new(RequestFailure::NotFound, message)));
            return;
        };
        let (done, mut gone) = oneshot::channel();
        let _ = actor.send_message(RootToSession::Close(ending, done).into());
        let (state, session) = (self.settings.dirs.state.clone(), session.clone());
        tokio::spawn(async move {
            if timeout(END_TIMEOUT, &mut gone).await.is_err() {
                let _ = reply.send(Err(OpenFailure::new(
                    RequestFailure::Disk,
                    end_timeout_message(&session),
                )));
                let _ = gone.await;
                return store_dirs::remove_cached_results(&state, &session);
            }
            store_dirs::remove_cached_results(&state, &session);
            let _ = reply.send(Ok(()));
        });
    }

    pub(super) fn remove(
        &self,
        session: SessionId,
        reply: oneshot::Sender<Result<(), OpenFailure>>,
    ) {
        let live = self.sessions.keys().chain(self.opening.keys()).chain(self.retiring.keys());
        if let Some(live) = live.filter(|it| **it == session || is_below(it, &session)).min() {
            let what = if *live == session { "" } else { ", a sub-agent of it," };
            let message = format!("session {live}{what} is live; `agentd stop {live}` ends it");
            let _ = reply.send(Err(OpenFailure::new(RequestFailure::Held, message)));
            return;
        }
        let sessions = self.settings.dirs.state.join("sessions");
        let (temp_root, remover) = (self.settings.temp_root.clone(), self.remover.clone());
        tokio::task::spawn_blocking(move || {
            let gone = remove_sessions(&sessions, &session, |gone| {
                let private = session_dir_path(&temp_root, &gone.0);
                private_dirs::remove_if_owned(&private, &sessions.join(&gone.0), &remover);
            });
            let _ = reply.send(gone);
        });
    }
}

/// Message for a session that does not end in time.
fn end_timeout_message(session: &SessionId) -> String {
    format!(
        "session {session} was asked to end and has not; most likely it waits for its disk. It \
         ends \
         once the disk answers, which `agentd ls` shows; data it could not write is recovered \
         when it is opened again"
    )
}

/// Removes a session that no supervisor has open, and those of its sub-agents. They go first, so that a
/// removal that was cut short can be repeated.
fn remove_sessions(
    sessions: &Path,
    session: &SessionId,
    removed: impl Fn(&SessionId),
) -> Result<(), OpenFailure> {
    if !journal::is_session_name(&session.0) || !sessions.join(&session.0).is_dir() {
        let message = format!("there is no session {session}");
        return Err(OpenFailure::new(RequestFailure::NotFound, message));
    }
    // All are kept open until they are removed, so that no other supervisor opens one.
    let tree = session_tree::hold(sessions, session)?;
    check_worktrees(&sessions.join(&session.0), session)?;
    for (name, held) in tree {
        remove_session_files(sessions, &name, held)?;
        removed(&name);
    }
    Ok(())
}

/// The worktree of a sub-agent may hold its only copy of changes, and git knows it: the person removes it.
fn check_worktrees(directory: &Path, session: &SessionId) -> Result<(), OpenFailure> {
    let Ok(header) = journal::header(directory) else { return Ok(()) };
    let left = task_worktree::below(&header.project.0, session);
    let own = header.task.and_then(|task| task.worktree);
    let own = own.filter(|it| task_worktree::is_own(it, session)).map(|worktree| worktree.path.0);
    let Some(path) = left.into_iter().chain(own).find(|path| path.join(".git").exists()) else {
        return Ok(());
    };
    let path = path.display();
    let message = format!(
        "a sub-agent left the git worktree {path} with changes, or a death did. Take what you need of it, \
         remove it with `git worktree remove {path}`, then `agentd rm {session}` again"
    );
    Err(OpenFailure::new(RequestFailure::Usage, message))
}

/// Opens a session that is to be removed, readable or not.
fn remove_session_files(
    sessions: &Path,
    session: &SessionId,
    held: Option<OpenedJournal>,
) -> Result<(), OpenFailure> {
    let gone = std::fs::remove_dir_all(sessions.join(&session.0));
    if let (Ok(()), Some(state)) = (&gone, sessions.parent()) {
        store_dirs::remove_session_store(state, session);
    }
    drop(held);
    gone.map_err(|error| {
        let message = format!("session {session} cannot be removed: {}", chain(&error));
        OpenFailure::new(RequestFailure::Disk, message)
    })
}

fn sessions_on_disk(sessions: &Path) -> Vec<SessionRow> {
    let names = journal::sessions(sessions).unwrap_or_else(|error| {
        tracing::error!(%error, "the sessions cannot be listed");
        Vec::new()
    });
    names.into_iter().map(|name| session_row(sessions, name)).collect()
}

/// The row of one session. An unreadable session does not hide the others.
fn session_row(sessions: &Path, name: String) -> SessionRow {
    let directory = sessions.join(&name);
    let seen = journal::glance(&directory);
    let state = match (&seen.trouble, seen.cut_short(&directory)) {
        (Some(why), _) => SessionStatus::Unreadable(chain(why)),
        (None, Some(died)) => SessionStatus::CutShort(died.to_string()),
        (None, None) => SessionStatus::Ended,
    };
    let task = seen.header.as_ref().and_then(|header| header.task.as_ref());
    let parent =
        task.map(|task| CallId { session: SessionId(task.session.clone()), number: task.call });
    let (project, model) = seen.header.map_or_else(Default::default, |it| (it.project.0, it.model));
    SessionRow {
        session: SessionId(name),
        name: seen.name,
        title: title(&seen.first_prompt),
        project: FilePath::from(&project),
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

/// The first line of a prompt, shortened.
fn title(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match line.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
