//! Unified diffs as rows. Pure.

use crate::highlight::Highlighter;
use crate::row::{Piece, Row};
use crate::theme::Theme;
use ratatui_core::style::Style;
use similar::{ChangeTag, TextDiff};

/// A longer line is data, and comparing its words takes long.
const LONGEST_LINE: usize = 2_000;

/// The rows of a unified diff: numbers, sign, text in the colours of the language.
pub(crate) fn unified(text: &str, look: &Theme) -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut old, mut new) = (0u32, 0u32);
    // Lines of each side that the hunk still has: a removed `-- x` is no header.
    let mut remaining = (0u32, 0u32);
    let mut code = Highlighter::of_language("", look);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let inside = remaining != (0, 0);
        let header = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- "));
        if let Some(path) = header.filter(|_| !inside) {
            code = Highlighter::of_file(path.trim().trim_matches('"'), look);
            rows.push(Row::new(line, look.bold));
        } else if line.starts_with("# ") && !inside {
            // Between two files; a line of a hunk begins with a sign or a space.
            rows.push(Row::new(line, look.heading));
        } else if let Some((from, to)) = hunk(line).filter(|_| !inside) {
            (old, new) = (from.0, to.0);
            remaining = (from.1, to.1);
            rows.push(Row::new(line, look.dim));
        } else if let Some(removed) = line.strip_prefix('-') {
            // A removed line with the line in its place: what changed within it is marked.
            let place = lines.peek().and_then(|next| next.strip_prefix('+'));
            let is_alone = place.is_some_and(|_| !rows.last().is_some_and(is_removed));
            let marks = place.filter(|_| is_alone).map(|added| changed_words(removed, added));
            let (left, right) = marks.unwrap_or_default();
            rows.push(side(Some(old), None, '-', removed, &left, look));
            old += 1;
            remaining.0 = remaining.0.saturating_sub(1);
            if let (Some(added), true) = (place, is_alone)
                && !follows_plus(&lines)
            {
                rows.push(side(None, Some(new), '+', added, &right, look));
                new += 1;
                remaining.1 = remaining.1.saturating_sub(1);
                lines.next();
            }
        } else if let Some(added) = line.strip_prefix('+') {
            rows.push(side(None, Some(new), '+', added, &[], look));
            new += 1;
            remaining.1 = remaining.1.saturating_sub(1);
        } else if (old, new) == (0, 0) {
            // Before the first hunk.
            rows.push(Row::new(line, look.dim));
        } else {
            let kept = line.strip_prefix(' ').unwrap_or(line);
            let mut pieces = code.line(kept);
            pieces.insert(0, Piece::new(&gutter(Some(old), Some(new), ' '), look.dim));
            rows.push(Row::of(pieces));
            (old, new) = (old + 1, new + 1);
            remaining = (remaining.0.saturating_sub(1), remaining.1.saturating_sub(1));
        }
    }
    rows
}

/// True if two added lines come next.
fn follows_plus(lines: &std::iter::Peekable<std::str::Lines<'_>>) -> bool {
    let mut ahead = lines.clone();
    ahead.next();
    ahead.next().is_some_and(|line| line.starts_with('+'))
}

fn is_removed(row: &Row) -> bool {
    row.pieces.first().is_some_and(|piece| piece.text.ends_with("- "))
}

fn gutter(old: Option<u32>, new: Option<u32>, sign: char) -> String {
    let number =
        |number: Option<u32>| number.map_or_else(|| "    ".to_owned(), |n| format!("{n:>4}"));
    match (old, new) {
        (None, None) => format!("  {sign} "),
        (old, new) => format!("{} {} {sign} ", number(old), number(new)),
    }
}

fn side(
    old: Option<u32>,
    new: Option<u32>,
    sign: char,
    text: &str,
    marks: &[(bool, String)],
    look: &Theme,
) -> Row {
    let style = if sign == '-' { look.bad } else { look.good };
    let mut pieces = vec![Piece::new(&gutter(old, new, sign), style)];
    if marks.is_empty() {
        pieces.push(Piece::new(text, style));
    }
    for (changed, part) in marks {
        let style = if *changed { style.add_modifier(look.changed) } else { style };
        pieces.push(Piece::new(part, style));
    }
    Row::of(pieces)
}

type Marks = Vec<(bool, String)>;

/// The words of both lines, and which of them differ. Empty where little is common.
fn changed_words(old: &str, new: &str) -> (Marks, Marks) {
    if old.len().max(new.len()) > LONGEST_LINE {
        return (Vec::new(), Vec::new());
    }
    let diff = TextDiff::from_words(old, new);
    if diff.ratio() < 0.4 {
        return (Vec::new(), Vec::new());
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for change in diff.iter_all_changes() {
        let text = change.value().to_owned();
        match change.tag() {
            ChangeTag::Equal => {
                left.push((false, text.clone()));
                right.push((false, text));
            }
            ChangeTag::Delete => left.push((true, text)),
            ChangeTag::Insert => right.push((true, text)),
        }
    }
    (left, right)
}

/// First line and number of lines of a side.
type Range = (u32, u32);

/// Both sides of a hunk's header `@@ -a,b +c,d @@`.
fn hunk(line: &str) -> Option<(Range, Range)> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let range = |text: &str| {
        let mut numbers = text.split(' ').next()?.split(',').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next().map_or(Some(1), Result::ok)?))
    };
    Some((range(old)?, range(rest)?))
}

/// True for a text that is a unified diff.
pub(crate) fn is_unified(text: &str) -> bool {
    text.lines().any(|line| hunk(line).is_some())
        || (text.starts_with("--- ") && text.contains("\n+++ "))
}

/// A style for the sign of a line, for texts that are almost a diff.
pub(crate) fn by_sign(line: &str, look: &Theme) -> Style {
    match line.chars().next() {
        Some('+') => look.good,
        Some('-') => look.bad,
        Some(_) | None => look.text,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_changed_line_that_looks_like_a_header_is_none() {
        let text = "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ b/safe.rs\n x\n# b (call 2)\n";
        let rows = unified(text, &Theme::ansi());
        let shown: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(shown[3], "   1      - -- old comment");
        assert_eq!(shown[4], "        1 + ++ b/safe.rs");
        assert!(shown[5].ends_with("x") && shown[6] == "# b (call 2)", "{shown:?}");
    }

    use super::*;

    #[test]
    fn a_unified_diff_has_numbers_of_both_sides_and_marks_changed_words() {
        let text = "--- a.rs\n+++ a.rs\n@@ -3,3 +3,4 @@\n kept\n-let a = one;\n+let a = two;\n+let b = 3;\n last";
        let look = Theme::ansi();
        let rows = unified(text, &look);
        let shown: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(shown[3], "   3    3   kept");
        assert_eq!(shown[4], "   4      - let a = one;");
        assert_eq!(shown[5], "        4 + let a = two;");
        assert_eq!(shown[7], "   5    6   last");
        assert!(is_unified(text) && !is_unified("a\n+b"));
        let single = unified("@@ -1 +1 @@\n-let a = one;\n+let a = two;", &look);
        let marked: Vec<&str> = single[1]
            .pieces
            .iter()
            .filter(|piece| piece.style.add_modifier.contains(look.changed))
            .map(|piece| piece.text.as_str())
            .collect();
        assert_eq!(marked, ["one;"], "{single:?}");
    }
}
