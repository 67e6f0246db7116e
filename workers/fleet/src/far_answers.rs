//! The answers to questions that count from a terminal on another host: a refusal, and `y` for a call that needs
//! no right beyond the session. Pure.

use protocol::client::{ClientEvent, ToClient};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{ExtraRight, PersonAnswer, Question};
use std::collections::BTreeMap;

/// The open questions that a terminal was shown.
#[derive(Debug, Default)]
pub(crate) struct ShownQuestions {
    open: BTreeMap<CallId, Question>,
    /// The session whose events it sees, and the newest of them.
    seen: Option<(SessionId, u64)>,
}

impl ShownQuestions {
    /// The daemon says this to the terminal.
    pub(crate) fn hear(&mut self, message: ToClient) {
        let ToClient::Event { session, seq, event } = message else { return };
        self.seen = Some((session, seq));
        match event {
            ClientEvent::Asked { question } => {
                self.open.insert(question.call.clone(), question);
            }
            ClientEvent::Decided { call, .. } | ClientEvent::CallEnded { call, .. } => {
                self.open.remove(&call);
            }
            ClientEvent::Prompt { .. }
            | ClientEvent::Delta { .. }
            | ClientEvent::Struck { .. }
            | ClientEvent::Answer { .. }
            | ClientEvent::Proposed { .. }
            | ClientEvent::Started { .. }
            | ClientEvent::Output { .. }
            | ClientEvent::InBackground { .. }
            | ClientEvent::TurnEnded { .. }
            | ClientEvent::Compacted(_)
            | ClientEvent::Queue { .. }
            | ClientEvent::Changed { .. }
            | ClientEvent::Model { .. }
            | ClientEvent::Learned { .. }
            | ClientEvent::Notice { .. }
            | ClientEvent::AnswerRejected { .. }
            | ClientEvent::Degraded { .. } => {}
        }
    }

    /// Checks that an answer gives no right beyond the host's configuration. The digest binds it to the question
    /// that is checked here: if the daemon asks another one by now, it rejects the answer.
    ///
    /// # Errors
    /// Why the answer does not count.
    pub(crate) fn check(
        &self,
        call: &CallId,
        digest: &str,
        answer: &PersonAnswer,
    ) -> Result<(), String> {
        // Words for the model give no right.
        let (answer, _) = answer.clone().split_note();
        let gives = match &answer {
            PersonAnswer::Deny(_) | PersonAnswer::Stop | PersonAnswer::Chosen(_) => return Ok(()),
            PersonAnswer::Session(_) | PersonAnswer::Always(_) | PersonAnswer::Everywhere(_) => {
                "allows later calls too"
            }
            PersonAnswer::Form(_) | PersonAnswer::Noted(..) => "fills in a server's form",
            PersonAnswer::Mode(_) => "changes the permission mode",
            PersonAnswer::Once => match self.open.get(call).filter(|it| it.digest == digest) {
                None => return Err("this question is not open any more".to_owned()),
                Some(question) if question.is_plan() => "changes the permission mode",
                Some(question) if question.is_of_server() => "consents to a server's request",
                Some(question) if question.keeps_memory() => "changes what later sessions read",
                Some(question) => match question.widens.first() {
                    None => return Ok(()),
                    Some(ExtraRight::Network) => "gives the call the network",
                    Some(ExtraRight::Hosts(_)) => "gives the call hosts of the network",
                    Some(ExtraRight::Directory(_)) => "gives the call another directory",
                    Some(ExtraRight::GitAdmin) => "gives the call git's settings",
                    Some(ExtraRight::GitSign) => "gives the call git's signatures",
                },
            },
        };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Err(format!(
            "it {gives}, and a terminal on another host may not give what the session's host does not give by its \
             configuration. Answer on the host {host}, or refuse; `Allow once` counts here for a call without further rights"
        ))
    }

    /// The message that an answer does not count.
    pub(crate) fn rejection(&self, call: CallId, reason: String) -> ToClient {
        let (session, seq) = self.seen.clone().unwrap_or_else(|| (call.session.clone(), 0));
        ToClient::Event { session, seq, event: ClientEvent::AnswerRejected { call, reason } }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::judgement::{Ask, PermissionMode};

    fn question(session: &str, digest: &str, widens: Vec<ExtraRight>) -> Question {
        Question {
            call: CallId { session: SessionId(session.to_owned()), number: 1 },
            tool: "bash".to_owned(),
            input: String::new(),
            preview: String::new(),
            confinement: String::new(),
            reason: String::new(),
            widens,
            ask: Ask::Call { rules: vec!["bash:ls".to_owned()], modes: Vec::new() },
            deadline: 0,
            digest: digest.to_owned(),
        }
    }

    fn shown(questions: impl IntoIterator<Item = Question>) -> ShownQuestions {
        let mut shown = ShownQuestions::default();
        for question in questions {
            let (session, event) = (SessionId("s1".to_owned()), ClientEvent::Asked { question });
            shown.hear(ToClient::Event { session, seq: 7, event });
        }
        shown
    }

    #[test]
    fn y_counts_for_a_call_without_further_rights() {
        for session in ["s1", "s1-2"] {
            let plain = question(session, "d", Vec::new());
            shown([plain.clone()]).check(&plain.call, "d", &PersonAnswer::Once).unwrap();
            for right in [
                ExtraRight::Network,
                ExtraRight::Hosts(Vec::new()),
                ExtraRight::Directory("/etc".into()),
                ExtraRight::GitAdmin,
                ExtraRight::GitSign,
            ] {
                let wide = question(session, "d", vec![right]);
                let at = shown([wide.clone()]);
                let why = at.check(&wide.call, "d", &PersonAnswer::Once).unwrap_err();
                assert!(why.contains("configuration") && why.contains("on the host"), "{why}");
                for refusal in [PersonAnswer::Deny("no".to_owned()), PersonAnswer::Stop] {
                    at.check(&wide.call, "d", &refusal).unwrap();
                }
            }
        }
    }

    #[test]
    fn no_answer_holds_longer_than_its_call() {
        let plain = question("s1", "d", Vec::new());
        let at = shown([plain.clone()]);
        for answer in [
            PersonAnswer::Session("bash:ls".to_owned()),
            PersonAnswer::Always("bash:ls".to_owned()),
            PersonAnswer::Form("a".to_owned()),
            PersonAnswer::Mode(PermissionMode::Auto),
        ] {
            assert!(at.check(&plain.call, "d", &answer).is_err(), "{answer:?}");
            let noted = answer.noted("please");
            assert!(at.check(&plain.call, "d", &noted).is_err(), "{noted:?}");
        }
        at.check(&plain.call, "d", &PersonAnswer::Once.noted("please")).unwrap();
        for ask in [Ask::Plan { modes: Vec::new() }, Ask::Visit] {
            let other = Question { ask: ask.clone(), ..plain.clone() };
            let at = shown([other.clone()]);
            assert!(at.check(&other.call, "d", &PersonAnswer::Once).is_err(), "{ask:?}");
        }
    }

    #[test]
    fn an_answer_counts_for_the_question_that_was_shown() {
        let (plain, wide) = (question("s1", "d", Vec::new()), vec![ExtraRight::Network]);
        let wide = Question { digest: "e".to_owned(), widens: wide, ..plain.clone() };
        let once = PersonAnswer::Once;
        let replaced = shown([plain.clone(), wide]);
        for digest in ["d", "e"] {
            assert!(replaced.check(&plain.call, digest, &once).is_err(), "{digest}");
        }
        assert!(ShownQuestions::default().check(&plain.call, "d", &once).is_err());
        let mut decided = shown([plain.clone()]);
        let (call, basis) = (plain.call.clone(), String::new());
        let event = ClientEvent::Decided { call, allowed: true, basis };
        decided.hear(ToClient::Event { session: plain.call.session.clone(), seq: 8, event });
        assert!(decided.check(&plain.call, "d", &once).is_err());
        let rejected = decided.rejection(plain.call, "why".to_owned());
        assert!(matches!(rejected, ToClient::Event { seq: 8, .. }), "{rejected:?}");
    }
}
