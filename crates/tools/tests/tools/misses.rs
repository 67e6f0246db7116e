//! `grep` and `glob` find the files that a person would find, or say where they are: one row per
//! case.

use crate::project::Project;
use serde_json::{Value, json};

/// Files of all kinds of text.
fn project() -> Project {
    let project = Project::with(&[
        (".gitignore", "target/\n*.log\n"),
        ("target/built.rs", "fn generated() {}\n"),
        ("node_modules/lib/index.js", "exports.lib = 1\n"),
        ("server.log", "fatal: it broke\n"),
        ("unix.txt", "one\ntwo\nthree\n"),
        ("dos.txt", "one\r\ntwo;\r\n\r\nthree\r\nlast"),
        ("mixed.txt", "mixed one\nmixed two\r\nmixed three\n"),
        ("bom.txt", "\u{feff}first word\r\nsecond word\r\n"),
        ("open.txt", "no newline at the end"),
        (".env.local", "HIDDEN_KEY=1\n"),
        ("src/main.rs", "fn main() {\n    Run::all();\n}\n"),
        ("src/lib.ts", "export const top = 1;\n"),
        ("src/deep/view.tsx", "export const view = 2;\n"),
        ("README.md", "# Title\n"),
        ("with space.txt", "spaced out\n"),
    ]);
    let utf16 = |text: &str, mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        mark.into_iter().chain(text.encode_utf16().flat_map(bytes)).collect()
    };
    let text = "sechzehn eins\r\nsechzehn zwei\r\n";
    project.put("little.txt", &utf16(text, [0xff, 0xfe], u16::to_le_bytes));
    project.put("big.txt", &utf16(text, [0xfe, 0xff], u16::to_be_bytes));
    project.put("tool.bin", b"\x7fELF\0\0needle");
    let long = format!("{}late_dos\r\n", "filler line\n".repeat(9_000));
    project.put("long.txt", long.as_bytes());
    std::os::unix::fs::symlink("src", project.path("linked")).unwrap();
    project
}

#[test]
fn grep_finds_what_a_person_would() {
    let project = project();
    for (input, expected) in [
        // Ends of lines.
        (
            json!({"pattern": "three$"}),
            "dos.txt:4:three\nmixed.txt:3:mixed three\nunix.txt:3:three\n",
        ),
        (json!({"pattern": "^two;?$"}), "dos.txt:2:two;\nunix.txt:2:two\n"),
        (json!({"pattern": "two$", "include": "mixed.txt"}), "mixed.txt:2:mixed two\n"),
        (json!({"pattern": "^$", "path": "dos.txt"}), "dos.txt:3:\n"),
        (
            json!({"pattern": "[^;]$", "path": "dos.txt"}),
            "dos.txt:1:one\ndos.txt:4:three\ndos.txt:5:last\n",
        ),
        (json!({"pattern": r"\s$", "path": "dos.txt"}), "no match in 1 files"),
        (json!({"pattern": r"\r$", "path": "unix.txt"}), "no match in 1 files"),
        (json!({"pattern": r"two;\r", "path": "dos.txt"}), "dos.txt:2:two;\n"),
        (json!({"pattern": r"\bthree\b", "path": "dos.txt"}), "dos.txt:4:three\n"),
        (json!({"pattern": "late_dos$"}), "long.txt:9001:late_dos\n"),
        (json!({"pattern": "end$"}), "open.txt:1:no newline at the end\n"),
        // Marks at the beginning, and encodings.
        (json!({"pattern": "^first"}), "bom.txt:1:first word\n"),
        (json!({"pattern": r"^first word$"}), "bom.txt:1:first word\n"),
        (json!({"pattern": r"\Afirst"}), "bom.txt:1:first word\n"),
        (
            json!({"pattern": "^sechzehn eins$"}),
            "big.txt:1:sechzehn eins\nlittle.txt:1:sechzehn eins\n",
        ),
        (json!({"pattern": "zwei", "path": "little.txt"}), "little.txt:2:sechzehn zwei\n"),
        // Over several lines.
        (
            json!({"pattern": "one\ntwo"}),
            "dos.txt:1:one\ndos.txt:2:two;\nunix.txt:1:one\nunix.txt:2:two\n",
        ),
        (
            json!({"pattern": r"main\(\) \{\n.*Run"}),
            "src/main.rs:1:fn main() {\nsrc/main.rs:2:    Run::all();\n",
        ),
        (json!({"pattern": r"two;\r\n\r\nthree"}), "dos.txt:2:two;\ndos.txt:3:\ndos.txt:4:three\n"),
        // Which files.
        (json!({"pattern": "HIDDEN"}), ".env.local:1:HIDDEN_KEY=1\n"),
        (json!({"pattern": "fn main", "path": "linked"}), "src/main.rs:1:fn main() {\n"),
        (json!({"pattern": "fn main", "path": "./src/main.rs"}), "src/main.rs:1:fn main() {\n"),
        (
            json!({"pattern": "export", "include": "*.{ts,tsx}"}),
            "src/deep/view.tsx:1:export const view = 2;\nsrc/lib.ts:1:export const top = 1;\n",
        ),
        (
            json!({"pattern": "export", "include": "*.ts,*.tsx"}),
            "src/deep/view.tsx:1:export const view = 2;\nsrc/lib.ts:1:export const top = 1;\n",
        ),
        (
            json!({"pattern": "export", "include": "*.ts *.tsx"}),
            "src/deep/view.tsx:1:export const view = 2;\nsrc/lib.ts:1:export const top = 1;\n",
        ),
        (
            json!({"pattern": "export", "include": "./src/*.ts"}),
            "src/lib.ts:1:export const top = 1;\n",
        ),
        (
            json!({"pattern": "export", "include": "src/*.ts", "path": "src"}),
            "src/lib.ts:1:export const top = 1;\n",
        ),
        (
            json!({"pattern": "export", "include": "src/"}),
            "src/deep/view.tsx:1:export const view = 2;\nsrc/lib.ts:1:export const top = 1;\n",
        ),
        (
            json!({"pattern": "export", "include": "**"}),
            "src/deep/view.tsx:1:export const view = 2;\nsrc/lib.ts:1:export const top = 1;\n",
        ),
        (
            json!({"pattern": "export", "include": "**/*.ts"}),
            "src/lib.ts:1:export const top = 1;\n",
        ),
        (json!({"pattern": "export", "include": "!*.tsx"}), "src/lib.ts:1:export const top = 1;\n"),
        (
            json!({"pattern": "spaced", "include": "with space.txt"}),
            "with space.txt:1:spaced out\n",
        ),
    ] {
        assert_eq!(project.ok("grep", input.clone()), expected, "{input}");
    }
    let absolute = project.path("src/*.ts").display().to_string();
    let input = json!({"pattern": "export", "include": absolute});
    assert_eq!(project.ok("grep", input), "src/lib.ts:1:export const top = 1;\n");
}

/// Where nothing matches, the answer says where a person would have looked next.
#[test]
fn no_empty_answer_where_a_person_would_find_something() {
    let project = project();
    for (tool, input, said) in [
        (
            "grep",
            json!({"pattern": "generated"}),
            "[1 lines in ignored files match, the first: target/built.rs:1; give its path",
        ),
        ("grep", json!({"pattern": "fatal:"}), "the first: server.log:1"),
        ("grep", json!({"pattern": "exports.lib"}), "the first: node_modules/lib/index.js:1"),
        (
            "grep",
            json!({"pattern": "TITLE"}),
            "[1 lines match with case_insensitive = true, the first: README.md:1]",
        ),
        (
            "grep",
            json!({"pattern": "TITLE", "path": "README.md"}),
            "[1 lines match with case_insensitive = true",
        ),
        (
            "grep",
            json!({"pattern": "needle"}),
            "[1 binary files were not searched, the first: tool.bin]",
        ),
        (
            "grep",
            json!({"pattern": "x", "include": "*.java"}),
            "[no file matches include \"*.java\"; without it there are 16]",
        ),
        (
            "glob",
            json!({"pattern": "built.rs"}),
            "[1 files in ignored directories match, the newest: target/built.rs; to search there, give",
        ),
        (
            "glob",
            json!({"pattern": "node_modules/**/*.js"}),
            "the newest: node_modules/lib/index.js",
        ),
        (
            "glob",
            json!({"pattern": "readme.md"}),
            "[1 files match with different case, the newest: README.md]",
        ),
        (
            "glob",
            json!({"pattern": "src"}),
            "[the directory src matches; src/** finds the files in it]",
        ),
        ("ls", json!({"path": "target"}), "f 18 built.rs"),
    ] {
        let text = project.ok(tool, input.clone());
        assert!(text.contains(said), "{tool} {input}: {text}");
        let is_none = text.starts_with("no match in ") || text.starts_with("no file matches");
        assert_eq!(is_none, tool != "ls", "{tool} {input}: {text}");
    }
    // The positive control: a missing file is reported as missing.
    assert_eq!(
        project.ok("grep", json!({"pattern": "nowhere_at_all", "include": "*.rs"})),
        "no match in 1 files"
    );
    assert_eq!(
        project.ok("glob", json!({"pattern": "nowhere_at_all"})),
        "no file matches \"nowhere_at_all\""
    );
    for name in ["built.rs", "x.log"] {
        project.put(&format!("only/{name}"), b"x\n");
    }
    std::fs::remove_file(project.path("only/built.rs")).unwrap();
    let text = project.ok("ls", json!({"path": "only"}));
    assert_eq!(text, "(every entry here is ignored: x.log)");
}

#[test]
fn a_pattern_of_files_finds_files_whichever_tool_it_is_given_to() {
    let project = project();
    let listed = |input: Value| {
        let text = project.ok("search_files", input);
        let (said, rest) = text.split_once('\n').unwrap();
        assert!(said.ends_with("it matches:"), "{said}");
        let mut names: Vec<String> =
            rest.lines().filter(|line| !line.starts_with('[')).map(str::to_owned).collect();
        names.sort();
        assert!(rest.contains("glob finds files by name"), "{rest}");
        names
    };
    for (input, expected) in [
        (json!({"pattern": "*.rs"}), &["src/main.rs"][..]),
        (json!({"pattern": "**/*.rs", "path": "."}), &["src/main.rs"]),
        (json!({"pattern": "*.{ts,tsx}", "path": "src"}), &["src/deep/view.tsx", "src/lib.ts"]),
        (json!({"pattern": "src/**/*.tsx"}), &["src/deep/view.tsx"]),
        (json!({"pattern": "src/*.ts"}), &["src/lib.ts"]),
    ] {
        assert_eq!(listed(input.clone()), expected, "{input}");
    }
    let text = project.ok("search_files", json!({"pattern": "*.java"}));
    assert!(text.contains("it matches none"), "{text}");
    // A valid expression stays one, and invalid text is an error.
    assert_eq!(
        project.ok("search_files", json!({"pattern": "fn m.*n"})),
        "src/main.rs:1:fn main() {\n"
    );
    project.fails("search_files", json!({"pattern": "*("}), "invalid_pattern");
}

#[test]
fn globs_in_all_spellings() {
    let project = project();
    project.put("../added/extra.rs", b"");
    let absolute = |path: &str| project.path(path).display().to_string();
    let found = |input: Value| {
        let text = project.ok("glob", input);
        let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
        names.sort();
        names
    };
    let all = [
        ".env.local",
        ".gitignore",
        "README.md",
        "big.txt",
        "bom.txt",
        "dos.txt",
        "linked",
        "little.txt",
        "long.txt",
        "mixed.txt",
        "open.txt",
        "src/deep/view.tsx",
        "src/lib.ts",
        "src/main.rs",
        "tool.bin",
        "unix.txt",
        "with space.txt",
    ];
    let source = ["src/deep/view.tsx", "src/lib.ts", "src/main.rs"];
    for (pattern, path, expected) in [
        ("**", ".", &all[..]),
        ("*", ".", &all),
        ("**/*", ".", &all),
        (".", ".", &all),
        ("src/**", ".", &source),
        ("./src/**/*", ".", &source),
        ("*.ts,*.tsx", ".", &source[..2]),
        ("*.{ts,tsx}", ".", &source[..2]),
        ("src/*.rs", "src", &source[2..]),
        ("../src/*.rs", "linked", &[]),
        ("src/../src/*.rs", ".", &source[2..]),
        (".*", ".", &[".env.local", ".gitignore"]),
        ("with space.txt", ".", &["with space.txt"]),
        (&absolute("src/*.rs"), ".", &source[2..]),
        (&absolute("src/main.rs"), ".", &source[2..]),
        (&absolute("**/*.rs"), "src", &source[2..]),
        (&absolute("linked/*.rs"), ".", &source[2..]),
        ("/src/*.rs", ".", &source[2..]),
    ] {
        if expected.is_empty() {
            project.fails("glob", json!({"pattern": pattern, "path": path}), "access_denied");
        } else {
            assert_eq!(
                found(json!({"pattern": pattern, "path": path})),
                expected,
                "{pattern} in {path}"
            );
        }
    }
    let added = project.base().join("added");
    let pattern = format!("{}/*.rs", added.display());
    assert_eq!(found(json!({"pattern": pattern})), [added.join("extra.rs").display().to_string()]);
    for outside in ["/etc/*.conf", "../proj-evil/*", "../../*"] {
        let text = project.fails("glob", json!({"pattern": outside}), "access_denied");
        assert!(text.contains("ACCESS DENIED"), "{text}");
    }
}

#[test]
fn a_match_far_in_a_long_line_is_shown_with_its_column_and_the_way_to_the_rest() {
    let line = |n: usize| (0..n).map(|i| format!("var x{i}=1;")).collect::<String>();
    let text = format!("{}needle({}needle(2)\n", line(3_000), line(3_000));
    let project = Project::with(&[("min.js", &text), ("short.js", "a needle\n")]);
    let found = project.ok("grep", json!({"pattern": "needle"}));
    let (first, rest) = found.split_once('\n').unwrap();
    assert!(first.starts_with("min.js:1:[… line cut: from column "), "{first}");
    assert!(first.contains("x2999=1;needle(var x0=1;"), "{first}");
    assert!(first.chars().count() < 800, "{first}");
    let next = text.find("needle(2").unwrap() + 1;
    assert!(first.contains(&format!("[… 1 more matches, the next at column {next}]")), "{first}");
    assert!(
        rest.starts_with("short.js:1:a needle\n[to see more of a cut line, use read with "),
        "{rest}"
    );
    // The way leads there.
    let input = json!({"path": "min.js", "offset": 1, "limit": 1, "column": next, "raw": true});
    assert!(project.ok("read", input).starts_with("needle(2)\n"));
}

#[test]
fn search_files_finds_names_and_text_only_where_no_name_fits() {
    let project = Project::with(&[
        ("a.py", "import b\n"),
        ("b.py", "import a.py_is_text\n"),
        ("sub/a.py", ""),
        ("ab.py", ""),
        ("README.md", "see a.py\n"),
        ("docs/guide.txt", "TODO: README and notes.py\n"),
    ]);
    let names = |input: Value| {
        let text = project.ok("search_files", input);
        let lines = text.lines().skip(1).filter(|line| !line.starts_with('['));
        let mut names: Vec<String> = lines.map(str::to_owned).collect();
        names.sort();
        names
    };
    for (pattern, expected) in [
        ("a.py", &["a.py", "sub/a.py"][..]),
        ("README*", &["README.md"]),
        ("[ab].py", &["a.py", "b.py", "sub/a.py"]),
        ("{a,b}.py", &["a.py", "b.py", "sub/a.py"]),
        ("?.py", &["a.py", "b.py", "sub/a.py"]),
        ("sub/*.py", &["sub/a.py"]),
    ] {
        assert_eq!(names(json!({ "pattern": pattern })), expected, "{pattern}");
    }
    // A directory of that name is no file.
    assert_eq!(
        project.ok("search_files", json!({"pattern": "docs"})),
        project.ok("grep", json!({"pattern": "docs"}))
    );
    // Text where no name fits, where the call says that it is text, and for grep itself.
    let text = "docs/guide.txt:1:TODO: README and notes.py\n";
    assert_eq!(project.ok("search_files", json!({"pattern": "notes.py"})), text);
    assert_eq!(project.ok("search_files", json!({"pattern": "TODO.*notes"})), text);
    let found = "README.md:1:see a.py\nb.py:1:import a.py_is_text\n";
    for (tool, input) in [
        ("grep", json!({"pattern": "a.py"})),
        ("search_files", json!({"regex": "a.py"})),
        ("search_files", json!({"pattern": "a.py", "include": "*"})),
    ] {
        assert_eq!(project.ok(tool, input.clone()), found, "{tool} {input}");
    }
    let spec = tool_specs::specs().iter().find(|spec| spec.name == "grep").unwrap();
    assert!(!(spec.schema)().to_string().contains("names_first"), "no model is told of it");
}

#[test]
fn ls_counts_what_each_ignore_file_hides() {
    let project = Project::with(&[
        (".gitignore", "*.log\n"),
        (".ignore", "secret*\n!secret-not\n"),
        (".git/info/exclude", "local.txt\n"),
        ("a.log", ""),
        ("b.log", ""),
        ("secret-1", ""),
        ("secret-not", ""),
        ("local.txt", ""),
        ("plain", ""),
        ("sub/.ignore", "x\n"),
        ("sub/x", ""),
        ("sub/y.log", ""),
        ("sub/z", ""),
    ]);
    let text = project.ok("ls", json!({}));
    assert!(text.contains("secret-not") && !text.contains("secret-1"), "{text}");
    let note = "[ignored entries are not listed: 1 by .git/info/exclude, 2 by .gitignore, 1 by .ignore; name one \
                as path]";
    assert!(text.ends_with(note), "{text}");
    let text = project.ok("ls", json!({"path": "sub"}));
    assert!(
        text.ends_with("listed: 1 by .gitignore, 1 by sub/.ignore; name one as path]"),
        "{text}"
    );
}

#[test]
fn text_in_another_encoding_is_no_reason_to_take_the_first_one() {
    let project = Project::new();
    project.put("gbk.txt", b"\xd6\xd0\xce\xc4\n");
    project.put("sjis.py", b"# \x93\xfa\x96\x7b\n");
    for (tool, input) in [
        ("read", json!({"path": "gbk.txt"})),
        ("edit", json!({"path": "sjis.py", "old_string": "#", "new_string": "##"})),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: gbk.txt\n@@\n-a\n+b\n*** End Patch"}),
        ),
    ] {
        let text = project.fails(tool, input, "not_utf8");
        assert!(text.contains("GB18030") && text.contains("SHIFT_JIS"), "{text}");
        assert!(text.contains("Find out which") && !text.contains("LATIN1"), "{text}");
    }
}
