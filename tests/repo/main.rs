//! The rules of the repository, and the libraries that each executable links.
#![allow(clippy::unwrap_used)]

mod linkage;
mod tidy;
