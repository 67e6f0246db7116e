//! The fault matrix: every process, harmed in every way, at every step of a call's path.
//!
//! In each cell one process is held at a step and one process is given a fault. The turn must end
//! within 10 s with the answer that it would have had. The command runs at most once, and to its
//! end if its result is a success. `interrupted` appears only where the fault allows it, and `may have
//! run` only where the runner had begun. Journal and audit log are valid, and no process is left. Where the proxy has the fault, the command has
//! an allow-list, and the record of the call holds the refused connection or the loss of the proxy.
//! A proxy that becomes silent before it has a cage gets 20 s.
//!
//! Faults of a cage's first process are tried in tier A, those of the guard in tier B. Killing a
//! first process also kills the running command, and the result reports it; before the program
//! starts, the call is retried. A lost guard, and a stop of either, changes nothing.
//!
//! Faults of a runner in reserve are tried at steps of its own. The call goes on with another runner.
//! In all other cells the session has no reserve.
//!
//! The executables must have hooks:
//!
//! ```sh
//! tests/hooks/cargo test --test crash every_cell -- --ignored --nocapture
//! ```
//!
//! `MATRIX_ONLY` keeps the cells whose name holds it, `MATRIX_SEED` and `MATRIX_CELLS` choose the
//! sample, `MATRIX_AT_ONCE` says how many run side by side.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod cell;
mod hooks;
mod steering;
mod table;

use crate::support::dice::Dice;
use std::collections::BTreeMap;
use std::sync::Mutex;
use table::Cell;

#[test]
#[cfg_attr(not(agentd_hooks), ignore = "needs executables with hooks; see the file's head")]
fn a_sample_of_the_cells() {
    let mut dice = Dice::seeded("MATRIX_SEED");
    let (_, mut cells) = sorted();
    let count = number("MATRIX_CELLS", 40).min(cells.len());
    let sample = (0..count).map(|_| cells.swap_remove(dice.below(cells.len()))).collect();
    assert_eq!(tried(sample, 0), 0, "cells failed; {dice} tries the same");
}

#[test]
#[ignore = "takes many minutes, and executables with hooks; see the file's head"]
fn every_cell() {
    let (void, cells) = sorted();
    for (why, names) in &void {
        println!("void, since {why}: {} cells", names.len());
        names.iter().for_each(|name| println!("    {name}"));
    }
    let voids = void.values().map(Vec::len).sum();
    assert_eq!(tried(cells, voids), 0, "cells failed");
}

/// A message for the dead process reaches the supervisor's worker actor when the next process
/// already runs.
#[test]
#[cfg_attr(not(agentd_hooks), ignore = "needs executables with hooks; see the file's head")]
fn one_kill_while_the_disk_is_slow_costs_one_life() {
    for (target, step) in table::IN_A_SYNC {
        let cell = Cell { target: *target, fault: table::Fault::Kill, step };
        assert_eq!(cell::killed_in_a_sync(&cell), Ok(2), "{cell}");
    }
}

/// `tests/repo/linkage.rs` finds this mark in no shipped executable. Executables with hooks must
/// have it.
#[test]
#[cfg_attr(not(agentd_hooks), ignore = "needs executables with hooks; see the file's head")]
fn hooks_leave_their_mark() {
    for path in [
        env!("CARGO_BIN_EXE_agentd"),
        env!("CARGO_BIN_EXE_agentd-supervisor"),
        env!("CARGO_BIN_EXE_agentd-session"),
        env!("CARGO_BIN_EXE_agentd-provider"),
        env!("CARGO_BIN_EXE_agentd-broker"),
        env!("CARGO_BIN_EXE_agentd-store"),
        env!("CARGO_BIN_EXE_agentd-tool"),
        env!("CARGO_BIN_EXE_agentd-code"),
        env!("CARGO_BIN_EXE_agentd-web"),
        env!("CARGO_BIN_EXE_agentd-mcp"),
    ] {
        let mark = b"agentd_hook:";
        let found = std::fs::read(path).unwrap().windows(mark.len()).any(|window| window == mark);
        assert!(found, "{path} has no hooks");
    }
}

/// The void cells by their reason, and the cells to run.
fn sorted() -> (BTreeMap<&'static str, Vec<String>>, Vec<Cell>) {
    if cfg!(not(agentd_hooks)) {
        panic!(
            "these executables have no hooks: run it by `tests/hooks/cargo test --test crash matrix`"
        );
    }
    let only = std::env::var("MATRIX_ONLY").unwrap_or_default();
    let (mut void, mut cells) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
    for cell in table::cells().into_iter().filter(|cell| cell.to_string().contains(&only)) {
        match cell.void() {
            Some(why) => void.entry(why).or_default().push(cell.to_string()),
            None => cells.push(cell),
        }
    }
    (void, cells)
}

/// Tries the cells, some side by side, and says how it went; how many failed.
fn tried(cells: Vec<Cell>, void: usize) -> usize {
    let all = cells.len();
    let (left, failed) = (Mutex::new(cells), Mutex::new(0));
    std::thread::scope(|scope| {
        for _ in 0..number("MATRIX_AT_ONCE", 3) {
            scope.spawn(|| {
                while let Some(cell) = { left.lock().unwrap().pop() } {
                    let begun = std::time::Instant::now();
                    let tried = std::panic::catch_unwind(|| cell::run(&cell));
                    let took = begun.elapsed();
                    let why = match tried {
                        Ok(Ok(())) => {
                            println!("passed  {cell}  {took:.1?}");
                            continue;
                        }
                        Ok(Err(why)) => why,
                        Err(_) => "the test itself failed".to_owned(),
                    };
                    *failed.lock().unwrap() += 1;
                    println!("FAILED  {cell}  {took:.1?}: {why}");
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    println!("cells {}, passed {}, void {void}, failed {failed}", all + void, all - failed);
    failed
}

fn number(variable: &str, otherwise: usize) -> usize {
    let given = std::env::var(variable).ok();
    given.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}
