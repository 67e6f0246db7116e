//! The schema of an answer in the form of each vendor, and a list of tools that grew by a search.

use super::sdk_requests::{SCHEMA, deferred, with_schema};
use protocol::content::ModelRequest;
use provider::{anthropic, chat, gemini, responses};
use serde_json::{Value, json};

fn bodies(request: &ModelRequest) -> [Value; 4] {
    [
        anthropic::encode(request, None),
        responses::encode(request, None),
        chat::encode(request, None, "http://localhost"),
        gemini::encode(request, None),
    ]
    .map(|body| serde_json::from_str(&body.unwrap()).unwrap())
}

#[test]
fn each_vendor_gets_the_schema_in_its_form() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let [anthropic, responses, chat, gemini] = bodies(&with_schema());
    let format = json!({"format": {"type": "json_schema", "schema": schema}});
    assert_eq!(anthropic["output_config"], format);
    let named = json!({"type": "json_schema", "name": "answer", "strict": true, "schema": schema});
    assert_eq!(responses["text"], json!({"format": named}));
    let inside = json!({"name": "answer", "strict": true, "schema": schema});
    assert_eq!(chat["response_format"], json!({"type": "json_schema", "json_schema": inside}));
    let config = &gemini["generationConfig"];
    assert_eq!(config["responseMimeType"], "application/json");
    assert_eq!(config["responseJsonSchema"], schema);
    // The model still has its tools.
    let tools = [&anthropic, &responses, &chat, &gemini].map(|body| body["tools"].is_array());
    assert_eq!(tools, [true; 4]);
}

#[test]
fn without_a_schema_that_all_vendors_take_a_request_has_none() {
    let bounded = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}},
        "required": ["n"], "additionalProperties": false});
    for answer_schema in [None, Some(bounded.to_string()), Some("{".to_owned())] {
        let [anthropic, responses, chat, gemini] =
            bodies(&ModelRequest { answer_schema, ..with_schema() });
        assert_eq!(anthropic["output_config"], Value::Null);
        assert_eq!(responses["text"], Value::Null);
        assert_eq!(chat["response_format"], Value::Null);
        assert_eq!(gemini["generationConfig"]["responseMimeType"], Value::Null);
        assert_eq!(gemini["generationConfig"]["responseJsonSchema"], Value::Null);
    }
}

#[test]
fn effort_and_schema_share_anthropic_s_table() {
    let request = ModelRequest { model: "claude-opus-4-8".into(), ..with_schema() };
    let effort = Some(protocol::provider::Effort::Low);
    let body: Value = serde_json::from_str(&anthropic::encode(&request, effort).unwrap()).unwrap();
    let config = &body["output_config"];
    assert_eq!(
        (&config["effort"], &config["format"]["type"]),
        (&json!("low"), &json!("json_schema"))
    );
}

#[test]
fn a_list_of_tools_that_grew_keeps_its_order_in_each_form() {
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let [anthropic, responses, chat, gemini] = bodies(&deferred());
    let lists = [
        anthropic["tools"].as_array().unwrap().iter().map(name).collect::<Vec<_>>(),
        responses["tools"].as_array().unwrap().iter().map(name).collect(),
        chat["tools"].as_array().unwrap().iter().map(|tool| name(&tool["function"])).collect(),
        gemini["tools"][0]["functionDeclarations"].as_array().unwrap().iter().map(name).collect(),
    ];
    for list in lists {
        assert_eq!(list, ["read", "tool_search", "git_show"]);
    }
}
