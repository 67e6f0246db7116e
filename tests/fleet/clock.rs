//! Clocks of hosts that are wrong or jump: leases count the time since the boot, so that no task notices.
//!
//! The clock of the machine stays as it is. A library that is loaded before the C library shifts the time of
//! day of one host's processes by what a file says; a time namespace shifts the time since the boot.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::Postgres;
use crate::support::{Desk, needs, processes, until};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// An hour, in seconds.
pub const HOUR: i64 = 3600;

const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *offset;
__attribute__((constructor)) static void begin(void) {
    int file = open(OFFSET_FILE, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *found = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) offset = found;
    close(file);
}
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = next(id, at);
    if (!failed && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += *offset;
    return failed;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"#;

/// The time of day of one host, which its processes read with an offset.
pub struct HostClock {
    pub library: PathBuf,
    offset: PathBuf,
}

impl HostClock {
    pub fn of(desk: &Desk) -> Self {
        needs("cc");
        let place = desk.outside();
        let [source, library, offset] =
            ["clock.c", "clock.so", "clock.offset"].map(|name| place.join(name));
        fs::write(&source, LIBRARY).unwrap();
        fs::write(&offset, 0_i64.to_ne_bytes()).unwrap();
        let file = format!("-DOFFSET_FILE=\"{}\"", offset.display());
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", &file, "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Self { library, offset }
    }

    /// Lets the time of day jump to so many seconds from the right one.
    pub fn jump(&self, seconds: i64) {
        use std::os::unix::fs::FileExt;
        // The file stays the same one: processes have it in their memory.
        let file = fs::File::options().write(true).open(&self.offset).unwrap();
        file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}

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
