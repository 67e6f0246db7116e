//! `summary`: the outline of each language, and its caps.

use crate::project;
use serde_json::json;

fn outline(name: &str, text: &str) -> String {
    let project = project(&[(name, text)]);
    let text = project.ok("summary", json!({"path": name}));
    let (head, rest) = text.split_once('\n').unwrap();
    assert!(head.starts_with(name), "{head}");
    rest.to_owned()
}

#[test]
fn rust() {
    let text = "use std::io;\n\n/// Doc.\npub struct Point<T> {\n    x: T,\n}\n\nimpl<T> Point<T> {\n    \
                pub fn new(\n        x: T,\n    ) -> Self {\n        Self { x }\n    }\n}\n\nconst A: u8 = 1;\n\
                mod inner {\n    fn deep() {}\n}\n";
    assert_eq!(
        outline("a.rs", text),
        "1\tuse std::io\n4-6\tpub struct Point<T>\n8-14\timpl<T> Point<T>\n9-13\t  pub fn new( x: T, ) \
         -> Self\n16\tconst A: u8 = 1\n17-19\tmod inner\n18\t  fn deep()"
    );
}

#[test]
fn scripts() {
    let text = "import a from \"a\";\nexport class Box extends Base {\n  size = 1;\n  open(how: string): void \
                {\n    const inner = 1;\n  }\n}\nexport const load = async (url: string) => {\n  return 1;\n};\n\
                interface Shape {\n  area(): number;\n}\ntype Id = string;\nfunction go() {}\n";
    assert_eq!(
        outline("a.ts", text),
        "1\timport a from \"a\"\n2-7\tclass Box extends Base\n4-6\t  open(how: string): void\n8-10\tload = \
         async (url: string)\n11-13\tinterface Shape\n12\t  area(): number\n14\ttype Id = string\n15\t\
         function go()"
    );
    assert_eq!(outline("a.js", "const x = 1;\nfunction* g() {}\n"), "1\tx = 1\n2\tfunction* g()");
    assert_eq!(outline("a.tsx", "const A = () => <b/>;\n"), "1\tA = ()");
}

#[test]
fn python_and_go_and_java() {
    let text = "import os\nLIMIT = 3\n\nclass A(B):\n    @property\n    def name(self) -> str:\n        \
                return 1\n\nasync def go(a, *b):\n    def inner(): pass\n";
    assert_eq!(
        outline("a.py", text),
        "1\timport os\n2\tLIMIT = 3\n4-7\tclass A(B)\n6-7\t  def name(self) -> str\n9-10\tasync def go(a, *b)"
    );
    let text = "package main\n\nimport \"fmt\"\n\ntype Box struct {\n\tsize int\n}\n\nfunc (b *Box) Open(how \
                string) error {\n\treturn nil\n}\n\nfunc main() {}\n";
    assert_eq!(
        outline("a.go", text),
        "1\tpackage main\n3\timport \"fmt\"\n5-7\tBox struct\n9-11\tfunc (b *Box) Open(how string) error\n13\t\
         func main()"
    );
    let text = "package a;\nimport java.util.List;\npublic class A {\n  private int n = 1;\n  public A() {}\n  \
                int n() { return n; }\n}\n";
    assert_eq!(
        outline("A.java", text),
        "1\tpackage a\n2\timport java.util.List\n3-7\tpublic class A\n4\t  private int n = 1\n5\t  public \
         A()\n6\t  int n()"
    );
}

#[test]
fn c_and_its_kin() {
    let text = "#include <a.h>\n#define N 3\nstruct point { int x; };\ntypedef struct point P;\nint f(int);\n\
                static char *g(void)\n{\n  return 0;\n}\n#ifdef X\nint h(void) { return 1; }\n#endif\n";
    assert_eq!(
        outline("a.c", text),
        "1\t#include <a.h>\n2\t#define N 3\n3\tstruct point\n3\t  int x\n4\ttypedef struct point P\n5\tint \
         f(int)\n6-9\tstatic char *g(void)\n11\tint h(void)"
    );
    let text = "namespace a {\nclass B : public C {\n public:\n  void go() const { x(); }\n};\n}\ntemplate \
                <typename T> T id(T t) { return t; }\n";
    assert_eq!(
        outline("a.cpp", text),
        "1-6\tnamespace a\n2-5\t  class B : public C\n4\t    void go() const\n7\tT id(T t)"
    );
}

#[test]
fn the_shell_and_pages() {
    assert_eq!(outline("a.sh", "A=1\ngo() {\n  B=2\n}\n"), "1\tA=1\n2-4\tgo()");
    assert_eq!(
        outline("a.css", "@media print {\n  .a { color: red }\n}\n.b,\n.c { x: y }\n"),
        "1-3\t@media print\n2\t  .a\n4-5\t.b,"
    );
    let page = "<html><head><title>T</title></head><body>\n<div id=\"main\"><h1>Hi\n there</h1><p>x</p></div>\n\
                <script>let a = 1</script></body></html>\n";
    assert_eq!(
        outline("a.html", page),
        "1\t<title>T</title>\n2-3\tdiv#main\n2-3\t  <h1>Hi there</h1>\n4\t<script>let a = 1</script>"
    );
}

#[test]
fn what_has_no_grammar() {
    assert_eq!(outline("a.md", "# A\ntext\n## B\n"), "1\tA\n3\t  B");
    assert_eq!(outline("a.toml", "[a]\nb = 1\n"), "1\ta: b");
    assert_eq!(outline("a.json", "{\"a\": 1}\n"), "1\ta");
    assert_eq!(outline("a.txt", "one\ntwo\n"), "one\ntwo");
    assert_eq!(outline("broken.json", "{"), "{");
    let long: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    let text = outline("long.txt", &long);
    assert!(text.ends_with("line 20\n[the first 20 lines; 10 not shown]"), "{text}");
    let project = project(&[("empty.rs", "")]);
    assert_eq!(
        project.ok("summary", json!({"path": "empty.rs"})),
        "empty.rs: Rust, 0 lines, 0 bytes\n"
    );
}

#[test]
fn caps_are_marked_and_errors_are_told() {
    let many: String = (0..600).map(|n| format!("fn f{n}() {{}}\n")).collect();
    let text = outline("a.rs", &many);
    assert!(text.contains("\n500\tfn f499()\n"), "{text}");
    assert!(text.ends_with("[500 of 600 entries; 100 not shown, find them with scan]"), "{text}");
    let long = format!("fn f({}) {{}}\n", "a: u8, ".repeat(40));
    assert!(outline("a.rs", &long).contains("[… line cut: "));
    let text = outline("a.rs", "fn a() {}\nfn b( {{{ \n");
    assert!(text.starts_with("1\tfn a()"), "{text}");
    assert!(text.contains("[parts of the file are not valid Rust"), "{text}");
    let deep = format!("fn a() {{ {}1{} }}\nfn b() {{}}\n", "(".repeat(20_000), ")".repeat(20_000));
    assert!(outline("a.rs", &deep).contains("fn b()"), "a deep tree");
    let control = outline("a.rs", "fn \u{1b}[31mred() {}\nfn b() {}\n");
    assert!(!control.contains('\u{1b}'), "{control:?}");
}

#[test]
fn aliases_reach_it() {
    let project = project(&[("a.rs", "fn a() {}\n")]);
    for name in ["get_file_summary", "file-summary", "outline"] {
        assert!(project.ok(name, json!({"path": "a.rs"})).contains("fn a()"));
    }
}
