//! The hunks of a patch, applied to a file's text.

use crate::edit::canonical;
use crate::edit::near_miss::{NearMiss, near_miss};
use crate::failure::{FailureCode, ToolFailure};
use tool_specs::patch::Hunk;

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

fn cut(line: &str) -> String {
    line.chars().take(60).collect()
}
