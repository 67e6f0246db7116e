//! The tools for git, with the real git in a real cage.

use crate::supervisor::{Project, Runner, run};
use protocol::call::{FileEffect, Outcome, RunReport};
use protocol::confinement::Profile;
use protocol::tool::{RunnerJob, ToTool};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

pub const TESTS: &[crate::Test] = &[
    ("a_change_from_its_status_to_its_commit", a_change_from_its_status_to_its_commit),
    ("a_diff_of_what_was_asked_for", a_diff_of_what_was_asked_for),
    ("no_program_of_the_repository_runs", no_program_of_the_repository_runs),
    ("no_program_that_looks_at_a_signature_runs", no_program_that_looks_at_a_signature_runs),
    ("no_filter_of_a_file_that_is_included_runs", no_filter_of_a_file_that_is_included_runs),
    ("what_git_refuses_is_in_its_own_words", what_git_refuses_is_in_its_own_words),
    ("calls_of_git_that_are_none", calls_of_git_that_are_none),
    ("a_commit_needs_a_name", a_commit_needs_a_name),
    ("a_fifo_holds_no_look_beyond_its_time", a_fifo_holds_no_look_beyond_its_time),
];

/// A repository with one commit, by an author from its settings.
fn repository() -> Project {
    let project = Project::new();
    std::fs::write(project.path("a"), "one\n").unwrap();
    std::fs::create_dir(project.path("dir")).unwrap();
    std::fs::write(project.path("dir/b"), "two\n").unwrap();
    by_hand(&project, &["init", "--quiet", "--initial-branch=main"]);
    by_hand(&project, &["config", "user.name", "A Person"]);
    by_hand(&project, &["config", "user.email", "person@example.org"]);
    by_hand(&project, &["add", "-A"]);
    by_hand(&project, &["commit", "--quiet", "-m", "The first"]);
    project
}

/// Git outside of any cage, without the settings of the user who runs the tests.
fn by_hand(project: &Project, words: &[&str]) -> String {
    let ran = Command::new("git")
        .args(words)
        .current_dir(project.path(""))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git is needed for these tests");
    assert!(ran.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

fn ok(project: &Project, tool: &str, input: Value) -> String {
    let RunReport { result, .. } = project.run(tool, input);
    assert_eq!(result.outcome, Outcome::Exited { code: 0 }, "{tool}: {}", result.text);
    result.text.strip_suffix("exit code: 0").unwrap().replace("--- agentd ---\n", "")
}

/// Files on which git would block: the first files that it reads are refused by name, and the
/// call's timeout, `tools.timeout_ms`, bounds the rest.
fn a_fifo_holds_no_look_beyond_its_time() {
    let project = repository();
    let status = || project.run("git_status", json!({})).result;
    for name in [".git/info/exclude", ".git/info/attributes", ".gitignore", ".gitattributes"] {
        let path = project.path(name);
        let _ = std::fs::remove_file(&path);
        fifo(&path);
        let result = status();
        assert_eq!(result.code.as_deref(), Some("not_a_file"), "{}", result.text);
        let said = format!("nothing was run: {name} is a FIFO, not a file");
        assert!(result.text.contains(&said), "{}", result.text);
        std::fs::remove_file(&path).unwrap();
    }
    fifo(&project.path("dir/.gitignore"));
    let mut order = run("git_status", "{}");
    let RunnerJob::Run { timeout_ms, .. } = &mut order else { panic!("made as a run") };
    *timeout_ms = 1_500;
    let mut runner = Runner::caged(&project.confinement(Profile::GitLook));
    runner.say(&ToTool::Go(order));
    let result = runner.done().result;
    assert_eq!(result.outcome, Outcome::TimedOut, "{}", result.text);
    assert!(result.text.contains("timed out after 1500 ms"), "{}", result.text);
    std::fs::remove_file(project.path("dir/.gitignore")).unwrap();
    assert_eq!(ok(&project, "git_status", json!({})), "## main\n", "the positive control");
}

fn fifo(path: &Path) {
    let mode = nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR;
    nix::unistd::mkfifo(path, mode).unwrap();
}

fn a_change_from_its_status_to_its_commit() {
    let project = repository();
    std::fs::write(project.path("a"), "one\n1.5\n").unwrap();
    std::fs::write(project.path("new"), "n\n").unwrap();
    assert_eq!(ok(&project, "git_status", json!({})), "## main\n M a\n?? new\n");
    ok(&project, "git_add", json!({"paths": ["a"]}));
    assert_eq!(ok(&project, "git_status", json!({})), "## main\nM  a\n?? new\n");
    let input = json!({"subject": "# Say 'more'", "body": "Because $HOME.\n\nAnd `so`."});
    let report = project.run("git_commit", input);
    assert_eq!(report.result.outcome, Outcome::Exited { code: 0 }, "{}", report.result.text);
    let Some(FileEffect::Ran(command)) = report.effects.first() else { panic!("{report:?}") };
    assert!(command.starts_with("git commit --no-verify "), "{command}");
    assert_eq!(
        by_hand(&project, &["log", "-1", "--format=%an <%ae>%n%B"]).trim_end(),
        "A Person <person@example.org>\n# Say 'more'\n\nBecause $HOME.\n\nAnd `so`."
    );
    std::fs::remove_file(project.path("dir/b")).unwrap();
    ok(&project, "git_add", json!({"all": true}));
    ok(&project, "git_commit", json!({"subject": "The rest"}));
    assert_eq!(ok(&project, "git_status", json!({})), "## main\n");
    let log = ok(&project, "git_log", json!({}));
    let subjects: Vec<&str> = log.lines().map(|line| line.split_once(": ").unwrap().1).collect();
    assert_eq!(subjects, ["The rest (HEAD -> main)", "# Say 'more'", "The first"]);
    assert_eq!(ok(&project, "git_log", json!({"limit": 1})).lines().count(), 1);
    assert_eq!(ok(&project, "git_log", json!({"path": "a"})).lines().count(), 2);
    let shown = ok(&project, "git_show", json!({"ref": "HEAD~1"}));
    assert!(shown.contains("Because $HOME.") && shown.contains("+1.5"), "{shown}");
    assert_eq!(ok(&project, "git_show", json!({"ref": "HEAD~2:dir/b"})), "two\n");
}

fn a_diff_of_what_was_asked_for() {
    let project = repository();
    let lines: String = (0..40).map(|i| format!("{i}\n")).collect();
    std::fs::write(project.path("a"), &lines).unwrap();
    by_hand(&project, &["add", "a"]);
    std::fs::write(project.path("a"), lines.replace("20\n", "twenty\n")).unwrap();
    std::fs::write(project.path("dir/b"), "2\n").unwrap();
    let both = ok(&project, "git_diff", json!({}));
    assert!(both.contains("+twenty") && both.contains("b/dir/b") && !both.contains("+39"));
    let one = ok(&project, "git_diff", json!({"path": "dir"}));
    assert!(one.contains("b/dir/b") && !one.contains("twenty"), "{one}");
    let staged = ok(&project, "git_diff", json!({"staged": true}));
    assert!(staged.contains("+39") && !staged.contains("twenty"), "{staged}");
    let narrow = ok(&project, "git_diff", json!({"path": "a", "context": 0}));
    assert_eq!(narrow.lines().filter(|line| line.starts_with(' ')).count(), 0, "{narrow}");
    assert_eq!(
        ok(&project, "git_diff", json!({"path": "a", "context": 5}))
            .lines()
            .filter(|line| line.starts_with(' '))
            .count(),
        10
    );
    by_hand(&project, &["commit", "--quiet", "-am", "all"]);
    assert_eq!(ok(&project, "git_diff", json!({})), "(no output)\n");
}

/// Creates a file in its directory, and copies its input.
fn trap(project: &Project, name: &str) -> String {
    let (program, mark) =
        (project.path(&format!("trap-{name}")), project.path(&format!("ran-{name}")));
    std::fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    program.to_str().unwrap().to_owned()
}

fn ran(project: &Project) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(project.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("ran-"))
        .collect();
    names.sort();
    names
}

fn no_program_of_the_repository_runs() {
    let project = repository();
    let set = |key: &str, value: &str| drop(by_hand(&project, &["config", key, value]));
    std::fs::write(project.path(".gitattributes"), "a diff=odd filter=odd\ndir/b diff=converted\n")
        .unwrap();
    by_hand(&project, &["add", ".gitattributes"]);
    by_hand(&project, &["commit", "--quiet", "-m", "attributes"]);
    for (key, name) in [
        ("core.fsmonitor", "fsmonitor"),
        ("core.pager", "pager"),
        ("pager.diff", "pager-diff"),
        ("pager.log", "pager-log"),
        ("pager.show", "pager-show"),
        ("pager.status", "pager-status"),
        ("core.editor", "editor"),
        ("core.sshCommand", "ssh"),
        ("diff.external", "external"),
        ("diff.odd.command", "diff-command"),
        ("diff.converted.textconv", "textconv"),
        ("filter.odd.clean", "clean"),
        ("filter.odd.smudge", "smudge"),
        ("gpg.program", "gpg"),
        ("credential.helper", "credential"),
    ] {
        set(key, &trap(&project, name));
    }
    set("log.showSignature", "true");
    set("commit.gpgSign", "true");
    let hooks = project.path("hooks");
    std::fs::create_dir(&hooks).unwrap();
    for hook in [
        "pre-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-commit",
        "post-index-change",
        "reference-transaction",
    ] {
        std::fs::copy(trap(&project, hook), hooks.join(hook)).unwrap();
        std::fs::copy(hooks.join(hook), project.path(".git/hooks").join(hook)).unwrap();
    }
    set("core.hooksPath", hooks.to_str().unwrap());
    // Of another time, or git would not look into it.
    std::fs::write(project.path("a"), "uno\n").unwrap();
    std::fs::write(project.path("dir/b"), "due\n").unwrap();

    let status = ok(&project, "git_status", json!({}));
    assert!(status.contains(" M a\n"), "{status}");
    assert!(status.contains("filters from the repository's settings were not run"));
    let diff = ok(&project, "git_diff", json!({}));
    assert!(diff.contains("+uno") && diff.contains("+due"), "{diff}");
    ok(&project, "git_log", json!({}));
    ok(&project, "git_show", json!({"ref": "HEAD~1"}));
    assert_eq!(ran(&project), [""; 0]);

    // Added files go through their filter, as in a shell: the approval covers it.
    ok(&project, "git_add", json!({"paths": ["a", "dir/b"]}));
    ok(&project, "git_diff", json!({"staged": true}));
    ok(&project, "git_commit", json!({"subject": "Traps"}));
    assert_eq!(ran(&project), ["ran-clean"]);

    // The traps work: git itself falls into them.
    std::fs::write(project.path("a"), "one more\n").unwrap();
    let plain = Command::new("git").arg("status").current_dir(project.path("")).output().unwrap();
    assert!(plain.status.success());
    let fell = ran(&project);
    assert!(fell.iter().any(|name| name == "ran-fsmonitor"), "{fell:?}");
}

/// A format of the repository's own may ask for signatures, and they say by which program.
fn no_program_that_looks_at_a_signature_runs() {
    for (kind, program) in [
        ("PGP SIGNATURE", "gpg.openpgp.program"),
        ("SSH SIGNATURE", "gpg.ssh.program"),
        ("SIGNED MESSAGE", "gpg.x509.program"),
    ] {
        let project = repository();
        let tree = by_hand(&project, &["rev-parse", "HEAD^{tree}"]);
        let who = "A <a@example.org> 1700000000 +0000";
        let commit = format!(
            "tree {}\nauthor {who}\ncommitter {who}\ngpgsig -----BEGIN {kind}-----\n abc\n \
             -----END {kind}-----\n\nSigned\n",
            tree.trim()
        );
        std::fs::write(project.path("commit"), commit).unwrap();
        let id = by_hand(&project, &["hash-object", "-t", "commit", "-w", "commit"]);
        by_hand(&project, &["update-ref", "HEAD", id.trim()]);
        by_hand(&project, &["config", "format.pretty", "%G? %s"]);
        by_hand(&project, &["config", "gpg.ssh.allowedSignersFile", "/dev/null"]);
        by_hand(&project, &["config", program, &trap(&project, "signature")]);

        let shown = ok(&project, "git_show", json!({"ref": "HEAD"}));
        assert!(shown.contains(" Signed"), "{shown}");
        assert_eq!(ran(&project), [""; 0], "{kind}");
        by_hand(&project, &["show"]);
        assert_eq!(ran(&project), ["ran-signature"], "{kind}: the trap works");
    }
}

/// An include may depend on a setting of another file.
fn no_filter_of_a_file_that_is_included_runs() {
    let project = repository();
    let trap = trap(&project, "clean");
    std::fs::write(project.path(".git/more"), format!("[filter \"odd\"]\n\tclean = {trap}\n"))
        .unwrap();
    by_hand(&project, &["config", "extensions.worktreeConfig", "true"]);
    by_hand(&project, &["config", "includeIf.hasconfig:remote.*.url:https://x.path", "more"]);
    by_hand(&project, &["config", "--worktree", "remote.r.url", "https://x"]);
    std::fs::write(project.path(".git/info/attributes"), "a filter=odd\n").unwrap();
    std::fs::write(project.path("a"), "uno\n").unwrap();

    let diff = ok(&project, "git_diff", json!({}));
    assert!(diff.contains("+uno"), "{diff}");
    assert_eq!(ran(&project), [""; 0]);
    by_hand(&project, &["diff"]);
    assert_eq!(ran(&project), ["ran-clean"], "the trap works");
}

fn what_git_refuses_is_in_its_own_words() {
    let project = Project::new();
    for (tool, input) in [
        ("git_status", json!({})),
        ("git_log", json!({})),
        ("git_add", json!({"all": true})),
        ("git_commit", json!({"subject": "x"})),
    ] {
        let result = project.run(tool, input).result;
        assert!(
            result.is_error && result.text.contains("not a git repository"),
            "{tool}: {}",
            result.text
        );
    }
    let project = repository();
    for (tool, input, words) in [
        ("git_show", json!({"ref": "no-such"}), "no-such"),
        ("git_show", json!({"ref": "--output=stolen"}), "--output=stolen"),
        ("git_add", json!({"paths": ["not-there"]}), "did not match any files"),
        ("git_commit", json!({"subject": "nothing"}), "nothing to commit"),
    ] {
        let result = project.run(tool, input).result;
        assert!(result.is_error && result.text.contains(words), "{tool}: {}", result.text);
        assert!(matches!(result.outcome, Outcome::Exited { .. }), "{:?}", result.outcome);
    }
    assert!(!project.path("stolen").exists());
}

fn calls_of_git_that_are_none() {
    let project = repository();
    for (tool, input, code) in [
        ("git_diff", json!({"path": "../secret"}), "access_denied"),
        ("git_diff", json!({"path": "/etc/passwd"}), "access_denied"),
        ("git_diff", json!({"path": ""}), "invalid_arguments"),
        ("git_diff", json!({"context": 21}), "invalid_arguments"),
        ("git_log", json!({"path": "../proj-evil/x"}), "access_denied"),
        ("git_log", json!({"limit": 0}), "invalid_arguments"),
        ("git_log", json!({"limit": 51}), "invalid_arguments"),
        ("git_show", json!({}), "invalid_arguments"),
        ("git_show", json!({"ref": " "}), "invalid_arguments"),
        ("git_show", json!({"ref": "a\u{0}b"}), "invalid_arguments"),
        ("git_add", json!({}), "invalid_arguments"),
        ("git_add", json!({"all": true, "paths": ["a"]}), "invalid_arguments"),
        ("git_add", json!({"paths": ["a", "../secret"]}), "access_denied"),
        ("git_commit", json!({}), "invalid_arguments"),
        ("git_commit", json!({"subject": " "}), "invalid_arguments"),
        ("git_commit", json!({"subject": "two\nlines"}), "invalid_arguments"),
    ] {
        let spec = tool_specs::specs().iter().find(|spec| spec.name == tool).unwrap();
        let mut runner = crate::supervisor::Runner::caged(&project.confinement(spec.profile));
        let job = crate::supervisor::run(tool, &input.to_string());
        runner.say(&protocol::tool::ToTool::Go(job));
        let result = runner.done().result;
        assert_eq!(result.code.as_deref(), Some(code), "{tool} {input}: {}", result.text);
    }
}

/// No author name is derived from the machine's names.
fn a_commit_needs_a_name() {
    let project = repository();
    by_hand(&project, &["config", "--unset", "user.name"]);
    by_hand(&project, &["config", "--unset", "user.email"]);
    std::fs::write(project.path("a"), "x\n").unwrap();
    ok(&project, "git_add", json!({"all": true}));
    let result = project.run("git_commit", json!({"subject": "whose"})).result;
    assert!(result.is_error && result.text.contains("user.email"), "{}", result.text);
    assert!(Path::new(&project.path(".git/index")).exists());
    by_hand(&project, &["config", "user.name", "A Person"]);
    by_hand(&project, &["config", "user.email", "person@example.org"]);
    ok(&project, "git_commit", json!({"subject": "mine"}));
}
