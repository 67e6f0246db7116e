//! The bounds of a call, each with an outcome of its own, and a twin just below it that passes.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, needs, run};
use serde_json::{Value, json};

const TIERS: [&str; 2] = ["A", "B"];

/// Outcome of one command under bounds.
struct Bounded {
    /// The outcome in the record.
    outcome: Value,
    /// The result that the model got.
    words: String,
}

/// Runs a command in this tier, with these settings of the person.
fn bounded(tier: &str, settings: &str, command: &str) -> Bounded {
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, settings).unwrap();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", &json!({ "command": command }).to_string())]),
        Answer::text("done"),
    ]);
    let mut agentd = desk.with_server(&server, &["-p", "do it", "--permission-mode", "auto"]);
    agentd.env("AGENTD_SANDBOX_TIER", tier);
    let ran = run(agentd);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ended = desk.ended(1);
    assert_eq!(ended["enforced"]["tier"], tier, "{ended:#}");
    let words = server.requests()[1].body["messages"].to_string();
    println!("tier {tier}, {settings}: {}", ended["outcome"]);
    Bounded { outcome: ended["outcome"].clone(), words }
}

#[test]
fn a_memory_hog_runs_out_of_memory() {
    needs("python3");
    let hog = |mib: u32| {
        format!(
            "python3 -c 'import time; kept = b\"x\" * ({mib} << 20); time.sleep(1); print(\"kept\")'"
        )
    };
    for tier in TIERS {
        let settings = "sandbox.limits.memory_bytes = 200000000";
        let over = bounded(tier, settings, &hog(400));
        assert_eq!(over.outcome["how"], "out_of_memory", "{}", over.words);
        assert!(over.words.contains("sandbox.limits.memory_bytes"), "{}", over.words);
        let below = bounded(tier, settings, &hog(120));
        assert_eq!(below.outcome, json!({"how": "exited", "code": 0}), "{}", below.words);
    }
}

#[test]
fn a_fork_bomb_ends_at_the_bound_of_processes() {
    let settings = "sandbox.limits.processes = 150";
    for tier in TIERS {
        let bomb = "bomb() { bomb & bomb & wait; }; bomb 2>/dev/null; sleep 20";
        let over = bounded(tier, settings, bomb);
        assert_eq!(over.outcome["what"], "the process limit", "{}", over.words);
        assert!(over.words.contains("sandbox.limits.processes"), "{}", over.words);
        let few = "n=0; while [ $n -lt 130 ]; do sleep 1 & n=$((n+1)); done; wait";
        let below = bounded(tier, settings, few);
        assert_eq!(below.outcome, json!({"how": "exited", "code": 0}), "{}", below.words);
    }
}

#[test]
fn processor_time_ends_at_its_bound() {
    let settings = "sandbox.limits.cpu_seconds = 1";
    // By its own account, in hundredths of a second, so that a slow machine uses no more.
    let half = "while read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user system _ < /proc/$$/stat \
                && [ $((user + system)) -lt 50 ]; do :; done";
    for tier in TIERS {
        let over = bounded(tier, settings, "while :; do :; done");
        assert_eq!(over.outcome["what"], "the CPU time limit", "{}", over.words);
        assert!(over.words.contains("sandbox.limits.cpu_seconds"), "{}", over.words);
        let below = bounded(tier, settings, half);
        assert_eq!(below.outcome, json!({"how": "exited", "code": 0}), "{}", below.words);
    }
}

#[test]
fn a_file_ends_at_the_bound_of_its_size() {
    let settings = "sandbox.limits.file_bytes = 100000";
    for tier in TIERS {
        let over = bounded(tier, settings, "exec head -c 200000 /dev/zero > big");
        assert_eq!(over.outcome["what"], "the file size limit", "{}", over.words);
        let under_a_shell = bounded(tier, settings, "head -c 200000 /dev/zero > big; exit $?");
        assert_eq!(under_a_shell.outcome, json!({"how": "exited", "code": 153}));
        for words in [&over.words, &under_a_shell.words] {
            assert!(words.contains("sandbox.limits.file_bytes"), "{words}");
        }
        let below = bounded(tier, settings, "head -c 90000 /dev/zero > big");
        assert_eq!(below.outcome, json!({"how": "exited", "code": 0}), "{}", below.words);
    }
}

#[test]
fn open_files_are_refused_to_the_program_above_their_bound() {
    needs("python3");
    let settings = "sandbox.limits.open_files = 50";
    let open = |count: u32| {
        format!(
            "python3 -c 'kept = [open(\"/dev/null\") for _ in range({count})]; print(\"kept\")'"
        )
    };
    for tier in TIERS {
        let over = bounded(tier, settings, &open(60));
        assert_eq!(over.outcome, json!({"how": "exited", "code": 1}));
        assert!(over.words.contains("Too many open files"), "{}", over.words);
        let below = bounded(tier, settings, &open(40));
        assert_eq!(below.outcome, json!({"how": "exited", "code": 0}), "{}", below.words);
    }
}

#[test]
fn two_gib_of_output_are_cut_and_counted() {
    for tier in TIERS {
        let flood = "echo first; head -c 2147483648 /dev/zero | tr '\\0' x; echo last";
        let over = bounded(tier, "", flood);
        assert_eq!(over.outcome, json!({"how": "exited", "code": 0}), "{}", over.words);
        assert!(over.words.contains("first") && over.words.contains("last"), "{}", over.words);
        assert!(over.words.contains("not shown"), "{}", over.words);
        let below = bounded(tier, "", "head -c 2000 /dev/zero | tr '\\0' x");
        assert!(below.words.contains(&"x".repeat(2000)), "{}", below.words);
    }
}

#[test]
fn an_endless_sleep_runs_out_of_time() {
    for tier in TIERS {
        let over = bounded(tier, "tools.timeout_ms = 1000", "sleep 300");
        assert_eq!(over.outcome["how"], "timed_out", "{}", over.words);
        let below = bounded(tier, "tools.timeout_ms = 10000", "sleep 0.8");
        assert_eq!(below.outcome, json!({"how": "exited", "code": 0}), "{}", below.words);
    }
}
