//! A Slurm of one machine, private to a test: its own munge key, ports, directories and daemons. Any user can
//! run it, for jobs of that user.

use crate::support::{is_root, needs, until};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, geteuid};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How many processors the node says it has: tasks wait most of their time.
const PROCESSORS: u32 = 8;

/// A running controller with one node. Its jobs and daemons end with the test.
pub struct Slurm {
    root: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Slurm {
    pub fn start() -> Self {
        for program in ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel"]
        {
            needs(program);
        }
        // The path of a socket must be short.
        let place = if is_root() { "/srv" } else { "/var/tmp" };
        let root = tempfile::Builder::new().prefix("sl").tempdir_in(place).unwrap();
        let mut slurm = Self { root, daemons: Vec::new() };
        slurm.configure();
        let [key, socket] = ["munge.key", "munge.socket"].map(|name| slurm.file(name));
        let at = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
        let munged = [
            // The directories above belong to root or are shared, which munged refuses without this.
            "--force".to_owned(),
            "--foreground".to_owned(),
            at("key-file", &key),
            at("socket", &socket),
            at("pid-file", &slurm.file("munged.pid")),
            at("log-file", &slurm.file("munged.log")),
            at("seed-file", &slurm.file("munged.seed")),
        ];
        slurm.spawn("munged", &munged.each_ref().map(String::as_str));
        until("munged listens", || socket.exists());
        slurm.spawn("slurmctld", &["-D"]);
        slurm.spawn("slurmd", &["-D", "-N", "here"]);
        until("the node is up", || {
            slurm.check_daemons();
            slurm.command("sinfo", &["-h", "-o", "%T"]).output().unwrap().stdout == b"idle\n"
        });
        slurm
    }

    fn configure(&self) {
        for name in ["state", "spool"] {
            fs::create_dir(self.file(name)).unwrap();
        }
        let mut key = vec![0; 1024];
        std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut key).unwrap();
        fs::write(self.file("munge.key"), key).unwrap();
        fs::set_permissions(self.file("munge.key"), fs::Permissions::from_mode(0o600)).unwrap();
        // No control groups: older versions have no word for that, and name a plugin that then does nothing.
        let version = Command::new("slurmd").arg("-V").output().unwrap().stdout;
        let version = String::from_utf8_lossy(&version).into_owned();
        let major = version.split([' ', '.']).find_map(|word| word.trim().parse::<u32>().ok());
        let plugin = if major.unwrap() < 23 { "cgroup/v1" } else { "disabled" };
        fs::write(self.file("cgroup.conf"), format!("CgroupPlugin={plugin}\n")).unwrap();
        let (root, user, [controller, node]) =
            (self.root.path().display(), geteuid(), free_ports());
        let text = format!(
            "ClusterName=test
             SlurmctldHost=localhost(127.0.0.1)
             SlurmctldPort={controller}
             SlurmUser={user}
             SlurmdUser={user}
             # A requeued job waits so many seconds; less than five are refused.
             AuthInfo=socket={root}/munge.socket,cred_expire=5
             StateSaveLocation={root}/state
             SlurmdSpoolDir={root}/spool
             SlurmctldPidFile={root}/slurmctld.pid
             SlurmdPidFile={root}/slurmd.pid
             ProctrackType=proctrack/linuxproc
             TaskPlugin=task/none
             MpiDefault=none
             SelectType=select/cons_tres
             SelectTypeParameters=CR_CPU_Memory
             SlurmdParameters=config_overrides
             SchedulerParameters=batch_sched_delay=0,sched_interval=1
             # Only a job that asks for it is requeued.
             JobRequeue=0
             NodeName=here NodeAddr=127.0.0.1 Port={node} CPUs={PROCESSORS} RealMemory=8000
             PartitionName=all Nodes=here Default=YES
            "
        );
        fs::write(self.conf(), text).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The value of `SLURM_CONF`, by which Slurm's programs find this one.
    pub fn conf(&self) -> PathBuf {
        self.file("slurm.conf")
    }

    /// In a process group of its own, with a log.
    fn spawn(&mut self, program: &str, words: &[&str]) {
        let log = fs::File::create(self.file(&format!("{program}.out"))).unwrap();
        let mut command = self.command(program, words);
        command.process_group(0).stdin(Stdio::null()).current_dir(self.root.path());
        let command = command.stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(command.spawn().unwrap());
    }

    /// Fails with their logs if a daemon ended.
    fn check_daemons(&mut self) {
        let ended = self.daemons.iter_mut().any(|daemon| daemon.try_wait().unwrap().is_some());
        let logs = ["munged", "slurmctld", "slurmd"].map(|program| {
            fs::read_to_string(self.file(&format!("{program}.out"))).unwrap_or_default()
        });
        assert!(!ended, "a daemon of Slurm ended:\n{}", logs.join("\n"));
    }

    /// A program of Slurm, for this one.
    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).env("SLURM_CONF", self.conf());
        command
    }

    /// Standard output of such a program, which succeeds.
    pub fn ask(&self, program: &str, words: &[&str]) -> String {
        let done = self.command(program, words).output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{program} {words:?}: {error}");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// How many jobs wait, run or end.
    pub fn queued(&self) -> usize {
        self.ask("squeue", &["-h", "-r"]).lines().count()
    }

    /// A field of an element `ARRAY_INDEX`, which Slurm knows for minutes after its end.
    pub fn field(&self, element: &str, name: &str) -> String {
        let shown = self.ask("scontrol", &["show", "job", "-o", element]);
        let mut fields = shown.split_whitespace().filter_map(|word| word.split_once('='));
        let found = fields.find(|(field, _)| *field == name);
        found.unwrap_or_else(|| panic!("no {name} in {shown}")).1.to_owned()
    }

    /// Kills what still runs.
    pub fn end_jobs(&self) {
        let jobs = self.command("squeue", &["-h", "-r", "-o", "%i"]).output();
        let jobs = jobs.map(|done| String::from_utf8_lossy(&done.stdout).into_owned());
        for job in jobs.unwrap_or_default().lines() {
            let _ = self.command("scancel", &["--full", "--signal=KILL", job]).output();
            let _ = self.command("scancel", &[job]).output();
        }
        for _ in 0..100 {
            let left = self.command("squeue", &["-h"]).output();
            if left.is_ok_and(|done| done.stdout.is_empty()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.end_jobs();
        for daemon in self.daemons.iter_mut().rev() {
            if let Ok(group) = i32::try_from(daemon.id()) {
                let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
            }
            let _ = daemon.wait();
        }
    }
}

/// Two ports that nothing listens at.
fn free_ports() -> [u16; 2] {
    let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.each_ref().map(|listener| listener.local_addr().unwrap().port())
}
