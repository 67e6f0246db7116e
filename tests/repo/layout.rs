//! The sizes of files and types, and the imports between files: limits that keep the tree easy to
//! read. How far a type and a knowledge spread over files is in `measures`.

use crate::source::{all_sources, is_test, root, shipped, sources};
use std::collections::{BTreeMap, BTreeSet};

/// The crate of a file: `crates/tools`.
pub fn crate_of(name: &str) -> String {
    name.split('/').take(2).collect::<Vec<_>>().join("/")
}

/// The shipped code of `crates` and `workers`.
pub fn production() -> Vec<(String, String)> {
    let files = all_sources().into_iter();
    files.filter(|(name, _)| !is_test(name)).map(|(name, text)| (name, shipped(&text))).collect()
}

#[test]
fn no_file_is_longer_than_800_lines() {
    let mut long = Vec::new();
    for (name, text) in all_sources().into_iter().filter(|(name, _)| !is_test(name)) {
        let lines = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap().lines().count();
        if lines > 800 {
            long.push(format!("{name}: {lines}"));
        }
    }
    assert!(long.is_empty(), "files of more than 800 lines: a file tells one story: {long:#?}");
}

/// `keyword NAME { body }` items at any depth whose braces close, with the body's own entries.
fn items<'a>(code: &'a str, keyword: &str) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    let mark = format!("{keyword} ");
    for (at, _) in code.match_indices(&mark) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            continue;
        }
        let rest = &code[at + mark.len()..];
        let name =
            rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap();
        let Some(open) = rest.find(['{', ';', '(']) else { continue };
        if name.is_empty() || !rest[open..].starts_with('{') {
            continue;
        }
        let (mut depth, mut entries, mut is_empty) = (0, 0, true);
        for letter in rest[open..].chars() {
            match letter {
                '{' | '(' | '[' | '<' => depth += 1,
                '}' | ')' | ']' => depth -= 1,
                '>' => depth -= 1,
                ',' if depth == 1 => {
                    entries += usize::from(!is_empty);
                    is_empty = true;
                }
                letter if !letter.is_whitespace() => is_empty = false,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        found.push((name, entries + usize::from(!is_empty)));
    }
    found
}

#[test]
fn no_struct_has_more_than_15_fields() {
    let allowed: BTreeMap<&str, &str> = [
        ("EndedRecord", "one line of the audit log: its fields are its columns"),
        ("Confinement", "one message: each field is one independent part of the policy"),
        (
            "SessionRequest",
            "one message: each field is one flag of the client, or one fact of its shell",
        ),
        ("Config", "one field for each table of the configuration"),
        ("ToolDeclaration", "one field for each constant of the trait `ToolSpec`"),
        ("CallFacts", "set once before a call is judged, and only read afterwards"),
        ("InterpretedCall", "a call's arguments, read once and only read afterwards"),
        ("SessionSpec", "built once as a session opens, and changed by settings alone"),
        ("CallArgs", "the arguments of one actor, taken apart as it starts"),
        ("NotifyConfig", "the arguments of one thread, taken apart as it starts"),
    ]
    .into();
    let mut large = Vec::new();
    for (file, code) in production() {
        for (name, fields) in items(&code, "struct") {
            if fields > 15 && !allowed.contains_key(name) {
                large.push(format!("{file}: {name} has {fields} fields"));
            }
        }
    }
    assert!(large.is_empty(), "{large:#?}");
}

#[test]
fn no_message_enum_has_more_than_20_variants() {
    let mut large = Vec::new();
    for (file, code) in production() {
        for (name, variants) in items(&code, "enum") {
            let is_message = name.ends_with("Msg")
                || name.ends_with("Event")
                || (file.starts_with("crates/protocol/")
                    && (name.starts_with("To") || name.starts_with("From")));
            if is_message && variants > 20 {
                large.push(format!("{file}: {name} has {variants} variants"));
            }
        }
    }
    assert!(large.is_empty(), "{large:#?}");
}

#[test]
fn a_type_name_is_declared_in_two_crates_at_most() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, code) in production() {
        for line in code.lines() {
            let line = line.trim_start();
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let line = match line.strip_prefix("pub(") {
                Some(rest) => rest.split_once(") ").map_or("", |(_, rest)| rest),
                None => line,
            };
            let mut words = line.split_whitespace();
            if !matches!(words.next(), Some("struct" | "enum" | "trait" | "union")) {
                continue;
            }
            let name = words.next().unwrap_or_default();
            let name = name.split(|letter: char| !letter.is_alphanumeric()).next().unwrap();
            places.entry(name.to_owned()).or_default().insert(crate_of(&file));
        }
    }
    assert!(places.len() > 500, "{} types found", places.len());
    // The arguments of each tool.
    places.remove("Input");
    places.retain(|_, crates| crates.len() > 2);
    assert!(places.is_empty(), "declared in more than two crates: {places:#?}");
}

/// The file of a module path below a crate's `src`, as far as it leads to one.
fn file_of<'a>(files: &'a BTreeSet<String>, source: &str, path: &[&str]) -> Option<&'a String> {
    (1..=path.len()).rev().find_map(|length| {
        let stem = format!("{source}/{}", path[..length].join("/"));
        files.get(&format!("{stem}.rs")).or_else(|| files.get(&format!("{stem}/mod.rs")))
    })
}

/// The module of a file: `crates/x/src/a/b.rs` is `[a, b]`, `crates/x/src/a/mod.rs` is `[a]`.
fn module_of<'a>(source: &str, file: &'a str) -> Vec<&'a str> {
    let inner = file[source.len() + 1..].trim_end_matches(".rs");
    let mut path: Vec<&str> = inner.split('/').collect();
    if matches!(path.last(), Some(&"mod" | &"lib" | &"main")) {
        path.pop();
    }
    path
}

/// The files that a file imports from, by `crate::` and `super::` paths; a module and its own submodules
/// are files like others.
fn imports(files: &BTreeSet<String>, source: &str, file: &str, code: &str) -> BTreeSet<String> {
    let own = module_of(source, file);
    let mut found = BTreeSet::new();
    let mut add = |base: &[&str], rest: &str| {
        let end =
            rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'));
        let (head, tail) = rest.split_at(end.unwrap_or(rest.len()));
        let head: Vec<&str> = head.split("::").filter(|part| !part.is_empty()).collect();
        let mut paths = Vec::new();
        if let (true, Some(group)) =
            (rest[..end.unwrap_or(0)].ends_with("::"), tail.strip_prefix('{'))
        {
            for part in group.split('}').next().unwrap().split(',') {
                let part = part.trim().split(" as ").next().unwrap();
                let inner = part.split("::").map(|word| word.trim_start_matches('{'));
                paths.push([base, &head[..], &inner.collect::<Vec<_>>()].concat());
            }
        } else {
            paths.push([base, &head[..]].concat());
        }
        for path in paths {
            let Some(target) = file_of(files, source, &path) else { continue };
            if target != file {
                found.insert(target.clone());
            }
        }
    };
    for (at, _) in code.match_indices("crate::") {
        if !code[..at].ends_with("pub(in ") && !code[..at].ends_with('$') {
            add(&[], &code[at + "crate::".len()..]);
        }
    }
    for (at, _) in code.match_indices("super::") {
        if code[..at].ends_with("super::") {
            continue;
        }
        let mut rest = &code[at..];
        let mut base = own.clone();
        while let Some(after) = rest.strip_prefix("super::") {
            base.pop();
            rest = after;
        }
        add(&base, rest);
    }
    found
}

/// Groups of files that import each other, directly or through others.
fn circles(edges: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = left.pop() {
            for next in edges.get(&file).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    left.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        edges.keys().map(|file| (file, reach(file))).collect();
    let mut found = BTreeSet::new();
    for (file, there) in &reached {
        let circle: BTreeSet<String> = there
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*file)))
            .cloned()
            .collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// How many circles are left. Lower it with each that goes; the recursion of a parser may stay.
const CIRCLES: usize = 1;

#[test]
fn import_circles_are_few_and_have_three_files_at_most() {
    let mut all = Vec::new();
    let mut arrows = 0;
    for directory in ["crates", "workers"] {
        let files: Vec<_> =
            sources(directory).into_iter().filter(|(name, _)| !is_test(name)).collect();
        let crates: BTreeSet<String> = files.iter().map(|(name, _)| crate_of(name)).collect();
        for name in crates {
            let source = format!("{name}/src");
            let own: Vec<_> =
                files.iter().filter(|(file, _)| file.starts_with(&format!("{source}/"))).collect();
            let names: BTreeSet<String> = own.iter().map(|(file, _)| file.clone()).collect();
            let edges: BTreeMap<String, BTreeSet<String>> = own
                .iter()
                .map(|(file, text)| (file.clone(), imports(&names, &source, file, &shipped(text))))
                .collect();
            arrows += edges.values().map(BTreeSet::len).sum::<usize>();
            all.extend(circles(&edges));
        }
    }
    assert!(arrows > 300, "{arrows} imports found");
    assert!(
        all.iter().all(|circle| circle.len() <= 3),
        "circles of more than three files: {all:#?}"
    );
    assert_eq!(all.len(), CIRCLES, "{all:#?}");
}

#[test]
fn a_circle_is_found_within_a_module_too() {
    let names: BTreeSet<String> =
        ["a.rs", "b.rs", "c/mod.rs", "c/d.rs"].map(|name| format!("crates/x/src/{name}")).into();
    let code = [
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::c::{d::D, C};"),
        ("c/mod.rs", "use d::D;"),
        ("c/d.rs", "use super::C;\nfn f() { crate::a::g() }"),
    ];
    let edges = |code: &[(&str, &str)]| -> BTreeMap<String, BTreeSet<String>> {
        let file = |name: &str| format!("crates/x/src/{name}");
        code.iter()
            .map(|(name, text)| (file(name), imports(&names, "crates/x/src", &file(name), text)))
            .collect()
    };
    let found = circles(&edges(&code));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].len(), 3, "a, b and d: {found:?}");
    assert!(circles(&edges(&code[..3])).is_empty(), "without d's import of a there is none");
    let within = [("c/mod.rs", "use crate::c::d::D;"), code[3]];
    assert_eq!(circles(&edges(&within)).len(), 1, "a module and its submodule");
    assert!(root().exists());
}
