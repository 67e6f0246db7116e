//! A build by the cargo of this machine, whose homes only root can read here.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use std::path::PathBuf;
use support::anthropic::{Answer, Server, call};
use support::{Desk, needs};

// The dependency is one of this workspace, so its source is there once that is built.

/// Where cargo and rustup keep their things on this machine.
fn home(variable: &str, usual: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(usual),
        PathBuf::from,
    )
}

#[test]
fn cargo_builds_offline_with_the_person_s_caches_and_is_refused_nothing() {
    needs("cargo");
    let (cargo, rustup) = (home("CARGO_HOME", ".cargo"), home("RUSTUP_HOME", ".rustup"));
    let package = "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                   [dependencies]\ncfg-if = \"1\"\n";
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("Cargo.toml", package);
        desk.write("src/main.rs", "fn main() { println!(\"built\"); }\n");
        let script = json!({ "command": "cargo run -q --offline", "timeout_ms": 300_000 });
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &script.to_string())]),
            Answer::text("done"),
        ]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.env("AGENTD_SANDBOX_TIER", tier);
        command.env("CARGO_HOME", &cargo).env("RUSTUP_HOME", &rustup);
        let ran = support::run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let body = server.requests()[1].body["messages"].to_string();
        let ended = desk.ended(1);
        assert_eq!(ended["outcome"]["code"], 0, "tier {tier}: {body}");
        assert!(body.contains("built"), "tier {tier}: {body}");
        assert_eq!(ended["refusals"], json!([]), "tier {tier}: {body}");
    }
}
