//! The parts of a conversation, independent of any vendor.

use crate::{Decode, Encode};
pub use journal::Usage;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum MessageRole {
    /// The person, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ContentBlock {
    /// Words.
    Text {
        /// Never empty in a request to a model.
        text: String,
    },
    /// The model's reasoning, which must be sent back as it came.
    Thinking {
        /// For people; may be empty.
        text: String,
        /// The vendor's block as JSON, byte for byte.
        raw: String,
    },
    /// A call the model asks for.
    ToolUse {
        /// The vendor's id, which pairs it with its result.
        id: String,
        /// As the model said it, known or not.
        name: String,
        /// Arguments as the model sent them; JSON, if it kept to it.
        input: String,
    },
    /// The result of a call.
    ToolResult {
        /// The id of its `ToolUse`.
        id: String,
        /// For the model.
        text: String,
        /// True if the call failed.
        is_error: bool,
        /// The images that it shows.
        images: Vec<ImageRef>,
    },
    /// An image that a person shows.
    Image {
        /// Which.
        image: ImageRef,
    },
}

/// An image or a document of a conversation, without its bytes. The journal keeps those, and only the
/// provider gets them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ImageRef {
    /// SHA-256 of its bytes, in hexadecimal.
    pub digest: String,
    /// The name of the file that it was read from, for people and models.
    pub name: String,
    /// The format of its bytes.
    pub media: MediaType,
    /// Pixels in a row; pages of a document.
    pub width: u32,
    /// Rows; 0 for a document.
    pub height: u32,
    /// The length of its bytes.
    pub bytes: u64,
}

impl ImageRef {
    /// Tokens that it costs, by Anthropic's rule: a token for 750 pixels. Pages of a document cost
    /// about 2,250 each.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        match self.media {
            MediaType::Png | MediaType::Jpeg => {
                (u64::from(self.width) * u64::from(self.height)).div_ceil(750)
            }
            MediaType::Pdf => u64::from(self.width.max(1)) * 2_250,
        }
    }
}

impl std::fmt::Display for ImageRef {
    /// As people read it: `shot.png 1200x800`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, width, height, .. } = self;
        match (self.media, width) {
            (MediaType::Png | MediaType::Jpeg, _) => write!(f, "{name} {width}x{height}"),
            (MediaType::Pdf, 0) => write!(f, "{name}, a PDF document"),
            (MediaType::Pdf, 1) => write!(f, "{name}, a PDF document of 1 page"),
            (MediaType::Pdf, pages) => write!(f, "{name}, a PDF document of {pages} pages"),
        }
    }
}

/// The formats that vendors take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum MediaType {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// PDF: a document, not an image.
    Pdf,
}

impl MediaType {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Png, Self::Jpeg, Self::Pdf];

    /// Its registered name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Pdf => "application/pdf",
        }
    }

    /// The format of this registered name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// An image with its bytes.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct ImageFile {
    /// Which.
    pub image: ImageRef,
    /// Its bytes.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for ImageFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ImageFile({:?}, {} bytes)", self.image, self.data.len())
    }
}

/// One turn of one speaker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Message {
    /// Who speaks.
    pub role: MessageRole,
    /// In order; never empty in a request to a model.
    pub blocks: Vec<ContentBlock>,
}

/// The description of a tool for a model.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ToolSpec {
    /// Its real name.
    pub name: String,
    /// Written for the model.
    pub description: String,
    /// JSON Schema of its arguments, byte-stable so that prompt caches hit.
    pub input_schema: String,
}

/// Everything one request to a model says.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ModelRequest {
    /// Counted from 1 over the session; names the request in every event about it.
    pub round: u32,
    /// The vendor's name of the model.
    pub model: String,
    /// The system prompt.
    pub system: String,
    /// In the table's order.
    pub tools: Vec<ToolSpec>,
    /// Alternating roles, the user first, every call with its result.
    pub messages: Vec<Message>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// The current text of changed pinned files. Part of this request only, not of the
    /// conversation.
    pub updated: Option<FilesUpdated>,
    /// Tool choice for the answer.
    pub calls: ToolChoice,
    /// The bytes of the images that the messages show. The conversation leaves this empty; the
    /// supervisor reads them from the journal for the provider.
    pub images: Vec<ImageFile>,
    /// The JSON Schema of the turn's last answer, for a model that can be held to it.
    pub answer_schema: Option<String>,
}

/// Tool choice of a request. The request lists the tools either way: vendors require the tools of
/// earlier calls, and their caches need the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ToolChoice {
    /// As it likes.
    Yes,
    /// Text only: the turn has used up its calls.
    No,
}

/// The current text of pinned files that changed. How it is marked is the vendor's custom.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FilesUpdated {
    /// Each file between marks of its own.
    pub text: String,
    /// Where it stands.
    pub place: UpdatePosition,
}

/// Where changed files stand among the results of a round, in interfaces that have both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum UpdatePosition {
    /// After all of them.
    BehindResults,
    /// At the end of the last one, where the model said nothing to it behind them.
    InsideLastResult,
}

/// Why an answer ended, once its terminal event was seen.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum StopReason {
    /// The model is done.
    EndTurn,
    /// It wants its calls run.
    ToolUse,
    /// Cut at `max_tokens`; an incomplete call in it does not run.
    MaxTokens,
    /// A stop sequence of ours.
    StopSequence,
    /// The vendor's own tool loop paused: send the content back as it is and go on.
    PauseTurn,
    /// The model declines; the same text is not sent again.
    Refusal {
        /// The vendor's words; may be empty.
        explanation: String,
    },
    /// The context is full.
    ContextFull,
    /// A reason newer than this build, by its name.
    Other(String),
}
