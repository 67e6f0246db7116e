//! Frames: a header and at most 1 MiB. A longer message comes as several frames.
//!
//! Header, little-endian: body length u32, generation u32, correlation u64, kind u8, three zero
//! bytes. Pure: bytes in, messages out.

use protocol::ids::Generation;

/// Largest body of one frame. Stops a peer from making us wait for, or reserve, a length it made
/// up.
pub const FRAME_CAP: usize = 1 << 20;
/// Size of a frame's header.
pub const HEADER_BYTES: usize = 20;

const WHOLE: u8 = 0;
const MORE: u8 = 1;
const DESCRIPTOR: u8 = 2;

/// A breach of the framing. The peer is ended for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A header that claims more than the cap.
    #[error("a frame of {claimed} bytes, over the cap of {cap}")]
    OverLong {
        /// The length in the header.
        claimed: usize,
        /// The maximum.
        cap: usize,
    },
    /// A message whose frames add up to more than its wire allows.
    #[error("a message of over {cap} bytes")]
    MessageOverLong {
        /// The wire's maximum.
        cap: usize,
    },
    /// A header with a kind that does not exist, or with set bytes where zeros belong.
    #[error("a malformed frame header")]
    Malformed,
    /// A frame of another message between the frames of one.
    #[error("a frame out of turn inside a message of several")]
    OutOfTurn,
}

/// A whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The sender's life.
    pub generation: Generation,
    /// Correlation ID of the request; 0 if it answers none.
    pub correlation: u64,
    /// The word's bytes; `None` for a frame that stands for a descriptor.
    pub body: Option<Vec<u8>>,
}

/// Joins bytes, as they come, into messages.
#[derive(Debug)]
pub struct MessageJoiner {
    message_cap: usize,
    pending: Vec<u8>,
    read: usize,
    partial: Option<Message>,
}

struct FrameHeader {
    length: usize,
    generation: Generation,
    correlation: u64,
    kind: u8,
}

impl MessageJoiner {
    /// For a wire with this largest message, in bytes.
    #[must_use]
    pub fn new(message_cap: usize) -> Self {
        Self { message_cap, pending: Vec::new(), read: 0, partial: None }
    }

    /// Adds bytes read from the socket.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read == self.pending.len() {
            self.pending.clear();
            self.read = 0;
        } else if self.read > FRAME_CAP {
            self.pending.drain(..self.read);
            self.read = 0;
        }
        self.pending.extend_from_slice(bytes);
    }

    /// True if the peer closed in the middle of a message.
    #[must_use]
    pub fn is_mid_message(&self) -> bool {
        self.read < self.pending.len() || self.partial.is_some()
    }

    /// The next whole message, if it is there.
    ///
    /// # Errors
    /// [`FrameError`]; nothing further can be read from this peer.
    pub fn next_message(&mut self) -> Result<Option<Message>, FrameError> {
        while let Some(header) = self.peek_header()? {
            let start = self.read + HEADER_BYTES;
            let Some(body) = self.pending.get(start..start + header.length) else {
                return Ok(None);
            };
            if let Some(message) = join(&mut self.partial, &header, body, self.message_cap)? {
                self.read = start + header.length;
                return Ok(Some(message));
            }
            self.read = start + header.length;
        }
        Ok(None)
    }

    fn peek_header(&self) -> Result<Option<FrameHeader>, FrameError> {
        let Some(bytes) = self.pending.get(self.read..self.read + HEADER_BYTES) else {
            return Ok(None);
        };
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let length = word(0) as usize;
        let correlation = u64::from(word(8)) | u64::from(word(12)) << 32;
        let header =
            FrameHeader { length, generation: Generation(word(4)), correlation, kind: bytes[16] };
        let cap = FRAME_CAP.min(self.message_cap);
        if length > cap {
            return Err(FrameError::OverLong { claimed: length, cap });
        }
        if header.kind > DESCRIPTOR || bytes[17..20] != [0; 3] {
            return Err(FrameError::Malformed);
        }
        if header.kind == DESCRIPTOR && length != 0 {
            return Err(FrameError::Malformed);
        }
        Ok(Some(header))
    }
}

fn join(
    partial: &mut Option<Message>,
    header: &FrameHeader,
    body: &[u8],
    cap: usize,
) -> Result<Option<Message>, FrameError> {
    let (generation, correlation) = (header.generation, header.correlation);
    if header.kind == DESCRIPTOR {
        return match partial {
            Some(_) => Err(FrameError::OutOfTurn),
            None => Ok(Some(Message { generation, correlation, body: None })),
        };
    }
    let mut message = match partial.take() {
        Some(begun) if (begun.generation, begun.correlation) != (generation, correlation) => {
            return Err(FrameError::OutOfTurn);
        }
        Some(begun) => begun,
        None => Message { generation, correlation, body: Some(Vec::new()) },
    };
    if let Some(bytes) = &mut message.body {
        if bytes.len() + body.len() > cap {
            return Err(FrameError::MessageOverLong { cap });
        }
        bytes.extend_from_slice(body);
    }
    if header.kind == MORE {
        *partial = Some(message);
        return Ok(None);
    }
    Ok(Some(message))
}

/// The frames of one message, ready to be written one after another.
#[must_use]
pub fn frames(generation: Generation, correlation: u64, body: &[u8]) -> Vec<u8> {
    let count = body.len().div_ceil(FRAME_CAP).max(1);
    let mut bytes = Vec::with_capacity(body.len() + count * HEADER_BYTES);
    for number in 0..count {
        let end = body.len().min((number + 1) * FRAME_CAP);
        let piece = &body[number * FRAME_CAP..end];
        let kind = if number + 1 == count { WHOLE } else { MORE };
        bytes.extend_from_slice(&header(piece.len(), generation, correlation, kind));
        bytes.extend_from_slice(piece);
    }
    bytes
}

/// The empty frame that a descriptor rides on.
#[must_use]
pub fn descriptor_frame(generation: Generation) -> [u8; HEADER_BYTES] {
    header(0, generation, 0, DESCRIPTOR)
}

fn header(length: usize, generation: Generation, correlation: u64, kind: u8) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..8].copy_from_slice(&generation.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&correlation.to_le_bytes());
    bytes[16] = kind;
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LIFE: Generation = Generation(7);

    fn all(joiner: &mut MessageJoiner) -> Vec<Message> {
        std::iter::from_fn(|| joiner.next_message().unwrap()).collect()
    }

    #[test]
    fn a_long_message_is_joined_from_its_frames_byte_by_byte() {
        let body: Vec<u8> = (0..FRAME_CAP * 2 + 5).map(|n| (n % 251) as u8).collect();
        let bytes = frames(LIFE, 3, &body);
        let mut joiner = MessageJoiner::new(4 << 20);
        let mut got = Vec::new();
        for piece in bytes.chunks(65_537) {
            joiner.push(piece);
            got.extend(all(&mut joiner));
        }
        assert_eq!(got, [Message { generation: LIFE, correlation: 3, body: Some(body) }]);
        assert!(!joiner.is_mid_message());
    }

    #[test]
    fn an_over_long_claim_is_refused_by_its_header_alone() {
        let mut joiner = MessageJoiner::new(1 << 30);
        joiner.push(&header(FRAME_CAP + 1, LIFE, 0, WHOLE));
        assert_eq!(
            joiner.next_message(),
            Err(FrameError::OverLong { claimed: FRAME_CAP + 1, cap: FRAME_CAP })
        );
    }

    #[test]
    fn a_message_of_many_frames_is_refused_at_its_wire_s_cap() {
        let mut joiner = MessageJoiner::new(FRAME_CAP + 10);
        joiner.push(&frames(LIFE, 0, &vec![0; FRAME_CAP + 11]));
        assert_eq!(joiner.next_message(), Err(FrameError::MessageOverLong { cap: FRAME_CAP + 10 }));
        let mut joiner = MessageJoiner::new(FRAME_CAP + 10);
        joiner.push(&frames(LIFE, 0, &vec![0; FRAME_CAP + 10]));
        assert!(joiner.next_message().unwrap().is_some());
    }

    #[test]
    fn half_a_frame_is_waited_for_and_noticed() {
        let bytes = frames(LIFE, 0, b"word");
        let mut joiner = MessageJoiner::new(100);
        joiner.push(&bytes[..HEADER_BYTES + 2]);
        assert_eq!(joiner.next_message(), Ok(None));
        assert!(joiner.is_mid_message());
        joiner.push(&bytes[HEADER_BYTES + 2..]);
        assert_eq!(joiner.next_message().unwrap().unwrap().body.unwrap(), b"word");
    }

    #[test]
    fn frames_out_of_turn_and_unknown_kinds_end_the_peer() {
        let mut joiner = MessageJoiner::new(100);
        joiner.push(&header(0, LIFE, 1, MORE));
        joiner.push(&header(0, LIFE, 2, WHOLE));
        assert_eq!(joiner.next_message(), Err(FrameError::OutOfTurn));
        let mut joiner = MessageJoiner::new(100);
        joiner.push(&header(0, LIFE, 1, 9));
        assert_eq!(joiner.next_message(), Err(FrameError::Malformed));
        let mut joiner = MessageJoiner::new(100);
        joiner.push(&header(1, LIFE, 1, DESCRIPTOR));
        assert_eq!(joiner.next_message(), Err(FrameError::Malformed));
    }

    #[test]
    fn a_descriptor_s_frame_is_told_from_an_empty_message() {
        let mut joiner = MessageJoiner::new(100);
        joiner.push(&descriptor_frame(LIFE));
        joiner.push(&frames(LIFE, 0, b""));
        let got = all(&mut joiner);
        assert_eq!(got[0].body, None);
        assert_eq!(got[1].body, Some(Vec::new()));
    }
}
