//! Costs of heavier jobs of developers in a cage and without one: a session's commands and plain
//! ones run the script in turns, in the same directory. A job whose program is absent is marked so.

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run, tool_home};
use crate::{median, row};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Runs of each, after one that does not count.
const RUNS: usize = 7;
const TARGET: f64 = 1.15;

struct Job {
    name: &'static str,
    program: &'static str,
    /// Makes the project, plain.
    prepare: &'static str,
    script: &'static str,
}

const JOBS: [Job; 6] = [
    Job {
        name: "cargo build",
        program: "cargo",
        prepare: r#"cargo init -q --vcs none --name heavy; for i in $(seq 60); do
            for k in $(seq 60); do printf 'pub fn g%s(v: &[u64]) -> Vec<String> { v.iter().map(|n| n.to_string()).collect() }\n' $k; done > src/m$i.rs
            printf 'pub fn f%s(n: u64) -> Vec<String> { (0..n).map(|i| format!("{}", i * %s)).collect() }\n' $i $i >> src/m$i.rs
            echo "mod m$i;" >> src/main.rs; done"#,
        script: "rm -rf target && cargo build -q --offline 2>/dev/null",
    },
    Job {
        name: "make",
        program: "cc",
        prepare: r#"printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n' > Makefile
            for i in $(seq 120); do printf '#include <stdio.h>\n#include <stdlib.h>\nint f%s(void) { return printf("%s"); }\n' $i $i > f$i.c; done"#,
        script: "rm -f *.o && make -s -j2",
    },
    Job {
        name: "npm ci",
        program: "npm",
        prepare: r#"echo '{"name":"heavy","version":"1.0.0"}' > package.json; mkdir -p tgz x/package; list=
            for i in $(seq 40); do
            echo "{\"name\":\"p$i\",\"version\":\"1.0.0\"}" > x/package/package.json
            for j in $(seq 20); do echo "module.exports = $j" > x/package/f$j.js; done
            tar czf tgz/p$i.tgz -C x package; list="$list file:tgz/p$i.tgz"; done
            rm -r x; npm install -s --no-audit --no-fund --offline $list"#,
        script: "npm ci -s --no-audit --no-fund --offline",
    },
    Job {
        name: "pytest",
        program: "pytest-3",
        prepare: r#"printf 'import pytest\n@pytest.mark.parametrize("n", range(400))\ndef test_n(n, tmp_path):\n    (tmp_path / "x").write_text(str(n))\n' > test_heavy.py"#,
        script: "/usr/bin/python3 -m pytest -q test_heavy.py | tail -1",
    },
    Job {
        name: "git status of 20,000 files",
        program: "git",
        prepare: r#"for d in $(seq 100); do mkdir d$d; for f in $(seq 200); do echo "$d $f" > d$d/$f; done; done
            git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm x"#,
        script: "for _ in $(seq 20); do touch d1/1; git status --short; done",
    },
    Job {
        name: "rg in 20,000 files",
        program: "rg",
        prepare: r#"for d in $(seq 100); do mkdir d$d; for f in $(seq 200); do echo "needle $d $f" > d$d/$f; done; done"#,
        script: "for _ in $(seq 15); do rg -c 'needle 7 ' | tail -1; done",
    },
];

/// JOBS keeps those whose name holds it.
pub(crate) fn rows() {
    let part = std::env::var("JOBS").unwrap_or_default();
    for job in JOBS.iter().filter(|job| job.name.contains(&part)) {
        for tier in ["A", "B"] {
            let figure = format!("{}, tier {tier}", job.name);
            match measured(job, tier) {
                Some((caged, plain)) => {
                    let baseline = format!("plain {:.0} ms", plain.as_secs_f64() * 1e3);
                    let ratio = caged.as_secs_f64() / plain.as_secs_f64();
                    row(&figure, ratio, "x", TARGET, &baseline);
                }
                None => println!("| {figure} | | <= {TARGET} x | {} is absent | |", job.program),
            }
        }
    }
}

/// Caged and plain, the median of each.
fn measured(job: &Job, tier: &str) -> Option<(Duration, Duration)> {
    let desk = Desk::new();
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", job.program]).output().ok()?;
    if found.stdout.is_empty() {
        return None;
    }
    plain(job.prepare, (&desk.project(), &desk.home()));
    let input = json!({ "command": job.script, "timeout_ms": 600_000 }).to_string();
    let calls = (0..=RUNS)
        .map(|number| Answer::says([call(&format!("toolu_{number}"), "bash", &input)]))
        .chain([Answer::text("done")]);
    let mut answers: Vec<Answer> = calls.collect();
    answers.reverse();
    let answers = Mutex::new(answers);
    let plain_times = Arc::new(Mutex::new(Vec::new()));
    // Before each answer of the model the same is run without a cage: both meet the same machine.
    let (script, project, home) = (job.script, desk.project(), desk.home());
    let times = plain_times.clone();
    let server = Server::answering(move |_, _| {
        times.lock().unwrap().push(plain(script, (&project, &home)));
        answers.lock().unwrap().pop().unwrap()
    });
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier).envs(tool_homes());
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}: {}", job.name, ran.err);
    let seen = server.requests();
    let failed = seen.last().unwrap().body["messages"].to_string();
    assert!(!failed.contains("exit code: 1"), "{}: {failed}", job.name);
    let caged = seen.windows(2).skip(1);
    let caged = caged
        .map(|pair| pair[1].first_byte.saturating_duration_since(pair[0].answered.unwrap()))
        .collect();
    let plain = plain_times.lock().unwrap().split_off(1);
    Some((median(caged), median(plain)))
}

/// The script without a cage.
fn plain(script: &str, (project, home): (&Path, &Path)) -> Duration {
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(project).env("HOME", home).envs(tool_homes());
    command.env_remove("CARGO_TARGET_DIR");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    assert!(command.status().unwrap().success(), "{script}");
    begun.elapsed()
}

/// The directory of cargo of the user who runs this.
fn tool_homes() -> [(&'static str, PathBuf); 2] {
    [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")]
        .map(|(name, usual)| (name, tool_home(name, usual)))
}
