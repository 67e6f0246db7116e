//! The file of `agentd fleet recipe slurm` under a real Slurm: an array works for the fleet and ends by itself,
//! and an element that Slurm ends gives its task back.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt, started_calls_in};
use crate::postgres::Postgres;
use crate::recipes::{RULE, program, recipe};
use crate::slurm::Slurm;
use crate::support::anthropic::Server;
use crate::support::{Desk, is_root, run, until, write_program};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longer than any wait of a test: only a worker that gives its task back lets another have it.
const LEASE: u32 = 60;

/// A person's account on a cluster, with a fleet.
struct Account {
    host: Host,
    model: Server,
    recipe: PathBuf,
    repo: String,
    slurm: Slurm,
    _postgres: Postgres,
}

impl Account {
    fn new() -> Self {
        let postgres = Postgres::with_fleet(LEASE);
        let host = Host::new(&postgres);
        let (recipe, repo) =
            (recipe(&host.desk, "slurm", "slurm-array.sh"), repository(&host.desk));
        // The recipe reads the address of the database here. No variable has it.
        let config = host.desk.home().join(".config/agentd");
        fs::create_dir_all(&config).unwrap();
        let url = format!("{}?sslmode=disable&application_name=element", postgres.url());
        let lines = format!("# The database\n\nAGENTD_FLEET_URL={url}\n");
        fs::write(config.join("fleet.env"), lines).unwrap();
        let (model, slurm) = (runs_its_prompt(), Slurm::start());
        fs::create_dir(host.desk.outside().join("node")).unwrap();
        Self { host, model, recipe, repo, slurm, _postgres: postgres }
    }

    /// A disk of the node, for state and workspaces.
    fn node_disk(&self) -> PathBuf {
        self.host.desk.outside().join("node")
    }

    fn submit(&self, command: &str, copies: &str) {
        let prompt = format!("run: {command}");
        let words = ["submit", "--repo", &self.repo, "--prompt", &prompt, "--array", copies, RULE];
        self.host.ok(&words);
    }

    /// Submits the recipe with these elements, for a node of this machine's size. Returns the array's job.
    fn sbatch(&self, elements: &str) -> String {
        let mut sbatch = program(&self.host.desk, &self.model, "sbatch");
        sbatch.env("SLURM_CONF", self.slurm.conf()).env("AGENTD_SCRATCH", self.node_disk());
        let size = ["--parsable", "--cpus-per-task=1", "--mem=100M"];
        sbatch.args(size).arg(format!("--array={elements}")).arg(&self.recipe);
        let done = run(sbatch);
        assert_eq!(done.code, 0, "{}", done.err);
        done.out.trim().to_owned()
    }

    /// The directories of all elements so far.
    fn elements(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.node_disk()).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// How many elements have the session of this task on their disk.
    fn elements_with(&self, task: i64) -> usize {
        let session = self.host.task(task)["session"].as_str().unwrap().to_owned();
        let place = Path::new("state/agentd/sessions").join(session);
        self.elements().iter().filter(|element| element.join(&place).exists()).count()
    }

    /// The element that has this task now, as `ARRAY_INDEX`.
    fn element_of(&self, task: i64) -> String {
        let host = self.host.task(task)["host"].as_str().unwrap().to_owned();
        host.rsplit_once('-').unwrap().1.to_owned()
    }

    /// Waits until a call of this task runs.
    fn runs(&self, task: i64) {
        soon("its call runs", || {
            self.host.agentd(&["tasks", "logs", &task.to_string()]).out.contains("START")
        });
    }

    /// Checks that this task ended with an answer, that a host took it so often, and that its call ran once.
    fn has_result(&self, task: i64, epoch: i32) {
        let shown = self.host.task(task);
        let log = self.log();
        assert_eq!((&shown["state"], &shown["epoch"]), (&"done".into(), &epoch.into()), "{log}");
        assert_eq!(shown["result"]["answer"], "done", "{shown:#}");
        let logs = self.host.ok(&["tasks", "logs", &task.to_string()]);
        assert_eq!(logs.matches("START").count(), 1, "{logs}");
        assert_eq!(logs.matches("TURN_ENDED").count(), 1, "{logs}");
    }

    /// The calls that all elements let go, of which none is there twice.
    fn started_calls(&self) -> usize {
        let states = self.elements().into_iter().map(|element| element.join("state/agentd"));
        let calls: Vec<_> = states.flat_map(|state| started_calls_in(&state)).collect();
        assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), calls.len(), "{calls:?}");
        calls.len()
    }

    /// How many calls ended in the audit log of this element, with those that were lost with their supervisor:
    /// where this machine is slow, Slurm kills it before it knows how its call ended.
    fn ended_calls(element: &Path) -> usize {
        let log = fs::read_to_string(element.join("state/agentd/audit/log.jsonl")).unwrap();
        let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter(|record| record["event"] == "ended").count()
    }

    /// What the elements wrote.
    fn log(&self) -> String {
        let entries = fs::read_dir(self.host.desk.project()).into_iter().flatten().flatten();
        let texts = entries.map(|entry| fs::read_to_string(entry.path()).unwrap_or_default());
        texts.collect::<Vec<_>>().join("\n")
    }

    fn is_empty_soon(&self) {
        soon("no element is left", || self.slurm.queued() == 0);
    }
}

/// Waits for a condition that a program tells, which is not asked all the time.
#[track_caller]
fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    until(what, || {
        std::thread::sleep(Duration::from_millis(100));
        holds()
    });
}

impl Drop for Account {
    /// A Slurm without control groups leaves the daemon of an element, which would end when it has no work.
    fn drop(&mut self) {
        self.slurm.end_jobs();
        for element in self.elements() {
            let words = ["daemon", "stop", "--force"];
            let mut stop = program(&self.host.desk, &self.model, env!("CARGO_BIN_EXE_agentd"));
            stop.args(words).env("XDG_STATE_HOME", element.join("state"));
            let _ = stop.env_remove("XDG_RUNTIME_DIR").output();
        }
    }
}

#[test]
#[ignore = "needs Slurm: .ci/nightly machine"]
fn a_slurm_array_runs_each_task_once_and_ends_by_itself() {
    let account = Account::new();
    account.submit("until test -e go; do sleep 0.1; done; echo {n} > n{n}", "4");
    let array = account.sbatch("1-2");
    // Two tasks fit in one element: all run at once only if both elements do.
    for task in 1..=4 {
        account.runs(task);
    }
    let elements: BTreeSet<String> = (1..=4).map(|task| account.element_of(task)).collect();
    let submitted = BTreeSet::from([format!("{array}_1"), format!("{array}_2")]);
    assert_eq!(elements, submitted);
    for element in account.elements() {
        for session in fs::read_dir(element.join("work")).unwrap().flatten() {
            fs::write(session.path().join("workspace/go"), "").unwrap();
        }
    }
    account.is_empty_soon();
    for task in 1..=4 {
        account.has_result(task, 1);
        let patch = account.host.ok(&["tasks", "diff", &task.to_string()]);
        assert!(patch.contains(&format!("+++ b/n{task}\n")), "{patch}");
    }
    assert_eq!(account.started_calls(), 4);
    for element in &submitted {
        assert_eq!(account.slurm.field(element, "JobState"), "COMPLETED");
        let log = account.host.desk.project().join(format!("agentd-fleet-{element}.log"));
        assert!(log.exists(), "{}", log.display());
    }
}

/// Slurm sends SIGTERM to the worker alone at `--signal`, as before the end of its time, and to each process of
/// a job that is cancelled.
#[test]
#[ignore = "needs Slurm: .ci/nightly machine"]
fn an_element_that_slurm_ends_gives_its_task_back_to_another() {
    let account = Account::new();
    for (task, flags, state) in
        [(1, &["--signal=TERM", "--batch"][..], "COMPLETED"), (2, &[], "CANCELLED")]
    {
        account.submit("echo x >> made; sleep 300", "1");
        account.sbatch("1-2");
        account.runs(task);
        let element = account.element_of(task);
        account.slurm.ask("scancel", &[flags, &[&element]].concat());
        soon("another element ends the task", || account.host.task(task)["state"] == "done");
        account.has_result(task, 2);
        assert_eq!(account.elements_with(task), 2);
        account.is_empty_soon();
        assert_eq!(account.slurm.field(&element, "JobState"), state);
        assert_eq!(account.started_calls(), usize::try_from(task).unwrap());
    }
}

#[test]
#[ignore = "needs Slurm: .ci/nightly machine"]
fn a_requeued_element_comes_again_and_its_task_ends() {
    let account = Account::new();
    account.submit("echo x >> made; sleep 300", "1");
    account.sbatch("1");
    account.runs(1);
    let element = account.element_of(1);
    account.slurm.ask("scontrol", &["requeue", &element]);
    soon("the task is given back", || account.host.task(1)["state"] == "queued");
    soon("the element comes again", || {
        ["RUNNING", "COMPLETED"].contains(&account.slurm.field(&element, "JobState").as_str())
    });
    account.is_empty_soon();
    account.has_result(1, 2);
    assert_eq!(account.slurm.field(&element, "Restarts"), "1");
    assert_eq!(account.slurm.field(&element, "JobState"), "COMPLETED");
    assert_eq!((account.elements().len(), account.elements_with(1)), (1, 1));
    assert_eq!(Account::ended_calls(&account.elements()[0]), 1);
}

/// Others can write to the usual place, and the number of a job can be guessed.
#[test]
fn an_element_refuses_a_directory_that_another_prepared() {
    let desk = Desk::new();
    let script = recipe(&desk, "slurm", "slurm-array.sh");
    let [disk, bin, theirs] = ["node", "bin", "theirs"].map(|name| desk.outside().join(name));
    for place in [&disk, &bin, &theirs] {
        fs::create_dir(place).unwrap();
    }
    write_program(&bin.join("agentd"), "echo \"$XDG_STATE_HOME $*\"");
    let begin = |job: &str| {
        let mut bash = Command::new("setsid");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        bash.arg("bash").arg(&script).env_clear().env("PATH", path).env("HOME", desk.home());
        run({
            bash.env("AGENTD_SCRATCH", &disk).env("SLURM_JOB_ID", job);
            bash
        })
    };
    let control = begin("7");
    assert_eq!(control.code, 0, "{}", control.err);
    let own = fs::read_dir(&disk).unwrap().next().unwrap().unwrap().path();
    assert!(control.out.starts_with(&format!("{}/state fleet worker", own.display())));
    assert_eq!(begin("7").code, 0, "a requeued element has its own directory");
    let all = own.to_str().unwrap().strip_suffix('7').unwrap();
    let of_job = |job: &str| PathBuf::from(format!("{all}{job}"));
    let mut prepared = vec!["8"];
    std::os::unix::fs::symlink(&theirs, of_job("8")).unwrap();
    // Only root can make a directory of another user.
    if is_root() {
        fs::create_dir(of_job("9")).unwrap();
        std::os::unix::fs::chown(of_job("9"), Some(65534), None).unwrap();
        prepared.push("9");
    }
    for job in prepared {
        let refused = begin(job);
        assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{}", refused.err);
        let words = format!("-{job} is not yours. Set AGENTD_SCRATCH");
        assert!(refused.err.contains(&words), "{}", refused.err);
    }
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
}
