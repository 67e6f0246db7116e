//! Finds the Markdown files of slash commands. A subdirectory is a part of the name:
//! `frontend/component.md` is `frontend:component`.

use crate::front_matter::{self, FrontMatter};
use crate::prompt_list::{AllowedTool, PromptFile, PromptKind, PromptOwner};
use crate::read_text;
use crate::shown::line;
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
/// Longest description in characters.
const DESCRIPTION: usize = 400;
/// Longest hint about arguments in characters.
const HINT: usize = 80;
/// Most problems that are listed of one place.
const MOST_TROUBLES: usize = 20;

/// The commands of one place.
#[derive(Debug, Default)]
pub(crate) struct FoundCommands {
    pub(crate) files: Vec<PromptFile>,
    pub(crate) troubles: Vec<String>,
}

/// Finds the commands in a directory. The real files of a project lie inside `within`; a person's
/// own may lie anywhere.
pub(crate) fn find(place: &Path, owner: PromptOwner, within: Option<&Path>) -> FoundCommands {
    let mut search =
        Search { owner, within, entries: 0, left_out: 0, found: FoundCommands::default() };
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

struct Search<'a> {
    owner: PromptOwner,
    within: Option<&'a Path>,
    entries: usize,
    left_out: usize,
    found: FoundCommands,
}

impl Search<'_> {
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

    fn read(&self, path: &Path, name: &str) -> Result<Option<PromptFile>, String> {
        check_name(name)?;
        self.check_place(path)?;
        if let Ok(meta) = path.metadata()
            && meta.len() > LARGEST
        {
            return Err(format!("it has {} bytes; the most is {LARGEST}", meta.len()));
        }
        let most = usize::try_from(LARGEST).unwrap_or(usize::MAX);
        let Some(text) = read_text::read(path, most)? else { return Ok(None) };
        let front = front_matter::split(&text).map_err(|why| format!("its front matter: {why}"))?;
        if let Some(front) = &front {
            front.check().map_err(|why| format!("its front matter: {why}"))?;
        }
        let body = front.as_ref().map_or(text.as_str(), |front| front.body);
        if body.trim().is_empty() {
            return Err("it has no text for the model".to_owned());
        }
        let value = |key: &str| front.as_ref().and_then(|front| front.text(key));
        let description = value("description").filter(|text| !text.trim().is_empty());
        let first = || body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let description = description.unwrap_or_else(|| first().trim_start_matches('#').to_owned());
        Ok(Some(PromptFile {
            name: name.to_owned(),
            kind: PromptKind::Command,
            owner: self.owner,
            file: path.to_owned(),
            description: line(&description, DESCRIPTION),
            argument_hint: line(&value("argument-hint").unwrap_or_default(), HINT),
            allowed_tools: front.as_ref().map(allowed_tools).unwrap_or_default(),
            model: value("model"),
            body: body.trim().to_owned(),
            hides: Vec::new(),
        }))
    }
}

fn allowed_tools(front: &FrontMatter<'_>) -> Vec<AllowedTool> {
    let items = front.list("allowed-tools").into_iter();
    items.map(|item| AllowedTool { text: item.text, line: item.line }).collect()
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
