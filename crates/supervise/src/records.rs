//! Conversion between wire messages and the records on disk.

pub(crate) mod decode;
pub(crate) mod encode;
