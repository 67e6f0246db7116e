//! Frames and channels, from outside.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod channel;
mod codec;
mod frames;
#[path = "../../../../tests/fuzz/src/lib.rs"]
mod held;
mod replay;
