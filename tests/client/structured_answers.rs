//! Answers that programs use: written to a file, cut to a schema, paid for up to a limit.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::{ConversationFlags, SessionRequest, SessionStart, ToClient};
use protocol::session::OpenTurn;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn the_last_answer_is_in_the_file_also_when_the_run_fails_after_it() {
    let desk = Desk::new();
    let file = desk.write("answer.txt", "of an earlier run");
    let name = file.to_str().unwrap();
    let look =
        || Answer::says([crate::support::anthropic::text("I look."), call("t1", "ls", "{}")]);
    let server = Server::scripted([look(), Answer::text("It is\nempty.")]);
    let ran = run(desk.with_server(&server, &["-p", "x", "-o", name]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "It is\nempty.\n"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "It is\nempty.");
    let refused = Answer::status(400, "invalid_request_error", "too odd");
    let server = Server::scripted([look(), refused]);
    let flags = ["-p", "x", "--output-last-message", name, "--output-format", "json"];
    let ran = run(desk.with_server(&server, &flags));
    assert_eq!((ran.code, ran.json()["is_error"].as_bool()), (1, Some(true)), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "I look.");
}

#[test]
fn a_run_without_an_answer_leaves_the_file_and_says_so() {
    let desk = Desk::new();
    let file = desk.write("answer.txt", "of an earlier run");
    let refused = Answer::status(400, "invalid_request_error", "too odd");
    let server = Server::scripted([refused]);
    let ran = run(desk.with_server(&server, &["-p", "x", "-o", file.to_str().unwrap()]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("answer.txt was not written: the run has no answer"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "of an earlier run");
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_before_the_run() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("never asked")]);
    let project = desk.project();
    let missing = project.join("none/answer");
    for (place, why) in [(&project, "it is a directory"), (&missing, "No such file")] {
        let flags = ["-p", "x", "--output-format", "json", "-o", place.to_str().unwrap()];
        let ran = run(desk.with_server(&server, &flags));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("--output-last-message"), "{}", ran.err);
        assert!(ran.json()["error"].as_str().unwrap().contains(why), "{ran:?}");
    }
    let ran = run(desk.with_server(&server, &["-o", "answer"]));
    assert_eq!(ran.code, 2, "only a run has a last answer: {ran:?}");
    assert!(server.requests().is_empty(), "nothing was asked");
    assert!(run(desk.agentd(&["ls"])).out.lines().count() <= 1, "no session was made");
}

#[test]
fn of_several_prompts_the_last_answer_is_in_the_file() {
    let desk = Desk::new();
    let file = desk.project().join("answer.txt");
    let server = Server::scripted([Answer::text("one"), Answer::text("two")]);
    let flags = ["-p", "--input-format", "stream-json", "-o", file.to_str().unwrap()];
    let mut child = desk
        .with_server(&server, &flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let prompt = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}\n";
    child.stdin.take().unwrap().write_all(prompt.repeat(2).as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o111, 0);
}

/// The system prompt of a request.
fn system(body: &serde_json::Value) -> String {
    let blocks = body["system"].as_array().unwrap();
    blocks.iter().map(|block| block["text"].as_str().unwrap()).collect()
}

#[test]
fn an_appended_system_prompt_stays_with_the_session() {
    let desk = Desk::new();
    desk.write("AGENTS.md", "Use tabs.\n");
    let server = Server::scripted((0..6).map(|_| Answer::text("fine")));
    let ask = |flags: &[&str]| {
        let ran = run(desk.with_server(&server, &[&["-p", "x"], flags].concat()));
        assert_eq!(ran.code, 0, "{ran:?}");
        let system = system(&server.requests().last().unwrap().body);
        (ran.err.lines().last().unwrap().rsplit(' ').next().unwrap().to_owned(), system)
    };
    let (_, plain) = ask(&[]);
    assert!(plain.contains("Use tabs.") && !plain.contains("French"), "{plain}");
    let (id, system) = ask(&["--append-system-prompt", "Answer in French."]);
    assert_eq!(system, format!("{plain}\nAnswer in French.\n"));
    assert_eq!(ask(&["--resume", &id]).1, system, "a resumed session keeps it");
    let (copy, forked) = ask(&["--resume", &id, "--fork"]);
    assert_eq!(forked, system, "and a fork");
    let other = ask(&["--resume", &copy, "--append-system-prompt", "Answer in Latin."]).1;
    assert_eq!(other, format!("{plain}\nAnswer in Latin.\n"));
    assert_eq!(ask(&["--resume", &copy]).1, other);
    let shown = run(desk.agentd(&["show", &copy])).out;
    assert!(shown.contains("system prompt ends with: Answer in Latin. (by a flag)"), "{shown}");
    assert_eq!(shown.matches("Latin").count(), 1, "recorded once: {shown}");
    let blank = run(desk.with_server(&server, &["-p", "x", "--append-system-prompt", " "]));
    assert_eq!(blank.code, 2, "{blank:?}");
}

#[test]
fn a_running_session_keeps_its_system_prompt_and_says_so() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let session = wire.open(&opening);
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    let text = Some("Answer in French.".to_owned());
    let conversation = ConversationFlags { appended_system: text, cost_limit: None };
    let joined = SessionRequest { start, conversation, ..opening };
    wire.open_with_key(&joined);
    let warnings = wire.until("the session", |word| match word {
        ToClient::Opened { warnings, .. } => Some(warnings.join("\n")),
        _ => None,
    });
    assert!(warnings.contains("--append-system-prompt is ignored"), "{warnings}");
    assert!(warnings.contains(&format!("`agentd stop {session}` first")), "{warnings}");
}

const TOUCH: &str = r#"{"command":"touch made"}"#;

#[test]
fn tools_are_allowed_and_denied_as_another_agent_spells_it() {
    let script =
        || Server::scripted([Answer::says([call("t1", "bash", TOUCH)]), Answer::text("done")]);
    let made = |flags: &[&str], file: &str| {
        let desk = Desk::new();
        let config = desk.home().join(".config/agentd/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(config, file).unwrap();
        let ran = run(desk.with_server(&script(), &[&["-p", "x"], flags].concat()));
        (ran.code, desk.project().join("made").exists())
    };
    let deny = "permissions.deny = ['bash:touch *']\n";
    let auto = ["--permission-mode", "auto"];
    let allow = ["--allowedTools", "Read,Bash(touch:*)"];
    assert_eq!(made(&[], ""), (10, false), "nothing allows it");
    assert_eq!(made(&allow, ""), (0, true));
    assert_eq!(made(&["--allowed-tools", "Edit Bash(touch made)"], ""), (0, true));
    assert_eq!(made(&["--allowed-tools", "Bash(cargo:*)"], ""), (10, false));
    assert_eq!(made(&allow, deny), (0, false), "a file's denial wins over a flag");
    assert_eq!(made(&auto, ""), (0, true));
    let refuse = ["--disallowed-tools", "WebFetch,Bash(touch:*)"];
    assert_eq!(made(&[auto, refuse].concat(), ""), (0, false));
    assert_eq!(made(&[allow, ["--disallowedTools", "Bash"]].concat(), ""), (0, false));
}

#[test]
fn a_word_that_names_no_tool_is_an_error_before_the_run() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    for (flag, list, word) in [
        ("--allowedTools", "Read,mcp__github__list(x)", "`mcp__github__list(x)`"),
        ("--disallowed-tools", "NotebookEdit", "there is no tool `NotebookEdit`"),
    ] {
        let ran = run(desk.with_server(&server, &["-p", "x", flag, list]));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains(word) && ran.err.contains("allowed-tools: "), "{}", ran.err);
    }
    assert!(server.requests().is_empty(), "nothing was asked");
}

/// Each scripted answer costs 278 millionths of a dollar.
#[test]
fn a_run_ends_before_the_request_that_its_cost_forbids() {
    let desk = Desk::new();
    let look = || Answer::says([call("t1", "ls", "{}")]);
    let server = Server::scripted([look(), look(), Answer::text("done"), Answer::text("more")]);
    let ran = desk.ask(&server, &["--max-cost", "0.0003"]);
    assert_eq!(ran.code, 12, "{ran:?}");
    assert_eq!(server.requests().len(), 2, "one answer may exceed it, no request follows");
    let result = ran.json();
    assert_eq!(
        (&result["subtype"], &result["is_error"]),
        (&"error_max_budget_usd".into(), &true.into())
    );
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("has cost $0.0006, and its limit is $0.0003"), "{error}");
    let id = result["session_id"].as_str().unwrap().to_owned();
    let again = desk.ask(&server, &["--resume", &id]);
    assert_eq!((again.code, server.requests().len()), (12, 2), "the session keeps it: {again:?}");
    let raised = desk.ask(&server, &["--resume", &id, "--max-cost", "$1"]);
    assert_eq!((raised.code, raised.result().as_str()), (0, "done"), "{raised:?}");
    let shown = run(desk.agentd(&["show", &id])).out;
    assert!(shown.contains("cost limit $0.0003 (by a flag)"), "{shown}");
    assert!(shown.contains("the session had cost $0.0006, and its limit was $0.0003"), "{shown}");
    assert_eq!(desk.ask(&server, &[]).code, 0, "no other session has a limit");
}

#[test]
fn a_limit_of_the_cost_needs_a_known_price() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("fine"), Answer::text("fine")]);
    let stranger = ["--model", "nobody-knows"];
    let ran = desk.ask(&server, &[&stranger[..], &["--max-cost", "1"]].concat());
    assert_eq!(ran.code, 16, "{ran:?}");
    assert!(ran.err.contains("the price of nobody-knows is not known"), "{}", ran.err);
    assert_eq!(ran.json()["error"].as_str().map(|it| it.contains("[models.NAME]")), Some(true));
    assert!(server.requests().is_empty(), "nothing was asked");
    assert!(run(desk.agentd(&["ls"])).out.lines().count() <= 1, "no session was made");
    let ran = desk.ask(&server, &stranger);
    assert_eq!(ran.code, 0, "{ran:?}");
    let id = ran.json()["session_id"].as_str().unwrap().to_owned();
    let ran = desk.ask(&server, &["--resume", &id, "--max-cost", "1"]);
    assert_eq!(ran.code, 2, "its first answer has no known cost: {ran:?}");
    assert!(ran.err.contains("the cost of 1 earlier answers"), "{}", ran.err);
    for wrong in ["0", "-1", "1e3", "free", "1.2345678"] {
        let ran = desk.ask(&server, &["--max-cost", wrong]);
        assert_eq!(ran.code, 2, "{wrong}: {ran:?}");
    }
    assert_eq!(server.requests().len(), 1);
}

const SCHEMA: &str =
    r#"{"type":"object","properties":{"failed":{"type":"integer"}},"required":["failed"]}"#;

/// The text of the newest message of a request.
fn asked(body: &serde_json::Value) -> String {
    body["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

#[test]
fn an_answer_fits_its_schema_at_once_or_when_asked_again() {
    let desk = Desk::new();
    let schema = desk.write("schema.json", SCHEMA);
    let flags = ["--json-schema", schema.to_str().unwrap()];
    let look = || Answer::says([call("t1", "ls", "{}")]);
    let server = Server::scripted([look(), Answer::text(" {\"failed\": 3}\n")]);
    let ran = desk.ask(&server, &flags);
    assert_eq!((ran.code, &ran.json()["structured_output"]["failed"]), (0, &3.into()), "{ran:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "nothing is asked again");
    assert!(asked(&requests[0].body).contains("\\\"failed\\\""), "the model knows the schema");
    let server =
        Server::scripted([Answer::text("{\"failed\":\"3\"}"), Answer::text("{\"failed\":3}")]);
    let ran = desk.ask(&server, &flags);
    assert_eq!((ran.code, &ran.json()["structured_output"]["failed"]), (0, &3.into()), "{ran:?}");
    assert_eq!((&ran.json()["num_turns"], &ran.json()["subtype"]), (&2.into(), &"success".into()));
    let again = asked(&server.requests()[1].body);
    assert!(again.contains("/failed: ") && again.contains("integer"), "{again}");
    let text = Server::scripted([Answer::text("It is 3."), Answer::text("{\"failed\":3}")]);
    let ran = run(desk.with_server(&text, &[&["-p", "x"][..], &flags].concat()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "{\"failed\":3}\n"), "{ran:?}");
    let plain = desk.ask(&Server::scripted([Answer::text("It is 3.")]), &[]);
    assert!(plain.code == 0 && plain.json().get("structured_output").is_none(), "{plain:?}");
}

#[test]
fn a_schema_is_no_argument_of_a_slash_command() {
    let desk = Desk::new();
    desk.write(".claude/commands/count.md", "Count <$ARGUMENTS>.\n");
    let server = Server::scripted([Answer::text("none"), Answer::text("{\"failed\":3}")]);
    let flags = ["-p", "/count my tests", "--json-schema", SCHEMA, "--output-format", "json"];
    let ran = run(desk.with_server(&server, &flags));
    assert_eq!((ran.code, &ran.json()["structured_output"]["failed"]), (0, &3.into()), "{ran:?}");
    let requests = server.requests();
    let (first, again) = (asked(&requests[0].body), asked(&requests[1].body));
    assert!(first.contains("Count <my tests>."), "{first}");
    for text in [&first, &again] {
        assert_eq!(text.matches("End with an answer that is JSON").count(), 1, "{text}");
        assert!(text.contains("\\\"failed\\\""), "the model knows the schema: {text}");
    }
    let id = ran.json()["session_id"].as_str().unwrap().to_owned();
    let shown = run(desk.agentd(&["show", &id])).out;
    assert!(
        shown.contains("> /count my tests  (") && !shown.contains("JSON Schema:\n{"),
        "the record has the typed words: {shown}"
    );
}

#[test]
fn an_answer_is_asked_again_once_though_its_processes_are_killed() {
    for victim in ["agentd-supervisor", "agentd-session", "agentd-provider"] {
        let desk = Desk::new();
        // The second request is the one that asks again: it is cut short by the death, and sent anew.
        let slow = Answer::text("{\"failed\":3}").paced(Duration::from_millis(400)).in_pieces_of(1);
        let fits = Answer::text("{\"failed\":3}");
        let server = Server::scripted([Answer::text("three"), slow, fits]);
        let mut command = desk
            .with_server(&server, &["-p", "x", "--json-schema", SCHEMA, "--output-format", "json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("the model is asked again", || server.requests().len() == 2);
        let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
        let worker = child_of(supervisor, victim);
        send(worker.unwrap_or(supervisor), Signal::SIGKILL);
        let ran = child.wait_with_output().unwrap();
        assert!(ran.status.success(), "{victim}: {ran:?}");
        let result: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!(result["structured_output"]["failed"], 3, "{victim}: {result}");
        let requests = server.requests();
        assert_eq!(requests.len(), 3, "{victim}");
        assert_eq!(asked(&requests[1].body), asked(&requests[2].body), "{victim}");
        assert_eq!(requests[1].body["messages"], requests[2].body["messages"], "{victim}");
    }
}

#[test]
fn a_model_that_has_schemas_gets_it_with_each_request_of_the_turn_also_after_a_death() {
    const STRICT: &str = r#"{"type":"object","properties":{"failed":{"type":"integer"}},"required":["failed"],"additionalProperties":false}"#;
    let desk = Desk::new();
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "[models.m]\nprovider = \"anthropic\"\njson_schema = true\n").unwrap();
    let slow = Answer::text("{\"failed\":3}").paced(Duration::from_millis(400)).in_pieces_of(1);
    let look = Answer::says([call("t1", "ls", "{}")]);
    let server = Server::scripted([look, slow, Answer::text("{\"failed\":3}")]);
    let flags = ["-p", "x", "--model", "m", "--json-schema", STRICT, "--output-format", "json"];
    let mut command = desk.with_server(&server, &flags);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the call's result is sent", || server.requests().len() == 2);
    send(child_of(child.id(), "agentd-supervisor").unwrap(), Signal::SIGKILL);
    let ran = child.wait_with_output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let schema: serde_json::Value = serde_json::from_str(STRICT).unwrap();
    let formats = |server: &Server| {
        let requests = server.requests();
        requests.iter().map(|it| it.body["output_config"]["format"].clone()).collect::<Vec<_>>()
    };
    let format = serde_json::json!({"type": "json_schema", "schema": schema});
    assert_eq!(formats(&server), vec![format; 3], "the journal has it");
    // The next turn of the session has none, and neither has a model that is not known to have them.
    let server = Server::scripted([Answer::text("done")]);
    assert_eq!(run(desk.with_server(&server, &["-p", "y", "--continue", "--model", "m"])).code, 0);
    assert_eq!(formats(&server), [serde_json::Value::Null]);
    let server = Server::scripted([Answer::text("{\"failed\":3}")]);
    assert_eq!(desk.ask(&server, &["--json-schema", STRICT]).code, 0);
    assert_eq!(formats(&server), [serde_json::Value::Null]);
}

#[test]
fn an_answer_that_never_fits_ends_the_run_with_its_errors() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("three"), Answer::text("{}"), Answer::text("{}")]);
    let ran = desk.ask(&server, &["--json-schema", SCHEMA]);
    assert_eq!((ran.code, server.requests().len()), (18, 2), "{ran:?}");
    let result = ran.json();
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!((&result["is_error"], &result["result"]), (&true.into(), &"{}".into()));
    assert!(result.get("structured_output").is_none(), "{result}");
    let errors = result["schema_errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[0]["path"]), (1, &"/".into()));
    assert!(errors[0]["message"].as_str().unwrap().contains("required"), "{errors:?}");
    // A turn that ended otherwise is not asked again.
    let refused = Answer::status(400, "invalid_request_error", "too odd");
    let server = Server::scripted([refused, Answer::text("{\"failed\":3}")]);
    let ran = desk.ask(&server, &["--json-schema", SCHEMA]);
    assert_eq!((ran.code, server.requests().len()), (1, 1), "{ran:?}");
}

#[test]
fn a_wrong_schema_is_an_error_before_the_run() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let schema = desk.write("schema.json", "{\"properties\":{\"age\":{\"type\":\"strin\"}}}");
    let ran = desk.ask(&server, &["--json-schema", schema.to_str().unwrap()]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let error = ran.json()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("schema.json: no JSON Schema: /properties/age/type: "), "{error}");
    assert!(server.requests().is_empty(), "nothing was asked");
}
