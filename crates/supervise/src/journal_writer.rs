//! Writes a session's journal outside the event loop: a slow sync delays no other actor. The
//! session actor is its only user.

use crate::fleet_seat::FleetLease;
use journal::{Journal, JournalRecord};
use protocol::error_chain::chain;
use std::sync::{Arc, Mutex, PoisonError};

/// Records that were appended here.
#[derive(Debug)]
pub(crate) struct Appended {
    /// The number of the last.
    pub(crate) last: u64,
    pub(crate) copy: CopyWait,
}

/// What the second copy may lack yet, if there is one and something depends on it.
#[derive(Debug, Default)]
pub(crate) struct CopyWait(Option<(FleetLease, u64)>);

impl CopyWait {
    /// Waits until the second copy has it.
    ///
    /// # Errors
    /// The lease is lost, and why.
    pub(crate) async fn over(&self) -> Result<(), String> {
        match &self.0 {
            Some((lease, last)) => lease.durable(*last).await,
            None => Ok(()),
        }
    }
}

/// A journal that is written to by one actor, in order.
#[derive(Debug, Clone)]
pub(crate) struct JournalWriter {
    journal: Arc<Mutex<Journal>>,
    /// Where the session works for a fleet.
    lease: Option<FleetLease>,
}

impl JournalWriter {
    pub(crate) fn new(journal: Journal, lease: Option<FleetLease>) -> Self {
        Self { journal: Arc::new(Mutex::new(journal)), lease }
    }

    /// Appends the records in one write. If one of them is a barrier, they are durable here when this
    /// returns. What depends on a barrier of the second copy waits for the returned [`Appended::copy`] too.
    pub(crate) async fn append(&self, records: Vec<JournalRecord>) -> Result<Appended, String> {
        if !records.iter().any(JournalRecord::barrier) {
            let last = append(&self.journal, &records)?;
            return Ok(Appended { last, copy: CopyWait::default() });
        }
        let is_waited_for = records.iter().any(JournalRecord::barrier_of_copy);
        let lease = self.lease.clone().filter(|_| is_waited_for);
        let last = self.append_synced(records).await?;
        Ok(Appended { last, copy: CopyWait(lease.map(|lease| (lease, last))) })
    }

    /// What the second copy lacks of everything so far.
    pub(crate) fn copy_of_all(&self) -> CopyWait {
        let last = self.journal.lock().unwrap_or_else(PoisonError::into_inner).last_seq();
        CopyWait(self.lease.clone().map(|lease| (lease, last)))
    }

    async fn append_synced(&self, records: Vec<JournalRecord>) -> Result<u64, String> {
        let journal = Arc::clone(&self.journal);
        let sync = move || {
            ipc::step!(
                "supervisor: sync of a prompt",
                if records.iter().any(JournalRecord::is_prompt)
            );
            ipc::step!(
                "supervisor: sync of a result",
                if records.iter().any(JournalRecord::is_result)
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
