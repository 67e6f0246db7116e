//! Lines that fit a terminal.

use protocol::hidden::on_screen;
use unicode_width::UnicodeWidthChar;

/// The beginning of `text` on one line, at most `most` characters.
#[must_use]
pub fn one_line(text: &str, most: usize) -> String {
    let words = on_screen(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= most {
        return words;
    }
    let cut: String = words.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// The last lines of an output that goes on.
#[must_use]
pub fn last_lines(output: &str, most: usize) -> Vec<String> {
    let output = on_screen(output);
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let first = lines.len().saturating_sub(most);
    lines[first..].iter().map(|line| (*line).to_owned()).collect()
}

/// How many bytes of `text` fit into so many columns; at least one character.
pub(crate) fn fitting(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(1);
        if used > columns && at > 0 {
            return at;
        }
    }
    text.len()
}

/// Truncates to one row.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    let text = text.replace(['\n', '\t'], " ");
    let fits = fitting(&text, columns);
    if fits == text.len() {
        return text;
    }
    let shorter = fitting(&text, columns.saturating_sub(1));
    format!("{}…", &text[..shorter])
}

/// Seconds up to two minutes, then minutes too.
pub(crate) fn in_time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Wraps lines at `width` columns, between words. Further rows begin below the first word of their
/// line, or `under` columns behind it. Words without spaces are left to the terminal.
#[must_use]
pub fn wrap(text: &str, width: usize, under: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| wrap_line(line, width, under)).collect();
    lines.join("\n")
}

fn wrap_line(line: &str, width: usize, under: usize) -> String {
    if display_width(line) <= width {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    let below = indent + under;
    // In a terminal as narrow as that nothing is gained.
    if below + 8 > width {
        return line.to_owned();
    }
    let mut rows = vec![line[..indent].to_owned()];
    // Spaces inside a row stay, so that columns of a table stay aligned.
    for word in line[indent..].split_inclusive(' ') {
        let row = rows.last().map_or(0, |row| display_width(row));
        if row + display_width(word.trim_end()) > width && row > below {
            rows.push(" ".repeat(below));
        }
        if let Some(row) = rows.last_mut() {
            row.push_str(word);
        }
    }
    let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
    rows.join("\n")
}

/// Columns that a text takes in a terminal.
#[must_use]
pub fn display_width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_has_so_many_characters() {
        assert_eq!(one_line("a\n  b\u{7}", 9), "a b\u{fffd}");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }

    #[test]
    fn lines_are_folded_between_words_and_stand_below_their_first() {
        let text = "  one two three four\nshort";
        assert_eq!(wrap(text, 80, 0), text);
        assert_eq!(wrap(text, 13, 0), "  one two\n  three four\nshort");
        assert_eq!(wrap("why:   one two three", 16, 7), "why:   one two\n       three");
        let long = "x".repeat(40);
        assert_eq!(wrap(&format!("see {long} there"), 20, 0), format!("see\n{long}\nthere"));
        assert_eq!(wrap("日本 日本 日本 日本", 10, 0), "日本 日本\n日本 日本");
        assert_eq!(wrap("one two", 5, 0), "one two", "too narrow to be worth it");
        assert_eq!(wrap("", 10, 2), "");
    }
}
