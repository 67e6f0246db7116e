//! `scan`: searches for code by its syntax tree.

use crate::engine::error::EngineError;
use crate::engine::syntax::{CodeMatch, SyntaxEngine, SyntaxSearch};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::read_set::ReadSet;
use crate::files::target_path::TargetPath;
use crate::files::{safe_open, source_text};
use crate::search::walk::{DirWalk, WalkDepth};
use crate::spec::Tool;
use crate::text::lines::cut_line;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use protocol::hidden::line_for_model;
use std::collections::BTreeMap;
use std::path::Path;
use tool_specs::ToolAnswer;
use tool_specs::tool::scan::{Input, ScanTool};

/// The search ends after so many files of a language it reads.
const FILES: usize = 500;
/// Limit for the characters of a matched line, and of a metavariable's value.
const LINE_CHARS: usize = 300;
const CAPTURE_CHARS: usize = 120;
/// Most patterns of one call.
const PATTERNS: usize = 20;

impl Tool for ScanTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let syntax = ctx.syntax()?;
        check(&input.patterns)?;
        let only = input.language.as_deref().map(|name| called(syntax, name)).transpose()?;
        let target = ctx.existing(&input.path)?;
        let kind = safe_open::kind(&target)?;
        let mut looked = ScanResults { most: input.limit, ..ScanResults::default() };
        let mut searches =
            LanguageSearches { syntax, patterns: &input.patterns, made: BTreeMap::new() };
        if kind.is_dir() {
            looked.notes = beneath(&target, only, ctx, &mut searches, &mut looked)?;
        } else {
            let language = match only.or_else(|| syntax.language_of_file(&target.real)) {
                Some(language) => language,
                None => return Err(unsupported(syntax, &format!("{:?}", target.named))),
            };
            let text = source_text::read_named(&target, &ctx.extras.read_set)?;
            let search = searches.of(language).as_ref().map_err(|misfit| misfit.clone())?;
            looked.file(&ctx.shown(&target.real), &text, search.as_ref());
        }
        searches.left_out(&mut looked)?;
        Ok(looked.answer(&target))
    }
}

fn check(patterns: &[String]) -> Result<(), ToolFailure> {
    let invalid = |text: String| Err(ToolFailure::new(FailureCode::InvalidArguments, text, ""));
    if patterns.is_empty() {
        return invalid("patterns is empty".to_owned());
    }
    if patterns.len() > PATTERNS {
        return invalid(format!("{} patterns, but at most {PATTERNS} are allowed", patterns.len()));
    }
    Ok(())
}

pub(super) fn unsupported(syntax: &dyn SyntaxEngine, what: &str) -> ToolFailure {
    ToolFailure::new(
        FailureCode::UnsupportedLanguage,
        format!("{what} is not in a supported language"),
        format!("Supported: {}. For other text use grep and edit.", syntax.languages().join(", ")),
    )
}

fn called(syntax: &dyn SyntaxEngine, name: &str) -> Result<&'static str, ToolFailure> {
    syntax.language_named(name).ok_or_else(|| unsupported(syntax, &format!("{name:?}")))
}

/// Searches the files below a directory; returns the notes of the walk.
fn beneath(
    target: &TargetPath,
    only: Option<&'static str>,
    ctx: &ToolContext<'_>,
    searches: &mut LanguageSearches<'_>,
    looked: &mut ScanResults,
) -> Result<Vec<String>, ToolFailure> {
    super::ls::directory(&target.real, &target.named)?;
    let mut walk = DirWalk::new(ctx, &target.real, WalkDepth::All);
    while let Some(found) = walk.next() {
        ctx.check_cancelled()?;
        let Some(language) = searches.syntax.language_of_file(found.path) else { continue };
        if !found.kind.is_file() || only.is_some_and(|only| only != language) {
            continue;
        }
        if let Some(why) = ctx.unreadable(target, found.path) {
            looked.denied.push(why);
            continue;
        }
        // A pattern need not be code of every language; that it is of none is an error at the end.
        let Ok(search) = searches.of(language) else { continue };
        if looked.files == FILES || looked.full() {
            looked.cut = true;
            break;
        }
        match read(found.path, &ctx.extras.read_set) {
            Ok(text) => looked.file(&ctx.shown(found.path), &text, search.as_ref()),
            Err(source_text::SourceTextError::Binary(_)) => {}
            Err(why) => {
                // Its stamp is recorded, but its content is not in the result.
                ctx.extras.read_set.mark_incomplete();
                let shown = ctx.shown(found.path);
                looked.unread.push(why.failure(&shown).message);
            }
        }
    }
    Ok(walk.finish())
}

fn read(path: &Path, read_set: &ReadSet) -> Result<String, source_text::SourceTextError> {
    let opened = safe_open::open_to_read(path, read_set);
    let (file, meta) = opened.map_err(source_text::SourceTextError::Io)?;
    source_text::read_text(&file, meta.len())
}

/// The patterns made ready, once for each language that is met.
struct LanguageSearches<'a> {
    syntax: &'a dyn SyntaxEngine,
    patterns: &'a [String],
    made: BTreeMap<&'static str, Result<Box<dyn SyntaxSearch>, EngineError>>,
}

impl LanguageSearches<'_> {
    fn of(&mut self, language: &'static str) -> &Result<Box<dyn SyntaxSearch>, EngineError> {
        self.made.entry(language).or_insert_with(|| self.syntax.search(language, self.patterns))
    }

    /// Says for which languages the patterns are no code, or fails where that is all there were.
    fn left_out(self, looked: &mut ScanResults) -> Result<(), ToolFailure> {
        let some = self.made.values().any(Result::is_ok);
        let mut left_out = Vec::new();
        for (language, made) in self.made {
            match made {
                Ok(search) if looked.matches == 0 => {
                    looked.notes.extend(search.incomplete_patterns().iter().map(|pattern| {
                        format!(
                            "[{pattern:?} is not complete {language} code, which may be the \
                                reason]"
                        )
                    }));
                }
                Ok(_) => {}
                Err(misfit) if !some => return Err(misfit.into()),
                Err(_) => left_out.push(language),
            }
        }
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            looked.notes.push(format!(
                "[not searched, because a pattern is not valid code in these languages: \
                    {names}]"
            ));
        }
        Ok(())
    }
}

/// The results of searching files.
#[derive(Default)]
struct ScanResults {
    body: String,
    matches: usize,
    most: usize,
    files: usize,
    /// There may be more files after the last one searched.
    cut: bool,
    unread: Vec<String>,
    /// The rules that kept files from being searched.
    denied: Vec<String>,
    notes: Vec<String>,
}

impl ScanResults {
    fn full(&self) -> bool {
        self.matches > self.most
    }

    fn file(&mut self, shown: &str, text: &str, search: &dyn SyntaxSearch) {
        self.files += 1;
        // One match above the limit shows that there are more.
        for found in search.find(text, self.most + 1 - self.matches) {
            self.matches += 1;
            if !self.full() {
                self.body.push_str(&line(shown, &found));
            }
        }
    }

    fn answer(self, target: &TargetPath) -> ToolAnswer {
        let full = self.full();
        let shown = self.matches.min(self.most);
        let summary = format!("{shown} matches in {} files", self.files);
        let body = match (self.matches, self.files) {
            (0, 0) => "no file in a supported language".to_owned(),
            (0, files) => format!("no match in {files} files"),
            (_, _) => self.body,
        };
        let mut answer = ToolAnswer::done(body, summary, vec![FileEffect::Read(target.recorded())]);
        answer.footer = self.notes;
        answer.footer.extend(super::grep::not_searched(&self.denied));
        if full {
            let most = self.most;
            answer.footer.push(format!(
                "[stopped after {most} matches; there are more, raise limit or narrow the path]"
            ));
        } else if self.cut {
            answer.footer.push(format!(
                "[stopped after {FILES} files; there are more, narrow the path or the language]"
            ));
        }
        if let Some(first) = self.unread.first() {
            let count = self.unread.len();
            answer
                .footer
                .push(format!("[{count} files could not be searched, the first: {first}]"));
        }
        answer
    }
}

/// `path:line:[where] code`, and a line for each metavariable.
fn line(shown: &str, found: &CodeMatch) -> String {
    let mut lines = found.text.lines();
    let first = line_for_model(lines.next().unwrap_or_default()).into_owned();
    let more = match lines.count() {
        0 => String::new(),
        more => format!(" [+{more} lines]"),
    };
    let symbol = match found.symbol.as_str() {
        "" => String::new(),
        symbol => format!("[{}] ", line_for_model(symbol)),
    };
    let mut text =
        format!("{shown}:{}:{symbol}{}{more}\n", found.line, cut_line(&first, LINE_CHARS, 0));
    for (name, value) in &found.captures {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str(&format!("    ${name} = {}\n", cut_line(&value, CAPTURE_CHARS, 0)));
    }
    text
}
