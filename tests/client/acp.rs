//! An editor at `agentd acp`: sessions of the daemon by the Agent Client Protocol, through deaths, beside terminals.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call, text};
use crate::support::daemon::Wire;
use crate::support::terminal::Tmux;
use crate::support::{Desk, child_of, needs, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, SessionStart, ToClient,
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

/// An editor: our end of the pipes.
pub(crate) struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// All lines so far.
    heard: Vec<Value>,
    number: u64,
}

impl Editor {
    pub(crate) fn start(desk: &Desk, server: &Server, flags: &[&str]) -> Self {
        let mut words = vec!["acp"];
        words.extend(flags);
        Self::of(desk.with_server(server, &words))
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // All of its output is the protocol.
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, heard: Vec::new(), number: 0 }
    }

    /// One that has said what it is.
    pub(crate) fn ready(desk: &Desk, server: &Server, capabilities: &Value) -> Self {
        let mut editor = Self::start(desk, server, &[]);
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let answer = editor.ask("initialize", &params);
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        editor
    }

    pub(crate) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.number += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params});
        self.say(&line.to_string());
        self.number
    }

    /// Waits for a line.
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
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.hears("answer", |line| line["id"] == id && line["method"].is_null())
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    #[track_caller]
    fn update(&mut self, kind: &str) -> Value {
        let line = self.hears(kind, |line| line["params"]["update"]["sessionUpdate"] == kind);
        line["params"]["update"].clone()
    }

    #[track_caller]
    pub(crate) fn asked(&mut self) -> Value {
        self.hears("question", |line| line["method"] == "session/request_permission")
    }

    pub(crate) fn choose(&mut self, question: &Value, option: &str) {
        let result = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let line = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        self.say(&line.to_string());
    }

    fn session(&mut self, desk: &Desk) -> String {
        let params = json!({"cwd": desk.project(), "mcpServers": []});
        let answer = self.ask("session/new", &params);
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(crate) fn prompt(&mut self, session: &str, words: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": words}]);
        self.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// The texts of the chunks of this kind so far.
    pub(crate) fn chunks(&self, kind: &str) -> String {
        let updates = self.heard.iter().map(|line| &line["params"]["update"]);
        let of_kind = updates.filter(|update| update["sessionUpdate"] == kind);
        of_kind.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ends(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Another client of a session, and what it hears before it is attached.
pub(crate) fn beside(desk: &Desk, server: &Server, session: &str) -> (Wire, Vec<ToClient>) {
    let mut wire = Wire::to(&desk.door());
    let session = SessionId(session.to_owned());
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    let opening = protocol::client::SessionRequest { start, ..desk.opening(server) };
    wire.open_with_key(&opening);
    wire.until("opening", |word| matches!(word, ToClient::Opened { .. }).then_some(()));
    let before = wire.attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
    (wire, before)
}

pub(crate) fn stop(answer: &Value) -> &str {
    answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_prompt_streams_its_answer_and_ends_its_turn() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Hello there.")]);
    let _daemon = desk.daemon();
    let mut editor = Editor::ready(&desk, &server, &json!({}));
    let session = editor.session(&desk);
    let id = editor.prompt(&session, "hi");
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    assert_eq!(editor.chunks("agent_message_chunk"), "Hello there.");
    assert_eq!(editor.chunks("user_message_chunk"), "", "the editor shows its own");
    let listed = editor.ask("session/list", &json!({"cwd": desk.project()}));
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], session.as_str(), "{listed}");
    assert_eq!(listed["result"]["sessions"][0]["title"], "hi");
    let link = desk.outside().join("link");
    std::os::unix::fs::symlink(desk.project(), &link).unwrap();
    let behind = editor.ask("session/list", &json!({"cwd": link}));
    assert_eq!(behind["result"], listed["result"], "a link leads to the same project");
    let elsewhere = editor.ask("session/list", &json!({"cwd": "/nowhere"}));
    assert_eq!(elsewhere["result"]["sessions"], json!([]));
    editor.ends();
}

#[test]
fn an_answer_of_the_editor_decides_a_call_and_its_cage_is_shown() {
    let desk = Desk::new();
    let input = r#"{"command":"echo x >>ran"}"#;
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", input)]),
        Answer::says([call("toolu_2", "bash", input)]),
        Answer::text("Done."),
    ]);
    let _daemon = desk.daemon();
    let mut editor = Editor::ready(&desk, &server, &json!({}));
    let session = editor.session(&desk);
    let id = editor.prompt(&session, "go");
    let question = editor.asked();
    let call = &question["params"]["toolCall"];
    assert_eq!(call["title"], "echo x >>ran", "{question}");
    assert!(call["_meta"]["agentd"]["sandbox"].as_str().unwrap().contains("network"), "{call}");
    assert!(!desk.project().join("ran").exists(), "it waits for the answer");
    editor.choose(&question, "once");
    let question = editor.asked();
    editor.choose(&question, "no");
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    assert_eq!(std::fs::read_to_string(desk.project().join("ran")).unwrap(), "x\n");
    let updates = editor.heard.iter().map(|line| &line["params"]["update"]);
    let states: Vec<_> = updates
        .filter(|update| update["sessionUpdate"] == "tool_call_update")
        .filter_map(|update| update["status"].as_str())
        .collect();
    assert_eq!(states.last(), Some(&"failed"), "the refused one");
    assert!(states.contains(&"completed"), "the allowed one: {states:?}");
    let cage = editor
        .heard
        .iter()
        .find(|line| !line.pointer("/params/update/_meta/agentd/tier").is_none_or(Value::is_null));
    assert!(cage.is_some(), "{:#?}", editor.heard);
    editor.ends();
}

#[test]
fn a_terminal_that_answers_first_ends_the_editor_s_question() {
    let desk = Desk::new();
    let input = r#"{"command":"echo x >>ran"}"#;
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", input)]), Answer::text("Done.")]);
    let _daemon = desk.daemon();
    let mut editor = Editor::ready(&desk, &server, &json!({}));
    let session = editor.session(&desk);
    let (mut wire, _) = beside(&desk, &server, &session);
    let id = editor.prompt(&session, "go");
    let question = editor.asked();
    let open = wire.until("question", |word| match word {
        ToClient::Event { event: ClientEvent::Asked { question }, .. } => Some(question.clone()),
        _ => None,
    });
    wire.say(FromClient::Answer {
        call: open.call,
        digest: open.digest,
        answer: PersonAnswer::Once,
    });
    let withdrawn = editor.hears("withdrawal", |line| line["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    // A late answer changes nothing.
    editor.choose(&question, "no");
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    assert_eq!(std::fs::read_to_string(desk.project().join("ran")).unwrap(), "x\n");
    editor.ends();
}

#[test]
fn a_cancelled_prompt_is_answered_so_and_its_call_ends() {
    let desk = Desk::new();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", WAITS)]), Answer::text("Next.")]);
    let _daemon = desk.daemon();
    let mut editor = Editor::start(&desk, &server, &["--permission-mode", "auto"]);
    editor.ask("initialize", &json!({"protocolVersion": 1}));
    let session = editor.session(&desk);
    let id = editor.prompt(&session, "go");
    until("the call runs", || desk.project().join("ran").exists());
    let line =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    editor.say(&line.to_string());
    assert_eq!(stop(&editor.answer(id)), "cancelled");
    let id = editor.prompt(&session, "and now");
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    editor.ends();
}

#[test]
fn a_prompt_joins_the_turn_that_runs_and_both_are_answered_at_its_end() {
    let desk = Desk::new();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", WAITS)]), Answer::text("Both.")]);
    let _daemon = desk.daemon();
    let mut editor = Editor::start(&desk, &server, &["--permission-mode", "auto"]);
    editor.ask("initialize", &json!({"protocolVersion": 1}));
    let session = editor.session(&desk);
    let first = editor.prompt(&session, "go");
    until("the call runs", || desk.project().join("ran").exists());
    let (mut wire, _) = beside(&desk, &server, &session);
    let second = editor.prompt(&session, "and this");
    wire.until("waiting words", |word| match word {
        ToClient::Event { event: ClientEvent::Queue { waiting }, .. } if !waiting.is_empty() => {
            Some(())
        }
        _ => None,
    });
    std::fs::write(desk.project().join("go"), "").unwrap();
    assert_eq!(stop(&editor.answer(first)), "end_turn");
    assert_eq!(stop(&editor.answer(second)), "end_turn");
    assert_eq!(server.requests().len(), 2, "one turn");
    editor.ends();
}

/// The daemon dies in the middle of a call: the editor hears so, and its prompt is answered once.
#[test]
fn a_prompt_outlives_the_daemon() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", WAITS)]),
        Answer::text("After all."),
    ]);
    let daemon = desk.daemon();
    let mut editor = Editor::start(&desk, &server, &["--permission-mode", "auto"]);
    editor.ask("initialize", &json!({"protocolVersion": 1}));
    let session = editor.session(&desk);
    let id = editor.prompt(&session, "go");
    until("the call runs", || desk.project().join("ran").exists());
    send(daemon.pid, Signal::SIGKILL);
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    assert_eq!(editor.chunks("agent_message_chunk"), "After all.");
    assert!(editor.chunks("agent_thought_chunk").contains("another one continues"));
    let ran = std::fs::read_to_string(desk.project().join("ran")).unwrap();
    assert_eq!(ran, "x\n", "the call ran once");
    let answers = editor.heard.iter().filter(|line| line["id"] == id).count();
    assert_eq!(answers, 1);
    editor.ends();
}

/// The editor's end dies in the middle of a turn; the session goes on, and another one loads it.
#[test]
fn a_killed_agent_loses_nothing_and_the_next_replays() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([text("First."), call("toolu_1", "bash", WAITS)]),
        Answer::text("Second."),
        Answer::text("Third."),
    ]);
    let _daemon = desk.daemon();
    let mut editor = Editor::start(&desk, &server, &["--permission-mode", "auto"]);
    editor.ask("initialize", &json!({"protocolVersion": 1}));
    let session = editor.session(&desk);
    editor.prompt(&session, "go");
    until("the call runs", || desk.project().join("ran").exists());
    send(editor.child.id(), Signal::SIGKILL);
    drop(editor);
    std::fs::write(desk.project().join("go"), "").unwrap();
    until("the turn goes on", || server.requests().len() == 2);
    let mut editor = Editor::ready(&desk, &server, &json!({}));
    let params = json!({"sessionId": session, "cwd": desk.project(), "mcpServers": []});
    let loaded = editor.ask("session/load", &params);
    assert!(loaded["result"]["modes"].is_object(), "{loaded}");
    if !editor.chunks("agent_message_chunk").contains("Second.") {
        editor.update("agent_message_chunk");
    }
    assert_eq!(editor.chunks("user_message_chunk"), "go");
    assert_eq!(editor.chunks("agent_message_chunk"), "First.Second.");
    let id = editor.prompt(&session, "more");
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    assert_eq!(std::fs::read_to_string(desk.project().join("ran")).unwrap(), "x\n");
    // Without a replay only what is new is shown.
    let mut again = Editor::ready(&desk, &server, &json!({}));
    again.ask("session/resume", &params);
    assert_eq!(again.chunks("agent_message_chunk"), "");
    again.ends();
    editor.ends();
}

#[test]
fn questions_of_the_model_are_a_form() {
    let desk = Desk::new();
    let input = json!({"questions": [{"question": "Which colour?", "header": "Colour", "options": [
        {"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]}]});
    let server = Server::scripted([
        Answer::says([call("toolu_1", "ask_user", &input.to_string())]),
        Answer::text("Blue it is."),
    ]);
    let _daemon = desk.daemon();
    let mut editor = Editor::ready(&desk, &server, &json!({"elicitation": {"form": {}}}));
    let session = editor.session(&desk);
    let id = editor.prompt(&session, "paint");
    let form = editor.hears("form", |line| line["method"] == "elicitation/create");
    assert_eq!(form["params"]["requestedSchema"]["properties"]["q1"]["oneOf"][1]["const"], "blue");
    let result = json!({"action": "accept", "content": {"q1": "blue"}});
    editor.say(&json!({"jsonrpc": "2.0", "id": form["id"], "result": result}).to_string());
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    let told = server.requests()[1].body["messages"].to_string();
    assert!(told.contains("The user answers") && told.contains("blue"), "{told}");
    editor.ends();
}

#[test]
fn choices_of_the_session_are_shown_and_changed() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let _daemon = desk.daemon();
    let mut editor = Editor::ready(&desk, &server, &json!({}));
    let session = editor.session(&desk);
    let params = json!({"sessionId": session, "modeId": "plan"});
    assert_eq!(editor.ask("session/set_mode", &params)["result"], json!({}));
    let params = json!({"sessionId": session, "configId": "network", "value": "on"});
    let answer = editor.ask("session/set_config_option", &params);
    let options = answer["result"]["configOptions"].as_array().unwrap();
    let current =
        |id: &str| options.iter().find(|it| it["id"] == id).unwrap()["currentValue"].clone();
    assert_eq!((current("mode"), current("network")), ("plan".into(), "on".into()));
    for (config, value) in [("mode", "yolo"), ("colour", "red")] {
        let params = json!({"sessionId": session, "configId": config, "value": value});
        let answer = editor.ask("session/set_config_option", &params);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    editor.ends();
}

#[test]
fn two_sessions_are_apart_and_a_closed_one_is_gone_from_here_alone() {
    let desk = Desk::new();
    let server = Server::answering(|_, body| {
        let asked = body["messages"].to_string();
        Answer::text(if asked.contains("alpha") { "A." } else { "B." })
    });
    let _daemon = desk.daemon();
    let mut editor = Editor::ready(&desk, &server, &json!({}));
    let (one, two) = (editor.session(&desk), editor.session(&desk));
    let (first, second) = (editor.prompt(&one, "alpha"), editor.prompt(&two, "beta"));
    let mut ended = vec![];
    for _ in 0..2 {
        let line = editor.hears("end", |line| line["result"]["stopReason"] == "end_turn");
        ended.push(line["id"].as_u64().unwrap());
    }
    ended.sort_unstable();
    assert_eq!(ended, [first, second]);
    for (session, wanted) in [(&one, "A."), (&two, "B.")] {
        let lines =
            editor.heard.iter().filter(|line| line["params"]["sessionId"] == session.as_str());
        let texts = lines.map(|line| &line["params"]["update"]);
        let texts = texts.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        let said: String = texts.filter_map(|it| it["content"]["text"].as_str()).collect();
        assert_eq!(said, wanted);
    }
    assert_eq!(editor.ask("session/close", &json!({"sessionId": one}))["result"], json!({}));
    let id = editor.prompt(&one, "more");
    assert_eq!(editor.answer(id)["error"]["code"], -32002, "it is closed");
    let params = json!({"sessionId": one, "cwd": desk.project(), "mcpServers": []});
    assert!(editor.ask("session/resume", &params)["result"].is_object(), "and can be resumed");
    assert_eq!(editor.ask("session/delete", &json!({"sessionId": two}))["result"], json!({}));
    let listed = editor.ask("session/list", &json!({}))["result"]["sessions"].to_string();
    assert!(listed.contains(&one) && !listed.contains(&two), "{listed}");
    editor.ends();
}

#[test]
fn what_an_editor_says_wrong_is_answered_with_its_place() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Still here.")]);
    let _daemon = desk.daemon();
    let mut editor = Editor::start(&desk, &server, &[]);
    let early = editor.ask("session/new", &json!({"cwd": desk.project(), "mcpServers": []}));
    assert_eq!(early["error"]["code"], -32600, "{early}");
    // A version of the future, or a text in its place, is answered with the one that is known.
    editor.ask("initialize", &json!({"protocolVersion": "1"}));
    let answer = editor.ask("initialize", &json!({"protocolVersion": 7, "new": {"x": []}}));
    assert_eq!(answer["result"]["protocolVersion"], 1);
    let session = editor.session(&desk);
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("\u{fffd}\u{0}", -32700),
        (r#"{"jsonrpc":"2.0","id":"a","method":"session/new","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":"a","method":"session/new","params":{"cwd":"x"}}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"session/new","params":{"cwd":"/nowhere"}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"session/load","params":{"sessionId":"../../x","cwd":"/"}}"#,
            -32002,
        ),
        (r#"{"jsonrpc":"2.0","id":"a","method":"fs/read","params":{}}"#, -32601),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"session/prompt","params":{"sessionId":"x","prompt":[]}}"#,
            -32002,
        ),
    ] {
        editor.say(line);
        let answer = editor.hears("error", |line| !line["error"].is_null());
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    let empty = json!({"sessionId": session, "prompt": []});
    assert_eq!(editor.ask("session/prompt", &empty)["error"]["code"], -32602);
    let elsewhere = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let answer = editor.ask("session/load", &elsewhere);
    assert!(answer["error"]["message"].as_str().unwrap().contains("belongs to"), "{answer}");
    // Words that nobody waits for change nothing.
    editor.say(r#"{"jsonrpc":"2.0","method":"$/new","params":{}}"#);
    editor.say(r#"{"jsonrpc":"2.0","id":"s.1/1","result":{"outcome":{"outcome":"selected","optionId":"once"}}}"#);
    let id = editor.prompt(&session, "hi");
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    editor.ends();
}

/// A server of the editor runs in a sandbox of its own; its secrets go to it and to no disk.
#[test]
fn servers_of_the_editor_run_in_their_own_sandbox() {
    needs("python3");
    let desk = Desk::new();
    desk.write("server.py", include_str!("../data/mcp_server.py"));
    std::fs::write(desk.outside().join("outside"), "not for servers").unwrap();
    let outside = json!({"path": desk.outside().join("outside")});
    let mut script = [
        Answer::says([call("toolu_1", "mcp__my-own__read", &outside.to_string())]),
        Answer::says([call("toolu_2", "mcp__my-own__echo", r#"{"text":"hello"}"#)]),
        Answer::text("Done."),
    ]
    .into_iter();
    // As in a terminal, the first request does not wait for servers.
    let server = Server::answering(move |_, body| {
        let offered = body["tools"].to_string().contains("mcp__my-own__echo");
        let next = if offered { script.next() } else { None };
        next.unwrap_or_else(|| Answer::text("Not yet."))
    });
    let _daemon = desk.daemon();
    let mut editor = Editor::start(&desk, &server, &["--permission-mode", "auto"]);
    editor.ask("initialize", &json!({"protocolVersion": 1}));
    // It starts only with its variable. What looks like one of the configuration's is the shell's.
    let starts = "[ ${#OWN_KEY} = 12 ] && exec python3 server.py";
    let handed = json!([
        {"name": "my own", "command": "sh", "args": ["-c", starts],
         "env": [{"name": "OWN_KEY", "value": "s3cret-value"}]},
        {"type": "sse", "name": "old", "url": "https://x.example"},
    ]);
    let answer = editor.ask("session/new", &json!({"cwd": desk.project(), "mcpServers": handed}));
    let session =
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    until("the server is ready", || {
        let id = editor.prompt(&session, "go");
        assert_eq!(stop(&editor.answer(id)), "end_turn");
        editor.chunks("agent_message_chunk").ends_with("Done.")
    });
    assert!(editor.chunks("agent_thought_chunk").contains("\"old\" (sse)"), "{:#?}", editor.heard);
    let last = |body: &Value| body["messages"].as_array().unwrap().last().unwrap().to_string();
    let results: Vec<String> = server.requests().iter().map(|seen| last(&seen.body)).collect();
    let results: Vec<&String> = results.iter().filter(|it| it.contains("tool_result")).collect();
    assert!(!results[0].contains("not for servers"), "it is caged: {results:?}");
    assert!(results[1].contains("hello"), "{results:?}");
    let kept = std::process::Command::new("grep")
        .args(["-rl", "s3cret-value"])
        .arg(desk.outside().join("state"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "", "no file has the secret");
    editor.ends();
}

/// A person without a key logs in at a terminal, as the editor offers.
#[test]
fn the_setup_asks_for_vendor_and_key_and_hides_the_key() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Hello.")]);
    let tmux = Tmux::new(&desk);
    let terminal = tmux.run("setup", &desk.agentd(&["acp", "--setup"]), (100, 20));
    terminal.shows("Vendor (");
    terminal.enters("nobody");
    terminal.shows("there is no vendor");
    terminal.enters("anthropic");
    terminal.shows("not shown");
    terminal.enters("sk-test-4f1c");
    let folder = desk.home().join(".config/agentd");
    until("the configuration is written", || folder.join("config.toml").exists());
    assert!(!terminal.screen().contains("4f1c"), "{}", terminal.screen());
    let key = folder.join("key-anthropic");
    assert_eq!(std::fs::read_to_string(&key).unwrap(), "sk-test-4f1c\n");
    let mode = std::os::unix::fs::PermissionsExt::mode(&key.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    // An editor's session finds it.
    let _daemon = desk.daemon();
    let mut command = desk.agentd(&["acp"]);
    command.env("ANTHROPIC_BASE_URL", server.url());
    let mut editor = Editor::of(command);
    let terminals =
        json!({"protocolVersion": 1, "clientCapabilities": {"auth": {"terminal": true}}});
    let answer = editor.ask("initialize", &terminals);
    assert_eq!(answer["result"]["authMethods"][0]["args"][0], "--setup", "{answer}");
    assert_eq!(editor.ask("authenticate", &json!({"methodId": "setup"}))["result"], json!({}));
    let session = editor.session(&desk);
    let id = editor.prompt(&session, "hi");
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    editor.ends();
    // Without a terminal it says so.
    let ran = run(desk.agentd(&["acp", "--setup"]));
    assert!(ran.code == 2 && ran.err.contains("at a terminal"), "{ran:?}");
}

/// The command that prints a key reads nothing that the editor says.
#[test]
fn a_key_command_gets_none_of_the_editor_s_words() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Hello.")]);
    let _daemon = desk.daemon();
    let config = desk.home().join(".config/agentd");
    std::fs::create_dir_all(&config).unwrap();
    let key = "[provider]\nkey_command = \"cat >/dev/null; printf sk-ant-0000\"\n";
    std::fs::write(config.join("config.toml"), key).unwrap();
    let mut command = desk.agentd(&["acp"]);
    command.env("ANTHROPIC_BASE_URL", server.url());
    let mut editor = Editor::of(command);
    editor.ask("initialize", &json!({"protocolVersion": 1}));
    let session = editor.session(&desk);
    let id = editor.prompt(&session, "hi");
    assert_eq!(stop(&editor.answer(id)), "end_turn");
    editor.ends();
}

/// An editor without a key hears how to give one.
#[test]
fn a_missing_key_is_named() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let mut command = desk.agentd(&["acp"]);
    command.env("ANTHROPIC_BASE_URL", server.url());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let cwd = desk.project();
    for line in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": cwd, "mcpServers": []}}),
    ] {
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("ANTHROPIC_API_KEY"), "{answer}");
    drop(input);
    child.wait().unwrap();
    assert!(child_of(std::process::id(), "agentd-supervisor").is_none());
}

#[test]
#[ignore = "needs the package index; a part of .ci/nightly"]
fn the_library_of_the_protocol_drives_it() {
    let (desk, kept) = (Desk::new(), tempfile::tempdir().unwrap());
    let input = r#"{"command":"echo x >>ran"}"#;
    let script = || [Answer::says([call("toolu_1", "bash", input)]), Answer::text("All done.")];
    let _daemon = desk.daemon();
    let judged = |server: &Server| {
        let ours = desk.with_server(server, &[]);
        let mut check = std::process::Command::new("python3");
        check.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/check.py")).arg(kept.path());
        check.arg(env!("CARGO_BIN_EXE_agentd")).arg(desk.project());
        check.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = check.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        (done.status.success(), format!("{said}{}", String::from_utf8_lossy(&done.stderr)))
    };
    let (good, said) = judged(&Server::scripted(script()));
    assert!(good && said.contains("Done agent-client-protocol"), "{said}");
    println!("{}", said.trim());
    // The control: another answer of the model.
    assert!(!judged(&Server::scripted([Answer::text("Never.")])).0);
}
