//! The session's store, a worker that the session can do without. While it is away, calls that need
//! it wait a moment or fail; nothing else does.

use super::state::{BackupState, CommandState, Instructions, SessionActorState, StoreState};
use crate::messages::{BackupOf, CallMsg, ClientMsg, SessionMsg, SessionTimer};
use crate::route::RouteStep;
use crate::unix_time::now_ns;
use crate::worker::actor::{WorkerEvent, WorkerMsg};
use call::{CallInput, WillRestart};
use protocol::client::ClientEvent;
use protocol::client::ToClient;
use protocol::ids::CallId;
use protocol::session::ToSession;
use protocol::store::{
    ChangeSet, FileChanges, FromStore, SnapshotBefore, StoreCommand, StoreLink, ToStore,
};
use ractor::ActorRef;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the conversation waits for the project's instructions. The store reads them in
/// milliseconds; on an overloaded machine they are sent later.
const INSTRUCTIONS: Duration = Duration::from_secs(2);

impl StoreState {
    pub(super) fn new() -> Self {
        Self {
            instructions: Instructions::Pending,
            failed: None,
            requested: HashMap::new(),
            copies: HashMap::new(),
            commands: HashMap::new(),
            changes: Vec::new(),
        }
    }
}

impl SessionActorState {
    /// The conversation waits for the instructions of the store.
    pub(super) fn awaits_instructions(&self) -> bool {
        self.store.instructions == Instructions::Pending
    }

    /// The conversation begins without the instructions after a while.
    pub(super) fn limit_instructions_wait(&self, myself: &ActorRef<SessionMsg>) {
        myself.send_after(INSTRUCTIONS, || SessionMsg::Timer(SessionTimer::InstructionsTimeout));
    }

    pub(super) async fn on_instructions_settled(&mut self, myself: &ActorRef<SessionMsg>) {
        self.store.instructions = Instructions::Settled;
        self.replay_if_quiet(myself).await;
    }

    pub(super) async fn on_store_event(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        event: WorkerEvent<StoreLink>,
    ) {
        match event {
            WorkerEvent::Up(generation) => {
                self.workers.store.up(generation);
                self.store.failed = None;
                let mut setup = self.spec.store.clone();
                setup.denied_reads = approval::read_denials(&self.spec.rules);
                self.workers.store.send(ToStore::Begin(setup));
                self.send_commands();
                self.repeat_backup_requests();
                self.send_calls(|| CallMsg::StoreBack(generation));
                // Other processes may have changed the files of calls that ended while no store
                // ran. Undo would attribute those changes to the calls, so it has none of them.
                self.store.copies.retain(|_, seen| *seen == BackupState::Running);
            }
            WorkerEvent::Message { message, permit: _permit } => {
                self.on_store_msg(myself, message).await
            }
            WorkerEvent::Down { cause, failed } => {
                let will_restart =
                    if failed.is_some() { WillRestart::No } else { WillRestart::Yes };
                let why = failed.clone().unwrap_or_else(|| cause.clone());
                // A comparison that ended the store would end the next one too.
                let lost = "the changes are not known: the store was restarted; ask again";
                self.send_changes(None, &Err(lost.to_owned()));
                let lost = || CallInput::StoreLost { cause: why.clone(), will_restart };
                self.send_calls(|| CallMsg::Input(lost()));
                if failed.is_some() {
                    // The calls go on without copies.
                    self.store.requested.clear();
                    tracing::error!(session = %self.spec.id, ?failed, "the store has failed");
                    self.store.failed = failed;
                    self.on_instructions_settled(myself).await;
                }
            }
        }
    }

    async fn on_store_msg(&mut self, myself: &ActorRef<SessionMsg>, message: FromStore) {
        if serves_a_call(&message) {
            let _ = self.workers.store.actor().send_message(WorkerMsg::ResetFailures);
        }
        match message {
            FromStore::Ready | FromStore::Pong(_) => {}
            FromStore::Instructions { text, notes } => {
                // Clients that attach later get them then. A store that was restarted sends the same.
                if notes != self.spec.texts.instruction_notes {
                    let told = notes.iter().cloned().map(|text| ClientEvent::Notice { text });
                    told.for_each(|note| self.show(&note));
                    self.spec.texts.instruction_notes = notes;
                }
                if text != self.spec.texts.instructions {
                    self.spec.set_instructions(text);
                    // A conversation that has not begun gets it with its first message.
                    let text = self.spec.setup.system.clone();
                    let message = ToSession::System { text };
                    self.send_conversation(message);
                }
                self.on_instructions_settled(myself).await;
            }
            FromStore::Answered { call, result } => {
                self.send_call(&call, CallInput::Stored(result));
            }
            FromStore::CacheAnswer { call, found } => {
                self.send_call(&call, CallInput::CacheAnswer(found));
            }
            FromStore::BackedUp(call) => {
                if let Some((_, done)) = self.store.requested.remove(&call)
                    && done.send(()).is_err()
                {
                    self.discard_backup(&call);
                }
            }
            FromStore::ChangesRecorded(call) => {
                self.store.copies.remove(&call);
                self.store.commands.remove(&call);
            }
            FromStore::BackupsFetched { call, files } => {
                self.send_call(&call, CallInput::RestoreFetched(files));
            }
            FromStore::ChangesFetched { since, changes } => {
                self.send_changes(Some(since), &changes);
            }
            FromStore::Log(line) => {
                self.carry_out(myself, vec![RouteStep::Log("store", line)]).await
            }
        }
    }

    /// Asks the store for a client.
    pub(super) fn fetch_changes(&mut self, client: ActorRef<ClientMsg>, since: u32) {
        // One comparison serves all that wait for it.
        let is_asked = self.store.changes.iter().any(|(_, of)| *of == since);
        self.store.changes.push((client, since));
        match self.store.failed {
            Some(_) => self.send_changes(Some(since), &Err(self.no_store())),
            None if is_asked => {}
            None => self.workers.store.send(ToStore::FetchChanges { since }),
        }
    }

    fn no_store(&self) -> String {
        let why = self.store.failed.as_deref().unwrap_or("it does not run");
        format!("the changes are not known: the store has failed: {why}")
    }

    /// Answers the clients that asked for the changes since this call, or all of them.
    fn send_changes(&mut self, since: Option<u32>, changes: &Result<ChangeSet, String>) {
        let answered = |(_, of): &mut (ActorRef<ClientMsg>, u32)| since.is_none_or(|it| it == *of);
        for (client, _) in self.store.changes.extract_if(.., answered) {
            let (session, changes) = (self.spec.id.clone(), changes.clone());
            let _ = client.send_message(ClientMsg::Send(ToClient::Changes { session, changes }));
        }
    }

    /// Has the store copy the files that a call will change.
    pub(super) fn back_up(
        &mut self,
        call: CallId,
        tool: String,
        what: BackupOf,
        done: oneshot::Sender<()>,
    ) {
        if self.store.failed.is_some() {
            return;
        }
        let message = match what {
            BackupOf::Paths(paths) => {
                self.store.copies.insert(call.clone(), BackupState::Running);
                ToStore::BackUp { call: call.clone(), tool, paths }
            }
            BackupOf::Project { command: text } => {
                let command = StoreCommand { call: call.clone(), tool, text };
                self.store.commands.insert(
                    call.clone(),
                    (command.clone(), CommandState::Running(SnapshotBefore::Looked)),
                );
                ToStore::TakeSnapshot(command)
            }
        };
        self.store.requested.insert(call, (message.clone(), done));
        self.workers.store.send(message);
    }

    /// Reports the end of a call to the store, which then records its changes.
    pub(super) fn end_backup(&mut self, call: &CallId, did: Option<FileChanges>) {
        if self.store.requested.remove(call).is_some() {
            // A store that has not answered yet reads the files only now, after the call.
            self.discard_backup(call);
        }
        if let Some((command, run)) = self.store.commands.get_mut(call)
            && let CommandState::Running(before) = *run
        {
            *run = CommandState::Ended(before, now_ns());
            if let Some(message) = ran(command, *run) {
                self.workers.store.send(message);
            }
        }
        if let Some(seen) = self.store.copies.get_mut(call) {
            *seen = BackupState::Ended;
            let message = ToStore::CallEnded { call: call.clone(), did };
            self.workers.store.send(message);
        }
    }

    /// The call went on without its copies: some of them may hold the call's own changes.
    fn discard_backup(&mut self, call: &CallId) {
        self.store.copies.remove(call);
        self.mark_snapshot_late(call);
    }

    /// Sends open requests again: the store that died may not have read them. A store copies once
    /// for a call.
    fn repeat_backup_requests(&mut self) {
        let late = |(call, (_, done)): (&CallId, &(_, oneshot::Sender<()>))| {
            done.is_closed().then(|| call.clone())
        };
        let late: Vec<_> = self.store.requested.iter().filter_map(late).collect();
        for call in late {
            self.store.requested.remove(&call);
            self.discard_backup(&call);
        }
        for (message, _) in self.store.requested.values() {
            self.workers.store.send(message.clone());
        }
    }

    /// The snapshot before this command may hold some of the command's own changes.
    fn mark_snapshot_late(&mut self, call: &CallId) {
        if let Some((_, CommandState::Running(before))) = self.store.commands.get_mut(call) {
            *before = SnapshotBefore::Late;
        }
    }

    /// Sends a new store the running commands, and the commands that ended while no store ran.
    fn send_commands(&self) {
        let running = self.store.commands.keys().map(|call| call.number).collect();
        let ended = self.store.commands.values().filter_map(|(command, run)| ran(command, *run));
        for message in std::iter::once(ToStore::RunningCommands(running)).chain(ended) {
            self.workers.store.send(message);
        }
    }

    /// A call that has just begun would wait for ever for a store that has failed.
    pub(super) fn send_store_failure(&self, call: &ActorRef<CallMsg>) {
        if let Some(cause) = self.store.failed.clone() {
            let will_restart = WillRestart::No;
            let _ = call.send_message(CallMsg::Input(CallInput::StoreLost { cause, will_restart }));
        }
    }

    fn send_calls(&self, message: impl Fn() -> CallMsg) {
        for call in self.calls.running.values() {
            let _ = call.send_message(message());
        }
    }
}

/// A message that a call waited for, or that settles an ended call.
fn serves_a_call(message: &FromStore) -> bool {
    match message {
        FromStore::Answered { .. }
        | FromStore::CacheAnswer { .. }
        | FromStore::BackedUp(_)
        | FromStore::ChangesRecorded(_)
        | FromStore::BackupsFetched { .. }
        | FromStore::ChangesFetched { .. } => true,
        FromStore::Ready
        | FromStore::Pong(_)
        | FromStore::Instructions { .. }
        | FromStore::Log(_) => false,
    }
}

/// The message to the store about an ended command.
fn ran(command: &StoreCommand, run: CommandState) -> Option<ToStore> {
    match run {
        CommandState::Running(_) => None,
        CommandState::Ended(before, ended) => {
            Some(ToStore::CommandEnded { command: command.clone(), ended, before })
        }
    }
}
