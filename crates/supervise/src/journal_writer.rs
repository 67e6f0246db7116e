//! Writes a session's journal outside the event loop: a slow sync delays no other actor. The
//! session actor is its only user.

use crate::error_chain::chain;
use crate::fleet_seat::FleetCopy;
use journal::{Journal, JournalRecord};
use std::sync::{Arc, Mutex, PoisonError};

/// A journal that is written to by one actor, in order.
#[derive(Debug, Clone)]
pub(crate) struct JournalWriter {
    journal: Arc<Mutex<Journal>>,
    /// The second copy, where the session works for a fleet.
    copy: Option<FleetCopy>,
}

impl JournalWriter {
    pub(crate) fn new(journal: Journal, copy: Option<FleetCopy>) -> Self {
        Self { journal: Arc::new(Mutex::new(journal)), copy }
    }

    /// Appends the records in one write. If one of them is a barrier, they are durable here when this
    /// returns, and if it is one of the second copy, there too. Returns the number of the last record.
    pub(crate) async fn append(&self, records: Vec<JournalRecord>) -> Result<u64, String> {
        if !records.iter().any(JournalRecord::barrier) {
            return append(&self.journal, &records);
        }
        let waits = records.iter().any(JournalRecord::barrier_of_copy);
        let last = self.append_synced(records).await?;
        if let Some(copy) = self.copy.as_ref().filter(|_| waits) {
            copy.durable(last).await?;
        }
        Ok(last)
    }

    /// Waits until the second copy has everything so far, where there is one.
    pub(crate) async fn copied(&self) -> Result<(), String> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let last = self.journal.lock().unwrap_or_else(PoisonError::into_inner).last_seq();
        copy.durable(last).await
    }

    async fn append_synced(&self, records: Vec<JournalRecord>) -> Result<u64, String> {
        let journal = Arc::clone(&self.journal);
        let sync = move || {
            ipc::step!(
                "supervisor: sync of a prompt",
                if records.iter().any(|record| matches!(record, JournalRecord::Prompt { .. }))
            );
            ipc::step!(
                "supervisor: sync of a result",
                if records.iter().any(|record| matches!(record, JournalRecord::Result { .. }))
            );
            append(&journal, &records)
        };
        tokio::task::spawn_blocking(sync)
            .await
            .unwrap_or_else(|error| Err(format!("the journal's thread ended: {error}")))
    }
}

fn append(journal: &Mutex<Journal>, records: &[JournalRecord]) -> Result<u64, String> {
    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    journal.append_all(records).map_err(|error| chain(&error))
}
