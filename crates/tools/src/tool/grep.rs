//! `grep`: lines of files by a regular expression, on ripgrep's own engine.

use super::glob::matcher;
use super::ls::here;
use crate::answer::Answer;
use crate::arguments::Facts;
use crate::discovery::{Depth, Found, Walk};
use crate::failure::{Code, Failure};
use crate::open;
use crate::searching::{Kind, Line, Looked, Searching, Text};
use crate::site::{Site, Target};
use crate::spec::{Alias, Lasting, Tool};
use crate::trail::Trail;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use protocol::call::Effect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// The search ends after so many matches.
const MATCHES: usize = 200;
/// So many files are found while as many before them are searched.
const AT_ONCE: usize = 1024;
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
        let mut search = Search::new(&regex(&input)?, input.context as usize);
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
    searching: Searching,
    found: Shown,
    searched: usize,
    unread: Vec<String>,
    trail: Trail,
}

impl Search {
    fn new(regex: &RegexMatcher, context: usize) -> Self {
        let searching = Searching::new(regex, context, MATCHES);
        let found = Shown { with_context: context > 0, ..Shown::default() };
        Self { searching, found, searched: 0, unread: Vec::new(), trail: Trail::default() }
    }

    /// Searches a file that the call names itself.
    fn alone(&mut self, target: &Target, site: &Site<'_>) -> Result<(), Failure> {
        let looked = self.searching.one(&target.real);
        match self.take(&target.real, looked, site) {
            Ok(Text::Searched) => Ok(()),
            Ok(Text::Binary) => Err(Failure::new(
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
        let mut files = || -> Vec<PathBuf> {
            let mut files = Vec::new();
            while files.len() < AT_ONCE && !site.cancel.asked() {
                match walk.next() {
                    None => break,
                    Some(Found { path, kind }) if kind.is_file() && wanted(path) => {
                        files.push(path.to_owned());
                    }
                    Some(_) => {}
                }
            }
            files
        };
        let mut these = files();
        while !these.is_empty() && !self.found.full {
            let (looked, next) = self.searching.many(&these, site.cancel, &mut files);
            site.go_on()?;
            for (path, looked) in these.iter().zip(looked) {
                if let Err(error) = self.take(path, looked, site) {
                    self.trail.lose();
                    self.unread.push(format!("{} ({error})", site.shown(path)));
                }
                if self.found.full {
                    break;
                }
            }
            these = next;
        }
        site.go_on()?;
        let (notes, trail) = walk.end();
        self.trail.join(trail);
        Ok(notes)
    }

    fn take(&mut self, path: &Path, looked: Looked, site: &Site<'_>) -> io::Result<Text> {
        match &looked.meta {
            Some(meta) => self.trail.is(path, meta),
            None => self.trail.lose(),
        }
        if !looked.lines.is_empty() {
            self.found.file(&site.shown(path), &looked.lines);
        }
        if let Ok(Text::Searched) = looked.end {
            self.searched += 1;
        }
        looked.end
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

/// Gathers matches over all files, in their order.
#[derive(Default)]
struct Shown {
    body: String,
    matches: usize,
    full: bool,
    with_context: bool,
}

impl Shown {
    fn file(&mut self, name: &str, lines: &[Line]) {
        let mut first = true;
        for Line { kind, number, text } in lines {
            let enough = self.matches == MATCHES;
            let sign = match kind {
                Kind::Match if enough => {
                    self.full = true;
                    return;
                }
                Kind::Before | Kind::Break if enough => continue,
                Kind::Match => {
                    self.matches += 1;
                    ':'
                }
                Kind::Before | Kind::After => '-',
                Kind::Break => {
                    self.body.push_str("--\n");
                    continue;
                }
            };
            if std::mem::take(&mut first) && self.with_context && !self.body.is_empty() {
                self.body.push_str("--\n");
            }
            let _ = writeln!(self.body, "{name}{sign}{number}{sign}{text}");
        }
    }
}
