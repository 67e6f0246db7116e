//! The kinds of record in a session's journal, and which of them must be synced before the session
//! continues.

use crate::{
    BasisRecord, CallProgress, ChainHead, ContentBlock, ExpandedPrompt, FileVersionRecord,
    ImageRecord, Outcome, OwnOriginRecord, QueuedPrompt, Rule, StoredPath, SummaryStep, TaskHeader,
    ToolKind, TurnEnd, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the format this build writes. A reader refuses a newer one by name; it is
/// raised when an old reader would misread a new record, not when a kind is added.
pub const FORMAT: u32 = 1;

/// A record with its place and time.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    /// Counted from 1 without gaps; equals the line's number.
    pub seq: u64,
    /// When it was written, in milliseconds of Unix time.
    pub time: u64,
    /// The record.
    pub record: JournalRecord,
}

/// The first record: identity and settings of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHeader {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// The session's name, as its directory.
    pub id: String,
    /// The project directory, a real path.
    pub project: StoredPath,
    /// The vendor's name of the model.
    pub model: String,
    /// The version of agentd that began it.
    pub agentd: String,
    /// Where it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ForkParent>,
    /// The call of another session that it works for, where it is a sub-agent's. A build that does not
    /// know this field opens it as a session of its own, without these bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskHeader>>,
    /// The task of a fleet that it works for. A build that does not know this field opens it also where
    /// another host has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet_task: Option<i64>,
}

/// Where a fork came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkParent {
    /// The other session.
    pub session: String,
    /// The last record taken from it.
    pub seq: u64,
}

/// Something that happened in a session. Calls are named by their number in the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JournalRecord {
    /// The session began. First and once.
    Session(SessionHeader),
    /// A person asked.
    Prompt {
        /// Their words.
        text: String,
        /// The text that the model gets instead, where they named a slash command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expanded: Option<Box<ExpandedPrompt>>,
    },
    /// A person asked while a turn ran. The next prompts are these, in their order.
    Queued {
        /// Their words.
        text: String,
        /// They are for the running turn, if it asks the model again. A build that does not know this field lets
        /// them wait for its end.
        #[serde(default, skip_serializing_if = "is_false")]
        steers: bool,
        /// As for a prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expanded: Option<Box<ExpandedPrompt>>,
    },
    /// The oldest prompt that waited joined the running turn, behind the results of its round. A build that does not
    /// know this kind sends the words again, as a prompt.
    Joined {
        /// A person's words.
        text: String,
    },
    /// The prompts that waited are these alone from here on, in their order: others were taken back. A build that does
    /// not know the field takes all back.
    TakenBack {
        /// Those that wait on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waiting: Vec<QueuedPrompt>,
    },
    /// A person changed a setting; one of these.
    Changed {
        /// Network of commands: `off` or `on`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<String>,
        /// The permission mode's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
        /// A directory granted beside the project, a real path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<StoredPath>,
        /// The vendor's name of the model that is asked from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// A file that is pinned to the conversation from here on, as `read` is given it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pinned: Option<String>,
        /// A file that is pinned no more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unpinned: Option<String>,
        /// Text for the end of the system prompt, in place of an earlier one. A build that does not
        /// know this field continues without the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        appended_system: Option<String>,
        /// Cost of the session, in millionths of a US dollar, at which no further request is sent. A
        /// build that does not know this field has no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_limit: Option<u64>,
        /// A flag that guards the session and holds for later runs: a key of the configuration, and one
        /// of its values. A build that does not know this field continues without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flag: Option<(String, String)>,
        /// The session's name beside its ID. A build that does not know this field finds the session by
        /// its ID only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Who, by the name of their terminal.
        by: String,
    },
    /// A person's answer that covers more than its call: this rule allows from here on. A rule in a
    /// file is not replayed; it is read from the file when the session is opened again.
    Learned {
        /// The rule; in file `this session` where it lives as long as that.
        rule: Rule,
        /// Who, by the name of their terminal.
        by: String,
        /// Why it was to hold for good and is in no file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unwritten: Option<String>,
    },
    /// The model answered, its terminal event seen.
    Answer {
        /// The request's number.
        round: u32,
        /// Whole blocks.
        blocks: Vec<ContentBlock>,
        /// Tokens.
        usage: Usage,
        /// What it cost, in millionths of a US dollar, by the prices of its time; absent where
        /// that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<u64>,
    },
    /// A call of the answer got its number.
    Proposed {
        /// Which.
        call: u32,
        /// The vendor's id. Empty where the model did not ask for it.
        use_id: String,
        /// Who else asked for it. Builds that do not know this field tell it from the tool and its
        /// arguments, as this one does where the field is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        own: Option<OwnOriginRecord>,
        /// The tool's canonical name, or the model's spelling if there is no such tool.
        tool: String,
        /// Query or mutation.
        tool_kind: ToolKind,
        /// Arguments as JSON text.
        input: String,
    },
    /// A question to a person, with everything needed to ask it again after a crash.
    Asked {
        /// Which.
        call: u32,
        /// The digest that the answer must match.
        digest: String,
        /// The diff or script shown.
        preview: String,
        /// The confinement shown, in plain words.
        confinement: String,
        /// Why it is asked.
        reason: String,
        /// When it expires, in milliseconds of Unix time.
        deadline: u64,
    },
    /// It may run.
    Approved {
        /// Which.
        call: u32,
        /// Query or mutation; decides if this record is a barrier.
        tool_kind: ToolKind,
        /// Why.
        basis: BasisRecord,
    },
    /// It may not.
    Denied {
        /// Which.
        call: u32,
        /// Why.
        basis: BasisRecord,
        /// The text for the model.
        message: String,
    },
    /// No answer came in time.
    Expired {
        /// Which.
        call: u32,
    },
    /// A question of an MCP server during it is closed. The answers themselves are not recorded.
    Answered {
        /// Which.
        call: u32,
        /// `accept`, `decline` or `cancel`.
        action: String,
        /// Who, by the name of their terminal; absent where no person answered.
        by: Option<String>,
    },
    /// It is about to be let go. Without this it never ran; a query may lack it after a power failure, since only
    /// that of a mutation waits for the disk.
    Start {
        /// Which.
        call: u32,
        /// Query or mutation; decides if this record is a barrier.
        tool_kind: ToolKind,
        /// True if its cage lets nothing out of this host's copy of the project. Only in a session of a
        /// fleet. A build that does not know this field takes the call's effects for unknown.
        #[serde(default, skip_serializing_if = "is_false")]
        contained: bool,
    },
    /// A call read or wrote these files.
    Seen {
        /// Each as it was then.
        files: Vec<FileVersionRecord>,
    },
    /// The conversation goes on while it runs. A build that does not know this kind waits for its
    /// result.
    Background {
        /// Which.
        call: u32,
        /// The vendor's id, which pairs this answer.
        use_id: String,
        /// For the model, in place of a result.
        text: String,
    },
    /// Its sub-agent used this. A build that does not know this kind does not count it.
    Spent {
        /// Which.
        call: u32,
        /// The sub-agent's session.
        session: String,
        /// Requests to the model.
        rounds: u32,
        /// Calls.
        calls: u32,
        /// Tokens.
        usage: Usage,
        /// What it cost, in millionths of a US dollar; absent where that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<u64>,
    },
    /// It ended.
    Result {
        /// Which.
        call: u32,
        /// The vendor's id, which pairs it.
        use_id: String,
        /// How it ended.
        outcome: Outcome,
        /// For the model.
        text: String,
        /// The whole text, where the model received only a part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full: Option<String>,
        /// One line for the screen.
        summary: String,
        /// True if the model treats it as a failure.
        is_error: bool,
        /// A stable word for the kind of failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// The images that it shows. A build that does not know this field shows none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<ImageRecord>,
        /// Refusals of its cage, one line each, as clients show them. A build that does not know this field
        /// shows none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<String>,
        /// For a cached result: the call that produced it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recalled: Option<u32>,
        /// Where the audit log stood, as [`crate::Audit::sync`] gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audit: Option<ChainHead>,
    },
    /// It was cut short by the death of something else than itself.
    Interrupted {
        /// Which.
        call: u32,
        /// Progress of the call.
        progress: CallProgress,
        /// In plain words.
        cause: String,
        /// Protected files that it changed, each with its repair, as text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tampered: Vec<String>,
        /// Where the audit log stood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audit: Option<ChainHead>,
    },
    /// All changed protected files that no person has accepted so far, as text. A build that does
    /// not know this kind asks no question about them.
    Tampered {
        /// Each with the reason; none where the last was accepted.
        names: Vec<String>,
    },
    /// The turn ended.
    TurnEnded {
        /// How.
        end: TurnEnd,
    },
    /// The supervisor ended the session in order in the middle of a turn. Who does not know this kind
    /// finds the turn open, which it is.
    Closed,
    /// The oldest messages are no longer sent to the model. A build that does not know this kind
    /// sends all of them, which is valid but may exceed the context.
    Compacted {
        /// Number of messages that are no longer sent.
        dropped: u32,
        /// Most characters of each result that is still sent.
        result_chars: u32,
        /// Long results of so many of the first messages are cut to their beginning. A build that
        /// does not know this field sends them whole.
        #[serde(default, skip_serializing_if = "is_zero")]
        old: u32,
    },
    /// A step of replacing the oldest messages by a summary. A build that does not know this kind
    /// sends the messages, which is valid but may exceed the context.
    Summary(SummaryStep),
    /// A kind newer than this build: it stays in the file, and readers skip it.
    #[serde(skip)]
    Unknown {
        /// Its name.
        kind: String,
        /// Its fields, as they are on disk.
        fields: Map<String, Value>,
    },
}

impl JournalRecord {
    /// The kinds this build knows.
    pub(crate) const KINDS: [&str; 25] = [
        "SESSION",
        "PROMPT",
        "QUEUED",
        "JOINED",
        "TAKEN_BACK",
        "CHANGED",
        "LEARNED",
        "SEEN",
        "ANSWER",
        "PROPOSED",
        "ASKED",
        "APPROVED",
        "DENIED",
        "EXPIRED",
        "ANSWERED",
        "START",
        "BACKGROUND",
        "SPENT",
        "RESULT",
        "INTERRUPTED",
        "TAMPERED",
        "TURN_ENDED",
        "CLOSED",
        "COMPACTED",
        "SUMMARY",
    ];

    /// True if this record must be durable before any action that depends on it.
    ///
    /// Verdict and start of a query are no barriers: it may run again, so that only its result
    /// counts. The end of a turn is one, since the answer before it was shown to a person.
    #[must_use]
    pub fn barrier(&self) -> bool {
        match self {
            Self::Session(_)
            | Self::Prompt { .. }
            | Self::Queued { .. }
            | Self::Joined { .. }
            | Self::TakenBack { .. }
            | Self::Changed { .. }
            | Self::Learned { .. }
            | Self::Asked { .. }
            | Self::Denied { .. }
            | Self::Expired { .. }
            | Self::Answered { .. }
            | Self::Background { .. }
            | Self::Result { .. }
            | Self::Interrupted { .. }
            | Self::Tampered { .. }
            | Self::TurnEnded { .. }
            | Self::Closed
            // Its request costs money, and its text may be a person's.
            | Self::Summary(_)
            // An unknown kind gets the safe answer.
            | Self::Unknown { .. } => true,
            Self::Approved { tool_kind, .. } | Self::Start { tool_kind, .. } => {
                *tool_kind == ToolKind::Mutation
            }
            Self::Answer { .. }
            | Self::Proposed { .. }
            | Self::Seen { .. }
            | Self::Spent { .. }
            | Self::Compacted { .. } => false,
        }
    }

    /// True if a person asked.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        matches!(self, Self::Prompt { .. })
    }

    /// The words of a person who asked.
    #[must_use]
    pub fn prompt_text(&self) -> Option<&str> {
        let Self::Prompt { text, .. } = self else { return None };
        Some(text)
    }

    /// True for the first record of a session.
    #[must_use]
    pub fn is_header(&self) -> bool {
        matches!(self, Self::Session(_))
    }

    /// True if a turn ended.
    #[must_use]
    pub fn ends_turn(&self) -> bool {
        matches!(self, Self::TurnEnded { .. })
    }

    /// True if a call ended by itself.
    #[must_use]
    pub fn is_result(&self) -> bool {
        matches!(self, Self::Result { .. })
    }

    /// The files that a call read or wrote.
    #[must_use]
    pub fn seen_files(&self) -> &[FileVersionRecord] {
        let Self::Seen { files } = self else { return &[] };
        files
    }

    /// The record of files that a call read or wrote, if there are any.
    #[must_use]
    pub fn of_seen_files(files: Vec<FileVersionRecord>) -> Option<Self> {
        (!files.is_empty()).then_some(Self::Seen { files })
    }

    /// The call whose sub-agent used something, and the sub-agent's session.
    #[must_use]
    pub fn sub_agent(&self) -> Option<(u32, &str)> {
        let Self::Spent { call, session, .. } = self else { return None };
        Some((*call, session))
    }

    /// The call whose question of a server is closed.
    #[must_use]
    pub fn closed_question(&self) -> Option<u32> {
        let Self::Answered { call, .. } = self else { return None };
        Some(*call)
    }

    /// True if a second copy at a fleet must have this record too before anything goes on.
    ///
    /// A verdict and a result are barriers of this host alone: the start behind the one, and the next
    /// start or the end of the turn behind the other, wait for them. If the host is lost before, the next
    /// one judges the call again, or knows one that was open.
    #[must_use]
    pub fn barrier_of_copy(&self) -> bool {
        self.barrier() && !matches!(self, Self::Approved { .. } | Self::Result { .. })
    }

    /// Its fields with its kind, as one JSON object.
    #[must_use]
    pub fn to_object(&self) -> Map<String, Value> {
        let (kind, mut fields) = self.to_fields().unwrap_or_default();
        fields.insert("kind".to_owned(), kind.into());
        fields
    }

    /// Kind and fields, as they go on a line.
    pub(crate) fn to_fields(&self) -> Result<(String, Map<String, Value>), serde_json::Error> {
        if let Self::Unknown { kind, fields } = self {
            return Ok((kind.clone(), fields.clone()));
        }
        let Value::Object(mut fields) = serde_json::to_value(self)? else {
            return Err(serde::ser::Error::custom("a record is an object"));
        };
        let kind = fields.remove("kind");
        Ok((kind.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(), fields))
    }

    /// The record of this kind and these fields; of a kind unknown here, as it is.
    pub(crate) fn from_fields(
        kind: String,
        mut fields: Map<String, Value>,
    ) -> Result<Self, serde_json::Error> {
        if !Self::KINDS.contains(&kind.as_str()) {
            return Ok(Self::Unknown { kind, fields });
        }
        fields.insert("kind".to_owned(), Value::String(kind));
        serde_json::from_value(Value::Object(fields))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// True for records of a call, from its proposal to its end.
pub(crate) fn about_a_call(kind: &str) -> bool {
    let kinds = ["PROPOSED", "ASKED", "APPROVED", "DENIED", "EXPIRED", "START", "BACKGROUND"];
    kinds.contains(&kind) || ends_a_call(kind)
}

/// True for the last record of a call.
pub(crate) fn ends_a_call(kind: &str) -> bool {
    ["RESULT", "INTERRUPTED"].contains(&kind)
}
