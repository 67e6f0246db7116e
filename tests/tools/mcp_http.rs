//! MCP servers that have an address: each client in a cage of its own that reaches its one host.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::{Desk, Run, needs, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const AUTO: [&str; 4] = ["-p", "Go.", "--permission-mode", "auto"];
const TOKEN: &str = "t0ken-of-the-server";

/// A server on this machine; it ends with its standard input.
struct Remote {
    child: Child,
    port: u16,
    /// What it prints behind its port.
    output: BufReader<ChildStdout>,
}

impl Remote {
    fn start(habits: &[&str], token: Option<&str>) -> Self {
        needs("python3");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mcp_http_server.py");
        let mut command = Command::new("python3");
        command.arg(script).args(habits).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(token.map(|token| ("SERVER_TOKEN", token)));
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().expect("the server prints its port"), output }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn desk(lines: &str) -> Desk {
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, lines).unwrap();
    desk
}

fn asks(id: &str, tool: &str, input: &Value) -> Say {
    call(id, &format!("mcp__far__{tool}"), &input.to_string())
}

/// One call a round, and the results in their order.
fn rounds(desk: &Desk, calls: &[(&str, Value)]) -> (Run, Vec<String>) {
    let says = |(at, (tool, input)): (usize, &(&str, Value))| {
        Answer::says([asks(&format!("toolu_{at}"), tool, input)])
    };
    let answers = calls.iter().enumerate().map(says).chain([Answer::text("Done.")]);
    let server = Server::scripted(answers.collect::<Vec<_>>());
    let mut command = desk.with_server(&server, &AUTO);
    command.env("FAR_TOKEN", TOKEN);
    let ran = run(command);
    let results = server.requests().into_iter().skip(1).map(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let content = &messages.last().unwrap()["content"][0]["content"];
        content.as_str().map_or_else(|| content.to_string(), str::to_owned)
    });
    let results = results.collect();
    (ran, results)
}

fn ended(desk: &Desk, tool: &str) -> Vec<Value> {
    let all = desk.audit().into_iter();
    all.filter(|record| record["event"] == "ended" && record["tool"] == tool).collect()
}

#[test]
fn tools_of_both_revisions_are_called_with_the_headers_of_the_configuration() {
    for habits in [&[][..], &["modern"]] {
        let remote = Remote::start(habits, Some(TOKEN));
        let desk = desk(&format!(
            "[mcp.far]\nurl = \"{}\"\nbearer_token_env_var = \"FAR_TOKEN\"\n\
             headers = {{ X-Team = \"docs\" }}\n",
            remote.url()
        ));
        let calls = [("echo", json!({"text": "hello"})), ("headers", json!({}))];
        let (ran, results) = rounds(&desk, &calls);
        assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{habits:?}: {}", ran.err);
        assert_eq!(results[0], "hello", "{habits:?}");
        let headers: Value = serde_json::from_str(&results[1]).expect(&results[1]);
        assert_eq!(headers["x-team"], "docs");
        let client = ended(&desk, "mcp_remote");
        assert_eq!(client.len(), 1, "{client:#?}");
        assert_eq!(client[0]["enforced"]["profile"], "mcp-remote", "{client:#?}");
        assert_eq!(ended(&desk, "mcp")[0]["enforced"]["profile"], "mcp-remote");
        let text = format!("{client:?}");
        assert!(text.contains(&format!("127.0.0.1:{}", remote.port)), "the connection: {text}");
        // The record has the name of the variable and not its value.
        let text = text_below(&desk.state());
        assert!(text.contains("AGENTD_MCP_HEADER_1") && text.contains("hello"), "the control");
        assert!(!text.contains(TOKEN));
    }
}

/// All files below a directory, as far as they are text. The kernel's own directory of an overlay is closed.
fn text_below(dir: &Path) -> String {
    let entries = std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let texts = entries.map(|path| match path.is_dir() {
        true => text_below(&path),
        false => std::fs::read_to_string(path).unwrap_or_default(),
    });
    texts.collect()
}

#[test]
fn a_server_that_is_of_no_use_is_named_with_the_reason_and_a_way_on() {
    let remote = Remote::start(&[], Some(TOKEN));
    for (lines, words) in [
        (format!("url = \"{}\"\n", remote.url()), "wants a log-in; run `agentd mcp login far`"),
        ("url = \"http://127.0.0.1:1/mcp\"\n".to_owned(), "far"),
        (
            format!(
                "url = \"http://127.0.0.1:{}/mcp\"\nheaders = {{ \"a b\" = \"c\" }}\n",
                remote.port
            ),
            "cannot be the name of a header",
        ),
    ] {
        let desk = desk(&format!("[mcp.far]\n{lines}"));
        let (ran, _) = rounds(&desk, &[]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
        assert!(
            ran.err.contains("MCP server far") && ran.err.contains(words),
            "{words}: {}",
            ran.err
        );
    }
}

#[test]
fn a_client_reaches_its_own_host_and_no_other() {
    // The server leads elsewhere: the client does not follow, and its cage has no other way.
    let remote = Remote::start(&["elsewhere"], None);
    let desk = desk(&format!("[mcp.far]\nurl = \"{}\"\n", remote.url()));
    let (ran, _) = rounds(&desk, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("MCP server far"), "{}", ran.err);
    let client = ended(&desk, "mcp_remote");
    let text = format!("{client:?}");
    assert!(text.contains(&format!("127.0.0.1:{}", remote.port)), "{text}");
    assert!(!text.contains("127.0.0.1:1\""), "{text}");
}

#[test]
fn a_rule_that_denies_the_host_holds_for_the_client() {
    let remote = Remote::start(&[], None);
    let rule = "[permissions]\ndeny = [\"host:127.0.0.1:*\"]\n";
    let desk = desk(&format!("{rule}[mcp.far]\nurl = \"{}\"\n", remote.url()));
    let (ran, _) = rounds(&desk, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("MCP server far"), "{}", ran.err);
    assert!(format!("{:?}", ended(&desk, "mcp_remote")).contains("a rule denies it"));
}

#[test]
fn a_server_that_ends_in_a_call_leaves_it_as_may_have_run_and_a_long_answer_is_refused() {
    let remote = Remote::start(&[], None);
    let desk = desk(&format!("[mcp.far]\nurl = \"{}\"\n", remote.url()));
    let calls = [("huge", json!({})), ("die", json!({}))];
    let (ran, results) = rounds(&desk, &calls);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        results[0].chars().count() < 100_000 && results[0].contains("may have run"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("may have run"), "{}", results[1]);
}

#[test]
fn a_call_is_not_sent_again_where_the_server_has_lost_the_session() {
    let mut remote = Remote::start(&["forgets"], None);
    let desk = desk(&format!("[mcp.far]\nurl = \"{}\"\n", remote.url()));
    let (ran, results) = rounds(&desk, &[("echo", json!({"text": "hello"}))]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(results[0].contains("may have run"), "{}", results[0]);
    remote.child.kill().unwrap();
    let mut printed = String::new();
    remote.output.read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "ran\n");
}

#[test]
fn a_server_that_wants_its_stream_opened_again_at_once_is_asked_at_growing_pauses() {
    let remote = Remote::start(&["streams"], None);
    let desk = desk(&format!("[mcp.far]\nurl = \"{}\"\n", remote.url()));
    let (ran, results) = rounds(&desk, &[("slow", json!({"seconds": 4})), ("streams", json!({}))]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(results[0], "waited");
    let streams: u32 = results[1].parse().expect(&results[1]);
    assert!((2..=6).contains(&streams), "{streams} streams in four seconds");
}
