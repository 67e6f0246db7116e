//! The result of a command that failed names its refusals and the way on, that of one that succeeded
//! and wrote to standard error some of them, and that of a silent success none.
#![allow(clippy::unwrap_used)]

use crate::support::Desk;
use crate::support::anthropic::{Answer, Server, call};
use serde_json::{Value, json};
use std::path::Path;

/// The result of this script for the model, and the refusals of the record.
fn result(tier: &'static str, script: &str) -> (String, Vec<Value>) {
    let desk = Desk::new();
    let input = json!({ "command": script }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier);
    let ran = crate::support::run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let messages = server.requests()[1].body["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap()["content"].to_string();
    (last, desk.ended(1)["refusals"].as_array().unwrap().clone())
}

const NOISE: &str = "mkdir /usr/share/__pycache__ 2>/dev/null; (echo 0 >/proc/self/oom_score_adj) 2>/dev/null;\
                     (echo 0 >/proc/self/coredump_filter) 2>/dev/null;";

#[test]
fn all_but_a_silent_success_name_refusals_and_a_failure_gives_advice() {
    let script = format!("{NOISE} mkdir /usr/share/a-name /usr/share/b-name 2>/dev/null;");
    let named = ["mkdir /usr/share/a-name", "mkdir /usr/share/b-name"];
    for tier in ["A", "B"] {
        let count = |text: &str| text.matches("the sandbox refused").count();
        let (text, _) = result(tier, &format!("{script} exit 3"));
        assert_eq!(count(&text), 5, "tier {tier}: {text}");
        for part in named.into_iter().chain(["ask the user to make"]) {
            assert!(text.contains(part), "tier {tier} lacks {part}: {text}");
        }
        // Three, and how many there are besides.
        let (text, _) = result(tier, &format!("{script} echo warning >&2"));
        assert_eq!(count(&text), 4, "tier {tier}: {text}");
        assert!(named.iter().all(|part| text.contains(part)), "tier {tier}: {text}");
        assert!(text.contains("refused 2 more"), "tier {tier}: {text}");
        assert!(!text.contains("[commands"), "tier {tier}: {text}");
        let (text, refusals) = result(tier, &format!("{script} echo done"));
        assert_eq!(refusals.len(), 5, "tier {tier}: {refusals:?}");
        assert!(!text.contains("refused") && !text.contains("[commands"), "tier {tier}: {text}");
    }
}

#[test]
fn a_file_of_a_process_comes_with_no_advice() {
    for tier in ["A", "B"] {
        let (text, _) = result(tier, "echo 0 >/proc/self/coredump_filter || exit 3");
        assert!(text.contains("coredump_filter for writing"), "tier {tier}: {text}");
        assert!(!text.contains("ask the user"), "tier {tier}: {text}");
    }
}

/// In tier A a number of the host is no process, whether or not the host has it.
#[test]
fn which_numbers_are_processes_of_the_host_is_not_told() {
    let own = std::process::id();
    let (text, refusals) = result("A", &format!("kill -0 {own} || exit 3"));
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    let (other, none) = result("A", "kill -0 4190000 || exit 3");
    assert_eq!(none.len(), 0, "{none:?}");
    assert!(text.contains("start the process in the same command"), "{text}");
    assert_eq!(text.replace(&own.to_string(), "4190000"), other);
}

/// A script, and the text that its result must have.
const MISSED: [(&str, &str); 6] = [
    ("ls /var/cache", "[/var/cache exists on this machine, but this command has no access"),
    ("cat '/var/cache'", "[/var/cache exists on this machine, but this command has no access"),
    ("cat ~/work/notes", "work/notes is outside the granted directories"),
    ("cat /var/run/docker.sock", "it gives root on this machine"),
    ("cat /sys/class/net/lo/address", "/proc/net/dev lists this command's network interfaces"),
    ("ls /sys/class/tty", "describes the machine's devices"),
];

/// Names whose existence nothing may show, and names that are not there.
const UNTOLD: [&str; 8] = [
    "ls /var/no-such-name",
    "echo wrote /var/cache; false",
    "echo - /var/run/docker.sock:/var/run/docker.sock; echo /sys/class/net/lo; false",
    "echo ~/work/notes; false",
    "cat /root/.bashrc /root/notes",
    "cat ~/.ssh/id_rsa",
    "cat /etc/shadow",
    "cat src/missing",
];

#[test]
fn what_the_sandbox_does_not_show_is_named_from_the_last_words() {
    for tier in ["A", "B"] {
        for (script, part) in MISSED {
            let (text, _) = result(tier, script);
            assert!(text.contains(part), "tier {tier}, {script}: {text}");
        }
        // The home of a desk lies in a directory that is closed as a whole.
        for script in UNTOLD {
            let (text, _) = result(tier, script);
            let told = [
                "exists on this machine",
                "is outside the granted",
                "gives root on this machine",
                "describes the machine's devices",
            ];
            assert!(told.iter().all(|part| !text.contains(part)), "tier {tier}, {script}: {text}");
        }
        let (text, _) = result(tier, "mkdir -p ~/.ssh; ls ~/.ssh/none");
        assert_eq!(text.contains("holds credentials"), tier == "B", "tier {tier}: {text}");
        let (text, _) = result(tier, "ls /var/cache; true");
        assert!(!text.contains("exists on this machine"), "a success: {text}");
    }
}

#[test]
fn the_package_database_is_readable_and_its_passwords_are_not() {
    if !Path::new("/var/lib/dpkg/status").exists() {
        return;
    }
    for tier in ["A", "B"] {
        let (text, refusals) = result(tier, "head -c 8 /var/lib/dpkg/status && echo; echo x");
        assert!(text.contains("Package:") && refusals.is_empty(), "tier {tier}: {text}");
        let (text, _) = result(tier, "cat /var/cache/debconf/passwords.dat && echo it was read");
        assert!(!text.contains("it was read"), "tier {tier}: {text}");
        let (text, refusals) = result(tier, "echo x >/var/lib/dpkg/lock-frontend");
        assert!(text.contains("cannot install system packages"), "tier {tier}: {text}");
        assert_eq!(refusals.len(), 1, "tier {tier}: {refusals:?}");
    }
}
