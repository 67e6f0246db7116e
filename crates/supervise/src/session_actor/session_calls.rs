//! The calls of a session, and facts about files that outlast them: how a call begins.

use super::cages::KnownCages;
use super::call_facts::{CallContext, CheckedCall};
use super::configured_calls::background_after_ms;
use super::failures::Failures;
use super::links::Workers;
use super::ports::OpenedPorts;
use super::reserve::Reserve;
use super::resources::SessionResources;
use super::running_calls::RunningCalls;
use super::services::Services;
use super::tampered_files::TamperedFiles;
use super::unjudged::Unjudged;
use crate::call_actor::{CallActor, CallArgs};
use crate::messages::{CallMsg, FinishedCall, SessionMsg};
use crate::records::TurnRound;
use call::{CallFacts, CallMachine, CallRemarks, Executor, FileVersions, PendingQuestion};
use journal::JournalRecord;
use launch::protected_restore::ProtectedCopies;
use protocol::call::{Call, ToolResult};
use protocol::ids::CallId;
use protocol::judgement::JudgedCall;
use ractor::{Actor, ActorRef};
use setup::session_spec::SessionSpec;
use std::path::Path;

/// The session's calls, and facts about files that outlast them.
pub(super) struct SessionCalls {
    pub(super) running: RunningCalls,
    /// Those among them that the conversation does not wait for, and the MCP servers.
    pub(super) services: Services<ActorRef<CallMsg>>,
    /// The clients that serve ports of their networks.
    pub(super) ports: OpenedPorts,
    /// Has the next command's runner.
    pub(super) reserve: Reserve,
    /// Calls that may end without a verdict.
    pub(super) unjudged: Unjudged,
    /// The versions of files that the model has read or written.
    pub(super) file_versions: FileVersions,
    /// Protected files that a call changed.
    pub(super) tampered: TamperedFiles,
    /// What clients know of their cages.
    pub(super) cages: KnownCages,
}

/// A proposed call, with everything that the session knows about it.
pub(super) struct ProposedCall {
    pub(super) call: Call,
    pub(super) place: TurnRound,
    pub(super) executor: Executor,
    pub(super) remarks: CallRemarks,
    /// The terminal of the person who typed it.
    pub(super) typed_by: Option<String>,
    /// The question that an earlier supervisor put about it.
    pub(super) pending_question: Option<PendingQuestion>,
}

/// The other parts of a session that a call needs.
pub(super) struct CallSurroundings<'a> {
    pub(super) spec: &'a SessionSpec,
    pub(super) resources: &'a SessionResources,
    /// The directory of the session's journal.
    pub(super) journal: &'a Path,
    pub(super) workers: &'a Workers,
    pub(super) failures: &'a Failures,
    pub(super) session: &'a ActorRef<SessionMsg>,
}

/// A call does not begin.
pub(super) enum NoCall {
    /// It is invalid, and ends with this result.
    Invalid(ToolResult),
    /// It has no actor, and why.
    Failed(String),
}

impl SessionCalls {
    /// A call has ended: the others look at protected files.
    pub(super) fn ends(&mut self, call: &CallId) {
        self.running.ends(call);
        self.running.look_at_protected(&self.services);
    }

    /// The versions of files that a call read or wrote, and the protected files that it changed. Their records go before
    /// the one of its end: no result is on disk without them.
    pub(super) fn records_before_end(&mut self, finished: &mut FinishedCall) -> Vec<JournalRecord> {
        if let Some(file_versions) = &finished.file_versions {
            self.file_versions.apply(file_versions);
        }
        let tampered = self.tampered.add(std::mem::take(&mut finished.tampered));
        finished.file_versions.take().into_iter().chain(tampered).collect()
    }

    fn context<'a>(&'a self, around: &CallSurroundings<'a>) -> CallContext<'a, ActorRef<CallMsg>> {
        CallContext {
            spec: around.spec,
            journal: around.journal,
            services: &self.services,
            passed_fds: around.workers.provider.passed_fds(),
            spawner: &around.resources.spawner,
            file_versions: &self.file_versions,
            tampered: self.tampered.names(),
            tier: self.cages.tier(),
        }
    }

    /// The case of a command that waits for its turn; none for any other call.
    pub(super) async fn case_ahead(
        &self,
        call: Call,
        around: &CallSurroundings<'_>,
    ) -> Option<JudgedCall> {
        let checked = self.context(around).facts(call, Executor::Runner).await.ok()?;
        CallMachine::new(checked.facts).case_ahead()
    }

    /// Begins a call.
    ///
    /// # Errors
    /// It does not begin, and why.
    pub(super) async fn begin(
        &mut self,
        proposed: ProposedCall,
        around: CallSurroundings<'_>,
    ) -> Result<(), NoCall> {
        let ProposedCall { call, place, executor, remarks, typed_by, pending_question } = proposed;
        let id = call.id.clone();
        let checked = self.context(&around).facts(call, executor).await.map_err(NoCall::Invalid)?;
        let CallSurroundings { spec, resources, journal, workers, failures, session } = around;
        let (denied_hosts, sign_in) =
            checked.proxy(spec, resources.identity.as_ref(), workers.provider.passed_fds());
        let CheckedCall { facts, signing, confinement, private_hosts, network, runner } = checked;
        let args = CallArgs {
            background_after_ms: background_after_ms(spec, &facts.call),
            facts: CallFacts { pending_question, remarks, typed_by, ..facts },
            signing,
            confinement,
            network,
            denied_hosts,
            private_hosts,
            sign_in,
            runner,
            place,
            hello: resources.times.hello,
            ping: resources.times.ping,
            question_ms: spec.config().daemon.question_deadline_ms,
            lease: self.running.lease().cloned(),
            lock: resources.lock.clone(),
            saved: ProtectedCopies::of(journal),
            overlays: resources.overlays(),
            written: resources.written.clone(),
            spawner: resources.spawner.clone(),
            session: session.clone(),
            broker: workers.broker.clone(),
            store: workers.store.process().clone(),
            reserve: self.reserve.for_call(),
            audit: resources.audit.clone(),
        };
        match CallActor::spawn_linked(None, CallActor, args, session.get_cell()).await {
            Ok((actor, _)) => {
                workers.tell_failures(&actor, failures);
                self.running.begins(id, actor);
                Ok(())
            }
            Err(error) => Err(NoCall::Failed(format!("call {id} could not be started: {error}"))),
        }
    }
}
