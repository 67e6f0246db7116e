//! Texts of other people and hosts of a fleet on the screen: no hidden character of them gets there raw.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::Postgres;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::hidden::{hostile, shows_nothing_raw};
use crate::support::until;
use protocol::hidden::is_hidden;

#[test]
fn no_hidden_character_of_a_fleet_reaches_a_screen() {
    let postgres = Postgres::with_fleet(30);
    let (host, far) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&host.desk);
    let all = (1..=0x2_ffff).chain(0xe_0000..=0xe_0fff).filter_map(char::from_u32);
    let hidden: String = all.filter(|c| is_hidden(*c)).map(|c| format!("x{c}")).collect();
    let evil =
        format!("\u{1b}]52;c;aGk=\u{7}\u{1b}]8;;http://evil\u{1b}\\b\u{202e}c\u{9b}31m{hidden}");
    let prompt = format!("run: sleep 60\"{evil}");
    host.ok(&["submit", "--repo", &repo, "--prompt", &prompt, "--label", "a=b"]);
    let worker =
        host.start(&runs_its_prompt(), &["--name", &format!("near{evil}"), "--label", "a=b"]);
    until("it runs", || far.ok(&["tasks", "logs", "1"]).contains("START"));
    postgres.sql("update agentd.worker set build = 'another'");
    for (words, shows) in [
        (&["fleet", "status"][..], "near"),
        (&["fleet", "status", "--json"], "near"),
        (&["tasks", "ls"], "sleep 60"),
        (&["tasks", "ls", "--json"], "sleep 60"),
        (&["tasks", "show", "1"], "sleep 60"),
        (&["tasks", "show", "1", "--json"], "sleep 60"),
        (&["tasks", "logs", "1"], "sleep 60"),
        (&["tasks", "logs", "1", "--json"], "sleep 60"),
        (&["tasks", "export"], "sleep 60"),
        (&["tasks", "export", "--format", "html"], "sleep 60"),
        (&["fleet", "relay", "1"], "near"),
        (&["attach", "1"], "near"),
        (&["ls"], "near"),
        (&["ls", "--json"], "near"),
        (&["kill", "task-1"], "near"),
        (&["show", "task-1"], "sleep 60"),
    ] {
        let ran = far.agentd(words);
        let screen = ran.out + &ran.err;
        assert!(screen.contains(shows), "{words:?}: {screen}");
        let raw: Vec<char> = screen.chars().filter(|c| is_hidden(*c)).collect();
        assert!(raw.is_empty(), "{words:?} prints {raw:?}");
    }
    // The same text is in the database, and programs that read JSON get it.
    let task: serde_json::Value = far.task(1);
    assert_eq!(task["prompt"], prompt.as_str());
    host.end(worker);
}

#[test]
fn no_hidden_character_of_a_task_and_its_answer_reaches_a_surface() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let prompt = hostile("prompt");
    host.ok(&["submit", "--repo", &repo, "--prompt", &prompt]);
    let bash = |command: String| serde_json::json!({ "command": command }).to_string();
    let model = Server::scripted([
        Answer::says([
            call("toolu_1", "bash", &bash(format!("echo x > '{}'", hostile("file")))),
            call("toolu_2", "bash", &bash(format!(": > '/usr/{}'", hostile("refusal")))),
        ]),
        Answer::text(&hostile("answer")),
    ]);
    let worked = host.work(&model, &[]);
    assert_eq!(worked.code, 0, "{}", worked.err);
    let session = host.task(1)["session"].as_str().unwrap().to_owned();
    for (words, texts) in [
        (&["tasks", "ls"][..], &["prompt…"][..]),
        (&["tasks", "ls", "--json"], &["prompt", "answer"]),
        (&["tasks", "show", "1"], &["prompt", "answer"]),
        (&["tasks", "show", "1", "--json"], &["prompt", "answer"]),
        (&["tasks", "logs", "1"], &["prompt", "answer"]),
        (&["tasks", "logs", "1", "--json"], &["prompt", "answer", "file", "refusal"]),
        (&["tasks", "export"], &["prompt", "answer"]),
        (&["tasks", "export", "--format", "html"], &["prompt", "answer"]),
        (&["show", &session], &["prompt", "answer"]),
    ] {
        let ran = host.agentd(words);
        shows_nothing_raw(&format!("{words:?}"), &(ran.out + &ran.err), texts);
    }
}
