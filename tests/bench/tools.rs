//! Costs of searching and reading, compared with plain programs: the same search by `rg`, the same
//! pattern by `ast-grep`. The row of an absent program says so.

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run};
use crate::{median, micros, row};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Calls of each figure, less than the 25 rounds that end a turn.
const CALLS: usize = 12;
/// Of tools that read a gigabyte.
const LARGE_CALLS: usize = 5;
/// Files of the searches.
const FILES: usize = 50_000;
/// One file in so many has a match.
const RARE: usize = 500;
/// Files of the pattern.
const SCANNED: usize = 500;
/// Lines of the large file, of a hundred bytes and more each: a gigabyte.
const LINES: usize = 11_000_000;

/// An unknown tool: its call is answered without a process.
const NO_TOOL: &str = "no_such_tool";

pub(crate) fn rows() {
    searches();
    large_file();
    known_answer();
    scans();
}

/// From an answer with this call to the next request, less the same with a call that needs no process.
fn cost_of(desk: &Desk, tool: &str, input: impl Fn(usize) -> Value) -> Duration {
    cost_of_each(desk, tool, CALLS, input)
}

fn cost_of_each(desk: &Desk, tool: &str, calls: usize, input: impl Fn(usize) -> Value) -> Duration {
    let with = answer_to_request(desk, tool, calls, input);
    with.saturating_sub(answer_to_request(desk, NO_TOOL, calls, |_| json!({})))
}

fn answer_to_request(
    desk: &Desk,
    tool: &str,
    calls: usize,
    input: impl Fn(usize) -> Value,
) -> Duration {
    let calls = (1..=calls).map(|number| {
        let id = format!("toolu_{number}");
        Answer::says([call(&id, tool, &input(number).to_string())])
    });
    let server = Server::scripted(calls.chain([Answer::text("done")]).collect::<Vec<_>>());
    let ran = run(desk.with_server(&server, &["-p", "x"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let seen = server.requests();
    let failed = seen.last().unwrap().body["messages"].to_string().contains("Error [");
    assert_eq!(failed, tool == NO_TOOL, "{tool}");
    let times = seen.windows(2);
    median(
        times
            .map(|pair| pair[1].first_byte.saturating_duration_since(pair[0].answered.unwrap()))
            .collect(),
    )
}

/// The same by a program of its own; nothing where it is absent.
fn plain(desk: &Desk, program: &str, words: impl Fn(usize) -> Vec<String>) -> Option<Duration> {
    let once = |number| {
        let begun = Instant::now();
        let mut command = Command::new(program);
        command.args(words(number)).current_dir(desk.project());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let ran = command.output().ok()?;
        assert!(!ran.stdout.is_empty(), "{program} finds nothing");
        Some(begun.elapsed())
    };
    // The first run loads the files that the others find in memory.
    once(0)?;
    Some(median((1..=CALLS).filter_map(once).collect()))
}

/// A row that compares another program and a call, or only the call's time if the program is
/// absent.
fn beside(
    figure: &str,
    took: Duration,
    limit: f64,
    program: &str,
    other: Option<Duration>,
    one: Duration,
) {
    let ms = |time: Duration| micros(time) / 1e3;
    match other {
        Some(other) => {
            let baseline = format!(
                "{program} {:.1} ms, one call {:.1} ms, ours {:.1} ms",
                ms(other),
                ms(one),
                ms(took)
            );
            row(figure, micros(took) / micros(other + one), "x", limit, &baseline);
        }
        None => {
            let took = ms(took);
            println!(
                "| {figure} | {took:.1} ms | <= {limit} x | {program} is absent here | none |"
            );
        }
    }
}

/// The cost of a read-only call in an almost empty project.
fn one_call() -> Duration {
    let desk = Desk::new();
    cost_of(&desk, "grep", |number| json!({"pattern": format!("x{number}")}))
}

fn searches() {
    let desk = Desk::new();
    let filler = "int line_of_a_program(void); /* as long as such lines are */\n".repeat(16);
    for number in 0..FILES {
        let mark = if number % RARE == 0 { "needle" } else { "nothing" };
        let numbers: String = (0..=CALLS).map(|n| format!("{mark}_{n}_\n")).collect();
        desk.write(&format!("d{}/f{number}.c", number / 100), &format!("{filler}{numbers}"));
        if number % RARE == 0 {
            desk.write(&format!("d{}/f{number}.md", number / 100), "text\n");
        }
    }
    let one = one_call();
    // Another pattern each time, since the same would be known.
    let pattern = |number: usize| format!("needle_{number}_");
    let rg = plain(&desk, "rg", |number| {
        ["-n", "--hidden", "-g", "!.git", "-g", "!node_modules", &pattern(number)]
            .map(str::to_owned)
            .into()
    });
    let took = cost_of(&desk, "grep", |number| json!({"pattern": pattern(number)}));
    beside("`grep` over 50,000 files", took, 1.3, "rg", rg, one);
    // In other words each time, since the same would be known.
    let pattern = |number: usize| format!("f*{}.md", "[0-9]".repeat(1 + number % 2));
    let rg = plain(&desk, "rg", |number| {
        let all = ["--files", "--hidden", "-g", "!.git", "-g", "!node_modules", "-g"];
        all.map(str::to_owned).into_iter().chain([pattern(number)]).collect()
    });
    let took = cost_of(&desk, "glob", |number| {
        let again = "*".repeat(number / 2);
        json!({"pattern": format!("f{again}{}", &pattern(number)[1..])})
    });
    beside("`glob` over 50,000 files", took, 1.3, "rg --files", rg, one);
}

fn large_file() {
    let desk = Desk::new();
    let path = desk.write("large.log", "");
    large(&path);
    // Read once, as its writer would have.
    std::io::copy(&mut File::open(&path).unwrap(), &mut std::io::sink()).unwrap();
    let took = cost_of_each(
        &desk,
        "read",
        LARGE_CALLS,
        |number| json!({"path": "large.log", "offset": LINES - 1999 - number, "limit": 2000}),
    );
    row(
        "`read` of 2,000 lines at the end of 1 GB, in warm cache",
        micros(took) / 1e6,
        "s",
        0.35,
        "none",
    );
    let peaks = desk.audit().into_iter().filter(|record| record["event"] == "ended");
    let peak = peaks.filter_map(|record| record["usage"]["peak_kib"].as_u64()).max();
    let peak = peak.expect("the record says what a call used") as f64 / 1024.0;
    row("memory of that call", peak, "MiB", 64.0, "none");
}

fn large(path: &Path) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let line =
        "a line of a log, as long as such lines are, with nothing in it that is of use to anybody";
    for number in 0..LINES {
        writeln!(file, "{number:010} {line}").unwrap();
    }
    file.flush().unwrap();
    assert!(fs::metadata(path).unwrap().len() > 1_000_000_000);
}

fn known_answer() {
    let desk = Desk::new();
    desk.write("a.rs", &"fn one() {}\n".repeat(200));
    std::thread::sleep(Duration::from_millis(100));
    let took = cost_of(&desk, "read", |_| json!({"path": "a.rs"}));
    let fresh = cost_of(&desk, "read", |number| json!({"path": "a.rs", "limit": number}));
    let baseline = format!("made anew {:.2} ms", micros(fresh) / 1e3);
    row("a `read` whose answer is known", micros(took) / 1e3, "ms", 1.0, &baseline);
}

fn scans() {
    let desk = Desk::new();
    let body: String = (0..100)
        .map(|n| {
            format!("fn f{n}(x: u32) -> u32 {{\n    let y = go(x, {n});\n    y + other(x)\n}}\n")
        })
        .collect();
    for number in 0..SCANNED {
        let mark: String =
            (0..=CALLS).map(|n| format!("fn g{n}() {{ wanted_{n}(1, 2) }}\n")).collect();
        let mark = if number % 50 == 0 { mark.as_str() } else { "" };
        desk.write(&format!("src/f{number}.rs"), &format!("{body}{mark}"));
    }
    let pattern = |number: usize| format!("wanted_{number}($A, $B)");
    let words =
        |number| ["run", "--lang", "rust", "--pattern", &pattern(number)].map(str::to_owned).into();
    let other = plain(&desk, "ast-grep", words);
    let took = cost_of(&desk, "scan", |number| json!({"patterns": [pattern(number)]}));
    beside("`scan` over 500 files", took, 1.5, "ast-grep", other, one_call());
}
