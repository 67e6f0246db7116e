//! Lines of files of any size, each in bounded memory.

use protocol::hidden::line_for_model;
use std::io::{self, BufRead, Read};

/// Most characters of a line that are shown. Stops a minified file from filling the result.
pub(crate) const LINE_CHARS: usize = 2000;

/// A long line is passed over in pieces of this size.
const PIECE: u64 = 256 * 1024;

/// A part of a line, as far as it can be shown.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    /// Bytes of the line behind those, without its end.
    beyond: u64,
}

/// Which characters of a line are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    /// So many are passed over at the line's beginning.
    pub skip: u64,
    /// Most that are read.
    pub most: usize,
}

/// The bytes of the line are not UTF-8.
#[derive(Debug)]
pub(crate) struct NotUtf8;

impl LineBuffer {
    /// Reads the next line; false at the end of the file.
    pub fn read(&mut self, reader: &mut impl BufRead, columns: Columns) -> io::Result<bool> {
        self.bytes.clear();
        self.beyond = 0;
        let skipped = skip_chars(reader, columns.skip)?;
        // So many bytes surely hold the characters and the line's end.
        let most = 4 * columns.most as u64 + 4;
        if reader.by_ref().take(most).read_until(b'\n', &mut self.bytes)? == 0 {
            return Ok(skipped > 0);
        }
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
        } else if self.bytes.len() as u64 == most {
            self.beyond = skip(reader)?.bytes;
        }
        Ok(true)
    }

    /// The line with control characters made line_for_model, cut where it is long.
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

    /// True where `shown` cuts the line.
    pub fn is_longer(&self, max_chars: usize) -> bool {
        let text = String::from_utf8_lossy(&self.bytes);
        self.beyond > 0 || text.trim_end_matches('\r').chars().nth(max_chars).is_some()
    }
}

/// Passes over the first `count` characters of a line; stops at its end. Returns how many there were.
fn skip_chars(reader: &mut impl BufRead, count: u64) -> io::Result<u64> {
    if count == 0 {
        return Ok(0);
    }
    let mut skipped = 0;
    while skipped < count {
        let buffer = reader.fill_buf()?;
        // A character ends where the next one begins.
        let begins = |byte: &u8| byte & 0xc0 != 0x80;
        let end = memchr::memchr(b'\n', buffer).unwrap_or(buffer.len());
        let at_end = end < buffer.len() || buffer.is_empty();
        let mut left = count - skipped + 1;
        let stop = buffer[..end].iter().position(|byte| {
            left -= u64::from(begins(byte));
            left == 0
        });
        let passed = stop.unwrap_or(end);
        skipped += buffer[..passed].iter().filter(|byte| begins(byte)).count() as u64;
        reader.consume(passed);
        if stop.is_some() || at_end {
            break;
        }
    }
    // The rest of the last character, where the buffer ended within it.
    loop {
        let buffer = reader.fill_buf()?;
        let rest = buffer.iter().take_while(|byte| *byte & 0xc0 == 0x80).count();
        let all = rest == buffer.len();
        reader.consume(rest);
        if !all || rest == 0 {
            return Ok(skipped);
        }
    }
}

/// `text` within `max_chars`, with a marker that counts the omitted bytes, including `beyond`.
pub(crate) fn cut_line(text: &str, max_chars: usize, beyond: u64) -> String {
    match text.char_indices().nth(max_chars) {
        None if beyond == 0 => line_for_model(text).into_owned(),
        None => format!("{} [… line cut: {beyond} more bytes]", line_for_model(text)),
        Some((at, _)) => {
            let more = (text.len() - at) as u64 + beyond;
            format!("{} [… line cut: {more} more bytes]", line_for_model(&text[..at]))
        }
    }
}

/// The skipped part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Without the line's end.
    pub bytes: u64,
    /// False at the end of the file.
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

/// Passes over `count` lines, or those that there are; returns how many. Calls `before_each` before each
/// piece that the reader buffers.
pub(crate) fn skip_lines<E: From<io::Error>>(
    reader: &mut impl BufRead,
    count: u64,
    mut before_each: impl FnMut() -> Result<(), E>,
) -> Result<u64, E> {
    let (mut passed, mut is_in_line) = (0, false);
    while passed < count {
        before_each()?;
        let buffer = reader.fill_buf()?;
        let Some(last) = buffer.last() else { break };
        let ends = memchr::memchr_iter(b'\n', buffer).count() as u64;
        if ends < count - passed {
            passed += ends;
            is_in_line = *last != b'\n';
            let all = buffer.len();
            reader.consume(all);
            continue;
        }
        let mut ends = memchr::memchr_iter(b'\n', buffer);
        let end = ends.nth(usize::try_from(count - passed - 1).unwrap_or(usize::MAX));
        let end = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(end);
        return Ok(count);
    }
    Ok(passed + u64::from(is_in_line))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> Vec<String> {
        part(bytes, Columns { skip: 0, most: LINE_CHARS })
    }

    fn part(bytes: &[u8], columns: Columns) -> Vec<String> {
        let mut reader = io::BufReader::with_capacity(7, bytes);
        let mut line = LineBuffer::default();
        let mut all = Vec::new();
        while line.read(&mut reader, columns).unwrap() {
            all.push(line.shown(columns.most).unwrap_or_else(|NotUtf8| "not utf-8".to_owned()));
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
    fn a_part_of_each_line_begins_at_its_character() {
        let text = "0123456789\nshort\n\nü€ü€ü€ü€\r\nend";
        for (skip, most, expected) in [
            (0, 4, ["0123", "shor", "", "ü€ü€", "end"]),
            (3, 4, ["3456", "rt", "", "€ü€ü", ""]),
            (6, 9, ["6789", "", "", "ü€", ""]),
            (99, 4, ["", "", "", "", ""]),
        ] {
            let columns = Columns { skip, most };
            let lines: Vec<String> = part(text.as_bytes(), columns)
                .iter()
                .map(|line| line.split(" [… line cut").next().unwrap_or_default().to_owned())
                .collect();
            assert_eq!(lines, expected, "{columns:?}");
        }
        let huge = format!("{}needle{}\nnext", "x".repeat(300_000), "y".repeat(300_000));
        let columns = Columns { skip: 300_000, most: 8 };
        let lines = part(huge.as_bytes(), columns);
        assert_eq!(lines[0], "needleyy [… line cut: 299998 more bytes]");
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn skipped_lines_are_those_that_reading_finds() {
        let text = b"abc\n\nd\xc3\xbcef\r\nghijklmn\n\n\nlast";
        for text in [&text[..], &text[..text.len() - 4], b"", b"\n", b"x"] {
            let all = shown(text);
            for count in 0..10 {
                for capacity in [1, 2, 3, 7, 100] {
                    let mut reader = io::BufReader::with_capacity(capacity, text);
                    let go_on = || Ok::<(), io::Error>(());
                    let passed = skip_lines(&mut reader, count, go_on).unwrap();
                    assert_eq!(passed, count.min(all.len() as u64), "{text:?} {count} {capacity}");
                    let mut rest = Vec::new();
                    reader.read_to_end(&mut rest).unwrap();
                    assert_eq!(shown(&rest), all[passed as usize..], "{text:?} {count}");
                }
            }
        }
        let stop = || Err::<(), _>(io::Error::other("stopped"));
        assert!(skip_lines(&mut &b"a\n"[..], 1, stop).is_err());
        assert_eq!(skip_lines(&mut &b"a\n"[..], 0, stop).unwrap(), 0);
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
