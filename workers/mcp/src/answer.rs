//! The answers of a server in the terms of a call's result. Pure.

use crate::calls::CallFailure;
use crate::challenge::{Challenge, Shown};
use crate::oauth::said;
use crate::readable::UNREADABLE;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::call::{Outcome, RunReport, ToolResult};
use protocol::hidden::line_for_model;
use protocol::hidden::without_hidden;
use rmcp::model::{
    CallToolResult, ContentBlock, PromptMessage, ResourceContents, Role, ServerResult,
};
use rmcp::service::ServiceError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tools::{AnswerPart, server_report};

/// Most characters of an error.
const ERROR: usize = 4000;
/// Most characters of a resource's text in an answer.
const RESOURCE: usize = 200_000;

/// The report of a call with this end.
pub(crate) fn report(
    (server, tool): (&str, &str),
    shown: Shown,
    ended: Result<ServerResult, CallFailure>,
    max: u32,
) -> RunReport {
    match ended {
        Ok(ServerResult::CallToolResult(result)) => {
            let outcome = match result.is_error {
                Some(true) => Outcome::Failed,
                Some(false) | None => Outcome::Done,
            };
            server_report((server, tool), parts(result), outcome, max)
        }
        Ok(ServerResult::ReadResourceResult(result)) => {
            let parts = result.contents.into_iter().map(contents).collect();
            server_report((server, tool), parts, Outcome::Done, max)
        }
        Ok(ServerResult::GetPromptResult(result)) => {
            let parts = result.messages.into_iter().flat_map(message).collect();
            server_report((server, tool), parts, Outcome::Done, max)
        }
        Ok(_) => {
            let why = "the server answered with something that is no result of a tool";
            failed((server, tool), Outcome::Interrupted, "bad_answer", why, max)
        }
        Err(CallFailure::Refused(why)) => {
            let why = format!("agentd does not give the server what it asks for: {why}");
            failed((server, tool), Outcome::Failed, "not_given", &why, max)
        }
        Err(CallFailure::Service(error)) => service_failure((server, tool), shown, error, max),
    }
}

/// The report of a call that the server did not answer, or answered with an error.
fn service_failure(
    (server, tool): (&str, &str),
    shown: Shown,
    error: ServiceError,
    max: u32,
) -> RunReport {
    match error {
        ServiceError::McpError(error) if error.code.0 == UNREADABLE => {
            let why = format!(
                "the call may have run: the server answered, and its answer cannot be read: {}",
                error.message
            );
            failed((server, tool), Outcome::Interrupted, "bad_answer", &why, max)
        }
        // The server understood the request and refused it.
        ServiceError::McpError(error) => {
            let why =
                format!("the server refused the call: {} (code {})", error.message, error.code.0);
            failed((server, tool), Outcome::Failed, "server_error", &why, max)
        }
        ServiceError::Timeout { timeout } => {
            let why = format!(
                "the server has not answered within {} s; the call may have run",
                timeout.as_secs_f64()
            );
            failed((server, tool), Outcome::TimedOut, "timed_out", &why, max)
        }
        ServiceError::TransportClosed => {
            let why = "the MCP server ended before it answered; the call may have run";
            failed((server, tool), Outcome::Interrupted, "interrupted", why, max)
        }
        ServiceError::TransportSend(error) => match Challenge::of(&error) {
            // The server refused the request before it ran anything.
            Some(challenge) => {
                let why = challenge.advice(server, &shown);
                failed((server, tool), Outcome::Failed, "login_required", &why, max)
            }
            None if is_without_token(&error) => {
                let why = match &shown {
                    Shown::LogIn(renewal) => renewal.failure(),
                    Shown::Nothing | Shown::Token => None,
                };
                let why = why.map_or_else(|| said(&error), |failure| failure.advice(server));
                let why = format!("the call did not run: {why}");
                failed((server, tool), Outcome::Failed, "login_required", &why, max)
            }
            None if is_unsent(&error) => {
                let why =
                    format!("the call did not run: no connection to the server: {}", said(&error));
                failed((server, tool), Outcome::Failed, "unreachable", &why, max)
            }
            None => {
                let why = format!("the call may have run: {}", said(&error));
                failed((server, tool), Outcome::Interrupted, "interrupted", &why, max)
            }
        },
        error @ (ServiceError::UnexpectedResponse
        | ServiceError::SubscriptionLagged { .. }
        | ServiceError::Cancelled { .. }
        | ServiceError::InputRequiredRoundsExceeded { .. }
        | _) => {
            let why = format!("the call may have run: {error}");
            failed((server, tool), Outcome::Interrupted, "interrupted", &why, max)
        }
    }
}

/// True for a request over HTTP that had no connection to be sent on.
fn is_unsent(error: &DynamicTransportError) -> bool {
    let error = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    matches!(error, Some(StreamableHttpError::Client(error)) if error.is_connect())
}

/// True for a request over HTTP that was not sent, since there was no token for it.
fn is_without_token(error: &DynamicTransportError) -> bool {
    let error = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    matches!(error, Some(StreamableHttpError::Auth(_)))
}

fn failed(named: (&str, &str), outcome: Outcome, code: &str, why: &str, max: u32) -> RunReport {
    let hint = if outcome == Outcome::Failed {
        ""
    } else {
        "Check what it changed before you call it again."
    };
    let report = server_report(named, Vec::new(), outcome.clone(), max);
    let tool = format!("{} {}", named.0, named.1);
    let why: String = without_hidden(&line_for_model(why)).chars().take(ERROR).collect();
    let result = ToolResult::error(outcome, code, &tool, &why, hint);
    RunReport { result, ..report }
}

/// The parts of an answer that a model can be given.
fn parts(result: CallToolResult) -> Vec<AnswerPart> {
    let has_text = result.content.iter().any(|block| block.as_text().is_some());
    let mut parts: Vec<AnswerPart> = result.content.into_iter().map(part).collect();
    // By the specification the text repeats it; a server may leave that out.
    if let Some(structured) = result.structured_content.filter(|_| !has_text) {
        parts.push(AnswerPart::Text(structured.to_string()));
    }
    parts
}

fn part(block: ContentBlock) -> AnswerPart {
    match block {
        ContentBlock::Text(text) => AnswerPart::Text(text.text),
        ContentBlock::Image(image) => match STANDARD.decode(&image.data) {
            Ok(data) => AnswerPart::Image(data),
            Err(error) => AnswerPart::Text(format!("[an image that is no base64: {error}]")),
        },
        ContentBlock::Audio(audio) => {
            let kind = audio.mime_type;
            AnswerPart::Text(format!("[audio of the type {kind}, which models do not get]"))
        }
        ContentBlock::ResourceLink(link) => {
            let about = link.description.map(|text| format!(": {text}")).unwrap_or_default();
            AnswerPart::Text(format!("[resource {} {}{about}]", link.name, link.uri))
        }
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        _ => AnswerPart::Text("[a part of a kind that agentd does not know]".to_owned()),
    }
}

/// A message of a prompt. Words of the assistant are named as such: the model has not said them.
fn message(message: PromptMessage) -> Vec<AnswerPart> {
    let name = match message.role {
        Role::Assistant => Some(AnswerPart::Text("[an answer, as the prompt has it]".to_owned())),
        Role::User => None,
    };
    name.into_iter().chain([part(message.content)]).collect()
}

/// The contents of a resource that a person named: its address is known.
fn contents(contents: ResourceContents) -> AnswerPart {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => {
            AnswerPart::Text(text.chars().take(RESOURCE).collect())
        }
        other @ (ResourceContents::BlobResourceContents { .. } | _) => resource(other),
    }
}

fn resource(contents: ResourceContents) -> AnswerPart {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            let cut: String = text.chars().take(RESOURCE).collect();
            AnswerPart::Text(format!("[resource {uri}]\n{cut}"))
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.unwrap_or_else(|| "unknown".to_owned());
            match STANDARD.decode(&blob) {
                Ok(data) if tools::is_image(&data) => AnswerPart::Image(data),
                Ok(data) => AnswerPart::Text(format!(
                    "[resource {uri}: {} bytes of the type {kind}, which models do not get]",
                    data.len()
                )),
                Err(error) => {
                    AnswerPart::Text(format!("[resource {uri}: it is no base64: {error}]"))
                }
            }
        }
        _ => AnswerPart::Text("[a resource of a kind that agentd does not know]".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rmcp::transport::auth::AuthError;

    fn told(error: StreamableHttpError<reqwest::Error>) -> (Outcome, String) {
        let named = std::any::TypeId::of::<()>();
        let error = DynamicTransportError::from_parts("http", named, Box::new(error));
        let failure = CallFailure::Service(ServiceError::TransportSend(error));
        let result = report(("far", "tool"), Shown::Nothing, Err(failure), 1000).result;
        (result.outcome.clone(), format!("{result:?}"))
    }

    #[test]
    fn a_call_without_a_connection_did_not_run_and_another_one_may_have() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let client = crate::http_client::client_settings().no_proxy().build().unwrap();
        let request = client.get(format!("http://{closed}/")).send();
        let refused = runtime.block_on(request).unwrap_err();
        let (outcome, text) = told(StreamableHttpError::Client(refused));
        assert_eq!(outcome, Outcome::Failed, "{text}");
        assert!(text.contains("did not run") && !text.contains("may have run"), "{text}");
        let (outcome, text) = told(StreamableHttpError::UnexpectedEndOfStream);
        assert_eq!(outcome, Outcome::Interrupted, "{text}");
        assert!(text.contains("may have run"), "{text}");
        let renewal = AuthError::TokenRefreshFailed("invalid_client".to_owned());
        let (outcome, text) = told(StreamableHttpError::Auth(renewal));
        assert_eq!(outcome, Outcome::Failed, "{text}");
        assert!(text.contains("did not run") && text.contains("invalid_client"), "{text}");
    }
}
