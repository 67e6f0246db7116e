//! A person's terminal: `agentd` in a private tmux server, its keys and its screen.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use super::{Desk, needs, send};
use nix::sys::signal::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for something to appear. A machine that builds at the same time is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// A person reads a question before answering it. An Enter within its first 250 ms counts as typed ahead.
const READ: Duration = Duration::from_millis(400);

/// A tmux server of one test; ends with it.
pub struct Tmux {
    dir: PathBuf,
}

/// One terminal of tmux.
pub struct Terminal<'a> {
    tmux: &'a Tmux,
    name: String,
}

impl Tmux {
    pub fn new(desk: &Desk) -> Self {
        needs("tmux");
        let dir = desk.outside().join("tmux");
        fs::create_dir_all(&dir).unwrap();
        let config = "set -g remain-on-exit on\nset -g remain-on-exit-format ''\nset -g status off\nset -g history-limit 20000\n\
            set -g default-terminal screen-256color\nset -s escape-time 10\nset -s exit-empty off\n";
        fs::write(dir.join("tmux.conf"), config).unwrap();
        Self { dir }
    }

    /// Runs `command`, with its environment and nothing else, in a terminal of this size.
    pub fn run(&self, name: &str, command: &Command, size: (u16, u16)) -> Terminal<'_> {
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        let mut tmux = self.command();
        tmux.args(["new-session", "-d", "-s", name, "-x", &columns, "-y", &rows]);
        if let Some(dir) = command.get_current_dir() {
            tmux.arg("-c").arg(dir);
        }
        tmux.args(["env", "-i"]);
        let mut term = "TERM=screen-256color".to_owned();
        for (variable, value) in command.get_envs() {
            let (variable, value) = (variable.to_str().unwrap(), value.unwrap_or_default());
            match variable {
                "TERM" => term = format!("TERM={}", value.to_str().unwrap()),
                _ => drop(tmux.arg(format!("{variable}={}", value.to_str().unwrap()))),
            }
        }
        tmux.args([&term, "LANG=C.UTF-8"]);
        // The first is `setsid`, which a terminal's own program must not have.
        tmux.args(command.get_args());
        assert!(tmux.status().unwrap().success(), "tmux starts");
        Terminal { tmux: self, name: name.to_owned() }
    }

    /// Sets an option of all its terminals.
    pub fn set(&self, option: &str, value: &str) {
        self.say(&["start-server", ";", "set-option", "-g", option, value]);
    }

    /// The text that a program gave to the clipboard by OSC 52, where `set-clipboard` is on.
    pub fn clipboard(&self) -> String {
        self.say(&["show-buffer"])
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env("TMUX_TMPDIR", &self.dir).env("LANG", "C.UTF-8").env_remove("TMUX");
        command.args(["-L", "agentd-test", "-f"]).arg(self.dir.join("tmux.conf"));
        command.stdin(Stdio::null());
        command
    }

    fn say(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").stderr(Stdio::null()).status();
    }
}

impl Terminal<'_> {
    /// Types these characters.
    pub fn types(&self, text: &str) {
        self.tmux.say(&["send-keys", "-t", &self.name, "-l", text]);
    }

    /// Presses keys by tmux's names: `Enter`, `Escape`, `C-c`, `Up`.
    pub fn press(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys", "-t", &self.name];
        arguments.extend(keys);
        self.tmux.say(&arguments);
    }

    /// Empties the terminal, as another program would that writes to it.
    pub fn wipe(&self) {
        self.tmux.say(&["send-keys", "-R", "-t", &self.name]);
    }

    /// Types a line and Enter.
    pub fn enters(&self, line: &str) {
        self.types(line);
        self.press(&["Enter"]);
    }

    /// Pastes this, with the marks of a bracketed paste.
    pub fn pastes(&self, text: &str) {
        self.tmux.say(&["set-buffer", "-b", "agentd-test", text]);
        self.tmux.say(&["paste-buffer", "-p", "-b", "agentd-test", "-t", &self.name]);
    }

    /// Its screen, with colour codes.
    pub fn coloured(&self) -> String {
        self.tmux.say(&["capture-pane", "-p", "-e", "-t", &self.name])
    }

    /// Its screen, without spaces at line ends.
    pub fn screen(&self) -> String {
        let text = self.tmux.say(&["capture-pane", "-p", "-t", &self.name]);
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned() + "\n"
    }

    /// The same with the lines that have scrolled away.
    pub fn scrollback(&self) -> String {
        self.tmux.say(&["capture-pane", "-p", "-S", "-", "-t", &self.name])
    }

    /// Waits until the screen shows this, and returns the screen.
    #[track_caller]
    pub fn shows(&self, words: &str) -> String {
        self.until(words, |screen| screen.contains(words))
    }

    /// The session that a status row names.
    #[track_caller]
    pub fn session_of(screen: &str) -> String {
        let id = screen.rsplit_once(" · session ").unwrap().1;
        id.split_whitespace().next().unwrap().to_owned()
    }

    /// Waits until a session has shown its backlog and accepts input. Keys pressed before stay in
    /// the line.
    #[track_caller]
    pub fn listens(&self) {
        let states = ["ready · ", "working · ", "asking · "];
        self.until("a live session", |screen| states.iter().any(|state| screen.contains(state)));
    }

    /// Waits until the screen no longer shows this, and returns the screen.
    #[track_caller]
    pub fn shows_no_more(&self, words: &str) -> String {
        self.until(words, |screen| !screen.contains(words))
    }

    #[track_caller]
    fn until(&self, words: &str, holds: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut screen = self.screen();
            if holds(&screen) {
                // tmux may be in the middle of a frame.
                for _ in 0..5 {
                    std::thread::sleep(Duration::from_millis(15));
                    let again = self.screen();
                    if again == screen || !holds(&again) {
                        break;
                    }
                    screen = again;
                }
                if screen.contains(" Allow once") || screen.contains("1 Approve") {
                    std::thread::sleep(READ);
                }
                return screen;
            }
            assert!(Instant::now() < until, "{words:?} is awaited in:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux.say(&["resize-window", "-t", &self.name, "-x", &columns, "-y", &rows]);
    }

    /// Is the alternate screen on, does a program use the mouse, is the cursor shown?
    pub fn modes(&self) -> String {
        let format = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}";
        let modes = self.tmux.say(&["display-message", "-p", "-t", &self.name, format]);
        modes.trim().to_owned()
    }

    /// Its title, as a program wrote it.
    pub fn title(&self) -> String {
        let format = "#{pane_title}";
        let title = self.tmux.say(&["display-message", "-p", "-t", &self.name, format]);
        title.trim_end_matches('\n').to_owned()
    }

    /// Waits for a title.
    #[track_caller]
    pub fn is_titled(&self, wanted: &str) {
        let until = Instant::now() + PATIENCE;
        while self.title() != wanted {
            assert!(Instant::now() < until, "{wanted:?} is awaited, and it is {:?}", self.title());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// The process that runs in it.
    pub fn pid(&self) -> i32 {
        let pid = self.tmux.say(&["display-message", "-p", "-t", &self.name, "#{pane_pid}"]);
        pid.trim().parse().unwrap()
    }

    /// Waits for the program's end and returns its exit code. On a busy machine tmux may miss the
    /// signal that its child has ended. It then shows the pane dead without a status and never asks
    /// for it, so the signal is sent to it again.
    #[track_caller]
    pub fn ends(&self) -> i32 {
        let until = Instant::now() + PATIENCE;
        loop {
            let format = "#{pane_dead} #{pid} #{pane_dead_status}#{pane_dead_signal}";
            let state = self.tmux.say(&["display-message", "-p", "-t", &self.name, format]);
            let words: Vec<&str> = state.split_whitespace().collect();
            match words[..] {
                ["1", _, code] => return code.parse().unwrap_or(-1),
                ["1", server] => send(server.parse().unwrap(), Signal::SIGCHLD),
                _ => {}
            }
            assert!(Instant::now() < until, "it does not end ({words:?}):\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Closes the terminal, as a person who shuts its window.
    pub fn close(self) {
        self.tmux.say(&["kill-session", "-t", &self.name]);
    }
}

/// Compares a screen with the one kept in `tests/data/screens`, names and times masked.
/// `UPDATE_SCREENS=1` writes it instead.
#[track_caller]
pub fn is_as_kept(name: &str, screen: &str, desk: &Desk) {
    let masked = mask(screen, desk);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/screens/{name}.txt"));
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &masked).unwrap();
        return;
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(masked, kept, "{} differs; UPDATE_SCREENS=1 writes it anew", file.display());
}

/// A line about a turn without its seconds, which are chance.
fn without_seconds(line: &str) -> String {
    let is_line = |c: char| "●?↻✓".contains(c) || c.is_ascii_digit();
    if !line.starts_with(is_line) {
        return line.to_owned();
    }
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let words: Vec<&str> = line.split(' ').collect();
    let masked = words.iter().enumerate().map(|(at, word)| {
        let is_time = words.get(at + 1).is_some_and(|unit| unit.trim_end() == "s");
        if is_time && is_number(word) { "N" } else { word }
    });
    masked.collect::<Vec<_>>().join(" ")
}

/// Names of sessions, numbers of terminals and this test's own paths as the same everywhere.
fn mask(screen: &str, desk: &Desk) -> String {
    let screen = screen.replace(&desk.outside().display().to_string(), "DESK");
    // How many terminals came before is chance.
    let mut words = screen.split("terminal ");
    let mut screen = words.next().unwrap_or_default().to_owned();
    for rest in words {
        screen.push_str("terminal ");
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        screen.push_str(if digits > 0 { "N" } else { "" });
        screen.push_str(&rest[digits..]);
    }
    let screen: String = screen.split_inclusive('\n').map(without_seconds).collect();
    // Hosts differ in the cage that they allow. A screen may name the cage that `doctor` reports.
    let report = super::run(desk.agentd(&["doctor", "--json"])).json();
    let screen = match report["cage"]["tier"].as_str() {
        Some("B") => {
            assert!(!screen.contains("sandbox: full"), "tier B is shown as full:\n{screen}");
            screen.replace("sandbox: partial", "sandbox: full")
        }
        _ => screen,
    };
    let is_hex = |c: &char| c.is_ascii_digit() || ('a'..='f').contains(c);
    let mut masked = String::new();
    let mut rest = screen.as_str();
    while !rest.is_empty() {
        let run = rest.chars().take_while(is_hex).count();
        if run == 12 {
            masked.push_str("SESSIONSESSI");
        } else {
            let length = run.max(rest.chars().next().map_or(0, char::len_utf8));
            masked.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        rest = &rest[run..];
    }
    masked
}
