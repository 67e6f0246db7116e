//! The text below a command's output for the model. A failure is told with its refusal, the reason
//! and a way on; a success that complains of nothing is told nothing. The tables are in `rows`; ROWS
//! selects rows by a part of their name.
#![allow(clippy::unwrap_used)]

use crate::everyday::person;
mod rows;

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, needs, run_within};
use rows::{Control, HARMLESS, Harmless, MATTERS, Matters, Settings};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Milliseconds that a job may take; one of the rows takes more.
const LIMIT_MS: u64 = 60_000;
/// Of a job that sleeps.
const SHORT_MS: u64 = 3_000;

#[test]
fn a_failure_is_told_with_its_reason_and_the_way_on() {
    let rows: Vec<_> = MATTERS.iter().filter(|row| is_chosen(row.name)).collect();
    for row in &rows {
        row.needs.iter().for_each(|program| needs(program));
        if row.control == Control::Succeeds {
            let (code, output) = plain(row.script);
            assert_eq!(code, Some(0), "without a cage {} succeeds: {output}", row.name);
        }
    }
    let faults = in_both_tiers(|tier| told_in(tier, &rows));
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn of_a_silent_success_nothing_is_told() {
    let rows: Vec<_> = HARMLESS.iter().filter(|row| is_chosen(row.name)).collect();
    let (desk, _beside) = furnished(Settings::Usual);
    for row in &rows {
        row.needs.iter().for_each(|program| needs(program));
        let (code, output) = shell(&desk, row.script);
        assert_eq!(code, Some(0), "without a cage {} succeeds: {output}", row.name);
    }
    let faults = in_both_tiers(|tier| said_in(tier, &rows));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The faults of both tiers, which are tried at the same time.
fn in_both_tiers(faults: impl Fn(&'static str) -> Vec<String> + Sync) -> Vec<String> {
    std::thread::scope(|scope| {
        let tiers = ["A", "B"].map(|tier| scope.spawn(|| faults(tier)));
        tiers.into_iter().flat_map(|tier| tier.join().unwrap()).collect()
    })
}

/// The rows whose text lacks a part.
fn told_in(tier: &str, rows: &[&Matters]) -> Vec<String> {
    let mut faults = Vec::new();
    for settings in [Settings::Usual, Settings::Listed, Settings::Tight] {
        let rows: Vec<_> = rows.iter().filter(|row| row.settings == settings).collect();
        // An allow-list needs a network of its own.
        if rows.is_empty() || (tier, settings) == ("B", Settings::Listed) {
            continue;
        }
        let scripts: Vec<&str> = rows.iter().map(|row| row.script).collect();
        for (row, (_, ours)) in rows.iter().zip(caged(tier, settings, &scripts)) {
            println!("{tier} {}\n    {}", row.name, ours.replace('\n', "\n    "));
            let told = match (tier, row.in_b) {
                ("B", Some(told)) => told,
                _ => row.told,
            };
            let lacking: Vec<_> = told.into_iter().filter(|part| !ours.contains(part)).collect();
            if !lacking.is_empty() {
                faults.push(format!("{tier} {} lacks {lacking:?}", row.name));
            }
        }
    }
    faults
}

/// The rows whose text holds more than the exit code, or another one.
fn said_in(tier: &str, rows: &[&Harmless]) -> Vec<String> {
    let scripts: Vec<&str> = rows.iter().map(|row| row.script).collect();
    let results = caged(tier, Settings::Usual, &scripts);
    let mut faults = Vec::new();
    for (row, (output, ours)) in rows.iter().zip(results) {
        println!("{tier} {}: {ours}", row.name);
        let code = ours.strip_prefix("exit code: ").and_then(|code| code.parse::<u8>().ok());
        if code.is_none_or(|code| code != 0 && !row.may_fail) {
            faults.push(format!("{tier} {}: {ours}\n{output}", row.name));
        }
    }
    faults
}

fn is_chosen(name: &str) -> bool {
    std::env::var("ROWS").map_or(true, |part| name.contains(&part))
}

/// A desk whose project is a repository, with the person's files and processes.
fn furnished(settings: Settings) -> (Desk, Beside) {
    needs("git");
    needs("python3");
    let desk = Desk::new();
    person::furnish(&desk);
    let tools = desk.home().join(".gnupg/bin");
    std::fs::create_dir_all(&tools).unwrap();
    crate::support::write_program(&tools.join("kepttool"), "echo ran");
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::write(config, format!("budget.rounds = 1000\n{}", settings.text())).unwrap();
    let (code, output) = shell(&desk, "git init -q . && git commit -q --allow-empty -m first");
    assert_eq!(code, Some(0), "{output}");
    let beside = Beside::start(&desk);
    (desk, beside)
}

/// The exit code and the output of a script that the person runs.
fn plain(script: &str) -> (Option<i32>, String) {
    let (desk, _beside) = furnished(Settings::Usual);
    shell(&desk, script)
}

fn shell(desk: &Desk, script: &str) -> (Option<i32>, String) {
    let mut command = Command::new("timeout");
    command.args(["15", "bash", "-c", &filled(desk, &format!("exec 2>&1\n{script}"))]);
    command.env_clear().env("HOME", desk.home()).env("GIT_CONFIG_NOSYSTEM", "1");
    command.envs(environment(desk)).current_dir(desk.project()).stdin(Stdio::null());
    let ran = command.output().unwrap();
    (ran.status.code(), String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn environment(desk: &Desk) -> Vec<(String, String)> {
    let mut all = person::environment(desk);
    for (name, value) in &mut all {
        if name == "PATH" {
            value.push_str(&format!(":{}/.gnupg/bin:/usr/sbin:/sbin", desk.home().display()));
        }
    }
    all
}

fn filled(desk: &Desk, script: &str) -> String {
    let outside = desk.outside().display().to_string();
    script.replace("@HOME@", &format!("{outside}/home")).replace("@OUTSIDE@", &outside)
}

/// Of each script, as the calls of one session: the command's output, and the words below it.
fn caged(tier: &str, settings: Settings, scripts: &[&str]) -> Vec<(String, String)> {
    let (desk, _beside) = furnished(settings);
    let asks = |(at, script): (usize, &&str)| {
        let limit = if script.starts_with("sleep 60") { SHORT_MS } else { LIMIT_MS };
        let input = json!({ "command": filled(&desk, script), "timeout_ms": limit });
        Answer::says([call(&format!("toolu_{at}"), "bash", &input.to_string())])
    };
    let answers = scripts.iter().enumerate().map(asks).chain([Answer::text("done")]);
    let server = Server::scripted(answers.collect::<Vec<_>>());
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.envs(environment(&desk)).env("AGENTD_SANDBOX_TIER", tier);
    let ran = run_within(command, Duration::from_secs(300));
    assert_eq!(ran.code, 0, "tier {tier}: {}", ran.err);
    let audit = desk.audit();
    let ended = audit.iter().filter(|record| record["event"] == "ended");
    ended.for_each(|ended| assert_eq!(ended["enforced"]["tier"], tier, "{ended:#}"));
    let texts = results(&server.requests().last().unwrap().body);
    assert_eq!(texts.len(), scripts.len());
    let parts = texts.iter().map(|text| match text.rsplit_once("--- agentd ---\n") {
        Some((output, ours)) => (output.to_owned(), ours.to_owned()),
        None => (String::new(), text.clone()),
    });
    parts.collect()
}

/// The results of all calls in a request, in their order.
fn results(body: &Value) -> Vec<String> {
    let blocks = body["messages"].as_array().unwrap().iter().flat_map(|message| {
        message["content"].as_array().into_iter().flatten().filter(|it| it["type"] == "tool_result")
    });
    let words = |block: &Value| {
        let content = &block["content"];
        content.as_str().or(content[0]["text"].as_str()).unwrap_or_default().to_owned()
    };
    blocks.map(words).collect()
}

/// A process of the person: it listens on a port and on a socket, and both names are in the project.
struct Beside(std::process::Child);

impl Beside {
    fn start(desk: &Desk) -> Self {
        let program = "import os, socket, time\n\
                       s = socket.create_server(('127.0.0.1', 0)); open('port', 'w').write(str(s.getsockname()[1]))\n\
                       u = socket.socket(socket.AF_UNIX); u.bind('../home/agent.sock'); u.listen()\n\
                       open('pid', 'w').write(str(os.getpid())); time.sleep(1000)";
        let child = Command::new("python3")
            .args(["-c", program])
            .current_dir(desk.project())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = desk.project().join("pid");
        let is_there = |path: &Path| std::fs::read(path).is_ok_and(|text| !text.is_empty());
        crate::support::until("the person's process listens", || is_there(&pid));
        Self(child)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
