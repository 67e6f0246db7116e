//! Answers to the questions of MCP servers: passed on to the call, and shown as closed. Used by the session
//! actor.

use super::state::SessionActorState;
use crate::journal_writer::CopyWait;
use crate::messages::{RepliedQuestion, SessionMsg};
use call::{CallInput, QuestionReply, ServerInput};
use journal::JournalRecord;
use protocol::ids::CallId;
use protocol::judgement::PersonAnswer;
use ractor::ActorRef;

impl SessionActorState {
    /// The broker took an answer to a server's question, or no person is asked.
    pub(super) async fn on_replied(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        replied: RepliedQuestion,
    ) {
        let RepliedQuestion { call, reply, by, note } = replied;
        let sent = by.as_ref().and_then(|_| self.questions.settled(&call));
        self.questions.close(&call);
        self.workers.broker.made_progress();
        let reply = QuestionReply { reply, by, note };
        self.calls.running.send(&call, CallInput::OfServer(ServerInput::Replied(reply)));
        if sent.is_some_and(|sent| sent.answer == PersonAnswer::Stop) {
            let steps = self.turn.router.interrupt();
            self.carry_out(myself, steps).await;
        }
    }

    /// Writes the records of a call. A server's question that is closed is shown no longer.
    pub(super) async fn record_of_call(
        &mut self,
        records: Vec<JournalRecord>,
    ) -> Result<CopyWait, String> {
        for record in &records {
            if let Some(number) = record.closed_question() {
                let call = CallId { session: self.spec.id.clone(), number };
                self.questions.close(&call);
            }
        }
        self.record_aside(records).await
    }
}
