//! `agentd mcp serve`: agentd as an MCP server for another agent, which the test is.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, processes, run, runs, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// The client: JSON lines to the server and from it.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    asked: u64,
}

impl Client {
    fn start(desk: &Desk, model: &Server, flags: &[&str]) -> Self {
        let mut client = Self::plain(desk.with_server(model, &[&["mcp", "serve"], flags].concat()));
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = client.request("initialize", params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "agentd", "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn plain(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).expect(&line));
            }
        });
        Self { input: child.stdin.take(), child, lines, asked: 0 }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and returns its id.
    fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn next(&self) -> Value {
        self.lines.recv_timeout(Duration::from_secs(60)).expect("the server sends a message")
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// The processes of the server's session beside itself.
    fn others(&self) -> usize {
        let own = self.child.id();
        processes().iter().filter(|it| it.session == own && it.pid != own).count()
    }

    /// Closes the input and waits for the end.
    fn end(mut self) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        assert_eq!(self.others(), 0, "nothing is left");
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn a_run_returns_its_answer_and_is_listed() {
    let desk = Desk::new();
    let model = Server::scripted([Answer::text("It has three tests.")]);
    let mut client = Client::start(&desk, &model, &["--max-cost", "2.5"]);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["run", "sessions"]);
    let none = client.call("sessions", json!({}));
    assert_eq!(none["structuredContent"], json!({"sessions": [], "left_out": 0}));

    // A prompt that looks like a flag is a prompt.
    let prompt = "--permission-mode=auto How many tests?";
    let ran = client.call("run", json!({"prompt": prompt, "budget": 1, "timeout": 50}));
    assert_eq!(ran["isError"], false, "{ran}");
    let report = &ran["structuredContent"];
    assert_eq!(report["answer"], "It has three tests.");
    assert_eq!(report["exit_code"], 0);
    assert!(report["cost_usd"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(serde_json::from_str::<Value>(text(&ran)).unwrap(), *report, "the text is the same");
    let asked = model.requests()[0].body["messages"].to_string();
    assert!(asked.contains(prompt), "{asked}");

    let listed = client.call("sessions", json!({}));
    let sessions = listed["structuredContent"]["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{listed}");
    assert_eq!(sessions[0]["session_id"], report["session_id"]);
    assert_eq!(sessions[0]["state"], "ended");
    assert_eq!(sessions[0]["project"], desk.project().canonicalize().unwrap().to_str().unwrap());
    assert!(sessions[0]["first_words"].as_str().unwrap().contains("How many tests?"), "{listed}");
    client.end();
}

#[test]
fn a_run_takes_place_below_the_directories_of_the_flags_alone() {
    let desk = Desk::new();
    desk.write("in/below/a.txt", "a");
    desk.write("out/b.txt", "b");
    std::os::unix::fs::symlink(desk.project().join("out"), desk.project().join("in/link")).unwrap();
    let model = Server::scripted([Answer::text("Here.")]);
    let mut client = Client::start(&desk, &model, &["-C", "in"]);
    let out = desk.project().join("out");
    for project in ["..", "../out", "link", out.to_str().unwrap()] {
        let refused = client.call("run", json!({"prompt": "Go.", "project": project}));
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(text(&refused).contains("--project-dir"), "{refused}");
    }
    let refused = client.call("run", json!({"prompt": "Go.", "permission_mode": "auto"}));
    assert!(text(&refused).contains("no argument `permission_mode`"), "{refused}");
    assert_eq!(model.requests().len(), 0);
    let ran = client.call("run", json!({"prompt": "Go.", "project": "below"}));
    assert_eq!(ran["structuredContent"]["answer"], "Here.", "the control: {ran}");
    client.end();
}

#[test]
fn the_permission_mode_is_that_of_the_flags() {
    let writes = |model: &Server, flags: &[&str]| {
        let desk = Desk::new();
        let mut client = Client::start(&desk, model, flags);
        let ran = client.call("run", json!({"prompt": "Write it."}));
        client.end();
        (ran["structuredContent"]["exit_code"].clone(), desk.project().join("new.txt").exists())
    };
    let model = || {
        let input = json!({"path": "new.txt", "content": "new\n"}).to_string();
        Server::scripted([Answer::says([call("toolu_1", "write", &input)]), Answer::text("Done.")])
    };
    assert_eq!(writes(&model(), &[]), (json!(10), false));
    assert_eq!(writes(&model(), &["--permission-mode", "auto"]), (json!(0), true), "the control");
}

/// A run whose command sleeps this long, until that command runs.
fn sleeper(desk: &Desk, seconds: &str) -> (Client, Server, u64) {
    let input = json!({"command": format!("sleep {seconds}")}).to_string();
    let model =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("Done.")]);
    let mut client = Client::start(desk, &model, &["--permission-mode", "auto"]);
    let params = json!({
        "name": "run",
        "arguments": {"prompt": "Sleep."},
        "_meta": {"progressToken": "p"},
    });
    let id = client.ask("tools/call", params);
    until("the command runs", || runs(&format!("sleep {seconds}")));
    assert!(client.others() > 0, "the control");
    (client, model, id)
}

#[test]
fn a_cancelled_run_leaves_nothing_running() {
    let desk = Desk::new();
    let (mut client, _model, id) = sleeper(&desk, "4417.25");
    let told = client.next();
    assert_eq!(told["method"], "notifications/progress", "{told}");
    assert_eq!(told["params"]["progressToken"], "p");
    client.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "no more"},
    }));
    until("nothing of the run is left", || !runs("sleep 4417.25") && client.others() == 0);
    let listed = client.call("sessions", json!({}));
    assert_eq!(listed["structuredContent"]["sessions"].as_array().unwrap().len(), 1, "{listed}");
    client.end();
}

#[test]
fn a_client_or_a_server_that_goes_leaves_nothing_running() {
    let desk = Desk::new();
    let (client, _model, _) = sleeper(&desk, "4418.25");
    client.end();
    until("nothing of the run is left", || !runs("sleep 4418.25"));

    let (mut client, _model, _) = sleeper(&desk, "4419.25");
    crate::support::send(client.child.id(), Signal::SIGTERM);
    assert!(client.child.wait().unwrap().success());
    assert_eq!(client.others(), 0);
    until("nothing of the run is left", || !runs("sleep 4419.25"));
}

#[test]
fn at_most_four_runs_are_under_way() {
    let desk = Desk::new();
    let model =
        Server::answering(|_, _| Answer::text("Late.").stalled_after(1, Duration::from_secs(100)));
    let mut client = Client::start(&desk, &model, &[]);
    let params = json!({"name": "run", "arguments": {"prompt": "Go."}});
    for _ in 0..5 {
        client.ask("tools/call", params.clone());
    }
    let refused = client.next();
    assert_eq!(refused["id"], client.asked, "{refused}");
    assert!(text(&refused["result"]).contains("4 runs are under way"), "{refused}");
    client.end();
}

#[test]
fn the_revision_without_a_handshake_is_spoken_too() {
    let desk = Desk::new();
    let model = Server::scripted([Answer::text("Yes.")]);
    let mut client = Client::plain(desk.with_server(&model, &["mcp", "serve"]));
    let ran = client.request(
        "tools/call",
        json!({
            "name": "run",
            "arguments": {"prompt": "Go."},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }),
    );
    assert_eq!(ran["result"]["structuredContent"]["answer"], "Yes.", "{ran}");
    assert_eq!(ran["result"]["resultType"], "complete", "{ran}");
    client.end();
}

#[test]
fn wrong_flags_are_an_error_before_it_serves() {
    let desk = Desk::new();
    let serve = |flags: &[&str]| -> Run { run(desk.agentd(&[&["mcp", "serve"], flags].concat())) };
    let absent = serve(&["-C", "absent"]);
    assert_eq!(absent.code, 2, "{}", absent.err);
    assert!(absent.err.contains("absent does not exist"), "{}", absent.err);
    assert_eq!(serve(&["--permission-mode", "all"]).code, 2);
    let ended = serve(&[]);
    assert_eq!((ended.code, ended.out.as_str()), (0, ""), "the control: {}", ended.err);
}
