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
use std::panic::catch_unwind;
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
    let tests: Vec<Test> = [
        files::TESTS,
        scope::TESTS,
        decoder::TESTS,
        commands::TESTS,
        git::TESTS,
        git_looks::TESTS,
        endings::TESTS,
        repair::TESTS,
        reserve::TESTS,
    ]
    .concat();
    if arguments.iter().any(|argument| argument == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> =
        arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let chosen =
        |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    let (mut passed, mut failed) = (0, 0);
    let tests = tests.into_iter().filter(|(name, _)| chosen(name));
    let in_tiers = tests.flat_map(|test| [Tier::A, Tier::B].map(|tier| (test, tier)));
    for ((name, test), tier) in in_tiers {
        supervisor::HIGHEST_TIER.set(tier);
        let name = format!("tier_{}::{name}", if tier == Tier::A { 'a' } else { 'b' });
        if catch_unwind(test).is_ok() {
            passed += 1;
            println!("test {name} ... ok");
        } else {
            failed += 1;
            println!("test {name} ... FAILED");
        }
    }
    let result = if failed == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {result}. {passed} passed; {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}
