//! Models' streams: vendors' wire formats as pure encoders and decoders, one policy, one file that
//! opens connections. Run by `workers/provider`, and by nobody else.
//!
//! A request's way: [`api::encode`] makes its body; `http` sends it; [`stream`] ([`sse`], then
//! [`api::Decoder`]) turns what comes back into steps; [`Provider`] says them in the words of
//! the wire. When an attempt comes to nothing, [`fault`] holds why and [`retry`] decides what
//! follows. [`recording`] is the file that `--record` writes and the `replay` source plays.
//!
//! # Rules that hold here
//!
//! - An answer counts once its terminal event was seen; a body that ends early is a broken stream.
//! - A new attempt begins from the request; what was streamed before is void, and `Retrying` says so.
//! - Thinking blocks are echoed as they came, to the vendor they came from and to no other; what a
//!   vendor wants back beside a block, such as a signature, is kept like one (`beside`).
//! - The key is in one header and nowhere else: where a server repeats it, or a header or a password
//!   of the configuration, the text that leaves here has a blank in its place (`secrets`).
//!
//! # Measured
//!
//! Anthropic's interface; all four with `cargo bench -p provider`. Two shared cores of a busy machine,
//! November 2026, reads of 16 KiB; take ratios, not times:
//!
//! | | pieces of 8 letters | of 1,000 | of 4,000,000 |
//! |---|---|---|---|
//! | [`sse::Decoder`] alone | 515 MB/s | 1,300 MB/s | 555 MB/s |
//! | bytes to joined steps | 96 MB/s, 1.3 us an event | 672 MB/s | 373 MB/s |
//!
//! A model writes about 100 pieces a second. A body of 240 kB is encoded in 0.4 ms. Making a
//! [`Provider`] takes 0.05 ms for an `http` address and 2.7 ms for `https`, which is the reading of
//! 140 certificates.

pub mod anthropic;
pub mod api;
pub mod body;
pub mod chat;
mod emit;
pub mod fault;
pub mod gemini;
mod http;
mod key;
mod pinned_updates;
mod provider;
pub mod recording;
mod redactor;
mod replay;
mod request;
pub mod responses;
pub mod retry;
mod secrets;
mod server_error;
pub mod sse;
pub mod step;
pub mod stream;
mod vendor_metadata;

pub use provider::{Provider, ProviderSetup};
