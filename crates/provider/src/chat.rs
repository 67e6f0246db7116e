//! OpenAI Chat Completions, pure, with the dialects of the servers that speak it too: what is sent
//! ([`encode()`]) and what the stream says ([`Decoder`]).

mod decode;
mod encode;
pub(crate) mod wire;

pub use decode::ChatDecoder;
pub use encode::encode;
