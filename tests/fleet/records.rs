//! What the database has of a session, and when: the work of sub-agents, and the last records.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository};
use crate::postgres::Postgres;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::until;
use serde_json::json;
use std::fs;
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// The host could be lost, and another one would run the sub-agent's calls again.
#[test]
fn a_sub_agent_begins_when_the_database_knows_of_it() {
    let postgres = Postgres::with_fleet(60);
    let host = Host::new(&postgres);
    let asked = Arc::new(Barrier::new(2));
    let at_model = Arc::clone(&asked);
    let task = json!({"description": "a part", "prompt": "THE PART"}).to_string();
    let model = Server::answering(move |_, body| {
        let of_child = body["messages"][0]["content"].to_string().contains("THE PART");
        match (of_child, body["messages"].as_array().unwrap().len()) {
            (false, 1) => {
                at_model.wait();
                // The database is away.
                at_model.wait();
                Answer::says([call("toolu_1", "task", &task)])
            }
            (true, _) => Answer::text("The part is done."),
            (false, _) => Answer::text("done"),
        }
    });
    let repo = repository(&host.desk);
    host.ok(&["submit", "--repo", &repo, "--prompt", "begin", "--permission-mode=auto"]);
    let worker = host.start(&model, &[]);
    asked.wait();
    postgres.stop();
    asked.wait();
    std::thread::sleep(Duration::from_secs(2));
    let of_child = || {
        let requests = model.requests();
        requests
            .iter()
            .filter(|seen| seen.body["messages"].to_string().contains("THE PART"))
            .count()
    };
    assert_eq!(of_child(), 0, "the sub-agent works, and the database has no record of it");
    postgres.go();
    until("its end", || postgres.sql("select state from agentd.task") == "done");
    assert!(of_child() > 0, "the control");
    host.end(worker);
}

#[test]
fn a_task_that_is_over_has_all_records_of_its_session() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let input = json!({"command": "sleep 300", "background": true}).to_string();
    let model =
        Server::answering(move |_, body| match body["messages"].as_array().unwrap().len() {
            1 => Answer::says([call("toolu_1", "bash", &input)]),
            _ => Answer::text("done"),
        });
    let repo = repository(&host.desk);
    host.ok(&["submit", "--repo", &repo, "--prompt", "begin", "--permission-mode=auto"]);
    let ran = host.work(&model, &[]);
    let task = host.task(1);
    assert_eq!(task["state"], "done", "{}", ran.err);
    let session = task["session"].as_str().unwrap();
    let journal = host.desk.state().join("sessions").join(session).join("journal.jsonl");
    let here = fs::read_to_string(journal).unwrap();
    let there = postgres.sql("select line from agentd.journal order by seq");
    assert_eq!(there.lines().collect::<Vec<_>>(), here.lines().collect::<Vec<_>>());
    let last = here.lines().last().unwrap();
    assert!(last.contains(r#""kind":"RESULT""#), "it is the end of the command: {here}");
}
