//! Commands and sub-agents in the background: calls that the conversation does not wait for. It got a result in their
//! place, and hears of their end later.

use super::state::{BackgroundJob, EndedJob, SessionActorState};
use crate::call_actor::{ENDED, ended, line_pattern, refused};
use crate::messages::{CallMsg, DetachedCall, SessionMsg};
use crate::records::{decode::in_background, origin};
use crate::session_network::SessionNetwork;
use crate::worker::actor::WorkerMsg;
use call::CallInput;
use journal::JournalRecord;
use protocol::call::{Call, CallOrigin, CallStage, Outcome, ToolResult};
use protocol::client::ClientEvent;
use protocol::confinement::{Confinement, Network, Profile};
use protocol::ids::CallId;
use protocol::judgement::ExtraRight;
use protocol::session::ToSession;
use protocol::web::{PrivateNetworks, WebAddress};
use ractor::{ActorRef, ActorStatus};
use std::sync::Arc;
use tools::{JobAsk, JobRequest, RunsIn};

/// Most commands and sub-agents of a session in the background.
pub(super) const MOST: usize = 8;
/// Commands that ended, whose output can still be read.
const MOST_ENDED: usize = 8;
/// Most bytes for a command's input at once: as much as a pipe holds.
const LONGEST_INPUT: usize = 64 * 1024;

/// Checks what a call asks of one in the background, before it is judged.
pub(super) fn check_ask(tool: &str, asks: &JobAsk) -> Result<(), ToolResult> {
    let invalid = |text: String| {
        Err(ToolResult::error(Outcome::Invalid, "invalid_arguments", tool, &text, ""))
    };
    match asks {
        JobAsk::Output { pattern: Some(pattern), .. } => match line_pattern(pattern) {
            Ok(_) => Ok(()),
            Err(error) => invalid(format!("`pattern` is no regular expression: {error}")),
        },
        JobAsk::Input { text, .. } if text.len() > LONGEST_INPUT => {
            invalid(format!("`text` has {} bytes; the most is {LONGEST_INPUT}", text.len()))
        }
        JobAsk::Output { pattern: None, .. } | JobAsk::Input { .. } | JobAsk::Stop => Ok(()),
    }
}

/// True for a call that takes an answer.
pub(super) fn is_waiting(call: &ActorRef<CallMsg>) -> bool {
    !matches!(call.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
}

impl SessionActorState {
    /// The calls that the conversation waits for.
    pub(super) fn foreground(&self) -> impl Iterator<Item = &CallId> {
        let background = &self.calls.background;
        self.calls.running.keys().filter(|call| !background.contains_key(&call.number))
    }

    /// Files are not put back while a command in the background may write them, or while its own changes are
    /// not on the list yet.
    pub(super) fn check_restore(&self, tool: &str) -> Result<(), ToolResult> {
        let writes = |(_, job): &(&u32, &BackgroundJob)| !job.is_server();
        let running = self.calls.background.iter().filter(writes);
        let running: Vec<_> = running.map(|(call, _)| call.to_string()).collect();
        if tool != "undo_restore" || running.is_empty() {
            return Ok(());
        }
        let text = format!("calls run in the background: {}", running.join(", "));
        let hint = "End them with bash_stop, or wait, and undo then.";
        Err(ToolResult::error(Outcome::Invalid, "command_runs", tool, &text, hint))
    }

    /// Checks that there is room for a call in the background.
    pub(super) fn check_room(&self, call: &Call, runs_in: RunsIn) -> Result<(), ToolResult> {
        let is_server = call.origin == CallOrigin::ServerStart;
        match runs_in {
            RunsIn::Background if self.jobs_in_background() >= MOST && !is_server => {
                let text = format!("{MOST} calls run in the background, which is the most");
                let hint = "End one with bash_stop first.";
                Err(ToolResult::error(Outcome::Failed, "too_many", &call.tool, &text, hint))
            }
            RunsIn::Background | RunsIn::Foreground => Ok(()),
        }
    }

    /// The confinement of the call that is to answer, for a question.
    pub(super) fn cage_of(&self, whose: &str, number: Option<u32>) -> String {
        let job = number.and_then(|call| self.calls.background.get(&call));
        let cage = job.map_or("it does not run", |job| &job.cage);
        format!("that of {whose}: {cage}")
    }

    /// The rights beyond the session's that the input of a background command has.
    pub(super) fn rights_of_input(&self, request: &JobRequest) -> Vec<ExtraRight> {
        match request.asks {
            JobAsk::Input { .. } => {
                let job = self.calls.background.get(&request.call);
                job.map(|job| job.rights.clone()).unwrap_or_default()
            }
            JobAsk::Output { .. } | JobAsk::Stop => Vec::new(),
        }
    }

    /// The networks of the commands in the background, the newest first.
    fn networks(&self) -> impl Iterator<Item = &Arc<SessionNetwork>> {
        self.calls.background.values().rev().filter_map(|job| job.network.as_ref())
    }

    /// The network that a command with this confinement joins.
    pub(super) fn network_for(&self, wanted: &Confinement) -> Option<Arc<SessionNetwork>> {
        self.networks().find(|network| network.takes(wanted)).cloned()
    }

    /// The network of the commands in the background, if this page is one of their servers'. A network
    /// with a proxy leads further, and so is none. A page of this machine that the person named stays one.
    pub(super) fn network_of_page(&self, page: &WebAddress) -> Option<Arc<SessionNetwork>> {
        let session = &self.spec.confinement;
        let is_persons = self.spec.config.web.private == PrivateNetworks::Reached
            && approval::is_host_named(&self.spec.rules.rules, page);
        if !page.is_loopback() || is_persons || session.network != Network::Off {
            return None;
        }
        self.network_for(&Confinement { profile: Profile::Command, ..session.clone() })
    }

    /// The runner of a command in the background was started again.
    pub(super) fn on_network_moved(&mut self, call: u32, network: Option<Arc<SessionNetwork>>) {
        if let Some(job) = self.calls.background.get_mut(&call) {
            job.network = network;
        }
    }

    /// The network that a confinement joins.
    pub(super) fn joined(&self, confinement: &Confinement) -> Option<Arc<SessionNetwork>> {
        let call = confinement.joins?;
        self.networks().find(|network| network.call == call).cloned()
    }

    /// A person lets the commands and sub-agents that run go on in the background, as far as there is room.
    pub(super) fn detach_commands(&self) {
        let room = MOST.saturating_sub(self.jobs_in_background());
        if room == 0 {
            let text = format!("{MOST} calls run in the background, which is the most");
            return self.show(&ClientEvent::Notice { text });
        }
        let is_task = |call: &&CallId| self.tasks.running.contains_key(&call.number);
        let (tasks, commands): (Vec<_>, Vec<_>) = self.foreground().partition(is_task);
        let tasks = tasks.into_iter().take(room.saturating_sub(commands.len()));
        commands.into_iter().chain(tasks).for_each(|call| self.send_call(call, CallInput::Detach));
    }

    /// A command runs longer than a conversation should wait. Where no room is left in the background, the
    /// conversation waits.
    pub(super) fn on_slow(&self, call: &CallId) {
        if self.jobs_in_background() < MOST {
            self.send_call(call, CallInput::Detach);
        }
    }

    /// A command goes on in the background: its call has its result for the model, once that is on disk.
    pub(super) async fn on_detached(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        detached: DetachedCall,
    ) {
        let DetachedCall { call, text, rights, cage, network, notice } = detached;
        let Call { id, origin, tool, input: _ } = call;
        let job = BackgroundJob { tool, origin: origin.clone(), rights, cage, network };
        if self.calls.background.insert(id.number, job).is_some() {
            // A sub-agent that is waited for again: the conversation has this result.
            return;
        }
        // Later changes of the command cannot be told from those of others.
        self.end_backup(&id, None);
        let (use_id, _) = origin::record(origin);
        let record = JournalRecord::Background { call: id.number, use_id, text: text.clone() };
        if self.record(vec![record]).await.is_ok() {
            ipc::step!("supervisor: background durable");
            self.turn.router.progressed();
            let _ = self.workers.conversation.actor().send_message(WorkerMsg::ResetFailures);
            if let Some(text) = notice {
                self.show(&ClientEvent::Notice { text });
            }
            let result = in_background(text);
            self.send_conversation(ToSession::CallEnded {
                call: id,
                stage: CallStage::InBackground,
                result,
            });
        }
        self.close_failed_turn(myself).await;
        self.replay_if_quiet(myself).await;
    }

    /// Passes a request on to the command's call, or answers it.
    pub(super) fn on_job_request(&mut self, request: JobRequest, from: ActorRef<CallMsg>) {
        let number = request.call;
        let id = CallId { session: self.spec.id.clone(), number };
        // Servers are no commands of the model.
        if self.calls.background.get(&number).is_some_and(|job| !job.is_server())
            && let Some(call) = self.calls.running.get(&id)
        {
            // A call that ends now drops its messages: its end answers those that it did not.
            let _ = call.send_message(CallMsg::Job(request.clone(), from.clone()));
            self.calls.job_requests.retain(|(_, from)| is_waiting(from));
            self.calls.job_requests.push((request, from));
            return;
        }
        self.answer_without_job(&request, &from);
    }

    /// Answers a request about a command that does not run.
    fn answer_without_job(&mut self, request: &JobRequest, from: &ActorRef<CallMsg>) {
        let number = request.call;
        let max = self.spec.config.tools.max_result_chars;
        let known = self.calls.ended_jobs.iter_mut().find(|job| job.call == number);
        let result = match (&request.asks, known) {
            (JobAsk::Input { .. }, Some(_)) => refused("bash_input", ENDED),
            (_, Some(job)) => {
                let (told, rest) =
                    ended(number, std::mem::take(&mut job.unread), &job.summary, max);
                job.unread = rest;
                told
            }
            (_, None) => self.no_job(request),
        };
        let _ = from.send_message(CallMsg::Input(CallInput::OtherAnswered(result)));
    }

    fn no_job(&self, request: &JobRequest) -> ToolResult {
        let (number, tool) = match &request.asks {
            JobAsk::Output { .. } => (request.call, "bash_output"),
            JobAsk::Input { .. } => (request.call, "bash_input"),
            JobAsk::Stop => (request.call, "bash_stop"),
        };
        let text = format!("call {number} does not run in the background");
        let jobs = self.calls.background.iter().filter(|(_, job)| !job.is_server());
        let known: Vec<_> = jobs.map(|(call, _)| call.to_string()).collect();
        let hint = match known.is_empty() {
            true => "No command does. Start one with bash and background.".to_owned(),
            false => format!("These do: {}.", known.join(", ")),
        };
        ToolResult::error(Outcome::Failed, "not_found", tool, &text, &hint)
    }

    /// The message to the conversation about a call that has ended.
    pub(super) fn message_of_end(
        &mut self,
        call: CallId,
        result: ToolResult,
        unread: Option<String>,
    ) -> ToSession {
        let Some(job) = self.calls.background.remove(&call.number) else {
            return ToSession::CallEnded { call, stage: CallStage::Ended, result };
        };
        let (is_server, tool) = (job.is_server(), job.tool);
        if is_server {
            return ToSession::BackgroundEnded { call, tool, result };
        }
        if self.calls.ended_jobs.len() == MOST_ENDED {
            self.calls.ended_jobs.pop_front();
        }
        let (unread, summary) = (unread.unwrap_or_default(), result.summary.clone());
        self.calls.ended_jobs.push_back(EndedJob { call: call.number, unread, summary });
        let is_of_it = |(request, _): &mut (JobRequest, _)| request.call == call.number;
        let left: Vec<_> = self.calls.job_requests.extract_if(.., is_of_it).collect();
        for (request, from) in left.iter().filter(|(_, from)| is_waiting(from)) {
            self.answer_without_job(request, from);
        }
        ToSession::BackgroundEnded { call, tool, result }
    }
}
