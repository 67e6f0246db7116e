//! `grep`: lines of files by a regular expression, on ripgrep's own engine.

use super::glob;
use crate::failure::{FailureCode, ToolFailure};
use crate::files::read_set::ReadSet;
use crate::files::safe_open;
use crate::files::target_path::TargetPath;
use crate::search::expression::{CaseMatching, Expression};
use crate::search::file_patterns::{Exclusion, FilePatterns, looks_like_files};
use crate::search::line_search::{
    FileMatches, LineKind, ParallelSearch, ResultLine, SearchOutcome,
};
use crate::search::walk::{DirWalk, WalkDepth, WalkEntry};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use tool_specs::ToolAnswer;
use tool_specs::tool::grep::{GrepTool, Input};

/// The search ends after so many matches.
const MATCHES: usize = 200;
/// So many files are found while as many before them are searched.
const AT_ONCE: usize = 1024;
/// Where nothing is found, so many other files are searched for a remark, none larger than this.
const GLANCED: usize = 4_000;
const GLANCED_BYTES: u64 = 4 << 20;

impl Tool for GrepTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let target = ctx.existing(&input.path)?;
        let kind = safe_open::kind(&target)?;
        if input.names_first
            && input.include.is_none()
            && kind.is_dir()
            && let Some(answer) = by_name(&input, &target, ctx)
        {
            return Ok(answer);
        }
        let case = if input.case_insensitive {
            CaseMatching::Insensitive
        } else {
            CaseMatching::Sensitive
        };
        let expression = match Expression::new(&input.pattern, case) {
            Ok(expression) => expression,
            Err(_) if kind.is_dir() && looks_like_files(&input.pattern) => {
                let said = "the pattern is not a regular expression; as a file name pattern";
                return as_files(&input, said, &target, ctx);
            }
            Err(failure) => return Err(failure),
        };
        let mut search = GrepRun::new(&expression, input.context as usize, ctx);
        let mut notes = Vec::new();
        if kind.is_dir() {
            let wanted = FileFilter::of(&input, &target, ctx)?;
            notes = search.beneath(&target, &wanted, ctx)?;
            if search.found.matches == 0 {
                if looks_like_files(&input.pattern) {
                    let said =
                        format!("no match in {} files; as a file name pattern", search.searched);
                    return as_files(&input, &said, &target, ctx);
                }
                notes.extend(search.remarks(&input, &expression, &target, &wanted, ctx)?);
            }
        } else {
            safe_open::refuse_other_kinds(&target.named, kind)?;
            search.alone(&target, ctx)?;
            if search.found.matches == 0 {
                let mut files = vec![target.real.clone()].into_iter();
                notes.extend(in_another_case(&input, |_| files.next(), ctx)?);
            }
        }
        Ok(search.answer(notes, &target))
    }
}

/// The files whose names match the pattern; none where no name does, or where it is no pattern of names.
fn by_name(input: &Input, target: &TargetPath, ctx: &mut ToolContext<'_>) -> Option<ToolAnswer> {
    let found = glob::matching(&input.pattern, &target.real, ctx).ok()?;
    (found.0.total > 0).then(|| listed("as a file name pattern", found, target, ctx))
}

/// The files whose names match a pattern that finds no text.
fn as_files(
    input: &Input,
    said: &str,
    target: &TargetPath,
    ctx: &mut ToolContext<'_>,
) -> Result<ToolAnswer, ToolFailure> {
    let found = glob::files(&input.pattern, &target.real, ctx)?;
    Ok(listed(said, found, target, ctx))
}

fn listed(
    said: &str,
    (names, mut notes): (glob::FoundFiles, Vec<String>),
    target: &TargetPath,
    ctx: &ToolContext<'_>,
) -> ToolAnswer {
    let body = match names.total {
        0 => format!("{said} it matches none"),
        _ => format!("{said} it matches:\n{}", names.body(ctx)),
    };
    notes.extend(names.left_out());
    notes.push("[grep searches the text of files; glob finds files by name]".to_owned());
    let summary = format!("{} files match by name", names.total);
    let mut answer = ToolAnswer::done(body, summary, vec![FileEffect::Read(target.recorded())]);
    answer.footer = notes;
    answer
}

/// Which files are searched.
struct FileFilter(Option<FilePatterns>);

impl FileFilter {
    fn of(input: &Input, target: &TargetPath, ctx: &ToolContext<'_>) -> Result<Self, ToolFailure> {
        let patterns = input.include.as_deref().map(|include| {
            let case = CaseMatching::Sensitive;
            FilePatterns::new(ctx.scope, &target.real, include, case, Exclusion::Taken)
        });
        Ok(Self(patterns.transpose()?))
    }

    fn has(&self, path: &Path) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.matches_within(path))
    }
}

/// The matches of a bounded second search.
struct SampleSearch {
    lines: usize,
    /// Where the first is.
    first: String,
}

/// Searches some of the files that `next` gives, for a remark.
fn sample_search(
    expression: &Expression,
    mut next: impl FnMut() -> Option<PathBuf>,
    ctx: &ToolContext<'_>,
) -> Result<Option<SampleSearch>, ToolFailure> {
    let small = |path: &PathBuf| {
        path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= GLANCED_BYTES)
    };
    let files: Vec<PathBuf> = std::iter::from_fn(&mut next).filter(small).take(GLANCED).collect();
    let (looked, ()) = ParallelSearch::new(expression, 0, MATCHES, &ReadSet::unrecorded()).many(
        &files,
        ctx.cancel,
        || (),
    );
    ctx.check_cancelled()?;
    let matches = files.iter().zip(&looked).flat_map(|(path, looked)| {
        let lines = looked.lines.iter().filter(|line| line.kind == LineKind::Match);
        lines.map(move |line| (path, line.number))
    });
    let mut matches = matches.peekable();
    let Some((path, line)) = matches.peek() else { return Ok(None) };
    let first = format!("{}:{line}", ctx.shown(path));
    Ok(Some(SampleSearch { lines: matches.count(), first }))
}

/// The remark about lines that match in another case.
fn in_another_case(
    input: &Input,
    mut next: impl FnMut(&ToolContext<'_>) -> Option<PathBuf>,
    ctx: &mut ToolContext<'_>,
) -> Result<Option<String>, ToolFailure> {
    if input.case_insensitive {
        return Ok(None);
    }
    let Ok(expression) = Expression::new(&input.pattern, CaseMatching::Insensitive) else {
        return Ok(None);
    };
    let found = sample_search(&expression, || next(ctx), ctx)?;
    Ok(found.map(|SampleSearch { lines, first }| {
        ctx.extras.read_set.mark_incomplete();
        format!("[{lines} lines match with case_insensitive = true, the first: {first}]")
    }))
}

/// A search on its way through files.
struct GrepRun {
    searching: ParallelSearch,
    found: MatchList,
    searched: usize,
    /// Number of binary files, and the first of them.
    binary: usize,
    first_binary: Option<String>,
    unread: Vec<String>,
    /// The rules that kept files from being searched.
    denied: Vec<String>,
}

impl GrepRun {
    fn new(expression: &Expression, context: usize, ctx: &ToolContext<'_>) -> Self {
        let read_set = &ctx.extras.read_set;
        let searching = ParallelSearch::new(expression, context, MATCHES, read_set);
        let found = MatchList { with_context: context > 0, ..MatchList::default() };
        let (unread, denied) = (Vec::new(), Vec::new());
        Self { searching, found, searched: 0, binary: 0, first_binary: None, unread, denied }
    }

    /// Searches a file that the call names itself.
    fn alone(&mut self, target: &TargetPath, ctx: &ToolContext<'_>) -> Result<(), ToolFailure> {
        let looked = self.searching.one(&target.real);
        match self.take(&target.real, looked, ctx) {
            Ok(SearchOutcome::Searched) => Ok(()),
            Ok(SearchOutcome::Binary) => Err(ToolFailure::new(
                FailureCode::Binary,
                format!("{:?} is a binary file", target.named),
                "Only text files can be searched.",
            )),
            Err(error) => Err(ToolFailure::io("search", &target.named, error)),
        }
    }

    /// Searches the files below a directory; returns the notes of the walk.
    fn beneath(
        &mut self,
        target: &TargetPath,
        wanted: &FileFilter,
        ctx: &ToolContext<'_>,
    ) -> Result<Vec<String>, ToolFailure> {
        super::ls::directory(&target.real, &target.named)?;
        let mut walk = DirWalk::new(ctx, &target.real, WalkDepth::All);
        let mut denied = Vec::new();
        let mut files = || -> Vec<PathBuf> {
            let mut files = Vec::new();
            while files.len() < AT_ONCE && !ctx.cancel.is_requested() {
                match walk.next() {
                    None => break,
                    Some(WalkEntry { path, kind }) if kind.is_file() && wanted.has(path) => {
                        match ctx.unreadable(target, path) {
                            None => files.push(path.to_owned()),
                            Some(why) => denied.push(why),
                        }
                    }
                    Some(_) => {}
                }
            }
            files
        };
        let mut these = files();
        while !these.is_empty() && !self.found.full {
            let (looked, next) = self.searching.many(&these, ctx.cancel, &mut files);
            ctx.check_cancelled()?;
            for (path, looked) in these.iter().zip(looked) {
                if let Err(error) = self.take(path, looked, ctx) {
                    self.unread.push(format!("{} ({error})", ctx.shown(path)));
                }
                if self.found.full {
                    break;
                }
            }
            these = next;
        }
        ctx.check_cancelled()?;
        self.denied = denied;
        Ok(walk.finish())
    }

    fn take(
        &mut self,
        path: &Path,
        looked: FileMatches,
        ctx: &ToolContext<'_>,
    ) -> io::Result<SearchOutcome> {
        if !looked.lines.is_empty() {
            self.found.file(&ctx.shown(path), &looked.lines);
        }
        match looked.end {
            Ok(SearchOutcome::Searched) => self.searched += 1,
            Ok(SearchOutcome::Binary) => {
                self.binary += 1;
                self.first_binary.get_or_insert_with(|| ctx.shown(path));
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
        target: &TargetPath,
        wanted: &FileFilter,
        ctx: &mut ToolContext<'_>,
    ) -> Result<Vec<String>, ToolFailure> {
        let mut remarks = Vec::new();
        if let Some(first) = &self.first_binary {
            let count = self.binary;
            remarks.push(format!("[{count} binary files were not searched, the first: {first}]"));
        }
        if let Some(include) = &input.include
            && self.searched + self.binary == 0
        {
            let mut walk = DirWalk::new(ctx, &target.real, WalkDepth::All);
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
        let mut walk = DirWalk::new(ctx, &target.real, WalkDepth::All);
        let next = |walk: &mut DirWalk, ctx: &ToolContext<'_>| loop {
            let path = next_file(walk, wanted)?;
            if ctx.unreadable(target, &path).is_none() {
                return Some(path);
            }
        };
        remarks.extend(in_another_case(input, |ctx| next(&mut walk, ctx), ctx)?);
        let mut walk = DirWalk::through_ignored(ctx, &target.real, WalkDepth::All);
        let ignored = sample_search(expression, || next(&mut walk, ctx), ctx)?;
        if let Some(SampleSearch { lines, first }) = ignored {
            ctx.extras.read_set.mark_incomplete();
            remarks.push(format!(
                "[{lines} lines in ignored files match, the first: {first}; give its path \
                    to search it]"
            ));
        }
        Ok(remarks)
    }

    fn answer(self, notes: Vec<String>, target: &TargetPath) -> ToolAnswer {
        let Self { found, searched, unread, denied, .. } = self;
        let summary = format!("{} matches in {searched} files", found.matches);
        let none = found.matches == 0;
        let body = if none { format!("no match in {searched} files") } else { found.body };
        let mut answer = ToolAnswer::done(body, summary, vec![FileEffect::Read(target.recorded())]);
        answer.footer = notes;
        if found.is_cut {
            answer.footer.push(
                "[to see more of a cut line, use read with offset = its number, limit = 1, \
                    column = where to begin]"
                    .to_owned(),
            );
        }
        if found.full {
            answer.footer.push(format!(
                "[stopped after {MATCHES} matches; there are more, narrow the pattern, path or include]"
            ));
        }
        answer.footer.extend(not_searched(&denied));
        if let Some(first) = unread.first() {
            let count = unread.len();
            answer
                .footer
                .push(format!("[{count} files could not be searched, the first: {first}]"));
        }
        answer
    }
}

/// The note about files that rules keep from being read.
pub(super) fn not_searched(denied: &[String]) -> Option<String> {
    let first = denied.first()?;
    Some(format!("[{} files were not searched: {first}]", denied.len()))
}

fn next_file(walk: &mut DirWalk, wanted: &FileFilter) -> Option<PathBuf> {
    loop {
        let WalkEntry { path, kind } = walk.next()?;
        if kind.is_file() && wanted.has(path) {
            return Some(path.to_owned());
        }
    }
}

/// Gathers matches over all files, in their order.
#[derive(Default)]
struct MatchList {
    body: String,
    matches: usize,
    full: bool,
    /// True if a part of a line is omitted.
    is_cut: bool,
    with_context: bool,
}

impl MatchList {
    fn file(&mut self, name: &str, lines: &[ResultLine]) {
        let mut first = true;
        for ResultLine { kind, number, text, is_cut } in lines {
            let enough = self.matches == MATCHES;
            let sign = match kind {
                LineKind::Match if enough => {
                    self.full = true;
                    return;
                }
                LineKind::Before | LineKind::Break if enough => continue,
                LineKind::Match => {
                    self.matches += 1;
                    ':'
                }
                LineKind::More => ':',
                LineKind::Before | LineKind::After => '-',
                LineKind::Break => {
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
