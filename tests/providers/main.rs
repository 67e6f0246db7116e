//! Vendors' interfaces, and the context that a request carries.
#![allow(clippy::unwrap_used)]

mod bad_arguments;
mod compact_hooks;
mod context;
mod fallback;
mod overflow;
mod summaries;
#[path = "../support/mod.rs"]
mod support;
mod vendors;
