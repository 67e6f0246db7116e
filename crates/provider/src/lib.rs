//! Models' streams: vendors' wire formats as pure encoders and decoders, one policy, one file that
//! opens connections. Run by `workers/provider`, and by nobody else.
//!
//! A request's way: [`anthropic::encode`] makes its body; `http` sends it; [`intake`] ([`sse`], then
//! [`anthropic::Decoder`]) turns what comes back into steps; [`Provider`] says them in the words of
//! the wire. When an attempt comes to nothing, [`fault`] holds why and [`retry`] decides what
//! follows. [`recording`] is the file that `--record` writes and the `replay` source plays.
//!
//! # Rules that hold here
//!
//! - An answer counts once its terminal event was seen; a body that ends early is a broken stream.
//! - A new attempt begins from the request; what was streamed before is void, and `Retrying` says so.
//! - Thinking blocks are echoed as they came. The key is in one header and nowhere else.
//!
//! # Measured
//!
//! See `tests/throughput.rs`.

mod answer;
pub mod anthropic;
pub mod fault;
mod http;
pub mod intake;
mod key;
pub mod recording;
pub mod retry;
pub mod sse;

pub use answer::{Provider, Setup};
