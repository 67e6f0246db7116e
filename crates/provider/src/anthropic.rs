//! Anthropic Messages, pure: what is sent ([`encode()`]) and what its stream says ([`Decoder`]).

mod decode;
mod encode;
pub(crate) mod wire;

pub use decode::Decoder;
pub use encode::encode;

/// The version of the interface that both sides of this module speak.
pub const VERSION: &str = "2023-06-01";
