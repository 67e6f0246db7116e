//! Lines of files by an expression: several files at once, told in the order in which they are named.
//! For `grep`.

use crate::cancel::Cancel;
use crate::kinds;
use crate::lines::cut_line;
use crate::open;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use nix::fcntl::{AT_FDCWD, OFlag};
use nix::sys::stat::Mode;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

/// Most characters of a line that are shown; the line can be read in full.
const LINE_CHARS: usize = 500;
/// Longest line that is searched: the engine holds a line in memory.
const LINE_BYTES: usize = 32 * 1024 * 1024;
/// A file up to this size is read at once.
const WHOLE: usize = 64 * 1024;
/// More threads wait for the disk and the kernel's locks.
const THREADS: usize = 8;
/// For fewer files another thread takes longer to start than they take.
const FEW: usize = 32;

/// What became of one file.
#[derive(Debug)]
pub(crate) struct Looked {
    /// As it was before it was read; none where it could not be opened.
    pub meta: Option<Metadata>,
    /// What it has to show.
    pub lines: Vec<Line>,
    /// How it ended; lines before an error are none the less.
    pub end: io::Result<Text>,
}

/// Whether a file could be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    Searched,
    Binary,
}

/// Something to show of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Why it is shown.
    pub kind: Kind,
    /// Counted from 1.
    pub number: u64,
    /// Cut where it is long, control codes made visible.
    pub text: String,
}

/// Why a line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Match,
    Before,
    After,
    /// No line: what follows does not follow what was before.
    Break,
}

/// One expression, and a search for each processor.
pub(crate) struct Searching {
    own: Search,
    others: Vec<Search>,
}

impl Searching {
    /// At most `most` matches of a file are told, and one more where there is one.
    pub fn new(regex: &RegexMatcher, context: usize, most: usize) -> Self {
        let search = || Search::new(regex.clone(), context, most);
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        Self { own: search(), others: (1..threads).map(|_| search()).collect() }
    }

    /// One file.
    pub fn one(&mut self, path: &Path) -> Looked {
        self.own.look(path)
    }

    /// Many: what became of each in their order, up to the file with which there are more than enough
    /// matches, or to where `cancel` was asked. `meanwhile` runs on this thread while others search.
    pub fn many<R>(
        &mut self,
        paths: &[PathBuf],
        cancel: &Cancel,
        meanwhile: impl FnOnce() -> R,
    ) -> (Vec<Looked>, R) {
        let next = AtomicUsize::new(0);
        let part = |search: &mut Search| search.part(paths, &next, cancel);
        let others = if paths.len() < FEW { &mut [] } else { self.others.as_mut_slice() };
        let mut all: Vec<Option<Looked>> = paths.iter().map(|_| None).collect();
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

/// What one thread searches with.
struct Search {
    searcher: Searcher,
    regex: RegexMatcher,
    most: usize,
    buffer: Vec<u8>,
}

impl Search {
    fn new(regex: RegexMatcher, context: usize, most: usize) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .heap_limit(Some(LINE_BYTES))
            .build();
        Self { searcher, regex, most, buffer: Vec::new() }
    }

    /// Searches what no other thread has taken.
    fn part(
        &mut self,
        paths: &[PathBuf],
        next: &AtomicUsize,
        cancel: &Cancel,
    ) -> Vec<(usize, Looked)> {
        let mut all = Vec::new();
        let mut matches = 0;
        while !cancel.asked() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(at) else { break };
            let looked = self.look(path);
            matches += looked.lines.iter().filter(|line| line.kind == Kind::Match).count();
            all.push((at, looked));
            if matches > self.most {
                // Whatever lies before has been taken by somebody, and nothing behind it is needed.
                next.store(paths.len(), Ordering::Relaxed);
                break;
            }
        }
        all
    }

    fn look(&mut self, path: &Path) -> Looked {
        let opened = open::beneath(AT_FDCWD, path, OFlag::O_RDONLY, Mode::empty());
        let file = match opened {
            Ok(fd) => File::from(fd),
            Err(errno) => return Looked { meta: None, lines: Vec::new(), end: Err(errno.into()) },
        };
        let meta = file.metadata().ok();
        let mut gathered = Gathered { lines: Vec::new(), matches: 0, most: self.most };
        let size = meta.as_ref().map(Metadata::len);
        let end = self.search(file, size, &mut gathered);
        Looked { meta, lines: gathered.lines, end }
    }

    fn search(
        &mut self,
        mut file: File,
        size: Option<u64>,
        gathered: &mut Gathered,
    ) -> io::Result<Text> {
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
        if memchr::memchr(0, &start[..filled.min(kinds::SNIFFED)]).is_some() {
            return Ok(Text::Binary);
        }
        if whole {
            self.searcher.search_slice(&self.regex, start, gathered)?;
        } else {
            file.rewind()?;
            self.searcher.search_file(&self.regex, &file, gathered)?;
        }
        Ok(Text::Searched)
    }
}

/// The lines of one file.
struct Gathered {
    lines: Vec<Line>,
    matches: usize,
    most: usize,
}

impl Gathered {
    fn line(&mut self, kind: Kind, number: Option<u64>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = cut_line(text.trim_end_matches(['\n', '\r']), LINE_CHARS, 0);
        self.lines.push(Line { kind, number: number.unwrap_or_default(), text });
    }
}

impl Sink for &mut Gathered {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        self.line(Kind::Match, found.line_number(), found.bytes());
        Ok(self.matches <= self.most)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let kind = match context.kind() {
            SinkContextKind::Before => Kind::Before,
            SinkContextKind::After | SinkContextKind::Other => Kind::After,
        };
        self.line(kind, context.line_number(), context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.lines.push(Line { kind: Kind::Break, number: 0, text: String::new() });
        Ok(true)
    }
}
