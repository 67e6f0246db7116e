//! The session's records: on disk before anything that they report is done.

use super::state::SessionActorState;
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
        if let Some(why) = &self.problems.disk {
            return Err(why.clone());
        }
        match self.journal.writer.append(records).await {
            Ok(last) => {
                let first = last + 1 - events.len() as u64;
                for (seq, event) in (first..).zip(events) {
                    self.journal.last_seq = seq;
                    self.show_if(event);
                }
                Ok(())
            }
            Err(why) => {
                self.enter_read_only(format!("it could not be written to disk: {why}")).await;
                Err(why)
            }
        }
    }

    /// Makes the session read-only and reports it, also to a parent that waits for its work.
    pub(super) async fn enter_read_only(&mut self, why: String) {
        self.problems.disk = Some(why);
        self.show_degraded(self.degraded());
        self.fail_task().await;
    }
}
