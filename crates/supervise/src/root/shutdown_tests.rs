//! Shutdowns at the moment when a client connects or sends a prompt.
#![allow(clippy::unwrap_used)]

use super::super::collect_process_rows;
use super::super::rig::{Peer, live, root_in, shut_down};
use super::{pause, unfinished_work};
use crate::messages::{ClientMsg, ClientToSession, RootToSession};
use journal::JournalRecord;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, OtherClients, SessionEnding, SessionStart,
    SessionStatus, ToClient, WhileBusy,
};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use ractor::{Actor, ActorRef};
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

/// The prompts that wait on disk.
fn waiting(place: &Path, session: &SessionId) -> Vec<String> {
    let records = journal::read(&place.join("state/sessions").join(&session.0)).unwrap();
    let queued = |entry: Result<journal::JournalEntry, _>| {
        let JournalRecord::Queued { text, .. } = entry.unwrap().record else { return None };
        Some(text)
    };
    records.filter_map(queued).collect()
}

async fn hears_the_queue(peer: &mut Peer) -> Vec<String> {
    loop {
        if let ToClient::Event { event: ClientEvent::Queue { waiting }, .. } = peer.hear().await {
            return waiting.into_iter().map(|it| it.text).collect();
        }
    }
}

#[tokio::test]
async fn who_opens_a_session_and_is_gone_before_attaching_leaves_nothing_live() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let (mut gone, mut there) = (Peer::of(&root), Peer::of(&root));
    let left = gone.open_only(&project, SessionStart::New).await;
    let kept = there.open_only(&project, SessionStart::New).await;
    assert!(live(&root, &left).await.is_some(), "it is waited for");
    drop(gone);
    let ends = async {
        while live(&root, &left).await.is_some() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), ends).await.expect("the session ends");
    assert!(live(&root, &kept).await.is_some(), "the other's client lives");
    // One of two who asked for the same session may still come.
    let mut second = Peer::of(&root);
    let again = SessionStart::Resume { session: kept.clone(), open_turn: OpenTurn::Waits };
    second.open_only(&project, again).await;
    drop(second);
    sleep(Duration::from_millis(200)).await;
    assert!(live(&root, &kept).await.is_some(), "the first has not attached yet");
    shut_down(&root, ended).await;
}

#[tokio::test]
async fn what_is_said_while_a_daemon_looks_whether_it_may_end_waits_on_disk() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let mut peer = Peer::of(&root);
    let session = peer.open(&project, SessionStart::New).await;
    let actor = live(&root, &session).await.unwrap();
    let looked = pause(&actor).await.unwrap();
    assert_eq!(looked.state, SessionStatus::Idle);
    let text = "said meanwhile".to_owned();
    peer.say(&FromClient::Prompt {
        session: session.clone(),
        text: text.clone(),
        form: None,
        busy: WhileBusy::Queue,
    })
    .await;
    assert_eq!(hears_the_queue(&mut peer).await, [text.as_str()]);
    assert_eq!(pause(&actor).await.unwrap().state, SessionStatus::Idle, "no turn began");
    let (done, closed) = oneshot::channel();
    actor.send_message(RootToSession::Close(SessionEnding::Stop, done).into()).unwrap();
    closed.await.unwrap();
    assert_eq!(waiting(place.path(), &session), [text.as_str()]);
    // The next client that opens the session finds the prompt.
    let mut next = Peer::of(&root);
    let again = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    next.open_only(&project, again).await;
    let (from, rights, others) = (BacklogFrom::Seq(1), ClientRights::Full, OtherClients::Stay);
    next.say(&FromClient::Attach { session, from, rights, others }).await;
    assert_eq!(hears_the_queue(&mut next).await, [text.as_str()]);
    shut_down(&root, ended).await;
}

/// A client that reads nothing.
struct SilentClient;

impl Actor for SilentClient {
    type Msg = ClientMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<ClientMsg>,
        (): (),
    ) -> Result<(), ractor::ActorProcessingErr> {
        Ok(())
    }
}

#[tokio::test]
async fn a_prompt_behind_the_end_of_its_session_waits_on_disk() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let mut peer = Peer::of(&root);
    let session = peer.open(&project, SessionStart::New).await;
    let actor = live(&root, &session).await.unwrap();
    let (done, closed) = oneshot::channel();
    actor.send_message(RootToSession::Close(SessionEnding::Stop, done).into()).unwrap();
    let (client, _) = Actor::spawn(None, SilentClient, ()).await.unwrap();
    let text = "too late".to_owned();
    actor
        .send_message(
            ClientToSession::Prompt { client, text, form: None, busy: WhileBusy::Queue }.into(),
        )
        .unwrap();
    closed.await.unwrap();
    assert_eq!(waiting(place.path(), &session), ["too late"]);
    shut_down(&root, ended).await;
}

#[tokio::test]
async fn a_session_that_does_not_answer_holds_no_end_up_for_ever() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let mut peer = Peer::of(&root);
    let session = peer.open(&project, SessionStart::New).await;
    let until = Instant::now() + Duration::from_secs(20);
    let idle = pause(&live(&root, &session).await.unwrap());
    assert_eq!(unfinished_work(until, idle).await, None);
    // Held by a disk that is gone, it would keep the question and say nothing.
    let (_held, silent) = oneshot::channel();
    let why = unfinished_work(Instant::now() + Duration::from_millis(50), silent).await;
    assert!(why.unwrap().contains("does not answer"));
    // Nor does it hide the processes of the others.
    let (_held, silent) = oneshot::channel();
    let (reply, answer) = oneshot::channel();
    live(&root, &session)
        .await
        .unwrap()
        .send_message(RootToSession::Describe(reply).into())
        .unwrap();
    let stuck = SessionId("stuck".to_owned());
    let asked = vec![(stuck.clone(), silent), (session.clone(), answer)];
    let rows = collect_process_rows(Instant::now() + Duration::from_secs(1), asked).await;
    assert_eq!(rows[0].session, Some(stuck));
    assert!(rows[0].last_cause.as_ref().unwrap().contains("does not answer"), "{rows:?}");
    assert!(rows[1..].iter().any(|row| row.pid > 0), "the positive control: {rows:?}");
    shut_down(&root, ended).await;
}
