//! The page of keys and commands. Pure.

use crate::row::Row;
use crate::theme::Theme;
use client::{COMMANDS, KEYS};

/// Keys that only this view has.
const OWN: &[(&str, &str)] = &[
    ("PgUp, PgDn, wheel", "scroll; earlier events load by themselves"),
    ("Ctrl-O, or Esc", "go through the conversation; Esc where no turn runs"),
    ("  ↑ ↓, Enter, o", "choose a block, unfold it, open the whole"),
    ("  / n N, y, i", "search, copy, back to the input"),
    ("  Ctrl-G", "open a file:line of the block in $VISUAL"),
    ("drag, Ctrl-click", "select and copy what is in view; open the file:line there"),
    ("Esc Esc", "rewind: on an empty line, where no turn runs; else clear it"),
    ("@", "a file or folder: Tab goes into it; @src/main.rs:10-40 names lines"),
    ("/ or :", "the list of commands, slash commands and skills"),
    ("Ctrl-P", "another session"),
    ("Ctrl-R", "an earlier prompt of any session of this project"),
    ("Shift-Tab", "next mode: ask, sandboxed, plan"),
    ("Tab", "show or hide the panels; with a text, send it the other way"),
    ("?", "this"),
];

pub(crate) fn help_rows(leader: &str, width: usize, look: &Theme) -> Vec<Row> {
    let row = |(key, does): &(&str, &str)| {
        let does = does.replace('\n', " ");
        Row::new(&format!("  {key:<20} "), look.bold()).with(&does, look.text).cut(width)
    };
    let leave = format!("{leader} d");
    let mut rows = vec![Row::new("Keys", look.heading)];
    rows.extend(OWN.iter().map(row));
    rows.extend(KEYS.iter().map(row));
    rows.push(row(&(&leave, "detach; the session continues")));
    rows.push(Row::default());
    rows.push(Row::new("Commands", look.heading));
    rows.extend(COMMANDS.iter().map(row));
    rows
}
