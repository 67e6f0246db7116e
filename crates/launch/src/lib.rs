//! Starts, watches, kills and buries one process in its cage. This crate does IO and has no actors: events of a
//! process go to a function that its owner gives.
//!
//! | File | Holds |
//! |---|---|
//! | `spawner` | the thread that starts every process |
//! | `grant` | the right to start a runner, and to send it `Go` |
//! | `process` | one process: its channel, its messages, its end |
//! | `heartbeat`, `restart`, `timeouts`, `progress` | pings, restarts of workers, time limits, messages that count as progress |
//! | `log_lines` | log lines of processes, in the supervisor's log |
//! | `runner` | every runner from start to end; call, probe, reserve, proxy, repair, git and certificate differ in their job |
//! | `runner::life`, `runner::events`, `runner::event_relay` | the messages of each phase; their meaning; the present owner |
//! | `errand` | a job of a runner that no actor owns, run to its answer |
//! | `certificate`, `git_cage`, `protected_restore` | such jobs: certificates, git for worktrees, protected files |
//! | `session_lock`, `orphans` | the lock that a session shares with its runners; runners that outlived their supervisor |
//! | `cage_cleanup`, `adopted` | the end of the processes of a cage whose runner died, and the wait for them |
//! | `frozen_calls` | stops the processes of a call for a while |
//! | `session_network`, `project_overlays` | namespaces and mounts, passed from call to call |
//!
//! Only `spawner` starts processes, and only a `Grant` lets it start a runner.
//!
//! It uses three items of the crate `call`: `Heard`, an input of the machine of a call, which the end of a process
//! reports; `CallFacts`, whose rights decide if a network may be shared; and the text about protected files.

pub mod adopted;
pub mod cage_cleanup;
pub mod certificate;
mod errand;
#[cfg(test)]
mod errand_tests;
pub mod frozen_calls;
pub mod git_cage;
pub mod grant;
pub mod heartbeat;
pub mod log_lines;
mod orphans;
pub mod process;
pub mod progress;
pub mod project_overlays;
pub mod protected_restore;
pub mod restart;
pub mod runner;
pub mod session_lock;
pub mod session_network;
pub mod spawner;
pub mod timeouts;
