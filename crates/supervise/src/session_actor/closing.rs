//! Whether a session starts turns and calls. It starts no turn while the supervisor looks for work before a shutdown,
//! and once it ends: prompts wait on disk meanwhile, as during a turn. Pure.

use protocol::call::{Call, CallOrigin};
use protocol::client::SessionEnding;
use protocol::hook::HookEvent;

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
