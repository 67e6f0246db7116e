//! A database that takes no more connections: a worker needs two, says so, and goes on once there is room.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::Postgres;
use crate::support::until;

#[test]
fn a_worker_waits_for_a_connection_and_goes_on() {
    let postgres = Postgres::with_fleet(30);
    postgres.sql("create role member login");
    let owner = Host::new(&postgres);
    owner.ok(&["fleet", "allow", "member"]);
    let limit = |most: i32| postgres.sql(&format!("alter role member connection limit {most}"));
    let host = Host::at(postgres.url_of("member"));
    let repo = repository(&host.desk);
    let submit = || {
        owner.ok(&["submit", "--repo", &repo, "--prompt", "run: true", "--permission-mode=auto"])
    };
    let of_state = |state: &str| {
        postgres.sql(&format!("select count(*) from agentd.task where state = '{state}'"))
    };
    limit(0);
    submit();
    let worker = host.start(&runs_its_prompt(), &[]);
    until("it says what is missing", || host.log().contains("waits for a connection"));
    assert!(host.log().contains("too many connections for role"), "{}", host.log());
    assert!(host.log().contains("raise max_connections"), "{}", host.log());
    assert_eq!(of_state("queued"), "1");
    limit(-1);
    until("the first task is over", || of_state("done") == "1");
    let count = "select count(*) from pg_stat_activity where usename = 'member'";
    assert_eq!(postgres.sql(count), "2", "the connections of a worker");
    // The same when it loses those that it had.
    limit(0);
    postgres.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'member'");
    until("it goes on without one", || host.log().contains("no task is claimed"));
    submit();
    limit(-1);
    until("the second task is over", || of_state("done") == "2");
    host.end(worker);
}
