//! The functions of the database, as `agentd-fleet` calls them: leases, appends, snapshots, decisions.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::{Postgres, program_path, psql};
use crate::support::until;
use std::process::Command;

const WORKER: &str = "00000000-0000-4000-8000-000000000001";

/// A fleet with one task, and a worker that runs no process.
fn with_task() -> Postgres {
    let postgres = Postgres::with_fleet(30);
    postgres.sql(
        r#"select agentd.submit('[{"repo": "/r", "ref": "HEAD", "prompt": "p", "on_host_loss": "report"}]')"#,
    );
    postgres.sql(&format!("select agentd.enlist('{WORKER}', 'w', '{{}}', 1, 'b')"));
    postgres
}

/// Claims a task: what the claim says of a failover, and of the policy.
fn claim(postgres: &Postgres) -> String {
    postgres
        .sql(&format!("select failed_over, on_host_loss from agentd.claim('{WORKER}', 1, 30000)"))
}

fn lease(postgres: &Postgres) -> String {
    postgres.sql("select lease from agentd.lease")
}

/// The host is silent for longer than its lease.
fn lose_host(postgres: &Postgres) {
    postgres.sql("update agentd.lease set until = clock_timestamp() - interval '1 hour'");
}

fn append(postgres: &Postgres, first: u32, lines: &[&str]) -> Result<String, String> {
    let (lease, lines) = (lease(postgres), lines.join("','"));
    psql(&postgres.url(), &format!("select agentd.append('{lease}', {first}, array['{lines}'])"))
}

#[test]
fn an_append_that_is_repeated_in_part_adds_the_rest_and_no_other_line() {
    let postgres = with_task();
    claim(&postgres);
    append(&postgres, 1, &["a", "b", "c"]).unwrap();
    append(&postgres, 1, &["a", "b", "c"]).unwrap();
    append(&postgres, 2, &["b", "c", "d", "e"]).unwrap();
    for (first, lines) in [(7, ["x"]), (5, ["x"])] {
        let refused = append(&postgres, first, &lines).unwrap_err();
        assert!(refused.contains("ends at record 5"), "{refused}");
    }
    assert!(append(&postgres, 3, &["c", "x", "y"]).unwrap_err().contains("ends at record 5"));
    let all =
        "select string_agg(line, '' order by seq), max(last_seq) from agentd.journal, agentd.lease";
    assert_eq!(postgres.sql(all), "abcde|5");
    // A host whose lease ran out adds nothing, before and after another one has the task.
    let old = lease(&postgres);
    lose_host(&postgres);
    let late = format!("select agentd.append('{old}', 6, array['f'])");
    assert!(psql(&postgres.url(), &late).unwrap_err().contains("the lease ran out"));
    claim(&postgres);
    assert!(psql(&postgres.url(), &late).unwrap_err().contains("another host has the task"));
    append(&postgres, 6, &["f"]).unwrap();
}

#[test]
fn a_snapshot_whose_records_never_came_is_not_restored() {
    let postgres = with_task();
    claim(&postgres);
    append(&postgres, 1, &["a", "b"]).unwrap();
    for seq in [2, 3] {
        let lease = lease(&postgres);
        postgres.sql(&format!("select agentd.put_snapshot('{lease}', {seq}, 'b', 't', 'x', null)"));
    }
    lose_host(&postgres);
    claim(&postgres);
    assert_eq!(postgres.sql("select string_agg(seq::text, ',') from agentd.snapshot"), "2");
}

#[test]
fn a_person_decides_for_one_claim_and_a_failover_is_not_forgotten() {
    let postgres = with_task();
    assert_eq!(claim(&postgres), "f|report");
    postgres.sql("update agentd.lease set timeline = 0");
    lose_host(&postgres);
    assert_eq!(claim(&postgres), "t|report");
    // The host that knew of it was lost too.
    lose_host(&postgres);
    assert_eq!(claim(&postgres), "t|report");
    postgres.sql(&format!("select agentd.finish('{}', 'held', 'why', null)", lease(&postgres)));
    assert_eq!(claim(&postgres), "");
    postgres.sql("select agentd.again(1, false)");
    assert_eq!(claim(&postgres), "f|resume");
    lose_host(&postgres);
    assert_eq!(claim(&postgres), "f|report");
}

#[test]
fn a_cancelled_task_of_a_lost_host_runs_nowhere() {
    let postgres = with_task();
    claim(&postgres);
    postgres.sql("select agentd.cancel(1)");
    assert_eq!(postgres.sql("select state from agentd.task"), "running");
    lose_host(&postgres);
    assert_eq!(claim(&postgres), "");
    assert_eq!(postgres.sql("select state from agentd.task"), "cancelled");
}

/// A host renews by the length that it claimed with, whatever `init --lease` says since.
#[test]
fn a_lease_keeps_the_length_of_its_claim() {
    let postgres = with_task();
    claim(&postgres);
    postgres.sql("update agentd.setting set lease_ms = 1000");
    let renew =
        format!("select lease from agentd.renew('{WORKER}', array['{}'::uuid])", lease(&postgres));
    assert_eq!(postgres.sql(&renew), lease(&postgres));
    let left = "select until > clock_timestamp() + interval '25 s' from agentd.lease";
    assert_eq!(postgres.sql(left), "t");
}

/// A terminal that is gone without a word, and messages that no terminal takes any more.
#[test]
fn messages_do_not_pile_up_for_a_terminal_that_takes_none() {
    let postgres = with_task();
    claim(&postgres);
    let terminal = "00000000-0000-4000-8000-000000000002";
    let down = |n: u32| {
        let lease = lease(&postgres);
        psql(
            &postgres.url(),
            &format!("select agentd.relay_down('{lease}', '{terminal}', {n}, 'x')"),
        )
    };
    down(0).unwrap();
    down(1).unwrap();
    postgres.sql("update agentd.relay set at = at - interval '20 s'");
    assert!(down(2).unwrap_err().contains("takes no messages any longer"));
    postgres.sql("update agentd.relay set at = at - interval '2 h'");
    postgres.sql(&format!("select agentd.enlist('{WORKER}', 'w', '{{}}', 1, 'b')"));
    assert_eq!(postgres.sql("select count(*) from agentd.relay"), "0");
}

#[test]
fn a_user_does_not_learn_a_lease_and_a_blob_is_what_its_digest_says() {
    let postgres = with_task();
    claim(&postgres);
    postgres.sql("create role ann login; grant agentd_user to ann; insert into agentd.member values ('ann', 'default')");
    let ann = postgres.url_of("ann");
    assert!(
        psql(&ann, "select lease from agentd.lease").unwrap_err().contains("permission denied")
    );
    assert_eq!(psql(&ann, "select task from agentd.lease").unwrap(), "1");
    let lease = lease(&postgres);
    let put = |of: &str| format!("select agentd.put_blob('{lease}', sha256('{of}'), 'x')");
    assert!(psql(&postgres.url(), &put("y")).unwrap_err().contains("another digest"));
    psql(&postgres.url(), &put("x")).unwrap();
}

#[test]
fn a_task_gives_its_run_no_flag_that_the_command_line_does_not_know() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    postgres.sql(&format!(
        r#"select agentd.submit('[{{"repo": "{repo}", "ref": "HEAD", "prompt": "run: true",
            "on_host_loss": "report", "flags": ["--add-dir=/"]}}]')"#
    ));
    host.work(&runs_its_prompt(), &[]);
    let task = host.task(1);
    assert_eq!(task["state"], "failed", "{task:#}");
    assert!(task["reason"].as_str().unwrap().contains("--add-dir=/"), "{task:#}");
}

/// Whoever copies the log as it is written is a standby, and a failover to it loses the newest records. An
/// owner who may not see the states of standbys notices them too.
#[test]
fn a_standby_that_nobody_waits_for_is_refused_for_every_owner() {
    let postgres = Postgres::start();
    let host = Host::new(&postgres);
    postgres.sql("create role me login createrole; alter database fleet owner to me");
    let me = postgres.url_of("me");
    let init = |flags: &[&str]| host.agentd(&[&["fleet", "init", &me], flags].concat());
    assert_eq!(init(&[]).code, 0, "the control: without a standby it is taken");
    let log = host.desk.outside().join("wal");
    std::fs::create_dir(&log).unwrap();
    let mut standby = Command::new(program_path("pg_receivewal"))
        .args(["-D", log.to_str().unwrap(), "-d", &postgres.url().replace("/fleet", "/")])
        .spawn()
        .unwrap();
    until("it streams", || {
        postgres.sql("select count(*) from pg_stat_replication where state = 'streaming'") == "1"
    });
    let refused = init(&[]);
    assert!(refused.err.contains("has a standby and waits for none"), "{}", refused.err);
    assert_eq!(init(&["--accept-async-standby"]).code, 0);
    // What no flag gives stays as it was.
    assert_eq!(init(&["--lease", "120"]).code, 0);
    assert!(init(&[]).out.contains("lease 120 s"));
    standby.kill().unwrap();
    let _ = standby.wait();
}

/// With `local` a standby that takes over lacks what was acknowledged. agentd's own connections ask for more.
#[test]
fn commits_that_wait_for_no_standby_are_refused_by_name() {
    let postgres = with_task();
    claim(&postgres);
    let (lease, host) = (lease(&postgres), Host::new(&postgres));
    let repo = repository(&host.desk);
    let setting = || postgres.sql("show synchronous_commit");
    for (number, (change, back)) in (2_i64..).zip([
        ("alter system set synchronous_commit = local", "alter system reset synchronous_commit"),
        ("alter role owner set synchronous_commit = local", "alter role owner reset all"),
    ]) {
        assert_eq!(setting(), "on");
        postgres.sql(change);
        postgres.sql("select pg_reload_conf()");
        until("it is set", || setting() == "local");
        for call in [
            "agentd.check_engine()".to_owned(),
            format!("agentd.enlist('{WORKER}', 'w', '{{}}', 1, 'b')"),
            format!("agentd.claim('{WORKER}', 1, 30000)"),
            format!("agentd.append('{lease}', {number}, array['a'])"),
        ] {
            let refused = psql(&postgres.url(), &format!("select {call}")).unwrap_err();
            for part in ["synchronous_commit local", "set synchronous_commit = on"] {
                assert!(refused.contains(part), "{change}: {call}: {refused}");
            }
        }
        // The controls: the same statements of a session that has it on, and a worker.
        for call in [
            "agentd.check_engine()".to_owned(),
            format!("agentd.append('{lease}', {}, array['a'])", number - 1),
        ] {
            let on = format!("set synchronous_commit = on; select {call}");
            psql(&postgres.url(), &on).unwrap();
        }
        host.ok(&["submit", "--repo", &repo, "--prompt", "run: true", "--permission-mode=auto"]);
        let worked = host.start(&runs_its_prompt(), &[]);
        until("it is done", || host.task(number)["state"] == "done");
        host.end(worked);
        postgres.sql(back);
        postgres.sql("select pg_reload_conf()");
        until("it is reset", || setting() == "on");
    }
}
