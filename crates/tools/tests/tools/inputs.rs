//! Every file tool against every kind of thing that a path may name: one table, so that no cell is
//! missing. A cell is the code of the error, or `ok` where there is nothing wrong with it.

use crate::project::{Project, fifo, is_root};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use tool_specs::interpret;

/// A call of each tool that names a path.
const TOOLS: [&str; 8] = ["read", "ls", "glob", "grep", "write", "edit", "multi_edit", "delete"];

fn input(tool: &str, path: &str) -> Value {
    match tool {
        "read" | "ls" => json!({"path": path}),
        "glob" => json!({"path": path, "pattern": "*"}),
        "grep" => json!({"path": path, "pattern": "one"}),
        "write" => json!({"path": path, "content": "new\n"}),
        "edit" => json!({"path": path, "old_string": "one", "new_string": "two"}),
        "multi_edit" => json!({"path": path, "edits": [{"find": "one", "replace": "two"}]}),
        _ => json!({"paths": [path]}),
    }
}

/// The entry at the path, and the answer of each tool, in the order above.
const TABLE: [(&str, [&str; 8]); 15] = [
    // read, ls, glob, grep, write, edit, multi_edit, delete
    (
        "missing",
        [
            "not_found",
            "not_found",
            "not_found",
            "not_found",
            "ok",
            "not_found",
            "not_found",
            "not_found",
        ],
    ),
    (
        "missing/below",
        [
            "not_found",
            "not_found",
            "not_found",
            "not_found",
            "ok",
            "not_found",
            "not_found",
            "not_found",
        ],
    ),
    (
        "dir",
        [
            "is_directory",
            "ok",
            "ok",
            "ok",
            "is_directory",
            "is_directory",
            "is_directory",
            "is_directory",
        ],
    ),
    (
        "plain/below",
        [
            "not_a_directory",
            "not_a_directory",
            "not_a_directory",
            "not_a_directory",
            "not_a_directory",
            "not_a_directory",
            "not_a_directory",
            "not_a_directory",
        ],
    ),
    ("plain", ["ok", "not_a_directory", "not_a_directory", "ok", "ok", "ok", "ok", "ok"]),
    (
        "binary",
        ["binary", "not_a_directory", "not_a_directory", "binary", "ok", "binary", "binary", "ok"],
    ),
    (
        "latin1",
        [
            "not_utf8",
            "not_a_directory",
            "not_a_directory",
            "ok",
            "ok",
            "not_utf8",
            "not_utf8",
            "ok",
        ],
    ),
    (
        "fifo",
        [
            "not_a_file",
            "not_a_directory",
            "not_a_directory",
            "not_a_file",
            "not_a_file",
            "not_a_file",
            "not_a_file",
            "not_a_file",
        ],
    ),
    (
        "socket",
        [
            "not_a_file",
            "not_a_directory",
            "not_a_directory",
            "not_a_file",
            "not_a_file",
            "not_a_file",
            "not_a_file",
            "not_a_file",
        ],
    ),
    (
        "/dev/full",
        [
            "not_a_file",
            "not_a_directory",
            "not_a_directory",
            "not_a_file",
            "not_a_file",
            "not_a_file",
            "not_a_file",
            "not_a_file",
        ],
    ),
    (
        "large",
        [
            "too_large",
            "not_a_directory",
            "not_a_directory",
            "binary",
            "ok",
            "too_large",
            "too_large",
            "ok",
        ],
    ),
    (
        "million-lines",
        ["too_large", "not_a_directory", "not_a_directory", "ok", "ok", "ok", "ok", "ok"],
    ),
    ("", ["invalid_arguments"; 8]),
    ("a\0b", ["invalid_arguments"; 8]),
    ("../proj-evil/secret", ["access_denied"; 8]),
];

/// A project with one of each kind in it.
fn project() -> Project {
    let mut project = Project::with(&[("plain", "one\n"), ("dir/file", "one\n")]);
    project.put("binary", b"\x7fELF\x02\x01\x01\0one");
    project.put("latin1", b"one\ncaf\xe9\n");
    fifo(&project.path("fifo"));
    drop(std::os::unix::net::UnixListener::bind(project.path("socket")).unwrap());
    project.place.added.push("/dev".into());
    project
}

/// The large ones come last. A mutation reads the whole file first to compare it with the judged
/// version, which takes a debug build too long for two gigabytes.
fn put_large(project: &Project, path: &str, tool: &str) {
    match path {
        "large" => {
            let bytes =
                if ["read", "ls", "glob", "grep"].contains(&tool) { 2 << 30 } else { 16 << 20 };
            std::fs::File::create(project.path(path)).unwrap().set_len(bytes).unwrap();
        }
        "million-lines" => {
            let line = |n| if n == 7 { "one\n" } else { "1\n" };
            project.put(path, (0..1_000_000).map(line).collect::<String>().as_bytes());
        }
        _ => {}
    }
}

#[test]
fn each_tool_says_what_is_wrong_with_each_kind_of_file() {
    let mut wrong = Vec::new();
    for (path, cells) in TABLE {
        for (tool, expected) in TOOLS.iter().zip(cells) {
            // A tool that changes something leaves another project to the next.
            let project = project();
            put_large(&project, path, tool);
            let before = project.names(".");
            let result = project.run(tool, input(tool, path)).result;
            let found = result.code.clone().unwrap_or_else(|| "ok".to_owned());
            if found != expected || result.is_error == (expected == "ok") {
                wrong.push(format!(
                    "{tool} {path:?}: {found}, not {expected}: {:.200}",
                    result.text
                ));
            }
            if result.is_error {
                assert_eq!(project.names("."), before, "{tool} {path:?} leaves nothing behind");
                assert_eq!(project.content("plain"), "one\n", "{tool} {path:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn who_may_not_is_told_and_nothing_changes() {
    if is_root() {
        println!("root may do everything: this test says something to another user");
        return;
    }
    let set = |project: &Project, name: &str, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(project.path(name), mode).unwrap();
    };
    for tool in TOOLS {
        let project = Project::with(&[("dir/file", "one\n")]);
        // For paths that are read and for paths that are written.
        let path = match tool {
            "ls" | "glob" => "dir",
            _ => "dir/file",
        };
        project.run(tool, input(tool, path));
        let project = Project::with(&[("dir/file", "one\n")]);
        set(&project, "dir/file", 0o000);
        set(&project, "dir", if matches!(tool, "ls" | "glob") { 0o000 } else { 0o555 });
        let result = project.run(tool, input(tool, path)).result;
        set(&project, "dir", 0o755);
        set(&project, "dir/file", 0o644);
        // A search skips unreadable files, and reports one if it is the only file.
        assert!(result.is_error || tool == "grep", "{tool}: {}", result.text);
        assert_eq!(project.content("dir/file"), "one\n", "{tool}");
    }
}

#[test]
fn fields_that_are_none_and_values_of_another_kind_are_named() {
    for tool in TOOLS {
        let mut unknown = input(tool, "plain");
        unknown["colour"] = json!("red");
        let invalid = interpret(tool, &unknown.to_string()).unwrap_err();
        assert!(invalid.to_string().contains("unknown field \"colour\""), "{tool}: {invalid}");
        let field = if tool == "delete" { "paths" } else { "path" };
        let mut number = input(tool, "plain");
        number[field] = json!(7.5);
        let invalid = interpret(tool, &number.to_string()).unwrap_err();
        assert!(invalid.to_string().contains(field), "{tool}: {invalid}");
        assert!(interpret(tool, &input(tool, "plain").to_string()).is_ok(), "the control");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any text in the fields gives a result.
    #[test]
    fn no_value_is_too_odd_to_be_run(
        path in prop_oneof!["[./a~*\\\\-]{0,12}", ".{0,20}"],
        text in prop_oneof!["[()\\[\\]{}*+?|.^$a\\\\!#/-]{0,12}", ".{0,20}"],
        number in any::<u64>(),
    ) {
        let project = Project::with(&[("a", "aaa\n*\n"), ("b/a", "x\r\n")]);
        for (tool, input) in [
            ("read", json!({"path": path, "offset": number, "limit": number})),
            ("ls", json!({"path": path})),
            ("glob", json!({"pattern": text, "path": "."})),
            ("grep", json!({"pattern": text, "path": ".", "include": text, "context": number % 21})),
            ("grep", json!({"pattern": "a", "path": path})),
            ("edit", json!({"path": "a", "old_string": text, "new_string": path, "replace_all": number % 2 == 0})),
            ("write", json!({"path": path, "content": text})),
        ] {
            let result = project.run(tool, input).result;
            prop_assert_eq!(result.is_error, result.code.is_some());
            prop_assert!(!result.text.is_empty() && !result.summary.contains('\n'));
        }
        prop_assert_eq!(std::fs::read_to_string(project.base().join("secret")).unwrap(), "the secret\n");
    }
}
