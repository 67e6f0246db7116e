//! The known name that a mistyped one is nearest to.

/// The nearest of `known`, if it is near enough to be meant: a third of the letters may differ.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(far, _)| *far <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(100).collect();
    let b: Vec<char> = b.chars().take(100).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let changed = above[j] + usize::from(a[i] != b[j]);
            let mut best = changed.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["permissions.mode", "permissions.allow", "net.mode"];
        assert_eq!(nearest("permisions.mode", known), Some("permissions.mode"));
        assert_eq!(nearest("permissions.alow", known), Some("permissions.allow"));
        assert_eq!(nearest("net.mdoe", known), Some("net.mode"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn distance_counts_edits() {
        for (a, b, far) in [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("kitten", "sitting", 3)] {
            assert_eq!(distance(a, b), far, "{a} {b}");
        }
    }
}
