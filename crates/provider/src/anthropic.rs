//! Anthropic Messages without IO: the request body ([`encode()`]) and the stream
//! ([`AnthropicDecoder`]).

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

/// True if the server refuses earlier thinking because it belongs to another conversation. Models
/// since 5.1 accept their thinking only behind the same messages as before; agentd changes these
/// when it shortens a conversation or when a pinned file changes.
pub(crate) fn is_bound_elsewhere(refusal: &str) -> bool {
    refusal.contains("bound to a different conversation")
}
