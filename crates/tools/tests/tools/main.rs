//! Each tool on real files: results, each error by its code, each limit with its marker.

#![allow(clippy::unwrap_used)]

mod apply_patch;
mod deep;
mod delete;
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
