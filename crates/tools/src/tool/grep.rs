//! `grep`: lines of files by a regular expression, on ripgrep's own engine.

use super::glob;
use super::ls::here;
use crate::answer::Answer;
use crate::arguments::Facts;
use crate::discovery::{Depth, Found, Walk};
use crate::expression::{Case, Expression};
use crate::failure::{Code, Failure};
use crate::open;
use crate::patterns::{Exclusion, Patterns, looks_like_files};
use crate::searching::{Kind, Line, Looked, Searching, Text};
use crate::site::{Site, Target};
use crate::spec::{Alias, Lasting, Tool};
use crate::trail::Trail;
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
/// Where nothing is found, so many other files are searched for a remark, none larger than this.
const GLANCED: usize = 4_000;
const GLANCED_BYTES: u64 = 4 << 20;

pub(super) struct Grep;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Regular expression in the syntax of Rust's regex crate, matched line by line, or over several
    /// lines where it has a line break in it.
    pattern: String,
    /// The file or directory to search.
    #[serde(default = "here")]
    path: String,
    /// Search only files that match this pattern, written as in a .gitignore, for example `*.rs`; `!*.md`
    /// leaves files out.
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
    const ALIASES: &'static [Alias] = &[
        Alias::plain("search_files"),
        Alias::plain("file-search"),
        Alias::plain("search"),
        Alias::plain("search_file_content"),
        Alias::plain("grep_search"),
        Alias::plain("grep_files"),
        Alias::plain("ripgrep"),
        Alias::plain("rg"),
    ];

    const LASTING: Lasting = Lasting::WhileUnchanged;

    fn facts(input: &Input) -> Facts {
        Facts { paths: vec![input.path.clone()], ..Facts::default() }
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let target = site.existing(&input.path)?;
        let kind = open::kind(&target)?;
        let case = if input.case_insensitive { Case::Insensitive } else { Case::Sensitive };
        let expression = match Expression::new(&input.pattern, case) {
            Ok(expression) => expression,
            Err(_) if kind.is_dir() && looks_like_files(&input.pattern) => {
                let said = "the pattern is no regular expression; as a pattern of files";
                return as_files(&input, said, &target, site);
            }
            Err(failure) => return Err(failure),
        };
        let mut search = Search::new(&expression, input.context as usize);
        let mut notes = Vec::new();
        if kind.is_dir() {
            let wanted = Wanted::of(&input, &target, site)?;
            notes = search.beneath(&target, &wanted, site)?;
            if search.found.matches == 0 {
                if looks_like_files(&input.pattern) {
                    let said =
                        format!("no match in {} files; as a pattern of files", search.searched);
                    return as_files(&input, &said, &target, site);
                }
                notes.extend(search.remarks(&input, &expression, &target, &wanted, site)?);
            }
        } else {
            open::refuse_other_kinds(&target.named, kind)?;
            search.alone(&target, site)?;
            if search.found.matches == 0 {
                let mut files = vec![target.real.clone()].into_iter();
                notes.extend(in_another_case(&input, || files.next(), site)?);
            }
        }
        site.account.trail.join(std::mem::take(&mut search.trail));
        Ok(search.answer(notes, &target))
    }
}

/// The files whose names match a pattern that finds no text.
fn as_files(
    input: &Input,
    said: &str,
    target: &Target,
    site: &mut Site<'_>,
) -> Result<Answer, Failure> {
    let (names, mut notes) = glob::files(&input.pattern, &target.real, site)?;
    let body = match names.total {
        0 => format!("{said} it matches none"),
        _ => format!("{said} it matches:\n{}", names.body(site)),
    };
    notes.extend(names.left_out());
    notes.push("[this tool searches the text of files; glob finds files by name]".to_owned());
    let summary = format!("{} files match by name", names.total);
    let mut answer = Answer::done(body, summary, vec![Effect::Read(target.recorded())]);
    answer.footer = notes;
    Ok(answer)
}

/// Which files are searched.
struct Wanted(Option<Patterns>);

impl Wanted {
    fn of(input: &Input, target: &Target, site: &Site<'_>) -> Result<Self, Failure> {
        let patterns = input.include.as_deref().map(|include| {
            let case = Case::Sensitive;
            Patterns::new(site.place, &target.real, include, case, Exclusion::Taken)
        });
        Ok(Self(patterns.transpose()?))
    }

    fn has(&self, path: &Path) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.matches_within(path))
    }
}

/// The matches of a bounded second search.
struct Glance {
    lines: usize,
    /// Where the first is.
    first: String,
}

/// Searches some of the files that `next` gives, for a remark.
fn glance(
    expression: &Expression,
    mut next: impl FnMut() -> Option<PathBuf>,
    site: &Site<'_>,
) -> Result<Option<Glance>, Failure> {
    let small = |path: &PathBuf| {
        path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= GLANCED_BYTES)
    };
    let files: Vec<PathBuf> = std::iter::from_fn(&mut next).filter(small).take(GLANCED).collect();
    let (looked, ()) = Searching::new(expression, 0, MATCHES).many(&files, site.cancel, || ());
    site.go_on()?;
    let matches = files.iter().zip(&looked).flat_map(|(path, looked)| {
        let lines = looked.lines.iter().filter(|line| line.kind == Kind::Match);
        lines.map(move |line| (path, line.number))
    });
    let mut matches = matches.peekable();
    let Some((path, line)) = matches.peek() else { return Ok(None) };
    let first = format!("{}:{line}", site.shown(path));
    Ok(Some(Glance { lines: matches.count(), first }))
}

/// The remark about lines that match in another case.
fn in_another_case(
    input: &Input,
    next: impl FnMut() -> Option<PathBuf>,
    site: &mut Site<'_>,
) -> Result<Option<String>, Failure> {
    if input.case_insensitive {
        return Ok(None);
    }
    let Ok(expression) = Expression::new(&input.pattern, Case::Insensitive) else {
        return Ok(None);
    };
    let found = glance(&expression, next, site)?;
    Ok(found.map(|Glance { lines, first }| {
        site.account.trail.lose();
        format!("[{lines} lines match with case_insensitive = true, the first: {first}]")
    }))
}

/// A search on its way through files.
struct Search {
    searching: Searching,
    found: Shown,
    searched: usize,
    /// Files that are no text, and the first of them.
    binary: usize,
    first_binary: Option<String>,
    unread: Vec<String>,
    trail: Trail,
}

impl Search {
    fn new(expression: &Expression, context: usize) -> Self {
        let searching = Searching::new(expression, context, MATCHES);
        let found = Shown { with_context: context > 0, ..Shown::default() };
        let (unread, trail) = (Vec::new(), Trail::default());
        Self { searching, found, searched: 0, binary: 0, first_binary: None, unread, trail }
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
        wanted: &Wanted,
        site: &Site<'_>,
    ) -> Result<Vec<String>, Failure> {
        super::ls::directory(&target.real, &target.named)?;
        let mut walk = Walk::new(site.place, &target.real, Depth::All);
        let mut files = || -> Vec<PathBuf> {
            let mut files = Vec::new();
            while files.len() < AT_ONCE && !site.cancel.asked() {
                match walk.next() {
                    None => break,
                    Some(Found { path, kind }) if kind.is_file() && wanted.has(path) => {
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
        match looked.end {
            Ok(Text::Searched) => self.searched += 1,
            Ok(Text::Binary) => {
                self.binary += 1;
                self.first_binary.get_or_insert_with(|| site.shown(path));
            }
            Err(_) => {}
        }
        looked.end
    }

    /// Remarks for a search without a match: binary files, the include, another case, ignored files.
    fn remarks(
        &mut self,
        input: &Input,
        expression: &Expression,
        target: &Target,
        wanted: &Wanted,
        site: &mut Site<'_>,
    ) -> Result<Vec<String>, Failure> {
        let mut remarks = Vec::new();
        if let Some(first) = &self.first_binary {
            let count = self.binary;
            remarks.push(format!("[{count} binary files were not searched, the first: {first}]"));
        }
        let place = site.place;
        if let Some(include) = &input.include
            && self.searched + self.binary == 0
        {
            let mut walk = Walk::new(place, &target.real, Depth::All);
            let mut files = 0;
            while files < GLANCED
                && let Some(found) = walk.next()
            {
                files += usize::from(found.kind.is_file());
            }
            remarks.push(format!(
                "[no file matches include {include:?}; without it there are {files}]"
            ));
        }
        let mut walk = Walk::new(place, &target.real, Depth::All);
        remarks.extend(in_another_case(input, || next_file(&mut walk, wanted), site)?);
        let mut walk = Walk::through_ignored(place, &target.real, Depth::All);
        let ignored = glance(expression, || next_file(&mut walk, wanted), site)?;
        if let Some(Glance { lines, first }) = ignored {
            site.account.trail.lose();
            remarks.push(format!(
                "[{lines} lines of files that ignore rules leave out match, the first: {first}; name it as \
                 path to search it]"
            ));
        }
        Ok(remarks)
    }

    fn answer(self, notes: Vec<String>, target: &Target) -> Answer {
        let Self { found, searched, unread, .. } = self;
        let summary = format!("{} matches in {searched} files", found.matches);
        let none = found.matches == 0;
        let body = if none { format!("no match in {searched} files") } else { found.body };
        let mut answer = Answer::done(body, summary, vec![Effect::Read(target.recorded())]);
        answer.footer = notes;
        if found.is_cut {
            answer.footer.push(
                "[of a line that is cut read shows more: offset = its number, limit = 1, column = where to \
                 begin]"
                    .to_owned(),
            );
        }
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

fn next_file(walk: &mut Walk, wanted: &Wanted) -> Option<PathBuf> {
    loop {
        let Found { path, kind } = walk.next()?;
        if kind.is_file() && wanted.has(path) {
            return Some(path.to_owned());
        }
    }
}

/// Gathers matches over all files, in their order.
#[derive(Default)]
struct Shown {
    body: String,
    matches: usize,
    full: bool,
    /// Whether a part of a line is left out.
    is_cut: bool,
    with_context: bool,
}

impl Shown {
    fn file(&mut self, name: &str, lines: &[Line]) {
        let mut first = true;
        for Line { kind, number, text, is_cut } in lines {
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
                Kind::More => ':',
                Kind::Before | Kind::After => '-',
                Kind::Break => {
                    self.body.push_str("--\n");
                    continue;
                }
            };
            self.is_cut |= is_cut;
            if std::mem::take(&mut first) && self.with_context && !self.body.is_empty() {
                self.body.push_str("--\n");
            }
            let _ = writeln!(self.body, "{name}{sign}{number}{sign}{text}");
        }
    }
}
