//! Hosts that are lost, stopped or cut off, and databases that restart: nothing is lost, and no call runs
//! twice.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::{Postgres, psql};
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Process, processes, send, until, wrote};
use nix::sys::signal::Signal;
use std::fs;
use std::time::{Duration, Instant};

pub(crate) const RULE: &str = "--permission-mode=auto";

/// Two hosts, and a task that runs this command on the first.
pub(crate) fn running(
    postgres: &Postgres,
    command: &str,
    flags: &[&str],
) -> (Host, Host, std::process::Child) {
    let (first, second) = (Host::new(postgres), Host::new(postgres));
    let repo = repository(&first.desk);
    let prompt = format!("run: {command}");
    let submit = ["submit", "--repo", &repo, "--prompt", &prompt, RULE];
    first.ok(&[&submit, flags].concat());
    let model = Box::leak(Box::new(runs_its_prompt()));
    let worker = first.start(model, &["--name", "first"]);
    until("it runs", || first.ok(&["tasks", "logs", "1"]).contains("START"));
    (first, second, worker)
}

#[test]
fn a_call_in_a_closed_cage_did_not_happen_on_the_next_host() {
    let postgres = Postgres::with_fleet(3);
    let (first, second, mut worker) = running(&postgres, "echo x >> made; sleep 300", &[]);
    let session = first.task(1)["session"].as_str().unwrap().to_owned();
    until("it wrote", || wrote(&first.workspace(&session).join("made")));
    first.lose_power();
    let _ = worker.wait();
    let ran = second.work(&runs_its_prompt(), &["--name", "second"]);
    let task = second.task(1);
    assert_eq!(task["state"], "done", "{task:#} {}", ran.err);
    let logs = second.ok(&["tasks", "logs", "1", "--json"]);
    assert!(logs.contains("it did not happen here"), "{logs}");
    assert!(!logs.contains("may have run"), "{logs}");
    assert_eq!(second.ok(&["tasks", "diff", "1"]), "");
    assert_eq!(postgres.sql("select epoch from agentd.task"), "2");
}

#[test]
fn a_call_with_network_may_have_run_and_the_policy_decides() {
    let postgres = Postgres::with_fleet(3);
    for (policy, state) in [("report", "held"), ("resume", "done"), ("retry", "done")] {
        postgres.sql("truncate agentd.task cascade");
        postgres.sql("alter sequence agentd.task_id_seq restart");
        let first = Host::new(&postgres);
        first.configure("auto", "[net]\nmode = \"on\"\n");
        let second = Host::new(&postgres);
        let repo = repository(&first.desk);
        let marker = first.desk.outside().join("marker");
        let _ = fs::remove_file(&marker);
        let prompt = "run: test -e go && echo ran || { touch go; sleep 300; }";
        first.ok(&["submit", "--repo", &repo, "--prompt", prompt, RULE, "--on-host-loss", policy]);
        let model = runs_its_prompt();
        let mut worker = first.start(&model, &[]);
        until("it runs", || first.ok(&["tasks", "logs", "1"]).contains("START"));
        let session = first.task(1)["session"].as_str().unwrap().to_owned();
        first.lose_power();
        let _ = worker.wait();
        if policy == "retry" {
            // It starts from the beginning and would sleep: this model only answers.
            let says = Server::answering(|_, _| Answer::text("done"));
            second.work(&says, &[]);
        } else {
            second.work(&runs_its_prompt(), &[]);
        }
        until("it is decided", || second.task(1)["state"] != "running");
        let task = second.task(1);
        assert_eq!(task["state"], state, "{policy}: {task:#}");
        let logs = second.ok(&["tasks", "logs", "1", "--json"]);
        match policy {
            "report" => {
                assert!(task["reason"].as_str().unwrap().contains("may have run"), "{task:#}");
                second.ok(&["tasks", "retry", "1"]);
                second.work(&runs_its_prompt(), &[]);
                assert_eq!(second.task(1)["state"], "done", "{:#}", second.task(1));
                let logs = second.ok(&["tasks", "logs", "1", "--json"]);
                assert!(logs.contains("INTERRUPTED"), "{logs}");
            }
            "resume" => assert!(logs.contains("INTERRUPTED"), "{logs}"),
            _ => assert_ne!(task["session"], session.as_str()),
        }
    }
}

/// The records of a sub-agent are on its host alone: what it did there is not known.
#[test]
fn a_sub_agent_of_a_lost_host_may_have_run() {
    let postgres = Postgres::with_fleet(3);
    let (first, second) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&first.desk);
    let model = Server::answering(|_, request| {
        let of_child = request["messages"][0]["content"].to_string().contains("THE PART");
        match of_child {
            true => Answer::says([call("toolu_2", "bash", r#"{"command": "sleep 300"}"#)]),
            false => {
                let task = r#"{"description": "a part", "prompt": "THE PART", "subagent_type": "general"}"#;
                Answer::says([call("toolu_1", "task", task)])
            }
        }
    });
    first.ok(&["submit", "--repo", &repo, "--prompt", "begin", RULE]);
    let mut worker = first.start(&model, &[]);
    let session = first.task(1)["session"].as_str().unwrap().to_owned();
    let child = first.desk.state().join("sessions").join(format!("{session}-1/journal.jsonl"));
    until("the sub-agent's call runs", || {
        fs::read_to_string(&child).unwrap_or_default().contains("\"START\"")
    });
    first.lose_power();
    let _ = worker.wait();
    second.work(&model, &[]);
    let task = second.task(1);
    assert_eq!(task["state"], "held", "{task:#}");
    assert!(task["reason"].as_str().unwrap().contains("may have run"), "{task:#}");
}

#[test]
fn a_host_that_comes_back_can_add_nothing() {
    let postgres = Postgres::with_fleet(2);
    let (first, second, worker) = running(&postgres, "sleep 300", &[]);
    first.signal(Signal::SIGSTOP);
    second.work(&runs_its_prompt(), &[]);
    let task = second.task(1);
    assert_eq!(task["state"], "done", "{task:#}");
    let before = postgres.sql("select count(*), max(seq) from agentd.journal");
    first.signal(Signal::SIGCONT);
    until("its call ends", || {
        !first.processes().iter().any(|pid| {
            fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().starts_with(b"sleep")
        })
    });
    until("it gives up", || {
        ["not this host's any more", "is given back"].iter().any(|end| first.log().contains(end))
    });
    assert_eq!(postgres.sql("select count(*), max(seq) from agentd.journal"), before);
    assert_eq!(second.task(1)["state"], "done");
    first.end(worker);
}

#[test]
fn a_worker_and_a_daemon_that_are_killed_go_on_here() {
    let postgres = Postgres::with_fleet(30);
    let first = Host::new(&postgres);
    let repo = repository(&first.desk);
    let model = runs_its_prompt();
    first.ok(&["submit", "--repo", &repo, "--prompt", "run: sleep 3; echo x >> made", RULE]);
    let mut worker = first.start(&model, &[]);
    until("it runs", || first.ok(&["tasks", "logs", "1"]).contains("START"));
    worker.kill().unwrap();
    let _ = worker.wait();
    let worker = first.start(&model, &[]);
    until("it is done", || first.task(1)["state"] == "done");
    let task = first.task(1);
    assert_eq!(task["epoch"], 1, "{task:#}");
    assert_eq!(first.ended_calls().len(), 1);
    assert!(first.ok(&["tasks", "diff", "1"]).contains("+x"), "{task:#}");
    first.end(worker);
}

#[test]
fn a_task_goes_on_if_its_daemon_alone_is_killed() {
    let postgres = Postgres::with_fleet(30);
    let (first, second, worker) = running(&postgres, "sleep 300", &[]);
    let daemon = processes().into_iter().find(|process| {
        process.name == "agentd-supervis" && first.processes().contains(&process.pid)
    });
    send(daemon.unwrap().pid, Signal::SIGKILL);
    until("it is done", || second.task(1)["state"] == "done");
    let task = second.task(1);
    assert_eq!(task["epoch"], 1, "{task:#}");
    let logs = second.ok(&["tasks", "logs", "1"]);
    assert!(logs.contains("INTERRUPTED") && logs.matches("START").count() == 1, "{logs}");
    first.end(worker);
}

/// Its worker starts again when another host has the task, or had it: nothing of it stays but the session.
#[test]
fn a_host_that_is_back_too_late_removes_the_workspace() {
    let postgres = Postgres::with_fleet(2);
    let (first, second, mut worker) = running(&postgres, "echo x > made; sleep 300", &[]);
    let session = first.task(1)["session"].as_str().unwrap().to_owned();
    until("it wrote", || wrote(&first.workspace(&session).join("made")));
    first.lose_power();
    let _ = worker.wait();
    second.work(&runs_its_prompt(), &["--name", "second"]);
    assert_eq!(second.task(1)["state"], "done", "{:#}", second.task(1));
    let place = first.workspace(&session).parent().unwrap().to_owned();
    let seat = first.desk.state().join(format!("fleet/seats/{session}.json"));
    assert!(place.join("workspace/made").exists() && seat.exists(), "the control");
    // Another task's directory is not in its way.
    let other = place.with_file_name("task-2-other");
    fs::create_dir(&other).unwrap();
    let model = runs_its_prompt();
    let worker = first.start(&model, &["--name", "first"]);
    until("the workspace is gone", || !place.exists() && !seat.exists());
    assert!(other.exists());
    // Its records stay, to be read.
    let left = fs::read_dir(first.desk.state().join("fleet/left")).unwrap();
    let left: Vec<_> =
        left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().any(|name| name.starts_with(&session)), "{left:?}");
    assert!(!first.desk.state().join("sessions").join(&session).exists());
    first.end(worker);
}

/// The host is not lost: it has its workspace and its journal, and the model is told of the call. The policy is
/// for the next host.
#[test]
fn a_host_that_is_back_within_its_lease_goes_on_whatever_the_policy() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    host.configure("auto", "[net]\nmode = \"on\"\n");
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    let submit = ["submit", "--repo", &repo, "--prompt", "run: echo x >> made; sleep 300", RULE];
    host.ok(&[&submit[..], &["--on-host-loss", "report"]].concat());
    let mut worker = host.start(&model, &[]);
    let session = host.task(1)["session"].as_str().unwrap().to_owned();
    until("it wrote", || wrote(&host.workspace(&session).join("made")));
    host.lose_power();
    let _ = worker.wait();
    let worker = host.start(&model, &[]);
    until("it is done", || host.task(1)["state"] == "done");
    let task = host.task(1);
    assert_eq!(task["epoch"], 1, "{task:#}");
    let logs = host.ok(&["tasks", "logs", "1"]);
    assert!(logs.contains("INTERRUPTED") && logs.matches("START").count() == 1, "{logs}");
    // What the call did here is here.
    assert!(host.ok(&["tasks", "diff", "1"]).contains("+x"), "{task:#}");
    host.end(worker);
}

/// Records are on their way when the worker ends, and the daemon that sent them is gone. The first of them
/// waits in the database.
#[test]
fn a_task_is_given_back_with_all_its_records() {
    let postgres = Postgres::with_fleet(30);
    let (first, second) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&first.desk);
    let (answers, waits) = std::sync::mpsc::channel::<()>();
    let model = Server::answering(move |_, request| {
        if request["messages"].to_string().contains("tool_result") {
            return Answer::text("done");
        }
        let _ = waits.recv();
        Answer::says([call("toolu_1", "read", r#"{"path": "README"}"#)])
    });
    first.ok(&["submit", "--repo", &repo, "--prompt", "read it", RULE]);
    let worker = first.start(&model, &[]);
    until("it asks the model", || first.ok(&["tasks", "logs", "1"]).contains("PROMPT"));
    let (url, session) = (postgres.url(), postgres.sql("select session from agentd.task"));
    let own = first.desk.state().join("sessions").join(&session).join("journal.jsonl");
    let own = || fs::read_to_string(&own).unwrap().trim().to_owned();
    let theirs =
        || postgres.sql("select string_agg(line, E'\\n' order by seq) from agentd.journal");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let hold = "begin; select 1 from agentd.lease for update; select pg_sleep(5); commit";
            psql(&url, hold).unwrap();
        });
        until("the lease is locked", || {
            postgres.sql("select count(*) from pg_stat_activity where query ~ '^begin; select 1'")
                == "1"
        });
        answers.send(()).unwrap();
        until("the call ended here", || own().contains("\"kind\":\"RESULT\""));
        assert!(!theirs().contains("\"kind\":\"RESULT\""), "the control");
        let of_host = first.processes();
        let daemon = |it: &Process| it.name == "agentd-supervis" && of_host.contains(&it.pid);
        send(processes().into_iter().find(daemon).unwrap().pid, Signal::SIGKILL);
        first.end(worker);
    });
    assert_eq!(theirs(), own());
    assert_eq!(second.task(1)["state"], "queued");
    let ran = second.work(&model, &[]);
    let task = second.task(1);
    assert_eq!(task["state"], "done", "{task:#} {}", ran.err);
    let logs = second.ok(&["tasks", "logs", "1"]);
    assert_eq!(logs.matches("RESULT").count(), 1, "{logs}");
}

#[test]
fn a_worker_that_ends_in_order_gives_its_tasks_back() {
    let postgres = Postgres::with_fleet(30);
    let (first, second, worker) = running(&postgres, "sleep 300", &[]);
    first.end(worker);
    assert_eq!(second.task(1)["state"], "queued");
    second.work(&runs_its_prompt(), &[]);
    let task = second.task(1);
    assert_eq!((task["state"].as_str(), &task["epoch"]), (Some("done"), &2.into()), "{task:#}");
}

/// It needs no database for that: its lease runs out, and another host goes on.
#[test]
fn a_worker_ends_though_its_database_is_away_for_good() {
    for (command, ends) in [("sleep 300", false), ("sleep 2", true)] {
        let postgres = Postgres::with_fleet(6);
        let (first, _second, mut worker) = running(&postgres, command, &[]);
        postgres.stop();
        if ends {
            // The task's run is over here, and its end is not recorded.
            std::thread::sleep(Duration::from_secs(4));
        }
        let asked = Instant::now();
        send(worker.id(), Signal::SIGTERM);
        until("the worker ends", || worker.try_wait().unwrap().is_some());
        assert!(asked.elapsed() < Duration::from_secs(25), "{:?}", asked.elapsed());
        until("no call of it is left", || {
            let own = first.all_processes();
            !processes().iter().any(|it| own.contains(&it.pid) && it.name == "sleep")
        });
        postgres.go();
    }
}

/// Clusters end a host so: SIGTERM to every process.
#[test]
fn a_host_of_which_all_processes_are_asked_to_end_gives_its_tasks_back() {
    let postgres = Postgres::with_fleet(30);
    let (first, second, mut worker) = running(&postgres, "sleep 300", &[]);
    first.signal(Signal::SIGTERM);
    assert!(worker.wait().unwrap().success(), "{}", first.log());
    let task = second.task(1);
    assert_eq!(task["state"], "queued", "{task:#} {}", first.log());
    second.work(&runs_its_prompt(), &[]);
    assert_eq!(second.task(1)["state"], "done", "{:#}", second.task(1));
}

#[test]
fn a_database_that_restarts_costs_nothing() {
    let postgres = Postgres::with_fleet(30);
    let first = Host::new(&postgres);
    let repo = repository(&first.desk);
    let model = runs_its_prompt();
    first.ok(&["submit", "--repo", &repo, "--prompt", "run: sleep 1; echo x >> made", RULE]);
    let worker = first.start(&model, &[]);
    until("it runs", || first.ok(&["tasks", "logs", "1"]).contains("START"));
    postgres.stop();
    std::thread::sleep(Duration::from_secs(2));
    postgres.go();
    until("it is done", || first.task(1)["state"] == "done");
    assert_eq!(first.ended_calls().len(), 1);
    first.end(worker);
}

/// Where nothing of a run can be recorded, another host may have better luck.
#[test]
fn a_host_that_cannot_record_a_session_gives_its_task_back() {
    let postgres = Postgres::with_fleet(30);
    let (first, second) = (Host::new(&postgres), Host::new(&postgres));
    // No session can be made there.
    fs::create_dir_all(first.desk.state()).unwrap();
    std::os::unix::fs::symlink("/nowhere/at-all", first.desk.state().join("sessions")).unwrap();
    let repo = repository(&first.desk);
    first.ok(&["submit", "--repo", &repo, "--prompt", "run: true", RULE]);
    let worker = first.start(&runs_its_prompt(), &["--name", "first"]);
    until("it is given back", || first.log().contains("the task is given back"));
    let ran = second.work(&runs_its_prompt(), &["--name", "second"]);
    let task = second.task(1);
    assert_eq!(task["state"], "done", "{task:#} {} {}", first.log(), ran.err);
    assert!(task["epoch"].as_i64() > Some(1), "{task:#}");
    first.end(worker);
}
