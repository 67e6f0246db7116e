//! Takes lines out of a file where they were read, without copying each: a session of millions of short
//! records is opened as fast as they are checked.

use std::fs::File;
use std::io::{self, Read};

/// Bytes per read.
const STEP: usize = 64 << 10;

/// The lines of a file, one at a time.
#[derive(Debug)]
pub(crate) struct LineReader<R = File> {
    input: R,
    /// The buffer; grows for a longer line.
    bytes: Vec<u8>,
    /// End of the data in the buffer.
    filled: usize,
    /// The line that was taken last.
    line: std::ops::Range<usize>,
    /// Where the next begins.
    next: usize,
}

/// The result of taking a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextLine {
    /// A line, without its line end.
    Line,
    /// The bytes after the last line end, perhaps none; afterwards nothing.
    Rest,
    /// The beginning of a line that is longer than it may be.
    TooLong,
}

impl<R: Read> LineReader<R> {
    pub(crate) fn of(input: R) -> Self {
        Self { input, bytes: Vec::new(), filled: 0, line: 0..0, next: 0 }
    }

    /// The range taken last.
    pub(crate) fn line(&self) -> &[u8] {
        &self.bytes[self.line.clone()]
    }

    /// Takes the next line, of `most` bytes at most.
    pub(crate) fn take(&mut self, most: usize) -> io::Result<NextLine> {
        let mut searched = self.next;
        loop {
            let end = memchr::memchr(b'\n', &self.bytes[searched..self.filled]);
            let end = end.map(|at| searched + at);
            let length = end.unwrap_or(self.filled) - self.next;
            self.line = self.next..self.next + length.min(most + 1);
            if length > most {
                return Ok(NextLine::TooLong);
            }
            if let Some(end) = end {
                self.next = end + 1;
                return Ok(NextLine::Line);
            }
            if self.filled == self.bytes.len() {
                self.make_room();
            }
            searched = self.filled;
            match self.input.read(&mut self.bytes[self.filled..]) {
                Ok(0) => {
                    self.line = self.next..self.filled;
                    self.next = self.filled;
                    return Ok(NextLine::Rest);
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Drops the lines taken so far; if there are none, the next line is longer than the buffer.
    fn make_room(&mut self) {
        if self.next == 0 {
            let mut more = vec![0; (self.bytes.len() * 2).max(STEP)];
            more[..self.filled].copy_from_slice(&self.bytes[..self.filled]);
            self.bytes = more;
            return;
        }
        self.bytes.copy_within(self.next..self.filled, 0);
        self.filled -= self.next;
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Gives its bytes out in pieces, as a file may.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    fn taken(bytes: &[u8], piece: usize, most: usize) -> Vec<(NextLine, Vec<u8>)> {
        let mut lines = LineReader::of(Pieces(bytes, piece));
        let mut all = Vec::new();
        loop {
            let found = lines.take(most).unwrap();
            all.push((found, lines.line().to_vec()));
            if found != NextLine::Line {
                assert_eq!(lines.take(most).unwrap(), found);
                assert!(found == NextLine::TooLong || lines.line().is_empty());
                return all;
            }
        }
    }

    #[test]
    fn a_line_may_be_as_long_as_it_may_and_no_longer() {
        for piece in [1, 3, usize::MAX] {
            let all = taken(b"1234\n\n12345\nx", piece, 4);
            let lines = [b"1234".to_vec(), Vec::new()].map(|line| (NextLine::Line, line));
            assert_eq!(all[..2], lines);
            assert_eq!(all[2], (NextLine::TooLong, b"12345".to_vec()));
        }
        let long = vec![b'x'; 3 * STEP];
        let text = [&long[..], b"\n", &long[..]].concat();
        let want = vec![(NextLine::Line, long.clone()), (NextLine::Rest, long)];
        assert_eq!(taken(&text, 1000, 3 * STEP), want);
    }

    proptest! {
        #[test]
        fn lines_are_what_stands_between_line_ends(
            lines in proptest::collection::vec("[a-z]{0,40}", 0..60), piece in 1_usize..90,
        ) {
            let text = lines.join("\n");
            let got: Vec<_> = taken(text.as_bytes(), piece, 40);
            let want: Vec<_> = text.split('\n').map(|line| line.as_bytes().to_vec()).collect();
            prop_assert_eq!(got.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>(), want);
            prop_assert!(got[..got.len() - 1].iter().all(|(found, _)| *found == NextLine::Line));
        }
    }
}
