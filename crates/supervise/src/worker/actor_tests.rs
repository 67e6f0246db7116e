//! A worker actor whose process is a shell script: which messages reach which process.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::worker_ref::WorkerRef;
use ipc::{Hello, codec, frames};
use protocol::session::{SessionLink, ToSession};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

/// Sends Hello and writes its input into a file named after its pid. Another process writes the
/// script: a test that forks meanwhile would keep it open for writing, and then it could not be
/// executed.
fn worker(place: &Path) {
    fs::write(place.join("hello"), Hello::own().to_bytes()).unwrap();
    let script = "#!/bin/sh\ncd \"${0%/*}\" && cat hello >&0 && exec cat > $$\n";
    let status = Command::new("sh")
        .args(["-c", "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", script])
        .arg(place.join("agentd-session"))
        .status();
    assert!(status.unwrap().success());
}

async fn start_worker(
    place: &Path,
) -> (ActorRef<WorkerMsg<SessionLink>>, UnboundedReceiver<WorkerEvent<SessionLink>>) {
    worker(place);
    let log = File::options().write(true).open("/dev/null").unwrap();
    let (say, events) = unbounded_channel();
    let plan = WorkerArgs {
        kind: WorkerKind::Session,
        session: None,
        spawner: Spawner::start(place.to_owned(), log, Vec::new()).unwrap(),
        timeouts: WorkerTimeouts::default(),
        on_event: Arc::new(move |event| {
            let _ = say.send(event);
        }),
    };
    let (worker, _) =
        WorkerActor::spawn(None, WorkerActor::<SessionLink>::new(), plan).await.unwrap();
    (worker, events)
}

async fn up(events: &mut UnboundedReceiver<WorkerEvent<SessionLink>>) -> Generation {
    loop {
        let event = timeout(Duration::from_secs(30), events.recv()).await.unwrap().unwrap();
        if let WorkerEvent::Up(generation) = event {
            return generation;
        }
    }
}

async fn pid(worker: &ActorRef<WorkerMsg<SessionLink>>) -> u32 {
    let (reply, row) = oneshot::channel();
    worker.send_message(WorkerMsg::Describe(reply)).unwrap();
    row.await.unwrap().pid
}

/// The input of this process, once it has the expected length.
async fn sent(place: &Path, pid: u32, expected: usize) -> Vec<u8> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let sent = fs::read(place.join(pid.to_string())).unwrap_or_default();
        if sent.len() >= expected || Instant::now() > until {
            return sent;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn text(text: &str) -> ToSession {
    ToSession::Prompt { text: text.to_owned(), expanded: None }
}

fn bytes(generation: Generation, message: &ToSession) -> Vec<u8> {
    frames(generation, 0, &codec::encode(message).unwrap())
}

/// An owner that waits for its disk goes on as though the dead process lived.
#[tokio::test]
async fn what_is_sent_to_a_dead_process_never_reaches_the_next() {
    let place = tempfile::tempdir().unwrap();
    let (worker, mut events) = start_worker(place.path()).await;
    let mut owner = WorkerRef::new(worker.clone());
    owner.send(text("before the owner heard of any process"));
    let first = up(&mut events).await;
    owner.up(first);
    let before = pid(&worker).await;
    owner.send(text("to the first"));
    let expected = bytes(first, &text("to the first"));
    assert_eq!(sent(place.path(), before, expected.len()).await, expected);

    let process = nix::unistd::Pid::from_raw(before.try_into().unwrap());
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).unwrap();
    let second = up(&mut events).await;
    let permits = Arc::new(Semaphore::new(1));
    owner.send(text("late"));
    owner.forward(vec![text("late")], Arc::clone(&permits).acquire_owned().await.unwrap());
    owner.send_descriptor(File::open("/dev/null").unwrap().into());
    owner.ping(ToSession::Ping(0));
    owner.up(second);
    owner.send(text("to the second"));
    let expected = bytes(second, &text("to the second"));
    assert_eq!(sent(place.path(), pid(&worker).await, expected.len()).await, expected);
    assert_eq!(permits.available_permits(), 1, "whoever sent it may go on");

    let (done, stopped) = oneshot::channel();
    worker.send_message(WorkerMsg::Stop(done)).unwrap();
    stopped.await.unwrap();
}
