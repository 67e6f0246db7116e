//! What fills a model's context, as the conversation reports it to a person. For the wires of
//! [`crate::session`] and [`crate::client`].

use crate::{Decode, Encode};

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
