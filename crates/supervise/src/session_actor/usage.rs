//! The use of a session, and its reasons to stay open. A session that only scripts use ends when its run is over and
//! no client is attached. One that a person opened stays until the person ends it, or the daemon ends. One that the disk
//! has made read-only ends when its last client leaves, so that the next client opens it again. Pure.

use super::joins::SessionUse;
use crate::messages::SessionSummary;
use protocol::client::SessionStatus;
use protocol::judgement::Audience;
use setup::session_spec::SessionSpec;

/// The present use of a session, from all of its parts.
#[derive(Debug)]
pub(super) struct SessionNow {
    /// Why it takes nothing more, if so.
    pub(super) degraded: Option<String>,
    /// Its journal can be written.
    pub(super) is_on_disk: bool,
    /// Open questions.
    pub(super) asking: usize,
    /// Calls that the conversation waits for.
    pub(super) calls: usize,
    /// Commands in the background.
    pub(super) commands: usize,
    pub(super) is_busy: bool,
    /// A new prompt has to wait.
    pub(super) must_queue: bool,
    /// How deaths cut the last turn short.
    pub(super) cut_short: Option<String>,
    pub(super) turns: u32,
    /// Attached clients.
    pub(super) clients: usize,
    /// Clients have yet to attach.
    pub(super) expects_clients: bool,
    /// A parent waits for its work.
    pub(super) is_awaited: bool,
    pub(super) ends: bool,
    pub(super) keeper: Keeper,
}

/// Who keeps a session open that does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    /// The person who opened it, or who joins from the next turn on.
    Person,
    /// It ends with its run, or with the work of its sub-agent.
    Work,
}

impl Keeper {
    pub(super) fn of(spec: &SessionSpec, next: Option<Audience>) -> Self {
        let is_own = spec.rules().audience == Audience::Person && spec.task().is_none();
        match is_own || next == Some(Audience::Person) {
            true => Self::Person,
            false => Self::Work,
        }
    }
}

impl SessionNow {
    pub(super) fn present_use(&self) -> SessionUse {
        match (self.must_queue, self.clients > 0) {
            (true, _) => SessionUse::Works,
            (false, true) => SessionUse::Watched,
            (false, false) => SessionUse::Unused,
        }
    }

    /// It must not end by itself.
    pub(super) fn is_needed(&self) -> bool {
        let has_work = self.expects_clients || self.calls > 0 || self.ends;
        if !self.is_on_disk {
            // Its turn cannot go on here. It can be read from the disk, and opening it again is the way on.
            return has_work || self.clients > 0;
        }
        has_work
            || self.present_use() != SessionUse::Unused
            || self.is_awaited
            || self.keeper == Keeper::Person
            // It can be read, and `agentd restart` finds it.
            || self.degraded.is_some()
    }

    pub(super) fn summary(self) -> SessionSummary {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let state = match (self.degraded, self.cut_short) {
            (Some(why), _) => SessionStatus::Degraded(why),
            (None, _) if self.asking > 0 => SessionStatus::Asking(count(self.asking)),
            (None, _) if self.is_busy => SessionStatus::Working,
            (None, _) if self.commands > 0 => SessionStatus::Background(count(self.commands)),
            (None, Some(deaths)) => SessionStatus::IdleCutShort(deaths),
            (None, None) => SessionStatus::Idle,
        };
        SessionSummary { state, clients: count(self.clients), turns: self.turns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(keeper: Keeper) -> SessionNow {
        SessionNow {
            degraded: None,
            is_on_disk: true,
            asking: 0,
            calls: 0,
            commands: 0,
            is_busy: false,
            must_queue: false,
            cut_short: None,
            turns: 1,
            clients: 0,
            expects_clients: false,
            is_awaited: false,
            ends: false,
            keeper,
        }
    }

    #[test]
    fn an_idle_session_stays_for_a_person_and_for_all_that_still_concerns_it() {
        let of_work = || idle(Keeper::Work);
        assert!(!of_work().is_needed());
        assert!(idle(Keeper::Person).is_needed());
        for needed in [
            SessionNow { clients: 1, ..of_work() },
            SessionNow { expects_clients: true, ..of_work() },
            SessionNow { calls: 1, ..of_work() },
            SessionNow { must_queue: true, ..of_work() },
            SessionNow { is_awaited: true, ..of_work() },
            SessionNow { degraded: Some("its provider has failed".to_owned()), ..of_work() },
            SessionNow { ends: true, ..of_work() },
        ] {
            assert!(needed.is_needed(), "{needed:?}");
        }
        assert!(!SessionNow { commands: 1, ..of_work() }.is_needed(), "they end with its run");
    }

    #[test]
    fn a_session_without_a_disk_stays_only_for_clients_and_calls() {
        let no_disk = || SessionNow {
            is_on_disk: false,
            degraded: Some("it is full".to_owned()),
            must_queue: true,
            is_awaited: true,
            ..idle(Keeper::Person)
        };
        assert!(!no_disk().is_needed());
        assert!(SessionNow { clients: 1, ..no_disk() }.is_needed());
        assert!(SessionNow { calls: 1, ..no_disk() }.is_needed());
    }

    #[test]
    fn people_see_the_most_urgent_state() {
        let all = || SessionNow {
            asking: 2,
            is_busy: true,
            commands: 3,
            cut_short: Some("it died".to_owned()),
            ..idle(Keeper::Person)
        };
        let state = |now: SessionNow| now.summary().state;
        assert_eq!(state(all()), SessionStatus::Asking(2));
        assert_eq!(state(SessionNow { asking: 0, ..all() }), SessionStatus::Working);
        let quiet = || SessionNow { asking: 0, is_busy: false, ..all() };
        assert_eq!(state(quiet()), SessionStatus::Background(3));
        let died = SessionStatus::IdleCutShort("it died".to_owned());
        assert_eq!(state(SessionNow { commands: 0, ..quiet() }), died);
        let degraded = SessionNow { degraded: Some("full".to_owned()), ..all() };
        assert_eq!(state(degraded), SessionStatus::Degraded("full".to_owned()));
    }
}
