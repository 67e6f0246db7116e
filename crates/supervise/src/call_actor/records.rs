//! The records of a call in the journal and in the audit log, and its end.

use super::instructions;
use super::state::{Audited, CallState};
use crate::audit_actor::AuditMsg;
use crate::fleet_seat::FleetLease;
use crate::messages::{CallMsg, CallToSession, FinishedCall};
use crate::records::audit;
use crate::records::encode;
use crate::unix_time::now_ms;
use call::{CallConclusion, CallInput, CallRecord, Executor, FileVersions, ProxyDecisions};
use launch::protected_restore;
use protocol::call::{CallOrigin, Outcome, TamperRemedy};
use protocol::client::ClientEvent;
use protocol::confinement::{GitSettings, Refusal, RefusalKind};
use protocol::judgement::{Basis, ToolKind, Verdict};
use protocol::store::FileChanges;
use ractor::ActorRef;
use tokio::sync::oneshot;

impl CallState {
    pub(super) async fn record(&self, facts: Vec<CallRecord>) -> Result<(), CallInput> {
        self.recorded(facts).await
    }

    /// Asks for these records now. The future ends when they are written; a barrier is durable then, in all
    /// copies.
    pub(super) fn recorded(
        &self,
        facts: Vec<CallRecord>,
    ) -> impl Future<Output = Result<(), CallInput>> + use<> {
        let about = &self.args.facts;
        let records = facts.into_iter().map(|fact| encode::call_fact(about, fact)).collect();
        let (done, written) = oneshot::channel();
        let _ = self.args.session.send_message(CallToSession::Record { records, done }.into());
        async move {
            let ended = || Err("the session has ended".to_owned());
            match written.await.unwrap_or_else(|_| ended()) {
                Ok(copy) => copy.over().await.map_err(CallInput::LeaseLost),
                Err(reason) => Err(CallInput::DiskFailed(reason)),
            }
        }
    }

    /// Waits for the audit log's record of the decision, behind which a call without a runner begins.
    pub(super) async fn may_begin(&mut self) -> Result<(), CallInput> {
        decision_durable(self.before_go.decision_written.take()).await?;
        self.holds_lease().map_err(CallInput::LeaseLost)
    }

    /// The lease is looked at last: this process may have stood still for long at any step before.
    pub(super) fn holds_lease(&self) -> Result<(), String> {
        self.args.lease.as_ref().map_or(Ok(()), FleetLease::holds)
    }

    /// Asks for the audit record and does not wait; `PrepareGo` does.
    pub(super) fn audit_decided(&mut self, verdict: &Verdict) {
        if let Some(decided) = self.decision_of(verdict) {
            self.audit(decided);
        }
    }

    /// As `audit_decided`, for a question that nobody answered.
    pub(super) fn audit_expired(&mut self) {
        let denied = Verdict::Deny(Basis::NobodyToAsk(String::new()), String::new());
        if let Some(denied) = self.decision_of(&denied) {
            self.audit(audit::expired(denied, self.args.question_ms));
        }
    }

    fn decision_of(&self, verdict: &Verdict) -> Option<journal::DecidedRecord> {
        let facts = &self.args.facts;
        // What the store answers is no script.
        let script = facts.command.as_deref().filter(|_| facts.executor != Executor::Store);
        audit::decision(
            (&facts.call, script),
            facts.kind,
            self.args.place,
            verdict,
            &self.args.confinement,
            &facts.extra_rights,
        )
    }

    fn audit(&mut self, decided: journal::DecidedRecord) {
        let (done, written) = oneshot::channel();
        let message = AuditMsg::Decided { decided: Box::new(decided), done };
        let _ = self.args.audit.send_message(message);
        self.before_go.decision_written = Some(written);
        self.audited = Audited::Proposal;
    }

    pub(super) async fn conclude(
        &mut self,
        myself: &ActorRef<CallMsg>,
        mut conclusion: CallConclusion,
    ) {
        let (call, versions) = (&self.args.facts.call, &self.args.facts.file_versions);
        for text in instructions::give(&mut conclusion, call, versions) {
            let notice = CallToSession::Show(ClientEvent::Notice { text });
            let _ = self.args.session.send_message(notice.into());
        }
        conclusion.result = conclusion.result.noted(self.args.facts.remarks.note.as_deref());
        if let Some(hint) = &self.args.facts.hint {
            conclusion.result = tool_specs::with_note(conclusion.result, hint);
        }
        if matches!(self.audited, Audited::Nothing) {
            // It ended before it was decided: the audit log still gets its proposal.
            let why = Basis::Unjudgeable("it ended before it was decided".to_owned());
            self.audit_decided(&Verdict::Deny(why, String::new()));
        }
        self.forget_runner();
        self.changes_git(GitSettings::Kept);
        self.ran.ended = now_ms();
        let decided = self.proxy.take().map(|proxy| proxy.machine.decided().clone());
        self.ran.decided = decided.unwrap_or_default();
        let (steps, unread) = self.job.end(&conclusion.result.summary);
        self.carry_out_job(myself, steps);
        let call = &self.args.facts.call;
        self.ran.stored = self.stored(&conclusion);
        let ended = Box::new(audit::end(call, &conclusion, &self.ran));
        let (done, written) = oneshot::channel();
        let _ = self.args.audit.send_message(AuditMsg::Ended { ended, done });
        let written = written.await.unwrap_or_else(|_| Err("it is gone".to_owned()));
        let (head, audit_failure) = match written {
            Ok(head) => (Some(head), None),
            Err(reason) => (None, Some(reason)),
        };
        let tampered = protected_restore::unrestored(conclusion.tampered());
        let refusals = refusals(&conclusion, &self.ran.decided);
        let record = encode::call_end(call, &conclusion, &refusals, head);
        let file_versions = FileVersions::record(conclusion.report.as_ref());
        let effects = effects(&conclusion);
        let (pinned, id) = (call.origin == CallOrigin::PinnedRead, call.id.clone());
        let result = conclusion.result;
        let concluded = FinishedCall {
            record,
            file_versions,
            effects,
            call: id,
            pinned,
            result,
            refusals,
            tampered,
            audit_failure,
            unread: Some(unread),
        };
        let _ = self.args.session.send_message(CallToSession::Finished(Box::new(concluded)).into());
        myself.stop(None);
    }
}

impl CallState {
    /// What the store wrote or removed for later sessions, as the store itself says.
    fn stored(&self, conclusion: &CallConclusion) -> Option<journal::StoredRecord> {
        let facts = &self.args.facts;
        let is_change = facts.executor == Executor::Store && facts.kind == ToolKind::Mutation;
        let done = is_change && conclusion.result.outcome == Outcome::Done;
        let summary = &conclusion.result.summary;
        done.then(|| journal::StoredRecord { what: summary.clone(), bytes: facts.stored_bytes })
    }
}

/// Waits until the decision is in the audit log. Nothing is executed before.
pub(super) async fn decision_durable(
    decision: Option<oneshot::Receiver<Result<(), String>>>,
) -> Result<(), CallInput> {
    let Some(decision) = decision else { return Ok(()) };
    let written = decision.await.unwrap_or_else(|_| Err("the audit log is gone".into()));
    written.map_err(|reason| CallInput::DiskFailed(format!("audit log: {reason}")))
}

/// The changes to files that a call reported. A call that failed or was cut short may not know them.
fn effects(conclusion: &CallConclusion) -> Option<FileChanges> {
    let report = conclusion.report.as_ref().filter(|report| !report.result.is_error)?;
    Some(FileChanges { effects: report.effects.clone(), left: report.seen.clone() })
}

/// Everything that was refused to a call, as clients show it: by its cage, by its proxy, and changes to protected files.
fn refusals(conclusion: &CallConclusion, decided: &ProxyDecisions) -> Vec<String> {
    let reported = conclusion.report.as_ref().map(|report| report.refusals.as_slice());
    let reported = reported.unwrap_or_default().iter().map(in_words);
    let proxied = decided.connections.iter().filter_map(call::refusal);
    let changed = conclusion.tampered().iter();
    let changed = changed.filter(|name| name.remedy != TamperRemedy::Granted);
    reported.chain(proxied).chain(changed.map(ToString::to_string)).collect()
}

/// One refusal, as clients show it after the word "refused:".
fn in_words(refusal: &Refusal) -> String {
    let Refusal { kind, syscall, subject, errno, count, pid: _ } = refusal;
    let predicted = match kind {
        RefusalKind::Refused => "",
        RefusalKind::Predicted => ", predicted",
    };
    let error = std::io::Error::from_raw_os_error(*errno);
    let times = if *count > 1 { format!(", {count} times") } else { String::new() };
    format!("{syscall} {subject} ({error}){predicted}{times}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::confinement::Subject;

    #[test]
    fn a_refusal_is_said_once() {
        let refusal = |kind, count| {
            let subject = Subject::Address("10.0.0.7:80".parse().unwrap());
            in_words(&Refusal {
                kind,
                syscall: "connect".to_owned(),
                subject,
                errno: 101,
                pid: 1,
                count,
            })
        };
        let error = "Network is unreachable (os error 101)";
        let once = refusal(RefusalKind::Refused, 1);
        assert_eq!(once, format!("connect 10.0.0.7:80 ({error})"));
        let twice = refusal(RefusalKind::Predicted, 2);
        assert_eq!(twice, format!("connect 10.0.0.7:80 ({error}), predicted, 2 times"));
    }
}
