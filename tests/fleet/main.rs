//! A fleet: real PostgreSQL, hosts with state directories of their own, and the scripted model.
//!
//! `postgres` starts a database for a test; `host` is a host of the fleet.

mod attach;
mod host;
mod losses;
mod postgres;
#[path = "../support/mod.rs"]
#[allow(dead_code)]
mod support;
mod tasks;
