//! OpenAI Responses without IO and without state on the server: the request body ([`encode()`]) and
//! the stream ([`ResponsesDecoder`]).

mod decode;
mod encode;
pub(crate) mod wire;

pub use decode::ResponsesDecoder;
pub use encode::encode;
