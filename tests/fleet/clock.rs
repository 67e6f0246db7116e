//! Clocks of hosts that are wrong or jump: leases count the time since the boot, so that no task notices.
//!
//! `host_clock` shifts the time of day of a host; a time namespace shifts the time since its boot.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::Postgres;
use crate::support::{processes, until};
use std::fs;

/// An hour, in seconds.
pub const HOUR: i64 = 3600;

/// True if the worker of this host reads the time through its clock. The memory of the daemon is closed to
/// ordinary users; its records show its time.
fn worker_has_clock(host: &Host) -> bool {
    let of_host = host.processes();
    let maps = |pid: u32| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    processes().into_iter().any(|it| {
        it.name == "agentd-fleet" && of_host.contains(&it.pid) && maps(it.pid).contains("clock.so")
    })
}

#[test]
fn a_clock_that_jumps_while_a_call_runs_costs_nothing() {
    let postgres = Postgres::with_fleet(3);
    let (mut first, second) = (Host::new(&postgres), Host::new(&postgres));
    first.set_clock();
    let repo = repository(&first.desk);
    let model = runs_its_prompt();
    // The command shows the time of day that the cage has: not the host's.
    let prompt =
        "run: for i in 1 2 3 4 5 6 7 8; do echo $i >> made; sleep 1; done; date +%s >> made";
    first.ok(&["submit", "--repo", &repo, "--prompt", prompt, "--permission-mode=auto"]);
    let worker = first.start(&model, &["--name", "first"]);
    until("it runs", || first.ok(&["tasks", "logs", "1"]).contains("START"));
    assert!(worker_has_clock(&first), "the library is not in the worker");
    // Another host would take the task if the lease ran out.
    let other = second.start(&model, &["--name", "second"]);
    for hours in [1, -1, 0, -2] {
        first.jump_clock(hours * HOUR);
        std::thread::sleep(std::time::Duration::from_millis(1500));
    }
    until("it is done", || first.task(1)["state"] == "done");
    let task = first.task(1);
    assert_eq!((&task["epoch"], first.ended_calls().len()), (&1.into(), 1), "{task:#}");
    // The control: the daemon did read another time.
    let lines = postgres.sql(
        "select count(*) from agentd.journal where abs(extract(epoch from at) * 1000
             - (line::json ->> 'time')::numeric) > 3000000",
    );
    assert_ne!(lines, "0", "no record has another time of day");
    let patch = first.ok(&["tasks", "diff", "1"]);
    let seen: i64 = patch.lines().last().unwrap().trim_start_matches('+').parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(
        i64::try_from(now.as_secs()).unwrap() - seen < 600,
        "the library came into the sandbox"
    );
    first.end(worker);
    second.end(other);
}

/// After a boot the clock of leases begins again. The first boot is 28 hours long, the second a minute.
#[test]
fn a_host_that_was_booted_again_goes_on_with_its_task() {
    let postgres = Postgres::with_fleet(30);
    let mut host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    host.ok(&[
        "submit",
        "--repo",
        &repo,
        "--prompt",
        "run: sleep 3; echo x >> made",
        "--permission-mode=auto",
    ]);
    host.boot_time = Some(100_000);
    let mut worker = host.start(&model, &[]);
    until("it runs", || host.ok(&["tasks", "logs", "1"]).contains("START"));
    host.lose_power();
    let _ = worker.wait();
    host.boot_time = Some(-60);
    let mut worker = host.start(&model, &[]);
    until("it is done", || host.task(1)["state"] == "done");
    let task = host.task(1);
    let logs = host.ok(&["tasks", "logs", "1"]);
    assert_eq!(task["epoch"], 1, "{task:#}");
    assert!(logs.contains("INTERRUPTED") && logs.matches("START").count() == 1, "{logs}");
    host.lose_power();
    let _ = worker.wait();
}
