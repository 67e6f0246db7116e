//! The calls of a session, from the conversation's proposal to the result.

use super::jobs::check_ask;
use super::rights;
use super::state::SessionActorState;
use super::tasks::start::TaskStart;
use crate::call_actor::{CallActor, CallArgs};
use crate::messages::{CallMsg, CallToSession, FinishedCall, SessionMsg};
use crate::protected_restore::ProtectedCopies;
use crate::records::{TurnRound, decode, origin};
use crate::sign_in::SignInKeys;
use crate::worker::actor::WorkerMsg;
use call::{
    CachePolicy, CallFacts, CallInput, CallRemarks, Executor, NeedsProbe, Protects, UndoBy,
};
use journal::JournalRecord;
use protocol::call::{Call, CallOrigin, FileEffect, Outcome, ToolResult};
use protocol::client::ClientEvent;
use protocol::confinement::{Confinement, Level, Network, Profile};
use protocol::hosts::HostRule;
use protocol::ids::CallId;
use protocol::judgement::ToolKind;
use protocol::store::FileChanges;
use protocol::web::{PrivateNetworks, WebSettings};
use ractor::{Actor, ActorRef};
use setup::git_signing::AgentGrant;
use setup::session_spec::read_chars;
use tools::{
    CallAbout, Caller, ConfiguredRun, JobRequest, RunnerProgram, ServerToolCall, TaskRequest,
};

/// Most bytes of a call's arguments. They are sent to the broker twice, with a diff, and must fit
/// into its message cap. People could not judge more, either.
const LONGEST_INPUT: usize = 3 << 20;
/// Most characters of a hook's answer, which may hold the arguments of a call.
const HOOK_CHARS: u32 = 1 << 20;

/// A call whose arguments were read, and checked against the session.
pub(super) struct CheckedCall {
    facts: CallFacts,
    signing: Option<AgentGrant>,
    confinement: Confinement,
    private_hosts: Vec<HostRule>,
    runner: RunnerProgram,
}

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
        let asked = self.server_begins(&call);
        self.reread_written_dirs();
        let remarks = CallRemarks { asked: asked.or(remarks.asked), ..remarks };
        let pending_question = self.clients.questions.take_recorded(call.id.number);
        let checked = match self.call_facts(call.clone(), executor).await {
            Ok(checked) => checked,
            Err(result) => return self.end_unstarted(myself, call, result).await,
        };
        let CheckedCall { facts, signing, confinement, private_hosts, runner } = checked;
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
        let network = self.joined(&confinement);
        let background_after_ms = self.background_after_ms(&facts.call);
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

    /// What a call needs to run; or the result of a call that is invalid.
    pub(super) async fn call_facts(
        &self,
        call: Call,
        executor: Executor,
    ) -> Result<CheckedCall, ToolResult> {
        if call.input.len() > LONGEST_INPUT {
            return Err(too_long(&call.tool, call.input.len()));
        }
        let found =
            tools::interpret(&call.tool, &call.input).map_err(|invalid| invalid.result())?;
        // The conversation sends `Run` for every call that it does not execute itself; the store executes
        // some of those.
        let executor = match (executor, found.profile, &found.about, &found.task) {
            (Executor::Runner, Profile::Store, _, _) => Executor::Store,
            (Executor::Runner, Profile::Session, Some(CallAbout::Job(request)), _) => {
                Executor::Job(request.clone())
            }
            (Executor::Runner, Profile::Session, Some(CallAbout::Server(call)), _) => {
                Executor::Server(call.clone())
            }
            (Executor::Runner, Profile::Session, None, Some(task)) => {
                Executor::SubAgent(TaskRequest::clone(task))
            }
            (executor, _, _, _) => executor,
        };
        match (&executor, found.profile) {
            (
                Executor::Conversation(_)
                | Executor::Job(_)
                | Executor::Server(_)
                | Executor::SubAgent(_),
                Profile::Session,
            )
            | (Executor::Store, Profile::Store) => {}
            (
                Executor::Conversation(_)
                | Executor::Store
                | Executor::Job(_)
                | Executor::Server(_)
                | Executor::SubAgent(_),
                _,
            )
            | (Executor::Runner, Profile::Session | Profile::Store) => {
                return Err(not_its_own(found.spec.name));
            }
            (Executor::Runner, _) => {}
        }
        self.check_room(&call, found.runs_in)?;
        if let Some(CallAbout::Job(request)) = &found.about {
            check_ask(&call.tool, &request.asks)?;
        }
        if found.spec.name == "undo_restore" {
            self.calls.services.check_restore()?;
        }
        if let Some(request) = &found.task {
            let start = TaskStart::of(&self.spec, &self.journal.directory, call.id.number);
            start.check(request, &self.calls.services)?;
        }
        let configured = match found.spec.caller {
            Caller::ModelOfServer => {
                self.check_server_tool(&call, found.about.as_ref())
                    .map_err(|why| not_given(&call.tool, &why))?;
                None
            }
            Caller::Model => {
                self.spec
                    .check_given(found.spec.name)
                    .map_err(|why| not_given(&call.tool, &why))?;
                None
            }
            Caller::Conversation => {
                let by = self.configured(&call, &found);
                Some(by.ok_or_else(|| not_its_own(found.spec.name))?)
            }
        };
        let own_server = found.page.as_ref().and_then(|page| self.network_of_page(page));
        let page = match &own_server {
            Some(_) => found.page.clone(),
            None => rights::page(&self.spec, &found)?,
        };
        let (mut widens, mut confinement) =
            rights::asked(&self.spec, &found, page.as_ref()).await?;
        self.confine_server(&call, &mut confinement)?;
        if own_server.is_some() {
            // Its process reaches nothing beyond what the command may reach already.
            widens.clear();
        }
        let network = own_server.or_else(|| self.calls.services.network_for(&confinement));
        confinement.joins = network.as_ref().map(|network| network.call);
        let signing = rights::signing(&self.spec, &found).await?;
        let hint = rights::unsigned(&self.spec, &found);
        let undo = match (found.profile, found.spec.name) {
            (_, "undo_restore") => UndoBy::Restore,
            (Profile::Mutate | Profile::Format, _) => UndoBy::Copy,
            (Profile::Command | Profile::Git | Profile::Hook | Profile::McpWrite, _)
                if found.spec.kind == ToolKind::Mutation =>
            {
                UndoBy::Snapshot
            }
            (_, _) => UndoBy::Nothing,
        };
        let cache = match (found.spec.cacheable, found.profile, found.spec.kind) {
            // Pinned files are read again each time.
            (true, _, _) if call.origin.is_model() => CachePolicy::Lookup,
            (_, Profile::Mutate | Profile::Format, _) => CachePolicy::InvalidatesPaths,
            (
                _,
                Profile::Command | Profile::Git | Profile::Hook | Profile::McpWrite,
                ToolKind::Mutation,
            ) => CachePolicy::InvalidatesAll,
            (_, _, _) => CachePolicy::Unused,
        };
        // The store copies the files that the probe found.
        let needs_probe = !found.paths.is_empty()
            && (undo == UndoBy::Copy
                || approval::needs_probe(&self.spec.rules, found.spec.name, found.spec.kind));
        let env = self.env_of((&call, found.profile), &confinement, signing.as_ref());
        let contained = self.contained(&executor, found.profile, &confinement);
        let described = self.spec.describe_call(&confinement, (&found, page.as_ref()));
        let facts = CallFacts {
            call: Call { tool: found.spec.name.to_owned(), input: found.input, ..call },
            kind: found.spec.kind,
            kind_for_verdict: found.spec.judged_as(),
            command: found.command,
            stored_bytes: found.stored_bytes,
            confinement: match &executor {
                Executor::Job(JobRequest { call, .. }) => {
                    self.cage_of("the background command", Some(*call))
                }
                Executor::Server(ServerToolCall { tool, .. }) => {
                    self.cage_of("its MCP server", self.server_call(tool))
                }
                Executor::SubAgent(_) => "that of the session, or less".to_owned(),
                Executor::Store => "agentd's own directories; no program runs".to_owned(),
                Executor::Runner | Executor::Conversation(_) => described,
            },
            page,
            needs_probe: if needs_probe { NeedsProbe::Yes } else { NeedsProbe::No },
            extra_rights: match &executor {
                Executor::Job(request) => self.calls.services.rights_of_input(request),
                Executor::Server(_) | Executor::SubAgent(_) => Vec::new(),
                Executor::Runner | Executor::Conversation(_) | Executor::Store => widens,
            },
            env,
            timeout_ms: self
                .hooks(found.profile)
                .map_or(self.spec.config.tools.timeout_ms, |hooks| hooks.timeout_ms),
            max_result_chars: match found.spec.name {
                "read" => read_chars(&self.spec.config),
                // Only the conversation reads the answer of a hook.
                "hook" | "guard_hook" => HOOK_CHARS,
                _ => self.spec.config.tools.max_result_chars,
            },
            pending_question: None,
            contained,
            executor,
            runs_in: found.runs_in,
            undo,
            protects: match sandbox::has_protected_names(found.profile) {
                true => Protects::Files,
                false => Protects::Nothing,
            },
            cache,
            file_versions: match found.spec.requires_read {
                true => self.calls.file_versions.clone(),
                false => self.calls.file_versions.without_digests(),
            },
            web: (found.profile == Profile::Web)
                .then(|| (self.web_settings(&confinement), approval::page_rules(&self.spec.rules))),
            denied_reads: approval::read_denials(&self.spec.rules),
            configured,
            tampered: self.calls.tampered.clone(),
            remarks: CallRemarks::default(),
            hint,
        };
        let private_hosts = match found.configured {
            Some(ConfiguredRun::RemoteServer { hosts }) => hosts,
            Some(ConfiguredRun::EventHook { .. } | ConfiguredRun::EditHook { .. }) | None => {
                Vec::new()
            }
        };
        let runner = found.spec.runner;
        Ok(CheckedCall { facts, signing, confinement, private_hosts, runner })
    }

    /// The settings of a call that reads pages. Where it is in a network of the session's commands, there
    /// is no other machine.
    fn web_settings(&self, confinement: &Confinement) -> WebSettings {
        let mut settings = self.spec.config.web.clone();
        if confinement.joins.is_some() {
            settings.private = PrivateNetworks::Reached;
        }
        settings
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
        self.server_ended(myself, call.number, &result);
        self.name_untrusted_hooks(effects.as_ref());
        self.end_backup(&call, effects);
        self.clients.questions.close(&call);
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
            let message = self.message_of_end(call, result, unread);
            self.send_conversation(message);
        }
        self.close_failed_turn(myself).await;
        self.replay_if_quiet(myself).await;
    }

    /// Tells people once which command behind edits does not run for want of trust.
    fn name_untrusted_hooks(&mut self, did: Option<&FileChanges>) {
        if self.clients.untrusted_hook_shown || self.spec.confinement.level == Level::Uncaged {
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
            self.clients.untrusted_hook_shown = true;
            let command = &known.hook.command;
            let text = format!(
                "`{command}` does not run after edits, because this project is not trusted. Trust it with \
                 `agentd init`, or for one run with --trust-project"
            );
            tracing::info!(session = %self.spec.id, "{text}");
            self.show(&ClientEvent::Notice { text });
        }
    }

    pub(super) fn send_call(&self, call: &CallId, input: CallInput) {
        match self.calls.running.get(call) {
            Some(actor) => {
                let _ = actor.send_message(CallMsg::Input(input));
            }
            None => tracing::debug!(%call, "a message for a call that has ended"),
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

/// The conversation may answer its own tools only. A result for any other tool is refused.
fn not_its_own(tool: &str) -> ToolResult {
    let text = "the call was sent to the wrong process; nothing was run";
    ToolResult::error(Outcome::Invalid, "not_run", tool, text, "")
}

/// The conversation names another asker than the one on record, or one that makes no calls of this tool.
fn not_asked_for(tool: &str) -> ToolResult {
    let text = "the conversation did not say truly who asked for this call; nothing was run";
    ToolResult::error(Outcome::Invalid, "not_run", tool, text, "")
}

/// A sub-agent calls a tool that it was not given.
fn not_given(tool: &str, why: &str) -> ToolResult {
    let outcome = Outcome::Refused { rule: "tools of the sub-agent".to_owned() };
    ToolResult::error(outcome, "denied", tool, why, "")
}

fn too_long(tool: &str, bytes: usize) -> ToolResult {
    let text = format!("the arguments have {bytes} bytes; the most is {LONGEST_INPUT}");
    let hint = "Do it in several calls, or let a command produce the text.";
    ToolResult::error(Outcome::Invalid, "too_large", tool, &text, hint)
}
