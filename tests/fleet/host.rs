//! A host of the fleet: a state directory, a daemon and a worker of its own.

use crate::host_clock::HostClock;
use crate::network::entering;
use crate::postgres::Postgres;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, is_root, needs, processes, run, send};
use nix::sys::signal::Signal;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Host {
    pub desk: Desk,
    url: String,
    /// Its network namespace, if it has one of its own.
    network: Option<String>,
    /// Variables of its worker, such as where large snapshots go.
    pub variables: Vec<(&'static str, String)>,
    /// The time of day of its processes, if it can jump.
    clock: Option<HostClock>,
    /// Seconds between the time since this machine's boot and since the host's.
    pub boot_time: Option<i64>,
}

impl Host {
    pub fn new(postgres: &Postgres) -> Self {
        Self::with(postgres.url(), None)
    }

    /// A host in this network namespace, from which the database has this address.
    pub fn within(network: String, url: String) -> Self {
        Self::with(url, Some(network))
    }

    fn with(url: String, network: Option<String>) -> Self {
        let variables = Vec::new();
        let host =
            Self { desk: Desk::new(), url, network, variables, clock: None, boot_time: None };
        host.configure("auto", "");
        host
    }

    /// Its configuration: the highest permission mode of tasks, and further lines.
    pub fn configure(&self, mode: &str, lines: &str) {
        let dir = self.desk.home().join(".config/agentd");
        fs::create_dir_all(&dir).unwrap();
        let text = format!("[permissions]\nmode = \"{mode}\"\n{lines}");
        fs::write(dir.join("config.toml"), text).unwrap();
    }

    /// Gives it a time of day of its own, which is right at first.
    pub fn set_clock(&mut self) {
        self.clock = Some(HostClock::of(&self.desk));
    }

    /// Lets its time of day jump to so many seconds from the right one.
    pub fn jump_clock(&self, seconds: i64) {
        self.clock.as_ref().unwrap().jump(seconds);
    }

    /// A host whose database has this address.
    pub fn at(url: String) -> Self {
        Self::with(url, None)
    }

    /// The same command in the host's network and with its clocks, with its database.
    fn placed(&self, mut command: Command) -> Command {
        command.env("AGENTD_FLEET_URL", &self.url);
        if let Some(clock) = &self.clock {
            command.env("LD_PRELOAD", &clock.library);
        }
        let mut prefix = self.network.as_deref().map(entering).unwrap_or_default();
        if let Some(seconds) = self.boot_time {
            needs("unshare");
            let seconds = seconds.to_string();
            // Only in a user namespace may ordinary users set such a clock.
            let user = ["--user", "--map-current-user"];
            prefix.push("unshare".to_owned());
            prefix.extend(user.iter().filter(|_| !is_root()).map(|&word| word.to_owned()));
            prefix.extend(["--time", "--boottime", &seconds].map(str::to_owned));
        }
        if prefix.is_empty() {
            return command;
        }
        let mut placed = Command::new(&prefix[0]);
        placed.args(&prefix[1..]).arg(command.get_program()).args(command.get_args());
        placed.env_clear().current_dir(self.desk.project()).stdin(Stdio::null());
        placed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        placed
    }

    /// `agentd` on this host.
    pub fn command(&self, words: &[&str]) -> Command {
        self.placed(self.desk.agentd(words))
    }

    pub fn agentd(&self, words: &[&str]) -> Run {
        run(self.command(words))
    }

    /// Standard output of a command that succeeds.
    pub fn ok(&self, words: &[&str]) -> String {
        let ran = self.agentd(words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        ran.out
    }

    /// A task as `tasks show --json` prints it.
    pub fn task(&self, number: i64) -> Value {
        serde_json::from_str(&self.ok(&["tasks", "show", &number.to_string(), "--json"])).unwrap()
    }

    pub fn worker_command(&self, model: &Server, flags: &[&str]) -> Command {
        let words = [&["fleet", "worker"], flags].concat();
        let mut command = self.desk.with_server(model, &words);
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        self.placed(command)
    }

    /// Works until no task is left, at most 120 s.
    pub fn work(&self, model: &Server, flags: &[&str]) -> Run {
        let began = Instant::now();
        let mut worker = self.start(model, &[&["--until-empty"], flags].concat());
        let status = loop {
            if let Some(status) = worker.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > Duration::from_secs(120) {
                self.lose_power();
                panic!("the worker does not end: {}", self.log());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let _ = self.agentd(&["daemon", "stop", "--force"]);
        let code = status.code().unwrap_or(-1);
        Run { code, out: String::new(), err: self.log(), took: began.elapsed() }
    }

    /// Starts a worker that goes on until it is ended.
    pub fn start(&self, model: &Server, flags: &[&str]) -> Child {
        let log = self.desk.outside().join("worker.log");
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        let mut command = self.worker_command(model, flags);
        command.stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.desk.outside().join("worker.log")).unwrap_or_default()
    }

    /// The processes of this host, without those of its sandboxes.
    pub fn processes(&self) -> Vec<u32> {
        let state = format!("XDG_STATE_HOME={}", self.desk.outside().join("state").display());
        let of_host = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == state.as_bytes())
        };
        let found = processes().iter().map(|process| process.pid).filter(of_host).collect();
        // The environment of a daemon is closed to ordinary users.
        match self.daemon().filter(|_| !is_root()) {
            Some(daemon) => [found, vec![daemon]].concat(),
            None => found,
        }
    }

    /// The process that listens at the daemon's socket, also while it stands still.
    fn daemon(&self) -> Option<u32> {
        let socket = UnixStream::connect(self.desk.door().join("socket")).ok()?;
        let peer = getsockopt(&socket, PeerCredentials).ok()?;
        u32::try_from(peer.pid()).ok()
    }

    /// The processes of this host, with all that they started.
    pub fn all_processes(&self) -> Vec<u32> {
        let (mut found, all) = (self.processes(), processes());
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            let children = all.iter().filter(|process| process.parent == parent);
            let new = children.map(|process| process.pid).filter(|pid| !found.contains(pid));
            found.extend(new.collect::<Vec<_>>());
            next += 1;
        }
        found
    }

    /// Sends a signal to every process of the host, until none is new.
    pub fn signal(&self, signal: Signal) {
        let mut sent = Vec::new();
        for _ in 0..5 {
            for pid in self.all_processes() {
                if !sent.contains(&pid) {
                    sent.push(pid);
                    let _ = nix::sys::signal::kill(
                        nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap()),
                        signal,
                    );
                }
            }
        }
    }

    /// Kills everything of the host, as a loss of power does.
    pub fn lose_power(&self) {
        while !self.processes().is_empty() {
            self.signal(Signal::SIGKILL);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends a worker in order, and the daemon.
    pub fn end(&self, mut worker: Child) {
        send(worker.id(), Signal::SIGTERM);
        assert!(worker.wait().unwrap().success(), "{}", self.log());
        let _ = self.agentd(&["daemon", "stop", "--force"]);
    }

    /// The calls that this host let go: the audit log's decisions with an enforced cage.
    pub fn ended_calls(&self) -> Vec<(String, u64)> {
        let log = self.desk.state().join("audit/log.jsonl");
        let text = fs::read_to_string(log).unwrap_or_default();
        let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let ended = records.filter(|record| record["event"] == "ended");
        ended
            .map(|record| {
                (record["session"].as_str().unwrap().to_owned(), record["call"].as_u64().unwrap())
            })
            .collect()
    }

    /// The calls that this host's audit log says were let go.
    pub fn started_calls(&self) -> Vec<(String, u64)> {
        started_calls_in(&self.desk.state())
    }

    pub fn workspace(&self, session: &str) -> PathBuf {
        self.desk.home().join(".local/share/agentd-fleet").join(session).join("workspace")
    }
}

impl Drop for Host {
    /// A daemon outlives the worker that started it, and a test that fails.
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// The calls that the audit log of this state directory says were let go.
pub fn started_calls_in(state: &Path) -> Vec<(String, u64)> {
    let text = fs::read_to_string(state.join("audit/log.jsonl")).unwrap_or_default();
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let started = records.filter(|it| it["event"] == "ended" && it["started"].is_u64());
    started
        .filter_map(|it| Some((it["session"].as_str()?.to_owned(), it["call"].as_u64()?)))
        .collect()
}

/// A repository with one file, at a place that all hosts have.
pub fn repository(desk: &Desk) -> String {
    let place = desk.outside().join("repo");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("README"), "a project\n").unwrap();
    let git = |words: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
            .args(words)
            .current_dir(&place)
            .env("HOME", desk.home())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "--quiet", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    place.to_str().unwrap().to_owned()
}

/// A model that runs the command of its prompt, `run: COMMAND`, once, and then says `done`.
pub fn runs_its_prompt() -> Server {
    Server::answering(|_, request| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        if last.to_string().contains("tool_result") {
            return Answer::text("done");
        }
        let prompt = messages[0].to_string();
        let command = prompt.split("run: ").nth(1).unwrap_or_default();
        let command = command.split(['"', '\\']).next().unwrap();
        let input = serde_json::json!({ "command": command }).to_string();
        Answer::says([call("toolu_1", "bash", &input)])
    })
}
