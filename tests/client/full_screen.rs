//! The full-screen view, which is the usual one, end to end: a real terminal (tmux), real processes.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Say, Server, call, text, thinking};
use crate::support::daemon::Wire;
use crate::support::dice::Dice;
use crate::support::terminal::{Terminal, Tmux};
use crate::support::{Desk, send};
use nix::sys::signal::Signal;
use std::process::Command;
use std::time::{Duration, Instant};

const WIDE: (u16, u16) = (120, 34);
const NARROW: (u16, u16) = (60, 24);

fn bash(id: &str, command: &str) -> Say {
    call(id, "bash", &serde_json::json!({ "command": command }).to_string())
}

/// Leaves with the leader key; what the terminal shows then is its own screen again.
#[track_caller]
fn detach(terminal: &Terminal<'_>) -> String {
    terminal.press(&["C-\\"]);
    terminal.shows("d detaches");
    terminal.press(&["d"]);
    assert_eq!(terminal.ends(), 3, "{}", terminal.screen());
    terminal.shows("` returns")
}

#[test]
fn an_answer_is_markdown_beside_the_panels_and_stays_in_the_scrollback() {
    let desk = Desk::new();
    let answer = "# Plan\n\nDo **this**:\n\n- first\n- second\n\n```rust\nlet a = 1;\n```\n";
    let server = Server::scripted([Answer::text(answer)]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "plan it"]), WIDE);
    let screen = one.shows("• second");
    assert!(screen.contains("▌ plan it") && screen.contains("Do this:"), "{screen}");
    assert!(!screen.contains("**") && !screen.contains("```"), "{screen}");
    let screen = one.shows("ready");
    assert!(screen.contains("mode ask · net off") && !screen.contains("network"), "{screen}");
    one.press(&["Tab"]);
    one.shows("network  off");
    let left = detach(&one);
    assert!(left.contains("plan it") && left.contains("• second"), "{left}");
    assert!(!left.contains("Session"), "the panels are gone: {left}");
}

#[test]
fn a_question_shows_its_cage_and_a_key_answers_it() {
    let desk = Desk::new();
    let server =
        Server::scripted([Answer::says([bash("toolu_1", "touch made")]), Answer::text("Made.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "make it"]), NARROW);
    let screen = one.shows("1 Allow once");
    for words in ["touch made", "cage:", "network: off", "may write", "4 Deny"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!desk.project().join("made").exists());
    one.press(&["Enter"]);
    one.shows("Made.");
    assert!(desk.project().join("made").exists());
    let screen = one.shows("ready");
    assert!(screen.contains("✓ touch made · 0."), "{screen}");
    for unasked in ["answered by you", "agentd ---", "exit code"] {
        assert!(!screen.contains(unasked), "{unasked}: {screen}");
    }
    one.press(&["C-o"]);
    one.shows("↑ ↓ choose");
    one.press(&["k", "Enter"]);
    let screen = one.shows("allowed: answered by you · ");
    assert!(screen.contains("audit show ") && screen.contains("exit code: 0"), "{screen}");
}

#[test]
fn a_key_that_was_typed_before_the_question_appeared_answers_nothing() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([text("I shall make it, as you say."), bash("toolu_1", "touch made")])
            .in_pieces_of(200)
            .paced(Duration::from_millis(40)),
        Answer::text("Made."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), NARROW);
    one.shows("ready");
    one.enters("make it");
    // One after another, until the question is there: some come before it, some right behind.
    let until = Instant::now() + Duration::from_secs(20);
    while !one.screen().contains("bash: may it run?") {
        one.types("y");
        assert!(Instant::now() < until, "{}", one.screen());
    }
    one.shows("↑ ↓");
    assert!(one.screen().contains("> y"), "{}", one.screen());
    assert!(!desk.project().join("made").exists());
    one.press(&["C-u", "Down"]);
    one.shows("❯ 1 Allow once");
    one.press(&["Enter"]);
    one.shows("Made.");
}

/// Words with pauses, as a person types who reads the question meanwhile.
#[test]
fn twenty_words_at_a_question_change_no_file_no_mode_and_no_rule_and_an_arrow_with_enter_allows() {
    const WORDS: [&str; 20] = [
        "yes", "no", "always", "never", "session", "approve", "n", "y", "a", "s", "x", "r",
        "actually", "exit", "Deny", "A", "D", "e", "stop", "really?",
    ];
    let desk = Desk::new();
    desk.write("greet.txt", "hello\n");
    let server =
        Server::scripted([Answer::says([bash("toolu_1", "touch made")]), Answer::text("Made.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "make it"]), NARROW);
    one.shows("1 Allow once");
    let dir = desk.home().join(".config/agentd");
    let config = || {
        let files = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        let mut texts: Vec<_> =
            files.map(|file| std::fs::read_to_string(file.path()).ok()).collect();
        texts.sort();
        texts
    };
    let before = config();
    for word in WORDS {
        one.types(word);
        one.shows(&format!("> {word}"));
        std::thread::sleep(Duration::from_millis(350));
        let screen = one.shows("1 Allow once");
        assert!(screen.contains("ask · net off") && screen.contains("asking"), "{word}: {screen}");
        one.press(&["C-u"]);
        one.shows("↑ ↓ choose an answer");
    }
    assert_eq!((config(), desk.read("greet.txt").as_str()), (before, "hello\n"));
    assert!(!desk.project().join("made").exists());
    assert_eq!(server.requests().len(), 1);
    one.press(&["Down"]);
    one.shows("Enter allows it once");
    one.press(&["Enter"]);
    one.shows("Made.");
    assert!(desk.project().join("made").exists());
}

#[test]
fn a_long_output_is_opened_whole_and_searched() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "seq -f 'line %g of it' 300")]),
        Answer::text("Counted."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "count", "--permission-mode", "auto"];
    let one = tmux.run("one", &desk.with_server(&server, &arguments), WIDE);
    let screen = one.shows("Counted.");
    assert!(screen.contains("more lines") && !screen.contains("line 7 of it"), "{screen}");
    one.shows("ready");
    one.press(&["C-o"]);
    one.shows("↑ ↓ choose");
    one.press(&["k"]);
    one.press(&["o"]);
    one.shows("row 1 of");
    one.types("/line 150");
    one.shows("/line 150");
    one.press(&["Enter"]);
    let screen = one.shows("line 150 of it");
    assert!(!screen.contains("line 149 of it"), "{screen}");
    one.types("q");
    one.shows("Counted.");
    one.types("ihello");
    one.shows("> hello");
}

#[test]
fn the_first_start_says_what_this_is_and_the_unsent_text_is_edited_in_an_editor() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Here.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    // Without a key agentd names the ways on, and leaves the terminal alone.
    let none = tmux.run("none", &desk.agentd(&[]), WIDE);
    assert_ne!(none.ends(), 0);
    let screen = none.screen();
    assert!(screen.contains("ANTHROPIC_API_KEY") && screen.contains("agentd demo"), "{screen}");
    let editor = desk.write(
        "../editor",
        "#!/bin/sh\ncat \"$1\"; read key; printf ' and %s' \"$key\" >> \"$1\"\n",
    );
    let mut agentd = desk.with_server(&server, &["new"]);
    agentd.env("VISUAL", format!("sh {}", editor.display()));
    let one = tmux.run("one", &agentd, WIDE);
    one.shows("A session goes on when its terminal closes");
    one.types("my words");
    one.shows("> my words");
    one.press(&["C-g"]);
    one.shows_no_more("Session");
    one.shows("my words");
    // The keys are the editor's meanwhile.
    one.enters("more");
    one.shows("> my words and more");
    assert_eq!(one.modes(), "1 1 1", "alternate screen, mouse, cursor");
    one.types(".");
    one.press(&["Enter"]);
    one.shows("Here.");
    let asked = server.requests()[0].body["messages"].to_string();
    assert!(asked.contains("my words and more."), "{asked}");
}

#[test]
fn a_place_in_a_file_is_opened_in_an_editor_at_its_line() {
    let desk = Desk::new();
    desk.write("src/-x.rs", "one\ntwo\n");
    desk.write("b c.rs", "x\n");
    desk.write("b.rs", "x\n");
    let hostile = "/etc/passwd:1 ../editor:1 gone.rs:7";
    let server = Server::scripted([
        Answer::text(&format!("See `src/-x.rs:2`, not {hostile}.")),
        Answer::text(&format!("Both src/-x.rs:1 and b.rs:1, {hostile}")),
        Answer::text(hostile),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let editor =
        desk.write("../editor", "#!/bin/sh\nfor word; do echo \"<$word>\"; done; read key\n");
    let mut agentd = desk.with_server(&server, &["new", "where"]);
    agentd.env("VISUAL", format!("sh {}", editor.display()));
    let one = tmux.run("one", &agentd, WIDE);
    one.shows("See src/-x.rs:2");
    one.shows("ready");
    let root = desk.project().canonicalize().unwrap();
    let opened = |line: u32, name: &str| format!("<+{line}>\n<{}/{name}>\n", root.display());
    one.press(&["C-o"]);
    one.shows("↑ ↓ choose");
    one.press(&["C-g"]);
    one.shows(&opened(2, "src/-x.rs"));
    // The keys are the editor's meanwhile.
    one.enters("done");
    one.shows("↑ ↓ choose");
    one.press(&["i"]);
    one.enters("again");
    one.shows("Both src/-x.rs:1");
    one.shows("ready");
    // Of several a list asks which one.
    one.press(&["C-o"]);
    one.shows("↑ ↓ choose");
    one.press(&["C-g"]);
    let screen = one.shows("Ctrl-G opens the file ▏ 2 of 2");
    assert!(!screen.contains("  /etc"), "{screen}");
    one.press(&["Enter"]);
    one.shows("Ctrl-G opens it in your editor");
    one.press(&["Down", "C-g"]);
    one.shows(&opened(1, "b.rs"));
    one.enters("done");
    one.shows("↑ ↓ choose");
    one.press(&["i"]);
    // Files outside the project, and those that do not exist, are no places.
    one.enters("and now");
    one.shows("\n/etc/passwd:1");
    one.shows("ready");
    one.press(&["C-o"]);
    one.shows("↑ ↓ choose");
    one.press(&["C-g"]);
    one.shows("no file:line of this project is in this block");
}

/// Before the turn ends: its question waits meanwhile.
#[test]
fn the_changes_of_a_turn_are_read_as_a_diff_before_it_ends() {
    let desk = Desk::new();
    desk.write("cart.py", "one\ntwo\nthree\n");
    let edit = r#"{"path":"cart.py","old_string":"two","new_string":"2"}"#;
    let server = Server::scripted([
        Answer::says([call("toolu_1", "edit", edit)]),
        Answer::text("First."),
        Answer::says([bash("toolu_2", "echo four >> cart.py; echo x > new.txt")]),
        Answer::says([bash("toolu_3", "rm -rf everything")]),
        Answer::text("Done."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let rules = ["new", "begin", "--permission-mode", "auto"];
    let one = tmux.run("one", &desk.with_server(&server, &rules), WIDE);
    one.shows("First.");
    one.shows("ready");
    one.enters(":mode ask");
    one.shows("mode ask");
    one.enters("go on");
    one.shows("echo x > new.txt");
    one.shows("1 Allow once");
    one.press(&["Enter"]);
    one.shows("rm -rf everything");
    one.enters(":changes");
    let screen = one.shows("2 files differ");
    for words in ["# cart.py (call 2)", "# new.txt (call 2)", "+ four", "+ x"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!screen.contains("- two"), "that was the turn before: {screen}");
    one.types("q");
    one.shows("bash: may it run?");
    one.enters(":changes all");
    let screen = one.shows("# cart.py (calls 1, 2)");
    assert!(screen.contains("- two") && screen.contains("+ 2"), "{screen}");
    one.types("q");
    one.shows("1 Allow once");
    one.enters("4");
    one.shows("Done.");
    one.shows("ready");
    // One file of them goes back: its key puts the command into the input line.
    one.enters(":changes");
    one.shows("u :undo cart.py");
    one.types("/");
    one.enters("# new.txt");
    one.shows("u :undo new.txt");
    one.types("u");
    one.shows("> :undo new.txt");
    one.press(&["Enter"]);
    let screen = one.shows("undo_restore new.txt  +0 -1");
    assert!(screen.contains("- x") && !screen.contains("- four"), "{screen}");
    one.shows("❯ 1 Allow once");
    one.press(&["Enter"]);
    one.shows("Taken back: new.txt, its covered changes since call 2.");
    assert!(!desk.project().join("new.txt").exists());
    assert_eq!(desk.read("cart.py"), "one\n2\nthree\nfour\n");
}

#[test]
fn the_models_thinking_is_folded_and_opens() {
    let desk = Desk::new();
    let said = || Answer::says([thinking("First I look.\nThen I write.", "c2ln"), text("Done.")]);
    let server = Server::scripted([said(), said()]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "go"]), WIDE);
    one.shows("Done.");
    one.shows("ready");
    let screen = one.shows("thinking: First I look. … 1 more lines");
    assert!(!screen.contains("Then I write"), "{screen}");
    one.press(&["C-o"]);
    one.types("k");
    one.press(&["Enter"]);
    one.shows("Then I write.");
    // The inline view has it as one line.
    let two = tmux.run("two", &desk.with_server(&server, &["new", "--inline", "go"]), WIDE);
    two.shows("Done.");
    two.shows("thinking: First I look.");
}

#[test]
fn the_line_above_the_input_says_what_the_turn_does_and_that_esc_stops_it() {
    let desk = Desk::new();
    let script = "for i in 1 2 3; do echo row $i; sleep 0.5; done; sleep 60";
    let server = Server::scripted([Answer::says([
        thinking("It has to be counted. I shall count it.", "c2ln"),
        bash("toolu_1", script),
    ])
    .in_pieces_of(40)
    .paced(Duration::from_millis(250))]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "--permission-mode", "auto", "count"];
    let one = tmux.run("one", &desk.with_server(&server, &arguments), WIDE);
    one.shows("● thinks · ");
    one.shows("● writes a call of bash · ");
    let screen = one.shows("row 3 · Esc stops");
    let line = screen.lines().find(|line| line.starts_with("● for i in 1 2 3"));
    assert!(line.is_some_and(|line| line.contains(" lines · ")), "{screen}");
    // The lines before are above it.
    assert!(screen.contains("  row 2"), "{screen}");
    one.press(&["Escape"]);
    let screen = one.shows("the turn was stopped");
    assert!(!screen.contains("· Esc stops"), "{screen}");
}

#[test]
fn files_commands_and_sessions_are_picked() {
    let desk = Desk::new();
    desk.write("src/parser.rs", "fn parse() {}\n");
    desk.write("notes.md", "x\n");
    let server =
        Server::scripted([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "first words"]), WIDE);
    one.shows("One.");
    one.shows("ready");
    one.types("look at @prs:3-9");
    one.shows("▸ src/parser.rs");
    one.press(&["Enter"]);
    one.shows("> look at @src/parser.rs:3-9");
    one.press(&["Enter"]);
    one.shows("Two.");
    one.shows("ready");
    one.types(":clea");
    one.shows("▸ :clear");
    one.press(&["Enter"]);
    one.shows("this is the new session");
    one.shows_no_more("Two.");
    one.shows("ready");
    one.enters("in the other");
    one.shows("Three.");
    one.shows("ready");
    one.press(&["C-p"]);
    one.shows("first words");
    // Of the chosen session the last words are shown.
    one.press(&["Down"]);
    one.shows("│ Two.");
    one.types("first");
    one.shows("1 of 2");
    one.press(&["Enter"]);
    let screen = one.shows("Two.");
    assert!(screen.contains("look at @src/parser.rs:3-9"), "{screen}");
    assert!(!screen.contains("Three."), "{screen}");
}

#[test]
fn two_terminals_of_different_sizes_follow_one_session_and_resizes_leave_nothing_behind() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("All words of the answer.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), WIDE);
    one.shows("ready");
    let two = tmux.run("two", &desk.with_server(&server, &["attach"]), NARROW);
    two.shows("ready");
    one.enters("say all");
    one.shows("All words of the answer.");
    let narrow = two.shows("All words of the answer.");
    one.press(&["Tab"]);
    one.shows("│ Session");
    assert!(!narrow.contains('│'), "{narrow}");
    for (columns, rows) in [(50, 12), (110, 40), (99, 20), (120, 34)] {
        one.resize(columns, rows);
        let screen = one.shows("All words of the answer.");
        // Two status rows would mean that an older frame shines through.
        one.shows("ready");
        let states = one.screen().matches("ready ·").count();
        assert_eq!(states, 1, "{columns} x {rows}: {screen}");
    }
}

#[test]
fn a_lost_daemon_costs_neither_the_view_nor_the_draft_and_neither_does_a_killed_terminal() {
    let desk = Desk::new();
    let lines = (1..60).map(|line| text(&format!("part {line}\n\n")));
    let server = Server::scripted([
        Answer::says(lines).in_pieces_of(200).paced(Duration::from_millis(40)),
        Answer::text("Whole."),
    ]);
    let daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "talk"]), WIDE);
    one.shows("part 2");
    one.types("my draft");
    one.shows("> my draft");
    send(daemon.pid, Signal::SIGKILL);
    one.shows("Whole.");
    let screen = one.shows("ready");
    assert!(screen.contains("> my draft") && screen.contains("▌ talk"), "{screen}");
    let session = Terminal::session_of(&screen);
    // A draft is on disk half a second after the last key.
    let file = desk.state().join("drafts").join(format!("{session}.{}", one.pid()));
    let until = Instant::now() + Duration::from_secs(20);
    while !file.exists() {
        assert!(Instant::now() < until, "no draft in {}", file.display());
        std::thread::sleep(Duration::from_millis(50));
    }
    // The line of a terminal that is there belongs to it alone.
    let beside = tmux.run("beside", &desk.with_server(&server, &["attach", &session]), WIDE);
    assert!(!beside.shows("ready").contains("my draft"), "{}", beside.screen());
    detach(&beside);
    send(one.pid().unsigned_abs(), Signal::SIGKILL);
    one.ends();
    let two = tmux.run("two", &desk.with_server(&server, &["attach", &session]), WIDE);
    two.shows("> my draft");
}

#[test]
fn a_screen_reader_hears_who_says_what() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([text("I make it.\n"), bash("toolu_1", "touch made")]),
        Answer::text("It is made."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let command = desk.with_server(&server, &["new", "make it", "--screen-reader"]);
    let one = tmux.run("one", &command, WIDE);
    one.shows("1 Allow once");
    one.enters("1");
    let screen = one.shows("It is made.");
    let labels = [
        "You: make it",
        "Model:\nI make it.",
        "Call: touch made",
        "Question: bash 1",
        "Call ended: done: touch made: 0.",
        "Model:\nIt is made.",
    ];
    let places: Vec<_> = labels.iter().map(|label| screen.find(label)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{screen}");
}

/// After each kind of end the shell has its terminal back: line settings, screen, cursor, mouse.
#[test]
fn a_killed_client_leaves_the_terminal_as_it_was() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("Here.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let mut agentd = desk.with_server(&server, &["new", "hello"]);
    for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGHUP] {
        let name = format!("{signal}");
        let one = tmux.run(&name, &in_a_shell(&desk, &server, &agentd), WIDE);
        one.shows("ready");
        assert_eq!(one.modes(), "1 1 1", "alternate screen, mouse, cursor");
        send(client_of(one.pid()).unwrap(), signal);
        is_back(&one, &name);
        agentd = desk.with_server(&server, &["attach"]);
    }
}

#[test]
fn the_title_says_what_waits_and_is_the_one_of_before_after_each_end() {
    let desk = Desk::new();
    let say = [bash("toolu_1", "touch made")];
    let server = Server::scripted([Answer::says(say), Answer::text("Made.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let titled = |arguments: &[&str]| {
        let agentd = desk.with_server(&server, arguments);
        let mut shell = in_a_shell(&desk, &server, &agentd);
        shell.env("PATH", std::env::var_os("PATH").unwrap());
        let words: Vec<String> = shell
            .get_args()
            .map(|word| {
                word.to_str().unwrap().replace(
                    "stty -g > before;",
                    "printf '\\033]0;of before\\007'; stty -g > before;",
                )
            })
            .collect();
        rebuilt(&shell, &words)
    };
    let one = tmux.run("one", &titled(&["new"]), WIDE);
    let project = desk.project().file_name().unwrap().to_str().unwrap().to_owned();
    one.shows("ready");
    one.is_titled(&format!("agentd: {project}"));
    one.enters(":name the rounding");
    one.shows("is named");
    one.enters("make it");
    one.shows("1 Allow once");
    one.is_titled("? agentd: the rounding");
    one.press(&["Enter"]);
    one.shows("Made.");
    one.is_titled("agentd: the rounding");
    send(client_of(one.pid()).unwrap(), Signal::SIGKILL);
    is_back(&one, "killed");
    one.is_titled("of before");
    let two = tmux.run("two", &titled(&["attach"]), WIDE);
    two.shows("ready");
    two.is_titled("agentd: the rounding");
    two.enters(":q");
    is_back(&two, "left");
    two.is_titled("of before");
}

/// Ends of 200 clients at any point of their lives, from before their first byte to a full screen.
#[test]
#[ignore = "a minute; needs executables with hooks: tests/hooks/cargo"]
fn two_hundred_clients_end_at_any_point_and_leave_the_terminal_as_it_was() {
    let desk = Desk::new();
    let lines = (1..4000).map(|line| text(&format!("- part **{line}**\n"))).collect::<Vec<_>>();
    let server = Server::answering(move |_, _| {
        Answer::says(lines.clone()).in_pieces_of(150).paced(Duration::from_millis(4))
    });
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    let mut dice = Dice::seeded("KILLS_SEED");
    let mut entered = [0; 4];
    for point in 0..200 {
        if point % 25 == 0 {
            // More words than 25 clients see.
            wire.prompt(&session, "talk");
        }
        let mut agentd = desk.with_server(&server, &["attach", &session.0]);
        let way = usize::try_from(dice.roll() % 4).unwrap();
        if way == 3 {
            agentd.env("AGENTD_PANIC_FRAME", (1 + dice.roll() % 30).to_string());
        }
        let name = format!("point {point} way {way}");
        let one = tmux.run(&name.replace(' ', "_"), &in_a_shell(&desk, &server, &agentd), WIDE);
        let pause = Duration::from_millis(dice.roll() % 500);
        match way {
            3 => {
                // Each character is a frame.
                let until = Instant::now() + Duration::from_secs(20);
                while !one.screen().contains("was to panic") {
                    one.types("x");
                    assert!(Instant::now() < until, "{name}: {}", one.screen());
                }
                entered[way] += 1;
            }
            _ => {
                std::thread::sleep(pause);
                entered[way] += usize::from(one.modes().starts_with('1'));
                let signal = [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGHUP][way];
                // A client that is too slow to be there yet is met a moment later.
                let until = Instant::now() + Duration::from_secs(20);
                while client_of(one.pid()).is_none() {
                    assert!(Instant::now() < until, "{name}: no client");
                }
                client_of(one.pid()).into_iter().for_each(|client| send(client, signal));
            }
        }
        is_back(&one, &name);
        one.close();
    }
    println!("kills 200; of them with the screen taken (KILL, TERM, HUP, panic): {entered:?}");
    assert!(entered.iter().all(|count| *count > 10), "too few were late enough: {entered:?}");
}

/// A shell that runs this, and says if its line settings are the same again behind it.
fn in_a_shell(desk: &Desk, server: &Server, agentd: &Command) -> Command {
    let script = "stty -g > before; \"$@\"; for i in $(seq 100); do stty -g > after; \
                  cmp -s before after && break; sleep 0.1; done; \
                  cmp before after && echo SAME; read _";
    let shell = ["sh", "-c", script, "sh"].map(str::to_owned);
    let words = agentd.get_args().map(|word| word.to_str().unwrap().to_owned());
    let mut command = rebuilt(agentd, &shell.into_iter().chain(words).collect::<Vec<_>>());
    command.envs(desk.with_server(server, &[]).get_envs().filter_map(|(k, v)| Some((k, v?))));
    command
}

/// The guard may be a moment later than the shell.
#[track_caller]
fn is_back(one: &Terminal<'_>, name: &str) {
    let screen = one.shows("SAME");
    let until = Instant::now() + Duration::from_secs(10);
    while one.modes() != "0 0 1" {
        assert!(Instant::now() < until, "{name}: {}: {screen}", one.modes());
    }
    let screen = one.screen();
    assert!(!screen.contains("network"), "{name}: {screen}");
}

/// The same environment and directory with other words.
fn rebuilt(like: &Command, words: &[String]) -> Command {
    let mut command = Command::new("setsid");
    command.args(words).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(like.get_current_dir().unwrap());
    command
}

/// The client that a shell runs, and not its `stty` or `cmp`.
fn client_of(shell: i32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).ok()?;
    let pid = children.split_whitespace().next()?.parse().ok()?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    (name.trim() == "agentd").then_some(pid)
}
