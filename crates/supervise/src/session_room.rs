//! For how many sessions the limits of this process suffice. Computed when the supervisor starts; a session
//! beyond that is refused before anything of it is started. Pure.

use protocol::client::RequestFailure;
use setup::open_failure::OpenFailure;

/// Descriptors of the supervisor for an idle session; measured with 20 sessions: 9.
const FILES_EACH: u64 = 10;
/// Processes and threads of an idle session; measured with 20 sessions: 2.4.
const PROCESSES_EACH: u64 = 3;
/// Room for the supervisor, its clients and some calls at work, of each.
const RESERVED: u64 = 128;

/// A limit of the supervisor's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLimit {
    /// The value.
    pub value: u64,
    /// Who sets it, in words: `ulimit -n`.
    pub source: String,
}

/// The limits that sessions use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLimits {
    /// Open files of the supervisor's process.
    pub open_files: HostLimit,
    /// Processes and threads; absent without a limit.
    pub processes: Option<HostLimit>,
}

/// The number of sessions, and the limit behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRoom {
    /// Most open sessions.
    pub sessions: u64,
    /// The limit in words: `open files 1024 (ulimit -n)`.
    pub limit: String,
}

impl SessionRoom {
    /// The room that these limits leave: at least one session, which may then fail by itself.
    #[must_use]
    pub fn of(limits: &HostLimits) -> Self {
        let by = |what: &str, limit: &HostLimit, each: u64| Self {
            sessions: (limit.value.saturating_sub(RESERVED) / each).max(1),
            limit: format!("{what} {} ({})", limit.value, limit.source),
        };
        let files = by("open files", &limits.open_files, FILES_EACH);
        let processes = limits.processes.as_ref();
        let processes = processes.map(|limit| by("processes", limit, PROCESSES_EACH));
        match processes {
            Some(processes) if processes.sessions < files.sessions => processes,
            Some(_) | None => files,
        }
    }

    /// Why one more session is refused, if these are open.
    pub(crate) fn refusal(&self, open: usize) -> Option<OpenFailure> {
        let Self { sessions, limit } = self;
        if (open as u64) < *sessions {
            return None;
        }
        let message = format!(
            "{open} sessions are open, and this daemon has room for {sessions}: {limit}. End one with \
             `agentd kill ID`, or raise the limit and restart the daemon (`ulimit -n`, `ulimit -u`; in a \
             systemd unit LimitNOFILE=, TasksMax=)"
        );
        Some(OpenFailure::new(RequestFailure::NoRoom, message))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn limit(value: u64, source: &str) -> HostLimit {
        HostLimit { value, source: source.to_owned() }
    }

    fn room(files: u64, processes: Option<u64>) -> SessionRoom {
        SessionRoom::of(&HostLimits {
            open_files: limit(files, "ulimit -n"),
            processes: processes.map(|value| limit(value, "ulimit -u")),
        })
    }

    #[test]
    fn the_limit_that_is_reached_first_counts() {
        let named = |room: SessionRoom| (room.sessions, room.limit);
        assert_eq!(named(room(1024, None)), (89, "open files 1024 (ulimit -n)".to_owned()));
        assert_eq!(named(room(65_536, Some(400))), (90, "processes 400 (ulimit -u)".to_owned()));
        assert_eq!(named(room(1024, Some(395))), (89, "open files 1024 (ulimit -n)".to_owned()));
        assert_eq!(room(20, Some(5)).sessions, 1, "a run of one session is tried");
    }

    #[test]
    fn a_session_beyond_the_room_is_refused_with_the_limit_and_a_way_on() {
        let room = room(148, None);
        assert_eq!(room.sessions, 2);
        assert!(room.refusal(0).is_none() && room.refusal(1).is_none());
        let refused = room.refusal(2).unwrap();
        assert_eq!(refused.kind, RequestFailure::NoRoom);
        for words in
            ["2 sessions are open", "open files 148 (ulimit -n)", "agentd kill", "TasksMax="]
        {
            assert!(refused.message.contains(words), "{words}: {}", refused.message);
        }
    }
}
