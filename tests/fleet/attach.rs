//! A person attaches to a session on another host, through the database.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::{Postgres, psql};
use crate::support::terminal::Tmux;
use crate::support::{run, until};
use std::time::{Duration, Instant};

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
    std::thread::sleep(Duration::from_millis(400));
    terminal.press(&["Enter"]);
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

/// `agentd stop`, `kill` and `rm` are for sessions of this host; they name the commands that reach another one.
#[test]
fn commands_for_this_host_name_the_way_to_a_session_on_another() {
    let postgres = Postgres::with_fleet(30);
    let (far, near) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&far.desk);
    let submit =
        ["submit", "--repo", &repo, "--prompt", "run: sleep 300", "--permission-mode=auto"];
    near.ok(&submit);
    let worker = far.start(&runs_its_prompt(), &["--name", "far"]);
    until("it runs", || near.ok(&["tasks", "logs", "1"]).contains("START"));
    let session = near.task(1)["session"].as_str().unwrap().to_owned();
    for command in ["stop", "kill", "rm"] {
        for name in [session.as_str(), "task-1", "1"] {
            let ran = near.agentd(&[command, name]);
            assert_eq!(ran.code, 2, "{command} {name}: {}", ran.err);
            let words = [&session, "on the host far", "agentd tasks cancel 1", "agentd attach 1"];
            for word in words {
                assert!(ran.err.contains(word), "{command} {name}: {}", ran.err);
            }
        }
        let unknown = near.agentd(&[command, "task-2"]);
        assert!(unknown.err.contains("there is no session"), "{}", unknown.err);
    }
    assert_eq!(near.task(1)["state"], "running");
    near.ok(&["tasks", "cancel", "1"]);
    until("it is cancelled", || near.task(1)["state"] == "cancelled");
    // The controls: on its own host a session is found, and without a fleet none is elsewhere.
    let ended = far.agentd(&["stop", "task-1"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.err.contains("not running on this host; `agentd tasks show 1`"), "{}", ended.err);
    let alone = run(near.desk.agentd(&["stop", "1"]));
    assert!(alone.err.contains("there is no session"), "{}", alone.err);
    far.end(worker);
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
    let command = |url: &str, words: &[&str]| {
        let mut command = other.command(words);
        command.env("AGENTD_FLEET_URL", url);
        command
    };
    let as_role = |url: &str, words: &[&str]| run(command(url, words));
    until("its own tenant sees it", || {
        as_role(&ann, &["tasks", "logs", "1"]).out.contains("START")
            && as_role(&ann, &["show", "task-1"]).out.contains("sleep 60")
    });
    let session = postgres.sql("select session from agentd.task");
    for (words, why) in [
        (&["show", "task-1"][..], "there is no session"),
        (&["show", &session], "there is no session"),
        (&["tasks", "logs", "1"], "there is no task 1"),
        (&["tasks", "show", "1"], "there is no task 1"),
        (&["tasks", "diff", "1"], "there is no task 1"),
        (&["attach", "1"], "no host works for a session"),
        (&["attach", &session], "no host works for a session"),
    ] {
        let refused = as_role(&bob, words);
        assert_ne!(refused.code, 0, "{words:?}: {}", refused.out);
        assert!(refused.err.contains(why), "{words:?}: {}", refused.err);
        assert!(!refused.out.contains("sleep 60"), "{words:?}: {}", refused.out);
    }
    // Without the command line: no message reaches the session either.
    let up = |url: &str| {
        let terminal = "00000000-0000-4000-8000-000000000002";
        psql(url, &format!("select agentd.relay_up('{terminal}', '{session}', 0, '\\x00')"))
    };
    assert!(up(&bob).unwrap_err().contains("no host works for"));
    up(&ann).unwrap();
    let tmux = Tmux::new(&other.desk);
    let terminal = tmux.run("own", &command(&ann, &["attach", "1"]), (100, 30));
    terminal.shows("sleep 60");
    drop(terminal);
    host.end(worker);
}

/// Whoever is in the database can give a terminal any name and send it anything.
#[test]
fn a_bad_message_ends_its_own_terminal_with_a_reason_and_no_other() {
    let postgres = Postgres::with_fleet(30);
    let (host, desk_host) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    let ask = ["submit", "--repo", &repo, "--prompt", "run: echo x > made", "--ask"];
    desk_host.ok(&[&ask[..], &["--permission-mode", "ask"]].concat());
    let worker = host.start(&model, &["--name", "far"]);
    until("it asks", || desk_host.ok(&["ls"]).contains("asking on far"));
    let tmux = Tmux::new(&desk_host.desk);
    let good = tmux.run("good", &desk_host.command(&["attach", "1"]), (100, 30));
    good.shows("echo x > made");
    let session = postgres.sql("select session from agentd.task");
    let terminal = "00000000-0000-4000-8000-000000000003";
    postgres.sql(&format!("select agentd.relay_up('{terminal}', '{session}', 0, '\\xffff')"));
    let last = format!(
        "select encode(bytes, 'escape') from agentd.relay where terminal = '{terminal}' and way = 'down'"
    );
    until("it gets a reason", || postgres.sql(&last).contains("it sent no message of agentd"));
    let channel =
        postgres.sql("select 'agentd_w_' || replace(id::text, '-', '') from agentd.worker");
    postgres.sql(&format!("notify {channel}, 'no-uuid {session}'"));
    until("both are ended", || host.log().matches("a terminal is ended").count() == 2);
    std::thread::sleep(Duration::from_millis(400));
    good.press(&["Enter"]);
    let began = Instant::now();
    while desk_host.task(1)["state"] != "done" {
        assert!(began.elapsed().as_secs() < 20, "{}\n{}", good.screen(), host.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    host.end(worker);
}

/// A terminal of another host may not give calls more rights. It is told so, and stays.
#[test]
fn a_terminal_that_asks_for_rights_on_another_host_is_refused() {
    let postgres = Postgres::with_fleet(30);
    let (host, desk_host) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    let submit = ["submit", "--repo", &repo, "--prompt", "run: sleep 60"];
    desk_host.ok(&[&submit[..], &["--permission-mode=auto"]].concat());
    let worker = host.start(&model, &[]);
    until("it runs", || desk_host.ok(&["tasks", "logs", "1"]).contains("START"));
    let tmux = Tmux::new(&desk_host.desk);
    let terminal = tmux.run("one", &desk_host.command(&["attach", "1"]), (100, 30));
    terminal.shows("sleep 60");
    terminal.enters(":net on");
    terminal.shows("a terminal on another host may not");
    terminal.enters("another prompt");
    until("it stays", || {
        desk_host.ok(&["tasks", "logs", "1", "--json"]).contains("another prompt")
    });
    drop(terminal);
    host.end(worker);
}
