//! Messages to a call actor.

use super::resting_runner::RestingRunner;
use call::{CallInput, ServerRequest};
use launch::frozen_calls::Freeze;
use launch::runner::RunnerEvent;
use protocol::client::ProcessRow;
use protocol::ids::Generation;
use protocol::tool::ProtectedOrder;
use ractor::ActorRef;
use tokio::sync::oneshot;
use tool_specs::JobRequest;

/// Messages to a call actor.
pub(crate) enum CallMsg {
    Input(CallInput),
    /// The broker restarted as this process, which does not know the call.
    BrokerBack(Generation),
    /// The store restarted as this process, which knows which calls were done.
    StoreBack(Generation),
    Runner(Generation, RunnerEvent),
    /// From the session's reserve: its runner, whose events come to this call from now on, or none.
    Reserve(Option<Box<RestingRunner>>),
    /// The paths that the cage of that runner had opened are the same now, or why it must not be used.
    ReserveChecked(Generation, Result<(), String>),
    /// From the proxy of that runner's command.
    Proxy(Generation, RunnerEvent),
    /// The reserve has not answered the request with this number in time.
    ReserveOverdue(Generation),
    /// Time to compare the clock with the question's deadline, in milliseconds of Unix time.
    QuestionDeadline(u64),
    /// A request about its background command, and the call to answer.
    Job(JobRequest, ActorRef<CallMsg>),
    /// A call of a tool of the server that it runs, or the end of the wait for one; the call to answer, and
    /// its longest time in milliseconds.
    Server(ServerRequest, ActorRef<CallMsg>, u64),
    /// A wait for its output is over, by its number.
    JobWaitOver(u64),
    /// The command has not read this write in time, by its number.
    InputWaitOver(u64),
    /// Tell its runner this about protected files, while its command runs.
    Protected(ProtectedOrder),
    /// Stop the processes below its runner for a while, or let them go on.
    Freeze(Freeze),
    /// Asks for the rows of its runner and of the proxy.
    Describe(oneshot::Sender<Vec<ProcessRow>>),
}
