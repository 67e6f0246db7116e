//! Many tasks over three hosts, each with a network and a state directory of its own: each task has one
//! result, and each call began once.
#![allow(clippy::unwrap_used)]

use crate::counter::Counter;
use crate::fault::Fleet;
use crate::host::{Host, repository};
use crate::network::Network;
use crate::postgres::Postgres;
use crate::soak::two_calls;
use crate::support::needs;
use crate::verdict::Verdict;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

const TASKS: usize = 200;
const HOSTS: usize = 3;
/// Longest time for all of them, on a machine that others use too.
const LONGEST: Duration = Duration::from_secs(1800);

/// The START lines of each call. A host that goes on with a session has a copy of the earlier lines, which is
/// the same line: two lines are two beginnings.
type Begun = BTreeMap<(String, u64), BTreeSet<String>>;

#[test]
#[ignore = "takes minutes, and needs root"]
fn two_hundred_tasks_over_three_hosts() {
    needs("curl");
    let network = Network::new(HOSTS);
    let postgres = Postgres::start_in(Some(network.database()));
    postgres.init_fleet(30);
    let counter = Counter::start();
    let model = two_calls(counter.port);
    let model_port = model.url().rsplit(':').next().unwrap().parse().unwrap();
    for port in [model_port, counter.port] {
        network.relay(port);
    }
    let hosts: Vec<Host> = (0..HOSTS)
        .map(|number| {
            let url = postgres.url_at(&Network::address_for(number));
            let host = Host::within(network.of_host(number), url);
            host.configure("auto", "[net]\nmode = \"on\"\n");
            host
        })
        .collect();
    let repo = repository(&hosts[0].desk);
    let (workers, network) = (hosts.iter().map(|_| None).collect(), Some(network));
    let mut fleet = Fleet { postgres, network, hosts, workers, model, ended_by_themselves: 0 };
    let (array, prompt) = (TASKS.to_string(), "mark on{n}x net");
    let submit = ["submit", "--repo", &repo, "--array", &array, "--prompt", prompt];
    let began = Instant::now();
    fleet.hosts[0].ok(&[&submit[..], &["--permission-mode=auto"]].concat());
    for host in 0..HOSTS {
        let name = format!("host{host}");
        let worker = fleet.hosts[host].start(&fleet.model, &["--slots", "3", "--name", &name]);
        fleet.workers[host] = Some(worker);
    }
    let left = "select count(*) from agentd.task where state in ('queued', 'running')";
    while fleet.postgres.sql(left) != "0" {
        assert!(began.elapsed() < LONGEST, "{} tasks are left", fleet.postgres.sql(left));
        std::thread::sleep(Duration::from_millis(200));
    }
    let took = began.elapsed().as_secs_f64();
    let verdict = Verdict::of(&fleet, &counter);
    let wrong = [&verdict.lost, &verdict.repeated, &verdict.untrue];
    assert!(wrong.iter().all(|reasons| reasons.is_empty()), "{wrong:#?}");
    let results: usize = count(&fleet, "result is not null and state = 'done'");
    let begun = begun(&fleet.hosts);
    let twice = begun.values().filter(|lines| lines.len() > 1).count();
    println!(
        "tasks {}, results {results}, calls {}, begun twice {twice}; {took:.1} s, by host {}",
        verdict.tasks,
        begun.len(),
        by_host(&fleet)
    );
    assert_eq!((verdict.tasks, results, twice), (TASKS, TASKS, 0));
    // The check sees them all: two calls of each task began, and the counter has each once.
    assert_eq!((begun.len(), counter.all().len()), (2 * TASKS, 2 * TASKS));
    let audited: Vec<_> = fleet.hosts.iter().flat_map(Host::started_calls).collect();
    assert_eq!(audited.len(), 2 * TASKS);
    assert_eq!(audited.iter().collect::<BTreeSet<_>>(), begun.keys().collect());
    assert!(fleet.hosts.iter().all(|host| !host.started_calls().is_empty()), "a host did nothing");
}

fn count(fleet: &Fleet, which: &str) -> usize {
    let query = format!("select count(*) from agentd.task where {which}");
    fleet.postgres.sql(&query).parse().unwrap()
}

fn by_host(fleet: &Fleet) -> String {
    fleet
        .hosts
        .iter()
        .map(|host| host.started_calls().len().to_string())
        .collect::<Vec<_>>()
        .join("/")
}

/// What the journals of all hosts say, also those that were set aside.
fn begun(hosts: &[Host]) -> Begun {
    let mut begun = Begun::new();
    for host in hosts {
        for place in ["sessions", "fleet/left"] {
            let place = host.desk.state().join(place);
            for session in fs::read_dir(place).into_iter().flatten().flatten() {
                // A journal that was set aside has a time behind the session's name.
                let name = session.file_name().into_string().unwrap();
                let name = name.split('-').take(3).collect::<Vec<_>>().join("-");
                let journal = session.path().join("journal.jsonl");
                read(&name, &fs::read_to_string(journal).unwrap_or_default(), &mut begun);
            }
        }
    }
    begun
}

fn read(session: &str, journal: &str, begun: &mut Begun) {
    for line in journal.lines() {
        let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
        if record["kind"] == "START" {
            let call = (session.to_owned(), record["call"].as_u64().unwrap());
            begun.entry(call).or_default().insert(line.to_owned());
        }
    }
}

/// The control: the count of beginnings sees a second one, and takes a copy for none.
#[test]
fn a_second_beginning_is_counted_and_a_copy_is_none() {
    let journal = |at: u32| format!("{{\"kind\":\"START\",\"call\":1,\"at\":{at}}}\n");
    let mut begun = Begun::new();
    read("s", &journal(1), &mut begun);
    read("s", &journal(1), &mut begun);
    assert_eq!(begun[&("s".to_owned(), 1)].len(), 1);
    read("s", &journal(2), &mut begun);
    assert_eq!(begun[&("s".to_owned(), 1)].len(), 2);
}
