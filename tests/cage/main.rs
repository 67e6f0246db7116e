//! Refusals and permissions of the cage, by real commands in real cages.
#![allow(clippy::unwrap_used)]

mod bounds;
mod cgroups;
mod company_proxy;
mod confinement;
mod credentials;
mod escapes;
mod everyday;
mod git_signing;
mod hostile_trees;
mod keys_by_links;
mod known_escapes;
mod leftovers;
mod managed;
mod messages;
mod network;
mod noise;
mod own_programs;
mod persons_links;
mod protected_names;
mod proxy;
mod repository_around;
mod rights;
mod settings;
mod signed_requests;
#[path = "../support/mod.rs"]
mod support;
mod tiers;
mod tool_homes;
