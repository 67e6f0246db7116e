//! Questions of a server to people (elicitation), in the terms of agentd's wire. Pure. Used by the client and
//! by the calls.

use protocol::mcp::{ServerQuestion, ServerReply, ServerWants};
use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::Value;

/// Most bytes of a question. A form with all of its choices is far smaller.
const QUESTION: usize = 128 * 1024;

/// The question in the parameters of `elicitation/create`. They are read as the server sent them, so that a
/// field of a kind that the library does not know is refused with its reason.
///
/// # Errors
/// Why it is none.
pub(crate) fn question(server: &str, params: &Value) -> Result<ServerQuestion, String> {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let wants = match text("mode") {
        Some("form") | None => {
            let schema = params.get("requestedSchema").ok_or("a form without a schema")?;
            ServerWants::Form(schema.to_string())
        }
        Some("url") => ServerWants::Visit(text("url").ok_or("an address is missing")?.to_owned()),
        Some(_) => return Err("a question of a kind that agentd does not know".to_owned()),
    };
    let message = text("message").unwrap_or_default().to_owned();
    let length = match &wants {
        ServerWants::Form(schema) => schema.len(),
        ServerWants::Visit(address) => address.len(),
    };
    if message.len() + length > QUESTION {
        return Err(format!("a question of more than {QUESTION} bytes"));
    }
    Ok(ServerQuestion { server: server.to_owned(), message, wants })
}

/// The answer as the server gets it.
pub(crate) fn result(reply: &ServerReply) -> ElicitResult {
    let action = match reply {
        ServerReply::Accept(_) => ElicitationAction::Accept,
        ServerReply::Decline => ElicitationAction::Decline,
        ServerReply::Cancel => ElicitationAction::Cancel,
    };
    let result = ElicitResult::new(action);
    match reply {
        ServerReply::Accept(answers) if !answers.is_empty() => {
            result.with_content(serde_json::from_str(answers).unwrap_or_default())
        }
        ServerReply::Accept(_) | ServerReply::Decline | ServerReply::Cancel => result,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_is_read_as_the_server_sent_it() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string", "format": "x"}}});
        let form = json!({"message": "Which?", "requestedSchema": schema});
        let asked = question("t", &form).unwrap();
        assert_eq!(asked.wants, ServerWants::Form(schema.to_string()));
        let visit = json!({"mode": "url", "message": "", "url": "https://a.example/"});
        let asked = question("t", &visit).unwrap();
        assert_eq!(asked.wants, ServerWants::Visit("https://a.example/".to_owned()));
        for bad in [
            json!({"message": "Which?"}),
            json!({"mode": "url"}),
            json!({"mode": "voice", "requestedSchema": {}}),
            json!({"message": "x".repeat(QUESTION), "requestedSchema": {}}),
            json!(null),
        ] {
            assert!(question("t", &bad).is_err(), "{bad:.80}");
        }
    }

    #[test]
    fn answers_reach_the_server_with_an_acceptance_only() {
        let sent = |reply| serde_json::to_value(result(&reply)).unwrap();
        let accept = sent(ServerReply::Accept(r#"{"a":1}"#.to_owned()));
        assert_eq!(accept, json!({"action": "accept", "content": {"a": 1}}));
        assert_eq!(sent(ServerReply::Accept(String::new())), json!({"action": "accept"}));
        assert_eq!(sent(ServerReply::Decline), json!({"action": "decline"}));
        assert_eq!(sent(ServerReply::Cancel), json!({"action": "cancel"}));
    }
}
