//! Anthropic Messages, pure: what is sent ([`encode()`]) and what its stream says ([`Decoder`]).

mod decode;
mod encode;
pub(crate) mod wire;

pub use decode::Decoder;
pub use encode::encode;

/// The version of the interface that both sides of this module speak. Since 2026-10-21 there is a
/// newer one, which refuses sampling parameters, documents in answers and citations in prompts;
/// nothing of that is sent here. The older one is kept since other servers of this interface know
/// no other; a model's `headers` may name the newer.
pub const VERSION: &str = "2023-06-01";
