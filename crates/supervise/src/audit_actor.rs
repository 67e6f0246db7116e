//! The audit actor: the one that writes the audit log.

use crate::book::chain;
use journal::{Audit, AuditRecord, Decided, Digest, Ended, Head};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// What the log is told.
pub(crate) enum AuditMsg {
    /// A decision, with the script it is about; answered when it is on disk.
    Decided {
        decided: Box<Decided>,
        script: Option<String>,
        done: oneshot::Sender<Result<(), String>>,
    },
    /// An end; answered with the chain's head when it is on disk.
    Ended { ended: Box<Ended>, done: oneshot::Sender<Result<Head, String>> },
    /// The decision and the end of a call that was lost with an earlier supervisor, which may have
    /// written them; the answer is where the end stands.
    Lost {
        decided: Box<Decided>,
        script: Option<String>,
        ended: Box<Ended>,
        done: oneshot::Sender<Result<Head, String>>,
    },
}

/// The actor.
pub(crate) struct AuditActor;

impl Actor for AuditActor {
    type Msg = AuditMsg;
    type State = Arc<Mutex<Audit>>;
    type Arguments = PathBuf;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        directory: PathBuf,
    ) -> Result<Self::State, ActorProcessingErr> {
        let audit = Audit::open(&directory).map_err(|error| chain(&error))?;
        Ok(Arc::new(Mutex::new(audit)))
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

/// Whoever asked may be gone by now; the record stands all the same.
fn write(audit: &Mutex<Audit>, message: AuditMsg) {
    let mut audit = audit.lock().unwrap_or_else(PoisonError::into_inner);
    match message {
        AuditMsg::Decided { decided, script, done } => {
            let written = with_script(&mut audit, *decided, script)
                .and_then(|decided| put(&mut audit, &AuditRecord::Decided(decided)).map(drop));
            let _ = done.send(written);
        }
        AuditMsg::Ended { ended, done } => {
            let _ = done.send(put(&mut audit, &AuditRecord::Ended(*ended)));
        }
        AuditMsg::Lost { decided, script, ended, done } => {
            let kept = with_script(&mut audit, *decided, script).and_then(|decided| {
                let kept = audit.append_lost(decided, *ended);
                kept.and_then(|head| audit.sync().map(|_| head)).map_err(|error| chain(&error))
            });
            let _ = done.send(kept);
        }
    }
}

/// The script is kept beside the log, before the record that names it.
fn with_script(
    audit: &mut Audit,
    decided: Decided,
    script: Option<String>,
) -> Result<Decided, String> {
    let kept = script.map(|text| audit.keep_script(&text)).transpose();
    kept.map(|script: Option<Digest>| Decided { script, ..decided }).map_err(|error| chain(&error))
}

fn put(audit: &mut Audit, record: &AuditRecord) -> Result<Head, String> {
    audit.append(record).and_then(|_| audit.sync()).map_err(|error| chain(&error))
}
