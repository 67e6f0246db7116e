//! The session's journal, off the event loop: a sync may take as long as the disk likes without
//! holding anybody else up. Used by the session actor, its only writer.

use crate::error_chain::chain;
use journal::{Journal, Record};
use std::sync::{Arc, Mutex, PoisonError};

/// A journal that is written to by one actor, in order.
#[derive(Debug, Clone)]
pub(crate) struct JournalWriter(Arc<Mutex<Journal>>);

impl JournalWriter {
    pub(crate) fn new(journal: Journal) -> Self {
        Self(Arc::new(Mutex::new(journal)))
    }

    /// Appends the records in one write; on disk when this returns, if one of them is a barrier.
    /// Returns the number of the last.
    pub(crate) async fn append(&self, records: Vec<Record>) -> Result<u64, String> {
        if !records.iter().any(Record::barrier) {
            return append(&self.0, &records);
        }
        let journal = Arc::clone(&self.0);
        let sync = move || {
            ipc::step!(
                "supervisor: sync of a prompt",
                if records.iter().any(|record| matches!(record, Record::Prompt { .. }))
            );
            ipc::step!(
                "supervisor: sync of a result",
                if records.iter().any(|record| matches!(record, Record::Result { .. }))
            );
            append(&journal, &records)
        };
        tokio::task::spawn_blocking(sync)
            .await
            .unwrap_or_else(|error| Err(format!("the journal's thread ended: {error}")))
    }
}

fn append(journal: &Mutex<Journal>, records: &[Record]) -> Result<u64, String> {
    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    journal.append_all(records).map_err(|error| chain(&error))
}
