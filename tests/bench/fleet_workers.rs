//! How many workers one PostgreSQL carries: real `agentd-fleet worker` processes, each with the directories of a
//! host of its own. In the place of `agentd` beside them is the stand-in of `fleet_stand_ins`.

use crate::fleet_load::{
    at, connect, on_one_thread, processor_time, sample_waits, shares_of_waits,
};
use crate::fleet_stand_ins::{GIT, play_daemon};
use crate::host::repository;
use crate::postgres::Postgres;
use crate::support::{Desk, processes, pss, send};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const WORKERS: [usize; 3] = [50, 200, 500];
/// How long the idle fleet is looked at, and the same with notifications.
const IDLE: Duration = Duration::from_secs(15);
/// Between two notifications, as an attached terminal gets them at most.
const PACE: Duration = Duration::from_millis(50);
/// What each session does, and on how many tasks for each worker.
struct Work {
    name: &'static str,
    tasks: usize,
    calls: usize,
    /// How long the model would think before each call, in milliseconds.
    thinks: u64,
    /// False if a stand-in takes the place of git too.
    has_git: bool,
}

const WORKS: [Work; 3] = [
    Work { name: "20 calls, 2 s apart", tasks: 1, calls: 20, thinks: 2000, has_git: true },
    Work { name: "20 calls at once", tasks: 4, calls: 20, thinks: 0, has_git: true },
    Work { name: "no call, no git", tasks: 8, calls: 0, thinks: 0, has_git: false },
];

pub(crate) fn rows() {
    let head = "\n| Workers | Up after s | Connections | Idle: claims, renewals /s | Database's processors | \
                the same, 20 notifications /s | Worker, PSS MiB | Database, PSS MiB | Ended after s |";
    println!("{head}\n|---|---|---|---|---|---|---|---|---|");
    // `FLEET_WORKERS=500` measures that one alone.
    let only: Option<usize> = std::env::var("FLEET_WORKERS").ok().and_then(|it| it.parse().ok());
    let levels = WORKERS.into_iter().filter(|it| only.is_none_or(|only| only == *it));
    let works: String = levels.map(level).collect();
    println!(
        "\n| Workers | Tasks | Tasks a second | All busy after s | START p50 / p95 / p99 ms | Appends a second | \
         claim, append in the database, mean ms | Database's processors | Others' | Waits of active connections | \
         Taken twice |\n|---|---|---|---|---|---|---|---|---|---|---|"
    );
    print!("{works}");
}

/// Prints the row of the idle fleet, and returns those of its work.
fn level(workers: usize) -> String {
    let postgres = Postgres::start_for(u16::try_from(workers * 3 + 40).unwrap());
    postgres.init_fleet(30);
    postgres.sql("alter system set track_functions = 'pl'");
    postgres.sql("select pg_reload_conf()");
    let begun = Instant::now();
    let fleet = Fleet::start(&postgres, workers);
    fleet.wait_for(&postgres, "select count(*) from agentd.worker");
    let up = begun.elapsed().as_secs_f64();
    fleet.wait_for(&postgres, "select count(*) from pg_stat_activity where query like 'listen%'");
    std::thread::sleep(Duration::from_secs(3));
    let idle = over(&postgres, IDLE, None);
    let notified = over(&postgres, IDLE, Some(PACE));
    let others = "application_name = 'agentd-fleet'";
    let connections =
        postgres.sql(&format!("select count(*) from pg_stat_activity where {others}"));
    let of_worker: u64 = fleet.hosts.iter().map(|(_, worker)| pss(worker.id())).sum();
    let of_database: u64 = processes()
        .iter()
        .filter(|it| it.parent == postgres.pid() || it.pid == postgres.pid())
        .map(|it| pss(it.pid))
        .sum();
    let works: String = WORKS.iter().map(|work| worked(&postgres, &fleet, work)).collect();
    println!(
        "| {workers} | {up:.1} | {connections} | {} | {:.2} | {:.2} | {:.1} | {:.0} | {:.1} |",
        idle.calls,
        idle.processors,
        notified.processors,
        of_worker as f64 / workers as f64 / 1024.0,
        of_database as f64 / 1024.0,
        fleet.end().as_secs_f64()
    );
    works
}

/// The load of the idle fleet.
struct Load {
    processors: f64,
    calls: String,
}

/// The load over this time, with a notification that often.
fn over(postgres: &Postgres, time: Duration, every: Option<Duration>) -> Load {
    postgres.sql("select pg_stat_reset()");
    let (begun, before) = (Instant::now(), processor_time(postgres.pid()));
    on_one_thread(async {
        let client = connect(&postgres.url()).await;
        while begun.elapsed() < time {
            if every.is_some() {
                client.batch_execute("select pg_notify('agentd_t_0', '')").await.unwrap();
            }
            tokio::time::sleep(every.unwrap_or(time)).await;
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let processors = (processor_time(postgres.pid()) - before) / seconds;
    std::thread::sleep(Duration::from_secs(2));
    let calls = postgres.sql(&format!(
        "select string_agg(round(calls / {seconds})::text, ', ' order by funcname)
        from pg_stat_user_functions where funcname in ('claim', 'renew')"
    ));
    Load { processors, calls }
}

/// Lets the fleet work, and returns the row of it.
fn worked(postgres: &Postgres, fleet: &Fleet, work: &Work) -> String {
    let (workers, git) = (fleet.hosts.len(), fleet.common.outside().join("bin/git"));
    if !work.has_git {
        fs::write(&git, GIT).unwrap();
        fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tasks = workers * work.tasks;
    let repo = fleet.common.outside().join("repo");
    postgres.sql("truncate agentd.task, agentd.lease, agentd.journal, agentd.snapshot");
    postgres.sql("select pg_stat_reset()");
    let before = (processor_time(postgres.pid()), machine_time());
    let took = on_one_thread(async {
        let client = connect(&postgres.url()).await;
        let submit = format!(
            "select count(*) from agentd.submit((select jsonb_agg(jsonb_build_object('repo', '{}', 'ref', 'HEAD',
                'prompt', '{} {}', 'flags', '[]'::jsonb, 'labels', '[]'::jsonb, 'on_host_loss', 'report'))
                from generate_series(1, {tasks})))",
            repo.display(),
            work.calls,
            work.thinks
        );
        let begun = Instant::now();
        client.batch_execute(&submit).await.unwrap();
        let sampling = tokio::task::spawn_local(sample_waits(postgres.url()));
        let open = "select count(*) from agentd.task where state in ('queued', 'running')";
        while client.query_one(open, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            assert!(begun.elapsed() < Duration::from_secs(600), "{}", fleet.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        sampling.abort();
        begun.elapsed().as_secs_f64()
    });
    let database = (processor_time(postgres.pid()) - before.0) / took;
    let others = (machine_time() - before.1) / took - database;
    std::thread::sleep(Duration::from_secs(2));
    let starts = postgres.sql(
        "select string_agg(us, ' ') from agentd.task, jsonb_array_elements_text(result -> 'run' -> 'starts') as us",
    );
    let mut starts: Vec<_> =
        starts.split_whitespace().map(|us| Duration::from_micros(us.parse().unwrap())).collect();
    let of_starts = match starts.is_empty() {
        true => "none".to_owned(),
        false => [50, 95, 99].map(|percent| at(&mut starts, percent)).join(" / "),
    };
    let mean =
        "string_agg(round((total_time / calls)::numeric, 1)::text, ', ' order by funcname desc)";
    format!(
        "| {workers} | {tasks}: {} | {:.1} | {} | {} | {} | {} | {database:.2} | {others:.2} | {} | {} |\n",
        work.name,
        tasks as f64 / took,
        postgres.sql(&format!(
            "select round(extract(epoch from (array_agg(started order by started))[{workers}]
                - min(submitted))::numeric, 1) from agentd.task"
        )),
        of_starts,
        postgres.sql(&format!(
            "select round(calls / {took}) from pg_stat_user_functions where funcname = 'append'"
        )),
        postgres.sql(&format!(
            "select {mean} from pg_stat_user_functions where funcname in ('claim', 'append')"
        )),
        shares_of_waits(),
        postgres
            .sql("select count(*) filter (where epoch > 1 or state <> 'done') from agentd.task"),
    )
}

/// Seconds that all processors of the machine were busy.
fn machine_time() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let times = text.lines().next().unwrap().split_whitespace().skip(1);
    let times: Vec<f64> = times.map(|it| it.parse().unwrap()).collect();
    // User, nice, system, then idle and the wait for disks, then interrupts.
    (times[0] + times[1] + times[2] + times[5] + times[6]) / 100.0
}

/// Workers, and what they have in common on this machine: programs, a repository, and a daemon.
struct Fleet {
    common: Desk,
    hosts: Vec<(Desk, Child)>,
}

impl Fleet {
    fn start(postgres: &Postgres, workers: usize) -> Self {
        let common = Desk::new();
        repository(&common);
        let bin = common.outside().join("bin");
        fs::create_dir(&bin).unwrap();
        let own = std::env::current_exe().unwrap();
        for (name, from) in [
            ("agentd", own.as_path()),
            ("agentd-fleet", Path::new(env!("CARGO_BIN_EXE_agentd-fleet"))),
        ] {
            fs::copy(from, bin.join(name)).unwrap();
        }
        let (socket, token) = (common.outside().join("socket"), common.outside().join("token"));
        fs::write(&token, "token").unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                std::thread::spawn(move || play_daemon(stream.unwrap()));
            }
        });
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let start = |_| {
            let desk = Desk::new();
            fs::create_dir(desk.door()).unwrap();
            fs::set_permissions(desk.door(), fs::Permissions::from_mode(0o700)).unwrap();
            symlink(&socket, desk.door().join("socket")).unwrap();
            symlink(&token, desk.door().join("token")).unwrap();
            let like = desk.agentd(&[]);
            let mut command = Command::new(bin.join("agentd-fleet"));
            command.args(["fleet", "worker"]).env_clear();
            command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env("PATH", &path).env("AGENTD_FLEET_URL", postgres.url());
            let log = fs::File::create(desk.outside().join("worker.log")).unwrap();
            let worker = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
            (desk, worker.unwrap())
        };
        let hosts = (0..workers).map(start).collect();
        Self { common, hosts }
    }

    /// Waits until this is the number of workers.
    fn wait_for(&self, postgres: &Postgres, count: &str) {
        let begun = Instant::now();
        while postgres.sql(count) != self.hosts.len().to_string() {
            assert!(begun.elapsed() < Duration::from_secs(120), "{count}: {}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends all workers in order.
    fn end(mut self) -> Duration {
        let begun = Instant::now();
        for (_, worker) in &self.hosts {
            send(worker.id(), Signal::SIGTERM);
        }
        for (_, worker) in &mut self.hosts {
            worker.wait().unwrap();
        }
        begun.elapsed()
    }

    /// The last lines of the workers that said something.
    fn log(&self) -> String {
        let of_host = |(desk, _): &(Desk, Child)| {
            let text = fs::read_to_string(desk.outside().join("worker.log")).unwrap();
            Some(text.lines().last()?.to_owned())
        };
        self.hosts.iter().filter_map(of_host).take(20).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for (_, worker) in &mut self.hosts {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}
