//! Memory, checklist and skills of a session and its project, from the model's call to the next
//! session that finds them.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, child_of, place, replace, run, send, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The flags of a run that may keep texts for later sessions.
const KEEP: [&str; 2] = ["--allowed-tools", "memory_add"];

/// The last result that a request carries.
fn result(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"][0]["content"].to_string()
}

/// Runs these calls, one an answer, and returns their results.
fn calls(desk: &Desk, flags: &[&str], calls: &[(&str, Value)]) -> Vec<String> {
    let answers = calls.iter().zip(1..).map(|((tool, input), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    let server = Server::scripted(answers.chain([Answer::text("Done.")]));
    let ran = run(desk.with_server(&server, &[&["-p", "Go."], flags].concat()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    server.requests()[1..].iter().map(|request| result(&request.body)).collect()
}

/// The one directory of this desk's project.
fn project_store(desk: &Desk) -> PathBuf {
    let stores = fs::read_dir(desk.state().join("store")).unwrap();
    let mut stores =
        stores.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("user"));
    stores.next().expect("a project's store")
}

/// A run whose mode and rules refuse some calls, which end it with exit code 10.
fn judged(desk: &Desk, flags: &[&str], calls: &[(&str, Value)]) -> Vec<String> {
    let answers = calls.iter().zip(1..).map(|((tool, input), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    let server = Server::scripted(answers.chain([Answer::text("Done.")]));
    run(desk.with_server(&server, &[&["-p", "Go."], flags].concat()));
    server.requests()[1..].iter().map(|request| result(&request.body)).collect()
}

#[test]
fn what_later_sessions_read_is_judged_as_a_change() {
    let adds = [
        ("memory_add", json!({"text": "of the session", "scope": "session"})),
        ("memory_add", json!({"text": "of the project"})),
        ("memory_add", json!({"text": "of all projects", "scope": "user"})),
    ];
    for (flags, kept) in [
        (&["--permission-mode", "plan"][..], [true, false, false]),
        (&[], [true, false, false]),
        (&["--permission-mode", "accept-edits"], [true, false, false]),
        (&["--permission-mode", "dont-ask"], [true, false, false]),
        (&["--permission-mode", "auto"], [true, true, false]),
        (&["--allowed-tools", "memory_add:user"], [true, false, true]),
        (&["--allowed-tools", "memory_add:project"], [true, true, false]),
        (&KEEP, [true, true, true]),
        (&["--permission-mode", "plan", "--allowed-tools", "memory_add"], [true, false, false]),
        (
            &["--permission-mode", "auto", "--disallowed-tools", "memory_add:project"],
            [true, false, false],
        ),
    ] {
        let desk = Desk::new();
        let said = judged(&desk, flags, &adds);
        let done: Vec<_> = said.iter().map(|text| text.contains("remembered as")).collect();
        assert_eq!(done, kept, "{flags:?}: {said:?}");
    }
}

#[test]
fn an_ask_rule_for_memory_asks_in_every_mode_and_the_record_tells_what_was_kept() {
    let desk = Desk::new();
    let rules = desk.home().join(".config/agentd");
    fs::create_dir_all(&rules).unwrap();
    fs::write(rules.join("config.toml"), "[permissions]\nask = [\"memory_add\"]\n").unwrap();
    let add = [("memory_add", json!({"text": "tabs, not spaces"}))];
    let said = judged(&desk, &["--permission-mode", "auto"], &add);
    assert!(said[0].contains("asks about it"), "{said:?}");
    fs::write(rules.join("config.toml"), "").unwrap();
    let said = judged(&desk, &["--permission-mode", "auto"], &add);
    assert!(said[0].contains("remembered as p1"), "{said:?}");
    let ended = desk.audit().into_iter().rfind(|record| record["event"] == "ended").unwrap();
    assert_eq!(ended["stored"]["what"], "p1 (project): tabs, not spaces", "{ended}");
    assert_eq!(ended["stored"]["bytes"], 16, "{ended}");
    let listed = run(desk.agentd(&["audit", "ls"])).out;
    let call = listed.lines().last().unwrap().split_whitespace().next().unwrap().to_owned();
    let shown = run(desk.agentd(&["audit", "show", &call])).out;
    assert!(shown.contains("by the mode auto") && shown.contains("16 bytes"), "{shown}");
    assert!(!shown.contains("only reads") && !shown.contains("0 bytes written"), "{shown}");
    let wrong = "[permissions]\nallow = [\"memory_add:everybody\"]\n";
    fs::write(rules.join("config.toml"), wrong).unwrap();
    let checked = run(desk.agentd(&["config", "check"]));
    assert!(checked.code != 0 && checked.err.contains("memory_add:user"), "{checked:?}");
}

#[test]
fn another_session_knows_what_was_remembered() {
    let desk = Desk::new();
    let said = calls(
        &desk,
        &KEEP,
        &[
            ("memory_add", json!({"text": "colour of the session", "scope": "session"})),
            ("memory_add", json!({"text": "colour of the project"})),
            ("memory_add", json!({"text": "colour of the person", "scope": "user"})),
            ("memory_search", json!({"query": "colour"})),
        ],
    );
    assert!(said[0].contains("remembered as s1 (session)"), "{said:?}");
    assert!(said[3].contains("s1 (session)") && said[3].contains("u1 (user)"), "{said:?}");
    let search = [("memory_search", json!({"query": "colour"}))];
    let later = calls(&desk, &[], &search);
    assert!(later[0].contains("p1 (project): colour of the project"), "{later:?}");
    assert!(later[0].contains("u1 (user)") && !later[0].contains("session"), "{later:?}");
}

#[test]
fn another_project_sees_only_what_is_the_person_s() {
    let desk = Desk::new();
    calls(
        &desk,
        &KEEP,
        &[
            ("memory_add", json!({"text": "secret of this project"})),
            ("memory_add", json!({"text": "secret of the person", "scope": "user"})),
        ],
    );
    let elsewhere = desk.outside().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let search = json!({"query": "secret"}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "memory_search", &search)]),
        Answer::text("Done."),
    ]);
    let mut command = desk.with_server(&server, &["-p", "Go."]);
    command.current_dir(&elsewhere);
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let found = result(&server.requests()[1].body);
    assert!(found.contains("secret of the person"), "{found}");
    // Its origin: the project in which it was saved, and the day.
    let origin = format!(" in {}: secret", desk.project().canonicalize().unwrap().display());
    assert!(found.contains("u1 (user), saved 20") && found.contains(&origin), "{found}");
    assert!(!found.contains("this project"), "{found}");
}

#[test]
fn a_rule_denies_memory_and_the_record_says_so() {
    let desk = Desk::new();
    desk.write(".agentd/config.toml", "[permissions]\ndeny = [\"memory_add\"]\n");
    let said = calls(
        &desk,
        &["--trust-project"],
        &[("memory_add", json!({"text": "no"})), ("memory_search", json!({"query": "no"}))],
    );
    assert_eq!(desk.ended(1)["outcome"]["how"], "refused", "{said:?}");
    assert!(said[1].contains("nothing is remembered"), "{said:?}");
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

/// Three memories, one of each scope.
fn remembering() -> Desk {
    let desk = Desk::new();
    let adds = [
        ("memory_add", json!({"text": "colour of the session", "scope": "session"})),
        ("memory_add", json!({"text": "colour of the project"})),
        ("memory_add", json!({"text": "colour\nof \u{202e}all\u{1b}[2J", "scope": "user"})),
    ];
    calls(&desk, &KEEP, &adds);
    desk
}

#[test]
fn a_person_lists_and_shows_the_memories_of_a_project_and_of_all_projects() {
    let empty = Desk::new();
    let listed = run(empty.agentd(&["memory", "ls"]));
    assert_eq!((listed.code, listed.out.as_str()), (0, ""), "{}", listed.err);
    assert!(listed.err.contains("nothing is remembered"), "{}", listed.err);
    assert!(!empty.state().join("store").exists(), "a list makes nothing");
    let desk = remembering();
    let listed = run(desk.agentd(&["memory", "ls"])).out;
    let project = desk.project().canonicalize().unwrap();
    let name = project.file_name().unwrap().to_str().unwrap();
    let lines: Vec<&str> = listed.lines().skip(1).collect();
    assert_eq!(lines.len(), 2, "no memory of a session: {listed}");
    for (line, [id, scope, text]) in lines.iter().zip([
        ["p1", "project", "colour of the project"],
        ["u1", "user", "colour of \u{fffd}all\u{fffd}[2J"],
    ]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((words[0], words[1], words[4]), (id, scope, name), "{line}");
        assert!(words[2].starts_with("20") && line.ends_with(text), "{line}");
    }
    let json = run(desk.agentd(&["memory", "ls", "--json"])).out;
    assert!(!json.contains(['\u{202e}', '\u{1b}']), "{json}");
    let rows: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["id"], &rows[0]["scope"]), (&json!("p1"), &json!("project")));
    assert_eq!(rows[1]["text"], "colour\nof \u{202e}all\u{1b}[2J");
    assert_eq!(rows[1]["project"], project.to_str().unwrap());
    assert!(rows[1]["saved"].as_u64().unwrap() > 1_600_000_000_000, "{json}");
    for (flag, id) in [("--user", "u1"), ("--project", "p1")] {
        let one = run(desk.agentd(&["memory", "ls", "--json", flag])).out;
        let row: Value = serde_json::from_str(&one).unwrap();
        assert_eq!(row["id"], id, "{flag}");
    }
    let shown = run(desk.agentd(&["memory", "show", "u1"])).out;
    assert!(shown.contains(&format!("project: {}\n", project.display())), "{shown}");
    assert!(shown.ends_with("colour\nof \u{fffd}all\u{fffd}[2J\n"), "{shown}");
}

#[test]
fn a_person_removes_memories_and_none_of_another_project() {
    let desk = remembering();
    let elsewhere = desk.outside().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let there = |words: &[&str]| {
        let mut command = desk.agentd(words);
        command.current_dir(&elsewhere);
        run(command)
    };
    let ids = |listed: &str| -> Vec<String> {
        listed.lines().skip(1).map(|line| line[..2].to_owned()).collect()
    };
    assert_eq!(ids(&there(&["memory", "ls"]).out), ["u1"]);
    let project = desk.project().to_str().unwrap().to_owned();
    assert_eq!(ids(&there(&["memory", "ls", "-C", &project]).out), ["p1", "u1"]);
    for wrong in [there(&["memory", "rm", "p1"]), there(&["memory", "show", "p1"])]
        .into_iter()
        .chain(["p2", "s1", "p01", "", "x", "u1\u{1b}"].map(|id| {
            // The first is there, and stays.
            run(desk.agentd(&["memory", "rm", "p1", id]))
        }))
    {
        assert_eq!((wrong.code, wrong.out.as_str()), (2, ""), "{}", wrong.err);
        assert!(wrong.err.contains("`agentd memory ls` lists them"), "{}", wrong.err);
        assert!(!wrong.err.contains('\u{1b}'), "{}", wrong.err);
    }
    assert_eq!(ids(&run(desk.agentd(&["memory", "ls"])).out), ["p1", "u1"]);
    let removed = run(desk.agentd(&["memory", "rm", "p1", "u1"]));
    let said = "removed p1 (project): colour of the project\n\
        removed u1 (user): colour\\nof \\u{202e}all\\u{1b}[2J\n";
    assert_eq!((removed.code, removed.out.as_str()), (0, said), "{}", removed.err);
    assert_eq!(run(desk.agentd(&["memory", "ls"])).out, "");
    assert_eq!(run(desk.agentd(&["memory", "rm", "p1"])).code, 2);
}

#[test]
fn a_session_that_runs_does_not_find_what_a_person_removed() {
    let desk = Desk::new();
    let remove = Mutex::new(desk.agentd(&["memory", "rm", "p1"]));
    let search = || call("toolu_2", "memory_search", r#"{"query":"colour"}"#);
    let server = Server::answering(move |number, _| match number {
        1 => Answer::says([call("toolu_1", "memory_add", r#"{"text":"colour"}"#)]),
        2 => Answer::says([search()]),
        3 => {
            let removed = remove.lock().unwrap().output().unwrap();
            assert!(removed.status.success(), "{removed:?}");
            Answer::says([search()])
        }
        4 => Answer::says([call("toolu_3", "memory_add", r#"{"text":"colour again"}"#)]),
        _ => Answer::text("Done."),
    });
    let ran = run(desk.with_server(&server, &["-p", "Go.", KEEP[0], KEEP[1]]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let said: Vec<String> =
        server.requests()[1..].iter().map(|request| result(&request.body)).collect();
    assert!(said[1].contains("p1 (project): colour"), "{said:?}");
    assert!(said[2].contains("nothing is remembered"), "{said:?}");
    assert!(said[3].contains("remembered as p2"), "an ID is given once: {said:?}");
}

#[test]
fn a_damaged_memory_is_said_where_a_person_lists_it() {
    let desk = remembering();
    let file = project_store(&desk).join("memory.db");
    fs::write(&file, "no database, but long enough to look like one to a careless reader").unwrap();
    let first = run(desk.agentd(&["memory", "ls"]));
    assert_eq!((first.code, first.out.as_str()), (1, ""), "{}", first.err);
    assert!(first.err.contains("this project's memory was damaged"), "{}", first.err);
    let second = run(desk.agentd(&["memory", "ls"])).out;
    assert!(second.lines().nth(1).unwrap().starts_with("u1 "), "{second}");
}

#[test]
fn a_terminal_lists_and_removes_memories() {
    let desk = remembering();
    let server = Server::scripted([Answer::text("First.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "talk", "--inline"]), (100, 30));
    one.shows("First.");
    one.enters(":memory");
    let listed = one.shows("colour of the project");
    assert!(listed.contains("u1") && !listed.contains("of the session"), "{listed}");
    one.enters(":memory rm u7");
    one.shows("has the ID \"u7\"");
    one.enters(":memory rm p1");
    one.shows("removed p1 (project): colour of the project");
    let left = run(desk.agentd(&["memory", "ls"])).out;
    assert!(left.contains("u1 ") && !left.contains("p1 "), "{left}");
}

/// A run in which the store is harmed while a call is on its way to it.
fn harmed(
    harm: impl Fn(u32) + Send + 'static,
    tool: &str,
    input: Value,
) -> (Desk, Vec<String>, Option<i32>) {
    let desk = Desk::new();
    let agentd = Arc::new(Mutex::new(None::<u32>));
    let (leader, script) = (Arc::clone(&agentd), (tool.to_owned(), input));
    let search = json!({"query": "kept"}).to_string();
    let server = Server::answering(move |number, _| match number {
        1 => {
            until("the run is known", || leader.lock().unwrap().is_some());
            let leader = leader.lock().unwrap().unwrap();
            let supervisor = child_of(leader, "agentd-supervisor").unwrap();
            until("its store", || child_of(supervisor, "agentd-store").is_some());
            harm(child_of(supervisor, "agentd-store").unwrap());
            Answer::says([call("toolu_1", &script.0, &script.1.to_string())])
        }
        2 => Answer::says([call("toolu_2", "memory_search", &search)]),
        _ => Answer::text("Done."),
    });
    let mut command = desk.with_server(&server, &["-p", "Go.", KEEP[0], KEEP[1]]);
    let mut child = command.spawn().unwrap();
    *agentd.lock().unwrap() = Some(child.id());
    let code = child.wait().unwrap().code();
    let said = server.requests()[1..].iter().map(|request| result(&request.body)).collect();
    (desk, said, code)
}

#[test]
fn a_store_that_is_killed_with_a_call_does_it_once_in_its_next_life() {
    let add = || json!({"text": "kept once"});
    // It takes the call and does not do it; then it is gone.
    let stopped_then_killed = |pid| {
        send(pid, Signal::SIGSTOP);
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            send(pid, Signal::SIGKILL);
        });
    };
    let (_, said, code) = harmed(stopped_then_killed, "memory_add", add());
    assert_eq!(code, Some(0), "{said:?}");
    assert!(said[0].contains("remembered as p1"), "{said:?}");
    assert_eq!(said[1].matches("kept once").count(), 1, "{said:?}");
    // A stopped store is found by its silence.
    let (_, said, code) = harmed(|pid| send(pid, Signal::SIGSTOP), "memory_add", add());
    assert_eq!(code, Some(0), "{said:?}");
    assert_eq!(said[1].matches("kept once").count(), 1, "{said:?}");
    let (_, said, _) =
        harmed(|pid| send(pid, Signal::SIGKILL), "memory_search", json!({"query": "x"}));
    assert!(said[0].contains("nothing is remembered"), "{said:?}");
}

#[test]
fn without_a_store_the_session_works_and_memory_says_what_is_known() {
    let desk = Desk::new();
    let place = place(&desk);
    replace(&place, "agentd-store", "exit 3");
    let server = Server::scripted([
        Answer::says([call("toolu_1", "memory_search", "{\"query\":\"x\"}")]),
        Answer::says([call("toolu_2", "memory_add", "{\"text\":\"x\"}")]),
        Answer::says([call("toolu_3", "ls", "{}")]),
        Answer::text("Done."),
    ]);
    desk.write("here", "");
    let like = desk.with_server(&server, &[]);
    let mut command = std::process::Command::new(place.join("agentd"));
    command.args(["-p", "Go.", KEEP[0], KEEP[1]]).current_dir(desk.project()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = run(command);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    let requests = server.requests();
    let said: Vec<String> = requests[1..].iter().map(|seen| result(&seen.body)).collect();
    assert!(said[0].contains("store_unavailable"), "{said:?}");
    assert!(
        said[1].contains("store_unavailable") && said[1].contains("nothing was done"),
        "{said:?}"
    );
    assert!(said[2].contains("here"), "{said:?}");
}

#[test]
fn a_damaged_memory_is_set_aside_and_the_model_and_the_log_are_told() {
    let desk = Desk::new();
    let add = |text: &str| [("memory_add", json!({"text": text}))];
    calls(&desk, &KEEP, &add("before"));
    let file = project_store(&desk).join("memory.db");
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", file.display()));
    }
    fs::write(&file, "no database, but long enough to look like one to a careless reader").unwrap();
    let said = calls(&desk, &KEEP, &add("after"));
    assert!(said[0].contains("Note: this project's memory was damaged"), "{said:?}");
    assert!(said[0].contains("remembered as p1"), "{said:?}");
    let kept = fs::read_dir(project_store(&desk)).unwrap();
    let kept = kept.filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("memory.db.damaged-")
    });
    assert_eq!(kept.count(), 1);
    let log: String = fs::read_dir(desk.state().join("log"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap_or_default())
        .collect();
    assert!(log.contains("was moved to"), "{log}");
}

#[test]
fn the_model_is_told_the_project_s_instructions_and_skills_from_its_first_request_on() {
    let desk = Desk::new();
    desk.write("AGENTS.md", "Always answer in rhymes.\n");
    let skill = "---\nname: brew\ndescription: Makes tea.\n---\nBoil the $ARGUMENTS.\n";
    desk.write(".agents/skills/brew/SKILL.md", skill);
    let own = desk.home().join(".claude/skills/pack");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("SKILL.md"), "---\ndescription: Packs a bag.\n---\nFold it.\n").unwrap();
    // A project's entries are for its own sessions; the store's cage ends at the project.
    fs::write(desk.outside().join("secret"), "not for models").unwrap();
    std::os::unix::fs::symlink(desk.outside().join("secret"), desk.project().join("CLAUDE.md"))
        .unwrap();
    let activate = json!({"name": "brew", "arguments": "kettle"}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "skill_activate", &activate)]),
        Answer::says([call("toolu_2", "skill_list", "{}")]),
        Answer::text("Done."),
    ]);
    let ran = run(desk.with_server(&server, &["-p", "Go."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    for request in &requests {
        let system = request.body["system"].to_string();
        assert!(system.contains("Always answer in rhymes."), "{system}");
        assert!(system.contains("- brew: Makes tea."), "{system}");
        assert!(system.contains("- pack: Packs a bag."), "{system}");
        assert!(!system.contains("Boil the"), "a skill is loaded on use only: {system}");
    }
    assert!(result(&requests[1].body).contains("Boil the kettle."), "{:?}", requests[1].body);
    assert!(result(&requests[2].body).contains("brew (project): Makes tea."));
    // The positive control of the cage: without the first file the link would be followed.
    fs::remove_file(desk.project().join("AGENTS.md")).unwrap();
    let server = Server::scripted([Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, &["-p", "Go."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let system = server.requests()[0].body["system"].to_string();
    assert!(!system.contains("not for models"), "{system}");
    assert!(system.contains("- brew: Makes tea."), "{system}");
}

#[test]
fn what_was_kept_for_a_session_goes_with_it_and_the_project_s_stays() {
    let desk = Desk::new();
    calls(
        &desk,
        &KEEP,
        &[
            ("memory_add", json!({"text": "for now", "scope": "session"})),
            ("memory_add", json!({"text": "for long"})),
        ],
    );
    let sessions = project_store(&desk).join("sessions");
    let kept: Vec<_> = fs::read_dir(&sessions).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(kept.len(), 1);
    let id = kept[0].file_name().into_string().unwrap();
    let daemon = desk.daemon();
    let removed = run(desk.agentd(&["rm", &id]));
    assert_eq!(removed.code, 0, "{}", removed.err);
    drop(daemon);
    assert_eq!(fs::read_dir(&sessions).unwrap().count(), 0);
    let found = calls(&desk, &[], &[("memory_search", json!({"query": "for"}))]);
    assert!(found[0].contains("for long") && !found[0].contains("for now"), "{found:?}");
}
