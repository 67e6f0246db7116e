//! Names that are like a name nobody knows, for the refusal of a call to it.

/// Of `known`, at most three names that `said` may have meant, the nearest first.
pub(crate) fn nearest<'a>(said: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Longer names are no tool of anybody's, and comparing them costs their length squared.
    let said: String = said.chars().take(64).collect::<String>().to_lowercase();
    let mut ranked: Vec<(usize, &str)> = known
        .map(|name| {
            let whole = distance(&said, name);
            // `read_the_file` is nearer to `read` than letters say.
            let part = said.split(['_', '-', '.']).any(|word| word == name);
            (if part { whole.min(1) } else { whole }, name)
        })
        .filter(|(distance, name)| *distance <= name.len().div_ceil(2).max(1))
        .collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let known = ["read", "ls", "glob", "grep", "write", "edit", "bash"];
        for (said, want) in [
            ("raed", "read"),
            ("Bash", "bash"),
            ("grip", "grep"),
            ("read_the_file", "read"),
            ("writes", "write"),
        ] {
            assert_eq!(nearest(said, known.into_iter()).first(), Some(&want), "{said}");
        }
        assert!(nearest("launch_missiles", known.into_iter()).is_empty());
        assert!(nearest("", ["read"].into_iter()).is_empty());
    }
}
