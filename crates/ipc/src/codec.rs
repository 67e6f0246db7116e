//! Words to bytes and back: the only file that imports bincode.
//!
//! bincode 2.0.1 is unmaintained (RUSTSEC-2025-0141) but complete; 3.0.0 refuses to compile by
//! design. It stays because its native derives turn lossy types into compile errors, and because it
//! only reads bytes of our own processes, capped twice: by the frame's length and by the limits
//! here. If it must go, postcard replaces it in this file.

use bincode::config;
pub use bincode::{Decode, Encode};

/// Decoding may claim up to this much memory for a message of the size on the left. A word's size
/// in memory is larger than on the wire, 36 times at most for our types (an answer of empty text
/// blocks); without a limit nine bytes could ask for all memory there is.
const SMALL: (usize, usize) = (32 << 10, 40 * (32 << 10));
const MEDIUM: (usize, usize) = (1 << 20, 40 << 20);
const LARGE_LIMIT: usize = 256 << 20;

/// Why a word could not be turned into bytes, or bytes into a word.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The encoder refused; no type of ours does.
    #[error("cannot encode: {0}")]
    Encode(#[from] bincode::error::EncodeError),
    /// The bytes are not a message of this wire.
    #[error("not a word of this wire: {0}")]
    Decode(#[from] bincode::error::DecodeError),
    /// A word with something behind it.
    #[error("{0} bytes left over behind a word")]
    Leftover(usize),
}

/// The bytes of one word.
///
/// # Errors
/// [`CodecError::Encode`], which no type of the wires produces.
pub fn encode<W: Encode>(word: &W) -> Result<Vec<u8>, CodecError> {
    Ok(bincode::encode_to_vec(word, config::standard())?)
}

/// The one word that these bytes are.
///
/// # Errors
/// [`CodecError::Decode`] for anything that is not exactly one word, [`CodecError::Leftover`] when
/// bytes follow it.
pub fn decode<R: Decode<()>>(bytes: &[u8]) -> Result<R, CodecError> {
    let standard = config::standard();
    let (word, used) = if bytes.len() <= SMALL.0 {
        bincode::decode_from_slice(bytes, standard.with_limit::<{ SMALL.1 }>())?
    } else if bytes.len() <= MEDIUM.0 {
        bincode::decode_from_slice(bytes, standard.with_limit::<{ MEDIUM.1 }>())?
    } else {
        bincode::decode_from_slice(bytes, standard.with_limit::<LARGE_LIMIT>())?
    };
    match bytes.len() - used {
        0 => Ok(word),
        left => Err(CodecError::Leftover(left)),
    }
}
