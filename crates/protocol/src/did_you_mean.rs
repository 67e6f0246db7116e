//! The known names that a mistyped one is like, for messages that offer a way on.

/// Most letters of a name that are compared: it may come from a model or from any file.
const LETTERS: usize = 64;

/// The most names that are offered.
const OFFERED: usize = 3;

/// Those of `known` that `wrong` is near to, nearest first: at most a third of the letters differ, or one. Case does
/// not count.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let compared = |name: &str| name.to_lowercase().chars().take(LETTERS).collect::<String>();
    let wrong = compared(wrong);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let other = compared(name);
            let allowed = (wrong.chars().count().max(other.chars().count()) / 3).max(1);
            let far = strsim::osa_distance(&wrong, &other);
            (far <= allowed).then_some((far, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(OFFERED).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let tools = ["read", "ls", "glob", "grep", "write", "edit", "bash"];
        let keys = ["permissions.mode", "permissions.allow", "net.mode"];
        for (wrong, known, meant) in [
            ("wriet", &tools[..], Some("write")),
            ("Read", &tools, Some("read")),
            ("grepp", &tools, Some("grep")),
            ("gerp", &tools, Some("grep")),
            ("bsh", &tools, Some("bash")),
            ("launch_missiles", &tools, None),
            ("permisions.mode", &keys, Some("permissions.mode")),
            ("permissions.alow", &keys, Some("permissions.allow")),
            ("net.mdoe", &keys, Some("net.mode")),
            ("colour", &keys, None),
            ("", &keys, None),
        ] {
            assert_eq!(nearest(wrong, known.iter().copied()).first(), meant.as_ref(), "{wrong}");
        }
    }

    #[test]
    fn the_nearest_comes_first_and_few_are_offered() {
        assert_eq!(nearest("tests", ["sent", "test", "tests", "test"]), ["tests", "test"]);
        assert_eq!(nearest("aab", ["ab", "aac", "aabc", "aa", "c"]), ["aa", "aabc", "aac"]);
    }
}
