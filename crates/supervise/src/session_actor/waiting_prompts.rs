//! Prompts that wait, on disk, for the running turn or for its end. The router keeps their order.

use super::hook_events;
use super::state::SessionActorState;
use crate::messages::ClientMsg;
use crate::person_prompt::PersonPrompt;
use crate::records::encode;
use crate::route::{Router, WaitingPlace};
use protocol::client::{ClientEvent, WhileBusy};
use ractor::ActorRef;
use setup::session_spec::SessionSpec;
use std::collections::VecDeque;

/// True if words may join the running turn. Those that a hook judges are a turn of their own.
pub(super) fn may_join(state: &SessionActorState) -> bool {
    state.turn.router.may_be_joined() && !hook_events::judge_prompts(&state.spec)
}

/// The prompts that wait in a session that is opened. A hook may be new since.
pub(super) fn reopened(
    mut waiting: VecDeque<PersonPrompt>,
    spec: &SessionSpec,
) -> VecDeque<PersonPrompt> {
    if hook_events::judge_prompts(spec) {
        waiting.iter_mut().for_each(|prompt| prompt.busy = WhileBusy::Queue);
    }
    waiting
}

/// Lets a prompt wait. All clients see a disk failure, and the person still has the text.
pub(super) async fn add(state: &mut SessionActorState, prompt: PersonPrompt) {
    let router = &mut state.turn.router;
    let place = router.place_of(&prompt);
    let records = match &place {
        WaitingPlace::Last => router.queued_with(&prompt).into_iter().map(encode::queued).collect(),
        WaitingPlace::Among(all) => vec![encode::waiting_alone(router.on_disk(all.clone()))],
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
        let record = encode::waiting_alone(state.turn.router.on_disk(taken.rest.clone()));
        if state.events.record(vec![record], &mut state.calls.running).await.is_ok() {
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
