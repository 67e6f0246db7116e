//! A real PgBouncer between a fleet and its database: a pooler that lends its connections is refused by name,
//! and one that gives each client its own works.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::{Postgres, free_port, psql};
use crate::support::{is_root, needs, until};
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A running PgBouncer. It ends with the test.
struct Pooler {
    process: Child,
    port: u16,
    _files: tempfile::TempDir,
}

impl Pooler {
    /// In front of this database, with these lines in its file.
    fn start(postgres: &Postgres, lines: &str) -> Self {
        // Debian has it where ordinary users do not look.
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        let program = program.iter().find(|path| fs::exists(path).unwrap());
        let program = program.unwrap_or_else(|| {
            needs("pgbouncer");
            &"pgbouncer"
        });
        let files = tempfile::Builder::new().prefix("pgb").tempdir_in("/var/tmp").unwrap();
        let (port, dir) = (free_port(), files.path().display());
        let database = postgres.url().replace("postgres://owner@127.0.0.1:", "");
        let database = database.strip_suffix("/fleet").unwrap();
        let users = files.path().join("users");
        fs::write(&users, "\"owner\" \"\"\n").unwrap();
        let file = files.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\nfleet = host=127.0.0.1 port={database} dbname=fleet\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = trust\n\
             auth_file = {dir}/users\nunix_socket_dir =\n{lines}\n"
        );
        fs::write(&file, text).unwrap();
        let mut command = Command::new("setpriv");
        if is_root() {
            // It refuses root.
            command.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]);
            let owned = Command::new("chown").args(["-R", "nobody"]).arg(files.path()).status();
            assert!(owned.unwrap().success());
        }
        command.arg(program).arg(file).stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.stderr(Stdio::null()).spawn().unwrap();
        until("the pooler listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { process, port, _files: files }
    }

    fn url(&self) -> String {
        format!("postgres://owner@127.0.0.1:{}/fleet", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "needs PgBouncer: .ci/nightly machine"]
fn a_pooler_that_lends_its_connections_is_refused_by_name() {
    let postgres = Postgres::with_fleet(30);
    let model = runs_its_prompt();
    let ignored = "ignore_startup_parameters = options";
    for (mode, more) in [
        ("transaction", ""),
        ("transaction", ignored),
        ("transaction", "default_pool_size = 1"),
        ("statement", ignored),
    ] {
        let pooler = Pooler::start(&postgres, &format!("pool_mode = {mode}\n{more}"));
        // The control: it passes other clients on.
        assert_eq!(psql(&pooler.url(), "select 1").unwrap(), "1");
        let host = Host::at(pooler.url());
        for words in [&["tasks", "ls"][..], &["fleet", "init"], &["fleet", "status"]] {
            let ran = host.agentd(words);
            assert_eq!(ran.code, 2, "{mode} {more} {words:?}: {}", ran.err);
            for part in ["a pooler in transaction mode", "pool_mode = session"] {
                assert!(ran.err.contains(part), "{mode} {more}: {}", ran.err);
            }
        }
        let mut worker = host.start(&model, &[]);
        assert_eq!(worker.wait().unwrap().code(), Some(2), "{}", host.log());
        assert!(host.log().contains("a pooler in transaction mode"), "{}", host.log());
    }
}

#[test]
#[ignore = "needs PgBouncer: .ci/nightly machine"]
fn a_pooler_in_session_mode_works() {
    let postgres = Postgres::start();
    for more in ["", "ignore_startup_parameters = options"] {
        let pooler = Pooler::start(&postgres, &format!("pool_mode = session\n{more}"));
        let host = Host::at(pooler.url());
        host.ok(&["fleet", "init", "--lease", "10"]);
        let repo = repository(&host.desk);
        let prompt = "run: echo x > made";
        host.ok(&["submit", "--repo", &repo, "--prompt", prompt, "--permission-mode=auto"]);
        let number: i64 = postgres.sql("select max(id) from agentd.task").parse().unwrap();
        let worked = host.work(&runs_its_prompt(), &[]);
        assert_eq!(host.task(number)["state"], "done", "{}", worked.err);
    }
}
