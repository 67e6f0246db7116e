//! A person's terminal: raw while this is held, as it was when this is gone. The only file that
//! knows the terminal library.

use crate::screen::editor::{Reach, Toward};
use crate::screen::{Input, Key};
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind,
    KeyModifiers,
};
use crossterm::{execute, terminal};
use std::io::{self, BufRead, Write};
use std::sync::mpsc::SyncSender;

/// Columns and rows where a terminal does not say.
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
            'c' | 'd' | 'a' | 'e' | 'w' | 'u' | 'k' | 'l' | 'j' | 'm' | 'i' | 'h' | '['
        );
        let known = letter.is_ascii_lowercase() || matches!(letter, '\\' | ']' | '^' | '_');
        (letters.next().is_none() && known && !taken).then_some(Self { letter })
    }

    fn is(&self, code: char) -> bool {
        // What the terminal sends for these is named by its number there.
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
pub(crate) struct Raw;

impl Raw {
    pub(crate) fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Self;
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = io::stdout().write_all(b"\x1b[?25h");
        let _ = io::stdout().flush();
        let _ = terminal::disable_raw_mode();
    }
}

/// Columns and rows.
pub(crate) fn size() -> (u16, u16) {
    match terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (columns, rows),
        Ok(_) | Err(_) => SIZE,
    }
}

/// Listens to keys until nobody wants them.
pub(crate) fn listen_to_keys(leader: &LeaderKey, inputs: &SyncSender<Input>) {
    loop {
        let input = match crossterm::event::read() {
            Ok(Event::Key(event)) => key(&event, leader).map(Input::Key),
            Ok(Event::Paste(text)) => Some(Input::Paste(text)),
            Ok(Event::Resize(columns, rows)) => Some(Input::Resized(columns, rows)),
            Ok(Event::FocusGained | Event::FocusLost | Event::Mouse(_)) => None,
            Err(_) => {
                let _ = inputs.send(Input::HungUp);
                return;
            }
        };
        if input.is_some_and(|input| inputs.send(input).is_err()) {
            return;
        }
    }
}

/// Listens to whole lines, where a terminal knows no keys.
pub(crate) fn listen_to_lines(inputs: &SyncSender<Input>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if inputs.send(Input::Line(line)).is_err() {
            return;
        }
    }
    let _ = inputs.send(Input::HungUp);
}

// The library knows many keys; those not named here do nothing.
#[allow(clippy::wildcard_enum_match_arm)]
fn key(event: &KeyEvent, leader: &LeaderKey) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    let alt = event.modifiers.contains(KeyModifiers::ALT);
    match event.code {
        KeyCode::Char(c) if control && leader.is(c) => Some(Key::Leader),
        KeyCode::Char(c) if control => with_control(c),
        KeyCode::Char('b') if alt => Some(Key::Go(Reach::Word, Toward::Start)),
        KeyCode::Char('f') if alt => Some(Key::Go(Reach::Word, Toward::End)),
        KeyCode::Char(c) if !alt => Some(Key::Char(c)),
        KeyCode::Enter if alt || event.modifiers.contains(KeyModifiers::SHIFT) => {
            Some(Key::NewLine)
        }
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Esc => Some(Key::Escape),
        KeyCode::Tab => Some(Key::Tab),
        KeyCode::Up => Some(Key::Up),
        KeyCode::Down => Some(Key::Down),
        KeyCode::Left if control || alt => Some(Key::Go(Reach::Word, Toward::Start)),
        KeyCode::Right if control || alt => Some(Key::Go(Reach::Word, Toward::End)),
        KeyCode::Left => Some(Key::Go(Reach::Character, Toward::Start)),
        KeyCode::Right => Some(Key::Go(Reach::Character, Toward::End)),
        KeyCode::Home => Some(Key::Go(Reach::All, Toward::Start)),
        KeyCode::End => Some(Key::Go(Reach::All, Toward::End)),
        KeyCode::Backspace if alt => Some(Key::Erase(Reach::Word, Toward::Start)),
        KeyCode::Backspace => Some(Key::Erase(Reach::Character, Toward::Start)),
        KeyCode::Delete => Some(Key::Erase(Reach::Character, Toward::End)),
        _ => None,
    }
}

fn with_control(c: char) -> Option<Key> {
    match c.to_ascii_lowercase() {
        'c' => Some(Key::Interrupt),
        'd' => Some(Key::EndOfInput),
        'a' => Some(Key::Go(Reach::All, Toward::Start)),
        'e' => Some(Key::Go(Reach::All, Toward::End)),
        'w' => Some(Key::Erase(Reach::Word, Toward::Start)),
        'u' => Some(Key::Erase(Reach::All, Toward::Start)),
        'k' => Some(Key::Erase(Reach::All, Toward::End)),
        'h' => Some(Key::Erase(Reach::Character, Toward::Start)),
        'l' => Some(Key::Redraw),
        'j' => Some(Key::NewLine),
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
        assert_eq!(pressed(KeyCode::Char('4'), KeyModifiers::CONTROL), Some(Key::Leader));
        assert_eq!(pressed(KeyCode::Char('4'), KeyModifiers::NONE), Some(Key::Char('4')));
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(pressed(KeyCode::Char('Ä'), KeyModifiers::SHIFT), Some(Key::Char('Ä')));
        assert_eq!(pressed(KeyCode::Enter, KeyModifiers::ALT), Some(Key::NewLine));
        assert_eq!(pressed(KeyCode::F(3), KeyModifiers::NONE), None);
    }
}
