//! MCP servers of sub-agents: those of the parent, for what the agent's file lets through.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::agents::{result, server as models, task, tool};
use crate::mcp::{desk, server};
use crate::support::anthropic::{Answer, Server};
use crate::support::{Desk, Run, run, runs, until};
use serde_json::{Value, json};

const AUTO: [&str; 4] = ["-p", "do it", "--permission-mode", "auto"];

/// A run whose sub-agent of this kind says these answers.
fn ran(desk: &Desk, agent: &str, answers: Vec<Answer>) -> (Run, Server) {
    let parent = vec![Answer::says([task("toolu_1", "LOOK", agent)]), Answer::text("Done.")];
    let model = models([("do it", parent), ("LOOK", answers)]);
    let ran = run(desk.with_server(&model, &AUTO));
    assert_eq!(ran.code, 0, "{}", ran.err);
    (ran, model)
}

fn echo(id: &str) -> Answer {
    tool(id, "mcp__test__echo", json!({"text": "hello from the child"}))
}

/// The tools of servers in the first request of the sub-agent.
fn offered(model: &Server) -> Vec<String> {
    let requests = model.requests();
    let of_child = |body: &Value| body["messages"][0]["content"].to_string().contains("LOOK");
    let child = requests.iter().find(|request| of_child(&request.body)).unwrap();
    let tools = child.body["tools"].as_array().into_iter().flatten();
    let names = tools.filter_map(|tool| tool["name"].as_str());
    names.filter(|name| name.starts_with("mcp__")).map(str::to_owned).collect()
}

/// How many processes of servers the sub-agents had.
fn starts_of_children(desk: &Desk) -> usize {
    let is_start = |record: &&Value| record["event"] == "ended" && record["tool"] == "mcp_server";
    let of_child = |record: &Value| record["session"].as_str().unwrap().contains('-');
    desk.audit().iter().filter(is_start).filter(|record| of_child(record)).count()
}

fn agent(desk: &Desk, fields: &str) {
    let text = format!("---\nname: look\ndescription: Looks.\n{fields}---\nLook.\n");
    desk.write(".claude/agents/look.md", &text);
}

#[test]
fn a_sub_agent_calls_a_tool_of_its_parents_server_in_a_process_of_its_own() {
    let desk = desk(&server(", \"left-4819\""));
    let leave = tool("toolu_3", "mcp__test__leave", json!({}));
    let answers = vec![echo("toolu_2"), leave, Answer::text("It is so.")];
    let (ran, model) = ran(&desk, "", answers);
    assert_eq!(result(&model, "toolu_2"), "hello from the child", "{}", ran.err);
    assert!(result(&model, "toolu_1").starts_with("It is so."));
    assert!(offered(&model).contains(&"mcp__test__echo".to_owned()));
    assert_eq!(starts_of_children(&desk), 1);
    until("the end of the servers", || !runs("left-4819") && !runs("sleep 4817"));
}

#[test]
fn a_sub_agent_whose_tools_leave_servers_out_starts_none() {
    for fields in ["tools: Read\n", "disallowedTools: mcp__test\n"] {
        let desk = desk(&server(""));
        agent(&desk, fields);
        let (_, model) = ran(&desk, "look", vec![echo("toolu_2"), Answer::text("No.")]);
        assert_eq!(offered(&model), [""; 0], "{fields}");
        assert!(!result(&model, "toolu_2").contains("hello from"), "{fields}");
        assert_eq!(starts_of_children(&desk), 0, "{fields}");
    }
}

#[test]
fn a_sub_agent_has_only_the_tools_of_servers_that_its_file_names() {
    for (fields, has_echo, count) in [
        ("tools: Read, mcp__test__echo\n", true, 1),
        ("tools: Read, mcp__test__e*\ndisallowedTools: mcp__test__env\n", true, 1),
        ("tools: Read, mcp__test__read\n", false, 1),
        ("tools: mcp__test\n", true, 13),
    ] {
        let desk = desk(&format!("{}[mcp.other]\ncommand = \"absent\"\n", server("")));
        agent(&desk, fields);
        let (ran, model) = ran(&desk, "look", vec![echo("toolu_2"), Answer::text("Yes.")]);
        let tools = offered(&model);
        assert_eq!(tools.contains(&"mcp__test__echo".to_owned()), has_echo, "{fields}: {tools:?}");
        assert!(tools.len() >= count && (count > 1 || tools.len() == 1), "{fields}: {tools:?}");
        let told = result(&model, "toolu_2");
        assert_eq!(told == "hello from the child", has_echo, "{fields}: {told} {}", ran.err);
        assert_eq!(starts_of_children(&desk), 1, "{fields}");
    }
}

#[test]
fn a_rule_that_denies_the_parent_denies_its_sub_agent() {
    let desk = desk(&format!("[permissions]\ndeny = [\"mcp__test__echo\"]\n{}", server("")));
    let (_, model) = ran(&desk, "", vec![echo("toolu_2"), Answer::text("No.")]);
    assert!(result(&model, "toolu_2").contains("mcp__test__echo"), "{}", result(&model, "toolu_2"));
    assert!(!result(&model, "toolu_2").contains("hello from the child"));
}
