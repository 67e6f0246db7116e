//! Tasks from their submission to their result.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::{Postgres, psql};
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{run, until};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const RULE: &str = "--permission-mode=auto";

#[test]
#[ignore = "writes a fixture; see tests/daemon/older_shapes.rs"]
fn write_the_state_of_a_task() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    host.ok(&["submit", "--repo", &repo, "--prompt", "run: echo 1 > made", RULE]);
    let ran = host.work(&runs_its_prompt(), &[]);
    assert_eq!((ran.code, &host.task(1)["state"]), (0, &"done".into()), "{}", ran.err);
    assert_eq!(host.agentd(&["daemon", "stop"]).code, 0);
    crate::support::recorded::write(&host.desk, "task");
}

#[test]
fn each_task_has_one_result_with_answer_patch_and_branch() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    let submit =
        ["submit", "--repo", &repo, "--prompt", "run: echo {n} > n{n}", "--array", "3", RULE];
    assert_eq!(host.ok(&submit), "tasks 1 to 3, batch 1\n");
    let ran = host.work(&model, &["--slots", "2"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for number in 1..=3 {
        let task = host.task(number);
        assert_eq!(task["state"], "done", "{task:#}\n{}", ran.err);
        assert_eq!(task["result"]["answer"], "done", "{task:#}");
        assert_eq!(task["result"]["branch"], format!("agentd/{number}/1"), "{task:#}");
        let patch = host.ok(&["tasks", "diff", &number.to_string()]);
        assert!(patch.contains(&format!("+++ b/n{number}\n")), "{patch}");
        let branch = format!("agentd/{number}/1:n{number}");
        let shown = Command::new("git").args(["-C", &repo, "show", &branch]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&shown.stdout), format!("{number}\n"));
        let logs = host.ok(&["tasks", "logs", &number.to_string()]);
        assert!(logs.contains("START") && logs.contains("TURN_ENDED"), "{logs}");
    }
    let calls = host.ended_calls();
    assert_eq!(calls.len(), 3, "{calls:?}");
    assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), 3, "{calls:?}");
    // Both copies of each journal are the same.
    for number in 1..=3 {
        let session = host.task(number)["session"].as_str().unwrap().to_owned();
        let own = host.desk.state().join("sessions").join(&session).join("journal.jsonl");
        let theirs = postgres.sql(&format!(
            "select string_agg(line, E'\\n' order by seq) from agentd.journal where session = '{session}'"
        ));
        assert_eq!(std::fs::read_to_string(own).unwrap().trim(), theirs.trim());
    }
    let exported = host.ok(&["tasks", "export"]);
    assert_eq!(exported.lines().count(), 3);
    assert!(host.ok(&["tasks", "export", "--format", "html"]).contains("3 done"));
    assert!(host.ok(&["fleet", "status"]).starts_with("0 queued, 0 running, 0 held"));
    // Nothing of it is opened by hand on this host.
    let session = host.task(1)["session"].as_str().unwrap().to_owned();
    let opened = run(host.desk.with_server(&model, &["-p", "more", "--resume", &session]));
    assert!(opened.err.contains("works for task 1 of a fleet"), "{}", opened.err);
}

#[test]
fn a_task_that_fails_says_why_and_a_retry_goes_on_in_its_session() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let refuses = Server::answering(|_, _| Answer::status(401, "authentication_error", "bad key"));
    host.ok(&["submit", "--repo", &repo, "--prompt", "run: true", RULE]);
    host.work(&refuses, &[]);
    let task = host.task(1);
    assert_eq!(task["state"], "failed");
    assert!(task["reason"].as_str().unwrap().contains("bad key"), "{task:#}");
    host.ok(&["tasks", "retry", "1"]);
    let says = Server::answering(|_, request| {
        let text = request["messages"].to_string();
        assert!(text.contains("run: true") && text.contains("Go on with the task"), "{text}");
        Answer::text("done now")
    });
    host.work(&says, &[]);
    let again = host.task(1);
    assert_eq!((again["state"].as_str(), &again["epoch"]), (Some("done"), &2.into()), "{again:#}");
    assert_eq!(again["session"], task["session"]);
    assert_eq!(again["result"]["answer"], "done now");
    // From the beginning it is another session.
    host.ok(&["tasks", "retry", "1", "--anew"]);
    host.work(&runs_its_prompt(), &[]);
    let anew = host.task(1);
    assert_eq!(anew["state"], "done");
    assert_ne!(anew["session"], task["session"]);
}

#[test]
fn a_cancelled_task_ends_wherever_it_is() {
    let postgres = Postgres::with_fleet(3);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    host.ok(&["submit", "--repo", &repo, "--prompt", "run: sleep 300", RULE]);
    host.ok(&["submit", "--repo", &repo, "--prompt", "run: true", RULE]);
    host.ok(&["tasks", "cancel", "2"]);
    assert_eq!(host.task(2)["state"], "cancelled");
    let worker = host.start(&model, &[]);
    until("it runs", || host.ok(&["tasks", "logs", "1"]).contains("START"));
    host.ok(&["tasks", "cancel", "1"]);
    until("it is cancelled", || host.task(1)["state"] == "cancelled");
    assert!(host.agentd(&["tasks", "cancel", "1"]).err.contains("over already: 1"));
    host.end(worker);
    assert_eq!(host.ended_calls().len(), 1);
}

/// The host that cancelled a task takes it again.
#[test]
fn a_cancelled_task_that_is_retried_is_not_cancelled_again() {
    let postgres = Postgres::with_fleet(3);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let model = Server::answering(|_, request| match request.to_string().contains("attempt 2") {
        true => Answer::text("done"),
        false => Answer::says([call("toolu_1", "bash", r#"{"command": "sleep 300"}"#)]),
    });
    host.ok(&["submit", "--repo", &repo, "--prompt", "wait", RULE]);
    let worker = host.start(&model, &[]);
    until("it runs", || host.ok(&["tasks", "logs", "1"]).contains("START"));
    host.ok(&["tasks", "cancel", "1"]);
    until("it is cancelled", || host.task(1)["state"] == "cancelled");
    host.ok(&["tasks", "retry", "1"]);
    until("it is over", || !["queued", "running"].map(Into::into).contains(&host.task(1)["state"]));
    assert_eq!(host.task(1)["state"], "done", "{:#}", host.task(1));
    host.end(worker);
}

/// The database refuses claims while its engine could lose commits. What runs goes on.
#[test]
fn a_worker_that_may_claim_nothing_goes_on_with_its_tasks() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    host.ok(&[
        "submit",
        "--repo",
        &repo,
        "--prompt",
        "run: until test -e go; do sleep 0.1; done",
        RULE,
    ]);
    let mut worker = host.start(&model, &["--slots", "2"]);
    until("it runs", || host.ok(&["tasks", "logs", "1"]).contains("START"));
    let set = |text: &str| {
        postgres.sql(&format!("alter system {text}"));
        postgres.sql("select pg_reload_conf()");
    };
    set("set fsync = off");
    until("no task is claimed", || host.log().contains("has fsync off"));
    assert!(worker.try_wait().unwrap().is_none(), "{}", host.log());
    set("reset fsync");
    let session = host.task(1)["session"].as_str().unwrap().to_owned();
    std::fs::write(host.workspace(&session).join("go"), "").unwrap();
    until("it is done", || host.task(1)["state"] == "done");
    assert_eq!(host.task(1)["epoch"], 1);
    host.end(worker);
}

#[test]
fn labels_choose_the_host_and_bad_input_is_named() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    host.ok(&["submit", "--repo", &repo, "--prompt", "run: true", "--label", "gpu=yes", RULE]);
    host.work(&model, &[]);
    assert_eq!(host.task(1)["state"], "queued");
    host.work(&model, &["--label", "gpu=yes", "--label", "zone=a"]);
    assert_eq!(host.task(1)["state"], "done");
    let no = host.agentd(&["tasks", "show", "77"]);
    assert_eq!(no.code, 2);
    assert!(no.err.contains("there is no task 77"), "{}", no.err);
    let file = host.desk.write("tasks.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":3}\n");
    let bad = host.agentd(&["submit", "-f", file.to_str().unwrap(), "--repo", &repo]);
    assert!(bad.err.contains("line 2: "), "{}", bad.err);
    assert_eq!(postgres.sql("select count(*) from agentd.task"), "1");
    host.ok(&["submit", "--repo", &repo, "--ref", "nope", "--prompt", "run: true"]);
    host.work(&model, &[]);
    assert!(host.task(2)["reason"].as_str().unwrap().contains("\"nope\""));
}

#[test]
fn a_worker_s_role_executes_functions_and_reads_and_writes_no_table() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    postgres.sql("create role w login; grant agentd_worker to w; insert into agentd.member values ('w', 'one')");
    let as_worker = |text: &str| psql(&postgres.url_of("w"), text);
    let enlist = "select agentd.enlist(gen_random_uuid(), 'w', '{}', 1, 'b')";
    as_worker(enlist).unwrap();
    for text in [
        "select * from agentd.task",
        "insert into agentd.journal values ('one', 's', 1, 1, now(), 'x')",
        "update agentd.lease set until = now()",
        "delete from agentd.member",
        "select agentd.submit('[]')",
        "create table agentd.x (y int)",
    ] {
        let refused = as_worker(text).unwrap_err();
        assert!(refused.contains("permission denied"), "{text}: {refused}");
    }
    // A role without a tenant does nothing at all.
    postgres.sql("create role stranger login; grant agentd_worker, agentd_user to stranger");
    let refused = psql(&postgres.url_of("stranger"), enlist).unwrap_err();
    assert!(refused.contains("belongs to no tenant"), "{refused}");
    drop(host);
}

#[test]
fn hosts_that_start_at_once_in_a_new_month_all_start() {
    let postgres = Postgres::with_fleet(30);
    for _ in 0..5 {
        postgres.sql(
            "do $$ declare name text; begin
                for name in select c.relname from pg_class c where c.relname ~ '^journal_2' and c.relkind = 'r' loop
                    execute format('drop table agentd.%I', name);
                end loop;
            end $$",
        );
        let enlist = "select lease_ms from agentd.enlist(gen_random_uuid(), 'w', '{}', 1, 'b')";
        let url = postgres.url();
        let started = std::thread::scope(|scope| {
            let hosts: Vec<_> = (0..8).map(|_| scope.spawn(|| psql(&url, enlist))).collect();
            hosts.into_iter().map(|host| host.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(started, vec![Ok("30000".to_owned()); 8]);
    }
}

#[test]
fn tenants_see_and_claim_only_their_own() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    postgres.sql("create role ann login; create role bob login");
    host.ok(&["fleet", "allow", "ann", "--tenant", "a"]);
    host.ok(&["fleet", "allow", "bob", "--tenant", "b"]);
    let (ann, bob) = (postgres.url_of("ann"), postgres.url_of("bob"));
    host.ok(&["submit", "--repo", &repo, "--prompt", "run: true", "--database", &ann]);
    assert!(host.ok(&["tasks", "ls", "--database", &ann]).contains("run: true"));
    assert!(!host.ok(&["tasks", "ls", "--database", &bob]).contains("run: true"));
    assert_eq!(host.agentd(&["tasks", "show", "1", "--database", &bob]).code, 2);
    assert_eq!(host.agentd(&["tasks", "cancel", "1", "--database", &bob]).code, 2);
    assert_eq!(psql(&bob, "select agentd.cancel(1)").unwrap(), "f");
    host.work(&runs_its_prompt(), &["--database", &bob]);
    assert_eq!(
        host.ok(&["tasks", "ls", "--state", "queued", "--json", "--database", &ann])
            .lines()
            .count(),
        1
    );
    // A host works for one tenant.
    let other = Host::new(&postgres);
    other.work(&runs_its_prompt(), &["--database", &ann]);
    assert_eq!(host.ok(&["tasks", "ls", "--state", "queued", "--json", "--database", &ann]), "");
}

#[test]
fn an_engine_that_loses_commits_is_refused_and_so_is_another_schema() {
    let postgres = Postgres::start();
    let host = Host::new(&postgres);
    let init = |words: &[&str]| host.agentd(&[&["fleet", "init"], words].concat());
    let none = host.agentd(&["tasks", "ls"]);
    assert_eq!(none.code, 16);
    assert!(
        none.err.contains("has no fleet") && none.err.contains("agentd fleet init"),
        "{}",
        none.err
    );
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        postgres.sql(&format!("alter system set {setting} = off"));
        postgres.sql("select pg_reload_conf()");
        std::thread::sleep(std::time::Duration::from_millis(300));
        let refused = init(&[]);
        if setting != "synchronous_commit" {
            // A connection of agentd sets that one itself.
            assert!(refused.err.contains(&format!("{setting} off")), "{}", refused.err);
        }
        postgres.sql(&format!("alter system reset {setting}"));
        postgres.sql("select pg_reload_conf()");
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    assert_eq!(init(&[]).code, 0);
    assert!(init(&[]).out.contains("is up to date"));
    postgres.sql("insert into agentd.schema_version values (99)");
    let newer = host.agentd(&["tasks", "ls"]);
    assert!(
        newer.err.contains("version 99") && newer.err.contains("update agentd"),
        "{}",
        newer.err
    );
}

/// The filter of the host's user would run outside of the sandbox, beside files of the agent.
#[test]
fn what_an_agent_writes_makes_git_of_the_host_run_nothing() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let ran = host.desk.outside().join("ran");
    // With the other setting a clone has no `origin`.
    let filter = format!(
        "[filter \"own\"]\n\tclean = touch {}; cat\n[clone]\n\tdefaultRemoteName = upstream\n",
        ran.display()
    );
    fs::write(host.desk.home().join(".gitconfig"), filter).unwrap();
    let command = "run: echo '* filter=own' > .gitattributes; echo hello > a";
    host.ok(&["submit", "--repo", &repo, "--prompt", command, "--permission-mode=auto"]);
    let worked = host.work(&runs_its_prompt(), &[]);
    assert_eq!(host.task(1)["state"], "done", "{}", worked.err);
    assert!(host.ok(&["tasks", "diff", "1"]).contains("+hello"));
    assert!(!ran.exists(), "git ran a program of the host");
    // The control: it is what git would run.
    fs::write(std::path::Path::new(&repo).join(".gitattributes"), "* filter=own\n").unwrap();
    let mut git = std::process::Command::new("git");
    git.args(["-C", &repo, "add", "."]).env("HOME", host.desk.home());
    assert!(git.status().unwrap().success() && ran.exists());
}
