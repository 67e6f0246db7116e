//! The user's terminal: raw mode, restored on drop, and its key events. The only file here that uses
//! the terminal library.

use super::ground_answer::{GroundAnswer, Read};
use crate::screen::{Direction, Distance, EditKey, KeyPause, KeyPress, MouseInput, ScreenInput};
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind,
    KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use crossterm::{execute, terminal};
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

/// The rest of a terminal's answer comes within this time, also over a slow line. A person who types such keys waits.
const REST_OF_ANSWER: Duration = Duration::from_secs(1);

/// Columns and rows of a terminal that does not report them.
const SIZE: (u16, u16) = (80, 24);

/// A key that begins a command to this program, such as `Ctrl-\`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderKey {
    letter: char,
}

impl LeaderKey {
    /// Reads `Ctrl-X`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("Ctrl-").or_else(|| name.strip_prefix("ctrl-"))?;
        let mut letters = rest.chars();
        let letter = letters.next()?.to_ascii_lowercase();
        // Keys that mean something already, or that a terminal sends for another key.
        let taken = matches!(
            letter,
            'c' | 'd' | 'a' | 'e' | 'w' | 'u' | 'k' | 'l' | 'j' | 'm' | 'i' | 'h' | 'g' | '['
        );
        let known = letter.is_ascii_lowercase() || matches!(letter, '\\' | ']' | '^' | '_');
        (letters.next().is_none() && known && !taken).then_some(Self { letter })
    }

    fn is(&self, code: char) -> bool {
        // The terminal library reports these control codes as digits.
        let sent = match self.letter {
            '\\' => '4',
            ']' => '5',
            '^' => '6',
            '_' => '7',
            letter => letter,
        };
        code == sent || code == self.letter
    }
}

/// A terminal that sends each key.
#[derive(Debug)]
pub(crate) struct RawMode;

impl RawMode {
    pub(crate) fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Self;
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = io::stdout().write_all(b"\x1b[?25h");
        let _ = io::stdout().flush();
        let _ = terminal::disable_raw_mode();
    }
}

/// Columns and rows of the terminal; 80 and 24 if it does not report them.
#[must_use]
pub fn size() -> (u16, u16) {
    match terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (columns, rows),
        Ok(_) | Err(_) => SIZE,
    }
}

/// Reads keys until the receiver is dropped.
pub(crate) fn read_keys(leader: &LeaderKey, inputs: &SyncSender<ScreenInput>) {
    let mut answer = GroundAnswer::default();
    loop {
        let is_late =
            answer.may_be_typed() && crossterm::event::poll(REST_OF_ANSWER).is_ok_and(|more| !more);
        let input = match if is_late { Ok(None) } else { crossterm::event::read().map(Some) } {
            Ok(Some(Event::Key(event))) => match answer.key(event) {
                Read::Ground(red, green, blue) => Some(ScreenInput::Ground(red, green, blue)),
                Read::Held => None,
                Read::Keys(keys) => {
                    if !keys.iter().all(|key| send_key(key, leader, inputs)) {
                        return;
                    }
                    None
                }
            },
            Ok(None) => {
                if !answer.release().iter().all(|key| send_key(key, leader, inputs)) {
                    return;
                }
                None
            }
            Ok(Some(Event::Paste(text))) => Some(ScreenInput::Paste(text)),
            Ok(Some(Event::Resize(columns, rows))) => Some(ScreenInput::Resized(columns, rows)),
            Ok(Some(Event::FocusGained)) => Some(ScreenInput::Focused(true)),
            Ok(Some(Event::FocusLost)) => Some(ScreenInput::Focused(false)),
            Ok(Some(Event::Mouse(event))) => match (event.kind, event.modifiers) {
                (MouseEventKind::Down(MouseButton::Left), KeyModifiers::CONTROL) => {
                    let at = (event.column, event.row);
                    if !lend(|pause| ScreenInput::FollowPlace(pause, at), inputs) {
                        return;
                    }
                    None
                }
                _ => mouse(&event).map(ScreenInput::Mouse),
            },
            Err(_) => {
                let _ = inputs.send(ScreenInput::HungUp);
                return;
            }
        };
        if input.is_some_and(|input| inputs.send(input).is_err()) {
            return;
        }
    }
}

/// Sends a key, or lends the terminal for it. False if nobody receives it.
fn send_key(event: &KeyEvent, leader: &LeaderKey, inputs: &SyncSender<ScreenInput>) -> bool {
    let Some(input) = of_other_program(event, leader) else {
        return key(event, leader).is_none_or(|key| inputs.send(ScreenInput::Key(key)).is_ok());
    };
    lend(input, inputs)
}

/// Lends the terminal to another program for this input. False if nobody receives it.
fn lend(input: impl FnOnce(KeyPause) -> ScreenInput, inputs: &SyncSender<ScreenInput>) -> bool {
    let (reader, paused) = mpsc::channel();
    if inputs.send(input(KeyPause { reader })).is_err() {
        return false;
    }
    // The other program reads the terminal until the pause ends.
    let _ = paused.recv();
    true
}

/// Ctrl-G and Ctrl-Z give the terminal to the person's editor, and to the shell.
fn of_other_program(event: &KeyEvent, leader: &LeaderKey) -> Option<fn(KeyPause) -> ScreenInput> {
    if event.kind == KeyEventKind::Release || event.modifiers != KeyModifiers::CONTROL {
        return None;
    }
    if event.code == KeyCode::Char('g') {
        return Some(|pause| ScreenInput::OpenEditor(pause, None));
    }
    let suspends = event.code == KeyCode::Char('z') && !leader.is('z');
    suspends.then_some(ScreenInput::Suspend)
}

/// Reads whole lines, for a terminal without keys.
pub(crate) fn read_lines(inputs: &SyncSender<ScreenInput>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if inputs.send(ScreenInput::Line(line)).is_err() {
            return;
        }
    }
    let _ = inputs.send(ScreenInput::HungUp);
}

fn mouse(event: &MouseEvent) -> Option<MouseInput> {
    match event.kind {
        MouseEventKind::ScrollUp => Some(MouseInput::Wheel(-1)),
        MouseEventKind::ScrollDown => Some(MouseInput::Wheel(1)),
        MouseEventKind::Down(MouseButton::Left) => {
            Some(MouseInput::Pressed(event.column, event.row))
        }
        MouseEventKind::Drag(MouseButton::Left) => {
            Some(MouseInput::Dragged(event.column, event.row))
        }
        MouseEventKind::Up(MouseButton::Left) => {
            Some(MouseInput::Released(event.column, event.row))
        }
        MouseEventKind::Down(MouseButton::Right | MouseButton::Middle)
        | MouseEventKind::Up(MouseButton::Right | MouseButton::Middle)
        | MouseEventKind::Drag(MouseButton::Right | MouseButton::Middle)
        | MouseEventKind::Moved
        | MouseEventKind::ScrollLeft
        | MouseEventKind::ScrollRight => None,
    }
}

// The library knows many keys; those not named here do nothing.
#[allow(clippy::wildcard_enum_match_arm)]
fn key(event: &KeyEvent, leader: &LeaderKey) -> Option<KeyPress> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    let alt = event.modifiers.contains(KeyModifiers::ALT);
    match event.code {
        KeyCode::Char(c) if control && leader.is(c) => Some(KeyPress::Leader),
        KeyCode::Char(c) if control => with_control(c),
        KeyCode::Char('b') if alt => Some(KeyPress::Move(Distance::Word, Direction::Start)),
        KeyCode::Char('f') if alt => Some(KeyPress::Move(Distance::Word, Direction::End)),
        KeyCode::Char('d') if alt => Some(KeyPress::Erase(Distance::Word, Direction::End)),
        KeyCode::Char('y') if alt => Some(KeyPress::Edit(EditKey::YankEarlier)),
        KeyCode::Char('/') if alt => Some(KeyPress::Edit(EditKey::Redo)),
        KeyCode::Char(c) if !alt => Some(KeyPress::Char(c)),
        KeyCode::Enter if alt || event.modifiers.contains(KeyModifiers::SHIFT) => {
            Some(KeyPress::NewLine)
        }
        KeyCode::Enter => Some(KeyPress::Enter),
        KeyCode::Esc => Some(KeyPress::Escape),
        KeyCode::Tab => Some(KeyPress::Tab),
        KeyCode::BackTab => Some(KeyPress::BackTab),
        KeyCode::PageUp => Some(KeyPress::Page(Direction::Start)),
        KeyCode::PageDown => Some(KeyPress::Page(Direction::End)),
        KeyCode::Up => Some(KeyPress::Up),
        KeyCode::Down => Some(KeyPress::Down),
        KeyCode::Left if control || alt => Some(KeyPress::Move(Distance::Word, Direction::Start)),
        KeyCode::Right if control || alt => Some(KeyPress::Move(Distance::Word, Direction::End)),
        KeyCode::Left => Some(KeyPress::Move(Distance::Character, Direction::Start)),
        KeyCode::Right => Some(KeyPress::Move(Distance::Character, Direction::End)),
        KeyCode::Home if control => Some(KeyPress::Move(Distance::All, Direction::Start)),
        KeyCode::End if control => Some(KeyPress::Move(Distance::All, Direction::End)),
        KeyCode::Home => Some(KeyPress::Move(Distance::Line, Direction::Start)),
        KeyCode::End => Some(KeyPress::Move(Distance::Line, Direction::End)),
        KeyCode::Backspace if alt => Some(KeyPress::Erase(Distance::Word, Direction::Start)),
        KeyCode::Backspace => Some(KeyPress::Erase(Distance::Character, Direction::Start)),
        KeyCode::Delete => Some(KeyPress::Erase(Distance::Character, Direction::End)),
        _ => None,
    }
}

fn with_control(c: char) -> Option<KeyPress> {
    match c.to_ascii_lowercase() {
        'c' => Some(KeyPress::Interrupt),
        'd' => Some(KeyPress::EndOfInput),
        'a' => Some(KeyPress::Move(Distance::Line, Direction::Start)),
        'e' => Some(KeyPress::Move(Distance::Line, Direction::End)),
        'w' => Some(KeyPress::Erase(Distance::Word, Direction::Start)),
        'u' => Some(KeyPress::Erase(Distance::Line, Direction::Start)),
        'k' => Some(KeyPress::Erase(Distance::Line, Direction::End)),
        'h' => Some(KeyPress::Erase(Distance::Character, Direction::Start)),
        'l' => Some(KeyPress::Redraw),
        'j' => Some(KeyPress::NewLine),
        'y' => Some(KeyPress::Edit(EditKey::Yank)),
        // Ctrl-_ and Ctrl-/ are one control code, which the terminal library reports as a digit.
        '7' | '_' | '/' => Some(KeyPress::Edit(EditKey::Undo)),
        letter @ 'a'..='z' => Some(KeyPress::Control(letter)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_leader_key_is_one_that_is_free() {
        assert_eq!(LeaderKey::parse("Ctrl-\\"), Some(LeaderKey { letter: '\\' }));
        assert_eq!(LeaderKey::parse("ctrl-B"), Some(LeaderKey { letter: 'b' }));
        for wrong in ["", "x", "Ctrl-", "Ctrl-c", "Ctrl-xy", "Ctrl-ä", "Alt-x"] {
            assert_eq!(LeaderKey::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn keys_are_what_a_terminal_sends_for_them() {
        let leader = LeaderKey::parse("Ctrl-\\").unwrap();
        let pressed = |code, modifiers| key(&KeyEvent::new(code, modifiers), &leader);
        assert_eq!(pressed(KeyCode::Char('4'), KeyModifiers::CONTROL), Some(KeyPress::Leader));
        assert_eq!(pressed(KeyCode::Char('4'), KeyModifiers::NONE), Some(KeyPress::Char('4')));
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(KeyPress::Interrupt));
        assert_eq!(pressed(KeyCode::Char('Ä'), KeyModifiers::SHIFT), Some(KeyPress::Char('Ä')));
        assert_eq!(pressed(KeyCode::Enter, KeyModifiers::ALT), Some(KeyPress::NewLine));
        assert_eq!(pressed(KeyCode::F(3), KeyModifiers::NONE), None);
        let to_start = |reach| Some(KeyPress::Move(reach, Direction::Start));
        assert_eq!(pressed(KeyCode::Home, KeyModifiers::NONE), to_start(Distance::Line));
        assert_eq!(pressed(KeyCode::Home, KeyModifiers::CONTROL), to_start(Distance::All));
        let lends = |letter, leader: &LeaderKey| {
            let event = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
            of_other_program(&event, leader).is_some()
        };
        assert!(lends('g', &leader) && lends('z', &leader) && !lends('x', &leader));
        assert!(!lends('z', &LeaderKey { letter: 'z' }), "it leads to another key");
        for sent in ['7', '_', '/'] {
            let undo = Some(KeyPress::Edit(EditKey::Undo));
            assert_eq!(pressed(KeyCode::Char(sent), KeyModifiers::CONTROL), undo);
        }
    }
}
