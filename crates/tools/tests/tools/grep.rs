//! `grep`.

use crate::project::{Project, fifo};
use serde_json::json;

#[test]
fn matches_with_path_and_line() {
    let project = Project::with(&[
        ("a.rs", "fn one() {}\nfn two() {}\n"),
        ("src/b.rs", "// Two\r\n"),
        ("c.txt", "two\n"),
    ]);
    for (input, expected) in [
        (json!({"pattern": "two"}), "a.rs:2:fn two() {}\nc.txt:1:two\n"),
        (
            json!({"pattern": "two", "case_insensitive": true}),
            "a.rs:2:fn two() {}\nc.txt:1:two\nsrc/b.rs:1:// Two\n",
        ),
        (json!({"pattern": "^two$"}), "c.txt:1:two\n"),
        (json!({"pattern": "two", "include": "*.rs"}), "a.rs:2:fn two() {}\n"),
        (json!({"pattern": "(?i)two", "include": "src"}), "src/b.rs:1:// Two\n"),
        (
            json!({"pattern": r"fn \w+\(", "path": "a.rs"}),
            "a.rs:1:fn one() {}\na.rs:2:fn two() {}\n",
        ),
        (json!({"pattern": "Two", "path": "src"}), "src/b.rs:1:// Two\n"),
        (json!({"pattern": "nothing"}), "no match in 3 files"),
    ] {
        assert_eq!(project.ok("grep", input.clone()), expected, "{input}");
    }
}

#[test]
fn context() {
    let project = Project::with(&[("a", "1\n2\nhit\n4\n5\n6\n7\nhit\n"), ("b", "hit\nlast\n")]);
    assert_eq!(
        project.ok("grep", json!({"pattern": "hit", "context": 1})),
        "a-2-2\na:3:hit\na-4-4\n--\na-7-7\na:8:hit\n--\nb:1:hit\nb-2-last\n"
    );
}

#[test]
fn binary_and_ignored_files_are_left_out() {
    let project = Project::with(&[
        ("node_modules/a", "hit"),
        (".git/a", "hit"),
        (".gitignore", "ignored\n!.git\n"),
        ("ignored", "hit"),
        ("a", "hit"),
    ]);
    project.put("nul-early", b"hit\0");
    let mut late = vec![b'x'; 9000];
    late.extend(b"\nhit\0\x1b[2J\n");
    project.put("nul-late", &late);
    project.put("latin1", b"caf\xe9 hit\n");
    fifo(&project.path("fifo"));
    std::os::unix::fs::symlink("../secret", project.path("link")).unwrap();
    assert_eq!(
        project.ok("grep", json!({"pattern": "hit"})),
        "a:1:hit\nlatin1:1:caf\u{fffd} hit\nnul-late:2:hit\u{2400}\u{241b}[2J\n"
    );
    assert_eq!(
        project.ok("grep", json!({"pattern": "secret"})),
        "no match in 4 files\n[1 binary files were not searched, the first: nul-early]"
    );
    project.fails("grep", json!({"pattern": "hit", "path": "fifo"}), "not_a_file");
    project.fails("grep", json!({"pattern": "hit", "path": "nul-early"}), "binary");
}

#[test]
fn caps_are_visible() {
    let project = Project::with(&[
        ("a", &"hit\n".repeat(150)),
        ("b", &"hit\n".repeat(50)),
        ("w", &"x".repeat(600)),
    ]);
    let text = project.ok("grep", json!({"pattern": "hit"}));
    assert_eq!(text.lines().count(), 200, "exactly at the bound nothing is cut");
    project.put("c", b"hit\n");
    let text = project.ok("grep", json!({"pattern": "hit"}));
    assert!(text.ends_with(
        "[stopped after 200 matches; there are more, narrow the pattern, path or include]"
    ));
    assert_eq!(text.lines().filter(|line| line.ends_with(":hit")).count(), 200);
    let text = project.ok("grep", json!({"pattern": "x+"}));
    let cut =
        format!("w:1:{} [… line cut: 100 more bytes]\n[to see more of a cut line", "x".repeat(500));
    assert!(text.starts_with(&cut), "{text}");
}

#[test]
fn an_invalid_expression_names_its_position() {
    let project = Project::with(&[("a(", "fn main(")]);
    let text = project.fails("grep", json!({"pattern": "main("}), "invalid_pattern");
    assert!(text.contains("at character 5"), "{text}");
    let text = project.fails("grep", json!({"pattern": "üb[z-a]"}), "invalid_pattern");
    assert!(text.contains("at character 4"), "{text}");
    project.fails("grep", json!({"pattern": "(a{1000}){1000}"}), "invalid_pattern");
    project.fails("grep", json!({"pattern": "a", "include": "["}), "invalid_pattern");
    assert_eq!(project.ok("grep", json!({"pattern": r"main\("})), "a(:1:fn main(\n");
}

#[test]
fn a_line_of_many_megabytes_is_named_and_the_others_are_searched() {
    let project = Project::with(&[("ok", "hit\n")]);
    let mut wide = vec![b'x'; 70 << 20];
    wide.extend(b"\nhit\n");
    project.put("wide", &wide);
    let text = project.ok("grep", json!({"pattern": "hit"}));
    assert!(text.starts_with("ok:1:hit\n"), "{text}");
    assert!(text.contains("[1 files could not be searched, the first: wide"), "{text}");
}

#[test]
fn many_files_are_told_in_their_order_as_if_one_were_searched_after_the_other() {
    let project = Project::new();
    let text = |n: usize| format!("{}hit {n}\nafter\n", "before\n".repeat(n % 3 * 2_000));
    let mut expected = String::new();
    for n in 0..2_500 {
        project.put(&format!("d{:02}/f{n:04}", n / 50), text(n).as_bytes());
        let line = n % 3 * 2_000 + 1;
        if n % 20 == 0 {
            expected += &format!("d{:02}/f{n:04}:{line}:hit {n}\n", n / 50);
        }
    }
    assert_eq!(project.ok("grep", json!({"pattern": "hit [0-9]*[02468]0$|hit 0$"})), expected);
    // The choice of the 200 shown matches does not depend on the speed of threads.
    let all = project.ok("grep", json!({"pattern": "hit"}));
    let shown = |n: usize| format!("d{:02}/f{n:04}:{}:hit {n}\n", n / 50, n % 3 * 2_000 + 1);
    let first: String = (0..200).map(shown).collect();
    assert!(all.starts_with(&first), "{all}");
    assert!(all[first.len()..].trim_start().starts_with("[stopped after 200 matches"), "{all}");
    let around = project.ok("grep", json!({"pattern": "hit (1|30|31)$", "context": 1}));
    assert_eq!(
        around,
        "d00/f0001-2000-before\nd00/f0001:2001:hit 1\nd00/f0001-2002-after\n--\n\
         d00/f0030:1:hit 30\nd00/f0030-2-after\n--\n\
         d00/f0031-2000-before\nd00/f0031:2001:hit 31\nd00/f0031-2002-after\n"
    );
}

#[test]
fn a_search_that_somebody_ends_says_so() {
    let project = Project::with(&[("a", "hit\n")]);
    project.ok("grep", json!({"pattern": "hit"}));
    project.cancel.request();
    let result = project.run("grep", json!({"pattern": "hit"})).result;
    assert_eq!(result.outcome, protocol::call::Outcome::Interrupted, "{}", result.text);
}

#[test]
fn a_pattern_that_is_text_is_searched_as_text() {
    let project = Project::with(&[("a", "f(x)\nfx\n")]);
    let text = project.ok("grep", json!({"pattern": "f(", "fixed_strings": true}));
    assert!(text.contains("a:1:f(x)") && !text.contains("a:2"), "{text}");
}
