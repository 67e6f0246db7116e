//! Rust is built in a cage with the tool chain of the user who runs these tests: as root, and by
//! `tests/as-user.sh` as a user whose home has the tool chain.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, needs, tool_home};
use serde_json::json;

/// Runs a script as the model's only call. Returns its output, after it ended with 0 and without a
/// refusal.
fn builds(desk: &Desk, tier: &str, script: &str) -> String {
    let input = json!({ "command": script, "timeout_ms": 300_000 }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier);
    command.env("CARGO_HOME", tool_home("CARGO_HOME", ".cargo"));
    command.env("RUSTUP_HOME", tool_home("RUSTUP_HOME", ".rustup"));
    let ran = crate::support::run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = server.requests()[1].body["messages"].to_string();
    let ended = desk.ended(1);
    assert_eq!(ended["outcome"]["code"], 0, "tier {tier}: {body}");
    assert_eq!(ended["enforced"]["tier"], tier, "{ended:#}");
    assert_eq!(ended["refusals"], json!([]), "tier {tier}: {body}");
    body
}

fn package(name: &str, more: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}")
}

#[test]
fn a_rust_package_is_built_tested_and_run() {
    needs("cargo");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("Cargo.toml", &package("one", ""));
        desk.write(
            "src/main.rs",
            "fn main() { println!(\"the answer: {}\", 6 * seven()); }\nfn seven() -> u32 { 7 }\n\
             #[test]\nfn is_seven() { assert_eq!(seven(), 7); }\n",
        );
        let body = builds(&desk, tier, "cargo run -q --offline && cargo test -q --offline");
        assert!(body.contains("the answer: 42") && body.contains("1 passed"), "{tier}: {body}");
        assert!(desk.project().join("target/debug/one").is_file(), "{tier}");
    }
}

#[test]
fn a_rust_package_is_built_with_another_beside_it_and_a_script_of_its_own() {
    needs("cargo");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let dependency = "[dependencies]\ntwice = { path = \"../twice\" }\n";
        desk.write("one/Cargo.toml", &package("one", dependency));
        // A build script is a program that cargo runs: it writes a file that the package includes.
        desk.write(
            "one/build.rs",
            "fn main() { let out = std::env::var(\"OUT_DIR\").unwrap();\n\
             std::fs::write(out + \"/made\", \"21\").unwrap(); }\n",
        );
        desk.write(
            "one/src/main.rs",
            "fn main() { let made = include_str!(concat!(env!(\"OUT_DIR\"), \"/made\"));\n\
             println!(\"the answer: {}\", twice::twice(made.parse().unwrap())); }\n",
        );
        desk.write("twice/Cargo.toml", &package("twice", ""));
        desk.write("twice/src/lib.rs", "pub fn twice(n: u32) -> u32 { 2 * n }\n");
        let body = builds(&desk, tier, "cd one && cargo run -q --offline");
        assert!(body.contains("the answer: 42"), "{tier}: {body}");
    }
}
