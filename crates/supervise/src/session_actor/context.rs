//! What fills the model's context, for clients that ask: the conversation knows it.

use super::state::SessionActorState;
use crate::messages::{ClientMsg, SessionMsg};
use ractor::ActorRef;

impl SessionActorState {
    pub(super) async fn describe_context(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        client: ActorRef<ClientMsg>,
    ) {
        self.clients.ask_context(client);
        let steps = self.turn.router.describe_context();
        self.carry_out(myself, steps).await;
        self.report_context_unknown();
    }

    /// Answers the clients that wait, if the conversation has failed.
    pub(super) fn report_context_unknown(&mut self) {
        if let Some(why) = self.links.failures.conversation() {
            let why = format!("the context is not known: the conversation has failed: {why}");
            self.clients.report_context(&Err(why));
        }
    }
}
