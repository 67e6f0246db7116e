//! `grep`: lines of files by a regular expression, on ripgrep's own engine.

use super::glob::matcher;
use super::ls::here;
use crate::answer::Answer;
use crate::arguments::Facts;
use crate::discovery::{Depth, Walk};
use crate::failure::{Code, Failure};
use crate::kinds;
use crate::lines::cut_line;
use crate::open;
use crate::site::{Site, Target};
use crate::spec::{Alias, Lasting, Tool};
use crate::trail::Trail;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use protocol::call::Effect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

/// The search ends after so many matches.
const MATCHES: usize = 200;
/// Most characters of a line that are shown; the line can be read in full.
const LINE_CHARS: usize = 500;
/// Longest line that is searched: the engine holds a line in memory.
const LINE_BYTES: usize = 32 * 1024 * 1024;
/// Most bytes that a compiled expression may take.
const REGEX_BYTES: usize = 10 * 1024 * 1024;

pub(super) struct Grep;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Regular expression in the syntax of Rust's regex crate, matched line by line.
    pattern: String,
    /// The file or directory to search.
    #[serde(default = "here")]
    path: String,
    /// Search only files that match this pattern, written as in a .gitignore, for example `*.rs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include: Option<String>,
    /// Take upper and lower case as the same.
    #[serde(default)]
    case_insensitive: bool,
    /// Lines to show before and after each match.
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: u32,
}

impl Tool for Grep {
    type Input = Input;
    const NAME: &'static str = "grep";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const DESCRIPTION: &'static str = "Search the text of files by a regular expression. Matches come \
        as path:line:text, lines of context as path-line-text. Ignored and binary files are left out.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("search_files"), Alias::plain("file-search"), Alias::plain("search")];

    const LASTING: Lasting = Lasting::WhileUnchanged;

    fn facts(input: &Input) -> Facts {
        Facts { paths: vec![input.path.clone()], ..Facts::default() }
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let target = site.existing(&input.path)?;
        let kind = open::kind(&target)?;
        let mut search = Search::new(regex(&input)?, input.context as usize);
        let mut notes = Vec::new();
        if kind.is_dir() {
            notes = search.beneath(&target, input.include.as_deref(), site)?;
        } else {
            open::refuse_other_kinds(&target.named, kind)?;
            search.alone(&target, site)?;
        }
        site.account.trail.join(std::mem::take(&mut search.trail));
        Ok(search.answer(notes, &target))
    }
}

/// The expression, or an error that names the place in it.
fn regex(input: &Input) -> Result<RegexMatcher, Failure> {
    RegexMatcherBuilder::new()
        .case_insensitive(input.case_insensitive)
        .line_terminator(Some(b'\n'))
        .size_limit(REGEX_BYTES)
        .build(&input.pattern)
        .map_err(|error| {
            let place = position(&input.pattern).map_or(String::new(), |at| format!(" at character {at}"));
            Failure::new(
                Code::InvalidPattern,
                format!("the pattern is no regular expression{place}: {error}"),
                "Quote special signs with \\ to search for them as they are; \\n cannot match, lines are searched one by one.",
            )
        })
}

/// Where in the pattern the parser stopped, counted in characters from 1.
fn position(pattern: &str) -> Option<usize> {
    let offset = match regex_syntax::Parser::new().parse(pattern) {
        Err(regex_syntax::Error::Parse(error)) => error.span().start.offset,
        Err(regex_syntax::Error::Translate(error)) => error.span().start.offset,
        Ok(_) | Err(_) => return None,
    };
    pattern.get(..offset).map(|before| before.chars().count() + 1)
}

/// A search on its way through files.
struct Search {
    searcher: Searcher,
    regex: RegexMatcher,
    found: Found,
    searched: usize,
    unread: Vec<String>,
    trail: Trail,
}

/// What became of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    Searched,
    Binary,
}

impl Search {
    fn new(regex: RegexMatcher, context: usize) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .heap_limit(Some(LINE_BYTES))
            .build();
        let found = Found { with_context: context > 0, ..Found::default() };
        let (unread, trail) = (Vec::new(), Trail::default());
        Self { searcher, regex, found, searched: 0, unread, trail }
    }

    /// Searches a file that the call names itself.
    fn alone(&mut self, target: &Target, site: &Site<'_>) -> Result<(), Failure> {
        match self.one(&target.real, site) {
            Ok(Looked::Searched) => Ok(()),
            Ok(Looked::Binary) => Err(Failure::new(
                Code::Binary,
                format!("{:?} is a binary file", target.named),
                "Only text can be searched.",
            )),
            Err(error) => Err(Failure::io("search", &target.named, error)),
        }
    }

    /// Searches what lies under a directory; the answers are the notes of the walk.
    fn beneath(
        &mut self,
        target: &Target,
        include: Option<&str>,
        site: &Site<'_>,
    ) -> Result<Vec<String>, Failure> {
        super::ls::directory(&target.real, &target.named)?;
        let include = include.map(|pattern| matcher(&target.real, pattern)).transpose()?;
        let wanted = |path: &Path| {
            include
                .as_ref()
                .is_none_or(|only| only.matched_path_or_any_parents(path, false).is_ignore())
        };
        let mut walk = Walk::new(site.place, &target.real, Depth::All);
        for file in &mut walk {
            site.go_on()?;
            if !file.kind.is_file() || !wanted(&file.path) {
                continue;
            }
            if let Err(error) = self.one(&file.path, site) {
                self.trail.lose();
                self.unread.push(format!("{} ({error})", self.found.name));
            }
            if self.found.full {
                break;
            }
        }
        let (notes, trail) = walk.end();
        self.trail.join(trail);
        Ok(notes)
    }

    fn one(&mut self, path: &Path, site: &Site<'_>) -> io::Result<Looked> {
        self.found.name = site.shown(path);
        self.found.new_file = true;
        let flags = nix::fcntl::OFlag::O_RDONLY;
        let fd = open::beneath(nix::fcntl::AT_FDCWD, path, flags, nix::sys::stat::Mode::empty())?;
        let mut file = File::from(fd);
        match file.metadata() {
            Ok(meta) => self.trail.is(path, &meta),
            Err(_) => self.trail.lose(),
        }
        let mut start = Vec::with_capacity(kinds::SNIFFED);
        (&file).take(kinds::SNIFFED as u64).read_to_end(&mut start)?;
        if start.contains(&0) {
            return Ok(Looked::Binary);
        }
        file.rewind()?;
        self.searcher.search_file(&self.regex, &file, &mut self.found)?;
        self.searched += 1;
        Ok(Looked::Searched)
    }

    fn answer(self, notes: Vec<String>, target: &Target) -> Answer {
        let Self { found, searched, unread, .. } = self;
        let summary = format!("{} matches in {searched} files", found.matches);
        let none = found.matches == 0;
        let body = if none { format!("no match in {searched} files") } else { found.body };
        let mut answer = Answer::done(body, summary, vec![Effect::Read(target.recorded())]);
        answer.footer = notes;
        if found.full {
            answer.footer.push(format!(
                "[stopped after {MATCHES} matches; there are more, narrow the pattern, path or include]"
            ));
        }
        if let Some(first) = unread.first() {
            let count = unread.len();
            answer
                .footer
                .push(format!("[{count} files could not be searched, the first: {first}]"));
        }
        answer
    }
}

/// Gathers matches over all files.
#[derive(Default)]
struct Found {
    body: String,
    matches: usize,
    full: bool,
    name: String,
    /// Nothing of the file at hand is in the body yet.
    new_file: bool,
    with_context: bool,
}

impl Found {
    fn line(&mut self, number: Option<u64>, sign: char, bytes: &[u8]) {
        if std::mem::take(&mut self.new_file) && self.with_context && !self.body.is_empty() {
            self.body.push_str("--\n");
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let number = number.unwrap_or_default();
        let line = format!("{}{sign}{number}{sign}{}\n", self.name, cut_line(text, LINE_CHARS, 0));
        self.body.push_str(&line);
    }
}

impl Sink for &mut Found {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.matches == MATCHES {
            self.full = true;
            return Ok(false);
        }
        self.matches += 1;
        self.line(found.line_number(), ':', found.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.matches == MATCHES && *context.kind() == grep_searcher::SinkContextKind::Before {
            return Ok(true);
        }
        self.line(context.line_number(), '-', context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.with_context && self.matches < MATCHES {
            self.body.push_str("--\n");
        }
        Ok(true)
    }
}
