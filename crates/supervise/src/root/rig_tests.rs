//! A root with its real actors, whose workers a shell plays, and a client's end of the wire: for the
//! tests of the root's files.
#![allow(clippy::unwrap_used)]

use super::RootActor;
use crate::SupervisorSettings;
use crate::client_actor::connection::ClientStream;
use crate::control_socket::peer::{PeerProcess, request_credentials};
use crate::messages::{RootMsg, SessionMsg};
use config::Dirs;
use ipc::{Hello, MessageJoiner, codec, frames};
use protocol::Link;
use protocol::client::{
    BacklogFrom, ClientLink, ClientRights, FromClient, OtherClients, ProjectTrust, SessionRequest,
    SessionStart, ToClient, Unsandboxed,
};
use protocol::confinement::{FilePath, Tier};
use protocol::ids::{Generation, SessionId};
use protocol::judgement::{Audience, PermissionMode};
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
    let runners = tool_specs::RunnerProgram::ALL.map(tool_specs::RunnerProgram::executable);
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
pub(super) struct Peer {
    stream: UnixStream,
    joiner: MessageJoiner,
}

impl Peer {
    pub(super) fn of(root: &ActorRef<RootMsg>) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        request_credentials(&theirs).unwrap();
        let stream = ClientStream::new(theirs, PeerProcess::this_process());
        root.send_message(RootMsg::ClientConnected(stream)).unwrap();
        Self { stream: ours, joiner: MessageJoiner::new(ClientLink::MESSAGE_CAP) }
    }

    pub(super) async fn say(&mut self, word: &FromClient) {
        let bytes = frames(Generation(0), 0, &codec::encode(word).unwrap());
        self.stream.write_all(&bytes).await.unwrap();
    }

    pub(super) async fn hear(&mut self) -> ToClient {
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

    /// Opens a session and attaches to it.
    pub(super) async fn open(&mut self, project: &Path, start: SessionStart) -> SessionId {
        let session = self.open_only(project, start).await;
        let from = BacklogFrom::Seq(1);
        let (rights, others) = (ClientRights::Full, OtherClients::Stay);
        self.say(&FromClient::Attach { session: session.clone(), from, rights, others }).await;
        while !matches!(self.hear().await, ToClient::Attached { .. }) {}
        session
    }

    /// Opens a session of a script.
    pub(super) async fn open_only(&mut self, project: &Path, start: SessionStart) -> SessionId {
        self.say(&FromClient::Open(request(project, start))).await;
        let word = self.hear().await;
        let ToClient::Opened { session, .. } = word else { panic!("{word:?}") };
        session
    }
}

/// A script's request for a session.
pub(super) fn request(project: &Path, start: SessionStart) -> SessionRequest {
    let env = [("HOME".to_owned(), project.display().to_string())];
    SessionRequest {
        project: FilePath::from(project),
        named: None,
        added: Vec::new(),
        start,
        env: env.into(),
        settings: Vec::new(),
        mode: Some(PermissionMode::Auto),
        network: None,
        trust: ProjectTrust::AsRecorded,
        audience: Audience::NonInteractive,
        papers: Vec::new(),
        uncaged: Unsandboxed::Refused,
        conversation: protocol::client::ConversationFlags::default(),
        agents: None,
        umask: 0o022,
        seat: None,
    }
}

/// A root whose directories and workers are in this place, its end, and a project.
pub(super) async fn root_in(place: &Path) -> (ActorRef<RootMsg>, JoinHandle<()>, PathBuf) {
    let directory = |name: &str| {
        let path = place.join(name);
        fs::create_dir(&path).unwrap();
        fs::canonicalize(path).unwrap()
    };
    let (bin, project) = (directory("bin"), directory("project"));
    workers(&bin);
    let settings = SupervisorSettings {
        service_manager: crate::ServiceManager::None,
        dirs: Dirs {
            config: None,
            state: directory("state"),
            data: None,
            runtime: directory("run"),
        },
        workers: bin,
        host: crate::HostTier::probed(Path::new("/tmp"), |_| Ok(Tier::B)).unwrap(),
        cgroup: None,
        temp_root: directory("tmp"),
        log: File::options().write(true).open("/dev/null").unwrap(),
        // A daemon, so that sessions of scripts end with their runs.
        idle_exit: Some(Duration::from_secs(600)),
        room: crate::SessionRoom { sessions: 100, limit: "a test".to_owned() },
        timeouts: crate::WorkerTimeouts::default(),
        worker_env: Vec::new(),
        broker_env: Vec::new(),
    };
    let (root, ended) = RootActor::spawn(None, RootActor, settings).await.unwrap();
    (root, ended, project)
}

/// The session's actor, where it is live.
pub(super) async fn live(
    root: &ActorRef<RootMsg>,
    session: &SessionId,
) -> Option<ActorRef<SessionMsg>> {
    let (reply, found) = oneshot::channel();
    root.send_message(RootMsg::Find(session.clone(), reply)).unwrap();
    found.await.unwrap()
}

/// Ends everything.
pub(super) async fn shut_down(root: &ActorRef<RootMsg>, ended: JoinHandle<()>) {
    root.send_message(RootMsg::Shutdown).unwrap();
    timeout(Duration::from_secs(20), ended).await.unwrap().unwrap();
}
