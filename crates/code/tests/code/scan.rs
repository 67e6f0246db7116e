//! `scan`: patterns in every language, where they stand, caps and errors.

use crate::project;
use serde_json::json;

#[test]
fn a_match_has_its_place_its_symbol_and_its_captures() {
    let project = project(&[(
        "src/a.rs",
        "impl Box {\n    fn open(&self) {\n        go(1, 2,\n           3);\n    }\n}\nfn top() { go( 4, 5 ) }\n",
    )]);
    let text = project.ok("scan", json!({"patterns": ["go($FIRST, $$$REST)"]}));
    assert_eq!(
        text,
        "src/a.rs:3:[Box.open] go(1, 2, [+1 lines]\n    $FIRST = 1\n    $REST = 2, 3\nsrc/a.rs:7:[top] go( 4, 5 )\n    $FIRST = 4\n    $REST = 5\n"
    );
    assert_eq!(project.ok("scan", json!({"patterns": ["none($A)"]})), "no match in 1 files");
    // Named by the call itself, with several patterns, each place once.
    let both = json!({"patterns": ["go($$$)", "fn top() { $$$ }"], "path": "src/a.rs"});
    let text = project.ok("scan", both);
    assert_eq!(text.matches("src/a.rs:").count(), 3, "{text}");
}

#[test]
fn every_language() {
    for (name, text, pattern) in [
        ("a.ts", "const a: string = load(1);\n", "load($A)"),
        ("a.tsx", "const a = <Box size={1}/>;\n", "<Box size={$A}/>"),
        ("a.js", "if (a) { b() }\n", "if ($A) { $$$ }"),
        ("a.html", "<div><p>x</p></div>\n", "<p>$A</p>"),
        ("a.css", ".a { color: red }\n", ".a { color: $A }"),
        ("a.py", "def go(a):\n    return a\n", "def $F($$$): $$$"),
        ("a.rs", "fn a() { x.unwrap() }\n", "$A.unwrap()"),
        ("a.go", "package a\nfunc a() { go1(1) }\n", "func $F() { $$$ }"),
        ("A.java", "class A { int n() { return m(1); } }\n", "m($A)"),
        ("a.c", "int a(void) { return b + 1; }\n", "b + $A"),
        ("a.cpp", "int a() { auto x = new T(1); }\n", "new T($A)"),
        ("a.sh", "if true; then echo hi; fi\n", "echo $A"),
    ] {
        let project = project(&[(name, text)]);
        let found = project.ok("scan", json!({"patterns": [pattern]}));
        assert!(found.starts_with(&format!("{name}:")), "{name}: {found}");
    }
}

#[test]
fn languages_and_ignored_files() {
    let project = project(&[
        ("a.rs", "fn a() { go(1) }\n"),
        ("b.py", "go(1)\n"),
        ("node_modules/c.js", "go(1)\n"),
        ("ignored.rs", "fn a() { go(1) }\n"),
        (".gitignore", "ignored.rs\n"),
        ("notes.txt", "go(1)\n"),
        ("build", "go 1\n"),
    ]);
    let all = project.ok("scan", json!({"patterns": ["go($A)"]}));
    assert!(all.contains("a.rs:1:") && all.contains("b.py:1:"), "{all}");
    assert_eq!(all.matches("go(1)").count(), 2, "{all}");
    for name in ["python", "Py", "PYTHON"] {
        let only = project.ok("scan", json!({"patterns": ["go($A)"], "language": name}));
        assert_eq!(only.matches("go(1)").count(), 1, "{only}");
    }
    // The language of a file that does not say it.
    let shell = json!({"patterns": ["go $A"], "path": "build", "language": "bash"});
    assert!(project.ok("scan", shell).starts_with("build:1:"));
    let cobol = json!({"patterns": ["x"], "language": "cobol"});
    assert!(project.fails("scan", cobol, "unsupported_language").contains("TypeScript"));
    let text = json!({"patterns": ["x"], "path": "notes.txt"});
    project.fails("scan", text, "unsupported_language");
}

#[test]
fn a_pattern_that_is_none_is_an_error_and_one_of_another_language_a_note() {
    let project = project(&[("a.rs", "fn a() { go(1) }\n"), ("b.css", ".a { b: c }\n")]);
    for pattern in ["", "  ", "fn (", "$$$A"] {
        let input = json!({"patterns": [pattern], "language": "rust"});
        let text = project.fails("scan", input, "invalid_pattern");
        assert!(text.contains("the pattern"), "{text}");
    }
    let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let text =
        project.fails("scan", json!({"patterns": [deep], "language": "rust"}), "invalid_pattern");
    assert!(text.contains("nested deeper than 256"), "{text}");
    let usual = format!("{}go($A){}", "(".repeat(50), ")".repeat(50));
    project.ok("scan", json!({"patterns": [usual], "language": "rust"}));
    let two = project.ok("scan", json!({"patterns": ["go(1) go(2)"], "language": "rust"}));
    assert!(two.contains("[\"go(1) go(2)\" is not complete Rust code"), "{two}");
    let text = project.ok("scan", json!({"patterns": ["go($A)"]}));
    assert!(text.contains("a.rs:1:"), "{text}");
    assert!(
        text.contains(
            "[not searched, because a pattern is not valid code in these languages: CSS]"
        ),
        "{text}"
    );
}

#[test]
fn caps_are_marked() {
    let mut text = String::new();
    for n in 0..60 {
        text.push_str(&format!("fn f{n}() {{ go({n}) }}\n"));
    }
    let project = project(&[("a.rs", &text)]);
    let cut = project.ok("scan", json!({"patterns": ["go($A)"]}));
    assert_eq!(cut.matches("a.rs:").count(), 50);
    assert!(
        cut.ends_with("[stopped after 50 matches; there are more, raise limit or narrow the path]")
    );
    let all = project.ok("scan", json!({"patterns": ["go($A)"], "limit": 60}));
    assert_eq!(all.matches("a.rs:").count(), 60);
    assert!(!all.contains('['.to_string().as_str()) || !all.contains("stopped"), "{all}");
    let patterns =
        |count: usize| -> Vec<String> { (0..count).map(|n| format!("go({n})")).collect() };
    let refused = project.fails("scan", json!({"patterns": patterns(21)}), "invalid_arguments");
    assert!(refused.contains("21 patterns, but at most 20 are allowed"), "{refused}");
    let most = project.ok("scan", json!({"patterns": patterns(20)}));
    assert_eq!(most.matches("a.rs:").count(), 20, "{most}");
    for n in 0..505 {
        project.put(&format!("many/{n}.py"), b"x = 1\n");
    }
    let many = project.ok("scan", json!({"patterns": ["go($A)"], "path": "many"}));
    assert!(many.contains("no match in 500 files"), "{many}");
    assert!(
        many.ends_with(
            "[stopped after 500 files; there are more, narrow the path or the language]"
        )
    );
    project.put("bad.py", b"caf\xe9\n");
    let bad = project.ok("scan", json!({"patterns": ["go($A)"], "path": ".", "language": "rust"}));
    assert!(!bad.contains("could not be searched"), "{bad}");
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let project = project(&[("a.py", "go(1)\n")]);
    project.put("bad.py", b"caf\xe9\n");
    project.put("elf.py", b"\x7fELF\0\0");
    let text = project.ok("scan", json!({"patterns": ["go($A)"]}));
    assert!(
        text.contains("[1 files could not be searched, the first: line 1 of \"bad.py\""),
        "{text}"
    );
    project.cancel.request();
    project.fails("scan", json!({"patterns": ["go($A)"]}), "interrupted");
}

#[test]
fn a_file_that_could_not_be_read_keeps_the_result_out_of_the_cache() {
    let project = project(&[("a.rs", "fn a() { go(1) }\n")]);
    let call = || project.run("scan", json!({"patterns": ["go($A)"]}));
    assert!(call().evidence.is_some(), "the control");
    project.put("b.rs", b"fn b() { go(\"\xff\") }\n");
    let report = call();
    assert!(report.result.text.contains("b.rs"), "{}", report.result.text);
    assert!(report.evidence.is_none());
}
