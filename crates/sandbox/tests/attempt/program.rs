//! The tests' helper: a runner that makes a cage, and the programs that try to get out of it.
//!
//! `cage OPTIONS -- PROGRAM ARGS` runs a command in a cage and tells what happened, a fact a line.
//! `enter OPTIONS -- ATTEMPT ARGS` locks itself, then tries. `try ATTEMPT ARGS` just tries: as the
//! program in a cage, or outside as the positive control. An attempt prints `done` or the errno.
//! `under KERNEL WORDS` does the same on a kernel that lacks something; `clocks OPTIONS` measures the way to exec against a plain spawn.

mod acts;
mod clock;
mod dns;
mod fault;
mod options;
mod runner;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    run(&words)
}

fn run(words: &[&str]) -> ExitCode {
    match words {
        ["cage", rest @ ..] => runner::cage(rest),
        ["enter", rest @ ..] => runner::enter(rest),
        ["clock", rest @ ..] => clock::once(rest),
        ["clocks", rest @ ..] => clock::often(rest),
        ["under", kernel, rest @ ..] => fault::under(kernel, rest),
        ["host"] => runner::host(),
        ["attempts", tier] => runner::attempts(tier, |_| {}),
        ["attempts", tier, rule] => runner::attempts(tier, runner::without(rule)),
        ["act", act @ ..] => std::process::exit(sandbox::run_attack(act)),
        ["try", act, rest @ ..] => acts::attempt(act, rest),
        _ => {
            eprintln!("sandbox-attempt: cage, enter, try, under, host or clocks");
            ExitCode::from(2)
        }
    }
}
