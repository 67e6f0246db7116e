//! A fleet: real PostgreSQL, hosts with state directories of their own, and the scripted model.
//!
//! `postgres` starts a database for a test; `host` is a host of the fleet; `network` gives each a network
//! of its own. `slurm` is a cluster that starts hosts, `s3` an object store. `soak` has the random faults of `fault`, and `verdict`
//! checks each call afterwards.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, clippy::type_complexity)]

mod attach;
mod clock;
mod connections;
mod counter;
mod fault;
mod host;
mod host_clock;
mod lease;
mod losses;
mod network;
mod objects;
mod pooler;
mod postgres;
mod recipes;
mod records;
mod rights;
mod s3;
mod screens;
mod slurm;
mod slurm_array;
mod soak;
mod still;
#[path = "../support/mod.rs"]
mod support;
mod tasks;
mod three_hosts;
mod tls;
mod verdict;
