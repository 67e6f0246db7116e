//! A person attaches to a session on another host, through the database.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::Postgres;
use crate::support::terminal::Tmux;
use crate::support::until;

#[test]
fn a_question_is_answered_from_another_host() {
    let postgres = Postgres::with_fleet(30);
    let (worker_host, desk_host) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&worker_host.desk);
    let model = runs_its_prompt();
    let ask = ["submit", "--repo", &repo, "--prompt", "run: echo x > made", "--ask"];
    desk_host.ok(&[&ask[..], &["--permission-mode", "ask"]].concat());
    let worker = worker_host.start(&model, &["--name", "far"]);
    until("it asks", || desk_host.ok(&["ls"]).contains("asking on far"));
    assert!(desk_host.ok(&["show", "task-1"]).contains("echo x > made"));
    let tmux = Tmux::new(&desk_host.desk);
    let terminal = tmux.run("one", &desk_host.command(&["attach", "1"]), (100, 30));
    terminal.shows("echo x > made");
    std::thread::sleep(std::time::Duration::from_millis(400));
    terminal.types("y");
    until("it is done", || desk_host.task(1)["state"] == "done");
    assert!(desk_host.ok(&["tasks", "diff", "1"]).contains("+x"));
    worker_host.end(worker);
    // The control: without an answer it is refused at once.
    let (other, repo) = (Host::new(&postgres), repository(&desk_host.desk));
    other.ok(&[
        "submit",
        "--repo",
        &repo,
        "--prompt",
        "run: echo x > made",
        "--permission-mode",
        "ask",
    ]);
    other.work(&model, &[]);
    assert_eq!(other.task(2)["state"], "failed", "{:#}", other.task(2));
}

#[test]
fn nobody_attaches_to_another_tenant_s_session() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    postgres.sql("create role ann login; create role bob login");
    host.ok(&["fleet", "allow", "ann", "--tenant", "a"]);
    host.ok(&["fleet", "allow", "bob", "--tenant", "b"]);
    let (ann, bob) = (postgres.url_of("ann"), postgres.url_of("bob"));
    let model = runs_its_prompt();
    let submit = ["submit", "--repo", &repo, "--prompt", "run: sleep 60"];
    host.ok(&[&submit[..], &["--permission-mode=auto", "--database", &ann]].concat());
    let worker = host.start(&model, &["--database", &ann]);
    let sessions = |url: &str| host.ok(&["fleet", "sessions", "--database", url]);
    until("it runs", || sessions(&ann).contains("\"task\":1"));
    assert_eq!(sessions(&bob), "");
    let other = Host::new(&postgres);
    let mut show = other.command(&["show", "task-1"]);
    show.env("AGENTD_FLEET_URL", &bob);
    assert!(crate::support::run(show).err.contains("there is no session"));
    let mut show = other.command(&["show", "task-1"]);
    show.env("AGENTD_FLEET_URL", &ann);
    until("it is shown", || {
        let mut show = other.command(&["show", "task-1"]);
        show.env("AGENTD_FLEET_URL", &ann);
        crate::support::run(show).out.contains("sleep 60")
    });
    drop(show);
    host.end(worker);
}
