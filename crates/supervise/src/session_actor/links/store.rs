//! The work that a session's store has to do, kept until it is done: the session can do without the store for a
//! while. While it is away, calls that need it wait a moment or fail; nothing else does. [`StoreQueue`] is pure; `D`
//! is a call that waits for its copies, and `C` the address of a client.

use crate::messages::{BackupOf, CallMsg, ClientMsg};
use crate::session_actor::running_calls::RunningCalls;
use crate::unix_time::now_ns;
use crate::worker::actor::WorkerEvent;
use crate::worker_ref::WorkerRef;
use call::{CallInput, WillRestart};
use launch::log_lines;
use protocol::client::ToClient;
use protocol::ids::{CallId, Generation, SessionId};
use protocol::judgement::PermissionMode;
use protocol::store::{
    ChangeSet, FileChanges, FromStore, SnapshotBefore, StoreCommand, StoreLink, ToStore, UndoCover,
};
use ractor::{ActorId, ActorRef};
use setup::session_spec::SessionSpec;
use std::collections::HashMap;
use tokio::sync::oneshot;

/// The store of a session.
pub(crate) struct StoreSeat {
    session: SessionId,
    process: WorkerRef<StoreLink>,
    queue: StoreQueue<oneshot::Sender<UndoCover>, ActorRef<ClientMsg>>,
}

/// What the session has to do about the store.
pub(crate) enum StoreNews {
    /// Nothing: it was for a call, or a client.
    Handled,
    /// The project's instructions, and notes for people.
    Instructions {
        text: String,
        notes: Vec<String>,
        tools: Vec<String>,
        /// Why undo covers no command, if it covers none.
        without_undo: Option<String>,
    },
    /// It has failed: no instructions come.
    Failed,
}

impl StoreSeat {
    pub(crate) fn of(session: SessionId, process: WorkerRef<StoreLink>) -> Self {
        Self { session, process, queue: StoreQueue::none_yet() }
    }

    pub(crate) fn process(&self) -> &WorkerRef<StoreLink> {
        &self.process
    }

    /// The conversation waits for the instructions of the store.
    pub(crate) fn awaits_instructions(&self) -> bool {
        self.queue.awaits_instructions()
    }

    /// They were received, or did not come in time.
    pub(crate) fn instructions_settled(&mut self) {
        self.queue.instructions_settled();
    }

    /// Why it is not started again, if it is not.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.queue.failure()
    }

    /// An event of its process.
    pub(crate) fn on_event(
        &mut self,
        event: WorkerEvent<StoreLink>,
        spec: &SessionSpec,
        calls: &RunningCalls,
    ) -> StoreNews {
        match event {
            WorkerEvent::Up(generation) => self.came_up(generation, spec, calls),
            WorkerEvent::Message { message, permit: _permit } => return self.said(message, calls),
            WorkerEvent::Down { cause, failed } => {
                self.went_down(cause, failed.as_deref(), calls);
                if let Some(why) = failed {
                    tracing::error!(session = %self.session, why, "the store has failed");
                    return StoreNews::Failed;
                }
            }
        }
        StoreNews::Handled
    }

    /// A new process runs: it and the calls are told.
    fn came_up(&mut self, generation: Generation, spec: &SessionSpec, calls: &RunningCalls) {
        self.process.up(generation);
        let mut setup = spec.store().clone();
        setup.denied_reads = approval::read_denials(spec.rules());
        self.process.send(ToStore::Begin(setup));
        self.queue.came_up().into_iter().for_each(|message| self.process.send(message));
        self.prepare_snapshot(spec.rules().mode);
        calls.send_all(|| CallMsg::StoreBack(generation));
    }

    /// In the mode `sandboxed` it copies the project before the first command, which passes only with copies.
    pub(crate) fn prepare_snapshot(&self, mode: PermissionMode) {
        if mode == PermissionMode::Sandboxed {
            self.process.send(ToStore::PrepareSnapshot);
        }
    }

    /// Its process ended: clients and calls are told.
    fn went_down(&mut self, cause: String, failed: Option<&str>, calls: &RunningCalls) {
        let lost = "the changes are not known: the store was restarted; ask again";
        let askers = self.queue.take_all_askers();
        self.send_changes(askers, &Err(lost.to_owned()));
        let will_restart = if failed.is_some() { WillRestart::No } else { WillRestart::Yes };
        let cause = failed.map_or(cause, str::to_owned);
        calls.send_all(|| {
            CallMsg::Input(CallInput::StoreLost { cause: cause.clone(), will_restart })
        });
        if let Some(why) = failed {
            self.queue.has_failed(why.to_owned());
        }
    }

    /// A message of it: answers go to their calls and clients.
    fn said(&mut self, message: FromStore, calls: &RunningCalls) -> StoreNews {
        if serves_a_call(&message) {
            self.process.made_progress();
        }
        match message {
            FromStore::Ready | FromStore::Pong(_) => {}
            FromStore::Instructions { text, notes, tools, without_undo } => {
                return StoreNews::Instructions { text, notes, tools, without_undo };
            }
            FromStore::Log(line) => log_lines::write("store", &self.session, &line),
            FromStore::Answered { call, result } => calls.send(&call, CallInput::Stored(result)),
            FromStore::CacheAnswer { call, found } => {
                calls.send(&call, CallInput::CacheAnswer(found));
            }
            FromStore::UndoCovers { call, cover } => {
                calls.send(&call, CallInput::UndoCovers(cover));
            }
            FromStore::BackedUp { call, cover } => self.queue.backed_up(&call, cover),
            FromStore::ChangesRecorded(call) => self.queue.recorded(&call),
            FromStore::BackupsFetched { call, files } => {
                calls.send(&call, CallInput::RestoreFetched(files));
            }
            FromStore::ChangesFetched { since, changes } => {
                let askers = self.queue.take_askers(since);
                self.send_changes(askers, &changes);
            }
        }
        StoreNews::Handled
    }

    /// Asks it for a client.
    pub(crate) fn fetch_changes(&mut self, client: ActorRef<ClientMsg>, since: u32) {
        let request = self.queue.ask_changes(client, since);
        request.into_iter().for_each(|request| self.process.send(request));
        if let Some(why) = self.queue.failure() {
            let why = format!("the changes are not known: the store has failed: {why}");
            let askers = self.queue.take_askers(since);
            self.send_changes(askers, &Err(why));
        }
    }

    fn send_changes(&self, askers: Vec<ActorRef<ClientMsg>>, changes: &Result<ChangeSet, String>) {
        for client in askers {
            let (session, changes) = (self.session.clone(), changes.clone());
            let _ = client.send_message(ClientMsg::Send(ToClient::Changes { session, changes }));
        }
    }

    /// A client has gone.
    pub(crate) fn forget_client(&mut self, client: ActorId) {
        self.queue.forget_client(|asker| asker.get_id() == client);
    }

    /// Has it copy the files that a call will change.
    pub(crate) fn back_up(
        &mut self,
        call: CallId,
        tool: String,
        what: BackupOf,
        done: oneshot::Sender<UndoCover>,
    ) {
        let request = self.queue.back_up(call, tool, what, done);
        request.into_iter().for_each(|request| self.process.send(request));
    }

    /// Reports the end of a call to it, which then records the call's changes.
    pub(crate) fn call_ended(&mut self, call: &CallId, did: Option<FileChanges>) {
        let messages = self.queue.call_ended(call, did, now_ns());
        messages.into_iter().for_each(|message| self.process.send(message));
    }
}

/// A message that a call waited for, or that settles an ended call.
fn serves_a_call(message: &FromStore) -> bool {
    match message {
        FromStore::Answered { .. }
        | FromStore::CacheAnswer { .. }
        | FromStore::UndoCovers { .. }
        | FromStore::BackedUp { .. }
        | FromStore::ChangesRecorded(_)
        | FromStore::BackupsFetched { .. }
        | FromStore::ChangesFetched { .. } => true,
        FromStore::Ready
        | FromStore::Pong(_)
        | FromStore::Instructions { .. }
        | FromStore::Log(_) => false,
    }
}

/// A call that waits for copies of its files. It goes on without them when this is dropped, or by itself after a
/// while.
trait AwaitsCopies {
    /// It has not gone on yet.
    fn is_waiting(&self) -> bool;
    /// It goes on, and learns whether the copies cover it. False if it has already.
    fn go_on(self, cover: UndoCover) -> bool;
}

impl AwaitsCopies for oneshot::Sender<UndoCover> {
    fn is_waiting(&self) -> bool {
        !self.is_closed()
    }

    fn go_on(self, cover: UndoCover) -> bool {
        self.send(cover).is_ok()
    }
}

/// Everything that the store owes, and that it is owed.
#[derive(Debug)]
struct StoreQueue<D, C> {
    instructions: Instructions,
    /// Why the store is not started again, if it is not.
    failed: Option<String>,
    /// Calls that wait for their copies, and the request to the store.
    requested: HashMap<CallId, (ToStore, D)>,
    /// Calls with copies, until the store has recorded their end.
    copies: HashMap<CallId, Copies>,
    /// Commands with a snapshot, until the store has recorded their end.
    commands: HashMap<CallId, (StoreCommand, CommandState)>,
    /// Clients that wait for changes since a call.
    changes: Vec<(C, u32)>,
}

/// The project's instructions, which the store reads and the conversation begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instructions {
    Pending,
    /// They were received, or did not come in time.
    Settled,
}

/// The call whose files were copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copies {
    OfRunning,
    OfEnded,
}

/// A command whose project was captured in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandState {
    Running(SnapshotBefore),
    /// It ended at that time, in nanoseconds of Unix time.
    Ended(SnapshotBefore, i64),
}

impl<D, C> StoreQueue<D, C> {
    fn none_yet() -> Self {
        Self {
            instructions: Instructions::Pending,
            failed: None,
            requested: HashMap::new(),
            copies: HashMap::new(),
            commands: HashMap::new(),
            changes: Vec::new(),
        }
    }

    /// The conversation waits for the instructions of the store.
    fn awaits_instructions(&self) -> bool {
        self.instructions == Instructions::Pending
    }

    fn instructions_settled(&mut self) {
        self.instructions = Instructions::Settled;
    }

    /// Why it is not started again, if it is not.
    fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// It is not started again: the calls that wait go on without copies.
    fn has_failed(&mut self, why: String) {
        self.requested.clear();
        self.failed = Some(why);
    }

    /// The store has recorded the changes of this call.
    fn recorded(&mut self, call: &CallId) {
        self.copies.remove(call);
        self.commands.remove(call);
    }

    /// A client asks for the changes since a call. Returns the request, unless it was sent before: one comparison
    /// serves all that wait for it.
    fn ask_changes(&mut self, client: C, since: u32) -> Option<ToStore> {
        let is_asked = self.changes.iter().any(|(_, of)| *of == since);
        self.changes.push((client, since));
        (!is_asked && self.failed.is_none()).then_some(ToStore::FetchChanges { since })
    }

    /// The changes since this call are known. Returns the clients that wait for them.
    fn take_askers(&mut self, since: u32) -> Vec<C> {
        self.changes.extract_if(.., |(_, of)| *of == since).map(|(client, _)| client).collect()
    }

    /// A comparison that ended the store would end the next one too. Returns all clients that wait for one.
    fn take_all_askers(&mut self) -> Vec<C> {
        std::mem::take(&mut self.changes).into_iter().map(|(client, _)| client).collect()
    }

    /// A client has gone.
    fn forget_client(&mut self, is_it: impl Fn(&C) -> bool) {
        self.changes.retain(|(client, _)| !is_it(client));
    }

    /// The call went on without its copies: some of them may hold the call's own changes, and so may the snapshot
    /// before a command.
    fn discard(&mut self, call: &CallId) {
        self.copies.remove(call);
        if let Some((_, CommandState::Running(before))) = self.commands.get_mut(call) {
            *before = SnapshotBefore::Late;
        }
    }
}

impl<D: AwaitsCopies, C> StoreQueue<D, C> {
    /// A new process runs. Returns its messages behind the first one: the running commands, the commands that
    /// ended while no store ran, and open requests, which the store that died may not have read. A store copies
    /// once for a call.
    fn came_up(&mut self) -> Vec<ToStore> {
        self.failed = None;
        let running = self.commands.keys().map(|call| call.number).collect();
        let mut messages = vec![ToStore::RunningCommands(running)];
        messages.extend(self.commands.values().filter_map(|(command, run)| ended(command, *run)));
        let late: Vec<_> =
            self.requested.extract_if(|_, (_, call)| !call.is_waiting()).map(|it| it.0).collect();
        late.iter().for_each(|call| self.discard(call));
        messages.extend(self.requested.values().map(|(message, _)| message.clone()));
        // Other processes may have changed the files of calls that ended while no store ran. Undo would
        // attribute those changes to the calls, so it has none of them.
        self.copies.retain(|_, copies| *copies == Copies::OfRunning);
        messages
    }

    /// Has the store copy the files that a call will change. No request goes to a store that has failed.
    fn back_up(
        &mut self,
        call: CallId,
        tool: String,
        what: BackupOf,
        waiting: D,
    ) -> Option<ToStore> {
        if self.failed.is_some() {
            return None;
        }
        let message = match what {
            BackupOf::Paths(paths) => {
                self.copies.insert(call.clone(), Copies::OfRunning);
                ToStore::BackUp { call: call.clone(), tool, paths }
            }
            BackupOf::Project { command: text } => {
                let command = StoreCommand { call: call.clone(), tool, text };
                let run = CommandState::Running(SnapshotBefore::Looked);
                self.commands.insert(call.clone(), (command.clone(), run));
                ToStore::TakeSnapshot(command)
            }
        };
        self.requested.insert(call, (message.clone(), waiting));
        Some(message)
    }

    /// The store has the copies: the call goes on.
    fn backed_up(&mut self, call: &CallId, cover: UndoCover) {
        if let Some((_, waiting)) = self.requested.remove(call)
            && !waiting.go_on(cover)
        {
            self.discard(call);
        }
    }

    /// A call has ended at this time, in nanoseconds of Unix time. Returns the messages with which the store
    /// records its changes.
    fn call_ended(&mut self, call: &CallId, did: Option<FileChanges>, now: i64) -> Vec<ToStore> {
        if self.requested.remove(call).is_some() {
            // A store that has not answered yet reads the files only now, after the call.
            self.discard(call);
        }
        let mut messages = Vec::new();
        if let Some((command, run)) = self.commands.get_mut(call)
            && let CommandState::Running(before) = *run
        {
            *run = CommandState::Ended(before, now);
            messages.extend(ended(command, *run));
        }
        if let Some(copies) = self.copies.get_mut(call) {
            *copies = Copies::OfEnded;
            messages.push(ToStore::CallEnded { call: call.clone(), did });
        }
        messages
    }
}

/// The message to the store about an ended command.
fn ended(command: &StoreCommand, run: CommandState) -> Option<ToStore> {
    match run {
        CommandState::Running(_) => None,
        CommandState::Ended(before, ended) => {
            Some(ToStore::CommandEnded { command: command.clone(), ended, before })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ids::SessionId;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A call that waits until this is false.
    #[derive(Debug, Clone)]
    struct Waits(Rc<Cell<bool>>);

    impl Waits {
        fn begins() -> Self {
            Self(Rc::new(Cell::new(true)))
        }
    }

    impl AwaitsCopies for Waits {
        fn is_waiting(&self) -> bool {
            self.0.get()
        }
        fn go_on(self, _: UndoCover) -> bool {
            self.0.replace(false)
        }
    }

    type Queue = StoreQueue<Waits, u8>;

    fn call(number: u32) -> CallId {
        CallId { session: SessionId("0123456789ab".into()), number }
    }

    fn edit(queue: &mut Queue, number: u32, waits: &Waits) -> Option<ToStore> {
        let paths = BackupOf::Paths(vec!["/p/a".into()]);
        queue.back_up(call(number), "edit".into(), paths, waits.clone())
    }

    fn run(queue: &mut Queue, number: u32, waits: &Waits) -> Option<ToStore> {
        let project = BackupOf::Project { command: "make".into() };
        queue.back_up(call(number), "bash".into(), project, waits.clone())
    }

    fn command(number: u32) -> StoreCommand {
        StoreCommand { call: call(number), tool: "bash".into(), text: "make".into() }
    }

    fn copy_of(number: u32) -> ToStore {
        ToStore::BackUp { call: call(number), tool: "edit".into(), paths: vec!["/p/a".into()] }
    }

    fn end_of(number: u32) -> ToStore {
        ToStore::CallEnded { call: call(number), did: None }
    }

    #[test]
    fn a_call_goes_on_with_its_copies_and_its_end_is_recorded_once() {
        let (mut queue, waits) = (Queue::none_yet(), Waits::begins());
        assert_eq!(edit(&mut queue, 1, &waits), Some(copy_of(1)));
        queue.backed_up(&call(1), UndoCover::Covers);
        assert!(!waits.is_waiting(), "it went on");
        assert_eq!(queue.call_ended(&call(1), None, 9), [end_of(1)]);
        queue.recorded(&call(1));
        assert_eq!(queue.call_ended(&call(1), None, 9), []);
    }

    #[test]
    fn copies_that_come_after_the_call_went_on_are_not_used() {
        let (mut queue, waits) = (Queue::none_yet(), Waits::begins());
        edit(&mut queue, 1, &waits);
        waits.0.set(false);
        queue.backed_up(&call(1), UndoCover::Covers);
        assert_eq!(queue.call_ended(&call(1), None, 9), []);
        // The same for a call that ended before its store answered.
        edit(&mut queue, 2, &Waits::begins());
        assert_eq!(queue.call_ended(&call(2), None, 9), []);
    }

    #[test]
    fn a_late_snapshot_is_recorded_as_late() {
        let mut queue = Queue::none_yet();
        for (number, in_time, before) in
            [(1, true, SnapshotBefore::Looked), (2, false, SnapshotBefore::Late)]
        {
            let waits = Waits::begins();
            assert_eq!(
                run(&mut queue, number, &waits),
                Some(ToStore::TakeSnapshot(command(number)))
            );
            waits.0.set(in_time);
            queue.backed_up(&call(number), UndoCover::Covers);
            let end = ToStore::CommandEnded { command: command(number), ended: 9, before };
            assert_eq!(queue.call_ended(&call(number), None, 9), [end]);
            assert_eq!(queue.call_ended(&call(number), None, 10), [], "it ends once");
        }
    }

    #[test]
    fn a_new_store_gets_what_the_one_before_it_may_not_have_read() {
        let mut queue = Queue::none_yet();
        let (waits, gone) = (Waits::begins(), Waits::begins());
        edit(&mut queue, 1, &waits);
        edit(&mut queue, 2, &gone);
        gone.0.set(false);
        run(&mut queue, 3, &Waits::begins());
        queue.backed_up(&call(3), UndoCover::Covers);
        queue.call_ended(&call(3), None, 9);
        let before = SnapshotBefore::Looked;
        let end = ToStore::CommandEnded { command: command(3), ended: 9, before };
        let again = [ToStore::RunningCommands(vec![3]), end, copy_of(1)];
        assert_eq!(queue.came_up(), again);
        assert_eq!(queue.call_ended(&call(2), None, 9), [], "its copies came too late");
        queue.recorded(&call(3));
        assert_eq!(queue.came_up(), [ToStore::RunningCommands(vec![]), copy_of(1)]);
    }

    #[test]
    fn undo_has_no_call_that_ended_while_no_store_ran() {
        let mut queue = Queue::none_yet();
        for number in [1, 2] {
            edit(&mut queue, number, &Waits::begins());
            queue.backed_up(&call(number), UndoCover::Covers);
        }
        assert_eq!(queue.call_ended(&call(1), None, 9), [end_of(1)]);
        queue.came_up();
        assert_eq!(queue.call_ended(&call(1), None, 9), []);
        assert_eq!(queue.call_ended(&call(2), None, 9), [end_of(2)], "it ran all the time");
    }

    #[test]
    fn calls_go_on_without_a_store_that_has_failed_until_it_is_back() {
        let (mut queue, waits) = (Queue::none_yet(), Waits::begins());
        edit(&mut queue, 1, &waits);
        queue.has_failed("it crashes".into());
        assert_eq!(queue.failure(), Some("it crashes"));
        assert_eq!(Rc::strong_count(&waits.0), 1, "dropped: the call goes on");
        assert_eq!(edit(&mut queue, 2, &waits), None);
        assert_eq!(queue.ask_changes(1, 0), None);
        queue.came_up();
        assert_eq!(queue.failure(), None);
        assert_eq!(edit(&mut queue, 3, &waits), Some(copy_of(3)));
    }

    #[test]
    fn one_comparison_serves_all_clients_that_wait_for_it() {
        let mut queue = Queue::none_yet();
        assert_eq!(queue.ask_changes(1, 5), Some(ToStore::FetchChanges { since: 5 }));
        assert_eq!(queue.ask_changes(2, 5), None);
        assert_eq!(queue.ask_changes(3, 6), Some(ToStore::FetchChanges { since: 6 }));
        queue.forget_client(|client| *client == 2);
        assert_eq!(queue.take_askers(5), [1]);
        assert_eq!(queue.take_askers(5), Vec::<u8>::new());
        assert_eq!(queue.ask_changes(4, 7), Some(ToStore::FetchChanges { since: 7 }));
        assert_eq!(queue.take_all_askers(), [3, 4]);
    }

    #[test]
    fn the_conversation_waits_for_the_instructions_once() {
        let mut queue = Queue::none_yet();
        assert!(queue.awaits_instructions());
        queue.instructions_settled();
        assert!(!queue.awaits_instructions());
    }
}
