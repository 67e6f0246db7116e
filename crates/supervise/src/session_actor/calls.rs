//! The calls of a session, from the conversation's proposal to the result.

use super::call_facts::{CallContext, CheckedCall};
use super::configured_calls::background_after_ms;
use super::hook_events;
use super::state::SessionActorState;
use crate::call_actor::{CallActor, CallArgs};
use crate::messages::{CallToSession, FinishedCall, ProtectedNews, SessionMsg};
use crate::records::{TurnRound, decode, origin};
use call::{CallFacts, CallInput, CallRemarks, Executor, tampered_in_words};
use config::Config;
use journal::JournalRecord;
use launch::protected_restore::{self, ProtectedCopies};
use protocol::broker::ToBroker;
use protocol::call::{Call, FileEffect, Outcome, TamperedFile, ToolResult};
use protocol::client::ClientEvent;
use protocol::confinement::Level;
use protocol::hook::{HookEvent, HookRefusal};
use protocol::ids::CallId;
use protocol::judgement::Question;
use protocol::store::FileChanges;
use protocol::tool::ProtectedOrder;
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
        if !self.closing.may_start(&call) {
            // The conversation does not know yet that the session ends. A call that was proposed
            // and not started is closed as such when the session is opened again.
            return;
        }
        let proposed = self.calls.unjudged.begun(&call.id);
        if !origin::fits(&call, proposed.as_ref()) {
            let result = not_asked_for(&call.tool);
            return self.end_unstarted(myself, proposed.unwrap_or(call), result).await;
        }
        let asked = self.server_begins(&call);
        self.resources.reread_written_dirs(&mut self.spec);
        let remarks = CallRemarks { asked: asked.or(remarks.asked), ..remarks };
        let pending_question = self.questions.take_recorded(call.id.number);
        let context = CallContext {
            spec: &self.spec,
            journal: self.journal.directory(),
            services: &self.calls.services,
            passed_fds: self.workers.provider.passed_fds(),
            spawner: &self.resources.spawner,
            file_versions: &self.calls.file_versions,
            tampered: self.calls.tampered.names(),
        };
        let checked = match context.facts(call.clone(), executor).await {
            Ok(checked) => checked,
            Err(result) => return self.end_unstarted(myself, call, result).await,
        };
        let passed_fds = self.workers.provider.passed_fds();
        let (denied_hosts, sign_in) =
            checked.proxy(&self.spec, self.resources.identity.as_ref(), passed_fds);
        let CheckedCall { facts, signing, confinement, private_hosts, network, runner } = checked;
        let id = call.id;
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
            lease: self.calls.running.lease().cloned(),
            lock: self.resources.lock.clone(),
            saved: ProtectedCopies::of(self.journal.directory()),
            overlays: self.resources.caches.as_ref().map(|caches| caches.overlays.clone()),
            written: self.resources.written.clone(),
            spawner: self.resources.spawner.clone(),
            session: myself.clone(),
            broker: self.workers.broker.clone(),
            store: self.workers.store.process().clone(),
            reserve: self.calls.reserve.for_call(),
            audit: self.resources.audit.clone(),
        };
        match CallActor::spawn_linked(None, CallActor, plan, myself.get_cell()).await {
            Ok((actor, _)) => {
                self.workers.tell_failures(&actor);
                self.calls.running.begins(id, actor);
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
        let finished = Box::new(FinishedCall::unstarted(call, result, record));
        let _ = myself.send_message(CallToSession::Finished(finished).into());
    }

    /// Puts a call that ends without a verdict into the audit log; its last record for the journal.
    pub(super) async fn audited(&mut self, call: &Call, result: ToolResult) -> JournalRecord {
        let (place, confinement) = (self.turn.router.place(), &self.spec.confinement);
        let audited = self.calls.unjudged.audit((call, place), result, confinement).await;
        if let Err(why) = audited.written {
            self.enter_read_only(format!("the audit log cannot be written: {why}")).await;
        }
        audited.record
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
        self.calls.running.ends(&call);
        self.calls.running.look_at_protected(&self.calls.services);
        self.server_ended(myself, call.number, &result);
        self.name_untrusted_hooks(effects.as_ref());
        self.workers.store.call_ended(&call, effects);
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
            file_versions.into_iter().chain(self.calls.tampered.add(tampered)).collect();
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
            ProtectedCopies::of(self.journal.directory()).remove(call.number);
        }
        if written.is_ok() && !pinned && !self.workers.conversation.has_begun() {
            // The next conversation process finds more records than the one before it: that is progress.
            self.turn.router.progressed();
            self.workers.conversation.made_progress();
        }
        if written.is_ok() {
            if has_spent {
                self.send_bounds();
            }
            // A conversation that was not replayed yet finds the result among the records.
            let message = self.message_of_end(call, result, unread);
            self.workers.conversation.send(message);
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
        if let Some(text) = did.and_then(|did| untrusted_hook(&self.spec.config, did)) {
            self.clients.untrusted_hook_is_shown();
            tracing::info!(session = %self.spec.id, "{text}");
            self.show(&ClientEvent::Notice { text });
        }
    }

    /// The runner of a command is busy with protected files while it runs.
    pub(super) async fn on_protected(&mut self, call: &CallId, news: ProtectedNews) {
        match news {
            ProtectedNews::PutRight { tool, found } => {
                let text = put_right(call, &tool, &found);
                tracing::info!(%call, "{text}");
                self.show(&ClientEvent::Notice { text });
                let left = protected_restore::unrestored(&found);
                if let Some(record) = self.calls.tampered.add(left) {
                    // A failure closes the session, and nothing runs.
                    let _ = self.record(vec![record]).await;
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
        let runs = hook_events::question(&question)
            .is_some_and(|hooks| self.workers.run_hooks(&self.spec.setup.hooks, hooks));
        match runs {
            true => self.questions.hold(question),
            false => self.put_question(question),
        }
    }

    pub(super) fn on_hooks_ended(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        event: HookEvent,
        call: Option<u32>,
        refusal: Option<HookRefusal>,
    ) {
        match event {
            HookEvent::PermissionRequest => {
                let question = call.and_then(|call| self.questions.released(call));
                match (question, refusal) {
                    (Some(question), Some(refusal)) => {
                        let known = &self.spec.config.hooks.commands;
                        let verdict = hook_events::denied(known, &refusal);
                        self.workers.broker.send(ToBroker::Forget(question.call.clone()));
                        self.calls.running.send(&question.call, CallInput::Verdict(verdict));
                    }
                    (Some(question), None) => self.put_question(question),
                    (None, _) => {}
                }
            }
            HookEvent::SessionEnd => self.end_hooks_over(myself),
            HookEvent::PreToolUse
            | HookEvent::PostToolUse
            | HookEvent::PostToolUseFailure
            | HookEvent::UserPromptSubmit
            | HookEvent::SessionStart
            | HookEvent::Stop
            | HookEvent::SubagentStop
            | HookEvent::PreCompact
            | HookEvent::Notification => {}
        }
    }

    /// The conversation's process ended: it answers for no hooks any more. It is replayed once no call
    /// waits, so the calls whose hooks ran are asked about now.
    pub(super) fn hooks_lost(&mut self, myself: &ActorRef<SessionMsg>) {
        for question in self.questions.release_all() {
            self.put_question(question);
        }
        self.end_hooks_over(myself);
    }
}

/// The command behind edits that would have followed these changes in a trusted project, in a sentence.
fn untrusted_hook(config: &Config, did: &FileChanges) -> Option<String> {
    let changed = |effect: &FileEffect| match effect {
        FileEffect::Written(path) | FileEffect::Created(path) => Some(path.clone()),
        FileEffect::Read(_)
        | FileEffect::Deleted(_)
        | FileEffect::Ran(_)
        | FileEffect::Signed { .. } => None,
    };
    let edited: Vec<String> = did.effects.iter().filter_map(changed).collect();
    let mut hooks = config.verify.untrusted.iter().chain(&config.format.untrusted);
    let known = hooks.find(|known| edited.iter().any(|path| known.hook.is_for(path)))?;
    Some(format!(
        "`{}` does not run after edits, because this project is not trusted. Trust it with \
         `agentd init`, or for one run with --trust-project",
        known.hook.command
    ))
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
