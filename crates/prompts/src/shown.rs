//! Names and descriptions as they are shown: on one line, without control codes. Used by this crate
//! and the store. Pure.

/// On one line, at most so many characters; control codes are escaped.
#[must_use]
pub fn line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown = String::with_capacity(line.len());
    for (place, letter) in line.chars().enumerate() {
        if place == most {
            shown.push('…');
            break;
        }
        match letter.is_control() {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_and_has_no_control_codes() {
        assert_eq!(line("a\n  b c", 4), "a b …");
        assert_eq!(line("a\n b", 4), "a b");
        assert_eq!(line("a\u{1b}[31m", 10), "a\\u{1b}[31m");
    }
}
