//! To come.

#[allow(dead_code)]
mod listener;
#[allow(dead_code)]
mod seccomp;
