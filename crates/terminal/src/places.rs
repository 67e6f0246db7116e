//! Places of the form `file:line` in a text, of files that exist in the project.
//!
//! The text is the model's or a program's: a name counts only for a regular file inside the project, and goes on as
//! its real path, so that none begins with `-` or `+` or leads elsewhere by a link.

use client::FilePlace;
use std::path::{Component, Path};

/// Places that are looked for, so that a long output costs little.
const MOST: usize = 200;
/// Bytes of a text that are read.
const LONGEST: usize = 1 << 20;

/// All places of a text, each once, in its order.
pub(crate) fn places(text: &str, project: &Path) -> Vec<FilePlace> {
    let Ok(root) = project.canonicalize() else { return Vec::new() };
    let mut found: Vec<FilePlace> = Vec::new();
    for (name, line) in named(text).take(MOST) {
        // A path that leads out by its words is not even looked for: it may lie on a dead network file system.
        let named = Path::new(name);
        let below = named.strip_prefix(&root).or_else(|_| named.strip_prefix(project));
        let inside = below.unwrap_or(named);
        if !inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            continue;
        }
        let Ok(real) = root.join(inside).canonicalize() else { continue };
        let is_plain = real.to_str().is_some_and(|path| !path.chars().any(char::is_control));
        let is_inside = real.starts_with(&root) && real.is_file();
        let place = FilePlace { path: real, line };
        if is_plain && is_inside && !found.contains(&place) {
            found.push(place);
        }
    }
    found
}

/// Names with a line, whether such a file exists or not.
fn named(text: &str) -> impl Iterator<Item = (&str, u32)> {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let ends_word = |c: char| c.is_whitespace() || c.is_control() || "\"'`()[]{}<>,;|".contains(c);
    text[..end].split(ends_word).filter_map(|word| {
        let colons = word.match_indices(':').map(|(at, _)| at);
        colons.into_iter().find_map(|at| {
            let (name, rest) = (&word[..at], &word[at + 1..]);
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let is_end = rest[digits..].chars().next().is_none_or(|c| !c.is_alphanumeric());
            let line = rest[..digits].parse().ok().filter(|line| *line > 0);
            line.filter(|_| is_end && !name.is_empty()).map(|line| (name, line))
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    fn a_place_has_a_name_and_a_line() {
        let all = |text| named(text).collect::<Vec<_>>();
        assert_eq!(all("see `src/a.rs:12`, or b.py:3."), [("src/a.rs", 12), ("b.py", 3)]);
        assert_eq!(all("  --> src/main.rs:4:17\nc.rs:9:fn x"), [("src/main.rs", 4), ("c.rs", 9)]);
        assert_eq!(
            all("(d.rs:1) [x](e.rs:2) \u{1b}f.rs:3"),
            [("d.rs", 1), ("e.rs", 2), ("f.rs", 3)]
        );
        for none in ["a.rs", "a.rs: 9 lines", ":12", "a.rs:0", "a.rs:1x", "a.rs:99999999999", "::"]
        {
            assert_eq!(all(none), [], "{none}");
        }
        let long = format!("{}é a.rs:1", "x".repeat(LONGEST - 1));
        assert_eq!(all(&long), []);
    }

    #[test]
    fn only_regular_files_inside_the_project_are_places() {
        let room = std::env::temp_dir().join(format!("agentd-places-{}", std::process::id()));
        let project = room.join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        for name in ["src/a.rs", "-rf", "+9", "../outside", "odd\u{7}name"] {
            fs::write(project.join(name), "x\n").unwrap();
        }
        std::os::unix::fs::symlink("../outside", project.join("link")).unwrap();
        let real = project.canonicalize().unwrap();
        let found = |text: &str| -> Vec<(String, u32)> {
            let name = |place: FilePlace| {
                let path = place.path.strip_prefix(&real).unwrap().display().to_string();
                (path, place.line)
            };
            places(text, &project).into_iter().map(name).collect()
        };
        let one = [("src/a.rs".to_owned(), 2)];
        assert_eq!(found("src/a.rs:2 ./src/a.rs:2:7 src/../src/a.rs:2"), one);
        assert_eq!(found(&format!("{}:2", real.join("src/a.rs").display())), one);
        for hostile in
            ["../outside:1", "link:1", "/etc/passwd:1", "src:1", "gone.rs:1", "odd\u{7}name:1"]
        {
            assert_eq!(found(hostile), [], "{hostile}");
        }
        // They are no options of an editor, because the real path begins with a slash.
        for dashed in ["-rf:1", "+9:1"] {
            assert!(places(dashed, &project)[0].path.is_absolute(), "{dashed}");
        }
        fs::remove_dir_all(room).unwrap();
    }
}
