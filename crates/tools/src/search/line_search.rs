//! Searches files with a regular expression, several files in parallel; results keep the order of
//! the files. For `grep`.

use crate::cancel::Cancel;
use crate::files::file_type;
use crate::files::read_set::ReadSet;
use crate::files::safe_open;
use crate::search::expression::{Expression, MatchSpan};
use crate::text::lines::cut_line;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

/// Most characters of a line that are shown; the line can be read in full.
const LINE_CHARS: usize = 500;
/// A match that ends before is seen from the line's beginning on; so much is shown before another.
const BEFORE_CHARS: usize = 120;
/// Most further matches of a line that are counted.
const FURTHER: usize = 1_000;
/// Longest line that is searched: the engine holds a line in memory.
const LINE_BYTES: usize = 32 * 1024 * 1024;
/// A file up to this size is read at once.
const WHOLE: usize = 64 * 1024;
/// More threads wait for the disk and the kernel's locks.
const THREADS: usize = 8;
/// For fewer files another thread takes longer to start than they take.
const FEW: usize = 32;

/// The result for one file.
#[derive(Debug)]
pub(crate) struct FileMatches {
    /// The lines to show.
    pub lines: Vec<ResultLine>,
    /// How it ended; lines before an error are none the less.
    pub end: io::Result<SearchOutcome>,
}

/// Whether the content was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchOutcome {
    Searched,
    Binary,
}

/// Something to show of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResultLine {
    /// Why it is shown.
    pub kind: LineKind,
    /// Counted from 1.
    pub number: u64,
    /// Cut where it is long, control codes made visible.
    pub text: String,
    /// True if a part of the line is omitted.
    pub is_cut: bool,
}

/// Why a line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    Match,
    /// A further line of the same match.
    More,
    Before,
    After,
    /// Not a line: the following lines are not adjacent to the preceding ones.
    Break,
}

/// One expression, and a search for each processor.
pub(crate) struct ParallelSearch {
    own: FileSearcher,
    others: Vec<FileSearcher>,
}

impl ParallelSearch {
    /// At most `most` matches per file are returned, and one more if there is one.
    pub fn new(expression: &Expression, context: usize, most: usize, read_set: &ReadSet) -> Self {
        let search = || FileSearcher::new(expression.clone(), context, most, read_set.clone());
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        Self { own: search(), others: (1..threads).map(|_| search()).collect() }
    }

    /// One file.
    pub fn one(&mut self, path: &Path) -> FileMatches {
        self.own.search_path(path)
    }

    /// Many files: their results in order, up to the file that exceeds the match limit, or until
    /// `cancel`. `meanwhile` runs on this thread while other threads search.
    pub fn many<R>(
        &mut self,
        paths: &[PathBuf],
        cancel: &Cancel,
        meanwhile: impl FnOnce() -> R,
    ) -> (Vec<FileMatches>, R) {
        let next = AtomicUsize::new(0);
        let part = |search: &mut FileSearcher| search.part(paths, &next, cancel);
        let others = if paths.len() < FEW { &mut [] } else { self.others.as_mut_slice() };
        let mut all: Vec<Option<FileMatches>> = paths.iter().map(|_| None).collect();
        let result = thread::scope(|scope| {
            let others: Vec<_> = others
                .iter_mut()
                // Where no thread can be had, this one does it all.
                .filter_map(|search| Builder::new().spawn_scoped(scope, || part(search)).ok())
                .collect();
            let result = meanwhile();
            let own = part(&mut self.own);
            let others = others
                .into_iter()
                .flat_map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            for (at, looked) in own.into_iter().chain(others) {
                all[at] = Some(looked);
            }
            result
        });
        (all.into_iter().map_while(|looked| looked).collect(), result)
    }
}

/// The searcher of one thread.
struct FileSearcher {
    /// For lines that end with `\n`, and for lines that end with `\r\n`.
    plain: Searcher,
    windows: Searcher,
    expression: Expression,
    most: usize,
    buffer: Vec<u8>,
    read_set: ReadSet,
}

impl FileSearcher {
    fn new(expression: Expression, context: usize, most: usize, read_set: ReadSet) -> Self {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::none())
            .multi_line(expression.span == MatchSpan::Text)
            // UTF-16 is decoded, and a mark at the beginning is no text.
            .bom_sniffing(true)
            .heap_limit(Some(LINE_BYTES));
        let plain = builder.build();
        let windows = builder.line_terminator(LineTerminator::crlf()).build();
        Self { plain, windows, expression, most, buffer: Vec::new(), read_set }
    }

    /// Searches files that no other thread has taken.
    fn part(
        &mut self,
        paths: &[PathBuf],
        next: &AtomicUsize,
        cancel: &Cancel,
    ) -> Vec<(usize, FileMatches)> {
        let mut all = Vec::new();
        let mut matches = 0;
        while !cancel.is_requested() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(at) else { break };
            let looked = self.search_path(path);
            matches += looked.lines.iter().filter(|line| line.kind == LineKind::Match).count();
            all.push((at, looked));
            if matches > self.most {
                // All earlier files are taken, and later ones are not needed.
                next.store(paths.len(), Ordering::Relaxed);
                break;
            }
        }
        all
    }

    fn search_path(&mut self, path: &Path) -> FileMatches {
        let mut lines = Vec::new();
        let end = safe_open::open_to_read(path, &self.read_set)
            .and_then(|(file, meta)| self.search(file, Some(meta.len()), &mut lines));
        if end.is_err() {
            self.read_set.mark_incomplete();
        }
        FileMatches { lines, end }
    }

    fn search(
        &mut self,
        mut file: File,
        size: Option<u64>,
        lines: &mut Vec<ResultLine>,
    ) -> io::Result<SearchOutcome> {
        self.buffer.resize(WHOLE, 0);
        let mut filled = 0;
        let whole = loop {
            match file.read(&mut self.buffer[filled..]) {
                Ok(0) => break filled < WHOLE,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // One more read would only say that this was the end.
            if size == Some(filled as u64) {
                break true;
            }
        };
        let start = &self.buffer[..filled];
        let is_utf16 = file_type::is_utf16(start);
        if !is_utf16 && memchr::memchr(0, &start[..filled.min(file_type::SNIFFED)]).is_some() {
            return Ok(SearchOutcome::Binary);
        }
        let mut is_windows = is_utf16 || has_windows_line(start);
        if !whole && !is_windows && self.expression.is_about_ends {
            is_windows = later_windows_line(&file)?;
        }
        let (searcher, regex) = match &self.expression.windows {
            Some(regex) if is_windows => (&mut self.windows, regex),
            Some(_) | None => (&mut self.plain, &self.expression.plain),
        };
        let mut gathered = MatchSink { lines, matches: 0, most: self.most, regex };
        if whole {
            searcher.search_slice(regex, start, &mut gathered)?;
        } else {
            file.rewind()?;
            searcher.search_file(regex, &file, &mut gathered)?;
        }
        Ok(SearchOutcome::Searched)
    }
}

fn has_windows_line(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\r\n").is_some()
}

/// True if a line in the rest of the file ends with `\r\n`.
fn later_windows_line(mut file: &File) -> io::Result<bool> {
    let mut buffer = vec![0; WHOLE];
    let mut last = 0;
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if (last == b'\r' && buffer[0] == b'\n') || has_windows_line(&buffer[..read]) {
            return Ok(true);
        }
        last = buffer[read - 1];
    }
}

/// The lines of one file.
struct MatchSink<'a> {
    lines: &'a mut Vec<ResultLine>,
    matches: usize,
    most: usize,
    regex: &'a RegexMatcher,
}

impl MatchSink<'_> {
    fn line(&mut self, kind: LineKind, number: Option<u64>, bytes: &[u8]) {
        let bytes = without_end(bytes);
        let text = String::from_utf8_lossy(bytes);
        let is_cut = text.chars().nth(LINE_CHARS).is_some();
        let text = match kind {
            LineKind::Match if is_cut => self.around_match(&text, bytes),
            LineKind::Match
            | LineKind::More
            | LineKind::Before
            | LineKind::After
            | LineKind::Break => cut_line(&text, LINE_CHARS, 0),
        };
        self.lines.push(ResultLine { kind, number: number.unwrap_or_default(), text, is_cut });
    }

    /// The part of a long line around its first match, and the columns of further matches.
    fn around_match(&self, text: &str, bytes: &[u8]) -> String {
        let column = |at: usize| String::from_utf8_lossy(&bytes[..at]).chars().count();
        let mut starts = Vec::new();
        let _ = self.regex.find_iter(bytes, |found| {
            starts.push(found.start());
            starts.len() <= FURTHER
        });
        let first = starts.first().map_or(0, |at| column(*at));
        let skip = match first + BEFORE_CHARS < LINE_CHARS {
            true => 0,
            false => first - BEFORE_CHARS,
        };
        let (begin, _) = text.char_indices().nth(skip).unwrap_or_default();
        let mut shown = match skip {
            0 => String::new(),
            _ => format!("[… line cut: from column {}] ", skip + 1),
        };
        shown.push_str(&cut_line(&text[begin..], LINE_CHARS, 0));
        let mut later =
            starts.iter().map(|at| column(*at)).skip_while(|at| *at < skip + LINE_CHARS);
        if let Some(next) = later.next() {
            let more = later.count() + 1;
            let sign = if starts.len() > FURTHER { "+" } else { "" };
            shown.push_str(&format!(
                " [… {more}{sign} more matches, the next at column {}]",
                next + 1
            ));
        }
        shown
    }
}

fn without_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    &bytes[..end.map_or(0, |at| at + 1)]
}

impl Sink for &mut MatchSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        for (line, at) in found.lines().zip(0..) {
            let kind = if at == 0 { LineKind::Match } else { LineKind::More };
            self.line(kind, found.line_number().map(|number| number + at), line);
        }
        Ok(self.matches <= self.most)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let kind = match context.kind() {
            SinkContextKind::Before => LineKind::Before,
            SinkContextKind::After | SinkContextKind::Other => LineKind::After,
        };
        self.line(kind, context.line_number(), context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        let text = String::new();
        self.lines.push(ResultLine { kind: LineKind::Break, number: 0, text, is_cut: false });
        Ok(true)
    }
}
