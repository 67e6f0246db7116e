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
    /// The end of a call that was lost with an earlier supervisor, which may have written it; the
    /// answer is where it stands.
    Lost { ended: Box<Ended>, done: oneshot::Sender<Result<Head, String>> },
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
        AuditMsg::Decided { mut decided, script, done } => {
            let kept = script.map(|text| audit.keep_script(&text)).transpose();
            let written = kept.map_err(|error| chain(&error)).and_then(|digest: Option<Digest>| {
                decided.script = digest;
                put(&mut audit, &AuditRecord::Decided(*decided)).map(drop)
            });
            let _ = done.send(written);
        }
        AuditMsg::Ended { ended, done } => {
            let _ = done.send(put(&mut audit, &AuditRecord::Ended(*ended)));
        }
        AuditMsg::Lost { ended, done } => {
            let kept = audit.append_end(*ended);
            let kept = kept.and_then(|head| audit.sync().map(|_| head));
            let _ = done.send(kept.map_err(|error| chain(&error)));
        }
    }
}

fn put(audit: &mut Audit, record: &AuditRecord) -> Result<Head, String> {
    audit.append(record).and_then(|_| audit.sync()).map_err(|error| chain(&error))
}
