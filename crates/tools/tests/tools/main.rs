//! Each tool on real files: what it does, each error by its code, each cap with its mark.

#![allow(clippy::unwrap_used)]

mod arguments;
mod delete;
mod edit;
mod glob;
mod grep;
mod inputs;
mod judged;
mod ls;
mod multi_edit;
mod probe;
mod project;
mod read;
mod restore;
mod scope;
mod write;
