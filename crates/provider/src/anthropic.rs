//! Anthropic Messages, pure: what is sent ([`encode()`]) and what its stream says ([`Decoder`]).

mod decode;
mod encode;
pub(crate) mod wire;

pub use decode::AnthropicDecoder;
pub use encode::encode;
pub(crate) use encode::encode_leaving_out;

/// The version of the interface that both sides of this module speak. Since 2026-10-21 there is a
/// newer one, which refuses sampling parameters, documents in answers and citations in prompts;
/// nothing of that is sent here. The older one is kept since other servers of this interface know
/// no other; a model's `headers` may name the newer.
pub const VERSION: &str = "2023-06-01";

/// The header that goes with a request that asks for earlier thinking to be left out.
pub(crate) const LEAVES_OUT: (&str, &str) =
    ("anthropic-beta", "thinking-binding-controls-2026-08-01");

/// Whether a refusal says that earlier thinking belongs to another conversation. Models since 5.1 take
/// their thinking back only behind what it came behind; ours changes when a conversation is made
/// shorter, and when a pinned file changes.
pub(crate) fn is_bound_elsewhere(refusal: &str) -> bool {
    refusal.contains("bound to a different conversation")
}
