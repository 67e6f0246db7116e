//! A root with its real actors, whose workers a shell plays: what a client hears when the actor of
//! its session fails.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::Settings;
use crate::client_actor::ClientStream;
use crate::peer::{Opener, name_writers};
use crate::root::{Root, RootMsg};
use config::Dirs;
use ipc::{Hello, Joiner, codec, frames};
use protocol::Link;
use protocol::client::{
    ClientLink, Ending, Event, FromClient, Opening, Others, ProjectTrust, Rights, Since, Start,
    ToClient,
};
use protocol::confinement::{FilePath, Tier};
use protocol::ids::Generation;
use protocol::judgement::{Audience, Mode};
use protocol::session::OpenTurn;
use ractor::concurrency::JoinHandle;
use ractor::{Actor, ActorRef};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Workers that say Hello, then only listen, and take their time to go. Written by another process: a test that forks
/// meanwhile would hold them open, and they could not be started.
fn workers(directory: &Path) {
    let hello = directory.join("hello");
    fs::write(&hello, Hello::own().to_bytes()).unwrap();
    let script = format!("#!/bin/sh\ncat {} >&0; cat > /dev/null; sleep 0.2\n", hello.display());
    let workers = ["agentd-session", "agentd-provider", "agentd-broker", "agentd-store"];
    let runners = tools::Runner::ALL.map(tools::Runner::executable);
    for name in workers.into_iter().chain(runners) {
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(directory.join(name))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        writer.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
    }
}

/// A client's end of the wire.
struct Peer {
    stream: UnixStream,
    joiner: Joiner,
}

impl Peer {
    fn of(root: &ActorRef<RootMsg>) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        name_writers(&theirs).unwrap();
        let stream = ClientStream::new(theirs, Opener::this_process());
        root.send_message(RootMsg::Client(stream)).unwrap();
        Self { stream: ours, joiner: Joiner::new(ClientLink::MESSAGE_CAP) }
    }

    async fn say(&mut self, word: &FromClient) {
        let bytes = frames(Generation(0), 0, &codec::encode(word).unwrap());
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn hear(&mut self) -> ToClient {
        let heard = async {
            loop {
                if let Some(message) = self.joiner.next_message().unwrap() {
                    return codec::decode(&message.body.unwrap()).unwrap();
                }
                let mut bytes = [0; 4096];
                let length = self.stream.read(&mut bytes).await.unwrap();
                assert_ne!(length, 0, "the supervisor hung up");
                self.joiner.push(&bytes[..length]);
            }
        };
        timeout(Duration::from_secs(20), heard).await.expect("a word")
    }

    async fn open(&mut self, project: &Path, start: Start) -> SessionId {
        let env = [("HOME".to_owned(), project.display().to_string())];
        self.say(&FromClient::Open(Opening {
            project: FilePath::from(project),
            added: Vec::new(),
            start,
            env: env.into(),
            settings: Vec::new(),
            mode: Some(Mode::Auto),
            network: None,
            trust: ProjectTrust::AsRecorded,
            audience: Audience::Nobody,
            papers: Vec::new(),
        }))
        .await;
        let word = self.hear().await;
        let ToClient::Opened { session, .. } = word else { panic!("{word:?}") };
        let from = Since::Seq(1);
        let (rights, others) = (Rights::Full, Others::Stay);
        self.say(&FromClient::Attach { session: session.clone(), from, rights, others }).await;
        while !matches!(self.hear().await, ToClient::Attached { .. }) {}
        session
    }
}

/// A root whose directories and workers are in this place, its end, and a project.
async fn root_in(place: &Path) -> (ActorRef<RootMsg>, JoinHandle<()>, PathBuf) {
    let directory = |name: &str| {
        let path = place.join(name);
        fs::create_dir(&path).unwrap();
        fs::canonicalize(path).unwrap()
    };
    let (bin, project) = (directory("bin"), directory("project"));
    workers(&bin);
    let settings = Settings {
        dirs: Dirs { config: None, state: directory("state"), runtime: directory("run") },
        workers: bin,
        host_tier: Tier::B,
        host_words: String::new(),
        temp_root: directory("tmp"),
        log: File::options().write(true).open("/dev/null").unwrap(),
        idle_exit: None,
        worker_env: Vec::new(),
    };
    let (root, ended) = Root::spawn(None, Root, settings).await.unwrap();
    (root, ended, project)
}

async fn fail(root: &ActorRef<RootMsg>, session: &SessionId) {
    let (reply, found) = oneshot::channel();
    root.send_message(RootMsg::Find(session.clone(), reply)).unwrap();
    found.await.unwrap().unwrap().send_message(SessionMsg::Fail).unwrap();
}

#[tokio::test]
async fn who_waits_for_a_session_whose_actor_fails_is_told_and_may_open_it_again() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let (mut one, mut other) = (Peer::of(&root), Peer::of(&root));
    let lost = one.open(&project, Start::New).await;
    let kept = other.open(&project, Start::New).await;

    fail(&root, &lost).await;
    let word = one.hear().await;
    let ToClient::Event { event: Event::Degraded { reason }, .. } = &word else {
        panic!("{word:?}")
    };
    assert!(reason.contains("open it again"), "{reason}");
    let word = one.hear().await;
    assert!(matches!(&word, ToClient::Detached { session, .. } if *session == lost), "{word:?}");

    // Its neighbour hears nothing of it, and the session is there to be opened again.
    other.say(&FromClient::Restart { session: kept }).await;
    assert_eq!(other.hear().await, ToClient::Done);
    other.say(&FromClient::Restart { session: lost.clone() }).await;
    assert!(matches!(other.hear().await, ToClient::Failed { kind: FailedKind::NotFound, .. }));
    let start = Start::Resume { session: lost.clone(), open_turn: OpenTurn::Waits };
    assert_eq!(one.open(&project, start).await, lost);
    root.send_message(RootMsg::Shutdown).unwrap();
    timeout(Duration::from_secs(20), ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn who_comes_to_a_session_that_is_ending_is_told_its_end() {
    let place = tempfile::tempdir().unwrap();
    let (root, ended, project) = root_in(place.path()).await;
    let (mut one, mut other) = (Peer::of(&root), Peer::of(&root));
    let session = one.open(&project, Start::New).await;
    let ending = Ending::Stop;
    other.say(&FromClient::End { session: session.clone(), ending }).await;
    let detached = |word: &ToClient| matches!(word, ToClient::Detached { .. });
    while !detached(&one.hear().await) {}
    let start = Start::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    one.open(&project, start).await;
    while !detached(&one.hear().await) {}
    root.send_message(RootMsg::Shutdown).unwrap();
    timeout(Duration::from_secs(20), ended).await.unwrap().unwrap();
}
