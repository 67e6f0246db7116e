//! Decodes server-sent events: a push decoder without IO, linear in its input; for
//! [`crate::stream`].
//!
//! Accepted: LF, CRLF and lone CR, cut anywhere; a byte order mark; comments; several `data:` lines;
//! no space after the colon; a last event without its blank line (see [`SseDecoder::finish`]).

use std::borrow::Cow;

/// Largest event in bytes. Stops a server from filling memory with one event that never ends.
pub const EVENT_CAP: usize = 16 << 20;

/// Largest answer in bytes on the wire. A 2 MiB answer in pieces of ten letters is 30 MB of events,
/// so this is generous. It stops a server that never ends its answer.
pub const ANSWER_CAP: usize = 256 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The value of its `event:` line; empty without one.
    pub name: String,
    /// Its `data:` lines, joined by line feeds.
    pub data: String,
}

/// The stream is larger than anything we would use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// One event is.
    #[error("one event of the answer is larger than {cap} bytes")]
    EventTooLarge {
        /// The limit, in bytes.
        cap: usize,
    },
    /// The whole answer is too large.
    #[error("the answer is larger than {cap} bytes on the wire")]
    AnswerTooLarge {
        /// The limit, in bytes.
        cap: usize,
    },
}

/// The decoder of one answer.
#[derive(Debug)]
pub struct SseDecoder {
    /// The unfinished line.
    line: Vec<u8>,
    /// The last byte was a CR, so that a LF now belongs to it.
    after_cr: bool,
    /// No line was seen, so that a byte order mark may come.
    at_start: bool,
    name: String,
    data: String,
    has_data: bool,
    outcome: usize,
    event_cap: usize,
    answer_cap: usize,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_caps(EVENT_CAP, ANSWER_CAP)
    }
}

impl SseDecoder {
    /// A decoder with limits of its own, in bytes.
    #[must_use]
    pub fn with_caps(event_cap: usize, answer_cap: usize) -> Self {
        Self {
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
            outcome: 0,
            event_cap,
            answer_cap,
        }
    }

    /// Takes bytes, cut anywhere, and gives each event that they complete to `each`.
    ///
    /// # Errors
    /// When a limit is passed; the decoder is of no use afterwards.
    pub fn push(&mut self, bytes: &[u8], each: &mut impl FnMut(SseEvent)) -> Result<(), SseError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                self.outcome += 1;
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.admit(rest.len())?;
                self.line.extend_from_slice(rest);
                return Ok(());
            };
            self.admit(end)?;
            self.outcome += 1;
            self.after_cr = rest[end] == b'\r';
            if self.line.is_empty() {
                // The common case copies nothing: the bytes just read contain the whole line.
                self.take_line(&rest[..end], each);
            } else {
                self.line.extend_from_slice(&rest[..end]);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, each);
                self.line = line;
                self.line.clear();
            }
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    /// The body has ended: emits the last event if only its blank line is missing. The reader of
    /// its data must check that it is complete.
    #[must_use]
    pub fn finish(mut self) -> Option<SseEvent> {
        let mut last = None;
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut |event| last = Some(event));
        }
        self.dispatch(&mut |event| last = Some(event));
        last
    }

    /// Counts bytes of a line before they are stored. The result does not depend on how the bytes
    /// were split.
    fn admit(&mut self, bytes: usize) -> Result<(), SseError> {
        self.outcome += bytes;
        if self.outcome > self.answer_cap {
            return Err(SseError::AnswerTooLarge { cap: self.answer_cap });
        }
        if self.data.len() + self.line.len() + bytes > self.event_cap {
            return Err(SseError::EventTooLarge { cap: self.event_cap });
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], each: &mut impl FnMut(SseEvent)) {
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            self.dispatch(each);
            return;
        }
        let (field, value) = match line.iter().position(|&b| b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(&text(value));
            }
            b"event" => self.name = text(value).into_owned(),
            // Comments (an empty field name), `id`, `retry` and unknown fields.
            _ => {}
        }
    }

    fn dispatch(&mut self, each: &mut impl FnMut(SseEvent)) {
        let name = std::mem::take(&mut self.name);
        if std::mem::take(&mut self.has_data) {
            let data = std::mem::take(&mut self.data);
            each(SseEvent { name, data });
        }
    }
}

/// Invalid UTF-8 becomes U+FFFD. Valid text is checked as a whole first: the lossy reader goes byte
/// by byte, and took a third of a stream's time.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.into(), data: data.into() }
    }

    fn decode(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut |e| events.push(e)).unwrap();
        }
        events.extend(decoder.finish());
        events
    }

    /// The format as the standard words it, on whole text; slow and plain.
    fn oracle(text: &str) -> Vec<SseEvent> {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut events = Vec::new();
        let (mut name, mut data) = (String::new(), None::<String>);
        for line in text.split('\n').chain([""]) {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match (line, field) {
                ("", _) => {
                    let name = std::mem::take(&mut name);
                    events.extend(data.take().map(|data| SseEvent { name, data }));
                }
                (_, "event") => name = value.into(),
                (_, "data") => {
                    data = Some(data.map_or(value.into(), |d| d + "\n" + value));
                }
                _ => {}
            }
        }
        events
    }

    #[test]
    fn every_form_of_the_format() {
        let cases: &[(&str, &[SseEvent])] = &[
            ("event: a\ndata: 1\n\n", &[event("a", "1")]),
            ("event:a\r\ndata:1\r\n\r\n", &[event("a", "1")]),
            ("event: a\rdata: 1\r\r", &[event("a", "1")]),
            ("\u{feff}data: 1\n\n", &[event("", "1")]),
            (": PROCESSING\n\nid: 7\nretry: 3\ndata: 1\n\n", &[event("", "1")]),
            ("data: 1\ndata:  2\ndata\n\n", &[event("", "1\n 2\n")]),
            ("event: only a name\n\ndata: nameless\n\n", &[event("", "nameless")]),
            ("data: no blank line\n", &[event("", "no blank line")]),
            ("data: no line end", &[event("", "no line end")]),
            ("<html>\n<p>oops: no\n\n", &[]),
            ("", &[]),
            ("\n\n\n", &[]),
        ];
        for (text, want) in cases {
            assert_eq!(&decode(&[text.as_bytes()]), want, "{text:?}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(&decode(&bytes), want, "byte by byte: {text:?}");
        }
    }

    #[test]
    fn a_letter_cut_in_two_is_whole_again_and_bad_bytes_harm_only_themselves() {
        let text = "data: né\n\n".as_bytes();
        let cut = text.len() - 3;
        assert_eq!(decode(&[&text[..cut], &text[cut..]]), [event("", "né")]);
        assert_eq!(
            decode(&[b"data: a\xffb\n\ndata: c\n\n"]),
            [event("", "a\u{fffd}b"), event("", "c")]
        );
    }

    #[test]
    fn the_caps_hold_and_what_is_just_below_passes() {
        let fed = |cap, all, text: &str| {
            SseDecoder::with_caps(cap, all).push(text.as_bytes(), &mut |_| {})
        };
        assert_eq!(fed(10, 99, "data: 3456\n\n"), Ok(()));
        assert_eq!(fed(10, 99, "data: 34567\n\n"), Err(SseError::EventTooLarge { cap: 10 }));
        assert_eq!(
            fed(10, 99, "data: 3456\ndata: 7\n\n"),
            Err(SseError::EventTooLarge { cap: 10 })
        );
        assert_eq!(fed(10, 99, "no end of line"), Err(SseError::EventTooLarge { cap: 10 }));
        assert_eq!(
            fed(10, 20, "data: 1\n\ndata: 2\n\ndata: 3\n\n"),
            Err(SseError::AnswerTooLarge { cap: 20 })
        );
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            text in "((data|event|id|:|x|)(:| :|: |)[aé ]{0,3}(\n|\r\n|\r|\n\n|\r\r|\r\n\r\n)){0,12}",
            cuts in proptest::collection::vec(0usize..200, 0..12),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|c| *c <= bytes.len()).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            let got = decode(&pieces);
            prop_assert_eq!(&got, &decode(&[bytes]));
            prop_assert_eq!(&got, &oracle(&text));
        }

        #[test]
        fn no_bytes_harm_it(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            decode(&[&bytes]);
        }
    }
}
