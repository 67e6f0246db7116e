//! Sub-agents of a session, and its own work if it is one. `start` prepares the start of a sub-agent, `begin` starts
//! and ends it, `run` opens its session and waits for it, and `own` speaks to the parent of a sub-agent's session.
//! Pure but for those; `S` is the address of a session, `H` a handle that stops a sub-agent when it is dropped, and `W` the
//! address of a parent that waits for the outcome.
//!
//! The name of a sub-agent's session follows from its parent and the call. So a call that is repeated after a
//! crash finds the session that works for it already, and waits for the same answer.

mod begin;
mod own;
mod run;
pub(super) mod start;

pub(super) use begin::TaskHost;
pub(super) use own::{ENDED, ask_bounds};

use crate::records::origin;
use journal::OpenCall;
use protocol::call::{Call, Outcome, ToolResult};
use protocol::ids::{CallId, SessionId};
use setup::session_spec::{TaskShare, is_below, session_of};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The sub-agents of a session.
#[derive(Debug)]
pub(super) struct SubAgents<S, H> {
    /// The session that they work for.
    own: SessionId,
    /// By the calls that wait for them.
    running: BTreeMap<u32, SubAgent<S, H>>,
    /// Calls of sub-agents in the background that an earlier supervisor left: waited for again once the session
    /// is open.
    left: Vec<OpenCall>,
}

/// A sub-agent that works for a call.
#[derive(Debug)]
struct SubAgent<S, H> {
    agent: String,
    /// Its part of the budget, until its use is counted.
    share: TaskShare,
    /// Once it is open.
    session: Option<S>,
    /// Dropped to stop it, also by the end of this session.
    stop: Option<H>,
}

impl<S, H> SubAgents<S, H> {
    /// Of a session that has just been opened, with these calls of sub-agents that an earlier supervisor left.
    pub(super) fn resumed(own: SessionId, left: Vec<OpenCall>) -> Self {
        Self { own, running: BTreeMap::new(), left }
    }

    /// The calls that an earlier supervisor left, once.
    pub(super) fn take_left(&mut self) -> Vec<Call> {
        let again = |open: OpenCall| {
            let id = CallId { session: self.own.clone(), number: open.number };
            Call { id, origin: origin::of_open(&open), tool: open.tool, input: open.input }
        };
        std::mem::take(&mut self.left).into_iter().map(again).collect()
    }

    /// A line for the call of a sub-agent whose session another process uses.
    pub(super) fn waits(&self, call: u32) -> String {
        let child = session_of(&self.own, call);
        format!("waits: another process uses session {child} of the sub-agent\n")
    }

    /// How many more may begin, of this number at most.
    ///
    /// # Errors
    /// The result of the call that finds no room.
    pub(super) fn room(&self, most: u32) -> Result<u32, ToolResult> {
        let running = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        match most.saturating_sub(running) {
            0 => {
                let text =
                    format!("{most} sub-agents run already, which is the limit agents.at_once");
                Err(refused("too_many", text))
            }
            room => Ok(room),
        }
    }

    /// The parts of the budget that the running ones have.
    pub(super) fn shares(&self) -> Vec<TaskShare> {
        self.running.values().map(|running| running.share).collect()
    }

    /// It works for this call from now on.
    fn begins(&mut self, call: u32, agent: String, share: TaskShare, stop: H) {
        self.running.insert(call, SubAgent { agent, share, session: None, stop: Some(stop) });
    }

    /// It did its work for this call in another run of this session. The handle stops the wait for its worktree.
    fn has_finished(&mut self, call: u32, agent: String, stop: Option<H>) {
        let share = TaskShare { calls: None, cost: None };
        self.running.insert(call, SubAgent { agent, share, session: None, stop });
    }

    /// Its session is open. Returns a line for its call; none if that has ended.
    pub(super) fn opened(&mut self, call: u32, session: S) -> Option<String> {
        let child = session_of(&self.own, call);
        let running = self.running.get_mut(&call)?;
        running.session = Some(session);
        Some(format!("sub-agent {} works in session {child}\n", running.agent))
    }

    /// The task that waits for it ends it, or never begins it.
    pub(super) fn stop(&mut self, call: u32) {
        if let Some(running) = self.running.get_mut(&call) {
            running.stop = None;
        }
    }

    pub(super) fn has(&self, call: u32) -> bool {
        self.running.contains_key(&call)
    }

    /// Its call has ended; false for the call of another tool.
    pub(super) fn ends(&mut self, call: u32) -> bool {
        self.running.remove(&call).is_some()
    }

    /// The open sessions.
    fn sessions(&self) -> impl Iterator<Item = &S> {
        self.running.values().filter_map(|running| running.session.as_ref())
    }

    /// The call that this session works for.
    pub(super) fn call_of(&self, child: &SessionId) -> Option<u32> {
        self.running.keys().find(|call| session_of(&self.own, **call) == *child).copied()
    }

    /// The open session through which this one, somewhere below this session, is reached.
    fn way_to(&self, below: &SessionId) -> Option<&S> {
        let (_, running) = self.running.iter().find(|(call, _)| {
            let child = session_of(&self.own, **call);
            *below == child || is_below(below, &child)
        })?;
        running.session.as_ref()
    }
}

/// The work of a sub-agent's session, for which parents wait.
#[derive(Debug)]
pub(super) struct OwnTask<S, W> {
    place: OwnPlace,
    /// The session that gave the work, while that runs.
    parent: Option<S>,
    /// Parents that wait for its end.
    waiting: Vec<W>,
}

/// The session that does the work.
#[derive(Debug)]
pub(super) struct OwnPlace {
    pub(super) session: SessionId,
    /// The name of the agent; empty if the session is no sub-agent's.
    pub(super) agent: String,
    /// The journal.
    pub(super) directory: PathBuf,
}

impl<S, W> OwnTask<S, W> {
    /// No parent waits yet.
    pub(super) fn at(place: OwnPlace) -> Self {
        Self { place, parent: None, waiting: Vec::new() }
    }

    /// This session gave the work.
    fn given_by(&mut self, parent: S) {
        self.parent = Some(parent);
    }

    /// A parent waits for the end.
    fn await_end(&mut self, parent: W) {
        self.waiting.push(parent);
    }

    pub(super) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The work has ended. Returns all that wait for it; its questions are no matter of theirs any more.
    fn ended(&mut self) -> Vec<W> {
        self.parent = None;
        std::mem::take(&mut self.waiting)
    }

    /// Its records cannot be read: parents see that nobody answers.
    fn cannot_be_read(&mut self) {
        self.waiting.clear();
    }
}

/// The result of a call whose sub-agent does not begin.
pub(super) fn refused(code: &str, text: String) -> ToolResult {
    ToolResult::error(Outcome::Failed, code, "task", &text, "Do the work yourself.")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::rc::Rc;

    type TestAgents = SubAgents<&'static str, Rc<()>>;

    fn own_session() -> SessionId {
        SessionId("0123456789ab".into())
    }

    fn own_task() -> OwnTask<&'static str, u8> {
        let session = own_session();
        OwnTask::at(OwnPlace { session, agent: String::new(), directory: PathBuf::new() })
    }

    fn share(calls: u32) -> TaskShare {
        TaskShare { calls: Some(calls), cost: None }
    }

    #[test]
    fn as_many_run_at_once_as_the_limit_says_and_each_keeps_its_share() {
        let mut sub_agents = TestAgents::resumed(own_session(), Vec::new());
        assert_eq!(sub_agents.room(2), Ok(2));
        sub_agents.begins(1, "general".into(), share(7), Rc::default());
        assert_eq!(sub_agents.room(2), Ok(1));
        sub_agents.has_finished(2, "general".into(), None);
        let full = sub_agents.room(2).unwrap_err();
        assert!(full.text.contains("2 sub-agents run already"), "{}", full.text);
        assert_eq!(sub_agents.shares(), [share(7), TaskShare { calls: None, cost: None }]);
        // The limit was lowered meanwhile.
        assert!(sub_agents.room(1).is_err());
        assert!(sub_agents.ends(1) && !sub_agents.ends(1));
        assert_eq!(sub_agents.room(2), Ok(1));
    }

    #[test]
    fn a_stop_and_the_end_of_its_call_drop_the_handle_of_a_sub_agent() {
        let mut sub_agents = TestAgents::resumed(own_session(), Vec::new());
        let (one, two, three) = (Rc::new(()), Rc::new(()), Rc::new(()));
        sub_agents.begins(1, "one".into(), share(1), Rc::clone(&one));
        sub_agents.begins(2, "two".into(), share(1), Rc::clone(&two));
        sub_agents.has_finished(3, "three".into(), Some(Rc::clone(&three)));
        let counts = || [&one, &two, &three].map(Rc::strong_count);
        sub_agents.stop(9);
        assert_eq!(counts(), [2, 2, 2]);
        sub_agents.stop(1);
        assert_eq!(counts(), [1, 2, 2]);
        assert!(sub_agents.has(1), "its end is still to come");
        sub_agents.ends(2);
        assert_eq!(counts(), [1, 1, 2]);
        drop(sub_agents);
        assert_eq!(counts(), [1, 1, 1]);
    }

    #[test]
    fn an_answer_finds_its_way_to_sessions_below_a_sub_agent() {
        let mut sub_agents = TestAgents::resumed(own_session(), Vec::new());
        let below = |tail: &str| SessionId(format!("{}{tail}", own_session()));
        sub_agents.begins(1, "one".into(), share(1), Rc::default());
        sub_agents.begins(11, "eleven".into(), share(1), Rc::default());
        assert_eq!(sub_agents.way_to(&below("-1")), None, "it is not open");
        let line = |name, call| format!("sub-agent {name} works in session 0123456789ab-{call}\n");
        assert_eq!(sub_agents.opened(1, "at one"), Some(line("one", 1)));
        assert_eq!(sub_agents.opened(11, "at eleven"), Some(line("eleven", 11)));
        assert_eq!(sub_agents.opened(2, "at two"), None, "its call has ended");
        assert_eq!(sub_agents.way_to(&below("-1")), Some(&"at one"));
        assert_eq!(sub_agents.way_to(&below("-1-4-2")), Some(&"at one"));
        assert_eq!(sub_agents.way_to(&below("-11-1")), Some(&"at eleven"));
        assert_eq!(sub_agents.way_to(&below("-2")), None);
        assert_eq!(sub_agents.sessions().collect::<Vec<_>>(), [&"at one", &"at eleven"]);
    }

    #[test]
    fn all_parents_that_wait_are_answered_once_and_hear_no_question_after_it() {
        let mut own = own_task();
        own.given_by("parent");
        own.await_end(1);
        // The parent was opened again, and its call waits again.
        own.await_end(2);
        assert!(own.is_awaited());
        assert_eq!(own.parent.as_ref(), Some(&"parent"));
        assert_eq!(own.ended(), [1, 2]);
        assert_eq!((own.parent.as_ref(), own.is_awaited()), (None, false));
        assert_eq!(own.ended(), Vec::<u8>::new());
    }

    #[test]
    fn parents_of_unreadable_work_wait_no_longer() {
        let mut own = own_task();
        own.given_by("parent");
        own.await_end(1);
        own.cannot_be_read();
        assert!(!own.is_awaited());
        assert_eq!(own.parent.as_ref(), Some(&"parent"), "its person still answers questions");
    }
}
