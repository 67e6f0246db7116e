//! Messages to a client whose session's actor fails or whose session ends.
#![allow(clippy::unwrap_used)]

use super::super::rig::{Peer, live, root_in, shut_down};
use super::*;
use crate::messages::RootToSession;
use protocol::client::{ClientEvent, FromClient, SessionEnding, SessionStart, ToClient};
use protocol::session::OpenTurn;

#[tokio::test]
async fn who_waits_for_a_session_whose_actor_fails_is_told_and_may_open_it_again() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let (mut one, mut other) = (Peer::of(&root), Peer::of(&root));
    let lost = one.open(&project, SessionStart::New).await;
    let kept = other.open(&project, SessionStart::New).await;

    live(&root, &lost).await.unwrap().send_message(RootToSession::Fail.into()).unwrap();
    let word = one.hear().await;
    let ToClient::Event { event: ClientEvent::Degraded { reason }, .. } = &word else {
        panic!("{word:?}")
    };
    assert!(reason.contains("open the session again"), "{reason}");
    let word = one.hear().await;
    assert!(matches!(&word, ToClient::Detached { session, .. } if *session == lost), "{word:?}");

    // The client of another session gets no message, and the failed session can be opened again.
    other.say(&FromClient::Restart { session: kept }).await;
    assert_eq!(other.hear().await, ToClient::Done);
    other.say(&FromClient::Restart { session: lost.clone() }).await;
    assert!(matches!(other.hear().await, ToClient::Failed { kind: RequestFailure::NotFound, .. }));
    let start = SessionStart::Resume { session: lost.clone(), open_turn: OpenTurn::Waits };
    assert_eq!(one.open(&project, start).await, lost);
    shut_down(&root, ended).await;
}

#[tokio::test]
async fn who_comes_to_a_session_that_is_ending_is_told_its_end() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let (mut one, mut other) = (Peer::of(&root), Peer::of(&root));
    let session = one.open(&project, SessionStart::New).await;
    let ending = SessionEnding::Stop;
    other.say(&FromClient::End { session: session.clone(), ending }).await;
    let detached = |word: &ToClient| matches!(word, ToClient::Detached { .. });
    while !detached(&one.hear().await) {}
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    one.open(&project, start).await;
    while !detached(&one.hear().await) {}
    shut_down(&root, ended).await;
}
