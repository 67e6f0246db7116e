//! Calls as models write them, and what they mean.
#![allow(clippy::unwrap_used)]

mod arguments;
mod dialect;
mod figures;
