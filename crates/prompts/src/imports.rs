//! Imports of files with instructions: `@docs/style.md` in `AGENTS.md` puts the text of that file below.
//! Pure: the caller reads the files. Used by `instructions` and the doctor.

use crate::shown_files::word;
use protocol::hidden::line as shown;
use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

/// Most files between `AGENTS.md` and an imported file, with it.
const DEPTH: usize = 5;
/// Most paths that the imports of one `AGENTS.md` name.
const PATHS: usize = 50;
/// Most words that are looked up as paths.
const LOOKS: usize = 500;
/// Endings of texts. A path with one of them is meant as an import, whether the file exists or not.
const TEXTS: [&str; 2] = ["md", "txt"];

/// An imported file, as its reader found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedFile {
    /// Its path with links resolved: each file is put in once.
    pub real: PathBuf,
    /// Its path for readers.
    pub name: String,
    /// Its text, as far as there was room.
    pub text: String,
    /// How many bytes were left out.
    pub left_out: u64,
}

/// An import and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The file that names it, for readers.
    pub by: String,
    /// The line there.
    pub line: u32,
    /// The named path.
    pub path: String,
    /// The outcome.
    pub outcome: ImportOutcome,
}

/// What an import gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    /// This file, whole.
    Whole(String),
    /// This file, without so many bytes at its end.
    Cut(String, u64),
    /// Nothing, for this reason.
    Refused(String),
}

impl Display for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.by, self.line)?;
        match &self.outcome {
            ImportOutcome::Whole(name) => write!(f, "imports {name}"),
            ImportOutcome::Cut(name, bytes) => {
                write!(f, "imports {name} without its last {bytes} bytes; there is no more room")
            }
            ImportOutcome::Refused(why) => write!(f, "@{} is not imported: {why}", self.path),
        }
    }
}

/// Reads a file of which so many bytes have room. `None` if there is none.
pub(crate) type ReadImport<'a> =
    &'a mut dyn FnMut(&Path, usize) -> Result<Option<ImportedFile>, String>;

/// The text of a file with the texts of its imports below it, at most so many bytes in all, and the
/// imports in the order of the text. `file` is the importing file itself; its paths start at its
/// directory.
pub(crate) fn with_imports(
    file: &ImportedFile,
    place: &Path,
    most: usize,
    read: ReadImport<'_>,
) -> (String, Vec<Import>) {
    let mut walk = Walk {
        read,
        room: most.saturating_sub(file.text.len()),
        known: BTreeSet::from([file.real.clone()]),
        tried: BTreeSet::new(),
        named: 0,
        text: file.text.clone(),
        imports: Vec::new(),
    };
    walk.follow(file, place, 0);
    (walk.text, walk.imports)
}

struct Walk<'a> {
    read: ReadImport<'a>,
    room: usize,
    /// The files that the text has, which ends circles.
    known: BTreeSet<PathBuf>,
    tried: BTreeSet<PathBuf>,
    /// Files found, and paths that can only be meant as files.
    named: usize,
    text: String,
    imports: Vec<Import>,
}

impl Walk<'_> {
    fn follow(&mut self, by: &ImportedFile, place: &Path, depth: usize) {
        let dir = place.parent().unwrap_or(place);
        for (number, path) in import_paths(&by.text) {
            let whole = dir.join(&path);
            if self.tried.len() > LOOKS || self.named > PATHS {
                return;
            }
            if !self.tried.insert(whole.clone()) {
                continue;
            }
            match self.find(&path, &whole, depth) {
                Ok(Some(file)) => {
                    let outcome = match file.left_out {
                        0 => ImportOutcome::Whole(file.name.clone()),
                        bytes => ImportOutcome::Cut(file.name.clone(), bytes),
                    };
                    self.note(by, number, &path, outcome);
                    self.put(by, &file);
                    self.follow(&file, &whole, depth + 1);
                }
                Ok(None) => {}
                Err(why) => self.note(by, number, &path, ImportOutcome::Refused(why)),
            }
        }
    }

    /// The file to put in. `None` if the text has it, or if the word is no import.
    fn find(
        &mut self,
        path: &str,
        whole: &Path,
        depth: usize,
    ) -> Result<Option<ImportedFile>, String> {
        if path.starts_with('~') {
            return Err("it is outside the project".to_owned());
        }
        let found = (self.read)(whole, self.room)?;
        // A word that is no file may be the name of a person.
        if found.is_none() && !is_meant(path) {
            return Ok(None);
        }
        self.named += 1;
        if self.named > PATHS {
            return Err(format!("instructions import at most {PATHS} files; more are left out"));
        }
        let Some(file) = found else { return Err("there is no such file".to_owned()) };
        if self.known.contains(&file.real) {
            return Ok(None);
        }
        if depth == DEPTH {
            return Err(format!("imports are followed through at most {DEPTH} files"));
        }
        if self.room == 0 && file.left_out > 0 {
            return Err("the instructions have no more room".to_owned());
        }
        self.known.insert(file.real.clone());
        Ok(Some(file))
    }

    fn put(&mut self, by: &ImportedFile, file: &ImportedFile) {
        let text = file.text.trim();
        self.room = self.room.saturating_sub(text.len());
        if !text.is_empty() {
            let heading = format!("\n\n# {}, imported by {}\n\n", file.name, by.name);
            self.text.push_str(&heading);
            self.text.push_str(text);
        }
    }

    fn note(&mut self, by: &ImportedFile, line: u32, path: &str, outcome: ImportOutcome) {
        let path = shown(path, 200);
        self.imports.push(Import { by: by.name.clone(), line, path, outcome });
    }
}

/// True if a path can only be meant as an import: people and packages have other names.
fn is_meant(path: &str) -> bool {
    path.starts_with(['/', '.']) || is_text(Path::new(path))
}

/// True if the name is that of a text.
pub(crate) fn is_text(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| TEXTS.contains(&ending.as_str()))
}

/// The words of a Markdown text that begin with `@`, with their lines, except in code.
fn import_paths(text: &str) -> Vec<(u32, String)> {
    let mut paths = Vec::new();
    let mut fence: Option<&str> = None;
    for (line, number) in text.lines().zip(1_u32..) {
        let mark = fence_mark(line);
        match fence {
            Some(open) => {
                let closes = |mark: &str| mark.starts_with(open) && line.trim() == mark;
                if mark.is_some_and(closes) {
                    fence = None;
                }
            }
            None if mark.is_some() => fence = mark,
            None => paths.extend(paths_of(&without_code(line)).map(|path| (number, path))),
        }
    }
    paths
}

/// The three or more signs that open or close a block of code.
fn fence_mark(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let sign = line.chars().next().filter(|sign| "`~".contains(*sign))?;
    let behind = line.trim_start_matches(sign);
    let mark = &line[..line.len() - behind.len()];
    (mark.len() >= 3 && !(sign == '`' && behind.contains('`'))).then_some(mark)
}

/// A line with a backtick in the place of each code span.
fn without_code(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let behind = from.trim_start_matches('`');
        let mark = &from[..from.len() - behind.len()];
        rest = match after_span(behind, mark) {
            Some(after) => {
                plain.push('`');
                after
            }
            None => {
                plain.push_str(mark);
                behind
            }
        };
    }
    plain + rest
}

/// The text after the next run of exactly these backticks.
fn after_span<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let behind = rest[at..].trim_start_matches('`');
        if rest.len() - at - behind.len() == mark.len() {
            return Some(behind);
        }
        rest = behind;
    }
    None
}

fn paths_of(line: &str) -> impl Iterator<Item = String> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let start = rest.find(|c: char| !c.is_whitespace())?;
        let (found, behind) = word(&rest[start..]);
        rest = behind;
        Some(found)
    })
    .filter_map(|found| {
        let path = found.trim_start_matches('(').strip_prefix('@')?;
        let path = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
        (!path.is_empty()).then(|| path.to_owned())
    })
    .collect::<Vec<_>>()
    .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome for `/p/CLAUDE.md` beside these files.
    fn of(text: &str, files: &[(&str, &str)], most: usize) -> (String, Vec<String>) {
        let main = ImportedFile {
            real: "/p/CLAUDE.md".into(),
            name: "CLAUDE.md".to_owned(),
            text: text.to_owned(),
            left_out: 0,
        };
        let mut read = |path: &Path, room: usize| {
            let real = PathBuf::from(path.to_string_lossy().replace("/docs/../", "/"));
            let name = real.strip_prefix("/p").map_err(|_| "it is outside the project")?;
            let name = name.to_string_lossy().into_owned();
            let own = [("CLAUDE.md", text)];
            let found = own.iter().chain(files).find(|(known, _)| *known == name);
            let cut = |text: &str| text[..room.min(text.len())].to_owned();
            Ok(found.map(|(_, text)| ImportedFile {
                real,
                name,
                text: cut(text),
                left_out: text.len().saturating_sub(room) as u64,
            }))
        };
        let (text, imports) = with_imports(&main, Path::new("/p/CLAUDE.md"), most, &mut read);
        (text, imports.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_text_of_an_import_follows_and_its_own_imports_follow_it() {
        let files = [("docs/a.md", "A @b.md @../c.md"), ("docs/b.md", "B"), ("c.md", "C\n")];
        let (text, notes) = of("See (@docs/a.md), @c.md.", &files, 1000);
        let wanted = "See (@docs/a.md), @c.md.\n\n# docs/a.md, imported by CLAUDE.md\n\nA @b.md \
                      @../c.md\n\n# docs/b.md, imported by docs/a.md\n\nB\n\n# c.md, imported by \
                      docs/a.md\n\nC";
        assert_eq!(text, wanted);
        let wanted = [
            "CLAUDE.md:1: imports docs/a.md",
            "docs/a.md:1: imports docs/b.md",
            "docs/a.md:1: imports c.md",
        ];
        assert_eq!(notes, wanted, "each file once");
    }

    #[test]
    fn code_mail_people_and_packages_are_no_imports() {
        let text = "`@a.md` ``x ` @a.md`` x@a.md @alice @types/node @x/core.js ```@a.md```\n  ```sh\n\
                    @a.md\n~~~\n  ```\n~~~~\n@a.md\n~~~\n@a.md\n~~~~ \n";
        assert_eq!(of(text, &[("a.md", "A")], 1000), (text.to_owned(), Vec::new()));
        let (_, notes) =
            of("` @a.md\n@\"b c.md\" @d\\ e.md", &[("a.md", "A"), ("b c.md", "B")], 99);
        let wanted = [
            "CLAUDE.md:1: imports a.md",
            "CLAUDE.md:2: imports b c.md",
            "CLAUDE.md:2: @d e.md is not imported: there is no such file",
        ];
        assert_eq!(notes, wanted);
    }

    #[test]
    fn circles_end_and_depth_number_size_and_place_are_bounded() {
        let (text, notes) = of("@a.md", &[("a.md", "@CLAUDE.md @a.md")], 1000);
        assert_eq!((text.matches("imported").count(), notes.len()), (1, 1), "{text}");
        let chain = [
            ("1.md", "@2.md"),
            ("2.md", "@3.md"),
            ("3.md", "@4.md"),
            ("4.md", "@5.md"),
            ("5.md", "five @6.md"),
            ("6.md", "six"),
        ];
        let (text, notes) = of("@1.md", &chain, 1000);
        assert!(text.contains("five") && !text.contains("six"), "{text}");
        let why = "5.md:1: @6.md is not imported: imports are followed through at most 5 files";
        assert_eq!(notes.last().map(String::as_str), Some(why));
        let (text, notes) = of("@a.md @b.md", &[("a.md", "0123456789"), ("b.md", "B")], 15);
        assert!(text.ends_with("\n\n0123"), "{text}");
        let wanted = [
            "CLAUDE.md:1: imports a.md without its last 6 bytes; there is no more room",
            "CLAUDE.md:1: @b.md is not imported: the instructions have no more room",
        ];
        assert_eq!(notes, wanted);
        let many: String = (0..70).map(|it| format!("@{it}.md ")).collect();
        let (_, notes) = of(&many, &[], 9999);
        let last = "CLAUDE.md:1: @50.md is not imported: instructions import at most 50 files; more \
                    are left out";
        assert_eq!((notes.len(), notes.last().map(String::as_str)), (51, Some(last)));
        let (_, notes) = of("@~/mine.md @/etc/x", &[], 99);
        let wanted = [
            "CLAUDE.md:1: @~/mine.md is not imported: it is outside the project",
            "CLAUDE.md:1: @/etc/x is not imported: it is outside the project",
        ];
        assert_eq!(notes, wanted);
    }
}
