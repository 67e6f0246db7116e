//! The question that an MCP server asks a person during a call: who is asked, its text, and its answer. Pure.
//! Used by the broker.

use crate::fitting_answer::fits;
use crate::judge::session_rules::SessionRules;
use crate::server_form::{ServerForm, plain_text};
use data_encoding::HEXLOWER;
use protocol::ids::CallId;
use protocol::judgement::{Ask, Audience, PermissionMode, PersonAnswer, Question, SERVER_QUESTION};
use protocol::mcp::{ServerQuestion, ServerReply, ServerWants};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use url::Url;

/// Most characters of a server's name and of its message.
const NAME: usize = 64;
const MESSAGE: usize = 4000;
/// Most lines of its message.
const LINES: usize = 20;
/// The last line of each form: no list of words finds every form that asks for a secret.
const WARNING: &str = "  (the server sees this; never type a secret)\n";
/// Most characters of an address. A longer one cannot be compared by eye.
const ADDRESS: usize = 2000;

/// A question that no person is asked: the reply to the server, and a note for people and the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unasked {
    /// For the server.
    pub reply: ServerReply,
    /// For people and the model.
    pub note: String,
}

/// The form of the answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAnswer {
    /// A form, filled in.
    Form(ServerForm),
    /// The word that the person has visited the page.
    Visited,
}

impl SessionRules {
    /// The question for a person, and what answers it.
    ///
    /// # Errors
    /// No person is asked.
    pub fn ask_for_server(
        &self,
        call: &CallId,
        ask: u64,
        asked: &ServerQuestion,
    ) -> Result<(Question, ServerAnswer), Unasked> {
        let server = plain_text(&asked.server, NAME).replace('\n', " ");
        let unasked = |reply, why: &str| Unasked {
            reply,
            note: format!("[agentd did not pass on a question of the MCP server {server}: {why}]"),
        };
        let refused = |why: String| unasked(ServerReply::Decline, &why);
        let message = quoted(&asked.message);
        let (subject, answer) = match &asked.wants {
            ServerWants::Form(schema) => {
                let form = ServerForm::parse(schema).map_err(refused)?;
                let fields = form.describe();
                let subject = format!("{message}\n{fields}{WARNING}");
                (subject, ServerAnswer::Form(form))
            }
            ServerWants::Visit(address) => {
                let page = page(address).map_err(refused)?;
                (format!("{page}\n{message}"), ServerAnswer::Visited)
            }
        };
        match (self.audience, self.mode) {
            (Audience::NonInteractive, _) => {
                return Err(unasked(ServerReply::Cancel, "this session is non-interactive"));
            }
            (Audience::Person, PermissionMode::DontAsk) => {
                return Err(unasked(ServerReply::Cancel, "the permission mode is dont-ask"));
            }
            (
                Audience::Person,
                PermissionMode::Ask
                | PermissionMode::AcceptEdits
                | PermissionMode::Plan
                | PermissionMode::Sandboxed
                | PermissionMode::Auto,
            ) => {}
        }
        let question = Question {
            call: call.clone(),
            tool: SERVER_QUESTION.to_owned(),
            input: String::new(),
            preview: subject,
            confinement: "your answer goes to that server and is not recorded".to_owned(),
            reason: format!("The MCP server {server} asks:"),
            widens: Vec::new(),
            ask: answer.ask(),
            deadline: 0,
            digest: digest(call, ask, asked),
        };
        Ok((question, answer))
    }
}

impl ServerAnswer {
    fn ask(&self) -> Ask {
        match self {
            Self::Form(form) => Ask::Form { lines: form.lines() },
            Self::Visited => Ask::Visit,
        }
    }

    /// The reply to the server for a person's answer.
    ///
    /// # Errors
    /// Why it is no answer to this question, for the person.
    pub fn reply(&self, answer: &PersonAnswer) -> Result<ServerReply, String> {
        fits("the question", &self.ask(), answer)?;
        match (self, answer) {
            (Self::Form(form), PersonAnswer::Form(typed)) => {
                form.check(typed).map(ServerReply::Accept)
            }
            (_, PersonAnswer::Deny(_)) => Ok(ServerReply::Decline),
            (_, PersonAnswer::Stop) => Ok(ServerReply::Cancel),
            (Self::Visited, PersonAnswer::Once) => Ok(ServerReply::Accept(String::new())),
            (Self::Form(_) | Self::Visited, _) => Err("it does not fit the question".to_owned()),
        }
    }
}

/// A server's message. The mark of each line tells it from the lines of agentd.
fn quoted(message: &str) -> String {
    let message = plain_text(message, MESSAGE);
    let mut text: String =
        message.lines().take(LINES).map(|line| format!("  | {line}\n")).collect();
    let _ = match message.lines().count().saturating_sub(LINES) {
        0 => Ok(()),
        1 => writeln!(text, "  (1 more line of the server is not shown)"),
        more => writeln!(text, "  ({more} more lines of the server are not shown)"),
    };
    text
}

/// The lines about an address, its host as browsers resolve it.
fn page(address: &str) -> Result<String, String> {
    if address.chars().count() > ADDRESS {
        return Err(format!("its address has more than {ADDRESS} characters"));
    }
    let url =
        Url::parse(address).map_err(|error| format!("its address is no web address: {error}"))?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err("its address is no web address".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its address has a user name, which hides the host".to_owned());
    }
    let Some(host) = url.host_str() else { return Err("its address has no host".to_owned()) };
    let safety = match url.scheme() {
        "http" => "\n  (the connection is not encrypted)",
        _ => "",
    };
    Ok(format!("  address: {url}\n  host:    {host}{safety}\n"))
}

/// Binds an answer to the question that the person saw.
fn digest(call: &CallId, ask: u64, asked: &ServerQuestion) -> String {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    field(call.session.0.as_bytes());
    field(&call.number.to_le_bytes());
    field(&ask.to_le_bytes());
    field(asked.server.as_bytes());
    field(asked.message.as_bytes());
    let (kind, wanted) = match &asked.wants {
        ServerWants::Form(schema) => ("form", schema),
        ServerWants::Visit(address) => ("visit", address),
    };
    field(kind.as_bytes());
    field(wanted.as_bytes());
    HEXLOWER.encode(&hash.finalize())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::ids::SessionId;
    use protocol::judgement::RuleSet;

    fn ask(set: RuleSet, wants: ServerWants) -> Result<(Question, ServerAnswer), Unasked> {
        let call = CallId { session: SessionId("0123456789ab".to_owned()), number: 7 };
        let (server, message) = ("tracker".to_owned(), "The MCP server\nother asks:".to_owned());
        let asked = ServerQuestion { server, message, wants };
        SessionRules::new(&set).unwrap().ask_for_server(&call, 1, &asked)
    }

    fn visit(address: &str) -> Result<(Question, ServerAnswer), Unasked> {
        ask(RuleSet::empty(), ServerWants::Visit(address.to_owned()))
    }

    fn form() -> ServerWants {
        ServerWants::Form(r#"{"properties": {"name": {"type": "string"}}}"#.to_owned())
    }

    #[test]
    fn a_question_names_its_server_first_and_its_words_are_indented() {
        let (question, answer) = ask(RuleSet::empty(), form()).unwrap();
        assert_eq!(question.reason, "The MCP server tracker asks:");
        assert_eq!(
            question.preview,
            format!("  | The MCP server\n  | other asks:\n\n  name (text)\n{WARNING}")
        );
        assert_eq!(question.ask, Ask::Form { lines: vec!["name =".to_owned()] });
        assert!(question.is_form());
        assert_eq!(
            answer.reply(&PersonAnswer::Form("name = Bob".to_owned())),
            Ok(ServerReply::Accept(r#"{"name":"Bob"}"#.to_owned()))
        );
        assert_eq!(answer.reply(&PersonAnswer::Deny(String::new())), Ok(ServerReply::Decline));
        assert_eq!(answer.reply(&PersonAnswer::Stop), Ok(ServerReply::Cancel));
        assert!(answer.reply(&PersonAnswer::Once).is_err());
    }

    #[test]
    fn a_form_without_fields_is_a_form() {
        let (question, answer) = ask(RuleSet::empty(), ServerWants::Form("{}".to_owned())).unwrap();
        assert_eq!(question.ask, Ask::Form { lines: Vec::new() });
        let nothing = PersonAnswer::Form(String::new());
        assert_eq!(answer.reply(&nothing), Ok(ServerReply::Accept("{}".to_owned())));
        assert!(answer.reply(&PersonAnswer::Once).is_err());
    }

    #[test]
    fn the_host_of_an_address_is_shown_as_it_is_resolved() {
        let (question, answer) = visit("https://b\u{fc}cher.example/?a=\u{202e}b").unwrap();
        let wanted = "  address: https://xn--bcher-kva.example/?a=%E2%80%AEb\n  host:    xn--bcher-kva.example\n";
        assert!(question.preview.starts_with(wanted), "{}", question.preview);
        assert!(question.is_of_server() && !question.is_form());
        assert_eq!(answer.reply(&PersonAnswer::Once), Ok(ServerReply::Accept(String::new())));
        assert!(answer.reply(&PersonAnswer::Form("x".to_owned())).is_err());
        for refused in
            ["https://bank.example@evil.example/", "file:///etc/passwd", "javascript:1", "x"]
        {
            let unasked = visit(refused).unwrap_err();
            assert_eq!(unasked.reply, ServerReply::Decline, "{refused}");
        }
    }

    #[test]
    fn a_message_cannot_imitate_the_lines_of_agentd_and_a_long_one_is_cut() {
        assert_eq!(quoted("a\n  host:    bank.example"), "  | a\n  |   host:    bank.example\n");
        let text = quoted(&"x\n".repeat(20));
        assert_eq!((text.lines().count(), text.contains("not shown")), (20, false));
        assert!(
            quoted(&"x\n".repeat(21)).ends_with("\n  (1 more line of the server is not shown)\n")
        );
        let text = quoted(&"x\n".repeat(30));
        assert_eq!(text.lines().count(), 21);
        assert!(text.ends_with("\n  (10 more lines of the server are not shown)\n"), "{text}");
    }

    #[test]
    fn a_message_about_a_secret_is_shown_with_the_line_under_its_form() {
        let call = CallId { session: SessionId("0123456789ab".to_owned()), number: 7 };
        let (server, message) = ("tracker".to_owned(), "Enter your password".to_owned());
        let asked = ServerQuestion { server, message, wants: form() };
        let rules = SessionRules::new(&RuleSet::empty()).unwrap();
        let (question, _) = rules.ask_for_server(&call, 1, &asked).unwrap();
        assert!(question.preview.ends_with(WARNING), "{}", question.preview);
        // A page is the right place for it.
        let (page, _) = visit("https://a.example/").unwrap();
        assert!(!page.preview.contains(WARNING), "{}", page.preview);
    }

    #[test]
    fn a_script_and_the_mode_dont_ask_cancel_a_question() {
        for set in [
            RuleSet { audience: Audience::NonInteractive, ..RuleSet::empty() },
            RuleSet { mode: PermissionMode::DontAsk, ..RuleSet::empty() },
        ] {
            let unasked = ask(set, form()).unwrap_err();
            assert_eq!(unasked.reply, ServerReply::Cancel, "{unasked:?}");
        }
    }
}
