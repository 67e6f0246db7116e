//! A PostgreSQL of a test's own, with a fleet in it.

use crate::network::entering;
use crate::support::is_root;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

/// The user that runs it where the test is root: PostgreSQL refuses root.
const OTHER: &str = "nobody";

/// A running cluster. It ends with the test.
pub struct Postgres {
    root: tempfile::TempDir,
    port: u16,
    /// The network namespace that it runs in, if that is not the test's.
    network: Option<String>,
    /// The port of a standby, whose directory is `data1`, or `data` once it took over.
    standby: Option<u16>,
    /// The directory of the primary.
    primary: std::cell::Cell<&'static str>,
    /// How many connections it accepts.
    connections: u16,
}

impl Postgres {
    /// A cluster with an empty database `fleet`.
    pub fn start() -> Self {
        Self::start_in(None)
    }

    /// The same for so many connections.
    #[allow(dead_code)]
    pub fn start_for(connections: u16) -> Self {
        Self::start_with(None, connections)
    }

    /// The process of the cluster that started all others.
    #[allow(dead_code)]
    pub fn pid(&self) -> u32 {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        text.lines().next().unwrap().parse().unwrap()
    }

    /// The same in this network namespace, for all its addresses.
    pub fn start_in(network: Option<String>) -> Self {
        Self::start_with(network, 200)
    }

    fn start_with(network: Option<String>, connections: u16) -> Self {
        let place = if is_root() { "/srv" } else { "/var/tmp" };
        let root = tempfile::Builder::new().prefix("pg").tempdir_in(place).unwrap();
        if is_root() {
            let owned = Command::new("chown").arg(OTHER).arg(root.path()).status().unwrap();
            assert!(owned.success());
        }
        let primary = std::cell::Cell::new("data");
        let mut cluster =
            Self { root, port: free_port(), network, standby: None, primary, connections };
        let data = cluster.data();
        cluster.copy_or_make(&data);
        // Another test may have taken it while this one waited.
        cluster.port = free_port();
        if cluster.network.is_some() {
            let hba = data.join("pg_hba.conf");
            let text = fs::read_to_string(&hba).unwrap();
            fs::write(&hba, format!("{text}host all all 10.213.0.0/16 trust\n")).unwrap();
        }
        cluster.go();
        cluster
    }

    /// Copies the cluster that the first test on this machine made and kept, one for each version of PostgreSQL:
    /// `initdb` takes seconds of a processor.
    fn copy_or_make(&self, data: &Path) {
        let version = Command::new(program_path("initdb")).arg("--version").output().unwrap();
        let version = String::from_utf8(version.stdout).unwrap();
        let version = version.replace(|letter: char| !letter.is_ascii_alphanumeric(), "");
        let kept = crate::support::tests_directory().join(version);
        let lock = fs::File::create(kept.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        if !kept.exists() {
            self.run("initdb", &["-A", "trust", "-U", "owner", "--no-sync", "-D", path(data)]);
            self.go();
            self.sql_in("postgres", "create database fleet");
            self.stop_in_order();
            let part = kept.with_extension("part");
            let _ = fs::remove_dir_all(&part);
            copy(data, &part);
            fs::rename(&part, &kept).unwrap();
            return;
        }
        drop(lock);
        copy(&kept, data);
    }

    /// The same with a fleet whose leases last so many seconds.
    pub fn with_fleet(lease: u32) -> Self {
        let cluster = Self::start();
        cluster.init_fleet(lease);
        cluster
    }

    pub fn init_fleet(&self, lease: u32) {
        let (desk, lease) = (crate::support::Desk::new(), format!("--lease={lease}"));
        let ran =
            crate::support::run(desk.agentd(&["fleet", "init", &self.own_url("fleet"), &lease]));
        assert_eq!(ran.code, 0, "{}", ran.err);
    }

    /// Adds a standby, for which each commit waits from now on.
    pub fn add_standby(&mut self) {
        self.standby = Some(self.port + 1);
        self.copy_to_standby();
        self.stop();
        self.go();
    }

    /// Kills the primary, lets its standby take over, and makes a standby of it.
    pub fn fail_over(&self, pause: std::time::Duration) {
        let standby = self.other();
        self.stop();
        std::thread::sleep(pause);
        let data = self.root.path().join(standby);
        self.run("pg_ctl", &["-D", path(&data), "-w", "promote"]);
        let lost = self.primary.replace(standby);
        let _ = fs::remove_dir_all(self.root.path().join(lost));
        self.copy_to_standby();
    }

    fn other(&self) -> &'static str {
        if self.primary.get() == "data" { "data1" } else { "data" }
    }

    fn copy_to_standby(&self) {
        let (name, from) = (self.other(), self.port_of(self.primary.get()).to_string());
        let data = self.root.path().join(name);
        let sockets = path(self.root.path());
        let words = ["-h", sockets, "-p", &from, "-U", "owner", "-R", "-c", "fast", "--no-sync"];
        self.run("pg_basebackup", &[&words[..], &["-X", "stream", "-D", path(&data)]].concat());
        self.go_with(name);
    }

    /// The address for a host that reaches the database at this one.
    pub fn url_at(&self, address: &str) -> String {
        let ports: Vec<u16> = [Some(self.port), self.standby].into_iter().flatten().collect();
        let hosts: Vec<_> = ports.iter().map(|port| format!("{address}:{port}")).collect();
        let read_write = if hosts.len() > 1 { "&target_session_attrs=read-write" } else { "" };
        format!("postgres://owner@{}/fleet?sslmode=disable{read_write}", hosts.join(","))
    }

    /// The address of the primary's socket, which a test reaches from any network.
    fn own_url(&self, database: &str) -> String {
        let sockets = self.root.path().display().to_string().replace('/', "%2F");
        format!("postgres://owner@{sockets}:{}/{database}", self.port_of(self.primary.get()))
    }

    fn port_of(&self, data: &str) -> u16 {
        if data == "data" { self.port } else { self.port + 1 }
    }

    pub fn url(&self) -> String {
        format!("postgres://owner@127.0.0.1:{}/fleet", self.port)
    }

    pub fn url_of(&self, role: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/fleet", self.port)
    }

    fn data(&self) -> PathBuf {
        self.root.path().join(self.primary.get())
    }

    fn run(&self, program: &str, words: &[&str]) {
        let prefix = self.network.as_deref().map(entering).unwrap_or_default();
        let mut command = Command::new(prefix.first().map_or("setpriv", String::as_str));
        if !prefix.is_empty() {
            command.args(&prefix[1..]).arg("setpriv");
        }
        if is_root() {
            command.args(["--reuid", OTHER, "--regid", "nogroup", "--clear-groups"]);
        }
        command.arg(program_path(program)).args(words).current_dir(self.root.path());
        let done = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    }

    pub fn go(&self) {
        self.go_with(self.primary.get());
    }

    fn go_with(&self, name: &str) {
        let address = if self.network.is_some() { "*" } else { "127.0.0.1" };
        let synchronous = match self.standby {
            Some(_) => "-c synchronous_standby_names=* -c wal_retrieve_retry_interval=200ms",
            None => "",
        };
        let options = format!(
            "-p {} -k {} -c listen_addresses={address} -c max_connections={} -c shared_buffers=16MB {synchronous}",
            self.port_of(name),
            self.root.path().display(),
            self.connections
        );
        let log = self.root.path().join("log");
        let data = self.root.path().join(name);
        self.run("pg_ctl", &["-D", path(&data), "-w", "-o", &options, "-l", path(&log), "start"]);
    }

    /// Accepts encrypted connections with a password alone from now on, with this certificate and its key.
    pub fn encrypt(&self, certificate: &str, key: &str) {
        let data = self.data();
        let hba = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        for (name, text) in [("server.crt", certificate), ("server.key", key), ("pg_hba.conf", hba)]
        {
            fs::write(data.join(name), text).unwrap();
        }
        let key = data.join("server.key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            let owned = Command::new("chown").arg(OTHER).arg(&key).status().unwrap();
            assert!(owned.success());
        }
        self.sql("alter system set ssl = on");
        self.stop_in_order();
        self.go();
    }

    /// Ends it as a crash does.
    pub fn stop(&self) {
        self.stop_by("immediate");
    }

    /// Ends it in order, so that it is back at once.
    pub fn stop_in_order(&self) {
        self.stop_by("fast");
    }

    fn stop_by(&self, mode: &str) {
        let data = self.data();
        self.run("pg_ctl", &["-D", path(&data), "-w", "-m", mode, "stop"]);
    }

    /// Runs SQL and returns the rows, without headers, columns with `|` between them.
    pub fn sql(&self, text: &str) -> String {
        self.sql_in("fleet", text)
    }

    fn sql_in(&self, database: &str, text: &str) -> String {
        psql(&self.own_url(database), text).unwrap()
    }
}

/// Runs SQL as the role of this address.
pub fn psql(url: &str, text: &str) -> Result<String, String> {
    let done = Command::new(program_path("psql"))
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text, url])
        .output()
        .unwrap();
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for data in [self.primary.get(), self.other()].map(|name| self.root.path().join(name)) {
            let _ = Command::new("setpriv")
                .args(if is_root() {
                    &["--reuid", OTHER, "--regid", "nogroup", "--clear-groups"][..]
                } else {
                    &[][..]
                })
                .arg(program_path("pg_ctl"))
                .args(["-D", path(&data), "-m", "immediate", "stop"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").args(["-a", "--reflink=auto"]).args([from, to]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Debian keeps the server's programs out of the PATH.
pub fn program_path(program: &str) -> PathBuf {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = debian.map(|entry| entry.path().join("bin").join(program)).collect();
    found.retain(|path| path.exists());
    found.sort();
    found.pop().unwrap_or_else(|| {
        crate::support::needs(program);
        PathBuf::from(program)
    })
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A port that is free, as the next one is, which a standby takes. Below those that the kernel gives to
/// connections, since another test's connection may take such a one before the server does.
pub fn free_port() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id() % 4000) as u16;
    loop {
        let pair = (begin + TRIED.fetch_add(1, Ordering::Relaxed)) % 6000;
        let port = 20_000 + 2 * pair;
        let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + 1) {
            return port;
        }
    }
}
