//! Each tool on real files: what it does, each error by its code, each cap with its mark.

#![allow(clippy::unwrap_used)]

mod apply_patch;
mod arguments;
mod deep;
mod delete;
mod dialect;
mod edit;
mod glob;
mod grep;
mod inputs;
mod judged;
mod ls;
mod misses;
mod multi_edit;
mod probe;
mod project;
mod read;
mod restore;
mod scope;
mod write;
