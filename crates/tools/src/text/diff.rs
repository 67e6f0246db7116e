//! The unified diff of a change, bounded.

use protocol::hidden::for_model;
use std::time::Duration;

/// Most lines of a diff that are kept.
const LINES: usize = 400;
/// Longest line of a diff, in characters.
const LINE_CHARS: usize = 500;
/// Larger texts are not compared.
const TEXT_MAX: usize = 4 << 20;
/// The comparison gets coarser after this time instead of slower.
const PATIENCE: Duration = Duration::from_millis(300);

/// The difference between `old` and `new`; empty if there is none.
pub(crate) fn unified(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    if old.len() + new.len() > TEXT_MAX {
        return format!(
            "[no diff: {} and {} bytes are too large to compare]\n",
            old.len(),
            new.len()
        );
    }
    // Carriage returns are noise where both sides end their lines with them.
    let strip = |text: &str| text.replace("\r\n", "\n");
    let both = old.contains("\r\n") && new.contains("\r\n") && strip(old) != strip(new);
    let (old, new) = if both { (strip(old), strip(new)) } else { (old.to_owned(), new.to_owned()) };
    let diff =
        similar::TextDiff::configure().timeout(PATIENCE).diff_lines(old.as_str(), new.as_str());
    let from = if old.is_empty() { "/dev/null".to_owned() } else { format!("a/{name}") };
    let text =
        diff.unified_diff().context_radius(3).header(&from, &format!("b/{name}")).to_string();
    bounded(&for_model(&text))
}

/// The diff that removes a whole file. It is not bounded, because it is the only copy of the
/// content.
pub(crate) fn removed(name: &str, old: &str) -> String {
    let diff = similar::TextDiff::from_lines(old, "");
    let text = diff.unified_diff().header(&format!("a/{name}"), "/dev/null").to_string();
    for_model(&text).into_owned()
}

fn bounded(diff: &str) -> String {
    let total = diff.lines().count();
    let mut out = String::with_capacity(diff.len().min(64 * 1024));
    for line in diff.lines().take(LINES) {
        out.push_str(&crate::text::lines::cut_line(line, LINE_CHARS, 0));
        out.push('\n');
    }
    if total > LINES {
        out.push_str(&format!("[diff truncated: {} more lines]\n", total - LINES));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn diffs() {
        assert_eq!(unified("f", "a\n", "a\n"), "");
        assert_eq!(
            unified("f", "a\nb\n", "a\nc\n"),
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
        );
        assert!(unified("f", "", "a\n").starts_with("--- /dev/null\n+++ b/f\n"));
        assert!(unified("f", "a", "a\n").contains("No newline at end of file"));
        let windows = unified("f", "a\r\nb\r\n", "a\r\nc\r\n");
        assert!(windows.contains("\n-b\n+c\n"), "{windows}");
        let changed_ends = unified("f", "a\r\n", "a\n");
        assert!(changed_ends.contains("-a\u{240d}\n+a\n"), "{changed_ends}");
        assert!(unified("f", "", "\u{1b}[2J\n").contains("+\u{241b}[2J"));
    }

    #[test]
    fn long_diffs_are_cut_with_their_count() {
        let new: String = (0..1000).map(|i| format!("{i}\n")).collect();
        let diff = unified("f", "", &new);
        assert!(
            diff.ends_with("[diff truncated: 603 more lines]\n"),
            "{}",
            &diff[diff.len() - 60..]
        );
    }
}
