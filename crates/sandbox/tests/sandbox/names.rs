//! Protected names of a project: what the person's own programs run or believe later is as it was
//! when the call is over, in both tiers, and git goes on working.

use super::yard::{TIERS, Told, Yard};
use std::path::Path;
use std::process::Command;

const SETUP: &str = "git init -q . && git config user.name a && git config user.email a@b && \
                     git add attempt && git commit -qm one";

/// Outside of any cage.
fn free(yard: &Yard, at: &Path, script: &str) {
    let out = Command::new("sh")
        .args(["-ec", script])
        .current_dir(at)
        .env("HOME", &yard.home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "protocol.file.allow")
        .env("GIT_CONFIG_VALUE_0", "always")
        .output()
        .unwrap();
    assert!(out.status.success(), "this test drives git: {out:?}");
}

/// A command that must work and leave nothing to put right.
fn works(yard: &Yard, tier: &str, options: &[&str], script: &str) -> Told {
    let script = format!("export HOME=$TMPDIR; set -e; {script}; echo worked");
    let told = yard.cage(tier, options, &["sh", "-c", &script]);
    assert!(told.in_tier(tier).printed().ends_with("worked"), "{told:?}");
    assert_eq!(told.all("tampered"), Vec::<&str>::new(), "{told:?}");
    told
}

/// What was told about a name.
fn about(told: &Told, name: &str) -> String {
    let all = told.all("tampered");
    let found = all.iter().find(|line| line.starts_with(&format!("{name} ")));
    (*found.unwrap_or_else(|| panic!("nothing about {name}: {told:?}"))).to_owned()
}

#[test]
fn what_tier_b_cannot_prevent_is_put_back_and_told() {
    let yard = Yard::new();
    free(&yard, &yard.project, SETUP);
    free(
        &yard,
        &yard.project,
        "mkdir .agentd .claude; echo mine > .agentd/config.toml; echo a > .claude/x; ln -s attempt .envrc",
    );
    let settings = std::fs::read(yard.project.join(".git/config")).unwrap();
    let told = yard.shell(
        "b",
        "echo x > .git/hooks/pre-commit; git config alias.x y; echo loose > .agentd/config.toml; \
         rm -r .claude; rm .envrc; echo evil > .envrc; chmod +x .git/hooks/pre-push.sample; echo done",
    );
    assert_eq!(told.in_tier("b").printed(), "done");
    assert!(about(&told, ".git/config").contains("restored"));
    assert!(about(&told, ".git/hooks/pre-commit").contains("is new"));
    assert!(about(&told, ".agentd/config.toml").contains("restored"));
    assert!(about(&told, ".claude").contains("removed, and restored"));
    assert!(about(&told, ".envrc").contains("restored"));
    assert_eq!(std::fs::read(yard.project.join(".git/config")).unwrap(), settings);
    assert!(!yard.project.join(".git/hooks/pre-commit").exists());
    let text = |name: &str| std::fs::read_to_string(yard.project.join(name)).unwrap();
    assert_eq!(text(".agentd/config.toml"), "mine\n");
    assert_eq!(text(".claude/x"), "a\n");
    assert_eq!(text(".envrc.quarantined"), "evil\n", "nothing is lost");
    assert!(yard.project.join(".envrc").is_symlink());
    // The control: nothing is told of a call that leaves them alone.
    works(&yard, "b", &[], "git status --short && ln .git/config c && rm c");
    // The folder itself, away, away and back, and replaced.
    let told = yard.shell("b", "mv .git gone");
    assert!(about(&told, ".git").contains("moved away"), "{told:?}");
    free(&yard, &yard.project, "mv gone .git");
    works(&yard, "b", &[], "mv .git gone; mv gone .git");
    let told = yard.shell("b", "mv .git gone; mkdir evil; echo x > evil/config; ln -s evil .git");
    assert!(about(&told, ".git").contains("moved to"), "{told:?}");
    assert_eq!(std::fs::read(yard.project.join(".git/config")).unwrap(), settings);
}

#[test]
fn names_that_are_new_are_moved_aside_in_both_tiers() {
    for tier in TIERS {
        let yard = Yard::new();
        free(&yard, &yard.project, SETUP);
        let told = yard.shell(
            tier,
            "echo x > .envrc; mkdir .vscode; echo {} > .vscode/tasks.json; ln -s /etc .claude; \
             echo x > .git/commondir; mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/post-checkout; \
             printf '[core]\\n\\tfsmonitor = run\\n' > sub/.git/config; echo done",
        );
        assert_eq!(told.in_tier(tier).printed(), "done", "{told:?}");
        for name in [
            ".envrc",
            ".vscode/tasks.json",
            ".claude",
            ".git/commondir",
            "sub/.git/hooks/post-checkout",
            "sub/.git/config",
        ] {
            assert!(about(&told, name).contains("is new"), "{tier}: {told:?}");
            let path = yard.project.join(name);
            assert!(path.symlink_metadata().is_err(), "{tier} {name} is still there");
        }
        assert!(yard.project.join(".envrc.quarantined").exists(), "nothing is lost");
        free(&yard, &yard.project, "git status --short");
        // The control: names like them, that nobody believes.
        works(&yard, tier, &[], "echo x > .envrc.example; echo {} > .vscode/extensions.json");
    }
}

#[test]
fn git_works_in_a_repository_a_new_one_and_its_worktrees() {
    for tier in TIERS {
        let yard = Yard::new();
        let who = "git config user.name a && git config user.email a@b";
        works(
            &yard,
            tier,
            &[],
            &format!("git init -q . && {who} && git add attempt && git commit -qm one"),
        );
        works(
            &yard,
            tier,
            &[],
            "echo two > two && git add two && git commit -qm two && git branch side && \
             echo more >> two && git stash -q && git stash pop -q && git gc -q && \
             git worktree add -q wt side",
        );
        works(
            &yard,
            tier,
            &[],
            "cd wt && git status --short && echo 3 > 3 && git add 3 && git commit -qm three",
        );
        works(
            &yard,
            tier,
            &[],
            "git worktree remove --force wt && git log --oneline --all | wc -l",
        );
        works(&yard, tier, &[], "git clone -q . copy && cd copy && git log --oneline");
        works(
            &yard,
            tier,
            &[],
            "cd copy && git checkout -q -b next && git branch -q -u origin/side",
        );
        works(&yard, tier, &[], "rm -rf copy");
    }
}

#[test]
fn settings_that_run_nothing_may_change_in_tier_b() {
    let yard = Yard::new();
    free(&yard, &yard.project, SETUP);
    free(&yard, &yard.project, "git config alias.mine '!one'; git config branch.main.remote up");
    let settings = || std::fs::read_to_string(yard.project.join(".git/config")).unwrap();
    for (script, holds) in [
        ("git remote add here https://example.org/x", "git config remote.here.url"),
        ("git branch -m main2; git branch -m main", "test $(git config branch.main.remote) = up"),
        ("git config user.name b", "test $(git config user.name) = b"),
        ("git config submodule.x.active true", "git config submodule.x.active"),
        ("git remote remove here", "! git config remote.here.url"),
        (
            "git worktree add -q wt -b side; git worktree remove wt",
            "git rev-parse -q --verify side",
        ),
    ] {
        works(&yard, "b", &[], script);
        free(&yard, &yard.project, holds);
    }
    let before = settings();
    for evil in [
        "git config core.hooksPath evil",
        "git config core.sshCommand evil",
        "git config core.fsmonitor evil",
        "git config alias.x '!evil'",
        "git config --unset alias.mine",
        "git config filter.x.clean evil",
        "git config diff.external evil",
        "git config credential.helper '!evil'",
        "git config include.path evil",
        "git config remote.x.uploadpack evil",
        "git config remote.x.url 'ext::evil'",
        "git config remote.x.url /nowhere",
        "git config branch.main.remote 'ext::evil'",
        "git config url.evil.insteadOf https://",
        "git config core.worktree /tmp",
        "git config commit.gpgsign false",
        "git config user.name c; git config core.pager evil",
        "chmod a+w .git/config; git config user.name c",
        "git config user.name c; ln .git/config second",
    ] {
        let told = yard.shell("b", &format!("{evil}; echo end"));
        assert!(told.in_tier("b").printed().ends_with("end"), "{evil}: {told:?}");
        assert!(about(&told, ".git/config").contains("restored"), "{evil}: {told:?}");
        assert_eq!(settings(), before, "{evil}");
        let _ = std::fs::remove_file(yard.project.join("second"));
    }
}

#[test]
fn gits_settings_and_hooks_change_only_by_the_right_to() {
    let script = "git config alias.here y; git branch -m other; echo x > .git/hooks/post-merge; \
                  git worktree add -q wt -b side; git -C wt config --worktree a.b c; echo end";
    for tier in TIERS {
        let yard = Yard::new();
        free(&yard, &yard.project, SETUP);
        free(&yard, &yard.project, "git config extensions.worktreeConfig true; mkdir .agentd");
        let settings = || std::fs::read_to_string(yard.project.join(".git/config")).unwrap();
        let before = settings();
        let told = yard.shell(tier, script);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert_eq!(settings(), before, "{tier}");
        assert!(!yard.project.join(".git/hooks/post-merge").exists(), "{tier}");
        free(&yard, &yard.project, "rm -rf wt; git worktree prune; git branch -q -D side");

        let told = yard.cage(tier, &["git", "writable"], &["sh", "-c", script]);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert!(settings().contains("here = y"), "{tier}: {}", settings());
        for name in [".git/config", ".git/hooks/post-merge"] {
            assert!(about(&told, name).contains("as the call was allowed to"), "{tier}: {told:?}");
        }
        free(
            &yard,
            &yard.project,
            "test $(git branch --show-current) = other; test $(git -C wt config a.b) = c",
        );

        // All else stays protected, and the folder in its place.
        let told = yard.cage(
            tier,
            &["git", "writable"],
            &["sh", "-c", "echo x > .envrc; echo x > .git/commondir; echo x > .agentd/x; mv .git gone; echo end"],
        );
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert!(about(&told, ".envrc").contains("is new"), "{tier}: {told:?}");
        assert!(!yard.project.join(".agentd/x").exists(), "{tier}");
        assert_eq!(tier == "a", yard.project.join(".git/config").exists(), "{tier}: {told:?}");
    }
}

#[test]
fn the_right_to_gits_settings_reaches_the_repository_of_a_linked_worktree_and_no_other() {
    for tier in TIERS {
        let yard = Yard::new();
        let [main, tree, beside] = ["main", "tree", "beside"].map(|name| yard.root.join(name));
        for repository in [&main, &beside] {
            std::fs::create_dir(repository).unwrap();
            free(
                &yard,
                repository,
                "git init -q . && git config user.name a && git config user.email a@b && git commit -q --allow-empty -m one",
            );
        }
        free(&yard, &main, "git worktree add -q ../tree");
        let options = ["project", tree.to_str().unwrap(), "added", beside.to_str().unwrap()];
        let script = format!(
            "git config alias.here y; git -C {} config alias.there y; echo end",
            beside.display()
        );
        let aliases = |at: &Path| {
            let config = std::fs::read_to_string(at.join(".git/config")).unwrap();
            config.matches("[alias").count()
        };
        let told = yard.cage(tier, &options, &["sh", "-c", &script]);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert_eq!((aliases(&main), aliases(&beside)), (0, 0), "{tier}: {told:?}");
        let options = [&["git", "writable"][..], &options].concat();
        let told = yard.cage(tier, &options, &["sh", "-c", &script]);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert_eq!((aliases(&main), aliases(&beside)), (1, 0), "{tier}: {told:?}");
    }
}

#[test]
fn git_works_where_the_project_is_a_linked_worktree() {
    for tier in TIERS {
        let yard = Yard::new();
        let main = yard.root.join("main");
        std::fs::create_dir(&main).unwrap();
        let tree = yard.root.join("tree");
        free(
            &yard,
            &main,
            "git init -q . && git config user.name a && git config user.email a@b && echo 1 > 1 && git add 1 && git commit -qm one && git worktree add -q ../tree",
        );
        let options = ["project", tree.to_str().unwrap()];
        works(
            &yard,
            tier,
            &options,
            "echo 2 > 2 && git add 2 && git commit -qm two && git stash list && git branch other",
        );
        free(&yard, &main, "git log --oneline --all | grep two");
        let script = format!(
            "echo x > {0}/.git/hooks/post-checkout; echo x >> {0}/.git/config; echo x > {0}/1; echo end",
            main.display()
        );
        let told = yard.cage(tier, &options, &["sh", "-c", &script]);
        assert_eq!(told.in_tier(tier).printed(), "end");
        assert_eq!(told.all("err").len(), 3, "prevented in both tiers: {told:?}");
        assert_eq!(told.all("tampered"), Vec::<&str>::new());
        free(&yard, &main, "git status && test ! -e .git/hooks/post-checkout && test $(cat 1) = 1");
        // Nothing is granted for a file that claims to be of a repository that does not know it.
        std::fs::remove_file(yard.project.join(".git")).ok();
        std::fs::copy(tree.join(".git"), yard.project.join(".git")).unwrap();
        let told =
            yard.shell(tier, &format!("echo x > {}/.git/objects/x; git status", main.display()));
        assert_eq!(told.all("err").len(), 2, "{told:?}");
        assert!(!main.join(".git/objects/x").exists());
    }
}

#[test]
fn git_works_with_submodules_and_in_one() {
    for tier in TIERS {
        let yard = Yard::new();
        let lib = yard.root.join("lib");
        std::fs::create_dir(&lib).unwrap();
        free(
            &yard,
            &lib,
            "git init -q . && git config user.name a && git config user.email a@b && echo 1 > 1 && git add 1 && git commit -qm one",
        );
        free(&yard, &yard.project, SETUP);
        free(
            &yard,
            &yard.project,
            "git submodule --quiet add ../lib vendor/lib && git commit -qm sub && cd vendor/lib && git config user.name a && git config user.email a@b",
        );
        let change = "echo 2 > 2 && git add 2 && git commit -qm two";
        works(
            &yard,
            tier,
            &[],
            &format!(
                "cd vendor/lib && {change} && cd ../.. && git add vendor/lib && git commit -qm up"
            ),
        );
        let inner = yard.project.join("vendor/lib");
        let options = ["project", inner.to_str().unwrap()];
        works(&yard, tier, &options, &change.replace('2', "3"));
        let module = yard.project.join(".git/modules/vendor/lib");
        let script = format!("echo x > {}/hooks/post-checkout; echo end", module.display());
        let told = yard.cage(tier, &options, &["sh", "-c", &script]);
        assert_eq!(told.in_tier(tier).printed(), "end");
        assert!(!module.join("hooks/post-checkout").exists(), "{told:?}");
        let noticed = if tier == "a" { told.all("err") } else { told.all("tampered") };
        assert_eq!(noticed.len(), 1, "{told:?}");
    }
}

#[test]
fn more_protected_names_than_can_be_watched_are_said() {
    for tier in TIERS {
        let yard = Yard::new();
        let crowded = |told: &Told| {
            told.all("limit").iter().any(|limit| limit.contains("more protected files than"))
        };
        // Of a repository within, which no mount holds.
        std::fs::create_dir_all(yard.project.join("inner/.git/hooks")).unwrap();
        let hook = yard.project.join("inner/.git/hooks/pre-commit");
        std::fs::write(&hook, "x").unwrap();
        assert!(!crowded(&yard.shell(tier, "true")), "{tier}: the control");
        std::fs::write(&hook, vec![b'x'; 300_000]).unwrap();
        assert!(crowded(&yard.shell(tier, "true")), "{tier}");
    }
}
