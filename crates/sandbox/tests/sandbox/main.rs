//! The cage, from outside: programs that try to break out, and their controls.

#![allow(clippy::unwrap_used)]

mod enter;
mod files;
mod git;
mod git_settings;
mod islands;
mod kernels;
mod leftovers;
mod limits;
mod links;
mod meanwhile;
mod names;
mod network;
mod overlays;
mod places;
mod pointers;
mod private;
mod processes;
mod starts;
mod status;
mod ways;
mod yard;
