//! A process played by a shell script: its last messages, and messages that do not reach it.
#![allow(clippy::unwrap_used)]

use super::*;
use protocol::log::{LogLevel, LogLine};
use protocol::tool::{FromTool, RunnerJob, ToTool, ToolLink};
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A shell whose standard input is the channel.
fn shell(script: &str) -> SpawnedWorker {
    let (ours, theirs) = StdStream::pair().unwrap();
    let stdin = Stdio::from(OwnedFd::from(theirs));
    let child = Command::new("sh").args(["-c", script]).stdin(stdin).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let flags = rustix::process::PidfdFlags::NONBLOCK;
    let pidfd = rustix::process::pidfd_open(pid, flags).unwrap();
    ours.set_nonblocking(true).unwrap();
    SpawnedWorker { child, socket: ours, pidfd, cgroup: None }
}

fn begin(script: &str) -> (WorkerProcess<ToolLink>, UnboundedReceiver<ProcessEvent<ToolLink>>) {
    let (say, said) = unbounded_channel();
    let life = WorkerProcess::attach(
        shell(script),
        Generation(1),
        Duration::from_secs(5),
        move |report| {
            let _ = say.send(report);
        },
    );
    (life.unwrap(), said)
}

fn line(number: usize) -> FromTool {
    FromTool::Log(LogLine { level: LogLevel::Info, text: number.to_string() })
}

/// A file with a Hello and these words, for a shell to say.
fn script_of(directory: &Path, words: impl Iterator<Item = (Generation, FromTool)>) -> String {
    let mut bytes = Hello::own().to_bytes().to_vec();
    for (generation, word) in words {
        bytes.extend(frames(generation, 0, &codec::encode(&word).unwrap()));
    }
    let path = directory.join("words");
    std::fs::write(&path, bytes).unwrap();
    format!("cat {} >&0", path.display())
}

/// All messages until the end, and the cause of the end.
async fn all(said: &mut UnboundedReceiver<ProcessEvent<ToolLink>>) -> (Vec<FromTool>, ExitCause) {
    let mut words = Vec::new();
    loop {
        match timeout(Duration::from_secs(30), said.recv()).await.unwrap().unwrap() {
            ProcessEvent::Message { message: word, permit: _ } => words.push(word),
            ProcessEvent::Descriptor(_) => panic!("a descriptor"),
            ProcessEvent::Ended(cause, _) => return (words, cause),
        }
    }
}

#[tokio::test]
async fn the_last_words_of_a_process_that_spoke_faster_than_it_was_heard_are_not_lost() {
    let place = tempfile::tempdir().unwrap();
    let count = 3 * PENDING_REQUESTS;
    let script = script_of(place.path(), (0..count).map(|n| (Generation(1), line(n))));
    let (life, mut said) = begin(&script);
    // Nothing is read until the process is dead.
    let proc = format!("/proc/{}/stat", life.pid);
    let dead = || std::fs::read_to_string(&proc).is_ok_and(|stat| stat.contains(") Z"));
    let until = Instant::now() + Duration::from_secs(10);
    while !dead() && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (words, cause) = all(&mut said).await;
    assert_eq!(words, (0..count).map(line).collect::<Vec<_>>());
    assert_eq!(cause, ExitCause::Exited(0));
}

/// No timer of the call is left that would find a runner stopped right after its report.
#[tokio::test]
async fn a_stopped_process_does_not_outlive_its_closed_channel_for_long() {
    let place = tempfile::tempdir().unwrap();
    for (then, expected) in [("kill -STOP $$", "killed"), ("cat >/dev/null", "exited")] {
        let script = script_of(place.path(), [(Generation(1), line(1))].into_iter());
        let (process, mut said) = begin(&format!("{script}; {then}"));
        let first = timeout(Duration::from_secs(30), said.recv()).await.unwrap().unwrap();
        assert!(matches!(first, ProcessEvent::Message { .. }));
        drop(first);
        process.close_within(Duration::from_millis(500));
        let (_, cause) = all(&mut said).await;
        match expected {
            "killed" => assert_eq!(cause, ExitCause::Killed),
            _ => assert_eq!(cause, ExitCause::Exited(0), "the control ends by itself"),
        }
    }
}

#[tokio::test]
async fn a_word_of_an_earlier_life_is_dropped() {
    let place = tempfile::tempdir().unwrap();
    let words = [(Generation(7), line(1)), (Generation(1), line(2)), (Generation(0), line(3))];
    let (_life, mut said) = begin(&script_of(place.path(), words.into_iter()));
    assert_eq!(all(&mut said).await, (vec![line(2), line(3)], ExitCause::Exited(0)));
}

#[tokio::test]
async fn thousands_of_words_that_belong_together_are_one_entry_of_the_queue() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let script = script_of(place.path(), std::iter::empty());
    let script = format!("{script}; sleep 0.2; head -c 400000 > {}", out.display());
    let (life, mut said) = begin(&script);
    let heard = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
    life.forward(&vec![ToTool::Cancel; 20 * UNSENT_MESSAGES], heard);
    assert_eq!(all(&mut said).await, (Vec::new(), ExitCause::Exited(0)));
    assert_eq!(std::fs::metadata(out).unwrap().len(), 400_000);
}

#[tokio::test]
async fn words_one_by_one_to_a_process_that_takes_none_end_it() {
    let place = tempfile::tempdir().unwrap();
    let script = script_of(place.path(), std::iter::empty());
    let (life, mut said) = begin(&format!("{script}; exec sleep 60"));
    for _ in 0..=UNSENT_MESSAGES {
        life.send(&ToTool::Cancel);
    }
    assert_eq!(all(&mut said).await.1, ExitCause::SendStalled);
}

#[tokio::test]
async fn a_word_that_the_wire_cannot_carry_ends_who_waits_for_it() {
    let place = tempfile::tempdir().unwrap();
    let script = script_of(place.path(), std::iter::empty());
    let (life, mut said) = begin(&format!("{script}; exec sleep 60"));
    let input = "x".repeat(ToolLink::MESSAGE_CAP);
    life.send(&ToTool::Go(RunnerJob::Probe { tool: "write".into(), input }));
    let (_, cause) = all(&mut said).await;
    assert!(matches!(cause, ExitCause::Unsendable(_)), "{cause}");
}

#[tokio::test]
async fn garbage_half_a_frame_and_a_channel_closed_too_early_are_breaches() {
    let place = tempfile::tempdir().unwrap();
    let hello = script_of(place.path(), std::iter::empty());
    let garbage = place.path().join("garbage");
    std::fs::write(&garbage, [0xff; 4096]).unwrap();
    let garbage = format!("cat {} >&0", garbage.display());
    for (script, what) in [
        (format!("{garbage}; sleep 60"), "agentd's protocol"),
        (format!("{hello}; {garbage}; sleep 60"), "frame"),
        (format!("{hello}; printf half >&0"), "in the middle"),
        (format!("{hello}; exec 0<&-; sleep 60"), "closed its channel but did not exit"),
    ] {
        let (_life, mut said) = begin(&script);
        let (words, cause) = all(&mut said).await;
        assert!(words.is_empty());
        assert!(
            matches!(&cause, ExitCause::ProtocolBreach(why) if why.contains(what)),
            "{what:?} is not in {cause}"
        );
    }
}
