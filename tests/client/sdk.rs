//! A program at `agentd-claude`: one session by the wire of the Claude Agent SDKs, through deaths, beside terminals.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, needs, send, until};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, SessionRequest, SessionStart, ToClient,
};
use protocol::ids::SessionId;
use protocol::judgement::PersonAnswer;
use protocol::session::OpenTurn;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Longest wait for a line.
const PATIENCE: Duration = Duration::from_secs(60);

/// A call that ends when the project has the file `go`.
const WAITS: &str =
    r#"{"command":"echo x >>ran; until test -e go; do sleep 0.05; done; echo went"}"#;

/// A program: our end of the pipes.
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// All lines so far.
    heard: Vec<Value>,
}

impl Program {
    fn start(desk: &Desk, server: &Server, flags: &[&str]) -> Self {
        let ours = desk.with_server(server, &[]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentd-claude"));
        command.args(["--output-format", "stream-json", "--verbose"]).args(flags);
        command.args(["--input-format", "stream-json"]).current_dir(desk.project()).env_clear();
        command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // All of its output is the wire.
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, heard: Vec::new() }
    }

    /// One that has said its first word, with a permission callback.
    pub(crate) fn asked(desk: &Desk, server: &Server, flags: &[&str]) -> Self {
        let flags: Vec<&str> =
            ["--permission-prompt-tool", "stdio"].iter().chain(flags).copied().collect();
        let mut program = Self::start(desk, server, &flags);
        let answer = program.control(&json!({"subtype": "initialize", "hooks": null}));
        assert_eq!(answer["subtype"], "success", "{answer}");
        program
    }

    pub(crate) fn say(&mut self, line: &Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn prompt(&mut self, words: &str) {
        self.say(&json!({"type": "user", "message": {"role": "user", "content": words}}));
    }

    #[track_caller]
    pub(crate) fn control(&mut self, request: &Value) -> Value {
        let id = format!("r{}", self.heard.len());
        self.say(&json!({"type": "control_request", "request_id": id, "request": request}));
        let line = self.hears("answer", |line| line["response"]["request_id"] == id.as_str());
        line["response"].clone()
    }

    #[track_caller]
    pub(crate) fn hears(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.heard.push(line.clone());
                    if wanted(&line) {
                        return line;
                    }
                }
                Err(_) => panic!("no {what}; heard {:#?}", self.heard),
            }
        }
    }

    #[track_caller]
    pub(crate) fn kind(&mut self, kind: &str) -> Value {
        self.hears(kind, |line| line["type"] == kind)
    }

    pub(crate) fn answer(&mut self, asked: &Value, response: &Value) {
        let id = &asked["request_id"];
        self.say(&json!({"type": "control_response",
            "response": {"subtype": "success", "request_id": id, "response": response}}));
    }

    /// Says no more, and waits for the end.
    pub(crate) fn ends(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two calls of the same command, and then words.
fn two_calls() -> Server {
    let input = r#"{"command":"echo x >>ran"}"#;
    Server::scripted([
        Answer::says([call("toolu_1", "bash", input)]),
        Answer::says([call("toolu_2", "bash", input)]),
        Answer::text("Done."),
    ])
}

#[test]
fn prompts_have_a_result_each_and_the_last_decides_the_exit_code() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("One."), Answer::text("Two.")]);
    let _daemon = desk.daemon();
    let mut program =
        Program::start(&desk, &server, &["--setting-sources=", "--permission-mode=default"]);
    // As one library does it: the prompt comes without waiting for an answer.
    program.say(&json!({"type": "control_request", "request_id": "i",
        "request": {"subtype": "initialize", "systemPrompt": [""], "sdkMcpServers": []}}));
    program.prompt("hi");
    let init = program.kind("system");
    assert_eq!((&init["subtype"], &init["permissionMode"]), (&"init".into(), &"default".into()));
    let said = program.kind("assistant");
    assert_eq!(said["message"]["content"][0]["text"], "One.");
    let result = program.kind("result");
    assert_eq!((&result["result"], &result["is_error"]), (&"One.".into(), &false.into()));
    assert_eq!(result["session_id"], init["session_id"]);
    program.prompt("again");
    assert_eq!(program.kind("result")["result"], "Two.");
    assert_eq!(program.ends(), 0);
}

#[test]
fn the_callback_decides_calls_and_a_terminal_may_answer_first() {
    let desk = Desk::new();
    let server = two_calls();
    let _daemon = desk.daemon();
    let mut program = Program::asked(&desk, &server, &[]);
    program.prompt("go");
    let session = program.kind("system")["session_id"].as_str().unwrap().to_owned();
    let session = SessionId(session);
    let asked = program.kind("control_request");
    let mut wire = Wire::to(&desk.door());
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    wire.open_with_key(&SessionRequest { start, ..desk.opening(&server) });
    wire.until("opening", |word| matches!(word, ToClient::Opened { .. }).then_some(()));
    wire.attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
    assert_eq!(asked["request"]["subtype"], "can_use_tool");
    let about = &asked["request"];
    assert_eq!((&about["tool_name"], &about["tool_use_id"]), (&"Bash".into(), &"toolu_1".into()));
    assert!(!desk.project().join("ran").exists(), "it waits for the answer");
    let same = json!({"behavior": "allow", "updatedInput": {"command": "echo x >>ran"}});
    program.answer(&asked, &same);
    program.kind("control_request");
    let open = wire.until("the second question", |word| match word {
        ToClient::Event { event: ClientEvent::Asked { question }, .. } => Some(question.clone()),
        _ => None,
    });
    wire.say(FromClient::Answer {
        call: open.call,
        digest: open.digest,
        answer: PersonAnswer::Deny("no".to_owned()),
    });
    program.kind("control_cancel_request");
    assert_eq!(program.kind("result")["result"], "Done.");
    assert_eq!(std::fs::read_to_string(desk.project().join("ran")).unwrap(), "x\n");
    assert_eq!(program.ends(), 0);
}

/// What is not a clear yes to this very call is a no.
#[test]
fn an_answer_that_changes_the_call_or_fails_runs_nothing() {
    for response in [
        json!({"behavior": "allow", "updatedInput": {"command": "echo y >>ran"}}),
        json!({"behavior": "perhaps"}),
        json!({"behavior": "deny", "message": "not today"}),
    ] {
        let desk = Desk::new();
        let input = r#"{"command":"echo x >>ran"}"#;
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", input)]),
            Answer::text("So be it."),
        ]);
        let _daemon = desk.daemon();
        let mut program = Program::asked(&desk, &server, &[]);
        program.prompt("go");
        let asked = program.kind("control_request");
        program.answer(&asked, &response);
        assert_eq!(program.kind("result")["result"], "So be it.");
        assert!(!desk.project().join("ran").exists(), "{response}");
        assert_eq!(program.ends(), 0);
    }
}

/// Without a callback a call that would be asked about is refused, as in `agentd -p`.
#[test]
fn without_a_callback_nobody_is_asked() {
    let desk = Desk::new();
    let server = two_calls();
    let _daemon = desk.daemon();
    let mut program = Program::start(&desk, &server, &[]);
    program.prompt("go");
    let result = program.kind("result");
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 2, "{result}");
    assert!(!desk.project().join("ran").exists());
    program.ends();
}

#[test]
fn a_prompt_in_mid_turn_joins_it_and_an_interrupt_ends_it() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", WAITS)]),
        Answer::says([call("toolu_2", "bash", r#"{"command":"sleep 60"}"#)]),
    ]);
    let _daemon = desk.daemon();
    let mut program = Program::asked(&desk, &server, &["--permission-mode", "bypassPermissions"]);
    program.prompt("go");
    until("the call runs", || desk.project().join("ran").exists());
    program.prompt("and this");
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(desk.project().join("go"), "").unwrap();
    let joined = program.hears("the joined prompt", |line| line["isReplay"] == true);
    assert_eq!(joined["message"]["content"], "and this");
    until("the next request", || server.requests().len() == 2);
    assert_eq!(program.control(&json!({"subtype": "interrupt"}))["subtype"], "success");
    let result = program.kind("result");
    assert_eq!(result["is_error"], true, "{result}");
    assert_eq!(program.ends(), 1, "the last result is an error");
}

#[test]
fn a_prompt_outlives_the_daemon_and_has_one_result() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", WAITS)]),
        Answer::text("After all."),
    ]);
    let daemon = desk.daemon();
    let mut program = Program::asked(&desk, &server, &["--permission-mode", "bypassPermissions"]);
    program.prompt("go");
    until("the call runs", || desk.project().join("ran").exists());
    send(daemon.pid, Signal::SIGKILL);
    assert_eq!(program.kind("result")["result"], "After all.");
    assert_eq!(
        std::fs::read_to_string(desk.project().join("ran")).unwrap(),
        "x\n",
        "the call ran once"
    );
    assert_eq!(program.ends(), 0);
}

/// A session has the name that the program gave it, and is found by it.
#[test]
fn a_program_names_its_session_and_finds_it_again() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("Yes."));
    let _daemon = desk.daemon();
    let id = "6f06bb79-1d4f-4bea-860e-2b3eb1fd87a1";
    let mut program = Program::asked(&desk, &server, &["--session-id", id]);
    program.prompt("first");
    assert_eq!(program.kind("result")["session_id"], id);
    assert_eq!(program.ends(), 0);
    let mut program = Program::asked(&desk, &server, &[&format!("--resume={id}")]);
    program.prompt("second");
    assert_eq!(program.kind("result")["session_id"], id);
    let body = server.requests().last().unwrap().body["messages"].to_string();
    assert!(body.contains("first") && body.contains("second"), "{body}");
    program.ends();
}

#[test]
fn partial_messages_structured_answers_and_observing_hooks_are_there() {
    let desk = Desk::new();
    let input = r#"{"command":"echo x >>ran"}"#;
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", input)]),
        Answer::text("{\"age\": \"7\"}"),
        Answer::text("{\"age\": 7}"),
    ]);
    let _daemon = desk.daemon();
    let schema = r#"{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]}"#;
    let mut program = Program::start(
        &desk,
        &server,
        &[
            "--include-partial-messages",
            "--json-schema",
            schema,
            "--permission-mode",
            "bypassPermissions",
        ],
    );
    let hooks = json!({"PostToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"]}], "TaskCreated": [{"hookCallbackIds": ["t"]}]});
    assert_eq!(
        program.control(&json!({"subtype": "initialize", "hooks": hooks}))["subtype"],
        "success"
    );
    program.prompt("go");
    let hook = program.kind("control_request");
    assert_eq!(
        (&hook["request"]["callback_id"], &hook["request"]["input"]["tool_name"]),
        (&"h".into(), &"Bash".into())
    );
    program.answer(&hook, &json!({"continue": true}));
    let result = program.kind("result");
    assert_eq!(result["structured_output"], json!({"age": 7}), "it was asked for once more");
    let events = program.heard.iter().filter(|line| line["type"] == "stream_event").count();
    assert!(events > 5, "{events}");
    assert_eq!(program.ends(), 0);
}

#[test]
fn servers_of_the_program_are_started_in_a_sandbox() {
    needs("python3");
    let desk = Desk::new();
    desk.write("server.py", include_str!("../data/mcp_server.py"));
    let server = Server::scripted([
        Answer::says([call("toolu_1", "mcp__own__echo", r#"{"text":"hello"}"#)]),
        Answer::text("Done."),
    ]);
    let _daemon = desk.daemon();
    let servers = json!({"mcpServers": {"own": {"type": "stdio", "command": "python3", "args": ["server.py"], "env": {"K": "v"}}}});
    let flags = ["--mcp-config", &servers.to_string(), "--permission-mode", "bypassPermissions"];
    let mut program = Program::asked(&desk, &server, &flags);
    until("the server is ready", || {
        let answer = program.control(&json!({"subtype": "mcp_status"}));
        answer["response"]["mcpServers"][0]["status"] == "connected"
    });
    program.prompt("go");
    assert_eq!(program.kind("result")["result"], "Done.");
    let told =
        server.requests()[1].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(told.contains("hello"), "{told}");
    let calls = desk.audit();
    let call = calls.iter().find(|it| it["event"] == "ended" && it["tool"] == "mcp").unwrap();
    assert_eq!(call["enforced"]["profile"], "mcp", "{call}");
    program.ends();
}

#[test]
fn what_agentd_does_not_do_is_refused_by_its_name() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let _daemon = desk.daemon();
    for (flags, named) in [
        (&["--mcp-config", "{\"mcpServers\":{\"a\":{\"type\":\"sdk\"}}}"][..], "--mcp-config"),
        (&["--system-prompt", "You are a pirate."], "--system-prompt"),
        (&["--tools", ""], "--tools"),
        (&["--effort", "high"], "--effort"),
        (&["--a-new-flag"], "--a-new-flag"),
        (&["--output-format", "json"], "--output-format"),
        (&["a prompt"], "a prompt as an argument"),
    ] {
        let ours = desk.with_server(&server, &[]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentd-claude"));
        command.args(flags).current_dir(desk.project()).env_clear();
        command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(named), "{flags:?}: {said}");
    }
    // What libraries send where nothing was asked for is taken.
    let nothing = [
        "--system-prompt",
        "",
        "--tools",
        "default",
        "--mcp-config",
        "{\"mcpServers\":{}}",
        "--setting-sources=",
    ];
    let mut program = Program::asked(&desk, &server, &nothing);
    for subtype in ["rewind_files", "mcp_toggle", ""] {
        let answer = program.control(&json!({"subtype": subtype}));
        assert_eq!(answer["subtype"], "error", "{answer}");
    }
    let answer = program.control(&json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}));
    assert_eq!(answer["subtype"], "success", "{answer}");
    let answer = program.control(&json!({"subtype": "get_context_usage"}));
    assert!(answer["response"]["totalTokens"].as_u64().unwrap() > 100, "{answer}");
    let answer = program.control(&json!({"subtype": "mcp_status"}));
    assert_eq!(answer["response"]["mcpServers"], json!([]));
    assert_eq!(program.ends(), 0);

    let mut program = Program::start(&desk, &server, &[]);
    let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["h"]}]});
    let answer = program.control(&json!({"subtype": "initialize", "hooks": hooks}));
    assert!(answer["error"].as_str().unwrap().contains("PreToolUse"), "{answer}");
    assert_eq!(program.ends(), 2);
    // A program that waits for the answer to its first word must not wait for ever.
    assert_eq!(Program::start(&desk, &server, &[]).ends(), 2);
}

#[test]
fn the_version_is_that_of_the_wire() {
    let said = Command::new(env!("CARGO_BIN_EXE_agentd-claude")).arg("-v").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.starts_with("2.1.") && said.contains("(agentd "), "{said}");
}

#[test]
#[ignore = "needs the package index; a part of .ci/nightly"]
fn the_sdk_of_python_drives_it() {
    let (desk, kept) = (Desk::new(), tempfile::tempdir().unwrap());
    let input = r#"{"command":"echo x >>ran"}"#;
    let _daemon = desk.daemon();
    let judged = |server: &Server| {
        let ours = desk.with_server(server, &[]);
        let mut check = Command::new("python3");
        check.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/agent_sdk.py")).arg(kept.path());
        check.arg(env!("CARGO_BIN_EXE_agentd-claude")).arg(desk.project());
        check.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = check.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        (done.status.success(), format!("{said}{}", String::from_utf8_lossy(&done.stderr)))
    };
    let (good, said) = judged(&Server::answering(move |number, _| match number {
        1 => Answer::says([call("toolu_1", "bash", input)]),
        _ => Answer::text("All done."),
    }));
    assert!(good && said.contains("Done claude-agent-sdk"), "{said}");
    println!("{}", said.trim());
    // The control: another answer of the model.
    assert!(!judged(&Server::answering(|_, _| Answer::text("Never."))).0);
}
