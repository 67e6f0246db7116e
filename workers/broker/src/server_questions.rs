//! The questions that MCP servers ask people: open until an answer, or until the call forgets them. Used by
//! the broker.

use approval::{ServerAnswer, SessionRules, Unasked};
use protocol::broker::FromBroker;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{PersonAnswer, Verdict};
use protocol::mcp::{ServerQuestion, ServerReply};
use std::collections::BTreeMap;

/// Questions that are open, and those of sessions whose rules have not come. A call has one at a time.
#[derive(Debug, Default)]
pub(crate) struct ServerQuestions {
    open: BTreeMap<CallId, OpenServerQuestion>,
    waiting: BTreeMap<CallId, AskedByServer>,
}

/// A question and its number among those of the call.
#[derive(Debug, Clone)]
pub(crate) struct AskedByServer {
    pub(crate) ask: u64,
    pub(crate) question: ServerQuestion,
}

#[derive(Debug)]
struct OpenServerQuestion {
    asked: AskedByServer,
    digest: String,
    answer: ServerAnswer,
}

impl ServerQuestions {
    pub(crate) fn count(&self) -> usize {
        self.open.len() + self.waiting.len()
    }

    /// Keeps a question until the rules of its session come.
    pub(crate) fn wait(&mut self, call: CallId, asked: AskedByServer) {
        self.waiting.insert(call, asked);
    }

    /// Asks a person, or replies at once.
    pub(crate) fn ask(
        &mut self,
        call: CallId,
        asked: AskedByServer,
        rules: &SessionRules,
    ) -> FromBroker {
        match rules.ask_for_server(&call, asked.ask, &asked.question) {
            Ok((question, answer)) => {
                let digest = question.digest.clone();
                self.open.insert(call.clone(), OpenServerQuestion { asked, digest, answer });
                FromBroker::Verdict { call, verdict: Verdict::Ask(question) }
            }
            Err(Unasked { reply, note }) => {
                self.open.remove(&call);
                FromBroker::Replied { call, reply, by: None, note: Some(note) }
            }
        }
    }

    /// The session has these rules now: its questions wait no longer, and those that nobody can answer any
    /// more are closed.
    pub(crate) fn on_rules(
        &mut self,
        session: &SessionId,
        rules: &SessionRules,
    ) -> Vec<FromBroker> {
        let mut out = Vec::new();
        let waiting = std::mem::take(&mut self.waiting);
        let (ready, waiting): (BTreeMap<_, _>, _) =
            waiting.into_iter().partition(|(call, _)| call.session == *session);
        self.waiting = waiting;
        for (call, asked) in ready {
            out.push(self.ask(call, asked, rules));
        }
        let open = self.open.iter().filter(|(call, _)| call.session == *session);
        let closed = open.filter_map(|(call, it)| {
            let again = rules.ask_for_server(call, it.asked.ask, &it.asked.question);
            again.err().map(|unasked| (call.clone(), unasked))
        });
        for (call, Unasked { reply, note }) in closed.collect::<Vec<_>>() {
            self.open.remove(&call);
            out.push(FromBroker::Replied { call, reply, by: None, note: Some(note) });
        }
        out
    }

    /// A person's answer, if a server's question of this call is open. An answer that does not fit leaves it
    /// open.
    pub(crate) fn answer(
        &mut self,
        call: &CallId,
        digest: &str,
        answer: &PersonAnswer,
        by: &str,
    ) -> Option<Result<ServerReply, String>> {
        let open = self.open.get(call)?;
        if open.digest != digest {
            return Some(Err(format!(
                "question {call} is no longer the one that you saw; read it again"
            )));
        }
        let reply = open.answer.reply(answer);
        if reply.is_ok() {
            self.open.remove(call);
            tracing::debug!(%call, by, "a server's question is answered");
        }
        Some(reply)
    }

    /// The question is gone; true if it was open.
    pub(crate) fn forget(&mut self, call: &CallId) -> bool {
        self.waiting.remove(call);
        self.open.remove(call).is_some()
    }

    pub(crate) fn end_session(&mut self, session: &SessionId) {
        self.waiting.retain(|call, _| call.session != *session);
        self.open.retain(|call, _| call.session != *session);
    }
}
