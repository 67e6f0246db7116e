//! The terminal's answer to OSC 11, taken out of the keys whenever it comes. Pure.
//!
//! The terminal library knows no such answer: it reports its letters as keys, which would land in the input line.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// How the answer begins, behind `ESC ]`.
const BEGIN: &str = "11;rgb";
/// Characters of the longest answer.
const LONGEST: usize = 40;
/// So many characters of it are typed by nobody.
const SURE: usize = 3;

/// Reads an answer among the keys.
#[derive(Debug, Default)]
pub(super) struct GroundAnswer {
    /// The last key was Esc. It has its effect at once.
    escaped: bool,
    /// Keys that may be the begin of an answer.
    held: Vec<KeyEvent>,
    text: String,
}

/// The meaning of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// These keys are no answer.
    Keys(Vec<KeyEvent>),
    /// It may belong to an answer.
    Held,
    /// The ground, in red, green and blue.
    Ground(u8, u8, u8),
}

impl GroundAnswer {
    /// Takes the next key.
    // All other keys belong to no answer.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn key(&mut self, event: KeyEvent) -> Read {
        if event.kind == KeyEventKind::Release {
            return Read::Keys(vec![event]);
        }
        let escaped = std::mem::take(&mut self.escaped);
        let is_whole = self.text.len() > BEGIN.len() && self.text.starts_with(BEGIN);
        let (alt, control) = (KeyModifiers::ALT, KeyModifiers::CONTROL);
        let begins = |held: &[KeyEvent]| held.is_empty() && event.code == KeyCode::Char(']');
        match event.code {
            KeyCode::Char('\\') if is_whole && (event.modifiers == alt || escaped) => self.end(),
            KeyCode::Char('g') if is_whole && event.modifiers == control => self.end(),
            KeyCode::Esc if is_whole => {
                self.escaped = true;
                self.held.push(event);
                Read::Held
            }
            _ if begins(&self.held) && (event.modifiers == alt || escaped) => {
                self.held.push(event);
                Read::Held
            }
            KeyCode::Char(c) if !self.held.is_empty() && !escaped && self.continues(c) => {
                self.text.push(c);
                self.held.push(event);
                Read::Held
            }
            _ => {
                self.escaped = event.code == KeyCode::Esc;
                let mut keys = self.release();
                keys.push(event);
                Read::Keys(keys)
            }
        }
    }

    /// True if keys are held that a person may have typed: more of an answer comes at once.
    pub(super) fn may_be_typed(&self) -> bool {
        !self.held.is_empty() && self.text.len() < SURE
    }

    /// Gives back the held keys.
    pub(super) fn release(&mut self) -> Vec<KeyEvent> {
        self.text.clear();
        std::mem::take(&mut self.held)
    }

    fn continues(&self, c: char) -> bool {
        let at = self.text.len();
        match BEGIN.as_bytes().get(at) {
            Some(byte) => char::from(*byte) == c,
            None => at < LONGEST && (c.is_ascii_hexdigit() || matches!(c, ':' | '/' | 'a')),
        }
    }

    fn end(&mut self) -> Read {
        let text = std::mem::take(&mut self.text);
        self.held.clear();
        let values = text.split_once(':').map(|(_, values)| values).unwrap_or_default();
        let mut parts = values.split('/').map(channel);
        match (parts.next().flatten(), parts.next().flatten(), parts.next().flatten()) {
            (Some(red), Some(green), Some(blue)) => Read::Ground(red, green, blue),
            _ => Read::Keys(Vec::new()),
        }
    }
}

/// A channel of one to four hexadecimal digits, as a byte.
fn channel(digits: &str) -> Option<u8> {
    let most = 16u32.checked_pow(u32::try_from(digits.len()).ok()?)?.checked_sub(1)?;
    let value = u32::from_str_radix(digits, 16).ok().filter(|_| (1..=4).contains(&digits.len()))?;
    u8::try_from(value * 255 / most.max(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: KeyModifiers = KeyModifiers::NONE;

    fn keys(text: &str) -> Vec<KeyEvent> {
        let mut keys: Vec<KeyEvent> = Vec::new();
        let mut letters = text.chars().peekable();
        while let Some(c) = letters.next() {
            keys.push(match c {
                '\u{1b}' => match letters.next_if(|next| matches!(next, ']' | '\\')) {
                    Some(next) => KeyEvent::new(KeyCode::Char(next), KeyModifiers::ALT),
                    None => KeyEvent::new(KeyCode::Esc, NONE),
                },
                '\u{7}' => KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL),
                c if c.is_uppercase() => KeyEvent::new(KeyCode::Char(c), KeyModifiers::SHIFT),
                c => KeyEvent::new(KeyCode::Char(c), NONE),
            });
        }
        keys
    }

    /// The keys that are left, and the ground.
    fn read(keys: &[KeyEvent]) -> (Vec<KeyEvent>, Option<(u8, u8, u8)>) {
        let (mut answer, mut left, mut ground) = (GroundAnswer::default(), Vec::new(), None);
        for key in keys {
            match answer.key(*key) {
                Read::Keys(keys) => left.extend(keys),
                Read::Held => {}
                Read::Ground(red, green, blue) => ground = Some((red, green, blue)),
            }
        }
        left.extend(answer.release());
        (left, ground)
    }

    #[test]
    fn an_answer_is_read_in_each_form_and_leaves_no_key() {
        for (text, ground) in [
            ("\u{1b}]11;rgb:1e1e/1e1e/2e2e\u{1b}\\", (0x1e, 0x1e, 0x2e)),
            ("\u{1b}]11;rgb:FFFF/FFFF/FFFF\u{7}", (255, 255, 255)),
            ("\u{1b}]11;rgb:ff/0/80\u{7}", (255, 0, 128)),
            ("\u{1b}]11;rgba:0000/0000/0000/ffff\u{7}", (0, 0, 0)),
        ] {
            assert_eq!(read(&keys(text)), (Vec::new(), Some(ground)), "{text:?}");
            let between = [keys("one"), keys(text), keys("two")].concat();
            assert_eq!(read(&between), (keys("onetwo"), Some(ground)), "{text:?}");
        }
    }

    #[test]
    fn an_answer_that_comes_in_two_parts_leaves_the_esc_alone() {
        let escape = KeyEvent::new(KeyCode::Esc, NONE);
        let parts = [vec![escape], keys("]11;rgb:ffff/ffff/ffff"), vec![escape], keys("\\")];
        assert_eq!(read(&parts.concat()), (vec![escape], Some((255, 255, 255))));
    }

    #[test]
    fn what_a_person_types_comes_through() {
        let escape = KeyEvent::new(KeyCode::Esc, NONE);
        for typed in ["]11;rgb", "]1 is the place", "]", "x]11;rgb:00/00/00", "]11;rgb:zz"] {
            assert_eq!(read(&keys(typed)), (keys(typed), None), "{typed}");
            let behind_esc = [vec![escape], keys(typed)].concat();
            assert_eq!(read(&behind_esc), (behind_esc.clone(), None), "Esc, {typed}");
        }
        // An answer that says nothing is no text either.
        assert_eq!(read(&keys("\u{1b}]11;rgb:/\u{7}ok")), (keys("ok"), None));
        let mut answer = GroundAnswer::default();
        answer.key(escape);
        for (at, key) in keys("]11;").into_iter().enumerate() {
            answer.key(key);
            assert_eq!(answer.may_be_typed(), at < 3, "held for a moment only: {at}");
        }
    }
}
