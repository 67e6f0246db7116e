//! The last limit on a result's length before a model receives it. Tools truncate their own results
//! and report it; this limit catches the others.

/// How far a tool's own mark of its cut may pass the limit without being cut again, in characters.
const SLACK: usize = 512;

/// `text` with at most about `most` characters: the head 60 %, the tail 40 %, the omitted count
/// between them, cut at line ends where one is near.
pub(crate) fn cut(text: String, most: usize) -> String {
    if text.len() <= most + SLACK || text.chars().count() <= most + SLACK {
        return text;
    }
    let total = text.chars().count();
    let head_end = offset(&text, most * 3 / 5);
    let tail_start = offset(&text, total - (most - most * 3 / 5));
    // A line border is worth up to a tenth of the text that is kept.
    let near = most / 10;
    let head = match text[..head_end].rfind('\n') {
        Some(at) if head_end - at <= near => &text[..=at],
        Some(_) | None => &text[..head_end],
    };
    let tail = match text[tail_start..].find('\n') {
        Some(at) if at <= near => &text[tail_start + at + 1..],
        Some(_) | None => &text[tail_start..],
    };
    let omitted = total - head.chars().count() - tail.chars().count();
    format!("{head}\n[... {omitted} characters left out ...]\n{tail}")
}

/// Where the character number `count` begins, in bytes.
fn offset(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_does_not_says_so() {
        assert_eq!(cut("short".into(), 100), "short");
        let lines: String = (0..5000).map(|n| format!("line {n} é\n")).collect();
        let short = cut(lines.clone(), 1000);
        assert!(short.chars().count() < 1100, "{}", short.len());
        assert!(short.starts_with("line 0 é\n"));
        assert!(short.ends_with("line 4999 é\n"));
        let left: usize = short
            .split("[... ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .and_then(|number| number.parse().ok())
            .unwrap_or_default();
        let marks =
            short.chars().count() - format!("\n[... {left} characters left out ...]\n").len();
        assert_eq!(marks + left, lines.chars().count());
        assert!(cut("é".repeat(3000), 0).contains("3000 characters left out"));
    }
}
