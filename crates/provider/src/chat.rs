//! OpenAI Chat Completions without IO, with the variations of other servers: the request body
//! ([`encode()`]) and the stream ([`ChatDecoder`]).

mod decode;
mod encode;
pub(crate) mod wire;

pub use decode::ChatDecoder;
pub use encode::encode;
