//! Words to bytes and back: the only file that imports bincode.
//!
//! bincode 2.0.1 is unmaintained (RUSTSEC-2025-0141) but complete; 3.0.0 refuses to compile by
//! design. It stays because its native derives turn lossy types into compile errors, and because it
//! only reads bytes of our own processes, capped twice: by the frame's length and by the limits
//! here. If it must go, postcard replaces it in this file.

use bincode::config;
use bincode::de::read::Reader;
use bincode::de::{Decoder, DecoderImpl};
use bincode::error::DecodeError;
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
    Decode(#[from] DecodeError),
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
/// The bincode limit is part of a decoder's type, so three limits would compile each decoder three
/// times. The type has the largest one; a smaller message starts with the difference claimed.
///
/// # Errors
/// [`CodecError::Decode`] for anything that is not exactly one word, [`CodecError::Leftover`] when
/// bytes follow it.
pub fn decode<R: Decode<()>>(bytes: &[u8]) -> Result<R, CodecError> {
    let limit = match bytes.len() {
        length if length <= SMALL.0 => SMALL.1,
        length if length <= MEDIUM.0 => MEDIUM.1,
        _ => LARGE_LIMIT,
    };
    let standard = config::standard().with_limit::<LARGE_LIMIT>();
    let mut decoder = DecoderImpl::new(Unread(bytes), standard, ());
    decoder.claim_bytes_read(LARGE_LIMIT - limit)?;
    let word = R::decode(&mut decoder)?;
    match decoder.reader().0.len() {
        0 => Ok(word),
        left => Err(CodecError::Leftover(left)),
    }
}

/// The bytes of a message that no value has taken yet. The slice reader of bincode keeps their
/// number to itself.
struct Unread<'a>(&'a [u8]);

impl Reader for Unread<'_> {
    #[inline(always)]
    fn read(&mut self, into: &mut [u8]) -> Result<(), DecodeError> {
        let Some((taken, rest)) = self.0.split_at_checked(into.len()) else {
            let additional = into.len() - self.0.len();
            return Err(DecodeError::UnexpectedEnd { additional });
        };
        into.copy_from_slice(taken);
        self.0 = rest;
        Ok(())
    }

    #[inline]
    fn peek_read(&mut self, length: usize) -> Option<&[u8]> {
        self.0.get(..length)
    }

    #[inline]
    fn consume(&mut self, length: usize) {
        self.0 = self.0.get(length..).unwrap_or_default();
    }
}
