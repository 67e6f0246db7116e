//! What fills a model's context, and how it is made smaller. For the wires of [`crate::session`] and
//! [`crate::client`].

use crate::{Decode, Encode};
pub use journal::{CompactionCause, SummaryStep};

/// The parts of the next request, and the room that they leave.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ContextReport {
    /// The vendor's name of the model.
    pub model: String,
    /// Tokens that its context holds, where that is known.
    pub window: Option<u64>,
    /// Each kind once, in the order of [`ContextKind::ALL`].
    pub parts: Vec<ContextPart>,
    /// Tokens of the newest request and its answer, as the provider counted them; absent before the
    /// first answer and after a compaction.
    pub counted: Option<u64>,
    /// Estimated tokens that came after that count, or of the whole request where there is none.
    pub estimated: u64,
    /// Most tokens of one answer, which need their room too.
    pub answer: u64,
    /// The summary that replaces messages, if the model has written one.
    pub summary: Option<NumberedSummary>,
    /// Pinned files that were not read yet: the request will have their text, which is not counted.
    pub unread: Vec<String>,
}

/// Tokens of a request above which room is made, for a model whose context and answers have so many at
/// most. Half of the context is always available to requests, however long answers may be.
#[must_use]
pub fn room_limit(context: u64, answer: u64) -> u64 {
    context.saturating_sub(answer).min(context / 5 * 4).max(context / 2)
}

/// A summary of messages that are no longer sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NumberedSummary {
    /// Counted from 1 over the session; each edit has a number of its own.
    pub number: u32,
    /// The whole text.
    pub text: String,
}

impl ContextReport {
    /// Tokens of the next request.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.counted.unwrap_or(0).saturating_add(self.estimated)
    }
}

/// One kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ContextPart {
    /// The kind.
    pub kind: ContextKind,
    /// How many there are.
    pub count: u32,
    /// An estimate: its share of all tokens, by length.
    pub tokens: u64,
}

/// The kinds of content of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ContextKind {
    /// The system prompt with the project's instructions.
    System,
    /// Names, descriptions and schemas of the offered tools.
    Tools,
    /// Pinned files.
    Pinned,
    /// The text in place of messages that are no longer sent.
    Summary,
    /// Prompts, and notes of agentd between them.
    Prompts,
    /// Answers of the model, with its calls.
    Answers,
    /// Results of calls.
    Results,
    /// Images and documents.
    Images,
}

impl ContextKind {
    /// Every kind, in the order of a request.
    pub const ALL: [Self; 8] = [
        Self::System,
        Self::Tools,
        Self::Pinned,
        Self::Summary,
        Self::Prompts,
        Self::Answers,
        Self::Results,
        Self::Images,
    ];

    /// Its name in programs' output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Tools => "tools",
            Self::Pinned => "pinned",
            Self::Summary => "summary",
            Self::Prompts => "prompts",
            Self::Answers => "answers",
            Self::Results => "results",
            Self::Images => "images",
        }
    }
}

/// Settings of a conversation about the size of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ContextSettings {
    /// Most characters of one result that the model is sent.
    pub max_result_chars: u32,
    /// How the conversation is made smaller.
    pub compaction: CompactionKind,
}

/// How a conversation is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum CompactionKind {
    /// The model writes a summary of the oldest messages, which replaces them.
    Summary,
    /// The oldest messages are left out.
    Cut,
}

impl CompactionKind {
    /// Each with its name in the configuration.
    pub const NAMES: [(&'static str, Self); 2] = [("summary", Self::Summary), ("cut", Self::Cut)];
}

/// A step of making a conversation smaller. The journal keeps each.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Compaction {
    /// The oldest messages are no longer sent, or results are cut.
    Cut {
        /// Number of messages that are no longer sent.
        dropped: u32,
        /// Most characters of each result that is still sent.
        result_chars: u32,
        /// Long results of so many of the first messages are cut to their beginning.
        old: u32,
    },
    /// A step towards a summary, or an edit of it.
    Summary(SummaryStep),
}
