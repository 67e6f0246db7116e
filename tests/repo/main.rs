//! The rules of the repository, and the libraries that each executable links.
#![allow(clippy::unwrap_used)]

mod documents;
mod layout;
mod linkage;
mod measures;
mod source;
mod tidy;
