//! Which requests get a key of `net.credentials`: real git against a real git server, and requests that
//! servers read in different ways, byte for byte through the proxy of a command.
#![allow(clippy::unwrap_used)]

use crate::credentials::{BEARER, addresses, desk, key, run};
use crate::support::attempt::python;
use crate::support::authority::{Authority, pem};
use crate::support::internet::{Names, PUBLIC, within};
use crate::support::needs;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// The server `git_server.py` at registry.test.
struct GitServer {
    process: Child,
    requests: Arc<Mutex<Vec<Value>>>,
    _dir: tempfile::TempDir,
}

impl GitServer {
    fn start(authority: &Authority) -> Self {
        needs("python3");
        needs("git");
        let dir = tempfile::tempdir().unwrap();
        make_repository(dir.path());
        let (leaf, leaf_key) = authority.signs("registry.test");
        let pems = [pem("PRIVATE KEY", &leaf_key.serialize_der()), pem("CERTIFICATE", leaf.der())];
        let certificate = dir.path().join("server.pem");
        fs::write(&certificate, pems.concat()).unwrap();
        let script = dir.path().join("server.py");
        fs::write(&script, include_str!("../data/git_server.py")).unwrap();
        let mut command = Command::new("python3");
        command.arg(script).args([&PUBLIC.to_string(), "443"]).arg(certificate);
        command.arg(format!("Bearer {}", key())).arg(dir.path());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                seen.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { process, requests, _dir: dir }
    }

    /// Method, path and whether it had the key, of each request.
    fn requests(&self) -> Vec<(String, String, bool)> {
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let rows = self.requests.lock().unwrap();
        let read = |row: &Value| (text(row, "method"), text(row, "path"), row["signed"] == true);
        rows.iter().map(read).collect()
    }

    /// Signed requests that could change something.
    fn signed_changes(&self) -> Vec<(String, String, bool)> {
        let reads = |method: &str| matches!(method, "GET" | "HEAD");
        self.requests()
            .into_iter()
            .filter(|(method, _, signed)| *signed && !reads(method))
            .collect()
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        // One that has ended already is no matter.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `repo.git` with three commits, and with tags enough for a request of more than 64 KiB.
fn make_repository(dir: &Path) {
    let script = "git init -q --bare repo.git; git init -q work; cd work; \
        git config user.email a@b.example; git config user.name a; \
        for n in 1 2 3; do echo $n > file; git add file; git commit -qm $n; done; \
        git push -q ../repo.git HEAD:main; git --git-dir ../repo.git symbolic-ref HEAD refs/heads/main; \
        seq 1 1500 | while read n; do printf 'commit refs/tags/t%s\\ncommitter a <a@b.example> %s +0000\\ndata 1\\nx\\n' \
        $n $n; done | git --git-dir ../repo.git fast-import --quiet";
    let ran = Command::new("sh").args(["-ec", script]).current_dir(dir).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Sends these bytes through the proxy, in TLS, and prints the first line of each answer.
fn raw(requests: &[&str]) -> String {
    let all: Vec<String> = requests.iter().map(|text| format!("{text:?}")).collect();
    python(&format!(
        r#"
import os, socket, ssl
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["https_proxy"])
for text in [{}]:
    plain = socket.create_connection((proxy.hostname, proxy.port))
    plain.sendall(b"CONNECT registry.test:443 HTTP/1.1\r\nHost: registry.test:443\r\n\r\n")
    while not plain.recv(4096).endswith(b"\r\n\r\n"): pass
    stream = ssl.create_default_context().wrap_socket(plain, server_hostname="registry.test")
    stream.settimeout(3)
    stream.sendall(text.encode("latin-1"))
    answer = b""
    try:
        while part := stream.recv(65536): answer += part
    except OSError: pass
    print([line.decode() for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")])
"#,
        all.join(", ")
    ))
}

#[test]
fn git_clones_and_fetches_with_the_key() {
    within("git_clones_and_fetches_with_the_key", || {
        let _names = Names::serve(addresses);
        let authority = Authority::new();
        let server = GitServer::start(&authority);
        let desk = desk(&authority, BEARER);
        // The smallest buffer makes git send its long request in chunks.
        let tried = run(
            &desk,
            "url=https://registry.test/repo.git; cd \"$TMPDIR\"; set -e; \
             git clone -q --depth 1 $url shallow; git -C shallow log --oneline | wc -l; \
             git -C shallow fetch -q --unshallow; git -C shallow log --oneline | wc -l; \
             git -c protocol.version=0 clone -q $url old; git -C old log --oneline | wc -l; \
             git -c http.postBuffer=65536 -c protocol.version=2 clone -q $url new; \
             git -C new fetch -q; git -C new log --oneline | wc -l; \
             set +e; git -C new push -q origin HEAD:other 2>/dev/null || echo no push",
        );
        let shown = tried.words.replace(' ', "");
        assert!(shown.contains("1\n3\n3\n3\nnopush"), "{}", tried.explain());
        let posts = server.signed_changes();
        assert!(posts.len() >= 4, "{posts:?}");
        assert!(posts.iter().all(|(_, path, _)| path == "/repo.git/git-upload-pack"), "{posts:?}");
        let rows = server.requests.lock().unwrap().clone();
        assert!(rows.iter().any(|row| row["headers"]["git-protocol"] == "version=2"), "{rows:?}");
        let posted = |row: &&Value| row["method"] == "POST" && row["signed"] == true;
        assert!(
            rows.iter().filter(posted).any(|row| row["headers"]["transfer-encoding"] == "chunked")
        );
        // Each POST is the last request of its connection.
        for row in rows.iter().filter(|row| row["method"] == "POST") {
            let after = rows.iter().skip_while(|other| *other != row).skip(1);
            let mut same = after.filter(|other| other["connection"] == row["connection"]);
            assert_eq!(same.next(), None, "{row}");
        }
    });
}

#[test]
fn a_request_that_could_change_something_has_no_key() {
    within("a_request_that_could_change_something_has_no_key", || {
        let _names = Names::serve(addresses);
        let authority = Authority::new();
        let server = GitServer::start(&authority);
        let desk = desk(&authority, BEARER);
        let tried = run(
            &desk,
            "url=https://registry.test; git='content-type: application/x-git-upload-pack-request'; \
             post() { curl -sS -o /dev/null \"$@\"; }; \
             post -H \"$git\" -d x $url/other.git/git-upload-pack; \
             git ls-remote -q $url/repo.git > refs; wc -l < refs; \
             post -d _method=delete $url/repo.git/git-upload-pack; \
             post -H \"$git\" -d x $url/repo.git/git-upload-pack?x=1; \
             post -H \"$git\" -d x $url/repo.git/../repo.git/git-upload-pack --path-as-is; \
             post -H \"$git\" -d x $url/api/contents/git-upload-pack; \
             post -H \"$git\" -H 'connection: content-type' -d x $url/repo.git/git-upload-pack; \
             post \"$url/page?_method=delete\"; \
             post -H 'X-Original-URL: /admin' -H 'X-Rewrite-URL: /admin' \
             -H 'X_HTTP_Method_Override: PUT' -H 'X-Kept: yes' $url/rerouted",
        );
        assert!(tried.words.contains('2'), "{}", tried.explain());
        // Protocol 2 lists refs by a POST, which is the control.
        let posts = server.signed_changes();
        assert!(posts.iter().all(|(_, path, _)| path == "/repo.git/git-upload-pack"), "{posts:?}");
        assert_eq!(posts.len(), 1, "{posts:?}");
        let requests = server.requests();
        let unsigned = requests.iter().filter(|(_, _, signed)| !signed).count();
        assert_eq!(unsigned, 7, "{requests:?}");
        let rows = server.requests.lock().unwrap();
        let rerouted = rows.iter().find(|row| row["path"] == "/rerouted").unwrap();
        let headers = rerouted["headers"].as_object().unwrap();
        assert!(rerouted["signed"] == true && headers.contains_key("x-kept"), "{headers:?}");
        assert!(!headers.keys().any(|name| name.contains("url") || name.contains("method")));
    });
}

#[test]
fn bytes_behind_a_request_never_become_another_one_with_the_key() {
    within("bytes_behind_a_request_never_become_another_one_with_the_key", || {
        let _names = Names::serve(addresses);
        let authority = Authority::new();
        let server = GitServer::start(&authority);
        let desk = desk(&authority, BEARER);
        let hidden = "PUT /hidden HTTP/1.1\r\nHost: registry.test\r\nX-Rest: ";
        let length = hidden.len();
        let next = "GET /next HTTP/1.1\r\nHost: registry.test\r\nConnection: close\r\n\r\n";
        let head = |method: &str, more: &str| {
            format!("{method} /careless/a HTTP/1.1\r\nHost: registry.test\r\n{more}\r\n\r\n")
        };
        let with_length = format!("Content-Length: {length}");
        let chunked = format!("{length:x}\r\n{hidden}\r\n0\r\n\r\n");
        let requests = [
            format!("{}{hidden}{next}", head("GET", &with_length)),
            format!("{}{chunked}{next}", head("GET", "Transfer-Encoding: chunked")),
            format!("{}{hidden}{next}", head("HEAD", &with_length)),
            format!("{}{hidden}{next}", head("POST", &with_length)),
            format!("{}{chunked}{next}", head("PUT", "Transfer-Encoding: chunked")),
            format!(
                "{}{chunked}{next}",
                head("POST", "Content-Length: 5\r\nTransfer-Encoding: chunked")
            ),
            format!(
                "{}{hidden}{next}",
                head("POST", &format!("{with_length}\r\nContent-Length: 3"))
            ),
            head("GET", "X-A: b\r\n folded: c"),
            head("GET", "X-A : b"),
            head("GET", "X-A: b\0c"),
            "GET http://other.test/a HTTP/1.1\r\nHost: registry.test\r\n\r\n".to_owned(),
            // The control.
            next.to_owned(),
        ];
        let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
        let tried = run(&desk, &raw(&requests));
        assert!(tried.words.contains("\n['HTTP/1.1 200 OK']"), "{}", tried.explain());
        assert_eq!(server.signed_changes(), [], "{}", tried.explain());
        let seen = server.requests();
        assert!(seen.iter().any(|(_, path, signed)| path == "/next" && *signed), "{seen:?}");
        let careless =
            seen.iter().filter(|(method, path, _)| path == "/careless/a" && method != "POST");
        assert!(careless.clone().all(|(method, _, signed)| method == "PUT" && !signed), "{seen:?}");
        let said =
            "refused: the proxy, which signs in to this host, forwards no GET or HEAD with a body";
        assert!(tried.shown.contains(said), "{}", tried.shown);
        for row in server.requests.lock().unwrap().iter() {
            // A head that follows a body on one connection would be part of the hidden request.
            assert!(!row["headers"].to_string().contains("GET /next"), "{row}");
        }
    });
}
