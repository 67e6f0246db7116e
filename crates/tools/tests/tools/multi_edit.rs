//! `multi_edit`.

use crate::project::{Project, fifo};
use proptest::prelude::*;
use protocol::call::FileEffect;
use protocol::tool::JudgedPath;
use serde_json::{Value, json};

fn edits(path: &str, edits: Value) -> Value {
    json!({"path": path, "edits": edits})
}

fn find(find: &str, replace: &str) -> Value {
    json!({"find": find, "replace": replace})
}

fn lines(start: u64, end: u64, replace: &str) -> Value {
    json!({"start_line": start, "end_line": end, "replace": replace})
}

#[test]
fn edits_are_located_in_the_file_as_it_was() {
    let project = Project::with(&[("a", "one\ntwo\nthree\nfour\n")]);
    let input = edits("a", json!([lines(4, 4, "4\n"), find("one", "1\n1.5"), lines(2, 3, "2+3")]));
    let report = project.run("multi_edit", input);
    assert_eq!(
        report.result.text,
        "edited a: 3 places\n--- a/a\n+++ b/a\n@@ -1,4 +1,4 @@\n-one\n-two\n-three\n-four\n+1\n+1.5\n+2+3\n+4\n"
    );
    assert_eq!(
        report.effects,
        [FileEffect::Written(project.path("a").to_str().unwrap().to_owned())]
    );
    assert_eq!(project.content("a"), "1\n1.5\n2+3\n4\n");
    assert_eq!(project.names("."), ["a"]);
}

#[test]
fn lines_keep_their_ends() {
    for (old, edit, expected) in [
        ("a\r\nb\r\nc\r\n", lines(2, 2, "x\ny"), "a\r\nx\r\ny\r\nc\r\n"),
        ("a\r\nb\r\n", lines(1, 1, "x\r\ny\r\n"), "x\r\ny\r\nb\r\n"),
        ("a\nb\n", lines(2, 2, "x"), "a\nx\n"),
        ("a\nb", lines(2, 2, "x\n"), "a\nx"),
        ("a\r\nb", lines(2, 2, "x\r\n"), "a\r\nx"),
        ("a\nb\nc\n", lines(2, 2, ""), "a\nc\n"),
        ("a\nb\nc", lines(3, 3, ""), "a\nb\n"),
        ("a\n\nc\n", lines(2, 2, "b"), "a\nb\nc\n"),
        ("a\nb\n", lines(1, 1, "\n"), "\nb\n"),
        ("\u{feff}a\r\nb\r\n", lines(2, 2, "c"), "\u{feff}a\r\nc\r\n"),
    ] {
        let project = Project::with(&[("a", old)]);
        project.ok("multi_edit", edits("a", json!([edit])));
        assert_eq!(project.content("a"), expected, "{old:?} {edit}");
    }
}

#[test]
fn neighbours_do_not_overlap() {
    let project = Project::with(&[("a", "ab\ncd\n")]);
    project.ok("multi_edit", edits("a", json!([find("a", "1"), find("b", "2"), lines(2, 2, "3")])));
    assert_eq!(project.content("a"), "12\n3\n");
}

#[test]
fn one_wrong_edit_and_nothing_is_changed() {
    let old = "one\ntwo\ntwo\nthree\n";
    let project = Project::with(&[("a", old)]);
    let good = find("one", "1");
    for (wrong, code, words) in [
        (find("not there", "x"), "no_match", "edits[1].find is not in"),
        (find("two", "x"), "ambiguous", "2 times, at lines 2, 3"),
        (find("", "x"), "invalid_arguments", "edits[1].find is empty"),
        (find("ne\ntwo", "x"), "overlap", "edits[0] (line 1) and edits[1] (line 1)"),
        (lines(1, 2, "x"), "overlap", "replace the same text"),
        (lines(4, 5, "x"), "past_end", "has 4 lines"),
        (lines(9, 9, "x"), "past_end", "has 4 lines"),
        (lines(3, 2, "x"), "invalid_arguments", "comes before"),
        (json!({"start_line": 2, "replace": "x"}), "invalid_arguments", "has no end_line"),
        (json!({"end_line": 2, "replace": "x"}), "invalid_arguments", "has no start_line"),
        (json!({"replace": "x"}), "invalid_arguments", "neither find nor lines"),
        (
            json!({"find": "three", "start_line": 4, "end_line": 4, "replace": "x"}),
            "invalid_arguments",
            "both find and lines",
        ),
        (json!({"find": "three"}), "invalid_arguments", "edits[1].replace"),
        (
            json!({"find": "three", "replace": "x", "all": true}),
            "invalid_arguments",
            "edits[1].all",
        ),
        (lines(0, 1, "x"), "invalid_arguments", "edits[1].start_line"),
        (json!("three"), "invalid_arguments", "edits[1]"),
    ] {
        let text = project.fails("multi_edit", edits("a", json!([good, wrong])), code);
        assert!(text.contains(words), "{wrong}: {text}");
        assert_eq!(project.content("a"), old, "{wrong}");
    }
    project.ok("multi_edit", edits("a", json!([good])));
}

#[test]
fn what_would_be_left_of_the_file() {
    let project = Project::with(&[("a", "one\ntwo\n"), ("empty", "")]);
    let text =
        project.fails("multi_edit", edits("a", json!([lines(1, 2, "")])), "invalid_arguments");
    assert!(text.contains("empty the whole file"), "{text}");
    project.fails(
        "multi_edit",
        edits("a", json!([find("one\n", ""), lines(2, 2, "\n")])),
        "invalid_arguments",
    );
    project.fails("multi_edit", edits("a", json!([find("one", "one")])), "invalid_arguments");
    project.fails("multi_edit", edits("a", json!([])), "invalid_arguments");
    project.fails("multi_edit", edits("empty", json!([lines(1, 1, "x")])), "past_end");
    let many: Vec<Value> = (0..201).map(|i| find(&format!("{i}"), "x")).collect();
    project.fails("multi_edit", edits("a", json!(many)), "invalid_arguments");
    assert_eq!(project.content("a"), "one\ntwo\n");
}

#[test]
fn files_that_cannot_be_edited() {
    let mut project = Project::with(&[("dir/x", "x"), ("a", "x\n")]);
    project.put("binary", b"\x7fELF\0x");
    project.put("latin1", b"ok\ncaf\xe9 x");
    project.put("big", &vec![b'x'; (8 << 20) + 1]);
    fifo(&project.path("fifo"));
    for (path, code) in [
        ("not-there", "not_found"),
        ("dir", "is_directory"),
        ("a/x", "not_a_directory"),
        ("binary", "binary"),
        ("latin1", "not_utf8"),
        ("big", "too_large"),
        ("fifo", "not_a_file"),
        ("", "invalid_arguments"),
        (".envrc", "protected"),
        ("../secret", "access_denied"),
    ] {
        project.fails("multi_edit", edits(path, json!([find("x", "y")])), code);
    }
    let real = project.path("a").to_str().unwrap().to_owned();
    project.judged = vec![JudgedPath { real, digest: Some("0".repeat(64)) }];
    project.fails("multi_edit", edits("a", json!([find("x", "y")])), "stale");
    assert_eq!(project.content("a"), "x\n");
}

/// A file of so many lines, of one kind of ends or of both, with or without an end at its end.
fn files() -> impl Strategy<Value = String> {
    let line = ("[ab]{0,3}", prop_oneof![Just("\n"), Just("\r\n")]);
    (proptest::collection::vec(line, 1..10), any::<bool>()).prop_map(|(lines, ended)| {
        let mut text = String::new();
        for (number, (line, end)) in lines.iter().enumerate() {
            text.push_str(&format!("{number}{line}"));
            if ended || number + 1 < lines.len() {
                text.push_str(end);
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// After any replacement by number or by text, every other byte stays, each line keeps its kind
    /// of ending, and the order of the edits does not matter.
    #[test]
    fn no_byte_beside_the_edits_changes(
        old in files(),
        chosen in proptest::collection::vec((any::<bool>(), any::<bool>(), "[xy]{0,2}(\n[xy]{1,2}){0,2}"), 10),
        seed in any::<u64>(),
    ) {
        let project = Project::with(&[("a", &old)]);
        let pieces: Vec<&str> = old.split_inclusive('\n').collect();
        let mut calls = Vec::new();
        let mut expected = String::new();
        for (number, (piece, (wanted, by_line, new))) in pieces.iter().zip(&chosen).enumerate() {
            let body = piece.trim_end_matches(['\r', '\n']);
            let end = &piece[body.len()..];
            // A line without an end is given that of the line before it.
            let kind = if end.is_empty() {
                pieces.get(number.wrapping_sub(1)).map_or("\n", |before| if before.ends_with("\r\n") { "\r\n" } else { "\n" })
            } else {
                end
            };
            if !wanted || new.is_empty() {
                expected.push_str(piece);
                continue;
            }
            expected.push_str(&new.replace('\n', kind));
            expected.push_str(end);
            let at = number as u64 + 1;
            calls.push(if *by_line { lines(at, at, new) } else { find(body, new) });
        }
        prop_assume!(!calls.is_empty());
        let turn = usize::try_from(seed % calls.len() as u64).unwrap();
        calls.rotate_left(turn);
        project.ok("multi_edit", edits("a", json!(calls)));
        prop_assert_eq!(project.content("a"), expected);
    }
}

#[test]
fn every_occurrence_is_one_edit_of_several() {
    let project = Project::with(&[("a", "x\ny\nx\n")]);
    let edits = json!([{"old_string": "x", "new_string": "1", "replace_all": true},
                       {"old_string": "y", "new_string": "2"}]);
    project.ok("MultiEdit", json!({"file_path": "a", "edits": edits}));
    assert_eq!(project.content("a"), "1\n2\n1\n");
}
