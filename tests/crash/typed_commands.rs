//! A person's own command, and the death of the supervisor while it runs: it may have run, and never runs twice.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use crate::support::{Desk, runs, send, until, wrote};
use nix::sys::signal::Signal;
use protocol::client::{FromClient, SessionStart, SessionWish};
use protocol::session::OpenTurn;

#[test]
fn a_typed_command_that_died_with_the_supervisor_may_have_run_and_runs_once() {
    for open_turn in [OpenTurn::GoesOn, OpenTurn::Waits] {
        let desk = Desk::new();
        let server = Server::answering(|_, _| Answer::text("I see."));
        let daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&desk.opening(&server));
        let typed = |command: &str| FromClient::Wish {
            session: session.clone(),
            wish: SessionWish::Run { command: command.to_owned() },
        };
        wire.say(typed("echo x >> ran; sleep 7303"));
        until("it runs", || wrote(&desk.project().join("ran")));
        // This one waits, on disk.
        wire.say(typed("echo y >> later"));
        wire.until("it waits", |word| format!("{word:?}").contains("echo y").then_some(()));
        send(daemon.pid, Signal::SIGKILL);
        until("it ends with the supervisor", || !runs("sleep 7303"));
        drop((wire, daemon));
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let mut opening = desk.opening(&server);
        opening.start = SessionStart::Resume { session: session.clone(), open_turn };
        let session = wire.open(&opening);
        until("the one that waited", || wrote(&desk.project().join("later")));
        wire.prompt(&session, "go on");
        wire.model_text("I see.");
        assert_eq!(desk.read("ran"), "x\n", "not run again");
        assert_eq!(desk.read("later"), "y\n");
        let words = server.requests()[0].body["messages"].to_string();
        assert!(words.contains("$ echo x >> ran") && words.contains("may have run"), "{words}");
        assert!(words.contains("$ echo y >> later"), "{words}");
    }
}
