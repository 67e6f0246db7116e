//! The calls of a session, from the conversation's proposal to the result.

use super::call_facts::{CallContext, CheckedCall};
use super::configured_calls::background_after_ms;
use super::state::SessionActorState;
use crate::call_actor::{CallActor, CallArgs};
use crate::messages::{CallToSession, FinishedCall, SessionMsg};
use crate::records::{TurnRound, decode, origin};
use crate::sign_in::SignInKeys;
use crate::worker::actor::WorkerMsg;
use call::{CallFacts, CallRemarks, Executor};
use journal::JournalRecord;
use launch::protected_restore::ProtectedCopies;
use protocol::call::{Call, CallOrigin, FileEffect, Outcome, ToolResult};
use protocol::client::ClientEvent;
use protocol::confinement::{Level, Network};
use protocol::store::FileChanges;
use ractor::{Actor, ActorRef};

impl SessionActorState {
    pub(super) async fn start_call(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        call: Call,
        place: TurnRound,
        executor: Executor,
        remarks: CallRemarks,
    ) {
        if !self.may_start(&call) {
            // The conversation does not know yet that the session ends. A call that was proposed
            // and not started is closed as such when the session is opened again.
            return;
        }
        let proposed = self.calls.unjudged.begun(&call.id);
        if !origin::fits(&call, proposed.as_ref()) {
            let result = not_asked_for(&call.tool);
            return self.end_unstarted(myself, proposed.unwrap_or(call), result).await;
        }
        let asked = self.calls.services.servers.proposed(&call, &self.spec);
        self.reread_written_dirs();
        let remarks = CallRemarks { asked: asked.or(remarks.asked), ..remarks };
        let pending_question = self.questions.take_recorded(call.id.number);
        let context = CallContext {
            spec: &self.spec,
            journal: &self.journal.directory,
            services: &self.calls.services,
            passed_fds: &self.resources.passed_fds,
            spawner: &self.resources.spawner,
            file_versions: &self.calls.file_versions,
            tampered: &self.calls.tampered,
        };
        let checked = match context.facts(call.clone(), executor).await {
            Ok(checked) => checked,
            Err(result) => return self.end_unstarted(myself, call, result).await,
        };
        let CheckedCall { facts, signing, confinement, private_hosts, network, runner } = checked;
        let id = call.id;
        let denied_hosts = match confinement.network {
            Network::Listed => approval::denied_hosts(&self.spec.rules.rules),
            Network::Off | Network::On => Vec::new(),
        };
        let sign_in = match confinement.network {
            Network::Listed => SignInKeys::of(
                &self.spec,
                self.resources.identity.as_ref(),
                &self.resources.passed_fds,
            ),
            Network::Off | Network::On => None,
        };
        let background_after_ms = background_after_ms(&self.spec, &facts.call);
        let plan = CallArgs {
            facts: CallFacts { pending_question, remarks, ..facts },
            signing,
            confinement,
            network,
            background_after_ms,
            denied_hosts,
            private_hosts,
            sign_in,
            runner,
            place,
            hello: self.resources.times.hello,
            ping: self.resources.times.ping,
            question_ms: self.spec.config.daemon.question_deadline_ms,
            lease: self.calls.lease.lease.clone(),
            lock: self.resources.lock.clone(),
            saved: ProtectedCopies::of(&self.journal.directory),
            overlays: self.resources.caches.as_ref().map(|caches| caches.overlays.clone()),
            written: self.resources.written.clone(),
            spawner: self.resources.spawner.clone(),
            session: myself.clone(),
            broker: self.workers.broker.clone(),
            store: self.workers.store.clone(),
            reserve: self.calls.reserve.clone(),
            audit: self.audit.clone(),
        };
        match CallActor::spawn_linked(None, CallActor, plan, myself.get_cell()).await {
            Ok((actor, _)) => {
                self.send_failures(&actor);
                self.calls.running.insert(id, actor);
            }
            Err(error) => {
                self.enter_read_only(format!("call {id} could not be started: {error}")).await;
            }
        }
    }

    /// The call ends with this result and without an actor.
    async fn end_unstarted(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        call: Call,
        result: ToolResult,
    ) {
        let record = self.audited(&call, result.clone()).await;
        let (pinned, Call { id: call, .. }) = (call.origin == CallOrigin::PinnedRead, call);
        let (file_versions, effects, audit_failure) = (None, None, None);
        let (refusals, tampered) = (Vec::new(), Vec::new());
        let concluded = FinishedCall {
            record,
            file_versions,
            effects,
            call,
            pinned,
            result,
            refusals,
            tampered,
            audit_failure,
            unread: None,
        };
        let _ = myself.send_message(CallToSession::Finished(Box::new(concluded)).into());
    }

    pub(super) async fn on_call_finished(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        concluded: FinishedCall,
    ) {
        let FinishedCall {
            mut record,
            file_versions,
            effects,
            call,
            pinned,
            result,
            refusals,
            tampered,
            audit_failure,
            unread,
        } = concluded;
        self.calls.running.remove(&call);
        self.look_at_protected();
        self.server_ended(call.number, &result);
        self.name_untrusted_hooks(effects.as_ref());
        self.end_backup(&call, effects);
        self.questions.close(&call);
        let shown = match pinned {
            true => without_text(&mut record, &result),
            false => result.clone(),
        };
        if let Some(file_versions) = &file_versions {
            self.calls.file_versions.apply(file_versions);
        }
        // File versions and tampered files go first: no result is on disk without them.
        let mut records: Vec<_> =
            file_versions.into_iter().chain(self.add_tampered(tampered)).collect();
        let spent = self.task_spent(call.number).await;
        let event = decode::call_ended(call.clone(), shown, refusals, spent.as_ref());
        let has_spent = spent.is_some();
        records.extend(spent);
        let mut events = vec![None; records.len()];
        events.push(Some(event));
        records.push(record);
        let written = self.record_as(records, events).await;
        ipc::step!("supervisor: result durable");
        if let Some(why) = audit_failure {
            let why = format!("the audit log cannot be written: {why}");
            return self.enter_read_only(why).await;
        }
        if written.is_ok() {
            ProtectedCopies::of(&self.journal.directory).remove(call.number);
        }
        if written.is_ok() && !pinned && !self.links.replay.has_started() {
            // The next conversation process finds more records than the one before it: that is progress.
            self.turn.router.progressed();
            let _ = self.workers.conversation.actor().send_message(WorkerMsg::ResetFailures);
        }
        if written.is_ok() {
            if has_spent {
                self.send_bounds();
            }
            // A conversation that was not replayed yet finds the result among the records.
            let max = self.spec.config.tools.max_result_chars;
            let message = self.calls.message_of_end(call, result, (unread, max));
            self.send_conversation(message);
        }
        self.close_failed_turn(myself).await;
        self.replay_if_quiet(myself).await;
    }

    /// Tells people once which command behind edits does not run for want of trust.
    fn name_untrusted_hooks(&mut self, did: Option<&FileChanges>) {
        if self.clients.was_untrusted_hook_shown() || self.spec.confinement.level == Level::Uncaged
        {
            return;
        }
        let changed = |effect: &FileEffect| match effect {
            FileEffect::Written(path) | FileEffect::Created(path) => Some(path.clone()),
            FileEffect::Read(_)
            | FileEffect::Deleted(_)
            | FileEffect::Ran(_)
            | FileEffect::Signed { .. } => None,
        };
        let edited: Vec<String> =
            did.into_iter().flat_map(|did| &did.effects).filter_map(changed).collect();
        let config = &self.spec.config;
        let mut hooks = config.verify.untrusted.iter().chain(&config.format.untrusted);
        let hook = hooks.find(|known| edited.iter().any(|path| known.hook.is_for(path)));
        if let Some(known) = hook {
            self.clients.untrusted_hook_is_shown();
            let command = &known.hook.command;
            let text = format!(
                "`{command}` does not run after edits, because this project is not trusted. Trust it with \
                 `agentd init`, or for one run with --trust-project"
            );
            tracing::info!(session = %self.spec.id, "{text}");
            self.show(&ClientEvent::Notice { text });
        }
    }
}

/// The result of a pinned file's read as it is recorded and shown. Its text is replaced by its digest:
/// the journal would soon hold little but copies of it.
fn without_text(record: &mut JournalRecord, result: &ToolResult) -> ToolResult {
    let mut shown = result.clone();
    if let JournalRecord::Result { text, full, images, is_error: false, .. } = record {
        let digest = journal::Digest::of(text.as_bytes());
        *text = format!("[pinned file: {} bytes, sha256 {digest}]", text.len());
        (*full, *images) = (None, Vec::new());
        shown.text.clone_from(text);
        shown.images = Vec::new();
    }
    shown
}

/// The conversation names another asker than the one on record, or one that makes no calls of this tool.
fn not_asked_for(tool: &str) -> ToolResult {
    let text = "the conversation did not say truly who asked for this call; nothing was run";
    ToolResult::error(Outcome::Invalid, "not_run", tool, text, "")
}
