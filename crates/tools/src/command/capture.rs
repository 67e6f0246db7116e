//! The output of a command in bounded memory: the beginning and the end of each stream. Pure.

use std::collections::VecDeque;
use tool_specs::text::control::printed;

/// The text of a command that printed nothing.
pub(super) const NOTHING: &str = "(no output)";

/// Most bytes of both streams together that a result holds.
pub(crate) const KEPT: usize = 200_000;
/// Most bytes of each stream that a file of its own holds where a result does not hold them.
pub(crate) const SPILLED: usize = 4 << 20;
/// A cut moves at most so far to fall on the border of a line.
const BORDER: usize = 4_000;

/// The beginning and the end of a stream of any length.
#[derive(Debug, Clone)]
pub(crate) struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    /// Most bytes of each.
    half: usize,
}

impl Default for HeadTail {
    fn default() -> Self {
        Self::of(KEPT)
    }
}

impl HeadTail {
    /// Keeps this many bytes, and at least the limit of a result.
    pub fn of(kept: usize) -> Self {
        let half = kept.max(KEPT).div_ceil(2);
        Self { head: Vec::new(), tail: VecDeque::new(), total: 0, half }
    }

    /// The stream byte for byte, where no more came than is held.
    pub fn whole(&self) -> Option<Vec<u8>> {
        let (front, back) = self.tail.as_slices();
        let whole = [&self.head, front, back].concat();
        (self.total == whole.len() as u64).then_some(whole)
    }

    /// The number of bytes that came.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds the next output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// The whole stream, or its beginning and end with at most `limit` bytes.
    fn cut(mut self, limit: usize) -> CutStream {
        let all = self.head.len() + self.tail.len();
        if self.total == all as u64 && all <= limit {
            self.head.extend(self.tail);
            return CutStream { head: self.head, tail: Vec::new(), omitted: 0 };
        }
        // Each half holds as much as any limit can ask for. The end of a short stream may be partly
        // in its head.
        let mut whole = self.head;
        let beyond = self.total - all as u64;
        let seam = whole.len();
        whole.extend(self.tail);
        let head_end = head_border(&whole[..seam.min(limit / 2)]);
        // What lies between the head and the tail was dropped.
        let least = if beyond > 0 { seam } else { head_end };
        let from = whole.len().saturating_sub(limit / 2).max(least);
        let tail_start = whole.len() - tail_border(&whole[from..]);
        let omitted = beyond + (tail_start - head_end) as u64;
        let tail = whole[tail_start..].to_vec();
        whole.truncate(head_end);
        CutStream { head: whole, tail, omitted }
    }
}

/// The kept parts of a stream.
struct CutStream {
    head: Vec<u8>,
    tail: Vec<u8>,
    omitted: u64,
}

/// How many bytes to keep so that the cut falls behind a line, or else behind a character.
fn head_border(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(BORDER);
    match bytes[from..].iter().rposition(|byte| *byte == b'\n') {
        Some(at) => from + at + 1,
        None => {
            bytes.len()
                - bytes.iter().rev().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count()
        }
    }
}

/// How many bytes at the end to keep so that they begin with a line, or else with a character.
fn tail_border(bytes: &[u8]) -> usize {
    let dropped = match bytes.iter().take(BORDER).position(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        None => bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count(),
    };
    bytes.len() - dropped
}

/// Both streams as text, with notes about omitted parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    /// Standard output, then a line `--- stderr ---` and standard error where there is any.
    pub text: String,
    /// For below the text.
    pub notes: Vec<String>,
}

/// Joins the streams to one text of at most [`KEPT`] bytes and its marks. `how` tells how to get more.
pub(crate) fn join(out: HeadTail, err: HeadTail, how: &str) -> CommandOutput {
    let shares = shares(out.total, err.total);
    within(shares, (out, err), how)
}

/// As much of the streams as was kept, as one text.
pub(crate) fn everything(out: HeadTail, err: HeadTail) -> CommandOutput {
    within((SPILLED, SPILLED), (out, err), "")
}

fn within(
    (for_out, for_err): (usize, usize),
    (out, err): (HeadTail, HeadTail),
    how: &str,
) -> CommandOutput {
    let mut printed = CommandOutput { text: String::new(), notes: Vec::new() };
    let with_err = err.total > 0;
    printed.add("stdout", out, for_out, how);
    if with_err {
        printed.end_line();
        printed.text.push_str("--- stderr ---\n");
        printed.add("stderr", err, for_err, how);
    }
    if printed.text.is_empty() {
        printed.text.push_str(NOTHING);
    }
    printed
}

/// The bound split between two streams: the shorter is whole where half of the bound holds it.
fn shares(out: u64, err: u64) -> (usize, usize) {
    let fits = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(KEPT);
    match (fits(out), fits(err)) {
        (out, err) if out + err <= KEPT => (out, err),
        (out, _) if out <= KEPT / 2 => (out, KEPT - out),
        (_, err) if err <= KEPT / 2 => (KEPT - err, err),
        _ => (KEPT / 2, KEPT / 2),
    }
}

impl CommandOutput {
    fn add(&mut self, name: &str, stream: HeadTail, limit: usize, how: &str) {
        let total = stream.total;
        let kept = stream.cut(limit);
        let (text, mut overwritten) = printed(&kept.head);
        self.text.push_str(&text);
        if kept.omitted > 0 {
            self.end_line();
            self.text.push_str(&format!("[… {} bytes of {name} not shown …]\n", kept.omitted));
            let (text, more) = printed(&kept.tail);
            self.text.push_str(&text);
            overwritten += more;
            self.notes
                .push(format!("[{name} had {total} bytes, {} not shown; {how}]", kept.omitted));
        }
        if overwritten > 0 {
            self.notes
                .push(format!("[{overwritten} overwritten progress lines of {name} not shown]"));
        }
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(pieces: &[&[u8]]) -> HeadTail {
        let mut stream = HeadTail::default();
        pieces.iter().for_each(|piece| stream.push(piece));
        stream
    }

    #[test]
    fn short_streams_are_whole() {
        for (out, err, expected) in [
            ("", "", "(no output)"),
            ("a\n", "", "a\n"),
            ("a", "", "a"),
            ("a\n", "b\n", "a\n--- stderr ---\nb\n"),
            ("a", "b", "a\n--- stderr ---\nb"),
            ("", "b\n", "--- stderr ---\nb\n"),
        ] {
            let printed = join(stream(&[out.as_bytes()]), stream(&[err.as_bytes()]), "read on");
            assert_eq!((printed.text.as_str(), printed.notes.len()), (expected, 0));
        }
    }

    #[test]
    fn long_streams_keep_both_ends_on_line_borders() {
        let mut out = HeadTail::default();
        for i in 0..200_000 {
            out.push(format!("line {i}\n").as_bytes());
        }
        let total = out.total;
        let printed = join(out, stream(&[b"an error\n"]), "read on");
        assert!(printed.text.len() < KEPT + 200);
        assert!(printed.text.starts_with("line 0\nline 1\n"));
        assert!(printed.text.ends_with("\nline 199999\n--- stderr ---\nan error\n"));
        let at = printed.text.find("[… ").unwrap_or_default();
        assert!(printed.text[..at].ends_with('\n'));
        assert!(
            printed.notes[0].starts_with(&format!("[stdout had {total} bytes, ")),
            "{:?}",
            printed.notes
        );
        let line = printed.text[at..].lines().nth(1).unwrap_or_default();
        assert!(line.strip_prefix("line ").is_some_and(|n| n.parse::<u32>().is_ok()), "{line}");
    }

    #[test]
    fn both_streams_share_the_bound() {
        for (out, err, expected) in [
            (10, 20, (10, 20)),
            (10, 1 << 40, (10, KEPT - 10)),
            (1 << 40, 10, (KEPT - 10, 10)),
            (1 << 40, 1 << 40, (KEPT / 2, KEPT / 2)),
            (KEPT as u64, 1, (KEPT - 1, 1)),
            (KEPT as u64, 0, (KEPT, 0)),
        ] {
            assert_eq!(shares(out, err), expected, "{out} {err}");
        }
    }

    #[test]
    fn progress_is_noted() {
        let printed = join(stream(&[b"1%\r2%\r3%\n"]), HeadTail::default(), "read on");
        assert_eq!(printed.text, "3%\n");
        assert_eq!(printed.notes, ["[2 overwritten progress lines of stdout not shown]"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_uncounted(lengths in proptest::collection::vec(0usize..90_000, 0..8), lines: bool) {
            let mut stream = HeadTail::default();
            let mut all = Vec::new();
            for length in lengths {
                let piece: Vec<u8> = (0..length).map(|i| if lines && i % 50 == 49 { b'\n' } else { b'a' + (all.len() % 26) as u8 }).collect();
                all.extend_from_slice(&piece);
                stream.push(&piece);
            }
            let limit = shares(all.len() as u64, 0).0;
            let kept = stream.cut(limit);
            prop_assert!(kept.head.len() + kept.tail.len() <= KEPT);
            prop_assert_eq!((kept.head.len() + kept.tail.len()) as u64 + kept.omitted, all.len() as u64);
            prop_assert!(all.starts_with(&kept.head) && all.ends_with(&kept.tail));
            if all.len() <= KEPT {
                prop_assert_eq!(kept.omitted, 0);
            }
        }
    }
}
