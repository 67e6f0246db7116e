//! Protected names that are links, lie beneath links or lead on by what git's settings say: what
//! they lead to is as it was when the call is over, in both tiers, and all beside it is free.

use super::yard::{TIERS, Told, Yard};
use std::path::Path;
use std::process::Command;

const SETUP: &str = "git init -q . && git config user.name a && git config user.email a@b && \
                     git add attempt && git commit -qm one";

/// Outside of any cage, in the project.
fn free(yard: &Yard, script: &str) {
    let out = Command::new("sh")
        .args(["-ec", script])
        .current_dir(&yard.project)
        .env("HOME", &yard.home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(out.status.success(), "this test drives git: {out:?}");
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// One way in which a protected name leads on.
struct Way {
    /// How the person laid it.
    laid: &'static str,
    /// What it leads to, which says `mine`.
    led_to: &'static str,
    /// What the command tries besides writing that.
    tried: &'static str,
}

const WAYS: [Way; 9] = [
    Way {
        laid: "mkdir githooks; rm -r .git/hooks; ln -s ../githooks .git/hooks; echo mine > githooks/pre-commit",
        led_to: "githooks/pre-commit",
        tried: "mv githooks gone; echo evil > githooks/pre-push",
    },
    Way {
        laid: "mkdir scripts; echo mine > scripts/check; ln -s ../../scripts/check .git/hooks/pre-commit",
        led_to: "scripts/check",
        tried: "rm scripts/check; ln -s ../ordinary scripts/check",
    },
    Way {
        laid: "ln -s one .envrc; ln -s two one; echo mine > two",
        led_to: "two",
        tried: "ln -sf ordinary one",
    },
    Way {
        laid: "mkdir shared; ln -s shared .vscode; echo mine > shared/tasks.json",
        led_to: "shared/tasks.json",
        tried: "rm .vscode; mkdir .vscode; echo evil > .vscode/tasks.json",
    },
    Way {
        laid: "mkdir -p deep/er; ln -s \"$PWD/deep/er\" .claude; echo mine > deep/er/settings.json",
        led_to: "deep/er/settings.json",
        tried: "mv deep gone; mkdir -p deep/er; echo evil > deep/er/settings.json",
    },
    Way {
        laid: "mkdir .githooks; git config core.hooksPath .githooks; echo mine > .githooks/pre-commit",
        led_to: ".githooks/pre-commit",
        tried: "echo evil > .githooks/pre-push",
    },
    Way {
        laid: "mkdir -p a/hooks; ln -s a b; git config core.hooksPath \"$PWD/b/hooks\"; echo mine > a/hooks/pre-commit",
        led_to: "a/hooks/pre-commit",
        tried: "mkdir -p evil/hooks; echo evil > evil/hooks/pre-commit; ln -sfn evil b",
    },
    Way {
        laid: "mv .git .repo; ln -s .repo .git; echo mine > .repo/hooks/pre-commit",
        led_to: ".repo/hooks/pre-commit",
        tried: "git config core.fsmonitor evil",
    },
    Way {
        laid: "mv .git .repo; echo 'gitdir: .repo' > .git; echo mine > .repo/hooks/pre-commit",
        led_to: ".repo/hooks/pre-commit",
        tried: "git config core.fsmonitor evil; echo 'gitdir: evil' > .git",
    },
];

#[test]
fn a_protected_file_with_another_name_is_as_it_was_in_both_tiers() {
    for tier in TIERS {
        for name in [
            ".git/hooks/pre-commit",
            ".envrc",
            ".mcp.json",
            ".claude/settings.json",
            ".vscode/tasks.json",
            ".cursor/mcp.json",
        ] {
            let yard = Yard::new();
            free(&yard, SETUP);
            free(&yard, &format!("mkdir -p $(dirname {name}) scripts; echo mine > scripts/own"));
            free(&yard, &format!("ln scripts/own {name}; cp scripts/own scripts/free"));
            let calm = yard.shell(tier, "cat scripts/own; echo x > scripts/free; git status");
            assert!(calm.in_tier(tier).all("tampered").is_empty(), "{tier} {name}: {calm:?}");
            let told = yard.shell(tier, "echo evil >> scripts/own; echo end");
            assert!(told.in_tier(tier).printed().ends_with("end"), "{tier} {name}: {told:?}");
            assert_eq!(text(&yard.project.join(name)), "mine\n", "{tier} {name}: {told:?}");
            assert!(!told.all("tampered").is_empty(), "{tier} {name}: {told:?}");
            assert_eq!(text(&yard.project.join("scripts/own")), "mine\nevil\n", "nothing is lost");
            assert_eq!(text(&yard.project.join("scripts/free")), "x\n", "the rest is free");
        }
    }
}

#[test]
fn what_a_protected_name_leads_to_is_protected_like_the_name() {
    for tier in TIERS {
        for way in &WAYS {
            let yard = Yard::new();
            free(&yard, SETUP);
            free(&yard, way.laid);
            let led_to = yard.project.join(way.led_to);
            let whole = |at: &Path| {
                let list = "find . -path ./.git/objects -prune -o -printf '%p %y %l\\n' | sort; git config -l --local; cat .git 2>&1";
                let out = Command::new("sh").args(["-c", list]).current_dir(at).output().unwrap();
                let lines = String::from_utf8_lossy(&out.stdout).into_owned();
                lines
                    .lines()
                    .filter(|line| !line.contains("quarantined"))
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            let before = whole(&yard.project);
            // Nothing is told of a call that leaves them alone, and git works.
            let told = yard.shell(tier, "git status --short && ls -a && cat .envrc; true");
            assert!(told.in_tier(tier).all("tampered").is_empty(), "{tier} {}: {told:?}", way.laid);
            assert_eq!(whole(&yard.project), before, "{tier} {}", way.laid);

            let script = format!(
                "echo evil >> {}; ({}); echo x > ordinary; rm ordinary; echo end",
                way.led_to, way.tried
            );
            let told = yard.shell(tier, &script);
            assert!(told.in_tier(tier).printed().ends_with("end"), "the rest is free: {told:?}");
            assert_eq!(text(&led_to), "mine\n", "{tier} {}: {told:?}", way.laid);
            let noticed = if tier == "a" { told.all("err") } else { told.all("tampered") };
            assert!(!noticed.is_empty(), "{tier} {}: {told:?}", way.laid);
            free(&yard, "rm -rf evil gone deep.quarantined");
            assert_eq!(whole(&yard.project), before, "{tier} {}: {told:?}", way.laid);
        }
    }
}

#[test]
fn what_a_protected_name_leads_to_and_is_not_there_yet_is_moved_aside() {
    for tier in TIERS {
        for laid in [
            "rm -r .git/hooks; ln -s ../later .git/hooks",
            "ln -s later .claude",
            "ln -s between .claude; ln -s later between",
            "git config core.hooksPath later",
        ] {
            let yard = Yard::new();
            free(&yard, SETUP);
            free(&yard, laid);
            let told = yard.shell(
                tier,
                "mkdir later beside; echo evil > later/pre-commit; echo x > beside/pre-commit; echo end",
            );
            assert_eq!(told.in_tier(tier).printed(), "end", "{told:?}");
            assert!(!yard.project.join("later/pre-commit").exists(), "{tier} {laid}: {told:?}");
            let all = told.all("tampered");
            assert!(all.iter().any(|line| line.starts_with("later")), "{tier} {laid}: {told:?}");
            assert!(yard.project.join("beside/pre-commit").exists(), "the control");
        }
    }
}

#[test]
fn a_link_that_the_command_makes_costs_no_file_that_it_leads_to() {
    for tier in TIERS {
        let yard = Yard::new();
        free(&yard, SETUP);
        free(&yard, "mkdir own; echo mine > own/tasks.json; echo mine > plain");
        let told =
            yard.shell(tier, "ln -s plain .envrc; ln -s own .vscode; echo x >> plain; echo end");
        assert_eq!(told.in_tier(tier).printed(), "end", "{told:?}");
        for name in [".envrc", ".vscode"] {
            assert!(yard.project.join(name).symlink_metadata().is_err(), "{tier}: {told:?}");
            let kept = yard.project.join(format!("{name}.quarantined"));
            assert!(kept.is_symlink(), "{tier}: {told:?}");
        }
        assert_eq!(text(&yard.project.join("plain")), "mine\nx\n");
        assert_eq!(text(&yard.project.join("own/tasks.json")), "mine\n");
    }
}

#[test]
fn what_leads_out_of_the_grants_cannot_be_written_anyhow() {
    for tier in TIERS {
        let yard = Yard::new();
        free(&yard, SETUP);
        let outside = yard.root.join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("pre-commit"), "mine\n").unwrap();
        free(
            &yard,
            "rm -r .git/hooks; ln -s ../../outside .git/hooks; ln -s ../canary .envrc; ln -s .envrc .mcp.json; ln -s loop .claude; ln -s .claude loop",
        );
        let told = yard.shell(
            tier,
            "echo x > .git/hooks/pre-commit; echo x > .git/hooks/new; echo x > .envrc; echo x > free; echo end",
        );
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert!(told.all("tampered").is_empty(), "{tier}: {told:?}");
        assert_eq!(text(&outside.join("pre-commit")), "mine\n", "{tier}");
        assert!(!outside.join("new").exists(), "{tier}");
        yard.canary_is_untouched();
        assert!(yard.project.join("free").exists(), "the control");
    }
}

#[test]
fn what_is_led_to_and_cannot_be_held_is_among_the_limits() {
    let says =
        |told: &Told, words: &str| told.all("limit").iter().any(|limit| limit.contains(words));
    for tier in TIERS {
        for (laid, words) in [
            ("ln -s . .claude", "more than can be kept"),
            ("rm -r .git/hooks; ln -s . .git/hooks", "more than can be kept"),
            ("git config core.hooksPath .", "more than can be kept"),
            ("git config include.path '%(prefix)/more'", "that only git knows"),
        ] {
            let yard = Yard::new();
            free(&yard, SETUP);
            assert!(!says(&yard.shell(tier, "true"), words), "the control");
            free(&yard, laid);
            let told =
                yard.shell(tier, "echo x > new && git add new && git commit -qm new && echo end");
            assert!(told.in_tier(tier).printed().ends_with("end"), "{tier} {laid}: {told:?}");
            assert!(says(&told, words), "{tier} {laid}: {told:?}");
        }
    }
}

#[test]
fn the_right_to_gits_settings_opens_the_hooks_that_they_lead_to() {
    for tier in TIERS {
        let yard = Yard::new();
        free(&yard, SETUP);
        free(
            &yard,
            "mkdir githooks; rm -r .git/hooks; ln -s ../githooks .git/hooks; mkdir own; ln -s own .claude",
        );
        let script = "echo x > githooks/pre-commit; echo x > own/settings.json; echo end";
        let told = yard.cage(tier, &["git", "writable"], &["sh", "-c", script]);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{told:?}");
        assert!(yard.project.join("githooks/pre-commit").exists(), "{tier}: {told:?}");
        assert!(!yard.project.join("own/settings.json").exists(), "{tier}: {told:?}");
        let all = told.all("tampered");
        assert!(all.iter().any(|line| line.contains("as the call was allowed to")), "{told:?}");
    }
}
