//! `rewrite` with renames: every use changes, no other name does, and ambiguous renames are
//! refused.

use crate::project;
use serde_json::{Value, json};

fn rename(name: &str, target: &str, within: Option<&str>) -> Value {
    let mut rename = json!({"from": name, "to": "fresh", "target": target});
    if let Some(within) = within {
        rename["within_symbol"] = json!(within);
    }
    json!({ "rename": rename })
}

fn renamed(file: &str, source: &str, edit: &Value) -> String {
    let project = project(&[(file, source)]);
    project.ok("rewrite", json!({"path": file, "edits": [edit]}));
    project.content(file)
}

#[test]
fn locals_of_each_language() {
    for (file, source, wanted) in [
        (
            "a.js",
            "function f(a) { const o = { a, b: o.a }; return a + g({ a: 1 }); }\n",
            "function f(fresh) { const o = { a: fresh, b: o.a }; return fresh + g({ a: 1 }); }\n",
        ),
        (
            "b.ts",
            "const { a, b } = load();\nuse(a);\n",
            "const { a: fresh, b } = load();\nuse(fresh);\n",
        ),
        (
            "c.ts",
            "import { a } from \"m\";\na();\n",
            "import { a as fresh } from \"m\";\nfresh();\n",
        ),
        ("d.ts", "const a = 1;\nexport { a };\n", "const fresh = 1;\nexport { fresh as a };\n"),
        (
            "a.rs",
            "fn f(a: u8) -> S { let b = a; s.a; S { a, c: a } }\n",
            "fn f(fresh: u8) -> S { let b = fresh; s.a; S { a: fresh, c: fresh } }\n",
        ),
        (
            "b.rs",
            "fn f(s: S) { let S { mut a, .. } = s; a += 1; }\n",
            "fn f(s: S) { let S { a: mut fresh, .. } = s; fresh += 1; }\n",
        ),
        (
            "c.rs",
            "use m::a;\nfn f() { a(); x::a(); }\n",
            "use m::a as fresh;\nfn f() { fresh(); x::a(); }\n",
        ),
        (
            "a.py",
            "def f(a):\n    g(a=a)\n    return o.a + a\n",
            "def f(fresh):\n    g(a=fresh)\n    return o.a + fresh\n",
        ),
        ("b.py", "from m import a\na()\n", "from m import a as fresh\nfresh()\n"),
        (
            "a.go",
            "package m\nfunc f(a int) int { b := a; return b + s.a }\n",
            "package m\nfunc f(fresh int) int { b := fresh; return b + s.a }\n",
        ),
        (
            "a.c",
            "int f(int a) { return a + s->a; }\n",
            "int f(int fresh) { return fresh + s->a; }\n",
        ),
        ("a.sh", "a() { echo hi; }\na\n", "fresh() { echo hi; }\nfresh\n"),
    ] {
        assert_eq!(renamed(file, source, &rename("a", "local", None)), wanted, "{file}");
    }
}

#[test]
fn members_of_each_language() {
    for (file, source, wanted) in [
        (
            "a.ts",
            "class C { a() { return this.a(); } }\nconst o = { a };\nlet a = c.a();\n",
            "class C { fresh() { return this.fresh(); } }\nconst o = { fresh: a };\nlet a = c.fresh();\n",
        ),
        (
            "a.rs",
            "struct S { a: u8 }\nfn f(a: u8) -> u8 { S { a }.a }\n",
            "struct S { fresh: u8 }\nfn f(a: u8) -> u8 { S { fresh: a }.fresh }\n",
        ),
        (
            "b.rs",
            "impl S { fn a(&self) {} }\nfn f(s: S) { s.a(); S::a(&s); a(); }\n",
            "impl S { fn fresh(&self) {} }\nfn f(s: S) { s.fresh(); S::fresh(&s); a(); }\n",
        ),
        ("a.py", "x.a = a\nx.a()\n", "x.fresh = a\nx.fresh()\n"),
        (
            "a.go",
            "package m\nfunc (s *S) a() { s.a(); a() }\n",
            "package m\nfunc (s *S) fresh() { s.fresh(); a() }\n",
        ),
        (
            "A.java",
            "class C { void a() { this.a(); } }\n",
            "class C { void fresh() { this.fresh(); } }\n",
        ),
        (
            "a.c",
            "int f(struct s *a) { return a->a; }\n",
            "int f(struct s *a) { return a->fresh; }\n",
        ),
    ] {
        assert_eq!(renamed(file, source, &rename("a", "member", None)), wanted, "{file}");
    }
}

#[test]
fn what_is_not_clear_is_refused_until_it_is_said() {
    let two = "function f(a) { return a; }\nfunction g(a) { return a; }\n";
    for (file, source, target, code) in [
        ("a.js", two, "local", "ambiguous"),
        ("a.rs", "fn f() { let a = 1; g(|a| a); }\n", "local", "ambiguous"),
        ("b.js", "function f() { let a = 1; }\nuse(a);\n", "local", "ambiguous"),
        ("c.js", "let a = 1, fresh = 2;\n", "local", "ambiguous"),
        ("a.ts", "class A { a() {} }\nclass B { a() {} }\n", "member", "ambiguous"),
        ("A.java", "class A { int a; int f() { return a; } }\n", "member", "ambiguous"),
        ("d.js", "let b = 1;\n", "local", "no_match"),
        ("e.js", "let a = 1;\n", "member", "no_match"),
        ("a.css", ".a { b: c }\n", "local", "unsupported_language"),
    ] {
        let project = project(&[(file, source)]);
        let input = json!({"path": file, "edits": [rename("a", target, None)]});
        project.fails("rewrite", input, code);
        assert_eq!(project.content(file), source);
    }
    assert_eq!(
        renamed("a.js", two, &rename("a", "local", Some("g"))),
        "function f(a) { return a; }\nfunction g(fresh) { return fresh; }\n"
    );
    let methods = "class A { a() {} }\nclass B { a() {} }\n";
    assert_eq!(
        renamed("a.ts", methods, &rename("a", "member", Some("B"))),
        "class A { a() {} }\nclass B { fresh() {} }\n"
    );
}

#[test]
fn names_must_be_names() {
    let project = project(&[("a.js", "let a = 1;\n")]);
    for (from, to) in [("a", "a"), ("a", "b c"), ("a", ""), ("a", "1b"), ("", "b"), ("a.b", "c")] {
        let edit = json!({"rename": {"from": from, "to": to, "target": "local"}});
        project.fails("rewrite", json!({"path": "a.js", "edits": [edit]}), "invalid_arguments");
    }
    let edit = json!({"rename": {"from": "a", "to": "b", "target": "both"}});
    let text =
        project.fails("rewrite", json!({"path": "a.js", "edits": [edit]}), "invalid_arguments");
    assert!(text.contains("local"), "{text}");
}
