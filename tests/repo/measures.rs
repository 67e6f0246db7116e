//! How far one type, and one piece of knowledge, spread over the tree: what a reader has to hold in the head
//! to change a state safely. A limit that is not met yet stands at what the tree has, and only goes down.

use crate::layout::{crate_of, production};
use std::collections::{BTreeMap, BTreeSet};

/// Most lines of the `impl` blocks of one type, without blank and comment lines, and most files with one.
const LINES: usize = 1000;
const FILES: usize = 8;

/// Types above these limits, with limits of their own: to be taken apart.
const LARGE: [(&str, usize, usize); 3] = [
    ("crates/client Screen", 1250, 8),
    ("crates/session Session", 1300, 7),
    ("crates/supervise SessionActorState", 1150, 8),
];
/// How far such a limit may lie above what the tree has.
const SLACK: usize = 100;

/// The type of an inherent `impl` that begins with this line.
fn implemented(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find(|(_, letter)| {
            depth += i32::from(*letter == '<') - i32::from(*letter == '>');
            depth == 0
        })?;
        rest = &rest[end.0 + 1..];
    }
    let rest = rest.strip_prefix(' ')?;
    let is_of_trait = rest.split(" where ").next().unwrap().contains(" for ");
    let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
    (!is_of_trait && !name.is_empty()).then_some(name)
}

/// Lines and files of the inherent `impl` blocks of each type, by crate and name.
fn sizes(code: &[(String, String)]) -> BTreeMap<String, (usize, BTreeSet<String>)> {
    let mut found: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    for (file, text) in code {
        let mut within: Option<String> = None;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(name) = implemented(line) {
                within = Some(format!("{} {name}", crate_of(file)));
            }
            let Some(name) = &within else { continue };
            let (lines, files) = found.entry(name.clone()).or_default();
            *lines += 1;
            files.insert(file.clone());
            if line == "}" || line.ends_with("{}") && implemented(line).is_some() {
                within = None;
            }
        }
    }
    found
}

#[test]
fn no_type_is_larger_than_1000_lines_or_8_files() {
    let found = sizes(&production());
    assert!(found.len() > 500, "{} types found", found.len());
    for (name, (lines, files)) in &found {
        let own = LARGE.iter().find(|(large, ..)| large == name);
        let (_, most_lines, most_files) = own.copied().unwrap_or(("", LINES, FILES));
        let found = format!("{name}: {lines} lines in {} files", files.len());
        assert!(*lines <= most_lines && files.len() <= most_files, "take it apart: {found}");
    }
    for (name, most_lines, most_files) in LARGE {
        let (lines, files) = &found[name];
        let is_near = lines + SLACK > most_lines && files.len() == most_files;
        assert!(is_near, "lower the limits of {name}: {lines} lines in {} files", files.len());
    }
}

#[test]
fn the_impl_blocks_of_a_type_are_counted_and_those_of_traits_are_not() {
    let file = |name: &str, text: &str| (format!("crates/x/src/{name}"), text.to_owned());
    let code = [
        file(
            "a.rs",
            "struct A;\nimpl A {\n    fn a() {\n    }\n\n}\nfn free() {\n}\nimpl Drop for A {\n}\n",
        ),
        file(
            "b.rs",
            "impl<T: Into<u8>> A<T> {\n    const B: u8 = 0;\n}\nimpl B {}\nfn free() {}\n",
        ),
    ];
    let found = sizes(&code);
    let of = |name: &str| found.get(name).map(|(lines, files)| (*lines, files.len()));
    assert_eq!(of("crates/x A"), Some((7, 2)));
    assert_eq!(of("crates/x B"), Some((1, 1)));
    assert_eq!(found.len(), 2, "{found:?}");
}

/// The files outside of `home` whose code contains `text`; of a type's path, with one of its variants.
fn users(text: &str, home: &str) -> Vec<String> {
    let is_use = |rest: &str| !text.ends_with("::") || rest.starts_with(char::is_uppercase);
    let uses =
        |code: &str| code.match_indices(text).any(|(at, _)| is_use(&code[at + text.len()..]));
    let code = production().into_iter();
    let found = code.filter(|(name, code)| !name.starts_with(home) && uses(code));
    found.map(|(name, _)| name).collect()
}

#[test]
fn what_several_parts_must_know_is_known_in_few_files() {
    for (text, home, most) in [
        // Kinds of records; each form of an export reads them.
        ("JournalRecord::", "crates/journal/", 8),
        // The start of a runner.
        (".spawn_runner(", "crates/launch/src/spawner.rs", 1),
    ] {
        let found = users(text, home);
        assert_eq!(found.len(), most, "{text}: {found:#?}");
    }
}
