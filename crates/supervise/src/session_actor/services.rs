//! Services of a session: calls that the conversation does not wait for. Commands and sub-agents in the
//! background with the calls about them, and MCP servers with the calls of their tools ([`servers`]). The session
//! actor sends and shows what is returned here. Pure; `A` is the address of a call.

mod life;
mod restarts;
mod server_steps;
pub(super) mod servers;
mod starts;

pub(super) use server_steps::ServerStep;
pub(super) use starts::FirstRequest;
use starts::pause_before;

use crate::call_actor::{ENDED, ended, refused};
use launch::session_network::SessionNetwork;
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::confinement::Confinement;
use protocol::judgement::ExtraRight;
use protocol::mcp::ServerReport;
use servers::Servers;
use setup::session_spec::SessionServer;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tool_specs::{JobAsk, JobRequest};

/// Most commands and sub-agents of a session in the background.
const MOST: usize = 8;
/// Commands that ended, whose output can still be read.
const MOST_ENDED: usize = 8;

/// The address of a call that waits for an answer.
pub(super) trait Asker: Clone {
    /// It takes an answer.
    fn is_waiting(&self) -> bool;
}

/// A call that the conversation does not wait for.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) tool: String,
    pub(super) origin: CallOrigin,
    /// The rights that it has beyond the session's. Its input is judged by them.
    pub(super) rights: Vec<ExtraRight>,
    /// Its confinement in plain words.
    pub(super) cage: String,
    /// The network that it is in, unless that is the host's.
    pub(super) network: Option<Arc<SessionNetwork>>,
}

impl Service {
    /// A call that an earlier supervisor left in the background.
    pub(super) fn left(call: &Call) -> Self {
        let (tool, origin) = (call.tool.clone(), call.origin.clone());
        Self { tool, origin, rights: Vec::new(), cage: String::new(), network: None }
    }

    /// True for an MCP server, which is no command of the model.
    fn is_server(&self) -> bool {
        self.origin == CallOrigin::ServerStart
    }
}

/// A command in the background that has ended.
#[derive(Debug)]
struct EndedCommand {
    call: u32,
    /// The output that nobody has read.
    unread: String,
    /// Its end in a line.
    summary: String,
}

/// The end of a service.
#[derive(Debug, PartialEq)]
pub(super) struct ServiceEnd<A> {
    pub(super) tool: String,
    /// The calls about it that its process did not answer, with their results.
    pub(super) answers: Vec<(A, ToolResult)>,
}

/// All services of a session.
#[derive(Debug)]
pub(super) struct Services<A> {
    /// By their calls. A server is among them once its tools are known.
    running: BTreeMap<u32, Service>,
    /// Requests that were passed on to one of them, and the call that waits for the answer.
    asked: Vec<(JobRequest, A)>,
    /// The last commands that ended, until their output is read.
    ended: VecDeque<EndedCommand>,
    pub(super) servers: Servers<A>,
}

impl<A: Asker> Services<A> {
    /// None runs yet; so many servers are configured.
    pub(super) fn none_yet(servers: usize) -> Self {
        Self {
            running: BTreeMap::new(),
            asked: Vec::new(),
            ended: VecDeque::new(),
            servers: Servers::none_yet(servers),
        }
    }

    /// A call goes on without the conversation. False if that is known: a sub-agent that is waited for again.
    pub(super) fn begins(&mut self, call: u32, service: Service) -> bool {
        self.running.insert(call, service).is_none()
    }

    pub(super) fn has(&self, call: u32) -> bool {
        self.running.contains_key(&call)
    }

    /// True for an MCP server that is ready.
    pub(super) fn is_server(&self, call: u32) -> bool {
        self.running.get(&call).is_some_and(Service::is_server)
    }

    /// Its confinement in plain words.
    pub(super) fn cage(&self, call: u32) -> Option<&str> {
        self.running.get(&call).map(|service| service.cage.as_str())
    }

    fn commands(&self) -> impl Iterator<Item = (&u32, &Service)> {
        self.running.iter().filter(|(_, service)| !service.is_server())
    }

    /// Commands and sub-agents; servers are not counted among them.
    pub(super) fn commands_count(&self) -> usize {
        self.commands().count()
    }

    /// How many more commands and sub-agents may go to the background.
    pub(super) fn room(&self) -> usize {
        MOST.saturating_sub(self.commands_count())
    }

    /// Checks that there is room for one more.
    ///
    /// # Errors
    /// The result of the call that finds none.
    pub(super) fn check_room(&self, tool: &str) -> Result<(), ToolResult> {
        if self.room() > 0 {
            return Ok(());
        }
        let hint = "End one with bash_stop first.";
        Err(ToolResult::error(Outcome::Failed, "too_many", tool, &no_room(), hint))
    }

    /// Files are not put back while a command may write them, or while its own changes are not on the list
    /// yet.
    ///
    /// # Errors
    /// The result of the call that would put them back.
    pub(super) fn check_restore(&self) -> Result<(), ToolResult> {
        let running: Vec<_> = self.commands().map(|(call, _)| call.to_string()).collect();
        if running.is_empty() {
            return Ok(());
        }
        let text = format!("calls run in the background: {}", running.join(", "));
        let hint = "End them with bash_stop, or wait, and undo then.";
        let tool = "undo_restore";
        Err(ToolResult::error(Outcome::Invalid, "command_runs", tool, &text, hint))
    }

    /// The rights beyond the session's that the input of a command has.
    pub(super) fn rights_of_input(&self, request: &JobRequest) -> Vec<ExtraRight> {
        let service = self.running.get(&request.call);
        let service = service.filter(|_| matches!(request.asks, JobAsk::Input { .. }));
        service.map(|service| service.rights.clone()).unwrap_or_default()
    }

    /// The networks of the services, the newest first.
    fn networks(&self) -> impl Iterator<Item = &Arc<SessionNetwork>> {
        self.running.values().rev().filter_map(|service| service.network.as_ref())
    }

    /// The network of this call's command; without a call the newest.
    pub(super) fn network_of(&self, call: Option<u32>) -> Option<&Arc<SessionNetwork>> {
        match call {
            Some(call) => self.running.get(&call)?.network.as_ref(),
            None => self.networks().next(),
        }
    }

    /// The calls that made the networks in which commands run, the newest first.
    pub(super) fn makers_of_networks(&self) -> Vec<u32> {
        let mut makers: Vec<u32> = self.networks().map(|network| network.call).collect();
        makers.sort_unstable_by(|one, other| other.cmp(one));
        makers.dedup();
        makers
    }

    /// The network that a command with this confinement joins.
    pub(super) fn network_for(&self, wanted: &Confinement) -> Option<Arc<SessionNetwork>> {
        self.networks().find(|network| network.takes(wanted)).cloned()
    }

    /// The runner of a service was started again, with a network of its own.
    pub(super) fn network_moved(&mut self, call: u32, network: Option<Arc<SessionNetwork>>) {
        if let Some(service) = self.running.get_mut(&call) {
            service.network = network;
        }
    }

    /// A call asks a command something. `Ok` if the command is to be asked; else the answer.
    ///
    /// # Errors
    /// The answer: the command does not run any more, or never did.
    pub(super) fn ask(
        &mut self,
        request: &JobRequest,
        from: &A,
        max_result_chars: u32,
    ) -> Result<(), ToolResult> {
        // Servers are no commands of the model.
        if self.running.get(&request.call).is_none_or(Service::is_server) {
            return Err(self.answer_without(request, max_result_chars));
        }
        self.asked.retain(|(_, from)| from.is_waiting());
        self.asked.push((request.clone(), from.clone()));
        Ok(())
    }

    /// The answer about a command that does not run.
    pub(super) fn answer_without(&mut self, request: &JobRequest, max: u32) -> ToolResult {
        let known = self.ended.iter_mut().find(|job| job.call == request.call);
        match (&request.asks, known) {
            (JobAsk::Input { .. }, Some(_)) => refused("bash_input", ENDED),
            (_, Some(job)) => {
                let unread = std::mem::take(&mut job.unread);
                let (told, rest) = ended(request.call, unread, &job.summary, max);
                job.unread = rest;
                told
            }
            (_, None) => self.no_command(request),
        }
    }

    fn no_command(&self, request: &JobRequest) -> ToolResult {
        let tool = match &request.asks {
            JobAsk::Output { .. } => "bash_output",
            JobAsk::Input { .. } => "bash_input",
            JobAsk::Stop => "bash_stop",
        };
        let text = format!("call {} does not run in the background", request.call);
        let known: Vec<_> = self.commands().map(|(call, _)| call.to_string()).collect();
        let hint = match known.is_empty() {
            true => "No command does. Start one with bash and background.".to_owned(),
            false => format!("These do: {}.", known.join(", ")),
        };
        ToolResult::error(Outcome::Failed, "not_found", tool, &text, &hint)
    }

    /// The servers for people who ask: each with its state, its cage and its tools.
    pub(super) fn report_servers(&self, known: &[SessionServer]) -> Vec<ServerReport> {
        let sandbox = |call| self.cage(call).map(str::to_owned);
        let known = known.iter().enumerate();
        known.filter_map(|(at, known)| self.servers.report(at, known, sandbox)).collect()
    }

    /// A call has ended, with this output that nobody has read; none if it was no service.
    pub(super) fn ends(
        &mut self,
        call: u32,
        unread: Option<String>,
        summary: &str,
        max_result_chars: u32,
    ) -> Option<ServiceEnd<A>> {
        let service = self.running.remove(&call)?;
        let is_server = service.is_server();
        let mut end = ServiceEnd { tool: service.tool, answers: Vec::new() };
        if is_server {
            return Some(end);
        }
        if self.ended.len() == MOST_ENDED {
            self.ended.pop_front();
        }
        let (unread, summary) = (unread.unwrap_or_default(), summary.to_owned());
        self.ended.push_back(EndedCommand { call, unread, summary });
        let left: Vec<_> = self.asked.extract_if(.., |(request, _)| request.call == call).collect();
        for (request, from) in left.into_iter().filter(|(_, from)| from.is_waiting()) {
            let answer = self.answer_without(&request, max_result_chars);
            end.answers.push((from, answer));
        }
        Some(end)
    }
}

/// Said where no more commands may go to the background.
pub(super) fn no_room() -> String {
    format!("{MOST} calls run in the background, which is the most")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MAX: u32 = 1000;

    /// A call by its number, which waits if that is odd.
    impl Asker for u32 {
        fn is_waiting(&self) -> bool {
            self % 2 == 1
        }
    }

    fn service(origin: CallOrigin) -> Service {
        let (rights, cage) = (vec![ExtraRight::Network], "closed".to_owned());
        Service { tool: "bash".to_owned(), origin, rights, cage, network: None }
    }

    fn command() -> Service {
        service(CallOrigin::Model { use_id: "toolu_1".to_owned() })
    }

    fn with_commands(calls: impl IntoIterator<Item = u32>) -> Services<u32> {
        let mut services = Services::none_yet(0);
        for call in calls {
            assert!(services.begins(call, command()));
        }
        services
    }

    fn asks(call: u32, asks: JobAsk) -> JobRequest {
        JobRequest { call, asks }
    }

    fn output() -> JobAsk {
        JobAsk::Output { wait_ms: 0, pattern: None }
    }

    fn input() -> JobAsk {
        JobAsk::Input { text: "y".to_owned(), then: protocol::tool::AfterInput::KeepOpen }
    }

    #[test]
    fn eight_commands_are_the_most_and_servers_are_not_counted() {
        let mut services = with_commands(1..=7);
        services.begins(90, service(CallOrigin::ServerStart));
        assert_eq!((services.commands_count(), services.room()), (7, 1));
        services.check_room("bash").unwrap();
        services.begins(8, command());
        let full = services.check_room("bash").unwrap_err();
        assert_eq!(full.code.as_deref(), Some("too_many"));
        assert_eq!(services.room(), 0);
        services.ends(8, None, "exited", MAX).unwrap();
        services.check_room("bash").unwrap();
    }

    #[test]
    fn files_are_put_back_only_when_no_command_runs() {
        let mut services = with_commands([3]);
        services.begins(4, service(CallOrigin::ServerStart));
        assert!(services.check_restore().unwrap_err().text.contains("background: 3"));
        services.ends(3, None, "exited", MAX).unwrap();
        services.check_restore().unwrap();
    }

    #[test]
    fn a_command_that_ends_answers_the_calls_that_it_left_waiting_once() {
        let mut services = with_commands([1]);
        services.ask(&asks(1, output()), &11, MAX).unwrap();
        services.ask(&asks(1, JobAsk::Stop), &13, MAX).unwrap();
        services.ask(&asks(1, input()), &15, MAX).unwrap();
        // This one was answered, or a person stopped it.
        services.ask(&asks(1, output()), &12, MAX).unwrap();
        let end = services.ends(1, Some("last words".to_owned()), "exited", MAX).unwrap();
        let answered: Vec<_> = end.answers.iter().map(|(from, _)| *from).collect();
        assert_eq!(answered, [11, 13, 15]);
        let texts: Vec<_> = end.answers.iter().map(|(_, told)| told.text.as_str()).collect();
        assert!(texts[0].contains("last words") && texts[0].contains("call 1 has ended: exited"));
        assert!(!texts[1].contains("last words"), "it was read");
        assert!(texts[2].contains(ENDED));
        assert_eq!(services.ends(1, None, "exited", MAX), None);
    }

    #[test]
    fn the_output_of_an_ended_command_is_read_once_and_of_the_last_eight_only() {
        let mut services = with_commands(1..=8);
        for call in 1..=8 {
            services.ends(call, Some(format!("of {call}")), "exited", MAX).unwrap();
        }
        let read = |services: &mut Services<u32>, call| {
            services.ask(&asks(call, output()), &11, MAX).unwrap_err().text
        };
        assert!(read(&mut services, 1).contains("of 1"));
        assert!(!read(&mut services, 1).contains("of 1"));
        services.begins(9, command());
        services.ends(9, None, "exited", MAX).unwrap();
        assert!(read(&mut services, 1).contains("does not run"), "the eight after it have ended");
        assert!(read(&mut services, 2).contains("of 2"));
    }

    #[test]
    fn a_call_about_no_command_is_told_which_there_are() {
        let mut services = with_commands([5]);
        services.begins(6, service(CallOrigin::ServerStart));
        for call in [4, 6] {
            let told = services.ask(&asks(call, output()), &11, MAX).unwrap_err();
            assert!(told.text.contains("These do: 5."), "{}", told.text);
        }
        services.ask(&asks(5, output()), &11, MAX).unwrap();
    }

    #[test]
    fn only_the_input_of_a_command_has_its_rights() {
        let services = with_commands([5]);
        assert_eq!(services.rights_of_input(&asks(5, input())), [ExtraRight::Network]);
        assert!(services.rights_of_input(&asks(5, output())).is_empty());
        assert!(services.rights_of_input(&asks(4, input())).is_empty());
    }
}
