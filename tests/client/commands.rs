//! Sessions seen from the command line: listed, shown, exported, gone on with; with no daemon.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, Run, processes, run, until};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// A session in which a file was read; its name.
fn session(desk: &Desk, flags: &[&str]) -> String {
    desk.write("a.txt", "apple\n");
    let look = call("toolu_1", "read", r#"{"path":"a.txt"}"#);
    let server = Server::scripted([Answer::says([look]), Answer::text("It says `apple`.")]);
    let ran = desk.ask(&server, flags);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.json()["session_id"].as_str().unwrap().to_owned()
}

fn lines(ran: &Run) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn journal(desk: &Desk, id: &str) -> std::path::PathBuf {
    desk.state().join("sessions").join(id).join("journal.jsonl")
}

#[test]
fn sessions_are_listed_newest_first_and_a_broken_one_hides_none() {
    let desk = Desk::new();
    let empty = run(desk.agentd(&["ls"]));
    assert_eq!((empty.code, empty.out.as_str()), (0, ""));
    let (first, second, third) = (session(&desk, &[]), session(&desk, &[]), session(&desk, &[]));
    let broken = journal(&desk, &second);
    let text = fs::read_to_string(&broken).unwrap();
    fs::write(&broken, text.replacen("apple", "appel", 1)).unwrap();
    let rows = lines(&run(desk.agentd(&["ls", "--json"])));
    let names: Vec<_> = rows.iter().map(|row| row["session_id"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3);
    assert_eq!((names[0], rows[0]["state"].as_str()), (third.as_str(), Some("ended")));
    assert_eq!(rows[0]["title"], "do it");
    assert_eq!(rows[0]["turns"], 1);
    let row = rows.iter().find(|row| row["session_id"] == second.as_str()).unwrap();
    assert_eq!(row["state"], "unreadable");
    assert!(row["why"].as_str().unwrap().contains("line"), "{row}");
    let table = run(desk.agentd(&["ls"]));
    for id in [&first, &second, &third] {
        assert!(table.out.contains(id.as_str()), "{}", table.out);
    }
}

#[test]
fn a_session_is_shown_and_exported_without_a_daemon() {
    let desk = Desk::new();
    let id = session(&desk, &[]);
    let shown = run(desk.agentd(&["show", &id[..6]]));
    assert_eq!(shown.code, 0, "{}", shown.err);
    for words in ["> do it", "read", "It says `apple`."] {
        assert!(shown.out.contains(words), "{words:?} is not in {}", shown.out);
    }
    assert!(!shown.out.contains("     1"), "calls are a line each: {}", shown.out);
    let whole = run(desk.agentd(&["show", &id, "--calls"]));
    assert!(whole.out.contains("apple\n"), "{}", whole.out);
    let document = run(desk.agentd(&["export", &id]));
    assert!(document.out.starts_with(&format!("# Session {id}")), "{}", document.out);
    assert!(document.out.contains("### Call 1: read"), "{}", document.out);
    let records = lines(&run(desk.agentd(&["export", &id, "--format", "json"])));
    let kinds: Vec<_> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("SESSION", "TURN_ENDED"));
    assert_eq!(records[1]["seq"], 2);
}

#[test]
fn a_damaged_session_is_shown_up_to_the_damage() {
    let desk = Desk::new();
    let id = session(&desk, &[]);
    let file = journal(&desk, &id);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("It says", "It sais", 1)).unwrap();
    let shown = run(desk.agentd(&["show", &id]));
    assert_eq!(shown.code, 1);
    assert!(shown.out.contains("> do it"), "{}", shown.out);
    assert!(!shown.out.contains("It sais"), "{}", shown.out);
    assert!(shown.err.contains("damaged") && shown.err.contains("agentd fork"), "{}", shown.err);
}

#[test]
fn a_beginning_that_fits_several_names_them() {
    let desk = Desk::new();
    let id = session(&desk, &[]);
    let twin = format!("{}{}", &id[..11], if id.ends_with('0') { '1' } else { '0' });
    let (from, to) =
        (desk.state().join("sessions").join(&id), desk.state().join("sessions").join(&twin));
    fs::create_dir(&to).unwrap();
    fs::copy(from.join("journal.jsonl"), to.join("journal.jsonl")).unwrap();
    let ran = run(desk.agentd(&["show", &id[..5]]));
    assert_eq!(ran.code, 2, "{ran:?}");
    for name in [&id, &twin] {
        assert!(ran.err.contains(&format!("{name}  do it")), "{}", ran.err);
    }
    let none = run(desk.agentd(&["show", "zzz"]));
    assert_eq!(none.code, 2);
    assert!(none.err.contains("agentd ls"), "{}", none.err);
}

#[test]
fn the_newest_session_of_a_project_is_gone_on_with_or_copied() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let none = run(desk.with_server(&server, &["-p", "x", "-c"]));
    assert_eq!(none.code, 2, "{none:?}");
    assert!(none.err.contains("no session"), "{}", none.err);
    let id = session(&desk, &[]);
    let server = Server::scripted([Answer::text("again")]);
    let ran = desk.ask(&server, &["-c"]);
    assert_eq!(ran.json()["session_id"], id.as_str(), "{}", ran.err);
    let told = server.requests()[0].body["messages"].to_string();
    assert!(told.contains("It says `apple`."), "{told}");
    let before = fs::read(journal(&desk, &id)).unwrap();
    let server = Server::scripted([Answer::text("elsewhere")]);
    let ran = desk.ask(&server, &["--resume", &id, "--fork"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_ne!(ran.json()["session_id"], id.as_str());
    let told = server.requests()[0].body["messages"].to_string();
    assert!(told.contains("again"), "{told}");
    assert_eq!(fs::read(journal(&desk, &id)).unwrap(), before, "the first is as it was");
}

#[test]
fn prompts_come_as_a_stream_and_each_has_its_result() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("one"), Answer::text("two")]);
    let arguments = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];
    let message = |text: &str| {
        format!("{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n")
    };
    let stream = |text: String| {
        let mut command = desk.with_server(&server, &arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = stream(message("first") + "\n" + &message("second"));
    let text = String::from_utf8(output.stdout).unwrap();
    let said: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let results: Vec<_> = said.iter().filter(|line| line["type"] == "result").collect();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(results.len(), 2, "{text}");
    assert_eq!((&results[0]["result"], &results[1]["result"]), (&"one".into(), &"two".into()));
    assert_eq!(results[0]["session_id"], results[1]["session_id"]);
    assert_eq!(said.iter().filter(|line| line["subtype"] == "init").count(), 1);
    let output = stream("{\"type\":\"nonsense\"}\n".to_owned());
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("line 1"), "{said}");
}

#[test]
fn completions_and_the_manual_name_every_command() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(desk.agentd(&["completions", shell]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        for command in ["attach", "export", "completions", "daemon"] {
            assert!(ran.out.contains(command), "{shell} does not know {command}");
        }
    }
    let page = run(desk.agentd(&["man"]));
    assert!(page.out.contains(".TH agentd"), "{}", page.out);
    assert!(page.out.contains(".SH \"EXIT CODES\""), "{}", page.out);
    let page = run(desk.agentd(&["man", "attach"]));
    assert!(page.out.contains("read\\-only"), "{}", page.out);
    let page = run(desk.agentd(&["man", "undo"]));
    assert!(page.out.contains(".TH agentd-undo 7"), "{}", page.out);
    assert_eq!(run(desk.agentd(&["man", "nonsense"])).code, 2);
}

/// One text for people and models: the request has the output of `agentd tools NAME` and of the
/// manual.
#[test]
fn a_tool_s_page_has_what_models_are_told() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Done.")]);
    assert_eq!(desk.ask(&server, &[]).code, 0);
    let offered = server.requests()[0].body["tools"].as_array().unwrap().clone();
    let list = run(desk.agentd(&["tools"]));
    assert_eq!(list.code, 0, "{}", list.err);
    for tool in offered {
        let name = tool["name"].as_str().unwrap();
        assert!(list.out.lines().any(|line| line.split(' ').any(|word| word == name)), "{name}");
        let page = run(desk.agentd(&["tools", name])).out;
        for part in ["Inputs:\n", "Example:\n", "Cage: ", "Rules: "] {
            assert!(page.contains(part), "{name} lacks {part}: {page}");
        }
        for (input, about) in tool["input_schema"]["properties"].as_object().unwrap() {
            assert!(page.contains(&format!("  {input}")), "{name} lacks {input}: {about}: {page}");
        }
        let told = tool["description"].as_str().unwrap().split(". ").next().unwrap();
        assert!(page.contains(told), "the page of {name} lacks {told:?}: {page}");
    }
    let alias = run(desk.agentd(&["tools", "Bash"])).out;
    assert!(alias.starts_with("bash\n"), "{alias}");
    let manual = run(desk.agentd(&["man", "read"])).out;
    assert!(manual.contains("column") && manual.contains("Cage"), "{manual}");
    let unknown = run(desk.agentd(&["tools", "nonsense"]));
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("`agentd tools` lists"), "{}", unknown.err);
}

#[test]
fn the_log_is_read_whole_or_for_one_session() {
    let desk = Desk::new();
    let (first, second) = (session(&desk, &[]), session(&desk, &[]));
    let all = run(desk.agentd(&["logs"]));
    assert!(all.out.contains(&first) && all.out.contains(&second), "{}", all.out);
    let one = run(desk.agentd(&["logs", &first]));
    assert!(one.out.contains(&first) && !one.out.contains(&second), "{}", one.out);
}

/// The state of a session in the list of `ls`.
fn state(desk: &Desk, id: &str) -> String {
    let rows = lines(&run(desk.agentd(&["ls", "--json"])));
    let row = rows.iter().find(|row| row["session_id"] == id);
    row.map_or("gone".to_owned(), |row| row["state"].as_str().unwrap().to_owned())
}

/// Each worker's lines are in the log, under its name, with the call or session that they are about.
#[test]
fn the_log_follows_a_call_through_every_process() {
    let desk = Desk::new();
    desk.write("a.rs", "fn main() {}\n");
    let rules = "allow = [\"web_fetch:nowhere.invalid/*\"]\n";
    std::fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    let user = desk.home().join(".config/agentd/config.toml");
    std::fs::write(user, format!("[permissions]\n{rules}")).unwrap();
    let calls = [
        ("bash", json!({"command": "true"})),
        ("memory_add", json!({"text": "a", "scope": "session"})),
        ("summary", json!({"path": "a.rs"})),
        ("web_fetch", json!({"url": "https://nowhere.invalid/page"})),
    ];
    let server = Server::answering(move |n, _| match calls.get(n - 1) {
        Some((tool, input)) => {
            Answer::says([call(&format!("toolu_{n}"), tool, &input.to_string())])
        }
        None => Answer::text("done"),
    });
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let session = ran.json()["session_id"].as_str().unwrap().to_owned();
    let log = run(desk.agentd(&["logs", &session])).out;
    let of_call = |number: u32| format!("{session}.{number}");
    let expected = [
        ("session", of_call(1), "proposes"),
        ("provider", session.clone(), "answer complete"),
        ("broker", of_call(1), "judged"),
        ("tool", of_call(1), "done outcome=Exited { code: 0 }"),
        ("store", of_call(2), "answered"),
        ("code", of_call(3), "done"),
        ("web", of_call(4), "done"),
    ];
    for (worker, about, words) in expected {
        let target = format!(" {worker}: ");
        let has = |line: &str| [&target, &about, words].iter().all(|part| line.contains(*part));
        assert!(log.lines().any(has), "{worker}: {words} of {about} is not in\n{log}");
    }
    assert!(!log.contains("confined"), "lines of level debug are for who asks for them: {log}");

    // One worker in detail, and nothing else.
    let server = Server::answering(|n, _| match n {
        1 => Answer::says([call("toolu_1", "bash", r#"{"command":"true"}"#)]),
        _ => Answer::text("done"),
    });
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("RUST_LOG", "tool=debug");
    assert_eq!(run(command).code, 0);
    let all = run(desk.agentd(&["logs"])).out;
    let new: Vec<&str> = all.lines().skip_while(|line| !line.contains("confined")).collect();
    assert!(!new.is_empty(), "{all}");
    assert!(new.iter().all(|line| line.contains(" tool: ")), "{new:#?}");
}

#[test]
fn a_session_is_copied_stopped_and_removed_and_its_records_of_calls_stay() {
    let desk = Desk::new();
    let id = session(&desk, &[]);
    let _daemon = desk.daemon();
    let forked = run(desk.agentd(&["fork", &id[..8], "--json"]));
    assert_eq!(forked.code, 0, "{}", forked.err);
    let copy = forked.json()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(forked.json()["of"], id.as_str());
    assert_eq!((state(&desk, &copy), state(&desk, &id)), ("idle".into(), "ended".into()));
    let shown = run(desk.agentd(&["show", &copy]));
    assert!(shown.out.contains("It says `apple`."), "{}", shown.out);
    let live = run(desk.agentd(&["rm", &copy]));
    assert_eq!(live.code, 75, "{}", live.err);
    assert!(live.err.contains("is live") && live.err.contains("agentd stop"), "{}", live.err);
    let stopped = run(desk.agentd(&["stop", &copy]));
    assert!(stopped.code == 0 && stopped.err.contains("has ended"), "{stopped:?}");
    assert_eq!(state(&desk, &copy), "ended");
    let again = run(desk.agentd(&["stop", &copy]));
    assert!(again.code == 0 && again.err.contains("is not running"), "{again:?}");
    let audited = run(desk.agentd(&["audit", "ls", "--session", &id])).out;
    for session in [&copy, &id] {
        let removed = run(desk.agentd(&["rm", session]));
        assert!(removed.code == 0 && removed.err.contains("is removed"), "{removed:?}");
        assert_eq!(state(&desk, session), "gone");
    }
    assert_eq!(run(desk.agentd(&["audit", "ls", "--session", &id])).out, audited);
    let none = run(desk.agentd(&["rm", &id]));
    assert!(none.code == 2 && none.err.contains("there is no session"), "{none:?}");
}

#[test]
fn a_session_is_removed_where_no_daemon_runs_and_none_is_left_behind() {
    let desk = Desk::new();
    let (id, other) = (session(&desk, &[]), session(&desk, &[]));
    // `run` sees to it that no process is left.
    let removed = run(desk.agentd(&["rm", &id]));
    assert!(removed.code == 0 && removed.err.contains("is removed"), "{removed:?}");
    assert_eq!((state(&desk, &id), state(&desk, &other)), ("gone".into(), "ended".into()));
    assert_eq!(run(desk.agentd(&["daemon", "status"])).code, 15, "no daemon was started for it");
    // A session whose journal is locked stays.
    let held = fs::File::open(journal(&desk, &other)).unwrap();
    held.lock().unwrap();
    let refused = run(desk.agentd(&["rm", &other]));
    assert_eq!((refused.code, state(&desk, &other).as_str()), (75, "ended"), "{refused:?}");
}

#[test]
fn a_running_turn_is_stopped_in_order_or_killed_at_once() {
    for (command, mark) in [("stop", "4713"), ("kill", "4714")] {
        let desk = Desk::new();
        let input = serde_json::json!({ "command": format!("touch begun; sleep {mark}") });
        let server =
            Server::scripted([Answer::says([call("toolu_1", "bash", &input.to_string())])]);
        let _daemon = desk.daemon();
        let arguments = ["-p", "go", "--permission-mode", "auto"];
        let mut script = desk.with_server(&server, &arguments);
        let script = script.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("the command runs", || desk.project().join("begun").exists());
        let rows = lines(&run(desk.agentd(&["ls", "--json"])));
        let id = rows[0]["session_id"].as_str().unwrap().to_owned();
        assert_eq!(rows[0]["state"], "working");
        let ended = run(desk.agentd(&[command, &id]));
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert_eq!(state(&desk, &id), "ended");
        let ended = script.wait_with_output().unwrap();
        assert!(!ended.status.success(), "its run did not come to its end: {ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains("the session was ended") && said.contains("--resume"), "{said}");
        assert!(!said.contains("bug in agentd"), "{said}");
        let sleeps = processes().into_iter().filter(|it| it.name == "sleep").any(|it| {
            let line = fs::read_to_string(format!("/proc/{}/cmdline", it.pid));
            line.is_ok_and(|line| line.contains(mark))
        });
        assert!(!sleeps, "{command} leaves nothing of the call");
        let shown = run(desk.agentd(&["show", &id])).out;
        assert!(shown.contains("sleep"), "{shown}");
    }
}

#[test]
fn a_log_is_followed_while_it_is_written_and_moved_away() {
    let desk = Desk::new();
    let mut follower = desk.agentd(&["logs", "-f"]);
    let mut follower = follower.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = std::io::BufReader::new(follower.stdout.take().unwrap());
    let (sender, said) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        while std::io::BufRead::read_line(&mut out, &mut line).is_ok_and(|length| length > 0) {
            let _ = sender.send(std::mem::take(&mut line));
        }
    });
    let says = |words: &str| {
        let mut lines = std::iter::from_fn(|| said.recv_timeout(Duration::from_secs(20)).ok());
        assert!(lines.any(|line| line.contains(words)), "no line has {words}");
    };
    // Nothing was there when it began to follow.
    let first = session(&desk, &[]);
    says(&first);
    let log = desk.state().join("log");
    fs::rename(log.join("supervisor.log"), log.join("supervisor.log.old")).unwrap();
    let second = session(&desk, &[]);
    says(&second);
    let idle = crate::support::switches(follower.id());
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(crate::support::switches(follower.id()), idle, "it sleeps while nothing is written");
    follower.kill().unwrap();
    follower.wait().unwrap();
    reader.join().unwrap();
}

#[test]
fn a_follower_whose_reader_is_gone_ends() {
    let desk = Desk::new();
    session(&desk, &[]);
    let mut follower = desk.agentd(&["logs", "-f"]);
    let mut follower = follower.stdout(Stdio::piped()).spawn().unwrap();
    drop(follower.stdout.take());
    until("it has ended", || follower.try_wait().unwrap().is_some());
}

#[test]
fn agentd_alone_comes_back_to_the_session_that_is_there() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| Answer::text(&format!("answer {n}")));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &[]), (80, 24));
    one.shows("ready");
    one.enters("first words");
    one.shows("answer 1");
    one.press(&["C-d"]);
    assert_eq!(one.ends(), 0, "{}", one.screen());
    let two = tmux.run("two", &desk.with_server(&server, &[]), (80, 24));
    two.shows("answer 1");
    two.enters("second words");
    two.shows("answer 2");
    assert_eq!(lines(&run(desk.agentd(&["ls", "--json"]))).len(), 1, "the same session");
    // Elsewhere it is another.
    let other = desk.outside().join("elsewhere");
    fs::create_dir(&other).unwrap();
    let mut there = desk.with_server(&server, &[]);
    there.current_dir(&other);
    let three = tmux.run("three", &there, (80, 24));
    three.shows("ready");
    three.enters("third words");
    three.shows("answer 3");
    assert!(!three.screen().contains("answer 1"), "{}", three.screen());
    assert_eq!(lines(&run(desk.agentd(&["ls", "--json"]))).len(), 2);
}

#[test]
fn an_export_moves_no_cursor() {
    let desk = Desk::new();
    desk.write("a.txt", "a\u{1b}[2Jb\n");
    let look = call("toolu_1", "bash", r#"{"command":"cat a.txt; printf '\\033]0;title\\007'"}"#);
    let server = Server::scripted([Answer::says([look]), Answer::text("x\u{1b}[1;1Hy")]);
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    let id = ran.json()["session_id"].as_str().unwrap().to_owned();
    for arguments in [&["export", id.as_str()][..], &["show", &id, "--calls"]] {
        let ran = run(desk.agentd(arguments));
        assert!(ran.code == 0 && ran.out.contains("title"), "{arguments:?}: {ran:?}");
        assert!(!ran.out.contains(['\u{1b}', '\u{7}']), "{arguments:?}: {:?}", ran.out);
    }
}

/// Runs it with an output whose reader is gone from the start.
fn unread(mut command: std::process::Command) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn an_output_that_is_closed_early_is_quiet_and_the_session_is_whole() {
    let desk = Desk::new();
    let id = session(&desk, &[]);
    for arguments in [&["ls"][..], &["ls", "--json"], &["show", &id], &["export", &id], &["logs"]] {
        let (code, said) = unread(desk.agentd(arguments));
        assert_eq!((code, said.as_str()), (Some(0), ""), "{arguments:?}");
    }
    let server = Server::scripted([Answer::text("nobody reads this")]);
    let (_, said) = unread(desk.with_server(&server, &["-p", "go"]));
    assert!(!said.contains("panicked") && !said.contains("os error"), "{said}");
    for row in lines(&run(desk.agentd(&["ls", "--json"]))) {
        let id = row["session_id"].as_str().unwrap();
        assert_eq!(row["state"], "ended", "{row}");
        let text = fs::read_to_string(journal(&desk, id)).unwrap();
        assert!(text.contains("TURN_ENDED"), "{text}");
    }
}
