//! Costs of MCP servers: for the first prompt of a session, for a call, and in memory.

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{self, Desk, needs, processes, until};
use crate::{median, micros, row};
use protocol::client::{FromClient, SessionEnding};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Servers of the session that has many.
const MANY: usize = 10;
/// Sessions of each kind.
const SESSIONS: usize = 7;
/// Calls of each kind.
const CALLS: usize = 60;

pub(crate) fn rows() {
    needs("python3");
    let (without, with): (Vec<_>, Vec<_>) =
        (0..SESSIONS).map(|_| (first_request(0), first_request(MANY))).unzip();
    let (without, with) = (median(without), median(with));
    let later = with.saturating_sub(without);
    let figure = format!("first prompt to request, {MANY} MCP servers, longer than without");
    let baseline = format!("without servers {:.1} ms", micros(without) / 1e3);
    row(&figure, micros(later) / 1e3, "ms", 100.0, &baseline);
    let bare = bare_call();
    let (with, without, memory) = call_and_memory();
    let over = with.saturating_sub(without).saturating_sub(bare);
    let baseline = format!(
        "answer to next request {:.2} ms, {:.2} ms without the call; the bare server {:.2} ms",
        micros(with) / 1e3,
        micros(without) / 1e3,
        micros(bare) / 1e3
    );
    row(
        "call of an MCP tool, longer than at the bare server",
        micros(over) / 1e3,
        "ms",
        2.0,
        &baseline,
    );
    match memory {
        Some(memory) => row("agentd-mcp (PSS)", memory, "MiB", 8.0, "none"),
        None => println!("| agentd-mcp (PSS) | | <= 8 MiB | run as root | none |"),
    }
}

fn desk(servers: usize) -> Desk {
    let desk = Desk::new();
    desk.write("server.py", include_str!("../data/mcp_server.py"));
    let dir = desk.home().join(".config/agentd");
    fs::create_dir_all(&dir).unwrap();
    let table = |number| format!("[mcp.s{number}]\ncommand = [\"python3\", \"server.py\"]\n");
    let allowed = "[permissions]\nallow = [\"mcp__*\"]\n".to_owned();
    let text: String = [allowed].into_iter().chain((0..servers).map(table)).collect();
    fs::write(dir.join("config.toml"), text).unwrap();
    desk
}

/// From the opening of a session, with its first prompt right behind, to the request at the model.
fn first_request(servers: usize) -> Duration {
    let desk = desk(servers);
    let server = Server::answering(|_, _| Answer::text("done"));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let begun = Instant::now();
    let session = wire.open(&opening);
    wire.prompt(&session, "hello");
    wire.turn_ends();
    let took = server.requests()[0].first_byte.saturating_duration_since(begun);
    wire.say(FromClient::End { session, ending: SessionEnding::Kill });
    took
}

fn asked(at: usize) -> Value {
    let params = json!({"name": "echo", "arguments": {"text": "hello"}});
    json!({"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": params})
}

/// A call at the server alone.
fn bare_call() -> Duration {
    let desk = desk(0);
    let mut command = Command::new("python3");
    command.arg("server.py").current_dir(desk.project());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines();
    let times = (0..CALLS).map(|at| {
        // As idle as it is between calls of a session.
        std::thread::sleep(Duration::from_millis(20));
        let begun = Instant::now();
        writeln!(input, "{}", asked(at)).unwrap();
        lines.next().unwrap().unwrap();
        begun.elapsed()
    });
    let took = median(times.collect());
    child.kill().unwrap();
    child.wait().unwrap();
    took
}

/// From an answer with one call to the next request, the same of an answer whose call has no tool, and the
/// memory of `agentd-mcp` in MiB.
fn call_and_memory() -> (Duration, Duration, Option<f64>) {
    let desk = desk(1);
    let server = Server::answering(|number, _| {
        let tool = if number % 2 == 0 { "mcp__s0__echo" } else { "no_such_tool" };
        match number {
            number if number < 2 * CALLS => {
                Answer::says([call(&format!("toolu_{number}"), tool, r#"{"text":"hello"}"#)])
            }
            _ => Answer::text("done"),
        }
    });
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    let client =
        || processes().into_iter().find(|it| it.parent == daemon.pid && it.name == "agentd-mcp");
    until("the server runs", || client().is_some());
    std::thread::sleep(Duration::from_secs(1));
    wire.prompt(&session, "hello");
    wire.turn_ends();
    let memory = support::is_root().then(|| client().map(|it| support::pss(it.pid)));
    let memory = memory.flatten().map(|kib| kib as f64 / 1024.0);
    let seen = server.requests();
    let answered = seen[2].body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(answered["content"][0]["content"], "hello");
    let took = |of: usize| {
        let pairs = seen.windows(2).enumerate().filter(|(at, _)| at % 2 == of);
        let times = pairs.map(|(_, pair)| {
            pair[1].first_byte.saturating_duration_since(pair[0].answered.unwrap())
        });
        median(times.collect())
    };
    // The first answer has the number 1, and a call without a tool.
    (took(1), took(0), memory)
}
