//! The runner as a real process in its real cage, driven over a real socket pair.
//!
//! This program is the runner, too: with `--as-runner` it is nothing but `tool_worker::main`, with
//! `--as-code-runner` the same with an engine for syntax trees. It
//! has its own main because a runner must have one thread when it locks itself. Every test runs
//! twice: with the strongest cage that this host allows, and with that of tier B.

#![allow(clippy::unwrap_used)]

mod commands;
mod decoder;
mod endings;
mod files;
mod git;
mod git_looks;
mod repair;
mod reserve;
mod scope;
mod supervisor;

use protocol::confinement::Tier;
use std::process::ExitCode;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--as-runner") {
        return tool_worker::main();
    }
    if arguments.iter().any(|argument| argument == "--as-code-runner") {
        return tool_worker::main_with(tool_worker::Engine::Trees(&code::Trees));
    }
    let tests = [
        files::TESTS,
        scope::TESTS,
        decoder::TESTS,
        commands::TESTS,
        git::TESTS,
        git_looks::TESTS,
        endings::TESTS,
        repair::TESTS,
        reserve::TESTS,
    ];
    let trials = tests.into_iter().flatten().flat_map(|(name, test)| {
        [("tier_a", Tier::A), ("tier_b", Tier::B)].map(|(prefix, tier)| {
            libtest_mimic::Trial::test(format!("{prefix}::{name}"), move || {
                supervisor::HIGHEST_TIER.set(tier);
                test();
                Ok(())
            })
        })
    });
    let mut arguments = libtest_mimic::Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
