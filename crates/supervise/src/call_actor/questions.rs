//! Questions to people during a call: their deadlines, and those that an MCP server asks. Used by the call
//! actor.

use super::state::CallState;
use crate::messages::{CallMsg, CallToSession};
use crate::unix_time::now_ms;
use call::{CallInput, ServerEffect, ServerInput};
use protocol::broker::ToBroker;
use protocol::client::ClientEvent;
use ractor::ActorRef;
use std::time::Duration;

/// More time for a server whose call had a question to people.
const MORE_TIME: Duration = Duration::from_secs(610);

impl CallState {
    pub(super) fn server_effect(&mut self, myself: &ActorRef<CallMsg>, effect: ServerEffect) {
        match effect {
            ServerEffect::Ask(ask, question) => {
                let call = self.args.facts.call.id.clone();
                self.args.broker.send(ToBroker::AskForServer { call, ask, question });
                ipc::step!("supervisor: server question sent");
            }
            ServerEffect::Note(text) => {
                let notice = ClientEvent::Notice { text: text.trim_matches(['[', ']']).to_owned() };
                let _ = self.args.session.send_message(CallToSession::Show(notice).into());
                self.args.facts.remarks.add_note(&text);
            }
            ServerEffect::Await => {
                let late = || CallMsg::Input(CallInput::OfServer(ServerInput::Late));
                self.timers.others.push(myself.send_after(MORE_TIME, late));
            }
        }
    }

    pub(super) fn wait_until(&mut self, myself: &ActorRef<CallMsg>, deadline: u64) {
        let left = Duration::from_millis(deadline.saturating_sub(now_ms()));
        self.timers
            .others
            .push(myself.send_after(left, move || CallMsg::QuestionDeadline(deadline)));
    }

    /// Compares the clock with the deadline when the timer fires: timers stop while the machine sleeps,
    /// and Unix time can jump.
    pub(super) fn on_question_deadline(
        &mut self,
        myself: &ActorRef<CallMsg>,
        deadline: u64,
    ) -> Option<CallInput> {
        if now_ms() >= deadline {
            return Some(CallInput::Expired);
        }
        self.wait_until(myself, deadline);
        None
    }
}
