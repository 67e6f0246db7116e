//! The session's records: on disk before anything that they report is done.

use super::state::SessionActorState;
use crate::journal_writer::{Appended, CopyWait};
use crate::records::decode;
use journal::JournalRecord;
use protocol::client::ClientEvent;

impl SessionActorState {
    /// Writes the records, then shows their events. After a failure the session is read-only and
    /// reports it.
    pub(super) async fn record(&mut self, records: Vec<JournalRecord>) -> Result<(), String> {
        let event = |record: &JournalRecord| decode::client_event(&self.spec.id, record);
        let events: Vec<_> = records.iter().map(event).collect();
        self.record_as(records, events).await
    }

    /// The same, with the event of each record given.
    pub(super) async fn record_as(
        &mut self,
        records: Vec<JournalRecord>,
        events: Vec<Option<ClientEvent>>,
    ) -> Result<(), String> {
        let written = match self.write(records).await {
            Ok(Appended { last, copy }) => self.copied(copy).await.map(|()| last),
            Err(why) => Err(why),
        };
        match written {
            Ok(last) => {
                self.show_from(last + 1 - events.len() as u64, events);
                Ok(())
            }
            Err(why) => self.not_written(why).await,
        }
    }

    /// Writes the records of a call, and shows their events. What depends on them waits for the second copy by
    /// itself, while this session goes on.
    pub(super) async fn record_aside(
        &mut self,
        records: Vec<JournalRecord>,
    ) -> Result<CopyWait, String> {
        let event = |record: &JournalRecord| decode::client_event(&self.spec.id, record);
        let events: Vec<_> = records.iter().map(event).collect();
        match self.write(records).await {
            Ok(Appended { last, copy }) => {
                self.show_from(last + 1 - events.len() as u64, events);
                Ok(copy)
            }
            Err(why) => self.not_written(why).await,
        }
    }

    async fn write(&self, records: Vec<JournalRecord>) -> Result<Appended, String> {
        match self.links.failures.disk() {
            Some(why) => Err(why.to_owned()),
            None => self.journal.writer.append(records).await,
        }
    }

    /// Waits for the second copy. Calls that run meanwhile stand still when it is time.
    pub(super) async fn copied(&mut self, copy: CopyWait) -> Result<(), String> {
        if let Some(lease) = self.calls.lease.lease.clone() {
            tokio::select! {
                biased;
                copied = copy.over() => return copied,
                _ = lease.turns(true) => self.follow_lease(),
            }
        }
        copy.over().await
    }

    fn show_from(&mut self, first: u64, events: Vec<Option<ClientEvent>>) {
        for (seq, event) in (first..).zip(events) {
            self.journal.last_seq = seq;
            event.iter().for_each(|event| self.show(event));
        }
    }

    async fn not_written<T>(&mut self, why: String) -> Result<T, String> {
        if self.links.failures.disk().is_none() {
            self.enter_read_only(format!("it could not be written to disk: {why}")).await;
        }
        Err(why)
    }

    /// Makes the session read-only and reports it, also to a parent that waits for its work.
    pub(super) async fn enter_read_only(&mut self, why: String) {
        self.links.failures.disk_failed(why);
        self.show_degraded(self.degraded());
        self.tasks.own.fail(self.degraded()).await;
    }
}
