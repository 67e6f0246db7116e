//! The properties of a call that decide its path.

use crate::file_versions::FileVersions;
use protocol::call::{Call, CallOrigin, ToolResult};
use protocol::judgement::{ExtraRight, Rule, RuleSet, ToolKind};
use protocol::web::{WebAddress, WebSettings};
use setup::git_signing::AgentGrant;
use tools::{JobRequest, RunsIn, ServerToolCall, TaskRequest};

/// The properties of a call, from its arguments and its session, before it is judged.
#[derive(Debug, Clone)]
pub(crate) struct CallFacts {
    pub(crate) call: Call,
    pub(crate) kind: ToolKind,
    /// The kind that the rules apply to it.
    pub(crate) kind_for_verdict: ToolKind,
    /// The text of the command, for tools that run one.
    pub(crate) command: Option<String>,
    /// Bytes of text that it has the store keep for later sessions.
    pub(crate) stored_bytes: u64,
    /// The web page that it requests, for tools that do.
    pub(crate) page: Option<WebAddress>,
    pub(crate) needs_probe: NeedsProbe,
    /// Its confinement in plain words.
    pub(crate) confinement: String,
    /// Rights beyond the session's: a person must approve them, or a rule that names them.
    pub(crate) extra_rights: Vec<ExtraRight>,
    pub(crate) env: Vec<(String, String)>,
    /// Access to the ssh agent, where it asks for signed commits and tags.
    pub(crate) signing: Option<AgentGrant>,
    pub(crate) timeout_ms: u64,
    pub(crate) max_result_chars: u32,
    /// The question that the journal has for it, from before a restart of the supervisor.
    pub(crate) pending_question: Option<PendingQuestion>,
    pub(crate) executor: Executor,
    /// Whether the conversation waits for it.
    pub(crate) runs_in: RunsIn,
    pub(crate) undo: UndoBy,
    pub(crate) contained: Contained,
    pub(crate) protects: Protects,
    pub(crate) cache: CachePolicy,
    /// The file versions that the model has read, for tools that must not act on changed files.
    pub(crate) file_versions: FileVersions,
    /// The person's settings for web tools, and the rules about pages.
    pub(crate) web: Option<(WebSettings, RuleSet)>,
    /// The rules that deny `read`: instructions beside its result import no such file.
    pub(crate) denied_reads: RuleSet,
    /// The configuration entry that has it run after edits.
    pub(crate) configured: Option<Rule>,
    /// Protected files that earlier calls changed and that could not be restored.
    pub(crate) tampered: Vec<String>,
    pub(crate) remarks: CallRemarks,
    /// A line for a command's result, below its output.
    pub(crate) hint: Option<String>,
}

/// Remarks of the conversation on a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallRemarks {
    /// A note for its result: how its arguments were read, where that differs from their text.
    pub(crate) note: Option<String>,
    /// A hook wants a person to approve it, and why.
    pub(crate) asked: Option<String>,
}

impl CallFacts {
    /// True if the conversation may go on while it runs: the model asked for a command or a sub-agent, or it
    /// is an MCP server.
    pub(super) fn may_run_in_background(&self) -> bool {
        let is_command = self.executor == Executor::Runner && self.undo == UndoBy::Snapshot;
        match self.call.origin {
            CallOrigin::ServerStart => true,
            CallOrigin::Model { .. } => {
                is_command || matches!(self.executor, Executor::SubAgent(_))
            }
            CallOrigin::EventHook
            | CallOrigin::EditHook
            | CallOrigin::PromptPart
            | CallOrigin::Undo
            | CallOrigin::PinnedRead => false,
        }
    }
}

/// How a call can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoBy {
    /// It changes nothing that can be undone.
    Nothing,
    /// The store copies the files that it names first.
    Copy,
    /// It may change any file: the store takes a snapshot of the project before and after it.
    Snapshot,
    /// As `Copy`; and it restores the files of another call.
    Restore,
}

/// Whether a call's cage lets nothing out of this host's copy of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contained {
    /// No network, no other directory, and tier A. It gets no `Go` in another cage.
    Yes,
    /// It may, or nobody needs to know.
    No,
}

/// Files that a runner restores after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protects {
    Nothing,
    /// Protected files, once no process of the call is left.
    Files,
}

/// A call's relation to cached results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    Unused,
    /// Its result may be in the cache.
    Lookup,
    /// It invalidates the results about its paths, however it ends.
    InvalidatesPaths,
    /// It invalidates all results, however it ends.
    InvalidatesAll,
}

/// The process that executes an allowed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Executor {
    /// A runner of its own.
    Runner,
    /// The conversation, which has sent the result.
    Conversation(ToolResult),
    /// The session's store, which executes a call once, however often it is asked.
    Store,
    /// Another call, which is in the background.
    Job(JobRequest),
    /// Another call, which runs an MCP server.
    Server(ServerToolCall),
    /// A sub-agent, in a session of its own.
    SubAgent(TaskRequest),
}

/// A question to a person that is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingQuestion {
    /// The digest that an answer must repeat.
    pub(crate) digest: String,
    /// When it expires, in milliseconds of Unix time.
    pub(crate) deadline: u64,
}

/// A probe inspects the call's paths before it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NeedsProbe {
    Yes,
    No,
}
