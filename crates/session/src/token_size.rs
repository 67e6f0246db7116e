//! The size of a token where no vendor counts.

/// Bytes that one token stands for, on the safe side: prose has four and more, code about three.
pub(crate) const BYTES_A_TOKEN: usize = 3;
