//! The inputs of a call's machine.

use crate::server_ask::ServerInput;
use protocol::call::{ProbeReport, RunReport, TamperedFile, ToolResult};
use protocol::confinement::Enforced;
use protocol::judgement::{Basis, Verdict};
use protocol::store::{CachedResult, FileBackup, UndoCover};

/// An event of a call.
#[derive(Debug, PartialEq)]
pub enum CallInput {
    /// PROPOSED is written, and the facts are known.
    Begin,
    /// The probe's findings, or why it failed.
    Probed(Result<ProbeReport, String>),
    /// From the broker. A question has the deadline that it would have if it were new.
    Verdict(Verdict),
    /// A person answered the call's question by stopping the turn.
    StoppedByAnswer(Basis, String),
    /// The question's deadline has passed without an answer.
    Expired,
    /// The broker restarted and does not know the case.
    BrokerBack,
    /// The broker is not started again, and why.
    BrokerFailed(String),
    /// The runner's cage is complete.
    Caged(Enforced),
    /// The decision is in the audit log, and the copies for undo are made.
    GoPrepared,
    /// The decision is in the audit log, and the copies for undo are missing, for this reason.
    GoWithoutCopies(String),
    /// The runner of the session's reserve cannot be used; nothing of the call has happened.
    ReserveLost,
    /// The runner has begun.
    Began,
    /// The runner has ended, and its messages are read as far as they can be. A process of its cage may
    /// live; RunnerEnded follows.
    RunnerGone(Heard),
    /// The runner could not build its cage.
    CageFailed {
        /// The name of the step that failed.
        step: String,
        /// Why, with a remedy.
        reason: String,
    },
    /// A process of the cage died before the call began, for this reason. The runner ends.
    CageLost {
        /// As text.
        why: String,
    },
    /// A command printed this.
    Output(String),
    /// The runner's report.
    Done(RunReport),
    /// The runner has ended with all processes of its cage; or it could not be started.
    RunnerEnded {
        /// As a part of a sentence.
        cause: String,
    },
    /// The protected files that the call changed, and the outcome for each.
    Repaired(Vec<TamperedFile>),
    /// From the store: the cached result, which is still current; or none, or no answer in time.
    CacheAnswer(Option<Box<CachedResult>>),
    /// From the store: the files to restore, or the result of a call that cannot restore any.
    RestoreFetched(Result<Vec<FileBackup>, ToolResult>),
    /// From the store: whether undo covers what the call is about to change; or that no answer came in time.
    UndoCovers(UndoCover),
    /// From the store: the call's result.
    Stored(ToolResult),
    /// The store's process ended.
    StoreLost {
        /// As a part of a sentence.
        cause: String,
        /// Whether StoreBack follows.
        will_restart: WillRestart,
    },
    /// The store restarted. It knows which calls it has done.
    StoreBack,
    /// `Go` was refused, since the runner's grant is for another call.
    WrongGrant(String),
    /// The conversation shall go on while the command runs, or the sub-agent works.
    Detach,
    /// The result of a call that another call answers.
    OtherAnswered(ToolResult),
    /// The answer of the server that the call was for, with the server's cage.
    ServerAnswered(Box<(RunReport, Option<Enforced>)>),
    /// About the server that the call was for, while it works.
    OfServer(ServerInput),
    /// The server that the call was for ended before it answered.
    ServerLost {
        /// As a part of a sentence.
        cause: String,
    },
    /// The result of a sub-agent's work, or why it could not begin.
    TaskEnded(ToolResult),
    /// A person or the session cancels the call.
    Cancel,
    /// The runner did not end the call at its time limit; a margin has passed, too.
    Overdue,
    /// The journal cannot be written: nothing more may be done.
    DiskFailed(String),
    /// The fleet has the session at another host, or soon: nothing more may be done.
    LeaseLost(String),
}

/// Whether the messages of a process that has ended are known to be all that it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It was read to its end.
    All,
    /// Its channel could not be read to the end: it broke the protocol, or cannot be ended.
    Cut,
}

/// The restart of a worker that died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WillRestart {
    /// It starts again.
    Yes,
    /// It failed too often.
    No,
}
