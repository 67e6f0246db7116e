//! How long a verdict over a thousand rules takes: `cargo bench -p approval`.
#![allow(clippy::unwrap_used)]

#[path = "../tests/approval/bench/mod.rs"]
mod bench;

use approval::SessionRules;
use bench::{PROJECT, command, on_paths, rule_set};
use protocol::judgement::{JudgedCall, PermissionMode};
use std::time::{Duration, Instant};

/// Most microseconds for one verdict; a call costs several thousand.
const TARGET_US: f64 = 100.0;
/// Most microseconds for a script of 64 KiB, longer than any that people read.
const SCRIPT_TARGET_US: f64 = 3_000.0;

fn main() {
    let of = |make: fn(usize) -> String| (0..334).map(make).collect::<Vec<_>>();
    let allow = of(|n| {
        if n % 2 == 0 { format!("bash:tool{n} sub{n} *") } else { format!("write:dir{n}/**/*.rs") }
    });
    let ask =
        of(
            |n| {
                if n % 2 == 0 {
                    format!("bash:tool{n} publish*")
                } else {
                    format!("write:ask{n}/*")
                }
            },
        );
    // Programs by a pattern of their own cannot be looked up; one denial in ten is more than people
    // write.
    let deny = of(|n| match n % 10 {
        0 => format!("bash:*bad{n} *"),
        2 | 4 | 6 | 8 => format!("bash:bad{n} *"),
        _ => format!("write:secret{n}.*"),
    });
    let set = rule_set(PermissionMode::Ask, &words(&allow), &words(&ask), &words(&deny));
    println!("{} rules", set.rules.len());

    let before = Instant::now();
    let rules = SessionRules::new(&set).unwrap();
    println!("reading them, once a session: {:.1} ms", before.elapsed().as_secs_f64() * 1e3);

    let cases: [(&str, JudgedCall); 5] = [
        ("a command that a rule allows", command("tool332 sub332 --release x y")),
        ("a command of which no rule speaks", command("make -j4 all")),
        (
            "a pipeline in wrappers",
            command("env X=y timeout 5 sh -c 'make | tee log' && git status"),
        ),
        ("a file that a rule allows", on_paths("write", &[&format!("{PROJECT}/dir333/deep/a.rs")])),
        (
            "a file of which no rule speaks",
            on_paths("write", &[&format!("{PROJECT}/src/deep/a.rs")]),
        ),
    ];
    for (name, case) in &cases {
        let us = median_us(&rules, case);
        let word = if us <= TARGET_US { "PASS" } else { "MISS" };
        println!("{word} {name}: {us:.1} us (target {TARGET_US} us)");
    }
    let line = |n: usize| format!("cd dir{n} && for i in a b; do tool{n} \"$i\" | tee x; done\n");
    let grammar: String = (0..).map(line).scan(0, up_to_script).collect();
    let line = |n: usize| format!("tool{n} `cat f{n}` > \"$HOME/${{x:-{n}}}.log\" 2>&1\n");
    let beyond: String = (0..).map(line).scan(0, up_to_script).collect();
    for (name, script) in [("that the grammar follows", grammar), ("that it does not", beyond)] {
        let case = command(&script);
        let (us, own) = (median_us(&rules, &case), own_us(&rules, &case));
        let word = if us <= SCRIPT_TARGET_US { "PASS" } else { "MISS" };
        println!(
            "{word} a script of {} bytes {name}: {us:.0} us, of which on a processor {own:.0} us \
             (target {SCRIPT_TARGET_US} us)",
            script.len()
        );
    }
}

/// Lines as long as the script is not full.
fn up_to_script(length: &mut usize, line: String) -> Option<String> {
    *length += line.len();
    (*length <= 64 << 10).then_some(line)
}

fn words(rules: &[String]) -> Vec<&str> {
    rules.iter().map(String::as_str).collect()
}

/// Processor time of this thread for one verdict, in microseconds; time of other programs is not
/// counted.
fn own_us(rules: &SessionRules, case: &JudgedCall) -> f64 {
    let on_processor = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let before = on_processor();
    for _ in 0..20 {
        std::hint::black_box(rules.judge(std::hint::black_box(case)));
    }
    (on_processor() - before) / 20.0 / 1e3
}

fn median_us(rules: &SessionRules, case: &JudgedCall) -> f64 {
    let mut took: Vec<f64> = Vec::new();
    let begun = Instant::now();
    while took.len() < 2_000 && (took.len() < 20 || begun.elapsed() < Duration::from_secs(1)) {
        let before = Instant::now();
        std::hint::black_box(rules.judge(std::hint::black_box(case)));
        took.push(before.elapsed().as_secs_f64() * 1e6);
    }
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}
