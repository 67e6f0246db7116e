//! Faults of workers, disk and clients in the real executables. No data is lost, no effect is
//! repeated, no process waits forever or stays behind.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call, text};
use crate::support::daemon::observer;
use crate::support::wire::Supervisor;
use crate::support::{Desk, child_of, place, precede, processes, replace, run, send, until};
use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, recv};
use protocol::client::{
    BacklogFrom, ClientEvent, ClientLink, ClientRights, FromClient, OtherClients, RequestFailure,
    SessionStart, ToClient, WhileBusy,
};
use protocol::confinement::{Enforced, Tier};
use protocol::ids::{Generation, SessionId};
use protocol::session::TurnEnd;
use protocol::tool::{FromCage, FromCall, FromTool, OutputStream};
use serde_json::json;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// `agentd` of that place, as the desk would run it.
fn agentd(place: &Path, desk: &Desk, server: &Server, arguments: &[&str]) -> Command {
    let like = desk.with_server(server, &[]);
    let mut command = Command::new("setsid");
    command.arg(place.join("agentd")).args(arguments).current_dir(desk.project()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null());
    command
}

fn bash(id: &str, command: &str) -> crate::support::anthropic::Say {
    call(id, "bash", &json!({ "command": command }).to_string())
}

/// A command that says that it has begun, and ends once the test writes the file `go`.
const UNTIL_GO: &str = "touch begun; while [ ! -e go ]; do sleep 0.05; done";

/// Waits until no process of that run is left.
#[track_caller]
fn nothing_left(child: &Child) {
    let session = child.id();
    until("nothing is left running", || {
        !processes().iter().any(|process| process.session == session)
    });
}

fn only_session(desk: &Desk) -> String {
    let sessions: Vec<_> = fs::read_dir(desk.state().join("sessions")).unwrap().collect();
    assert_eq!(sessions.len(), 1);
    sessions[0].as_ref().unwrap().file_name().into_string().unwrap()
}

#[test]
fn a_session_of_thousands_of_records_goes_on() {
    let desk = Desk::new();
    let filler = "x".repeat(3000);
    let server = Server::answering(move |n, _| match n % 2 {
        1 => Answer::says((0..300).map(|k| {
            call(&format!("toolu_{n}_{k}"), "nonsense", &json!({ "x": filler }).to_string())
        })),
        _ => Answer::text("done"),
    });
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let id = only_session(&desk);
    for _ in 0..4 {
        let ran = desk.ask(&server, &["--resume", &id, "--timeout", "40"]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}

#[test]
fn a_broker_that_cannot_run_denies_calls_that_come_after_it_failed_too() {
    let desk = Desk::new();
    let place = place(&desk);
    replace(&place, "agentd-broker", "exit 3");
    let slow =
        Answer::says([bash("toolu_1", "touch ran")]).stalled_after(10, Duration::from_secs(4));
    let server = Server::scripted([slow, Answer::text("denied, then")]);
    let arguments = ["-p", "x", "--permission-mode", "auto", "--timeout", "15"];
    let ran = run(agentd(&place, &desk, &server, &arguments));
    assert_ne!(ran.code, 124, "{}", ran.err);
    assert!(!desk.project().join("ran").exists());
    assert!(
        server.requests()[1].body.to_string().contains("the broker, which judges calls, is not")
    );
}

#[test]
fn a_call_that_is_too_large_for_a_wire_is_a_result_and_no_silence() {
    for megabytes in [9, 17] {
        let desk = Desk::new();
        let content = "x".repeat(megabytes << 20);
        let input = json!({ "path": "big", "content": content }).to_string();
        // Such a call fills the context: what is left out is cut, and no summary is asked for.
        desk.write(".agentd/config.toml", "[context]\ncompaction = \"cut\"\n");
        let server = Server::scripted([
            Answer::says([call("toolu_1", "write", &input)]),
            Answer::text("smaller, then"),
        ]);
        let ran =
            desk.ask(&server, &["--permission-mode", "auto", "--timeout", "30", "--trust-project"]);
        assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    }
}

#[test]
fn no_further_call_begins_when_a_run_is_being_ended() {
    for victim in ["agentd", "agentd-supervisor"] {
        let desk = Desk::new();
        let server = Server::scripted([Answer::says([
            bash("toolu_1", "echo x >> first; sleep 50"),
            bash("toolu_2", "echo x >> second"),
            bash("toolu_3", "echo x >> second"),
        ])]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        let mut child = command.spawn().unwrap();
        until("the first call runs", || desk.project().join("first").exists());
        let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
        match victim {
            "agentd" => send(child.id(), Signal::SIGKILL),
            _ => send(supervisor, Signal::SIGTERM),
        }
        let status = child.wait().unwrap();
        nothing_left(&child);
        assert_ne!(status.code(), Some(0), "a supervisor that was asked to end has no successor");
        assert!(!desk.project().join("second").exists(), "{victim}");
        let left: Vec<_> = fs::read_dir(desk.run_dir().join("agentd"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn what_a_call_does_to_its_temporary_directory_does_not_lock_its_session() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash(
            "toolu_1",
            "mkdir -p $TMPDIR/a/b; chmod 000 $TMPDIR/a; chmod 755 $TMPDIR; touch begun; sleep 50",
        )]),
        Answer::text("on"),
    ]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let mut child = command.spawn().unwrap();
    until("the call runs", || desk.project().join("begun").exists());
    // The next supervisor opens the same session with the same directory.
    send(child_of(child.id(), "agentd-supervisor").unwrap(), Signal::SIGKILL);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let id = only_session(&desk);
    let kept = Path::new("/tmp").join(format!("agentd-{id}/tmp/a"));
    assert!(kept.is_dir(), "what was there is there for the next call");
}

#[test]
fn a_runner_that_is_stopped_does_not_outlive_an_interrupted_run() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::says([bash("toolu_1", "touch begun; sleep 50")])]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let mut child = command.spawn().unwrap();
    until("the call runs", || desk.project().join("begun").exists());
    let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
    send(child_of(supervisor, "agentd-tool").unwrap(), Signal::SIGSTOP);
    send(child.id(), Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    nothing_left(&child);
    // It was killed for it, in time for its end to be written down.
    assert_eq!(desk.ended(1)["outcome"]["how"], "interrupted");
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

/// The test reads no output until the end of the turn is on disk, and then finds all of it.
#[test]
fn a_reader_that_is_slow_holds_up_no_turn_and_loses_nothing() {
    use std::io::Read;
    let desk = Desk::new();
    let words = "y".repeat(200_000);
    let many: Vec<_> = (0..9000).map(|_| text("z")).collect();
    let server = Server::scripted([
        Answer::says([text(&words), call("toolu_1", "ls", "{}")]),
        Answer::says(many),
    ]);
    let arguments = ["-p", "x", "--output-format", "stream-json"];
    let mut command = desk.with_server(&server, &arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the turn has ended", || {
        let sessions = fs::read_dir(desk.state().join("sessions")).into_iter().flatten().flatten();
        let journals = sessions.map(|it| fs::read_to_string(it.path().join("journal.jsonl")));
        journals.flatten().any(|journal| journal.contains(r#""kind":"TURN_ENDED""#))
    });
    assert!(child.try_wait().unwrap().is_none(), "it has not said all of it yet");
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{err}");
    let lines: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = lines.iter().find(|line| line["type"] == "assistant").unwrap();
    assert_eq!(first["message"]["content"][0]["text"], words);
    let last = lines.last().unwrap();
    assert_eq!(last["subtype"], "success", "{last}");
    assert_eq!(last["result"].as_str().unwrap().matches('z').count(), 9000);
}

#[test]
fn a_conversation_killed_in_mid_stream_or_mid_call_goes_on_with_its_turn() {
    for mid in ["stream", "call"] {
        let desk = Desk::new();
        let stalled = Answer::text("half of it").stalled_after(300, Duration::from_secs(8));
        let first = match mid {
            "stream" => stalled,
            _ => Answer::says([bash("toolu_1", &format!("{UNTIL_GO}; echo x >> done"))]),
        };
        let server = Server::scripted([first, Answer::text("second")]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        match mid {
            "stream" => until("asked", || server.requests().len() == 1),
            _ => until("begun", || desk.project().join("begun").exists()),
        }
        let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
        send(child_of(supervisor, "agentd-session").unwrap(), Signal::SIGKILL);
        desk.write("go", "");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "second\n");
        if mid == "call" {
            assert_eq!(desk.read("done"), "x\n");
        }
    }
}

#[test]
fn a_command_can_be_ended_by_what_a_script_ends_it_with() {
    let desk = Desk::new();
    let script = "timeout 1 sleep 30; echo timeout: $?; sleep 30 & kill $!; wait $!; echo kill: $?";
    let server = Server::scripted([Answer::says([bash("toolu_1", script)]), Answer::text("done")]);
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    let body = server.requests()[1].body.to_string();
    assert!(body.contains("timeout: 124") && body.contains("kill: 143"), "{body}");
    assert!(ran.took < Duration::from_secs(20), "{ran:?}");
}

#[test]
fn runs_side_by_side_share_one_audit_log() {
    let desk = Desk::new();
    let server = Server::answering(|_, body| match body["messages"].as_array().unwrap().len() {
        1 | 3 | 5 => Answer::says([bash("toolu", "echo x >> effects")]),
        _ => Answer::text("done"),
    });
    let arguments = ["-p", "x", "--permission-mode", "auto"];
    let children: Vec<_> =
        (0..8).map(|_| desk.with_server(&server, &arguments).spawn().unwrap()).collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert_eq!(desk.read("effects").lines().count(), 24);
    assert_eq!(desk.audit().len(), 48);
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

#[test]
fn a_provider_killed_in_mid_stream_is_asked_again_and_its_half_is_not_run() {
    let desk = Desk::new();
    let (observe, (attached, observers)) = (observer(&desk), std::sync::mpsc::channel());
    let server = Server::answering(move |n, _| match n {
        1 => {
            attached.send(observe()).unwrap();
            Answer::says([text("half"), bash("toolu_1", "echo x >> effects")])
                .stalled_after(700, Duration::from_secs(20))
        }
        2 => Answer::says([text("whole"), bash("toolu_2", "echo x >> effects")]),
        _ => Answer::text("done"),
    });
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut client = observers.recv_timeout(Duration::from_secs(20)).expect("a request");
    client.model_text("half");
    let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
    send(child_of(supervisor, "agentd-provider").unwrap(), Signal::SIGKILL);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("retrying"), "{output:?}");
    assert_eq!(desk.read("effects"), "x\n");
}

#[test]
fn garbage_and_crowds_at_the_door_disturb_nobody() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    let desk = Desk::new();
    let server =
        Server::scripted([Answer::says([bash("toolu_1", UNTIL_GO)]), Answer::text("done")]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let mut child = command.spawn().unwrap();
    until("the call runs", || desk.project().join("begun").exists());
    let door = fs::read_dir(desk.run_dir().join("agentd")).unwrap().next().unwrap().unwrap().path();
    let crowd: Vec<_> = (0..60_usize)
        .map(|n| {
            let mut stream = UnixStream::connect(door.join("socket")).unwrap();
            let garbage = vec![u8::try_from(n).unwrap(); n * n * 10];
            let _ = stream.write_all(&garbage);
            stream
        })
        .collect();
    desk.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(crowd);
    nothing_left(&child);
}

#[test]
fn in_tier_b_too_nothing_outlives_a_client_that_was_killed() {
    let desk = Desk::new();
    let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; touch begun; sleep 321' & sleep 321";
    let server = Server::scripted([Answer::says([bash("toolu_1", script)])]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", "B");
    let mut child = command.spawn().unwrap();
    until("the call runs", || desk.project().join("begun").exists());
    send(child.id(), Signal::SIGKILL);
    child.wait().unwrap();
    nothing_left(&child);
    let project = desk.project();
    until("its grandchild is gone", || {
        !processes().iter().any(|process| {
            process.name == "sleep"
                && fs::read_link(format!("/proc/{}/cwd", process.pid))
                    .is_ok_and(|cwd| cwd == project)
        })
    });
}

#[test]
fn a_runner_that_never_builds_its_cage_is_given_up() {
    let desk = Desk::new();
    let place = place(&desk);
    let real = place.join("agentd-tool.real");
    fs::rename(place.join("agentd-tool"), &real).unwrap();
    fs::write(place.join("agentd-tool"), "").unwrap();
    // Hello is the runner's own; then it is stopped.
    let script = format!("kill -STOP $$; exec {}", real.display());
    replace(&place, "agentd-tool", &script);
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "touch ran")]),
        Answer::text("not run, then"),
    ]);
    let arguments = ["-p", "x", "--permission-mode", "auto", "--timeout", "40"];
    let ran = run(agentd(&place, &desk, &server, &arguments));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(server.requests()[1].body.to_string().contains("The call was not run"));
}

/// The supervisor has no use for a probe after its report: it closes the channel, which a stopped
/// process does not notice, and kills it five seconds later. The script runs the probe and stops in
/// its place, with the channel open. A later runner is the real one.
#[test]
fn a_probe_that_is_stopped_right_after_its_report_is_killed_and_its_call_goes_on() {
    let desk = Desk::new();
    desk.write("notes", "one\n");
    let place = place(&desk);
    let (stopped, woken) = (desk.outside().join("stopped"), desk.outside().join("woken"));
    let script = format!(
        "[ ! -e {stopped} ] || exec $real\necho $$ > {stopped}; $real; kill -STOP $$; touch {woken}",
        stopped = stopped.display(),
        woken = woken.display()
    );
    precede(&place, "agentd-tool", &script);
    let input = json!({ "path": "notes", "old_string": "one", "new_string": "two" }).to_string();
    let server = Server::answering(move |n, _| match n {
        1 => Answer::says([call("toolu_1", "edit", &input)]),
        _ => Answer::text("done"),
    });
    let supervisor = Supervisor::of(&desk, &place.join("agentd-supervisor"));
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&session, "x");
    assert_eq!(terminal.turn_ends(), ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert_eq!(desk.read("notes"), "two\n", "the call ran after the probe");
    assert_eq!(desk.ended(1)["outcome"]["how"], "done");

    let probe: u32 = fs::read_to_string(&stopped).expect("the probe").trim().parse().unwrap();
    until("the supervisor kills the stopped probe", || {
        !processes().iter().any(|it| it.pid == probe)
    });
    assert!(!woken.exists(), "the probe was killed while it was stopped");
    terminal.prompt(&session, "y");
    assert_eq!(terminal.turn_ends(), ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert!(supervisor.end().success());
}

#[test]
fn three_mebibytes_on_standard_input_are_a_prompt() {
    let desk = Desk::new();
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    // A larger prompt would be left out of the request to a model with a smaller context.
    fs::write(config, "[models.roomy]\nmodel = 'test-model'\ncontext = 4000000\n").unwrap();
    let file = desk.write("long", &"z ".repeat(3 << 19));
    let server = Server::scripted([Answer::text("long")]);
    let mut command = desk.with_server(&server, &["-p", "sum up", "--model", "roomy"]);
    command.stdin(fs::File::open(file).unwrap());
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(server.requests()[0].raw.len() > 3 << 20);
    let id = only_session(&desk);
    let server = Server::scripted([Answer::text("again")]);
    assert_eq!(desk.ask(&server, &["--resume", &id, "--model", "roomy"]).code, 0);
    assert!(server.requests()[0].raw.len() > 3 << 20, "it is replayed whole");
}

#[test]
fn a_damaged_journal_is_named_and_left_alone() {
    let desk = Desk::new();
    let server =
        Server::scripted([Answer::text("one"), Answer::text("two"), Answer::text("three")]);
    assert_eq!(desk.ask(&server, &[]).code, 0);
    let id = only_session(&desk);
    assert_eq!(desk.ask(&server, &["--resume", &id]).code, 0);
    let path = desk.state().join("sessions").join(&id).join("journal.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replacen("one", "eno", 1)).unwrap();
    let ran = desk.ask(&server, &["--resume", &id]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("journal"), "{ran:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), whole.replacen("one", "eno", 1));
    // A crash can leave half a record at the end.
    fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    assert_eq!(desk.ask(&server, &["--resume", &id]).code, 0);
}

#[test]
fn workers_that_are_stopped_do_not_hold_up_the_end_of_a_run() {
    for worker in ["agentd-session", "agentd-provider", "agentd-broker", "agentd-store"] {
        let desk = Desk::new();
        let server = Server::scripted([Answer::says([bash("toolu_1", "touch begun; sleep 50")])]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        let mut child = command.spawn().unwrap();
        until("the call runs", || desk.project().join("begun").exists());
        let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
        send(child_of(supervisor, worker).unwrap(), Signal::SIGSTOP);
        send(child.id(), Signal::SIGINT);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{worker}");
        nothing_left(&child);
        assert_eq!(fs::read_dir(desk.run_dir().join("agentd")).unwrap().count(), 0, "{worker}");
    }
}

#[test]
fn a_runner_s_executable_that_disappears_is_a_result() {
    let desk = Desk::new();
    let place = place(&desk);
    // A runner in reserve is started before the answer comes.
    let config = desk.home().join(".config/agentd");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[daemon]\nidle_reserve = \"0s\"\n").unwrap();
    let tool = place.join("agentd-tool");
    let server = Server::answering(move |n, _| match n {
        1 => {
            fs::remove_file(&tool).unwrap();
            Answer::says([bash("toolu_1", "touch ran")])
        }
        _ => Answer::text("sorry"),
    });
    let arguments = ["-p", "x", "--permission-mode", "auto", "--timeout", "20"];
    let ran = run(agentd(&place, &desk, &server, &arguments));
    assert_eq!(ran.code, 11, "{ran:?}");
    assert!(server.requests()[1].body.to_string().contains("agentd-tool is missing"));
}

#[test]
fn a_call_s_end_that_the_audit_log_does_not_take_closes_the_session() {
    let desk = Desk::new();
    let log = desk.state().join("audit/log.jsonl");
    let server =
        Server::scripted([Answer::says([bash("toolu_1", UNTIL_GO)]), Answer::text("never asked")]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the call runs", || desk.project().join("begun").exists());
    let audit = fs::read_dir(log.parent().unwrap()).unwrap().flatten();
    for entry in audit.filter(|entry| entry.path().is_file()) {
        fs::write(entry.path(), "").unwrap();
    }
    desk.write("go", "");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("audit log"), "{output:?}");
    assert_eq!(server.requests().len(), 1, "the turn does not continue without the record");
}

#[test]
fn sixty_four_calls_of_the_same_name_in_one_answer_each_have_their_result() {
    let desk = Desk::new();
    desk.write("a", "text\n");
    let server = Server::scripted([
        Answer::says((0..64).map(|_| call("toolu_same", "read", r#"{"path":"a"}"#))),
        Answer::text("done"),
    ]);
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let body = &server.requests()[1].body["messages"][2]["content"];
    assert_eq!(body.as_array().unwrap().len(), 64);
}

/// A runner's words at once, and those that follow once it has got the command, as files for a shell to say.
fn runner_says(desk: &Desk, words: &[FromTool], then: &[FromTool]) -> String {
    let file = |name: &str, mut bytes: Vec<u8>, words: &[FromTool]| {
        for word in words {
            bytes.extend(ipc::frames(Generation(0), 0, &ipc::codec::encode(word).unwrap()));
        }
        let path = desk.outside().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let words = file("words", ipc::Hello::own().to_bytes().to_vec(), words);
    if then.is_empty() {
        return format!("cat {words} >&0; exec sleep 60");
    }
    let then = file("then", Vec::new(), then);
    let got = desk.outside().join("got").display().to_string();
    format!(
        "cat {words} >&0\n\
         until grep -qas 'touch ran' {got}.$$; do dd bs=65536 count=1 2>&- >>{got}.$$; done\n\
         cat {then} >&0; exec sleep 60"
    )
}

#[test]
fn a_runner_that_speaks_out_of_turn_is_ended_and_its_call_has_a_result() {
    let caged = || {
        FromTool::Cage(FromCage::Caged(Enforced { tier: Tier::A, ..Enforced::nothing("command") }))
    };
    let probed = || FromTool::Probed(Err("no".into()));
    let output =
        || FromTool::Call(FromCall::Output { stream: OutputStream::Out, text: "x".into() });
    let uncaged = || FromTool::Cage(FromCage::Uncaged { step: "s".into(), reason: "r".into() });
    let began = || FromTool::Call(FromCall::Began);
    for (words, then, told) in [
        (vec![probed()], vec![], "The call was not run"),
        (vec![output()], vec![], "The call was not run"),
        (vec![caged(), probed()], vec![], "The call was not run"),
        (vec![caged(), caged()], vec![], "The call was not run"),
        // It has the command, and did not say that it began.
        (vec![caged()], vec![probed()], "The call was not run"),
        // It began. What it says is heard to the end, though it is killed for its first word.
        (vec![caged()], vec![output(), began()], "may have run"),
        (vec![caged()], vec![began(), probed()], "may have run"),
        (vec![caged()], vec![began(), uncaged()], "may have run"),
        (vec![caged()], vec![began(), output(), caged()], "may have run"),
    ] {
        let desk = Desk::new();
        let place = place(&desk);
        replace(&place, "agentd-tool", &runner_says(&desk, &words, &then));
        let server =
            Server::scripted([Answer::says([bash("toolu_1", "touch ran")]), Answer::text("I see")]);
        let arguments = ["-p", "x", "--permission-mode", "auto", "--timeout", "9"];
        let mut child = agentd(&place, &desk, &server, &arguments).spawn().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{words:?} {then:?}");
        nothing_left(&child);
        let body = server.requests()[1].body.to_string();
        assert!(body.contains(told), "{words:?} {then:?}: {body}");
        let began = desk.ended(1)["started"].is_u64();
        assert_eq!(began, told == "may have run", "{words:?} {then:?}: {:#}", desk.ended(1));
        assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
    }
}

#[test]
fn a_terminal_that_comes_late_is_shown_everything_and_only_what_is_open() {
    let desk = Desk::new();
    let server = Server::answering(move |n, _| match n {
        19 => Answer::says([bash("toolu_last", UNTIL_GO)]),
        n if n % 2 == 1 => Answer::says((0..300).map(|k| call(&format!("t_{n}_{k}"), "no", "{}"))),
        _ => Answer::text("done"),
    });
    assert_eq!(desk.ask(&server, &[]).code, 0);
    let id = only_session(&desk);
    for _ in 0..8 {
        assert_eq!(desk.ask(&server, &["--resume", &id]).code, 0);
    }
    let arguments = ["-p", "x", "--permission-mode", "auto", "--resume", &id];
    let mut child = desk.with_server(&server, &arguments).spawn().unwrap();
    until("the call runs", || desk.project().join("begun").exists());
    let door = fs::read_dir(desk.run_dir().join("agentd")).unwrap().next().unwrap().unwrap().path();
    let socket = std::os::unix::net::UnixStream::connect(door.join("socket")).unwrap();
    let peer = socket.try_clone().unwrap();
    let (mut words, say) = ipc::connect::<ClientLink>(socket).unwrap();
    let token = fs::read_to_string(door.join("token")).unwrap();
    say.send(&FromClient::Hello { token, build: protocol::BUILD_ID.into() }).unwrap();
    assert!(matches!(words.recv(), Ok(ToClient::Welcome { .. })));
    let session = SessionId(id);
    say.send(&FromClient::Prompt {
        session: session.clone(),
        text: "hi".into(),
        form: None,
        busy: WhileBusy::Queue,
    })
    .unwrap();
    assert!(matches!(words.recv(), Ok(ToClient::Failed { kind: RequestFailure::Usage, .. })));
    let other = SessionId("0".repeat(12));
    let attach = |session| FromClient::Attach {
        session,
        from: BacklogFrom::Seq(0),
        rights: ClientRights::ReadOnly,
        others: OtherClients::Stay,
    };
    say.send(&attach(other)).unwrap();
    assert!(matches!(words.recv(), Ok(ToClient::Failed { kind: RequestFailure::NotFound, .. })));
    say.send(&attach(session.clone())).unwrap();
    // It reads nothing until the supervisor has filled its socket with the backlog.
    let unread = || {
        let mut bytes = vec![0; 1 << 20];
        recv(peer.as_raw_fd(), &mut bytes, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT).unwrap_or(0)
    };
    let mut before = 0;
    until("the backlog fills the socket", || {
        let now = unread();
        std::mem::replace(&mut before, now) == now && now > 16_384
    });
    let mut ends = 0;
    let mut last = 0;
    while ends < 9 {
        let word = words.recv().unwrap();
        let ToClient::Event { seq, event, .. } = word else { panic!("{word:?}") };
        assert!(seq > last, "{seq} after {last}");
        last = seq;
        ends += u32::from(matches!(event, ClientEvent::TurnEnded { .. }));
    }
    assert!(last > 5000, "{last}");
    say.send(&FromClient::Interrupt { session }).unwrap();
    while !matches!(words.recv(), Ok(ToClient::Failed { kind: RequestFailure::Usage, .. })) {}
    desk.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(0), "a read-only client cannot stop a turn");
}

#[test]
fn a_session_that_never_began_is_no_gap_in_the_audit() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => Answer::says([bash("toolu_1", "true")]),
        _ => Answer::text("done"),
    });
    assert_eq!(desk.ask(&server, &["--permission-mode", "auto"]).code, 0);
    let began = desk.state().join("sessions").join(only_session(&desk));
    // A supervisor that dies between making the directory and writing the first record leaves this.
    let never = began.with_file_name("0123456789ab");
    fs::create_dir(&never).unwrap();
    fs::write(never.join("journal.jsonl"), "").unwrap();
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    // An emptied journal of a session that the log names is a gap.
    fs::write(began.join("journal.jsonl"), "").unwrap();
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_ne!(verified.code, 0, "{}", verified.out);
}
