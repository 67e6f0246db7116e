//! How long it takes from `prepare` to exec, against a plain posix_spawn of the same program.

use crate::options::parse;
use sandbox::{Cage, Program, ProgramInput};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "/bin/true";

/// One cage, and one plain spawn by the same process before it: microseconds on one line.
pub fn once(words: &[&str]) -> ExitCode {
    let asked = parse(words);
    sandbox::harden().expect("harden");
    let begun = Instant::now();
    let mut plain = Command::new(PROGRAM)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a plain spawn");
    let spawned = begun.elapsed();
    plain.wait().expect("its end");
    let over = begun.elapsed();

    let begun = Instant::now();
    let (cage, _) =
        Cage::prepare(&asked.confinement, sandbox::Inherited::default()).expect("a cage");
    let prepared = begun.elapsed();
    let caged = cage
        .spawn(Program {
            argv: vec![PROGRAM.into()],
            env: Vec::new(),
            cwd: asked.confinement.project.to_path(),
            input: ProgramInput::Nothing,
        })
        .expect("a program");
    let executed = begun.elapsed();
    caged.finish().expect("an ending");
    let finished = begun.elapsed();
    let all = [spawned, over, prepared, executed - prepared, executed, finished];
    let micros: Vec<String> = all.iter().map(|one| one.as_micros().to_string()).collect();
    println!("{}", micros.join(" "));
    ExitCode::SUCCESS
}

/// Medians of many.
pub fn often(words: &[&str]) -> ExitCode {
    let me = std::env::current_exe().expect("this program");
    let mut rows: Vec<Vec<u64>> = Vec::new();
    for _ in 0..200 {
        let out = Command::new(&me).arg("clock").args(words).output().expect("one");
        let line = String::from_utf8(out.stdout).expect("text");
        let row: Vec<u64> = line.split_whitespace().map(|n| n.parse().expect("a number")).collect();
        assert_eq!(row.len(), 6, "{line} {}", String::from_utf8_lossy(&out.stderr));
        rows.push(row);
        std::thread::sleep(Duration::from_millis(2));
    }
    // The tenth part too: on a busy machine the median tells of the other load.
    let ranks = |column: usize| {
        let mut all: Vec<u64> = rows.iter().map(|row| row[column]).collect();
        all.sort_unstable();
        (all[all.len() / 2], all[all.len() / 10])
    };
    let names = [
        "plain spawn",
        "plain spawn and wait",
        "prepare",
        "spawn (Go to exec)",
        "prepare to exec",
        "prepare to finish",
    ];
    for (column, name) in names.iter().enumerate() {
        let (median, tenth) = ranks(column);
        println!("{name}: median {median} us, best tenth {tenth} us");
    }
    ExitCode::SUCCESS
}
