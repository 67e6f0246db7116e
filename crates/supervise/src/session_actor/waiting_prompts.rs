//! Prompts that wait, on disk, for the running turn or for its end. The router keeps their order.

use super::state::SessionActorState;
use crate::messages::ClientMsg;
use crate::person_prompt::PersonPrompt;
use crate::records::encode;
use crate::route::{Router, WaitingPlace};
use protocol::client::ClientEvent;
use ractor::ActorRef;

/// Lets a prompt wait. All clients see a disk failure, and the person still has the text.
pub(super) async fn add(state: &mut SessionActorState, prompt: PersonPrompt) {
    let router = &mut state.turn.router;
    let place = router.place_of(&prompt);
    let records = match &place {
        WaitingPlace::Last => router.queued_with(&prompt).into_iter().map(encode::queued).collect(),
        WaitingPlace::Among(all) => anew(all),
    };
    if state.events.record(records, &mut state.calls.running).await.is_err() {
        return;
    }
    ipc::step!("supervisor: words wait");
    match place {
        WaitingPlace::Last => state.turn.router.enqueue(prompt),
        WaitingPlace::Among(all) => state.turn.router.requeue(all),
    }
    show(state);
    state.route(Router::steer).await;
}

/// Gives a client back the prompts that wait, or the one with this text alone; of several, the newest.
pub(super) async fn take_back(
    state: &mut SessionActorState,
    client: &ActorRef<ClientMsg>,
    only: Option<&str>,
) {
    let mut texts = Vec::new();
    if let Some(taken) = state.turn.router.taken_back(only) {
        let records = anew(&taken.rest);
        if state.events.record(records, &mut state.calls.running).await.is_ok() {
            texts = taken.texts;
            state.turn.router.requeue(taken.rest);
            show(state);
        }
    }
    state.events.clients.give_back(client, texts);
}

/// Shows all clients the prompts that wait.
pub(super) fn show(state: &SessionActorState) {
    state.events.show(&ClientEvent::Queue { waiting: state.turn.router.waiting_texts() });
}

/// All are taken back on disk, and these wait again behind that.
fn anew(waiting: &[PersonPrompt]) -> Vec<journal::JournalRecord> {
    let again = waiting.iter().cloned().map(encode::queued);
    std::iter::once(encode::taken_back()).chain(again).collect()
}
