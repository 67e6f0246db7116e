//! The wire to `agentd-store`: what a session and its project keep beside the conversation.
//!
//! `Begin` → `Ready` and `Foreword` → any number of `Do`, each answered by one `Answered`. A `Do` that was not
//! answered may be said again to a new life under the same call: what was done for it once is not
//! done again. `Keep` (answered by `Kept`) before a call changes files and `Ended` (answered by
//! `Settled`) after it make it undoable; `Fetch` asks for what undoing it takes. A command, which may change
//! anything in the project, has `Prepare` (no answer) when it is asked for, `KeepAll` (answered by `Kept`) before it
//! runs and `Ran` (answered by `Settled`) after it; `Running` (no answer), once after `Begin`, says which of
//! those are under way. `Recall` (answered by
//! `Recalled`) asks whether a query's answer is known and proven fresh, `Remember` keeps one, and
//! `Outdate` says what is not as it was.

use crate::call::{Call, Effect, Probe, Report, SeenFile, ToolResult};
use crate::confinement::{Confinement, FilePath};
use crate::ids::{CallId, SessionId};
use crate::upkeep::LogLine;
use crate::{Decode, Encode, Link};

/// The wire's name.
#[derive(Debug)]
pub enum StoreLink {}

impl Link for StoreLink {
    type To = ToStore;
    type From = FromStore;
    const NAME: &'static str = "store";
    /// A file of some MiB, or a result with its text.
    const MESSAGE_CAP: usize = 16 << 20;
}

/// What a store is begun with.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct StoreSetup {
    /// Its cage. What is in it as added directories is what it may write.
    pub confinement: Confinement,
    /// Whose session.
    pub session: SessionId,
    /// Where this project's things lie.
    pub project_store: FilePath,
    /// Where this person's things lie, whatever the project.
    pub user_store: FilePath,
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToStore {
    /// First and once.
    Begin(StoreSetup),
    /// An allowed call of one of the store's tools.
    Do(Call),
    /// This call is about to change what is at these real paths: keep it as it is.
    Keep {
        /// The call.
        call: CallId,
        /// Its tool, for the list.
        tool: String,
        /// The paths.
        paths: Vec<String>,
    },
    /// A call for which something was kept is over, however it ended.
    Ended {
        /// The call.
        call: CallId,
        /// What it says it did; absent where it could not say, and the files are looked at.
        did: Option<Did>,
    },
    /// A command was asked for: make ready what `KeepAll` takes, while it is judged.
    Prepare,
    /// This command is about to run: whatever it changes in the project is to be found afterwards.
    KeepAll(Command),
    /// A command is over, however it ended.
    Ran {
        /// The command.
        command: Command,
        /// When that was, in nanoseconds of Unix time: what was changed later, somebody else did.
        ended: i64,
        /// What is known of the look before it.
        before: Before,
    },
    /// The commands whose `Ran` is still to come. Whatever else was begun in an earlier life is over,
    /// and nobody saw its end.
    Running(Vec<u32>),
    /// A call of `undo_restore`: what it is to put back.
    Fetch(Call),
    /// A query: is its answer known?
    Recall(Asked),
    /// The answer of a query, with its evidence.
    Remember {
        /// The query.
        asked: Asked,
        /// What it came to.
        report: Report,
    },
    /// This is not as it was. No answer.
    Outdate(Changed),
    /// Answered by `Pong` with the same number.
    Ping(u64),
}

/// A call that runs a command.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Command {
    /// The call.
    pub call: CallId,
    /// Its tool, for the list.
    pub tool: String,
    /// What it runs, for the list.
    pub text: String,
}

/// Whether the project was looked at before a command ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Before {
    /// The store had said so before the command was let go.
    Looked,
    /// It had not, so that some of what it found may be what the command did.
    Late,
}

/// All that a call did to files, in its own words: what else is otherwise now, somebody else did.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Did {
    /// What it changed, made and took away.
    pub effects: Vec<Effect>,
    /// What it left, where it knows.
    pub left: Vec<SeenFile>,
}

/// A query, with what else its answer depends on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Asked {
    /// The query, its arguments normalised.
    pub call: Call,
    /// Most characters of the result.
    pub max_result_chars: u32,
}

/// What a call may have changed, however it ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Changed {
    /// What is at these real paths, and what contains it.
    Paths(Vec<String>),
    /// Nobody knows.
    Anything,
}

/// An answer that was given before, and whose evidence is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Recalled {
    /// What a look at the path finds.
    pub probe: Probe,
    /// The number of the call that it was given to.
    pub by: u32,
    /// The answer.
    pub report: Report,
}

/// A path as it was before a call, and as the call left it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct KeptFile {
    /// With links resolved.
    pub path: String,
    /// What was there.
    pub before: Was,
    /// What the call left there, by its digest: SHA-256 of a file's bytes; of a link [`KeptFile::LINK`]
    /// and where it leads; absent where nothing is there.
    pub after: Option<String>,
}

impl KeptFile {
    /// Begins the digest of a link.
    pub const LINK: &'static str = "link:";
}

/// What was at a path.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Was {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// All of them.
        bytes: Vec<u8>,
        /// Its permissions.
        mode: u32,
    },
    /// A link to there.
    Link(FilePath),
    /// Nobody knows, and why: it stays as it is.
    NotKept(String),
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromStore {
    /// Confined, and ready for calls.
    Ready,
    /// What the model is told beside the system prompt: instructions of the project, and what
    /// skills there are. May be empty.
    Foreword(String),
    /// The answer to `Do`; what it did is durable.
    Answered {
        /// The call.
        call: CallId,
        /// What it came to.
        result: ToolResult,
    },
    /// The answer to `Keep`.
    Kept(CallId),
    /// The answer to `Ended`.
    Settled(CallId),
    /// The answer to `Fetch`: all of it, or what the call comes to instead.
    Fetched {
        /// The call.
        call: CallId,
        /// What was asked for.
        files: Result<Vec<KeptFile>, ToolResult>,
    },
    /// The answer to `Recall`.
    Recalled {
        /// The call.
        call: CallId,
        /// Absent where nothing is known, or it is not proven fresh.
        found: Option<Box<Recalled>>,
    },
    /// Alive.
    Pong(u64),
    /// For the log.
    Log(LogLine),
}
