//! A PostgreSQL of a test's own, with a fleet in it.

use crate::support::is_root;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The user that runs it where the test is root: PostgreSQL refuses root.
const OTHER: &str = "nobody";

/// A running cluster. It ends with the test.
pub struct Postgres {
    root: tempfile::TempDir,
    port: u16,
}

impl Postgres {
    /// A cluster with an empty database `fleet`.
    pub fn start() -> Self {
        let place = if is_root() { "/srv" } else { "/var/tmp" };
        let root = tempfile::Builder::new().prefix("pg").tempdir_in(place).unwrap();
        if is_root() {
            let owned = Command::new("chown").arg(OTHER).arg(root.path()).status().unwrap();
            assert!(owned.success());
        }
        let cluster = Self { root, port: free_port() };
        let data = cluster.data();
        cluster.run("initdb", &["-A", "trust", "-U", "owner", "--no-sync", "-D", path(&data)]);
        cluster.go();
        cluster.sql_in("postgres", "create database fleet");
        cluster
    }

    /// The same with a fleet whose leases last so many seconds.
    pub fn with_fleet(lease: u32) -> Self {
        let cluster = Self::start();
        let desk = crate::support::Desk::new();
        let lease = format!("--lease={lease}");
        let ran = crate::support::run(desk.agentd(&["fleet", "init", &cluster.url(), &lease]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        cluster
    }

    pub fn url(&self) -> String {
        format!("postgres://owner@127.0.0.1:{}/fleet", self.port)
    }

    pub fn url_of(&self, role: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/fleet", self.port)
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    fn run(&self, program: &str, words: &[&str]) {
        let mut command = Command::new("setpriv");
        if is_root() {
            command.args(["--reuid", OTHER, "--regid", "nogroup", "--clear-groups"]);
        }
        command.arg(program_path(program)).args(words).current_dir(self.root.path());
        let done = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    }

    pub fn go(&self) {
        let options = format!(
            "-p {} -k {} -c listen_addresses=127.0.0.1 -c max_connections=200 -c shared_buffers=16MB",
            self.port,
            self.root.path().display()
        );
        let log = self.root.path().join("log");
        let data = self.data();
        self.run("pg_ctl", &["-D", path(&data), "-w", "-o", &options, "-l", path(&log), "start"]);
    }

    pub fn stop(&self) {
        let data = self.data();
        self.run("pg_ctl", &["-D", path(&data), "-w", "-m", "immediate", "stop"]);
    }

    /// Runs SQL and returns the rows, without headers, columns with `|` between them.
    pub fn sql(&self, text: &str) -> String {
        self.sql_in("fleet", text)
    }

    fn sql_in(&self, database: &str, text: &str) -> String {
        let url = format!("postgres://owner@127.0.0.1:{}/{database}", self.port);
        psql(&url, text).unwrap()
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
        let data = self.data();
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

/// Debian keeps the server's programs out of the PATH.
fn program_path(program: &str) -> PathBuf {
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

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
