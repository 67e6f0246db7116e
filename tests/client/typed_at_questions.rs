//! What is typed at a question of the real client, word by word and key by key: without Enter on a marked answer nothing
//! is answered, and no file, rule, mode or session changes.
#![allow(clippy::unwrap_used)]

use crate::support::Desk;
use crate::support::anthropic::{Answer, Say, Server, call, text};
use crate::support::dice::Dice;
use crate::support::terminal::Tmux;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Words and sequences of keys at each kind of question.
const EACH: usize = 500;
/// All keys that the client knows but Enter, which answers, and those that stop the turn or leave: Esc, Ctrl-C, Ctrl-D,
/// Ctrl-Z, and the leader Ctrl-\.
const KEYS: [&str; 44] = [
    "Up", "Down", "Left", "Right", "Home", "End", "BSpace", "DC", "PPage", "NPage", "Tab", "BTab",
    "M-Enter", "M-b", "M-f", "M-d", "M-Up", "M-Down", "M-p", "M-y", "C-a", "C-b", "C-e", "C-f",
    "C-g", "C-h", "C-k", "C-l", "C-n", "C-o", "C-p", "C-q", "C-r", "C-s", "C-t", "C-u", "C-v",
    "C-w", "C-x", "C-y", "C-_", "F1", "S-Up", "C-Right",
];
const CHARACTERS: &[u8] = b"ynsaAxreDbc0123456789 :/!#@?.,-'\"abcdefghijklmnopqrstuvwxyz";

/// Each file below these directories, with its text.
fn files(dirs: &[PathBuf]) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => add(&entry.path(), found),
                false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
            }
        }
    }
    let mut found = BTreeMap::new();
    dirs.iter().for_each(|dir| add(dir, &mut found));
    found
}

fn word(dice: &mut Dice) -> String {
    let letters = 1 + dice.roll() % 9;
    let of = |dice: &mut Dice| {
        let at = usize::try_from(dice.roll()).unwrap() % CHARACTERS.len();
        char::from(CHARACTERS[at])
    };
    (0..letters).map(|_| of(dice)).collect()
}

/// A few keys, each by tmux's name for it.
fn sequence(dice: &mut Dice) -> Vec<String> {
    let keys = 1 + dice.roll() % 8;
    let of = |dice: &mut Dice| {
        let at = usize::try_from(dice.roll()).unwrap();
        match dice.roll() % 3 {
            0 => char::from(CHARACTERS[at % CHARACTERS.len()]).to_string(),
            _ => KEYS[at % KEYS.len()].to_owned(),
        }
    };
    (0..keys).map(|_| of(dice)).collect()
}

fn of_tool(tool: &str, input: &Value) -> Vec<Say> {
    vec![text("I ask first."), call("toolu_1", tool, &input.to_string())]
}

#[test]
#[ignore = "minutes; a part of .ci/nightly"]
fn five_hundred_words_and_key_sequences_at_each_kind_of_question_change_nothing() {
    let edit = json!({ "path": "kept.txt", "old_string": "kept", "new_string": "changed" });
    for (kind, mode, said, shown) in [
        ("command", "ask", of_tool("bash", &json!({ "command": "touch made" })), "1 Allow once"),
        ("script", "ask", of_tool("bash", &json!({ "command": "echo $(touch made)" })), "1 Allow"),
        ("edit", "ask", of_tool("edit", &edit), "1 Allow once"),
        ("plan", "plan", of_tool("ExitPlanMode", &json!({ "plan": "1. Go." })), "1 Approve"),
    ] {
        let desk = Desk::new();
        desk.write("kept.txt", "kept\n");
        let server = Server::scripted([Answer::says(said), Answer::text("It went on.")]);
        let _daemon = desk.daemon();
        let tmux = Tmux::new(&desk);
        let arguments = ["new", "--permission-mode", mode, "go on"];
        let mut agentd = desk.with_server(&server, &arguments);
        agentd.env("EDITOR", "true").env("VISUAL", "true");
        let one = tmux.run("one", &agentd, (100, 30));
        let screen = one.shows(shown);
        let session = {
            let mut sessions = fs::read_dir(desk.state().join("sessions")).unwrap();
            sessions.next().unwrap().unwrap().path()
        };
        let watched = [desk.project(), desk.home().join(".config")];
        let journal = || fs::read(session.join("journal.jsonl")).unwrap();
        let (before, records) = (files(&watched), journal());
        assert!(before.keys().any(|file| file.ends_with("kept.txt")), "{before:?}");
        let mut dice = Dice::seeded("TYPED_SEED");
        let unchanged = |typed: &str| {
            assert_eq!(files(&watched), before, "{kind}: {typed}");
            let now = journal();
            let (then, now) = (String::from_utf8_lossy(&records), String::from_utf8_lossy(&now));
            assert_eq!(now, then, "{kind}: {typed}");
        };
        for _ in 0..EACH {
            let word = word(&mut dice);
            one.types(&word);
            one.press(&["C-u"]);
            unchanged(&word);
        }
        for _ in 0..EACH {
            let keys = sequence(&mut dice);
            one.press(&keys.iter().map(String::as_str).collect::<Vec<_>>());
            unchanged(&keys.join(" "));
        }
        // What was on its way has arrived.
        std::thread::sleep(Duration::from_secs(1));
        unchanged("the last ones");
        assert_eq!(server.requests().len(), 1, "{kind}: nothing went to the model: {screen}");
        one.close();
        // The control: the question is open still, and an arrow with Enter answers it.
        let two = tmux.run("two", &desk.with_server(&server, &["attach"]), (100, 30));
        two.shows(shown);
        std::thread::sleep(Duration::from_millis(400));
        two.press(&["Up"]);
        for _ in 0..40 {
            // The draft of before stands in the line, with rows that Up walks first.
            two.press(&["Up"]);
        }
        two.press(&["Enter"]);
        two.shows("It went on.");
        assert_ne!(journal(), records, "{kind}");
    }
}
