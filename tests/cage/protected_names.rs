//! Protected names: every row of the table, and the files to which they lead, by commands and by file
//! tools that no question precedes.

use crate::support::anthropic::{Answer, Server, call};
use crate::support::attempt::attempt;
use crate::support::{Desk, needs, run};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The tiers.
const TIERS: [&str; 2] = ["A", "B"];
const ACCEPT_EDITS: [&str; 2] = ["--permission-mode", "accept-edits"];

/// A row of `config/protected.toml`.
struct Row {
    name: String,
    is_asked: bool,
    who: String,
}

fn table() -> Vec<Row> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/protected.toml");
    let text = fs::read_to_string(file).unwrap();
    let part = |line: &str, key: &str| {
        let (_, rest) = line.split_once(&format!("{key} = \"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let rows = text.lines().filter(|line| line.trim_start().starts_with("{ name"));
    let rows = rows.map(|line| {
        let (source, date) = (part(line, "source"), part(line, "date"));
        let is_known = source.starts_with("https://") || source.starts_with("crates/");
        assert!(is_known && date.starts_with("20"), "{line}");
        let (name, who) = (part(line, " name"), part(line, "who"));
        Row { name, is_asked: part(line, "class") == "asked", who }
    });
    rows.collect()
}

/// A file of this row: names of directories have one in them.
fn file_of(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap();
    let is_file = last.trim_start_matches('.').contains('.')
        || [".envrc", ".npmrc", ".exrc", ".nvimrc", ".cursorrules", ".windsurfrules"]
            .contains(&last)
        || [".yarnrc", ".vimrc", ".gvimrc"].contains(&last)
        || [".goosehints", ".augment-guidelines", "hgrc", "config", "attributes"].contains(&last)
        || ["commondir"].contains(&last);
    if is_file { name.to_owned() } else { format!("{name}/made") }
}

/// Runs these calls in this mode, all in one answer, and returns their results.
fn calls(desk: &Desk, flags: &[&str], calls: &[(&str, Value)]) -> Vec<String> {
    let each = calls.iter().zip(1..);
    let each: Vec<_> = each
        .map(|((tool, input), number)| call(&format!("toolu_{number}"), tool, &input.to_string()))
        .collect();
    let server = Server::answering(move |round, _| match round {
        1 => Answer::says(each.clone()),
        _ => Answer::text("done"),
    });
    let ran = desk.ask(&server, flags);
    let requests = server.requests();
    let message = requests.get(1).unwrap_or_else(|| panic!("no results: {}", ran.err));
    let message = message.body["messages"].as_array().unwrap().last().unwrap();
    let results = message["content"].as_array().unwrap();
    results.iter().map(|result| result["content"].to_string()).collect()
}

fn git(desk: &Desk, words: &str) {
    let mut command = std::process::Command::new("git");
    command.args(words.split(' ')).current_dir(desk.project());
    assert_eq!(run(command).code, 0, "this test drives git");
}

#[test]
fn no_command_leaves_a_protected_name_of_the_table() {
    needs("git");
    for tier in TIERS {
        let desk = Desk::new();
        git(&desk, "init -q .");
        let rows = table();
        assert!(rows.len() > 60, "{}", rows.len());
        // A name in `.git` that exists is another test's.
        let rows: Vec<Row> =
            rows.into_iter().filter(|row| !row.name.starts_with(".git/")).collect();
        let made: Vec<String> = rows
            .iter()
            .flat_map(|row| [file_of(&row.name), format!("sub/deep/{}", file_of(&row.name))])
            .collect();
        let script: Vec<String> = made
            .iter()
            .map(|name| {
                format!(
                    "mkdir -p \"$(dirname {name})\" && echo evil > {name} && echo ok > {name}.md"
                )
            })
            .collect();
        let script = script.join("; ");
        let tried = attempt(&desk, tier, &[], move |_| format!("{script}; echo end"));
        assert!(tried.words.contains("end"), "{}", tried.explain());
        for row in &rows {
            for name in [file_of(&row.name), format!("sub/deep/{}", file_of(&row.name))] {
                let stays = desk.project().join(&name).exists();
                assert_eq!(stays, row.is_asked, "{tier} {name}: {}", tried.words);
                assert!(
                    !row.is_asked || tried.words.contains(&row.who),
                    "{tier} {name}: {}",
                    tried.words
                );
                if file_of(&row.name) == row.name {
                    assert_eq!(desk.read(&format!("{name}.md")), "ok\n", "{tier} {name}.md");
                }
            }
        }
    }
}

#[test]
fn no_file_tool_writes_a_name_of_the_table_unasked() {
    needs("git");
    let desk = Desk::new();
    git(&desk, "init -q .");
    let rows = table();
    let write = |path: String| ("write", json!({"path": path, "content": "evil\n"}));
    for rows in rows.chunks(12) {
        let wanted = rows.iter().flat_map(|row| {
            [write(file_of(&row.name)), write(format!("sub/{}", file_of(&row.name)))]
        });
        let wanted: Vec<_> = wanted.collect();
        let answers = calls(&desk, &ACCEPT_EDITS, &wanted);
        for ((_, input), (answer, row)) in
            wanted.iter().zip(answers.iter().zip(rows.iter().flat_map(|row| [row, row])))
        {
            let path = input["path"].as_str().unwrap();
            let words = if row.is_asked { &row.who } else { &row.name };
            assert!(answer.contains(words.as_str()), "{path}: {answer}");
            let there = fs::read_to_string(desk.project().join(path)).unwrap_or_default();
            assert!(!there.contains("evil"), "{path}: {answer}");
        }
    }
    let control = [write(".vscode/extensions.json".to_owned()), write(".envrc.example".to_owned())];
    calls(&desk, &ACCEPT_EDITS, &control);
    assert_eq!(desk.read(".vscode/extensions.json"), "evil\n");
    assert_eq!(desk.read(".envrc.example"), "evil\n");
}

/// A way in which a protected name leads to another file: the name and the file.
type Way = (&'static str, fn(&Desk), &'static str);

fn link(desk: &Desk, to: &str, at: &str) {
    let at = desk.project().join(at);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    symlink(to, at).unwrap();
}

const WAYS: [Way; 13] = [
    (
        ".git/hooks/pre-commit",
        |desk| link(desk, "../../x/own.sh", ".git/hooks/pre-commit"),
        "x/own.sh",
    ),
    (".envrc", |desk| link(desk, "x/own.sh", ".envrc"), "x/own.sh"),
    ("sub/.envrc", |desk| link(desk, "../x/own.sh", "sub/.envrc"), "x/own.sh"),
    (
        ".mcp.json",
        |desk| link(desk, desk.project().join("x/own.sh").to_str().unwrap(), ".mcp.json"),
        "x/own.sh",
    ),
    (
        ".claude/settings.json",
        |desk| link(desk, "../x/own.sh", ".claude/settings.json"),
        "x/own.sh",
    ),
    (".vscode", |desk| link(desk, "x", ".vscode"), "x/own.sh"),
    (".cursor/mcp.json", |desk| link(desk, "../x/own.sh", ".cursor/mcp.json"), "x/own.sh"),
    (
        ".envrc",
        |desk| {
            link(desk, "one", ".envrc");
            link(desk, "x/own.sh", "one");
        },
        "x/own.sh",
    ),
    ("core.hooksPath", |desk| git(desk, "config core.hooksPath x"), "x/own.sh"),
    ("settings", |desk| git(desk, "config include.path ../x/own.sh"), "x/own.sh"),
    (
        ".mcp.json",
        |desk| {
            fs::hard_link(desk.project().join("x/own.sh"), desk.project().join(".mcp.json"))
                .unwrap()
        },
        "x/own.sh",
    ),
    (
        ".git/hooks/pre-push",
        |desk| {
            fs::hard_link(
                desk.project().join("x/own.sh"),
                desk.project().join(".git/hooks/pre-push"),
            )
            .unwrap()
        },
        "x/own.sh",
    ),
    (
        "x/git/hooks",
        |desk| {
            fs::rename(desk.project().join(".git"), desk.project().join("x/git")).unwrap();
            desk.write(".git", "gitdir: x/git\n");
            fs::rename(
                desk.project().join("x/own.sh"),
                desk.project().join("x/git/hooks/pre-commit"),
            )
            .unwrap();
        },
        "x/git/hooks/pre-commit",
    ),
];

#[test]
fn no_file_tool_writes_what_a_protected_name_leads_to() {
    needs("git");
    for (name, lay, target) in WAYS {
        let desk = Desk::new();
        git(&desk, "init -q .");
        for file in ["x/own.sh", "y/free.sh", "y/gone.sh"] {
            desk.write(file, "# mine\n");
        }
        lay(&desk);
        let patch = |path: &str| {
            let text = format!(
                "*** Begin Patch\n*** Update File: {path}\n@@\n-# mine\n+# evil\n*** End Patch\n"
            );
            ("apply_patch", json!({"patch": text}))
        };
        let moved = |from: &str, to: &str| {
            let text = format!(
                "*** Begin Patch\n*** Update File: {from}\n*** Move to: {to}\n@@\n-# mine\n+# evil\n*** End Patch\n"
            );
            ("apply_patch", json!({"patch": text}))
        };
        let each = |path: &str| {
            vec![
                ("read", json!({"path": path})),
                ("edit", json!({"path": path, "old_string": "mine", "new_string": "evil"})),
                (
                    "multi_edit",
                    json!({"path": path, "edits": [{"find": "mine", "replace": "evil"}]}),
                ),
                patch(path),
                moved(path, "z/away.sh"),
                ("write", json!({"path": path, "content": "# evil\n"})),
                ("delete", json!({"paths": [path]})),
            ]
        };
        let answers = calls(&desk, &ACCEPT_EDITS, &each(target));
        for (answer, (tool, _)) in answers.iter().zip(each(target)).skip(1) {
            assert!(answer.contains("protected"), "{name}, {tool}: {answer}");
        }
        assert_eq!(desk.read(target), "# mine\n", "{name}");
        assert!(!desk.project().join("z").exists(), "{name}: it was moved");
        // The whole directory, and onto it.
        let more =
            [("delete", json!({"paths": ["x"], "recursive": true})), moved("y/gone.sh", target)];
        calls(&desk, &["--permission-mode", "auto"], &more);
        assert_eq!(desk.read(target), "# mine\n", "{name}");
        let free = ("write", json!({"path": "y/free.sh", "content": "# free\n"}));
        let seen = ("read", json!({"path": "y/free.sh"}));
        calls(&desk, &ACCEPT_EDITS, &[seen, free]);
        assert_eq!(desk.read("y/free.sh"), "# free\n", "{name}: a file beside is free");
    }
}

#[test]
fn no_file_tool_makes_what_a_protected_name_waits_for() {
    let desk = Desk::new();
    let outside = desk.outside().join("beside/shared");
    fs::create_dir_all(&outside).unwrap();
    link(&desk, "new.sh", ".envrc");
    link(&desk, outside.to_str().unwrap(), ".claude");
    let write = |path: &str| ("write", json!({"path": path, "content": "x\n"}));
    let settings = outside.join("settings.json");
    let added = outside.parent().unwrap().to_owned();
    let flags = [&ACCEPT_EDITS[..], &["--add-dir", added.to_str().unwrap()]].concat();
    let beside = added.join("other.json");
    let paths = ["new.sh", settings.to_str().unwrap(), "other.sh", beside.to_str().unwrap()];
    let wanted = paths.map(write);
    let answers = calls(&desk, &flags, &wanted);
    assert!(answers[0].contains(".envrc"), "{answers:?}");
    assert!(answers[1].contains(".claude"), "{answers:?}");
    assert!(!desk.project().join("new.sh").exists() && !settings.exists(), "{answers:?}");
    assert_eq!(desk.read("other.sh"), "x\n");
    assert_eq!(fs::read_to_string(beside).unwrap(), "x\n", "{answers:?}");
}

#[test]
fn no_patch_makes_a_repository_that_runs_a_program() {
    needs("git");
    let add = |path: &str, text: &str| format!("*** Add File: {path}\n{text}");
    let settings = "+[core]\n+\tworktree = .\n+\trepositoryformatversion = 0\n+\tfsmonitor = touch ran; false\n";
    let of = |dir: &str, refs: &str| {
        let parts = [
            add(&format!("{dir}/HEAD"), "+ref: refs/heads/main\n"),
            add(&format!("{dir}/objects/x"), "+x\n"),
            add(&format!("{dir}/{refs}/x/y"), "+x\n"),
            add(&format!("{dir}/config"), settings),
        ];
        let text = format!("*** Begin Patch\n{}*** End Patch\n", parts.concat());
        ("apply_patch", json!({"patch": text}))
    };
    let status = |dir: &Path| {
        let mut git = std::process::Command::new("git");
        run({
            git.arg("status").current_dir(dir);
            git
        });
        dir.join("ran").exists()
    };
    let desk = Desk::new();
    let answers = calls(&desk, &ACCEPT_EDITS, &[of("nb", "refs"), of("free", "references")]);
    assert!(answers[0].contains("protected"), "{answers:?}");
    assert!(!desk.project().join("nb").exists(), "{answers:?}");
    assert_eq!(desk.read("free/references/x/y"), "x\n", "{answers:?}");
    assert!(!status(&desk.project().join("free")));
    // The control: git runs the program of a directory with all three.
    fs::create_dir(desk.project().join("free/refs")).unwrap();
    assert!(status(&desk.project().join("free")), "git takes it for a repository");
}

#[test]
fn no_file_tool_writes_in_a_git_directory() {
    needs("git");
    let desk = Desk::new();
    git(&desk, "init -q .");
    let wanted = [".git/index", ".git/foo/x", ".git/info/exclude", "sub/.GIT/refs/heads/x"];
    let write = |path: &str| ("write", json!({"path": path, "content": "evil\n"}));
    let answers = calls(&desk, &ACCEPT_EDITS, &wanted.map(write));
    for (path, answer) in wanted.iter().zip(&answers) {
        assert!(answer.contains("protected") && answer.contains("run git"), "{path}: {answer}");
        let there = fs::read_to_string(desk.project().join(path)).unwrap_or_default();
        assert!(!there.contains("evil"), "{path}: {answer}");
    }
    // The control: names that only begin so, and git itself.
    let free = [".gitignore", ".github/notes.md", "x.git/index"];
    calls(&desk, &ACCEPT_EDITS, &free.map(write));
    assert!(free.iter().all(|path| desk.read(path) == "evil\n"));
    let added = ("bash", json!({"command": "git add .gitignore"}));
    calls(&desk, &["--permission-mode", "auto"], &[added]);
    assert!(desk.project().join(".git/index").exists());
}

#[test]
fn undo_does_not_change_what_a_protected_name_leads_to_since() {
    let desk = Desk::new();
    desk.write("x/own.sh", "# first\n");
    let read = ("read", json!({"path": "x/own.sh"}));
    let write = ("write", json!({"path": "x/own.sh", "content": "# second\n"}));
    calls(&desk, &ACCEPT_EDITS, &[read, write]);
    assert_eq!(desk.read("x/own.sh"), "# second\n");
    let undo = [("undo_restore", json!({"id": 2}))];
    let again = [&["-c", "--permission-mode", "auto"][..]].concat();
    link(&desk, "x/own.sh", ".envrc");
    let refused = calls(&desk, &again, &undo);
    assert_eq!(desk.read("x/own.sh"), "# second\n", "{refused:?}");
    fs::remove_file(desk.project().join(".envrc")).unwrap();
    let control = calls(&desk, &again, &undo);
    assert_eq!(desk.read("x/own.sh"), "# first\n", "{control:?}");
}
