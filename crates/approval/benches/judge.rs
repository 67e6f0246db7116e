//! How long a verdict over a thousand rules takes: `cargo bench -p approval`.
#![allow(clippy::unwrap_used)]

#[path = "../tests/bench/mod.rs"]
mod bench;

use approval::Rules;
use bench::{PROJECT, command, on_paths, rule_set};
use protocol::judgement::{Case, Mode};
use std::time::Instant;

/// Most microseconds for one verdict; a call costs several thousand.
const TARGET_US: f64 = 100.0;

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
    let set = rule_set(Mode::Ask, &words(&allow), &words(&ask), &words(&deny));
    println!("{} rules", set.rules.len());

    let before = Instant::now();
    let rules = Rules::new(&set).unwrap();
    println!("reading them, once a session: {:.1} ms", before.elapsed().as_secs_f64() * 1e3);

    let script = "cd x && for i in a b; do tool1 $i | tee \"$i.log\"; done\n".repeat(100);
    let cases: [(&str, Case); 5] = [
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
    println!(
        "     a script of 200 lines, for comparison: {:.0} us",
        median_us(&rules, &command(&script))
    );
}

fn words(rules: &[String]) -> Vec<&str> {
    rules.iter().map(String::as_str).collect()
}

fn median_us(rules: &Rules, case: &Case) -> f64 {
    let mut took: Vec<f64> = (0..2_000)
        .map(|_| {
            let before = Instant::now();
            std::hint::black_box(rules.judge(std::hint::black_box(case)));
            before.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}
