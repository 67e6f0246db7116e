//! Ways that daemons like this one fail, each with the test that shows that this one does not.
#![allow(clippy::unwrap_used)]

mod support;

use nix::sys::signal::Signal;
use protocol::client::{Event, FromClient, Start, ToClient};
use protocol::session::TurnEnd;
use std::fs;
use support::anthropic::{Answer, Server};
use support::wire::Supervisor;
use support::{Desk, place, precede, run, send};

#[test]
fn failure_08_a_conversation_that_dies_on_its_journal_is_set_apart_and_the_others_go_on() {
    let desk = Desk::new();
    let place = place(&desk);
    let (poison, starts) = (desk.outside().join("poison"), desk.outside().join("starts"));
    let script = format!(
        "if [ -e {} ]; then echo x >> {}; exit 3; fi; exec $real",
        poison.display(),
        starts.display()
    );
    precede(&place, "agentd-session", &script);
    let server = Server::answering(|_, _| Answer::text("here"));
    let supervisor = Supervisor::of(&desk, &place.join("agentd-supervisor"));
    let (mut one, mut other) = (supervisor.terminal(), supervisor.terminal());
    let sick = one.open(&desk, &server, Start::New);
    let well = other.open(&desk, &server, Start::New);
    one.prompt(&sick, "first");
    one.turn_ends();
    other.prompt(&well, "first");
    other.turn_ends();
    let neighbour = other.worker(&well, "agentd-session");

    fs::write(&poison, "").unwrap();
    send(one.worker(&sick, "agentd-session"), Signal::SIGKILL);
    let degraded = one.event(|event| matches!(event, Event::Degraded { .. }));
    let Event::Degraded { reason } = degraded else { panic!("{degraded:?}") };
    assert!(reason.contains(&format!("`agentd restart {sick}`")), "{reason}");
    assert!(reason.contains("can be read"), "{reason}");
    assert_eq!(fs::read_to_string(&starts).unwrap(), "x\nx\nx\n", "three tries, no more");

    // It takes nothing more and can be read; its neighbour does not notice.
    let asked = server.requests().len();
    one.prompt(&sick, "second");
    one.event(|event| matches!(event, Event::Degraded { .. }));
    let mut late = supervisor.terminal();
    late.attach(&sick, protocol::client::Since::Seq(1));
    late.event(|event| matches!(event, Event::Answer { .. }));
    late.event(|event| matches!(event, Event::Degraded { .. }));
    assert_eq!(server.requests().len(), asked);
    other.prompt(&well, "second");
    assert_eq!(other.turn_ends(), Event::TurnEnded { end: TurnEnd::Done });
    assert_eq!(other.worker(&well, "agentd-session"), neighbour);

    // A person lifts it; what kills it still does so again.
    let again = run(desk.agentd(&["restart", &sick.0[..6]]));
    assert_eq!(again.code, 0, "{again:?}");
    one.event(|event| matches!(event, Event::Degraded { .. }));
    fs::remove_file(&poison).unwrap();
    let again = run(desk.agentd(&["restart", &sick.0]));
    assert_eq!(again.code, 0, "{again:?}");
    one.prompt(&sick, "third");
    assert_eq!(one.turn_ends(), Event::TurnEnded { end: TurnEnd::Done });
    assert!(supervisor.end().success());
}

#[test]
fn restart_names_what_it_does_not_find() {
    let desk = Desk::new();
    let nobody = run(desk.agentd(&["restart", "3f2a"]));
    assert_eq!(nobody.code, 2, "{nobody:?}");
    assert!(nobody.err.contains("no supervisor holds a session"), "{nobody:?}");
    let server = Server::scripted([]);
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, Start::New);
    assert_eq!(run(desk.agentd(&["restart", "zzz"])).code, 2);
    assert_eq!(run(desk.agentd(&["restart", ""])).code, 2);
    let healthy = terminal.worker(&session, "agentd-session");
    assert_eq!(run(desk.agentd(&["restart", &session.0])).code, 0);
    assert_eq!(terminal.worker(&session, "agentd-session"), healthy, "what lives is let live");
    terminal.say(&FromClient::Restart { session: protocol::ids::SessionId("0".repeat(12)) });
    while !matches!(terminal.hear(), ToClient::Failed { .. }) {}
}
