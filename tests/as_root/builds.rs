//! Builds by the cargo of this machine from packages fetched before, which only root can read here.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, needs, tool_home};
use serde_json::json;

// The dependency is one of this workspace, so its source is there once that is built.

#[test]
fn cargo_builds_offline_with_the_person_s_caches_and_is_refused_nothing() {
    needs("cargo");
    let (cargo, rustup) = (tool_home("CARGO_HOME", ".cargo"), tool_home("RUSTUP_HOME", ".rustup"));
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
        let ran = crate::support::run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let body = server.requests()[1].body["messages"].to_string();
        let ended = desk.ended(1);
        assert_eq!(ended["outcome"]["code"], 0, "tier {tier}: {body}");
        assert!(body.contains("built"), "tier {tier}: {body}");
        assert_eq!(ended["refusals"], json!([]), "tier {tier}: {body}");
    }
}

/// A missing lock, and one for another version: cargo writes another beside links to the project's files.
#[test]
fn a_verifier_that_needs_another_lock_writes_it_in_a_copy() {
    needs("cargo");
    let (cargo, rustup) = (tool_home("CARGO_HOME", ".cargo"), tool_home("RUSTUP_HOME", ".rustup"));
    let old = "version = 4\n\n[[package]]\nname = \"one\"\nversion = \"0.0.9\"\n";
    let fails = "1 error, exit code 101\nerror[E0308]: mismatched types";
    let rows = [
        (
            "[workspace]\nmembers = [\"one\", \"two\"]\nresolver = \"3\"\n",
            "one",
            None,
            "\"x\"",
            fails,
        ),
        (
            "[workspace]\nmembers = [\"o*\", \"two\"]\nresolver = \"3\"\n",
            "one",
            Some(old),
            "2",
            "no errors",
        ),
        ("", "", Some(old), "\"x\"", fails),
    ];
    for (workspace, dir, lock, body, told) in rows {
        let desk = Desk::new();
        let place = |file: &str| std::path::Path::new(dir).join(file).to_str().unwrap().to_owned();
        let package = |name: &str, more: &str| {
            format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}")
        };
        let mut more = "";
        if !workspace.is_empty() {
            more = "[dependencies]\ntwo = { path = \"../two\" }\n";
            desk.write("Cargo.toml", workspace);
            desk.write("two/Cargo.toml", &package("two", ""));
            desk.write("two/src/lib.rs", "pub fn two() -> u32 { 2 }\n");
        }
        if let Some(lock) = lock {
            desk.write("Cargo.lock", lock);
        }
        desk.write(&place("Cargo.toml"), &package("one", more));
        desk.write(&place("src/lib.rs"), "#![allow(dead_code)]\nfn one() -> u32 { 1 }\n");
        let new = format!("{{ {body} }}");
        let edit = json!({"path": place("src/lib.rs"), "old_string": "{ 1 }", "new_string": new});
        let calls = [call("toolu_1", "edit", &edit.to_string())];
        let server = Server::scripted([Answer::says(calls), Answer::text("done")]);
        let flags = ["-p", "x", "--permission-mode", "accept-edits", "--trust-project"];
        let mut command = desk.with_server(&server, &flags);
        command.env("CARGO_HOME", &cargo).env("RUSTUP_HOME", &rustup);
        let ran = crate::support::run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let messages = &server.requests()[1].body["messages"];
        let result = &messages.as_array().unwrap().last().unwrap()["content"][0];
        let text = result["content"].as_str().unwrap_or_default();
        assert!(text.contains(told), "{told}: {text}");
        assert!(text.contains("Cargo.lock was written in a copy"), "{text}");
        let kept = desk.project().join("Cargo.lock");
        assert_eq!(std::fs::read_to_string(kept).ok().as_deref(), lock, "the project's own stays");
        assert!(!desk.project().join("target").exists());
    }
}

#[test]
fn an_edit_that_does_not_compile_is_told_by_cargo_and_leaves_nothing_in_the_project() {
    needs("cargo");
    let (cargo, rustup) = (tool_home("CARGO_HOME", ".cargo"), tool_home("RUSTUP_HOME", ".rustup"));
    let package = |more: &str| {
        format!("[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}")
    };
    // As cargo writes it: with another it would write its own in a copy.
    let lock = "# This file is automatically @generated by Cargo.\n# It is not intended for manual \
                editing.\nversion = 4\n\n[[package]]\nname = \"one\"\nversion = \"0.1.0\"\n";
    let fails = "1 error, exit code 101\nerror[E0308]: mismatched types";
    let missing = "[dependencies]\nno-such-crate-9 = \"1\"\n";
    for (more, body, told) in
        [("", "\"two\"", fails), ("", "2", "no errors"), (missing, "2", "verifier: unavailable (")]
    {
        let desk = Desk::new();
        desk.write("Cargo.toml", "[workspace]\nmembers = [\"one\"]\nresolver = \"3\"\n");
        desk.write("Cargo.lock", lock);
        desk.write("one/Cargo.toml", &package(more));
        desk.write("one/src/lib.rs", "#![allow(dead_code)]\nfn one() -> u32 { 1 }\n");
        let edit = json!({"path": "one/src/lib.rs", "old_string": "{ 1 }", "new_string": format!("{{ {body} }}")});
        let calls = [call("toolu_1", "edit", &edit.to_string())];
        let server = Server::scripted([Answer::says(calls), Answer::text("done")]);
        let flags = ["-p", "x", "--permission-mode", "accept-edits", "--trust-project"];
        let mut command = desk.with_server(&server, &flags);
        command.env("CARGO_HOME", &cargo).env("RUSTUP_HOME", &rustup);
        let ran = crate::support::run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let messages = &server.requests()[1].body["messages"];
        let result = &messages.as_array().unwrap().last().unwrap()["content"][0];
        assert!(result["content"].as_str().unwrap_or_default().contains(told), "{told}: {result}");
        assert!(result["is_error"] != true, "{result}");
        assert!(!desk.project().join("target").exists() && desk.read("Cargo.lock") == lock);
    }
}

#[test]
fn rust_is_put_in_form_by_its_own_formatter() {
    needs("rustfmt");
    let (cargo, rustup) = (tool_home("CARGO_HOME", ".cargo"), tool_home("RUSTUP_HOME", ".rustup"));
    let desk = Desk::new();
    let commands =
        "[verify]\nmode = \"off\"\n[format]\ncommands = [\"*.rs: rustfmt --edition 2024\"]\n";
    desk.write(".agentd/config.toml", commands);
    let round = |content: &str| {
        let write = json!({"path": "src/a.rs", "content": content}).to_string();
        let calls = [call("toolu_1", "write", &write)];
        let server = Server::scripted([Answer::says(calls), Answer::text("done")]);
        let flags = ["-p", "x", "--permission-mode", "accept-edits", "--trust-project"];
        let mut command = desk.with_server(&server, &flags);
        command.env("CARGO_HOME", &cargo).env("RUSTUP_HOME", &rustup);
        let ran = crate::support::run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        server.requests()[1].body["messages"].to_string()
    };
    let told = round("fn  main( ) {let a=1;}\n");
    assert_eq!(desk.read("src/a.rs"), "fn main() {\n    let a = 1;\n}\n", "{told}");
    // A file that the formatter cannot parse stays, and the result has the error's first words.
    let told = round("fn main( {\n");
    assert!(told.contains("the file was not formatted") && told.contains("error:"), "{told}");
    assert_eq!(desk.read("src/a.rs"), "fn main( {\n");
}
