//! An image that a record shows: a reference in the line, its bytes in a file of their own, named by
//! their digest as long texts are. Written with its record, and copied by a fork.

use crate::blobs::{BlobError, Blobs};
use crate::reader::BLOBS;
use crate::{Digest, JournalRecord};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// A reference to an image or a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRecord {
    /// Of its bytes.
    #[serde(rename = "$image")]
    pub digest: Digest,
    /// The length of its bytes.
    pub bytes: u64,
    /// The name of the file that it was read from.
    pub name: String,
    /// The format of its bytes, by its registered name.
    pub media: String,
    /// Pixels in a row; pages of a document.
    pub width: u32,
    /// Rows; 0 for a document.
    pub height: u32,
    /// Its bytes, for a record that is about to be written; no reader fills it in.
    #[serde(skip)]
    pub data: ImageBytes,
}

/// The bytes of an image, where they are at hand.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ImageBytes(pub Option<Arc<[u8]>>);

impl std::fmt::Debug for ImageBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} bytes", self.0.as_ref().map(|bytes| bytes.len()))
    }
}

impl JournalRecord {
    /// The images that it shows.
    #[must_use]
    pub fn images(&self) -> &[ImageRecord] {
        match self {
            Self::Result { images, .. } => images,
            Self::Session(_)
            | Self::Prompt { .. }
            | Self::Queued { .. }
            | Self::Joined { .. }
            | Self::TakenBack { .. }
            | Self::Changed { .. }
            | Self::Learned { .. }
            | Self::Answer { .. }
            | Self::Proposed { .. }
            | Self::Asked { .. }
            | Self::Approved { .. }
            | Self::Denied { .. }
            | Self::Expired { .. }
            | Self::Answered { .. }
            | Self::Start { .. }
            | Self::Seen { .. }
            | Self::Background { .. }
            | Self::Interrupted { .. }
            | Self::Tampered { .. }
            | Self::TurnEnded { .. }
            | Self::Closed
            | Self::Compacted { .. }
            | Self::Summary(_)
            | Self::Spent { .. }
            | Self::Unknown { .. } => &[],
        }
    }
}

/// Puts the bytes of the record's images on disk.
pub(crate) fn put_out(record: &JournalRecord, blobs: &Blobs) -> Result<(), BlobError> {
    let bytes = record.images().iter().filter_map(|image| image.data.0.as_ref());
    bytes.into_iter().try_for_each(|bytes| blobs.put_bytes(bytes).map(drop))
}

/// Copies the bytes of the record's images. An image without sound bytes stays a name: a conversation
/// goes on without it.
pub(crate) fn copy(record: &JournalRecord, from: &Blobs, to: &Blobs) -> Result<(), BlobError> {
    let sound = record.images().iter().filter_map(|image| from.get_bytes(image.digest).ok());
    sound.into_iter().try_for_each(|bytes| to.put_bytes(&bytes).map(drop))
}

/// The bytes of an image of the session in this directory.
///
/// # Errors
/// Where its file is missing or was changed.
pub fn image(session_dir: &Path, digest: Digest) -> Result<Vec<u8>, BlobError> {
    Blobs::at(session_dir.join(BLOBS)).get_bytes(digest)
}
