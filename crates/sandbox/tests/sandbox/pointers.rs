//! Git folders that are reached by several ways, or that lie elsewhere, and files of git that are no
//! files: what is run by them later is as it was when the call is over, and the call comes to its end.

use super::yard::{TIERS, Told, Yard};
use std::path::Path;
use std::process::Command;

const SETUP: &str = "git init -q . && git config user.name a && git config user.email a@b";

/// Outside of any cage, in the yard: the project is `project` there, beside it `added`.
fn free(yard: &Yard, script: &str) {
    let out = Command::new("sh")
        .args(["-ec", script])
        .current_dir(&yard.root)
        .env("HOME", &yard.home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(out.status.success(), "this test drives git: {script}: {out:?}");
}

/// Runs a script in a cage; a runner that hangs is ended, and has then told nothing.
fn shell(yard: &Yard, tier: &str, options: &[&str], script: &str) -> Told {
    let runner = yard.runner(tier, options, &["sh", "-c", script]);
    let bounded = Command::new("timeout")
        .args(["-s", "KILL", "60"])
        .arg(runner.get_program())
        .args(runner.get_args())
        .output()
        .unwrap();
    let told = Told::from(&bounded);
    assert!(told.printed().ends_with("end"), "{script}: {told:?} {bounded:?}");
    told
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

fn limited(told: &Told, words: &str) -> bool {
    told.all("limit").iter().any(|limit| limit.contains(words))
}

/// A repository that two names lead to, of which one goes.
struct Shared {
    laid: &'static str,
    /// Tried in a call before.
    first: &'static str,
    /// What leads to it too, and goes.
    goes: &'static str,
    /// What must stay as it is, beneath the yard, and what it says.
    kept: &'static str,
    says: &'static str,
}

const ADDED: &str = "mkdir added; cd added; git init -q .; echo mine > .git/hooks/pre-commit";
const NESTED: &str = "cd project; git init -q b; cd b; git config user.name a; git config user.email a@b; \
                      git commit -q --allow-empty -m x; echo mine > .git/hooks/pre-commit";

const SHARED: [Shared; 5] = [
    Shared {
        laid: ADDED,
        first: "mkdir a; echo \"gitdir: $PWD/../added/.git\" > a/.git",
        goes: "a",
        kept: "added/.git/hooks/pre-commit",
        says: "mine\n",
    },
    Shared {
        laid: NESTED,
        first: "cd b && git worktree add -q ../a",
        goes: "a",
        kept: "project/b/.git/hooks/pre-commit",
        says: "mine\n",
    },
    Shared {
        laid: "mkdir -p project/evil project/a; cd project; git init -q own; mv own/.git evil/git; rmdir own; \
               echo 'gitdir: evil/git' > .git; echo 'gitdir: ../evil/git' > a/.git; echo mine > evil/git/hooks/pre-commit",
        first: ":",
        goes: "a",
        kept: "project/evil/git/hooks/pre-commit",
        says: "mine\n",
    },
    Shared {
        laid: "mkdir added; cd added; git init -q .; echo mine > check; ln -s ../../check .git/hooks/pre-commit; \
               cd ../project; git init -q a; ln -s \"$PWD/../added/check\" a/.git/hooks/x.sample",
        first: ":",
        goes: "a",
        kept: "added/check",
        says: "mine\n",
    },
    Shared {
        laid: "mkdir added; cd project; git init -q a; git init -q b; mkdir shared; echo mine > shared/settings.json; \
               ln -s ../shared a/.claude; ln -s ../shared b/.claude",
        first: ":",
        goes: "a",
        kept: "project/shared/settings.json",
        says: "mine\n",
    },
];

#[test]
fn what_is_reached_by_two_names_is_kept_when_one_of_them_goes() {
    for tier in TIERS {
        for case in &SHARED {
            let yard = Yard::new();
            free(&yard, case.laid);
            let added = yard.root.join("added");
            let options: &[&str] = match added.is_dir() {
                true => &["added", added.to_str().unwrap()],
                false => &[],
            };
            let told = shell(&yard, tier, options, &format!("({}) 2>&1; echo end", case.first));
            assert!(told.in_tier(tier).one("exit") == "0", "{told:?}");
            let kept = yard.root.join(case.kept);
            let script = format!(
                "echo evil > {0}; git -C $(dirname {0}) config core.fsmonitor evil; rm -rf {1}; echo end",
                kept.display(),
                case.goes
            );
            let told = shell(&yard, tier, options, &script);
            assert_eq!(text(&kept), case.says, "{tier} {}: {told:?}", case.laid);
            let noticed = [told.all("tampered"), told.all("err")].concat();
            assert!(!noticed.is_empty(), "{tier} {}: {told:?}", case.laid);
            let settings = kept.parent().and_then(Path::parent).unwrap().join("config");
            assert!(!text(&settings).contains("evil"), "{tier} {}: {told:?}", case.laid);
            assert!(!yard.project.join(case.goes).exists(), "what is nested may go: {told:?}");
        }
    }
}

#[test]
fn a_file_of_git_that_is_none_holds_nothing_up() {
    for tier in TIERS {
        for made in [
            "mkdir -p sub/evil; mkfifo sub/evil/commondir; echo 'gitdir: evil' > sub/.git",
            "mkdir sub; mkfifo sub/.git",
            "mkdir -p .git/worktrees/x; mkfifo .git/worktrees/x/commondir .git/worktrees/x/gitdir .git/worktrees/x/config.worktree",
            "mkdir -p .git/worktrees/x; truncate -s 64G .git/worktrees/x/commondir .git/worktrees/x/config.worktree",
            "git init -q sub; rm sub/.git/config; truncate -s 64G sub/.git/config",
            "git init -q sub; mkfifo sub/.git/commondir",
        ] {
            let yard = Yard::new();
            free(&yard, &format!("cd project; {SETUP}"));
            let script = format!("{made}; echo evil > .envrc; echo evil > .mcp.json; echo end");
            let told = shell(&yard, tier, &[], &script);
            for name in [".envrc", ".mcp.json"] {
                assert!(!yard.project.join(name).exists(), "{tier} {made}: {told:?}");
                assert!(told.all("tampered").iter().any(|line| line.contains(name)), "{told:?}");
            }
            for name in
                ["sub/.git/commondir", ".git/worktrees/x/commondir", ".git/worktrees/x/gitdir"]
            {
                let left = yard.project.join(name);
                assert!(left.symlink_metadata().is_err(), "{tier} {made}: {name}: {told:?}");
            }
            shell(&yard, tier, &[], "echo end");
        }
        // One that the person has, and that the command makes a file of.
        let yard = Yard::new();
        free(&yard, &format!("cd project; {SETUP}; mkdir .claude; mkfifo .claude/pipe"));
        assert!(shell(&yard, tier, &[], "echo end").all("tampered").is_empty(), "the control");
        let told = shell(&yard, tier, &[], "rm .claude/pipe && echo evil > .claude/pipe; echo end");
        let found = yard.project.join(".claude/pipe").symlink_metadata();
        assert!(!found.is_ok_and(|found| found.is_file()), "{tier}: {told:?}");
        let noticed = [told.all("tampered"), told.all("err")].concat();
        assert!(!noticed.is_empty(), "{tier}: {told:?}");
    }
}

#[test]
fn an_example_that_a_name_leads_to_is_no_example() {
    for tier in TIERS {
        for (at, kept) in [
            (".git/hooks", ".git/hooks/pre-commit"),
            ("nested/.git/hooks", "nested/.git/hooks/pre-commit"),
            (".claude", ".claude/pre-commit"),
            (".claude/hooks", ".claude/hooks/pre-commit"),
        ] {
            let yard = Yard::new();
            free(
                &yard,
                &format!(
                    "cd project; {SETUP}; git init -q nested; mkdir -p .claude/hooks; cd {at}; \
                     echo mine > pre-commit.sample; ln -s pre-commit.sample pre-commit; echo mine > other.sample"
                ),
            );
            let told = shell(&yard, tier, &[], &format!("echo evil > {kept}; echo end"));
            assert_eq!(text(&yard.project.join(kept)), "mine\n", "{tier} {kept}: {told:?}");
            let noticed = [told.all("tampered"), told.all("err")].concat();
            assert!(!noticed.is_empty(), "{tier} {kept}: {told:?}");
        }
    }
}

#[test]
fn no_name_in_a_protected_folder_stays_for_its_ending() {
    for tier in TIERS {
        let yard = Yard::new();
        free(
            &yard,
            &format!(
                "cd project; {SETUP}; git init -q nested; mkdir -p nested/.claude/skills .claude/skills; \
                 rm nested/.git/hooks/*; ln -s later.sample nested/.git/hooks/pre-commit"
            ),
        );
        let tried = [".claude", "nested/.claude"].map(|at| {
            format!(
                "for name in {at}/skills/a.sample {at}/skills/a.quarantined; do mkdir $name && echo evil > $name/SKILL.md; done"
            )
        });
        let told = shell(
            &yard,
            tier,
            &[],
            &format!(
                "{}; echo evil > nested/.git/hooks/later.sample; echo evil > nested/.git/hooks/other.sample; echo end",
                tried.join("; ")
            ),
        );
        for gone in [
            ".claude/skills/a.sample",
            ".claude/skills/a.quarantined",
            "nested/.claude/skills/a.sample",
            "nested/.claude/skills/a.quarantined",
            "nested/.git/hooks/later.sample",
        ] {
            assert!(!yard.project.join(gone).exists(), "{tier} {gone}: {told:?}");
        }
        assert!(yard.project.join("nested/.git/hooks/other.sample").exists(), "the control");
        // Nor is what was moved aside believed there by its new name.
        for folder in [".claude/skills", "nested/.claude/skills"] {
            let left = std::fs::read_dir(yard.project.join(folder)).unwrap().count();
            assert_eq!(left, 0, "{tier} {folder}: {told:?}");
        }
        let kept = yard.project.join("nested/a.sample.quarantined/SKILL.md");
        assert_eq!(text(&kept), "evil\n", "nothing is thrown away: {told:?}");
    }
}

#[test]
fn a_link_on_the_way_to_what_was_not_there_costs_no_file_of_the_person() {
    for tier in TIERS {
        let yard = Yard::new();
        free(
            &yard,
            &format!(
                "cd project; {SETUP}; mkdir -p src/hooks; echo mine > src/hooks/useFoo.ts; git config core.hooksPath tools/hooks"
            ),
        );
        let told = shell(&yard, tier, &[], "ln -s src tools; echo end");
        assert_eq!(text(&yard.project.join("src/hooks/useFoo.ts")), "mine\n", "{tier}: {told:?}");
        assert!(!yard.project.join("tools").is_symlink(), "{tier}: {told:?}");
        assert!(told.all("tampered").iter().any(|line| line.starts_with("tools")), "{told:?}");
    }
}

#[test]
fn a_folder_of_hooks_is_kept_however_settings_are_written() {
    for tier in TIERS {
        for settings in [
            r"printf '[user]\n\tname = J\374rgen\n[core]\n\thooksPath = gh\n' >> .git/config",
            r"printf '[core]\n# in C:\\x\\\n\thooksPath = gh\n' >> .git/config",
            r"printf '\357\273\277[core]\n\thooksPath = gh\n' > .git/config",
        ] {
            let yard = Yard::new();
            free(
                &yard,
                &format!(
                    "cd project; {SETUP}; mkdir gh; echo mine > gh/pre-commit; {settings}; test \"$(git config core.hooksPath)\" = gh"
                ),
            );
            let told = shell(&yard, tier, &[], "echo evil > gh/pre-commit; echo end");
            assert_eq!(text(&yard.project.join("gh/pre-commit")), "mine\n", "{settings}: {told:?}");
        }
    }
}

#[test]
fn settings_that_are_not_read_are_among_the_limits() {
    for tier in TIERS {
        for (settings, words) in [
            ("head -c 300000 /dev/zero | tr '\\0' '#' >> .git/config", "could not be read"),
            ("git config core.hooksPath '~nobody/hooks'", "somebody's name"),
        ] {
            let yard = Yard::new();
            free(&yard, &format!("cd project; {SETUP}"));
            assert!(!limited(&shell(&yard, tier, &[], "echo end"), words), "the control");
            free(&yard, &format!("cd project; {settings}"));
            let told = shell(&yard, tier, &[], "echo end");
            assert!(limited(&told, words), "{tier} {settings}: {told:?}");
        }
    }
}

#[test]
fn hooks_of_a_repository_around_the_project_or_elsewhere_are_kept_where_they_lie_in_it() {
    for tier in TIERS {
        for laid in [
            "git init -q .; git config core.hooksPath project/gh",
            "git init -q .; rm -r .git/hooks; ln -s ../project/gh .git/hooks",
            "git init -q --separate-git-dir=sep .; git config core.hooksPath project/gh",
            "git init -q --separate-git-dir=sep project; git -C project config core.hooksPath gh",
            "git init -q --separate-git-dir=sep project/nested; git -C project/nested config core.hooksPath ../gh",
        ] {
            let yard = Yard::new();
            free(&yard, "mkdir project/gh; echo mine > project/gh/pre-commit");
            let script = "echo evil > gh/pre-commit; echo end";
            free(&yard, laid);
            let told = shell(&yard, tier, &[], script);
            let hook = yard.project.join("gh/pre-commit");
            assert_eq!(text(&hook), "mine\n", "{tier} {laid}: {told:?}");
            free(&yard, "rm -rf .git sep project/.git project/nested");
            shell(&yard, tier, &[], script);
            assert_eq!(text(&hook), "evil\n", "the control");
        }
    }
}

/// The same where a folder can leave its place by a copy alone, however the command closed it.
#[test]
fn a_folder_leaves_a_protected_place_on_a_kernel_that_moves_nothing() {
    let yard = Yard::new();
    free(&yard, "mkdir -p project/.claude/skills");
    let script = "cd .claude/skills && mkdir -p a/deep && echo evil >a/SKILL.md && ln -s SKILL.md a/deep/link && \
                  mkfifo a/pipe && chmod 0 a/SKILL.md a/deep && chmod 0 a && ln -s a linked";
    let told = yard.lacking("abi-1", "b", script);
    assert_eq!(told.in_tier("b").one("exit"), "0", "{told:?}");
    assert!(std::fs::read_dir(yard.project.join(".claude/skills")).unwrap().next().is_none());
    let kept = yard.project.join("a.quarantined");
    assert_eq!(told.all("tampered").len(), 2, "{told:?}");
    assert!(told.all("tampered").iter().all(|line| line.contains("quarantined")), "{told:?}");
    free(&yard, "chmod -R u+rwX project/a.quarantined");
    assert_eq!(std::fs::read_to_string(kept.join("SKILL.md")).unwrap(), "evil\n");
    assert_eq!(std::fs::read_link(kept.join("deep/link")).unwrap(), Path::new("SKILL.md"));
    let link = yard.project.join("linked.quarantined");
    assert_eq!(std::fs::read_link(link).unwrap(), Path::new("a"));
}
