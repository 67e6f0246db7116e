//! Records the session of the README: real processes in two terminals, of which one kills the supervisor of the
//! other. The crate `terminal` draws the picture from the recording.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Say, Server, call, text};
use crate::support::terminal::{Terminal, Tmux};
use crate::support::{Desk, run};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const RECORDING: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/crates/terminal/screens/session.cast");
const COLUMNS: u16 = 88;
/// Rows of the session, and of the shell below it.
const ROWS: (u16, u16) = (23, 5);

const CART: &str = "def total(items):\n    \"\"\"The sum.\"\"\"\n    return sum(items[i] for i in range(1, len(items)))\n";
const TEST: &str =
    "from cart import total\n\nassert total([2, 3]) == 5\nprint(\"1 test passed\")\n";
const COMMAND: &str = "python3 test_cart.py && curl -sS -T cart.py https://paste.example";
/// The last answer, block by block.
const LAST: [&str; 3] = [
    "`total` began at index 1, so it left the first item of each cart out. That is mended.",
    "The test passes.",
    "The upload of `cart.py` was refused: this session has no network.",
];
/// Where the session is said to be, since the directory of a run has a name by chance.
const PROJECT: &str = "/home/you/code/2026/web-shop/cart";

/// What was on the screen, and for how many seconds it is shown: asciicast 2, a whole screen an event.
struct Recording {
    out: String,
    at: f64,
    project: String,
}

impl Recording {
    fn new(desk: &Desk) -> Self {
        let height = ROWS.0 + 1 + ROWS.1;
        let header = json!({"version": 2, "width": COLUMNS, "height": height});
        let project = desk.project().display().to_string();
        Self { out: format!("{header}\n"), at: 0.0, project }
    }

    fn event(&mut self, screen: &str, seconds: f64) {
        let width = self.project.len();
        let screen = screen.trim_end_matches('\n').replace('\n', "\r\n");
        let screen = screen.replace(&self.project, &format!("{PROJECT:width$}"));
        let data = format!("\u{1b}[0m\u{1b}[2J\u{1b}[H{screen}");
        writeln!(self.out, "{}", json!([self.at, "o", data])).unwrap();
        self.at = ((self.at + seconds) * 100.0).round() / 100.0;
    }

    /// Both terminals, one above the other.
    fn both(&mut self, session: &Terminal<'_>, shell: &Terminal<'_>, seconds: f64) {
        let rule = "─".repeat(COLUMNS.into());
        let mut lines: Vec<String> = session.coloured().lines().map(str::to_owned).collect();
        lines.resize(ROWS.0.into(), String::new());
        let screen =
            format!("{}\n\u{1b}[0;2m{rule}\u{1b}[0m\n{}", lines.join("\n"), shell.coloured());
        self.event(&screen, seconds);
    }

    fn end(mut self) {
        let at = self.at;
        writeln!(self.out, "{}", json!([at, "o", ""])).unwrap();
        fs::write(RECORDING, self.out).unwrap();
    }
}

/// A shell beside the session: its commands are those of the person.
fn shell(desk: &Desk) -> Command {
    let agentd = Path::new(env!("CARGO_BIN_EXE_agentd"));
    let path = format!("{}:{}", agentd.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("setsid");
    command.args(["bash", "--norc", "--noprofile", "-i"]).current_dir(desk.project());
    for (name, value) in desk.agentd(&[]).get_envs() {
        command.env(name, value.unwrap());
    }
    command.env("PATH", path).env("PS1", "$ ").env("HISTFILE", "");
    command
}

fn answers() -> Vec<Answer> {
    let edit = json!({
        "path": "cart.py",
        "old_string": "range(1, len(items))",
        "new_string": "range(len(items))",
    });
    let first: [Say; 2] = [
        text("The range begins at 1, so the first item is left out."),
        call("toolu_1", "edit", &edit.to_string()),
    ];
    let second = [
        text("Now the test."),
        call("toolu_2", "bash", &json!({ "command": COMMAND }).to_string()),
    ];
    let slow = || Answer::says(LAST.map(text)).in_pieces_of(60).paced(Duration::from_millis(150));
    vec![Answer::says(first), Answer::says(second), slow(), slow()]
}

#[test]
#[ignore = "writes the recording that the README's picture is drawn from"]
fn the_session_of_the_readme() {
    let desk = Desk::new();
    desk.write("cart.py", CART);
    desk.write("test_cart.py", TEST);
    let server = Server::scripted(answers());
    let daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let below = tmux.run("shell", &shell(&desk), (COLUMNS, ROWS.1));
    let session = tmux.run("session", &desk.with_server(&server, &["new"]), (COLUMNS, ROWS.0));
    let mut recording = Recording::new(&desk);
    below.shows("$");
    session.shows("ready");
    recording.both(&session, &below, 0.8);
    for words in ["The total of the cart ", "is wrong. Fix it, ", "test it, publish it."] {
        session.types(words);
        session.shows(words.trim_end());
        recording.both(&session, &below, 0.4);
    }
    session.press(&["Enter"]);
    session.shows("1 Allow once");
    recording.both(&session, &below, 2.6);
    std::thread::sleep(Duration::from_millis(500));
    session.press(&["Enter"]);
    session.shows("curl");
    session.shows("1 Allow once");
    recording.both(&session, &below, 2.8);
    std::thread::sleep(Duration::from_millis(500));
    session.press(&["Enter"]);
    session.shows("That is mended");
    recording.both(&session, &below, 1.2);
    below.types(&format!("kill -9 {}   # the supervisor", daemon.pid));
    below.shows("supervisor");
    recording.both(&session, &below, 1.2);
    below.press(&["Enter"]);
    session.shows("connection lost");
    recording.both(&session, &below, 1.4);
    for words in ["connected again", "The test passes"] {
        session.shows(words);
        recording.both(&session, &below, 0.8);
    }
    session.shows("ready");
    recording.both(&session, &below, 2.6);
    let record = desk.ended(2);
    let call = format!("{}.2", record["session"].as_str().unwrap());
    let audit = tmux.run("audit", &shell(&desk), (COLUMNS, ROWS.0 + 1 + ROWS.1));
    audit.shows("$");
    audit.types(&format!(
        "agentd audit show {call} | cut -c-{COLUMNS} | head -24; agentd audit verify"
    ));
    audit.shows("verify");
    recording.event(&audit.coloured(), 0.8);
    audit.press(&["Enter"]);
    std::thread::sleep(Duration::from_secs(2));
    recording.event(&audit.coloured(), 4.0);
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
    recording.end();
}
