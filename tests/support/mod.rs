//! Shared by end-to-end tests: a project, a home, and `agentd` run in them as a person would.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::wildcard_enum_match_arm)]

#[path = "anthropic.rs"]
pub mod anthropic;
#[path = "attempt.rs"]
pub mod attempt;
#[path = "authority.rs"]
pub mod authority;
#[path = "company_proxy.rs"]
pub mod company_proxy;
#[path = "daemon.rs"]
pub mod daemon;
#[path = "dice.rs"]
pub mod dice;
#[path = "hidden.rs"]
pub mod hidden;
#[path = "internet.rs"]
pub mod internet;
#[path = "recorded.rs"]
pub mod recorded;
#[path = "reserve.rs"]
pub mod reserve;
#[path = "terminal.rs"]
pub mod terminal;
#[path = "unit.rs"]
pub mod unit;
#[path = "wire.rs"]
pub mod wire;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A key that no real service knows.
pub const KEY: &str = "sk-test-4f1c";

/// A person's machine in small: home, state, run-time directory, project.
pub struct Desk {
    root: TempDir,
    /// Variables of `agentd` that shorten or lengthen the patience of its supervisors.
    patience: Vec<(&'static str, String)>,
}

/// A daemon that a test started; ended with it.
pub struct Daemon<'a> {
    desk: &'a Desk,
    pub pid: u32,
}

impl Desk {
    /// Starts the daemon of this desk.
    pub fn daemon(&self) -> Daemon<'_> {
        let ran = self.agentd(&["daemon", "start"]).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        Daemon { desk: self, pid: daemon::Wire::to(&self.door()).pid }
    }

    /// The same of executables that lie elsewhere.
    pub fn daemon_of(&self, place: &Path) -> Daemon<'_> {
        let here = self.agentd(&["daemon", "start"]);
        let mut command = Command::new(place.join("agentd"));
        command.args(["daemon", "start"]).current_dir(self.project()).env_clear();
        command.envs(here.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = command.stdin(Stdio::null()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        Daemon { desk: self, pid: daemon::Wire::to(&self.door()).pid }
    }

    /// A new session of this desk's project by that server, as a person at a terminal asks for it.
    pub fn opening(&self, server: &anthropic::Server) -> protocol::client::SessionRequest {
        let url = server.url();
        let (home, state) = (self.home(), self.root.path().join("state"));
        let path = std::env::var("PATH").unwrap_or_default();
        let env = [
            ("PATH", path.as_str()),
            ("HOME", home.to_str().unwrap()),
            ("XDG_STATE_HOME", state.to_str().unwrap()),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("ANTHROPIC_API_KEY", "set"),
        ];
        daemon::opening(&self.project(), &env)
    }

    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("t").tempdir_in(tests_directory());
        let root = root.expect("a directory for this test");
        for directory in ["home", "state", "run", "project"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        fs::set_permissions(
            root.path().join("run"),
            std::os::unix::fs::PermissionsExt::from_mode(0o700),
        )
        .unwrap();
        Self { root, patience: Vec::new() }
    }

    /// Its supervisors ping a silent worker after so many milliseconds: a shorter patience makes a shorter test.
    pub fn with_ping_ms(mut self, ms: u32) -> Self {
        self.patience.push(("AGENTD_TEST_PING_MS", ms.to_string()));
        self
    }

    /// Its supervisors start workers again however often they die.
    pub fn with_endless_restarts(mut self) -> Self {
        self.patience.push(("AGENTD_TEST_CRASHES", "100000".to_owned()));
        self
    }

    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn state(&self) -> PathBuf {
        self.root.path().join("state/agentd")
    }

    pub fn run_dir(&self) -> PathBuf {
        self.root.path().join("run")
    }

    /// Where the daemon's socket and token are.
    pub fn door(&self) -> PathBuf {
        self.run_dir().join("agentd")
    }

    /// A place that no call may reach.
    pub fn outside(&self) -> PathBuf {
        self.root.path().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.project().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// `agentd` with these arguments, in the project, with nothing of this process's environment
    /// but the path.
    pub fn agentd(&self, arguments: &[&str]) -> Command {
        needs("setsid");
        // A session of its own, by which its workers are found again. `setsid` becomes agentd, so
        // that its process id is agentd's.
        let mut command = Command::new("setsid");
        command
            .arg(env!("CARGO_BIN_EXE_agentd"))
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.root.path().join("state"))
            .env("XDG_RUNTIME_DIR", self.run_dir())
            .envs(self.patience.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        if let Some(tier) = std::env::var_os("AGENTD_SANDBOX_TIER") {
            command.env("AGENTD_SANDBOX_TIER", tier);
        }
        command
    }

    /// The same, speaking to this server.
    pub fn with_server(&self, server: &anthropic::Server, arguments: &[&str]) -> Command {
        let mut command = self.agentd(arguments);
        command.env("ANTHROPIC_BASE_URL", server.url()).env("ANTHROPIC_API_KEY", KEY);
        command
    }

    /// The same for any vendor.
    pub fn with_vendor(
        &self,
        vendor: anthropic::vendor::Vendor,
        server: &anthropic::Server,
        arguments: &[&str],
    ) -> Command {
        let mut command = self.agentd(arguments);
        let (url, key) = vendor.variables();
        command
            .args(["--provider", vendor.word()])
            .env(vendor.model_variable(), "test-model")
            .env(url, vendor.base_url(server))
            .env(key, KEY);
        command
    }

    /// One prompt answered in one JSON object.
    pub fn ask(&self, server: &anthropic::Server, flags: &[&str]) -> Run {
        let mut arguments = vec!["-p", "do it", "--output-format", "json"];
        arguments.extend(flags);
        run(self.with_server(server, &arguments))
    }

    /// The audit records of all calls so far, oldest first.
    pub fn audit(&self) -> Vec<Value> {
        let ran = run(self.agentd(&["audit", "export"]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The `ended` audit record of one call, by its number.
    pub fn ended(&self, number: u64) -> Value {
        let audit = self.audit();
        let found =
            audit.iter().find(|record| record["event"] == "ended" && record["call"] == number);
        found.unwrap_or_else(|| panic!("no end of call {number} in {audit:#?}")).clone()
    }
}

const EXECUTABLES: [&str; 11] = [
    "agentd",
    "agentd-supervisor",
    "agentd-session",
    "agentd-provider",
    "agentd-broker",
    "agentd-store",
    "agentd-tool",
    "agentd-code",
    "agentd-web",
    "agentd-mcp",
    "agentd-fleet",
];

/// The executables in a place of their own, where one may be replaced.
pub fn place(desk: &Desk) -> PathBuf {
    let place = desk.outside().join("bin");
    fs::create_dir(&place).unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_agentd"));
    for name in EXECUTABLES {
        copy_program(&own.with_file_name(name), &place.join(name));
    }
    place
}

/// Puts a shell script in an executable's stead.
pub fn replace(place: &Path, name: &str, script: &str) {
    let path = place.join(name);
    fs::remove_file(&path).unwrap();
    write_program(&path, script);
}

/// Puts a shell script before an executable; `$real` becomes it.
pub fn precede(place: &Path, name: &str, script: &str) {
    let behind = place.join("behind");
    fs::create_dir_all(&behind).unwrap();
    let real = behind.join(name);
    fs::rename(place.join(name), &real).unwrap();
    write_program(&place.join(name), &format!("real='{}'\n{script}", real.display()));
}

/// Waits for a condition; 20 s are a machine in trouble.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a command has written to this file. A shell makes the file a moment before.
pub fn wrote(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|it| it.len() > 0)
}

/// Sends a signal to a process.
pub fn send(pid: u32, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    nix::sys::signal::kill(pid, signal).unwrap();
}

impl Drop for Desk {
    /// Removes the files of its sessions in `/tmp`.
    fn drop(&mut self) {
        for entry in fs::read_dir("/tmp").into_iter().flatten().flatten() {
            let session = fs::read_link(entry.path().join("session"));
            if session.is_ok_and(|session| session.starts_with(self.root.path())) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for Daemon<'_> {
    /// Ends the daemon that the desk has by now, and all its processes.
    fn drop(&mut self) {
        let ended = self.desk.agentd(&["daemon", "stop", "--force"]).output();
        assert!(std::thread::panicking() || ended.is_ok_and(|ended| ended.status.success()));
    }
}

/// Copies a program. Not with a descriptor of this process: another test that forks meanwhile would
/// hold it open for writing, and the copy could not be started ("text file busy").
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().expect("`cp` runs");
    assert!(copied.success(), "{} is not copied", from.display());
}

/// Writes a shell script that can be started; likewise.
pub fn write_program(path: &Path, script: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("`sh` runs");
    let text = format!("#!/bin/sh\n{script}\n");
    std::io::Write::write_all(&mut writer.stdin.take().unwrap(), text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success(), "{} is not written", path.display());
}

/// A finished `agentd`.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

impl Run {
    /// Standard output as one JSON object.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {:?}\nstderr: {}", self.out, self.err))
    }

    /// The final text of a run with `--output-format json`.
    pub fn result(&self) -> String {
        self.json()["result"].as_str().unwrap_or_default().to_owned()
    }
}

/// Where tests keep their directories, made if it is not there.
pub fn tests_directory() -> PathBuf {
    // Neither in /tmp, of which tier A shows the session's own, nor in the target directory: a
    // socket's path must be short. Root's home is closed to other users, whom some tests need.
    let tests = match is_root() {
        true => PathBuf::from("/srv/agentd-tests"),
        false => PathBuf::from(std::env::var_os("HOME").expect("HOME is set"))
            .join(".cache/agentd-tests"),
    };
    fs::create_dir_all(&tests).expect("a directory for tests");
    // A user who is root in a namespace of a test's own makes directories there too; others' stay theirs.
    let shared = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    let _ = fs::set_permissions(&tests, shared);
    tests
}

/// Runs it to its end, at most 120 s, and checks that no process of it is left.
pub fn run(command: Command) -> Run {
    run_within(command, Duration::from_secs(120))
}

/// The same with another time limit.
pub fn run_within(mut command: Command, limit: Duration) -> Run {
    let begun = Instant::now();
    let child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("agentd starts");
    let pid = child.id();
    let Output { status, stdout, stderr } = output_within(child, limit);
    let took = begun.elapsed();
    let left = || processes().into_iter().filter(|it| it.session == pid).collect::<Vec<_>>();
    // On a loaded machine the kernel needs a moment for a process that was killed.
    let until = Instant::now() + Duration::from_secs(1);
    while !left().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let left = left();
    assert!(left.is_empty(), "processes left behind: {left:?}");
    Run {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
        took,
    }
}

fn output_within(child: Child, limit: Duration) -> Output {
    let pid = i32::try_from(child.id()).unwrap();
    let (done, over) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if over.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(pid),
                nix::sys::signal::Signal::SIGKILL,
            );
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watch.join().unwrap();
    output
}

/// A process as `/proc` shows it.
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub session: u32,
    pub name: String,
}

pub fn processes() -> Vec<Process> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            let stat = fs::read_to_string(path.join("stat")).ok()?;
            let (head, rest) = stat.rsplit_once(')')?;
            // Dead already, and only not yet waited for by the machine's first process.
            if rest.trim_start().starts_with(['Z', 'X']) {
                return None;
            }
            let name = head.split_once('(')?.1.to_owned();
            let mut fields = rest.split_whitespace().skip(1);
            let parent = fields.next()?.parse().ok()?;
            let session = fields.nth(1)?.parse().ok()?;
            Some(Process { pid, parent, session, name })
        })
        .collect()
}

/// True while a process with these words in its command line runs.
pub fn runs(words: &str) -> bool {
    let line = |process: &Process| fs::read(format!("/proc/{}/cmdline", process.pid)).ok();
    processes()
        .iter()
        .filter_map(line)
        .any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(words))
}

/// Proportional set size of a process in KiB; 0 where it may not be read.
pub fn pss(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find(|line| line.starts_with("Pss:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// How often the threads of a process gave the processor up or lost it.
pub fn switches(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks
        .map(|task| {
            let status = fs::read_to_string(task.path().join("status")).unwrap();
            let counts = status.lines().filter(|line| line.contains("ctxt_switches:"));
            let count = |line: &str| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap();
            counts.map(count).sum::<u64>()
        })
        .sum()
}

/// The process of that name which `parent` started, waiting a moment for it.
pub fn child_of(parent: u32, name: &str) -> Option<u32> {
    // The kernel keeps 15 characters of a name.
    let short = &name[..name.len().min(15)];
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        let found = processes().into_iter().find(|it| it.parent == parent && it.name == short);
        if let Some(found) = found {
            return Some(found.pid);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Fails, naming it, when a program that a test drives is not there.
pub fn needs(program: &str) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    assert!(found, "this test drives the program `{program}`, which is not in PATH; install it");
}

/// The directory of cargo or rustup of the user who runs this test.
pub fn tool_home(variable: &str, usual: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(usual),
        PathBuf::from,
    )
}

/// True if this process is root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
