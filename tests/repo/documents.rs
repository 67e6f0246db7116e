//! The Markdown files, as a reader sees them: tables, links and anchors as they are rendered, tests and facts that
//! they name.
// The parser has more events than a function here reads.
#![allow(clippy::wildcard_enum_match_arm)]

use crate::source::{all_sources, is_test, root};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every Markdown file, by its path from the root.
fn documents() -> Vec<(String, String)> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            // Hidden directories and those of builds are not documents of the tree.
            if path.is_dir()
                && !name.starts_with('.')
                && !["target", "node_modules"].contains(&name)
            {
                walk(&path, found);
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(root(), &mut found);
    found.sort();
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let name = |path: &PathBuf| path.strip_prefix(root()).unwrap().display().to_string();
    found.iter().map(|path| (name(path), text(path))).collect()
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)
}

/// The cells of a row as written; the renderer fills up and cuts off without a word.
fn cells(row: &str) -> usize {
    let row = row.trim().trim_start_matches("> ");
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').filter(|row| !row.ends_with('\\')).unwrap_or(row);
    1 + row.replace("\\|", "").matches('|').count()
}

fn is_delimiter(row: &str) -> bool {
    row.contains("--") && !row.contains(|letter| !"|-: ".contains(letter))
}

/// The rows that a reader does not see as rows of their table.
fn broken_tables(text: &str) -> Vec<String> {
    let (mut broken, mut columns, mut in_code, mut in_table) = (Vec::new(), 0, false, false);
    for (event, range) in parser(text).into_offset_iter() {
        let row = text[range].trim_end();
        match event {
            Event::Start(Tag::Table(_)) => in_table = true,
            Event::End(TagEnd::Table) => in_table = false,
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::TableHead) => columns = cells(row),
            Event::Start(Tag::TableRow) if is_delimiter(row) => {
                broken.push(format!("the head of a table is a row of the one above: {row}"));
            }
            Event::Start(Tag::TableRow) if cells(row) != columns => {
                broken.push(format!("{} cells of {columns}: {row}", cells(row)));
            }
            Event::Start(Tag::Paragraph) if !in_code && !in_table => {
                let rows = row.lines().filter(|line| line.trim_start().starts_with('|'));
                broken.extend(rows.map(|line| format!("a row without a table: {line}")));
            }
            _ => {}
        }
    }
    broken
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut found, mut heading): (BTreeSet<String>, Option<String>) = (BTreeSet::new(), None);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for event in parser(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(words) | Event::Code(words), Some(heading)) => heading.push_str(&words),
            (Event::End(TagEnd::Heading(_)), Some(words)) => {
                let is_kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
                let slug: String = words.to_lowercase().chars().filter(is_kept).collect();
                let slug = slug.replace(' ', "-");
                let count = counts.entry(slug.clone()).or_default();
                found.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
                *count += 1;
                heading = None;
            }
            _ => {}
        }
    }
    found
}

/// The links and pictures of a document that lead nowhere in the repository, and how many it has.
fn dead_links(name: &str, text: &str) -> (Vec<String>, usize) {
    let folder = root().join(name).parent().unwrap().to_owned();
    let (mut dead, mut count) = (Vec::new(), 0);
    for event in parser(text) {
        let (Event::Start(Tag::Link { dest_url, .. }) | Event::Start(Tag::Image { dest_url, .. })) =
            event
        else {
            continue;
        };
        if dest_url.contains("://") {
            continue;
        }
        count += 1;
        let (path, anchor) = dest_url.split_once('#').unwrap_or((&dest_url, ""));
        let target = if path.is_empty() { root().join(name) } else { folder.join(path) };
        let has_anchor = || {
            let own = path.is_empty().then(|| text.to_owned());
            let text = own.or_else(|| fs::read_to_string(&target).ok());
            text.is_some_and(|text| anchors(&text).contains(anchor))
        };
        if !path.is_empty() && !target.exists() || !anchor.is_empty() && !has_anchor() {
            dead.push(format!("link to {dest_url}"));
        }
    }
    (dead, count)
}

/// The code of a document: spans, and the lines of blocks.
fn code(text: &str) -> Vec<String> {
    let (mut found, mut in_code) = (Vec::new(), false);
    for event in parser(text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Code(span) => found.push(span.to_string()),
            Event::Text(lines) if in_code => found.extend(lines.lines().map(str::to_owned)),
            _ => {}
        }
    }
    found
}

/// Every test, by its suite (a crate, or a folder of `tests`), the path to it there, and its name.
fn tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (file, text) in all_sources() {
        let parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
        let (suite, path) = match parts[..] {
            ["tests", suite, ref path @ ..] => (suite.to_owned(), path),
            // The one executable of a package's tests has the package's name.
            [_, package, "tests", executable, ref path @ ..] if executable == package => {
                (package.replace('-', "_"), path)
            }
            [_, package, _, ref path @ ..] => (package.replace('-', "_"), path),
            _ => continue,
        };
        let modules = path.iter().map(|part| part.strip_suffix("_tests").unwrap_or(part));
        let modules = modules.filter(|part| !["mod", "lib", "main", "tests"].contains(part));
        let modules: Vec<&str> = modules.collect();
        let mut is_next = false;
        for line in text.lines().map(str::trim_start) {
            let signature = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            if line == "#[test]" || line.starts_with("#[tokio::test") {
                is_next = true;
            } else if let (true, Some(rest)) = (is_next, signature) {
                let name = rest.split(['(', '<']).next().unwrap();
                let mut all = vec![suite.as_str()];
                all.extend(&modules);
                all.push(name);
                found.insert(all.join("::"));
                is_next = false;
            }
        }
    }
    found
}

/// What a document says of tests that there are not, and tests without their full name.
fn unknown_tests(text: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let suites: BTreeSet<&str> = tests.iter().filter_map(|test| test.split("::").next()).collect();
    let names: BTreeSet<&str> = tests.iter().filter_map(|test| test.rsplit("::").next()).collect();
    let mut unknown = Vec::new();
    for code in code(text) {
        let is_path = !code.contains(|c: char| {
            !c.is_ascii_lowercase() && !c.is_ascii_digit() && !"_:".contains(c)
        });
        let first = code.split("::").next().unwrap();
        if is_path && code.contains("::") && suites.contains(first) && !tests.contains(&code) {
            unknown.push(format!("there is no test {code}"));
        }
        // One or two words may be a name of something else.
        if is_path && code.matches('_').count() > 2 && names.contains(code.as_str()) {
            unknown.push(format!("{code} lacks its suite and module"));
        }
        let Some((_, rest)) = code.split_once("--test ") else { continue };
        let mut words = rest.split_whitespace();
        let suite = words.next().unwrap();
        if suite.contains(|c: char| c.is_ascii_uppercase()) {
            continue;
        }
        for filter in words.take_while(|word| *word != "--").filter(|word| !word.starts_with('-')) {
            let is_of_suite = |test: &&String| test.split("::").any(|part| part == suite);
            if filter != "#" && !tests.iter().filter(is_of_suite).any(|test| test.contains(filter))
            {
                unknown.push(format!("no test of {suite} has {filter} in its name"));
            }
            if filter == "#" {
                break;
            }
        }
    }
    unknown
}

#[test]
fn every_table_and_every_link_is_rendered() {
    let (mut wrong, mut links, mut rows) = (Vec::new(), 0, 0);
    for (name, text) in documents() {
        let (dead, count) = dead_links(&name, &text);
        links += count;
        rows += text.lines().filter(|line| line.starts_with('|')).count();
        wrong
            .extend(dead.into_iter().chain(broken_tables(&text)).map(|it| format!("{name}: {it}")));
    }
    assert!(wrong.is_empty(), "a reader meets these:\n{}", wrong.join("\n"));
    assert!(links > 100 && rows > 500, "{links} links and {rows} rows found");
}

/// The control: each of these looks right in the source, or nearly.
#[test]
fn a_broken_table_and_a_dead_link_are_found() {
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n";
    assert_eq!(broken_tables(&format!("Text.\n\n{table}\nMore.\n")), [""; 0]);
    assert_eq!(broken_tables("| `a \\| b` | c |\n|---|---|\n| 1 | 2 |\n"), [""; 0]);
    assert_eq!(broken_tables("```\n| a |\n```\n"), [""; 0]);
    for broken in [
        "| a | b |\n|---|---|\n| 1 |\n".to_owned(),
        "| a | b |\n|---|---|\n| 1 | 2 | 3 |\n".to_owned(),
        "| a | b |\n|---|---|\n| `x | y` | 2 |\n".to_owned(),
        format!("{table}| c | d |\n|---|---|\n| 3 | 4 |\n"),
        format!("{table}Text at its end.\n"),
        "| a | b |\n|---|\n| 1 | 2 |\n".to_owned(),
        "| a | b |\n| 1 | 2 |\n".to_owned(),
    ] {
        assert!(!broken_tables(&broken).is_empty(), "{broken}");
    }
    let links = "# One `two`\n\n# It's\n\n[a](README.md) [b](#one-two) [c](#its) [d](tests/README.md#other-suites)\n";
    assert_eq!(dead_links("X.md", links), (Vec::new(), 4));
    for dead in ["[a](REEDME.md)", "[a](#one)", "![a](x.svg)", "[a](README.md#nowhere)"] {
        assert_eq!(dead_links("X.md", &format!("# Two\n\n{dead}\n")).0.len(), 1, "{dead}");
    }
}

#[test]
fn every_test_that_a_document_names_is_there() {
    let tests = tests();
    assert!(tests.len() > 2500, "{} tests found", tests.len());
    let (mut wrong, mut named) = (Vec::new(), 0);
    for (name, text) in documents().into_iter().filter(|(name, _)| name != "CHANGELOG.md") {
        named += code(&text).iter().filter(|code| tests.contains(*code)).count();
        wrong.extend(unknown_tests(&text, &tests).into_iter().map(|it| format!("{name}: {it}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(named > 20, "{named} tests named");
}

#[test]
fn a_test_that_is_not_there_is_found() {
    let tests = BTreeSet::from(["repo::documents::each_word_is_there".to_owned()]);
    let right = "`repo::documents::each_word_is_there`, `cargo test --test repo each_word -- -q`, `std::fs::read`";
    assert_eq!(unknown_tests(right, &tests), [""; 0]);
    for wrong in [
        "`repo::documents::each_word_was_there`",
        "`repo::each_word_is_there`",
        "`each_word_is_there`",
        "```sh\ncargo test --test repo every_word\n```",
    ] {
        assert_eq!(unknown_tests(wrong, &tests).len(), 1, "{wrong}");
    }
}

/// Code spans that name a file or a folder from the root. The changelog's are history.
#[test]
fn every_path_that_a_document_names_is_there() {
    let roots = ["tests/", "crates/", "workers/", "config/", ".ci/"];
    let (mut dead, mut count) = (Vec::new(), 0);
    for (name, text) in documents().into_iter().filter(|(name, _)| name != "CHANGELOG.md") {
        let folder = root().join(&name).parent().unwrap().to_owned();
        for span in code(&text) {
            let is_path = roots.iter().any(|root| span.starts_with(root))
                && !span.contains(|c: char| c.is_ascii_uppercase() || " *<{\n".contains(c));
            count += usize::from(is_path);
            if is_path && !root().join(&span).exists() && !folder.join(&span).exists() {
                dead.push(format!("{name}: {span}"));
            }
        }
    }
    assert!(dead.is_empty(), "these lead nowhere:\n{}", dead.join("\n"));
    assert!(count > 10, "{count} paths found");
}

#[test]
fn the_readme_is_short_and_names_both_commands() {
    let readme = read("README.md");
    assert!(readme.lines().count() <= 90, "README.md has {} lines", readme.lines().count());
    for words in ["cargo install --locked --path . --root", "agentd\" demo", "\ntests/run\n"] {
        assert!(readme.contains(words), "README.md does not name `{words}`");
    }
    assert!(
        read(".ci/run").contains("\ntests/run\n"),
        ".ci/run does not call the README's command"
    );
}

/// Each bold figure of the README's list stands in the file that it was taken from.
#[test]
fn the_figures_of_the_readme_are_results() {
    let (readme, results) = (read("README.md"), read("tests/bench/RESULTS.md"));
    let (_, section) = readme.split_once("\n## Figures\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let figures: Vec<&str> = section.split("**").skip(1).step_by(2).collect();
    assert!(figures.len() >= 3, "{figures:?}");
    for figure in figures {
        assert!(results.contains(&format!("| {figure} |")), "RESULTS.md has no cell `{figure}`");
    }
}

#[test]
fn the_architecture_names_every_crate() {
    let text = read("ARCHITECTURE.md");
    for directory in ["crates", "workers"] {
        for entry in fs::read_dir(root().join(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(text.contains(&format!("`{name}`")), "no word of {directory}/{name}");
        }
    }
}

/// True if the text has this word, not only a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) =
            (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// The table that leads through one call: records by their names on disk, steps as code spans.
#[test]
fn each_row_of_one_call_names_what_its_file_has() {
    let text = read("ARCHITECTURE.md");
    let (_, table) = text.split_once("\n## One call\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let mut named = 0;
    for row in table.lines().filter(|row| row.contains("](")) {
        let (_, rest) = row.split_once("](").unwrap();
        let (file, step) = rest.split_once(") | ").unwrap();
        let text = read(file);
        let is_code = |line: &&str| !["//", "use "].iter().any(|it| line.trim().starts_with(it));
        let text = text.lines().filter(is_code).collect::<Vec<_>>().join("\n");
        let words = step.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_record =
            |word: &&str| word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase());
        let records = words.filter(is_record).map(|word| {
            let variant = word[..1].to_owned() + &word[1..].to_lowercase();
            ["JournalRecord", "CallRecord"].map(|of| format!("{of}::{variant}"))
        });
        let spans = step.split('`').skip(1).step_by(2).map(|span| [span, span].map(str::to_owned));
        let all: Vec<_> = records.chain(spans).collect();
        assert!(!all.is_empty(), "the row names no record and no step: {row}");
        for any in all {
            named += 1;
            let is_there = any.iter().any(|name| has_word(&text, name));
            assert!(is_there, "{file} has none of {any:?}: {row}");
        }
    }
    assert!(named > 10, "the table was not found");
}

/// Keys with Ctrl that the two views handle, and the rows of the page that `?` shows.
#[test]
fn each_control_key_is_on_the_page_of_keys() {
    let page =
        read("crates/client/src/screen/colon_command.rs") + &read("crates/terminal/src/help.rs");
    let listed: BTreeSet<char> = page
        .split("Ctrl-")
        .skip(1)
        .flat_map(|rest| {
            let words = rest.split(['"', ',', ':']).next().unwrap_or_default();
            words
                .split(' ')
                .filter_map(|word| (word.len() == 1).then(|| word.chars().next()).flatten())
        })
        .collect();
    let mut found = 0;
    for (name, text) in all_sources().iter().filter(|(name, _)| !is_test(name)) {
        for rest in text.split("KeyPress::Control('").skip(1) {
            found += 1;
            let key = rest.chars().next().unwrap().to_ascii_uppercase();
            assert!(
                listed.contains(&key),
                "{name} handles Ctrl-{key}, which no page of keys names"
            );
        }
    }
    assert!(found > 4, "{found} keys found");
}

#[test]
fn each_field_of_an_mcp_server_is_on_its_page() {
    let (source, page) = (read("crates/config/src/mcp.rs"), read("workers/agentd/help/mcp.md"));
    let (_, fields) = source.split_once("\nstruct Written {\n").unwrap();
    let fields = fields.split("\n}").next().unwrap().lines();
    let fields = fields.filter_map(|line| line.trim().split_once(": ")).map(|(name, _)| name);
    let fields: Vec<&str> = fields.filter(|name| *name != "others").collect();
    assert!(fields.len() > 8, "{fields:?}");
    for field in fields {
        assert!(page.contains(&format!("`{field}")), "help/mcp.md has no word of `{field}`");
    }
}

#[test]
fn each_vendor_is_in_the_table_of_the_provider() {
    let table = read("crates/provider/README.md");
    for vendor in config::VENDORS {
        let row = format!("| `{}` |", vendor.name);
        assert!(table.contains(&row), "its README has no row of {}", vendor.name);
    }
}
