//! Neither who submits a task nor who answers from another host gives calls a right that the session's host does
//! not give.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::Postgres;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::until;

#[test]
fn a_yes_from_another_host_gives_a_call_no_network() {
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
    std::thread::sleep(std::time::Duration::from_millis(400));
    terminal.press(&["Enter"]);
    terminal.shows("the answer did not count");
    let logs = || far.ok(&["tasks", "logs", "1", "--json"]);
    assert!(!logs().contains("START"), "{}", logs());
    assert_eq!(far.task(1)["state"], "running");
    // The controls: on its own host the same key counts. That a yes counts from afar: `attach`.
    drop(terminal);
    let own = Tmux::new(&host.desk);
    let session = far.task(1)["session"].as_str().unwrap().to_owned();
    let terminal = own.run("own", &host.desk.agentd(&["attach", &session]), (110, 40));
    terminal.shows("network");
    std::thread::sleep(std::time::Duration::from_millis(400));
    terminal.press(&["Enter"]);
    until("it is done", || far.task(1)["state"] == "done");
    host.end(worker);
}

#[test]
fn a_task_brings_no_right_and_no_mode_above_its_host_s() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    host.configure("ask", "allow = [\"bash:true\"]\n");
    let repo = repository(&host.desk);
    for right in ["network:*", "host:*", "directory:/", "git-admin:*", "git-sign:*", "Read,network"]
    {
        let rule = format!("--allowed-tools={right}");
        let refused = host.agentd(&["submit", "--repo", &repo, "--prompt", "x", &rule]);
        assert_ne!(refused.code, 0, "{right}");
        assert!(refused.err.contains(&rule), "{}", refused.err);
        assert!(refused.err.contains("permissions.allow"), "{}", refused.err);
    }
    assert_eq!(postgres.sql("select count(*) from agentd.task"), "0");
    // Whoever is in the database needs no `agentd submit`.
    let flags = [
        ("--allowed-tools=network:*", "failed", "permissions.allow"),
        ("--allowed-tools=bash:*", "failed", "permissions.allow"),
        ("--permission-mode=auto", "failed", "permissions.mode"),
        ("--permission-mode=accept-edits", "failed", "permissions.mode"),
        ("--max-turns=1000", "failed", "budget.rounds"),
        ("--add-dir=/", "failed", "may not"),
        // The controls.
        ("--permission-mode=dont-ask", "done", ""),
        ("--allowed-tools=bash:true", "done", ""),
    ];
    for (flag, ..) in flags {
        postgres.sql(&format!(
            r#"select agentd.submit('[{{"repo": "{repo}", "ref": "HEAD", "prompt": "run: true",
                "on_host_loss": "report", "flags": ["{flag}"]}}]')"#
        ));
    }
    host.work(&runs_its_prompt(), &[]);
    for (number, (flag, state, setting)) in (1..).zip(flags) {
        let task = host.task(number);
        assert_eq!(task["state"], state, "{flag}: {task:#}");
        let reason = task["reason"].as_str().unwrap_or_default();
        let named = state == "done" || (reason.contains(flag) && reason.contains(setting));
        assert!(named, "{flag}: {reason}");
    }
}
