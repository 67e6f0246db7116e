//! Calls that an MCP server works on: its answer, and the questions that it asks people meanwhile. One is open at a time;
//! the others wait. The README of this crate has the transitions.
//!
//! The record of an answer is on disk before the server gets it.

use super::CallMachine;
use crate::effect::{CallEffect, CallRecord, Cut};
use crate::facts::Executor;
use crate::phase::CallPhase;
use crate::server_ask::{
    QuestionReply, ServerAsk, ServerAsks, ServerDemand, ServerEffect, ServerInput, ServerRequest,
};
use protocol::call::RunReport;
use protocol::confinement::Enforced;
use protocol::judgement::Question;
use protocol::mcp::ReplyAction;

/// Most questions of a call that wait, and most of a call.
const WAITING: usize = 8;
const ALL: u32 = 32;
const LATE: &str = "was not ended by its MCP server in its time";

impl CallMachine {
    fn server_asks(&self) -> Option<&ServerAsks> {
        match &self.phase {
            CallPhase::AtOtherCall(asks) => Some(asks),
            CallPhase::New
            | CallPhase::CacheLookup
            | CallPhase::FetchingRestore
            | CallPhase::Probing
            | CallPhase::AskingUndo
            | CallPhase::Judging
            | CallPhase::Starting { .. }
            | CallPhase::Released { .. }
            | CallPhase::Recording { .. }
            | CallPhase::Running
            | CallPhase::AtStore
            | CallPhase::AtSubAgent
            | CallPhase::Reported(_)
            | CallPhase::Repairing { .. }
            | CallPhase::Over => None,
        }
    }

    fn server_asks_mut(&mut self) -> Option<&mut ServerAsks> {
        self.server_asks()?;
        let CallPhase::AtOtherCall(asks) = &mut self.phase else { return None };
        Some(asks)
    }

    /// True if a server's question is open.
    pub(super) fn has_server_question(&self) -> bool {
        self.server_asks().is_some_and(|asks| !asks.asks.is_empty())
    }

    /// Its answer, with its cage.
    pub(super) fn on_server_answered(
        &mut self,
        (report, enforced): (RunReport, Option<Enforced>),
    ) -> Vec<CallEffect> {
        if !self.phase.is_at_other_call() {
            return Vec::new();
        }
        self.enforced = enforced;
        self.conclude_with(report.result.clone(), Some(report), Cut::No)
    }

    /// It ended before it answered.
    pub(super) fn on_server_lost(&mut self, cause: String) -> Vec<CallEffect> {
        match self.phase.is_at_other_call() {
            true => self.conclude_cut_short(Cut::AfterGo { cause }),
            false => Vec::new(),
        }
    }

    pub(super) fn on_server_input(&mut self, input: ServerInput) -> Vec<CallEffect> {
        match input {
            ServerInput::Asks(asked) => self.on_server_asks(asked),
            ServerInput::Unasked(ask) => self.on_server_unasked(ask),
            ServerInput::Replied(reply) => self.on_replied(reply),
            ServerInput::Late => self.on_server_late(),
        }
    }

    fn on_server_asks(&mut self, asked: ServerAsk) -> Vec<CallEffect> {
        let Some(asks) = self.server_asks_mut() else { return Vec::new() };
        asks.count += 1;
        if asks.asks.len() >= WAITING || asks.count > ALL {
            let reply = QuestionReply::cancelled(&asked.question.server, "it asks too much");
            return self.reply(asked.ask, reply);
        }
        asks.since_late = true;
        asks.asks.push_back(asked);
        match asks.asks.len() {
            1 => self.put_server_question(),
            _ => Vec::new(),
        }
    }

    /// Puts the first question, as a new one.
    fn put_server_question(&mut self) -> Vec<CallEffect> {
        self.pending_question = None;
        match self.broker_failure.clone() {
            Some(why) => self.no_broker_for_servers(&why),
            None => self.ask_for_server(),
        }
    }

    fn ask_for_server(&self) -> Vec<CallEffect> {
        let first = self.server_asks().and_then(|asks| asks.asks.front());
        let ask = |first: &ServerAsk| {
            CallEffect::OfServer(ServerEffect::Ask(first.ask, first.question.clone()))
        };
        first.map(ask).into_iter().collect()
    }

    /// The broker made this question of the open one.
    pub(super) fn on_server_question(&mut self, question: Question) -> Vec<CallEffect> {
        match self.has_server_question() {
            true => self.ask(question),
            false => Vec::new(),
        }
    }

    fn on_replied(&mut self, reply: QuestionReply) -> Vec<CallEffect> {
        let first = self.server_asks_mut().and_then(|asks| asks.asks.pop_front());
        let Some(first) = first else { return Vec::new() };
        let mut effects = self.answered(reply.reply.action(), reply.by.clone());
        effects.extend(self.reply(first.ask, reply));
        effects.extend(self.next_server_question());
        effects
    }

    /// The record of an answer, if people saw the question.
    fn answered(&mut self, action: ReplyAction, by: Option<String>) -> Vec<CallEffect> {
        match self.pending_question.take() {
            Some(_) => vec![CallEffect::Record(vec![CallRecord::Answered(action, by)])],
            None => Vec::new(),
        }
    }

    fn reply(&self, ask: u64, reply: QuestionReply) -> Vec<CallEffect> {
        let Executor::Server(call) = &self.facts.executor else { return Vec::new() };
        let note = reply.note.map(ServerEffect::Note).map(CallEffect::OfServer);
        let (tool, demand) = (call.tool.clone(), ServerDemand::Reply(ask, reply.reply));
        let request = CallEffect::AskServer(ServerRequest { tool, demand });
        note.into_iter().chain([request]).collect()
    }

    fn next_server_question(&mut self) -> Vec<CallEffect> {
        match self.has_server_question() {
            true => self.put_server_question(),
            false => Vec::new(),
        }
    }

    pub(super) fn on_server_question_expired(&mut self) -> Vec<CallEffect> {
        let first = self.server_asks().and_then(|asks| asks.asks.front());
        let Some(server) = first.map(|first| first.question.server.clone()) else {
            return Vec::new();
        };
        if self.pending_question.is_none() {
            return Vec::new();
        }
        let reply = QuestionReply::cancelled(&server, "nobody answered in time");
        std::iter::once(CallEffect::ForgetQuestion).chain(self.on_replied(reply)).collect()
    }

    fn on_server_unasked(&mut self, ask: u64) -> Vec<CallEffect> {
        let Some(asks) = self.server_asks_mut() else { return Vec::new() };
        let is_open = asks.asks.front().is_some_and(|first| first.ask == ask);
        asks.asks.retain(|asked| asked.ask != ask);
        if !is_open {
            return Vec::new();
        }
        let mut effects = vec![CallEffect::ForgetQuestion];
        effects.extend(self.answered(ReplyAction::Cancel, None));
        effects.extend(self.next_server_question());
        effects
    }

    /// The broker restarted and does not know the question.
    pub(super) fn on_broker_back_for_servers(&self) -> Vec<CallEffect> {
        self.ask_for_server()
    }

    pub(super) fn no_broker_for_servers(&mut self, why: &str) -> Vec<CallEffect> {
        let mut effects = Vec::new();
        while let Some(first) = self.server_asks_mut().and_then(|asks| asks.asks.pop_front()) {
            let why = format!("the broker, which asks people, is not available ({why})");
            effects.extend(self.answered(ReplyAction::Cancel, None));
            let reply = QuestionReply::cancelled(&first.question.server, &why);
            effects.extend(self.reply(first.ask, reply));
        }
        effects
    }

    /// The server did not end the call in its time, which does not run while a question is open.
    fn on_server_late(&mut self) -> Vec<CallEffect> {
        let Some(asks) = self.server_asks_mut() else { return Vec::new() };
        let is_open = !asks.asks.is_empty();
        if std::mem::replace(&mut asks.since_late, is_open) || is_open {
            return vec![CallEffect::OfServer(ServerEffect::Await)];
        }
        self.conclude_cut_short(Cut::AfterGo { cause: LATE.to_owned() })
    }
}
