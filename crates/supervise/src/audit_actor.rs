//! The audit actor: the only writer of the audit log.

use crate::error_chain::chain;
use journal::{Audit, AuditRecord, ChainHead, DecidedRecord, Digest, EndedRecord};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Messages to the audit actor.
pub(crate) enum AuditMsg {
    /// A decision, with the script it is about; answered when it is on disk.
    Decided {
        decided: Box<DecidedRecord>,
        script: Option<String>,
        done: oneshot::Sender<Result<(), String>>,
    },
    /// An end; answered with the chain's head when it is on disk.
    Ended { ended: Box<EndedRecord>, done: oneshot::Sender<Result<ChainHead, String>> },
    /// The decision and the end of a call that was lost with an earlier supervisor. That supervisor may
    /// have written them; the answer is the chain's head at the end's record.
    Lost {
        decided: Box<DecidedRecord>,
        script: Option<String>,
        ended: Box<EndedRecord>,
        done: oneshot::Sender<Result<ChainHead, String>>,
    },
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
    owed: Vec<(AuditRecord, Option<String>)>,
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
        AuditMsg::Decided { decided, script, done } => {
            let written = log.take(ready, AuditRecord::Decided(*decided), script);
            let _ = done.send(written.map(drop));
        }
        AuditMsg::Ended { ended, done } => {
            let _ = done.send(log.take(ready, AuditRecord::Ended(*ended), None));
        }
        AuditMsg::Lost { decided, script, ended, done } => {
            let audit = &mut log.audit;
            let written = ready.and_then(|()| with_script(audit, *decided, script.as_deref()));
            let written = written.and_then(|decided| {
                let written = audit.append_lost(decided, *ended);
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
        while let Some((record, script)) = self.owed.first().cloned() {
            let written = self.put(record, script.as_deref());
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
        script: Option<String>,
    ) -> Result<ChainHead, String> {
        let written = match ready {
            Ok(()) => self.put(record.clone(), script.as_deref()),
            Err(reason) => Err(Unwritten::NotInFile(reason)),
        };
        if matches!(written, Err(Unwritten::NotInFile(_))) {
            match self.owed.len() {
                OWED => tracing::error!(
                    "{OWED} records already wait for the audit log; one more is lost"
                ),
                _ => self.owed.push((record, script)),
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

    fn put(&mut self, record: AuditRecord, script: Option<&str>) -> Result<ChainHead, Unwritten> {
        let record = match record {
            AuditRecord::Decided(decided) => {
                let decided = with_script(&mut self.audit, decided, script);
                AuditRecord::Decided(decided.map_err(Unwritten::NotInFile)?)
            }
            AuditRecord::Ended(_) | AuditRecord::Removed(_) | AuditRecord::Unknown(_) => record,
        };
        let appended = self.audit.append(&record);
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
        for (record, _) in &self.owed {
            tracing::error!(?record, "this record was never written to the audit log");
        }
    }
}

/// Stores the script with the log, before the record that names it.
fn with_script(
    audit: &mut Audit,
    decided: DecidedRecord,
    script: Option<&str>,
) -> Result<DecidedRecord, String> {
    let written = script.map(|text| audit.keep_script(text)).transpose();
    written
        .map(|script: Option<Digest>| DecidedRecord { script, ..decided })
        .map_err(|error| chain(&error))
}
