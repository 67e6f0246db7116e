//! An MCP server that a call runs: the calls of its tools, each until its answer. The call actor carries the steps out.
//! Pure; `A` is the address of a call.

use super::job::{JobStep, Waiter};
use crate::messages::ServerSays;
use crate::records::images;
use call::{CallInput, ServerAsk, ServerDemand, ServerInput, ServerRequest};
use protocol::call::{Outcome, ToolResult};
use protocol::confinement::{Enforced, Profile};
use protocol::mcp::{CALL, FromServer, ServerAction, ToServer};
use protocol::tool::ToCall;

/// Most calls that wait for one server.
const MOST: usize = 64;

/// The calls that wait, by their numbers on the wire.
pub(super) struct ServerAsks<A> {
    /// Most characters of a result.
    max: u32,
    next: u64,
    waiting: Vec<(u64, A)>,
}

/// The runner of a server. One that ends or has ended would never pass a call on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerRun {
    Runs,
    HasEnded,
}

impl<A: Waiter> ServerAsks<A> {
    /// With results of at most so many characters.
    pub(super) fn none_yet(max: u32) -> Self {
        Self { max, next: 0, waiting: Vec::new() }
    }

    fn of(&self, number: u64) -> Option<&A> {
        self.waiting.iter().find(|(known, _)| *known == number).map(|(_, from)| from)
    }

    fn take(&mut self, number: u64) -> Option<A> {
        let at = self.waiting.iter().position(|(known, _)| *known == number)?;
        Some(self.waiting.swap_remove(at).1)
    }

    /// Passes a call on, or something about one.
    pub(super) fn request(
        &mut self,
        request: ServerRequest,
        from: A,
        timeout_ms: u64,
        run: ServerRun,
    ) -> Vec<JobStep<A>> {
        let ServerRequest { tool, demand } = request;
        let to_server = |message| vec![JobStep::ToRunner(ToCall::Server(message))];
        let refuse = |from, why: &str| {
            let refused = CallInput::OtherAnswered(refused_by_server(&tool, why));
            vec![JobStep::Input(from, Box::new(refused))]
        };
        match demand {
            ServerDemand::Call(_) if self.waiting.len() == MOST => {
                let why = format!("{MOST} calls wait for the MCP server, which is the most");
                refuse(from, &why)
            }
            ServerDemand::Call(_) if run == ServerRun::HasEnded => {
                refuse(from, "the MCP server has ended")
            }
            ServerDemand::Call(arguments) => {
                self.next += 1;
                self.waiting.push((self.next, from));
                to_server(ToServer::Call {
                    number: self.next,
                    action: ServerAction::of(&tool),
                    tool,
                    arguments,
                    timeout_ms,
                    max_result_chars: self.max,
                })
            }
            ServerDemand::Withdraw => {
                let at = self.waiting.iter().position(|(_, waits)| waits.is_same(&from));
                let Some(at) = at else { return Vec::new() };
                to_server(ToServer::Cancel(self.waiting.swap_remove(at).0))
            }
            ServerDemand::Reply(ask, reply) => to_server(ToServer::Reply { ask, reply }),
        }
    }

    /// The server, which runs with this profile in this cage, says something.
    pub(super) fn said(
        &mut self,
        said: FromServer,
        (profile, cage): (Profile, Option<&Enforced>),
    ) -> Vec<JobStep<A>> {
        let to = |from: Option<&A>, input| {
            from.map(|from| JobStep::Input(from.clone(), Box::new(input)))
        };
        match said {
            FromServer::Tools(tools) => vec![JobStep::Says(ServerSays::Tools(tools))],
            FromServer::Offers(offers) => vec![JobStep::Says(ServerSays::Offers(offers))],
            FromServer::Note(text) => vec![JobStep::Says(ServerSays::Note(text))],
            FromServer::Progress { number, text } => {
                to(self.of(number), CallInput::Output(text)).into_iter().collect()
            }
            FromServer::Asks { number, ask, question } => {
                let asks = ServerInput::Asks(ServerAsk { ask, question });
                to(self.of(number), CallInput::OfServer(asks)).into_iter().collect()
            }
            FromServer::Unasked { number, ask } => {
                let unasked = ServerInput::Unasked(ask);
                to(self.of(number), CallInput::OfServer(unasked)).into_iter().collect()
            }
            FromServer::Answer { number, report } => {
                // A second answer, or one to a call that has ended.
                let Some(from) = self.take(number) else { return Vec::new() };
                let report = images::named(*report, (CALL, profile));
                let has_answered = matches!(report.result.outcome, Outcome::Done | Outcome::Failed);
                let says = has_answered.then_some(JobStep::Says(ServerSays::Answered));
                let answer = CallInput::ServerAnswered(Box::new((report, cage.cloned())));
                says.into_iter().chain([JobStep::Input(from, Box::new(answer))]).collect()
            }
        }
    }

    /// The server has ended: it is not known how far the calls came.
    pub(super) fn end(&mut self, summary: &str) -> Vec<JobStep<A>> {
        let cause = format!("lost its MCP server ({summary})");
        let lost = || Box::new(CallInput::ServerLost { cause: cause.clone() });
        self.waiting.drain(..).map(|(_, from)| JobStep::Input(from, lost())).collect()
    }
}

/// The result of a call that its server was not asked for.
pub(crate) fn refused_by_server(tool: &str, why: &str) -> ToolResult {
    let hint = "Nothing was done. Try it again later, or do without it.";
    ToolResult::error(Outcome::Failed, "no_server", tool, why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(demand: ServerDemand) -> ServerRequest {
        ServerRequest { tool: "say".to_owned(), demand }
    }

    fn call() -> ServerRequest {
        demand(ServerDemand::Call("{}".to_owned()))
    }

    fn asks() -> ServerAsks<u32> {
        ServerAsks::none_yet(1000)
    }

    #[test]
    fn a_server_that_has_ended_or_has_64_calls_gets_no_more() {
        let mut asks = asks();
        let refused = |steps: &[JobStep<u32>]| {
            let [JobStep::Input(_, input)] = steps else { panic!("{steps:?}") };
            let CallInput::OtherAnswered(result) = &**input else { panic!("{input:?}") };
            result.text.clone()
        };
        let steps = asks.request(call(), 1, 9, ServerRun::HasEnded);
        assert!(refused(&steps).contains("has ended"));
        for from in 0..64 {
            let steps = asks.request(call(), from, 9, ServerRun::Runs);
            assert!(matches!(steps[..], [JobStep::ToRunner(ToCall::Server(_))]), "{steps:?}");
        }
        let steps = asks.request(call(), 99, 9, ServerRun::Runs);
        assert!(refused(&steps).contains("64 calls wait"));
    }

    fn input_of_2(steps: &[JobStep<u32>]) -> &CallInput {
        let [JobStep::Input(2, input)] = steps else { panic!("{steps:?}") };
        input
    }

    #[test]
    fn a_call_that_was_withdrawn_gets_nothing_more() {
        let mut asks = asks();
        asks.request(call(), 1, 9, ServerRun::Runs);
        asks.request(call(), 2, 9, ServerRun::Runs);
        let steps = asks.request(demand(ServerDemand::Withdraw), 1, 9, ServerRun::Runs);
        let cancels = matches!(steps[..], [JobStep::ToRunner(ToCall::Server(ToServer::Cancel(1)))]);
        assert!(cancels, "{steps:?}");
        assert!(asks.request(demand(ServerDemand::Withdraw), 1, 9, ServerRun::Runs).is_empty());
        let progress = |number| FromServer::Progress { number, text: "half".to_owned() };
        assert!(asks.said(progress(1), (Profile::Mcp, None)).is_empty());
        let steps = asks.said(progress(2), (Profile::Mcp, None));
        assert_eq!(input_of_2(&steps), &CallInput::Output("half".to_owned()));
        let cause = "lost its MCP server (exited)".to_owned();
        assert_eq!(input_of_2(&asks.end("exited")), &CallInput::ServerLost { cause });
    }
}
