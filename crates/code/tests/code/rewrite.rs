//! `rewrite` with replacements: changes, refusals, and untouched surroundings.

use crate::project;
use proptest::prelude::*;
use serde_json::{Value, json};

fn replace(pattern: &str, replacement: &str) -> Value {
    json!({"replace": {"pattern": pattern, "replacement": replacement}})
}

fn call(path: &str, edits: &[Value]) -> Value {
    json!({"path": path, "edits": edits})
}

#[test]
fn each_match_is_replaced_and_the_symbols_are_told() {
    let project = project(&[(
        "a.ts",
        "class A {\n  go() {\n    log(1, 2);\n  }\n}\nfunction b() { log(3); log() }\n",
    )]);
    let text = project.ok("rewrite", call("a.ts", &[replace("log($$$A)", "trace.write($$$A)")]));
    assert!(text.starts_with("rewrote a.ts: 3 places\nin A.go, b\n--- a/a.ts"), "{text}");
    assert_eq!(
        project.content("a.ts"),
        "class A {\n  go() {\n    trace.write(1, 2);\n  }\n}\nfunction b() { trace.write(3); trace.write() }\n"
    );
}

#[test]
fn only_within() {
    let source =
        "fn a() { go(1); loop { go(2); } }\nfn b() { go(3); }\nimpl T { fn a() { go(4); } }\n";
    for (within, wanted) in [
        (json!({"within_symbol": "b"}), "3"),
        (json!({"within_symbol": "T.a"}), "4"),
        (json!({"within_symbol": "T::a"}), "4"),
        (json!({"within": "loop { $$$ }"}), "2"),
    ] {
        let project = project(&[("a.rs", source)]);
        let mut edit = replace("go($A)", "stop($A)");
        edit["replace"].as_object_mut().unwrap().extend(within.as_object().unwrap().clone());
        project.ok("rewrite", call("a.rs", &[edit]));
        let want = source.replace(&format!("go({wanted})"), &format!("stop({wanted})"));
        assert_eq!(project.content("a.rs"), want, "{within}");
    }
    let project = project(&[("a.rs", source)]);
    for (name, code) in [("none", "unknown_symbol"), ("a", "no_match")] {
        let mut edit = replace("stop($A)", "x($A)");
        edit["replace"]["within_symbol"] = json!(name);
        project.fails("rewrite", call("a.rs", &[edit]), code);
    }
    let mut edit = replace("go($A)", "x($A)");
    edit["replace"]["within_symbol"] = json!("T");
    project.ok("rewrite", call("a.rs", &[edit]));
}

#[test]
fn rules() {
    let project = project(&[("a.js", "async function f() { await a(); b(); }\n")]);
    let rule = json!({"all": [
        {"pattern": "$A()"}, {"not": {"inside": {"kind": "await_expression"}}},
    ]});
    let edit = json!({"replace": {"rule": rule, "replacement": "await $A()"}});
    project.ok("rewrite", call("a.js", &[edit]));
    assert_eq!(project.content("a.js"), "async function f() { await a(); await b(); }\n");
    for rule in [json!({"patern": "x"}), json!({"kind": "no_such"}), json!({}), json!({"all": 1})] {
        let edit = json!({"replace": {"rule": rule, "replacement": "x"}});
        project.fails("rewrite", call("a.js", &[edit]), "invalid_pattern");
    }
}

#[test]
fn refusals_change_nothing() {
    let source = "fn a() { go(1, 2); }\nfn b() { go(3, 4); }\n";
    let project = project(&[("a.rs", source), ("a.txt", "text\n")]);
    let no_kind = json!({"replace": {"replacement": "x"}});
    let both = json!({"replace": {"pattern": "a", "rule": {"kind": "block"}, "replacement": "x"}});
    // Older builds renamed by syntax; a conversation may have such a call.
    let rename = json!({"rename": {"from": "a", "to": "b", "target": "local"}});
    for (edits, code) in [
        (vec![replace("gone($A)", "x")], "no_match"),
        (vec![replace("go($A, $B)", "go($B, $C)")], "unknown_metavariable"),
        (vec![replace("go($A", "x")], "invalid_pattern"),
        (vec![replace("go($A, $B)", "go($A")], "broken_syntax"),
        (vec![replace("go($A, $B)", "x()"), replace("go(1, $B)", "y()")], "overlap"),
        (vec![replace("go($A, $B)", "go($A, $B)")], "invalid_arguments"),
        (vec![no_kind], "invalid_arguments"),
        (vec![both], "invalid_arguments"),
        (vec![rename], "invalid_arguments"),
        // A valid edit is not applied alone.
        (vec![replace("go(1, $B)", "y()"), replace("gone($A)", "x")], "no_match"),
    ] {
        let text = project.fails("rewrite", call("a.rs", &edits), code);
        assert!(text.contains("Hint: "), "{text}");
        assert_eq!(project.content("a.rs"), source);
    }
    project.fails("rewrite", call("a.txt", &[replace("a", "b")]), "unsupported_language");
    project.put(".git/hooks/a.sh", b"go 1\n");
    project.fails("rewrite", call(".git/hooks/a.sh", &[replace("go 1", "go 2")]), "protected");
}

#[test]
fn caps_are_marked() {
    let source: String = (0..60).map(|n| format!("fn f{n:02}() {{ go{n}(1) }}\n")).collect();
    let project = project(&[("a.rs", &source)]);
    let edits = |count: usize| -> Vec<Value> {
        (0..count).map(|n| replace(&format!("go{n}($A)"), &format!("run{n}($A)"))).collect()
    };
    let text = project.fails("rewrite", call("a.rs", &edits(51)), "invalid_arguments");
    assert!(text.contains("edits has 51 edits") && text.contains("at most 50"), "{text}");
    assert_eq!(project.content("a.rs"), source, "not the first fifty either");
    let text = project.ok("rewrite", call("a.rs", &edits(50)));
    let named: Vec<String> = (0..20).map(|n| format!("f{n:02}")).collect();
    let wanted = format!("50 places\nin {} and 30 more\n", named.join(", "));
    assert!(text.contains(&wanted), "{}", &text[..300]);
    assert_eq!(project.content("a.rs").matches("run").count(), 50);
}

#[test]
fn line_ends_indents_and_matches_in_matches() {
    let source = "fn a() {\r\n    if x {\r\n        go(1);\r\n    }\r\n}\r\n";
    let project = project(&[("a.rs", source)]);
    project.ok(
        "rewrite",
        call("a.rs", &[replace("if $A { $$$B }", "while $A {\n    $$$B\n    step();\n}")]),
    );
    let content = project.content("a.rs");
    assert_eq!(content.matches('\n').count(), content.matches("\r\n").count(), "{content:?}");
    assert!(content.contains("    while x {\r\n"), "{content:?}");
    project.put("b.rs", b"fn a() { go(go(1)) }\n");
    let text = project.ok("rewrite", call("b.rs", &[replace("go($A)", "run($A)")]));
    assert_eq!(project.content("b.rs"), "fn a() { run(go(1)) }\n");
    assert!(text.contains("[1 more matches are inside replaced ones"), "{text}");
    // A file that was broken before may stay so.
    project.put("c.rs", b"fn a( {\nfn b() { go(1); }\n");
    project.ok("rewrite", call("c.rs", &[replace("go($A)", "run($A)")]));
}

#[test]
fn a_file_that_changed_since_it_was_judged_is_left() {
    let mut project = project(&[("a.rs", "fn a() { go(1) }\n")]);
    let real = project.path("a.rs").display().to_string();
    project.judged = vec![protocol::tool::JudgedPath { real, digest: Some("0".repeat(64)) }];
    project.fails("rewrite", call("a.rs", &[replace("go($A)", "x($A)")]), "stale");
    assert_eq!(project.content("a.rs"), "fn a() { go(1) }\n");
}

#[test]
fn the_look_before_the_verdict_shows_the_diff() {
    let project = project(&[("a.rs", "fn a() { go(1) }\n")]);
    let look = |input: Value| {
        let engine = project.engine;
        tools::probe("rewrite", &input.to_string(), &project.place, &project.cancel, engine)
            .unwrap()
    };
    let probe = look(call("a.rs", &[replace("go($A)", "x($A)")]));
    assert!(probe.diff.contains("-fn a() { go(1) }\n+fn a() { x(1) }\n"), "{}", probe.diff);
    assert_eq!(probe.paths.len(), 1);
    assert!(probe.paths[0].digest.is_some());
    let probe = look(call("a.rs", &[replace("none($A)", "x($A)")]));
    assert!(probe.diff.contains("would change nothing") && probe.diff.contains("no_match"));
    assert_eq!(project.content("a.rs"), "fn a() { go(1) }\n");
}

/// A line of code or of prose in it, and how it ends.
fn lines() -> impl Strategy<Value = Vec<(usize, bool)>> {
    proptest::collection::vec((0..LINES.len(), any::<bool>()), 1..12)
}

const LINES: [&str; 7] = [
    "old(1);",
    "\told( 2,\u{e9} )  ; ",
    "keep(old);",
    "// old(3)",
    "  \u{1f600}\t",
    "const s = \"old(4)\";",
    "if (x) { old(5) }",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Layout, unusual letters, both kinds of line endings, a byte order mark or a missing last
    /// newline do not matter: only the replaced name changes, and a second run changes nothing.
    #[test]
    fn no_byte_beside_the_matches_changes(lines in lines(), mark in any::<bool>(), end in any::<bool>()) {
        let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
        let mut calls = 0;
        for (place, (line, crlf)) in lines.iter().enumerate() {
            // Code that does not parse is another matter.
            let line = if LINES[*line].contains('\u{1f600}') { "  // \u{1f600}\t" } else { LINES[*line] };
            calls += usize::from(line.contains("old(") && !line.contains("//") && !line.contains('"'));
            text.push_str(line);
            if end || place + 1 < lines.len() {
                text.push_str(if *crlf { "\r\n" } else { "\n" });
            }
        }
        let project = project(&[("a.js", text.as_str())]);
        let rename = json!([{"replace": {"rule": {"kind": "identifier", "regex": "^old$", "inside": {
            "kind": "call_expression", "field": "function"}}, "replacement": "fresh"}}]);
        let rename = json!({"path": "a.js", "edits": rename});
        if calls == 0 {
            project.fails("rewrite", rename, "no_match");
            prop_assert_eq!(project.content("a.js"), text);
            return Ok(());
        }
        project.ok("rewrite", rename.clone());
        let after = project.content("a.js");
        prop_assert_eq!(after.matches("fresh(").count(), calls);
        prop_assert_eq!(after.replace("fresh(", "old("), text);
        project.fails("rewrite", rename, "no_match");
        prop_assert_eq!(project.content("a.js"), after);
    }
}
