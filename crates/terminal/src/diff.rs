//! Unified diffs as rows. Pure.

use crate::highlight::Highlighter;
use crate::row::{Piece, Row, wrap};
use crate::theme::{CHANGED, Theme};
use ratatui_core::style::Style;
use similar::{ChangeTag, TextDiff};

/// A longer line is data, and comparing its words takes long.
const LONGEST_LINE: usize = 2_000;

/// Rows of a diff of which the language is shown.
const HIGHLIGHTED: usize = 2_000;

/// Signs of strings of several lines that are closed by what opens them.
const QUOTES: [&str; 2] = ["\"\"\"", "'''"];

/// Both sides of a hunk as code. A hunk is no part of the one before it, and its two sides are two texts.
struct Sides {
    old: Highlighter,
    new: Highlighter,
}

impl Sides {
    fn of_file(path: &str, look: &Theme) -> Self {
        Self { old: Highlighter::of_file(path, look), new: Highlighter::of_file(path, look) }
    }

    /// For a hunk of these lines, with their signs. One that begins within a string begins with its quotes.
    fn of_hunk(path: &str, hunk: &[&str], look: &Theme) -> Self {
        let mut sides = Self::of_file(path, look);
        for (code, other) in [(&mut sides.old, '+'), (&mut sides.new, '-')] {
            let own = hunk.iter().filter(|line| !line.starts_with(other));
            let lines: Vec<&str> = own.map(|line| line.get(1..).unwrap_or_default()).collect();
            if let Some(quotes) = QUOTES.iter().find(|quotes| begins_within(&lines, quotes)) {
                code.line(quotes);
            }
        }
        sides
    }
}

/// True if these lines begin within a string of such quotes, as far as their places tell: text stands behind
/// quotes that open and before those that close.
fn begins_within(lines: &[&str], quotes: &str) -> bool {
    let continues = |text: &str| text.ends_with(['=', '(', '[', '{', ',', ':']);
    let (mut opens, mut before) = (true, "");
    let mut evidence = 0;
    for line in lines {
        for (at, _) in line.match_indices(quotes) {
            let (left, right) = (line[..at].trim(), line[at + quotes.len()..].trim());
            let looks_open = match (left.is_empty(), right.is_empty()) {
                (true, false) => true,
                (true, true) => continues(before),
                (false, _) => continues(left),
            };
            evidence += if looks_open == opens { 1 } else { -1 };
            opens = !opens;
        }
        before = if line.trim().is_empty() { before } else { line.trim_end() };
    }
    evidence < 0
}

/// The lines of a hunk with so many lines of each side.
fn of_hunk<'a>(lines: impl Iterator<Item = &'a str>, mut left: (u32, u32)) -> Vec<&'a str> {
    let is_inside = |line: &&str| {
        let is_inside = left != (0, 0);
        left.0 = left.0.saturating_sub(u32::from(!line.starts_with('+')));
        left.1 = left.1.saturating_sub(u32::from(!line.starts_with('-')));
        is_inside
    };
    lines.take(HIGHLIGHTED).take_while(is_inside).collect()
}

/// The rows of a unified diff in so many columns. The sign of a line stands before each of its rows.
pub(crate) fn wrapped(text: &str, width: usize, look: &Theme) -> Vec<Row> {
    let rows = unified(text, look);
    rows.iter().flat_map(|row| on_ground(row, width, look)).collect()
}

/// A row in so many columns, on the ground of its change.
fn on_ground(row: &Row, width: usize, look: &Theme) -> Vec<Row> {
    let rows = wrap(&row.pieces, width, &under(row, look));
    match row.pieces.first().and_then(|sign| sign.style.bg) {
        Some(ground) => {
            rows.into_iter().map(|row| row.filled(width, Style::new().bg(ground))).collect()
        }
        None => rows,
    }
}

/// The rows of the diff of a call. Its title names the file, so one file has no header.
pub(crate) fn of_call(text: &str, width: usize, look: &Theme) -> Vec<Row> {
    let rows = unified(text, look);
    let is_header = |row: &Row, sign: &str| row.pieces.len() == 1 && row.text().starts_with(sign);
    let files = rows.iter().filter(|row| is_header(row, "+++ ")).count();
    let headers =
        rows.iter().take_while(|row| ["--- ", "+++ ", "@@"].iter().any(|it| is_header(row, it)));
    let first = if files == 1 { headers.count() } else { 0 };
    rows[first..].iter().flat_map(|row| on_ground(row, width, look)).collect()
}

/// The lines that a unified diff adds and removes. None for other texts.
pub(crate) fn counts(text: &str) -> Option<(usize, usize)> {
    if !is_unified(text) {
        return None;
    }
    let (mut added, mut removed) = (0, 0);
    let mut remaining = (0u32, 0u32);
    for line in text.lines() {
        match (remaining, line.as_bytes().first()) {
            ((0, 0), _) => remaining = hunk(line).map_or((0, 0), |(from, to)| (from.1, to.1)),
            (_, Some(b'+')) => {
                added += 1;
                remaining.1 = remaining.1.saturating_sub(1);
            }
            (_, Some(b'-')) => {
                removed += 1;
                remaining.0 = remaining.0.saturating_sub(1);
            }
            // "\ No newline at end of file" is no line.
            (_, Some(b'\\')) => {}
            (_, _) => {
                remaining = (remaining.0.saturating_sub(1), remaining.1.saturating_sub(1));
            }
        }
    }
    Some((added, removed))
}

/// What stands before the rows under this one: the gutter without its numbers; blanks under a header.
fn under(row: &Row, look: &Theme) -> Piece {
    match row.pieces.as_slice() {
        [gutter, _, ..] => {
            let text = gutter.text.replace(|c: char| c.is_ascii_digit(), " ");
            Piece::new(&text, gutter.style)
        }
        [_] | [] => Piece::new(&" ".repeat(12), look.text),
    }
}

/// The rows of a unified diff: numbers and sign in the colour of the change, text in the colours of the language.
pub(crate) fn unified(text: &str, look: &Theme) -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut old, mut new) = (0u32, 0u32);
    // Lines of each side that the hunk still has: a removed `-- x` is no header.
    let mut remaining = (0u32, 0u32);
    let mut path = "";
    let mut code = Sides::of_file(path, look);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let inside = remaining != (0, 0);
        let header = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- "));
        if let Some(named) = header.filter(|_| !inside) {
            path = named.trim().trim_matches('"');
            rows.push(Row::new(line, look.bold()));
        } else if line.starts_with("# ") && !inside {
            // Between two files; a line of a hunk begins with a sign or a space.
            rows.push(Row::new(line, look.heading));
        } else if let Some((from, to)) = hunk(line).filter(|_| !inside) {
            (old, new) = (from.0, to.0);
            remaining = (from.1, to.1);
            let file = if rows.len() < HIGHLIGHTED { path } else { "" };
            // Before the first line of a file no string begins.
            code = match from.0 <= 1 || to.0 <= 1 {
                true => Sides::of_file(file, look),
                false => Sides::of_hunk(file, &of_hunk(lines.clone(), remaining), look),
            };
            rows.push(Row::new(line, look.dim));
        } else if let Some(removed) = line.strip_prefix('-') {
            // A removed line with the line in its place: what changed within it is marked.
            let place = lines.peek().and_then(|next| next.strip_prefix('+'));
            let is_alone = place.is_some_and(|_| !rows.last().is_some_and(is_removed));
            let marks = place.filter(|_| is_alone).map(|added| changed_words(removed, added));
            let (left, right) = marks.unwrap_or_default();
            rows.push(side((Some(old), None), removed, &left, &mut code.old, look));
            old += 1;
            remaining.0 = remaining.0.saturating_sub(1);
            if let (Some(added), true) = (place, is_alone)
                && !follows_plus(&lines)
            {
                rows.push(side((None, Some(new)), added, &right, &mut code.new, look));
                new += 1;
                remaining.1 = remaining.1.saturating_sub(1);
                lines.next();
            }
        } else if let Some(added) = line.strip_prefix('+') {
            rows.push(side((None, Some(new)), added, &[], &mut code.new, look));
            new += 1;
            remaining.1 = remaining.1.saturating_sub(1);
        } else if (old, new) == (0, 0) {
            // Before the first hunk.
            rows.push(Row::new(line, look.dim));
        } else {
            let kept = line.strip_prefix(' ').unwrap_or(line);
            code.old.line(kept);
            let mut pieces = code.new.line(kept);
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

/// A removed or an added line: the number that it has tells which.
fn side(
    numbers: (Option<u32>, Option<u32>),
    text: &str,
    marks: &[(bool, String)],
    code: &mut Highlighter,
    look: &Theme,
) -> Row {
    let (sign, row, style) = match numbers.0 {
        Some(_) => ('-', look.removed, look.removed.patch(look.bad)),
        None => ('+', look.added, look.added.patch(look.good)),
    };
    // Text without a language has the colour of its sign.
    let mut pieces = match code.is_known() {
        true => code.line(text),
        false => vec![Piece::new(text, style)],
    };
    for piece in &mut pieces {
        piece.style = row.patch(piece.style);
    }
    if !marks.is_empty() {
        pieces = marked(&pieces, marks, look);
    }
    pieces.insert(0, Piece::new(&gutter(numbers.0, numbers.1, sign), style));
    Row::of(pieces)
}

/// These pieces with what changed in them marked; as they are where the marks are of another text.
fn marked(pieces: &[Piece], marks: &[(bool, String)], look: &Theme) -> Vec<Piece> {
    let mut flags: Vec<bool> = Vec::new();
    for (changed, part) in marks {
        let shown = Piece::new(part, look.text).text;
        flags.resize(flags.len() + shown.chars().count(), *changed);
    }
    let letters = || pieces.iter().flat_map(|piece| piece.text.chars().map(move |c| (piece, c)));
    if letters().count() != flags.len() {
        return pieces.to_vec();
    }
    let mut result: Vec<Piece> = Vec::new();
    for ((piece, letter), changed) in letters().zip(flags) {
        let style = if changed { piece.style.add_modifier(CHANGED) } else { piece.style };
        match result.last_mut() {
            Some(last) if last.style == style => last.text.push(letter),
            Some(_) | None => result.push(Piece { text: letter.to_string(), style, link: None }),
        }
    }
    result
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
    use ratatui_core::style::Color;

    /// The colours of the words of a row that has these.
    fn colours(rows: &[Row], words: &str) -> Vec<Option<Color>> {
        let row = rows.iter().find(|row| row.text().contains(words));
        let pieces = row.iter().flat_map(|row| row.pieces.iter().skip(1));
        let ink = pieces.filter(|piece| !piece.text.trim().is_empty());
        ink.map(|piece| piece.style.fg).collect()
    }

    #[test]
    fn the_sign_of_a_line_stands_before_each_of_its_rows() {
        let look = Theme::ansi();
        let line = |sign: char| format!("{sign}let name = one(); // and more words");
        let lines = ['-', '+', ' '].map(line).join("\n");
        let text =
            format!("--- a.rs\n+++ a.rs\n@@ -12345,2 +7,2 @@ fn a_name_of_a_function()\n{lines}");
        let rows = wrapped(&text, 36, &look);
        let begins = |row: &Row| row.text().chars().take(13).collect::<String>();
        let shown: Vec<(String, Style)> =
            rows[2..].iter().map(|row| (begins(row), row.pieces[0].style)).collect();
        let expected = [
            ("@@ -12345,2 +", look.dim),
            ("            a", look.text),
            ("12345      - ", look.bad),
            ("           - ", look.bad),
            ("        7 + l", look.good),
            ("          + m", look.good),
            ("12346    8   ", look.dim),
            ("             ", look.dim),
        ];
        assert_eq!(shown, expected.map(|(text, style)| (text.to_owned(), style)), "{rows:?}");
        assert!(rows.iter().all(|row| row.width() <= 36), "{rows:?}");
    }

    #[test]
    fn lines_behind_the_end_of_a_string_are_no_part_of_it() {
        let look = Theme::ansi();
        let code = |start: u32, first: &str, last: &str| {
            let text = format!(
                "--- a/m.py\n+++ b/m.py\n@@ -{start},5 +{start},6 @@\n {first}\n \n def share(a):\n     \
                 return len(a)\n+KEPT = 1\n {last}\n"
            );
            colours(&unified(&text, &look), "return len")
        };
        let outside = code(20, "import os", "");
        assert!(outside.len() > 1, "several words: {outside:?}");
        // The first line ends a string, whatever follows.
        for first in ["    \"\"\"", "and so on.\"\"\"", "'''"] {
            assert_eq!(code(20, first, ""), outside, "{first}");
            assert_eq!(code(20, first, "\"\"\"Next.\"\"\""), outside, "{first}");
        }
        // The controls: a whole string, and two that hold what follows.
        assert_eq!(code(20, "\"\"\"One.\"\"\"", ""), outside);
        assert_ne!(code(20, "TEXT = \"\"\"", "\"\"\""), outside);
        assert_ne!(code(1, "\"\"\"", "\"\"\""), outside, "no string is before the first line");
    }

    #[test]
    fn a_change_colours_the_sign_and_the_language_the_words() {
        let look = Theme::ansi();
        let lines = "-let a = \"x\"; // why\n+let b = \"x\"; // why\n kept";
        let rows = unified(&format!("--- a.rs\n+++ a.rs\n@@ -3,2 +3,2 @@\n{lines}"), &look);
        let signs: Vec<_> = rows[3..5].iter().map(|row| row.pieces[0].style).collect();
        assert_eq!(signs, [look.bad, look.good]);
        assert!(colours(&rows, "let a").len() > 2, "{rows:?}");
        assert!(colours(&rows, "let a").iter().any(Option::is_some), "{rows:?}");
        assert_eq!(colours(&rows, "let a"), colours(&rows, "let b"));
        // The sides are two texts: quotes that went are no part of what came.
        let of = |lines: &str| {
            let rows = unified(&format!("--- a.py\n+++ a.py\n{lines}\n"), &look);
            colours(&rows, "return y")
        };
        assert_eq!(of("@@ -3,1 +3,1 @@\n-x = \"\"\"\n+return y"), of("@@ -3,0 +3,1 @@\n+return y"));
        // Without a language the line has the colour of its sign.
        let rows = unified("--- a.zzz\n+++ a.zzz\n@@ -1 +1 @@\n-one\n+two", &look);
        assert_eq!(colours(&rows, "one"), [look.bad.fg]);
    }

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
            .filter(|piece| piece.style.add_modifier.contains(CHANGED))
            .map(|piece| piece.text.as_str())
            .collect();
        assert_eq!(marked, ["one;"], "{single:?}");
    }
}
