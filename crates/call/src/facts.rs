//! The properties of a call that decide its path.

use crate::file_versions::FileVersions;
use protocol::call::{Call, CallOrigin, ToolResult};
use protocol::judgement::{
    Basis, EffectReach, ExtraRight, NOTE_OF_PERSON, Rule, RuleSet, ToolKind, Verdict,
};
use protocol::web::{WebAddress, WebSettings};
use tool_specs::{JobRequest, RunsIn, ServerToolCall, TaskRequest};

/// The properties of a call, from its arguments and its session, before it is judged.
#[derive(Debug, Clone)]
pub struct CallFacts {
    /// The call, with its arguments as they were read.
    pub call: Call,
    /// A query or a mutation.
    pub kind: ToolKind,
    /// The kind that the rules apply to it.
    pub kind_for_verdict: ToolKind,
    /// The text of the command, for tools that run one.
    pub command: Option<String>,
    /// Bytes of text that it has the store keep for later sessions.
    pub stored_bytes: u64,
    /// The web page that it requests, for tools that do.
    pub page: Option<WebAddress>,
    /// A probe inspects its paths before it is judged, or it needs none.
    pub needs_probe: NeedsProbe,
    /// Its confinement in plain words.
    pub confinement: String,
    /// Rights beyond the session's: a person must approve them, or a rule that names them.
    pub extra_rights: Vec<ExtraRight>,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// The time limit of a command.
    pub timeout_ms: u64,
    /// Longest result for the model.
    pub max_result_chars: u32,
    /// The question that the journal has for it, from before a restart of the supervisor.
    pub pending_question: Option<PendingQuestion>,
    /// The process that executes it.
    pub executor: Executor,
    /// Whether the conversation waits for it.
    pub runs_in: RunsIn,
    /// How it can be undone.
    pub undo: UndoBy,
    /// How far its effects reach by its cage. What undo covers of them, the store says before the verdict.
    pub reach: EffectReach,
    /// Its cage lets nothing out, or it may.
    pub contained: Contained,
    /// The protected files that its runner restores.
    pub protects: Protects,
    /// Its relation to cached results.
    pub cache: CachePolicy,
    /// The file versions that the model has read, for tools that must not act on changed files.
    pub file_versions: FileVersions,
    /// The person's settings for web tools, and the rules about pages.
    pub web: Option<(WebSettings, RuleSet)>,
    /// The rules that deny `read`: instructions beside its result import no such file.
    pub denied_reads: RuleSet,
    /// The configuration entry that has it run after edits.
    pub configured: Option<Rule>,
    /// The terminal of the person who typed it.
    pub typed_by: Option<String>,
    /// Protected files that earlier calls changed and that could not be restored.
    pub tampered: Vec<String>,
    /// Remarks of the conversation.
    pub remarks: CallRemarks,
    /// A line for a command's result, below its output.
    pub hint: Option<String>,
}

/// For the model, whose questions nobody can answer.
const NOBODY_ANSWERS: &str = "Nobody is here to answer. Choose what fits best, go on, and say in your answer what you \
                              chose and why.";

/// Words of a person with a yes, as the model gets them with the result.
#[must_use]
pub fn note_of_person(note: &str) -> String {
    format!("{NOTE_OF_PERSON}{note}]")
}

/// Remarks of the conversation on a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallRemarks {
    /// A note for its result: how its arguments were read, where that differs from their text.
    pub note: Option<String>,
    /// A hook wants a person to approve it, and why.
    pub asked: Option<String>,
}

impl CallRemarks {
    /// Words that a person gave with a yes go with the result. The record of the decision has them too.
    pub fn take_words_of(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Allow(Basis::NotedByPerson { by: _, note }) => {
                self.add_note(&note_of_person(note));
            }
            Verdict::Allow(Basis::Answered { by: _, answers }) => self.add_note(answers),
            Verdict::Allow(Basis::NobodyToAsk(_)) => self.add_note(NOBODY_ANSWERS),
            Verdict::Allow(
                Basis::Rule(_)
                | Basis::Rights(_)
                | Basis::Mode(_)
                | Basis::Query
                | Basis::Person(_)
                | Basis::Unjudgeable(_)
                | Basis::Opaque(_)
                | Basis::Sandboxed(_)
                | Basis::Typed(_),
            )
            | Verdict::Deny(..)
            | Verdict::Ask(_) => {}
        }
    }

    /// What the conversation gets in place of the result of a call that goes on: the notes with it, which the end
    /// does not say again.
    #[must_use]
    pub fn before(&mut self, text: String) -> String {
        match self.note.take() {
            Some(note) => format!("{note}\n{text}"),
            None => text,
        }
    }

    /// One more note for the result.
    pub fn add_note(&mut self, text: &str) {
        let note = self.note.get_or_insert_default();
        if !note.is_empty() {
            note.push('\n');
        }
        note.push_str(text);
    }
}

impl CallFacts {
    /// True if this basis covers the rights beyond the session's that the call asks for.
    pub(crate) fn are_rights_covered_by(&self, basis: &Basis) -> bool {
        match basis {
            Basis::Person(_) | Basis::NotedByPerson { .. } | Basis::Answered { .. } => true,
            Basis::Rights(rules) => {
                let of = (self.call.tool.as_str(), self.page.as_ref());
                approval::grants_all(rules, of, &self.extra_rights)
            }
            Basis::Rule(_)
            | Basis::Mode(_)
            | Basis::Query
            | Basis::NobodyToAsk(_)
            | Basis::Unjudgeable(_)
            | Basis::Sandboxed(_)
            | Basis::Typed(_)
            | Basis::Opaque(_) => self.extra_rights.is_empty(),
        }
    }

    /// True if the conversation may go on while it runs: the model asked for a command or a sub-agent, or it
    /// is an MCP server.
    pub(crate) fn may_run_in_background(&self) -> bool {
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
            | CallOrigin::Person
            | CallOrigin::PinnedRead => false,
        }
    }
}

/// How a call can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoBy {
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
pub enum Contained {
    /// No network, no other directory, and tier A. It gets no `Go` in another cage.
    Yes,
    /// It may, or nobody needs to know.
    No,
}

/// Files that a runner restores after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protects {
    /// No file.
    Nothing,
    /// Protected files, once no process of the call is left.
    Files,
}

/// A call's relation to cached results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// It has none.
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
pub enum Executor {
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
pub struct PendingQuestion {
    /// The digest that an answer must repeat.
    pub digest: String,
    /// When it expires, in milliseconds of Unix time.
    pub deadline: u64,
}

/// A probe inspects the call's paths before it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedsProbe {
    /// Before it is judged.
    Yes,
    /// Its arguments are enough.
    No,
}
