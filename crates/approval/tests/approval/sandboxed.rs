//! The mode `sandboxed`: what passes by its effects, what is asked about and why, and that no call gets more by
//! another way.

use super::bench::{Outcome, PROJECT, command, on_paths, outcome, rule, rule_set, rules};
use approval::SessionRules;
use protocol::confinement::Tier;
use protocol::judgement::{
    Audience, Basis, Bounded, Effect, EffectReach, ExtraRight, JudgedCall, PermissionMode,
    RuleEffect, RuleSet, ToolKind, Verdict,
};

fn sandboxed(allow: &[&str], ask: &[&str], deny: &[&str]) -> SessionRules {
    rules(PermissionMode::Sandboxed, allow, ask, deny)
}

fn undoable(case: JudgedCall) -> JudgedCall {
    JudgedCall { reach: EffectReach::Undoable, ..case }
}

fn beyond(case: JudgedCall, effect: Effect) -> JudgedCall {
    JudgedCall { reach: EffectReach::Beyond(vec![effect]), ..case }
}

/// Why it is asked about.
#[track_caller]
fn why(judge: &SessionRules, case: &JudgedCall) -> String {
    match judge.judge(case) {
        Verdict::Ask(question) => question.reason,
        other @ (Verdict::Allow(_) | Verdict::Deny(..)) => {
            panic!("{case:?} is not asked: {other:?}")
        }
    }
}

fn in_project(name: &str) -> String {
    format!("{PROJECT}/{name}")
}

#[test]
fn what_the_sandbox_bounds_and_undo_covers_passes_and_the_record_says_by_what() {
    let judge = sandboxed(&[], &[], &[]);
    for text in [
        "ls docs | head -40",
        "python3 tests/run.py",
        "git status --short && git diff HEAD~1",
        "rm -rf build",
        // Its program is known only when it runs; the sandbox is the same.
        "$x push",
        // No rule could allow it.
        "for f in *; do wc -l \"$f\"; done > counts",
        "curl https://crates.io",
    ] {
        let verdict = judge.judge(&undoable(command(text)));
        assert_eq!(verdict, Verdict::Allow(Basis::Sandboxed(Bounded::Command)), "{text}");
    }
    for (tool, file) in [("write", "new/a.md"), ("edit", "src/main.rs"), ("delete", "old")] {
        let verdict = judge.judge(&undoable(on_paths(tool, &[&in_project(file)])));
        assert_eq!(verdict, Verdict::Allow(Basis::Sandboxed(Bounded::Files)), "{tool}");
    }
    // In the other modes the reach of a call changes nothing.
    let ask = rules(PermissionMode::Ask, &[], &[], &[]);
    assert_eq!(outcome(&ask, &undoable(command("ls docs | head -40"))), Outcome::Asked);
    let accepts = rules(PermissionMode::AcceptEdits, &[], &[], &[]);
    assert_eq!(outcome(&accepts, &undoable(command("ls"))), Outcome::Asked);
}

#[test]
fn each_effect_beyond_is_asked_about_and_is_the_reason() {
    let judge = sandboxed(&[], &[], &[]);
    let hosts = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    for (effect, words) in [
        (Effect::WeakerSandbox(Tier::B), "weaker one (tier B)"),
        (Effect::Network, "it would have the whole network"),
        (Effect::Hosts(hosts(&["crates.io"])), "it would reach the host crates.io"),
        (Effect::Hosts(hosts(&[])), "a network with a list of hosts"),
        (Effect::Hosts(hosts(&["a.io", "*.b.io"])), "it would reach the hosts a.io, *.b.io"),
        (Effect::Outside(vec!["/srv/data".into()]), "outside the project, in `/srv/data`"),
        (Effect::GitDirectory, "it may change `.git`"),
        (Effect::Background, "in the background"),
        (Effect::NotUndone("the project has more than 64 MiB".into()), "more than 64 MiB"),
    ] {
        let reason = why(&judge, &beyond(command("make"), effect.clone()));
        assert!(reason.contains(words), "{effect:?}: {reason}");
    }
    // All of them are named.
    let effects = vec![Effect::Network, Effect::WeakerSandbox(Tier::C)];
    let both = JudgedCall { reach: EffectReach::Beyond(effects), ..command("make") };
    let reason = why(&judge, &both);
    assert!(reason.contains("network") && reason.contains("tier NONE"), "{reason}");
    // A name of the other side shows no hidden letters.
    let named = Effect::NotUndone("no copy of `a\u{202e}b`".into());
    assert!(!why(&judge, &beyond(command("make"), named)).contains('\u{202e}'));
    // What was not found out is asked about.
    for case in [command("make"), on_paths("write", &[&in_project("a")])] {
        assert_eq!(outcome(&judge, &case), Outcome::Asked, "{case:?}");
    }
    // Nor is a file tool's change beyond undo, in a session whose sandbox is weaker.
    for effect in [Effect::NotUndone("too large".into()), Effect::WeakerSandbox(Tier::B)] {
        let file = on_paths("write", &[&in_project("a")]);
        assert_eq!(outcome(&judge, &beyond(file, effect)), Outcome::Asked);
    }
}

#[test]
fn a_path_passes_by_the_place_that_it_really_has() {
    let judge = sandboxed(&[], &[], &[]);
    for (path, words) in [
        ("/etc/hosts", "it writes outside the project: `/etc/hosts`"),
        ("/home/me/project-two/a", "outside the project"),
        ("/home/me/project/.git/hooks/pre-commit", "a protected file"),
        ("/home/me/project/.git/config", "a protected file"),
        ("/home/me/project/sub/.git/HEAD", "a protected file"),
        ("/home/me/project/.GIT/index", "a protected file"),
        ("/home/me/project/.vscode/settings.json", "a protected file"),
        ("/home/me/project/.envrc", ".envrc"),
        ("/home/me/project/.npmrc", "is a file of which"),
        ("/home/me/project/web/.husky/pre-push", ".husky"),
    ] {
        let reason = why(&judge, &undoable(on_paths("write", &[path])));
        assert!(reason.contains(words), "{path}: {reason}");
    }
    // The link in the project is its name, and the place outside is where it leads.
    let mut by_link = undoable(on_paths("write", &[&in_project("notes")]));
    let probe = by_link.probe.as_mut().unwrap();
    (probe.paths[0].real, probe.paths[0].in_scope) = ("/srv/notes".to_owned(), false);
    assert!(why(&judge, &by_link).contains("outside the project: `/srv/notes`"));
    // An added directory is granted, and undo knows nothing of it.
    let mut added = undoable(on_paths("edit", &["/srv/data/a"]));
    added.probe.as_mut().unwrap().paths[0].in_scope = true;
    assert!(why(&judge, &added).contains("outside the project: `/srv/data/a`"));
    // One path of several is enough.
    let some = on_paths("delete", &[&in_project("a"), "/srv/b"]);
    assert_eq!(outcome(&judge, &undoable(some)), Outcome::Asked);
}

#[test]
fn what_changes_the_git_directory_by_its_own_words_is_asked_about() {
    let judge = sandboxed(&[], &[], &[]);
    for text in [
        "git commit -m x",
        "git -C sub add -A && git status",
        "/usr/bin/git checkout main",
        "make && git stash",
        "env A=1 git reset --hard",
        "sh -c 'git gc'",
        "git branch new",
        "git branch -D old",
        "git remote add x y",
        "git stash",
        "git config user.name x",
        "git tag v1",
        "git worktree add ../x",
    ] {
        let reason = why(&judge, &undoable(command(text)));
        assert!(reason.contains("it may change `.git`"), "{text}: {reason}");
    }
    let clean = why(&judge, &undoable(command("git clean -fdx")));
    assert!(clean.contains("no ignored file"), "{clean}");
    for text in [
        "git log -3",
        "git --no-pager diff",
        "git -C sub status",
        "echo git commit",
        "git branch --show-current",
        "git branch",
        "git branch -a -v",
        "git branch --list 'a*'",
        "git remote -v",
        "git stash list",
        "git stash show -p",
        "git config --get user.name",
        "git config -l",
        "git tag -l 'v*'",
        "git worktree list",
    ] {
        assert_eq!(outcome(&judge, &undoable(command(text))), Outcome::AllowedByMode, "{text}");
    }
}

#[test]
fn rights_rules_and_hooks_hold_as_in_every_mode() {
    let judge = sandboxed(
        &["host:docs.rs", "bash:cargo *"],
        &["bash:make install"],
        &["bash:git push *", "write:secret/**"],
    );
    let with =
        |text: &str, right| JudgedCall { extra_rights: vec![right], ..undoable(command(text)) };
    let hosts = |name: &str| ExtraRight::Hosts(vec![name.parse().unwrap()]);
    let reason = why(&judge, &with("cargo fetch", hosts("crates.io")));
    assert_eq!(reason, "it would reach the host crates.io");
    assert!(why(&judge, &with("x", ExtraRight::Network)).contains("whole network"));
    assert!(why(&judge, &with("x", ExtraRight::Directory("/srv".into()))).contains("`/srv`"));
    assert!(why(&judge, &with("x", ExtraRight::GitAdmin)).contains("git's settings"));
    assert!(why(&judge, &with("x", ExtraRight::GitSign)).contains("sign"));
    // A rule gives the right, and none lets the command run with it.
    let reached = |text| {
        beyond(with(text, hosts("docs.rs")), Effect::Hosts(vec!["docs.rs".parse().unwrap()]))
    };
    assert!(why(&judge, &reached("curl https://docs.rs")).contains("the host docs.rs"));
    assert!(matches!(judge.judge(&reached("cargo doc")), Verdict::Allow(Basis::Rights(_))));

    assert!(why(&judge, &undoable(command("make install"))).contains("bash:make install"));
    assert!(why(&judge, &undoable(command("make $x"))).contains("may ask"));
    assert!(why(&judge, &undoable(command("$x push"))).contains("may forbid"));
    assert_eq!(outcome(&judge, &undoable(command("git push origin"))), Outcome::Denied);
    let secret = on_paths("write", &[&in_project("secret/a")]);
    assert_eq!(outcome(&judge, &undoable(secret)), Outcome::Denied);
    let allowed = outcome(&judge, &beyond(command("cargo test"), Effect::WeakerSandbox(Tier::B)));
    assert_eq!(allowed, Outcome::Allowed, "an allow rule needs no bounds");

    let hook = JudgedCall { asked: Some("a hook asks".into()), ..undoable(command("ls")) };
    assert!(why(&judge, &hook).contains("a hook asks"));
    let tampered = JudgedCall { tampered: [".envrc".to_owned()].into(), ..undoable(command("ls")) };
    assert!(why(&judge, &tampered).contains(".envrc"));
    let by = rule(RuleEffect::Allow, "verify.commands", 3);
    let configured = JudgedCall { configured: Some(by), ..command("cargo check") };
    assert_eq!(outcome(&judge, &configured), Outcome::Allowed);
}

#[test]
fn tools_whose_effects_no_sandbox_bounds_are_asked_about() {
    let judge = sandboxed(&[], &[], &[]);
    let server = JudgedCall {
        command: Some("mcp__db__query".into()),
        call: protocol::call::Call { tool: protocol::mcp::CALL.into(), ..command("").call },
        ..command("")
    };
    let effect = Effect::ServerTool("mcp__db__query".into());
    assert!(why(&judge, &beyond(server.clone(), effect)).contains("mcp__db__query"));
    // Whatever is said of their reach.
    assert_eq!(outcome(&judge, &undoable(server)), Outcome::Asked);
    let memory = |scope: &str| JudgedCall {
        command: Some(format!("{scope}:Always use cents.")),
        call: protocol::call::Call { tool: "memory_add".into(), ..command("").call },
        ..command("")
    };
    for scope in ["project", "user"] {
        assert_eq!(outcome(&judge, &undoable(memory(scope))), Outcome::Asked, "{scope}");
    }
    let input = JudgedCall {
        call: protocol::call::Call { tool: "bash_input".into(), ..command("").call },
        ..command("rm -rf build")
    };
    assert!(why(&judge, &beyond(input, Effect::Input)).contains("runs already"));
    let query = JudgedCall { kind: ToolKind::Query, ..command("ls") };
    assert_eq!(outcome(&judge, &query), Outcome::AllowedAsQuery, "the positive control");
}

#[test]
fn a_script_is_refused_what_a_person_would_be_asked() {
    let set = RuleSet {
        audience: Audience::NonInteractive,
        ..rule_set(PermissionMode::Sandboxed, &[], &[], &[])
    };
    let judge = SessionRules::new(&set).unwrap();
    assert_eq!(outcome(&judge, &undoable(command("make"))), Outcome::AllowedByMode);
    match judge.judge(&beyond(command("make"), Effect::Network)) {
        Verdict::Deny(Basis::NobodyToAsk(why), text) => {
            assert!(why.contains("whole network") && text.contains("non-interactive"), "{text}");
        }
        other @ (Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_)) => panic!("{other:?}"),
    }
    assert_eq!(outcome(&judge, &command("make")), Outcome::NobodyToAsk);
}
