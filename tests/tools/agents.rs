//! Sub-agents: started, answered, narrower than their parent, several at once, and bounded.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, until};
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, SessionEnding, SessionRow, SessionStart,
    ToClient,
};
use protocol::ids::SessionId;
use protocol::judgement::{PermissionMode, PersonAnswer};
use protocol::session::OpenTurn;
use serde_json::{Value, json};

pub(crate) fn task(id: &str, prompt: &str, agent: &str) -> Say {
    let input = json!({"description": "a part", "prompt": prompt, "subagent_type": agent});
    call(id, "Task", &input.to_string())
}

pub(crate) fn tool(id: &str, name: &str, input: Value) -> Answer {
    Answer::says([call(id, name, &input.to_string())])
}

/// The text of the first message of a request: the prompt of its session.
fn prompt(body: &Value) -> String {
    body["messages"][0]["content"].to_string()
}

/// How many answers the model has given in the conversation of this request.
fn answers(body: &Value) -> usize {
    let messages = body["messages"].as_array().unwrap();
    messages.iter().filter(|message| message["role"] == "assistant").count()
}

/// A model for several sessions: each is told apart by the first words of its prompt.
pub(crate) fn server(scripts: impl IntoIterator<Item = (&'static str, Vec<Answer>)>) -> Server {
    let scripts: Vec<_> = scripts.into_iter().collect();
    Server::answering(move |_, body| {
        let (prompt, place) = (prompt(body), answers(body));
        let script = scripts.iter().find(|(words, _)| prompt.contains(words));
        let answer = script.and_then(|(_, answers)| answers.get(place)).cloned();
        answer.unwrap_or_else(|| {
            Answer::status(400, "invalid_request_error", &format!("no answer {place} to {prompt}"))
        })
    })
}

/// The text of the result with this id.
pub(crate) fn result(server: &Server, id: &str) -> String {
    let requests = server.requests();
    let messages = requests.iter().rev().filter_map(|seen| seen.body["messages"].as_array());
    let mut blocks =
        messages.flatten().filter_map(|message| message["content"].as_array()).flatten();
    let found = blocks.find(|block| block["tool_use_id"] == id).unwrap();
    match &found["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    }
}

pub(crate) fn journal(desk: &Desk, session: &str) -> Vec<Value> {
    let place = desk.state().join("sessions").join(session).join("journal.jsonl");
    let text = std::fs::read_to_string(place).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn of_kind(records: &[Value], kind: &str) -> Vec<Value> {
    records.iter().filter(|record| record["kind"] == kind).cloned().collect()
}

pub(crate) fn sessions(desk: &Desk) -> Vec<String> {
    let names = std::fs::read_dir(desk.state().join("sessions")).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn rows(wire: &mut Wire) -> Vec<SessionRow> {
    wire.say(FromClient::List);
    wire.until("the list", |word| match word {
        ToClient::Sessions(rows) => Some(rows.clone()),
        _ => None,
    })
}

/// A session of a person, whose mode lets commands run.
pub(crate) fn session(desk: &Desk, server: &Server) -> (Wire, SessionId) {
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(server);
    opening.mode = Some(PermissionMode::Auto);
    let session = wire.open(&opening);
    (wire, session)
}

pub(crate) const AUTO: [&str; 2] = ["--permission-mode", "auto"];

#[test]
fn a_sub_agent_works_in_a_session_of_its_own_and_its_answer_is_the_result() {
    let desk = Desk::new();
    desk.write("notes", "the answer is 42\n");
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "LOOK", "")]), Answer::text("It is 42.")]),
        (
            "LOOK",
            vec![tool("toolu_2", "read", json!({"path": "notes"})), Answer::text("Found 42.")],
        ),
    ]);
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let names = sessions(&desk);
    let [parent, child] = &names[..] else { panic!("{names:?}") };
    assert_eq!(*child, format!("{parent}-1"));
    let told = result(&server, "toolu_1");
    let wanted = format!("Found 42.\n[sub-agent general, session {child}: 2 requests, 1 call]");
    assert_eq!(told, wanted);
    let of_child = journal(&desk, child);
    let header = &of_child[0]["task"];
    assert_eq!((header["session"].as_str(), header["call"].as_u64()), (Some(&**parent), Some(1)));
    assert_eq!(of_kind(&of_child, "PROMPT").len(), 1);
    let of_parent = journal(&desk, parent);
    let spent = of_kind(&of_parent, "SPENT");
    assert_eq!(
        (spent.len(), spent[0]["rounds"].as_u64(), spent[0]["calls"].as_u64()),
        (1, Some(2), Some(1))
    );
    // Its calls are on record as any.
    let read = desk.audit().into_iter().find(|it| it["event"] == "ended" && it["tool"] == "read");
    assert_eq!(read.unwrap()["session"], **child);
    // The child's prompt says what it is, and the parent's does not.
    let systems: Vec<_> =
        server.requests().iter().map(|seen| seen.body["system"].to_string()).collect();
    assert!(
        !systems[0].contains("You are a sub-agent") && systems[1].contains("You are a sub-agent")
    );
}

#[test]
fn several_of_one_answer_run_at_the_same_time_and_end_with_their_work() {
    let desk = Desk::new();
    // Each waits for the file of the other.
    let waits = |own: &str, other: &str| json!({"command": format!("touch {own}; until [ -e {other} ]; do sleep 0.1; done; echo met")});
    let server = server([
        (
            "begin",
            vec![
                Answer::says([task("toolu_1", "FIRST", ""), task("toolu_2", "SECOND", "general")]),
                Answer::text("Both."),
            ],
        ),
        ("FIRST", vec![tool("toolu_3", "bash", waits("a", "b")), Answer::text("One.")]),
        ("SECOND", vec![tool("toolu_4", "bash", waits("b", "a")), Answer::text("Two.")]),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server);
    wire.prompt(&session, "begin");
    // A terminal of the parent learns which session works for a call.
    wire.event("the name of a session", |event| match event {
        ClientEvent::Output { text, .. } => {
            text.contains(&format!("works in session {session}-")).then_some(())
        }
        _ => None,
    });
    wire.turn_ends();
    assert!(result(&server, "toolu_1").starts_with("One."), "{}", result(&server, "toolu_1"));
    assert!(result(&server, "toolu_2").starts_with("Two."));
    // Nothing of them stays open, though a person's session does.
    until("the sessions of the sub-agents end", || {
        let rows = rows(&mut Wire::to(&desk.door()));
        rows.iter().filter(|row| !row.state.is_of_disk()).count() == 1
    });
}

#[test]
fn an_agents_file_takes_tools_and_modes_away_and_gives_none() {
    let desk = Desk::new();
    desk.write(
        ".claude/agents/look.md",
        "---\nname: look\ndescription: Only looks.\ntools: Read, Grep\ncolor: blue\nmemory: user\n---\n\
         You only look.\n",
    );
    desk.write(
        ".claude/agents/plan.md",
        "---\ndescription: Plans.\npermissionMode: plan\ndisallowedTools: Bash\n---\nYou plan.\n",
    );
    let write = |id: &str, path: &str| tool(id, "write", json!({"path": path, "content": "x"}));
    let server = server([
        (
            "do it",
            vec![
                Answer::says([
                    task("toolu_1", "LOOKER", "look"),
                    task("toolu_2", "PLANNER", "Plan"),
                    task("toolu_3", "WRITER", "general-purpose"),
                    task("toolu_4", "NOBODY", "nobody"),
                ]),
                Answer::text("Done."),
            ],
        ),
        ("LOOKER", vec![write("toolu_5", "looked"), Answer::text("No.")]),
        (
            "PLANNER",
            vec![
                Answer::says([
                    call(
                        "toolu_6",
                        "write",
                        &json!({"path": "planned", "content": "x"}).to_string(),
                    ),
                    call("toolu_7", "run", &json!({"argv": ["touch", "ran"]}).to_string()),
                ]),
                Answer::text("No."),
            ],
        ),
        ("WRITER", vec![write("toolu_8", "written"), Answer::text("Yes.")]),
    ]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("look.md: `memory` of this sub-agent has no effect"), "{}", ran.err);
    assert!(!desk.project().join("looked").exists() && !desk.project().join("planned").exists());
    assert!(!desk.project().join("ran").exists());
    assert_eq!(desk.read("written"), "x", "the control: an agent with all tools writes");
    let refused = result(&server, "toolu_5");
    assert!(refused.contains("this session has no tool \"write\""), "{refused}");
    assert!(result(&server, "toolu_6").contains("plan"), "{}", result(&server, "toolu_6"));
    assert!(result(&server, "toolu_7").contains("has no tool"), "{}", result(&server, "toolu_7"));
    let unknown = result(&server, "toolu_4");
    assert!(
        unknown.contains("there is no agent \"nobody\"; there are: general, look, plan"),
        "{unknown}"
    );
    // Only the tools that it has are offered, and the parent's model knows the agents.
    let offered = |words: &str| -> Vec<String> {
        let requests = server.requests();
        let body = &requests.iter().find(|seen| prompt(&seen.body).contains(words)).unwrap().body;
        let tools = body["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(offered("LOOKER"), ["read", "grep"]);
    let planner = offered("PLANNER");
    assert!(planner.contains(&"write".to_owned()) && !planner.contains(&"run".to_owned()));
    let requests = server.requests();
    let tools = requests[0].body["tools"].to_string();
    assert!(tools.contains("- look: Only looks."), "{tools}");
    // The refusal is on record, before or behind the write of the agent that has the tool.
    let mut ends =
        desk.audit().into_iter().filter(|it| it["event"] == "ended" && it["tool"] == "write");
    assert!(ends.any(|it| it["outcome"]["how"] != "done"));
}

#[test]
fn its_cage_is_the_parents() {
    let desk = Desk::new();
    let secret = desk.home().join(".ssh");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("id"), "SECRET").unwrap();
    let hostile = json!({"command": "cat ~/.ssh/id; echo > /dev/tcp/127.0.0.1/9; echo tried; echo in > mine"});
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "STEAL", "")]), Answer::text("Done.")]),
        (
            "STEAL",
            vec![
                Answer::says([
                    call("toolu_2", "bash", &hostile.to_string()),
                    call("toolu_3", "read", &json!({"path": "~/.ssh/id"}).to_string()),
                ]),
                Answer::text("Nothing."),
            ],
        ),
    ]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (command, read) = (result(&server, "toolu_2"), result(&server, "toolu_3"));
    assert!(command.contains("tried") && !command.contains("SECRET"), "{command}");
    assert!(!read.contains("SECRET"), "{read}");
    assert_eq!(desk.read("mine"), "in\n", "the control: it works in the project");
    let ended: Vec<_> = desk.audit().into_iter().filter(|it| it["event"] == "ended").collect();
    let command = ended.iter().find(|it| it["tool"] == "bash").unwrap();
    assert!(command["session"].as_str().unwrap().ends_with("-1"), "{command}");
    assert_eq!(command["enforced"]["network"], "off (own namespace)", "{command}");
    let read = ended.iter().find(|it| it["tool"] == "read").unwrap();
    assert_ne!(read["outcome"]["how"], "done", "{read}");
}

#[test]
fn sub_agents_of_sub_agents_are_bounded() {
    let desk = Desk::new();
    let scripts = || {
        [
            ("do it", vec![Answer::says([task("toolu_1", "OUTER", "")]), Answer::text("Done.")]),
            ("OUTER", vec![Answer::says([task("toolu_2", "INNER", "")]), Answer::text("Outer.")]),
            ("INNER", vec![Answer::text("Inner.")]),
        ]
    };
    let one = server(scripts());
    let ran = desk.ask(&one, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let refused = result(&one, "toolu_2");
    assert!(refused.contains("this session has no tool \"task\""), "{refused}");
    let names = sessions(&desk);
    assert_eq!(names.len(), 2, "{names:?}");
    let child = one.requests()[1].body["tools"].to_string();
    assert!(!child.contains(r#""name":"task""#), "it is not offered");
    // The control: two levels are possible where the configuration says so.
    desk.write(".agentd/config.toml", "[agents]\ndepth = 2\n");
    let two = server(scripts());
    let ran = desk.ask(&two, &["--trust-project"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(result(&two, "toolu_2").starts_with("Inner.\n[sub-agent general, session "));
    assert!(result(&two, "toolu_1").contains("3 requests, 1 call]"), "{}", result(&two, "toolu_1"));
}

#[test]
fn one_that_does_not_finish_says_so_with_what_it_answered() {
    let desk = Desk::new();
    desk.write(
        ".claude/agents/short.md",
        "---\ndescription: Works briefly.\nmaxTurns: 1\n---\nBe brief.\n",
    );
    let look = |id: &str| {
        let read = call(id, "ls", "{}");
        Answer::says([crate::support::anthropic::text("I have begun."), read])
    };
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "BRIEF", "short")]), Answer::text("Done.")]),
        ("BRIEF", vec![look("toolu_2"), look("toolu_3")]),
    ]);
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = result(&server, "toolu_1");
    assert!(told.contains("did not finish: its 1 requests to the model are used up"), "{told}");
    assert!(told.contains("Its last answer so far:\nI have begun."), "{told}");
}

#[test]
fn a_question_of_a_sub_agent_is_answered_in_its_parents_terminal() {
    let desk = Desk::new();
    let server = server([
        ("begin", vec![Answer::says([task("toolu_1", "TOUCH", "")]), Answer::text("Done.")]),
        (
            "TOUCH",
            vec![tool("toolu_2", "bash", json!({"command": "touch asked"})), Answer::text("Yes.")],
        ),
    ]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.mode = Some(PermissionMode::Ask);
    let session = wire.open(&opening);
    wire.prompt(&session, "begin");
    let begun = wire.event("its call", |event| match event {
        ClientEvent::Output { call, begun: Some(begun), .. } => Some((call.number, begun.clone())),
        _ => None,
    });
    assert_eq!((begun.0, begun.1.id.number, begun.1.tool.as_str()), (1, 1, "bash"));
    let question = wire.event("the question", |event| match event {
        ClientEvent::Asked { question } => Some(question.clone()),
        _ => None,
    });
    let child = format!("{session}-1");
    assert_eq!(question.call.session.0, child);
    assert!(question.reason.contains(&format!("sub-agent general, session {child}")));
    let answer = |digest: &str| FromClient::Answer {
        call: question.call.clone(),
        digest: digest.to_owned(),
        answer: PersonAnswer::Once,
    };
    wire.say(answer("another"));
    wire.event("that it does not count", |event| {
        matches!(event, ClientEvent::AnswerRejected { call, .. } if *call == question.call)
            .then_some(())
    });
    assert!(!desk.project().join("asked").exists());
    // A terminal that comes later sees it too.
    let mut later = Wire::to(&desk.door());
    opening.start = SessionStart::Resume { session, open_turn: OpenTurn::Waits };
    let (same, next) = later.opened(&opening);
    let shown = later.attach(&same, BacklogFrom::Seq(next), ClientRights::Full);
    let seen = shown.iter().find_map(|word| match word {
        ToClient::Event { event: ClientEvent::Asked { question }, .. } => Some(&question.digest),
        _ => None,
    });
    later.say(answer(seen.expect("the question")));
    wire.event("the answer of the other terminal", |event| {
        matches!(event, ClientEvent::Decided { call, allowed: true, .. } if *call == question.call)
            .then_some(())
    });
    wire.turn_ends();
    assert!(desk.project().join("asked").exists());
}

#[test]
fn a_run_counts_its_sub_agents_and_their_sessions_are_removed_with_its_own() {
    let desk = Desk::new();
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "LOOK", "")]), Answer::text("Done.")]),
        ("LOOK", vec![tool("toolu_2", "ls", json!({})), Answer::text("Looked.")]),
    ]);
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    let tokens = |session: &str| -> u64 {
        let answers = of_kind(&journal(&desk, session), "ANSWER").into_iter();
        answers.map(|answer| answer["usage"]["input"].as_u64().unwrap()).sum()
    };
    let names = sessions(&desk);
    let [parent, child] = &names[..] else { panic!("{names:?}") };
    let (own, part) = (tokens(parent), &result["sub_agents"]);
    assert!(own > 0 && tokens(child) > 0);
    assert_eq!(result["usage"]["input_tokens"], own + tokens(child), "{result}");
    assert_eq!(part["usage"]["input_tokens"], tokens(child), "{result}");
    assert_eq!(
        (&part["sessions"], &part["num_turns"], &part["calls"]),
        (&json!(1), &json!(2), &json!(1))
    );
    assert_eq!(result["num_turns"], 2, "its own requests");
    // The control: a run without sub-agents has no such part, and its session stays.
    let other = self::server([("do it", vec![Answer::text("Done.")])]);
    let alone = desk.ask(&other, &[]);
    assert_eq!(serde_json::from_str::<Value>(&alone.out).unwrap().get("sub_agents"), None);
    let removed = desk.agentd(&["rm", parent]).output().unwrap();
    let said = String::from_utf8_lossy(&removed.stderr).into_owned();
    assert!(removed.status.success() && said.contains(&format!("sub-agents ({child})")), "{said}");
    assert_eq!(sessions(&desk).len(), 1, "only the other session is left");
}

#[test]
fn a_session_is_not_removed_while_a_sub_agent_of_it_is_live() {
    let desk = Desk::new();
    let server = server([
        ("begin", vec![Answer::says([task("toolu_1", "LOOK", "")]), Answer::text("Done.")]),
        ("LOOK", vec![Answer::text("Looked."), Answer::text("Again.")]),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, parent) = session(&desk, &server);
    wire.prompt(&parent, "begin");
    wire.turn_ends();
    let child = SessionId(format!("{parent}-1"));
    let is_live = |session: &SessionId| {
        let rows = rows(&mut Wire::to(&desk.door()));
        rows.iter().any(|row| row.session == *session && !row.state.is_of_disk())
    };
    until("the session of the sub-agent ends", || !is_live(&child));
    let mut person = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.start = SessionStart::Resume { session: child.clone(), open_turn: OpenTurn::Waits };
    person.open(&opening);
    wire.say(FromClient::End { session: parent.clone(), ending: SessionEnding::Stop });
    until("its parent ends", || !is_live(&parent));
    let refused = desk.agentd(&["rm", &parent.0]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains(&format!("session {child}, a sub-agent of it, is live")), "{said}");
    assert_eq!(sessions(&desk).len(), 2, "nothing is removed");
}

/// Runs git in the project; returns what it prints.
pub(crate) fn git(desk: &Desk, words: &[&str]) -> String {
    let identity = ["-c", "user.name=P", "-c", "user.email=p@example.org"];
    let mut git = std::process::Command::new("git");
    let ran = git.args(identity).args(words).current_dir(desk.project()).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// A project in git with an agent that works in a worktree, and with a hook that leaves a file.
pub(crate) fn repository() -> Desk {
    let desk = Desk::new();
    let agent = "---\ndescription: Works apart.\nisolation: worktree\n---\nWork.\n";
    desk.write(".claude/agents/apart.md", agent);
    // A checkout lacks the one that git ignores.
    desk.write(".claude/settings.local.json", "{}\n");
    desk.write(".gitignore", "settings.local.json\n*.log\n");
    desk.write("notes", "old\n");
    git(&desk, &["init", "-q", "-b", "main"]);
    git(&desk, &["add", "."]);
    git(&desk, &["commit", "-q", "-m", "begin"]);
    let hook = desk.project().join(".git/hooks/post-checkout");
    let hooked = desk.home().join("hooked");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {} hooked\n", hooked.display())).unwrap();
    let mut rights = std::fs::metadata(&hook).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o755);
    std::fs::set_permissions(&hook, rights).unwrap();
    desk
}

#[test]
fn an_agent_works_in_a_worktree_of_its_own_and_names_its_changes() {
    let desk = repository();
    let change = json!({"command": "echo new > notes; echo more > other; \
        git -c user.name=A -c user.email=a@example.org commit -q -a -m 'change the notes'; pwd"});
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "CHANGE", "apart")]), Answer::text("Done.")]),
        ("CHANGE", vec![tool("toolu_2", "bash", change), Answer::text("Changed.")]),
    ]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let names = sessions(&desk);
    let [parent, child] = &names[..] else { panic!("{names:?}") };
    let place = desk.project().join(".worktrees").join(child);
    let (command, told) = (result(&server, "toolu_2"), result(&server, "toolu_1"));
    assert!(command.contains(&place.display().to_string()), "{command}");
    assert!(told.starts_with("Changed."), "{told}");
    let named = format!("[its worktree: {}, branch agentd/{child}]", place.display());
    for words in [&*named, "change the notes", "not committed:", "?? other"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(desk.read("notes"), "old\n", "the project itself is as it was");
    assert_eq!(git(&desk, &["show", &format!("agentd/{child}:notes")]), "new\n");
    assert!(!desk.project().join("hooked").exists() && !place.join("hooked").exists());
    assert!(!desk.home().join("hooked").exists(), "a hook of the repository does not run");
    assert_eq!(git(&desk, &["status", "--short"]), "", "the worktrees are ignored");
    // Its files are not lost with its session.
    let refused = desk.agentd(&["rm", parent]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("git worktree remove"), "{said}");
    git(&desk, &["worktree", "remove", "--force", &place.display().to_string()]);
    assert!(desk.agentd(&["rm", parent]).output().unwrap().status.success());
    assert_eq!(sessions(&desk), Vec::<String>::new());
}

#[test]
fn a_worktree_without_changes_is_removed() {
    let desk = repository();
    let look =
        json!({"command": "cat notes; tail -n 1 .claude/agents/apart.md; git status --short"});
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "LOOK", "apart")]), Answer::text("Done.")]),
        ("LOOK", vec![tool("toolu_2", "bash", look), Answer::text("Looked.")]),
    ]);
    let ran = desk.ask(&server, &AUTO);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let seen = result(&server, "toolu_2");
    assert!(seen.starts_with("old\nWork.") && !seen.contains(" D "), "{seen}");
    let told = result(&server, "toolu_1");
    assert!(told.contains("[it changed nothing in its worktree, which is removed]"), "{told}");
    assert_eq!(git(&desk, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&desk, &["branch", "--list", "agentd/*"]), "");
    // A project that is no repository has none, and says so.
    let plain = Desk::new();
    plain.write(
        ".claude/agents/apart.md",
        "---\ndescription: Apart.\nisolation: worktree\n---\nWork.\n",
    );
    let server = self::server([(
        "do it",
        vec![Answer::says([task("toolu_1", "LOOK", "apart")]), Answer::text("Done.")],
    )]);
    assert_eq!(plain.ask(&server, &AUTO).code, 0);
    let told = result(&server, "toolu_1");
    assert!(told.contains("not the root of a git repository"), "{told}");
    assert_eq!(sessions(&plain).len(), 1);
}

#[test]
fn a_flag_adds_agents_and_an_agent_is_given_its_skills() {
    let desk = Desk::new();
    desk.write(
        ".claude/skills/tables/SKILL.md",
        "---\nname: tables\ndescription: Makes tables.\n---\nAlign each column.\n",
    );
    let agents = json!({
        "maker": {"description": "Makes.", "prompt": "You make.", "tools": ["Read"], "skills": ["tables"]},
        "lost": {"description": "Has none.", "prompt": "You look.", "skills": ["absent"]},
    });
    let server = server([
        (
            "do it",
            vec![
                Answer::says([task("toolu_1", "MAKE", "maker"), task("toolu_2", "LOSE", "lost")]),
                Answer::text("Done."),
            ],
        ),
        ("MAKE", vec![Answer::text("Made.")]),
    ]);
    let ran = desk.ask(&server, &["--agents", &agents.to_string()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(result(&server, "toolu_1").starts_with("Made."), "{}", result(&server, "toolu_1"));
    let requests = server.requests();
    let system = requests.iter().find(|seen| prompt(&seen.body).contains("MAKE")).unwrap();
    let system = system.body["system"].to_string();
    for words in ["You make.", "# Skill tables", "Align each column."] {
        assert!(system.contains(words), "{words}: {system}");
    }
    assert!(requests[0].body["tools"].to_string().contains("- maker: Makes."));
    let lost = result(&server, "toolu_2");
    assert!(lost.contains("there is no skill \"absent\"; there are: tables"), "{lost}");
    // A wrong flag is an error before the run.
    let wrong = desk.ask(&server, &["--agents", r#"{"a": {"prompt": "x"}}"#]);
    assert!(wrong.err.contains("--agents: missing field `description`"), "{}", wrong.err);
    assert_eq!(wrong.code, 2);
    let twice =
        r#"{"a": {"description": "x", "prompt": "y"}, "A": {"description": "x", "prompt": "z"}}"#;
    let wrong = desk.ask(&server, &["--agents", twice]);
    assert!(wrong.err.contains("two agents have the names a and A"), "{}", wrong.err);
    assert_eq!(wrong.code, 2);
    assert_eq!(server.requests().len(), requests.len());
}

#[test]
fn a_person_who_types_into_a_sub_agent_before_its_task_has_the_task_go_first() {
    let desk = Desk::new();
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "PART", "general")]), Answer::text("Done.")]),
        (
            "PART",
            vec![Answer::text("Worked."), Answer::text("Worked again."), Answer::text("Yes.")],
        ),
    ]);
    assert_eq!(desk.ask(&server, &AUTO).code, 0);
    let child = sessions(&desk)[1].clone();
    // A death came before the first prompt.
    let journal = desk.state().join("sessions").join(&child).join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{}\n", text.lines().next().unwrap())).unwrap();
    let before = server.requests().len();
    let ran = crate::support::run(desk.with_server(&server, &["-p", "TYPED", "--resume", &child]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    assert!(prompt(&requests[before].body).contains("PART"));
    assert!(!requests[before].raw.contains("TYPED"));
    assert!(requests[before + 1].raw.contains("TYPED"));
}
