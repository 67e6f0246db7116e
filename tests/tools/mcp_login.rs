//! Log-ins at MCP servers that have an address: the browser's way and the pasted one, tokens that are
//! refreshed, and the end of a log-in.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, needs, run, until};
use protocol::client::ClientEvent;
use protocol::judgement::PermissionMode;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const AGENTD_MCP: &str = env!("CARGO_BIN_EXE_agentd-mcp");

/// The server of the tests with its authorization server, and a place for a log-in.
struct Far {
    process: Child,
    url: String,
    /// What the authorization server was asked for.
    asked: Receiver<Value>,
    dir: TempDir,
}

impl Far {
    fn start(habits: &[&str]) -> Self {
        needs("python3");
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("server.py");
        fs::write(&script, include_str!("../data/oauth_server.py")).unwrap();
        let mut command = Command::new("python3");
        command.arg(script).args(habits).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.next().unwrap().unwrap();
        let (sender, asked) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { process, url, asked, dir }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("state/far.json")
    }

    fn log_in(&self, flags: &[&str]) -> LogIn {
        let file = self.file();
        let words = ["--login", "far", &self.url, file.to_str().unwrap()];
        let mut command = Command::new(AGENTD_MCP);
        command.args(words).args(flags);
        LogIn::start(command)
    }

    fn run(&self, flag: &str) -> (bool, String, String) {
        let file = self.file();
        let ran = Command::new(AGENTD_MCP).args([flag, file.to_str().unwrap()]).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (ran.status.success(), text(ran.stdout), text(ran.stderr))
    }

    /// The next request to the authorization server.
    fn next(&self) -> Value {
        self.asked.recv_timeout(Duration::from_secs(20)).expect("a request")
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // One that has ended already is no matter.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A log-in under way.
struct LogIn {
    process: Child,
    input: Option<ChildStdin>,
    address: String,
}

impl LogIn {
    fn start(mut command: Command) -> Self {
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = piped.spawn().unwrap();
        let input = process.stdin.take();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.next().map(Result::unwrap).unwrap_or_default();
        Self { process, input, address }
    }

    /// Where the authorization server sends the browser.
    fn redirected(&self) -> String {
        let (status, head, _) = get(&self.address);
        assert_eq!(status, 302, "{head}");
        let location = head.lines().find_map(|line| line.strip_prefix("Location: "));
        location.expect("a redirect").to_owned()
    }

    fn ended(mut self) -> (bool, String) {
        until("the log-in ends", || self.process.try_wait().unwrap().is_some());
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.process.wait().unwrap().success(), said)
    }
}

/// Status, head and body of a page.
fn get(address: &str) -> (u16, String, String) {
    let rest = address.strip_prefix("http://").expect(address);
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).expect(host);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.replace('\r', ""), body.to_owned())
}

#[test]
fn a_person_logs_in_by_the_browser_and_the_tokens_are_in_a_file_of_the_person_alone() {
    let far = Far::start(&[]);
    let login = far.log_in(&[]);
    let answer = login.redirected();
    // Other programs of this machine reach the listener too.
    let state = answer.split("state=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    assert_eq!(get(&answer.replace(&state, "guessed")).0, 400);
    assert_eq!(get(&answer.replace("/callback", "/other")).0, 404);
    let (status, head, page) = get(&answer);
    assert_eq!(status, 200, "{head}");
    assert!(page.contains("You can close this page"), "{page}");
    let (done, said) = login.ended();
    assert!(done && said.contains("logged in to far with the scopes: files:read"), "{said}");
    let registered = far.next();
    assert_eq!(registered["name"], "agentd");
    let redirect = registered["redirects"][0].as_str().unwrap().to_owned();
    assert!(redirect.starts_with("http://127.0.0.1:") && answer.starts_with(&redirect));
    let authorized = far.next();
    assert_eq!(
        (&authorized["scope"], &authorized["method"], &authorized["resource"]),
        (&json!("files:read"), &json!("S256"), &json!(far.url))
    );
    assert_eq!(
        far.next(),
        json!({"what": "token", "kind": "authorization_code", "resource": far.url})
    );
    assert_eq!(fs::metadata(far.file()).unwrap().mode() & 0o777, 0o600);
    let (done, token, said) = far.run("--token");
    assert!(done && token.starts_with("access-s3cret-"), "{token} {said}");
    assert!(TcpStream::connect(redirect.split('/').nth(2).unwrap()).is_err(), "it listens no more");
}

#[test]
fn a_person_without_a_way_for_the_browser_pastes_the_address() {
    let far = Far::start(&[]);
    let mut login = far.log_in(&["--client-id", "mine", "--scope", "files:write"]);
    let answer = login.redirected();
    let mut input = login.input.take().unwrap();
    writeln!(input, "\nhttps://a.example/\n{}\n  {answer}", answer.replace("state=", "state=x"))
        .unwrap();
    let (done, said) = login.ended();
    assert!(done, "{said}");
    assert!(said.contains("paste all of it") && said.contains("another log-in"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
    let authorized = far.next();
    assert_eq!((&authorized["client"], &authorized["what"]), (&json!("mine"), &json!("authorize")));
    assert_eq!(authorized["scope"], "files:read files:write");
}

#[test]
fn more_scopes_leave_the_earlier_ones() {
    let far = Far::start(&[]);
    for (flags, scope) in [
        (&["--scope", "files:write"][..], "files:read files:write"),
        (&["--scope", "mail"], "files:read mail files:write"),
    ] {
        let login = far.log_in(flags);
        let _ = get(&login.redirected());
        let (done, said) = login.ended();
        assert!(done && said.contains(scope), "{said}");
    }
}

#[test]
fn tokens_are_refreshed_and_the_new_ones_kept() {
    let far = Far::start(&["short"]);
    let login = far.log_in(&[]);
    let _ = get(&login.redirected());
    assert!(login.ended().0);
    let ends = [far.next(), far.next(), far.next()].map(|asked| asked["what"].clone());
    assert_eq!(ends, ["register", "authorize", "token"]);
    thread::sleep(Duration::from_millis(1100));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (done, token, said) = far.run("--token");
        assert!(done && !seen.contains(&token), "{token} {said}");
        seen.push(token);
        let refreshed = far.next();
        assert_eq!(
            (&refreshed["kind"], &refreshed["resource"]),
            (&json!("refresh_token"), &json!(far.url))
        );
        thread::sleep(Duration::from_millis(1100));
    }
    assert_eq!(fs::metadata(far.file()).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_refusal_another_issuer_and_a_server_without_registration_end_the_log_in_with_the_reason() {
    for (habit, reason) in [
        ("refuses", "the log-in was refused: access_denied: not today"),
        ("wrong-issuer", "issuer mismatch"),
    ] {
        let far = Far::start(&[habit]);
        let login = far.log_in(&[]);
        let _ = get(&login.redirected());
        let (done, said) = login.ended();
        assert!(!done && said.contains(reason), "{habit}: {said}");
        assert!(!far.file().exists() && !said.contains("s3cret"), "{said}");
    }
    let far = Far::start(&["no-registration"]);
    let (done, said) = far.log_in(&[]).ended();
    assert!(!done && said.contains("--client-id"), "{said}");
    let (done, _, said) = far.run("--token");
    assert!(!done && said.contains("there is no log-in"), "{said}");
}

#[test]
fn a_log_out_revokes_the_tokens_where_the_server_can_and_removes_the_file_in_any_case() {
    for (habits, revoked, reason) in
        [(&[][..], 2, "has revoked the tokens"), (&["no-revocation"], 0, "revokes no tokens")]
    {
        let far = Far::start(habits);
        let login = far.log_in(&[]);
        let _ = get(&login.redirected());
        assert!(login.ended().0);
        let (done, _, said) = far.run("--logout");
        assert!(done && said.contains(reason), "{said}");
        assert!(!far.file().exists());
        let asked = || far.asked.recv_timeout(Duration::from_millis(300)).ok();
        let all = std::iter::from_fn(asked).filter(|asked| asked["what"] == "revoke");
        assert_eq!(all.count(), revoked);
        assert!(!far.run("--logout").0, "there is none any more");
    }
    let mut far = Far::start(&[]);
    let login = far.log_in(&[]);
    let _ = get(&login.redirected());
    assert!(login.ended().0);
    far.process.kill().unwrap();
    far.process.wait().unwrap();
    let (done, _, said) = far.run("--logout");
    assert!(done && said.contains("did not revoke the tokens"), "{said}");
    assert!(!far.file().exists());
}

/// A service of this machine that is no part of the server, and the connections to it.
fn local_service() -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/flush", listener.local_addr().unwrap());
    let (sender, connections) = channel();
    thread::spawn(move || listener.incoming().flatten().try_for_each(|_| sender.send(())));
    (address, connections)
}

#[test]
fn a_log_out_sends_tokens_to_no_other_service_and_removes_the_file() {
    let (service, connections) = local_service();
    for (habit, reason) in [
        (format!("revocation={service}"), "neither the server nor the host that gave the tokens"),
        (format!("moved={service}"), "it answers 307"),
    ] {
        let far = Far::start(&[&habit]);
        let login = far.log_in(&[]);
        let _ = get(&login.redirected());
        assert!(login.ended().0);
        let (done, _, said) = far.run("--logout");
        assert!(done && said.contains("did not revoke the tokens"), "{habit}: {said}");
        assert!(said.contains(reason), "{habit}: {said}");
        assert!(!far.file().exists(), "{habit}");
    }
    // The client in its cage writes the file, and cannot lead a log-out elsewhere.
    let far = Far::start(&[]);
    let login = far.log_in(&[]);
    let _ = get(&login.redirected());
    assert!(login.ended().0);
    let base = far.url.trim_end_matches("/mcp");
    let other = service.trim_end_matches("/flush");
    let text = fs::read_to_string(far.file()).unwrap();
    assert!(text.contains(base));
    fs::write(far.file(), text.replace(base, other)).unwrap();
    for flag in ["--token", "--logout"] {
        let (_, out, said) = far.run(flag);
        assert!(!out.contains("s3cret"), "{flag}: {out}");
        assert!(said.contains("neither the server nor"), "{flag}: {said}");
    }
    assert!(!far.file().exists());
    assert!(connections.try_recv().is_err(), "the service was asked");
}

fn desk(lines: &str) -> Desk {
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, lines).unwrap();
    desk
}

#[test]
fn agentd_mcp_logs_a_person_in_and_out_by_the_name_of_the_server() {
    let far = Far::start(&[]);
    let desk = desk(&format!(
        "[mcp.far]\nurl = \"{}\"\n[mcp.near]\ncommand = \"x\"\n[mcp.own]\nurl = \"{0}\"\n\
             bearer_token_env_var = \"T\"\n[mcp.plain]\nurl = \"http://a.example/mcp\"\n",
        far.url
    ));
    let login = LogIn::start(desk.agentd(&["mcp", "login", "far", "--scope", "mail"]));
    let (status, ..) = get(&login.redirected());
    assert_eq!(status, 200);
    let (done, said) = login.ended();
    assert!(done && said.contains("logged in to far"), "{said}");
    let dir = desk.state().join("mcp-log-ins");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    // The hosts that its client may reach for new tokens stand where the client does not write.
    let host = far.url.split('/').nth(2).unwrap();
    assert_eq!(fs::read_to_string(files[0].with_extension("hosts")).unwrap(), host);
    assert!(files[0].file_name().unwrap().to_str().unwrap().starts_with("far-"), "{files:?}");
    let file = files[0].join("log-in.json");
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
    for (name, reason) in [
        ("nobody", "there is no MCP server nobody"),
        ("near", "is a program"),
        ("own", "has a token in its configuration"),
        ("plain", "not https"),
    ] {
        let ran = run(desk.agentd(&["mcp", "login", name]));
        assert!(ran.code != 0 && ran.err.contains(reason), "{name}: {}", ran.err);
    }
    let ran = run(desk.agentd(&["mcp", "logout", "far"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("has revoked the tokens"), "{}", ran.err);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    let ran = run(desk.agentd(&["mcp", "logout", "far"]));
    assert!(ran.code == 1 && ran.err.contains("not logged in to far"), "{}", ran.err);
}

#[test]
fn a_session_uses_the_log_in_and_renews_its_tokens_from_the_sandbox_of_the_client() {
    let far = Far::start(&["short"]);
    let desk = desk(&format!("[mcp.far]\nurl = \"{}\"\n", far.url));
    let session = || {
        let server = Server::scripted([
            Answer::says([call("toolu_1", "mcp__far__scope", "{}")]),
            Answer::text("Done."),
        ]);
        let ran = run(desk.with_server(&server, &["-p", "Go.", "--permission-mode", "auto"]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        (server.requests().last().unwrap().body["messages"].to_string(), ran.err)
    };
    let (_, told) = session();
    assert!(told.contains("run `agentd mcp login far`"), "the control: {told}");

    let login = LogIn::start(desk.agentd(&["mcp", "login", "far"]));
    get(&login.redirected());
    assert!(login.ended().0);
    let entries = fs::read_dir(desk.state().join("mcp-log-ins")).unwrap();
    let dir = entries.map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
    let file = dir.unwrap().join("log-in.json");
    let tokens = fs::read_to_string(&file).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    let (messages, told) = session();
    assert!(messages.contains("files:read"), "{messages}{told}");
    let renewed = fs::read_to_string(&file).unwrap();
    assert!(renewed != tokens && renewed.contains("s3cret"), "the tokens were renewed");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    // Records and logs have no token.
    for dir in ["sessions", "audit"] {
        assert!(!text_below(&desk.state().join(dir)).contains("s3cret"), "{dir}");
    }
    assert!(text_below(&desk.state()).contains("s3cret"), "the control");
}

#[test]
fn a_log_in_that_is_not_renewed_is_named_with_the_cause_and_the_way_on() {
    for (habit, cause) in [
        ("no-renewal", "the server did not renew the log-in (invalid_grant: ended by its owner)"),
        ("no-answer", "the log-in could not be renewed (HTTP 503); try again later"),
    ] {
        let far = Far::start(&["short", habit]);
        assert!({
            let login = far.log_in(&[]);
            let _ = get(&login.redirected());
            login.ended().0
        });
        thread::sleep(Duration::from_millis(1100));
        let (done, token, said) = far.run("--token");
        assert!(!done && said.contains(cause) && token.is_empty(), "{habit}: {said}");
        assert!(said.contains("agentd mcp login NAME"), "{habit}: {said}");
        let desk = desk(&format!("[mcp.far]\nurl = \"{}\"\n", far.url));
        let login = LogIn::start(desk.agentd(&["mcp", "login", "far"]));
        get(&login.redirected());
        assert!(login.ended().0);
        thread::sleep(Duration::from_millis(1100));
        let model = Server::scripted([Answer::text("Done.")]);
        let ran = run(desk.with_server(&model, &["-p", "Go."]));
        assert_eq!(ran.code, 0, "{habit}: {}", ran.err);
        assert!(ran.err.contains(cause), "{habit}: {}", ran.err);
        assert!(ran.err.contains("run `agentd mcp login far`"), "{habit}: {}", ran.err);
    }
}

#[test]
fn a_server_that_wants_a_log_in_waits_for_it_and_starts_with_the_next_prompt() {
    let far = Far::start(&[]);
    let desk = desk(&format!("[mcp.far]\nurl = \"{}\"\n", far.url));
    let model = Server::scripted(["one", "two", "three"].map(Answer::text));
    let starts = || {
        let is_start =
            |record: &Value| record["event"] == "ended" && record["tool"] == "mcp_remote";
        desk.audit().into_iter().filter(is_start).count()
    };
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&model);
    opening.mode = Some(PermissionMode::Auto);
    let session = wire.open(&opening);
    wire.event("the end of the server", |event| match event {
        ClientEvent::Notice { text } => text
            .contains("login far`; it starts again with your next prompt once you have logged in")
            .then_some(()),
        _ => None,
    });
    // It would start again after 0.2 s and 1 s.
    std::thread::sleep(Duration::from_millis(1500));
    wire.prompt(&session, "go");
    wire.turn_ends();
    assert_eq!(starts(), 1, "without a log-in a prompt changes nothing");
    let login = LogIn::start(desk.agentd(&["mcp", "login", "far"]));
    get(&login.redirected());
    assert!(login.ended().0);
    wire.prompt(&session, "go on");
    wire.turn_ends();
    wire.servers_ready(&session);
    wire.prompt(&session, "and on");
    wire.turn_ends();
    let tools = |at: usize| model.requests()[at].body["tools"].to_string();
    assert!(!tools(0).contains("mcp__far__"), "the control");
    assert!(tools(2).contains("mcp__far__"), "{}", tools(2));
}

/// All files below a directory, as far as they are text.
fn text_below(dir: &Path) -> String {
    let entries = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let texts = entries.map(|path| match path.is_dir() {
        true => text_below(&path),
        false => fs::read_to_string(path).unwrap_or_default(),
    });
    texts.collect()
}
