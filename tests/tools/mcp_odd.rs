//! MCP servers whose schemas vendors refuse and whose answers cannot be read: neither ends a session or holds a call up.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use super::mcp::{AUTO, results};
use crate::support::anthropic::vendor::{VENDORS, Vendor};
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, needs, run};
use serde_json::{Value, json};
use std::time::Duration;

/// Less than the time of a call.
const SOON: Duration = Duration::from_secs(60);

fn desk() -> Desk {
    needs("python3");
    let desk = Desk::new();
    desk.write("server.py", include_str!("../data/odd_mcp_server.py"));
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let lines = "[mcp.odd]\ncommand = [\"python3\", \"server.py\"]\ntool_timeout_sec = 300\n";
    std::fs::write(file, lines).unwrap();
    desk
}

fn rounds(calls: &[(&str, Value)]) -> (Run, Vec<String>) {
    let says = |(at, (tool, input)): (usize, &(&str, Value))| {
        let name = format!("mcp__odd__{tool}");
        Answer::says([call(&format!("toolu_{at}"), &name, &input.to_string())])
    };
    let answers = calls.iter().enumerate().map(says).chain([Answer::text("Done.")]);
    let server = Server::scripted(answers.collect::<Vec<_>>());
    let ran = run(desk().with_server(&server, &AUTO));
    let results = results(&server);
    (ran, results)
}

/// The names of the tools of the server in a request of any vendor, with their schemas.
fn offered(vendor: Vendor, body: &Value) -> Vec<(String, Value)> {
    let (tools, schema) = match vendor {
        Vendor::Anthropic => (&body["tools"], "input_schema"),
        Vendor::Responses | Vendor::Chat => (&body["tools"], "parameters"),
        Vendor::Gemini => (&body["tools"][0]["functionDeclarations"], "parametersJsonSchema"),
    };
    let tools = tools.as_array().unwrap().iter();
    let tools = tools.map(|tool| if vendor == Vendor::Chat { &tool["function"] } else { tool });
    let named =
        tools.filter_map(|tool| Some((tool["name"].as_str()?.to_owned(), tool[schema].clone())));
    named.filter(|(name, _)| name.starts_with("mcp__odd__")).collect()
}

#[test]
fn schemas_that_vendors_refuse_are_rewritten_and_a_tool_without_one_costs_itself_alone() {
    for vendor in VENDORS {
        let server = Server::of(vendor, [vendor.text("Done.")]);
        let ran = run(desk().with_vendor(vendor, &server, &AUTO));
        assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{vendor:?}: {}", ran.err);
        let tools = offered(vendor, &server.requests()[0].body);
        let names: Vec<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
        assert!(
            names.contains(&"mcp__odd__plain") && names.contains(&"mcp__odd__half"),
            "{names:?}"
        );
        assert!(
            !names.contains(&"mcp__odd__none") && !names.contains(&"mcp__odd__list"),
            "{names:?}"
        );
        for (name, schema) in &tools {
            assert_eq!(schema["type"], "object", "{name}: {schema}");
            let text = schema.to_string();
            for refused in ["oneOf", "$ref", "$filter\":", "const", "\"format\""] {
                assert!(!text.contains(refused), "{name}: {schema}");
            }
            let properties = schema["properties"].as_object().expect(name);
            assert!(properties.keys().all(|key| !key.contains('$')), "{name}: {schema}");
        }
        for left_out in
            ["the tool none of the MCP server odd", "the tool list of the MCP server odd"]
        {
            assert!(ran.err.contains(left_out), "{left_out}: {}", ran.err);
        }
        assert!(ran.err.contains("names the same next page again"), "{}", ran.err);
    }
}

#[test]
fn arguments_reach_the_server_under_its_own_names() {
    let (ran, results) =
        rounds(&[("filter", json!({"_filter": "a"})), ("choices", json!({"b": "c"}))]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(results, [r#"given {"$filter": "a"}"#, r#"given {"b": "c"}"#]);
}

#[test]
fn a_refusal_that_names_a_tool_leaves_it_out_and_asks_again() {
    for vendor in VENDORS {
        let server = Server::vendor_answering(vendor, move |_, body| {
            let all = match vendor {
                Vendor::Anthropic | Vendor::Responses | Vendor::Chat => &body["tools"],
                Vendor::Gemini => &body["tools"][0]["functionDeclarations"],
            };
            let name = |tool: &Value| match vendor {
                Vendor::Chat => tool["function"]["name"].clone(),
                Vendor::Anthropic | Vendor::Responses | Vendor::Gemini => tool["name"].clone(),
            };
            let bad = ["mcp__odd__plain", "mcp__odd__empty"];
            let at = all
                .as_array()
                .unwrap()
                .iter()
                .position(|tool| bad.iter().any(|it| name(tool) == *it));
            let Some(at) = at else { return vendor.text("Done.") };
            let words = match vendor {
                Vendor::Anthropic => {
                    format!("tools.{at}.custom.input_schema: JSON schema is invalid.")
                }
                Vendor::Chat => format!("Invalid schema for function '{}': no.", bad[0]),
                Vendor::Responses => format!("Invalid 'tools[{at}].parameters': no."),
                Vendor::Gemini => format!(
                    "* GenerateContentRequest.tools[0].function_declarations[{at}].parameters: no."
                ),
            };
            let is_second = vendor == Vendor::Chat && name(&all[at]) == bad[1];
            vendor.status(400, &if is_second { words.replace(bad[0], bad[1]) } else { words })
        });
        let ran = run(desk().with_vendor(vendor, &server, &AUTO));
        assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{vendor:?}: {}", ran.err);
        assert_eq!(server.requests().len(), 3, "{vendor:?}: {}", ran.err);
        for tool in ["plain", "empty"] {
            let told =
                format!("the tool {tool} of the MCP server odd is left out of every request");
            assert!(ran.err.contains(&told), "{vendor:?}: {}", ran.err);
        }
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_an_error_at_once_and_the_server_goes_on() {
    let calls = [
        ("half", json!({})),
        ("byte", json!({})),
        ("huge", json!({})),
        ("deep", json!({})),
        ("torn", json!({})),
        ("nan", json!({"place": "none"})),
        ("plain", json!({"a": "b"})),
    ];
    let (ran, results) = rounds(&calls);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    assert_eq!(results[..2], ["\u{fffd} half", "\u{fffd} byte"]);
    for (at, words) in [(2, "16 MiB"), (3, "recursion"), (4, "no JSON"), (5, "no JSON")] {
        let result = &results[at];
        assert!(result.contains("cannot be read") && result.contains(words), "{at}: {result}");
    }
    assert_eq!(results[6], r#"given {"a": "b"}"#);
    assert!(ran.took < SOON, "{:?}", ran.took);
}
