//! Undo of file tools: by the store's copies, in a cage like any change.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::terminal::Tmux;
use crate::support::{Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::FromClient;
use protocol::judgement::{PersonAnswer as Said, Question};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::{Arc, Mutex};

const AUTO: [&str; 2] = ["--permission-mode", "auto"];

/// Runs these calls, one an answer, and returns their results.
fn calls(desk: &Desk, flags: &[&str], calls: &[(&str, Value)]) -> Vec<String> {
    let answers = calls.iter().zip(1..).map(|((tool, input), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    let server = Server::scripted(answers.chain([Answer::text("Done.")]));
    let ran = run(desk.with_server(&server, &[&["-p", "Go."], flags].concat()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    let result = |body: &Value| {
        let messages = body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"][0]["content"].to_string()
    };
    server.requests()[1..].iter().map(|request| result(&request.body)).collect()
}

fn undo(id: u32) -> (&'static str, Value) {
    ("undo_restore", json!({"id": id}))
}

#[test]
fn every_file_tool_can_be_undone_and_so_can_undoing() {
    let desk = Desk::new();
    desk.write("a", "one\r\ntwo\n");
    let script = desk.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    desk.write("d/x", "x");
    desk.write("d/e/y", "y\u{e9}");
    fs::write(desk.project().join("d/bytes"), [0, 0xff, 0xfe]).unwrap();
    symlink("a", desk.project().join("link")).unwrap();
    let changed = [
        ("write", json!({"path": "a", "content": "other"})),
        ("write", json!({"path": "new/made", "content": "made"})),
        ("edit", json!({"path": "run.sh", "old_string": "sh\n", "new_string": "bash\n"})),
        ("multi_edit", json!({"path": "a", "edits": [{"find": "other", "replace": "third"}]})),
        ("delete", json!({"paths": ["d", "run.sh"], "recursive": true})),
        ("delete", json!({"paths": ["link"]})),
        ("edit", json!({"path": "a", "old_string": "not there", "new_string": "x"})),
        ("undo_list", json!({})),
    ];
    let said = calls(&desk, &AUTO, &changed);
    let list = &said[7];
    for line in [
        "6 delete",
        "link (removed)",
        "5 delete",
        "run.sh (removed)",
        "4 multi_edit",
        "new/made (made)",
    ] {
        assert!(list.contains(line), "{line}: {list}");
    }
    assert!(!list.contains("7 edit"), "what changed nothing is not there: {list}");
    assert!(!desk.project().join("d").exists() && desk.read("a") == "third");
    let back = calls(&desk, &[&AUTO[..], &["-c"]].concat(), &[6, 5, 4, 3, 2, 1].map(undo));
    assert!(back.iter().all(|said| !said.contains("Error")), "{back:?}");
    assert_eq!(desk.read("a"), "one\r\ntwo\n");
    assert_eq!(desk.read("run.sh"), "#!/bin/sh\n");
    assert_eq!(script.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!((desk.read("d/x"), desk.read("d/e/y")), ("x".into(), "y\u{e9}".into()));
    assert_eq!(fs::read(desk.project().join("d/bytes")).unwrap(), [0, 0xff, 0xfe]);
    assert_eq!(fs::read_link(desk.project().join("link")).unwrap().to_str(), Some("a"));
    assert!(!desk.project().join("new/made").exists());
    // Undoes the last undo.
    let list = calls(&desk, &[&AUTO[..], &["-c"]].concat(), &[("undo_list", json!({}))]);
    assert!(list[0].contains("undo_restore"), "{list:?}");
    let last: String =
        list[0].trim_start_matches('"').chars().take_while(char::is_ascii_digit).collect();
    calls(&desk, &[&AUTO[..], &["-c"]].concat(), &[undo(last.parse().unwrap())]);
    assert_eq!(desk.read("a"), "other");
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

#[test]
fn a_patch_over_several_files_is_undone_whole() {
    let desk = Desk::new();
    desk.write("changed", "one\ntwo\n");
    desk.write("gone", "bye\n");
    desk.write("here", "stays the same\n");
    let patch = "*** Begin Patch\n*** Update File: changed\n@@\n one\n-two\n+three\n\
         *** Add File: made\n+new\n*** Delete File: gone\n\
         *** Update File: here\n*** Move to: there\n@@\n-stays the same\n+moved\n*** End Patch\n";
    calls(&desk, &AUTO, &[("apply_patch", json!({"patch": patch}))]);
    assert_eq!(
        (desk.read("changed"), desk.read("there")),
        ("one\nthree\n".into(), "moved\n".into())
    );
    let is_there = |name: &str| desk.project().join(name).exists();
    assert_eq!(["made", "gone", "here", "there"].map(is_there), [true, false, false, true]);
    calls(&desk, &[&AUTO[..], &["-c"]].concat(), &[undo(1)]);
    assert_eq!(["made", "gone", "here", "there"].map(is_there), [false, true, true, false]);
    let back = ["changed", "gone", "here"].map(|name| desk.read(name));
    assert_eq!(back, ["one\ntwo\n", "bye\n", "stays the same\n"]);
}

#[test]
fn what_somebody_changed_since_is_a_conflict_and_nothing_is_put_back() {
    let desk = Desk::new();
    desk.write("a", "mine a");
    desk.write("b", "mine b");
    calls(&desk, &AUTO, &[("delete", json!({"paths": ["a", "b"]}))]);
    desk.write("b", "somebody's");
    let resumed = [&AUTO[..], &["-c"]].concat();
    let said = calls(&desk, &resumed, &[undo(1), undo(99)]);
    assert!(
        said[0].contains("Error [stale]")
            && said[0].contains("nothing was restored, because these files have changed since: b"),
        "{said:?}"
    );
    assert!(said[1].contains("[not_covered]"), "{said:?}");
    assert!(!desk.project().join("a").exists(), "all or nothing");
    assert_eq!(desk.read("b"), "somebody's");
    fs::remove_file(desk.project().join("b")).unwrap();
    calls(&desk, &resumed, &[undo(1)]);
    assert_eq!((desk.read("a"), desk.read("b")), ("mine a".into(), "mine b".into()));
}

#[test]
fn undoing_is_judged_as_writing() {
    let desk = Desk::new();
    desk.write("a", "before");
    calls(&desk, &AUTO, &[("write", json!({"path": "a", "content": "after"}))]);
    let said = calls(&desk, &["-c", "--permission-mode", "plan"], &[undo(1)]);
    assert!(said[0].contains("plan"), "{said:?}");
    desk.write(".agentd/config.toml", "[permissions]\ndeny = [\"write:a\"]\n");
    let denied = [&AUTO[..], &["-c", "--trust-project"]].concat();
    let said = calls(&desk, &denied, &[undo(1)]);
    assert!(said[0].contains("write:a"), "{said:?}");
    assert_eq!(desk.read("a"), "after");
    fs::remove_file(desk.project().join(".agentd/config.toml")).unwrap();
    let accepted = ["-c", "--permission-mode", "accept-edits"];
    let said = calls(&desk, &accepted, &[undo(1)]);
    assert_eq!(desk.read("a"), "before", "{said:?}");
}

#[test]
fn what_is_too_large_to_keep_is_said_and_not_put_back() {
    let desk = Desk::new();
    fs::write(desk.project().join("large"), vec![b'x'; 9 << 20]).unwrap();
    let said = calls(
        &desk,
        &AUTO,
        &[("delete", json!({"paths": ["large"]})), ("undo_list", json!({})), undo(1)],
    );
    assert!(said[1].contains("large (not covered"), "{said:?}");
    assert!(said[2].contains("[not_covered]"), "{said:?}");
}

#[test]
fn damaged_copies_hold_up_no_change_and_the_list_says_what_is_not_covered() {
    let desk = Desk::new();
    calls(&desk, &AUTO, &[("write", json!({"path": "a", "content": "one"}))]);
    let stores = fs::read_dir(desk.state().join("store")).unwrap();
    let sessions = stores.map(|store| store.unwrap().path().join("sessions"));
    let sessions = sessions.filter_map(|sessions| fs::read_dir(sessions).ok()).flatten();
    let files: Vec<_> = sessions.map(|session| session.unwrap().path().join("undo.db")).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", file.display()));
    }
    fs::write(file, "no database, but long enough to look like one to a careless reader").unwrap();
    let resumed = [&AUTO[..], &["-c"]].concat();
    let again = [
        ("write", json!({"path": "a", "content": "two"})),
        ("undo_list", json!({})),
        undo(1),
        undo(2),
    ];
    let said = calls(&desk, &resumed, &again);
    assert!(!said[0].contains("Error"), "{said:?}");
    assert!(said[1].contains("2 write") && !said[1].contains("1 write"), "{said:?}");
    assert!(said[1].contains("is not covered: its copies were damaged"), "{said:?}");
    assert!(said[2].contains("[not_covered]"), "{said:?}");
    assert!(!said[3].contains("Error"), "{said:?}");
    assert_eq!(desk.read("a"), "one", "the call that met the damage has its copy");
    let log: String = fs::read_dir(desk.state().join("log"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap_or_default())
        .collect();
    assert!(log.contains("the undo data was damaged"), "{log}");
}

#[test]
fn another_session_s_changes_are_not_undone_here() {
    let desk = Desk::new();
    calls(&desk, &AUTO, &[("write", json!({"path": "a", "content": "x"}))]);
    let said = calls(&desk, &AUTO, &[("undo_list", json!({})), undo(1)]);
    assert!(said[0].contains("nothing that was changed in this session is kept"), "{said:?}");
    assert!(said[1].contains("[not_covered]"), "{said:?}");
}

#[test]
fn copies_that_come_too_late_put_nothing_back() {
    let desk = Desk::new();
    desk.write("a", "before");
    let agentd = Arc::new(Mutex::new(None::<u32>));
    let leader = Arc::clone(&agentd);
    let store = move || {
        until("the run is known", || leader.lock().unwrap().is_some());
        let supervisor = child_of(leader.lock().unwrap().unwrap(), "agentd-supervisor").unwrap();
        until("its store", || child_of(supervisor, "agentd-store").is_some());
        child_of(supervisor, "agentd-store").unwrap()
    };
    let says = |tool: &str, input: Value| Answer::says([call("toolu_1", tool, &input.to_string())]);
    let server = Server::answering(move |number, _| match number {
        1 => {
            send(store(), Signal::SIGSTOP);
            says("write", json!({"path": "a", "content": "after"}))
        }
        2 => {
            // It reads the file only now.
            send(store(), Signal::SIGCONT);
            says("undo_list", json!({}))
        }
        3 => says("undo_restore", json!({"id": 1})),
        _ => Answer::text("Done."),
    });
    let mut child =
        desk.with_server(&server, &[&["-p", "Go."], &AUTO[..]].concat()).spawn().unwrap();
    *agentd.lock().unwrap() = Some(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let said: Vec<String> = server.requests()[1..]
        .iter()
        .map(|request| request.body["messages"].as_array().unwrap().last().unwrap().to_string())
        .collect();
    assert!(!said[0].contains("Error"), "{said:?}");
    assert!(said[1].contains("1 write") && said[1].contains("end was not observed"), "{said:?}");
    assert!(said[2].contains("[not_covered]"), "{said:?}");
    assert_eq!(desk.read("a"), "after");
}

/// The store dies with the request for a copy, and the call still waits for it.
#[test]
fn a_copy_that_a_dead_store_was_asked_for_is_made_by_the_next() {
    let desk = Desk::new();
    desk.write("a", "before");
    let server = Server::answering(|number, _| {
        let says =
            |tool: &str, input: Value| Answer::says([call("toolu_1", tool, &input.to_string())]);
        match number {
            1 => says("write", json!({"path": "a", "content": "after"})),
            2 => says("undo_restore", json!({"id": 1})),
            _ => Answer::text("Done."),
        }
    });
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "Go.");
    let allow = |wire: &mut Wire| {
        let Question { call, digest, .. } = wire.question();
        wire.say(FromClient::Answer { call, digest, answer: Said::Once });
    };
    let journal = || {
        let place = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
        fs::read_to_string(place).unwrap()
    };
    until("its question", || journal().contains("\"ASKED\""));
    let store = child_of(daemon.pid, "agentd-store").unwrap();
    send(store, Signal::SIGSTOP);
    allow(&mut wire);
    // It is started only when the copy was asked for.
    until("the call is about to begin", || journal().contains("\"START\""));
    send(store, Signal::SIGKILL);
    allow(&mut wire);
    wire.turn_ends();
    assert_eq!(desk.read("a"), "before", "{}", journal());
}

#[test]
fn a_person_takes_the_last_turn_s_changes_back_at_the_screen() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    let edit = json!({"path": "a", "old_string": "one", "new_string": "two"}).to_string();
    let made = json!({"path": "made", "content": "x"}).to_string();
    let server = Server::scripted([
        // Calls that change nothing are numbered too.
        Answer::says([
            call("toolu_0", "ls", "{}"),
            call("toolu_1", "write", &json!({"path": "first", "content": "1"}).to_string()),
        ]),
        Answer::text("First."),
        Answer::says([call("toolu_2", "edit", &edit), call("toolu_3", "write", &made)]),
        Answer::text("Second."),
        Answer::text("I see."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "--permission-mode", "auto", "begin"];
    let one = tmux.run("one", &desk.with_server(&server, &arguments), (90, 40));
    one.shows("First.");
    one.shows("ready");
    one.enters("and then");
    one.shows("Second.");
    one.shows("ready");
    // It needs approval like any change: the mode also applies to a person's undo.
    one.enters(":mode ask");
    one.shows("mode ask");
    one.enters(":undo");
    one.shows("undo_restore id");
    one.shows("❯ 1 Allow once");
    assert!(desk.project().join("made").exists(), "not before the answer");
    one.press(&["Enter"]);
    one.shows_no_more("❯ 1 Allow once");
    one.shows("❯ 1 Allow once");
    assert!(!desk.project().join("made").exists());
    one.press(&["Enter"]);
    one.shows("Taken back: write (call 4), edit (call 3).");
    one.shows("ready");
    assert_eq!(desk.read("a"), "one\n");
    assert!(desk.project().join("first").exists(), "that was an earlier turn's");
    // A mode that refuses changes also refuses a person's undo.
    one.enters(":mode plan");
    one.shows("mode plan");
    one.enters(":undo");
    one.shows("Not undone: write (call 2):");
    one.shows("ready");
    assert!(desk.project().join("first").exists());
    one.enters(":mode auto");
    one.shows("mode auto");
    one.enters(":undo");
    one.shows("Taken back: write (call 2).");
    assert!(!desk.project().join("first").exists());
    one.enters(":undo");
    one.shows("There is nothing to take back");
    one.shows("ready");
    assert_eq!(server.requests().len(), 4, "no model was asked for any of it");
    one.enters("what now?");
    one.shows("I see.");
    let told = server.requests()[4].body["messages"].to_string();
    assert!(told.contains("Taken back: write (call 4), edit (call 3)."), "{told}");
    // Each is on record like any call, and so is who allowed it.
    let ended = desk.ended(5);
    assert_eq!(
        (&ended["tool"], &ended["outcome"]["how"]),
        (&"undo_restore".into(), &"done".into())
    );
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

#[test]
fn a_model_is_told_what_an_undoing_took_back_that_died_with_its_daemon() {
    let desk = Desk::new();
    let [a, b] = ["a", "b"].map(|path| json!({"path": path, "content": "x"}).to_string());
    let server = Server::scripted([
        Answer::says([call("toolu_1", "write", &a), call("toolu_2", "write", &b)]),
        Answer::text("Done."),
        Answer::text("I see."),
    ]);
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    let yes = |wire: &mut Wire| {
        let Question { call, digest, .. } = wire.question();
        wire.say(FromClient::Answer { call, digest, answer: Said::Once });
    };
    wire.prompt(&session, "go");
    yes(&mut wire);
    yes(&mut wire);
    wire.turn_ends();
    wire.prompt(&session, ":undo");
    yes(&mut wire);
    wire.question();
    send(daemon.pid, Signal::SIGKILL);
    assert!(desk.project().join("a").exists() && !desk.project().join("b").exists());
    let ran = run(desk.with_server(&server, &["-p", "what now?", "-c"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "I see.\n"), "{ran:?}");
    let told = server.requests()[2].body["messages"].to_string();
    let back = "The undoing was cut short.\\nTaken back: write (call 2).";
    assert!(told.contains(back), "{told}");
    assert!(told.contains("Not undone: write (call 1): interrupted: never started"), "{told}");
}

#[test]
fn a_script_takes_changes_back_too() {
    let desk = Desk::new();
    desk.write("a", "before");
    calls(&desk, &AUTO, &[("write", json!({"path": "a", "content": "after"}))]);
    let server = Server::scripted([]);
    let undo =
        |flags: &[&str]| run(desk.with_server(&server, &[&["-p", ":undo", "-c"], flags].concat()));
    // The run is non-interactive, so nothing is restored.
    let ran = undo(&[]);
    assert_eq!((ran.code, desk.read("a").as_str()), (10, "after"), "{ran:?}");
    let ran = undo(&AUTO);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Taken back: write (call 1).\n"), "{ran:?}");
    assert_eq!(desk.read("a"), "before");
}

#[test]
fn what_a_person_changed_since_does_not_hold_up_what_was_changed_before_it() {
    let desk = Desk::new();
    let resumed = [&AUTO[..], &["-c"]].concat();
    let write = |path: &str| [("write", json!({"path": path, "content": "the model's"}))];
    desk.write("b", "before");
    calls(&desk, &resumed[..2], &[("read", json!({"path": "b"})), write("b")[0].clone()]);
    calls(&desk, &resumed, &write("a"));
    desk.write("a", "a person's");
    let server = Server::scripted([]);
    let undo = || run(desk.with_server(&server, &[&["-p", ":undo"], &resumed[..]].concat()));
    let ran = undo();
    assert!(ran.out.starts_with("Not undone: write (call 3)"), "{ran:?}");
    assert_eq!((ran.code, desk.read("b").as_str()), (1, "the model's"), "no success: {ran:?}");
    let ran = undo();
    assert_eq!((ran.code, ran.out.as_str()), (0, "Taken back: write (call 2).\n"), "{ran:?}");
    assert_eq!((desk.read("a"), desk.read("b")), ("a person's".into(), "before".into()));
}

#[test]
fn a_file_that_was_put_back_is_read_again_before_it_is_edited() {
    let desk = Desk::new();
    desk.write("a", "one\ntwo\n");
    let edit = |old: &str| json!({"path": "a", "old_string": old, "new_string": "x"});
    let said = calls(
        &desk,
        &AUTO,
        &[
            ("read", json!({"path": "a"})),
            ("edit", edit("one")),
            undo(2),
            ("edit", edit("two")),
            ("read", json!({"path": "a"})),
            ("edit", edit("two")),
        ],
    );
    assert!(!said[2].contains("Error"), "{said:?}");
    assert!(said[3].contains("Error [stale]"), "{said:?}");
    // It is read again, although its content is that of the first read.
    assert!(said[4].contains("1\\tone"), "{said:?}");
    assert!(said[5].contains("edited a"), "{said:?}");
    assert_eq!(desk.read("a"), "one\nx\n");
}

#[test]
fn one_file_goes_back_over_several_calls_and_the_rest_of_the_turn_after_it() {
    let desk = Desk::new();
    desk.write("a b", "one\n");
    desk.write("c", "one\n");
    let edit = |path: &str, old: &str, new: &str| {
        ("edit", json!({"path": path, "old_string": old, "new_string": new}))
    };
    let bash = ("bash", json!({"command": "echo three >> 'a b'; echo three >> c; echo x > new"}));
    let read = |path: &str| ("read", json!({"path": path}));
    let made = ("write", json!({"path": "old", "content": "x"}));
    calls(&desk, &AUTO, &[made]);
    let resumed = [&AUTO[..], &["-c"]].concat();
    calls(&desk, &resumed, &[read("a b"), edit("a b", "one", "two"), bash]);
    let server = Server::scripted([]);
    let say = |words: &str, flags: &[&str]| {
        run(desk.with_server(&server, &[&["-p", words, "-c"], flags].concat()))
    };
    // Rules judge it like any change, and what no call changed is said.
    assert_eq!((say(":undo c", &[]).code, desk.read("c").as_str()), (10, "one\nthree\n"));
    let ran = say(":undo no such file", &AUTO);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("call 1 changed nothing at no such file that is covered"), "{ran:?}");
    let ran = say(":undo ./src/../a b", &AUTO);
    let said = "Taken back: ./src/../a b, its covered changes since call 3.\n";
    assert_eq!((ran.code, ran.out.as_str()), (0, said), "{ran:?}");
    assert_eq!((desk.read("a b"), desk.read("c")), ("one\n".into(), "one\nthree\n".into()));
    // Again: under the same name, and under another.
    let ran = say(":undo ./src/../a b", &AUTO);
    assert!(ran.code == 1 && ran.out.contains("call 1 changed nothing at"), "{ran:?}");
    let ran = say(":undo a b", &AUTO);
    assert!(ran.code == 0 && ran.err.contains("restored 0 files"), "as it was already: {ran:?}");
    // What a person does with it now stays, and so does the way back for the rest.
    desk.write("a b", "a person's");
    let ran = say(":undo", &AUTO);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Taken back: bash (call 4).\n"), "{ran:?}");
    assert_eq!((desk.read("a b"), desk.read("c")), ("a person's".into(), "one\n".into()));
    assert!(!desk.project().join("new").exists());
    // The older turn that changed it is found.
    let ran = say(":undo old", &AUTO);
    let said = "Taken back: old, its covered changes since call 1.\n";
    assert_eq!((ran.code, ran.out.as_str()), (0, said), "{ran:?}");
    assert!(!desk.project().join("old").exists());
}

#[test]
fn one_file_that_something_else_changed_in_between_stays() {
    let desk = Desk::new();
    let resumed = [&AUTO[..], &["-c"]].concat();
    let edit =
        |old: &str, new: &str| ("edit", json!({"path": "a", "old_string": old, "new_string": new}));
    desk.write("a", "one\n");
    calls(&desk, &AUTO, &[("read", json!({"path": "a"})), edit("one", "two")]);
    desk.write("a", "two\na person's\n");
    calls(&desk, &resumed, &[("read", json!({"path": "a"})), edit("two", "three")]);
    let server = Server::scripted([]);
    let undo =
        |words: &str| run(desk.with_server(&server, &[&["-p", words], &resumed[..]].concat()));
    let ran = undo(":undo all a");
    let said = "between call 2 and call 4 something else changed a";
    assert!(ran.code == 1 && ran.out.contains(said), "{ran:?}");
    assert_eq!(desk.read("a"), "three\na person's\n");
    // The positive control: the newest turn alone goes back.
    let ran = undo(":undo a");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(desk.read("a"), "two\na person's\n");
}
