//! Slash commands end to end: their text reaches the model, their rights need trust, their commands
//! are calls, and a wrong name reaches no model.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, Run, child_of, needs, run, send, until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A file that gives rights and has a command in its text.
const STATUS: &str = "---\nallowed-tools: Bash(echo *)\n---\nNow:\n!`echo mark-$1`\nEnd.\n";

/// Runs a prompt in a project.
#[track_caller]
fn prompt(desk: &Desk, server: &Server, text: &str, flags: &[&str]) -> Run {
    let mut arguments = vec!["-p", text];
    arguments.extend(flags);
    run(desk.with_server(server, &arguments))
}

/// The person's newest words in a request to the model.
fn said(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    let of_person = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    let content = &of_person["content"];
    let blocks = content.as_array().into_iter().flatten();
    let texts: String = blocks.filter_map(|block| block["text"].as_str()).collect();
    content.as_str().map_or(texts, str::to_owned)
}

#[test]
fn the_model_gets_the_text_of_the_file_and_the_record_has_the_words_too() {
    let desk = Desk::new();
    desk.write(".claude/commands/docs/greet.md", "---\ndescription: x\n---\nGreet $1, in $2.\n");
    let server = Server::scripted([Answer::text("Hello.")]);
    let ran = prompt(&desk, &server, "/docs:greet 'the world' verse", &[]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Hello.\n"), "{}", ran.err);
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(said(&requests[0].body), "Greet the world, in verse.");
    let mut sessions = fs::read_dir(desk.state().join("sessions")).unwrap();
    let session = sessions.next().unwrap().unwrap().file_name().into_string().unwrap();
    let shown = run(desk.agentd(&["show", &session]));
    assert!(shown.out.contains("> /docs:greet 'the world' verse"), "{}", shown.out);
    // Another process sends the same text, whatever became of the file.
    fs::remove_file(desk.project().join(".claude/commands/docs/greet.md")).unwrap();
    let server = Server::scripted([Answer::text("Again.")]);
    let ran = prompt(&desk, &server, "go on", &["--continue"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = server.requests()[0].body.to_string();
    assert!(body.contains("Greet the world, in verse.") && !body.contains("/docs:greet"), "{body}");
}

#[test]
fn a_command_is_picked_behind_a_slash_and_runs_with_its_arguments() {
    let desk = Desk::new();
    let front = "---\ndescription: Say hello\nargument-hint: NAME\n---\n";
    desk.write(".claude/commands/docs/greet.md", &format!("{front}Greet $1.\n"));
    desk.write(".claude/skills/pdf/SKILL.md", "---\ndescription: Reads PDFs\n---\nRead it.\n");
    desk.write(".claude/commands/broken.md", "---\nno yaml\n---\nx");
    let server = Server::scripted([Answer::text("Hello, Ann.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    // Wide enough for the project's path and the reason behind it.
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), (200, 34));
    one.shows("ready");
    one.types("/");
    let screen = one.shows("Say hello  (project command, .claude/commands");
    let behind = |name: &str| screen.lines().find_map(|row| row.split_once(name)).map(|it| it.1);
    let (greet, pdf) = (behind("/docs:greet NAME "), behind("/pdf "));
    assert!(greet.is_some_and(|it| it.trim_start().starts_with("Say hello")), "{screen}");
    let skill = "Reads PDFs  (project skill, .claude/skills/pdf";
    assert!(pdf.is_some_and(|it| it.trim_start().starts_with(skill)), "{screen}");
    one.types("broken");
    one.shows("broken.md: its front matter: line 2 is not");
    one.press(&["Escape"]);
    one.shows("> /broken");
    one.press(&["Enter"]);
    // The refused text is in the line again, with the reason above.
    one.shows("/broken cannot be used");
    one.shows("> /broken");
    one.press(&["C-u"]);
    one.types("/greet");
    one.shows("▸ /docs:greet NAME");
    one.press(&["Enter"]);
    one.shows("> /docs:greet");
    one.types("Ann");
    one.press(&["Enter"]);
    one.shows("Hello, Ann.");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(said(&requests[0].body), "Greet Ann.");
}

#[test]
fn a_wrong_name_reaches_no_model_and_a_path_or_a_space_is_text() {
    let desk = Desk::new();
    desk.write(".agents/commands/greet.md", "Greet.");
    desk.write(".claude/commands/broken.md", "---\nno yaml\n---\nx");
    let server = Server::scripted([Answer::text("a"), Answer::text("b"), Answer::text("c")]);
    for (text, words) in [
        ("/gret it", "there is no slash command /gret. Did you mean /greet?"),
        ("/broken", ".claude/commands/broken.md: its front matter: line 2 is not `key: value`"),
    ] {
        let ran = prompt(&desk, &server, text, &[]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains(words), "{}", ran.err);
        assert!(ran.err.contains("put a space before the slash"), "{}", ran.err);
    }
    assert_eq!(server.requests().len(), 0);
    for (text, sent) in [
        ("/usr/bin/env what is this", "/usr/bin/env what is this"),
        (" /gret it", " /gret it"),
        ("/greet", "Greet."),
    ] {
        let ran = prompt(&desk, &server, text, &[]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(said(&server.requests().last().unwrap().body), sent);
    }
}

#[test]
fn rights_of_a_file_need_trust_and_last_for_one_turn() {
    let desk = Desk::new();
    desk.write(".claude/commands/status.md", STATUS);
    let echo = || Answer::says([call("toolu_1", "bash", r#"{"command":"echo more"}"#)]);
    let server = Server::scripted([echo(), Answer::text("no"), echo(), Answer::text("yes")]);
    let ran = prompt(&desk, &server, "/status one", &[]);
    assert_eq!(ran.code, 10, "the model's own call needs an approval: {ran:?}");
    for words in [
        "!`echo mark-one` of .claude/commands/status.md was not run: this project is not trusted",
        "`allowed-tools` of .claude/commands/status.md do not count",
    ] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    let text = said(&server.requests()[0].body);
    assert_eq!(text, "Now:\n[`echo mark-one` was not run: its file gives no rights]\nEnd.");
    let ran = prompt(&desk, &server, "/status two", &["--trust-project"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "yes\n"), "{ran:?}");
    assert_eq!(said(&server.requests()[2].body), "Now:\nmark-two\nEnd.");
    // The command of the text is judged, caged and recorded as each call is.
    let audit = desk.audit();
    let of_rule = audit.iter().filter(|record| {
        record["event"] == "decided" && record.to_string().contains("commands/status.md")
    });
    assert_eq!(of_rule.count(), 2, "the command and the model's call: {audit:#?}");
    // The next turn of the session has the rights no more.
    let server = Server::scripted([echo(), Answer::text("no")]);
    let ran = prompt(&desk, &server, "go on", &["--continue", "--trust-project"]);
    assert_eq!(ran.code, 10, "{ran:?}");
}

#[test]
fn no_file_allows_what_a_rule_denies_or_asks_about() {
    for (list, code, words) in [("deny", 0, "forbids it"), ("ask", 10, "non-interactive")] {
        let desk = Desk::new();
        desk.write(".claude/commands/status.md", STATUS);
        let file = desk.home().join(".config/agentd/config.toml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("[permissions]\n{list} = ['bash:echo *']\n")).unwrap();
        let server = Server::scripted([Answer::text("done")]);
        let ran = prompt(&desk, &server, "/status x", &["--trust-project"]);
        assert_eq!(ran.code, code, "{list}: {ran:?}");
        let text = said(&server.requests()[0].body);
        assert!(text.starts_with("Now:\nError [") && text.ends_with("\nEnd."), "{text}");
        assert!(text.contains(words), "{list}: {text}");
    }
}

#[test]
fn a_command_in_a_text_reaches_no_secret_and_no_network() {
    needs("python3");
    let desk = Desk::new();
    let secret = desk.home().join(".ssh/id_ed25519");
    fs::create_dir_all(secret.parent().unwrap()).unwrap();
    fs::write(&secret, "the key\n").unwrap();
    let tries = "import socket\n\
        def tried(what, do):\n\
        \x20   try: do(); print(what, 'done')\n\
        \x20   except OSError as no: print(what, 'refused')\n\
        tried('secret', lambda: open('SECRET').read())\n\
        tried('change', lambda: open('SECRET', 'a'))\n\
        tried('network', lambda: socket.create_connection(('192.0.2.1', 9), 1))\n\
        tried('project', lambda: open('tries.py').read())\n";
    desk.write("tries.py", &tries.replace("SECRET", &secret.display().to_string()));
    let text = "---\nallowed-tools: Bash(python3 *)\n---\nTried:\n!`python3 tries.py`\n";
    desk.write(".claude/commands/tries.md", text);
    // In tier B the secret is there and the kernel refuses it, so the record names it.
    for (tier, name) in [("a", "192.0.2.1:9"), ("b", ".ssh/id_ed25519")] {
        desk.write(".agentd/config.toml", &format!("[sandbox]\ntier = '{tier}'\n"));
        let server = Server::scripted([Answer::text("done")]);
        let ran = prompt(&desk, &server, "/tries", &["--trust-project"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let text = said(&server.requests()[0].body);
        let refused = ["secret refused", "change refused", "network refused", "project done"];
        assert!(refused.iter().all(|tried| text.contains(tried)), "tier {tier}: {text}");
        let ended = desk.audit().into_iter().rfind(|record| record["event"] == "ended").unwrap();
        assert!(ended["refusals"].to_string().contains(name), "tier {tier}: {ended:#}");
    }
    // The program could do all of it outside.
    let mut outside = Command::new("python3");
    let outside = outside.arg("tries.py").current_dir(desk.project()).output().unwrap();
    assert!(String::from_utf8_lossy(&outside.stdout).contains("secret done\nchange done"));
}

#[test]
fn a_command_in_a_text_runs_once_though_the_supervisor_is_killed() {
    let desk = Desk::new();
    // A second run would print an error.
    let text = "---\nallowed-tools: Bash(mkdir *)\n---\nMade:\n!`mkdir -v once`\n";
    desk.write(".claude/commands/once.md", text);
    let slow = Answer::text("Slow.").paced(Duration::from_millis(400)).in_pieces_of(1);
    let server = Server::scripted([slow, Answer::text("Done.")]);
    let mut command = desk.with_server(&server, &["-p", "/once", "--trust-project"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the model is asked", || server.requests().len() == 1);
    send(child_of(child.id(), "agentd-supervisor").unwrap(), Signal::SIGKILL);
    let ran = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "Done.\n", "{ran:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(said(&request.body), "Made:\nmkdir: created directory 'once'");
    }
}

#[test]
fn the_model_of_a_file_is_asked_in_its_turn_alone() {
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[models.small]\nmodel = 'small-model'\n").unwrap();
    let of = |model: &str| format!("---\nmodel: {model}\n---\nSay it.\n");
    desk.write(".claude/commands/small.md", &of("small"));
    desk.write(".claude/commands/same.md", &of("inherit"));
    desk.write(".claude/commands/strange.md", &of("no-such"));
    let skill = "---\nname: brew\ndescription: Brews\nmodel: claude-haiku-4-5\n---\nBoil.\n";
    desk.write(".claude/skills/brew/SKILL.md", skill);
    let models = |server: &Server| -> Vec<String> {
        let all = server.requests();
        all.iter().map(|seen| seen.body["model"].as_str().unwrap().to_owned()).collect()
    };
    let trusted = ["--trust-project", "--model", "claude-sonnet-5-5"];
    let called = || call("toolu_1", "read", r#"{"path":".claude/commands/small.md"}"#);
    let server =
        Server::scripted([Answer::says([called()]), Answer::text("Done."), Answer::text("More.")]);
    let ran = prompt(&desk, &server, "/small", &trusted);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("this turn is for the model small"), "{}", ran.err);
    let ran = prompt(&desk, &server, "go on", &["--continue"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(models(&server)[..2], ["small-model", "small-model"], "both rounds of the turn");
    assert_ne!(models(&server)[2], "small-model");
    let sessions = fs::read_dir(desk.state().join("sessions")).unwrap();
    let journals: String = sessions
        .map(|session| fs::read_to_string(session.unwrap().path().join("journal.jsonl")).unwrap())
        .collect();
    assert!(journals.contains(r#""model":"small""#), "the record has it");
    assert!(!journals.contains("small-model"), "the session's model is its own");
    for (command, model) in [("/same", "claude-sonnet-5-5"), ("/brew", "claude-haiku-4-5")] {
        let server = Server::scripted([Answer::text("Done.")]);
        let ran = prompt(&desk, &server, command, &trusted);
        assert_eq!((ran.code, models(&server)), (0, vec![model.to_owned()]), "{}", ran.err);
    }
    let server = Server::scripted([Answer::text("Done.")]);
    let ran = prompt(&desk, &server, "/strange", &trusted);
    assert!(ran.code != 0 && server.requests().is_empty(), "{}", ran.err);
    assert!(ran.err.contains("[models.no-such]") && ran.err.contains("strange.md"), "{}", ran.err);
    // A project that is not trusted chooses no model.
    let ran = prompt(&desk, &server, "/small", &["--model", "claude-sonnet-5-5"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("`model: small` of .claude/commands/small.md does not count"));
    assert_eq!(models(&server), ["claude-sonnet-5-5"]);
}

#[test]
fn an_open_turn_has_its_model_behind_the_death_of_the_supervisor() {
    let desk = Desk::new();
    desk.write(".claude/commands/small.md", "---\nmodel: claude-haiku-4-5\n---\nSay it.\n");
    let slow = Answer::text("Slow.").paced(Duration::from_millis(400)).in_pieces_of(1);
    let server = Server::scripted([slow, Answer::text("Done.")]);
    let flags = ["-p", "/small", "--trust-project", "--model", "claude-sonnet-5-5"];
    let mut command = desk.with_server(&server, &flags);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the model is asked", || server.requests().len() == 1);
    send(child_of(child.id(), "agentd-supervisor").unwrap(), Signal::SIGKILL);
    let ran = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "Done.\n", "{ran:?}");
    for request in server.requests() {
        assert_eq!(request.body["model"], "claude-haiku-4-5");
    }
}
