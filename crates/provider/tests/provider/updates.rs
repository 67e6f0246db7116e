//! What some requests have beside the conversation, in the form of each vendor: what changed in pinned
//! files, and that no tool may be called.

use protocol::content::{
    ContentBlock, FilesUpdated, Message, MessageRole, ModelRequest, ToolChoice, ToolSpec,
    UpdatePosition,
};
use protocol::provider::{Api, Auth, ModelServer};
use provider::api::{OldThinking, encode};
use serde_json::{Value, json};

const BLOCK: &str = "<file path=\"a.md\">\nnew\n</file>";

fn request(last: Vec<ContentBlock>, place: Option<UpdatePosition>) -> ModelRequest {
    let text = |text: &str| ContentBlock::Text { text: text.into() };
    let call = |id: &str| ContentBlock::ToolUse {
        id: id.into(),
        name: "write".into(),
        input: "{}".into(),
    };
    let message = |role, blocks| Message { role, blocks };
    ModelRequest {
        round: 2,
        model: "m".into(),
        system: String::new(),
        tools: Vec::new(),
        messages: vec![
            message(MessageRole::User, vec![text("go")]),
            message(MessageRole::Assistant, vec![call("t1"), call("t2")]),
            message(MessageRole::User, last),
        ],
        max_tokens: 100,
        updated: place.map(|place| FilesUpdated { text: format!("{BLOCK}\n"), place }),
        calls: ToolChoice::Yes,
        images: Vec::new(),
        answer_schema: None,
    }
}

fn two_results() -> Vec<ContentBlock> {
    let result = |id: &str| ContentBlock::ToolResult {
        id: id.into(),
        text: format!("wrote {id}"),
        is_error: false,
        images: Vec::new(),
    };
    vec![result("t1"), result("t2")]
}

fn body(api: Api, request: &ModelRequest) -> Value {
    let server = ModelServer {
        api,
        base_url: "http://127.0.0.1:1".into(),
        auth: Auth::Keyless,
        headers: Vec::new(),
        effort: None,
    };
    serde_json::from_str(&encode(&server, request, OldThinking::Sent).unwrap()).unwrap()
}

#[test]
fn anthropic_has_it_as_the_last_text_behind_all_results_and_behind_the_breakpoint() {
    let body = body(Api::Anthropic, &request(two_results(), Some(UpdatePosition::BehindResults)));
    let last = &body["messages"][2]["content"];
    let kinds: Vec<_> = last.as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    assert_eq!(last[2], json!({"type": "text", "text": format!("[FILES UPDATED]\n{BLOCK}")}));
    assert!(last[1]["cache_control"].is_object(), "{last}");
}

#[test]
fn anthropic_has_it_inside_the_last_result_when_asked_once_more_and_no_breakpoint_behind_it() {
    let body =
        body(Api::Anthropic, &request(two_results(), Some(UpdatePosition::InsideLastResult)));
    let last = body["messages"][2]["content"].as_array().unwrap().clone();
    assert_eq!(last.len(), 2);
    assert_eq!(last[1]["content"], format!("wrote t2\n\n[FILES UPDATED]\n{BLOCK}"));
    assert!(last.iter().all(|block| block.get("cache_control").is_none()), "{last:?}");
    assert!(body["messages"][0]["content"][0]["cache_control"].is_object(), "the prefix is kept");
}

#[test]
fn both_interfaces_of_openai_have_it_at_the_end_of_the_last_output() {
    for place in [UpdatePosition::BehindResults, UpdatePosition::InsideLastResult] {
        let ask = request(two_results(), Some(place));
        let chat = body(Api::Chat, &ask);
        let messages = chat["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        assert_eq!((&last["role"], &last["tool_call_id"]), (&json!("tool"), &json!("t2")));
        assert_eq!(last["content"], format!("wrote t2\n\n[FILES UPDATED]\n{BLOCK}"));
        assert_eq!(messages[messages.len() - 2]["content"], "wrote t1");
        let responses = body(Api::Responses, &ask);
        let last = responses["input"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["type"], "function_call_output");
        assert_eq!(last["output"], format!("wrote t2\n\n[FILES UPDATED]\n{BLOCK}"));
    }
}

#[test]
fn gemini_has_it_at_the_end_of_the_last_output_under_a_mark_of_its_own() {
    let body = body(Api::Gemini, &request(two_results(), Some(UpdatePosition::BehindResults)));
    let contents = body["contents"].as_array().unwrap();
    let parts = contents.last().unwrap()["parts"].as_array().unwrap();
    let output = |at: usize| &parts[at]["functionResponse"]["response"]["output"];
    assert_eq!(parts.len(), 2);
    assert_eq!(output(0), "wrote t1");
    assert_eq!(*output(1), format!("wrote t2\n\n[SYSTEM: FILES UPDATED]\n{BLOCK}"));
}

/// At the beginning of a turn there is no result to stand in or behind.
#[test]
fn without_results_it_stands_behind_the_words_and_behind_the_breakpoint() {
    let prompt = vec![ContentBlock::Text { text: "and now?".into() }];
    let mut ask = request(prompt, Some(UpdatePosition::BehindResults));
    ask.messages[1].blocks = vec![ContentBlock::Text { text: "done".into() }];
    let marked = |mark: &str| format!("{mark}\n{BLOCK}");
    let anthropic = body(Api::Anthropic, &ask);
    let last = &anthropic["messages"][2]["content"];
    assert_eq!(last[1]["text"], marked("[FILES UPDATED]"));
    assert!(last[0]["cache_control"].is_object() && last[1].get("cache_control").is_none());
    let chat = body(Api::Chat, &ask);
    let last = chat["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["content"], format!("and now?\n\n{}", marked("[FILES UPDATED]")));
    let responses = body(Api::Responses, &ask);
    let last = responses["input"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["content"][1]["text"], marked("[FILES UPDATED]"));
    let gemini = body(Api::Gemini, &ask);
    let last = gemini["contents"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["parts"][1]["text"], marked("[SYSTEM: FILES UPDATED]"));
}

/// A request is the same in the four forms where nothing changed: the control.
#[test]
fn nothing_is_marked_where_nothing_changed() {
    for api in [Api::Anthropic, Api::Responses, Api::Chat, Api::Gemini] {
        let body = body(api, &request(two_results(), None)).to_string();
        assert!(!body.contains("UPDATED"), "{body}");
    }
}

#[test]
fn that_no_tool_may_be_called_is_said_beside_the_tools() {
    let forms = [
        (Api::Anthropic, "/tool_choice/type", "none"),
        (Api::Responses, "/tool_choice", "none"),
        (Api::Chat, "/tool_choice", "none"),
        (Api::Gemini, "/toolConfig/functionCallingConfig/mode", "NONE"),
    ];
    for (api, place, word) in forms {
        let mut asked = request(two_results(), None);
        asked.tools = vec![ToolSpec {
            name: "write".into(),
            description: "d".into(),
            input_schema: r#"{"type":"object"}"#.into(),
        }];
        assert_eq!(body(api, &asked).pointer(place), None, "{api:?}: as it likes");
        asked.calls = ToolChoice::No;
        let forbidden = body(api, &asked);
        assert_eq!(forbidden.pointer(place), Some(&json!(word)), "{api:?}");
        assert!(forbidden["tools"].to_string().contains("write"), "{api:?}: {forbidden}");
        // Vendors refuse a choice where there is nothing to choose.
        asked.tools.clear();
        assert_eq!(body(api, &asked).pointer(place), None, "{api:?}: no tools");
    }
}

/// What a person says while calls run comes behind their results, as words of the person.
#[test]
fn words_behind_results_are_the_person_s_in_each_interface() {
    let mut blocks = two_results();
    blocks.push(ContentBlock::Text { text: "only three".into() });
    let ask = request(blocks, None);
    let last = |body: &Value, list: &str| body[list].as_array().unwrap().last().unwrap().clone();
    let anthropic = last(&body(Api::Anthropic, &ask), "messages")["content"].clone();
    let kinds: Vec<_> = anthropic.as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    assert_eq!(anthropic[2]["text"], "only three");
    let chat = last(&body(Api::Chat, &ask), "messages");
    assert_eq!((&chat["role"], &chat["content"]), (&json!("user"), &json!("only three")));
    let responses = last(&body(Api::Responses, &ask), "input");
    assert_eq!(responses["role"], "user", "{responses}");
    assert!(responses["content"].to_string().contains("only three"), "{responses}");
    let gemini = last(&body(Api::Gemini, &ask), "contents");
    assert_eq!(gemini["role"], "user");
    assert_eq!(gemini["parts"], json!([{"text": "only three"}]), "apart from the results");
}
