//! Random faults of hosts, of their network and of the database, one after another, while tasks run.
//! `FLEET_SEED` repeats one run, `FLEET_FAULTS` sets the number of faults.
#![allow(clippy::unwrap_used)]

use crate::counter::Counter;
use crate::fault::{Fault, Fleet, LEASE, small_disk};
use crate::host::{Host, repository};
use crate::network::Network;
use crate::postgres::Postgres;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::dice::Dice;
use crate::support::needs;
use crate::verdict::Verdict;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[test]
fn random_faults_lose_nothing_and_repeat_nothing() {
    let postgres = Postgres::with_fleet(LEASE);
    let host = |_| {
        let mut host = Host::new(&postgres);
        host.set_clock();
        host
    };
    let hosts = (0..2).map(host).collect();
    soak(Faults { of: &Fault::SIMPLE, count: 8, tasks: 8 }, postgres, None, hosts);
}

#[test]
#[ignore = "takes hours, and needs root"]
fn a_thousand_faults_of_a_fleet() {
    let network = Network::new(4);
    let mut postgres = Postgres::start_in(Some(network.database()));
    postgres.init_fleet(LEASE);
    postgres.add_standby();
    let host = |number: usize| {
        let url = postgres.url_at(&Network::address_for(number));
        let mut host = Host::within(network.of_host(number), url);
        host.set_clock();
        small_disk(&host.desk);
        host
    };
    let hosts = (0..4).map(host).collect();
    let count = std::env::var("FLEET_FAULTS").map_or(1000, |count| count.parse().unwrap());
    soak(Faults { of: &Fault::ALL, count, tasks: 200 }, postgres, Some(network), hosts);
}

struct Faults {
    of: &'static [Fault],
    count: usize,
    /// Tasks at the least; more come while there are faults.
    tasks: usize,
}

fn soak(faults: Faults, postgres: Postgres, network: Option<Network>, hosts: Vec<Host>) {
    needs("curl");
    let mut dice = Dice::seeded("FLEET_SEED");
    let counter = Counter::start();
    let model = two_calls(counter.port);
    if let Some(network) = &network {
        let model = model.url().rsplit(':').next().unwrap().parse().unwrap();
        for port in [model, counter.port] {
            network.relay(port);
        }
    }
    let repo = repository(&hosts[0].desk);
    let workers = hosts.iter().map(|_| None).collect();
    let mut fleet = Fleet { postgres, network, hosts, workers, model, ended_by_themselves: 0 };
    for host in 0..fleet.hosts.len() {
        let net = if fleet.is_open(host) { "on" } else { "off" };
        fleet.hosts[host].variables.push(("AGENTD_TEST_CRASHES", "100000".to_owned()));
        fleet.hosts[host].configure("auto", &format!("[net]\nmode = \"{net}\"\n"));
        fleet.start(host);
    }
    let (mut submitted, mut happened) = (0, BTreeMap::<Fault, usize>::new());
    let began = Instant::now();
    for number in 0..faults.count {
        if submitted < faults.tasks || unfinished(&fleet) < 12 {
            submitted += submit(&fleet, &repo, submitted, &mut dice);
        }
        std::thread::sleep(Duration::from_millis(dice.below(1500) as u64));
        let fault = faults.of[dice.below(faults.of.len())];
        println!("{:>5} s  fault {number}: {fault:?}", began.elapsed().as_secs());
        fleet.suffer(fault, &mut dice);
        *happened.entry(fault).or_default() += 1;
        fleet.watch();
    }
    while submitted < faults.tasks {
        submitted += submit(&fleet, &repo, submitted, &mut dice);
    }
    let let_on = finish(&mut fleet);
    let verdict = Verdict::of(&fleet, &counter);
    for reason in verdict.lost.iter().chain(&verdict.repeated).chain(&verdict.untrue) {
        println!("{reason}");
    }
    println!(
        "faults {} {happened:?}: tasks {}, calls {}, not here {}, may have run {}, let on {let_on:?}, workers \
         that ended {}, lost {}, repeated {}, untrue {}; {dice}",
        faults.count,
        verdict.tasks,
        verdict.calls,
        verdict.not_here,
        verdict.may_have_run,
        fleet.ended_by_themselves,
        verdict.lost.len(),
        verdict.repeated.len(),
        verdict.untrue.len()
    );
    assert_eq!(verdict.tasks, submitted);
    let wrong = [&verdict.lost, &verdict.repeated, &verdict.untrue];
    assert!(wrong.iter().all(|reasons| reasons.is_empty()), "{wrong:#?}");
}

/// Tasks that are neither over nor held.
fn unfinished(fleet: &Fleet) -> usize {
    let count = "select count(*) from agentd.task where state in ('queued', 'running')";
    fleet.postgres.sql(count).parse().unwrap()
}

/// Submits some tasks of each kind, and returns how many.
fn submit(fleet: &Fleet, repo: &str, submitted: usize, dice: &mut Dice) -> usize {
    const EACH: &str = "4";
    for kind in ["on", "off"] {
        let policy = ["report", "retry", "resume"][dice.below(3)];
        let (prompt, label) = (format!("mark {kind}{submitted}x{{n}} net"), format!("net={kind}"));
        let words = ["submit", "--repo", repo, "--array", EACH, "--on-host-loss", policy];
        let more = ["--prompt", &prompt, "--label", &label, "--permission-mode=auto"];
        // The link was just mended, or the standby just took over.
        while let failed = fleet.hosts[0].agentd(&[&words[..], &more].concat())
            && failed.code != 0
        {
            assert!(failed.err.contains("connect"), "{}", failed.err);
            let connections = "select count(*) from pg_stat_activity";
            println!(
                "not submitted, {} connections: {}",
                fleet.postgres.sql(connections),
                failed.err
            );
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    8
}

/// Waits for the end of all tasks. Lets those go on that are held or failed, and counts them by reason.
fn finish(fleet: &mut Fleet) -> BTreeMap<String, usize> {
    let (mut let_on, began) = (BTreeMap::new(), Instant::now());
    let mut tries = BTreeMap::<String, usize>::new();
    let mut progress = (usize::MAX, Instant::now());
    loop {
        fleet.watch();
        let rows = fleet.postgres.sql(
            "select id, state, reason from agentd.task where state in ('held', 'failed') order by id",
        );
        for row in rows.lines() {
            let (id, reason) = row.split_once('|').unwrap();
            *let_on.entry(reason.to_owned()).or_default() += 1;
            let times = tries.entry(id.to_owned()).or_insert(0);
            *times += 1;
            let anew = if *times > 3 { &["--anew"][..] } else { &[] };
            let _ = fleet.hosts[0].agentd(&[&["tasks", "retry", id], anew].concat());
        }
        let left = unfinished(fleet);
        if left == 0 && rows.is_empty() {
            return let_on;
        }
        if left != progress.0 {
            progress = (left, Instant::now());
        }
        if progress.1.elapsed() > Duration::from_secs(90) {
            let rows = fleet.postgres.sql(
                "select t.id, t.state, t.epoch, t.session, l.until, w.name from agentd.task t left join agentd.lease l
                 using (session) left join agentd.worker w on w.id = l.worker where t.state in ('queued', 'running')",
            );
            let logs: Vec<_> = fleet.hosts.iter().map(Host::log).collect();
            panic!(
                "{left} tasks do not end, after {:?}: {rows}\n{}",
                began.elapsed(),
                logs.join("\n\n")
            );
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A model that makes two calls in each session, one after another, with a mark in a file of the task's name.
/// With a network each has an address of the counter too, by its session's name.
pub fn two_calls(port: u16) -> Server {
    Server::answering(move |_, request| {
        let messages = request["messages"].as_array().unwrap();
        let results: usize = messages
            .iter()
            .map(|message| message["content"].to_string().matches("\"tool_result\"").count())
            .sum();
        let Some(mark) = ["a", "b"].get(results) else { return Answer::text("done") };
        let prompt = messages[0].to_string();
        let name = prompt.split("mark ").nth(1).unwrap().split(' ').next().unwrap();
        // From nothing to a second, another for each task.
        let pause = name.bytes().map(usize::from).sum::<usize>() % 10;
        let count = match name.starts_with("on") {
            true => format!(
                "curl -s -m 5 http://127.0.0.1:{port}/$(basename $(dirname $PWD))/{mark}; sleep 0.2; "
            ),
            false => String::new(),
        };
        let command = format!("echo {mark} >> {name}; sleep 0.{pause}; {count}echo ended");
        let input = serde_json::json!({ "command": command }).to_string();
        Answer::says([call(&format!("toolu_{name}_{mark}"), "bash", &input)])
    })
}
