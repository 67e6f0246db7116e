//! No answer from another host gives calls a right that the session's host does
//! not give.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository};
use crate::postgres::Postgres;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::until;

#[test]
fn y_from_another_host_gives_a_call_no_network() {
    let postgres = Postgres::with_fleet(30);
    let (host, far) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&host.desk);
    let model = Server::answering(|_, request| match request.to_string().contains("tool_result") {
        true => Answer::text("done"),
        false => Answer::says([call("toolu_1", "bash", r#"{"command": "true", "network": "on"}"#)]),
    });
    far.ok(&["submit", "--repo", &repo, "--prompt", "go", "--ask"]);
    let worker = host.start(&model, &["--name", "near"]);
    until("it asks", || far.ok(&["ls"]).contains("asking on near"));
    let tmux = Tmux::new(&far.desk);
    let terminal = tmux.run("one", &far.command(&["attach", "1"]), (110, 40));
    terminal.shows("network");
    for key in ["y", "s", "a"] {
        std::thread::sleep(std::time::Duration::from_millis(400));
        terminal.types(key);
    }
    terminal.shows("the answer did not count");
    let logs = || far.ok(&["tasks", "logs", "1", "--json"]);
    assert!(!logs().contains("START"), "{}", logs());
    assert_eq!(far.task(1)["state"], "running");
    // The controls: on its own host the same key counts. That `y` counts from afar: `attach`.
    drop(terminal);
    let own = Tmux::new(&host.desk);
    let session = far.task(1)["session"].as_str().unwrap().to_owned();
    let terminal = own.run("own", &host.desk.agentd(&["attach", &session]), (110, 40));
    terminal.shows("network");
    std::thread::sleep(std::time::Duration::from_millis(400));
    terminal.types("y");
    until("it is done", || far.task(1)["state"] == "done");
    host.end(worker);
}
