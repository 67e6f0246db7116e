//! The rules of the repository that a program can check: floors, front sentences, the places of
//! unsafe code, of new processes and of the encoder, and no unused message of a wire.
#![allow(clippy::unwrap_used)]

use crate::source::{all_sources, is_test, root, shipped, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[test]
fn every_file_opens_with_a_sentence() {
    let silent: Vec<_> = all_sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(name, _)| name)
        .collect();
    assert!(silent.is_empty(), "these files do not open with `//!`: {silent:#?}");
}

#[test]
fn nothing_is_left_for_later_in_shipped_code() {
    let marks = ["todo!(", "unimplemented!(", "// TODO", "FIXME", "XXX:", "dbg!("];
    for (name, text) in all_sources().iter().filter(|(name, _)| !is_test(name)) {
        for mark in marks {
            assert!(!text.contains(mark), "{name} holds {mark}");
        }
    }
}

/// The allowed dependencies of each crate: lower floors, and the neighbours named here with their
/// reason.
#[test]
fn the_floors_hold() {
    let floors: BTreeMap<&str, u8> = [
        ("protocol", 0),
        ("ipc", 0),
        ("journal", 0),
        ("prompts", 0),
        ("config", 1),
        ("sandbox", 1),
        ("tool-specs", 1),
        ("tools", 1),
        ("code", 1),
        ("provider", 1),
        ("approval", 1),
        ("session", 1),
        ("store", 1),
        ("web", 1),
        ("client", 1),
        ("terminal", 1),
        ("acp", 1),
        ("sdk", 1),
        ("fleet", 1),
        ("call", 2),
        ("launch", 2),
        ("settings-copies", 2),
        ("setup", 2),
        ("supervise", 3),
    ]
    .into();
    // The wires between processes of one build use the words of records; no record uses a wire. ipc carries
    // protocol's messages; prompts cleans names as all do, by protocol's `hidden`; tools run their commands in sandbox's cage. The engines that
    // read syntax trees and web pages are behind the types of tools; that of the web leaves the network by
    // sandbox's filter. Rules match the declarations
    // of each tool, so that a new tool needs no second table, and sandbox's names of files that a program runs
    // later. Only runners run a tool; the others know no more than its declaration. The full-screen view, editors and programs show
    // the model of client. The settings of a session include the person's, as settings-copies left them. The end of a
    // process is an input of the machine in call.
    let neighbours = [
        ("protocol", "journal"),
        ("ipc", "protocol"),
        ("prompts", "protocol"),
        ("tools", "sandbox"),
        ("tools", "tool-specs"),
        ("code", "tools"),
        ("web", "tools"),
        ("web", "tool-specs"),
        ("web", "sandbox"),
        ("approval", "sandbox"),
        ("approval", "tool-specs"),
        ("terminal", "client"),
        ("acp", "client"),
        ("sdk", "client"),
        ("sdk", "tool-specs"),
        ("setup", "settings-copies"),
        ("launch", "call"),
    ];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let floor = *floors.get(name.as_str()).unwrap_or_else(|| panic!("{name} has no floor"));
        for dependency in dependencies(&root().join("crates").join(&name)) {
            let is_actors = name == "supervise";
            assert!(is_actors || dependency != "ractor", "{name} has actors");
            assert!(is_actors || dependency != "launch", "{name} could make grants");
            let runs_tools = ["code", "web"].contains(&name.as_str());
            assert!(runs_tools || dependency != "tools", "{name} links the tools' work");
            let Some(&below) = floors.get(dependency.as_str()) else { continue };
            let allowed = below < floor || neighbours.contains(&(&name, &dependency));
            assert!(allowed, "{name} (floor {floor}) depends on {dependency} (floor {below})");
        }
    }
    // Floor 4: each worker is a program of its own, which no other program and no crate links.
    for entry in fs::read_dir(root().join("workers")).unwrap() {
        let worker = entry.unwrap().file_name().into_string().unwrap();
        for dependency in dependencies(&root().join("workers").join(&worker)) {
            // `code`, `mcp` and `web` serve their tools by the runner's own loop.
            let is_runner =
                dependency == "tool-worker" && ["code", "mcp", "web"].contains(&worker.as_str());
            let is_worker = dependency.ends_with("-worker");
            assert!(is_runner || !is_worker, "workers/{worker} depends on {dependency}");
            assert!(dependency != "launch", "workers/{worker} could make grants");
            let runs_tools = ["code", "mcp", "tool", "web"].contains(&worker.as_str());
            assert!(runs_tools || dependency != "tools", "workers/{worker} links the tools' work");
        }
    }
    for name in floors.keys() {
        for dependency in dependencies(&root().join("crates").join(name)) {
            assert!(!dependency.ends_with("-worker"), "crates/{name} depends on {dependency}");
        }
    }
}

/// The names under `[dependencies]`; dependencies of tests do not count.
fn dependencies(package: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
    let section = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    section
        .lines()
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// Everything that a crate of this workspace links, through crates of the workspace and others.
fn linked(name: &str) -> BTreeSet<String> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let value = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    let mut below: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let name = package.lines().find(|line| line.starts_with("name = ")).map(value).unwrap();
        let listed = package.lines().filter(|line| line.starts_with(" \""));
        // A version follows where there are several.
        let listed = listed.map(|line| value(line).split(' ').next().unwrap().to_owned());
        below.entry(name).or_default().extend(listed);
    }
    let (mut found, mut left) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(next) = left.pop() {
        let own = root().join("crates").join(&next);
        // The lock file has the dependencies of tests too.
        let more = if own.is_dir() { dependencies(&own) } else { below[&next].clone() };
        left.extend(more.into_iter().filter(|name| found.insert(name.clone())));
    }
    found
}

#[test]
fn a_call_is_decided_without_a_runtime_and_without_actors() {
    let found = linked("call");
    assert!(found.contains("protocol") && found.contains("serde"), "{found:?}");
    for name in ["tokio", "ractor", "supervise", "ipc"] {
        assert!(!found.contains(name), "call links {name}");
        assert!(linked("supervise").contains(name) || name == "supervise", "the control");
    }
}

#[test]
fn a_process_is_watched_without_actors_and_without_the_settings_of_a_session() {
    let found = linked("launch");
    assert!(found.contains("tokio") && found.contains("call"), "{found:?}");
    for name in ["ractor", "setup", "supervise"] {
        assert!(!found.contains(name), "launch links {name}");
    }
}

/// False inside a longer name: `RunningCommand::new(` starts no process.
fn is_word_start(code: &str, at: usize) -> bool {
    !code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}

#[test]
fn few_files_start_processes() {
    // `installer.rs` runs npm and pip for `agentd mcp install`: their scripts are off, so that no code of a
    // package runs outside a cage. `browser.rs` opens the person's browser, for a log-in that the person
    // asked for. `run.rs` starts `agentd` for a client of `agentd mcp serve`. A fleet's worker starts `agentd`
    // and `git`. `claude.rs` becomes `agentd sdk`, for programs that start `agentd-claude`.
    let allowed = [
        "crates/launch/src/spawner.rs",
        "crates/client/src/spawn.rs",
        "crates/client/src/installer.rs",
        "crates/client/src/fleet_programs.rs",
        "workers/mcp/src/browser.rs",
        "workers/mcp/src/serve/run.rs",
        "workers/fleet/src/run.rs",
        "workers/agentd/claude.rs",
    ];
    for (name, text) in all_sources().iter().filter(|(name, _)| !is_test(name)) {
        let code = shipped(text);
        let starts = ["Command::new(", "posix_spawn", "execve(", "libc::fork", "unistd::fork"]
            .into_iter()
            .find(|word| code.match_indices(word).any(|(at, _)| is_word_start(&code, at)));
        if let Some(word) = starts {
            let in_sandbox = name.starts_with("crates/sandbox/src/");
            assert!(in_sandbox || allowed.contains(&name.as_str()), "{name} uses {word}");
        }
    }
}

/// The crate `setup` decides; the supervisor does.
#[test]
fn the_settings_of_a_session_are_only_read() {
    for (name, text) in sources("crates/setup/src") {
        let code = shipped(&text);
        let changes = [
            "fs::write",
            "create(",
            "create_dir",
            "create_new(",
            "DirBuilder",
            "remove_file",
            "remove_dir",
            "fs::rename(",
            "symlink(",
            "set_permissions",
            "set_modified",
            ".write(true)",
            "connect(",
        ];
        let found = changes.into_iter().find(|word| code.contains(word));
        assert!(found.is_none(), "{name} uses {found:?}");
    }
}

/// The constructors of `Grant`, each with the file that may use it.
const GRANTS: [(&str, &str); 7] = [
    ("of", "crates/supervise/src/call_actor.rs"),
    ("probe", "crates/supervise/src/call_actor.rs"),
    ("proxy", "crates/supervise/src/call_actor/runner_process.rs"),
    ("reserve", "crates/supervise/src/reserve_actor.rs"),
    ("repair", "crates/launch/src/protected_restore.rs"),
    ("worktree", "crates/launch/src/git_cage.rs"),
    ("certificate", "crates/launch/src/certificate.rs"),
];

#[test]
fn a_tool_starts_from_a_grant_only() {
    let own = "crates/launch/src/grant.rs";
    let flat = |name: &str| {
        let text = fs::read_to_string(root().join(name)).unwrap();
        shipped(&text).split_whitespace().collect::<String>()
    };
    let asks = "pub(crate)asyncfnspawn_runner(&self,grant:&Grant,";
    assert!(flat("crates/launch/src/spawner.rs").contains(asks), "the spawner asks for a grant");
    let grant = flat(own);
    let fields = "#[derive(Debug,Clone,PartialEq,Eq)]pubstructGrant{confinement:Confinement,\
                  purpose:RunnerPurpose,call:Option<CallId>,}";
    assert!(grant.contains(fields), "only its own functions make a grant");
    assert!(!grant.contains("forGrant"), "no trait makes a grant");
    let makers: BTreeSet<&str> = grant
        .split("pub")
        .filter_map(|item| item.split('{').next()?.split_once("fn"))
        .filter(|(_, signature)| signature.contains("Self"))
        .filter_map(|(_, signature)| signature.split('(').next())
        .collect();
    assert_eq!(makers, GRANTS.map(|(maker, _)| maker).into(), "each has a file that may use it");
    for (name, text) in all_sources().iter().filter(|(name, _)| name != own && !is_test(name)) {
        let code = shipped(text);
        assert!(!code.contains("Grant as "), "{name} hides what it makes");
        for (at, _) in code.match_indices("Grant::").filter(|(at, _)| is_word_start(&code, *at)) {
            let rest = &code[at + "Grant::".len()..];
            let maker = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            assert!(GRANTS.contains(&(maker, name)), "{name} uses Grant::{maker}");
        }
        let is_proxied = !code.contains(".proxy()") || GRANTS.contains(&("proxy", name));
        assert!(is_proxied, "{name} makes a grant for a proxy");
        let is_supervisor =
            ["crates/launch/", "crates/supervise/"].iter().any(|it| name.starts_with(it));
        // `Grant::go` compares the call.
        assert!(!is_supervisor || !code.contains("ToTool::Go("), "{name} makes a `Go` of its own");
    }
}

#[test]
fn unsafe_code_stands_in_the_sandbox_and_one_file_of_ipc() {
    for (name, text) in all_sources().iter().filter(|(name, _)| !is_test(name)) {
        let is_unsafe = shipped(text).contains("unsafe {") || shipped(text).contains("unsafe fn");
        let allowed = name.starts_with("crates/sandbox/") || name == "crates/ipc/src/fd.rs";
        assert!(!is_unsafe || allowed, "{name} holds unsafe code");
    }
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let package = entry.unwrap().path();
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        let own = package.ends_with("sandbox") || package.ends_with("ipc");
        assert!(own || manifest.contains("[lints]\nworkspace = true"), "{package:?} has own lints");
    }
}

#[test]
fn the_encoder_is_imported_in_one_file() {
    // The build id counts the files from which words can get onto a wire: those of `protocol`, and of this
    // directory of `journal`, in which alone the encoder has a name.
    let words = "crates/journal/src/values/mod.rs";
    let text = fs::read_to_string(root().join(words)).unwrap();
    assert!(text.contains("\nuse bincode::{Decode, Encode};\n"), "{words} hands the encoder out");
    let allowed = ["crates/ipc/src/codec.rs", "crates/protocol/src/lib.rs", words];
    for (name, text) in all_sources().iter().filter(|(name, _)| !is_test(name)) {
        let names_it = shipped(text).contains("bincode");
        assert!(!names_it || allowed.contains(&name.as_str()), "{name} names bincode");
    }
}

#[test]
fn few_files_open_connections() {
    for (name, text) in all_sources().iter().filter(|(name, _)| !is_test(name)) {
        let code = shipped(text);
        let opens = [
            "TcpStream::connect",
            "Client::builder",
            "UdpSocket::bind",
            "tokio_postgres::Config",
            "MakeRustlsConnect::new",
        ]
        .into_iter()
        .find(|word| code.contains(word));
        // The demo listens, to show that no connection comes, and connects once, to show that it
        // could. The attempts of `doctor` do the same. Builds with hooks alone have the decoder that
        // was taken over.
        let allowed = name == "crates/provider/src/http.rs"
            || name == "crates/tools/src/files/taken_over.rs"
            || name == "crates/web/src/dial.rs"
            || name == "crates/web/src/fetch.rs"
            || name == "workers/agentd/src/open_port.rs"
            || name == "workers/mcp/src/http_client.rs"
            || name == "workers/fleet/src/database.rs"
            // It prepares the TLS for `database.rs`, and opens none.
            || name == "workers/fleet/src/tls.rs"
            || name.starts_with("workers/agentd/src/demo")
            || name.starts_with("crates/sandbox/src/self_test/")
            || name.starts_with("crates/sandbox/src/notify/");
        assert!(opens.is_none() || allowed, "{name} uses {opens:?}");
        let stores = code.contains("object_store::") && name != "workers/fleet/src/objects.rs";
        assert!(!stores, "{name} uses an object store");
    }
}

#[test]
fn no_word_of_a_wire_is_dead() {
    let users: String = all_sources()
        .into_iter()
        .filter(|(name, _)| !is_test(name) && !name.starts_with("crates/protocol/"))
        .map(|(_, text)| text)
        .collect();
    for wire in ["session", "provider", "broker", "store", "tool", "client", "fleet"] {
        let text =
            fs::read_to_string(root().join(format!("crates/protocol/src/{wire}.rs"))).unwrap();
        for (name, variant) in variants(&text) {
            let used = users.contains(&format!("{name}::{variant}"));
            assert!(used, "{name}::{variant} is declared and never used");
        }
    }
}

/// The variants of the enums `To…` and `From…`.
fn variants(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for part in text.split("pub enum ").skip(1) {
        let Some((name, rest)) = part.split_once(" {\n") else { continue };
        if !(name.starts_with("To") || name.starts_with("From")) {
            continue;
        }
        let body = rest.split("\n}").next().unwrap_or_default();
        for line in
            body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "))
        {
            let word: String =
                line.trim().chars().take_while(|letter| letter.is_alphanumeric()).collect();
            if word.starts_with(char::is_uppercase) {
                found.push((name.to_owned(), word));
            }
        }
    }
    assert!(!found.is_empty(), "no words found");
    found
}

#[test]
fn every_file_in_config_is_embedded() {
    let users: String = all_sources().into_iter().map(|(_, text)| text).collect();
    // The sandbox reads its policies when it is built, by the names of the profiles.
    let policies = fs::read_to_string(root().join("crates/sandbox/build.rs")).unwrap();
    for (directory, ending) in [("config", ""), ("config/confinement", ".toml")] {
        for entry in fs::read_dir(root().join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap().to_str().unwrap();
                let stem = name.strip_suffix(ending).unwrap();
                let used = users.contains(&format!("/{name}\""))
                    || (!ending.is_empty() && policies.contains(&format!("\"{stem}\"")));
                assert!(used, "{directory}/{name} is used nowhere");
            }
        }
    }
}

/// A program that is missing is named before the first test, not by the test that drives it.
#[test]
fn every_program_that_a_test_needs_is_looked_for_first() {
    let run = fs::read_to_string(root().join("tests/run")).unwrap();
    let rows: Vec<&str> = run.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut found = 0;
    let drivers = all_sources().into_iter().filter(|(name, _)| name != "tests/repo/tidy.rs");
    for (name, text) in drivers {
        for rest in text.split("needs(\"").skip(1) {
            let program = rest.split('"').next().unwrap();
            // Those of cargo are asked for by name; every system has the others, as `tests/run` does.
            let is_known = ["cargo", "rustfmt", "grep", "setsid"].contains(&program);
            assert!(
                is_known || rows.contains(&program),
                "{name} needs `{program}`, which tests/run does not look for"
            );
            found += 1;
        }
    }
    assert!(found > 30, "{found} programs found");
}

/// The same of the jobs' tables: the long ones have a list of their own.
#[test]
fn every_program_of_an_ordinary_job_is_installed() {
    let text = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let words =
        |name: &str| -> Vec<String> { text(name).split_whitespace().map(str::to_owned).collect() };
    let (run, setup) = (words("tests/run"), words("tests/cage/everyday/setup"));
    for (table, lists) in [("quick", vec![&run]), ("long", vec![&run, &setup])] {
        let jobs = text(&format!("tests/cage/everyday/{table}.toml"));
        let lines = jobs.lines().filter_map(|line| line.strip_prefix("needs = "));
        let programs: Vec<&str> =
            lines.flat_map(|line| line.split('"').skip(1).step_by(2)).collect();
        assert!(programs.len() > 50, "{table}: {programs:?}");
        for program in programs {
            let is_listed = lists.iter().any(|list| list.iter().any(|word| word == program));
            // As above.
            assert!(
                is_listed || program == "cargo",
                "no list installs `{program}` of {table}.toml"
            );
        }
    }
}

#[test]
fn each_licence_that_the_packages_name_is_here() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let named = manifest.lines().find_map(|line| line.strip_prefix("license = \"")).unwrap();
    for name in named.trim_end_matches('"').split(" OR ") {
        let file = match name {
            "Apache-2.0" => "LICENSE-APACHE",
            "MIT" => "LICENSE-MIT",
            other => panic!("which file has the licence {other}?"),
        };
        assert!(root().join(file).is_file(), "{file} is missing");
    }
}
