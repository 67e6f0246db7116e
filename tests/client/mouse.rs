//! The mouse in the full screen: what a drag selects is on the clipboard, a click unfolds, and with Ctrl it opens a file.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::{Terminal, Tmux};
use crate::support::{Desk, until};
use serde_json::json;

const SIZE: (u16, u16) = (110, 30);

/// The column and row of these words on the screen, counted from 1.
fn place(screen: &str, words: &str) -> (usize, usize) {
    let at = |line: &str| line.find(words).map(|at| line[..at].chars().count() + 1);
    let found = (1..).zip(screen.lines()).find_map(|(row, line)| Some((at(line)?, row)));
    found.unwrap_or_else(|| panic!("{words} is not in {screen}"))
}

/// An event of the mouse, as terminals send it: 0 is the left button, 16 Ctrl, 32 that it moves.
fn event(one: &Terminal<'_>, button: u32, (column, row): (usize, usize), ends: char) {
    one.types(&format!("\u{1b}[<{button};{column};{row}{ends}"));
}

fn drag(one: &Terminal<'_>, from: (usize, usize), to: (usize, usize)) {
    event(one, 0, from, 'M');
    event(one, 32, to, 'M');
    event(one, 0, to, 'm');
}

#[test]
fn a_drag_copies_the_text_without_marks_and_wrapped_rows_as_one_line() {
    let long = "alpha ".repeat(30).trim_end().to_owned();
    let (desk, server) =
        (Desk::new(), Server::scripted([Answer::text(&format!("Begin {long} end.\n\nNext."))]));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    tmux.set("set-clipboard", "on");
    let one = tmux.run("one", &desk.with_server(&server, &["new", "say it"]), SIZE);
    one.shows("Next.");
    let screen = one.shows("ready");
    let (column, row) = place(&screen, "Begin");
    let (_, last) = place(&screen, "Next.");
    drag(&one, (column, row), (100, last));
    one.shows("3 lines copied by OSC 52");
    until("the clipboard has it", || tmux.clipboard() == format!("Begin {long} end.\n\nNext."));
    // It is marked until the next key, which writes as always.
    let row_of =
        |screen: String| screen.lines().find(|it| it.contains("Next.")).unwrap().to_owned();
    let marked = row_of(one.coloured());
    one.types("x");
    one.shows("> x");
    until("the mark is gone", || row_of(one.coloured()) != marked);
    // A click with Ctrl on no place ends a selection, and copies nothing more.
    one.press(&["C-u"]);
    let screen = one.screen();
    let (column, last) = place(&screen, "Next.");
    drag(&one, (column, last), (column + 3, last));
    until("the clipboard has the word", || tmux.clipboard() == "Next");
    let screen = one.shows("1 line copied by OSC 52");
    let (column, row) = place(&screen, "Begin");
    event(&one, 16, (column, row), 'M');
    event(&one, 16, (column, row), 'm');
    one.shows("no file:line of this project is there");
    assert_eq!(tmux.clipboard(), "Next");
    // The mark of a prompt is no part of it.
    let screen = one.screen();
    let (_, row) = place(&screen, "▌ say it");
    drag(&one, (1, row), (60, row));
    until("the clipboard has the prompt", || tmux.clipboard() == "say it");
    one.shows("1 line copied by OSC 52");
}

#[test]
fn a_click_unfolds_as_before_and_selects_nothing() {
    let desk = Desk::new();
    let command = json!({"command": "seq 100 140"}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", &command)]),
        Answer::text("Counted."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    tmux.set("set-clipboard", "on");
    let arguments = ["new", "--permission-mode", "auto", "count"];
    let one = tmux.run("one", &desk.with_server(&server, &arguments), SIZE);
    one.shows("Counted.");
    let screen = one.shows("ready");
    let at = place(&screen, "seq 100 140");
    event(&one, 0, at, 'M');
    event(&one, 0, at, 'm');
    one.shows("↑ ↓ choose");
    one.shows("138");
    assert_eq!(tmux.clipboard(), "");
}

#[test]
fn a_click_with_ctrl_opens_the_place_in_the_editor() {
    let desk = Desk::new();
    desk.write("src/a.rs", "one\ntwo\n");
    let server = Server::scripted([Answer::text("See src/a.rs:2 and gone.rs:1 there.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let editor =
        desk.write("../editor", "#!/bin/sh\nfor word; do echo \"<$word>\"; done; read key\n");
    let mut agentd = desk.with_server(&server, &["new", "where"]);
    agentd.env("VISUAL", format!("sh {}", editor.display()));
    let one = tmux.run("one", &agentd, SIZE);
    one.shows("See src/a.rs:2");
    let screen = one.shows("ready");
    event(&one, 16, place(&screen, "gone.rs"), 'M');
    let screen = one.shows("no file:line of this project is there");
    let (column, row) = place(&screen, "src/a.rs");
    event(&one, 16, (column + 4, row), 'M');
    let root = desk.project().canonicalize().unwrap();
    one.shows(&format!("<+2>\n<{}/src/a.rs>\n", root.display()));
    // The keys are the editor's meanwhile.
    one.enters("done");
    one.shows("See src/a.rs:2");
    one.types("go on");
    one.shows("> go on");
}
