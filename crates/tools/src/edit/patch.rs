//! Patches as Codex writes them: several files made, changed, moved or deleted by one text.

use crate::edit::canonical;
use crate::edit::near_miss::{NearMiss, near_miss};
use crate::failure::{FailureCode, ToolFailure};

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
pub(crate) struct PatchSection {
    /// As the patch names it.
    pub path: String,
    pub work: FileAction,
}

/// The action for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileAction {
    Add { content: String },
    Delete,
    Update { to: Option<String>, hunks: Vec<Hunk> },
}

/// Lines of a file and their replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line of the patch that it begins at, counted from 1.
    pub at: usize,
    /// Lines that stand before it, each behind the one before.
    pub anchors: Vec<String>,
    pub old: Vec<String>,
    pub new: Vec<String>,
    /// It ends where the file does.
    pub at_end: bool,
}

impl PatchSection {
    /// The paths that it touches, as it names them.
    pub fn paths(&self) -> Vec<String> {
        let to = match &self.work {
            FileAction::Update { to, .. } => to.clone(),
            FileAction::Add { .. } | FileAction::Delete => None,
        };
        std::iter::once(self.path.clone()).chain(to).collect()
    }

    /// True if the patch removes the file at its path.
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
/// `invalid_arguments`, with the line of the patch.
pub(crate) fn read(text: &str) -> Result<Vec<PatchSection>, ToolFailure> {
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

    fn section(&mut self, head: &str) -> Result<PatchSection, ToolFailure> {
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

    fn added(&mut self) -> Result<String, ToolFailure> {
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

    fn hunks(&mut self) -> Result<Vec<Hunk>, ToolFailure> {
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

fn wrong(line: usize, what: &str) -> ToolFailure {
    ToolFailure::new(
        FailureCode::InvalidArguments,
        format!("line {line} of the patch: {what}"),
        "Nothing was changed. Write the patch from `*** Begin Patch` to `*** End Patch`, each file \
         under `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`.",
    )
}

/// A file's text after these hunks, in their order.
///
/// # Errors
/// `no_match` or `ambiguous`, with the hunk's line.
pub(crate) fn apply_hunks(path: &str, text: &str, hunks: &[Hunk]) -> Result<String, ToolFailure> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    // There is no line after the last newline.
    let ended = lines.pop_if(|last| last.is_empty()).is_some();
    let mut out: Vec<String> = Vec::new();
    let mut from = 0;
    for hunk in hunks {
        let start = place(path, &lines, from, hunk)?;
        out.extend(lines[from..start].iter().map(|line| (*line).to_owned()));
        let around = lines.get(start).or(lines.first()).copied().unwrap_or_default();
        out.extend(put(&lines[start..start + hunk.old.len()], hunk, around.ends_with('\r')));
        from = start + hunk.old.len();
    }
    out.extend(lines[from..].iter().map(|line| (*line).to_owned()));
    let mut new = out.join("\n");
    if (ended || text.is_empty()) && !out.is_empty() {
        new.push('\n');
    }
    Ok(new)
}

/// The new lines of a hunk. Those of its context stay as they are in the file, byte for byte.
fn put(there: &[&str], hunk: &Hunk, windows: bool) -> Vec<String> {
    let end = if windows { "\r" } else { "" };
    if there.iter().zip(&hunk.old).any(|(line, old)| !is_same(line, old, Nearness::WithoutEnd)) {
        return put_alike(there, hunk, end);
    }
    let mut kept = there.iter().zip(&hunk.old).peekable();
    let mut out = Vec::new();
    for line in &hunk.new {
        let mut ahead = kept.clone();
        match ahead.find(|(_, old)| *old == line) {
            Some((there, _)) => {
                out.push((*there).to_owned());
                kept = ahead;
            }
            None => out.push(format!("{}{end}", line.trim_end_matches('\r'))),
        }
    }
    out
}

/// The same of a hunk that was found in another form: its own characters stand only where it changes something.
fn put_alike(there: &[&str], hunk: &Hunk, end: &str) -> Vec<String> {
    if hunk.new.is_empty() {
        return Vec::new();
    }
    let there: Vec<&str> = there.iter().map(|line| line.trim_end_matches('\r')).collect();
    let merged = canonical::merged(&there.join("\n"), &hunk.old.join("\n"), &hunk.new.join("\n"));
    merged.split('\n').map(|line| format!("{line}{end}")).collect()
}

/// The line at which a hunk begins, none before `from`.
fn place(path: &str, lines: &[&str], from: usize, hunk: &Hunk) -> Result<usize, ToolFailure> {
    let mut from = from;
    for anchor in &hunk.anchors {
        let find = |nearness| lines[from..].iter().position(|line| is_same(line, anchor, nearness));
        let found = [Nearness::Exact, Nearness::WithoutSpace, Nearness::Alike, Nearness::Beginning];
        let Some(found) = found.into_iter().find_map(find) else {
            return Err(no_match(
                path,
                hunk,
                &format!("the anchor line {:?} was not found", cut(anchor)),
            ));
        };
        from += found + 1;
    }
    if hunk.old.is_empty() {
        // Lines to add: behind the last anchor, or at the end.
        return Ok(if hunk.anchors.is_empty() || hunk.at_end { lines.len() } else { from });
    }
    for nearness in [Nearness::Exact, Nearness::WithoutEnd, Nearness::Alike] {
        let fits = |start: &usize| {
            let there = &lines[*start..*start + hunk.old.len()];
            there.iter().zip(&hunk.old).all(|(line, old)| is_same(line, old, nearness))
        };
        let last = lines.len().checked_sub(hunk.old.len());
        let starts = last.map_or(from..from, |last| from..last + 1);
        let mut found = starts.filter(fits);
        if hunk.at_end {
            if let Some(start) = found.by_ref().last() {
                return Ok(start);
            }
            continue;
        }
        match (found.next(), found.next()) {
            (Some(only), None) => return Ok(only),
            // The anchor selects one.
            (Some(first), Some(_)) if !hunk.anchors.is_empty() => return Ok(first),
            (Some(first), Some(second)) => {
                return Err(ToolFailure::new(
                    FailureCode::Ambiguous,
                    format!(
                        "the hunk at line {} of the patch matches {path:?} more than once, \
                            at lines {} and {}",
                        hunk.at,
                        first + 1,
                        second + 1
                    ),
                    "Nothing was changed. Add context lines, or put the line of the \
                        enclosing function or type after `@@`.",
                ));
            }
            (None, _) => {}
        }
    }
    let first = hunk.old.iter().find(|line| !line.trim().is_empty()).map_or("", String::as_str);
    let NearMiss { places, hint } = near_miss(&lines.join("\n"), &hunk.old.join("\n"), "the hunk");
    let what = format!("its lines, starting with {:?}, were not found{places}", cut(first));
    let failure = no_match(path, hunk, &what);
    Err(ToolFailure { hint: format!("Nothing was changed. {hint}"), ..failure })
}

fn no_match(path: &str, hunk: &Hunk, what: &str) -> ToolFailure {
    ToolFailure::new(
        FailureCode::NoMatch,
        format!("the hunk at line {} of the patch does not fit {path:?}: {what}", hunk.at),
        "Nothing was changed. Read that part of the file again and copy the lines exactly.",
    )
}

#[derive(Clone, Copy)]
enum Nearness {
    /// Line ends apart.
    Exact,
    WithoutEnd,
    WithoutSpace,
    /// In another of Unicode's forms, or with other quotes.
    Alike,
    /// Any text may follow.
    Beginning,
}

fn is_same(line: &str, wanted: &str, nearness: Nearness) -> bool {
    match nearness {
        Nearness::Exact => line.trim_end_matches('\r') == wanted.trim_end_matches('\r'),
        Nearness::WithoutEnd => line.trim_end() == wanted.trim_end(),
        Nearness::WithoutSpace => line.trim() == wanted.trim(),
        Nearness::Alike => {
            canonical::reads_same(line.trim_end_matches('\r'), wanted.trim_end_matches('\r'))
        }
        Nearness::Beginning => line.trim().starts_with(wanted.trim()),
    }
}
