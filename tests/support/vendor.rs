//! The four interfaces for tests: the answers and the refusals of each.

use super::rules::Refusal;
use super::{Answer, Issued, Say, chat, gemini, responses};
use protocol::provider::Api;
use serde_json::Value;

/// Whose interface a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

pub const VENDORS: [Vendor; 4] =
    [Vendor::Anthropic, Vendor::Responses, Vendor::Chat, Vendor::Gemini];

/// How an answer ended, independent of the vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Done,
    Calls,
    MaxTokens,
    Refused,
}

impl Vendor {
    /// The provider's type for this interface.
    pub fn api(self) -> Api {
        match self {
            Self::Anthropic => Api::Anthropic,
            Self::Responses => Api::Responses,
            Self::Chat => Api::Chat,
            Self::Gemini => Api::Gemini,
        }
    }

    /// As `--provider` says it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "openai",
            Self::Chat => "openai-chat",
            Self::Gemini => "gemini",
        }
    }

    /// The variables that name its server and its key.
    pub fn variables(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
            Self::Responses | Self::Chat => ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
            Self::Gemini => ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
        }
    }

    /// The variable that names its model.
    pub fn model_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_MODEL",
            Self::Responses | Self::Chat => "OPENAI_MODEL",
            Self::Gemini => "GEMINI_MODEL",
        }
    }

    /// The base URL as this vendor's own library wants it.
    pub fn base_url(self, server: &super::Server) -> String {
        match self {
            Self::Anthropic | Self::Gemini => server.url(),
            Self::Responses | Self::Chat => server.url() + "/v1",
        }
    }

    /// A whole answer; the reason to stop follows from the pieces.
    pub fn says(self, said: impl IntoIterator<Item = Say>) -> Answer {
        let said: Vec<Say> = said.into_iter().collect();
        let stop = match said.last() {
            Some(Say::HalfACall(..)) => Stop::MaxTokens,
            _ if said.iter().any(|s| matches!(s, Say::Call(..))) => Stop::Calls,
            _ => Stop::Done,
        };
        self.stopped(said, stop)
    }

    pub fn text(self, words: &str) -> Answer {
        self.says([Say::Text(words.into())])
    }

    /// A whole answer whose words come so many times, each time in an event of its own.
    pub fn repeats(self, words: &str, times: usize) -> Answer {
        let json = |text: &str| Value::from(text).to_string();
        self.text("@@").edited(|body| {
            let border = if body.contains("\r\n") { "\r\n\r\n" } else { "\n\n" };
            // Some interfaces send a text in two halves, which become one piece each time. An
            // interface that repeats the whole text behind them does so here, too.
            let part = if body.contains(&json("@")) { json("@") } else { json("@@") };
            let mut begun = false;
            body.split_inclusive(border)
                .map(|event| match event.contains(&part) {
                    true if std::mem::replace(&mut begun, true) => String::new(),
                    true => event.replace(&part, &json(words)).repeat(times),
                    false => event.replace(&json("@@"), &json(&words.repeat(times))),
                })
                .collect()
        })
    }

    /// A whole answer with this reason.
    pub fn stopped(self, said: impl IntoIterator<Item = Say>, stop: Stop) -> Answer {
        let said: Vec<Say> = said.into_iter().collect();
        match self {
            Self::Anthropic => Answer::stopped(
                said,
                match stop {
                    Stop::Done => "end_turn",
                    Stop::Calls => "tool_use",
                    Stop::MaxTokens => "max_tokens",
                    Stop::Refused => "refusal",
                },
            ),
            Self::Responses => sse(named(&responses::events(&said, Some(stop))), issued(&said)),
            Self::Chat => {
                let body = nameless(&chat::events(&said, Some(stop))) + "data: [DONE]\n\n";
                sse(body, Vec::new())
            }
            Self::Gemini => {
                let body = nameless(&gemini::events(&said, Some(stop)));
                sse(body.replace('\n', "\r\n"), issued(&said))
            }
        }
    }

    /// An answer that goes so far and then turns into an error.
    pub fn fails_after(self, said: impl IntoIterator<Item = Say>, message: &str) -> Answer {
        let said: Vec<Say> = said.into_iter().collect();
        let body = match self {
            Self::Anthropic => return Answer::fails_after(said, "overloaded_error", message),
            Self::Responses => {
                let mut events = responses::events(&said, None);
                events.push(responses::error(message));
                named(&events)
            }
            Self::Chat => {
                let mut events = chat::events(&said, None);
                events.push(chat::error(502, "server_error", message));
                nameless(&events)
            }
            Self::Gemini => {
                let mut events = gemini::events(&said, None);
                events.push(gemini::error(503, "UNAVAILABLE", message));
                nameless(&events)
            }
        };
        sse(body, Vec::new())
    }

    /// An error status in the vendor's shape, with the vendor's name for it.
    pub fn status(self, status: u16, message: &str) -> Answer {
        let name = |names: &[(u16, &'static str)], other: &'static str| {
            names.iter().find(|(s, _)| *s == status).map_or(other, |(_, name)| name)
        };
        match self {
            Self::Anthropic => {
                let names = [
                    (400, "invalid_request_error"),
                    (401, "authentication_error"),
                    (413, "request_too_large"),
                    (429, "rate_limit_error"),
                    (529, "overloaded_error"),
                ];
                Answer::status(status, name(&names, "api_error"), message)
            }
            Self::Responses | Self::Chat => {
                let names = [
                    (400, "invalid_request_error"),
                    (401, "invalid_api_key"),
                    (413, "invalid_request_error"),
                    (429, "rate_limit_exceeded"),
                ];
                let body = chat::error(status, name(&names, "server_error"), message);
                refusal(status, &body)
            }
            Self::Gemini => {
                let names = [
                    (400, "INVALID_ARGUMENT"),
                    (401, "UNAUTHENTICATED"),
                    (413, "INVALID_ARGUMENT"),
                    (429, "RESOURCE_EXHAUSTED"),
                    (500, "INTERNAL"),
                ];
                refusal(status, &gemini::error(status, name(&names, "UNAVAILABLE"), message))
            }
        }
    }

    pub(super) fn refuses(self, refusal: &Refusal) -> Answer {
        let Refusal { status, kind, message } = refusal;
        match self {
            Self::Anthropic => Answer::status(*status, kind, message),
            Self::Responses | Self::Chat => {
                self::refusal(*status, &chat::error(*status, kind, message))
            }
            Self::Gemini => self::refusal(*status, &gemini::error(*status, kind, message)),
        }
    }

    pub(super) fn check(
        self,
        line: &str,
        headers: &[(String, String)],
        key: Option<&str>,
        body: &Value,
        issued: &[Issued],
    ) -> Result<(), Refusal> {
        match self {
            Self::Anthropic => {
                super::rules::check(line, headers, key)?;
                super::rules::check_body(body, issued)
            }
            Self::Responses => {
                chat::check_head(line, "/v1/responses", headers, key)?;
                responses::check(body, issued)
            }
            Self::Chat => {
                chat::check_head(line, "/v1/chat/completions", headers, key)?;
                chat::check(body)
            }
            Self::Gemini => {
                gemini::check_head(line, headers, key)?;
                gemini::check(body, issued)
            }
        }
    }
}

fn sse(body: String, issued: Vec<Issued>) -> Answer {
    let answer = Answer::raw(200, "text/event-stream; charset=utf-8", body.as_bytes())
        .header("x-request-id", "req_stream");
    Answer { issued, ..answer }
}

fn refusal(status: u16, body: &Value) -> Answer {
    let body = body.to_string();
    Answer::raw(status, "application/json", body.as_bytes()).header("x-request-id", "req_test")
}

fn named(events: &[Value]) -> String {
    events
        .iter()
        .map(|e| format!("event: {}\ndata: {e}\n\n", e["type"].as_str().unwrap_or_default()))
        .collect()
}

fn nameless(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Signatures that must come back: a thought's, with the calls of the same answer.
fn issued(said: &[Say]) -> Vec<Issued> {
    super::issued(said)
}
