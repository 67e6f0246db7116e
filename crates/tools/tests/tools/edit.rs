//! `edit`.

use crate::project::{Project, fifo};
use proptest::prelude::*;
use protocol::call::FileEffect;
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_string": old, "new_string": new})
}

#[test]
fn one_place() {
    let project = Project::with(&[("a.rs", "fn a() {}\nfn b() {}\n")]);
    std::fs::set_permissions(project.path("a.rs"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let report = project.run("edit", edit("a.rs", "fn b() {}", "fn c() {}"));
    assert_eq!(
        report.result.text,
        "edited a.rs: line 2\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n fn a() {}\n-fn b() {}\n+fn c() {}\n"
    );
    assert_eq!(
        report.effects,
        [FileEffect::Written(project.path("a.rs").to_str().unwrap().to_owned())]
    );
    assert_eq!(project.content("a.rs"), "fn a() {}\nfn c() {}\n");
    assert_eq!(std::fs::metadata(project.path("a.rs")).unwrap().mode() & 0o777, 0o640);
    assert_eq!(project.names("."), ["a.rs"]);
}

#[test]
fn all_places() {
    let project = Project::with(&[("a", "x y x\nx\n")]);
    let text = project.ok(
        "edit",
        json!({"path": "a", "old_string": "x", "new_string": "z", "replace_all": true}),
    );
    assert!(text.starts_with("edited a: 3 places\n"));
    assert_eq!(project.content("a"), "z y z\nz\n");
}

#[test]
fn line_ends_and_the_byte_order_mark_stay() {
    let project = Project::with(&[("crlf", "\u{feff}one\r\ntwo\r\nthree\r\n")]);
    project.ok("edit", edit("crlf", "one\ntwo", "1\n2\n2.5"));
    assert_eq!(project.content("crlf"), "\u{feff}1\r\n2\r\n2.5\r\nthree\r\n");
    project.ok("edit", edit("crlf", "three\n", "3"));
    assert_eq!(project.content("crlf"), "\u{feff}1\r\n2\r\n2.5\r\n3\r\n");
}

#[test]
fn none_or_several_says_so_with_lines() {
    let project = Project::with(&[(
        "a.rs",
        "fn main() {\n    let total = 1;\n}\nfn other() {\n    let total = 1;\n}\n",
    )]);
    let text = project.fails("edit", edit("a.rs", "    let total = 1;", "x"), "ambiguous");
    assert!(text.contains("2 times, at lines 2, 5"), "{text}");
    let text = project.fails("edit", edit("a.rs", "\tlet total = 1;\n}\nfn", "x"), "no_match");
    assert!(
        text.contains("(0 matches); the most similar place is lines 2 to 4")
            && text
                .contains("file, line 2:     let total = 1;\nold_string, line 1: \tlet total = 1;")
            && text.contains("Only white space"),
        "{text}"
    );
    let text = project.fails("edit", edit("a.rs", "let totals = 2;", "x"), "no_match");
    assert!(
        text.contains("file, line 2:     let total = 1;\nold_string, line 1: let totals"),
        "{text}"
    );
    assert!(text.contains("Also similar: line 5") && !text.contains("Only white space"), "{text}");
    let text = project.fails("edit", edit("a.rs", "#include <stdio.h>", "x"), "no_match");
    assert!(text.contains("no part of the file is similar"), "{text}");
    let text = project.fails("edit", edit("a.rs", "\n}\n", "x"), "ambiguous");
    assert!(text.contains("2 times"), "{text}");
    assert!(project.content("a.rs").starts_with("fn main() {\n    let total = 1;\n}\n"));
}

#[test]
fn what_cannot_be_edited_says_why() {
    let project = Project::with(&[("a", "x\n"), ("dir/x", "x"), (".git/config", "x")]);
    project.put("nul", b"x\0");
    project.put("latin1", b"x\ncaf\xe9");
    project.put("big", &vec![b'x'; 9 << 20]);
    fifo(&project.path("fifo"));
    for (path, old, new, code) in [
        ("a", "", "y", "invalid_arguments"),
        ("a", "x", "x", "invalid_arguments"),
        ("b", "x", "y", "not_found"),
        ("dir", "x", "y", "is_directory"),
        ("nul", "x", "y", "binary"),
        ("latin1", "x", "y", "not_utf8"),
        ("big", "x", "y", "too_large"),
        ("fifo", "x", "y", "not_a_file"),
        (".git/config", "x", "y", "protected"),
    ] {
        project.fails("edit", edit(path, old, new), code);
    }
    assert_eq!(project.content("a"), "x\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Everything outside of the edit keeps every byte, with any line endings.
    #[test]
    fn no_byte_is_lost(
        lines in proptest::collection::vec(("[a-c]{0,3}", prop_oneof![Just("\n"), Just("\r\n")]), 1..8),
        edits in proptest::collection::vec(("[a-c\n]{1,3}", "[a-c\n]{0,3}"), 1..6),
    ) {
        let text: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
        let project = Project::with(&[("a", &text)]);
        for (old, new) in edits {
            let before = project.content("a");
            let result = project.run("edit", edit("a", &old, &new)).result;
            let after = project.content("a");
            if result.is_error {
                prop_assert_eq!(before, after, "a failed edit changes nothing");
                continue;
            }
            let plain = |text: &str| text.replace("\r\n", "\n");
            let expected = plain(&before).replacen(&old, &new, 1);
            let expected = if expected.is_empty() || expected.ends_with('\n') || !before.ends_with('\n') { expected } else { expected + "\n" };
            prop_assert_eq!(plain(&after), expected);
            prop_assert_eq!(after.matches('\r').count(), after.matches("\r\n").count());
        }
        prop_assert_eq!(project.names("."), ["a"]);
    }
}

/// Hangul, a letter with a mark and typographic quotes, each in the other of two forms.
#[test]
fn text_in_another_form_is_found_where_it_is_the_only_one() {
    let decomposed =
        "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} e\u{301} one\nlast e\u{301}\n";
    let composed = "한글 é one\nlast é\n";
    let quoted = "say “hello” and ‘bye’\nlast\n";
    let rows = [
        (decomposed, "한글 é one", "한글 é two", decomposed.replace("one", "two")),
        (
            composed,
            decomposed.lines().next().unwrap(),
            "한글",
            composed.replace("한글 é one", "한글"),
        ),
        (quoted, "\"hello\" and 'bye'", "\"hello\" or 'bye'", quoted.replace("and", "or")),
        (
            "say \"a\"\r\nb é\r\n",
            "say “a”\nb",
            "say “a”\nc\nd",
            "say \"a\"\r\nc\r\nd é\r\n".to_owned(),
        ),
    ];
    for (file, old, new, expected) in &rows {
        let project = Project::with(&[("f", file)]);
        let text = project.ok("edit", json!({"path": "f", "old_string": old, "new_string": new}));
        assert_eq!(project.content("f"), *expected);
        assert!(text.contains("in another Unicode form or with other quotes"), "{text}");
        let project = Project::with(&[("f", file)]);
        let edits = json!([{ "find": old, "replace": new }]);
        let text = project.ok("multi_edit", json!({"path": "f", "edits": edits}));
        assert_eq!(project.content("f"), *expected);
        assert!(text.contains("edits[0].find was found in another"), "{text}");
    }
    // Bytes that are there are meant.
    let project = Project::with(&[("f", "é e\u{301}\n")]);
    let text = project.ok("edit", json!({"path": "f", "old_string": "é", "new_string": "x"}));
    assert_eq!(project.content("f"), "x e\u{301}\n");
    assert!(!text.contains("another Unicode form"), "{text}");
    // Two places are none.
    let project = Project::with(&[("f", "“a” “a”\n")]);
    let edit = json!({"path": "f", "old_string": "\"a\"", "new_string": "b"});
    let text = project.fails("edit", edit, "ambiguous");
    assert!(text.contains("2 times, at lines 1, 1"), "{text}");
    let all = json!({"path": "f", "old_string": "\"a\"", "new_string": "b", "replace_all": true});
    let text = project.fails("edit", all, "ambiguous");
    assert!(text.contains("Each is in another form"), "{text}");
    assert_eq!(project.content("f"), "“a” “a”\n");
    let all = json!({"path": "f", "old_string": "“a”", "new_string": "b", "replace_all": true});
    project.ok("edit", all);
    assert_eq!(project.content("f"), "b b\n", "the control: as written, each is replaced");
    // White space is not the same, and the nearest place is found in any form.
    let project = Project::with(&[("f", decomposed)]);
    let edit = json!({"path": "f", "old_string": "한글  é one", "new_string": "x"});
    let text = project.fails("edit", edit, "no_match");
    assert!(text.contains("the most similar place is line 1"), "{text}");
    assert!(text.contains("another Unicode form"), "{text}");
}
