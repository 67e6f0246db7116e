//! Tests of the filter: the program in an interpreter, then the kernel's own answers.
#![allow(clippy::unwrap_used)]

pub(crate) mod child;
mod figures;
mod interpreter;
mod kernel;
mod meaning;
mod older;
