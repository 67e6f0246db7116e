//! Sessions of sub-agents as the root opens them: bound by their parents, begun once, answered in any case.
#![allow(clippy::unwrap_used)]

use super::rig::{Peer, live, request, root_in, shut_down};
use crate::messages::{OpenRequest, RootMsg, SessionMsg, TaskOrder};
use crate::task_outcome::TaskOutcome;
use crate::worker::actor::WorkerEvent;
use journal::{TaskHeader, TaskLimits, TaskRights};
use protocol::client::{FromClient, SessionEnding, SessionStart, SettingChange, ToClient};
use protocol::confinement::Network;
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use protocol::session::OpenTurn;
use ractor::ActorRef;
use setup::session_spec::{TaskBounds, session_of};
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

fn header(parent: &SessionId) -> TaskHeader {
    TaskHeader {
        session: parent.0.clone(),
        call: 1,
        agent: "general".to_owned(),
        prompt: "Look.".to_owned(),
        instructions: String::new(),
        model: None,
        tools: None,
        deny: Vec::new(),
        servers: Vec::new(),
        rights: TaskRights {
            mode: "auto".to_owned(),
            network: "off".to_owned(),
            hosts: Vec::new(),
            added: Vec::new(),
            uncaged: false,
        },
        limits: TaskLimits { depth: 0, rounds: 9, calls: None, cost: Some(7) },
        worktree: None,
    }
}

type Answer =
    oneshot::Receiver<Result<(ActorRef<SessionMsg>, ToClient), setup::open_failure::OpenFailure>>;

/// Asks for the session of a sub-agent, as its parent does.
async fn begin(
    root: &ActorRef<RootMsg>,
    parent: &SessionId,
    project: &Path,
) -> (Answer, oneshot::Receiver<TaskOutcome>) {
    let actor = live(root, parent).await.unwrap();
    let (reply, opened) = oneshot::channel();
    let (done, outcome) = oneshot::channel();
    let header = Box::new(header(parent));
    let bounds = TaskBounds::recorded(&header.rights);
    let order = OpenRequest {
        opening: request(project, SessionStart::New),
        passed_fds: Vec::new(),
        client: actor.get_id(),
        reply,
        task: Some(TaskOrder { header, bounds, lease: None, parent: actor, done }),
    };
    root.send_message(RootMsg::Open(Box::new(order))).unwrap();
    (opened, outcome)
}

async fn opened(answer: Answer) -> ActorRef<SessionMsg> {
    let answer = timeout(Duration::from_secs(20), answer).await.unwrap().unwrap();
    answer.unwrap_or_else(|failure| panic!("{failure}")).0
}

/// The mode and network in which a person finds a session.
async fn found(peer: &mut Peer, project: &Path, session: &SessionId) -> (PermissionMode, Network) {
    let open_turn = OpenTurn::Waits;
    let start = SessionStart::Resume { session: session.clone(), open_turn };
    peer.say(&FromClient::Open(request(project, start))).await;
    loop {
        if let ToClient::Opened { mode, network, .. } = peer.hear().await {
            return (mode, network);
        }
    }
}

#[tokio::test]
async fn a_parent_is_answered_though_the_conversation_of_its_sub_agent_fails_before_it_begins() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let mut peer = Peer::of(&root);
    let parent = peer.open(&project, SessionStart::New).await;
    let (answer, outcome) = begin(&root, &parent, &project).await;
    let child = opened(answer).await;
    let (cause, failed) = ("it died".to_owned(), Some("it dies each time".to_owned()));
    child.send_message(SessionMsg::Conversation(WorkerEvent::Down { cause, failed })).unwrap();
    let outcome = timeout(Duration::from_secs(20), outcome).await.unwrap().unwrap();
    assert_eq!(outcome.end, None);
    let why = outcome.failure.unwrap();
    assert!(why.contains("its conversation has failed: it dies each time"), "{why}");
    // So is one that joins it afterwards, and one whose disk fails.
    let (answer, outcome) = begin(&root, &parent, &project).await;
    opened(answer).await;
    assert!(timeout(Duration::from_secs(20), outcome).await.unwrap().unwrap().failure.is_some());
    shut_down(&root, ended).await;
}

#[tokio::test]
async fn a_sub_agent_whose_call_was_stopped_while_it_opened_does_not_begin() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let mut peer = Peer::of(&root);
    let parent = peer.open(&project, SessionStart::New).await;
    let child = session_of(&parent, 1);
    let (answer, outcome) = begin(&root, &parent, &project).await;
    drop(answer);
    timeout(Duration::from_secs(20), outcome).await.unwrap().unwrap_err();
    let gone = async {
        while live(&root, &child).await.is_some() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), gone).await.expect("its session ends");
    // The control: a call that waits keeps it open.
    let (answer, _outcome) = begin(&root, &parent, &project).await;
    opened(answer).await;
    sleep(Duration::from_millis(200)).await;
    assert!(live(&root, &child).await.is_some());
    shut_down(&root, ended).await;
}

#[tokio::test]
async fn a_sub_agent_that_a_death_cut_from_its_first_record_is_begun_again() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let mut peer = Peer::of(&root);
    let parent = peer.open(&project, SessionStart::New).await;
    let directory = place.path().join("state/sessions").join(session_of(&parent, 1).0);
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("journal.jsonl"), "").unwrap();
    let (answer, _outcome) = begin(&root, &parent, &project).await;
    opened(answer).await;
    let task = journal::header(&directory).unwrap().task.unwrap();
    assert_eq!(task.prompt, "Look.");
    shut_down(&root, ended).await;
}

#[tokio::test]
async fn a_sub_agent_is_never_looser_than_its_parent_is_now() {
    use PermissionMode::{Auto, Plan};
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let mut peer = Peer::of(&root);
    let parent = peer.open(&project, SessionStart::New).await;
    let child = session_of(&parent, 1);
    let (answer, _outcome) = begin(&root, &parent, &project).await;
    opened(answer).await;
    assert_eq!(found(&mut peer, &project, &child).await, (Auto, Network::Off));
    let change =
        |mode| FromClient::Change { session: parent.clone(), change: SettingChange::Mode(mode) };
    peer.say(&change(Plan)).await;
    // The session of the parent handles the change before it answers this.
    assert_eq!(found(&mut peer, &project, &parent).await.0, Plan);
    assert_eq!(found(&mut peer, &project, &child).await.0, Plan, "the running one");
    peer.say(&change(Auto)).await;
    assert_eq!(found(&mut peer, &project, &parent).await.0, Auto);
    assert_eq!(found(&mut peer, &project, &child).await.0, Auto, "it has its own mode again");
    peer.say(&change(Plan)).await;
    assert_eq!(found(&mut peer, &project, &parent).await.0, Plan);
    for session in [&parent, &child] {
        peer.say(&FromClient::End { session: session.clone(), ending: SessionEnding::Stop }).await;
        while peer.hear().await != ToClient::Done {}
    }
    assert_eq!(found(&mut peer, &project, &child).await.0, Plan, "opened without its parent");
    shut_down(&root, ended).await;
}
