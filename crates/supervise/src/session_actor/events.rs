//! The events of a session. Each is on disk first. Then the attached clients get it, and the parent of a
//! sub-agent's session. A failure that makes the session read-only is reported to all of them.

use super::backlog::Backlog;
use super::clients::{Attaching, Clients};
use super::failures::Failures;
use super::hook_events;
use super::links::replay::ReplayedJournal;
use super::records::SessionJournal;
use super::running_calls::RunningCalls;
use super::tasks::OwnTask;
use crate::client_actor::feed::Feed;
use crate::journal_writer::{Appended, CopyWait};
use crate::messages::{AttachRequest, ClientMsg, SessionMsg};
use crate::records::decode;
use crate::task_outcome::TaskOutcome;
use journal::JournalRecord;
use protocol::call::Call;
use protocol::client::{ClientEvent, NumberedEvent};
use protocol::confinement::Level;
use protocol::ids::{CallId, SessionId};
use protocol::session::OpenTurn;
use protocol::store::FileChanges;
use ractor::ActorRef;
use setup::session_spec::SessionSpec;
use std::path::Path;
use tokio::sync::oneshot;

/// The work of a session that is a sub-agent's.
type SessionWork = OwnTask<ActorRef<SessionMsg>, oneshot::Sender<TaskOutcome>>;

/// The journal of a session, and all that learn of its events.
pub(super) struct SessionEvents {
    session: SessionId,
    journal: SessionJournal,
    pub(super) clients: Clients<ActorRef<ClientMsg>, Feed>,
    /// The work of a sub-agent's session, and the parent that waits for it.
    pub(super) own_task: SessionWork,
    /// Everything that does not work any more.
    pub(super) failures: Failures,
}

/// Records: on disk first, and shown then.
impl SessionEvents {
    pub(super) fn of(session: SessionId, journal: SessionJournal, own_task: SessionWork) -> Self {
        let clients = Clients::none_yet(session.clone());
        Self { session, journal, clients, own_task, failures: Failures::default() }
    }

    /// The directory of the journal.
    pub(super) fn directory(&self) -> &Path {
        self.journal.directory()
    }

    /// The number of the last record.
    pub(super) fn last_seq(&self) -> u64 {
        self.journal.last_seq()
    }

    /// Writes the records, then shows their events. After a failure the session is read-only and
    /// reports it. The running calls stand still while the second copy is away.
    pub(super) async fn record(
        &mut self,
        records: Vec<JournalRecord>,
        running: &mut RunningCalls,
    ) -> Result<(), String> {
        let events = decode::client_events(&self.session, &records);
        self.record_as(records, events, running).await
    }

    /// Writes the last record of a call behind others, and shows its event alone.
    pub(super) async fn record_end(
        &mut self,
        mut records: Vec<JournalRecord>,
        (record, event): (JournalRecord, ClientEvent),
        running: &mut RunningCalls,
    ) -> Result<(), String> {
        let mut events = vec![None; records.len()];
        records.push(record);
        events.push(Some(event));
        self.record_as(records, events, running).await
    }

    async fn record_as(
        &mut self,
        records: Vec<JournalRecord>,
        events: Vec<Option<ClientEvent>>,
        running: &mut RunningCalls,
    ) -> Result<(), String> {
        let written = match self.append(records).await {
            Ok(appended) => self.copied(&appended.copy, running).await.map(|()| appended),
            Err(why) => Err(why),
        };
        self.show_written(written, events).await.map(drop)
    }

    /// Writes the records of a call, and shows their events. What depends on them waits for the second copy by
    /// itself, while this session goes on.
    pub(super) async fn record_aside(
        &mut self,
        records: Vec<JournalRecord>,
    ) -> Result<CopyWait, String> {
        let events = decode::client_events(&self.session, &records);
        let written = self.append(records).await;
        self.show_written(written, events).await.map(|appended| appended.copy)
    }

    /// Waits until the second copy has everything so far.
    pub(super) async fn all_copied(&mut self, running: &mut RunningCalls) -> Result<(), String> {
        let copy = self.journal.copy_of_all();
        self.copied(&copy, running).await
    }

    async fn append(&self, records: Vec<JournalRecord>) -> Result<Appended, String> {
        self.journal.append(records, self.failures.disk()).await
    }

    /// Waits for the second copy. Calls that run meanwhile stand still when it is time.
    async fn copied(&self, copy: &CopyWait, running: &mut RunningCalls) -> Result<(), String> {
        if let Some(lease) = running.lease().cloned() {
            tokio::select! {
                biased;
                copied = copy.over() => return copied,
                _ = lease.turns(true) => self.follow_lease(running),
            }
        }
        copy.over().await
    }

    /// Stops the calls for now if the lease wants it, or lets them go on.
    pub(super) fn follow_lease(&self, running: &mut RunningCalls) {
        if let Some(text) = running.follow_lease() {
            self.show_notice(text.to_owned());
        }
    }

    async fn show_written(
        &mut self,
        written: Result<Appended, String>,
        events: Vec<Option<ClientEvent>>,
    ) -> Result<Appended, String> {
        match &written {
            Ok(Appended { last, .. }) => {
                for (seq, event) in (last + 1 - events.len() as u64..).zip(events) {
                    self.journal.is_at(seq);
                    event.iter().for_each(|event| self.show(event));
                }
            }
            Err(why) if self.failures.disk().is_none() => {
                self.enter_read_only(format!("it could not be written to disk: {why}")).await;
            }
            Err(_) => {}
        }
        written
    }
}

/// Events without a record.
impl SessionEvents {
    /// Shows an event to all clients; the parent of a sub-agent's session gets its questions.
    pub(super) fn show(&self, event: &ClientEvent) {
        self.own_task.tell_parent(event);
        self.clients.show(self.journal.last_seq(), event);
    }

    pub(super) fn show_notice(&self, text: String) {
        self.show(&ClientEvent::Notice { text });
    }

    pub(super) fn show_output(&self, call: u32, text: String) {
        let call = CallId { session: self.session.clone(), number: call };
        self.show(&ClientEvent::Output { call, text, begun: None });
    }

    /// The sub-agent of this call begins a call of its own.
    pub(super) fn show_agent_call(&self, call: u32, begun: Call) {
        let call = CallId { session: self.session.clone(), number: call };
        let (text, begun) = (String::new(), Some(Box::new(begun)));
        self.show(&ClientEvent::Output { call, text, begun });
    }

    /// Tells people once which command behind edits does not run for want of trust.
    pub(super) fn name_untrusted_hooks(&mut self, spec: &SessionSpec, did: Option<&FileChanges>) {
        if self.clients.was_untrusted_hook_shown() || spec.confinement().level == Level::Uncaged {
            return;
        }
        if let Some(text) = did.and_then(|did| hook_events::untrusted(spec.config(), did)) {
            self.clients.untrusted_hook_is_shown();
            tracing::info!(session = %self.session, "{text}");
            self.show_notice(text);
        }
    }

    /// Tells a client that its answer does not count: a client of this session, or of its parent's.
    pub(super) fn reject(&self, client: &ActorRef<ClientMsg>, call: &CallId, reason: &str) {
        if self.clients.has(client) || !self.own_task.reject(client, call, reason) {
            let (call, reason) = (call.clone(), reason.to_owned());
            let event = ClientEvent::AnswerRejected { call, reason };
            self.clients.show_to(client, self.journal.last_seq(), event);
        }
    }

    /// The records so far, for a conversation that goes on like this.
    pub(super) fn replay(&self, fate: (OpenTurn, Option<String>)) -> ReplayedJournal {
        ReplayedJournal {
            directory: self.journal.directory().to_owned(),
            session: self.session.clone(),
            last: self.journal.last_seq(),
            fate,
        }
    }

    /// Prepares the backlog of a client that attaches.
    pub(super) async fn prepare(
        &mut self,
        wanted: AttachRequest,
        session: &ActorRef<SessionMsg>,
    ) -> Attaching {
        let backlog = Backlog {
            session: self.session.clone(),
            directory: self.journal.directory().to_owned(),
            last_seq: self.journal.last_seq(),
        };
        self.clients.prepare(wanted, backlog, session).await
    }

    /// Attaches a client that has these events and notes to get; see [`Clients::attach`].
    pub(super) fn attach(
        &mut self,
        wanted: AttachRequest,
        missed: Vec<NumberedEvent>,
        present: Vec<ClientEvent>,
        notes: &[String],
    ) {
        self.clients.attach(wanted, missed, (self.journal.last_seq(), present), notes);
        self.show_degraded();
    }
}

/// Failures, in events.
impl SessionEvents {
    /// Why nothing more is taken, if so, with the way on.
    pub(super) fn degraded(&self) -> Option<String> {
        self.failures.reason(&self.session)
    }

    /// Reports why nothing more is taken, if so.
    pub(super) fn show_degraded(&self) {
        if let Some(reason) = self.degraded() {
            tracing::error!(session = %self.session, %reason, "degraded");
            self.show(&ClientEvent::Degraded { reason });
        }
    }

    /// Reports failed workers once the turn in which they failed has ended.
    pub(super) fn show_failed_workers(&self) {
        if self.failures.is_without_worker() {
            self.show_degraded();
        }
    }

    /// Answers a parent that waits for the work, if the session has failed.
    pub(super) async fn fail_work(&mut self) {
        self.own_task.fail(self.degraded()).await;
    }

    /// Makes the session read-only and reports it, also to a parent that waits for its work.
    pub(super) async fn enter_read_only(&mut self, why: String) {
        self.failures.disk_failed(why);
        self.show_degraded();
        self.fail_work().await;
    }

    /// Answers the clients that wait for a report of the model's context, if the conversation has failed.
    pub(super) fn report_context_unknown(&mut self) {
        if let Some(why) = self.failures.conversation() {
            let why = format!("the context is not known: the conversation has failed: {why}");
            self.clients.report_context(&Err(why));
        }
    }
}
