//! The parts of a message, independent of any vendor.

use super::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
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
        /// The images that it shows. No record has them.
        #[serde(skip)]
        images: Vec<ImageRef>,
    },
    /// An image that a person shows. No record has it.
    #[serde(skip)]
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
