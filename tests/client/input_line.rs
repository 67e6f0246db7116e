//! The input line, end to end: rows, kill ring, undo, and what becomes of a text that is not sent.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server};
use crate::support::terminal::{Terminal, Tmux};
use crate::support::{Desk, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const WIDE: (u16, u16) = (120, 34);
/// Without panels.
const NARROW: (u16, u16) = (60, 24);

/// The words of the last request, as JSON.
#[track_caller]
fn asked(server: &Server, number: usize) -> String {
    server.requests()[number].body["messages"].to_string()
}

#[test]
fn a_draft_of_several_rows_is_edited_as_in_an_editor() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("One.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), NARROW);
    one.shows("ready");
    one.types("one two");
    one.press(&["M-Enter"]);
    one.types("three");
    one.shows("  three");
    one.press(&["Up", "C-k"]);
    one.shows("> one t\n");
    one.press(&["Down", "C-y"]);
    one.shows("  threewo");
    one.press(&["C-_"]);
    one.shows("  three\n");
    // Longer than a row: the one above is a part of the same line.
    one.types(&"x".repeat(100));
    one.shows("threexxx");
    one.press(&["Up"]);
    one.types("+up+");
    one.shows("x+up+x");
    one.press(&["C-_", "C-e", "C-u"]);
    one.shows_no_more("xxx");
    one.types("three\\");
    one.press(&["Enter"]);
    one.types("four");
    one.shows("  four");
    one.press(&["Enter"]);
    one.shows("One.");
    one.shows("ready");
    let words = asked(&server, 0);
    assert!(words.contains("one t\\nthree\\nfour"), "{words}");
    one.types("not so");
    one.press(&["Escape"]);
    one.shows("Esc again to clear the line");
    one.press(&["Escape"]);
    one.shows_no_more("not so");
    one.press(&["Up"]);
    one.shows("> not so");
    one.press(&["C-c", "Up", "Up"]);
    one.shows("  four");
    assert_eq!(server.requests().len(), 1, "nothing of this was sent");
}

#[test]
fn a_draft_is_put_away_for_another_prompt_and_outlives_its_terminal() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("One.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), WIDE);
    one.shows("ready");
    one.types("half a thought");
    one.press(&["C-s"]);
    one.shows("put away");
    one.enters("first this");
    one.shows("One.");
    one.shows("ready");
    assert!(!asked(&server, 0).contains("half"), "{}", asked(&server, 0));
    one.press(&["C-s"]);
    one.shows("> half a thought");
    one.press(&["C-s"]);
    one.shows("put away");
    // On the next attachment no text waits behind a key that the person may not remember.
    one.press(&["C-d"]);
    assert_eq!(one.ends(), 0, "{}", one.screen());
    let two = tmux.run("two", &desk.with_server(&server, &["attach"]), WIDE);
    two.shows("> half a thought");
}

#[test]
fn each_session_of_one_terminal_keeps_its_own_draft() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("Here."));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "alpha words"]), WIDE);
    one.shows("Here.");
    let first = Terminal::session_of(&one.shows("ready"));
    one.types("put aside");
    one.press(&["C-s"]);
    one.shows("put away");
    one.enters(":clear");
    one.shows("this is the new session");
    one.shows("ready");
    one.press(&["C-s"]);
    one.shows("no text was put away");
    one.types("of the second");
    one.press(&["C-p"]);
    one.types("alpha");
    one.shows("1 of 2");
    one.press(&["Enter"]);
    one.shows(&format!("this is session {first}"));
    let screen = one.shows("> put aside");
    assert!(!screen.contains("of the second"), "{screen}");
    one.types(" and more");
    one.press(&["C-s"]);
    one.shows("put away");
    let files = fs::read_dir(desk.state().join("drafts")).unwrap().flatten();
    let mut drafts: Vec<_> = files.map(|file| fs::read_to_string(file.path()).unwrap()).collect();
    drafts.sort();
    assert_eq!(drafts, ["of the second", "put aside and more"]);
}

#[test]
fn a_suspended_client_leaves_the_shell_its_terminal_and_comes_back_as_it_was() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("One.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let agentd = desk.with_server(&server, &["new", "hello"]);
    let words: Vec<_> = agentd.get_args().map(|word| word.to_str().unwrap()).collect();
    let mut shell = Command::new("setsid");
    shell.args(["bash", "--norc", "--noprofile", "-i"]).env("PS1", "shell> ");
    shell.envs(agentd.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(agentd.get_current_dir().unwrap());
    let one = tmux.run("one", &shell, WIDE);
    one.shows("shell>");
    one.enters("stty -g > before");
    one.enters(&words.join(" "));
    one.shows("ready");
    one.types("my words");
    one.shows("> my words");
    for _ in 0..2 {
        one.press(&["C-z"]);
        one.shows("Stopped");
        assert_eq!(one.modes(), "0 0 1", "alternate screen, mouse, cursor");
        one.enters("clear; stty -g | cmp - before && echo SAME");
        let screen = one.shows("SAME\nshell>");
        assert!(!screen.contains("net off"), "{screen}");
        one.enters("fg");
        let screen = one.shows("> my words");
        assert!(screen.contains("One.") && screen.contains("net off"), "{screen}");
        assert_eq!(one.modes(), "1 1 1", "alternate screen, mouse, cursor");
    }
    one.types(" and more");
    one.shows("> my words and more");
    // Where no shell could continue it, it goes on.
    let attach = desk.with_server(&server, &["attach"]);
    let mut without_jobs = Command::new("setsid");
    without_jobs.args(["sh", "-c", r#""$@"; true"#, "sh"]).args(attach.get_args());
    without_jobs.envs(attach.get_envs().filter_map(|(name, value)| Some((name, value?))));
    without_jobs.current_dir(attach.get_current_dir().unwrap());
    for (name, command) in [("alone", attach), ("jobs", without_jobs)] {
        let alone = tmux.run(name, &command, WIDE);
        alone.shows("One.");
        alone.press(&["C-z"]);
        alone.shows("no shell started agentd here");
    }
}

#[test]
fn prompts_of_all_sessions_of_a_project_are_recalled_until_their_session_is_removed() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("Here."));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "alpha words"]), WIDE);
    one.shows("Here.");
    let first = Terminal::session_of(&one.shows("ready"));
    let two = tmux.run("two", &desk.with_server(&server, &["new"]), WIDE);
    two.shows("ready");
    two.press(&["Up"]);
    two.shows("> alpha words");
    two.press(&["C-u"]);
    two.enters("beta words");
    two.shows("Here.");
    two.shows("ready");
    // Those of the session come first, then those of its project.
    let again = tmux.run("again", &desk.with_server(&server, &["attach", &first]), WIDE);
    again.shows("ready");
    again.press(&["Up"]);
    again.shows("> alpha words");
    again.press(&["Up"]);
    again.shows("> beta words");
    again.press(&["C-r"]);
    again.shows("2 of 2");
    again.types("beta");
    again.press(&["Enter"]);
    again.shows("> beta words");
    let kept = || {
        let mut files = fs::read_dir(desk.state().join("history")).unwrap().flatten();
        let file = files.find(|file| file.path().extension().unwrap() == "jsonl").unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::read_to_string(file.path()).unwrap()
    };
    assert!(kept().contains("alpha words") && kept().contains("beta words"), "{}", kept());
    for terminal in [one, again] {
        terminal.press(&["C-c", "C-d"]);
        terminal.ends();
    }
    assert_eq!(run(desk.agentd(&["stop", &first])).code, 0);
    let removed = run(desk.agentd(&["rm", &first]));
    assert_eq!(removed.code, 0, "{}", removed.err);
    assert!(!kept().contains("alpha") && kept().contains("beta words"), "{}", kept());
}

#[test]
fn a_long_paste_is_one_word_is_sent_whole_and_is_folded_in_the_conversation() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Read.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), WIDE);
    one.shows("ready");
    let log: String = (1..=800).map(|number| format!("log line {number}\n")).collect();
    one.types("first ");
    one.pastes(&log);
    one.shows("> first [pasted 800 lines, 11 KB]");
    one.press(&["BSpace"]);
    one.shows_no_more("[pasted");
    one.pastes(&log);
    one.types("what failed?");
    one.shows("> first [pasted 800 lines, 11 KB]what failed?");
    one.press(&["Enter"]);
    let screen = one.shows("Read.");
    let words = asked(&server, 0);
    assert!(
        words.contains("first log line 1\\n") && words.contains("800\\nwhat failed?"),
        "{words}"
    );
    assert!(screen.contains("▌ log line 6\n") && !screen.contains("line 7 "), "{screen}");
    assert!(screen.contains("▌ … 795 more lines"), "{screen}");
    one.shows("ready");
    one.press(&["C-r"]);
    let screen = one.shows("  │ … 792 more lines");
    assert!(screen.contains("  │ first log line 1\n"), "{screen}");
    one.press(&["Escape"]);
    one.shows_no_more("earlier prompt");
    one.press(&["C-o", "k", "Enter"]);
    one.shows("▌ what failed?");
}

#[test]
fn the_words_that_leave_other_programs_leave_the_session() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Read.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    // A paste without its marks: nothing of it reaches the shell.
    let pasted = tmux.run("pasted", &desk.with_server(&server, &["new"]), NARROW);
    pasted.shows("ready");
    pasted.press(&["e", "x", "i", "t", "Enter", "l", "s", "Enter"]);
    pasted.shows("Read.");
    assert!(asked(&server, 0).contains("exit\\nls"), "{}", asked(&server, 0));
    for (name, word) in [("one", "exit"), ("two", "/quit")] {
        let terminal = tmux.run(name, &desk.with_server(&server, &["new"]), NARROW);
        terminal.shows("ready");
        terminal.types(word);
        terminal.shows(word.trim_start_matches('/'));
        terminal.press(&["Enter"]);
        assert_eq!(terminal.ends(), 0, "{}", terminal.screen());
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_keys_of_vim_edit_the_line_and_esc_twice_stops_a_turn() {
    let desk = Desk::new();
    let config = desk.home().join(".config/agentd");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "ui.keys = 'vim'\n").unwrap();
    let slow = Answer::text("It goes on and on.").paced(std::time::Duration::from_secs(30));
    let server = Server::scripted([Answer::text("One."), slow.in_pieces_of(4)]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), NARROW);
    one.shows("ready");
    one.types("one two three");
    one.press(&["Escape"]);
    one.shows("N one two three");
    // No list of files: this is a command that vim has and the line has not.
    one.types("@bbdwib");
    one.shows("> one bthree");
    one.press(&["Enter"]);
    one.shows("One.");
    one.shows("ready");
    assert!(asked(&server, 0).contains("one bthree"), "{}", asked(&server, 0));
    one.enters("go");
    one.shows("Esc stops");
    one.types("next");
    one.press(&["Escape"]);
    one.shows("N next");
    assert!(one.screen().contains("Esc stops"), "{}", one.screen());
    one.press(&["Escape"]);
    one.shows("ready");
    one.shows("next");
}
