//! Colours of the full screen in a real terminal: the ground that it tells, and frames that equal a redraw.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call, text};
use crate::support::terminal::{Terminal, Tmux};
use crate::support::{Desk, until};
use serde_json::json;

const SIZES: [(u16, u16); 3] = [(80, 24), (40, 10), (200, 60)];
const THEMES: [&str; 5] = ["dark", "light", "daltonised", "ansi", "auto"];
const TRUE_COLOUR: &str = "\u{1b}[38;2;";
/// An answer to OSC 11 as terminals send it.
const WHITE: &str = "\u{1b}]11;rgb:ffff/ffff/ffff\u{1b}\\";

fn use_theme(desk: &Desk, name: &str) {
    let dir = desk.home().join(".config/agentd");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.toml"), format!("[ui]\ntheme = \"{name}\"\n")).unwrap();
}

#[test]
fn the_ground_that_the_terminal_tells_chooses_the_theme_and_is_no_text() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("# Plan\n\nDo `this`."), Answer::text("Again.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let shown = |name: &str, ground: Option<&str>| {
        tmux.set("window-style", &ground.map_or("default".to_owned(), |it| format!("bg={it}")));
        let mut agentd = desk.with_server(&server, &["new"]);
        agentd.env("COLORTERM", "truecolor");
        let one = tmux.run(name, &agentd, (80, 24));
        one.shows("ready");
        one
    };
    // The terminal of this test has no ground of its own, so it answers nothing.
    let silent = shown("silent", None);
    assert!(!silent.coloured().contains(TRUE_COLOUR), "{}", silent.coloured());
    let (dark, light) = (shown("dark", Some("#101010")), shown("light", Some("#ffffff")));
    let mut colours = Vec::new();
    for one in [&dark, &light] {
        until("the ground is known", || one.coloured().contains(TRUE_COLOUR));
        let screen = one.coloured();
        let at = screen.find(TRUE_COLOUR).unwrap();
        colours.push(screen[at..].split('m').next().unwrap().to_owned());
        assert!(one.screen().contains("\n>\n"), "an empty input line: {}", one.screen());
    }
    assert_ne!(colours[0], colours[1]);
    // An answer over a slow line, in the middle of a draft.
    silent.types("a dra");
    silent.types(WHITE);
    silent.types("ft");
    silent.shows("> a draft");
    until("the ground is known", || silent.coloured().contains(TRUE_COLOUR));
    assert!(!silent.screen().contains("rgb"), "{}", silent.screen());
    silent.press(&["Enter"]);
    silent.shows("Do this.");
}

#[test]
fn a_theme_that_does_not_exist_is_named_with_those_that_do() {
    let desk = Desk::new();
    use_theme(&desk, "solarised");
    let tmux = Tmux::new(&desk);
    let server = Server::scripted([]);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), (200, 30));
    let screen = one.shows("which is no theme");
    assert!(screen.contains("auto, dark, light, daltonised, ansi"), "{screen}");
    one.ends();
    // The control, by a command in a session.
    use_theme(&desk, "dark");
    let one = tmux.run("two", &desk.with_server(&server, &["new"]), (80, 24));
    one.shows("ready");
    one.enters(":theme nord");
    one.shows("the themes are auto, dark, light, daltonised and ansi");
    one.enters(":theme light");
    one.shows("theme light");
}

/// A session on disk with each kind of block, and its ID.
fn recorded(desk: &Desk) -> String {
    desk.write("money.py", "def share(cents, parts):\n    return [cents // parts] * parts\n");
    let fixed = json!({
        "path": "money.py",
        "old_string": "    return [cents // parts] * parts",
        "new_string": "    each, rest = divmod(cents, parts)\n    return [each + (n < rest) for n in range(parts)]",
    });
    let tool = |at: usize, name: &str, input: serde_json::Value| {
        call(&format!("toolu_{at}"), name, &input.to_string())
    };
    let server = Server::scripted([
        Answer::says([
            text("I look."),
            tool(1, "read", json!({ "path": "money.py" })),
            tool(
                2,
                "checklist_create",
                json!({"group": "g", "title": "Steps", "items": ["a", "b"]}),
            ),
        ]),
        Answer::says([text("Divide with the rest."), tool(3, "edit", fixed)]),
        Answer::says([
            tool(
                4,
                "bash",
                json!({"command": "seq 30; printf 'red \\033[31mtext\\033[0m 日本\\n'; exit 3"}),
            ),
            tool(5, "read", json!({ "path": "/etc/shadow" })),
        ]),
        Answer::text(
            "## Why\n\nThe `rest` went **away**; see https://example.org.\n\n```rust\nlet a = 1; // so\n```\n\n\
             | a | b |\n|---|---|\n| 1 | 2 |\n",
        ),
    ]);
    let run = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let dir = std::fs::read_dir(desk.state().join("sessions")).unwrap();
    let names = dir.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.max().unwrap()
}

/// What a person sees of each cell: a blank has no colour of its own but its ground.
fn cells(coloured: &str, size: (u16, u16)) -> Vec<String> {
    let (columns, rows) = (size.0.try_into().unwrap(), size.1.try_into().unwrap());
    let mut terminal = vt100::Parser::new(rows, columns, 0);
    terminal.process(coloured.trim_end_matches('\n').replace('\n', "\r\n").as_bytes());
    let places = (0..size.1).flat_map(|y| (0..size.0).map(move |x| (y, x)));
    let cell = |(y, x)| {
        let cell = terminal.screen().cell(y, x).unwrap();
        let ground = format!("{:?} {} {}", cell.bgcolor(), cell.underline(), cell.inverse());
        match cell.contents().trim() {
            "" => format!("row {y}, column {x}: blank on {ground}"),
            text => {
                let styles = (cell.fgcolor(), cell.bold(), cell.dim(), cell.italic());
                format!("row {y}, column {x}: {text} on {ground} {styles:?}")
            }
        }
    };
    places.map(cell).collect()
}

/// Panics unless a whole redraw shows the same cells with the same attributes.
#[track_caller]
fn equals_a_redraw(one: &Terminal<'_>, size: (u16, u16), step: &str) {
    // What a key asks for may come from another process.
    let mut before = String::new();
    until("the screen stays as it is", || {
        let now = one.coloured();
        let stays = now == before;
        before = now;
        stays
    });
    let text = one.screen();
    one.wipe();
    one.press(&["C-l"]);
    until(&format!("{step}: drawn anew:\n{text}"), || one.screen() == text);
    for (before, after) in cells(&before, size).into_iter().zip(cells(&one.coloured(), size)) {
        assert_eq!(before, after, "{step}");
    }
}

/// Keys whose effect is seen at once: when it is, all keys before have had theirs. The last key takes it back.
type Probe = ([&'static str; 2], &'static str, &'static str);

const LINE: Probe = (["z", "z"], "> zz", "C-u");
const BLOCKS: Probe = (["/", "z"], "/z", "Escape");
const LIST: Probe = (["e", "t"], "net▏", "C-h");

const STEPS: [(&[&str], Probe); 16] = [
    (&[], LINE),
    (&["C-o"], BLOCKS),
    (&["Up"], BLOCKS),
    (&["Enter"], BLOCKS),
    (&["Up"], BLOCKS),
    (&["Enter"], BLOCKS),
    (&["o"], BLOCKS),
    (&["v", "Down"], BLOCKS),
    (&["/", "r", "e", "Enter"], BLOCKS),
    (&["q"], BLOCKS),
    (&["/", "a", "Enter"], BLOCKS),
    (&["n"], BLOCKS),
    (&["Escape"], LINE),
    (&["PageUp"], LINE),
    (&["?"], BLOCKS),
    (&["q", ":", "n"], LIST),
];

fn walk(tmux: &Tmux, desk: &Desk, session: &str, theme: Option<&str>, size: (u16, u16)) {
    use_theme(desk, theme.unwrap_or("auto"));
    let mut agentd = desk.agentd(&["attach", session]);
    match theme {
        Some(_) => agentd.env("COLORTERM", "truecolor"),
        None => agentd.env("NO_COLOR", "1"),
    };
    let name = format!("{}-{}", theme.unwrap_or("plain"), size.0);
    let one = tmux.run(&name, &agentd, size);
    one.shows("ready");
    for (step, (keys, shown, back)) in STEPS {
        one.press(step);
        if step == ["Escape"] {
            // A letter right behind it would be one with Alt.
            one.shows_no_more("↑ ↓ choose");
        }
        one.press(&keys);
        one.shows(shown);
        one.press(&[back]);
        one.shows_no_more(shown);
        equals_a_redraw(&one, size, &format!("{name}, {step:?}"));
    }
    let screen = one.coloured();
    assert_eq!(screen.contains(TRUE_COLOUR), !matches!(theme, None | Some("ansi")), "{screen}");
    one.close();
}

fn walk_all(cases: &[(Option<&str>, (u16, u16))]) {
    let desk = Desk::new();
    let session = recorded(&desk);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    tmux.set("window-style", "bg=#101010");
    for (theme, size) in cases {
        walk(&tmux, &desk, &session, *theme, *size);
    }
}

#[test]
fn each_frame_of_a_recorded_session_equals_a_redraw() {
    walk_all(&[(Some("dark"), SIZES[0]), (None, SIZES[1])]);
}

#[test]
#[ignore = "minutes: .ci/nightly screen"]
fn each_frame_in_each_theme_and_size_equals_a_redraw() {
    let themes = THEMES.into_iter().map(Some).chain([None]);
    let cases: Vec<_> = themes.flat_map(|theme| SIZES.map(|size| (theme, size))).collect();
    walk_all(&cases);
}
