//! Records on disk, from outside: the format, pages, damage, full disks, kills, retention and removals.

#![allow(clippy::unwrap_used)]

mod audit;
mod bad_files;
mod damage;
mod format;
mod full;
mod glance;
mod images;
mod killed;
mod pages;
mod past;
mod removals;
mod retention;
mod sample;
mod session;
