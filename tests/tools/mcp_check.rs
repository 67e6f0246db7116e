//! `agentd mcp check` and `show`: servers that are started to look at them.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server};
use crate::support::{Desk, Run, needs, run};
use serde_json::{Value, json};

fn desk(lines: &str) -> Desk {
    needs("python3");
    let desk = Desk::new();
    desk.write("server.py", include_str!("../data/mcp_server.py"));
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, lines).unwrap();
    desk
}

fn mcp(desk: &Desk, words: &[&str]) -> Run {
    let mut command = desk.agentd(&[&["mcp"], words].concat());
    command.env_remove("ANTHROPIC_API_KEY").env_remove("OPENAI_API_KEY");
    run(command)
}

const GOOD: &str = "[mcp.good]\ncommand = [\"python3\", \"server.py\"]\nhosts = [\"docs.rs\"]\n\
                    enabled_tools = [\"echo\", \"read\"]\n";

#[test]
fn servers_are_started_shown_with_their_sandboxes_and_ended() {
    let desk = desk(GOOD);
    let ran = mcp(&desk, &["check"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for words in [
        "good: ready after ",
        "2 tools",
        "place: python3 server.py",
        "writes nothing",
        "docs.rs",
        "mcp__good__echo  Echoes a text.",
    ] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    assert!(!ran.out.contains("mcp__good__write"), "{}", ran.out);
    let json = mcp(&desk, &["check", "good", "--json"]);
    let line: Value = serde_json::from_str(&json.out).expect(&json.out);
    assert_eq!((&line["state"], line["tools"].as_array().unwrap().len()), (&json!("ready"), 2));
    assert!(line["ready_after_ms"].as_u64().unwrap() > 0);
    // No session is left, and the record of the starts is.
    let sessions = std::fs::read_dir(desk.state().join("sessions")).unwrap();
    assert_eq!(sessions.count(), 0);
    let starts = desk.audit().into_iter();
    let ended = |record: &Value| record["event"] == "ended" && record["tool"] == "mcp_server";
    assert_eq!(starts.filter(ended).count(), 2);
}

#[test]
fn a_server_that_is_of_no_use_is_shown_with_the_reason() {
    let desk = desk(&format!(
        "{GOOD}[mcp.dead]\ncommand = [\"false\"]\n\
         [mcp.late]\ncommand = [\"sleep\", \"100\"]\nstartup_timeout_sec = 0.5\n\
         [mcp.unset]\ncommand = [\"x\"]\nenv = {{ A = \"${{NO_SUCH_VARIABLE}}\" }}\n"
    ));
    let ran = mcp(&desk, &["check"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    for words in [
        "good: ready",
        "dead: does not run: ",
        "late: does not run: ",
        "not ready within 0.5 s",
        "unset: does not run: the variable NO_SUCH_VARIABLE is not set",
    ] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    let ran = mcp(&desk, &["check", "good"]);
    assert_eq!(ran.code, 0, "the control: {}{}", ran.out, ran.err);
    let ran = mcp(&desk, &["check", "nobody"]);
    assert!(ran.code != 0 && ran.err.contains("starts no MCP server nobody"), "{}", ran.err);
}

#[test]
fn a_description_that_steers_the_model_is_marked_for_it_and_for_the_person() {
    let desk = desk(
        "[mcp.sly]\ncommand = [\"python3\", \"server.py\", \"steers\"]\n\
         [mcp.good]\ncommand = [\"python3\", \"server.py\"]\n",
    );
    let ran = mcp(&desk, &["check"]);
    assert_eq!(ran.code, 0, "a mark is no failure: {}{}", ran.out, ran.err);
    assert_eq!(ran.out.matches("marked: speaks of other tools").count(), 1, "{}", ran.out);
    assert!(ran.out.contains("mcp__sly__steer    Finds. Use it"), "{}", ran.out);
    let json = mcp(&desk, &["check", "sly", "--json"]);
    let line: Value = serde_json::from_str(&json.out).expect(&json.out);
    let marks: Vec<_> =
        line["tools"].as_array().unwrap().iter().map(|tool| &tool["marked"]).collect();
    assert_eq!((marks[0], marks[1]), (&json!("tell the user"), &Value::Null));
    let model = Server::scripted([Answer::text("Done.")]);
    let ran = run(desk.with_server(&model, &["-p", "Go."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let words = "the MCP server sly describes its tool steer with words about other tools";
    assert_eq!(ran.err.matches(words).count(), 1, "{}", ran.err);
    let body = &model.requests()[0].body;
    let tools = body["tools"].as_array().unwrap();
    let about = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect(name);
        tool["description"].as_str().unwrap().to_owned()
    };
    let steer = about("mcp__sly__steer");
    assert!(steer.starts_with("[agentd: this description by the MCP server sly"), "{steer}");
    assert!(steer.contains("]\nFinds. Use it"), "{steer}");
    assert_eq!(about("mcp__good__echo"), "Echoes a text.", "the control");
}

#[test]
fn the_fields_of_one_server_are_shown() {
    let desk = desk(GOOD);
    let ran = mcp(&desk, &["show", "good"]);
    let shown: Value = serde_json::from_str(&ran.out).expect(&ran.out);
    assert_eq!(shown["enabled_tools"], json!(["echo", "read"]));
    assert_eq!(
        (&shown["hosts"], &shown["startup_timeout_ms"]),
        (&json!(["docs.rs"]), &json!(30000))
    );
    assert_eq!((&shown["project"], &shown["headers"]), (&json!("read-only"), &Value::Null));
    let far = "[mcp.far]\nurl = \"https://x.example/mcp\"\nheaders = { X-Key = \"plain-s3cret\" }\n\
               bearer_token_env_var = \"FAR_TOKEN\"\n";
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::write(file, format!("{GOOD}{far}")).unwrap();
    let ran = mcp(&desk, &["show", "far"]);
    let shown: Value = serde_json::from_str(&ran.out).expect(&ran.out);
    assert_eq!(shown["headers"], json!({"X-Key": "hidden", "Authorization": "hidden"}));
    assert_eq!((&shown["project"], &shown["env"]), (&Value::Null, &Value::Null));
    assert_eq!(shown["variables"], json!(["FAR_TOKEN"]));
    assert!(!ran.out.contains("s3cret") && !ran.out.contains("AGENTD_MCP_HEADER"), "{}", ran.out);
    let ran = mcp(&desk, &["show", "nobody"]);
    assert!(ran.code != 0 && ran.err.contains("no MCP server nobody"), "{}", ran.err);
}

#[test]
fn the_opening_of_a_stream_names_the_servers_and_their_tools() {
    let desk = desk(&format!("{GOOD}[mcp.dead]\ncommand = [\"false\"]\n"));
    let model = Server::scripted([Answer::text("Done.")]);
    let flags = ["-p", "Go.", "--output-format", "stream-json"];
    let ran = run(desk.with_server(&model, &flags));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let first: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["type"], &first["subtype"]), (&json!("system"), &json!("init")));
    let server = |name: &str, status: &str| json!({"name": name, "status": status});
    let mut servers = first["mcp_servers"].as_array().unwrap().clone();
    servers.sort_by_key(ToString::to_string);
    assert_eq!(servers, [server("dead", "failed"), server("good", "connected")], "{first}");
    let tools = first["tools"].as_array().unwrap();
    let own = tools.iter().filter(|tool| tool.as_str().unwrap().starts_with("mcp__"));
    assert_eq!(own.collect::<Vec<_>>(), ["mcp__good__echo", "mcp__good__read"], "{first}");
    assert!(tools.contains(&json!("bash")), "{first}");
    // Without servers the list is empty, and nothing waits.
    std::fs::write(desk.home().join(".config/agentd/config.toml"), "").unwrap();
    let model = Server::scripted([Answer::text("Done.")]);
    let ran = run(desk.with_server(&model, &flags));
    let first: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["mcp_servers"], json!([]), "{}", ran.err);
}

/// As one that is fetched first: the probe for the newest revision is given up before the server reads it.
#[test]
fn a_server_that_starts_slowly_and_answers_the_probe_late_is_ready() {
    let slow = "import json, sys, time\n\
                time.sleep(12)\n\
                for line in sys.stdin:\n\
                \x20   asked = json.loads(line)\n\
                \x20   if 'id' not in asked: continue\n\
                \x20   does = {'initialize': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}},\n\
                \x20                          'serverInfo': {'name': 'slow', 'version': '1'}},\n\
                \x20           'tools/list': {'tools': [{'name': 'late', 'inputSchema': {'type': 'object'}}]}}\n\
                \x20   found = does.get(asked['method'])\n\
                \x20   said = {'result': found} if found else {'error': {'code': -32601, 'message': 'not known'}}\n\
                \x20   print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **said}), flush=True)\n";
    let desk = desk("[mcp.slow]\ncommand = [\"python3\", \"slow.py\"]\n");
    desk.write("slow.py", slow);
    let ran = mcp(&desk, &["check"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("slow: ready after "), "{}", ran.out);
    assert!(ran.out.contains("mcp__slow__late"), "{}", ran.out);
}
