//! Typed, capped, length-prefixed frames over a socket pair.
//!
//! Floor 0. Workers use [`worker`], which blocks; the supervisor, which must not, feeds the same
//! [`MessageJoiner`] and [`frames`] from its own event loop. [`codec`] is the only file that knows how a
//! word becomes bytes, [`fd`] the only one with unsafe code.

mod channel;
pub mod codec;
pub mod fd;
mod frame;
mod handshake;
#[cfg(agentd_hooks)]
pub mod hook;
pub mod log;
mod step;

pub use channel::{ChannelError, Ends, Received, Receiver, Sender, connect, worker};
pub use codec::CodecError;
pub use frame::{
    FRAME_CAP, FrameError, HEADER_BYTES, Message, MessageJoiner, descriptor_frame, frames,
};
pub use handshake::{HELLO_BYTES, Hello, HelloError};
