//! A person at a terminal, from the first prompt to the end: a real terminal (tmux), real processes.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Say, Server, call, text};
use crate::support::daemon::Wire;
use crate::support::terminal::{Terminal, Tmux, is_as_kept};
use crate::support::{Desk, run};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const SIZE: (u16, u16) = (90, 30);
const PAUSE: Duration = Duration::from_millis(40);

/// `agentd` with the inline view.
fn typed(desk: &Desk, server: &Server, arguments: &[&str]) -> Command {
    desk.with_server(server, &[arguments, &["--inline"]].concat())
}

fn edit(id: &str) -> Say {
    call(id, "edit", r#"{"path":"greet.txt","old_string":"hello","new_string":"good morning"}"#)
}

fn bash(id: &str, command: &str) -> Say {
    call(id, "bash", &serde_json::json!({ "command": command }).to_string())
}

/// A project whose greeting the model wants to change, and says nothing before it may.
fn greeting() -> (Desk, Server) {
    let desk = Desk::new();
    desk.write("greet.txt", "hello\nworld\n");
    let server = Server::scripted([
        Answer::says([text("I shall change the greeting.\n"), edit("toolu_1")]),
        Answer::text("Changed."),
    ]);
    (desk, server)
}

/// Leaves with the leader key.
#[track_caller]
fn detach(terminal: &Terminal<'_>) -> String {
    terminal.press(&["C-\\"]);
    terminal.shows("d detaches");
    terminal.press(&["d"]);
    assert_eq!(terminal.ends(), 3, "{}", terminal.screen());
    terminal.shows("` returns")
}

#[test]
fn the_first_session_of_a_project_says_once_what_this_is_and_which_keys_matter() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("One."), Answer::text("Two.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "first"]), SIZE);
    one.shows("One.");
    let screen = one.screen();
    for words in ["sandbox", "Esc stops the turn", "`:help`", "`agentd init`"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    detach(&one);
    let two = tmux.run("two", &typed(&desk, &server, &["new", "second"]), SIZE);
    two.shows("Two.");
    assert!(!two.screen().contains("Esc stops"), "{}", two.screen());
}

#[test]
fn a_denial_with_words_reaches_the_model() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    one.shows("1 Allow once");
    one.types("leave greetings alone");
    one.shows("Enter sends this as a prompt");
    one.press(&["Down", "Down", "Down", "Down"]);
    one.shows("Enter denies it, for this reason");
    one.press(&["Enter"]);
    one.shows("Changed.");
    assert_eq!(desk.read("greet.txt"), "hello\nworld\n");
    let told = server.requests()[1].body["messages"].to_string();
    assert!(told.contains("leave greetings alone"), "{told}");
}

#[test]
fn a_note_with_a_yes_reaches_the_model_and_is_on_record_and_an_own_rule_is_checked() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    one.shows("1 Allow once");
    one.types("and thank the reader");
    one.press(&["Down", "Down", "Down"]);
    one.shows("❯ 3 Always");
    one.press(&["Enter"]);
    one.shows("rule: edit:./greet.txt");
    // A rule that does not fit is refused by its words, and writes nothing.
    one.types("x");
    one.shows("Enter allows it, with your note, and writes the rule for this project");
    one.press(&["Enter"]);
    one.shows("greet.txtx` does not allow this call");
    assert_eq!(desk.read("greet.txt"), "hello\nworld\n");
    one.shows("> and thank the reader");
    one.shows("❯ 3 Always");
    one.press(&["Enter"]);
    one.shows("rule: edit:./greet.txtx");
    one.press(&["C-w"]);
    one.types("edit:./*.txt");
    one.press(&["Enter"]);
    one.shows("from now on `edit:./*.txt` is allowed");
    one.shows("Changed.");
    assert_eq!(desk.read("greet.txt"), "good morning\nworld\n");
    let told = server.requests()[1].body["messages"].to_string();
    assert!(told.contains("[The user allowed this call and says: and thank the reader]"), "{told}");
    let screen = one.shows("ready");
    assert!(!screen.contains("The user allowed"), "the call printed no note: {screen}");
    detach(&one);
    let id = run(desk.agentd(&["ls", "--json"])).json()["session_id"].as_str().unwrap().to_owned();
    let shown = run(desk.agentd(&["export", &id])).out;
    assert!(shown.contains("and thank the reader"), "{shown}");
    let audit = desk.audit().iter().map(Value::to_string).collect::<String>();
    assert!(audit.contains("\"note\":\"and thank the reader\""), "{audit}");
}

/// Words that a person types at a question wait in the input line.
#[test]
fn prose_at_a_question_changes_nothing_and_writes_no_rule() {
    for words in ["actually", "may I see it", "always y"] {
        let (desk, server) = greeting();
        let _daemon = desk.daemon();
        let tmux = Tmux::new(&desk);
        let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
        one.shows("1 Allow once");
        one.types(words);
        one.shows(&format!("> {words}"));
        one.shows("Enter sends this as a prompt");
        assert_eq!(desk.read("greet.txt"), "hello\nworld\n", "{words}");
        assert!(!desk.home().join(".config/agentd/config.toml").exists(), "{words}");
        // The control: the question is open, and Enter on a marked row answers it.
        one.press(&["C-u", "Down"]);
        one.shows("Enter allows it once");
        one.press(&["Enter"]);
        one.shows("Changed.");
        assert_ne!(desk.read("greet.txt"), "hello\nworld\n", "{words}");
    }
}

#[test]
fn an_answer_for_good_is_shown_as_its_rule_confirmed_written_and_not_asked_again() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "touch one")]),
        Answer::text("Touched one."),
        Answer::says([bash("toolu_2", "touch two")]),
        Answer::text("Touched two."),
        Answer::says([bash("toolu_3", "mkdir three")]),
        Answer::text("Never said."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "touch it"]), SIZE);
    let dir = desk.home().join(".config/agentd");
    let written = || {
        let files = std::fs::read_dir(&dir).into_iter().flatten().map(|file| file.unwrap().path());
        files.map(|file| std::fs::read_to_string(file).unwrap()).collect::<String>()
    };
    one.shows("1 Allow once");
    one.enters("3");
    one.shows("rule: bash:touch one");
    one.shows("writes the rule for this project");
    // Cancelling writes no rule, and the question stays open.
    one.press(&["Escape"]);
    one.shows("1 Allow once");
    assert_eq!(written(), "", "nothing is written before it is confirmed");
    one.enters("3");
    one.shows("rule: bash:touch one");
    one.press(&["Tab"]);
    one.shows("rule: bash:touch *");
    assert!(written().is_empty() && !desk.project().join("one").exists(), "not before the yes");
    one.press(&["Enter"]);
    one.shows("from now on `bash:touch *` is allowed");
    one.shows("Touched one.");
    assert!(written().contains("\"bash:touch *\""), "{}", written());
    assert!(!dir.join("config.toml").exists(), "other projects are not concerned");
    one.shows("ready");
    one.enters("and the other");
    one.shows("Touched two.");
    assert!(desk.project().join("one").exists() && desk.project().join("two").exists());
    // A call that the rule does not match is asked about as before.
    one.shows("ready");
    one.enters("and a directory");
    one.shows("1 Allow once");
    assert!(!desk.project().join("three").exists());
}

#[test]
fn a_streamed_answer_is_seen_as_it_comes_and_stopped_with_the_session_left() {
    let desk = Desk::new();
    let lines = (1..500).map(|line| text(&format!("line {line} of the answer\n")));
    let server = Server::scripted([
        Answer::says(lines).in_pieces_of(400).paced(PAUSE),
        Answer::text("Here I am."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "talk"]), SIZE);
    let screen = one.shows("of the answer");
    assert!(screen.contains("working"), "{screen}");
    one.press(&["C-c"]);
    one.shows("the turn was stopped");
    one.shows("ready");
    one.press(&["C-c"]);
    one.shows("no turn is running");
    one.press(&["C-c"]);
    is_as_kept_without("stopped", &one.shows("to leave:"), &desk, "line ");
    one.enters("still there?");
    one.shows("Here I am.");
}

#[test]
fn a_command_that_a_person_stops_was_stopped_on_each_surface() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::says([bash("toolu_1", "echo be''gun; sleep 7302")])]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "--permission-mode", "auto", "serve"];
    let one = tmux.run("one", &typed(&desk, &server, &arguments), SIZE);
    // The title of the call has other letters.
    one.shows("begun");
    one.press(&["Escape"]);
    let screen = one.shows("✗ echo be''gun; sleep 7302 · stopped · ");
    let id = run(desk.agentd(&["ls", "--json"])).json()["session_id"].as_str().unwrap().to_owned();
    let shown = run(desk.agentd(&["show", &id])).out;
    assert!(shown.contains("✗ failed: exit 130"), "{shown}");
    let listed = run(desk.agentd(&["audit", "ls"])).out;
    assert!(listed.contains("failed: stopped"), "{listed}");
    for text in [screen, shown, listed] {
        assert!(!text.contains("may have run"), "{text}");
    }
}

#[test]
fn ctrl_b_lets_the_turn_go_on_while_the_command_runs() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "echo begun; sleep 7301")]),
        Answer::text("I went on."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "--permission-mode", "auto", "serve"];
    let one = tmux.run("one", &typed(&desk, &server, &arguments), SIZE);
    one.shows("● echo begun; sleep 7301 · ");
    one.press(&["C-b"]);
    one.shows("call 1 goes on in the background");
    one.shows("I went on.");
    let screen = one.shows("ready");
    assert!(screen.contains("(runs in the background)"), "{screen}");
    // Where no command is waited for, the key moves the cursor.
    one.types("ab");
    one.press(&["C-b"]);
    one.types("X");
    one.shows("> aXb");
}

/// Compares a screen without the lines that begin so, whose number is chance.
#[track_caller]
fn is_as_kept_without(name: &str, screen: &str, desk: &Desk, beginning: &str) {
    let lines: Vec<_> = screen.lines().filter(|line| !line.starts_with(beginning)).collect();
    is_as_kept(name, &(lines.join("\n") + "\n"), desk);
}

#[test]
fn what_a_tool_prints_moves_no_cursor_and_its_block_shows_what_was_refused() {
    let desk = Desk::new();
    let command = "printf 'a\\033[2J\\033[1;1Hb\\n'; echo x > /etc/agentd-test; exit 3";
    let server = Server::scripted([
        Answer::says([bash("toolu_1", command)]),
        Answer::text("It was refused."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "--permission-mode", "auto", "print"];
    let one = tmux.run("one", &typed(&desk, &server, &arguments), SIZE);
    one.shows("It was refused.");
    // Error texts of the kernel differ between hosts, so this screen is not compared.
    let screen = one.shows("ready");
    for words in ["> print", "  ab\n", "  refused: ", "· exit 3 · "] {
        assert!(screen.contains(words), "{words:?} is not in:\n{screen}");
    }
    assert_eq!(screen.matches("· exit 3 · ").count(), 1, "the exit code is shown once:\n{screen}");
    assert!(!screen.contains("exit code") && !screen.contains("agentd ---"), "{screen}");
}

#[test]
fn a_line_is_edited_and_pasted_as_in_other_programs() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("one"), Answer::text("two")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new"]), (40, 20));
    one.shows("ready");
    one.types("日本語 wörld wrong");
    one.press(&["C-w"]);
    one.press(&["C-a"]);
    one.types("say ");
    one.press(&["C-e"]);
    one.types("é");
    is_as_kept("edited", &one.shows("say 日本語 wörld é"), &desk);
    one.resize(24, 12);
    one.shows("> say 日本語 wörld é");
    one.press(&["Enter"]);
    one.shows("one");
    let asked = server.requests()[0].body["messages"].to_string();
    assert!(asked.contains("say 日本語 wörld é"), "{asked}");
    one.press(&["Up"]);
    one.shows("> say 日本語 wörld é\n");
    one.press(&["C-u"]);
    one.pastes("first\nsecond\n");
    one.shows("  second");
    assert_eq!(server.requests().len(), 1, "a paste sends nothing");
    one.press(&["Enter"]);
    one.shows("two");
    let asked = server.requests()[1].body["messages"].to_string();
    assert!(asked.contains("first\\nsecond"), "{asked}");
}

#[test]
fn a_terminal_that_knows_nothing_gets_lines_and_answers_with_lines() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let mut command = typed(&desk, &server, &["new", "make it friendlier"]);
    command.env("TERM", "dumb");
    let one = tmux.run("one", &command, SIZE);
    is_as_kept("dumb", &one.shows("1 Allow once"), &desk);
    one.enters("y");
    one.shows("Changed.");
    assert_eq!(desk.read("greet.txt"), "good morning\nworld\n");
    // An answer that is taken at once leaves no time to say that it is waited for.
    let shown = one.shows("the turn is over");
    let shown = shown.trim_start().replace("answered; waiting for the supervisor\n", "");
    is_as_kept("dumb_end", &shown, &desk);
    one.press(&["C-d"]);
    assert_eq!(one.ends(), 0);
}

/// The second line of a paste is not for the rule that the first one opens.
#[test]
fn two_pasted_lines_write_no_rule_that_was_not_printed() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let mut command = typed(&desk, &server, &["new", "make it friendlier"]);
    command.env("TERM", "dumb");
    let one = tmux.run("one", &command, SIZE);
    one.shows("1 Allow once");
    one.pastes("a\ny\n");
    one.shows("type it again");
    one.shows("allow `edit:./greet.txt` in later sessions?");
    assert_eq!(desk.read("greet.txt"), "hello\nworld\n");
    // The control: typed behind the printed rule it counts.
    one.enters("y");
    one.shows("from now on `edit:./greet.txt` is allowed");
    one.shows("Changed.");
    one.press(&["C-d"]);
    assert_eq!(one.ends(), 0);
}

#[test]
fn without_colour_nothing_is_coloured() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "make it friendlier"];
    let plain = tmux.run("one", typed(&desk, &server, &arguments).env("NO_COLOR", "1"), SIZE);
    plain.shows("1 Allow once");
    assert!(!plain.coloured().contains('\u{1b}'), "{}", plain.coloured());
    plain.enters("5");
    let stopped = plain.shows("ready");
    assert!(stopped.contains("⊘ edit greet.txt · not run · never started"), "{stopped}");
    assert!(!stopped.contains("may have run"), "{stopped}");
    let server = Server::scripted([Answer::says([edit("toolu_1")]), Answer::text("Changed.")]);
    let colourful = tmux.run("two", &typed(&desk, &server, &arguments), SIZE);
    colourful.shows("1 Allow once");
    assert!(colourful.coloured().contains("\u{1b}[31m"), "the positive control");
    colourful.press(&["Escape"]);
    let stopped = colourful.shows("ready");
    assert!(stopped.contains("⊘ edit greet.txt · not run · never started"), "{stopped}");
    assert!(!stopped.contains("may have run"), "{stopped}");
    let listed = run(desk.agentd(&["audit", "ls"])).out;
    assert!(listed.contains("not run: never started"), "it was never allowed: {listed}");
}

#[test]
fn a_question_shows_its_diff_and_waits_for_who_comes_back() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    is_as_kept("question", &one.shows("1 Allow once"), &desk);
    is_as_kept("detached", &detach(&one), &desk);
    assert_eq!(desk.read("greet.txt"), "hello\nworld\n", "not before the answer");
    let narrow = tmux.run("narrow", &typed(&desk, &server, &["attach"]), (50, 40));
    is_as_kept("question_narrow", &narrow.shows("1 Allow once"), &desk);
    narrow.press(&["Enter"]);
    narrow.shows("Changed.");
    is_as_kept("answered", &narrow.shows("ready"), &desk);
    assert_eq!(desk.read("greet.txt"), "good morning\nworld\n");
    narrow.press(&["C-d"]);
    assert_eq!(narrow.ends(), 0, "{}", narrow.screen());
}

#[test]
fn a_terminal_that_is_closed_leaves_the_session_running() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    one.shows("1 Allow once");
    one.close();
    let two = tmux.run("two", &typed(&desk, &server, &["attach"]), SIZE);
    two.shows("1 Allow once");
    two.press(&["Enter"]);
    two.shows("Changed.");
}

/// The hang-up that a terminal's end sends, to the client and to its daemon.
#[test]
fn a_hang_up_ends_the_client_and_neither_its_session_nor_the_daemon() {
    let (desk, server) = greeting();
    let daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    one.shows("1 Allow once");
    crate::support::send(daemon.pid, Signal::SIGHUP);
    crate::support::send(u32::try_from(one.pid()).unwrap(), Signal::SIGHUP);
    assert_eq!(one.ends(), 3, "the session continues: {}", one.screen());
    let two = tmux.run("two", &typed(&desk, &server, &["attach"]), SIZE);
    two.shows("1 Allow once");
    two.press(&["Enter"]);
    two.shows("Changed.");
    assert_eq!(Wire::to(&desk.door()).pid, daemon.pid, "it is the same daemon");
}

#[test]
fn a_question_outlives_its_terminal_and_its_daemon() {
    let (desk, server) = greeting();
    let daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    one.shows("1 Allow once");
    crate::support::send(u32::try_from(one.pid()).unwrap(), Signal::SIGKILL);
    one.close();
    crate::support::send(daemon.pid, Signal::SIGKILL);
    let two = tmux.run("two", &typed(&desk, &server, &["attach"]), SIZE);
    two.shows("1 Allow once");
    assert_eq!(desk.read("greet.txt"), "hello\nworld\n");
    two.press(&["Enter"]);
    two.shows("Changed.");
    assert_eq!(desk.read("greet.txt"), "good morning\nworld\n");
}

#[test]
fn a_lost_daemon_is_followed_by_another_while_the_terminal_stays() {
    let (desk, server) = greeting();
    let daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    one.shows("1 Allow once");
    crate::support::send(daemon.pid, Signal::SIGKILL);
    one.shows("the connection is lost");
    one.listens();
    one.shows("connected again");
    one.shows("1 Allow once");
    one.press(&["Enter"]);
    one.shows("Changed.");
    assert_eq!(desk.read("greet.txt"), "good morning\nworld\n");
}

#[test]
fn words_that_a_dying_daemon_did_not_take_come_back_to_the_line() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| Answer::text(&format!("Answer {n}.")));
    let daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "hello"]), SIZE);
    one.shows("Answer 1.");
    one.shows("ready");
    crate::support::send(daemon.pid, Signal::SIGSTOP);
    one.types("are you there?");
    one.shows("> are you there?");
    one.press(&["Enter"]);
    one.shows_no_more("> are you there?");
    crate::support::send(daemon.pid, Signal::SIGKILL);
    one.shows("perhaps not received: check above, then press Enter to send it");
    one.shows("> are you there?");
    assert_eq!(server.requests().len(), 1, "it is for the person to say");
    one.press(&["Enter"]);
    one.shows("Answer 2.");
}

#[test]
fn who_sees_a_session_ended_elsewhere_is_told_that_it_ended() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Here I am.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "hello"]), SIZE);
    one.shows("ready");
    let id = run(desk.agentd(&["ls", "--json"])).json()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(run(desk.agentd(&["stop", &id])).code, 0);
    let screen = one.shows("` returns");
    assert!(screen.contains("the session was ended"), "{screen}");
    assert!(!screen.contains("continues"), "{screen}");
}

#[test]
fn who_watches_a_lost_daemon_ends_no_turn_and_sees_it_go_on() {
    let (desk, server) = greeting();
    let daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    one.shows("1 Allow once");
    let watching = tmux.run("watching", &typed(&desk, &server, &["attach", "-r"]), SIZE);
    watching.shows("another terminal has to answer");
    detach(&one);
    crate::support::send(daemon.pid, Signal::SIGKILL);
    watching.shows("the connection is lost");
    let two = tmux.run("two", &typed(&desk, &server, &["attach"]), SIZE);
    two.shows("1 Allow once");
    two.press(&["Enter"]);
    for terminal in [&two, &watching] {
        terminal.shows("Changed.");
    }
    assert_eq!(desk.read("greet.txt"), "good morning\nworld\n");
}

#[test]
fn one_answer_counts_and_every_terminal_sees_whose() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    one.shows("1 Allow once");
    let two = tmux.run("two", &typed(&desk, &server, &["attach"]), SIZE);
    two.shows("1 Allow once");
    let watching = tmux.run("watching", &typed(&desk, &server, &["attach", "-r"]), SIZE);
    watching.shows("WATCHING");
    watching.shows("another terminal has to answer");
    watching.types("y");
    is_as_kept("watching", &watching.shows("attach without -r"), &desk);
    assert_eq!(desk.read("greet.txt"), "hello\nworld\n", "who watches answers nothing");
    two.press(&["Enter"]);
    let (other, own) = ("edit allowed: answered by terminal", "edit allowed: answered by you");
    for (terminal, words) in [(&one, other), (&two, own), (&watching, other)] {
        terminal.shows(words);
        terminal.shows("Changed.");
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn the_audit_log_names_the_terminal_that_answered_after_another_left() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let at = |pane: &str, host: &str, arguments: &[&str]| {
        let mut command = typed(&desk, &server, arguments);
        command.env("TMUX_PANE", pane).env("SSH_CONNECTION", format!("{host} 5022 192.0.2.1 22"));
        command
    };
    let one = at("%71", "192.0.2.71", &["new", "make it friendlier"]);
    let one = tmux.run("one", &one, SIZE);
    one.shows("1 Allow once");
    let hostile = "192.0.2.72,pid\u{202e}1";
    let two = tmux.run("two", &at("%72", hostile, &["attach"]), SIZE);
    two.shows("1 Allow once");
    detach(&one);
    two.press(&["Enter"]);
    two.shows("Changed.");
    let audit = desk.audit();
    let who = audit.iter().map(Value::to_string).find(|record| record.contains("terminal "));
    let who = who.unwrap_or_else(|| panic!("{audit:#?}"));
    assert!(who.contains(", tmux %72, ssh from 192.0.2.72?pid?1, pid "), "{who}");
    assert!(!who.contains("%71"), "{who}");
    let pid = who.split(", pid ").nth(1).unwrap().split(')').next().unwrap();
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(String::from_utf8_lossy(&words).contains("attach"), "it is the second terminal's");
    let tty = std::fs::read_link(format!("/proc/{pid}/fd/0")).unwrap();
    let tty = tty.strip_prefix("/dev").unwrap().display().to_string();
    assert!(who.contains(&format!("({tty}, tmux")), "{tty}: {who}");
}

#[test]
fn a_checklist_is_seen_whole_and_live_at_every_terminal() {
    let desk = Desk::new();
    let steps: Vec<String> = (1..=12).map(|n| format!("step number {n}")).collect();
    let list = serde_json::json!({"group": "g", "title": "Plan", "items": steps});
    let far = |id: &str, item: usize, status: &str| {
        let item = format!("step number {item}");
        let input = serde_json::json!({"group": "g", "item": item, "status": status});
        call(id, "checklist_update", &input.to_string())
    };
    let server = Server::scripted([
        Answer::says([call("toolu_1", "checklist_create", &list.to_string())]),
        Answer::says([far("toolu_2", 1, "in_progress"), bash("toolu_3", "true")]),
        Answer::says([far("toolu_4", 1, "done"), far("toolu_5", 12, "in_progress")]),
        Answer::text("Over."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    const TALL: (u16, u16) = (90, 70);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "plan"]), TALL);
    one.shows("1 Allow once");
    // It was made before this one came.
    let two = tmux.run("two", &typed(&desk, &server, &["attach"]), TALL);
    two.shows("1 Allow once");
    for terminal in [&one, &two] {
        let screen = terminal.shows("[>] 1. step number 1");
        assert!(screen.contains("[ ] 1. step number 1"), "as it was made: {screen}");
        assert!(screen.contains("0 of 12 done, now: step number 1"), "{screen}");
    }
    two.press(&["Enter"]);
    for terminal in [&one, &two] {
        terminal.shows("Over.");
        let screen = terminal.screen();
        assert!(screen.contains("[x] 1. step number 1"), "{screen}");
        assert!(screen.contains("[>] 12. step number 12"), "{screen}");
        assert!(screen.contains("1 of 12 done, now: step number 12"), "{screen}");
    }
}

#[test]
fn who_attaches_alone_sends_the_others_away() {
    let (desk, server) = greeting();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "make it friendlier"]), SIZE);
    one.shows("1 Allow once");
    let two = tmux.run("two", &typed(&desk, &server, &["attach", "-d"]), SIZE);
    two.shows("1 Allow once");
    assert_eq!(one.ends(), 3, "{}", one.screen());
    one.shows("` returns");
}
#[test]
fn what_is_typed_meanwhile_waits_its_turn_and_can_be_taken_back() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::text("one. two. three. four.").in_pieces_of(60).paced(Duration::from_millis(400)),
        Answer::text("Second answer."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "talk"]), SIZE);
    one.shows("working");
    one.types("and then");
    one.press(&["Tab"]);
    one.shows("queued: and then");
    one.press(&["Up"]);
    one.shows("> and then");
    one.shows_no_more("queued:");
    one.types(" more");
    one.press(&["Tab"]);
    is_as_kept_without("queued", &one.shows("queued: and then more"), &desk, "one.");
    one.shows("Second answer.");
    let asked = server.requests()[1].body["messages"].to_string();
    assert!(asked.contains("and then more"), "{asked}");
}

#[test]
fn settings_are_changed_and_a_copy_is_gone_on_with() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::text("First."),
        Answer::says([bash("toolu_1", "echo hi")]),
        Answer::text("Second."),
        Answer::text("Third."),
        Answer::text("Fourth."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "talk"]), SIZE);
    one.shows("First.");
    one.enters(":net on");
    one.shows("net ON");
    one.enters(":mode auto");
    one.shows("mode auto ·");
    one.enters(":frok");
    one.shows("there is no command :frok");
    is_as_kept("settings", &one.screen(), &desk);
    one.enters(":fork");
    one.shows("a copy of");
    one.listens();
    one.enters("go on");
    one.shows("Second.");
    one.enters(":audit");
    one.shows("DECIDED");
    one.enters(":model another-model");
    one.shows("model another-model, starting with the next request");
    one.shows("the model another-model is neither in");
    one.enters("what now");
    one.shows("Third.");
    assert_eq!(server.requests().last().unwrap().body["model"], "another-model");
    one.enters(":clear");
    let cleared = one.shows("this is the new session");
    assert!(!cleared.contains("Third."), "{cleared}");
    one.listens();
    one.enters("who are you");
    one.shows("Fourth.");
    let last = server.requests().last().unwrap().body.clone();
    assert!(!last["messages"].to_string().contains("what now"), "{last}");
    assert_ne!(last["model"], "another-model", "the change was the other session's");
    // The terminal leaves before the end of the turn. The session continues, and the exit code differs.
    one.shows("ready");
    one.enters(":q");
    let listed = run(desk.agentd(&["ls", "--json"]));
    assert_eq!(listed.out.lines().count(), 3, "{}", listed.out);
}

#[test]
fn what_is_known_of_a_model_is_known_after_a_change_and_after_coming_back() {
    let desk = Desk::new();
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let model = "[models.cheap]\nmodel = \"cheap-1\"\ncontext = 40000\n\
                 price = { input = 1.0, output = 1.0, cache_read = 1.0, cache_write = 1.0 }\n";
    std::fs::write(&config, model).unwrap();
    let server = Server::answering(|n, _| Answer::text(&format!("Answer {n}.")));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let wide = (170, 30);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "talk"]), wide);
    one.shows("Answer 1.");
    let before = one.shows("$0.0");
    assert!(!before.contains("/40.0k"), "{before}");
    one.enters(":model cheap");
    one.shows("model cheap, starting with the next request");
    // The room is that of the new model, as soon as it is asked and before it answers.
    let known = one.shows("/40.0k");
    assert!(!known.contains("neither in"), "the configuration has it: {known}");
    one.enters("and now");
    one.shows("Answer 2.");
    let after = one.shows("ready");
    assert!(after.contains("cheap-1") && after.contains("$0.0"), "both answers are paid: {after}");
    detach(&one);
    // A client that returns with flags that do not apply there gets a note.
    desk.write("notes.md", "x");
    let flags = ["attach", "--model", "third", "--context", "notes.md", "--net", "on"];
    let two = tmux.run("two", &typed(&desk, &server, &flags), wide);
    two.listens();
    let screen = two.shows("/40.0k");
    for words in [
        "--model third is ignored",
        "`:model third` changes that",
        "--context notes.md is ignored",
        "`:add notes.md` pins it",
        "--net on is ignored",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(screen.contains("cheap-1") && screen.contains("net off"), "{screen}");
    detach(&two);
    // Flags that agree with the session give no note.
    let three = tmux.run("three", &typed(&desk, &server, &["attach", "--net", "off"]), wide);
    three.listens();
    assert!(!three.screen().contains("is ignored"), "{}", three.screen());
}

#[test]
fn what_we_say_is_folded_between_words() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Hi.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "talk"]), (40, 30));
    one.shows("Hi.");
    one.shows("ready");
    one.enters(":net on");
    one.shows("network on for");
    one.enters(":frok");
    one.shows("mean :fork?");
    one.enters(":add nowhere.txt");
    is_as_kept("folded", &one.shows("(os error 2)"), &desk);
}

#[test]
fn a_file_that_cannot_be_shown_is_told_at_once_and_is_not_pinned() {
    let desk = Desk::new();
    desk.write("notes.md", "pinned words");
    desk.write("sub/x", "x");
    std::fs::write(desk.project().join("large"), vec![b'x'; 2_000_000]).unwrap();
    std::fs::write(desk.project().join("bytes"), [0x7f, b'E', b'L', b'F', 0, 0]).unwrap();
    let outside = desk.outside().join("secret");
    std::fs::write(&outside, "x").unwrap();
    std::os::unix::fs::symlink(&outside, desk.project().join("link")).unwrap();
    let server = Server::answering(|n, _| Answer::text(&format!("Answer {n}.")));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &typed(&desk, &server, &["new", "talk"]), (120, 40));
    one.shows("Answer 1.");
    one.shows("ready");
    for (named, why) in [
        ("nowhere.md", "nowhere.md cannot be pinned: No such file"),
        ("sub", "sub cannot be pinned: it is not a regular file"),
        ("large", "large cannot be pinned: it has 2000000 bytes"),
        ("bytes", "bytes cannot be pinned: it is not a text file"),
        ("link", "link cannot be pinned: tools have no access"),
    ] {
        one.enters(&format!(":add {named}"));
        one.shows(why);
    }
    one.enters(":add notes.md");
    let screen = one.shows("notes.md is pinned, starting with the next request");
    assert_eq!(screen.matches("is pinned").count(), 1, "{screen}");
    one.enters("now");
    one.shows("Answer 2.");
    let asked = server.requests()[1].body["messages"].to_string();
    assert!(asked.contains("pinned words") && !asked.contains("nowhere.md"), "{asked}");
}
