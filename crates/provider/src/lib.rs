//! Talks to model APIs: pure encoders and decoders for each vendor's wire format, one retry policy,
//! one file that opens connections. Only `workers/provider` runs it.
//!
//! Path of a request: [`api::encode`] builds its body, and `http` sends it. [`stream`] ([`sse`],
//! then [`api::AnswerDecoder`]) turns the response into steps, and [`Provider`] emits them as
//! messages. If an attempt fails, [`fault`] holds the reason and [`retry`] decides about the next.
//! [`recording`] is the file that `--record` writes and the `replay` source plays.
//!
//! # Rules that hold here
//!
//! - An answer counts once its terminal event was seen; a body that ends early is a broken stream.
//! - A retry sends the same request again; the output streamed before is void, and `Retrying`
//!   announces that.
//! - A thinking block is sent back unchanged, and only to its own vendor. Metadata that a vendor
//!   wants back with a block, such as a signature, is stored like a thinking block
//!   (`vendor_metadata`).
//! - The key is in one header and nowhere else. If a server repeats the key, or a configured header
//!   or password, the text is redacted before it leaves this process (`secrets`).
//!
//! # Measured
//!
//! Anthropic's interface; all four with `cargo bench -p provider`. Two shared cores of a busy machine,
//! November 2026, reads of 16 KiB; take ratios, not times:
//!
//! | | pieces of 8 letters | of 1,000 | of 4,000,000 |
//! |---|---|---|---|
//! | [`sse::SseDecoder`] alone | 515 MB/s | 1,300 MB/s | 555 MB/s |
//! | bytes to joined steps | 96 MB/s, 1.3 us an event | 672 MB/s | 373 MB/s |
//!
//! A model writes about 100 pieces a second. A body of 240 kB is encoded in 0.4 ms. Making a
//! [`Provider`] takes 0.05 ms for an `http` address and 2.7 ms for `https`, which is the reading of
//! 140 certificates.

mod answer_schema;
pub mod anthropic;
pub mod api;
mod arguments;
pub mod body;
pub mod chat;
mod context_full;
mod emit;
pub mod fault;
pub mod gemini;
mod http;
mod images;
mod key;
mod pinned_updates;
mod provider;
pub mod recording;
mod redactor;
mod refused_tool;
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
