//! Encrypted connections, whose server is verified.

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::Postgres;
use crate::support::authority::{Authority, pem};
use crate::support::{Run, run};
use std::fs;

const PASSWORD: &str = "p4ss";

/// A database with the role `member`, whose certificate has this name, and a host with its authority's.
fn encrypted(name: &str) -> (Postgres, Host, String) {
    let postgres = Postgres::with_fleet(30);
    postgres.sql(&format!("create role member login password '{PASSWORD}'"));
    let owner = Host::new(&postgres);
    owner.ok(&["fleet", "allow", "member"]);
    let authority = Authority::new();
    let (certificate, key) = authority.signs(name);
    let key = pem("PRIVATE KEY", &key.serialize_der());
    postgres.encrypt(&pem("CERTIFICATE", certificate.der()), &key);
    let port = postgres.url().rsplit([':', '/']).nth(1).unwrap().to_owned();
    let host = Host::at(format!("postgres://member@localhost:{port}/fleet?sslmode=require"));
    let file = host.desk.outside().join("authority.pem");
    fs::write(&file, authority.pem).unwrap();
    (postgres, host, file.to_str().unwrap().to_owned())
}

fn with(host: &Host, words: &[&str], environment: &[(&str, &str)]) -> Run {
    let mut command = host.command(words);
    command.envs(environment.iter().copied());
    run(command)
}

#[test]
fn a_task_runs_over_an_encrypted_connection_with_a_password() {
    let (postgres, host, authority) = encrypted("localhost");
    let environment = [("PGPASSWORD", PASSWORD), ("SSL_CERT_FILE", authority.as_str())];
    let repo = repository(&host.desk);
    let words = ["submit", "--repo", &repo, "--prompt", "run: true", "--permission-mode=auto"];
    let submitted = with(&host, &words, &environment);
    assert_eq!(submitted.code, 0, "{}", submitted.err);
    let model = runs_its_prompt();
    let mut worker = host.worker_command(&model, &["--until-empty"]);
    worker.envs(environment);
    let ran = run(worker);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ended = postgres.sql("select state, reason from agentd.task");
    assert_eq!(ended, "done|", "{}", ran.err);
    let wrong = [("PGPASSWORD", "wrong"), ("SSL_CERT_FILE", authority.as_str())];
    for words in [&["tasks", "ls"][..], &["fleet", "worker"]] {
        let ran = with(&host, words, &wrong);
        assert_eq!(ran.code, 1, "{words:?}: {}", ran.err);
        assert!(ran.err.contains("password authentication failed"), "{words:?}: {}", ran.err);
    }
    let _ = host.agentd(&["daemon", "stop", "--force"]);
}

#[test]
fn a_database_whose_certificate_is_of_nobody_known_or_of_another_name_gets_no_password() {
    for (name, trusts, reason) in
        [("localhost", false, "UnknownIssuer"), ("db.example", true, "not valid for name")]
    {
        let (postgres, host, authority) = encrypted(name);
        let trusted = [("PGPASSWORD", PASSWORD), ("SSL_CERT_FILE", authority.as_str())];
        for words in [&["tasks", "ls"][..], &["fleet", "worker"]] {
            let ran = with(&host, words, if trusts { &trusted } else { &trusted[..1] });
            assert_eq!(ran.code, 1, "{words:?}: {}", ran.err);
            assert!(ran.err.contains(reason), "{words:?}: {}", ran.err);
        }
        drop(postgres);
    }
}

/// Debian's package makes such a certificate.
#[test]
fn a_database_of_this_machine_needs_no_certificate() {
    let (postgres, ..) = encrypted("elsewhere");
    let rule = "select 'hostnossl all all 127.0.0.1/32 trust'";
    postgres.sql(&format!("copy ({rule}) to program 'cat >> pg_hba.conf'"));
    postgres.sql("select pg_reload_conf()");
    let host = Host::new(&postgres);
    host.ok(&["tasks", "ls"]);
    let host = Host::at(format!("{}?sslmode=require", postgres.url()));
    let refused = host.agentd(&["tasks", "ls"]);
    assert!(refused.code == 1 && refused.err.contains("certificate"), "{}", refused.err);
}

#[test]
fn a_database_without_encryption_gets_no_password_where_the_address_requires_it() {
    let postgres = Postgres::with_fleet(30);
    for (mode, code) in [("?sslmode=require", 1), ("", 0)] {
        let host = Host::at(format!("{}{mode}", postgres.url()));
        let ran = with(&host, &["tasks", "ls"], &[("PGPASSWORD", PASSWORD)]);
        assert_eq!(ran.code, code, "{mode}: {}", ran.err);
        assert_eq!(ran.err.contains("TLS"), code == 1, "{mode}: {}", ran.err);
    }
}
