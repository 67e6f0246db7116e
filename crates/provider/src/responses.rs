//! OpenAI Responses, pure and without state on the server: what is sent ([`encode()`]) and what its
//! stream says ([`Decoder`]).

mod decode;
mod encode;
pub(crate) mod wire;

pub use decode::ResponsesDecoder;
pub use encode::encode;
