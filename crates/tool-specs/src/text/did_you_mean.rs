//! The names most like a wrong one, for messages that offer a way on.

/// The candidates at most a third of their letters away from `wrong`, nearest first, at most three.
pub fn did_you_mean<'a>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let wrong = wrong.to_lowercase();
    let mut scored: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = distance(&wrong, &candidate.to_lowercase());
            let allowed = 1 + wrong.chars().count().max(candidate.chars().count()) / 3;
            (distance <= allowed).then_some((distance, candidate))
        })
        .collect();
    scored.sort_unstable();
    scored.dedup_by_key(|(_, name)| *name);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Letters to insert, drop or change to make one of the other. Long inputs are compared by their
/// first 64 letters: the cost is quadratic and the names come from a model.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let changed = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_likely_name() {
        let names = ["read", "ls", "glob", "grep", "write", "edit", "bash"];
        assert_eq!(did_you_mean("wriet", names), ["write"]);
        assert_eq!(did_you_mean("Read", names), ["read"]);
        assert_eq!(did_you_mean("grepp", names), ["grep"]);
        assert!(did_you_mean("launch_missiles", names).is_empty());
    }

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("ä", "a", 1)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
