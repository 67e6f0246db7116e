//! Tests of the filter: the program in an interpreter, then the kernel's own answers.
#![allow(clippy::unwrap_used)]

pub(crate) mod child;
mod figures;
mod interpreter;
mod kernel;
mod meaning;
mod older;

/// A version of Landlock that knows all rights.
pub(crate) const NEW: u32 = 9;
/// A version without truncation rights.
pub(crate) const OLD: u32 = 2;
/// The mark of the tests' plans.
pub(crate) const MARK: super::ExecMarker = super::exec_marker::ExecMarker(0x0123_4567_89AB_CDEF);
