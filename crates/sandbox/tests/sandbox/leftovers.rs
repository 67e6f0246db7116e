//! What a command leaves behind in the project for the person's own programs to meet: repositories at
//! any depth, folders that are closed to their owner, settings that settings include, steps of a
//! rebase, names in subfolders.

use super::yard::{TIERS, Told, Yard};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The person's own shell in the project, with what it printed.
fn person(yard: &Yard, script: &str) -> String {
    let out = Command::new("sh")
        .args(["-c", script])
        .current_dir(&yard.project)
        .env("HOME", &yard.home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("CANARY", yard.root.join("ran"))
        .output()
        .unwrap();
    let [out, err] =
        [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    format!("{out}{err}")
}

fn repository(yard: &Yard) {
    let said = person(
        yard,
        "git init -q . && git config user.name a && git config user.email a@b && \
         git add attempt && git commit -qm one && echo made",
    );
    assert!(said.ends_with("made\n"), "this test drives git: {said}");
}

/// Whether the model's program ran, once.
fn ran(yard: &Yard) -> bool {
    std::fs::remove_file(yard.root.join("ran")).is_ok()
}

/// Makes a repository in this folder, with a program in its settings, known to the project's as a
/// gitlink.
fn planted(folder: &str) -> String {
    format!(
        "set -e; export HOME=$TMPDIR; mkdir -p {folder}; git -C {folder} init -q; \
         git -C {folder} -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; \
         printf '#!/bin/sh\\ntouch \"$CANARY\"\\n' > run; chmod +x run; \
         git -C {folder} config core.fsmonitor \"$PWD/run\"; git -C {folder} config core.pager \"$PWD/run\"; \
         head=$(git -C {folder} rev-parse HEAD); \
         git update-index --add --cacheinfo 160000,$head,{folder}; echo end"
    )
}

#[test]
fn the_person_s_git_runs_no_program_of_a_repository_wherever_a_command_made_it() {
    for tier in TIERS {
        for folder in ["a/b/c/d/e", "target/debug/x", "node_modules/x"] {
            let yard = Yard::new();
            repository(&yard);
            let told = yard.shell(tier, &planted(folder));
            assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
            let said = person(&yard, "git status");
            assert!(!ran(&yard), "{tier} {folder}: {told:?} {said}");
            let config = format!("{folder}/.git/config ");
            assert!(told.all("tampered").iter().any(|line| line.starts_with(&config)), "{told:?}");
            assert!(yard.project.join(folder).join(".git/config.quarantined").exists());
        }
    }
    // The control: git would have run it.
    let yard = Yard::new();
    repository(&yard);
    let said = person(&yard, &format!("TMPDIR=$HOME; {}", planted("a/b/c/d/e")));
    assert!(said.ends_with("end\n"), "{said}");
    person(&yard, "git status");
    assert!(ran(&yard), "the control");
}

#[test]
fn a_name_in_a_folder_of_such_a_name_is_moved_aside_too() {
    for tier in TIERS {
        let yard = Yard::new();
        let told = yard.shell(
            tier,
            "mkdir -p w/.envrc/in/.vscode; echo evil > w/.envrc/.envrc; echo evil > w/.envrc/in/.envrc; \
             echo {} > w/.envrc/in/.vscode/tasks.json; git init -q w/.envrc/of; \
             git -C w/.envrc/of config core.pager ./run; echo end",
        );
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        let left = "find w -name .envrc -o -name tasks.json -o -path '*/.git/config'";
        assert_eq!(person(&yard, left), "", "{tier}: {told:?}");
        let kept = person(&yard, "find w -name '*.quarantined' | wc -l");
        assert_eq!(kept, "5\n", "{tier}: {told:?}");
    }
}

/// Where a remote leads, by a setting that git cuts at a NUL, by a path of the command's own, and by the files in
/// which git kept addresses before it had settings.
#[test]
fn no_remote_leads_the_person_s_git_to_a_program_of_a_command() {
    let evil = "git init -q --bare $TMPDIR/e.git; \
                printf '#!/bin/sh\ntouch \"$CANARY\"\n' > $TMPDIR/e.git/hooks/pre-receive; \
                chmod +x $TMPDIR/e.git/hooks/pre-receive";
    for (plants, acts) in [
        (
            "cp .git/config l; printf '[remote \"o\"]\n url = .\n[remote \"o.uploadpack\\0\"]\n \
             url = touch \\\\\"$CANARY\\\\\" && git-upload-pack\n' >> l; \
             cp l .git/config.lock; mv -f .git/config.lock .git/config",
            "git fetch o",
        ),
        ("git remote add o $TMPDIR/e.git", "git push -q o HEAD"),
        (
            "git init -q x && git -C x remote add o $TMPDIR/e.git",
            "git -C x commit -q --allow-empty -m x; git -C x push -q o HEAD",
        ),
        ("git config branch.$(git branch --show-current).remote $TMPDIR/e.git", "git push -q"),
        (
            "mkdir -p .git/remotes; printf 'URL: %s\n' $TMPDIR/e.git > .git/remotes/o",
            "git push -q o HEAD",
        ),
        ("mkdir -p .git/branches; echo $TMPDIR/e.git > .git/branches/o", "git push -q o HEAD"),
    ] {
        let act = |yard: &Yard| {
            let settings = "export GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=push.default GIT_CONFIG_VALUE_0=current \
                            GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=a@b \
                            GIT_CONFIG_KEY_2=user.name GIT_CONFIG_VALUE_2=a";
            person(yard, &format!("{settings}; git commit -q --allow-empty -m x; {acts}"))
        };
        for tier in TIERS {
            let yard = Yard::new();
            repository(&yard);
            let told = yard.shell(tier, &format!("{evil}; {plants}"));
            let said = act(&yard);
            assert!(!ran(&yard), "{tier} {plants}: {told:?} {said}");
        }
        let yard = Yard::new();
        repository(&yard);
        let made = person(&yard, &format!("TMPDIR=$HOME; {evil}; {plants}"));
        let said = act(&yard);
        assert!(ran(&yard), "the control of {plants}: {made} {said}");
    }
}

#[test]
fn a_search_without_an_end_is_said_and_git_runs_nothing_all_the_same() {
    // As many folders with as long names as no search keeps in mind.
    let long = "n".repeat(200);
    let flood = format!(
        "at=$PWD; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do mkdir {long}; cd {long}; done; \
         seq 12000 | xargs mkdir; cd 12000; deep=${{PWD#$at/}}; cd \"$at\"; "
    );
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        let told = yard.shell(tier, &format!("{flood} {}", planted("\"$deep\"/x")));
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        person(&yard, "git status");
        assert!(!ran(&yard), "{tier}: {told:?}");
        let all = told.all("tampered");
        assert!(all.iter().any(|line| line.contains("reached its bound")), "{tier}: {all:?}");
        assert!(all.iter().any(|line| line.contains("/x/.git/config ")), "{tier}: {all:?}");
    }
}

#[test]
fn a_folder_that_is_closed_to_its_owner_keeps_nothing_from_being_put_right() {
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        std::fs::create_dir(yard.project.join(".claude")).unwrap();
        std::fs::write(yard.project.join("old"), "").unwrap();
        let told = yard.shell(
            tier,
            "echo evil > .envrc; mkdir .vscode; echo {} > .vscode/tasks.json; chmod 0555 .vscode; \
             echo {} > .mcp.json; echo {} > .claude/settings.json; echo x > .git/hooks/post-merge; \
             mkdir -p shut/in; echo evil > shut/in/.envrc; chmod 0000 shut/in shut; \
             mkdir -p seen/in; echo evil > seen/in/.envrc; chmod 0444 seen; \
             mkdir listed; echo evil > listed/.envrc; chmod 0444 listed; \
             chmod 0555 .git/hooks .git .claude .; echo end",
        );
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        let mode = |name: &str| {
            yard.project.join(name).symlink_metadata().unwrap().permissions().mode() & 0o7777
        };
        assert_eq!(mode(".vscode"), 0o555, "{tier}: a folder is left as the command left it");
        assert_eq!(mode("shut"), 0, "{tier}");
        assert_eq!(mode("."), 0o555, "{tier}");
        if tier == "b" {
            assert_eq!(mode(".git/hooks"), 0o755, "a protected one is as it was: {told:?}");
        }
        person(&yard, "chmod 0755 . shut seen shut/in listed .vscode .git");
        for name in [
            ".envrc",
            ".vscode/tasks.json",
            ".mcp.json",
            ".claude/settings.json",
            ".git/hooks/post-merge",
            "shut/in/.envrc",
            "seen/in/.envrc",
            "listed/.envrc",
        ] {
            let path = yard.project.join(name);
            assert!(path.symlink_metadata().is_err(), "{tier} {name}: {told:?}");
        }
        let all = told.all("tampered");
        assert!(!all.iter().any(|line| line.contains("not as it was")), "{tier}: {all:?}");
        // The control: the same folders without such names are left alone.
        let told = yard.shell(tier, "mkdir alone; echo x > alone/x; chmod 0000 alone; echo end");
        assert_eq!(told.all("tampered"), Vec::<&str>::new(), "{tier}");
        assert_eq!(mode("alone"), 0, "{tier}");
    }
}

/// What was told about a name.
fn about<'a>(told: &'a Told, name: &str) -> &'a str {
    let all = told.all("tampered");
    let found = all.into_iter().find(|line| line.starts_with(&format!("{name} ")));
    found.unwrap_or_else(|| panic!("nothing about {name}: {told:?}"))
}

#[test]
fn settings_that_the_repository_s_settings_include_are_protected_as_they_are() {
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        std::fs::write(yard.project.join("team.gitconfig"), "[include]\n\tpath = more/own\n")
            .unwrap();
        person(&yard, "git config include.path ../team.gitconfig");
        let evil = "[core]\\n\\tfsmonitor = touch \\\"$CANARY\\\"; false\\n";
        let told = yard.shell(
            tier,
            &format!(
                "printf '{evil}' >> team.gitconfig; mkdir more; printf '{evil}' > more/own; echo end"
            ),
        );
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        let text = std::fs::read_to_string(yard.project.join("team.gitconfig")).unwrap();
        assert_eq!(text, "[include]\n\tpath = more/own\n", "{tier}: {told:?}");
        assert!(about(&told, "more/own").contains("is new"), "{tier}");
        person(&yard, "git status");
        assert!(!ran(&yard), "{tier}");
        // The control: where it is not included, it is a file like any other.
        person(&yard, "git config --unset include.path");
        let told = yard.shell(tier, &format!("printf '{evil}' > team.gitconfig; echo end"));
        assert_eq!(told.all("tampered"), Vec::<&str>::new(), "{tier}");
        person(&yard, "git config include.path ../team.gitconfig; git status");
        assert!(ran(&yard), "{tier}: the control");
    }
}

#[test]
fn a_rebase_under_way_gets_no_program_from_a_command() {
    let begin = "git checkout -q -b side HEAD~1 2>/dev/null; echo 2 > two; git add two; git commit -qm two; \
                 GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i --exec 'echo mine' main >/dev/null 2>&1; \
                 test -e .git/rebase-merge/git-rebase-todo && echo begun";
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        person(&yard, "git branch -M main; echo 1 > one; git add one; git commit -qm more");
        let said = person(&yard, begin);
        assert!(said.ends_with("begun\n"), "{said}");
        let steps = yard.project.join(".git/rebase-merge/git-rebase-todo");
        let before = std::fs::read_to_string(&steps).unwrap();
        assert!(before.contains("exec echo mine"), "{before}");
        let told = yard.shell(
            tier,
            "f=.git/rebase-merge/git-rebase-todo; sed -i '1ix touch \"$CANARY\"' $f; echo end",
        );
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert_eq!(std::fs::read_to_string(&steps).unwrap(), before, "{tier}: {told:?}");
        person(&yard, "git rebase --continue");
        assert!(!ran(&yard), "{tier}");
        // The control: a command may go on with it, and begin one of its own.
        person(&yard, &format!("git checkout -q main; git branch -q -D side; {begin}"));
        let told = yard.shell(
            tier,
            "export HOME=$TMPDIR; sed -i '/^exec/d' .git/rebase-merge/git-rebase-todo; \
             git rebase --continue >/dev/null 2>&1; test ! -e .git/rebase-merge && echo end",
        );
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert_eq!(told.all("tampered"), Vec::<&str>::new(), "{tier}");
    }
}

#[test]
fn names_in_subfolders_are_protected_as_those_of_the_project() {
    for tier in TIERS {
        let yard = Yard::new();
        let at = |name: &str| yard.project.join(name);
        std::fs::create_dir_all(at("old/place/.claude")).unwrap();
        std::fs::write(at("old/place/.claude/settings.json"), "{}").unwrap();
        std::fs::create_dir_all(at("gone/with/.vscode")).unwrap();
        std::fs::write(at("gone/with/.vscode/tasks.json"), "{}").unwrap();
        let told = yard.shell(
            tier,
            "mkdir -p sub/deep/er/.vscode sub/.claude; echo x > sub/.envrc; echo x > sub/deep/er/.vscode/tasks.json; \
             echo x > sub/.claude/settings.json; echo x > sub/.mcp.json; rm -r gone; \
             echo evil > old/place/.claude/settings.json; echo {} > sub/deep/er/.vscode/extensions.json; echo end",
        );
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        for name in ["sub/.envrc", "sub/deep/er/.vscode/tasks.json", "sub/.claude", "sub/.mcp.json"]
        {
            assert!(about(&told, name).contains("is new"), "{tier} {name}");
            assert!(!at(name).exists(), "{tier} {name}");
        }
        let kept = std::fs::read_to_string(at("old/place/.claude/settings.json")).unwrap();
        assert_eq!(kept, "{}", "{tier}: {told:?}");
        assert_eq!(
            told.all("tampered").len(),
            5,
            "{tier}, what went as a whole is no loss: {told:?}"
        );
        // The control: other names in the same folders.
        assert!(at("sub/deep/er/.vscode/extensions.json").exists());
    }
}

#[test]
fn a_folder_that_git_takes_for_a_repository_runs_nothing() {
    let make = "mkdir -p lib/objects lib/refs lib/hooks; echo ref: refs/heads/main > lib/HEAD; \
                printf '[core]\\n\\tbare = true\\n\\trepositoryformatversion = 0\\n\\tpager = touch \\\"$CANARY\\\"; false\\n[alias]\\n\\tst = !touch \\\"$CANARY\\\"\\n' > lib/config; \
                echo x > lib/hooks/post-commit; echo end";
    for tier in TIERS {
        let yard = Yard::new();
        let told = yard.shell(tier, make);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        person(&yard, "cd lib && git st");
        assert!(!ran(&yard), "{tier}: {told:?}");
        assert!(about(&told, "lib/config").contains("is new"), "{tier}");
        assert!(about(&told, "lib/hooks/post-commit").contains("is new"), "{tier}");
        // The control: a repository that git itself makes stays as it is.
        let told = yard.shell(tier, "export HOME=$TMPDIR; git init -q --bare own.git; echo end");
        assert_eq!(told.all("tampered"), Vec::<&str>::new(), "{tier}: {told:?}");
        assert!(Path::new(&yard.project.join("own.git/config")).exists());
    }
    let yard = Yard::new();
    person(&yard, make);
    person(&yard, "cd lib && git st");
    assert!(ran(&yard), "the control");
}

#[test]
fn settings_that_two_readers_read_differently_are_not_believed() {
    let make = "set -e; export HOME=$TMPDIR; printf '#!/bin/sh\\ntouch \"$CANARY\"\\n' > run; chmod +x run; \
                git init -q in; printf '[remote \"x\"][core]fsmonitor=%s/run;\"]\\n' \"$PWD\" >> in/.git/config; echo end";
    for tier in TIERS {
        let yard = Yard::new();
        let told = yard.shell(tier, make);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        person(&yard, "cd in && git status");
        assert!(!ran(&yard), "{tier}: {told:?}");
        assert!(about(&told, "in/.git/config").contains("is new"), "{tier}");
    }
    let yard = Yard::new();
    person(&yard, &format!("TMPDIR=$HOME; {make}"));
    person(&yard, "cd in && git status");
    assert!(ran(&yard), "the control");
}

#[test]
fn a_repository_whose_parts_lie_elsewhere_runs_nothing() {
    let make = "mkdir -p docs other/objects other/refs; echo ref: refs/heads/main > docs/HEAD; \
                echo ../other > docs/commondir; \
                printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = true\\n[alias]\\n\\tst = !touch \"$CANARY\"\\n' > other/config; echo end";
    for tier in TIERS {
        let yard = Yard::new();
        let told = yard.shell(tier, make);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        person(&yard, "cd docs && git st");
        assert!(!ran(&yard), "{tier}: {told:?}");
        assert!(about(&told, "docs/commondir").contains("is new"), "{tier}");
    }
    let yard = Yard::new();
    person(&yard, make);
    person(&yard, "cd docs && git st");
    assert!(ran(&yard), "the control");
}

#[test]
fn what_is_under_way_names_no_program_and_leads_nowhere_else() {
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        std::fs::write(yard.home.join(".profile"), "mine\n").unwrap();
        let script = format!(
            "mkdir -p .git/rebase-merge .git/sequencer .git/rr-cache/1; echo x/../evil > .git/rebase-merge/strategy; \
             printf '[options]\\n\\tstrategy = x/../evil\\n' > .git/sequencer/opts; \
             printf '1\\t{0}\\0' > .git/MERGE_RR; ln -s {0} .git/COMMIT_EDITMSG.lnk; ln -s {0} .git/rr-cache/1/thisimage; \
             rm -f .git/COMMIT_EDITMSG; ln -s {0} .git/COMMIT_EDITMSG; echo end",
            yard.home.join(".profile").display()
        );
        let told = yard.shell(tier, &script);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        for name in [
            ".git/rebase-merge/strategy",
            ".git/sequencer/opts",
            ".git/MERGE_RR",
            ".git/rr-cache/1/thisimage",
            ".git/COMMIT_EDITMSG",
        ] {
            assert!(about(&told, name).contains("is new"), "{tier} {name}");
            assert!(yard.project.join(name).symlink_metadata().is_err(), "{tier} {name}");
        }
        person(
            &yard,
            "rm -rf .git/rebase-merge .git/sequencer; git commit -q --allow-empty -m evil",
        );
        let text = std::fs::read_to_string(yard.home.join(".profile")).unwrap();
        assert_eq!(text, "mine\n", "{tier}");
        // The control: a merge that stops, with conflicts that git remembers, is left alone.
        person(
            &yard,
            "git config rerere.enabled true; echo 1 > c; git add c; git commit -qm 1; git checkout -q -b side; \
             echo 2 > c; git commit -qam 2; git checkout -q -; echo 3 > c; git commit -qam 3",
        );
        let told = yard.shell(
            tier,
            "export HOME=$TMPDIR; git -c user.name=a -c user.email=a@b merge side >/dev/null; test -s .git/MERGE_RR && echo end",
        );
        assert!(told.printed().ends_with("end"), "{tier}: {told:?}");
        assert_eq!(told.all("tampered"), Vec::<&str>::new(), "{tier}");
    }
}

#[test]
fn a_folder_that_is_moved_keeps_its_names() {
    for tier in TIERS {
        let yard = Yard::new();
        let at = |name: &str| yard.project.join(name);
        std::fs::create_dir_all(at("pkg/.vscode")).unwrap();
        std::fs::create_dir_all(at("pkg/.claude/skills")).unwrap();
        std::fs::write(at("pkg/.vscode/tasks.json"), "{}").unwrap();
        std::fs::write(at("pkg/.claude/skills/one"), "mine").unwrap();
        let told = yard.shell(tier, "mv pkg pack; echo end");
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert_eq!(told.all("tampered"), Vec::<&str>::new(), "{tier}");
        assert!(at("pack/.vscode/tasks.json").exists() && at("pack/.claude/skills/one").exists());
        // The control: with something new in it, and in the project itself, it is not believed.
        let told = yard.shell(
            tier,
            "mv pack new; echo evil > new/.vscode/tasks.json; cp -r new/.claude .; echo end",
        );
        assert!(about(&told, "new/.vscode/tasks.json").contains("is new"), "{tier}");
        assert!(about(&told, ".claude").contains("is new"), "{tier}");
    }
}

#[test]
fn very_many_changes_are_counted_and_the_worst_is_told() {
    for tier in TIERS {
        let yard = Yard::new();
        let told = yard
            .shell(tier, "for i in $(seq 1500); do mkdir d$i; echo x > d$i/.envrc; done; echo end");
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        let all = told.all("tampered");
        assert!(all.len() <= 501, "{tier}: {}", all.len());
        assert!(all.iter().any(|line| line.contains("1000 more protected names")), "{tier}");
        assert!(
            !yard.project.join("d1500/.envrc").exists() && !yard.project.join("d1/.envrc").exists()
        );
    }
}
