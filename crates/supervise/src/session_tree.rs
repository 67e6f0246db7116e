//! A session and those of its sub-agents, held so that no supervisor opens one meanwhile. Used where they are
//! removed, and where the worktree of a sub-agent is.

use journal::{Journal, OpenError, OpenedJournal};
use protocol::client::RequestFailure;
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use setup::open_failure::OpenFailure;
use setup::session_spec::is_below;
use std::path::Path;

/// A session that is held, unless its journal cannot be read.
pub(crate) type HeldSession = (SessionId, Option<OpenedJournal>);

/// Holds the sessions of a session's sub-agents, the deepest first, and then itself.
///
/// # Errors
/// A session that a process has open; a list that cannot be read.
pub(crate) fn hold(sessions: &Path, session: &SessionId) -> Result<Vec<HeldSession>, OpenFailure> {
    let names = journal::sessions(sessions).map_err(|error| {
        let message =
            format!("the sub-agents of session {session} cannot be listed: {}", chain(&error));
        OpenFailure::new(RequestFailure::Disk, message)
    })?;
    let names = names.into_iter().map(SessionId);
    let mut tree: Vec<_> = names.filter(|name| is_below(name, session)).collect();
    tree.sort_by_key(|name| std::cmp::Reverse(name.0.len()));
    tree.push(session.clone());
    let held = tree.into_iter().map(|name| {
        let opened = hold_one(&sessions.join(&name.0))?;
        Ok((name, opened))
    });
    held.collect()
}

fn hold_one(directory: &Path) -> Result<Option<OpenedJournal>, OpenFailure> {
    match Journal::open(directory) {
        Ok(opened) => Ok(Some(opened)),
        Err(error @ OpenError::Held { .. }) => Err(OpenFailure::from(&error)),
        Err(OpenError::Read(_) | OpenError::Mend { .. } | OpenError::ReadOnlyDisk { .. }) => {
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use journal::SessionHeader;

    fn begin(sessions: &Path, id: &str) -> Journal {
        let header = SessionHeader {
            format: journal::FORMAT,
            id: id.to_owned(),
            project: Path::new("/p").into(),
            model: "m".to_owned(),
            agentd: "0".to_owned(),
            parent: None,
            task: None,
            fleet_task: None,
        };
        Journal::create(sessions, header).unwrap()
    }

    #[test]
    fn all_are_held_or_none_is() {
        let place = tempfile::tempdir().unwrap();
        let name = |text: &str| SessionId(text.to_owned());
        for other in ["p", "p-1", "q"] {
            drop(begin(place.path(), other));
        }
        let inner = begin(place.path(), "p-1-2");
        let failure = hold(place.path(), &name("p-1")).unwrap_err();
        assert_eq!(failure.kind, RequestFailure::Held);
        drop(inner);
        let held = hold(place.path(), &name("p-1")).unwrap();
        let names: Vec<_> = held.iter().map(|(name, _)| name.0.as_str()).collect();
        assert_eq!(names, ["p-1-2", "p-1"]);
        assert!(hold(place.path(), &name("p-1-2")).is_err(), "they are held");
        drop(held);
        assert!(hold(place.path(), &name("p-1-2")).is_ok());
        std::fs::write(place.path().join("list"), "").unwrap();
        let failure = hold(&place.path().join("list"), &name("p")).map(drop).unwrap_err();
        assert!(failure.message.contains("cannot be listed"), "{failure}");
    }
}
