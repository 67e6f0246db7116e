//! Changes that commands make in the person's tool homes are kept for the project: over calls,
//! sessions and crashes, while several calls run at once. No other project sees them.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, child_of, needs, until};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The result for the model of this command, in its own session in tier A.
fn told(desk: &Desk, script: &str) -> String {
    told_in(desk, &desk.project(), script)
}

fn told_in(desk: &Desk, project: &Path, script: &str) -> String {
    told_with(desk, project, &[], script)
}

fn told_with(desk: &Desk, project: &Path, flags: &[&str], script: &str) -> String {
    let server = Server::scripted([asks(script), Answer::text("done")]);
    let mut command = asking(desk, &server, project);
    command.args(flags);
    for (name, usual) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        command.env(name, crate::support::tool_home(name, usual));
    }
    let ran = crate::support::run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let messages = server.requests().last().unwrap().body["messages"].clone();
    let content = &messages.as_array().unwrap().last().unwrap()["content"][0]["content"];
    content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default().to_owned()
}

fn asks(script: &str) -> Answer {
    Answer::says([call("toolu_1", "bash", &json!({ "command": script }).to_string())])
}

fn asking(desk: &Desk, server: &Server, project: &Path) -> Command {
    let mut command = desk.with_server(server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", "A").current_dir(project);
    command
}

/// The person's cache, with one package.
fn cache(desk: &Desk) -> PathBuf {
    let cache = desk.home().join(".npm/_cacache");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::write(cache.join("own"), "of the person\n").unwrap();
    cache
}

const WAITS: &str = "until test -e b; do sleep 0.02; done";

#[test]
fn what_is_downloaded_is_there_in_the_next_session_of_the_project_alone() {
    needs("bash");
    let desk = Desk::new();
    let cache = cache(&desk);
    let said = told(&desk, "cd ~/.npm/_cacache && cat own && echo new > new && echo changed > own");
    assert!(said.starts_with("of the person\n"), "{said}");
    let said = told(&desk, "cd ~/.npm/_cacache && cat own new; echo \"[$npm_config_cache]\"");
    assert!(said.starts_with("changed\nnew\n[]\n"), "{said}");
    let names = || std::fs::read_dir(&cache).unwrap().count();
    assert_eq!(std::fs::read_to_string(cache.join("own")).unwrap(), "of the person\n");
    assert_eq!(names(), 1);
    // Another project, with the same home.
    let other = desk.outside().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let said = told_in(&desk, &other, "cat ~/.npm/_cacache/*");
    assert!(said.starts_with("of the person\n") && !said.contains("new"), "{said}");
}

#[test]
fn commands_that_run_at_once_see_what_the_other_changes() {
    let desk = Desk::new();
    cache(&desk);
    let _daemon = desk.daemon();
    let first =
        format!("echo one > ~/.npm/_cacache/one; touch a; {WAITS}; cat ~/.npm/_cacache/two");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| told(&desk, &first));
        until("the first command runs", || desk.project().join("a").exists());
        let said = told(&desk, "cat ~/.npm/_cacache/one; echo two > ~/.npm/_cacache/two; touch b");
        assert!(said.starts_with("one\n"), "{said}");
        let said = waits.join().unwrap();
        assert!(said.starts_with("two\n"), "{said}");
    });
}

/// Neither the mounts that travel nor the lock reach a command, and of other projects' none is in its root.
#[test]
fn a_command_holds_nothing_that_travels() {
    let desk = Desk::new();
    cache(&desk);
    let _daemon = desk.daemon();
    for _ in 0..2 {
        let said = told(
            &desk,
            "ls -l /proc/$$/fd | grep -c -- '->'; ls -a / | grep -c '^[.][a-z]'; \
                                grep -c ' /[.]overlays' /proc/self/mountinfo; find / -name lock -path '*overlays*' 2>/dev/null; true",
        );
        let counts: Vec<&str> = said.lines().take(3).collect();
        // Standard streams, and the descriptor of bash itself: the script.
        assert!(counts[0].parse::<u32>().unwrap() <= 4, "{said}");
        assert_eq!(counts[1..], ["0", "0"], "{said}");
        assert!(!said.contains("/lock"), "{said}");
    }
}

/// Without a daemon each run has its own supervisor, and one of them has the overlays.
#[test]
fn a_second_supervisor_leads_programs_to_caches_of_the_project() {
    let desk = Desk::new();
    let cache = cache(&desk);
    let first = format!("touch a; {WAITS}; echo \"[$npm_config_cache]\"");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| told(&desk, &first));
        until("the first command runs", || desk.project().join("a").exists());
        let said = told(
            &desk,
            "cat ~/.npm/_cacache/own; (echo x > ~/.npm/_cacache/own) 2>/dev/null || echo refused; \
             mkdir -p $npm_config_cache && echo led; touch b",
        );
        assert!(said.starts_with("of the person\nrefused\nled\n"), "{said}");
        let said = waits.join().unwrap();
        assert!(said.starts_with("[]\n"), "{said}");
    });
    assert_eq!(std::fs::read_to_string(cache.join("own")).unwrap(), "of the person\n");
}

#[test]
fn a_kill_of_a_runner_or_of_the_daemon_loses_nothing_of_it() {
    let desk = Desk::new();
    cache(&desk);
    let mut daemon = desk.daemon();
    for (number, victim) in ["agentd-tool", "agentd-supervisor"].into_iter().enumerate() {
        let script =
            format!("echo kept > ~/.npm/_cacache/{number}; touch a{number}; sleep 600; echo never");
        let server = Server::scripted([asks(&script), Answer::text("done"), Answer::text("done")]);
        let mut command = asking(&desk, &server, &desk.project());
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = desk.project().join(format!("a{number}"));
        until("the command runs", || begun.exists());
        let pid = match victim {
            "agentd-tool" => child_of(daemon.pid, victim).unwrap(),
            _ => daemon.pid,
        };
        crate::support::send(pid, nix::sys::signal::Signal::SIGKILL);
        let _ = run.kill();
        run.wait().unwrap();
        // Dropping the earlier handle ends the daemon that runs, also one that was never killed.
        if victim == "agentd-supervisor" {
            daemon = desk.daemon();
        }
        let began = Instant::now();
        loop {
            let said =
                told(&desk, &format!("cat ~/.npm/_cacache/{number}; echo \"[$npm_config_cache]\""));
            if said.starts_with("kept\n[]\n") {
                break;
            }
            // A killed process may hold the lock for a moment more.
            assert!(began.elapsed() < Duration::from_secs(20), "{said}");
        }
    }
}

/// A registry of npm, of pip and of cargo, each with one package; it records the requests.
const REGISTRY: &str = r#"
import base64, hashlib, http.server, io, json, sys, tarfile, zipfile
def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w:gz') as t:
        for name, text in files.items():
            entry = tarfile.TarInfo(name); entry.size = len(text); t.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()
tgz = tar({'package/package.json': '{"name":"kept","version":"1.0.0"}', 'package/index.js': 'module.exports = "npm"'})
crate = tar({'kept-1.0.0/Cargo.toml': '[package]\nname = "kept"\nversion = "1.0.0"\nedition = "2021"\n', 'kept-1.0.0/src/lib.rs': 'pub const KEPT: &str = "cargo";\n'})
out = io.BytesIO()
with zipfile.ZipFile(out, 'w') as z:
    z.writestr('kept.py', 'print("pip")\n')
    z.writestr('kept-1.0.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: kept\nVersion: 1.0.0\n')
    z.writestr('kept-1.0.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    z.writestr('kept-1.0.0.dist-info/RECORD', '')
wheel = out.getvalue()
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        at = 'http://127.0.0.1:%d' % s.server_port
        sri = 'sha512-' + base64.b64encode(hashlib.sha512(tgz).digest()).decode()
        page = '<a href="/kept-1.0.0-py3-none-any.whl#sha256=%s">kept-1.0.0-py3-none-any.whl</a>' % hashlib.sha256(wheel).hexdigest()
        of_npm = {'name': 'kept', 'dist-tags': {'latest': '1.0.0'}, 'versions': {'1.0.0': {'name': 'kept', 'version': '1.0.0', 'dist': {'tarball': at + '/kept-1.0.0.tgz', 'integrity': sri}}}}
        of_cargo = {'name': 'kept', 'vers': '1.0.0', 'deps': [], 'cksum': hashlib.sha256(crate).hexdigest(), 'features': {}, 'yanked': False}
        found = {
            '/npm/kept': json.dumps(of_npm).encode(), '/kept-1.0.0.tgz': tgz,
            '/simple/kept/': page.encode(), '/kept-1.0.0-py3-none-any.whl': wheel,
            '/index/config.json': json.dumps({'dl': at + '/crates/{crate}-{version}.crate'}).encode(),
            '/index/ke/pt/kept': json.dumps(of_cargo).encode(), '/crates/kept-1.0.0.crate': crate,
        }.get(self.path)
        with open('asked', 'a') as log: log.write(self.path + '\n')
        self.send_response(200 if found else 404)
        self.send_header('Cache-Control', 'max-age=86400')
        self.send_header('Content-Type', 'text/html' if 'simple' in self.path else 'application/octet-stream')
        self.send_header('Content-Length', str(len(found or b'')))
        self.end_headers()
        self.wfile.write(found or b'')
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
print(s.server_port, flush=True)
s.serve_forever()
"#;

/// A process that ends with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_was_downloaded_once_is_downloaded_by_no_later_session() {
    needs("npm");
    needs("node");
    needs("cargo");
    needs("pip");
    needs("python3");
    let desk = Desk::new();
    let place = desk.outside().join("registry");
    std::fs::create_dir_all(&place).unwrap();
    let mut server = Command::new("python3");
    server.args(["-c", REGISTRY]).current_dir(&place).stdout(Stdio::piped());
    let mut server = Ended(server.spawn().unwrap());
    let mut port = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(server.0.stdout.take().unwrap()),
        &mut port,
    )
    .unwrap();
    let at = format!("http://127.0.0.1:{}", port.trim());
    desk.write(".npmrc", &format!("registry={at}/npm/\naudit=false\nfund=false\n"));
    desk.write(
        "package.json",
        r#"{"name":"app","version":"1.0.0","dependencies":{"kept":"1.0.0"}}"#,
    );
    desk.write(
        "Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[dependencies]\nkept = { version = \"1.0.0\", registry = \"own\" }\n",
    );
    desk.write(
        ".cargo/config.toml",
        &format!("[registries.own]\nindex = \"sparse+{at}/index/\"\n"),
    );
    desk.write("src/main.rs", "fn main() { println!(\"{}\", kept::KEPT); }\n");
    let host = at.trim_start_matches("http://");
    let script = format!(
        "rm -rf node_modules target own; \
         if test -e package-lock.json; then npm ci; else npm install; fi > said 2>&1 || cat said; node -p 'require(\"kept\")'; \
         cargo run -q 2>&1; \
         pip install -q --target own --index-url {at}/simple --trusted-host {host} kept 2>&1; PYTHONPATH=own python3 -c 'import kept'"
    );
    let asked = || std::fs::read_to_string(place.join("asked")).unwrap_or_default();
    let downloads = |asked: &str| {
        let is_package =
            |line: &&str| [".tgz", ".whl", ".crate"].iter().any(|end| line.ends_with(end));
        asked.lines().filter(is_package).count()
    };
    for session in ["first", "second"] {
        let said = told_with(&desk, &desk.project(), &["--net", "on"], &script);
        for seen in ["npm", "cargo", "pip"] {
            assert!(said.lines().any(|line| line == seen), "{session} {seen}: {said}");
        }
        assert_eq!(downloads(&asked()), 3, "{session}: {}\n{said}", asked());
    }
}
