//! The end of a session: how far it is, and the order in which its calls, its workers and its actor end. Before
//! that, times in which it starts no turn, while the supervisor looks for work before a shutdown: prompts wait on
//! disk meanwhile, as during a turn. [`Closing`] is pure.

use super::links::OwnProcesses;
use crate::messages::{CallMsg, ReserveMsg, SessionMsg};
use call::CallInput;
use protocol::call::{Call, CallOrigin};
use protocol::client::SessionEnding;
use protocol::hook::HookEvent;
use ractor::ActorRef;
use std::time::{Duration, Instant};

/// How long the end of a session waits for the repair of protected files whose runners were killed.
const REPAIR: Duration = Duration::from_secs(3);
/// How long runners may take to end when a person kills the session; they need a third of it.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// Whether the session starts turns and calls, and how far its end is; `D` is told when it has ended.
#[derive(Debug)]
pub(super) struct Closing<D> {
    /// Not empty once it is ending.
    asked: Vec<D>,
    phase: Phase,
    /// How many times it was paused and not resumed: the supervisor looks for work before a shutdown.
    pauses: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The hooks of the end run; calls of the conversation do not begin.
    Hooks,
    /// Calls and workers are ended.
    Processes,
}

/// What follows when the end is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndWanted {
    /// The session begins to end.
    First,
    /// It does not wait for its hooks any longer.
    Hurries,
    /// It ends already.
    Again,
}

impl<D> Closing<D> {
    pub(super) fn not_yet() -> Self {
        Self { asked: Vec::new(), phase: Phase::Open, pauses: 0 }
    }

    pub(super) fn pause(&mut self) {
        self.pauses += 1;
    }

    /// A shutdown was refused.
    pub(super) fn resume(&mut self) {
        self.pauses = self.pauses.saturating_sub(1);
    }

    /// A prompt has to wait although no turn runs.
    pub(super) fn holds_turns(&self) -> bool {
        self.pauses > 0 || self.has_begun()
    }

    /// The session is ending.
    pub(super) fn has_begun(&self) -> bool {
        !self.asked.is_empty()
    }

    pub(super) fn is_wanted(&mut self, done: D, ending: SessionEnding) -> EndWanted {
        let first = !self.has_begun();
        self.asked.push(done);
        match (first, ending, self.phase) {
            (true, _, _) => EndWanted::First,
            (false, SessionEnding::Kill, Phase::Hooks) => EndWanted::Hurries,
            (false, _, _) => EndWanted::Again,
        }
    }

    pub(super) fn hooks_run(&mut self) {
        self.phase = Phase::Hooks;
    }

    pub(super) fn awaits_hooks(&self) -> bool {
        self.phase == Phase::Hooks
    }

    pub(super) fn processes_end(&mut self) {
        self.phase = Phase::Processes;
    }

    /// True if a call may begin: in a session that ends, only a hook of that end.
    pub(super) fn may_start(&self, call: &Call) -> bool {
        let of_end =
            call.origin == CallOrigin::EventHook && call.tool == HookEvent::SessionEnd.tool();
        !self.has_begun() || (self.awaits_hooks() && of_end)
    }

    /// It has ended. Returns all who asked for that.
    pub(super) fn is_over(&mut self) -> Vec<D> {
        std::mem::take(&mut self.asked)
    }
}

/// What is left of a session that ends.
pub(super) struct Rest {
    pub(super) calls: Vec<ActorRef<CallMsg>>,
    pub(super) reserve: Option<ActorRef<ReserveMsg>>,
    pub(super) processes: OwnProcesses,
    /// How long each of them may take.
    pub(super) patience: Duration,
}

impl Rest {
    pub(super) async fn end(self, ending: SessionEnding, session: ActorRef<SessionMsg>) {
        let Self { calls, reserve, processes, patience } = self;
        let for_runners = match ending {
            SessionEnding::Stop => patience,
            SessionEnding::Kill => patience.min(KILL_GRACE),
        };
        // Commands end at once. All runners together have this time to restore protected files.
        wait_for(&calls, for_runners).await;
        for call in &calls {
            let _ = call.send_message(CallMsg::Input(CallInput::Overdue));
        }
        // Repair processes restore the rest; files that they do not reach are restored when the
        // session is opened again.
        wait_for(&calls, REPAIR).await;
        calls.iter().for_each(|call| call.stop(None));
        if let Some(reserve) = reserve {
            let _ = reserve.wait(Some(REPAIR)).await;
        }
        processes.end(patience + Duration::from_secs(1)).await;
        session.stop(None);
    }
}

/// Waits until all of these calls have ended, for at most this time.
async fn wait_for(calls: &[ActorRef<CallMsg>], time: Duration) {
    let until = Instant::now() + time;
    for call in calls {
        let left = until.saturating_duration_since(Instant::now());
        let _ = call.wait(Some(left)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ids::{CallId, SessionId};

    fn call(origin: CallOrigin, tool: &str) -> Call {
        let id = CallId { session: SessionId("0123456789ab".into()), number: 1 };
        Call { id, origin, tool: tool.into(), input: "{}".into() }
    }

    #[test]
    fn a_session_ends_once_and_a_kill_does_not_wait_for_its_hooks() {
        let mut closing = Closing::not_yet();
        assert_eq!(closing.is_wanted(1, SessionEnding::Stop), EndWanted::First);
        closing.hooks_run();
        assert_eq!(closing.is_wanted(2, SessionEnding::Stop), EndWanted::Again);
        assert_eq!(closing.is_wanted(3, SessionEnding::Kill), EndWanted::Hurries);
        closing.processes_end();
        assert_eq!(closing.is_wanted(4, SessionEnding::Kill), EndWanted::Again);
        assert!(!closing.awaits_hooks());
        assert_eq!(closing.is_over(), [1, 2, 3, 4]);
    }

    #[test]
    fn only_hooks_of_the_end_begin_in_a_session_that_ends() {
        let own = call(CallOrigin::PinnedRead, "read");
        let hook = call(CallOrigin::EventHook, HookEvent::SessionEnd.tool());
        let other = call(CallOrigin::EventHook, HookEvent::PreToolUse.tool());
        let mut closing = Closing::not_yet();
        assert!([&own, &hook, &other].iter().all(|call| closing.may_start(call)));
        closing.is_wanted((), SessionEnding::Stop);
        assert!(!closing.may_start(&hook), "its hooks do not run yet");
        closing.hooks_run();
        assert_eq!([&own, &hook, &other].map(|call| closing.may_start(call)), [false, true, false]);
        closing.processes_end();
        assert!(!closing.may_start(&hook));
    }

    #[test]
    fn turns_are_held_until_the_session_is_resumed_as_often_as_it_was_paused() {
        let mut closing = Closing::not_yet();
        closing.pause();
        closing.pause();
        closing.resume();
        assert!(closing.holds_turns());
        closing.resume();
        closing.resume();
        assert!(!closing.holds_turns());
        closing.is_wanted((), SessionEnding::Stop);
        assert!(closing.holds_turns());
    }
}
