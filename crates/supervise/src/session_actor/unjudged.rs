//! Calls that end without a verdict: an unknown tool, invalid arguments, an exhausted budget. They
//! run nothing, and the audit log records each of them.

use crate::audit_actor::AuditMsg;
use crate::records::TurnRound;
use crate::records::audit::{self, RunFacts};
use crate::records::encode;
use crate::unix_time::now_ms;
use call::{CallConclusion, Cut};
use journal::JournalRecord;
use protocol::call::{Call, ToolResult};
use protocol::confinement::Confinement;
use protocol::ids::CallId;
use protocol::judgement::{Basis, Verdict};
use protocol::session::SessionEvent;
use ractor::ActorRef;
use setup::session_spec::tool_kind;
use std::collections::HashMap;
use tokio::sync::oneshot;

/// Calls that were proposed and have no actor.
pub(super) struct Unjudged {
    proposed: HashMap<CallId, Call>,
    audit: ActorRef<AuditMsg>,
}

/// A call in the audit log.
pub(super) struct Audited {
    /// Its last record for the journal.
    pub(super) record: JournalRecord,
    /// The audit log has it, or why it does not.
    pub(super) written: Result<(), String>,
}

impl Unjudged {
    pub(super) fn none_yet(audit: ActorRef<AuditMsg>) -> Self {
        Self { proposed: HashMap::new(), audit }
    }

    /// Takes an event of the conversation on its way to disk. Returns the call that it ends without
    /// a verdict.
    pub(super) fn take_in(&mut self, happened: &SessionEvent) -> Option<(Call, ToolResult)> {
        match happened {
            SessionEvent::Called { call } => {
                self.proposed.insert(call.id.clone(), call.clone());
                None
            }
            SessionEvent::Result { call, result, .. } => {
                Some((self.proposed.remove(call)?, result.clone()))
            }
            SessionEvent::Prompt { .. }
            | SessionEvent::Answer { .. }
            | SessionEvent::BackgroundEnded { .. }
            | SessionEvent::TurnEnded { .. }
            | SessionEvent::Joined { .. }
            | SessionEvent::Compacted { .. } => None,
        }
    }

    /// True if no other call was proposed by its number. Those proposed before the session opened are not known.
    pub(super) fn is_proposed(&self, call: &Call) -> bool {
        self.proposed.get(&call.id).is_none_or(|proposed| proposed == call)
    }

    /// It goes the way of all calls from here on. Returns it as it was proposed, where that was since the session
    /// opened and it has neither begun nor ended.
    pub(super) fn begun(&mut self, call: &CallId) -> Option<Call> {
        self.proposed.remove(call)
    }

    /// Puts a call that ends without a verdict into the audit log.
    pub(super) async fn audit(
        &self,
        (call, place): (&Call, TurnRound),
        result: ToolResult,
        confinement: &Confinement,
    ) -> Audited {
        let why = Basis::Unjudgeable(format!("it was not judged: {}", result.summary));
        let verdict = Verdict::Deny(why, String::new());
        let kind = tool_kind(&call.tool);
        let decided = audit::decision((call, None), kind, place, &verdict, confinement, &[]);
        // No cage was asked for.
        let decided = decided.map(|decided| journal::DecidedRecord { requested: None, ..decided });
        let conclusion = CallConclusion {
            result,
            report: None,
            enforced: None,
            cached_from: None,
            cut: Cut::No,
            repaired: Vec::new(),
        };
        let ran = RunFacts { ended: now_ms(), ..RunFacts::default() };
        let ended = audit::end(call, &conclusion, &ran);
        let head = match decided {
            Some(decided) => self.write(decided, ended).await,
            None => Err("its decision cannot be recorded".to_owned()),
        };
        let (head, written) = match head {
            Ok(head) => (Some(head), Ok(())),
            Err(why) => (None, Err(why)),
        };
        Audited { record: encode::call_end(call, &conclusion, &[], head), written }
    }

    async fn write(
        &self,
        decided: journal::DecidedRecord,
        ended: journal::EndedRecord,
    ) -> Result<journal::ChainHead, String> {
        let gone = |_| Err("it is gone".to_owned());
        let (done, written) = oneshot::channel();
        let decided = Box::new(decided);
        let _ = self.audit.send_message(AuditMsg::Decided { decided, done });
        written.await.unwrap_or_else(gone)?;
        let gone = |_| Err("it is gone".to_owned());
        let (done, written) = oneshot::channel();
        let _ = self.audit.send_message(AuditMsg::Ended { ended: Box::new(ended), done });
        written.await.unwrap_or_else(gone)
    }
}
