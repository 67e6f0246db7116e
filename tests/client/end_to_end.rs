//! The whole path: a model's stream from a local server that refuses requests as the real one does,
//! through the real executables, to a caged process and back.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Seen, Server, call, text, thinking};
use crate::support::{Desk, run};
use serde_json::{Value, json};

const AUTO: [&str; 2] = ["--permission-mode", "auto"];

/// The tool results of a request's last message.
fn results(body: &Value) -> Vec<&Value> {
    let messages = body["messages"].as_array().unwrap();
    let blocks = messages.last().unwrap()["content"].as_array().unwrap();
    blocks.iter().filter(|block| block["type"] == "tool_result").collect()
}

fn words(result: &Value) -> String {
    if let Some(text) = result["content"].as_str() {
        return text.to_owned();
    }
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().map(|block| block["text"].as_str().unwrap_or_default()).collect()
}

#[test]
fn a_text_is_answered_and_nothing_is_left_running() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Good morning.")]);
    let ran = run(desk.with_server(&server, &["-p", "hello"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Good morning.\n"), "{}", ran.err);
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].body["messages"][0]["role"], "user");
    assert!(desk.state().join("sessions").is_dir(), "the session stays on disk");
    assert!(!desk.run_dir().join("agentd/socket").exists());
}

#[test]
fn one_call_runs_in_a_cage_and_its_result_goes_back() {
    let desk = Desk::new();
    let input = json!({"command": "echo one; echo two > made; exit 3"}).to_string();
    let server = Server::scripted([
        Answer::says([text("I will look."), call("toolu_1", "bash", &input)]),
        Answer::text("It exits with 3."),
    ]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.result(), "It exits with 3.");
    assert_eq!(desk.read("made"), "two\n");
    let requests = server.requests();
    let results = results(&requests[1].body);
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["tool_use_id"], "toolu_1");
    assert_eq!(results[0]["is_error"], true);
    let words = words(results[0]);
    assert!(words.starts_with("one\n"), "{words}");
    assert!(words.lines().last().unwrap().contains('3'), "the exit code is the last line: {words}");
    let ended = desk.ended(1);
    assert_eq!(ended["outcome"]["how"], "exited");
    assert_eq!(ended["outcome"]["code"], 3);
    assert!(ended["enforced"]["tier"] == "A" || ended["enforced"]["tier"] == "B", "{ended:#}");
    assert_eq!(ended["enforced"]["seccomp"], true);
    assert!(ended["command_pid"].as_u64().unwrap() > 0);
}

#[test]
fn three_parallel_reads_and_a_write_come_back_in_one_message_in_order() {
    let desk = Desk::new();
    for name in ["a", "b", "c"] {
        desk.write(name, &format!("this is {name}\n"));
    }
    let read = |id, path: &str| call(id, "read", &json!({ "path": path }).to_string());
    let write = json!({"path": "d", "content": "this is d\n"}).to_string();
    let server = Server::scripted([
        Answer::says([
            read("toolu_1", "a"),
            read("toolu_2", "b"),
            read("toolu_3", "c"),
            call("toolu_4", "write", &write),
        ]),
        Answer::text("done"),
    ]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let results = results(&requests[1].body);
    let ids: Vec<_> =
        results.iter().map(|result| result["tool_use_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["toolu_1", "toolu_2", "toolu_3", "toolu_4"]);
    for (result, name) in results.iter().zip(["a", "b", "c"]) {
        assert!(words(result).contains(&format!("this is {name}")), "{result}");
    }
    assert_eq!(desk.read("d"), "this is d\n");
    assert_eq!(requests.len(), 2);
}

#[test]
fn thinking_goes_back_with_its_signature() {
    let desk = Desk::new();
    desk.write("a", "x\n");
    let server = Server::scripted([
        Answer::says([
            thinking("Let me see.", "c2lnbmF0dXJl+/=="),
            call("toolu_1", "read", r#"{"path":"a"}"#),
        ]),
        Answer::text("done"),
    ]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    // The server refuses a request whose thinking is missing or changed; this shows where it is.
    let requests = server.requests();
    let answer = &requests[1].body["messages"][1];
    assert_eq!(answer["content"][0]["type"], "thinking");
    assert_eq!(answer["content"][0]["signature"], "c2lnbmF0dXJl+/==");
}

#[test]
fn a_denied_call_does_not_run_and_a_run_without_a_person_says_so_with_ten() {
    let desk = Desk::new();
    let input = json!({"command": "touch made"}).to_string();
    let script = || {
        Server::scripted([
            Answer::says([call("toolu_1", "bash", &input)]),
            Answer::text("I was not allowed to."),
        ])
    };
    let server = script();
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert_eq!(ran.result(), "I was not allowed to.");
    assert!(!desk.project().join("made").exists());
    let requests = server.requests();
    let result = results(&requests[1].body)[0].clone();
    assert_eq!(result["is_error"], true);
    assert!(words(&result).contains("nobody"), "{}", words(&result));
    let audit = desk.audit();
    assert_eq!(audit[0]["event"], "decided");
    assert_eq!(audit[0]["decision"], "denied");
    assert!(audit[0]["script"].is_string(), "the script is kept: {}", audit[0]);

    // The same call, allowed: so it was the verdict that kept it from running.
    let ran = desk.ask(&script(), &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(desk.project().join("made").exists());
}

#[test]
fn a_rule_allows_and_a_rule_denies_above_the_mode() {
    let desk = Desk::new();
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let rules = "[permissions]\nallow = [\"bash:touch *\"]\ndeny = [\"bash:touch b\"]\n";
    std::fs::write(&config, rules).unwrap();
    let bash = |id, command: &str| call(id, "bash", &json!({ "command": command }).to_string());
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "touch a"), bash("toolu_2", "touch b")]),
        Answer::text("one of two"),
    ]);
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "a rule's denial does not count as a missing approval: {}", ran.err);
    assert!(desk.project().join("a").exists());
    assert!(!desk.project().join("b").exists());
    let audit = desk.audit();
    let denied = audit.iter().find(|record| record["decision"] == "denied").unwrap();
    assert_eq!(denied["basis"]["text"], "bash:touch b");
    assert_eq!(denied["basis"]["line"], 3);
}

#[test]
fn thirty_rounds_are_stopped_visibly_at_twenty_five() {
    let desk = Desk::new();
    desk.write("a", "x\n");
    let server = Server::answering(|round, _| {
        Answer::says([call(&format!("toolu_{round}"), "read", r#"{"path":"a"}"#)])
    });
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 12, "{}", ran.err);
    let requests = server.requests();
    assert_eq!(requests.len(), 26, "once more, for words");
    let forbidden = |seen: &Seen| seen.body["tool_choice"]["type"] == "none";
    assert!(!requests[..25].iter().any(forbidden) && forbidden(&requests[25]));
    let audit = desk.audit();
    let allowed = audit.iter().filter(|record| record["decision"] == "allowed");
    assert_eq!(allowed.count(), 25, "what came instead of words did not run");
    assert_eq!(desk.ended(26)["code"], "budget_used_up", "and is on record");
    assert_eq!(ran.json()["subtype"], "error_max_turns");
}

#[test]
fn a_turn_whose_rounds_are_used_up_ends_with_words() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "ls", "{}")]),
        Answer::text("Half of it is done."),
    ]);
    let ran = desk.ask(&server, &["--max-turns", "1"]);
    assert_eq!(ran.code, 12, "{}", ran.err);
    assert_eq!(ran.result(), "Half of it is done.");
}

#[test]
fn an_unknown_tool_is_answered_with_the_nearest_names() {
    let desk = Desk::new();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "reed", "{}")]), Answer::text("I see.")]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let result = results(&requests[1].body)[0].clone();
    assert_eq!(result["is_error"], true);
    assert!(words(&result).contains("read"), "{}", words(&result));
}

#[test]
fn arguments_that_are_no_json_or_do_not_fit_are_a_result_and_no_crash() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([
            call("toolu_1", "read", r#"{"path": "a"#),
            call("toolu_2", "read", r#"["a"]"#),
            call("toolu_3", "read", r#"{"path": "a", "colour": "red"}"#),
            call("toolu_4", "read", r#"{"path": 7}"#),
        ]),
        Answer::text("I see."),
    ]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let results = results(&requests[1].body);
    assert_eq!(results.len(), 4);
    assert!(results.iter().all(|result| result["is_error"] == true));
    assert!(words(results[2]).contains("colour"), "{}", words(results[2]));
    assert!(words(results[3]).contains("path"), "{}", words(results[3]));
}

#[test]
fn an_answer_of_two_mebibytes_arrives_whole() {
    let desk = Desk::new();
    let long = "0123456789abcde\n".repeat(2 << 16);
    let server = Server::scripted([Answer::text(&long)]);
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.result().len(), 2 << 20);
    assert_eq!(ran.result(), long);
}

#[test]
fn a_broken_stream_is_tried_again_and_its_half_is_neither_shown_nor_run() {
    let desk = Desk::new();
    let input = json!({"command": "echo ran >> effects"}).to_string();
    let whole = || Answer::says([text("I will."), call("toolu_1", "bash", &input)]);
    let length = whole().len();
    let server = Server::scripted([whole().cut_after(length - 60), whole(), Answer::text("done")]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(desk.read("effects"), "ran\n", "once");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_session_goes_on_where_it_was() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Noted."), Answer::text("It is 7.")]);
    let first = desk.ask(&server, &[]);
    let id = first.json()["session_id"].as_str().unwrap().to_owned();
    let ran = run(desk.with_server(&server, &["-p", "which?", "--resume", &id]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "It is 7.\n"), "{}", ran.err);
    let requests = server.requests();
    let messages = requests[1].body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3, "{messages:#?}");
}

#[test]
fn stream_json_has_the_shape_that_scripts_read() {
    let desk = Desk::new();
    desk.write("a", "x\n");
    let server = Server::scripted([
        Answer::says([call("toolu_1", "read", r#"{"path":"a"}"#)]),
        Answer::text("done"),
    ]);
    let mut arguments = vec!["-p", "do it", "--output-format", "stream-json"];
    arguments.extend(AUTO);
    let ran = run(desk.with_server(&server, &arguments));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["type"], &lines[0]["subtype"]), (&json!("system"), &json!("init")));
    let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "user", "assistant", "result"]);
    let last = lines.last().unwrap();
    assert_eq!(last["subtype"], "success");
    assert_eq!(last["is_error"], false);
    assert_eq!(last["num_turns"], 2);
    assert!(last["usage"]["output_tokens"].is_u64(), "{last}");
    assert!(last["total_cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{last}");
}

#[test]
fn the_key_is_in_no_file_and_in_no_command_s_environment() {
    let desk = Desk::new();
    let input = json!({"command": "env"}).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let environment = words(results(&requests[1].body)[0]);
    assert!(environment.contains("AI_AGENT=agentd"), "{environment}");
    assert!(!environment.contains(crate::support::KEY), "{environment}");
    crate::support::needs("grep");
    let state = desk.state();
    let found = std::process::Command::new("grep")
        .args(["-rlF", crate::support::KEY])
        .arg(&state)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "the key is on disk");
}

#[test]
fn a_recorded_session_is_played_back_without_a_server() {
    let desk = Desk::new();
    let input = json!({"command": "echo one >> effects"}).to_string();
    let server = Server::scripted([
        Answer::says([thinking("hm", "sig=="), text("I will."), call("toolu_1", "bash", &input)]),
        Answer::text("Done: äöü."),
    ]);
    let recording = desk.outside().join("recording.jsonl");
    let path = recording.display().to_string();
    let first = desk.ask(&server, &["--permission-mode", "auto", "--record", &path]);
    assert_eq!(first.code, 0, "{}", first.err);
    let kept = std::fs::read_to_string(&recording).unwrap();
    assert!(!kept.contains(crate::support::KEY), "the key is not recorded");
    let arguments = ["-p", "do it", "--permission-mode", "auto", "--replay", &path];
    let ran = run(desk.agentd(&arguments));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done: äöü.\n"), "{}", ran.err);
    assert_eq!(desk.read("effects"), "one\none\n", "the call is run again, for real");
    assert_eq!(server.requests().len(), 2, "the server was not asked again");

    // Another conversation than the recorded one is refused loudly.
    let ran = run(desk.agentd(&["-p", "something else", "--replay", &path]));
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("record"), "{}", ran.err);
}

#[test]
fn a_killed_run_leaves_a_session_that_goes_on_and_says_what_may_have_run() {
    use nix::sys::signal::{Signal, kill};
    let desk = Desk::new();
    let begun = desk.project().join("begun");
    let input = json!({"command": "echo x >> begun; sleep 50"}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", &input)]),
        Answer::text("I will look first."),
    ]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let mut child = command.spawn().unwrap();
    crate::support::until("the command runs", || crate::support::wrote(&begun));
    // Both at once, the client first: it would bring another supervisor up.
    let supervisor = crate::support::child_of(child.id(), "agentd-supervisor").unwrap();
    for pid in [child.id(), supervisor] {
        kill(nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
    }
    child.wait().unwrap();
    let sessions: Vec<_> = std::fs::read_dir(desk.state().join("sessions")).unwrap().collect();
    let id = sessions[0].as_ref().unwrap().file_name().into_string().unwrap();
    let ran = run(desk.with_server(&server, &["-p", "go on", "--resume", &id]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let body = requests[1].body["messages"].to_string();
    assert!(body.contains("interrupted: may have run"), "{body}");
    assert_eq!(desk.read("begun"), "x\n", "it was not run again");
    assert_eq!(desk.ended(1)["outcome"]["how"], "interrupted", "the record says so too");
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}
