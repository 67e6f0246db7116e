//! The audit actor: the only writer of the audit log.

use journal::{Audit, AuditRecord, ChainHead, DecidedRecord, EndedRecord, PortOpenedRecord};
use protocol::error_chain::chain;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Messages to the audit actor.
pub(crate) enum AuditMsg {
    /// A decision; answered when it is on disk.
    Decided { decided: Box<DecidedRecord>, done: oneshot::Sender<Result<(), String>> },
    /// An end; answered with the chain's head when it is on disk.
    Ended { ended: Box<EndedRecord>, done: oneshot::Sender<Result<ChainHead, String>> },
    /// The decision and the end of a call that was lost with an earlier supervisor. That supervisor may
    /// have written them; the answer is the chain's head at the end's record.
    Lost {
        decided: Box<DecidedRecord>,
        ended: Box<EndedRecord>,
        done: oneshot::Sender<Result<ChainHead, String>>,
    },
    /// A port was opened; answered when it is on disk.
    PortOpened { opened: PortOpenedRecord, done: oneshot::Sender<Result<(), String>> },
    /// Asks whether the log can be written. A log that was closed by a full or failing disk is
    /// opened again first.
    Check(oneshot::Sender<Result<(), String>>),
}

/// Why the log takes no records, if so: read by others without waiting for the disk.
pub(crate) type AuditFailure = Arc<Mutex<Option<String>>>;

/// The log, and the records that it owes.
pub(crate) struct AuditLog {
    audit: Audit,
    closed: AuditFailure,
    /// Records that the disk refused, for when it takes them: the calls they are of did not start, or
    /// have ended.
    owed: Vec<AuditRecord>,
}

/// Most records that wait for the disk. The calls of many sessions produce them between the first
/// failure and the refusal of all later calls.
const OWED: usize = 256;

/// The actor.
pub(crate) struct AuditActor;

impl Actor for AuditActor {
    type Msg = AuditMsg;
    type State = Arc<Mutex<AuditLog>>;
    type Arguments = (PathBuf, AuditFailure);

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        (directory, closed): Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let audit = Audit::open(&directory).map_err(|error| chain(&error))?;
        Ok(Arc::new(Mutex::new(AuditLog { audit, closed, owed: Vec::new() })))
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let audit = Arc::clone(state);
        let written = tokio::task::spawn_blocking(move || write(&audit, message)).await;
        if let Err(error) = written {
            tracing::error!(%error, "the audit log's thread ended");
        }
        Ok(())
    }
}

/// A sender may have ended by now; the record is written all the same.
fn write(log: &Mutex<AuditLog>, message: AuditMsg) {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let ready = log.ready();
    log.publish(ready.as_ref().err());
    match message {
        AuditMsg::Decided { decided, done } => {
            let written = log.take(ready, AuditRecord::Decided(*decided));
            let _ = done.send(written.map(drop));
        }
        AuditMsg::Ended { ended, done } => {
            let _ = done.send(log.take(ready, AuditRecord::Ended(*ended)));
        }
        AuditMsg::PortOpened { opened, done } => {
            // Unlike a call, it is refused where the disk does not take it, so that nothing is owed.
            let written = ready.and_then(|()| {
                log.put(&AuditRecord::PortOpened(opened)).map_err(Unwritten::into_reason)
            });
            log.publish(written.as_ref().err());
            let _ = done.send(written.map(drop));
        }
        AuditMsg::Lost { decided, ended, done } => {
            let audit = &mut log.audit;
            let written = ready.and_then(|()| {
                let written = audit.append_lost(*decided, *ended);
                written.and_then(|head| audit.sync().map(|_| head)).map_err(|error| chain(&error))
            });
            let _ = done.send(written);
        }
        AuditMsg::Check(done) => {
            let _ = done.send(ready);
        }
    }
}

impl AuditLog {
    /// Reopens a log that the disk closed, and writes the waiting records.
    fn ready(&mut self) -> Result<(), String> {
        self.audit.reopen().map_err(|error| chain(&error))?;
        while let Some(record) = self.owed.first().cloned() {
            let written = self.put(&record);
            if !matches!(written, Err(Unwritten::NotInFile(_))) {
                self.owed.remove(0);
            }
            written.map_err(Unwritten::into_reason)?;
        }
        Ok(())
    }

    /// Writes a record, or keeps it until the disk takes it. The log itself writes a record again
    /// that is in the file and was not confirmed.
    fn take(
        &mut self,
        ready: Result<(), String>,
        record: AuditRecord,
    ) -> Result<ChainHead, String> {
        let written = match ready {
            Ok(()) => self.put(&record),
            Err(reason) => Err(Unwritten::NotInFile(reason)),
        };
        if matches!(written, Err(Unwritten::NotInFile(_))) {
            match self.owed.len() {
                OWED => tracing::error!(
                    "{OWED} records already wait for the audit log; one more is lost"
                ),
                _ => self.owed.push(record),
            }
        }
        let written = written.map_err(Unwritten::into_reason);
        self.publish(written.as_ref().err());
        written
    }

    /// Tells others how the log is.
    fn publish(&self, why: Option<&String>) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = why.cloned();
    }

    fn put(&mut self, record: &AuditRecord) -> Result<ChainHead, Unwritten> {
        let appended = self.audit.append(record);
        appended.map_err(|error| Unwritten::NotInFile(chain(&error)))?;
        self.audit.sync().map_err(|error| Unwritten::Unconfirmed(chain(&error)))
    }
}

/// A record that is not durable, and why. The log's head does not show which: another supervisor
/// moves it, too.
enum Unwritten {
    /// The record is not in the log.
    NotInFile(String),
    /// The record may be in the log, which writes it again when it is reopened.
    Unconfirmed(String),
}

impl Unwritten {
    fn into_reason(self) -> String {
        match self {
            Self::NotInFile(reason) | Self::Unconfirmed(reason) => reason,
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        for record in &self.owed {
            tracing::error!(?record, "this record was never written to the audit log");
        }
    }
}
