//! What a session keeps: records, on disk before anything they tell of.

use super::state::SessionActorState;
use crate::records::decode;
use journal::Record;
use protocol::client::Event;

impl SessionActorState {
    /// Keeps the records, then shows them. After a failure the session is read-only, and says so.
    pub(super) async fn record(&mut self, records: Vec<Record>) -> Result<(), String> {
        let event = |record: &Record| decode::client_event(&self.plan.id, record);
        let events: Vec<_> = records.iter().map(event).collect();
        self.record_as(records, events).await
    }

    /// The same, with what to show of each record.
    pub(super) async fn record_as(
        &mut self,
        records: Vec<Record>,
        events: Vec<Option<Event>>,
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
                self.enter_read_only(format!("it could not be written to disk: {why}"));
                Err(why)
            }
        }
    }

    /// From now on the session is read-only, and says so.
    pub(super) fn enter_read_only(&mut self, why: String) {
        self.problems.disk = Some(why);
        self.show_degraded(self.degraded());
    }
}
