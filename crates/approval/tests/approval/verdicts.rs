//! Paths, modes, questions and texts: what `judge` answers beside commands.

use super::bench::{Outcome, PROJECT, command, on_paths, outcome, rule_set, rules, unprobed};
use approval::{SessionRules, needs_probe};
use protocol::judgement::{
    Audience, Basis, ExtraRight, JudgedCall, PermissionMode, Question, RuleEffect, RuleSet,
    ToolKind, Verdict,
};

fn asked(rules: &SessionRules, case: &JudgedCall) -> Question {
    match rules.judge(case) {
        Verdict::Ask(question) => question,
        other @ (Verdict::Allow(_) | Verdict::Deny(..)) => panic!("not a question: {other:?}"),
    }
}

fn refusal(rules: &SessionRules, case: &JudgedCall) -> String {
    match rules.judge(case) {
        Verdict::Deny(_, text) => text,
        other @ (Verdict::Allow(_) | Verdict::Ask(_)) => panic!("no refusal: {other:?}"),
    }
}

#[test]
fn which_rules_deny_each_call_of_a_tool() {
    for (rule, tool, wanted) in [
        ("undo_list", "undo_list", true),
        (" undo_list ", "undo_list", true),
        ("web_fetch:*", "web_fetch", true),
        ("host", "web_fetch", true),
        ("web_fetch:docs.rs", "web_fetch", false),
        ("bash", "git_log", true),
        ("bash:*", "bash_input", true),
        ("bash:git *", "bash", false),
        ("write", "undo_restore", true),
        ("write:src/**", "delete", false),
        ("memory_add:user", "memory_add", false),
        ("mcp__tracker__delete", "mcp__tracker__delete", true),
        ("mcp__tracker", "mcp__tracker__delete", true),
        ("mcp__tracker__list_*", "mcp__tracker__delete", false),
        ("undo_list", "mcp__tracker__delete", false),
    ] {
        let denying = rules(PermissionMode::Auto, &[], &[], &[rule]);
        assert_eq!(denying.denies_each_call(tool), wanted, "{rule} for {tool}");
        let allowing = rules(PermissionMode::Auto, &[rule], &[], &[]);
        assert!(!allowing.denies_each_call(tool), "{rule} for {tool}");
    }
}

fn file(below: &str) -> String {
    format!("{PROJECT}/{below}")
}

#[test]
fn path_patterns_are_those_of_gitignore() {
    // Pattern, path, whether `write:pattern` allows it, whether `write:pattern` denies it.
    let rows = [
        ("src/**", "src/a.rs", true, true),
        ("src/**", "src/a/b.rs", true, true),
        ("src/**", "src", false, true),
        ("src/**", "srcx/a.rs", false, false),
        ("src/**", "x/src/a.rs", false, false),
        ("src", "src/a/b.rs", true, true),
        ("src/", "src/a.rs", true, true),
        ("src/", "src", false, true),
        ("./src", "src/a.rs", true, true),
        ("./src", "x/src/a.rs", false, false),
        ("/src", "src/a.rs", true, true),
        ("/src", "x/src/a.rs", false, false),
        ("*.rs", "a.rs", true, true),
        ("*.rs", "deep/down/a.rs", true, true),
        ("*.rs", "a.rsx", false, false),
        (".env", ".env", true, true),
        (".env", "sub/.env", true, true),
        (".env", ".env.example", false, false),
        (".env*", ".env.example", true, true),
        ("docs/*.md", "docs/a.md", true, true),
        ("docs/*.md", "docs/sub/a.md", false, false),
        ("docs/**/*.md", "docs/a.md", true, true),
        ("docs/**/*.md", "docs/sub/a.md", true, true),
        ("**/test", "a/test/x", true, true),
        ("a?c", "abc", true, true),
        ("a?c", "a/c", false, false),
        ("[ab].txt", "b.txt", true, true),
        ("{a,b}.txt", "b.txt", true, true),
        ("a\\*b", "a*b", true, true),
        ("a\\*b", "axb", false, false),
        ("*", "any/thing", true, true),
        ("**", "any/thing", true, true),
        (".", "any/thing", true, true),
        ("Cargo.lock", "Cargo.lock", true, true),
        ("Cargo.lock", "cargo.lock", false, false),
        ("with blank/**", "with blank/x", true, true),
        ("größe/**", "größe/x", true, true),
        (&format!("{PROJECT}/src/**"), "src/a.rs", true, true),
        ("/home/me/project-evil/**", "x", false, false),
    ];
    for (pattern, path, allows, denies) in rows {
        let rule = format!("write:{pattern}");
        let case = on_paths("write", &[&file(path)]);
        let allowing = rules(PermissionMode::DontAsk, &[&rule], &[], &[]);
        let wanted = if allows { Outcome::Allowed } else { Outcome::RefusedByMode };
        assert_eq!(outcome(&allowing, &case), wanted, "allow {rule} on {path}");
        let denying = rules(PermissionMode::Auto, &["write:**"], &[], &[&rule]);
        let wanted = if denies { Outcome::Denied } else { Outcome::Allowed };
        assert_eq!(outcome(&denying, &case), wanted, "deny {rule} on {path}");
    }
}

#[test]
fn a_permission_relative_to_the_project_ends_at_its_border() {
    let judge = rules(PermissionMode::DontAsk, &["write:**", "write:*.rs", "write:src"], &[], &[]);
    for path in ["/etc/x.rs", "/home/me/project-evil/src/a.rs", "/home/me", "/"] {
        assert_eq!(outcome(&judge, &on_paths("write", &[path])), Outcome::RefusedByMode, "{path}");
    }
    let judge = rules(PermissionMode::DontAsk, &["write:/srv/data/**"], &[], &[]);
    assert_eq!(outcome(&judge, &on_paths("write", &["/srv/data/x"])), Outcome::Allowed);
    assert_eq!(outcome(&judge, &on_paths("write", &["/srv/database/x"])), Outcome::RefusedByMode);
}

#[test]
fn a_denial_holds_for_the_copies_in_git_worktrees_of_the_project() {
    let private = format!("read:{PROJECT}/private/**");
    let denials = ["read:secrets/**", private.as_str()];
    let of_parent = rules(PermissionMode::Auto, &["read:**"], &[], &denials);
    let copies = file(".worktrees/s-1");
    let set = rule_set(PermissionMode::Auto, &["read:**"], &[], &denials);
    let of_child = SessionRules::new(&RuleSet { project: copies.as_str().into(), ..set }).unwrap();
    for (path, wanted) in [
        ("secrets/key", Outcome::Denied),
        ("private/key", Outcome::Denied),
        ("open/secrets/key", Outcome::AllowedAsQuery),
        ("open/key", Outcome::AllowedAsQuery),
    ] {
        let case = on_paths("read", &[&format!("{copies}/{path}")]);
        assert_eq!(outcome(&of_parent, &case), wanted, "the parent reads {path}");
        assert_eq!(outcome(&of_child, &case), wanted, "the sub-agent reads {path}");
    }
    // A permission for the project is none for its copies.
    let allowing = rules(PermissionMode::DontAsk, &["write:open/**"], &[], &[]);
    let case = on_paths("write", &[&format!("{copies}/open/key")]);
    assert_eq!(outcome(&allowing, &case), Outcome::RefusedByMode);
}

#[test]
fn a_denied_name_is_denied_outside_the_project_too() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["read:.env", "read:/etc/shadow"]);
    for (path, wanted) in [
        ("/srv/added/.env", Outcome::Denied),
        ("/etc/shadow", Outcome::Denied),
        ("/etc/passwd", Outcome::AllowedAsQuery),
    ] {
        assert_eq!(outcome(&judge, &on_paths("read", &[path])), wanted, "{path}");
    }
}

#[test]
fn a_denied_name_is_denied_wherever_it_leads() {
    let judge = rules(PermissionMode::Auto, &["write:.env"], &[], &["read:.env", "read:conf/key"]);
    let link = |tool: &str, named: &str| {
        let mut case = on_paths(tool, &[&file("elsewhere/data")]);
        case.probe.as_mut().unwrap().paths[0].named = named.into();
        outcome(&judge, &case)
    };
    for named in [".env", "./sub/../.env", "/home/me/project/.env", "conf/key", "src/../conf//key"]
    {
        assert_eq!(link("read", named), Outcome::Denied, "{named}");
    }
    assert_eq!(link("read", "data"), Outcome::AllowedAsQuery);
    // A permission is for where it leads.
    let judge = rules(PermissionMode::DontAsk, &["write:.env"], &[], &[]);
    let mut case = on_paths("write", &[&file("elsewhere/data")]);
    case.probe.as_mut().unwrap().paths[0].named = ".env".into();
    assert_eq!(outcome(&judge, &case), Outcome::RefusedByMode);
}

#[test]
fn every_path_must_be_allowed_and_one_denied_is_enough() {
    let judge = rules(
        PermissionMode::DontAsk,
        &["write:src/**", "write:docs/**"],
        &[],
        &["write:src/secret"],
    );
    let on = |paths: &[&str]| {
        let paths: Vec<String> = paths.iter().map(|path| file(path)).collect();
        outcome(&judge, &on_paths("write", &paths.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    assert_eq!(on(&["src/a", "docs/b"]), Outcome::Allowed);
    assert_eq!(on(&["src/a", "other"]), Outcome::RefusedByMode);
    assert_eq!(on(&["docs/b", "src/secret"]), Outcome::Denied);
}

#[test]
fn a_search_is_denied_where_it_would_reach_what_is_denied() {
    let judge = rules(
        PermissionMode::Auto,
        &[],
        &[],
        &["grep:secrets/**", "grep:a/*/key.pem", "ls:secrets"],
    );
    let rows = [
        ("grep", "secrets/", Outcome::Denied),
        ("grep", "secrets/x", Outcome::Denied),
        ("grep", "", Outcome::Denied),
        ("grep", "src/", Outcome::AllowedAsQuery),
        ("grep", "a/", Outcome::Denied),
        ("grep", "a/b/", Outcome::Denied),
        ("grep", "a/b/c/", Outcome::AllowedAsQuery),
        ("grep", "a", Outcome::AllowedAsQuery), // a regular file of that name
        ("ls", "secrets/", Outcome::Denied),
        ("ls", "src/", Outcome::AllowedAsQuery),
        ("ls", "", Outcome::AllowedAsQuery), // one level: it shows the name, not what is in it
        ("glob", "", Outcome::AllowedAsQuery),
    ];
    for (tool, below, wanted) in rows {
        let path = if below.is_empty() { format!("{PROJECT}/") } else { file(below) };
        assert_eq!(outcome(&judge, &on_paths(tool, &[&path])), wanted, "{tool} {below}");
    }
    assert_eq!(
        outcome(&judge, &on_paths("grep", &[])),
        Outcome::Denied,
        "no path means the project"
    );
    assert_eq!(
        outcome(&judge, &on_paths("grep", &["/home/"])),
        Outcome::Denied,
        "above the project"
    );
    let anywhere = rules(PermissionMode::Auto, &[], &[], &["grep:.env"]);
    assert_eq!(outcome(&anywhere, &on_paths("grep", &[&file("src/")])), Outcome::Denied);
    assert_eq!(
        outcome(&anywhere, &on_paths("grep", &[&file("src/a.rs")])),
        Outcome::AllowedAsQuery
    );
}

/// A search prints what it finds: a file that may not be read is not searched by its name. What it
/// meets in a directory it may meet, or a denied name at any depth would end all searches.
#[test]
fn what_may_not_be_read_may_not_be_searched_by_name() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["read:.env", "read:secrets/**"]);
    for (path, wanted) in [
        (".env", Outcome::Denied),
        ("deploy/.env", Outcome::Denied),
        ("secrets/key", Outcome::Denied),
        ("secrets/", Outcome::Denied),
        ("secrets/deep/", Outcome::Denied),
        ("src/a.rs", Outcome::AllowedAsQuery),
        ("src/", Outcome::AllowedAsQuery),
        ("", Outcome::AllowedAsQuery),
    ] {
        let path = if path.is_empty() { format!("{PROJECT}/") } else { file(path) };
        for tool in ["grep", "scan"] {
            assert_eq!(outcome(&judge, &on_paths(tool, &[&path])), wanted, "{tool} {path}");
        }
    }
    // Not the other way round, and its own rules reach as far as it does.
    let judge = rules(PermissionMode::Auto, &[], &[], &["grep:secrets/**"]);
    let read = on_paths("read", &[&file("secrets/key")]);
    assert_eq!(outcome(&judge, &read), Outcome::AllowedAsQuery);
    let all = rules(PermissionMode::Auto, &[], &[], &["read"]);
    assert_eq!(outcome(&all, &on_paths("grep", &[&file("src/")])), Outcome::Denied);
    let set = rule_set(PermissionMode::Ask, &[], &[], &["read:x"]);
    assert!(needs_probe(&set, "grep", ToolKind::Query));
    assert!(!needs_probe(&set, "ls", ToolKind::Query));
}

#[test]
fn a_pattern_that_no_call_could_fit_is_an_error_when_it_is_read() {
    for tool in
        ["history_search", "tool_search", "memory_search", "skill_activate", "checklist_update"]
    {
        for (text, sound) in
            [(tool.to_owned(), true), (format!("{tool}:*"), true), (format!("{tool}:x"), false)]
        {
            let set = rule_set(PermissionMode::Auto, &[], &[], &[text.as_str()]);
            let case = unprobed(tool);
            match (SessionRules::new(&set), sound) {
                (Ok(judge), true) => assert_eq!(outcome(&judge, &case), Outcome::Denied, "{text}"),
                (Err(error), false) => {
                    assert!(error.to_string().contains("this never matches"), "{error}");
                }
                (read, _) => panic!("{text}: {read:?}"),
            }
        }
    }
}

#[test]
fn the_project_directory_itself_fits_only_what_means_everything() {
    for (deny, wanted) in [
        ("ls:*", Outcome::Denied),
        ("ls:**", Outcome::Denied),
        ("ls:.", Outcome::Denied),
        ("ls", Outcome::Denied),
        ("ls:.*", Outcome::AllowedAsQuery),
        ("ls:src", Outcome::AllowedAsQuery),
        ("ls:project", Outcome::Denied), // by its name, at any depth
    ] {
        let judge = rules(PermissionMode::Auto, &[], &[], &[deny]);
        assert_eq!(outcome(&judge, &on_paths("ls", &[&format!("{PROJECT}/")])), wanted, "{deny}");
    }
}

#[test]
fn looks_pass_in_every_mode_and_are_never_a_question() {
    for mode in [
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::Auto,
        PermissionMode::DontAsk,
    ] {
        let judge = rules(mode, &[], &[], &["read:secret"]);
        assert_eq!(outcome(&judge, &on_paths("read", &[&file("x")])), Outcome::AllowedAsQuery);
        assert_eq!(outcome(&judge, &on_paths("read", &[&file("secret")])), Outcome::Denied);
        assert_eq!(
            outcome(&judge, &unprobed("ls")),
            Outcome::AllowedAsQuery,
            "no rule speaks of it"
        );
    }
}

#[test]
fn what_was_not_looked_at_is_not_judged() {
    let judge = rules(PermissionMode::Auto, &["write:**"], &[], &["read:secret"]);
    assert_eq!(outcome(&judge, &unprobed("read")), Outcome::Unjudgeable);
    assert_eq!(outcome(&judge, &unprobed("write")), Outcome::Unjudgeable);
    for path in ["relative", "/a/../b", ""] {
        assert_eq!(outcome(&judge, &on_paths("write", &[path])), Outcome::Unjudgeable, "{path}");
    }
}

#[test]
fn the_mode_answers_where_no_rule_does() {
    let inside = on_paths("write", &[&file("a")]);
    let outside = on_paths("write", &["/etc/a"]);
    let shell = command("ls");
    let rows = [
        (PermissionMode::Ask, Outcome::Asked, Outcome::Asked, Outcome::Asked),
        (PermissionMode::AcceptEdits, Outcome::AllowedByMode, Outcome::Asked, Outcome::Asked),
        (
            PermissionMode::Plan,
            Outcome::RefusedByMode,
            Outcome::RefusedByMode,
            Outcome::RefusedByMode,
        ),
        (
            PermissionMode::Auto,
            Outcome::AllowedByMode,
            Outcome::AllowedByMode,
            Outcome::AllowedByMode,
        ),
        (
            PermissionMode::DontAsk,
            Outcome::RefusedByMode,
            Outcome::RefusedByMode,
            Outcome::RefusedByMode,
        ),
    ];
    for (mode, in_project, out_of_it, by_shell) in rows {
        let judge = rules(mode, &[], &[], &[]);
        let found = (outcome(&judge, &inside), outcome(&judge, &outside), outcome(&judge, &shell));
        assert_eq!(found, (in_project, out_of_it, by_shell), "{mode:?}");
    }
}

#[test]
fn a_directory_that_would_go_is_no_edit_and_rules_for_what_is_in_it_hold() {
    let removed = |digest: &str| {
        let mut case = on_paths("delete", &[&file("src")]);
        for path in case.probe.iter_mut().flat_map(|probe| &mut probe.paths) {
            path.digest = Some(digest.to_owned());
        }
        case
    };
    let (a_file, a_directory) = (removed("00"), removed("tree:00"));
    let judge = rules(PermissionMode::AcceptEdits, &[], &[], &[]);
    assert_eq!(outcome(&judge, &a_file), Outcome::AllowedByMode);
    assert_eq!(outcome(&judge, &a_directory), Outcome::Asked);
    let judge = rules(PermissionMode::AcceptEdits, &[], &[], &["write:src/secret"]);
    assert_eq!(outcome(&judge, &a_file), Outcome::AllowedByMode, "a file has nothing in it");
    assert_eq!(outcome(&judge, &a_directory), Outcome::Denied);
    let judge = rules(PermissionMode::Auto, &[], &[], &[]);
    assert_eq!(outcome(&judge, &a_directory), Outcome::AllowedByMode);
}

#[test]
fn a_file_that_a_program_runs_later_is_asked_about_where_no_edit_is() {
    for mode in [PermissionMode::AcceptEdits, PermissionMode::Auto] {
        let judge = rules(mode, &[], &[], &[]);
        for name in ["lefthook.yml", "web/.npmrc", ".husky/pre-commit", "Mise.TOML"] {
            let case = on_paths("write", &[&file(name)]);
            assert_eq!(outcome(&judge, &case), Outcome::Asked, "{mode:?} {name}");
        }
        assert_eq!(
            outcome(&judge, &on_paths("write", &[&file("lefthook.yml.md")])),
            Outcome::AllowedByMode
        );
        let allowed = rules(mode, &["write:lefthook.yml"], &[], &[]);
        let case = on_paths("write", &[&file("lefthook.yml")]);
        assert_eq!(outcome(&allowed, &case), Outcome::Allowed);
    }
}

#[test]
fn denials_come_before_questions_and_questions_before_permissions() {
    let all = ["bash:x *"];
    for (allow, ask, deny, wanted) in [
        (&all[..], &all[..], &all[..], Outcome::Denied),
        (&all, &all, &[], Outcome::Asked),
        (&all, &[], &[], Outcome::Allowed),
        (&[], &[], &[], Outcome::AllowedByMode),
    ] {
        let judge = rules(PermissionMode::Auto, allow, ask, deny);
        assert_eq!(outcome(&judge, &command("x y")), wanted);
    }
    // A mode in which nothing is changed is none in which rules change things.
    let judge = rules(PermissionMode::Plan, &all, &[], &[]);
    assert_eq!(outcome(&judge, &command("x y")), Outcome::RefusedByMode);
    // Where the mode refuses instead of asking, it refuses what a rule would ask about.
    for mode in [PermissionMode::Plan, PermissionMode::DontAsk] {
        let judge = rules(mode, &all, &all, &[]);
        assert_eq!(outcome(&judge, &command("x y")), Outcome::RefusedByMode);
    }
}

#[test]
fn the_first_rule_of_an_effect_is_the_one_named() {
    let judge = rules(PermissionMode::Ask, &["bash:* b", "bash:a *", "bash:a b"], &[], &[]);
    match judge.judge(&command("a b")) {
        Verdict::Allow(Basis::Rule(rule)) => {
            assert_eq!((rule.text.as_str(), rule.line), ("bash:* b", 1))
        }
        other @ (Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_)) => panic!("{other:?}"),
    }
}

#[test]
fn the_rules_that_a_refusal_names_allow_the_command_of_several() {
    let nobody = |allow: &[&str]| {
        let mut set = rule_set(PermissionMode::Ask, allow, &[], &[]);
        set.audience = Audience::NonInteractive;
        SessionRules::new(&set).unwrap()
    };
    for text in ["cargo b && x", "cd sub; make all | tail -3", "a b; a b; c"] {
        let said = refusal(&nobody(&[]), &command(text));
        let remedy = said.split("A person can allow it").nth(1).unwrap_or_else(|| panic!("{said}"));
        let named: Vec<_> = remedy.split('`').skip(1).step_by(2).collect();
        assert_eq!(outcome(&nobody(&named), &command(text)), Outcome::Allowed, "{said}");
        let some = &named[..named.len() - 1];
        assert_eq!(outcome(&nobody(some), &command(text)), Outcome::NobodyToAsk, "{said}");
    }
}

#[test]
fn where_nobody_can_be_asked_the_refusal_says_what_would_allow_it() {
    let mut set = rule_set(PermissionMode::Ask, &[], &["bash:make *"], &[]);
    set.audience = Audience::NonInteractive;
    let judge = SessionRules::new(&set).unwrap();
    let rows: [(JudgedCall, &[&str]); 7] = [
        (
            command("cargo build --release"),
            &["`bash:cargo build --release`", "--allowed-tools 'bash:cargo build --release'"],
        ),
        (
            command("cargo b && x"),
            &[
                "no rule allows the command `cargo b` in it",
                "with `bash:cargo b` and `bash:x` under permissions.allow",
                "--permission-mode auto",
            ],
        ),
        (command("cargo b > x"), &["it redirects (`> x`)", "No rule can allow it"]),
        (command("echo 'a b'"), &["--permission-mode auto"]),
        (command("make x"), &["the rule `bash:make *` (config.toml:1) asks about it"]),
        (on_paths("write", &[&file("src/a.rs")]), &["`write:./src/a.rs`"]),
        (on_paths("write", &["/etc/x"]), &["`/etc/x` is outside the project", "ACCESS DENIED"]),
    ];
    for (case, wanted) in rows {
        assert_eq!(outcome(&judge, &case), Outcome::NobodyToAsk);
        let text = refusal(&judge, &case);
        for part in wanted {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
}

#[test]
fn the_rule_that_is_offered_allows_the_call() {
    for case in [command("cargo build --release"), on_paths("write", &[&file("src/a b.rs")])] {
        let text = refusal(&rules(PermissionMode::DontAsk, &[], &[], &[]), &case);
        let offered = text.split_once("allow it with `").unwrap().1.split('`').next().unwrap();
        assert_eq!(
            outcome(&rules(PermissionMode::DontAsk, &[offered], &[], &[]), &case),
            Outcome::Allowed,
            "{text}"
        );
    }
}

#[test]
fn a_denial_names_rule_place_and_cause() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:sudo *", "write:Cargo.lock"]);
    let text = refusal(&judge, &command("cd x && env sudo rm y"));
    assert!(
        text.contains("`bash:sudo *` (config.toml:1)") && text.contains("because of `sudo rm y`"),
        "{text}"
    );
    let text = refusal(&judge, &on_paths("write", &[&file("Cargo.lock")]));
    assert!(text.contains("because of `/home/me/project/Cargo.lock`"), "{text}");
}

#[test]
fn a_question_shows_what_would_run() {
    let judge = rules(PermissionMode::Ask, &[], &[], &[]);
    let question = asked(&judge, &command("echo x\u{1b}[2K\u{202e}y\nls"));
    assert_eq!(question.preview, "echo x\\u{1b}[2K\\u{202e}y\nls");
    assert_eq!(question.tool, "bash");
    assert_eq!(question.confinement, "may write: this project; network: off");
    let mut case = on_paths("edit", &[&file("a")]);
    case.probe.as_mut().unwrap().diff = "-a\n+b\n".into();
    assert_eq!(asked(&judge, &case).preview, "-a\n+b\n");
}

#[test]
fn the_digest_changes_with_all_that_an_answer_is_about() {
    let judge = rules(PermissionMode::Ask, &[], &[], &[]);
    let base = on_paths("write", &[&file("a"), &file("b")]);
    let digest = |case: &JudgedCall| asked(&judge, case).digest;
    assert_eq!(digest(&base), digest(&base));
    assert_eq!(digest(&base).len(), 64);
    let changed = |change: fn(&mut JudgedCall)| {
        let mut case = base.clone();
        change(&mut case);
        digest(&case)
    };
    let others = [
        changed(|case| case.call.tool = "edit".into()),
        changed(|case| case.call.input = "{ }".into()),
        changed(|case| case.probe.as_mut().unwrap().paths[0].real.push('x')),
        changed(|case| case.probe.as_mut().unwrap().paths[1].digest = None),
        changed(|case| case.probe.as_mut().unwrap().paths.truncate(1)),
        changed(|case| case.probe.as_mut().unwrap().paths.swap(0, 1)),
        changed(|case| case.confinement.push('x')),
        changed(|case| case.extra_rights.push(ExtraRight::Network)),
        changed(|case| case.extra_rights.push(ExtraRight::GitAdmin)),
        changed(|case| case.extra_rights.push(ExtraRight::GitSign)),
    ];
    for (at, other) in others.iter().enumerate() {
        assert_ne!(*other, digest(&base), "change {at}");
        assert!(!others[..at].contains(other), "change {at}");
    }
}

#[test]
fn a_probe_is_asked_for_where_a_rule_could_need_it() {
    let set = rule_set(PermissionMode::Ask, &["read:x"], &[], &["grep:secret", "bash:rm *"]);
    let rows = [
        ("write", ToolKind::Mutation, true),
        ("edit", ToolKind::Mutation, true),
        ("bash", ToolKind::Mutation, false),
        ("grep", ToolKind::Query, true),
        ("read", ToolKind::Query, false),
        ("ls", ToolKind::Query, false),
        ("later_tool", ToolKind::Mutation, true),
        ("later_tool", ToolKind::Query, false),
    ];
    for (tool, kind, wanted) in rows {
        assert_eq!(needs_probe(&set, tool, kind), wanted, "{tool}");
    }
    let broken = rule_set(PermissionMode::Ask, &[], &[], &["nonsense"]);
    assert!(needs_probe(&broken, "read", ToolKind::Query));
}

#[test]
fn a_tool_of_which_no_rule_can_speak_follows_its_kind_and_the_mode() {
    let mut case = unprobed("write");
    case.call.tool = "later_tool".into();
    assert_eq!(outcome(&rules(PermissionMode::Ask, &[], &[], &[]), &case), Outcome::Asked);
    assert_eq!(
        outcome(&rules(PermissionMode::DontAsk, &["write:**"], &[], &[]), &case),
        Outcome::RefusedByMode
    );
    case.kind = ToolKind::Query;
    assert_eq!(outcome(&rules(PermissionMode::Ask, &[], &[], &[]), &case), Outcome::AllowedAsQuery);
    // A name that differs in case is no known tool: the supervisor gives real names.
    let mut shouting = command("sudo x");
    shouting.call.tool = "Bash".into();
    assert_eq!(
        outcome(&rules(PermissionMode::DontAsk, &["bash:*"], &[], &[]), &shouting),
        Outcome::RefusedByMode
    );
}

#[test]
fn offers_cover_the_call_and_none_is_too_broad() {
    let judge = rules(PermissionMode::Ask, &["bash:cargo build"], &["bash:cargo publish *"], &[]);
    let rows: [(JudgedCall, &[&str]); 25] = [
        (command("cargo test -p x"), &["bash:cargo test -p x", "bash:cargo test *"]),
        (command("cargo build && cargo test"), &["bash:cargo test", "bash:cargo test *"]),
        (command("pytest -k 'a b'"), &["bash:pytest *"]),
        (command("pytest $x"), &["bash:pytest *"]),
        (command("git status"), &["bash:git status", "bash:git status *"]),
        (command("git -c a=b status"), &["bash:git -c a=b status"]),
        (command("git config x y"), &["bash:git config x y"]),
        (command("git"), &["bash:git"]),
        (command("npm run test"), &["bash:npm run test"]),
        (command("python -m x"), &["bash:python -m x"]),
        (command("rm x"), &["bash:rm x"]),
        (command("sudo x"), &["bash:sudo x"]),
        // They run what an option names, or write where one says.
        (command("sort --compress-program=./x y"), &["bash:sort --compress-program=./x y"]),
        (command("man x"), &["bash:man x"]),
        (command("vim x"), &["bash:vim x"]),
        (command("openssl version"), &["bash:openssl version"]),
        (command("split x"), &["bash:split x"]),
        (command("make x && ls y"), &[]),
        (command("ls; ls"), &["bash:ls", "bash:ls *"]),
        (command("cargo publish"), &[]),
        (command("cargo x > f"), &[]),
        (command("$x"), &[]),
        (on_paths("write", &[&file("a.rs")]), &["write:./a.rs"]),
        (on_paths("write", &[&file("src/a.rs")]), &["write:./src/a.rs", "write:./src/**"]),
        (on_paths("write", &["/etc/x"]), &[]),
    ];
    for (case, wanted) in rows {
        let offers = asked(&judge, &case).rules().to_vec();
        assert_eq!(offers, wanted, "{:?} {:?}", case.command, case.probe);
        for offer in &offers {
            let with = rules(PermissionMode::DontAsk, &["bash:cargo build", offer], &[], &[]);
            assert_eq!(outcome(&with, &case), Outcome::Allowed, "{offer}");
        }
    }
}

/// A yes that holds longer would hold for the file's next text.
#[test]
fn no_rule_is_offered_for_a_file_that_calls_can_write() {
    let judge = rules(PermissionMode::Ask, &["bash:cargo build"], &[], &[]);
    for (text, file) in [
        ("sh ./build.sh", "./build.sh"),
        ("sh x.sh", "x.sh"),
        ("bash -eu scripts/x", "scripts/x"),
        (". ./env", "./env"),
        ("source env.sh", "env.sh"),
        ("./build.sh --fast", "./build.sh"),
        ("target/debug/app", "target/debug/app"),
        ("/p/build.sh", "/p/build.sh"),
        ("/tmp/x.sh a", "/tmp/x.sh"),
        ("/usr/../p/x", "/usr/../p/x"),
        ("python x.py", "x.py"),
        ("python3.12 -u x.py b", "x.py"),
        ("/usr/bin/node tool.js", "tool.js"),
        ("cargo build && sh x.sh", "x.sh"),
        ("timeout 60 sh ./x.sh", "./x.sh"),
        ("timeout 60 ./x", "./x"),
        ("env A=b ./x", "./x"),
        ("sudo ./x", "./x"),
        ("sh -c './x'", "./x"),
        ("sh -c 'cargo build; sh x.sh'", "x.sh"),
        ("eval ./x", "./x"),
        ("find . -name a -exec sh ./x.sh {} +", "./x.sh"),
        ("cargo build | xargs ./x", "./x"),
    ] {
        let question = asked(&judge, &command(text));
        assert_eq!(question.rules(), [""; 0], "{text}");
        let said = question.reason.contains(&format!("it runs the file `{file}`"));
        assert!(said && question.reason.contains("for this call only"), "{}", question.reason);
    }
    // The positive controls: programs of the system, and files that are read and not run.
    for text in [
        "rg ./x src/main.rs",
        "/usr/bin/cargo test",
        "sh /usr/share/x.sh",
        "cat ./build.sh",
        "python -m pytest tests/a.py",
        "timeout 60 ls ./x",
        "sudo ls",
    ] {
        let question = asked(&judge, &command(text));
        assert!(!question.rules().is_empty(), "{text}");
        assert!(!question.reason.contains("it runs the file"), "{text}");
    }
    // A rule that the person wrote says so itself.
    let by_rule = rules(PermissionMode::Ask, &["bash:sh ./build.sh"], &[], &[]);
    assert_eq!(outcome(&by_rule, &command("sh ./build.sh")), Outcome::Allowed);
}

#[test]
fn a_right_beyond_the_session_is_asked_for_whatever_rules_and_modes_say() {
    let widened = |widening| {
        let mut case = command("cargo fetch");
        case.extra_rights.push(widening);
        case
    };
    for widening in [
        ExtraRight::Network,
        ExtraRight::Directory("/srv".into()),
        ExtraRight::GitAdmin,
        ExtraRight::GitSign,
    ] {
        let case = widened(widening.clone());
        for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Auto] {
            let judge = rules(mode, &["bash:*"], &[], &[]);
            let question = asked(&judge, &case);
            assert_eq!(question.widens, std::slice::from_ref(&widening));
            assert!(
                question.reason.contains("rights that this session lacks"),
                "{}",
                question.reason
            );
            assert!(question.rules().is_empty(), "it is for one call");
        }
        let judge = rules(PermissionMode::DontAsk, &["bash:*"], &[], &[]);
        assert_eq!(outcome(&judge, &case), Outcome::RefusedByMode);
        let judge = rules(PermissionMode::Auto, &["bash:*"], &[], &["bash:cargo *"]);
        assert_eq!(outcome(&judge, &case), Outcome::Denied);
        let mut set = rule_set(PermissionMode::Auto, &["bash:*"], &[], &[]);
        set.audience = Audience::NonInteractive;
        let judge = SessionRules::new(&set).unwrap();
        assert_eq!(outcome(&judge, &case), Outcome::NobodyToAsk);
        let told = refusal(&judge, &case);
        assert!(
            told.contains("No permission mode grants that, and no rule for the command itself"),
            "{told}"
        );
    }
}

/// What a refusal says would give the right does, beside what allows the command, and nothing else.
#[test]
fn a_right_is_given_by_its_own_name_alone() {
    let widened = |widening: &ExtraRight, text: &str| {
        let mut case = command(text);
        case.extra_rights.push(widening.clone());
        case
    };
    let text = "git remote add here /srv/x";
    for (widening, name, narrow, others) in [
        (ExtraRight::Network, "network", "network:git remote add here /srv/x", "git-admin"),
        (ExtraRight::GitAdmin, "git-admin", "git-admin:git remote add here /srv/x", "network"),
        (ExtraRight::GitSign, "git-sign", "git-sign:git remote add here /srv/x", "git-admin"),
        (ExtraRight::Directory("/srv/x".into()), "directory", "directory:/srv/x", "network"),
    ] {
        let case = widened(&widening, text);
        let refuses = rules(PermissionMode::DontAsk, &["bash:*"], &[], &[]);
        assert!(refusal(&refuses, &case).contains(&format!("`{narrow}`")), "{narrow}");
        // A person's longer answer to the command is a rule for the command.
        let learned = ["bash:git remote add here /srv/x", "bash:git remote *", "bash", others];
        for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Auto] {
            let question = asked(&rules(mode, &learned, &[], &[]), &case);
            assert_eq!((question.widens.len(), question.rules().len()), (1, 0), "{narrow}");
        }
        for rule in [name, narrow] {
            let given = rules(PermissionMode::DontAsk, &["bash:git remote *", rule], &[], &[]);
            match given.judge(&case) {
                Verdict::Allow(Basis::Rights(by)) => {
                    assert_eq!(by.len(), 1, "{rule}");
                    assert_eq!(by[0].text, rule);
                    assert!(
                        approval::grants_all(&by, ("bash", None), std::slice::from_ref(&widening)),
                        "{rule}"
                    );
                }
                other @ (Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_)) => {
                    panic!("{rule}: {other:?}")
                }
            }
            // The right alone does not let the command run, and an answer to it is for once.
            let alone = rules(PermissionMode::Ask, &[rule], &[], &[]);
            assert!(asked(&alone, &case).rules().is_empty(), "{rule}");
            let alone = rules(PermissionMode::DontAsk, &[rule], &[], &[]);
            assert_eq!(outcome(&alone, &case), Outcome::RefusedByMode, "{rule}");
            assert_eq!(outcome(&alone, &command(text)), Outcome::RefusedByMode, "{rule}");
            // Denied or asked about by name, whatever allows it; and nothing changes in plan.
            let denied = rules(PermissionMode::Auto, &["bash:*", name], &[], &[rule]);
            assert_eq!(outcome(&denied, &case), Outcome::Denied, "{rule}");
            assert_eq!(outcome(&denied, &command(text)), Outcome::Allowed, "{rule}");
            let asks = rules(PermissionMode::Auto, &["bash:*", name], &[rule], &[]);
            assert_eq!(outcome(&asks, &case), Outcome::Asked, "{rule}");
            let plan = rules(PermissionMode::Plan, &["bash:*", rule], &[], &[]);
            assert_eq!(outcome(&plan, &case), Outcome::RefusedByMode, "{rule}");
        }
        // Both rights or none, each by a rule of its own.
        let mut two = case.clone();
        two.extra_rights.insert(0, ExtraRight::Directory("/other".into()));
        match rules(PermissionMode::Auto, &[name, "directory:/other"], &[], &[]).judge(&two) {
            Verdict::Allow(Basis::Rights(by)) => {
                let texts: Vec<_> = by.iter().map(|rule| rule.text.as_str()).collect();
                // A rule for all directories gives this one, too.
                let first = if name == "directory" { name } else { "directory:/other" };
                assert_eq!(texts, [first, name]);
            }
            other @ (Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_)) => {
                panic!("{name}: {other:?}")
            }
        }
        let mut both = case.clone();
        both.extra_rights.push(ExtraRight::Directory("/other".into()));
        assert_eq!(
            outcome(&rules(PermissionMode::Auto, &["bash:*", name], &[], &[]), &both),
            match name {
                "directory" => Outcome::Allowed,
                _ => Outcome::Asked,
            }
        );
    }
    let narrow = rules(PermissionMode::Auto, &["git-admin:git remote *"], &[], &[]);
    for other in ["git config core.pager x", "git remote add a b && git config c d", "$x"] {
        assert_eq!(
            outcome(&narrow, &widened(&ExtraRight::GitAdmin, other)),
            Outcome::Asked,
            "{other}"
        );
    }
}

/// The hosts that a call asks for, against a rule that allows and one that denies.
#[test]
fn a_host_is_given_by_a_rule_that_covers_it_and_denied_by_one_that_meets_it() {
    let asking = |hosts: &[&str]| {
        let mut case = command("cargo fetch");
        let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
        case.extra_rights.push(ExtraRight::Hosts(hosts));
        case
    };
    use Outcome::{Allowed, Asked, Denied};
    for (rule, hosts, allowed, denied) in [
        ("host:crates.io", &["crates.io"][..], Allowed, Denied),
        ("host:Crates.IO.", &["crates.io"], Allowed, Denied),
        ("host:crates.io", &["static.crates.io"], Asked, Asked),
        ("host:crates.io", &["mycrates.io"], Asked, Asked),
        ("host:crates.io", &["crates.io.example.org"], Asked, Asked),
        ("host:crates.io", &["crates.io:443"], Allowed, Denied),
        // A denial without a port is one of all ports, a permission of the web's.
        ("host:crates.io", &["crates.io:22"], Asked, Denied),
        ("host:crates.io", &["crates.io:*"], Asked, Denied),
        ("host:crates.io:443", &["crates.io"], Asked, Denied),
        ("host:crates.io:443", &["crates.io:80"], Asked, Asked),
        ("host:crates.io:*", &["crates.io:22"], Allowed, Denied),
        ("host:*.crates.io", &["static.crates.io"], Allowed, Denied),
        ("host:*.crates.io", &["a.b.crates.io"], Allowed, Denied),
        ("host:*.crates.io", &["crates.io"], Asked, Asked),
        ("host:*.crates.io", &["*.crates.io"], Allowed, Denied),
        ("host:*.crates.io", &["mycrates.io"], Asked, Asked),
        // What is asked for holds what is denied.
        ("host:static.crates.io", &["*.crates.io"], Asked, Denied),
        ("host:*.static.crates.io", &["*.crates.io"], Asked, Denied),
        ("host", &["crates.io:22"], Allowed, Denied),
        ("host:*", &["crates.io"], Allowed, Denied),
        // All of them or none, and each may have a rule of its own.
        ("host:crates.io", &["crates.io", "example.org"], Asked, Denied),
        ("host:crates.io", &["example.org", "crates.io"], Asked, Denied),
        // The network holds every host.
        ("network:cargo *", &["crates.io"], Allowed, Denied),
        ("network", &["crates.io:22"], Allowed, Denied),
        ("network:cargo build", &["crates.io"], Asked, Asked),
        ("git-admin", &["crates.io"], Asked, Asked),
        ("bash:cargo *", &["crates.io"], Asked, Denied),
    ] {
        let case = asking(hosts);
        let judge = rules(PermissionMode::Auto, &["bash:*", rule], &[], &[]);
        assert_eq!(outcome(&judge, &case), allowed, "allow {rule} for {hosts:?}");
        let judge = rules(PermissionMode::Auto, &["bash:*", "host", "network"], &[], &[rule]);
        // Where the denial does not meet it, what allows all hosts does.
        let denied = if denied == Asked { Allowed } else { denied };
        assert_eq!(outcome(&judge, &case), denied, "deny {rule} for {hosts:?}");
        let judge = rules(PermissionMode::Auto, &["bash:*", "host", "network"], &[rule], &[]);
        let asks = if denied == Denied { Asked } else { Allowed };
        assert_eq!(outcome(&judge, &case), asks, "ask {rule} for {hosts:?}");
    }
    let two = asking(&["crates.io", "example.org:22"]);
    let given = ["bash:*", "host:example.org:22", "host:crates.io"];
    match rules(PermissionMode::DontAsk, &given, &[], &[]).judge(&two) {
        Verdict::Allow(Basis::Rights(by)) => {
            let texts: Vec<_> = by.iter().map(|rule| rule.text.as_str()).collect();
            assert_eq!(texts, ["host:crates.io", "host:example.org:22"], "one for each");
            assert!(approval::grants_all(&by, ("bash", None), &two.extra_rights));
            assert!(!approval::grants_all(&by[..1], ("bash", None), &two.extra_rights));
            let swapped = [by[1].clone(), by[0].clone()];
            assert!(
                !approval::grants_all(&swapped, ("bash", None), &two.extra_rights),
                "each for its own"
            );
        }
        other @ (Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_)) => panic!("{other:?}"),
    }
    // What the supervisor looks at once more: the right's own name, and that it is given.
    let one = asking(&["crates.io"]).extra_rights;
    let rule = |effect, text: &str| protocol::judgement::Rule {
        effect,
        ..approval::remembered_rule(text)
    };
    for (effect, text, gives) in [
        (RuleEffect::Allow, "host:crates.io", true),
        (RuleEffect::Allow, "network:cargo *", true),
        (RuleEffect::Deny, "host:crates.io", false),
        (RuleEffect::Ask, "host", false),
        (RuleEffect::Allow, "host:example.org", false),
        (RuleEffect::Allow, "bash:cargo *", false),
        (RuleEffect::Allow, "git-admin", false),
        (RuleEffect::Allow, "directory:/srv", false),
        (RuleEffect::Allow, "host:nonsense/", false),
    ] {
        assert_eq!(
            approval::grants_all(&[rule(effect, text)], ("bash", None), &one),
            gives,
            "{effect:?} {text}"
        );
    }
    // What holds for hosts that the session's own list names: denials by name, on every port.
    let given = [
        rule(RuleEffect::Deny, "host:evil.example.org"),
        rule(RuleEffect::Allow, "host:example.org"),
        rule(RuleEffect::Deny, "host"),
        rule(RuleEffect::Deny, "bash:curl *"),
        rule(RuleEffect::Deny, "host:*.ads.example:8443"),
    ];
    let denied: Vec<_> = approval::denied_hosts(&given).iter().map(ToString::to_string).collect();
    assert_eq!(denied, ["evil.example.org:*", "*.ads.example:8443"]);
    // What a refusal says would give them does.
    let refuses = rules(PermissionMode::DontAsk, &["bash:*"], &[], &[]);
    for host in ["`host:crates.io`", "`host:example.org:22`"] {
        assert!(refusal(&refuses, &two).contains(host), "{host}: {}", refusal(&refuses, &two));
    }
    for wrong in
        ["host:https://a.org", "host:127.1", "host:a.org/x", "host:a.org:0", "host:ex*.org"]
    {
        let error = SessionRules::new(&rule_set(PermissionMode::Ask, &[wrong], &[], &[]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("`*.crates.io`"), "{wrong}: {error}");
    }
}

#[test]
fn a_denied_directory_is_not_given_nor_what_is_around_or_within_it() {
    let ask = |dir: &str| {
        let mut case = command("ls");
        case.extra_rights.push(ExtraRight::Directory(dir.into()));
        case
    };
    let above = std::path::Path::new(PROJECT).parent().unwrap().to_str().unwrap();
    let judge = rules(PermissionMode::Auto, &["directory"], &[], &["directory:/home/ann/.ssh"]);
    for (dir, wanted) in [
        ("/home/ann/.ssh", Outcome::Denied),
        ("/home/ann/.ssh/keys", Outcome::Denied),
        ("/home/ann", Outcome::Denied),
        ("/home", Outcome::Denied),
        ("/", Outcome::Denied),
        ("/home/ann/.sshx", Outcome::Allowed),
        ("/home/ann/data", Outcome::Allowed),
        ("/home/bob/.ssh", Outcome::Allowed),
        (above, if above == "/home" || above == "/" { Outcome::Denied } else { Outcome::Allowed }),
        ("/srv/../home/ann/.ssh", Outcome::Unjudgeable),
    ] {
        assert_eq!(outcome(&judge, &ask(dir)), wanted, "{dir}");
    }
}

/// Two tools that do the same are judged by the rules of either, or a rule would look like
/// protection and be none.
#[test]
fn a_rule_speaks_of_every_tool_that_does_the_same() {
    let run = |text: &str| JudgedCall {
        call: protocol::call::Call { tool: "run".into(), ..command(text).call },
        ..command(text)
    };
    let by = |allow: &[&str], deny: &[&str]| rules(PermissionMode::Ask, allow, &[], deny);
    for (rule, call, allowed, denied) in [
        ("bash:cargo *", run("cargo test"), Outcome::Allowed, Outcome::Denied),
        ("run:cargo *", run("cargo test"), Outcome::Allowed, Outcome::Denied),
        ("run:cargo *", command("cargo test"), Outcome::Asked, Outcome::Asked),
        (
            "bash:printf *",
            run("printf '%s' 'a\nb' 'it'\\''s' '$(id)'"),
            Outcome::Allowed,
            Outcome::Denied,
        ),
        ("bash:rm *", run("sh -c 'rm -r x'"), Outcome::Allowed, Outcome::Denied),
        ("bash", run("cargo test"), Outcome::Allowed, Outcome::Denied),
        (
            "edit:src/**",
            on_paths("multi_edit", &[&file("src/a")]),
            Outcome::Allowed,
            Outcome::Denied,
        ),
        ("multi_edit:src/**", on_paths("edit", &[&file("src/a")]), Outcome::Asked, Outcome::Asked),
        ("write:src/**", on_paths("delete", &[&file("src/a")]), Outcome::Asked, Outcome::Denied),
        ("write:src/**", on_paths("delete", &[&file("src/")]), Outcome::Asked, Outcome::Denied),
        ("write:src/a/b", on_paths("delete", &[&file("src/")]), Outcome::Asked, Outcome::Denied),
        ("write:src/a/b", on_paths("delete", &[&file("docs/")]), Outcome::Asked, Outcome::Asked),
        ("write:/etc/**", on_paths("delete", &[&file("docs/")]), Outcome::Asked, Outcome::Asked),
        (
            "edit:src/a",
            on_paths("apply_patch", &[&file("b"), &file("src/a")]),
            Outcome::Asked,
            Outcome::Denied,
        ),
        (
            "write:src/a",
            on_paths("apply_patch", &[&file("b"), &file("src/a")]),
            Outcome::Asked,
            Outcome::Denied,
        ),
        (
            "delete:src/a",
            on_paths("apply_patch", &[&file("b"), &file("src/a")]),
            Outcome::Asked,
            Outcome::Denied,
        ),
        (
            "apply_patch:src/**",
            on_paths("apply_patch", &[&file("b"), &file("src/a")]),
            Outcome::Asked,
            Outcome::Denied,
        ),
        (
            "apply_patch:src/**",
            on_paths("apply_patch", &[&file("src/a")]),
            Outcome::Allowed,
            Outcome::Denied,
        ),
        ("apply_patch:src/**", on_paths("edit", &[&file("src/a")]), Outcome::Asked, Outcome::Asked),
        ("delete:src/a/b", on_paths("delete", &[&file("src/")]), Outcome::Asked, Outcome::Denied),
        ("delete:src/**", on_paths("delete", &[&file("src/a")]), Outcome::Allowed, Outcome::Denied),
    ] {
        let tool = call.call.tool.clone();
        assert_eq!(outcome(&by(&[rule], &[]), &call), allowed, "allow {rule} for {tool}");
        assert_eq!(outcome(&by(&[], &[rule]), &call), denied, "deny {rule} for {tool}");
    }
    let offers = asked(&by(&[], &[]), &run("cargo test")).rules().to_vec();
    assert_eq!(offers, ["bash:cargo test", "bash:cargo test *"]);
}

#[test]
fn what_was_configured_to_run_after_edits_runs_by_that_unless_a_rule_asks_or_denies() {
    let by = protocol::judgement::Rule {
        effect: RuleEffect::Allow,
        text: "verify.commands = \"*.rs: make\"".into(),
        file: "/p/.agentd/config.toml".into(),
        line: 7,
    };
    let of = |tool: &str, text: &str| {
        let mut case =
            protocol::judgement::JudgedCall { configured: Some(by.clone()), ..command(text) };
        case.call.tool = tool.into();
        case
    };
    let verify = |text: &str| of("verify", text);
    // What asks, what denies, and what becomes of `cargo check`.
    let rows: [(&[&str], &[&str], Outcome); 7] = [
        (&[], &[], Outcome::Allowed),
        (&["bash:cargo *"], &[], Outcome::Asked),
        (&["bash"], &[], Outcome::Asked),
        (&["verify"], &[], Outcome::Asked),
        (&["verify:cargo *"], &[], Outcome::Asked),
        (&["bash:make *"], &[], Outcome::Allowed),
        (&["bash:cargo *"], &["verify:cargo *"], Outcome::Denied),
    ];
    for (ask, deny, wanted) in rows {
        let case = verify("cargo check");
        for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Auto] {
            let rules = rules(mode, &["bash:cargo *"], ask, deny);
            assert_eq!(outcome(&rules, &case), wanted, "{mode:?} {ask:?} {deny:?}");
        }
        let nobody = RuleSet {
            audience: Audience::NonInteractive,
            ..rule_set(PermissionMode::Ask, &[], ask, deny)
        };
        // By the rule: a run that nobody is asked in has not failed for want of an approval.
        let wanted = if wanted == Outcome::Asked { Outcome::Denied } else { wanted };
        assert_eq!(
            outcome(&SessionRules::new(&nobody).unwrap(), &case),
            wanted,
            "{ask:?} {deny:?}"
        );
    }
    // The same of what puts files in form, by rules of its own.
    let denied = rules(PermissionMode::Auto, &[], &[], &["format:gofmt *"]);
    assert_eq!(outcome(&denied, &of("format", "gofmt -s")), Outcome::Denied);
    assert_eq!(outcome(&denied, &of("format", "rustfmt")), Outcome::Allowed);
    assert_eq!(outcome(&denied, &verify("gofmt -s")), Outcome::Allowed);
    // Its record says what let it run.
    let plain = rules(PermissionMode::Ask, &[], &[], &[]);
    assert_eq!(plain.judge(&verify("make")), Verdict::Allow(Basis::Rule(by.clone())));
    // One that nobody configured runs by no such thing.
    let mut foreign = verify("make");
    foreign.configured = None;
    assert_eq!(outcome(&plain, &foreign), Outcome::Asked);
    // The same command from the model is asked about.
    assert_eq!(outcome(&plain, &command("make")), Outcome::Asked);
}

/// No rule and no mode lets a command run that no person was asked about with what an earlier one left.
#[test]
fn a_command_is_asked_about_where_protected_names_are_not_as_they_were() {
    let left = || Box::from([".envrc is not as it was: no room".to_owned()]);
    let judge = rules(PermissionMode::Auto, &["bash:ls"], &[], &["bash:rm *"]);
    let passes = |case: &JudgedCall| matches!(judge.judge(case), Verdict::Allow(_));
    let knowing = |text: &str| JudgedCall { tampered: left(), ..command(text) };
    for text in ["ls", "touch x"] {
        assert!(passes(&command(text)), "{text}");
        let question = asked(&judge, &knowing(text));
        assert!(question.reason.contains(".envrc is not as it was: no room"), "{question:?}");
        let other = Box::from(["hooks are not as they were".to_owned()]);
        let other = asked(&judge, &JudgedCall { tampered: other, ..command(text) });
        assert_ne!(question.digest, other.digest, "an answer is bound to what was named");
    }
    assert_eq!(outcome(&judge, &knowing("rm x")), Outcome::Denied, "rules deny all the same");
    // Who is asked anyway is told of it too.
    let asking = rules(PermissionMode::Ask, &[], &[], &[]);
    let question = asked(&asking, &knowing("touch x"));
    assert!(question.reason.contains("no rule allows"), "{question:?}");
    assert!(question.reason.contains(".envrc is not as it was"), "{question:?}");
    // Tools of files, looks, and what a person configured behind edits are not held back.
    let file = JudgedCall { tampered: left(), ..on_paths("write", &["/p/a"]) };
    assert!(passes(&file));
    let look = JudgedCall { kind: ToolKind::Query, ..knowing("ls") };
    assert!(passes(&look));
    // Where nobody can be asked it is refused, and says why and the way on.
    let mut set = rule_set(PermissionMode::Auto, &[], &[], &[]);
    set.audience = Audience::NonInteractive;
    let Verdict::Deny(Basis::NobodyToAsk(why), text) =
        SessionRules::new(&set).unwrap().judge(&knowing("ls"))
    else {
        panic!()
    };
    assert!(why.contains(".envrc") && text.contains("check and repair"), "{text}");
}

#[test]
fn what_a_person_types_is_asked_about_by_no_rule_and_denied_by_each_that_denies() {
    let typed = |text: &str| JudgedCall { typed_by: Some("pts/0".into()), ..command(text) };
    for mode in PermissionMode::ALL {
        let judge = rules(mode, &[], &["bash:cp *"], &["bash:rm *"]);
        for text in ["ls", "cp a b"] {
            let wanted = Verdict::Allow(Basis::Typed("pts/0".into()));
            assert_eq!(judge.judge(&typed(text)), wanted, "{mode:?}: {text}");
        }
        for text in ["rm f", "ls; rm f", "sh -c \"rm f\""] {
            let denied = refusal(&judge, &typed(text));
            assert!(denied.contains("bash:rm *"), "{mode:?}: {text}: {denied}");
        }
        // Rights beyond the session's are asked about as ever.
        let more = JudgedCall { extra_rights: vec![ExtraRight::Network], ..typed("ls") };
        let verdict = judge.judge(&more);
        assert!(!matches!(verdict, Verdict::Allow(Basis::Typed(_))), "{mode:?}: {verdict:?}");
    }
    let hook = JudgedCall { asked: Some("a hook asks".into()), ..typed("ls") };
    let judge = rules(PermissionMode::Ask, &[], &[], &[]);
    assert!(matches!(judge.judge(&hook), Verdict::Allow(Basis::Typed(_))));
    assert_eq!(outcome(&judge, &command("ls")), Outcome::Asked, "the control");
    // What the person may not know: a rule perhaps denies it, or it runs what a call has left behind.
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    assert_eq!(outcome(&judge, &typed("$x f")), Outcome::Asked);
    let left = JudgedCall { tampered: [".envrc".to_owned()].into(), ..typed("ls") };
    assert_eq!(outcome(&judge, &left), Outcome::Asked);
}
