//! The clients of a session: who is attached, who is expected, who missed an event, and who waits for something
//! else than an event. Pure, but for `shown`, which encodes the events and queues them. `C` is the address of a
//! client, and `F` the queue of its events.

mod shown;

pub(super) use shown::{Attaching, fail, tell};

use crate::person_prompt::PersonPrompt;
use protocol::client::{AnswerForm, WhileBusy};
use protocol::ids::SessionId;
use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};

/// The address of a client.
pub(super) trait Address {
    type Id: Copy + Eq + Hash + fmt::Debug;
    fn id(&self) -> Self::Id;
}

/// All clients of a session.
#[derive(Debug)]
pub(super) struct Clients<C: Address, F> {
    session: SessionId,
    attached: Vec<AttachedClient<C, F>>,
    /// Clients that opened the session and have yet to attach.
    expected: HashSet<C::Id>,
    /// Clients that wait for a report of the model's context.
    of_context: Vec<C>,
    /// Prompts that name a server which starts.
    prompts: Vec<WaitingPrompt<C>>,
    /// Clients were shown the hook that does not run because the project is not trusted.
    untrusted_hook_shown: bool,
}

/// An attached client.
#[derive(Debug)]
struct AttachedClient<C, F> {
    client: C,
    feed: F,
    /// It missed an event and gets no more until it attaches again: its gap begins after the last
    /// event that it got.
    behind: AtomicBool,
}

/// A prompt that waits for a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WaitingPrompt<C> {
    pub(super) client: C,
    pub(super) text: String,
    pub(super) form: Option<AnswerForm>,
    pub(super) busy: WhileBusy,
}

/// The fate of an event for one client.
#[derive(Debug, PartialEq, Eq)]
enum ShownTo<'a, C> {
    /// It has it, or gets it when it attaches again.
    Client,
    /// It missed it, as the first one.
    Missed(&'a C),
    /// It is not attached.
    Stranger,
}

impl<C: Address, F> Clients<C, F> {
    /// Of this session, which has just been opened.
    pub(super) fn none_yet(session: SessionId) -> Self {
        Self {
            session,
            attached: Vec::new(),
            expected: HashSet::new(),
            of_context: Vec::new(),
            prompts: Vec::new(),
            untrusted_hook_shown: false,
        }
    }

    /// It opened the session, or receives its backlog.
    pub(super) fn expects(&mut self, client: C::Id) {
        self.expected.insert(client);
    }

    /// It attaches no more, or does so now.
    fn expects_no_more(&mut self, client: C::Id) {
        self.expected.remove(&client);
    }

    /// It gets the events from now on, with this queue alone.
    fn begin(&mut self, client: C, feed: F) {
        self.expects_no_more(client.id());
        self.attached.retain(|attached| attached.client.id() != client.id());
        self.attached.push(AttachedClient { client, feed, behind: AtomicBool::new(false) });
    }

    /// It sees nothing more, or has gone before it saw anything.
    pub(super) fn leaves(&mut self, client: &C) {
        self.expects_no_more(client.id());
        self.attached.retain(|attached| attached.client.id() != client.id());
        self.of_context.retain(|waiting| waiting.id() != client.id());
    }

    /// Detaches all clients, and returns them.
    fn detach_all(&mut self) -> Vec<C> {
        std::mem::take(&mut self.attached).into_iter().map(|attached| attached.client).collect()
    }

    pub(super) fn attached_count(&self) -> usize {
        self.attached.len()
    }

    pub(super) fn any_attached(&self) -> bool {
        !self.attached.is_empty()
    }

    pub(super) fn any_expected(&self) -> bool {
        !self.expected.is_empty()
    }

    pub(super) fn has(&self, client: &C) -> bool {
        self.attached.iter().any(|attached| attached.client.id() == client.id())
    }

    /// Queues an event for all that are not behind, where there is room. Returns those that miss it.
    fn put(&self, put: impl Fn(&F) -> bool) -> Vec<&C> {
        self.attached.iter().filter_map(|attached| attached.put(&put)).collect()
    }

    /// Queues an event for one client alone.
    fn put_to(&self, client: &C, put: impl Fn(&F) -> bool) -> ShownTo<'_, C> {
        match self.attached.iter().find(|attached| attached.client.id() == client.id()) {
            Some(attached) => attached.put(put).map_or(ShownTo::Client, ShownTo::Missed),
            None => ShownTo::Stranger,
        }
    }

    /// It waits for a report of the model's context.
    pub(super) fn ask_context(&mut self, client: C) {
        self.of_context.push(client);
    }

    /// The report is there, for these.
    fn take_context_askers(&mut self) -> Vec<C> {
        std::mem::take(&mut self.of_context)
    }

    /// It waits for a server, or behind a prompt that does.
    pub(super) fn keep_prompt(&mut self, prompt: WaitingPrompt<C>) {
        self.prompts.push(prompt);
    }

    pub(super) fn any_prompt_waits(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Why a person's own command does not run now, for the person.
    pub(super) fn why_not_run(&self, typed: &PersonPrompt) -> Option<&'static str> {
        if typed.is_blank_command() {
            return Some("write a command behind `!`, as in `!git status`");
        }
        self.any_prompt_waits().then_some(
            "a prompt waits for an MCP server to start; run the command when it has begun",
        )
    }

    /// A server is ready or has ended: the prompts that wait are read again, in their order.
    pub(super) fn take_prompts(&mut self) -> Vec<WaitingPrompt<C>> {
        std::mem::take(&mut self.prompts)
    }

    pub(super) fn was_untrusted_hook_shown(&self) -> bool {
        self.untrusted_hook_shown
    }

    /// Clients are shown the hook that does not run, once.
    pub(super) fn untrusted_hook_is_shown(&mut self) {
        self.untrusted_hook_shown = true;
    }
}

impl<C, F> AttachedClient<C, F> {
    /// The client, if it misses an event for the first time.
    fn put(&self, put: impl Fn(&F) -> bool) -> Option<&C> {
        if self.behind.load(Ordering::Relaxed) || put(&self.feed) {
            return None;
        }
        self.behind.store(true, Ordering::Relaxed);
        Some(&self.client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    impl Address for u8 {
        type Id = u8;
        fn id(&self) -> u8 {
            *self
        }
    }

    /// A queue with this much room.
    type Room = Cell<u8>;

    fn put(room: &Room) -> bool {
        let left = room.get().checked_sub(1);
        left.inspect(|left| room.set(*left)).is_some()
    }

    fn with(rooms: &[(u8, u8)]) -> Clients<u8, Room> {
        let mut clients = Clients::none_yet(SessionId("0123456789ab".into()));
        rooms.iter().for_each(|(client, room)| clients.begin(*client, Room::new(*room)));
        clients
    }

    #[test]
    fn a_client_without_room_misses_one_event_and_gets_none_until_it_attaches_again() {
        let mut clients = with(&[(1, 1), (2, 9)]);
        assert_eq!(clients.put(put), Vec::<&u8>::new());
        assert_eq!(clients.put(put), [&1], "it is full");
        assert_eq!(clients.put(put), Vec::<&u8>::new(), "it knows that already");
        assert_eq!(clients.put_to(&1, put), ShownTo::Client);
        clients.begin(1, Room::new(1));
        assert_eq!((clients.attached_count(), clients.put(put).len()), (2, 0));
        assert_eq!(clients.put_to(&1, put), ShownTo::Missed(&1));
        assert_eq!(clients.put_to(&3, put), ShownTo::Stranger);
    }

    #[test]
    fn a_client_is_expected_until_it_attaches_or_leaves() {
        let mut clients = with(&[]);
        clients.expects(1);
        clients.expects(2);
        assert!(clients.any_expected() && !clients.any_attached());
        clients.begin(1, Room::new(1));
        assert!(clients.any_expected() && clients.has(&1) && !clients.has(&2));
        clients.leaves(&2);
        assert!(!clients.any_expected());
        clients.leaves(&1);
        assert!(!clients.any_attached() && !clients.has(&1));
    }

    #[test]
    fn all_are_detached_at_once() {
        let mut clients = with(&[(1, 1), (2, 1)]);
        clients.expects(3);
        assert_eq!(clients.detach_all(), [1, 2]);
        assert!(!clients.any_attached() && clients.any_expected());
    }

    #[test]
    fn a_client_that_has_gone_gets_no_report_and_its_prompt_is_still_read() {
        let mut clients = with(&[(1, 1), (2, 1)]);
        clients.ask_context(1);
        clients.ask_context(2);
        let prompt =
            WaitingPrompt { client: 1, text: "@s:a".into(), form: None, busy: WhileBusy::Queue };
        clients.keep_prompt(prompt.clone());
        clients.leaves(&1);
        assert_eq!(clients.take_context_askers(), [2]);
        assert_eq!(clients.take_context_askers(), Vec::<u8>::new());
        assert!(clients.any_prompt_waits());
        assert_eq!(clients.take_prompts(), [prompt]);
        assert!(!clients.any_prompt_waits());
    }
}
