//! Lines of files of any size, each in bounded memory.

use crate::control::visible;
use std::io::{self, BufRead, Read};

/// Most characters of a line that are shown. Stops a minified file from filling the result.
pub(crate) const LINE_CHARS: usize = 2000;

/// So many bytes surely hold `LINE_CHARS` characters.
const LINE_BYTES: u64 = 4 * LINE_CHARS as u64 + 4;

/// A long line is passed over in pieces of this size.
const PIECE: u64 = 256 * 1024;

/// The beginning of a line, as far as it can be shown.
#[derive(Debug, Default)]
pub(crate) struct Line {
    bytes: Vec<u8>,
    /// Bytes of the line behind those, without its end.
    beyond: u64,
}

/// The line's bytes that were looked at are not UTF-8.
#[derive(Debug)]
pub(crate) struct NotUtf8;

impl Line {
    /// Reads the next line; false at the end of the file.
    pub fn read(&mut self, reader: &mut impl BufRead) -> io::Result<bool> {
        self.bytes.clear();
        self.beyond = 0;
        if reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut self.bytes)? == 0 {
            return Ok(false);
        }
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
        } else if self.bytes.len() as u64 == LINE_BYTES {
            self.beyond = skip(reader)?.bytes;
        }
        Ok(true)
    }

    /// The line with control characters made visible, cut where it is long.
    pub fn shown(&self, max_chars: usize) -> Result<String, NotUtf8> {
        let text = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text,
            // The last character may be cut by our own bound.
            Err(error) if error.error_len().is_none() && self.beyond > 0 => {
                std::str::from_utf8(&self.bytes[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return Err(NotUtf8),
        };
        let text = text.strip_suffix('\r').unwrap_or(text);
        Ok(cut_line(text, max_chars, self.beyond))
    }
}

/// `text` within `max_chars`, with a mark that counts what is left out, `beyond` included.
pub(crate) fn cut_line(text: &str, max_chars: usize, beyond: u64) -> String {
    match text.char_indices().nth(max_chars) {
        None if beyond == 0 => visible(text).into_owned(),
        None => format!("{} [… line cut: {beyond} more bytes]", visible(text)),
        Some((at, _)) => {
            let more = (text.len() - at) as u64 + beyond;
            format!("{} [… line cut: {more} more bytes]", visible(&text[..at]))
        }
    }
}

/// What was passed over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Without the line's end.
    pub bytes: u64,
    /// Whether there was a line at all.
    pub line: bool,
}

/// Passes over the rest of a line.
pub(crate) fn skip(reader: &mut impl BufRead) -> io::Result<Skipped> {
    let mut bytes = 0;
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let n = reader.by_ref().take(PIECE).read_until(b'\n', &mut piece)? as u64;
        let ended = piece.last() == Some(&b'\n');
        bytes += n - u64::from(ended);
        if ended || n < PIECE {
            return Ok(Skipped { bytes, line: bytes > 0 || ended });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> Vec<String> {
        let mut reader = io::BufReader::with_capacity(7, bytes);
        let mut line = Line::default();
        let mut all = Vec::new();
        while line.read(&mut reader).unwrap() {
            all.push(line.shown(LINE_CHARS).unwrap_or_else(|NotUtf8| "not utf-8".to_owned()));
        }
        all
    }

    #[test]
    fn lines_and_their_ends() {
        assert_eq!(shown(b""), Vec::<String>::new());
        assert_eq!(shown(b"a\n\nb\r\nc"), ["a", "", "b", "c"]);
        assert_eq!(shown(b"caf\xe9\nok"), ["not utf-8", "ok"]);
        assert_eq!(shown("ü".as_bytes()), ["ü"]);
        assert_eq!(shown(b"torn \xc3"), ["not utf-8"]);
    }

    #[test]
    fn long_lines_are_cut_and_counted() {
        let long = "ü".repeat(LINE_CHARS + 3) + "\nnext";
        assert_eq!(
            shown(long.as_bytes()),
            [format!("{} [… line cut: 6 more bytes]", "ü".repeat(LINE_CHARS)), "next".to_owned()]
        );
        let huge = format!("{}\nnext", "x".repeat(1_000_000));
        let lines = shown(huge.as_bytes());
        assert!(lines[0].ends_with("x [… line cut: 998000 more bytes]"));
        assert_eq!(lines[1], "next");
    }

    #[test]
    fn skipping_counts() {
        let mut reader = &b"abc\n\ndef"[..];
        assert_eq!(skip(&mut reader).unwrap(), Skipped { bytes: 3, line: true });
        assert_eq!(skip(&mut reader).unwrap(), Skipped { bytes: 0, line: true });
        assert_eq!(skip(&mut reader).unwrap(), Skipped { bytes: 3, line: true });
        assert_eq!(skip(&mut reader).unwrap(), Skipped { bytes: 0, line: false });
    }
}
