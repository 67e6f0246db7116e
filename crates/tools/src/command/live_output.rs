//! The live output of a command for clients, limited in rate: a flood of output costs clients no
//! more than a steady stream.

use protocol::tool::OutputStream;
use std::time::{Duration, Instant};
use tool_specs::text::control::EscapeStripper;

/// Shown at once.
const BURST: f64 = 256.0 * 1024.0;
/// Rate limit beyond that, in bytes per second: more than a person can read.
const RATE: f64 = 64.0 * 1024.0;
/// Bytes that are converted at once: as text they stay below the 64 KiB of a word.
const PIECE: usize = 16 * 1024;

/// Whether the sink took a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveOffer {
    /// Yes.
    Taken,
    /// No: too much is waiting. The piece is left out.
    Full,
}

/// Receives the output of a command in pieces of at most 64 KiB without control codes.
pub trait LiveSink {
    /// Takes a piece while the command runs. Must not block; returns `Full` if there is no room.
    fn offer(&mut self, stream: OutputStream, text: String) -> LiveOffer;

    /// Takes a piece after the command's end, for which it may wait.
    fn last(&mut self, stream: OutputStream, text: String);
}

/// The way of a command's output to the screens.
pub(crate) struct LiveOutput<'a> {
    show: &'a mut dyn LiveSink,
    out: LiveStream,
    err: LiveStream,
    allowance: TokenBucket,
}

struct LiveStream {
    stream: OutputStream,
    strip: EscapeStripper,
    left_out: u64,
}

impl<'a> LiveOutput<'a> {
    /// Shows through `show`, from now on.
    pub fn new(show: &'a mut dyn LiveSink) -> Self {
        let side = |stream| LiveStream { stream, strip: EscapeStripper::default(), left_out: 0 };
        Self {
            show,
            out: side(OutputStream::Out),
            err: side(OutputStream::Err),
            allowance: TokenBucket { bytes: BURST, at: Instant::now() },
        }
    }

    /// Sends the output, or counts it as omitted.
    pub fn print(&mut self, stream: OutputStream, bytes: &[u8]) {
        let side = match stream {
            OutputStream::Out => &mut self.out,
            OutputStream::Err => &mut self.err,
        };
        for piece in bytes.chunks(PIECE) {
            if !self.allowance.take(piece.len(), Instant::now()) {
                side.left_out += piece.len() as u64;
                continue;
            }
            let mut text = side.mark();
            text.push_str(&side.strip.push(piece).replace('\r', "\n"));
            if !text.is_empty() && self.show.offer(side.stream, text) == LiveOffer::Full {
                side.left_out += piece.len() as u64;
            }
        }
    }

    /// True if bytes were omitted and nothing says so yet.
    pub fn owes_mark(&self) -> bool {
        self.out.left_out > 0 || self.err.left_out > 0
    }

    /// Says how many bytes were omitted, behind a flood that has ended.
    pub fn show_marks(&mut self) {
        for side in [&mut self.out, &mut self.err] {
            let left_out = side.left_out;
            if left_out > 0 && self.show.offer(side.stream, side.mark()) == LiveOffer::Full {
                side.left_out = left_out;
            }
        }
    }

    /// Sends the rest of both streams. May block.
    pub fn finish(self) {
        for mut side in [self.out, self.err] {
            let mut text = side.mark();
            let strip = std::mem::take(&mut side.strip);
            text.push_str(&strip.finish().replace('\r', "\n"));
            if !text.is_empty() {
                self.show.last(side.stream, text);
            }
        }
    }
}

impl LiveStream {
    /// A marker for the bytes omitted before the next piece.
    fn mark(&mut self) -> String {
        match std::mem::take(&mut self.left_out) {
            0 => String::new(),
            bytes => {
                // The omitted part may have begun an escape sequence, so the state starts anew.
                self.strip = EscapeStripper::default();
                format!("\n[… {bytes} bytes not shown live …]\n")
            }
        }
    }
}

/// A bucket that fills with time.
struct TokenBucket {
    bytes: f64,
    at: Instant,
}

impl TokenBucket {
    fn take(&mut self, bytes: usize, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).min(Duration::from_secs(60));
        self.bytes = (self.bytes + passed.as_secs_f64() * RATE).min(BURST);
        self.at = now;
        // A piece is far below 2^52.
        #[allow(clippy::cast_precision_loss)]
        let bytes = bytes as f64;
        if bytes > self.bytes {
            return false;
        }
        self.bytes -= bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes pieces while it has room for them.
    #[derive(Default)]
    struct Screen {
        shown: Vec<String>,
        refused: usize,
    }

    impl LiveSink for Screen {
        fn offer(&mut self, stream: OutputStream, text: String) -> LiveOffer {
            if self.refused > 0 {
                self.refused -= 1;
                return LiveOffer::Full;
            }
            self.last(stream, text);
            LiveOffer::Taken
        }

        fn last(&mut self, _: OutputStream, text: String) {
            assert!(text.len() <= 64 * 1024);
            self.shown.push(text);
        }
    }

    #[test]
    fn a_flood_is_bounded_and_counted() {
        let mut screen = Screen::default();
        let mut live = LiveOutput::new(&mut screen);
        for _ in 0..1000 {
            live.print(OutputStream::Out, &[0; 64 * 1024]);
        }
        live.finish();
        let shown = screen.shown.concat();
        assert!(shown.len() < 8 << 20, "{}", shown.len());
        assert!(shown.ends_with(" bytes not shown live …]\n"));
    }

    #[test]
    fn the_end_of_a_flood_is_marked_before_the_command_ends() {
        let mut screen = Screen { refused: 2, ..Screen::default() };
        let mut live = LiveOutput::new(&mut screen);
        live.print(OutputStream::Out, b"lost");
        assert!(live.owes_mark());
        live.show_marks();
        assert!(live.owes_mark(), "there was no room");
        live.show_marks();
        assert!(!live.owes_mark());
        live.show_marks();
        live.finish();
        assert_eq!(screen.shown, ["\n[… 4 bytes not shown live …]\n"]);
    }

    #[test]
    fn what_nobody_takes_is_counted() {
        let mut screen = Screen { refused: 1, ..Screen::default() };
        let mut live = LiveOutput::new(&mut screen);
        live.print(OutputStream::Out, b"lost");
        live.print(OutputStream::Out, b"kept\x1b[3");
        live.print(OutputStream::Out, b"1m!\rnext");
        live.finish();
        assert_eq!(screen.shown, ["\n[… 4 bytes not shown live …]\nkept", "!\nnext"]);

        let mut screen = Screen { refused: 9, ..Screen::default() };
        let mut live = LiveOutput::new(&mut screen);
        live.print(OutputStream::Err, b"lost");
        live.finish();
        assert_eq!(screen.shown, ["\n[… 4 bytes not shown live …]\n"], "also at the end");
    }

    #[test]
    fn the_allowance_fills_with_time() {
        let begin = Instant::now();
        let mut allowance = TokenBucket { bytes: 10.0, at: begin };
        assert!(allowance.take(10, begin));
        assert!(!allowance.take(1, begin));
        assert!(allowance.take(60 * 1024, begin + Duration::from_secs(1)));
        assert!(!allowance.take(300 * 1024, begin + Duration::from_secs(3600)));
    }
}
