//! The records of a session that the database lacks when its run on this host is over: the supervisor waits for
//! some of them only, and the last ones may be on their way. `task_run` calls it before a
//! task is over or given back.

use crate::database::Database;
use crate::error::FleetError;
use crate::objects::Objects;
use crate::seat::{Appender, Lines, Seat};
use crate::workspace::Workspace;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, watch};

/// What a run left on this host.
pub(crate) struct Left<'a> {
    /// How far the database is.
    pub(crate) seat: &'a Seat,
    pub(crate) workspace: Arc<Mutex<Workspace>>,
    /// Where the audit log of this host stood last.
    pub(crate) audit: watch::Sender<Option<Value>>,
}

/// Appends the rest of the session's records, of which no process adds any. At most so long. Returns the
/// number of the last.
pub(crate) async fn append_rest(
    left: &Left<'_>,
    (database, objects): (Arc<Database>, Option<Objects>),
    sessions: &Path,
    most: Duration,
) -> Result<u64, FleetError> {
    let mut known = left.seat.state.borrow().clone();
    let directory = sessions.join(&left.seat.session);
    if !directory.exists() || !journal::was_begun(&directory) {
        return Ok(known.last_seq);
    }
    let rest = journal::lines_after(&directory, known.last_seq)
        .map_err(|error| FleetError::Host(error.to_string()))?;
    if rest.is_empty() {
        return Ok(known.last_seq);
    }
    let (first, last) = (known.last_seq + 1, known.last_seq + rest.len() as u64);
    // Where this host took the lease for lost, the database decides.
    known.lost = None;
    let (lines, incoming) = mpsc::unbounded_channel();
    let (session, lease) = (left.seat.session.clone(), left.seat.lease.clone());
    let state = watch::channel(known).0;
    let seat = Arc::new(Seat { session, token: String::new(), lease, state, lines });
    let (workspace, audit) = ((Arc::clone(&left.workspace), objects), left.audit.clone());
    let appender = Appender::new(Arc::clone(&seat), database, workspace, directory, audit);
    let mut state = seat.state.subscribe();
    let _ = seat.lines.send(Lines { first, lines: rest });
    let appended = async {
        let over = state.wait_for(|state| state.lost.is_some() || state.last_seq >= last);
        over.await.ok().and_then(|state| state.lost.clone())
    };
    let appending = async {
        appender.run(incoming).await;
        // It ends by itself where a line is not appended. The seat knows why.
        std::future::pending().await
    };
    tokio::select! {
        lost = appended => lost.map_or(Ok(last), |why| Err(FleetError::Host(why))),
        () = appending => Ok(last),
        () = tokio::time::sleep(most) => {
            let most = most.as_secs();
            Err(FleetError::ThisHost(format!("its last records and files are not stored within {most} s")))
        }
    }
}
