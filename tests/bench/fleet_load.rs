//! How many workers one PostgreSQL carries: real connections that call the fleet's functions as
//! `agentd-fleet` does, without models and without pauses, on a cluster of the run's own.

use crate::postgres::Postgres;
use crate::support::processes;
use std::cell::RefCell;
use std::fs;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, LocalSet};
use tokio_postgres::{Client, NoTls};

/// Tasks of each run.
const TASKS: usize = 10_000;
/// Connections that claim, in the figure of claims alone.
const CLAIMERS: usize = 16;
/// Workers of the runs.
const WORKERS: [usize; 4] = [50, 100, 200, 500];
/// Lines of the appends of a task: prompt and answer, START, RESULT, and the last answer with its end.
const APPENDS: [usize; 4] = [3, 1, 2, 4];
/// Bytes of a line.
const LINE: usize = 500;
/// Leases of 30 s are renewed each third of that.
const RENEW: Duration = Duration::from_secs(10);

/// What a worker does with a task that it claimed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    ClaimOnly,
    Whole,
}

/// What all workers of a run measured.
#[derive(Default)]
struct Measured {
    claims: Vec<Duration>,
    appends: Vec<Duration>,
    finishes: Vec<Duration>,
}

/// Claims a second, against plain commits of as many connections. More is better.
pub(crate) fn claims_row() {
    let postgres = cluster();
    let plain = on_one_thread(plain_commits(postgres.url()));
    let (took, measured) = on_one_thread(run(postgres.url(), CLAIMERS, Work::ClaimOnly));
    let rate = measured.claims.len() as f64 / took.as_secs_f64();
    let verdict = if rate >= 1000.0 { "PASS" } else { "MISS" };
    println!(
        "| claims of {CLAIMERS} connections, {TASKS} tasks queued | {rate:.0} /s | >= 1000 /s | {verdict} | \
         commits of one row, as many connections: {plain:.0} /s, {:.2} x |",
        rate / plain
    );
}

/// The table of runs with more and more workers.
pub(crate) fn rows() {
    println!(
        "\n| Workers | Tasks a second | claim p50 / p99 ms | append p50 / p95 / p99 ms | finish p50 / p99 ms | \
         Database's processors | This client's | Waits of its active connections | Journal, lease, task MiB | \
         Lease: dead rows, HOT updates |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for workers in WORKERS {
        level(workers);
    }
}

fn level(workers: usize) {
    let postgres = cluster();
    let before = (processor_time(postgres.pid()), own_time());
    let (took, mut measured) = on_one_thread(async {
        let url = postgres.url();
        let sampling = tokio::task::spawn_local(sample_waits(postgres.url()));
        let (took, measured) = run(url, workers, Work::Whole).await;
        let after = (processor_time(postgres.pid()), own_time());
        sampling.abort();
        (took, (measured, after))
    });
    let (measured, after) = (&mut measured.0, measured.1);
    let seconds = took.as_secs_f64();
    let used = |from: f64, to: f64| (to - from) / seconds;
    let waits = shares_of_waits();
    let sizes = postgres.sql(
        "select string_agg(round(size / 1048576.0, 1)::text, ', ' order by place) from (values
            (1, (select sum(pg_total_relation_size(relid)) from pg_partition_tree('agentd.journal'))),
            (2, pg_total_relation_size('agentd.lease')),
            (3, pg_total_relation_size('agentd.task'))) as sizes (place, size)",
    );
    let lease = postgres.sql(
        "select n_dead_tup || ', ' || round(100.0 * n_tup_hot_upd / greatest(n_tup_upd, 1)) || ' %'
        from pg_stat_user_tables where schemaname = 'agentd' and relname = 'lease'",
    );
    println!(
        "| {workers} | {:.0} | {} / {} | {} / {} / {} | {} / {} | {:.2} | {:.2} | {waits} | {sizes} | {lease} |",
        measured.finishes.len() as f64 / seconds,
        at(&mut measured.claims, 50),
        at(&mut measured.claims, 99),
        at(&mut measured.appends, 50),
        at(&mut measured.appends, 95),
        at(&mut measured.appends, 99),
        at(&mut measured.finishes, 50),
        at(&mut measured.finishes, 99),
        used(before.0, after.0),
        used(before.1, after.1),
    );
}

fn cluster() -> Postgres {
    let postgres = Postgres::start_for(600);
    postgres.init_fleet(30);
    postgres.sql(&format!(
        "select count(*) from agentd.submit((select jsonb_agg(jsonb_build_object('repo', '/r', 'ref', 'HEAD',
            'prompt', 'x', 'flags', '[]'::jsonb, 'labels', '[]'::jsonb, 'on_host_loss', 'report'))
            from generate_series(1, {TASKS})))"
    ));
    postgres
}

pub(crate) fn on_one_thread<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(work))
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    // As a worker's connection has them.
    let settings = "set synchronous_commit = on; set enable_seqscan = off; set jit = off";
    client.batch_execute(settings).await.unwrap();
    client
}

/// All workers until no task waits, without the time to connect.
async fn run(url: String, workers: usize, work: Work) -> (Duration, Measured) {
    let measured = Rc::new(RefCell::new(Measured::default()));
    let mut enlisted = Vec::new();
    for number in 0..workers {
        let client = connect(&url).await;
        let id = format!("00000000-0000-4000-8000-{number:012}");
        let text = "select agentd.enlist($1::text::uuid, 'w', '{}', 1, 'bench')";
        client.execute(text, &[&id]).await.unwrap();
        enlisted.push((client, id));
    }
    let begun = Instant::now();
    let works = enlisted.into_iter().map(|(client, id)| {
        tokio::task::spawn_local(worker(client, id, work, Rc::clone(&measured)))
    });
    let works: Vec<JoinHandle<Client>> = works.collect();
    // The connections stay until the database's processes have been looked at.
    let mut clients = Vec::new();
    for work in works {
        clients.push(work.await.unwrap());
    }
    let took = begun.elapsed();
    tokio::task::spawn_local(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(clients);
    });
    (took, measured.take())
}

async fn worker(client: Client, id: String, work: Work, measured: Rc<RefCell<Measured>>) -> Client {
    let claim =
        client.prepare("select lease::text, last_seq from agentd.claim($1::text::uuid, 1, 30000)");
    let claim = claim.await.unwrap();
    let append = client.prepare("select agentd.append($1::text::uuid, $2, $3)").await.unwrap();
    let finish = client
        .prepare("select agentd.finish($1::text::uuid, 'done', null, '{\"answer\":\"done\"}')")
        .await
        .unwrap();
    let line = format!("{{\"kind\":\"START\",\"filler\":\"{}\"}}", "x".repeat(LINE - 30));
    let mut renewed = Instant::now();
    loop {
        let begun = Instant::now();
        let Some(row) = client.query_opt(&claim, &[&id]).await.unwrap() else { return client };
        measured.borrow_mut().claims.push(begun.elapsed());
        if work == Work::ClaimOnly {
            continue;
        }
        let lease: String = row.get(0);
        let mut next: i64 = row.get::<_, i64>(1) + 1;
        for lines in APPENDS {
            let lines = vec![line.as_str(); lines];
            let begun = Instant::now();
            client.execute(&append, &[&lease, &next, &lines]).await.unwrap();
            measured.borrow_mut().appends.push(begun.elapsed());
            next += lines.len() as i64;
        }
        if renewed.elapsed() > RENEW {
            renewed = Instant::now();
            let text = "select agentd.renew($1::text::uuid, array[$2::text::uuid])";
            client.execute(text, &[&id, &lease]).await.unwrap();
        }
        let begun = Instant::now();
        client.execute(&finish, &[&lease]).await.unwrap();
        measured.borrow_mut().finishes.push(begun.elapsed());
    }
}

/// Commits a second of connections that each insert one row of a plain table.
async fn plain_commits(url: String) -> f64 {
    const EACH: usize = 200;
    let owner = connect(&url).await;
    owner.batch_execute("create table plain (n bigint)").await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..CLAIMERS {
        clients.push(connect(&url).await);
    }
    let begun = Instant::now();
    let works: Vec<_> = clients
        .into_iter()
        .map(|client| {
            tokio::task::spawn_local(async move {
                let insert = client.prepare("insert into plain values (1)").await.unwrap();
                for _ in 0..EACH {
                    client.execute(&insert, &[]).await.unwrap();
                }
            })
        })
        .collect();
    for work in works {
        work.await.unwrap();
    }
    (CLAIMERS * EACH) as f64 / begun.elapsed().as_secs_f64()
}

thread_local! {
    /// What active connections waited for, one entry for each seen.
    static WAITS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

pub(crate) async fn sample_waits(url: String) {
    WAITS.with_borrow_mut(Vec::clear);
    let client = connect(&url).await;
    loop {
        let text = "select coalesce(wait_event, 'processor') from pg_stat_activity
            where state = 'active' and pid <> pg_backend_pid()";
        let rows = client.query(text, &[]).await.unwrap();
        WAITS.with_borrow_mut(|waits| waits.extend(rows.iter().map(|row| row.get::<_, String>(0))));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The three most frequent waits since the last [`sample_waits`] began.
pub(crate) fn shares_of_waits() -> String {
    WAITS.with_borrow(|waits| shares(waits))
}

fn shares(seen: &[String]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for wait in seen {
        *counts.entry(wait).or_insert(0_usize) += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let share = |(wait, count): (&String, usize)| format!("{wait} {} %", 100 * count / seen.len());
    counts.into_iter().take(3).map(share).collect::<Vec<_>>().join(", ")
}

pub(crate) fn at(times: &mut [Duration], percent: usize) -> String {
    times.sort();
    let time = times.get(times.len() * percent / 100).copied().unwrap_or_default();
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

/// Seconds that the postmaster and its children used, those that ended included.
pub(crate) fn processor_time(postmaster: u32) -> f64 {
    let children = processes().into_iter().filter(|it| it.parent == postmaster);
    let live: u64 = children.map(|it| ticks(it.pid, 2)).sum();
    (live + ticks(postmaster, 4)) as f64 / 100.0
}

fn own_time() -> f64 {
    ticks(std::process::id(), 2) as f64 / 100.0
}

/// The first so many of a process's own times and those of its children that ended, in 1/100 s.
fn ticks(pid: u32, fields: usize) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().skip(11).take(fields).filter_map(|it| it.parse::<u64>().ok()).sum()
}
