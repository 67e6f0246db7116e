//! Images in the requests of every interface: the vendor's form, in prompts and in results, and a
//! sentence where there are no bytes.

use super::image_request::{all, request};
use provider::{anthropic, chat, gemini, responses};
use serde_json::{Value, json};

fn json(body: Result<String, impl std::fmt::Debug>) -> Value {
    serde_json::from_str(&body.unwrap()).unwrap()
}

const PNG: &str = "data:image/png;base64,cG5n";
const PDF: &str = "data:application/pdf;base64,cG5n";

#[test]
fn anthropic_takes_blocks_in_messages_and_in_results() {
    let body = json(anthropic::encode(&request(all()), None));
    let source = |kind: &str| json!({"type": "base64", "media_type": kind, "data": "cG5n"});
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            {"type": "text", "text": "see"},
            {"type": "image", "source": source("image/png"), "cache_control": cached},
        ])
    );
    assert_eq!(
        body["messages"][2]["content"],
        json!([{
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [
                {"type": "text", "text": "two files"},
                {"type": "image", "source": source("image/png")},
                {"type": "document", "source": source("application/pdf")},
            ],
            "cache_control": cached,
        }])
    );
}

#[test]
fn chat_takes_images_of_results_in_the_next_message() {
    let body = json(chat::encode(&request(all()), None, "http://localhost"));
    let image = json!({"type": "image_url", "image_url": {"url": PNG}});
    let messages = &body["messages"];
    assert_eq!(messages[0]["content"], json!([{"type": "text", "text": "see"}, image]));
    assert_eq!(messages[2]["role"], "tool");
    assert_eq!(messages[2]["content"], "two files");
    assert_eq!(messages[3]["role"], "user");
    assert_eq!(messages[3]["content"][1], image);
    let page = messages[3]["content"][3]["text"].as_str().unwrap();
    assert!(page.contains("takes images, not documents"), "{page}");
}

#[test]
fn responses_takes_parts_in_messages_and_in_outputs() {
    let body = json(responses::encode(&request(all()), None));
    let image = json!({"type": "input_image", "image_url": PNG, "detail": "auto"});
    assert_eq!(body["input"][0]["content"], json!([{"type": "input_text", "text": "see"}, image]));
    assert_eq!(
        body["input"][2]["output"],
        json!([
            {"type": "input_text", "text": "two files"},
            image,
            {"type": "input_file", "filename": "page.pdf", "file_data": PDF},
        ])
    );
}

#[test]
fn gemini_takes_images_of_results_behind_them() {
    let body = json(gemini::encode(&request(all()), None));
    let inline = |kind: &str| json!({"inlineData": {"mimeType": kind, "data": "cG5n"}});
    let contents = &body["contents"];
    assert_eq!(contents[0]["parts"], json!([{"text": "see"}, inline("image/png")]));
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["response"]["output"], "two files");
    assert_eq!(contents[3]["role"], "user");
    assert_eq!(contents[3]["parts"], json!([inline("image/png"), inline("application/pdf")]));
}

#[test]
fn an_image_without_its_bytes_is_named_in_words() {
    for body in [
        anthropic::encode(&request(Vec::new()), None).unwrap(),
        chat::encode(&request(Vec::new()), None, "http://localhost").unwrap(),
        responses::encode(&request(Vec::new()), None).unwrap(),
        gemini::encode(&request(Vec::new()), None).unwrap(),
    ] {
        assert!(body.contains("shot.png 12x8 cannot be shown"), "{body}");
        assert!(!body.contains("base64"), "{body}");
    }
}
