//! Finds the Markdown files of one directory, as slash commands and sub-agents are kept. A
//! subdirectory is a part of the name: `frontend/component.md` is `frontend:component`.

use crate::read_text;
use protocol::hidden::line;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Largest file in bytes.
const LARGEST: u64 = 256 << 10;
/// Most files of one place; stops a huge directory from holding up each prompt.
const MOST: usize = 200;
/// Most entries of one place, files of other kinds included.
const MOST_ENTRIES: usize = 2_000;
/// Deepest subdirectory. Ends a circle of links too.
const DEEPEST: usize = 4;
/// Longest name in bytes.
const LONGEST_NAME: usize = 100;
/// Most problems that are listed of one place.
const MOST_TROUBLES: usize = 20;

/// The files of one place, as their reader took them.
#[derive(Debug)]
pub(crate) struct FoundFiles<T> {
    pub(crate) files: Vec<T>,
    pub(crate) troubles: Vec<String>,
}

/// Takes a file's path, name and text.
type Take<'a, T> = dyn Fn(&Path, &str, &str) -> Result<T, String> + 'a;

/// Finds the files in a directory. The real files of a project lie inside `within`; a person's own
/// may lie anywhere.
pub(crate) fn find<T>(place: &Path, within: Option<&Path>, take: &Take<'_, T>) -> FoundFiles<T> {
    let found = FoundFiles { files: Vec::new(), troubles: Vec::new() };
    let mut search = Search { take, within, entries: 0, left_out: 0, found };
    search.directory(place, &mut Vec::new());
    let Search { left_out, mut found, .. } = search;
    if left_out > 0 {
        let place = place.display();
        found.troubles.push(format!("{place}: {left_out} of its entries were not read"));
    }
    if found.troubles.len() > MOST_TROUBLES {
        let more = found.troubles.len() - MOST_TROUBLES;
        found.troubles.truncate(MOST_TROUBLES);
        found.troubles.push(format!("{}: {more} more files cannot be used", place.display()));
    }
    found
}

struct Search<'a, T> {
    take: &'a Take<'a, T>,
    within: Option<&'a Path>,
    entries: usize,
    left_out: usize,
    found: FoundFiles<T>,
}

impl<T> Search<'_, T> {
    fn directory(&mut self, directory: &Path, names: &mut Vec<String>) {
        if let Err(why) = self.check_place(directory) {
            return self.trouble(directory, &why);
        }
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return;
            }
            Err(error) => return self.trouble(directory, &error.to_string()),
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in entries.flatten() {
            self.entries += 1;
            match self.entries > MOST_ENTRIES {
                true => self.left_out += 1,
                false => paths.push(entry.path()),
            }
        }
        paths.sort();
        for path in paths {
            let is_markdown = path.extension().is_some_and(|ending| ending == "md");
            let stem = if is_markdown { path.file_stem() } else { path.file_name() };
            let name = stem.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if is_markdown {
                names.push(name);
                match self.found.files.len() >= MOST {
                    true => self.left_out += 1,
                    false => self.file(&path, &names.join(":")),
                }
                names.pop();
            } else if path.is_dir() {
                if names.len() >= DEEPEST {
                    self.left_out += 1;
                    continue;
                }
                names.push(name);
                self.directory(&path, names);
                names.pop();
            }
        }
    }

    fn file(&mut self, path: &Path, name: &str) {
        match self.read(path, name) {
            Ok(Some(file)) => self.found.files.push(file),
            Ok(None) => {}
            Err(why) => self.trouble(path, &why),
        }
    }

    fn trouble(&mut self, path: &Path, why: &str) {
        let path = line(&path.display().to_string(), 300);
        self.found.troubles.push(format!("{path}: {why}"));
    }

    /// A project's link must not lead out of it: the text of another file would go to the model.
    fn check_place(&self, path: &Path) -> Result<(), String> {
        let Some(within) = self.within else { return Ok(()) };
        match path.canonicalize() {
            Ok(real) if !real.starts_with(within) => {
                let real = line(&real.display().to_string(), 300);
                Err(format!("it is a link to {real}, which is outside the project"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn read(&self, path: &Path, name: &str) -> Result<Option<T>, String> {
        check_name(name)?;
        self.check_place(path)?;
        if let Ok(meta) = path.metadata()
            && meta.len() > LARGEST
        {
            return Err(format!("it has {} bytes; the most is {LARGEST}", meta.len()));
        }
        let most = usize::try_from(LARGEST).unwrap_or(usize::MAX);
        let Some(text) = read_text::read(path, most)? else { return Ok(None) };
        (self.take)(path, name, &text).map(Some)
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = |letter: char| letter.is_alphanumeric() || "-_.:".contains(letter);
    if name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(format!(
            "its name {} is not made of at most {LONGEST_NAME} letters, digits, - _ .",
            line(name, LONGEST_NAME)
        ));
    }
    Ok(())
}
