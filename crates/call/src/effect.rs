//! The effects of a call's machine, and the records of a call.

use crate::server_ask::{ServerEffect, ServerRequest};
use protocol::call::{Call, RunReport, TamperedFile, ToolResult};
use protocol::client::ClientEvent;
use protocol::confinement::Enforced;
use protocol::judgement::{Basis, JudgedCall, Question, Verdict};
use protocol::mcp::ReplyAction;
use protocol::store::{MayHaveChanged, UndoScope};
use protocol::tool::RunnerJob;
use tool_specs::{JobRequest, TaskRequest};

/// An effect for the call actor to carry out; the order counts.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEffect {
    /// Ask the store for a cached result.
    CacheGet(Call),
    /// Have the store cache this result.
    CachePut(Box<RunReport>),
    /// Have the store invalidate cached results.
    Invalidate(MayHaveChanged),
    /// Start a runner with a probe's grant, and send it this job once its cage is complete.
    Probe(RunnerJob),
    /// Have the broker judge the call.
    Judge(JudgedCall),
    /// The broker can drop the question.
    ForgetQuestion,
    /// Write these together, and wait; they are durable behind if one of them is a barrier.
    Record(Vec<CallRecord>),
    /// About the server that the call is for, while it works.
    OfServer(ServerEffect),
    /// Put this question to people until its deadline.
    Ask(Question),
    /// Write the decision to the audit log, while the next effects are carried out.
    AuditDecision(Verdict),
    /// Write to the audit log that the question expired, while the next effects are carried out.
    AuditExpired,
    /// Make the grant from this verdict and start the runner.
    StartRunner(Verdict),
    /// Have the store copy these files, while the runner starts.
    BackUp(Vec<String>),
    /// Ask the store whether undo would cover this. UndoCovers follows.
    AskUndo(UndoScope),
    /// Have the store prepare for a snapshot that may come.
    PrepareSnapshot,
    /// Have the store take a snapshot of the project before this command, while the runner starts.
    TakeSnapshot(String),
    /// Ask the store for the files to restore.
    FetchRestore(Call),
    /// Have the store execute the call.
    AskStore(Call),
    /// Write these, durable for a mutation, while the next effects are carried out. GoPrepared follows, once the audit log and the
    /// copies are complete too.
    PrepareGo(Vec<CallRecord>),
    /// Let the caged runner begin.
    Go(RunnerJob),
    /// Let the conversation go on while the command runs, or the sub-agent works.
    Detach,
    /// Have a sub-agent do this, or wait for the one that does it already.
    StartTask(TaskRequest),
    /// Interrupt the sub-agent; its answer follows.
    StopTask,
    /// Have the call that this request names answer it.
    AskJob(JobRequest),
    /// Have the call that runs the server do this.
    AskServer(ServerRequest),
    /// Tell the runner to stop; it reports.
    CancelRunner,
    /// Kill the runner.
    KillRunner,
    /// Restore the protected files in another process, in place of the runner that died.
    Repair,
    /// Show this to clients; it is not recorded.
    Show(ClientEvent),
    /// Audit the end, make the result durable with the head of the audit log, and deliver it. The
    /// last effect.
    Conclude(Box<CallConclusion>),
}

/// The journal's records of a call before its end.
#[derive(Debug, Clone, PartialEq)]
pub enum CallRecord {
    /// This question was put to people.
    Asked(Question),
    /// The call was allowed, on this basis.
    Approved(Basis),
    /// The call was denied, on this basis, with this text for the model.
    Denied(Basis, String),
    /// Its question was not answered in time.
    Expired,
    /// A server's question is closed, by this person.
    Answered(ReplyAction, Option<String>),
    /// The call begins.
    Start,
}

/// The end of a call, with everything that its last record holds.
#[derive(Debug, Clone, PartialEq)]
pub struct CallConclusion {
    /// For the model and people.
    pub result: ToolResult,
    /// The runner's report, if it could report.
    pub report: Option<RunReport>,
    /// The guarantees of the cage in which it ran.
    pub enforced: Option<Enforced>,
    /// The call whose cached result this is, if it is one.
    pub cached_from: Option<u32>,
    /// The moment at which it was cut short.
    pub cut: Cut,
    /// Protected files that another process restored after the runner died.
    pub repaired: Vec<TamperedFile>,
}

impl CallConclusion {
    /// The protected files that the call changed, as the runner or the repair process found them.
    pub fn tampered(&self) -> &[TamperedFile] {
        match &self.report {
            Some(report) => &report.tampered,
            None => &self.repaired,
        }
    }
}

/// The moment at which a call was cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// It ran to its end, or was not allowed to run.
    No,
    /// It was stopped before it began.
    BeforeGo {
        /// The cause, for the result.
        cause: String,
    },
    /// It may have had an effect.
    AfterGo {
        /// The end of its process, as a part of a sentence.
        cause: String,
    },
}
