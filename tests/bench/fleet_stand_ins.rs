//! Programs that take the place of others beside a real `agentd-fleet worker`, for `fleet_workers`: this executable
//! plays `agentd`, whose records take the way of a real session's, without a model and without a sandbox.

use protocol::Link;
use protocol::client::{ClientLink, FromClient, ToClient};
use protocol::fleet::{FleetLink, FromFleet, ToFleet};
use protocol::ids::SessionId;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes of a record.
const LINE: usize = 500;
/// Does what a worker asks of git for a task without changes, and no work.
pub(crate) const GIT: &str = r#"#!/bin/sh
case " $* " in
*" init "*) for dir; do :; done; mkdir -p "$dir/refs/heads" ;;
*" clone "*) for tree; do :; done; mkdir -p "$tree/.git"; : > "$tree/.git/index"; : > "$tree/.git/config" ;;
*" rev-parse "*) echo base; echo tree ;;
esac
"#;

/// The daemon's side of its wire.
enum DaemonSide {}

impl Link for DaemonSide {
    type To = FromClient;
    type From = ToClient;
    const NAME: &'static str = "daemon";
    const MESSAGE_CAP: usize = ClientLink::MESSAGE_CAP;
}

/// Lets each client in, and does nothing that it asks for.
pub(crate) fn play_daemon(stream: UnixStream) {
    let Ok((mut rx, tx)) = ipc::connect::<DaemonSide>(stream) else { return };
    while let Ok(word) = rx.recv() {
        let answer = if let FromClient::Hello { build, .. } = word {
            ToClient::Welcome { build, pid: std::process::id() }
        } else {
            ToClient::Done
        };
        if tx.send(&answer).is_err() {
            return;
        }
    }
}

/// A supervisor's side of its wire to `agentd-fleet`.
enum SeatSide {}

impl Link for SeatSide {
    type To = FromFleet;
    type From = ToFleet;
    const NAME: &'static str = "seat";
    const MESSAGE_CAP: usize = FleetLink::MESSAGE_CAP;
}

/// Plays `agentd -p` with a seat: the prompt says how many calls, and how long the model thinks before each.
/// Other commands of `agentd` have nothing to do here. No record is on a disk: each host would have its own.
pub(crate) fn session() {
    let mut words = std::env::args().skip_while(|word| word != "--fleet-seat");
    let Some(paper) = words.nth(1) else { return };
    let paper: Value = serde_json::from_slice(&fs::read(paper).unwrap()).unwrap();
    let prompt = std::io::read_to_string(std::io::stdin()).unwrap();
    let (calls, thinks) = prompt.trim().split_once(' ').unwrap();
    let thinks = Duration::from_millis(thinks.parse().unwrap());
    let socket = UnixStream::connect(paper["socket"].as_str().unwrap()).unwrap();
    let (mut rx, tx) = ipc::connect::<SeatSide>(socket).unwrap();
    let word = |name: &str| paper[name].as_str().unwrap().to_owned();
    tx.send(&ToFleet::Sit { session: SessionId(word("session")), token: word("token") }).unwrap();
    let FromFleet::Seated { last_seq: mut last, .. } = rx.recv().unwrap() else {
        std::process::exit(1)
    };
    let mut send = |kinds: &[&str], call: u64| {
        let filler = "x".repeat(LINE - 80);
        let line = |kind: &&str| {
            json!({"kind": kind, "call": call, "tool_kind": "query", "filler": filler}).to_string()
        };
        let first = last + 1;
        last += kinds.len() as u64;
        tx.send(&ToFleet::Append { first, lines: kinds.iter().map(line).collect() }).unwrap();
        last
    };
    let mut wait_for = |seq: u64| {
        loop {
            match rx.recv() {
                Ok(FromFleet::Durable(durable)) if durable >= seq => return,
                Ok(FromFleet::Durable(_) | FromFleet::Renewed(_)) => {}
                lost => {
                    eprintln!("{lost:?}");
                    std::process::exit(1)
                }
            }
        }
    };
    wait_for(send(&["SESSION", "PROMPT"], 0));
    let mut starts = Vec::new();
    for call in 1..=calls.parse().unwrap() {
        std::thread::sleep(thinks);
        send(&["ANSWER", "PROPOSED", "APPROVED"], call);
        let begun = Instant::now();
        wait_for(send(&["START"], call));
        starts.push(begun.elapsed().as_micros() as u64);
        send(&["RESULT"], call);
    }
    wait_for(send(&["ANSWER", "TURN_ENDED"], 0));
    println!("{}", json!({"result": "done", "starts": starts}));
}
