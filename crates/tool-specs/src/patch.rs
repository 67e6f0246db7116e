//! Patches as Codex writes them: several files made, changed, moved or deleted by one text.

/// The tool that applies them.
pub(crate) const TOOL: &str = "apply_patch";

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchSection {
    /// As the patch names it.
    pub path: String,
    /// What becomes of it.
    pub work: FileAction,
}

/// The action for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction {
    /// A new file.
    Add {
        /// Its text.
        content: String,
    },
    /// No file any more.
    Delete,
    /// A changed file.
    Update {
        /// Where it is moved to.
        to: Option<String>,
        /// Its changes, in order.
        hunks: Vec<Hunk>,
    },
}

/// Lines of a file and their replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The line of the patch that it begins at, counted from 1.
    pub at: usize,
    /// Lines that stand before it, each behind the one before.
    pub anchors: Vec<String>,
    /// The lines as they are.
    pub old: Vec<String>,
    /// The lines as they shall be.
    pub new: Vec<String>,
    /// It ends where the file does.
    pub at_end: bool,
}

impl PatchSection {
    /// The paths that it touches, as it names them.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let to = match &self.work {
            FileAction::Update { to, .. } => to.clone(),
            FileAction::Add { .. } | FileAction::Delete => None,
        };
        std::iter::once(self.path.clone()).chain(to).collect()
    }

    /// True if the patch removes the file at its path.
    #[must_use]
    pub fn removes(&self) -> bool {
        match &self.work {
            FileAction::Delete => true,
            FileAction::Update { to, .. } => to.as_ref().is_some_and(|to| *to != self.path),
            FileAction::Add { .. } => false,
        }
    }
}

/// A patch that stands alone, where arguments were expected.
pub(crate) fn bare(text: &str) -> Option<&str> {
    let text = unwrapped(text);
    text.starts_with(BEGIN).then_some(text)
}

/// Without the here-document that some models write around it.
pub(crate) fn unwrapped(text: &str) -> &str {
    let text = text.trim();
    let Some(rest) = text.strip_prefix("<<") else { return text };
    let Some((mark, body)) = rest.split_once('\n') else { return text };
    let mark = mark.trim().trim_matches(['\'', '"']);
    match body.trim_end().strip_suffix(mark) {
        Some(body) if !mark.is_empty() => body.trim(),
        Some(_) | None => text,
    }
}

/// The patch of a script that does nothing but apply one.
pub(crate) fn in_script(script: &str) -> Option<String> {
    let rest = script.trim().strip_prefix("apply_patch")?.trim_start();
    let quoted = rest.strip_prefix("<<")?;
    // Without quotes a shell would replace variables in it.
    let mark = quoted.split('\n').next()?.trim();
    let name = mark.strip_prefix('\'')?.strip_suffix('\'')?;
    let patch = unwrapped(rest);
    let whole = patch.starts_with(BEGIN) && patch.ends_with(END);
    let once = quoted.lines().filter(|line| *line == name).count() == 1;
    (whole && once).then(|| patch.to_owned())
}

/// Reads a patch.
///
/// # Errors
/// A message with the line of the patch, and the way on.
pub(crate) fn read(text: &str) -> Result<Vec<PatchSection>, String> {
    let text = unwrapped(text);
    let lines: Vec<&str> = text.lines().collect();
    let body = match lines.as_slice() {
        [first, body @ .., last] if first.trim() == BEGIN && last.trim() == END => body,
        [first, ..] if first.trim() != BEGIN => {
            return Err(wrong(1, &format!("a patch begins with `{BEGIN}`")));
        }
        _ => return Err(wrong(lines.len(), &format!("a patch ends with `{END}`"))),
    };
    let mut reading = PatchReader { lines: body, at: 0 };
    let mut sections: Vec<PatchSection> = Vec::new();
    while let Some(line) = reading.next() {
        if line.trim().is_empty() {
            continue;
        }
        sections.push(reading.section(line)?);
    }
    match sections.is_empty() {
        true => Err(wrong(2, "the patch names no file")),
        false => Ok(sections),
    }
}

struct PatchReader<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> PatchReader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.at += 1;
        Some(line)
    }

    /// The number of the line that was read last: the first is the patch's own beginning.
    fn number(&self) -> usize {
        self.at + 1
    }

    fn section(&mut self, head: &str) -> Result<PatchSection, String> {
        let named = |mark: &str| head.trim().strip_prefix(mark).map(|path| path.trim().to_owned());
        let (path, work) = if let Some(path) = named(ADD) {
            (path, FileAction::Add { content: self.added()? })
        } else if let Some(path) = named(DELETE) {
            (path, FileAction::Delete)
        } else if let Some(path) = named(UPDATE) {
            let to = self.peek().and_then(|line| line.trim().strip_prefix(MOVE)).map(str::trim);
            self.at += usize::from(to.is_some());
            let to = to.map(str::to_owned);
            let hunks = self.hunks()?;
            if hunks.is_empty() && to.is_none() {
                return Err(wrong(
                    self.number(),
                    &format!("the update of {path:?} changes nothing"),
                ));
            }
            (path, FileAction::Update { to, hunks })
        } else {
            let text = format!("{:?} is neither `{ADD}`, `{UPDATE}` nor `{DELETE}`", cut(head));
            return Err(wrong(self.number(), &text));
        };
        Ok(PatchSection { path, work })
    }

    fn added(&mut self) -> Result<String, String> {
        let mut content = String::new();
        while let Some(line) = self.peek().filter(|line| !line.starts_with("*** ")) {
            self.at += 1;
            match line.strip_prefix('+') {
                Some(line) => {
                    content.push_str(line);
                    content.push('\n');
                }
                None if line.trim().is_empty() && self.is_at_a_head() => {}
                None => {
                    return Err(wrong(self.number(), "each line of a new file begins with `+`"));
                }
            }
        }
        Ok(content)
    }

    /// True if only empty lines precede the next file.
    fn is_at_a_head(&self) -> bool {
        let next = self.lines[self.at..].iter().find(|line| !line.trim().is_empty());
        next.is_none_or(|line| line.starts_with("*** "))
    }

    fn hunks(&mut self) -> Result<Vec<Hunk>, String> {
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut open: Option<Hunk> = None;
        while let Some(line) = self.peek() {
            let is_end = line.trim() == END_OF_FILE;
            if line.starts_with("*** ") && !is_end {
                break;
            }
            self.at += 1;
            if line.trim().is_empty() && self.is_at_a_head() {
                continue;
            }
            if let Some(anchor) = line.strip_prefix("@@") {
                // Several anchors in a row select one place.
                let done = open.take_if(|hunk| !(hunk.old.is_empty() && hunk.new.is_empty()));
                hunks.extend(done);
                let hunk =
                    open.get_or_insert_with(|| Hunk { at: self.number(), ..Hunk::default() });
                hunk.anchors.extend(anchor_of(anchor));
                continue;
            }
            let hunk = open.get_or_insert_with(|| Hunk { at: self.number(), ..Hunk::default() });
            if is_end {
                hunk.at_end = true;
                hunks.extend(open.take());
                continue;
            }
            let mut both = |text: &str| {
                hunk.old.push(text.to_owned());
                hunk.new.push(text.to_owned());
            };
            match line.split_at_checked(1) {
                Some((" ", text)) => both(text),
                Some(("-", text)) => hunk.old.push(text.to_owned()),
                Some(("+", text)) => hunk.new.push(text.to_owned()),
                // An empty line of context, whose space was lost.
                None => both(""),
                Some(_) if line.trim().is_empty() => both(""),
                Some(_) => {
                    let text = format!("{:?} begins with neither space, `-` nor `+`", cut(line));
                    return Err(wrong(self.number(), &text));
                }
            }
        }
        hunks.extend(open);
        match hunks.iter().find(|hunk| hunk.old == hunk.new) {
            Some(empty) => Err(wrong(empty.at, "the hunk changes nothing")),
            None => Ok(hunks),
        }
    }
}

/// The text after `@@`, without the line numbers of unified diffs.
fn anchor_of(text: &str) -> Option<String> {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let numbers = text.trim_start();
    let text = match numbers.starts_with('-') && numbers.contains("@@") {
        true => numbers.split_once("@@").map_or("", |(_, behind)| behind.trim()),
        false => text,
    };
    (!text.trim().is_empty()).then(|| text.to_owned())
}

fn cut(line: &str) -> String {
    line.chars().take(60).collect()
}

fn wrong(line: usize, what: &str) -> String {
    format!(
        "line {line} of the patch: {what}. Nothing was changed. Write the patch from `*** Begin Patch` to \
         `*** End Patch`, each file under `*** Add File: PATH`, `*** Update File: PATH` or \
         `*** Delete File: PATH`."
    )
}
