//! Protected files that a command changed are restored whichever process dies: the runner, the
//! runner with its supervisor, or both because a person ended them. If a file cannot be restored,
//! agentd reports it and asks a person before the next command.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, child_of, processes, run, send, until};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode as Bits;
use protocol::client::{ClientEvent, FromClient, SessionEnding, SessionRequest, SessionStart};
use protocol::ids::SessionId;
use protocol::judgement::{PermissionMode, PersonAnswer as Said};
use protocol::session::OpenTurn;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

const TIERS: [&str; 2] = ["A", "B"];
/// Makes a protected name and a plain one, and then waits.
const WAITS: &str = "echo 'export EVIL=1' > .envrc; mkdir -p .git/hooks; echo evil > \
                     .git/hooks/post-commit; echo kept > plain; touch begun; sleep 60";

fn bash(id: &str, command: &str) -> Answer {
    Answer::says([call(id, "bash", &json!({ "command": command }).to_string())])
}

/// A model that asks for this command and then has done.
fn asks_for(command: &'static str) -> Server {
    Server::answering(move |n, _| match n {
        1 => bash("toolu_1", command),
        _ => Answer::text("Done."),
    })
}

/// A project with a repository, in which git's hooks can be written in both tiers.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.write(".git/HEAD", "ref: refs/heads/main\n");
    desk.write(".git/config", "[core]\n\tbare = false\n");
    desk
}

/// A run whose command has made its names and waits.
fn waiting(desk: &Desk, server: &Server, tier: &str) -> Child {
    let mut command = desk.with_server(server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    until("the command waits", || desk.project().join("begun").exists());
    child
}

fn is_there(desk: &Desk, name: &str) -> bool {
    desk.project().join(name).symlink_metadata().is_ok()
}

/// Where the runners of the only session save their copies of protected files.
fn kept(desk: &Desk) -> PathBuf {
    let sessions = fs::read_dir(desk.state().join("sessions")).unwrap();
    let only: Vec<_> = sessions.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(only.len(), 1, "{only:?}");
    only[0].join("protected")
}

fn id(desk: &Desk) -> SessionId {
    SessionId(kept(desk).parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned())
}

/// Checks the state after a call of `WAITS` that could not restore the files itself.
fn is_put_right(desk: &Desk, told: &str, tier: &str) {
    assert!(!is_there(desk, ".envrc"), "tier {tier}");
    assert!(is_there(desk, ".envrc.quarantined"), "tier {tier}: nothing is thrown away");
    assert!(!is_there(desk, ".git/hooks/post-commit"), "tier {tier}");
    assert_eq!(desk.read("plain"), "kept\n", "tier {tier}: an unprotected file stays");
    assert_eq!(desk.read(".git/config"), "[core]\n\tbare = false\n");
    assert!(told.contains("a protected name: .envrc is new"), "tier {tier}: {told}");
    let tampered = desk.ended(1)["tampered"].to_string();
    assert!(tampered.contains(".envrc is new"), "tier {tier}: {tampered}");
    assert!(tampered.contains(".git/hooks is new"), "tier {tier}: {tampered}");
    // Taken away behind the record of the call's end.
    let kept = || fs::read_dir(kept(desk)).map(|found| found.count()).unwrap_or_default();
    until("nothing is kept of a call that is concluded", || kept() == 0);
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

fn last_request(server: &Server) -> String {
    server.requests().last().unwrap().body["messages"].to_string()
}

#[test]
fn a_killed_runner_is_followed_by_another_that_puts_right() {
    for tier in TIERS {
        let (desk, server) = (desk(), asks_for(WAITS));
        let child = waiting(&desk, &server, tier);
        assert!(is_there(&desk, ".envrc"), "tier {tier}: the command could make it");
        let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
        send(child_of(supervisor, "agentd-tool").unwrap(), Signal::SIGKILL);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let told = last_request(&server);
        assert!(told.contains("interrupted: may have run"), "{told}");
        is_put_right(&desk, &told, tier);
    }
}

/// Kills the supervisor, the runner of a waiting command and all other processes at the same time.
fn killed_together(desk: &Desk, server: &Server, tier: &str) {
    let mut child = waiting(desk, server, tier);
    let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
    let runner = child_of(supervisor, "agentd-tool").unwrap();
    send(child.id(), Signal::SIGSTOP);
    send(supervisor, Signal::SIGSTOP);
    send(runner, Signal::SIGKILL);
    send(supervisor, Signal::SIGKILL);
    send(child.id(), Signal::SIGKILL);
    child.wait().unwrap();
    let left = || processes().into_iter().any(|it| it.session == child.id());
    until("no process is left behind", || !left());
    assert!(is_there(desk, ".envrc"), "tier {tier}: no process was left to restore it");
}

fn resume(desk: &Desk, server: &Server, tier: &str) -> crate::support::Run {
    let id = id(desk).0;
    let mut command = desk.with_server(
        server,
        &["-p", "go on", "--output-format", "json", "--permission-mode", "auto", "--resume", &id],
    );
    command.env("AGENTD_SANDBOX_TIER", tier);
    run(command)
}

#[test]
fn whoever_resumes_puts_right_first_what_a_dead_supervisor_and_its_runner_left() {
    for tier in TIERS {
        let (desk, server) = (desk(), asks_for(WAITS));
        killed_together(&desk, &server, tier);
        let project = desk.project();
        let ran = resume(&desk, &server, tier);
        assert_eq!((ran.code, ran.result().as_str()), (0, "Done."), "{ran:?}");
        assert!(!project.join(".envrc").exists());
        assert!(
            ran.err.contains("were restored to their state"),
            "standard error reports it: {ran:?}"
        );
        is_put_right(&desk, &last_request(&server), tier);
        let shown = run(desk.agentd(&["show", &id(&desk).0])).out;
        assert!(shown.contains(".envrc is new"), "{shown}");
    }
}

#[test]
fn a_session_that_is_killed_puts_right_first_and_one_whose_runner_hangs_too() {
    for (tier, stopped) in TIERS.into_iter().flat_map(|tier| [(tier, false), (tier, true)]) {
        let (desk, server) = (desk(), asks_for(WAITS));
        let mut daemon = desk.agentd(&["daemon", "start"]);
        daemon.env("AGENTD_SANDBOX_TIER", tier);
        assert_eq!(run(daemon).code, 0);
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&opening(&desk, &server, tier, PermissionMode::Auto));
        wire.prompt(&session, "go");
        until("the command waits", || desk.project().join("begun").exists());
        assert!(is_there(&desk, ".envrc"), "tier {tier}");
        if stopped {
            send(child_of(wire.pid, "agentd-tool").unwrap(), Signal::SIGSTOP);
        }
        let ending = SessionEnding::Kill;
        wire.say(FromClient::End { session: session.clone(), ending });
        until("the session has ended", || {
            !processes().into_iter().any(|it| it.parent == wire.pid && it.name == "agentd-session")
        });
        let journal = || fs::read_to_string(kept(&desk).with_file_name("journal.jsonl")).unwrap();
        until("the end of the call is on record", || journal().contains(".envrc is new"));
        let journal = journal();
        // A runner that can does its duty itself, and reports.
        let reported = journal.contains("cancelled");
        assert_eq!(reported, !stopped, "tier {tier}: {journal}");
        is_put_right(&desk, "a protected name: .envrc is new", tier);
        assert_eq!(run(desk.agentd(&["daemon", "stop", "--force"])).code, 0);
    }
}

fn opening(desk: &Desk, server: &Server, tier: &str, mode: PermissionMode) -> SessionRequest {
    let mut opening = desk.opening(server);
    opening.mode = Some(mode);
    opening.settings.push(("sandbox.tier".into(), tier.to_lowercase()));
    opening
}

/// The runner's copies were damaged: agentd reports it, and the next command waits for a person.
#[test]
fn what_cannot_be_put_right_is_said_and_a_person_is_asked_before_the_next_command() {
    for tier in TIERS {
        let desk = desk();
        let server = Server::answering(|n, _| match n {
            1 => bash("toolu_1", WAITS),
            2 => bash("toolu_2", "touch unasked"),
            3 => Answer::says([
                call("toolu_3", "read", r#"{"path":"plain"}"#),
                call("toolu_4", "write", r#"{"path":"file","content":"x"}"#),
            ]),
            4 => Answer::text("so be it"),
            5 | 6 => bash(&format!("toolu_{n}"), &format!("touch asked-{n}")),
            _ => Answer::text("Done."),
        });
        killed_together(&desk, &server, tier);
        fs::write(kept(&desk).join("1.names"), "nothing of it").unwrap();
        let ran = resume(&desk, &server, tier);
        assert_eq!(ran.result(), "so be it", "{ran:?}");
        let sent = &server.requests()[1].body["messages"].to_string();
        assert!(
            sent.contains("was changed and not restored") && sent.contains("it is damaged"),
            "{sent}"
        );
        assert!(desk.ended(1)["tampered"].to_string().contains("it is damaged"));
        let refused = &server.requests()[2].body["messages"].to_string();
        assert!(refused.contains("could not restore"), "{refused}");
        assert!(refused.contains("non-interactive"), "{refused}");
        assert!(!is_there(&desk, "unasked"), "tier {tier}");
        assert!(is_there(&desk, "file"), "tools of files go on");

        // A person is asked, with its name, and once only.
        let mut daemon = desk.agentd(&["daemon", "start"]);
        daemon.env("AGENTD_SANDBOX_TIER", tier);
        assert_eq!(run(daemon).code, 0);
        let mut wire = Wire::to(&desk.door());
        let start = SessionStart::Resume { session: id(&desk), open_turn: OpenTurn::GoesOn };
        let session = wire
            .open(&SessionRequest { start, ..opening(&desk, &server, tier, PermissionMode::Auto) });
        wire.prompt(&session, "go on");
        let question = wire.question();
        assert!(question.reason.contains("a protected file (.git/hooks"), "{question:?}");
        assert!(question.reason.contains("it is damaged"), "{question:?}");
        let (call, digest) = (question.call.clone(), question.digest.clone());
        wire.say(FromClient::Answer { call, digest, answer: Said::Once });
        wire.event("the turn's end", |event| match event {
            ClientEvent::Asked { question } => panic!("asked again: {question:?}"),
            ClientEvent::TurnEnded { .. } => Some(()),
            _ => None,
        });
        assert!(is_there(&desk, "asked-5") && is_there(&desk, "asked-6"), "tier {tier}");
        assert_eq!(run(desk.agentd(&["daemon", "stop", "--force"])).code, 0);
    }
}

/// Without the copy agentd cannot know if the command changed the file.
#[test]
fn a_copy_that_is_gone_is_no_command_that_never_began() {
    let (desk, server) = (desk(), asks_for(WAITS));
    killed_together(&desk, &server, "B");
    fs::remove_file(kept(&desk).join("1.names")).unwrap();
    let ran = resume(&desk, &server, "B");
    assert_eq!(ran.result(), "Done.", "{ran:?}");
    let tampered = desk.ended(1)["tampered"].to_string();
    assert!(tampered.contains("the copies that its runner saved are missing"), "{tampered}");
}

/// The runner itself could not: a thing that holds no bytes cannot be made again.
#[test]
fn a_command_that_removes_what_cannot_be_made_again_has_failed() {
    for tier in TIERS {
        for (command, taken) in [("rm sub/.envrc", true), ("true", false)] {
            let desk = desk();
            desk.write("sub/.git/HEAD", "ref: refs/heads/main\n");
            let pipe = desk.project().join("sub/.envrc");
            nix::unistd::mkfifo(&pipe, Bits::S_IRUSR | Bits::S_IWUSR).unwrap();
            let server = Server::answering(move |n, _| match n {
                1 => bash("toolu_1", command),
                2 => bash("toolu_2", "touch next"),
                _ => Answer::text("Done."),
            });
            let mut run_it = desk.with_server(
                &server,
                &["-p", "x", "--output-format", "json", "--permission-mode", "auto"],
            );
            run_it.env("AGENTD_SANDBOX_TIER", tier);
            let ran = run(run_it);
            assert_eq!(ran.result(), "Done.", "{ran:?}");
            let told = server.requests()[1].body["messages"].to_string();
            let how = desk.ended(1)["outcome"]["how"].clone();
            assert_eq!(told.contains("sub/.envrc could not be restored"), taken, "{told}");
            assert_eq!(told.contains(r#""is_error":true"#), taken, "{told}");
            assert_eq!(how, if taken { "confined" } else { "exited" }, "tier {tier}");
            assert_eq!(is_there(&desk, "next"), !taken, "tier {tier}: {command}");
        }
    }
}

/// Where no copy can be kept, the command does not begin.
#[test]
fn a_command_does_not_begin_where_no_copy_can_be_kept() {
    for tier in TIERS {
        let desk = desk();
        let server = Server::answering(|n, _| match n {
            1 => Answer::text("Done."),
            2 => bash("toolu_1", "touch ran"),
            3 => Answer::text("refused"),
            4 => bash("toolu_2", "touch ran; ls -l /proc/self/fd"),
            _ => Answer::text("ran"),
        });
        assert_eq!(desk.ask(&server, &[]).result(), "Done.");
        let place = kept(&desk);
        fs::write(&place, "in its way").unwrap();
        assert_eq!(resume(&desk, &server, tier).result(), "refused");
        let told = last_request(&server);
        assert!(told.contains("the protected files cannot be backed up"), "{told}");
        assert!(told.contains(place.to_str().unwrap()) && told.contains("free space"), "{told}");
        assert!(!is_there(&desk, "ran"), "tier {tier}");
        fs::remove_file(&place).unwrap();
        assert_eq!(resume(&desk, &server, tier).result(), "ran");
        assert!(is_there(&desk, "ran"), "tier {tier}");
        let told = last_request(&server);
        assert!(!told.contains(".names"), "the command cannot read the copies: {told}");
    }
}
