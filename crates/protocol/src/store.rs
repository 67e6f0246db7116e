//! The wire to `agentd-store`: data that a session and its project keep besides the conversation.
//!
//! `Begin` → `Ready` and `Instructions` (instructions) → any number of `Do`, each answered by one
//! `Answered`. The supervisor may repeat an unanswered `Do` to a restarted store with the same call
//! ID; the store does it once. Undo of file tools: `BackUp` (answered by `BackedUp`) before the call and
//! `CallEnded` (answered by `ChangesRecorded`) after it; `FetchBackups` returns the copies needed to restore. Undo of
//! commands, which may change any file of the project: `PrepareSnapshot` (no answer) when the command is
//! requested, `TakeSnapshot` (answered by `BackedUp`) before it runs, `CommandEnded` (answered by `ChangesRecorded`) after
//! it; `RunningCommands` (no answer), once after `Begin`, lists the commands that still run. Result cache:
//! `CacheGet` (answered by `CacheAnswer`) gets a result if its files are unchanged, `CachePut` puts one,
//! `Invalidate` invalidates. `AskUndo` (answered by `UndoCovers`) comes before the verdict on a call that passes
//! only if undo covers it. For people: `FetchChanges` (answered by `ChangesFetched`) compares files with
//! their earlier content.

use crate::call::{Call, FileEffect, FileVersion, ProbeReport, RunReport, ToolResult};
use crate::confinement::{Confinement, FilePath};
use crate::ids::{CallId, SessionId};
use crate::judgement::RuleSet;
use crate::log::LogLine;
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

/// The configuration of a new store process.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct StoreSetup {
    /// Its cage. The added directories in it are the writable ones.
    pub confinement: Confinement,
    /// Whose session.
    pub session: SessionId,
    /// Where this project's things lie.
    pub project_store: FilePath,
    /// Directory of the user's own data, the same for all projects.
    pub user_store: FilePath,
    /// Plugins, by name and folder: skills lie there too.
    pub plugins: Vec<(String, FilePath)>,
    /// The rules that deny `read`: instructions import no such file.
    pub denied_reads: RuleSet,
    /// The session that this one is a copy of, if it is one.
    pub forked_from: Option<ForkedFrom>,
}

/// The session that another is a copy of.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ForkedFrom {
    /// Which.
    pub session: SessionId,
    /// The last call that both have; 0 where there is none.
    pub last_call: u32,
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToStore {
    /// First and once.
    Begin(StoreSetup),
    /// An allowed call of one of the store's tools.
    Do(Call),
    /// This call will change the files at these real paths: back them up.
    BackUp {
        /// The call.
        call: CallId,
        /// Its tool, for the list.
        tool: String,
        /// The paths.
        paths: Vec<String>,
    },
    /// A call for which something was kept is over, however it ended.
    CallEnded {
        /// The call.
        call: CallId,
        /// The changes that the call reported; absent where it reported none. The store then
        /// compares the files.
        did: Option<FileChanges>,
    },
    /// A command was requested: prepare the snapshot for `TakeSnapshot` while the broker judges the
    /// call.
    PrepareSnapshot,
    /// This command will run: record the state of the project, so that its changes can be found
    /// afterwards.
    TakeSnapshot(StoreCommand),
    /// A command is over, however it ended.
    CommandEnded {
        /// The command.
        command: StoreCommand,
        /// End of the command, in nanoseconds of Unix time. Later changes are not attributed to it.
        ended: i64,
        /// Completeness of the snapshot before it.
        before: SnapshotBefore,
    },
    /// Commands whose `CommandEnded` is still to come. All other commands begun by an earlier store process
    /// have ended unobserved.
    RunningCommands(Vec<u32>),
    /// A call of `undo_restore`: fetch the copies to restore.
    FetchBackups(Call),
    /// Compare files with their content before this call, by its number, and all later ones.
    FetchChanges {
        /// The first call.
        since: u32,
    },
    /// A query: is its answer known?
    CacheGet(CacheKey),
    /// The answer of a query, with its evidence.
    CachePut {
        /// The query.
        asked: CacheKey,
        /// The result.
        report: RunReport,
    },
    /// This is not as it was. No answer.
    Invalidate(MayHaveChanged),
    /// Answered by `Pong` with the same number.
    Ping(u64),
    /// Would undo bring back what this call is about to change? Answered by `UndoCovers`.
    AskUndo {
        /// The call.
        call: CallId,
        /// What it may change.
        of: UndoScope,
    },
}

/// The files that a call may change.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum UndoScope {
    /// These, by their real paths.
    Paths(Vec<String>),
    /// Any of the project.
    Project,
}

/// Whether undo brings back what a call changes.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum UndoCover {
    /// It does, within the limits that hold for every project.
    Covers,
    /// Not all, for this reason; a sentence without a full stop.
    Leaves(String),
}

/// A call that runs a command.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct StoreCommand {
    /// The call.
    pub call: CallId,
    /// Its tool, for the list.
    pub tool: String,
    /// Its command line, for the list.
    pub text: String,
}

/// Completeness of the snapshot before a command ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SnapshotBefore {
    /// The store had said so before the command was let go.
    Looked,
    /// Incomplete: some differences in it may be the command's own changes.
    Late,
}

/// File changes that the call reported. Any other difference came from another process.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FileChanges {
    /// Changed, created and removed paths.
    pub effects: Vec<FileEffect>,
    /// The resulting state, where the call knows it.
    pub left: Vec<FileVersion>,
}

/// A query, with everything else that its result depends on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CacheKey {
    /// The query, its arguments normalised.
    pub call: Call,
    /// Most characters of the result.
    pub max_result_chars: u32,
}

/// Files that a call may have changed, whatever its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum MayHaveChanged {
    /// These real paths, and the directories that contain them.
    Paths(Vec<String>),
    /// Unknown.
    Anything,
}

/// An answer that was given before, and whose evidence is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CachedResult {
    /// The current stamp of the path.
    pub probe: ProbeReport,
    /// The number of the call that it was given to.
    pub by: u32,
    /// The answer.
    pub report: RunReport,
}

/// A path as it was before a call, and as the call left it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FileBackup {
    /// With links resolved.
    pub path: String,
    /// The content before the call.
    pub before: PriorContent,
    /// The content after the call, as a digest: SHA-256 of a file's bytes; for a link,
    /// [`FileBackup::LINK`] and its target; absent if nothing exists there.
    pub after: Option<String>,
}

impl FileBackup {
    /// Begins the digest of a link.
    pub const LINK: &'static str = "link:";
}

/// The content of a path before a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum PriorContent {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// All bytes.
        bytes: Vec<u8>,
        /// Its permissions.
        mode: u32,
    },
    /// A link to there.
    Link(FilePath),
    /// Unknown, with the reason; undo leaves the path unchanged.
    NotKept(String),
}

/// Differences between files as they are and as they were before some calls.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ChangeSet {
    /// Files that differ, by path.
    pub files: Vec<FileDiff>,
    /// Changes that are not among them, one sentence each.
    pub notes: Vec<String>,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FileDiff {
    /// Relative to the project, where it lies in it.
    pub path: String,
    /// The calls that changed it, by number.
    pub calls: Vec<u32>,
    /// A unified diff; one line in its place where there is none.
    pub diff: String,
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromStore {
    /// Confined, and ready for calls.
    Ready,
    /// The project's instructions and the list of skills.
    Instructions {
        /// Follows the system prompt. May be empty.
        text: String,
        /// For the person: imported files, and those that cannot be used.
        notes: Vec<String>,
        /// Tools that the text tells the model to call.
        tools: Vec<String>,
        /// Why undo covers no command of this project, if it covers none.
        without_undo: Option<String>,
    },
    /// The answer to `Do`; its effects are durable.
    Answered {
        /// The call.
        call: CallId,
        /// The result.
        result: ToolResult,
    },
    /// The answer to `BackUp` and `TakeSnapshot`.
    BackedUp {
        /// The call.
        call: CallId,
        /// Whether the copies that were made bring back what the call changes.
        cover: UndoCover,
    },
    /// The answer to `CallEnded`.
    ChangesRecorded(CallId),
    /// The answer to `FetchBackups`: all copies, or the call's result in their place.
    BackupsFetched {
        /// The call.
        call: CallId,
        /// The copies.
        files: Result<Vec<FileBackup>, ToolResult>,
    },
    /// The answer to `FetchChanges`.
    ChangesFetched {
        /// The first call.
        since: u32,
        /// The changes, or one sentence why they are not known.
        changes: Result<ChangeSet, String>,
    },
    /// The answer to `CacheGet`.
    CacheAnswer {
        /// The call.
        call: CallId,
        /// Absent where nothing is known, or it is not proven fresh.
        found: Option<Box<CachedResult>>,
    },
    /// Alive.
    Pong(u64),
    /// For the log.
    Log(LogLine),
    /// The answer to `AskUndo`.
    UndoCovers {
        /// The call.
        call: CallId,
        /// Whether undo brings its changes back.
        cover: UndoCover,
    },
}
