//! A provider to ask in a test, and its words put together as the session would.
#![allow(dead_code, clippy::unwrap_used)]

use protocol::content::{ContentBlock, Message, MessageRole, ModelRequest, StopReason, ToolSpec};
use protocol::provider::{
    AnswerDelta, Api, Auth, FromProvider, ModelServer, ProviderFailure, ProviderTimeouts,
    SourceSetup,
};
use provider::{Provider, ProviderSetup};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

pub const PATIENCE: ProviderTimeouts = ProviderTimeouts {
    tries: 3,
    overload_tries: 3,
    max_wait_ms: 30,
    byte_timeout_ms: 400,
    progress_timeout_ms: 900,
    connect_timeout_ms: 500,
};

pub fn key_file() -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"sk-ant-test\n").unwrap();
    file
}

pub fn server(api: Api, url: &str, auth: Auth) -> SourceSetup {
    let headers = Vec::new();
    SourceSetup::Server(ModelServer { api, base_url: url.into(), auth, headers, effort: None })
}

pub fn setup(url: &str) -> ProviderSetup {
    ProviderSetup {
        source: server(Api::Anthropic, url, Auth::ApiKey),
        patience: PATIENCE,
        proxy: None,
        key: Some(key_file()),
        replay: None,
        record: None,
    }
}

pub fn user(text: &str) -> Message {
    Message { role: MessageRole::User, blocks: vec![ContentBlock::Text { text: text.into() }] }
}

pub fn results(all: &[(&str, &str, bool)]) -> Message {
    let result = |(id, text, is_error): &(&str, &str, bool)| ContentBlock::ToolResult {
        id: (*id).into(),
        text: (*text).into(),
        is_error: *is_error,
        images: Vec::new(),
    };
    Message { role: MessageRole::User, blocks: all.iter().map(result).collect() }
}

pub fn request(round: u32, messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        round,
        model: "test-model".into(),
        system: "Be brief.".into(),
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            input_schema: r#"{"type":"object","properties":{"path":{"type":"string"}}}"#.into(),
        }],
        messages,
        max_tokens: 1000,
        updated: None,
        calls: protocol::content::ToolChoice::Yes,
        images: Vec::new(),
        answer_schema: None,
    }
}

/// Asks, with a runtime as the worker's.
pub fn ask(provider: &mut Provider, request: &ModelRequest) -> Vec<FromProvider> {
    runtime().block_on(async { ask_in(provider, request).await })
}

pub async fn ask_in(provider: &mut Provider, request: &ModelRequest) -> Vec<FromProvider> {
    let mut words = Vec::new();
    provider.answer(request, &mut |word| words.push(word)).await;
    words
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// What is left of an answer once it ended: only whole blocks, and nothing of a broken attempt.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Whole {
    pub blocks: Vec<ContentBlock>,
    pub stop: Option<StopReason>,
    pub failed: Option<(ProviderFailure, String)>,
    pub retries: Vec<String>,
}

pub fn whole(words: &[FromProvider]) -> Whole {
    let mut answer = Whole::default();
    let mut open: BTreeMap<u32, ContentBlock> = BTreeMap::new();
    let mut done: BTreeMap<u32, ContentBlock> = BTreeMap::new();
    for word in words {
        match word {
            FromProvider::Delta { index, delta, .. } => match delta {
                AnswerDelta::Text(more) => {
                    let block =
                        open.entry(*index).or_insert(ContentBlock::Text { text: String::new() });
                    let ContentBlock::Text { text } = block else { panic!("mixed block {index}") };
                    text.push_str(more);
                }
                AnswerDelta::Thinking(_) => {}
                AnswerDelta::ThinkingDone { raw } => {
                    done.insert(
                        *index,
                        ContentBlock::Thinking { text: String::new(), raw: raw.clone() },
                    );
                }
                AnswerDelta::ToolStart { id, name } => {
                    let (id, name) = (id.clone(), name.clone());
                    open.insert(*index, ContentBlock::ToolUse { id, name, input: String::new() });
                }
                AnswerDelta::ToolInput(more) => {
                    let Some(ContentBlock::ToolUse { input, .. }) = open.get_mut(index) else {
                        panic!("input of no call at {index}")
                    };
                    input.push_str(more);
                }
                AnswerDelta::BlockDone => {
                    done.insert(*index, open.remove(index).expect("an open block"));
                }
            },
            FromProvider::Retrying { reason, .. } => {
                open.clear();
                done.clear();
                answer.retries.push(reason.clone());
            }
            FromProvider::Ended { stop, .. } => {
                answer.blocks = std::mem::take(&mut done).into_values().collect();
                answer.stop = Some(stop.clone());
            }
            FromProvider::Failed { kind, message, .. } => {
                answer.failed = Some((*kind, message.clone()));
            }
            FromProvider::Ready
            | FromProvider::Cancelled { .. }
            | FromProvider::Pong(_)
            | FromProvider::Notice { .. }
            | FromProvider::Log(_) => panic!("unexpected word {word:?}"),
        }
    }
    answer
}

pub fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text { text: text.into() }
}

pub fn call_block(id: &str, name: &str, input: &str) -> ContentBlock {
    ContentBlock::ToolUse { id: id.into(), name: name.into(), input: input.into() }
}
