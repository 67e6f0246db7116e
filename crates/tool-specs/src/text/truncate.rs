//! Text cut to a bound with the cut named: head 60 %, tail 40 %.

/// `text` within `max` characters, including the marker. `how` explains how to get the omitted
/// part.
pub fn fit(text: &str, max: usize, how: &str) -> String {
    let total = text.chars().count();
    if total <= max {
        return text.to_owned();
    }
    // The number in the mark is not known before the borders are; it has at most the digits of
    // the whole.
    let room = max.saturating_sub(mark(total, how).chars().count());
    let head = head(text, room * 6 / 10);
    let tail = tail(&text[head.len()..], room - room * 6 / 10);
    let omitted = total - head.chars().count() - tail.chars().count();
    format!("{head}{}{tail}", mark(omitted, how))
}

fn mark(omitted: usize, how: &str) -> String {
    let how = if how.is_empty() { String::new() } else { format!("; {how}") };
    format!("\n[… {omitted} characters not shown{how} …]\n")
}

/// The first `max` characters, back to the end of a line where the last half has one.
pub fn head(text: &str, max: usize) -> &str {
    let cut = text.char_indices().nth(max).map_or(text.len(), |(at, _)| at);
    let whole = &text[..cut];
    match whole.rfind('\n') {
        Some(at) if at >= cut / 2 && cut < text.len() => &whole[..at],
        Some(_) | None => whole,
    }
}

/// The last `max` characters, on to the beginning of a line where the first half has one.
pub fn tail(text: &str, max: usize) -> &str {
    if max == 0 {
        return "";
    }
    let cut = text.char_indices().rev().nth(max - 1).map_or(0, |(at, _)| at);
    let whole = &text[cut..];
    match whole.find('\n') {
        Some(at) if at <= whole.len() / 2 && cut > 0 => &whole[at + 1..],
        Some(_) | None => whole,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_text_is_untouched() {
        assert_eq!(fit("abc", 3, ""), "abc");
    }

    #[test]
    fn cuts_on_line_borders_and_says_how_much() {
        let text: String = (0..1000).map(|i| format!("line {i}\n")).collect();
        let cut = fit(&text, 1000, "ask again");
        assert!(cut.chars().count() <= 1000);
        assert!(cut.starts_with("line 0\n"));
        assert!(cut.ends_with("line 999\n"));
        assert!(cut.contains("characters not shown; ask again"));
        let lines: Vec<&str> = cut.lines().collect();
        let mark = lines.iter().position(|line| line.starts_with("[…")).unwrap();
        let before: usize = lines[mark - 1].strip_prefix("line ").unwrap().parse().unwrap();
        let after: usize = lines[mark + 1].strip_prefix("line ").unwrap().parse().unwrap();
        assert_eq!(text.lines().nth(before), Some(lines[mark - 1]));
        assert_eq!(text.lines().nth(after), Some(lines[mark + 1]));
    }

    proptest! {
        #[test]
        fn never_longer_and_the_count_is_right(text in "(\\PC|\n){0,400}", max in 100usize..300) {
            let cut = fit(&text, max, "");
            prop_assert!(cut.chars().count() <= max);
            if text.chars().count() > max {
                let at = cut.find("\n[… ").unwrap();
                let count: usize = cut[at + 6..].split(' ').next().unwrap().parse().unwrap_or(usize::MAX);
                let mark = mark(count, "");
                let kept = cut.chars().count() - mark.chars().count();
                prop_assert_eq!(kept + count, text.chars().count());
            }
        }
    }
}
