//! Google Gemini without IO: the request body ([`encode()`]) and the stream ([`GeminiDecoder`]).

mod decode;
mod encode;
pub(crate) mod wire;

pub use decode::GeminiDecoder;
pub use encode::encode;

/// How ids begin that are made up here, since older models give their calls none; they are not sent.
const MADE_UP: &str = "agentd_call_";
