//! The output of a command is meant for a terminal: escape sequences are removed and progress bars
//! reduced to their last state. (The content of a file is data: `protocol::hidden` has signs for its control
//! characters.)

use protocol::hidden::sign;
use std::borrow::Cow;

/// Longest escape string (a window title, say) that is swallowed; a stray introducer may not hide
/// the rest of the output.
const STRING_MAX: usize = 4096;

/// Where in an escape sequence the stream stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte: one more byte ends it.
    Intermediate,
    /// After the introducer of a control sequence.
    Sequence,
    /// In a string of this many characters so far, for example a window title.
    String(usize),
    /// In a string, after ESC.
    StringEscape(usize),
}

/// Takes escape sequences out of a stream that arrives in pieces. A lone carriage return comes out
/// as one, for the caller to deal with; invalid UTF-8 comes out as U+FFFD.
#[derive(Debug, Default)]
pub struct EscapeStripper {
    state: EscapeState,
    carriage: bool,
    partial: Vec<u8>,
}

impl EscapeStripper {
    /// The text of the next bytes, as far as they are whole.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut bytes = if self.partial.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            Cow::Owned(joined)
        };
        let whole = bytes.len() - incomplete_tail(&bytes);
        self.partial = bytes[whole..].to_vec();
        match &mut bytes {
            Cow::Borrowed(slice) => *slice = &slice[..whole],
            Cow::Owned(vec) => vec.truncate(whole),
        }
        let mut out = String::with_capacity(bytes.len());
        for c in String::from_utf8_lossy(&bytes).chars() {
            self.step(c, &mut out);
        }
        out
    }

    /// The rest at the end of the stream.
    pub fn finish(mut self) -> String {
        let mut out = String::new();
        for c in String::from_utf8_lossy(&std::mem::take(&mut self.partial)).chars() {
            self.step(c, &mut out);
        }
        if self.carriage {
            out.push('\r');
        }
        out
    }

    fn step(&mut self, c: char, out: &mut String) {
        self.state = match (self.state, c) {
            (EscapeState::Ground, _) => return self.ground(c, out),
            (EscapeState::Escape, '[') => EscapeState::Sequence,
            (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => EscapeState::String(0),
            (EscapeState::Escape, ' '..='/') | (EscapeState::Intermediate, ' '..='/') => {
                EscapeState::Intermediate
            }
            (EscapeState::Escape | EscapeState::Intermediate, '0'..='~') => EscapeState::Ground,
            (EscapeState::Sequence, ' '..='?') => EscapeState::Sequence,
            (EscapeState::Sequence, '@'..='~') => EscapeState::Ground,
            // A string ends with BEL or ESC \, and for us with its line or its bound.
            (EscapeState::String(_), '\u{7}' | '\u{9c}') => EscapeState::Ground,
            (EscapeState::String(n), '\u{1b}') => EscapeState::StringEscape(n),
            (EscapeState::StringEscape(_), '\\') => EscapeState::Ground,
            (EscapeState::String(n) | EscapeState::StringEscape(n), c)
                if c != '\n' && n < STRING_MAX =>
            {
                EscapeState::String(n + 1)
            }
            // This character does not continue the sequence: the sequence is over, and the
            // character is text.
            (
                EscapeState::Escape
                | EscapeState::Intermediate
                | EscapeState::Sequence
                | EscapeState::String(_)
                | EscapeState::StringEscape(_),
                _,
            ) => {
                self.state = EscapeState::Ground;
                return self.ground(c, out);
            }
        };
    }

    fn ground(&mut self, c: char, out: &mut String) {
        if std::mem::take(&mut self.carriage) && c != '\n' && c != '\r' {
            out.push('\r');
        }
        match c {
            '\u{1b}' => self.state = EscapeState::Escape,
            '\u{9b}' => self.state = EscapeState::Sequence,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = EscapeState::String(0),
            '\r' => self.carriage = true,
            '\n' | '\t' => out.push(c),
            other => out.push(sign(other)),
        }
    }
}

/// How many bytes at the end begin a character that is not whole yet.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    match std::str::from_utf8(&bytes[from..]) {
        Ok(_) => 0,
        Err(_) => (1..=bytes.len() - from)
            .find(|n| match std::str::from_utf8(&bytes[bytes.len() - n..]) {
                Ok(_) => false,
                Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
            })
            .unwrap_or(0),
    }
}

/// The output of a command as a user would read it at the end, and the number of overwritten
/// progress bar states.
pub fn printed(bytes: &[u8]) -> (String, usize) {
    let mut strip = EscapeStripper::default();
    let mut text = strip.push(bytes);
    text.push_str(&strip.finish());
    last_states(&text)
}

/// Of each line that carriage returns wrote several times, the last state.
fn last_states(text: &str) -> (String, usize) {
    if !text.contains('\r') {
        return (text.to_owned(), 0);
    }
    let mut overwritten = 0;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let mut states = line.split('\r').filter(|state| !state.is_empty());
        let last = states.next_back().unwrap_or("");
        overwritten += states.count();
        out.push_str(last);
        out.push_str(end);
    }
    (out, overwritten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_commands_print() {
        for (name, bytes, expected) in [
            ("plain", &b"hello\n"[..], "hello\n"),
            ("colour", b"\x1b[1;31mred\x1b[0m\n", "red\n"),
            ("clear screen", b"\x1b[2J\x1b[Hgone?", "gone?"),
            ("title", b"\x1b]0;evil\x07ok", "ok"),
            ("title, other end", b"\x1b]0;evil\x1b\\ok", "ok"),
            ("hyperlink", b"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"),
            ("device string", b"\x1bPq#0\x1b\\after", "after"),
            ("charset", b"\x1b(Bx", "x"),
            ("8-bit introducer", "\u{9b}31mred".as_bytes(), "red"),
            ("stray string ends with its line", b"\x1b]0;never closed\nnext\n", "\nnext\n"),
            ("sequence cut by text", b"\x1b[\xc3\xa4", "ä"),
            ("lone escape at the end", b"x\x1b", "x"),
            ("bell and backspace", b"a\x07b\x08c", "a\u{2407}b\u{2408}c"),
            ("nul", b"a\0b", "a\u{2400}b"),
            ("windows lines", b"a\r\nb\r\n", "a\nb\n"),
            ("doubled carriage return", b"a\r\r\nb", "a\nb"),
            ("progress", b"10%\r50%\r100%\ndone\n", "100%\ndone\n"),
            ("progress without end", b"10%\r20%\r", "20%"),
            ("bidi is text", "\u{202e}abc\u{2066}".as_bytes(), "\u{202e}abc\u{2066}"),
            ("latin-1", b"caf\xe9\n", "caf\u{fffd}\n"),
        ] {
            assert_eq!(printed(bytes).0, expected, "{name}");
        }
        assert_eq!(printed(b"1\r2\r3\n").1, 2);
    }

    #[test]
    fn a_stray_introducer_hides_a_bounded_part() {
        let mut bytes = b"\x1b]".to_vec();
        bytes.extend(vec![b'x'; 10_000]);
        assert!(printed(&bytes).0.len() > 5_000);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(bytes: Vec<u8>, cuts in proptest::collection::vec(0usize..64, 0..8)) {
            let mut whole = EscapeStripper::default();
            let mut expected = whole.push(&bytes);
            expected.push_str(&whole.finish());
            let mut strip = EscapeStripper::default();
            let mut got = String::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                got.push_str(&strip.push(piece));
                rest = after;
            }
            got.push_str(&strip.push(rest));
            got.push_str(&strip.finish());
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn nothing_dangerous_is_left(bytes: Vec<u8>) {
            let (text, _) = printed(&bytes);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        }
    }
}
