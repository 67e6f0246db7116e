//! The calls of a session, from the conversation's proposal to the result.

use super::hook_events;
use super::session_calls::{CallSurroundings, NoCall, ProposedCall};
use super::state::SessionActorState;
use crate::messages::{CallToSession, FinishedCall, ProtectedNews};
use crate::person_prompt::TypedCommand;
use crate::records::{TurnRound, decode, origin};
use call::{CallInput, CallRemarks, Executor, tampered_in_words};
use journal::JournalRecord;
use launch::protected_restore::{self, ProtectedCopies};
use protocol::broker::ToBroker;
use protocol::call::{Call, CallOrigin, Outcome, TamperedFile, ToolResult};
use protocol::hook::{HookEvent, HookRefusal};
use protocol::ids::CallId;
use protocol::judgement::Question;
use protocol::tool::ProtectedOrder;

impl SessionActorState {
    pub(super) async fn start_call(
        &mut self,
        call: Call,
        place: TurnRound,
        executor: Executor,
        remarks: CallRemarks,
    ) {
        if !self.closing.may_start(&call) {
            // The conversation does not know yet that the session ends. A call that was proposed
            // and not started is closed as such when the session is opened again.
            return;
        }
        self.questions.turn_came(&call.id);
        let proposed = self.calls.unjudged.begun(&call.id);
        let typed = self.turn.router.typed();
        if !origin::fits(&call, proposed.as_ref()) || is_untyped(&call, typed.as_deref()) {
            let result = not_asked_for(&call.tool);
            return self.end_unstarted(proposed.unwrap_or(call), result).await;
        }
        let asked = self.calls.services.servers.proposed(&call, &self.spec);
        self.resources.reread_written_dirs(&mut self.spec);
        let proposed = ProposedCall {
            call: call.clone(),
            place,
            executor,
            remarks: CallRemarks { asked: asked.or(remarks.asked), ..remarks },
            typed_by: typed.and_then(|typed| typed.take_by(&call)),
            pending_question: self.questions.take_recorded(call.id.number),
        };
        let around = CallSurroundings {
            spec: &self.spec,
            resources: &self.resources,
            journal: self.events.directory(),
            workers: &self.workers,
            failures: &self.events.failures,
            session: &self.own,
        };
        match self.calls.begin(proposed, around).await {
            Ok(()) => {}
            Err(NoCall::Invalid(result)) => self.end_unstarted(call, result).await,
            Err(NoCall::Failed(why)) => self.events.enter_read_only(why).await,
        }
    }

    /// The call ends with this result and without an actor.
    async fn end_unstarted(&mut self, call: Call, result: ToolResult) {
        let record = self.audited(&call, result.clone()).await;
        let finished = Box::new(FinishedCall::unstarted(call, result, record));
        let _ = self.own.send_message(CallToSession::Finished(finished).into());
    }

    /// Puts a call that ends without a verdict into the audit log; its last record for the journal.
    pub(super) async fn audited(&mut self, call: &Call, result: ToolResult) -> JournalRecord {
        let (place, confinement) = (self.turn.router.place(), self.spec.confinement());
        let audited = self.calls.unjudged.audit((call, place), result, confinement).await;
        if let Err(why) = audited.written {
            self.events.enter_read_only(format!("the audit log cannot be written: {why}")).await;
        }
        audited.record
    }

    pub(super) async fn on_call_finished(&mut self, mut finished: FinishedCall) {
        let (call, number) = (finished.call.clone(), finished.call.number);
        self.calls.ends(&call);
        self.server_ended(number, &finished.result);
        self.events.name_untrusted_hooks(&self.spec, finished.effects.as_ref());
        self.workers.store.call_ended(&call, finished.effects.take());
        self.questions.close(&call);
        let shown = finished.shown_result();
        let mut records = self.calls.records_before_end(&mut finished);
        let spent = self.task_spent(number).await;
        let event = decode::call_ended(call.clone(), shown, finished.refusals, spent.as_ref());
        let has_spent = spent.is_some();
        records.extend(spent);
        let end = (finished.record, event);
        let written = self.events.record_end(records, end, &mut self.calls.running).await;
        ipc::step!("supervisor: result durable");
        if let Some(why) = finished.audit_failure {
            let why = format!("the audit log cannot be written: {why}");
            return self.events.enter_read_only(why).await;
        }
        if written.is_ok() {
            ProtectedCopies::of(self.events.directory()).remove(number);
            if !finished.pinned && !self.workers.conversation.has_begun() {
                // The next conversation process finds more records than the one before it: that is progress.
                self.turn.router.progressed();
                self.workers.conversation.made_progress();
            }
            if has_spent {
                self.send_bounds();
            }
            // A conversation that was not replayed yet finds the result among the records.
            let unread = (finished.unread, self.spec.config().tools.max_result_chars);
            let message = self.calls.message_of_end(call, finished.result, unread);
            self.workers.conversation.send(message);
        }
        self.close_failed_turn().await;
        self.replay_if_quiet().await;
    }

    /// The runner of a command is busy with protected files while it runs.
    pub(super) async fn on_protected(&mut self, call: &CallId, news: ProtectedNews) {
        match news {
            ProtectedNews::PutRight { tool, found } => {
                let text = put_right(call, &tool, &found);
                tracing::info!(%call, "{text}");
                self.events.show_notice(text);
                let left = protected_restore::unrestored(&found);
                if let Some(record) = self.calls.tampered.add(left) {
                    // A failure closes the session, and nothing runs.
                    let _ = self.events.record(vec![record], &mut self.calls.running).await;
                }
            }
            ProtectedNews::ChangesGit(git) => {
                let order = ProtectedOrder::OtherCall { call: call.number, git };
                self.calls.running.tell_others(call, order);
            }
        }
    }

    /// A call needs a person's answer. Its hooks come first.
    pub(super) fn on_question(&mut self, question: Question) {
        let runs = hook_events::question(&question).is_some_and(|hooks| self.run_hooks(hooks));
        match runs {
            true => self.questions.hold(question),
            false => self.put_question(question),
        }
    }

    pub(super) fn on_hooks_ended(
        &mut self,
        event: HookEvent,
        call: Option<u32>,
        refusal: Option<HookRefusal>,
    ) {
        if event == HookEvent::SessionEnd {
            return self.end_hooks_over();
        }
        // Those of other events decide about no question.
        let call = call.filter(|_| event == HookEvent::PermissionRequest);
        let Some(question) = call.and_then(|call| self.questions.released(call)) else { return };
        let Some(refusal) = refusal else { return self.put_question(question) };
        let verdict = hook_events::denied(&self.spec.config().hooks.commands, &refusal);
        self.workers.broker.send(ToBroker::Forget(question.call.clone()));
        self.calls.running.send(&question.call, CallInput::Verdict(verdict));
    }

    /// The conversation's process ended: it answers for no hooks any more. It is replayed once no call
    /// waits, so the calls whose hooks ran are asked about now.
    pub(super) fn hooks_lost(&mut self) {
        for question in self.questions.release_all() {
            self.put_question(question);
        }
        self.end_hooks_over();
    }
}

/// Protected files that were put right while a call runs, for people.
fn put_right(call: &CallId, tool: &str, found: &[TamperedFile]) -> String {
    format!(
        "call {} ({tool}) runs, and meanwhile {}. If that was your own change, put it back after \
         the call's end",
        call.number,
        tampered_in_words(found).join("; "),
    )
}

/// The conversation names another asker than the one on record, or one that makes no calls of this tool.
fn not_asked_for(tool: &str) -> ToolResult {
    let text = "the conversation did not say truly who asked for this call; nothing was run";
    ToolResult::error(Outcome::Invalid, "not_run", tool, text, "")
}

/// True for a call that a person is said to have typed, in the turn of a prompt.
fn is_untyped(call: &Call, typed: Option<&TypedCommand>) -> bool {
    call.origin == CallOrigin::Person && typed.is_none()
}
