//! A tool call and its outcome.

use crate::confinement::Refusal;
use crate::content::{ImageFile, ImageRef};
use crate::ids::CallId;
use crate::{Decode, Encode};
pub use journal::{Outcome, ProcessUsage};

/// A call as the model asked for it, given a name of ours.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Call {
    /// Ours, unique for ever.
    pub id: CallId,
    /// Who asked for it.
    pub origin: CallOrigin,
    /// The tool's real name, aliases resolved.
    pub tool: String,
    /// JSON object, checked against the tool's schema.
    pub input: String,
}

impl Call {
    /// True if `:undo` tried a change with this call and found that there was none. Its report says so.
    #[must_use]
    pub fn undid_nothing(&self, result: &ToolResult) -> bool {
        self.origin == CallOrigin::Undo && result.code.as_deref() == Some(NO_CHANGE)
    }
}

/// Who asked for a call: the model, or the conversation for a person or for itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum CallOrigin {
    /// The model, in an answer.
    Model {
        /// The vendor's name of the call, which pairs its result with the question.
        use_id: String,
    },
    /// The person's hooks at an event.
    EventHook,
    /// The person's commands that format or check the files that a round edited.
    EditHook,
    /// The configuration: a server of the Model Context Protocol starts.
    ServerStart,
    /// A prompt, which shows a command's output, a file or a server's text.
    PromptPart,
    /// A person, who takes changes back.
    Undo,
    /// The next request, which has the text of a pinned file. The result is not kept but its digest.
    PinnedRead,
    /// A person, who typed the command.
    Person,
}

impl CallOrigin {
    /// The model, by the vendor's name of the call.
    #[must_use]
    pub fn model(use_id: impl Into<String>) -> Self {
        Self::Model { use_id: use_id.into() }
    }

    /// The vendor's name of the call, where the model asked for it.
    #[must_use]
    pub fn use_id(&self) -> Option<&str> {
        match self {
            Self::Model { use_id } => Some(use_id),
            Self::EventHook
            | Self::EditHook
            | Self::ServerStart
            | Self::PromptPart
            | Self::Undo
            | Self::PinnedRead
            | Self::Person => None,
        }
    }

    /// True if the model asked for it, or a person typed it: hooks of calls run for it.
    #[must_use]
    pub fn has_hooks(&self) -> bool {
        self.is_model() || *self == Self::Person
    }

    /// True if the model asked for it.
    #[must_use]
    pub fn is_model(&self) -> bool {
        self.use_id().is_some()
    }
}

/// How far a call is when the model gets a result of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum CallStage {
    /// It has ended.
    Ended,
    /// It goes on in the background. Its end is told by itself.
    InBackground,
}

/// Error code of the store for a call that changed nothing.
pub const NO_CHANGE: &str = "not_found";

/// The line between a program's output and the notes that agentd adds for the model.
pub const SEPARATOR: &str = "--- agentd ---";

/// How a line about a refusal of the cage begins in a result's text.
pub const REFUSED_LINE: &str = "[the sandbox refused ";

/// The result of a call, for the model, the screen and the record.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ToolResult {
    /// How it ended.
    pub outcome: Outcome,
    /// For the model; already capped, control codes neutralised.
    pub text: String,
    /// One short line for the screen.
    pub summary: String,
    /// True where the model should treat it as a failure.
    pub is_error: bool,
    /// A stable word for the kind of failure, for example `access_denied` or `stale`.
    pub code: Option<String>,
    /// The images that it shows.
    pub images: Vec<ImageRef>,
}

impl ToolResult {
    /// Formats an error for the model: code, tool, reason, next step.
    #[must_use]
    pub fn error(outcome: Outcome, code: &str, tool: &str, message: &str, hint: &str) -> Self {
        let mut text = format!("Error [{code}] {tool}: {message}");
        if !hint.is_empty() {
            text.push_str("\nHint: ");
            text.push_str(hint);
        }
        let first = message.lines().next().unwrap_or_default();
        let summary = format!("{tool}: {first}");
        let (code, images) = (Some(code.to_owned()), Vec::new());
        Self { outcome, text, summary, is_error: true, code, images }
    }

    /// True if all of its text is agentd's, about an error, as [`Self::error`] makes it. Words of a program never are:
    /// they come without a code, or stand above [`SEPARATOR`].
    #[must_use]
    pub fn is_own_error(&self) -> bool {
        let begins = |code: &String| self.text.starts_with(&format!("Error [{code}] "));
        self.code.as_ref().is_some_and(begins) && !self.text.contains(SEPARATOR)
    }

    /// With a line before its text, or behind an error, which begins with its code.
    #[must_use]
    pub fn noted(mut self, note: Option<&str>) -> Self {
        match note {
            Some(note) if self.is_own_error() => {
                self.text.push_str(&format!("\n{note}"));
            }
            Some(note) if self.text.is_empty() => note.clone_into(&mut self.text),
            Some(note) => self.text.insert_str(0, &format!("{note}\n")),
            None => {}
        }
        self
    }
}

/// The effect of a call on a file, or as a whole, as far as the tool knows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FileEffect {
    /// Read.
    Read(String),
    /// Replaced or changed.
    Written(String),
    /// Made.
    Created(String),
    /// Taken away.
    Deleted(String),
    /// A command ran; its effects on single files are unknown.
    Ran(String),
    /// Git's commits or tags were signed by the person's ssh agent.
    Signed {
        /// The key's fingerprint.
        key: String,
        /// How many signatures.
        count: u64,
    },
}

/// A file as the model knows it after a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FileVersion {
    /// With links resolved.
    pub path: String,
    /// SHA-256 of all its bytes, in hexadecimal.
    pub digest: String,
}

/// The instructions of a nested directory of the project.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct DirectoryInstructions {
    /// The file that has them.
    pub file: FileVersion,
    /// For the model; its first line names the file. Empty if no file of the directory is usable.
    pub text: String,
    /// For the person: imported files, and problems of that directory's files.
    pub troubles: Vec<String>,
}

/// A protected name that a command changed or made all the same, found after its end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TamperedFile {
    /// Relative to the project where it lies there.
    pub path: String,
    /// The repair.
    pub remedy: TamperRemedy,
}

/// The repair of a protected file that a command changed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TamperRemedy {
    /// Put back as it was before the call.
    Restored {
        /// Path of the copy of the command's version; absent where the command removed the file.
        kept: Option<String>,
    },
    /// It had not been there: moved aside.
    Quarantined {
        /// It lies here now.
        kept: String,
    },
    /// Nothing.
    Left {
        /// The reason.
        why: String,
    },
    /// Nothing: the call was given the right to change it.
    Granted,
    /// Nothing: projects want it written.
    Stays {
        /// The program that runs it, and when.
        why: String,
    },
}

impl TamperRemedy {
    /// True if the change was permitted and stays.
    #[must_use]
    pub fn is_permitted(&self) -> bool {
        matches!(self, Self::Granted | Self::Stays { .. })
    }
}

impl std::fmt::Display for TamperedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = &self.path;
        match &self.remedy {
            TamperRemedy::Restored { kept: Some(kept) } => {
                write!(f, "{path} was changed and restored; the changed version is {kept}")
            }
            TamperRemedy::Restored { kept: None } => {
                write!(f, "{path} was changed or removed, and restored")
            }
            TamperRemedy::Quarantined { kept } => {
                write!(f, "{path} is new, and was moved to {kept} so that no program trusts it")
            }
            TamperRemedy::Left { why } => write!(f, "{path} was changed and not restored: {why}"),
            TamperRemedy::Granted => write!(f, "{path} was changed, as the call was allowed to"),
            TamperRemedy::Stays { why } => write!(f, "{path} was changed and stays: {why}"),
        }
    }
}

/// Every file and directory that a query read. The cached result stays valid while all of them are
/// unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ReadEvidence {
    /// When the looking began, in nanoseconds of Unix time.
    pub began: i64,
    /// Each file, and each directory whose entries counted.
    pub parts: Vec<ReadPart>,
}

/// One file or directory that a query read, with its state before the read.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ReadPart {
    /// A real path.
    pub path: String,
    /// Absent where nothing was there.
    pub was: Option<ReadStamp>,
}

/// Identifies one version of a file. Times are nanoseconds of Unix time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ReadStamp {
    /// The filesystem.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
    /// Its bytes.
    pub size: u64,
    /// Modification time; any program can set it.
    pub modified: i64,
    /// Change time (`ctime`); no program can set it.
    pub changed: i64,
}

impl ReadStamp {
    /// The kernel's clock for files moves at least a hundred times a second, and this allows for one
    /// missed step.
    pub const STEP: i64 = 20_000_000;
    /// The step of filesystems that keep times in whole seconds.
    const COARSE_STEP: i64 = 2_000_000_000;
    const SECOND: i64 = 1_000_000_000;

    /// True if a change after a check that began at that time is sure to move these times.
    #[must_use]
    pub fn is_settled(&self, began: i64) -> bool {
        let step = match self.changed % Self::SECOND {
            0 => Self::COARSE_STEP,
            _ => Self::STEP,
        };
        self.changed.saturating_add(step) < began
    }
}

/// The runner's account of a finished call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RunReport {
    /// The outcome.
    pub result: ToolResult,
    /// The whole text of the result, where the model receives only a part.
    pub full: Option<String>,
    /// The images that the result shows. The tool's result names none: the supervisor does, by these
    /// bytes.
    pub images: Vec<ImageFile>,
    /// Effects on files.
    pub effects: Vec<FileEffect>,
    /// The files that it read or wrote, each as it was then.
    pub seen: Vec<FileVersion>,
    /// The instructions of the nested directories that its files lie in.
    pub instructions: Vec<DirectoryInstructions>,
    /// The read set of a query; absent where a later change of one of its parts could go unnoticed.
    pub evidence: Option<ReadEvidence>,
    /// The first 200 refusals of the kernel, in order.
    pub refusals: Vec<Refusal>,
    /// How many more were refused after those.
    pub refusals_uncounted: u64,
    /// Protected files that a command changed or created, each with its repair.
    pub tampered: Vec<TamperedFile>,
    /// Resources used.
    pub usage: ProcessUsage,
    /// The command's process id as the host sees it, where there was a command.
    pub command_pid: Option<u32>,
}

/// Findings of a probe before the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProbeReport {
    /// One for each path the call names, in order.
    pub paths: Vec<ProbedPath>,
    /// The change that an edit would make, as a unified diff; empty where there is none.
    pub diff: String,
}

/// One path a call names, as it really is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProbedPath {
    /// As the call wrote it.
    pub named: String,
    /// With links resolved; the nearest existing parent for a file about to be made.
    pub real: String,
    /// True if it is in a granted directory.
    pub in_scope: bool,
    /// SHA-256 of the file's bytes; absent if it is not a regular file. A directory to be removed
    /// has a digest too, see [`ProbedPath::TREE`].
    pub digest: Option<String>,
}

impl ProbedPath {
    /// Begins the digest of a directory: of all that lies in it by name, kind, size and time.
    pub const TREE: &'static str = "tree:";
}
