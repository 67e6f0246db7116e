//! The content of each executable, read from the executable itself: no network code outside the
//! provider, the web and MCP's client, no async runtime in workers without need, grammars in one, no test
//! hooks in shipped executables.
#![allow(clippy::unwrap_used)]

use memchr::memmem;
use std::collections::BTreeSet;
use std::fs;

/// The executables of this build, with the crates they must not hold.
const EXECUTABLES: [(&str, &str, &[&str]); 11] = [
    (
        "agentd",
        env!("CARGO_BIN_EXE_agentd"),
        &["reqwest", "rustls", "hyper", "ractor", "tree_sitter"],
    ),
    (
        "agentd-supervisor",
        env!("CARGO_BIN_EXE_agentd-supervisor"),
        &["reqwest", "rustls", "hyper", "grep_searcher", "tree_sitter", "clap_builder"],
    ),
    (
        "agentd-session",
        env!("CARGO_BIN_EXE_agentd-session"),
        &["reqwest", "rustls", "hyper", "tokio", "ractor", "grep_searcher", "tree_sitter"],
    ),
    (
        "agentd-provider",
        env!("CARGO_BIN_EXE_agentd-provider"),
        &["ractor", "grep_searcher", "tree_sitter"],
    ),
    (
        "agentd-broker",
        env!("CARGO_BIN_EXE_agentd-broker"),
        &["reqwest", "rustls", "hyper", "tokio", "ractor", "grep_searcher", "tree_sitter"],
    ),
    (
        "agentd-store",
        env!("CARGO_BIN_EXE_agentd-store"),
        &["reqwest", "rustls", "hyper", "tokio", "ractor", "grep_searcher", "tree_sitter"],
    ),
    (
        "agentd-tool",
        env!("CARGO_BIN_EXE_agentd-tool"),
        &["reqwest", "rustls", "hyper", "tokio", "ractor", "tree_sitter"],
    ),
    (
        "agentd-code",
        env!("CARGO_BIN_EXE_agentd-code"),
        &["reqwest", "rustls", "hyper", "tokio", "ractor"],
    ),
    ("agentd-web", env!("CARGO_BIN_EXE_agentd-web"), &["ractor", "tree_sitter"]),
    ("agentd-mcp", env!("CARGO_BIN_EXE_agentd-mcp"), &["ractor", "tree_sitter"]),
    ("agentd-fleet", env!("CARGO_BIN_EXE_agentd-fleet"), &["ractor", "tree_sitter"]),
];

/// Workers that run no tool, with the external crates that they link at most: fewer are fewer to trust.
const LINKED: [(&str, usize); 3] =
    [("broker-worker", 70), ("session-worker", 66), ("supervisor-worker", 126)];

#[test]
fn workers_that_run_no_tool_link_few_crates() {
    for (worker, most) in LINKED {
        let tree = ["tree", "-p", worker, "-e", "normal", "--prefix", "none", "--format", "{p}"];
        let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
        let ran = std::process::Command::new(cargo)
            .args(tree)
            .args(["--no-dedupe", "--locked", "--offline"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let tree = String::from_utf8(ran.stdout).unwrap();
        let (own, others): (BTreeSet<&str>, BTreeSet<&str>) =
            tree.lines().filter(|line| !line.is_empty()).partition(|line| line.contains("(/"));
        assert!(own.iter().any(|name| name.starts_with("tool-specs ")), "{worker}: {own:?}");
        assert!(!own.iter().any(|name| name.starts_with("tools ")), "{worker} links the tools");
        assert!(others.len() <= most, "{worker} links {} crates: {others:#?}", others.len());
        assert!(others.len() + 5 > most, "{worker}: the limit can be {}", others.len());
    }
}

fn holds(executable: &[u8], name: &str) -> bool {
    // A crate shows as the path of its sources in panic messages and as a part of symbols.
    let symbol = format!("{}{name}", name.len());
    memmem::find(executable, symbol.as_bytes()).is_some()
}

fn read(path: &str) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}; build with `cargo build`"))
}

#[test]
fn no_executable_holds_what_it_must_not() {
    for (name, path, forbidden) in EXECUTABLES {
        let executable = read(path);
        for crate_name in forbidden {
            assert!(!holds(&executable, crate_name), "{name} links {crate_name}");
        }
    }
}

/// What a person looks at is in the executable that a person starts.
#[test]
fn the_full_screen_view_stands_in_one_executable() {
    for (name, path, _) in EXECUTABLES.into_iter().filter(|(name, ..)| *name != "agentd") {
        let executable = read(path);
        for crate_name in ["ratatui_core", "syntect", "crossterm", "pulldown_cmark"] {
            // The outline of a Markdown file needs no screen.
            let outlines = (name, crate_name) == ("agentd-code", "pulldown_cmark");
            assert!(outlines || !holds(&executable, crate_name), "{name} links {crate_name}");
        }
    }
}

/// The same search finds linked code. Without this control the test above would pass on stripped
/// files.
#[test]
fn the_search_finds_what_is_there() {
    for (name, crate_name) in [
        ("agentd-provider", "reqwest"),
        ("agentd-provider", "rustls"),
        ("agentd-supervisor", "tokio"),
        ("agentd-supervisor", "ractor"),
        ("agentd-tool", "grep_searcher"),
        ("agentd-store", "rusqlite"),
        ("agentd-code", "tree_sitter"),
        ("agentd-web", "hyper"),
        ("agentd-web", "rustls"),
        ("agentd-mcp", "rustls"),
        ("agentd", "clap_builder"),
        ("agentd", "syntect"),
        ("agentd", "ratatui_core"),
    ] {
        let (_, path, _) = EXECUTABLES.iter().find(|(known, ..)| *known == name).unwrap();
        assert!(holds(&read(path), crate_name), "{name} should link {crate_name}");
    }
}

/// Only `agentd-mcp` speaks the protocol of MCP servers.
#[test]
fn the_protocol_of_servers_stands_in_one_executable() {
    for (name, path, _) in EXECUTABLES {
        assert_eq!(holds(&read(path), "rmcp"), name == "agentd-mcp", "{name}");
    }
}

/// Only `agentd-fleet` speaks with a fleet's database.
#[test]
fn the_database_client_stands_in_one_executable() {
    for (name, path, _) in EXECUTABLES {
        assert_eq!(holds(&read(path), "tokio_postgres"), name == "agentd-fleet", "{name}");
    }
}

/// The grammars are C code, which leaves no name of a crate: each shows by the function that gives it.
#[test]
fn the_grammars_stand_in_one_executable() {
    for (name, path, _) in EXECUTABLES {
        let executable = read(path);
        for grammar in ["rust", "python", "typescript", "bash"] {
            let function = format!("tree_sitter_{grammar}");
            let found = memmem::find(&executable, function.as_bytes()).is_some();
            assert_eq!(found, name == "agentd-code", "{name} and the grammar of {grammar}");
        }
    }
}

#[test]
fn shipped_executables_have_no_test_hooks() {
    for (name, path, _) in EXECUTABLES {
        let executable = read(path);
        let found = memmem::find(&executable, b"agentd_hook:").is_some();
        assert!(!found, "{name} was built with --cfg agentd_hooks");
    }
}

#[test]
fn a_worker_started_by_hand_says_so() {
    for (name, path, _) in EXECUTABLES.into_iter().filter(|(name, ..)| *name != "agentd") {
        let ran =
            std::process::Command::new(path).stdin(std::process::Stdio::null()).output().unwrap();
        let words = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(!ran.status.success(), "{name} started by hand must fail");
        assert!(words.contains("not by hand"), "{name} says: {words}");
    }
}
