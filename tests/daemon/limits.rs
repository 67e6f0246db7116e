//! A daemon names the limits of its process before they are reached.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use crate::support::{Desk, needs, run};
use protocol::client::{BacklogFrom, ClientRights, RequestFailure, ToClient};
use std::process::{Command, Stdio};

#[test]
fn a_session_beyond_the_limit_of_open_files_is_refused_and_the_others_go_on() {
    needs("prlimit");
    let desk = Desk::new();
    let starter = desk.agentd(&["daemon", "start"]);
    let mut limited = Command::new("prlimit");
    limited.arg("--nofile=160:160").arg(starter.get_program()).args(starter.get_args());
    limited.current_dir(desk.project()).env_clear().stdin(Stdio::null());
    limited.envs(starter.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let started = limited.output().unwrap();
    assert!(started.status.success(), "{started:?}");
    let server = Server::answering(|_, _| Answer::text("here"));
    let opening = desk.opening(&server);
    let mut wire = Wire::to(&desk.door());
    let sessions: Vec<_> = (0..3).map(|_| wire.opened(&opening).0).collect();
    wire.open_with_key(&opening);
    match wire.hear() {
        ToClient::Failed { kind, message } => {
            assert_eq!(kind, RequestFailure::NoRoom);
            for words in ["3 sessions are open", "room for 3", "open files 160 (ulimit -n)"] {
                assert!(message.contains(words), "{words}: {message}");
            }
        }
        other => panic!("{other:?}"),
    }
    let ran = run(desk.with_server(&server, &["-p", "x"]));
    assert_eq!(ran.code, 75, "{ran:?}");
    assert!(ran.err.contains("open files 160 (ulimit -n)"), "{ran:?}");
    let status = run(desk.agentd(&["daemon", "status"]));
    assert!(status.out.contains("3, 0 at work, room for 3 by open files 160"), "{}", status.out);
    for session in &sessions {
        wire.attach(session, BacklogFrom::Seq(1), ClientRights::Full);
        wire.prompt(session, "hello");
        wire.turn_ends();
    }
    let ended = run(desk.agentd(&["kill", &sessions[0].0]));
    assert_eq!(ended.code, 0, "{ended:?}");
    let mut wire = Wire::to(&desk.door());
    wire.opened(&opening);
    let ended = run(desk.agentd(&["daemon", "stop", "--force"]));
    assert_eq!(ended.code, 0, "{ended:?}");
}
